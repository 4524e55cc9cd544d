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
        struct cache_config config = {.evict = kv_eviction_find("lru"), .capacity_blocks = cases[i].capacity};
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
        struct cache_config config = {.evict = kv_eviction_find("lru"), .capacity_blocks = draw(40) + 1,
                                      .release = draw(2) ? CACHE_LEAF_FIRST : CACHE_ROOT_FIRST,
                                      .blocks = draw(2) ? CACHE_ALL_BLOCKS : CACHE_FULL_BLOCKS};
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

/* --- a host tier ---------------------------------------------------------------------------------- */

struct two_levels {
    struct list device, host; /* least recently used first */
    struct cache_prefix found;
    int64_t hits[REQUESTS];
};

/* To the newest end of the host's list; the oldest goes when there are too many. */
static void slow_offload(struct two_levels *x, uint64_t id, uint64_t host_capacity)
{
    if (list_has(&x->host, id))
        x->found.already_there_blocks++;
    else
        x->found.offloaded_blocks++;
    list_drop(&x->host, id);
    x->host.ids[x->host.count++] = id;
    if (x->host.count > host_capacity) {
        list_drop_at(&x->host, 0);
        x->found.host_evicted_blocks++;
    }
}

/* Both levels least recently used. A request's hits, then copies to the device (the last block's first), then room for
 * it, each block that goes copied to the host, then its own blocks. */
static void slow_two_levels(const struct request *requests, const struct cache_config *config, uint32_t block_tokens,
                            struct two_levels *x)
{
    memset(x, 0, sizeof *x);
    for (size_t r = 0; r < REQUESTS; r++) {
        const struct request *request = &requests[r];
        uint64_t full = request->prompt_tokens / block_tokens;
        uint64_t m = config->blocks == CACHE_FULL_BLOCKS && full < request->n ? full : request->n;
        uint64_t run = 0;

        x->hits[r] = -1;
        if (m > config->capacity_blocks)
            continue;
        while (run < m && (list_has(&x->device, request->ids[run]) || list_has(&x->host, request->ids[run])))
            run++;
        x->hits[r] = (int64_t)run;
        for (uint64_t i = run; i-- > 0;)
            if (!list_has(&x->device, request->ids[i])) {
                x->found.host_hit_blocks++;
                x->found.fetched_blocks++;
                list_drop(&x->host, request->ids[i]);
                x->host.ids[x->host.count++] = request->ids[i];
            }
        for (uint64_t i = 0; i < m; i++) {
            x->found.inserted_blocks += !list_has(&x->device, request->ids[i]);
            list_drop(&x->device, request->ids[i]);
        }
        while (x->device.count + m > config->capacity_blocks) {
            slow_offload(x, x->device.ids[0], config->host_capacity_blocks);
            list_drop_at(&x->device, 0);
            x->found.evicted_blocks++;
        }
        for (uint64_t i = 0; i < m; i++)
            x->device.ids[x->device.count++] = request->ids[config->release == CACHE_LEAF_FIRST ? m - 1 - i : i];
    }
}

static void compare_two_levels(const struct cache_trace *trace, const struct request *requests,
                               const struct cache_config *config)
{
    static struct two_levels expected;
    struct cache_prefix result;
    int64_t hits[REQUESTS];
    struct err err = {0};

    must(cache_run_prefix(trace, config, &result, hits, &err), &err);
    slow_two_levels(requests, config, trace->block_tokens, &expected);
    assert_memory_equal(hits, expected.hits, sizeof hits);
    check_u64_eq(result.inserted_blocks, expected.found.inserted_blocks);
    check_u64_eq(result.evicted_blocks, expected.found.evicted_blocks);
    check_u64_eq(result.resident_blocks_at_end, expected.device.count);
    check_u64_eq(result.host_hit_blocks, expected.found.host_hit_blocks);
    check_u64_eq(result.fetched_blocks, expected.found.fetched_blocks);
    check_u64_eq(result.offloaded_blocks, expected.found.offloaded_blocks);
    check_u64_eq(result.already_there_blocks, expected.found.already_there_blocks);
    check_u64_eq(result.host_evicted_blocks, expected.found.host_evicted_blocks);
    check_u64_eq(result.host_resident_blocks_at_end, expected.host.count);
    check_u64_eq(result.offloaded_blocks + result.already_there_blocks, result.evicted_blocks);
}

static void random_trace(struct cache_trace *trace, struct request *requests, bool chains)
{
    struct err err = {0};
    uint32_t block_tokens = (uint32_t)draw(5) + 1;

    must(cache_trace_init(trace, block_tokens, &err), &err);
    for (size_t r = 0; r < REQUESTS; r++) {
        draw_request(&requests[r], chains, block_tokens);
        must(cache_trace_add(trace, requests[r].prompt_tokens, requests[r].ids, requests[r].n, &err), &err);
    }
}

static void host__random_traces__as_the_slow_reference(void **fixture)
{
    struct request requests[REQUESTS];

    (void)fixture;
    for (int round = 0; round < 1500; round++) {
        struct cache_trace trace;
        struct cache_config config = {.evict = kv_eviction_find("lru"), .capacity_blocks = draw(30) + 1,
                                      .release = draw(2) ? CACHE_LEAF_FIRST : CACHE_ROOT_FIRST,
                                      .blocks = draw(2) ? CACHE_ALL_BLOCKS : CACHE_FULL_BLOCKS,
                                      .host_capacity_blocks = draw(40) + 1, .host_evict = kv_eviction_find("lru")};

        random_trace(&trace, requests, draw(2));
        compare_two_levels(&trace, requests, &config);
        cache_trace_release(&trace);
    }
}

/* Nothing is ever lost: the same hits as in a cache without end, under every pair of orders. */
static void host__infinite__hits_of_the_infinite_cache(void **fixture)
{
    struct request requests[REQUESTS];

    (void)fixture;
    for (int round = 0; round < 100; round++) {
        struct cache_trace trace;
        struct cache_infinite infinite;
        int64_t expected[REQUESTS], hits[REQUESTS];
        struct err err = {0};

        random_trace(&trace, requests, draw(2));
        cache_run_infinite(&trace, &infinite, expected);
        for (size_t i = 0; i < kv_eviction_count(); i++) {
            struct cache_config config = {.evict = kv_eviction_at(i), .capacity_blocks = IDS_MAX + draw(10),
                                          .host_capacity_blocks = CACHE_INFINITE,
                                          .host_evict = kv_eviction_at(draw(kv_eviction_count()))};
            struct cache_prefix result;

            if ((config.evict->flags & KV_EVICTION_CLAIRVOYANT) != 0 || !host_tier_allows(config.host_evict))
                continue;
            must(cache_run_prefix(&trace, &config, &result, hits, &err), &err);
            assert_memory_equal(hits, expected, sizeof hits);
            check_u64_eq(result.host_evicted_blocks, 0);
        }
        cache_trace_release(&trace);
    }
}

/* The device holds 2 blocks, the host 4. A = 1 2, B = 3, C = 1 2 3, too large, D = 1 2 again.
 * B needs a place: 2, the tail, goes to the host. D: 1 is on the device, 2 on the host, fetched; 3 makes room for it. An
 * id twice is one copy: E = 3 3 hits two blocks of the host with one fetch. */
static void host__hand_made__hits_and_copies(void **fixture)
{
    static const uint64_t ids[][3] = {{1, 2}, {3}, {1, 2, 3}, {1, 2}, {3, 3}};
    static const size_t counts[] = {2, 1, 3, 2, 2};
    static const int64_t expected[] = {0, 0, -1, 2, 2};
    struct cache_config config = {.evict = kv_eviction_find("lru"), .capacity_blocks = 2,
                                  .host_capacity_blocks = 4, .host_evict = kv_eviction_find("lru")};
    struct cache_trace trace;
    struct cache_prefix result;
    int64_t hits[5];
    struct err err = {0};

    (void)fixture;
    must(cache_trace_init(&trace, 4, &err), &err);
    for (size_t r = 0; r < 5; r++)
        must(cache_trace_add(&trace, counts[r] * 4, ids[r], counts[r], &err), &err);
    must(cache_run_prefix(&trace, &config, &result, hits, &err), &err);
    assert_memory_equal(hits, expected, sizeof hits);
    check_u64_eq(result.hit_blocks, 4);
    check_u64_eq(result.host_hit_blocks, 3);
    check_u64_eq(result.fetched_blocks, 2);
    check_u64_eq(result.evicted_blocks, 4); /* 2; 3; and for E's two blocks 2 and 1 */
    check_u64_eq(result.offloaded_blocks, 3);
    check_u64_eq(result.already_there_blocks, 1);
    cache_trace_release(&trace);
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
        struct cache_config config = {.evict = kv_eviction_find("lru"), .capacity_blocks = 3, .release = releases[i]};
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
        cmocka_unit_test(host__random_traces__as_the_slow_reference),
        cmocka_unit_test(host__infinite__hits_of_the_infinite_cache),
        cmocka_unit_test(host__hand_made__hits_and_copies),
        cmocka_unit_test(prefix__id_twice_in_a_request__takes_one_place),
        cmocka_unit_test(index__many_ids__dense_numbers_in_order_of_appearance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
