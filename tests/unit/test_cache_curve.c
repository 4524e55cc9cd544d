/* Miss-ratio curves: against the cache itself at every size, and a distance counted by hand. */
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

#include "sim/cache_curve.h"
#include "sim/stack_distance.h"
#include "workloads/wl_source.h"

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

/* a b c b a: b was used before c alone, so 2; a before c and b, so 3. */
static void distance__a_b_c_b_a__2_then_3(void **fixture)
{
    struct stack_distance stack;

    (void)fixture;
    assert_true(stack_distance_init(&stack, 3));
    for (uint32_t object = 0; object < 3; object++) {
        check_u64_eq(stack_distance_of(&stack, object), UINT32_MAX);
        stack_distance_use(&stack, object);
    }
    check_u64_eq(stack_distance_of(&stack, 1), 2);
    stack_distance_use(&stack, 1);
    check_u64_eq(stack_distance_of(&stack, 0), 3);
    stack_distance_release(&stack);
}

/* Against a plain list, over many closings of the gaps. */
static void distance__random_uses__as_a_list(void **fixture)
{
    struct stack_distance stack;
    uint32_t list[40], count = 0;

    (void)fixture;
    assert_true(stack_distance_init(&stack, 40));
    for (int i = 0; i < 20000; i++) {
        uint32_t object = (uint32_t)draw(draw(2) ? 40 : 8), at = 0;

        while (at < count && list[at] != object)
            at++;
        check_u64_eq(stack_distance_of(&stack, object), at < count ? count - at : UINT32_MAX);
        stack_distance_use(&stack, object);
        for (count -= at < count; at < count; at++)
            list[at] = list[at + 1];
        list[count++] = object;
    }
    stack_distance_release(&stack);
}

static struct cache_trace random_trace(bool chains)
{
    struct cache_trace trace;
    struct err err = {0};
    uint64_t branches = 1 + draw(4);
    uint32_t block_tokens = 1 + (uint32_t)draw(4);

    must(cache_trace_init(&trace, block_tokens, &err), &err);
    for (int r = 0; r < 120; r++) {
        uint64_t ids[12], n = draw(13), id = 0, tokens = n * block_tokens;

        for (uint64_t i = 0; i < n; i++) {
            id = id * 5 + 1 + draw(branches);
            ids[i] = chains ? id : i * 4 + draw(4);
        }
        tokens += draw(block_tokens);
        if (n > 0 && draw(2))
            tokens -= block_tokens;
        must(cache_trace_add(&trace, tokens > 0 ? tokens : 1, ids, n, &err), &err);
    }
    return trace;
}

static void same_as_simulated(const struct cache_trace *trace, const struct curve_config *config,
                              const uint64_t *capacities, size_t count)
{
    struct curve_point *points = calloc(count, sizeof *points);
    struct err err = {0};

    assert_non_null(points);
    must(cache_curve(trace, config, capacities, count, points, &err), &err);
    for (size_t c = 0; c < count; c++) {
        struct cache_config one = {.evict = config->evict, .capacity_blocks = capacities[c],
                                   .release = config->release, .blocks = config->blocks};
        struct cache_prefix prefix;
        struct cache_stream stream;

        check_u64_eq(points[c].capacity_blocks, capacities[c]);
        if (config->stream) {
            must(cache_run_stream(trace, &one, &stream, &err), &err);
            check_u64_eq(points[c].hit_blocks, stream.hits);
            check_u64_eq(points[c].lookup_blocks, stream.lookups);
            assert_int_equal(points[c].method, CURVE_EXACT);
            continue;
        }
        must(cache_run_prefix(trace, &one, &prefix, NULL, &err), &err);
        check_u64_eq(points[c].hit_blocks, prefix.hit_blocks);
        check_u64_eq(points[c].lookup_blocks, prefix.lookup_blocks);
        check_f64_near(points[c].token_hit_ratio, (double)prefix.hit_tokens / (double)prefix.input_tokens, 0);
        assert_int_equal(points[c].apart, prefix.rejected_requests > 0);
        assert_int_equal(points[c].method, prefix.rejected_requests > 0 ? CURVE_SIMULATED : CURVE_EXACT);
    }
    free(points);
}

static void curve__lru_random_traces__as_the_cache_at_every_size(void **fixture)
{
    uint64_t capacities[80];

    (void)fixture;
    for (uint64_t c = 0; c < 80; c++)
        capacities[c] = c + 1;
    for (int round = 0; round < 60; round++) {
        struct cache_trace trace = random_trace(round % 2);

        for (int way = 0; way < 5; way++) {
            struct curve_config config = {kv_eviction_find("lru"), way & 1 ? CACHE_ROOT_FIRST : CACHE_LEAF_FIRST,
                                          way & 2 ? CACHE_FULL_BLOCKS : CACHE_ALL_BLOCKS, way == 4, -1, NULL};

            same_as_simulated(&trace, &config, capacities, 80);
        }
        cache_trace_release(&trace);
    }
}

/* A request that names a block twice takes more room than it has blocks: no distance says so. */
static void curve__id_twice_in_a_request__simulated(void **fixture)
{
    static const uint64_t ids[] = {1, 1, 2}, capacities[] = {3, 4};
    struct curve_config config = {kv_eviction_find("lru"), CACHE_LEAF_FIRST, CACHE_ALL_BLOCKS, false, -1, NULL};
    struct curve_point points[2];
    struct cache_trace trace;
    struct err err = {0};

    (void)fixture;
    must(cache_trace_init(&trace, 1, &err), &err);
    must(cache_trace_add(&trace, 3, ids, 3, &err), &err);
    must(cache_trace_add(&trace, 3, ids, 3, &err), &err);
    must(cache_curve(&trace, &config, capacities, 2, points, &err), &err);
    assert_int_equal(points[0].method, CURVE_SIMULATED);
    check_u64_eq(points[0].hit_blocks, 3);
    cache_trace_release(&trace);
}

/* 200,000 references by a skewed law: a sample of a twentieth is within four of its own standard errors, and these
 * are small. */
static void near_the_truth(const char *order, enum curve_method method)
{
    static const uint64_t capacities[] = {2000, 5000, 10000};
    struct curve_config config = {kv_eviction_find(order), CACHE_LEAF_FIRST, CACHE_ALL_BLOCKS, true, 1, NULL};
    struct curve_point truth[3], sample[3];
    struct cache_trace trace;
    struct err err = {0};

    must(cache_trace_init(&trace, 1, &err), &err);
    for (int i = 0; i < 200000; i++) {
        double u = (double)draw(1 << 30) / (1 << 30);
        uint64_t id = (uint64_t)(u * u * u * 40000);

        must(cache_trace_add(&trace, 1, &id, 1, &err), &err);
    }
    must(cache_curve(&trace, &config, capacities, 3, truth, &err), &err);
    config.sample_rate = 0.05;
    must(cache_curve(&trace, &config, capacities, 3, sample, &err), &err);
    for (size_t c = 0; c < 3; c++) {
        assert_int_equal(sample[c].method, method);
        assert_true(sample[c].error > 0 && sample[c].error < 0.05);
        check_f64_near(sample[c].hit_ratio, truth[c].hit_ratio, 4 * sample[c].error);
    }
    cache_trace_release(&trace);
}

static void curve__lru_sampled__within_its_error(void **fixture)
{
    (void)fixture;
    near_the_truth("lru", CURVE_SHARDS);
}

static void curve__sieve_sampled__within_its_error(void **fixture)
{
    (void)fixture;
    near_the_truth("sieve", CURVE_MINI);
}

/* Hits 0.9 of all at a tenth of the last capacity, then nearly nothing: the corner is the knee. A larger value
 * apart from the curve does not count. */
static void knee__corner__found(void **fixture)
{
    static const struct curve_point points[] = {
        {.capacity_blocks = 10, .hit_ratio = 0.95, .apart = true}, {.capacity_blocks = 50, .hit_ratio = 0.4},
        {.capacity_blocks = 100, .hit_ratio = 0.9}, {.capacity_blocks = 500, .hit_ratio = 0.92},
        {.capacity_blocks = 1000, .hit_ratio = 0.93},
    };

    (void)fixture;
    check_u64_eq(curve_knee(points, 5), 2);
}

/* false: it is not at hand. */
static bool read_mooncake(struct cache_trace *trace)
{
    const char *path = check_traces("mooncake/conversation_trace.jsonl.zst");
    struct wl_options options = {.arrival_speedup_ratio = 1};
    struct wl_source *source;
    struct err err = {0};

    if (path == NULL)
        return false;
    must(wl_open(path, &options, 1, &source, &err), &err);
    must(cache_trace_read(trace, source, 0, &err), &err);
    wl_close(source);
    return true;
}

static void curve__mooncake__as_the_cache_at_golden_sizes(void **fixture)
{
    static const uint64_t capacities[] = {250, 500, 1000, 2000, 5000, 10000, 20000, 30000, 50000, 100000, 200000};
    struct curve_config config = {kv_eviction_find("lru"), CACHE_LEAF_FIRST, CACHE_ALL_BLOCKS, false, -1, NULL};
    struct cache_trace trace;

    (void)fixture;
    if (!read_mooncake(&trace))
        skip();
    same_as_simulated(&trace, &config, capacities, sizeof capacities / sizeof capacities[0]);
    config.release = CACHE_ROOT_FIRST;
    same_as_simulated(&trace, &config, capacities, sizeof capacities / sizeof capacities[0]);
    cache_trace_release(&trace);
}

/* Nearly all of these requests begin with one block, which a sample of a tenth often lacks: the error must know. */
static void curve__miniatures_of_mooncake__within_two_errors(void **fixture)
{
    static const uint64_t capacities[] = {1000, 4000, 20000};
    static const char *const orders[] = {"lfu", "arc", "sieve", "slru", "s3fifo", "2q", "opt"};
    struct cache_trace trace;
    struct err err = {0};

    (void)fixture;
    if (!read_mooncake(&trace))
        skip();
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        struct curve_config config = {kv_eviction_find(orders[i]), CACHE_LEAF_FIRST, CACHE_ALL_BLOCKS, false, 1, NULL};
        struct curve_point truth[3], mini[3];

        must(cache_curve(&trace, &config, capacities, 3, truth, &err), &err);
        config.sample_rate = 0.1;
        must(cache_curve(&trace, &config, capacities, 3, mini, &err), &err);
        for (size_t c = 0; c < 3; c++) {
            assert_int_equal(mini[c].method, CURVE_MINI);
            assert_true(mini[c].error < 0.02);
            check_f64_near(mini[c].hit_ratio, truth[c].hit_ratio, 2 * mini[c].error);
        }
    }
    cache_trace_release(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance__a_b_c_b_a__2_then_3),
        cmocka_unit_test(distance__random_uses__as_a_list),
        cmocka_unit_test(curve__lru_random_traces__as_the_cache_at_every_size),
        cmocka_unit_test(curve__id_twice_in_a_request__simulated),
        cmocka_unit_test(curve__lru_sampled__within_its_error),
        cmocka_unit_test(curve__sieve_sampled__within_its_error),
        cmocka_unit_test(knee__corner__found),
        cmocka_unit_test(curve__mooncake__as_the_cache_at_golden_sizes),
        cmocka_unit_test(curve__miniatures_of_mooncake__within_two_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
