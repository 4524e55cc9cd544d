#include "sim/replay.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_STEPS_DEFAULT 1000000u

/* Keys of config.json that are options as they stand. */
static const struct {
    const char *key, *option;
} plain_keys[] = {
    {"block_size", "block-size"},
    {"num_blocks", "num-gpu-blocks-override"},
    {"max_num_seqs", "max-num-seqs"},
    {"max_num_batched_tokens", "max-num-batched-tokens"},
    {"max_model_len", "max-model-len"},
    {"sliding_window", "sliding-window"},
    {"long_prefill_token_threshold", "long-prefill-token-threshold"},
    {"num_lookahead_tokens", "num-lookahead-tokens"},
    {"tokens_per_hash_id", "trace-block-size"},
    {"watermark", "watermark"},
    {"rules", "rules"},
};
static const char *const other_keys[] = {"enable_prefix_caching", "enable_chunked_prefill",
                                         "reserve_full_prompt", "max_steps", "detail", "comment"};

/* What the ordinary defaults do not say. */
static const struct {
    const char *option, *text;
} fixed[] = {
    {"kv-bytes-per-token", "1"},
    {"step-time", "unit"},
    {"step-ns", "1"},
    {"format", "vllm_case_jsonl"},
};

struct config {
    json_t *root;
    char path[4096];
    struct err *err;
};

static int bad(const struct config *c, const char *key, const char *expected)
{
    return err_set(c->err, ERR_INPUT, "%s: %s: expected %s", c->path, key, expected);
}

static int read_bool(const struct config *c, const char *key, bool absent, bool *value)
{
    const json_t *found = json_object_get(c->root, key);
    if (found && !json_is_boolean(found)) return bad(c, key, "true or false");
    *value = found ? json_is_true(found) : absent;
    return 0;
}

static bool known_key(const char *key)
{
    for (size_t i = 0; i < sizeof plain_keys / sizeof plain_keys[0]; i++) {
        if (strcmp(key, plain_keys[i].key) == 0) return true;
    }
    for (size_t i = 0; i < sizeof other_keys / sizeof other_keys[0]; i++) {
        if (strcmp(key, other_keys[i]) == 0) return true;
    }
    return false;
}

static int put_value(const struct config *c, struct optset *set, const char *option,
                     const char *key, const json_t *value)
{
    char text[64];
    if (json_is_integer(value)) {
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        snprintf(text, sizeof text, "%.17g", json_real_value(value));
    } else if (json_is_string(value) && json_string_length(value) < sizeof text) {
        snprintf(text, sizeof text, "%s", json_string_value(value));
    } else {
        return bad(c, key, "a number");
    }
    if (optset_put(set, option, text, c->err)) {
        err_prefix(c->err, "%s: %s", c->path, key);
        return -1;
    }
    return 0;
}

static int put_plain(const struct config *c, struct optset *set)
{
    const char *rules = json_string_value(json_object_get(c->root, "rules"));
    for (size_t i = 0; i < sizeof plain_keys / sizeof plain_keys[0]; i++) {
        const char *key = plain_keys[i].key;
        const json_t *value = json_object_get(c->root, key);
        if (!value || json_is_null(value)) continue;
        /* The engine of that date had none and ignores it. */
        if (strcmp(key, "watermark") == 0 && rules && strcmp(rules, "2026-04") == 0) continue;
        if (put_value(c, set, plain_keys[i].option, key, value)) return -1;
    }
    const json_t *per_id = json_object_get(c->root, "tokens_per_hash_id");
    if (!per_id || json_is_null(per_id)) {
        const json_t *block = json_object_get(c->root, "block_size");
        if (!block) return bad(c, "block_size", "a count");
        if (put_value(c, set, "trace-block-size", "block_size", block)) return -1;
    }
    if (!json_object_get(c->root, "num_blocks")) return bad(c, "num_blocks", "a count");
    if (!json_object_get(c->root, "max_model_len")) {
        return optset_put(set, "max-model-len", "8192", c->err);
    }
    return 0;
}

static int put_switches(const struct config *c, struct optset *set)
{
    bool caching, chunked, whole;
    if (read_bool(c, "enable_prefix_caching", true, &caching) ||
        read_bool(c, "enable_chunked_prefill", true, &chunked) ||
        read_bool(c, "reserve_full_prompt", true, &whole)) {
        return -1;
    }
    if (optset_put(set, "policy", caching ? "prefix" : "dynamic", c->err) ||
        optset_put(set, "enable-chunked-prefill", chunked ? "yes" : "no", c->err) ||
        optset_put(set, "admission", whole ? "whole-prompt" : "first-chunk", c->err)) {
        return -1;
    }
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        if (optset_put(set, fixed[i].option, fixed[i].text, c->err)) return -1;
    }
    return 0;
}

static int put_trace(const struct config *c, struct optset *set, const char *directory)
{
    char path[4096];
    static const char *const names[] = {"trace.jsonl", "trace.jsonl.gz", "trace.jsonl.zst"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        if (access(path, F_OK) == 0) return optset_put_trace(set, path, c->err);
    }
    return err_set(c->err, ERR_INPUT, "%s: expected trace.jsonl, .gz or .zst in it", directory);
}

/* Outputs and checks may be chosen for a case; what it simulates may not. */
static int copy_user_options(struct optset *set, const struct optset *user, struct err *err)
{
    for (size_t i = 0; i < option_count(); i++) {
        const struct option_spec *spec = option_at(i);
        if (!(spec->commands & FOR_RUN) || spec->policy_option) continue;
        if (!optset_given(user, spec->name) || strcmp(spec->name, "case") == 0) continue;
        if (spec->section < OPT_CHECKS) {
            return err_set(err, ERR_USAGE, "--%s: a case brings its own, expected no such option",
                           spec->name);
        }
        if (strcmp(spec->name, "config") == 0) continue;
        struct opt_list values = optset_values(user, spec);
        for (size_t v = 0; v < values.count; v++) {
            if (optset_put(set, spec->name, values.items[v], err)) return -1;
        }
    }
    return 0;
}

static int read_case(struct replay *replay, struct config *c, const char *directory,
                     const struct optset *user)
{
    json_error_t where;
    snprintf(c->path, sizeof c->path, "%s/config.json", directory);
    if (access(c->path, R_OK)) {
        return err_set(c->err, ERR_INPUT, "%s: %s", c->path, strerror(errno));
    }
    c->root = json_load_file(c->path, JSON_REJECT_DUPLICATES, &where);
    if (!c->root) {
        return err_set(c->err, ERR_INPUT, "%s:%d:%d: %s", c->path, where.line, where.column, where.text);
    }
    if (!json_is_object(c->root)) {
        return err_set(c->err, ERR_INPUT, "%s: expected an object", c->path);
    }
    const char *key;
    json_t *value;
    json_object_foreach(c->root, key, value) {
        if (!known_key(key)) return bad(c, key, "no such key");
    }
    const json_t *steps = json_object_get(c->root, "max_steps");
    if (steps && (!json_is_integer(steps) || json_integer_value(steps) < 1)) {
        return bad(c, "max_steps", "a count of at least 1");
    }
    replay->max_steps = steps ? (uint64_t)json_integer_value(steps) : MAX_STEPS_DEFAULT;
    const char *detail = json_string_value(json_object_get(c->root, "detail"));
    if (detail && strcmp(detail, "full") != 0 && strcmp(detail, "counters") != 0) {
        return bad(c, "detail", "full or counters");
    }
    replay->counters = detail && strcmp(detail, "counters") == 0;
    if (put_plain(c, replay->set) || put_switches(c, replay->set) ||
        put_trace(c, replay->set, directory) || copy_user_options(replay->set, user, c->err)) {
        return -1;
    }
    return optset_finish(replay->set, c->err);
}

int replay_open(struct replay *replay, const char *directory, const struct optset *user,
                struct err *err)
{
    struct config c = {.err = err};
    memset(replay, 0, sizeof *replay);
    replay->set = optset_create(FOR_RUN, false);
    if (!replay->set) return err_set(err, ERR_FAILED, "out of memory");
    int status = read_case(replay, &c, directory, user);
    json_decref(c.root);
    return status;
}

void replay_release(struct replay *replay)
{
    optset_destroy(replay->set);
    replay->set = NULL;
}
