/* The order wa on generated conversations whose categories, their chances of another turn and times to it, are known: the
 * fit finds them, and the steps of the paper's ablation come in its order. */
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

#include "allocator/wa_fit.h"
#include "sim/cache_sim.h"
#include "workloads/wl_source.h"

static void must(int status, const struct err *err)
{
    if (status != 0)
        fail_msg("%s", err->text);
}

static struct cache_trace generated(const char *spec, uint64_t seed, uint64_t *last_arrival_ns)
{
    struct wl_options options = {.arrival_speedup_ratio = 1};
    struct wl_source *source;
    struct cache_trace trace;
    struct err err = {0};

    must(wl_open(spec, &options, seed, &source, &err), &err);
    must(cache_trace_read(&trace, source, 16, &err), &err);
    *last_arrival_ns = wl_summary(source)->last_arrival_ns;
    wl_close(source);
    return trace;
}

/* --- the fit ------------------------------------------------------------------------------------------------ */

/* The calls of a cache without a limit: object n is content n. Returns how many uses there were. */
static uint64_t use_all(struct kv_eviction *order, const struct cache_trace *trace)
{
    bool *known = calloc(trace->unique_blocks + 1u, sizeof *known);
    uint64_t begin = 0, uses = 0;

    assert_non_null(known);
    for (uint64_t r = 0; r < trace->request_count; r++) {
        const uint32_t *blocks = trace->blocks + begin;
        uint64_t full = trace->requests[r].prompt_tokens / 16;

        order->ops->begin(order, trace->requests[r].kind);
        for (uint64_t i = 0; i < full; i++) {
            struct kv_content content = {blocks[i], KV_OBJECT_NONE, (uint32_t)i};

            if (known[blocks[i]]) {
                order->ops->take(order, blocks[i]);
            } else {
                order->ops->miss(order, blocks[i]);
                order->ops->insert(order, blocks[i], &content);
            }
            known[blocks[i]] = true;
        }
        for (uint64_t i = full; i-- > 0;)
            order->ops->give(order, blocks[i]);
        uses += full;
        begin = trace->requests[r].end_block;
    }
    free(known);
    return uses;
}

static void near(const char *what, uint64_t category, double found, double expected, double tolerance)
{
    if (!(fabs(found / expected - 1) <= tolerance))
        fail_msg("category %llu: %s %g, expected %g", (unsigned long long)category, what, found, expected);
}

/* Turns 1, 2 and later are followed by another with chances 0.5, 0.8, 0.6, after 20, 100 and 40 s on average. A full block of a
 * prompt is used again when there is another turn. The times are seconds, the fit counts uses: as many a second as the trace
 * has in all over its length. Of 40,000 requests the rarest category has about 8,000, correlated by conversation, and
 * turns that would come after the end are missing (100 s of 4,000): 7 % are allowed. */
static void wa__known_categories__fit_finds_chances_and_rates(void **fixture)
{
    static const double chances[] = {0.5, 0.8, 0.6}, means_s[] = {20, 100, 40};
    uint64_t last_ns;
    struct cache_trace trace = generated("gen:requests=40000,arrivals=poisson:4,content=tokens,prompt-tokens=fixed:192,"
                                         "turn-tokens=fixed:96,output-tokens=fixed:16,continue=0.5/0.8/0.6,think=exponential:20,"
                                         "think-scale=1/5/2",
                                         1, &last_ns);
    struct kv_eviction *order = kv_eviction_create(kv_eviction_find("wa"), trace.unique_blocks, NULL);
    double uses_per_s;

    (void)fixture;
    assert_non_null(order);
    uses_per_s = (double)use_all(order, &trace) / ((double)last_ns / 1e9);
    for (uint32_t category = 0; category < 6; category++) {
        uint32_t known = category < 2 ? category : 2;
        struct wa_fit fit = wa_fit(order, category);

        near("chance", category, fit.share, chances[known], 0.07);
        near("mean time to reuse", category, 1 / fit.rate / uses_per_s, means_s[known], category < 3 ? 0.07 : 0.15);
    }
    order->ops->destroy(order);
    cache_trace_release(&trace);
}

/* --- the ablation -------------------------------------------------------------------------------------------- */

static uint64_t hits(const struct cache_trace *trace, const char *order, uint64_t rank, uint64_t capacity)
{
    struct kv_value values[KV_OPTIONS_MAX] = {{rank}};
    struct cache_config config = {.evict = kv_eviction_find(order), .capacity_blocks = capacity, .evict_values = values};
    struct cache_prefix result;
    struct err err = {0};

    must(cache_run_prefix(trace, &config, &result, NULL, &err), &err);
    return result.hit_blocks;
}

/* One first turn of five goes on: the distribution knows. Second turns mostly go on, but late, when small caches have long
 * lost them: the life knows. */
static void wa__known_categories__steps_of_the_ablation_in_order(void **fixture)
{
    static const uint64_t capacities[] = {4000, 8000};
    enum { FULL, DISTRIBUTION, LRU };

    (void)fixture;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        uint64_t last_ns;
        struct cache_trace trace = generated("gen:requests=8000,arrivals=poisson:4,content=tokens,prompt-tokens=fixed:200,"
                                             "turn-tokens=fixed:100,output-tokens=fixed:50,continue=0.2/0.9/0.7/0.95,"
                                             "think=exponential:20,think-scale=1/20/1",
                                             seed, &last_ns);

        for (size_t c = 0; c < 2; c++) {
            uint64_t lru = hits(&trace, "wa", LRU, capacities[c]), full = hits(&trace, "wa", FULL, capacities[c]);
            uint64_t distribution = hits(&trace, "wa", DISTRIBUTION, capacities[c]);

            check_u64_eq(lru, hits(&trace, "lru", 0, capacities[c]));
            if (!(lru < distribution && distribution < full))
                fail_msg("seed %llu, %llu blocks: lru %llu, distribution %llu, full %llu", (unsigned long long)seed,
                         (unsigned long long)capacities[c], (unsigned long long)lru, (unsigned long long)distribution,
                         (unsigned long long)full);
        }
        cache_trace_release(&trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wa__known_categories__fit_finds_chances_and_rates),
        cmocka_unit_test(wa__known_categories__steps_of_the_ablation_in_order),
    };
    return cmocka_run_group_tests_name("wa with known categories", tests, NULL, NULL);
}
