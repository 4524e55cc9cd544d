/* Runs with a host tier: a case by hand, what must hold for random ones, and the bounds that the tier has. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/content.h"
#include "sim/engine_core.h"
#include "tests/model/engine_random.h"

#define LRU kv_eviction_find("lru")

/* --- by hand -------------------------------------------------------------------------------- */

#define BLOCK_TOKENS 16
#define TOKEN_BYTES UINT64_C(131072)
#define BLOCK_BYTES (BLOCK_TOKENS * TOKEN_BYTES) /* 2 MiB */
#define SECOND UINT64_C(1000000000)

/* A pool of four blocks and the null block; steps of the fitted model. A, B and A's prompt again, C, 64 tokens each, one
 * output token, a second apart. B evicts A's four blocks, C evicts B's.
 * C finds nothing on the device; of A's four blocks on the host three, as one token is left to compute: 48 tokens.
 * To the device: 3 blocks. To the host: 4 in B's step, 4 in C's. */
static void hand_case(struct engine_case *c, struct wl_span spans[2], const struct host_link *link)
{
    struct err err = {0};
    engine_case_init(c, "prefix", NULL, 5 * BLOCK_BYTES);
    c->config.geometry.bytes_per_token = TOKEN_BYTES;
    c->config.geometry.block_tokens = BLOCK_TOKENS;
    assert_int_equal(step_time_linear_init(&c->config.step_time, "8b", "bf16-bf16", &err), 0);
    c->config.host = (struct host_config){.capacity_bytes = 8 * BLOCK_BYTES, .evict = LRU, .link = *link};
    for (uint64_t i = 0; i < 3; i++) {
        struct wl_request *r = engine_case_add(c, i * SECOND, 64, 1);
        spans[i % 2] = (struct wl_span){.space = 0, .first = i % 2 * 1000, .count = 64};
        r->has_content = true;
        r->prompt = &spans[i % 2];
        r->prompt_spans = 1;
    }
}

/* A prefill of `tokens` tokens behind `context` others. */
static uint64_t prefill_ns(const struct step_time *model, uint64_t tokens, uint64_t context)
{
    struct step_work work = {.prefill_tokens = tokens, .prefill_pairs = tokens * context + tokens * (tokens + 1) / 2,
                             .logit_seqs = 1};
    return step_time_ns(model, &work);
}

static uint64_t last_ttft_ns(struct engine_run *run, uint64_t first_two)
{
    return (uint64_t)(quantiles_mean(&run->stats->ttft_ns) * 3 + 0.5) - first_two;
}

static void by_hand__blocking__hits_bytes_and_times(void **state)
{
    /* 55 GB/s are 55 bytes a nanosecond: 4 blocks of 2097152 bytes take 8388608 / 55 = 152520 and the latency 16000;
     * 3 blocks 6291456 / 55 = 114390 and 16000. */
    static const struct host_link link = {.bytes_per_s = 55000000000, .latency_ns = 16000};
    const uint64_t four = 152520 + 16000, three = 114390 + 16000;
    static struct engine_case c;
    static struct engine_run run;
    struct wl_span spans[2];
    (void)state;
    hand_case(&c, spans, &link);
    engine_case_run(&c, &run);
    check_u64_eq(run.stats->admitted_hit_tokens, 48);
    check_u64_eq(run.stats->host.hit_tokens, 48);
    check_u64_eq(run.stats->host.hit_blocks, 3);
    check_u64_eq(run.stats->hits, 0); /* the engine's own look-ups know the device alone */
    check_u64_eq(run.stats->evictions, 8);
    check_u64_eq(run.stats->host.fetched_blocks, 3);
    check_u64_eq(run.stats->host.offloaded_blocks, 8);
    check_u64_eq(run.stats->host.already_there_blocks, 0);
    check_u64_eq(run.stats->host.evicted_blocks, 0);
    check_u64_eq(run.stats->host.transfer_ns, four + three + four);
    check_u64_eq(run.stats->lost_to_last_token, 16);
    check_u64_eq(run.stats->lost_to_eviction, 0);
    uint64_t a = prefill_ns(&c.config.step_time, 64, 0), b = a + four;
    check_u64_eq(last_ttft_ns(&run, a + b), prefill_ns(&c.config.step_time, 16, 48) + three + four);
    char *json = engine_run_json(&run);
    check_str_has(json, "\"to_device_bytes\": 6291456");
    check_str_has(json, "\"to_host_bytes\": 16777216");
    free(json);
    engine_run_release(&run);
}

/* At 55 GB/s the copies are hidden behind milliseconds of computing. At 1 GB/s the four blocks to the host, 8388608 ns and
 * the latency, are the longest of the three: the step takes just as long. */
static void by_hand__overlapped__the_longest_of_the_three(void **state)
{
    static const struct host_link fast = {.bytes_per_s = 55000000000, .latency_ns = 16000, .overlapped = true},
                                  slow = {.bytes_per_s = 1000000000, .latency_ns = 16000, .overlapped = true};
    static struct engine_case c;
    static struct engine_run run;
    struct wl_span spans[2];
    (void)state;
    hand_case(&c, spans, &fast);
    engine_case_run(&c, &run);
    uint64_t whole = prefill_ns(&c.config.step_time, 64, 0), rest = prefill_ns(&c.config.step_time, 16, 48);
    check_u64_eq(last_ttft_ns(&run, 2 * whole), rest);
    check_u64_eq(run.stats->host.transfer_ns, 0);
    engine_run_release(&run);
    hand_case(&c, spans, &slow);
    engine_case_run(&c, &run);
    check_u64_eq(last_ttft_ns(&run, whole + 8388608 + 16000), 8388608 + 16000);
    check_u64_eq(run.stats->host.transfer_ns, 2 * (8388608 + 16000) - whole - rest);
    engine_run_release(&run);
}

static uint64_t leading_on_host(const struct engine_run *run, const struct wl_span *span)
{
    uint64_t keys[4];
    struct content_cursor cursor;
    content_begin(&cursor, BLOCK_TOKENS);
    content_feed(&cursor, span, 1);
    check_u64_eq(content_next(&cursor, keys, 4), 4);
    return host_tier_leading(run->engine->host, keys, 4);
}

/* Room for six blocks on the host: C's look-up comes before its own evictions, so that A's blocks are still there
 * although B's push two of them out later. The tail of A goes first, the last two of its blocks. */
static void by_hand__full_host__own_evictions_come_after_the_fetch(void **state)
{
    static const struct host_link none = {0};
    static struct engine_case c;
    static struct engine_run run;
    struct wl_span spans[2];
    (void)state;
    hand_case(&c, spans, &none);
    c.config.host.capacity_bytes = 6 * BLOCK_BYTES;
    engine_case_run(&c, &run);
    check_u64_eq(run.stats->host.fetched_blocks, 3);
    check_u64_eq(run.stats->host.offloaded_blocks, 8);
    check_u64_eq(run.stats->host.evicted_blocks, 2);
    check_u64_eq(leading_on_host(&run, &spans[0]), 2);
    check_u64_eq(leading_on_host(&run, &spans[1]), 4);
    engine_run_release(&run);
    c.config.host.capacity_bytes = 3 * BLOCK_BYTES; /* B's step leaves A's first three there: all that C can use */
    engine_case_run(&c, &run);
    check_u64_eq(run.stats->host.fetched_blocks, 3);
    check_u64_eq(run.stats->host.evicted_blocks, 1 + 4);
    engine_run_release(&run);
}

/* --- random runs ---------------------------------------------------------------------------- */

/* Many requests of few streams in a small pool, in any order of eviction without these flags: most blocks come and go. */
static void crowded_case(uint64_t seed, uint32_t not_in_order, struct engine_random *rc)
{
    uint64_t s = seed, arrival = 0;
    const struct kv_eviction_ops *order = kv_eviction_at(engine_random_between(&s, 0, kv_eviction_count() - 1));
    char options[64];
    bool plain = engine_random_chance(&s, 50) || (order->flags & not_in_order) != 0;
    snprintf(options, sizeof options, "evict=%s", plain ? "lru" : order->name);
    engine_case_init(&rc->c, "prefix", options, engine_random_between(&s, 120, 300));
    struct engine_config *g = &rc->c.config;
    g->geometry.block_tokens = (uint32_t)engine_random_between(&s, 3, 8);
    g->geometry.rules = engine_random_chance(&s, 70) ? KV_RULES_2026_08 : KV_RULES_2026_04;
    g->max_model_len = 90;
    g->check_every = 0;
    g->max_num_seqs = 32;
    g->max_num_batched_tokens = engine_random_chance(&s, 50) ? 2048 : engine_random_between(&s, 64, 100);
    if (engine_random_chance(&s, 80)) {
        struct err err = {0};
        assert_int_equal(step_time_linear_init(&g->step_time, "8b", "bf16-bf16", &err), 0);
    }
    if (engine_random_chance(&s, 30)) {
        g->scheduler = scheduler_find(engine_random_chance(&s, 50) ? "reserve" : "v0");
        if (g->scheduler->whole_prompts) g->max_num_batched_tokens = 2048;
    }
    engine_random_host(&s, g);
    g->swap_space_bytes = engine_random_between(&s, 0, 200);
    for (int i = 0; i < 120; i++) {
        struct wl_request *r = engine_case_add(&rc->c, arrival, engine_random_between(&s, 1, 60), engine_random_between(&s, 1, 20));
        arrival += engine_random_chance(&s, 40) ? 0 : engine_random_between(&s, 0, 60000000);
        if (engine_random_chance(&s, 10)) r->samples = (uint32_t)engine_random_between(&s, 2, 4);
        engine_random_content(&s, r, rc->spans[rc->c.count - 1]);
    }
}

#define CROWDED_RUNS (ENGINE_RANDOM_RUNS < 100 ? 20 : 150)

struct event_digest {
    uint64_t hash, count, fetched, offloaded;
};

static void digest_event(void *context, uint64_t time_ns, enum event_kind kind, const struct sim_request *request, uint64_t a,
                         uint64_t b)
{
    struct event_digest *d = context;
    uint64_t words[] = {time_ns, kind, request ? request->index : UINT64_MAX, a, b};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) d->hash = (d->hash ^ words[i]) * UINT64_C(0x100000001b3);
    d->count++;
    if (kind == EVENT_FETCH) d->fetched += a;
    if (kind == EVENT_OFFLOAD) d->offloaded += a;
}

static char *digested_run(const struct engine_case *c, bool plain_loop, struct event_digest *digest, struct engine_stats *stats)
{
    struct engine_config config = c->config;
    struct engine_run run = {0};
    struct err err = {0};
    config.plain_loop = plain_loop;
    *digest = (struct event_digest){.hash = UINT64_C(0xcbf29ce484222325)};
    config.hooks.context = digest;
    config.hooks.event = digest_event;
    run.engine = engine_create(&config, &err);
    if (!run.engine) fail_msg("%s", err.text);
    struct wl_source *source = engine_case_source(c);
    if (engine_run(run.engine, source, &err)) fail_msg("%s", err.text);
    wl_close(source);
    *stats = *engine_stats(run.engine);
    char *json = engine_run_json(&run);
    check_str_eq(host_tier_check(run.engine->host), NULL);
    check_u64_eq(stats->host.offloaded_blocks - stats->host.evicted_blocks, run.engine->host->used_blocks);
    engine_run_release(&run);
    return json;
}

/* The skipping engine looks up less often, so that evictions reach the tier at other times: nobody can tell. What the pool
 * evicted is what the tier was told, and what the events say is what the figures say. */
static void random_runs__plain_and_skipping__same_figures_and_events(void **state)
{
    static struct engine_random rc;
    uint64_t fetched = 0, dropped = 0, back = 0;
    (void)state;
    for (uint64_t seed = 0; seed < CROWDED_RUNS; seed++) {
        struct event_digest plain, skipping;
        struct engine_stats stats;
        crowded_case(seed, KV_EVICTION_CLAIRVOYANT, &rc);
        char *texts[2] = {digested_run(&rc.c, true, &plain, &stats), digested_run(&rc.c, false, &skipping, &stats)};
        if (strcmp(texts[0], texts[1]) != 0) fail_msg("seed %d: two results\n%s\n%s", (int)seed, texts[0], texts[1]);
        check_u64_eq(skipping.count, plain.count);
        check_u64_eq(skipping.hash, plain.hash);
        check_u64_eq(stats.host.offloaded_blocks + stats.host.already_there_blocks, stats.evictions);
        check_u64_eq(plain.fetched, stats.host.fetched_blocks);
        check_u64_eq(plain.offloaded, stats.host.offloaded_blocks);
        assert_true(stats.host.hit_blocks <= stats.host.fetched_blocks);
        assert_true(stats.host.hit_tokens <= stats.admitted_hit_tokens);
        fetched += stats.host.fetched_blocks;
        dropped += stats.host.evicted_blocks;
        back += stats.host.already_there_blocks;
        free(texts[0]);
        free(texts[1]);
    }
    assert_true(fetched > 2 * CROWDED_RUNS && dropped > 2 * CROWDED_RUNS && back > 2 * CROWDED_RUNS);
}

/* Without orphans: what the device has behind a gap, the host has not. */
static void serial_case(uint64_t seed, struct engine_random *rc)
{
    crowded_case(seed, KV_EVICTION_CLAIRVOYANT | KV_EVICTION_ORPHANS, rc);
    rc->c.config.scheduler = scheduler_find("serial");
    rc->c.config.host.evict = LRU;
}

/* With room for everything nothing is lost to eviction, whatever the order: the device misses what the host has. */
static void infinite_host__serial_runs__nothing_is_lost_to_eviction(void **state)
{
    static struct engine_random rc;
    static struct engine_run run;
    uint64_t lost_without = 0;
    (void)state;
    for (uint64_t seed = 0; seed < CROWDED_RUNS; seed++) {
        serial_case(seed, &rc);
        rc.c.config.host.capacity_bytes = 1 << 20;
        engine_case_run(&rc.c, &run);
        check_u64_eq(run.stats->lost_to_eviction, 0);
        check_u64_eq(run.stats->host.evicted_blocks, 0);
        engine_run_release(&run);
        rc.c.config.host.capacity_bytes = 0;
        engine_case_run(&rc.c, &run);
        lost_without += run.stats->lost_to_eviction;
        engine_run_release(&run);
    }
    assert_true(lost_without > 1000);
}

/* Least recently used, and tails go before their prefix on both levels: what the smaller host has, the larger one has. */
static void larger_host__serial_runs__never_hits_less(void **state)
{
    static struct engine_random rc;
    static struct engine_run run;
    uint64_t first = 0, last = 0;
    (void)state;
    for (uint64_t seed = 0; seed < CROWDED_RUNS / 2; seed++) {
        uint64_t before = 0;
        serial_case(seed, &rc);
        memset(rc.c.config.policy_values, 0, sizeof rc.c.config.policy_values); /* lru */
        for (uint64_t blocks = 0; blocks <= 64; blocks = blocks > 8 ? blocks * 2 : blocks + 1) {
            rc.c.config.host.capacity_bytes = blocks * rc.c.config.geometry.block_tokens;
            engine_case_run(&rc.c, &run);
            if (run.stats->admitted_hit_tokens < before) fail_msg("seed %d: fewer hits with %d blocks", (int)seed, (int)blocks);
            before = run.stats->admitted_hit_tokens;
            if (blocks == 0) first += before;
            engine_run_release(&run);
        }
        last += before;
    }
    assert_true(last > first + first / 4);
}

/* --- what it cannot be used with ---------------------------------------------------------------- */

static void check_refused(const struct engine_config *config, const char *what)
{
    struct err err = {0};
    assert_null(engine_create(config, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    check_str_has(err.text, what);
}

static void create__no_cache_or_window_or_no_room__refused(void **state)
{
    static struct engine_case c;
    (void)state;
    engine_case_init(&c, "dynamic", NULL, 1000);
    c.config.host = (struct host_config){.capacity_bytes = 100, .evict = LRU};
    check_refused(&c.config, "--host-cache: policy dynamic keeps no content");
    engine_case_init(&c, "prefix", NULL, 1000);
    c.config.host = (struct host_config){.capacity_bytes = 100, .evict = LRU};
    c.config.geometry.window_tokens = 32;
    check_refused(&c.config, "--host-cache: found it with a sliding window");
    c.config.geometry.window_tokens = 0;
    c.config.host.capacity_bytes = 15;
    check_refused(&c.config, "found 15 bytes, expected at least a block of 16");
    c.config.host.capacity_bytes = UINT64_C(1) << 40;
    check_refused(&c.config, "at most 268435456 blocks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand__blocking__hits_bytes_and_times),
        cmocka_unit_test(by_hand__overlapped__the_longest_of_the_three),
        cmocka_unit_test(by_hand__full_host__own_evictions_come_after_the_fetch),
        cmocka_unit_test(random_runs__plain_and_skipping__same_figures_and_events),
        cmocka_unit_test(infinite_host__serial_runs__nothing_is_lost_to_eviction),
        cmocka_unit_test(larger_host__serial_runs__never_hits_less),
        cmocka_unit_test(create__no_cache_or_window_or_no_room__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
