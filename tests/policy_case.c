#include "tests/policy_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/kv_check.h"
#include "tests/check.h"

static void fail_on_violation(void *context, uint64_t call_number, const char *call,
                              const char *policy_name, const char *what)
{
    (void)context;
    print_error("check: %s: call %llu (%s): %s\n", policy_name, (unsigned long long)call_number, call, what);
    fail();
}

/* The value of `name` in "a=1 b=2", copied to out; NULL when it is not there. */
static const char *option_text(const char *options, const char *name, char *out, size_t out_bytes)
{
    size_t name_chars = strlen(name);
    for (const char *at = options; at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, name_chars) == 0 && at[name_chars] == '=') {
            snprintf(out, out_bytes, "%.*s", (int)strcspn(at + name_chars + 1, " "), at + name_chars + 1);
            return out;
        }
    }
    return NULL;
}

static struct kv_policy *make_bare(const char *name, const struct kv_geometry *geometry,
                                   const char *options, const struct kv_observer *observer, char *why,
                                   size_t why_bytes)
{
    const struct kv_policy_ops *ops = kv_registry_find(name);
    assert_non_null(ops);
    char storage[KV_OPTIONS_MAX][32];
    const char *texts[KV_OPTIONS_MAX] = { NULL };
    struct kv_value values[KV_OPTIONS_MAX] = { { 0 } };
    for (size_t i = 0; ops->options != NULL && ops->options[i] != NULL; i++)
        texts[i] = option_text(options, ops->options[i]->name, storage[i], sizeof storage[i]);
    if (!kv_policy_values(ops, texts, values, why, why_bytes))
        return NULL;
    return ops->create(geometry, values, observer, why, why_bytes);
}

struct kv_policy *policy_case_bare(const char *name, const struct kv_geometry *geometry,
                                   const char *options, const struct kv_observer *observer)
{
    char why[200] = "";
    struct kv_policy *policy = make_bare(name, geometry, options, observer, why, sizeof why);
    if (policy == NULL)
        print_error("%s: %s\n", name, why);
    assert_non_null(policy);
    return policy;
}

struct kv_policy *policy_case_make(const char *name, const struct kv_geometry *geometry,
                                   const char *options, const struct kv_observer *observer)
{
    struct kv_policy *inner = policy_case_bare(name, geometry, options, observer);
    struct kv_policy *policy = kv_check_wrap(inner, geometry, 1, fail_on_violation, NULL);
    assert_non_null(policy);
    return policy;
}

const char *policy_case_refusal(const char *name, const struct kv_geometry *geometry, const char *options)
{
    static char why[200];
    why[0] = '\0';
    struct kv_policy *policy = make_bare(name, geometry, options, NULL, why, sizeof why);
    if (policy == NULL)
        return why;
    kv_destroy(policy);
    return NULL;
}

struct kv_request policy_case_request(uint64_t prompt_tokens, uint64_t output_tokens, uint32_t samples)
{
    return (struct kv_request){
        .prompt_tokens = prompt_tokens,
        .max_tokens = output_tokens > 0 ? output_tokens : 1,
        .output_tokens = output_tokens,
        .final_tokens = prompt_tokens + (output_tokens > 0 ? output_tokens - 1 : 0),
        .samples = samples,
    };
}

enum kv_status policy_case_admit(struct kv_policy *policy, const struct kv_request *request,
                                 const kv_seq *seqs, uint64_t filled_tokens, const uint64_t *keys,
                                 struct kv_taken *taken)
{
    struct kv_taken ignored;
    struct kv_ask ask = {
        .request = request,
        .seqs = seqs,
        .seq_count = request->samples,
        .filled_tokens = filled_tokens,
        .slots_tokens = filled_tokens,
        .keyed_tokens = keys != NULL ? filled_tokens : 0,
        .keys = &keys,
    };
    return kv_admit(policy, &ask, taken != NULL ? taken : &ignored);
}

enum kv_status policy_case_extend(struct kv_policy *policy, const struct kv_request *request,
                                  const kv_seq *seqs, uint32_t count, uint64_t computed_tokens,
                                  uint64_t filled_tokens, struct kv_taken *taken)
{
    struct kv_taken ignored;
    struct kv_ask ask = {
        .request = request,
        .seqs = seqs,
        .seq_count = count,
        .computed_tokens = computed_tokens,
        .filled_tokens = filled_tokens,
        .slots_tokens = filled_tokens,
    };
    return kv_extend(policy, &ask, taken != NULL ? taken : &ignored);
}

uint64_t policy_case_free_bytes(const struct kv_policy *policy)
{
    struct kv_facts facts;
    kv_get_facts(policy, &facts);
    return facts.free_bytes + facts.cached_bytes;
}
