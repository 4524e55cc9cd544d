#include "sim/cache_report.h"

#include "sim/sizes.h"

#include <inttypes.h>
#include <math.h>

double cache_ratio(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : (double)NAN;
}

void cache_json_text(FILE *out, const char *text)
{
    putc('"', out);
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;

        if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte < 0x20 || byte > 0x7e)
            fprintf(out, "\\u%04x", byte);
        else
            putc(byte, out);
    }
    putc('"', out);
}

/* Members of one object, with the commas between them. */
struct object {
    FILE *out;
    const char *separator;
};

static struct object object_begin(FILE *out)
{
    return (struct object){.out = out, .separator = "{"};
}

static void object_key(struct object *object, const char *key)
{
    fprintf(object->out, "%s\"%s\": ", object->separator, key);
    object->separator = ", ";
}

static void object_count(struct object *object, const char *key, uint64_t count)
{
    object_key(object, key);
    fprintf(object->out, "%" PRIu64, count);
}

static void object_ratio(struct object *object, const char *key, double ratio)
{
    char text[40];

    object_key(object, key);
    if (isnan(ratio)) {
        fputs("null", object->out);
        return;
    }
    size_format_ratio(ratio, text, sizeof text);
    fputs(text, object->out);
}

static void object_text(struct object *object, const char *key, const char *text)
{
    object_key(object, key);
    cache_json_text(object->out, text);
}

static void object_end(struct object *object)
{
    putc('}', object->out);
}

/* Infinite capacity is null: there is no such number of blocks. */
static void object_capacity(struct object *object, uint64_t capacity_blocks)
{
    if (capacity_blocks == CACHE_INFINITE) {
        object_key(object, "capacity_blocks");
        fputs("null", object->out);
    } else {
        object_count(object, "capacity_blocks", capacity_blocks);
    }
}

#define COUNT(field) object_count(&object, #field, result->field)
#define RATIO(field) object_ratio(&object, #field, result->field)
#define QUOTIENT(key, part, whole) object_ratio(&object, key, cache_ratio(result->part, result->whole))

void cache_json_infinite(FILE *out, const struct cache_infinite *result)
{
    struct object object = object_begin(out);

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
    QUOTIENT("hit_ratio_blocks", hit_blocks, lookup_blocks);
    QUOTIENT("hit_ratio_full_blocks", hit_full_blocks, lookup_full_blocks);
    QUOTIENT("hit_ratio_tokens", hit_tokens, input_tokens);
    QUOTIENT("hit_ratio_tokens_full_blocks", hit_tokens_full_blocks, input_tokens);
    RATIO(mean_request_hit_ratio_blocks);
    RATIO(mean_request_hit_ratio_tokens);
    RATIO(mean_request_hit_ratio_full_blocks);
    object_text(&object, "per_request_hits_sha256", result->per_request_hits_sha256);
    object_end(&object);
}

void cache_json_prefix(FILE *out, const struct cache_config *config,
                       const struct cache_prefix *result)
{
    struct object object = object_begin(out);

    object_capacity(&object, config->capacity_blocks);
    object_text(&object, "release_order",
                config->release == CACHE_LEAF_FIRST ? "leaf_first" : "root_first");
    object_text(&object, "cacheable_blocks", config->blocks == CACHE_ALL_BLOCKS ? "all" : "full");
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
    QUOTIENT("hit_ratio_blocks", hit_blocks, lookup_blocks);
    QUOTIENT("hit_ratio_tokens", hit_tokens, input_tokens);
    object_text(&object, "per_request_hits_sha256", result->per_request_hits_sha256);
    object_end(&object);
}

void cache_json_stream(FILE *out, const struct cache_config *config,
                       const struct cache_stream *result)
{
    struct object object = object_begin(out);

    object_capacity(&object, config->capacity_blocks);
    COUNT(lookups);
    COUNT(hits);
    COUNT(evicted_blocks);
    COUNT(resident_blocks_at_end);
    QUOTIENT("hit_ratio", hits, lookups);
    object_end(&object);
}
