/* `pagesim cache` over the content of a trace. */
#include <inttypes.h>
#include <stdio.h>

#include "sim/cache_report.h"
#include "sim/cache_study.h"
#include "sim/result.h"

/* One line or object. */
static int study_one(const struct cache_study *study, const struct cache_trace *trace,
                     const struct cache_config *config, bool *first, struct err *err)
{
    struct cache_prefix result;

    if (cache_run_prefix(trace, config, &result, NULL, err) != 0)
        return -1;
    if (!study->json) {
        cache_table_prefix(config, &result, study->host);
        return 0;
    }
    printf("%s", *first ? "  " : " ,");
    *first = false;
    return cache_json_prefix(stdout, config, &result, study->host, err);
}

/* The host tiers under one cache. Without a tier its order does not matter: one line. */
static int study_hosts(const struct cache_study *study, const struct cache_trace *trace,
                       const struct cache_config *device, bool *first, struct err *err)
{
    for (size_t h = 0; h < study->host_capacity_count; h++)
        for (size_t o = 0; o < study->host_order_count; o++) {
            struct cache_config config = *device;

            config.host_capacity_blocks = study->host_capacities[h];
            config.host_evict = study->host_orders[o].ops;
            config.host_evict_values = study->host_orders[o].values;
            if (config.host_capacity_blocks == 0 && o > 0)
                continue;
            if (study_one(study, trace, &config, first, err) != 0)
                return -1;
        }
    return 0;
}

static int study_prefix(const struct cache_study *study, const struct cache_trace *trace,
                        const struct cache_order *order, struct err *err)
{
    bool first = true;

    if (study->json)
        printf(" ,\"prefix_%s\": [\n", order->ops->name);
    for (size_t c = 0; c < study->capacity_count; c++)
        for (size_t r = 0; r < study->release_count; r++)
            for (size_t b = 0; b < study->blocks_count; b++) {
                struct cache_config config = {.evict = order->ops, .capacity_blocks = study->capacities[c],
                                              .release = study->releases[r], .blocks = study->blocks[b],
                                              .evict_values = order->values};

                if (config.capacity_blocks == CACHE_INFINITE)
                    continue; /* the object `infinite` says it all */
                if (study_hosts(study, trace, &config, &first, err) != 0)
                    return -1;
            }
    if (study->json)
        printf(" ]\n");
    return 0;
}

static int study_stream(const struct cache_study *study, const struct cache_trace *trace,
                        const struct cache_order *order, struct err *err)
{
    const char *separator = "  ";

    if (study->json)
        printf(" ,\"block_stream_%s\": [\n", order->ops->name);
    for (size_t c = 0; c < study->capacity_count; c++) {
        struct cache_config config = {.evict = order->ops, .capacity_blocks = study->capacities[c], .evict_values = order->values};
        struct cache_stream result;

        if (config.capacity_blocks == CACHE_INFINITE && !study->stream)
            continue; /* likewise */
        if (cache_run_stream(trace, &config, &result, err) != 0)
            return -1;
        if (!study->json) {
            cache_table_stream(&config, &result);
            continue;
        }
        printf("%s", separator);
        if (cache_json_stream(stdout, &config, &result, err) != 0)
            return -1;
        separator = " ,";
    }
    if (study->json)
        printf(" ]\n");
    return 0;
}

static int study_json(const struct cache_study *study, const struct cache_trace *trace,
                      const struct wl_source *source, struct err *err)
{
    struct cache_infinite infinite;

    printf("{\"trace\": ");
    result_write_string(wl_name(source), stdout);
    printf(", \"trace_checksum\": \"%016" PRIx64 "\"", wl_summary(source)->checksum);
    printf(", \"block_size_tokens\": %" PRIu32 ", \"requests\": %" PRIu64
           ", \"max_blocks_per_request\": %" PRIu64 ", \"lower_bound\": %s\n",
           trace->block_tokens, trace->request_count, trace->request_blocks_max,
           trace->lower_bound ? "true" : "false");
    if (!study->stream) {
        cache_run_infinite(trace, &infinite, NULL);
        printf(" ,\"infinite\": ");
        if (cache_json_infinite(stdout, &infinite, err) != 0)
            return -1;
        for (size_t i = 0; i < study->order_count; i++)
            if (study_prefix(study, trace, &study->orders[i], err) != 0)
                return -1;
    }
    for (size_t i = 0; i < study->order_count; i++)
        if (!cache_needs_requests(study->orders[i].ops) && study_stream(study, trace, &study->orders[i], err) != 0)
            return -1;
    printf("}\n");
    return 0;
}

static int study_table(const struct cache_study *study, const struct cache_trace *trace,
                       const struct wl_source *source, struct err *err)
{
    struct cache_infinite infinite;

    printf("%s: %" PRIu64 " requests, %" PRIu64 " blocks of %" PRIu32 " tokens, %" PRIu32
           " different, at most %" PRIu64 " a request\n",
           wl_name(source), trace->request_count, trace->block_count, trace->block_tokens,
           trace->unique_blocks, trace->request_blocks_max);
    if (trace->lower_bound)
        printf("the trace knows its content in coarser pieces than these blocks: hit ratios are lower bounds\n");
    if (study->stream)
        cache_table_stream_head();
    else
        cache_table_prefix_head(study->host);
    for (size_t i = 0; i < study->order_count; i++)
        if ((study->stream ? study_stream : study_prefix)(study, trace, &study->orders[i], err) != 0)
            return -1;
    for (size_t c = 0; c < study->capacity_count && !study->stream; c++)
        if (study->capacities[c] == CACHE_INFINITE) {
            cache_run_infinite(trace, &infinite, NULL);
            cache_table_infinite(&infinite);
            break;
        }
    return 0;
}

int cache_study_trace(const struct cache_study *study, const struct cache_trace *trace,
                      const struct wl_source *source, struct err *err)
{
    return study->json ? study_json(study, trace, source, err) : study_table(study, trace, source, err);
}
