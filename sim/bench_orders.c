/* What eviction orders cost: the same load under each and under lru, one after the other in one process. Requests are 20,000 chats
 * with shared prefixes; nearly all of their blocks evict another. The runs differ in hits too. */
#include <stdio.h>

#include "sim/bench.h"
#include "sim/cache_sim.h"
#include "sim/options.h"

#define CHATS "20000"
#define BLOCKS "40000" /* of 16 tokens */

static double run_seconds(const char *order)
{
    const char *const pairs[] = {"trace", "preset:shared-chat", "max-requests", CHATS, "num-gpu-blocks-override", BLOCKS, "step-time",
                                 "unit", "step-ns", "30000000", "evict", order, NULL};
    return bench_run_seconds(pairs);
}

/* A whole run, its trace read beforehand, / the same under lru. */
static double run_ratio(unsigned long order)
{
    double lru = run_seconds("lru"), other = run_seconds(kv_eviction_at(order)->name);
    return lru < 0 || other < 0 ? -1 : other / lru;
}

static int read_chats(struct cache_trace *trace, struct err *err)
{
    struct wl_source *source = NULL;
    struct wl_options how = {.arrival_speedup_ratio = 1, .max_requests = 20000};
    if (wl_open("preset:shared-chat", &how, 1, &source, err)) return -1;
    int status = cache_trace_read(trace, source, 16, err);
    wl_close(source);
    return status;
}

static double cache_seconds(const struct cache_trace *trace, const struct kv_eviction_ops *order)
{
    struct cache_config config = {.evict = order, .capacity_blocks = 40000};
    struct cache_prefix result;
    struct err err = {0};
    double begin = bench_seconds();
    if (cache_run_prefix(trace, &config, &result, NULL, &err)) return -1;
    return bench_seconds() - begin;
}

/* The cache alone, the trace read beforehand, / the same under lru. */
static double cache_ratio(unsigned long order)
{
    struct cache_trace trace;
    struct err err = {0};
    if (read_chats(&trace, &err)) return -1;
    double lru = cache_seconds(&trace, kv_eviction_find("lru")), other = cache_seconds(&trace, kv_eviction_at(order));
    cache_trace_release(&trace);
    return lru < 0 || other < 0 ? -1 : other / lru;
}

size_t bench_orders_count(void)
{
    return 2 * kv_eviction_count();
}

struct bench_case bench_orders_case(size_t i, char *name, size_t name_bytes)
{
    bool cache = i >= kv_eviction_count();
    unsigned long order = i % kv_eviction_count();
    snprintf(name, name_bytes, "%s, " CHATS " chats, " BLOCKS " blocks: %s / lru", cache ? "cache" : "run",
             kv_eviction_at(order)->name);
    return (struct bench_case){.name = name, .unit = "times", .measure = cache ? cache_ratio : run_ratio, .a = order};
}
