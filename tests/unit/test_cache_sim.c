/* Content studies: the hand-made walk-through, and random traces against a slow reference. */
#include "tests/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cache_sim.h"
#include "tests/hit_rates.h"

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void must(int status, const struct err *err)
{
    if (status != 0)
        fail_msg("%s", err->text);
}

/* --- the walk-through --------------------------------------------------------------------------- */

static void add_row(struct cache_trace *trace, const json_t *row)
{
    const json_t *hash_ids = json_object_get(row, "hash_ids");
    uint64_t ids[16];
    size_t i;
    json_t *id;
    struct err err = {0};

    assert_true(json_array_size(hash_ids) <= 16);
    json_array_foreach(hash_ids, i, id)
        ids[i] = (uint64_t)json_integer_value(id);
    must(cache_trace_add(trace, (uint64_t)json_integer_value(json_object_get(row, "input_length")), ids,
                         json_array_size(hash_ids), &err), &err);
}

static void walkthrough__every_configuration__every_figure(void **fixture)
{
    json_t *golden = hit_rates_load("tiny-walkthrough");
    struct cache_trace trace;
    struct err err = {0};
    size_t i;
    json_t *row;

    (void)fixture;
    must(cache_trace_init(&trace, (uint32_t)json_integer_value(json_object_get(golden, "block_size_tokens")),
                          &err), &err);
    json_array_foreach(json_object_get(golden, "rows"), i, row)
        add_row(&trace, row);
    check_u64_eq(hit_rates_check(golden, &trace), 1 + 12 + 3);
    cache_trace_release(&trace);
    json_decref(golden);
}

/* Capacity 4, blocks of 4: request A = 1 2 3, B = 1 5, C = 1 2 3.
 * Leaf first: after A the order, oldest first, is 3 2 1. B hits 1, takes it out, needs one place: 2 in the
 * order + 2 of B = 4, nothing goes: 3 2 5 1. C: hits 1, 2, 3; 5 stays: 1 + 3 = 4. Hits 0, 1, 3.
 * Capacity 3: B leaves 3 2 in the order, 2 + 2 > 3, so 3 goes. C hits 1 and 2, leaves 5: 1 + 3 > 3, 5 goes. */
static void prefix__leaf_first__tail_goes_first(void **fixture)
{
    static const uint64_t a[] = {1, 2, 3}, b[] = {1, 5};
    static const struct {
        uint64_t capacity;
        int64_t hits[3];
        uint64_t evicted;
    } cases[] = {{4, {0, 1, 3}, 0}, {3, {0, 1, 2}, 2}, {2, {-1, 0, -1}, 0}};
    struct cache_trace trace;
    struct err err = {0};

    (void)fixture;
    must(cache_trace_init(&trace, 4, &err), &err);
    must(cache_trace_add(&trace, 12, a, 3, &err), &err);
    must(cache_trace_add(&trace, 8, b, 2, &err), &err);
    must(cache_trace_add(&trace, 12, a, 3, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cache_config config = {kv_eviction_find("lru"), cases[i].capacity, CACHE_LEAF_FIRST,
                                      CACHE_ALL_BLOCKS, NULL};
        struct cache_prefix result;
        int64_t hits[3];

        must(cache_run_prefix(&trace, &config, &result, hits, &err), &err);
        for (size_t r = 0; r < 3; r++)
            check_i64_eq(hits[r], cases[i].hits[r]);
        check_u64_eq(result.evicted_blocks, cases[i].evicted);
    }
    cache_trace_release(&trace);
}

/* --- against a slow reference --------------------------------------------------------------------- */

#define IDS_MAX 12
#define REQUESTS 60

struct request {
    uint64_t prompt_tokens;
    uint64_t ids[IDS_MAX];
    uint64_t n;
};

/* A cache as a plain list of ids, least recently used first. */
struct list {
    uint64_t ids[1024];
    size_t count;
};

static bool list_has(const struct list *list, uint64_t id)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->ids[i] == id)
            return true;
    return false;
}

static void list_drop_at(struct list *list, size_t at)
{
    memmove(&list->ids[at], &list->ids[at + 1], (list->count - at - 1) * sizeof list->ids[0]);
    list->count--;
}

static void list_drop(struct list *list, uint64_t id)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->ids[i] == id) {
            list_drop_at(list, i);
            return;
        }
}

struct expected {
    uint64_t inserted, evicted;
    int64_t hits[REQUESTS];
    size_t resident;
};

/* The published rule, line by line. */
static void slow_prefix(const struct request *requests, uint32_t block_tokens, uint64_t capacity,
                        enum cache_release release, enum cache_blocks blocks, struct expected *expected)
{
    static struct list list;

    list.count = 0;
    memset(expected, 0, sizeof *expected);
    for (size_t r = 0; r < REQUESTS; r++) {
        const struct request *request = &requests[r];
        uint64_t full = request->prompt_tokens / block_tokens;
        uint64_t m = blocks == CACHE_FULL_BLOCKS && full < request->n ? full : request->n;
        uint64_t run = 0;

        if (m > capacity) {
            expected->hits[r] = -1;
            continue;
        }
        while (run < m && list_has(&list, request->ids[run]))
            run++;
        expected->hits[r] = (int64_t)run;
        for (uint64_t i = 0; i < m; i++) {
            expected->inserted += !list_has(&list, request->ids[i]);
            list_drop(&list, request->ids[i]);
        }
        while (list.count + m > capacity) {
            list_drop_at(&list, 0);
            expected->evicted++;
        }
        for (uint64_t i = 0; i < m; i++)
            list.ids[list.count++] = request->ids[release == CACHE_LEAF_FIRST ? m - 1 - i : i];
    }
    expected->resident = list.count;
}

static void slow_stream(const struct request *requests, uint64_t capacity, struct cache_stream *expected)
{
    static struct list list;

    list.count = 0;
    *expected = (struct cache_stream){0};
    for (size_t r = 0; r < REQUESTS; r++)
        for (uint64_t i = 0; i < requests[r].n; i++) {
            uint64_t id = requests[r].ids[i];

            expected->lookups++;
            expected->hits += list_has(&list, id);
            list_drop(&list, id);
            list.ids[list.count++] = id;
            if (list.count > capacity) {
                list_drop_at(&list, 0);
                expected->evicted_blocks++;
            }
        }
    expected->resident_blocks_at_end = list.count;
}

/* Ids without repetition inside a request. `chains`: prefix ids, as traces have them; else ids of
 * anywhere, so that a later block may be cached while an earlier one is not. */
static void draw_request(struct request *request, bool chains, uint32_t block_tokens)
{
    uint64_t id = 0;

    request->n = draw(IDS_MAX + 1);
    for (uint64_t i = 0; i < request->n; i++) {
        if (chains) {
            id = id * 3 + 1 + draw(i < 3 ? 2 : 3);
            request->ids[i] = id * UINT64_C(0x9E3779B97F4A7C15); /* ids of any size */
        } else {
            request->ids[i] = i + 16 * draw(2);
        }
    }
    /* ceil or floor: the last id may stand for a partial block, or a partial block has none. */
    request->prompt_tokens = request->n * block_tokens + draw(block_tokens);
    if (request->n > 0 && draw(2))
        request->prompt_tokens -= block_tokens;
    if (request->prompt_tokens == 0)
        request->prompt_tokens = 1;
}

static void compare_prefix(const struct cache_trace *trace, const struct request *requests,
                           const struct cache_config *config)
{
    struct cache_prefix result;
    struct expected expected;
    int64_t hits[REQUESTS];
    struct err err = {0};

    must(cache_run_prefix(trace, config, &result, hits, &err), &err);
    slow_prefix(requests, trace->block_tokens, config->capacity_blocks, config->release, config->blocks,
                &expected);
    assert_memory_equal(hits, expected.hits, sizeof hits);
    check_u64_eq(result.inserted_blocks, expected.inserted);
    check_u64_eq(result.evicted_blocks, expected.evicted);
    check_u64_eq(result.resident_blocks_at_end, expected.resident);
}

static void compare_stream(const struct cache_trace *trace, const struct request *requests,
                           const struct cache_config *config)
{
    struct cache_stream result, expected;
    struct err err = {0};

    must(cache_run_stream(trace, config, &result, &err), &err);
    slow_stream(requests, config->capacity_blocks, &expected);
    check_u64_eq(result.lookups, expected.lookups);
    check_u64_eq(result.hits, expected.hits);
    check_u64_eq(result.evicted_blocks, expected.evicted_blocks);
    check_u64_eq(result.resident_blocks_at_end, expected.resident_blocks_at_end);
}

static void random_traces__every_rule__as_the_slow_reference(void **fixture)
{
    struct request requests[REQUESTS];

    (void)fixture;
    for (int round = 0; round < 1500; round++) {
        struct cache_trace trace;
        struct err err = {0};
        uint32_t block_tokens = (uint32_t)draw(5) + 1;
        struct cache_config config = {kv_eviction_find("lru"), draw(40) + 1,
                                      draw(2) ? CACHE_LEAF_FIRST : CACHE_ROOT_FIRST,
                                      draw(2) ? CACHE_ALL_BLOCKS : CACHE_FULL_BLOCKS, NULL};
        bool chains = draw(2);

        must(cache_trace_init(&trace, block_tokens, &err), &err);
        for (size_t r = 0; r < REQUESTS; r++) {
            draw_request(&requests[r], chains, block_tokens);
            must(cache_trace_add(&trace, requests[r].prompt_tokens, requests[r].ids, requests[r].n, &err),
                 &err);
        }
        compare_prefix(&trace, requests, &config);
        compare_stream(&trace, requests, &config);
        cache_trace_release(&trace);
    }
}

/* An id twice in a request takes one place. 1 1 2 in a cache of 3: the first request inserts 1 and 2,
 * the second hits all three of its blocks. */
static void prefix__id_twice_in_a_request__takes_one_place(void **fixture)
{
    static const uint64_t ids[] = {1, 1, 2};
    static const enum cache_release releases[] = {CACHE_LEAF_FIRST, CACHE_ROOT_FIRST};
    struct cache_trace trace;
    struct err err = {0};

    (void)fixture;
    must(cache_trace_init(&trace, 4, &err), &err);
    must(cache_trace_add(&trace, 12, ids, 3, &err), &err);
    must(cache_trace_add(&trace, 12, ids, 3, &err), &err);
    for (size_t i = 0; i < 2; i++) {
        struct cache_config config = {kv_eviction_find("lru"), 3, releases[i], CACHE_ALL_BLOCKS, NULL};
        struct cache_prefix result;
        int64_t hits[2];

        must(cache_run_prefix(&trace, &config, &result, hits, &err), &err);
        check_i64_eq(hits[0], 0);
        check_i64_eq(hits[1], 3);
        check_u64_eq(result.inserted_blocks, 2);
        check_u64_eq(result.resident_blocks_at_end, 2);
    }
    cache_trace_release(&trace);
}

/* --- index -------------------------------------------------------------------------------------- */

/* 300,000 ids that a table finds hard (multiples of 2^44, 0, the largest), each looked up twice. */
static void index__many_ids__dense_numbers_in_order_of_appearance(void **fixture)
{
    struct id_index index;
    const uint32_t count = 300000;

    (void)fixture;
    assert_true(id_index_init(&index));
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < count; i += 100) {
            uint64_t ids[100];
            uint32_t numbers[100];

            for (uint32_t k = 0; k < 100; k++)
                ids[k] = i + k == 7 ? UINT64_MAX : (uint64_t)(i + k) << 44 | (i + k) >> 18;
            assert_int_equal(id_index_number(&index, ids, 100, numbers), ID_INDEX_OK);
            for (uint32_t k = 0; k < 100; k++)
                check_u64_eq(numbers[k], i + k);
        }
    check_u64_eq(index.count, count);
    id_index_release(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walkthrough__every_configuration__every_figure),
        cmocka_unit_test(prefix__leaf_first__tail_goes_first),
        cmocka_unit_test(random_traces__every_rule__as_the_slow_reference),
        cmocka_unit_test(prefix__id_twice_in_a_request__takes_one_place),
        cmocka_unit_test(index__many_ids__dense_numbers_in_order_of_appearance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
