/* Results of content studies as lines for people. */
#include <inttypes.h>
#include <stdio.h>

#include "sim/cache_report.h"

static const char *capacity_text(uint64_t capacity, char text[24])
{
    if (capacity == CACHE_INFINITE)
        return "inf";
    (void)snprintf(text, 24, "%" PRIu64, capacity);
    return text;
}

static void print_ratio(uint64_t part, uint64_t whole)
{
    if (whole > 0)
        printf("  %8.4f", (double)part / (double)whole);
    else
        printf("  %8s", "-");
}

void cache_table_prefix_head(bool host)
{
    printf("%10s  %-12s  %-10s  %-6s  %12s  %8s  %14s  %8s  %12s  %8s", "capacity", "evict",
           "release", "blocks", "hit blocks", "ratio", "hit tokens", "ratio", "evicted", "rejected");
    if (host)
        printf("  %10s  %-10s  %12s  %8s  %12s  %12s  %12s", "host", "host evict", "host hits", "ratio", "fetched",
               "offloaded", "dropped");
    printf("\n");
}

void cache_table_infinite(const struct cache_infinite *result)
{
    printf("%10s  %-12s  %-10s  %-6s  %12" PRIu64, "inf", "-", "-", "all", result->hit_blocks);
    print_ratio(result->hit_blocks, result->lookup_blocks);
    printf("  %14" PRIu64, result->hit_tokens);
    print_ratio(result->hit_tokens, result->input_tokens);
    printf("  %12d  %8d\n", 0, 0);
    printf("%10s  %-12s  %-10s  %-6s  %12" PRIu64, "inf", "-", "-", "full", result->hit_full_blocks);
    print_ratio(result->hit_full_blocks, result->lookup_full_blocks);
    printf("  %14" PRIu64, result->hit_tokens_full_blocks);
    print_ratio(result->hit_tokens_full_blocks, result->input_tokens);
    printf("  %12d  %8d\n", 0, 0);
}

void cache_table_prefix(const struct cache_config *config, const struct cache_prefix *result, bool host)
{
    char text[24];

    printf("%10s  %-12s  %-10s  %-6s  %12" PRIu64, capacity_text(config->capacity_blocks, text),
           config->evict->name, config->release == CACHE_LEAF_FIRST ? "leaf-first" : "root-first",
           config->blocks == CACHE_ALL_BLOCKS ? "all" : "full", result->hit_blocks);
    print_ratio(result->hit_blocks, result->lookup_blocks);
    printf("  %14" PRIu64, result->hit_tokens);
    print_ratio(result->hit_tokens, result->input_tokens);
    printf("  %12" PRIu64 "  %8" PRIu64, result->evicted_blocks, result->rejected_requests);
    if (host) {
        printf("  %10s  %-10s  %12" PRIu64, capacity_text(config->host_capacity_blocks, text),
               config->host_capacity_blocks > 0 ? config->host_evict->name : "-", result->host_hit_blocks);
        print_ratio(result->host_hit_blocks, result->lookup_blocks);
        printf("  %12" PRIu64 "  %12" PRIu64 "  %12" PRIu64, result->fetched_blocks, result->offloaded_blocks,
               result->host_evicted_blocks);
    }
    printf("\n");
}

void cache_table_stream_head(void)
{
    printf("%10s  %-12s  %14s  %14s  %9s  %14s\n", "capacity", "evict", "references", "hits",
           "hit ratio", "evicted");
}

void cache_table_stream(const struct cache_config *config, const struct cache_stream *result)
{
    char text[24];

    printf("%10s  %-12s  %14" PRIu64 "  %14" PRIu64 " ", capacity_text(config->capacity_blocks, text),
           config->evict->name, result->lookups, result->hits);
    print_ratio(result->hits, result->lookups);
    printf("  %14" PRIu64 "\n", result->evicted_blocks);
}
