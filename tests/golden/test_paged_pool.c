/* The pool as a cache of blocks (golden hit-rates, `paged_pool`), through `run --scheduler serial --json`: every
 * configuration of every trace, every key, per-request digests included. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include "sim/digest.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN "tests/golden/hit-rates/"

static const struct golden {
    const char *name, *trace;
} goldens[] = {
    {"mooncake-arxiv-slice-head", "mooncake/mooncake_arxiv_trace.slice.head.jsonl"},
    {"mooncake-fast25-conversation", "mooncake/conversation_trace.jsonl.zst"},
    {"mooncake-fast25-synthetic", "mooncake/synthetic_trace.jsonl.zst"},
    {"sharegpt-llmservingsim-300", "llmservingsim/sharegpt-llama-3.1-8b-300-sps10.blk16.derived.jsonl.zst"},
    {"weka-agentic-60", "weka-kv-cache-tester/weka_60sessions.derived.jsonl.zst"},
};

static json_t *load(const char *name)
{
    char path[200];
    json_error_t error;
    snprintf(path, sizeof path, GOLDEN "%s.json", name);
    json_t *root = json_load_file(path, 0, &error);
    if (!root) fail_msg("%s: %s", path, error.text);
    return root;
}

static json_t *run_pool(const char *trace, const json_t *golden, const json_t *wanted,
                        const char *cache_output)
{
    char block[24], blocks[24];
    struct cli_result r;
    json_error_t error;
    const char *head = json_string_value(json_object_get(wanted, "unkeyed_blocks"));
    snprintf(block, sizeof block, "%lld",
             (long long)json_integer_value(json_object_get(golden, "block_size_tokens")));
    /* N usable blocks and the null block. */
    snprintf(blocks, sizeof blocks, "%lld",
             (long long)json_integer_value(json_object_get(wanted, "pool_blocks")) + 1);
    CLI(&r, "run", trace, "--scheduler", "serial", "--json", "--block-size", block, "--trace-block-size", block,
        "--num-gpu-blocks-override", blocks, "--rules", strcmp(head, "tail") == 0 ? "2026-04" : "2026-08",
        "--cache-output", cache_output);
    if (r.status != 0) fail_msg("%s", r.err);
    json_t *result = json_loads(r.out, 0, &error);
    if (!result) fail_msg("%s", error.text);
    cli_release(&r);
    return result;
}

/* Every key of the golden object, integers and texts exactly, ratios to the last digit. */
static void check_pool(const json_t *wanted, json_t *result, const char *name)
{
    const char *key;
    json_t *value;
    json_t *pool = json_object_get(result, "paged_pool");
    assert_non_null(pool);
    json_object_foreach((json_t *)wanted, key, value) {
        const json_t *found = json_object_get(pool, key);
        if (!json_equal(value, found)) {
            fail_msg("%s, pool of %lld: %s differs", name,
                     (long long)json_integer_value(json_object_get(wanted, "pool_blocks")), key);
        }
    }
}

static void paged_pool__public_trace__every_figure_and_digest(void **state)
{
    const struct golden *g = *state;
    const char *trace = check_traces(g->trace);
    if (!trace) skip();
    json_t *golden = load(g->name), *wanted;
    size_t i;
    json_array_foreach(json_object_get(golden, "paged_pool"), i, wanted) {
        bool outputs = json_is_true(json_object_get(wanted, "cache_output_blocks"));
        json_t *result = run_pool(trace, golden, wanted, outputs ? "trace" : "unkeyed");
        check_pool(wanted, result, g->name);
        json_decref(result);
    }
    assert_true(i > 0);
    json_decref(golden);
}

/* The walk-through lists each request's hit blocks; the program prints their digest. */
static void check_hits(const json_t *hits, const json_t *result)
{
    struct hit_digest digest;
    char hex[HIT_DIGEST_HEX_BYTES];
    size_t i;
    const json_t *hit;
    hit_digest_begin(&digest);
    json_array_foreach(hits, i, hit) hit_digest_add(&digest, json_integer_value(hit));
    hit_digest_hex(&digest, hex);
    check_str_eq(json_string_value(json_object_get(json_object_get(result, "paged_pool"),
                                                   "per_request_hits_sha256")),
                 hex);
}

/* The hand-made rows stand in the file itself. */
static void paged_pool__tiny_walkthrough__every_figure_and_digest(void **state)
{
    (void)state;
    json_t *golden = load("tiny-walkthrough"), *row, *wanted;
    size_t i;
    char *dir = cli_temp_dir(), *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    json_array_foreach(json_object_get(golden, "rows"), i, row) {
        json_object_set_new(row, "timestamp", json_integer((json_int_t)i));
        char *line = json_dumps(row, 0);
        fprintf(out, "%s\n", line);
        free(line);
    }
    fclose(out);
    char trace[300];
    snprintf(trace, sizeof trace, "%s", cli_write(dir, "tiny.jsonl", text, bytes));
    json_array_foreach(json_object_get(golden, "paged_pool"), i, wanted) {
        json_t *result = run_pool(trace, golden, wanted, "unkeyed");
        check_hits(json_object_get(wanted, "per_request_hits"), result);
        json_object_del(wanted, "per_request_hits");
        check_pool(wanted, result, "tiny");
        json_decref(result);
    }
    assert_true(i > 0);
    free(text);
    cli_temp_remove(dir);
    json_decref(golden);
}

int main(void)
{
    enum { TRACES = sizeof goldens / sizeof goldens[0] };
    struct CMUnitTest tests[TRACES + 1];
    char names[TRACES][100];
    for (size_t i = 0; i < TRACES; i++) {
        snprintf(names[i], sizeof names[i], "paged_pool__%s__every_figure_and_digest", goldens[i].name);
        tests[i] = (struct CMUnitTest){.name = names[i],
                                       .test_func = paged_pool__public_trace__every_figure_and_digest,
                                       .initial_state = (void *)&goldens[i]};
    }
    tests[TRACES] =
        (struct CMUnitTest)cmocka_unit_test(paged_pool__tiny_walkthrough__every_figure_and_digest);
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
