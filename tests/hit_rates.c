#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cache_report.h"
#include "tests/hit_rates.h"

json_t *hit_rates_load(const char *name)
{
    char path[256];
    json_error_t error;
    json_t *golden;

    (void)snprintf(path, sizeof path, "tests/golden/hit-rates/%s.json", name);
    golden = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (golden == NULL)
        fail_msg("%s:%d: %s", path, error.line, error.text);
    return golden;
}

/* The hand-made file lists every request's hits; their text has the digest that larger files give. */
static void same_hits(const json_t *digest, const json_t *hits, const char *what)
{
    struct hit_digest expected;
    char hex[HIT_DIGEST_HEX_BYTES];
    size_t i;
    json_t *hit;

    hit_digest_begin(&expected);
    json_array_foreach(hits, i, hit)
        hit_digest_add(&expected, json_integer_value(hit));
    hit_digest_hex(&expected, hex);
    if (json_string_value(digest) == NULL || strcmp(json_string_value(digest), hex) != 0)
        fail_msg("%s: per-request hits differ", what);
}

static void same_value(const json_t *found, const json_t *expected, const char *what, const char *key)
{
    if (found == NULL)
        fail_msg("%s: %s is missing", what, key);
    if (json_is_real(expected) || json_is_real(found)) {
        /* A ratio of 0 or 1 may be written without a point. */
        double a = json_number_value(found), b = json_number_value(expected);

        if (!json_is_number(found) || !json_is_number(expected) || a < b || a > b)
            fail_msg("%s: %s is %.17g, expected %.17g", what, key, a, b);
    } else if (!json_equal(found, expected)) {
        fail_msg("%s: %s is %s, expected %s", what, key, json_dumps(found, JSON_ENCODE_ANY),
                 json_dumps(expected, JSON_ENCODE_ANY));
    }
}

void hit_rates_same(const json_t *found, const json_t *expected, const char *what)
{
    const char *key;
    json_t *value;

    check_u64_eq(json_object_size(found), json_object_size(expected));
    json_object_foreach((json_t *)(uintptr_t)expected, key, value) {
        if (strcmp(key, "per_request_hits") == 0)
            same_hits(json_object_get(found, "per_request_hits_sha256"), value, what);
        else
            same_value(json_object_get(found, key), value, what, key);
    }
}

/* What a writer of the report prints, parsed again. */
struct printed {
    char *text;
    size_t bytes;
    FILE *out;
};

static void print_begin(struct printed *printed)
{
    printed->out = open_memstream(&printed->text, &printed->bytes);
    assert_non_null(printed->out);
}

static void print_end_same(struct printed *printed, const json_t *expected, const char *what)
{
    json_error_t error;
    json_t *found;

    assert_int_equal(fclose(printed->out), 0);
    found = json_loads(printed->text, JSON_REJECT_DUPLICATES, &error);
    if (found == NULL)
        fail_msg("%s: %s in %s", what, error.text, printed->text);
    hit_rates_same(found, expected, what);
    json_decref(found);
    free(printed->text);
}

static struct cache_config config_of(const json_t *row)
{
    const char *release = json_string_value(json_object_get(row, "release_order"));
    const char *blocks = json_string_value(json_object_get(row, "cacheable_blocks"));

    return (struct cache_config){
        .evict = kv_eviction_find("lru"),
        .capacity_blocks = (uint64_t)json_integer_value(json_object_get(row, "capacity_blocks")),
        .release = release != NULL && strcmp(release, "root_first") == 0 ? CACHE_ROOT_FIRST
                                                                       : CACHE_LEAF_FIRST,
        .blocks = blocks != NULL && strcmp(blocks, "full") == 0 ? CACHE_FULL_BLOCKS : CACHE_ALL_BLOCKS,
    };
}

static void check_prefix(const struct cache_trace *trace, const json_t *row)
{
    struct cache_config config = config_of(row);
    struct cache_prefix result;
    struct printed printed;
    struct err err = {0};
    char what[100];

    (void)snprintf(what, sizeof what, "prefix_lru capacity %llu, %s, %s",
                   (unsigned long long)config.capacity_blocks,
                   config.release == CACHE_LEAF_FIRST ? "leaf_first" : "root_first",
                   config.blocks == CACHE_ALL_BLOCKS ? "all" : "full");
    assert_int_equal(cache_run_prefix(trace, &config, &result, NULL, &err), 0);
    print_begin(&printed);
    assert_int_equal(cache_json_prefix(printed.out, &config, &result, false, &err), 0);
    print_end_same(&printed, row, what);
}

static void check_stream(const struct cache_trace *trace, const json_t *row)
{
    struct cache_config config = config_of(row);
    struct cache_stream result;
    struct printed printed;
    struct err err = {0};
    char what[100];

    (void)snprintf(what, sizeof what, "block_stream_lru capacity %llu",
                   (unsigned long long)config.capacity_blocks);
    assert_int_equal(cache_run_stream(trace, &config, &result, &err), 0);
    print_begin(&printed);
    assert_int_equal(cache_json_stream(printed.out, &config, &result, &err), 0);
    print_end_same(&printed, row, what);
}

size_t hit_rates_check(const json_t *golden, const struct cache_trace *trace)
{
    struct cache_infinite infinite;
    struct printed printed;
    struct err err = {0};
    size_t i, compared = 1;
    json_t *row;

    cache_run_infinite(trace, &infinite, NULL);
    print_begin(&printed);
    assert_int_equal(cache_json_infinite(printed.out, &infinite, &err), 0);
    print_end_same(&printed, json_object_get(golden, "infinite"), "infinite");
    json_array_foreach(json_object_get(golden, "prefix_lru"), i, row) {
        check_prefix(trace, row);
        compared++;
    }
    json_array_foreach(json_object_get(golden, "block_stream_lru"), i, row) {
        check_stream(trace, row);
        compared++;
    }
    return compared;
}
