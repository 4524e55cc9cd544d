/* Local counterfactuals on cases small enough to work out by hand, and the refilled pool against the live one. */
#include "tests/check.h"

#include <string.h>

#include "sim/counterfactual.h"
#include "sim/engine_core.h"
#include "tests/engine_case.h"

/* Blocks of 16 tokens of 1 byte; `dynamic` has a null block beside the usable ones. */
#define BLOCKS(usable) (16 * ((usable) + 1))

static struct local_trials try_all(struct engine_case *c, uint64_t episode, uint64_t boundary_bytes)
{
    static struct engine_run run;
    struct local_trials t = {.episode = episode, .boundary_bytes = boundary_bytes};
    c->config.hooks.refused = local_trials_refused;
    c->config.hooks.refused_context = &t;
    while (local_trials_open(&t)) {
        t.reached = false;
        engine_case_run(c, &run);
        engine_run_release(&run);
        assert_true(t.reached);
    }
    return t;
}

static void expect(const struct local_trials *t, enum local_change change, enum verdict verdict)
{
    if (t->trials[change].verdict == verdict) return;
    fail_msg("%s: %s (%s), expected %s", local_change_names[change], verdict_names[t->trials[change].verdict],
             t->trials[change].why, verdict_names[verdict]);
}

/* 10 usable of 11 blocks; a watermark of 0.2 keeps floor(2.2) = 2. A (70 tokens) holds 5 blocks, 5 are free, 3 of
 * them obtainable. B asks 4 for its 60. */
static void watermark__the_only_thing_in_the_way__0_grants(void **state)
{
    struct engine_case c;
    (void)state;
    engine_case_init(&c, "dynamic", NULL, BLOCKS(10));
    c.config.geometry.watermark = 0.2;
    engine_case_add(&c, 0, 70, 20);
    engine_case_add(&c, 0, 60, 2);
    struct local_trials t = try_all(&c, 1, 0);
    expect(&t, LOCAL_WATERMARK_0, VERDICT_GRANTED);
    expect(&t, LOCAL_FIRST_CHUNK, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_EXACT_NEED, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_COMPACTION, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_BOUNDARY, VERDICT_GRANTED);
    check_u64_eq(t.moved_bytes, 16); /* 4 asked, 3 obtainable; floor(0.2 * 12) = 2 is still kept back */
}

/* Steps of 32 tokens: A's 70 take three, then hold 5 of 10 blocks. B's whole prompt of 96 asks 6, its first chunk of
 * 32 tokens 2. */
static void first_chunk__whole_prompt_asked_at_once__grants(void **state)
{
    struct engine_case c;
    (void)state;
    engine_case_init(&c, "dynamic", NULL, BLOCKS(10));
    c.config.max_num_batched_tokens = 32;
    engine_case_add(&c, 0, 70, 20);
    engine_case_add(&c, 0, 96, 2);
    struct local_trials t = try_all(&c, 1, 0);
    expect(&t, LOCAL_WATERMARK_0, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_FIRST_CHUNK, VERDICT_GRANTED);
    expect(&t, LOCAL_BOUNDARY, VERDICT_GRANTED);
    check_u64_eq(t.moved_bytes, 16);
}

/* Look-ahead 16: A asks 86 slots, 6 of 10 blocks. B's 64 tokens are 4 blocks, with look-ahead 5; its one output token is
 * never written, so the fifth would stay empty. */
static void exact_need__lookahead_in_the_way__grants(void **state)
{
    struct engine_case c;
    (void)state;
    engine_case_init(&c, "dynamic", NULL, BLOCKS(10));
    c.config.geometry.lookahead_tokens = 16;
    engine_case_add(&c, 0, 70, 20);
    engine_case_add(&c, 0, 64, 1);
    struct local_trials t = try_all(&c, 1, 0);
    expect(&t, LOCAL_EXACT_NEED, VERDICT_GRANTED);
    expect(&t, LOCAL_FIRST_CHUNK, VERDICT_NOT_APPLICABLE);
}

/* Regions of 100 slots in a pool of 150: A leaves 50 free in one run. B needs 10 + 5 - 1 = 14 of its 100. */
static void exact_need__reservation_of_max_model_len__grants_and_compaction_does_not(void **state)
{
    struct engine_case c;
    (void)state;
    engine_case_init(&c, "static", "reserve=max", 150);
    engine_case_add(&c, 0, 10, 5);
    engine_case_add(&c, 0, 10, 5);
    struct local_trials t = try_all(&c, 1, 0);
    expect(&t, LOCAL_WATERMARK_0, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_FIRST_CHUNK, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_EXACT_NEED, VERDICT_GRANTED);
    expect(&t, LOCAL_COMPACTION, VERDICT_REFUSED);
    expect(&t, LOCAL_BOUNDARY, VERDICT_GRANTED);
    check_u64_eq(t.moved_bytes, 100);
}

/* True lengths: regions of 30 at 0, 30 and 60. The first and third end after two steps and leave holes of 30 and 40
 * around the second. D asks 60: 70 are free. */
static struct engine_case holes(void)
{
    struct engine_case c;
    engine_case_init(&c, "static", "reserve=oracle", 100);
    engine_case_add(&c, 0, 29, 2);
    engine_case_add(&c, 0, 10, 21);
    engine_case_add(&c, 0, 29, 2);
    engine_case_add(&c, 5000, 50, 11);
    return c;
}

static void compaction__free_in_two_holes__grants(void **state)
{
    (void)state;
    struct engine_case c = holes();
    struct local_trials t = try_all(&c, 1, 0);
    expect(&t, LOCAL_EXACT_NEED, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_COMPACTION, VERDICT_GRANTED);
    expect(&t, LOCAL_BOUNDARY, VERDICT_GRANTED);
    check_u64_eq(t.moved_bytes, 60);
    check_str_eq(t.trials[LOCAL_COMPACTION].why, "longest free run 70 slots, from 40; 60 asked");
}

/* 59 bytes more, as a region of their own, are one too few; 60 do. */
static void boundary__region_one_slot_too_small__refused(void **state)
{
    (void)state;
    struct engine_case c = holes();
    struct local_trials t = try_all(&c, 1, 59);
    expect(&t, LOCAL_BOUNDARY, VERDICT_REFUSED);
    c = holes();
    t = try_all(&c, 1, 60);
    expect(&t, LOCAL_BOUNDARY, VERDICT_GRANTED);
}

/* Two requests of one block grow to two each in a pool of four; token 33 of the first asks a fifth. */
static void boundary__growth__one_block_is_enough(void **state)
{
    struct engine_case c;
    (void)state;
    engine_case_init(&c, "dynamic", NULL, BLOCKS(4));
    engine_case_add(&c, 0, 16, 30);
    engine_case_add(&c, 0, 16, 30);
    struct local_trials t = try_all(&c, 1, 0);
    expect(&t, LOCAL_WATERMARK_0, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_FIRST_CHUNK, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_BOUNDARY, VERDICT_GRANTED);
    check_u64_eq(t.moved_bytes, 16);
}

/* Two of four blocks are pinned, two free; three asked. In the other case nothing is
 * pinned: the first request still holds its blocks when the second comes. */
static void no_pins__two_of_four_blocks_pinned__grants(void **state)
{
    struct engine_case c;
    (void)state;
    for (uint64_t arrival = 1000;; arrival = 500) {
        engine_case_init(&c, "prefix", "evict=ttl ttl-ns=5000", BLOCKS(4));
        engine_case_add(&c, 0, 33, arrival == 500 ? 3 : 1);
        engine_case_add(&c, arrival, 40, 1);
        struct local_trials t = try_all(&c, 1, 0);
        expect(&t, LOCAL_WATERMARK_0, VERDICT_NOT_APPLICABLE);
        if (arrival == 500) {
            expect(&t, LOCAL_NO_PINS, VERDICT_NOT_APPLICABLE);
            break;
        }
        expect(&t, LOCAL_NO_PINS, VERDICT_GRANTED);
        check_str_eq(t.trials[LOCAL_NO_PINS].why, "2 blocks pinned, 3 asked");
        check_u64_eq(t.moved_bytes, 16);
    }
}

/* Full reservation by the scheduler, whose clients declare the longest output: each asks 99 slots, 7 of 10 blocks. A
 * takes 2, so 8 are free, of which 5 are promised to it. B asks 7 and would fill 62 tokens, 4 blocks. */
static void scheduler_headroom__promised_blocks_in_the_way__0_grants(void **state)
{
    struct engine_case c;
    (void)state;
    engine_case_init(&c, "dynamic", NULL, BLOCKS(10));
    c.config.scheduler = scheduler_find("reserve");
    engine_case_add(&c, 0, 20, 3);
    engine_case_add(&c, 0, 60, 3);
    struct local_trials t = try_all(&c, 1, 0);
    expect(&t, LOCAL_WATERMARK_0, VERDICT_GRANTED);
    expect(&t, LOCAL_EXACT_NEED, VERDICT_REFUSED);  /* 62 tokens, 4 blocks; 8 - 5 = 3 */
    expect(&t, LOCAL_FIRST_CHUNK, VERDICT_REFUSED); /* 60 tokens, 4 blocks */
}

/* A holds 9 of 10 blocks and will need them; B asks 9. One block more does not do. */
static void all_changes__pool_really_used_up__nothing_helps(void **state)
{
    struct engine_case c;
    (void)state;
    engine_case_init(&c, "prefix", NULL, BLOCKS(10));
    c.config.max_model_len = 200;
    engine_case_add(&c, 0, 140, 4);
    engine_case_add(&c, 0, 140, 4);
    struct local_trials t = try_all(&c, 1, 16);
    expect(&t, LOCAL_WATERMARK_0, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_FIRST_CHUNK, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_EXACT_NEED, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_COMPACTION, VERDICT_NOT_APPLICABLE);
    expect(&t, LOCAL_BOUNDARY, VERDICT_REFUSED);
}

/* --- the refilled pool ------------------------------------------------------------------------ */

struct compared {
    uint64_t refusals, shared, unknown;
};

/* At every refusal: what the running requests hold is held in the refilled pool, no byte more or less. */
static void compare_pools(void *context, struct engine *e, const struct refused_call *call)
{
    struct compared *compared = context;
    struct kv_facts live, refilled;
    char why[COUNTERFACTUAL_WHY_BYTES];
    (void)call;
    struct kv_policy *p = policy_refilled(e, e->config.geometry.pool_bytes, why, sizeof why);
    if (!p && e->caches && e->config.geometry.window_tokens > 0) {
        compared->unknown++;
        return;
    }
    if (!p) fail_msg("%s, window %d: %s", e->policy->ops->name, (int)e->config.geometry.window_tokens, why);
    kv_get_facts(e->policy, &live);
    kv_get_facts(p, &refilled);
    check_u64_eq(refilled.held_bytes, live.held_bytes);
    check_u64_eq(refilled.free_bytes + refilled.cached_bytes, live.free_bytes + live.cached_bytes);
    if (p->ops->check) check_str_eq(p->ops->check(p), NULL);
    kv_destroy(p);
    compared->refusals++;
    compared->shared += live.referenced_bytes > live.held_bytes;
}

/* Conversations over two system prompts, single and sampled, in a pool for a few of them. */
static void fill(struct engine_case *c, struct wl_span *prompts, uint64_t seed)
{
    for (uint64_t i = 0; i < 60; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t common = 32, own = 5 + (seed >> 33) % 40, output = 1 + (seed >> 40) % 30;
        struct wl_request *r = engine_case_add(c, i * 700, common + own, output);
        struct wl_span *spans = prompts + 2 * i;
        spans[0] = (struct wl_span){.space = 1, .first = (seed >> 50) % 2 * 1000, .count = common};
        spans[1] = (struct wl_span){.space = 2 + i, .first = 0, .count = own};
        r->has_content = true;
        r->prompt = spans;
        r->prompt_spans = 2;
        r->samples = 1 + (uint32_t)((seed >> 55) % 3);
        r->index = i;
    }
}

static void refill__every_refusal_of_random_runs__holds_the_same_bytes(void **state)
{
    static const struct {
        const char *policy, *options, *scheduler;
        uint64_t window;
    } kinds[] = {
        {"dynamic", NULL, "v1", 0},       {"prefix", NULL, "v1", 0},
        {"ideal", NULL, "v1", 0},         {"static", "reserve=declared placement=buddy", "v1", 0},
        {"static", "reserve=oracle", "v1", 0}, {"static-paged", "reserve=oracle", "v1", 0},
        {"jemalloc", "reserve=oracle", "v1", 0}, {"dynamic", NULL, "v0", 0},
        {"prefix", NULL, "reserve", 0},   {"dynamic", NULL, "v1", 20},
        {"prefix", NULL, "v1", 20},
    };
    static struct engine_run run;
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct compared compared = {0};
        for (uint64_t seed = 1; seed <= 6; seed++) {
            struct engine_case c;
            struct wl_span prompts[120];
            /* Regions of jemalloc's large classes: of small ones it takes whole slabs. */
            uint64_t slot_bytes = strcmp(kinds[k].policy, "jemalloc") == 0 ? 1024 : 1;
            engine_case_init(&c, kinds[k].policy, kinds[k].options, slot_bytes * BLOCKS(30));
            c.config.geometry.bytes_per_token = slot_bytes;
            c.config.scheduler = scheduler_find(kinds[k].scheduler);
            c.config.geometry.window_tokens = kinds[k].window;
            c.config.max_model_len = 128;
            c.config.plain_loop = seed % 2 == 0;
            fill(&c, prompts, seed);
            c.config.hooks.refused = compare_pools;
            c.config.hooks.refused_context = &compared;
            engine_case_run(&c, &run);
            engine_run_release(&run);
        }
        assert_true(compared.unknown <= compared.refusals); /* sharing under a sliding window */
        if (compared.refusals == 0) fail_msg("%s: no refusal to look at", kinds[k].policy);
        if (strcmp(kinds[k].policy, "prefix") == 0) assert_true(compared.shared > 0);
    }
}

/* For blocks the bytes that are missing are what has to be moved: a block less is refused, that many are granted. */
static void boundary__every_refusal_of_random_runs__shortfall_is_exact(void **state)
{
    static const char *const policies[] = {"dynamic", "prefix", "static-paged"};
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        for (uint64_t number = 1; number <= 9; number += 2) {
            struct engine_case c;
            struct wl_span prompts[120];
            static struct engine_run run;
            engine_case_init(&c, policies[k], "reserve=declared", BLOCKS(30));
            c.config.max_model_len = 128;
            fill(&c, prompts, 7 + number);
            struct refusal_watch watch = {.number = number, .request = UINT64_MAX};
            c.config.watch = &watch;
            engine_case_run(&c, &run);
            engine_run_release(&run);
            assert_true(watch.seen);
            c.config.watch = NULL;
            uint64_t missing = watch.episode.proof.shortfall_units;
            struct local_trials t = try_all(&c, number, 16 * missing);
            expect(&t, LOCAL_BOUNDARY, VERDICT_GRANTED);
            if (missing == 1) continue;
            t = try_all(&c, number, 16 * (missing - 1));
            expect(&t, LOCAL_BOUNDARY, VERDICT_REFUSED);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watermark__the_only_thing_in_the_way__0_grants),
        cmocka_unit_test(first_chunk__whole_prompt_asked_at_once__grants),
        cmocka_unit_test(exact_need__lookahead_in_the_way__grants),
        cmocka_unit_test(exact_need__reservation_of_max_model_len__grants_and_compaction_does_not),
        cmocka_unit_test(compaction__free_in_two_holes__grants),
        cmocka_unit_test(boundary__region_one_slot_too_small__refused),
        cmocka_unit_test(boundary__growth__one_block_is_enough),
        cmocka_unit_test(no_pins__two_of_four_blocks_pinned__grants),
        cmocka_unit_test(scheduler_headroom__promised_blocks_in_the_way__0_grants),
        cmocka_unit_test(all_changes__pool_really_used_up__nothing_helps),
        cmocka_unit_test(refill__every_refusal_of_random_runs__holds_the_same_bytes),
        cmocka_unit_test(boundary__every_refusal_of_random_runs__shortfall_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
