#include "tests/engine_case.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/eviction.h"
#include "sim/engine_core.h"
#include "sim/report.h"
#include "tests/check.h"
#include "workloads/wl_source_impl.h"

/* --- requests in memory as a source -------------------------------------------------------- */

struct case_source {
    struct wl_source source;
    const struct engine_case *c;
    struct wl_draft draft;
    size_t at;
};

static int source_next(struct wl_source *source, struct wl_draft **draft, struct err *err)
{
    struct case_source *s = (struct case_source *)source;
    (void)err;
    if (s->at == s->c->count) return 0;
    s->draft.request = s->c->requests[s->at++];
    *draft = &s->draft;
    return 1;
}

static int source_rewind(struct wl_source *source, struct err *err)
{
    (void)err;
    ((struct case_source *)source)->at = 0;
    return 0;
}

static void source_release(struct wl_source *source)
{
    (void)source;
}

static const struct wl_source_ops source_ops = {.next = source_next, .rewind = source_rewind, .release = source_release};

struct wl_source *engine_case_source(const struct engine_case *c)
{
    const struct wl_options plain = {.arrival_speedup_ratio = 1};
    struct err err = {0};
    struct case_source *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->c = c;
    assert_int_equal(wl_source_init(&s->source, &source_ops, "case", "case", &plain, &err), 0);
    s->source.can_rewind = true;
    return &s->source;
}

/* --- cases --------------------------------------------------------------------------------- */

static const char *option_text(const char *options, const char *name, char *out, size_t out_bytes)
{
    size_t name_chars = strlen(name);
    for (const char *at = options; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, name_chars) != 0 || at[name_chars] != '=') continue;
        snprintf(out, out_bytes, "%.*s", (int)strcspn(at + name_chars + 1, " "), at + name_chars + 1);
        return out;
    }
    return NULL;
}

static void set_policy(struct engine_config *config, const char *policy, const char *options)
{
    char storage[KV_OPTIONS_MAX][32], why[200] = "";
    const char *texts[KV_OPTIONS_MAX] = {NULL};
    const struct kv_policy_ops *ops = config->policy = kv_registry_find(policy);
    assert_non_null(ops);
    for (size_t i = 0; ops->options && ops->options[i]; i++) {
        texts[i] = option_text(options, ops->options[i]->name, storage[i], sizeof storage[i]);
    }
    if (!kv_policy_values(ops, texts, config->policy_values, why, sizeof why)) fail_msg("%s", why);
    const struct kv_eviction_ops *order = kv_eviction_of(ops->options, config->policy_values);
    if (!order) return;
    size_t own = kv_options_count(ops->options);
    memset(texts, 0, sizeof texts);
    for (size_t i = 0; order->options && order->options[i]; i++) {
        texts[i] = option_text(options, order->options[i]->name, storage[i], sizeof storage[i]);
    }
    if (!kv_options_parse(order->options, texts, config->policy_values + own, why, sizeof why)) fail_msg("%s", why);
}

void engine_case_init(struct engine_case *c, const char *policy, const char *options, uint64_t pool_bytes)
{
    memset(c, 0, sizeof *c);
    c->config = (struct engine_config){
        .scheduler = scheduler_find("v1"),
        .geometry = {.pool_bytes = pool_bytes, .bytes_per_token = 1, .block_tokens = 16},
        .step_time = {.kind = STEP_TIME_UNIT, .step_ns = 1000},
        .max_num_seqs = 256,
        .max_num_batched_tokens = 2048,
        .max_model_len = 100,
        .chunked_prefill = true,
        .whole_prompt_admission = true,
        .window_end = UINT64_MAX,
        .check_every = 1,
    };
    set_policy(&c->config, policy, options);
}

struct wl_request *engine_case_add(struct engine_case *c, uint64_t arrival_ns, uint64_t prompt_tokens,
                                   uint64_t output_tokens)
{
    assert_true(c->count < ENGINE_CASE_REQUESTS);
    struct wl_request *r = &c->requests[c->count++];
    *r = (struct wl_request){
        .arrival_ns = arrival_ns,
        .prompt_tokens = prompt_tokens,
        .output_tokens = output_tokens,
        .max_tokens = WL_NONE,
        .abort_ns = WL_NONE,
        .samples = 1,
    };
    return r;
}

/* --- runs ---------------------------------------------------------------------------------- */

static void record_episode(void *context, const struct episode *episode, const char *request_id,
                           uint64_t end_ns)
{
    struct engine_run *run = context;
    (void)request_id;
    if (run->episode_count < ENGINE_CASE_EPISODES) {
        run->episodes[run->episode_count] = *episode;
        run->episode_end[run->episode_count] = end_ns;
    }
    run->episode_count++;
}

void engine_case_run(const struct engine_case *c, struct engine_run *run)
{
    struct err err = {0};
    struct engine_config config = c->config;
    memset(run, 0, sizeof *run);
    config.hooks.context = run;
    config.hooks.episode = record_episode;
    run->engine = engine_create(&config, &err);
    if (!run->engine) fail_msg("%s", err.text);
    struct wl_source *source = engine_case_source(c);
    int status = engine_run(run->engine, source, &err);
    wl_close(source);
    if (status) fail_msg("%s", err.text);
    run->stats = engine_stats(run->engine);
    run->accounting = engine_accounting(run->engine);
}

void engine_run_release(struct engine_run *run)
{
    engine_destroy(run->engine);
    run->engine = NULL;
}

uint64_t engine_run_state(const struct engine_run *run, enum state state)
{
    u128 sum = run->accounting->whole.state_byte_time[state];
    assert_true(sum <= UINT64_MAX);
    return (uint64_t)sum;
}

char *engine_run_json(struct engine_run *run)
{
    char *text = NULL;
    size_t bytes = 0;
    struct result result;
    struct options options = {.block_tokens = run->engine->config.geometry.block_tokens};
    struct wl_summary summary = {.trace_block_tokens = 1};
    result_init(&result);
    report_figures(&result, run->engine, &options, &summary);
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    result_write_json(&result, out);
    assert_int_equal(fclose(out), 0);
    result_release(&result);
    return text;
}
