/* Golden hit rates of public traces, every figure and every request's hits (through their digest).
 * The traces are not part of the project: they are read below $PAGESIM_TRACES, else skipped. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cache_sim.h"
#include "tests/hit_rates.h"
#include "workloads/wl_source.h"

struct golden_trace {
    const char *name;            /* of the golden file */
    const char *path;            /* below $PAGESIM_TRACES */
    uint32_t trace_block_tokens; /* 0: the format's own */
    size_t configurations;       /* that the golden file has for us */
};

static const struct golden_trace traces[] = {
    {"mooncake-arxiv-slice-head", "mooncake/mooncake_arxiv_trace.slice.head.jsonl", 0, 1 + 20 + 5},
    {"mooncake-fast25-conversation", "mooncake/conversation_trace.jsonl.zst", 0, 1 + 44 + 11},
    {"mooncake-fast25-synthetic", "mooncake/synthetic_trace.jsonl.zst", 0, 1 + 32 + 8},
    {"sharegpt-llmservingsim-300", "llmservingsim/sharegpt-llama-3.1-8b-300-sps10.blk16.derived.jsonl.zst", 16,
     1 + 28 + 7},
    {"weka-agentic-60", "weka-kv-cache-tester/weka_60sessions.derived.jsonl.zst", 64, 1 + 16 + 8},
};

static void read_trace(const struct golden_trace *golden, uint32_t block_tokens, struct cache_trace *trace)
{
    struct wl_options options = {.trace_block_tokens = golden->trace_block_tokens,
                                 .arrival_speedup_ratio = 1};
    struct wl_source *source;
    struct err err = {0};

    if (wl_open(check_traces(golden->path), &options, 1, &source, &err) != 0 ||
        cache_trace_read(trace, source, block_tokens, &err) != 0)
        fail_msg("%s", err.text);
    wl_close(source);
}

static void check_members(const json_t *golden, const struct cache_trace *trace)
{
    check_u64_eq(trace->block_tokens, (uint64_t)json_integer_value(json_object_get(golden, "block_size_tokens")));
    check_u64_eq(trace->request_count, (uint64_t)json_integer_value(json_object_get(golden, "requests")));
    check_u64_eq(trace->request_blocks_max,
                 (uint64_t)json_integer_value(json_object_get(golden, "max_blocks_per_request")));
}

/* `infinite`, `prefix_lru` and `block_stream_lru`. */
static void content__golden_trace__every_figure(void **fixture)
{
    const struct golden_trace *golden = *fixture;
    struct cache_trace trace;
    json_t *expected;

    if (check_traces(golden->path) == NULL)
        skip();
    read_trace(golden, 0, &trace);
    expected = hit_rates_load(golden->name);
    check_members(expected, &trace);
    check_u64_eq(hit_rates_check(expected, &trace), golden->configurations);
    json_decref(expected);
    cache_trace_release(&trace);
}

/* `paged_pool` belongs here too: `run --scheduler serial` with the same golden files. */

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t *infinite_hits(const struct cache_trace *trace)
{
    int64_t *hits = calloc(trace->request_count, sizeof *hits);
    struct cache_infinite result;

    assert_non_null(hits);
    cache_run_infinite(trace, &result, hits);
    return hits;
}

/* Blocks of twice the ids' size, cut out of the content as --block-size asks: with nothing evicted, a request
 * hits floor(k / 2) full blocks of them where it hits k full blocks of the ids' own size. */
static void derived__twice_the_ids_size__half_the_hit_run(void **fixture)
{
    const struct golden_trace *golden = *fixture;
    struct cache_trace ids, derived;
    int64_t *ids_hits, *derived_hits;

    if (check_traces(golden->path) == NULL)
        skip();
    read_trace(golden, 0, &ids);
    read_trace(golden, ids.block_tokens * 2, &derived);
    check_u64_eq(derived.request_count, ids.request_count);
    assert_false(derived.lower_bound);
    ids_hits = infinite_hits(&ids);
    derived_hits = infinite_hits(&derived);
    for (uint64_t i = 0; i < ids.request_count; i++) {
        int64_t full = (int64_t)(ids.requests[i].prompt_tokens / ids.block_tokens);

        check_i64_eq(min_i64(derived_hits[i], full / 2), min_i64(ids_hits[i], full) / 2);
    }
    free(ids_hits);
    free(derived_hits);
    cache_trace_release(&ids);
    cache_trace_release(&derived);
}

#define TRACES (sizeof traces / sizeof traces[0])

int main(void)
{
    static char names[2 * TRACES][100];
    struct CMUnitTest tests[2 * TRACES];

    for (size_t i = 0; i < TRACES; i++) {
        (void)snprintf(names[2 * i], sizeof names[0], "content__%s__every_figure", traces[i].name);
        (void)snprintf(names[2 * i + 1], sizeof names[0], "derived__%s_at_twice_its_ids_size__half_the_hit_run", traces[i].name);
        tests[2 * i] = (struct CMUnitTest){names[2 * i], content__golden_trace__every_figure, NULL, NULL,
                                           (void *)(uintptr_t)&traces[i]};
        tests[2 * i + 1] = (struct CMUnitTest){names[2 * i + 1], derived__twice_the_ids_size__half_the_hit_run, NULL,
                                               NULL, (void *)(uintptr_t)&traces[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
