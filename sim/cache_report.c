#include "sim/cache_report.h"

#include "sim/result.h"

#define COUNT(field) result_u64(&object, #field, figures->field)
#define MEAN(field) result_f64(&object, #field, figures->field)
#define RATIO(key, part, whole) result_ratio(&object, key, figures->part, figures->whole)
#define TEXT(field) result_text(&object, #field, figures->field)

static int write_object(struct result *object, FILE *out, struct err *err)
{
    int status = object->out_of_memory ? err_set(err, ERR_FAILED, "out of memory") : 0;

    if (status == 0)
        result_write_line(object, out);
    result_release(object);
    return status;
}

/* Infinite capacity is null: there is no such number of blocks. */
static void add_capacity(struct result *object, const char *key, uint64_t blocks)
{
    if (blocks == CACHE_INFINITE)
        result_null(object, key);
    else
        result_u64(object, key, blocks);
}

int cache_json_infinite(FILE *out, const struct cache_infinite *figures, struct err *err)
{
    struct result object;

    result_init(&object);
    COUNT(requests);
    COUNT(lookup_blocks);
    COUNT(hit_blocks);
    COUNT(lookup_full_blocks);
    COUNT(hit_full_blocks);
    COUNT(input_tokens);
    COUNT(hit_tokens);
    COUNT(hit_tokens_full_blocks);
    COUNT(fully_hit_requests);
    COUNT(zero_hit_requests);
    COUNT(unique_blocks);
    RATIO("hit_ratio_blocks", hit_blocks, lookup_blocks);
    RATIO("hit_ratio_full_blocks", hit_full_blocks, lookup_full_blocks);
    RATIO("hit_ratio_tokens", hit_tokens, input_tokens);
    RATIO("hit_ratio_tokens_full_blocks", hit_tokens_full_blocks, input_tokens);
    MEAN(mean_request_hit_ratio_blocks);
    MEAN(mean_request_hit_ratio_tokens);
    MEAN(mean_request_hit_ratio_full_blocks);
    TEXT(per_request_hits_sha256);
    return write_object(&object, out, err);
}

/* The order of a tier that is not there is null. */
static void add_host(struct result *out, const struct cache_config *config, const struct cache_prefix *figures)
{
    add_capacity(out, "host_capacity_blocks", config->host_capacity_blocks);
    result_text(out, "host_evict", config->host_capacity_blocks > 0 ? config->host_evict->name : NULL);
    result_u64(out, "device_hit_blocks", figures->hit_blocks - figures->host_hit_blocks);
    result_u64(out, "host_hit_blocks", figures->host_hit_blocks);
    result_ratio(out, "device_hit_ratio_blocks", figures->hit_blocks - figures->host_hit_blocks, figures->lookup_blocks);
    result_ratio(out, "host_hit_ratio_blocks", figures->host_hit_blocks, figures->lookup_blocks);
    result_u64(out, "fetched_blocks", figures->fetched_blocks);
    result_u64(out, "offloaded_blocks", figures->offloaded_blocks);
    result_u64(out, "already_there_blocks", figures->already_there_blocks);
    result_u64(out, "host_evicted_blocks", figures->host_evicted_blocks);
    result_u64(out, "host_resident_blocks_at_end", figures->host_resident_blocks_at_end);
}

int cache_json_prefix(FILE *out, const struct cache_config *config, const struct cache_prefix *figures,
                      bool host, struct err *err)
{
    struct result object;

    result_init(&object);
    add_capacity(&object, "capacity_blocks", config->capacity_blocks);
    result_text(&object, "release_order",
                config->release == CACHE_LEAF_FIRST ? "leaf_first" : "root_first");
    result_text(&object, "cacheable_blocks", config->blocks == CACHE_ALL_BLOCKS ? "all" : "full");
    COUNT(requests);
    COUNT(rejected_requests);
    COUNT(lookup_blocks);
    COUNT(hit_blocks);
    COUNT(input_tokens);
    COUNT(hit_tokens);
    COUNT(inserted_blocks);
    COUNT(evicted_blocks);
    COUNT(fully_hit_requests);
    COUNT(zero_hit_requests);
    COUNT(resident_blocks_at_end);
    RATIO("hit_ratio_blocks", hit_blocks, lookup_blocks);
    RATIO("hit_ratio_tokens", hit_tokens, input_tokens);
    if (host)
        add_host(&object, config, figures);
    TEXT(per_request_hits_sha256);
    return write_object(&object, out, err);
}

int cache_json_stream(FILE *out, const struct cache_config *config, const struct cache_stream *figures,
                      struct err *err)
{
    struct result object;

    result_init(&object);
    add_capacity(&object, "capacity_blocks", config->capacity_blocks);
    COUNT(lookups);
    COUNT(hits);
    COUNT(evicted_blocks);
    COUNT(resident_blocks_at_end);
    RATIO("hit_ratio", hits, lookups);
    return write_object(&object, out, err);
}
