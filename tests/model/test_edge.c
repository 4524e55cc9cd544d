/* The edge of the device: small cases by hand, and random runs in which every step's bytes add up to the device. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/device/device_allocator.h"
#include "sim/edge_internal.h"
#include "tests/engine_case.h"

/* Blocks of 16 tokens of 1 byte; 10 of 11 are usable. */
#define POOL (16 * 11)

/* 100 bytes of context, 200 of weights, 30 of residue, 50 of graphs, the pool, and `room`. A token of a step takes 10. */
static struct engine_case small_device(const char *policy, uint64_t room)
{
    struct engine_case c;
    engine_case_init(&c, policy, NULL, POOL);
    c.config.edge = (struct edge_config){
        .model = EDGE_BUDGET,
        .device_bytes = 100 + 200 + 30 + 50 + POOL + room,
        .context_bytes = 100,
        .weights_bytes = 200,
        .residue_bytes = 30,
        .graph_bytes = 50,
        .per_token_bytes = 10,
    };
    return c;
}

static const struct edge_totals *totals(const struct engine_run *run)
{
    return edge_totals(run->engine->edge);
}

static void all_requests_end(const struct engine_run *run)
{
    const struct engine_stats *s = run->stats;
    check_u64_eq(s->finished + s->rejected + s->unservable + s->aborted, s->requests);
}

/* 20 tokens at once take 200 bytes. */
static void step__exactly_what_is_free__runs(void **state)
{
    static struct engine_run run;
    (void)state;
    struct engine_case c = small_device("dynamic", 200);
    engine_case_add(&c, 0, 20, 3);
    engine_case_run(&c, &run);
    check_u64_eq(run.stats->finished, 1);
    check_u64_eq(totals(&run)->ooms, 0);
    check_u64_eq(totals(&run)->activation_peak_bytes, 200);
    check_u64_eq(totals(&run)->free_min_bytes, 0);
    engine_run_release(&run);
}

/* One byte is missing, while 8 of the pool's 10 blocks, 128 bytes, are free: E = 199 + 128, and the boundary withholds it. */
static void step__one_byte_too_few__ends_despite_a_free_pool(void **state)
{
    static struct engine_run run;
    (void)state;
    struct engine_case c = small_device("dynamic", 199);
    engine_case_add(&c, 0, 20, 3);
    engine_case_add(&c, 5000, 4, 3); /* nobody is there any more */
    engine_case_run(&c, &run);
    all_requests_end(&run);
    check_u64_eq(run.stats->aborted, 1);
    check_u64_eq(totals(&run)->unserved, 1);
    assert_true(totals(&run)->ended);
    check_u64_eq(run.episode_count, 1);
    const struct episode *e = &run.episodes[0];
    assert_true(e->facts.device);
    check_u64_eq(e->facts.ask_units, 200);
    check_u64_eq(e->facts.a_units, 199);
    check_u64_eq(e->facts.e_units, 199 + 128);
    check_u64_eq(e->proof.shortfall_units, 1);
    check_u64_eq((uint64_t)e->proof.parts_bytes[CAUSE_POOL_BOUNDARY], 1);
    assert_int_equal(e->proof.primary, CAUSE_POOL_BOUNDARY);
    assert_int_equal(e->class, CLASS_DESPITE_FREE);
    check_u64_eq(run.stats->refusals.by_kind[2], 1);
    engine_run_release(&run);
}

/* 40 tokens want 400 of 200 bytes. The largest request, 25 tokens, is lost; the other's 15 take 150. */
static void step__reject__loses_the_largest_and_goes_on(void **state)
{
    static struct engine_run run;
    (void)state;
    struct engine_case c = small_device("dynamic", 200);
    c.config.edge.on_oom = EDGE_OOM_REJECT;
    engine_case_add(&c, 0, 15, 3);
    engine_case_add(&c, 0, 25, 3);
    engine_case_run(&c, &run);
    all_requests_end(&run);
    check_u64_eq(run.stats->finished, 1);
    check_u64_eq(run.stats->aborted, 1);
    check_u64_eq(totals(&run)->step_ooms, 1);
    assert_false(totals(&run)->ended);
    engine_run_release(&run);
}

/* 60 + 20 * 2 bytes for a step of 6 tokens of two requests: base, tokens, and the sequences that yield a token. */
static void activations__base_tokens_and_sequences(void **state)
{
    static struct engine_run run;
    (void)state;
    struct engine_case c = small_device("dynamic", 1000);
    c.config.edge.base_bytes = 7;
    c.config.edge.per_seq_bytes = 20;
    engine_case_add(&c, 0, 2, 1);
    engine_case_add(&c, 0, 4, 1);
    engine_case_run(&c, &run);
    check_u64_eq(totals(&run)->activation_peak_bytes, 7 + 60 + 40);
    check_u64_eq(totals(&run)->step_tokens_peak, 6);
    engine_run_release(&run);
}

/* 40 bytes from step 2 on: then 199 - 40 are left for the 17 tokens, 170 bytes, that arrive in it. */
static void late_buffer__at_a_step__leaves_too_little(void **state)
{
    static struct engine_run run;
    (void)state;
    struct engine_case c = small_device("dynamic", 199);
    c.config.edge.buffers[c.config.edge.buffer_count++] = (struct edge_buffer){.bytes = 40, .by_step = true, .at = 2};
    engine_case_add(&c, 0, 17, 5);
    engine_case_add(&c, 2000, 17, 5);
    engine_case_run(&c, &run);
    all_requests_end(&run);
    check_u64_eq(totals(&run)->first_oom_ns, 2000);
    check_u64_eq(totals(&run)->first_oom_ask_bytes, 180); /* the first request's token is in the step */
    check_u64_eq(totals(&run)->first_oom_free_bytes, 159);
    check_u64_eq(run.stats->aborted, 2);
    engine_run_release(&run);
}

/* A buffer that does not fit is itself a demand. */
static void late_buffer__larger_than_what_is_free__is_refused(void **state)
{
    static struct engine_run run;
    (void)state;
    struct engine_case c = small_device("dynamic", 199);
    c.config.edge.buffers[c.config.edge.buffer_count++] = (struct edge_buffer){.bytes = 200, .at = 1000};
    engine_case_add(&c, 0, 17, 5);
    engine_case_run(&c, &run);
    check_u64_eq(totals(&run)->buffer_ooms, 1);
    check_u64_eq(run.episodes[0].facts.ask_units, 200);
    engine_run_release(&run);
}

/* The same load as one byte too few, elastic: one byte is a block of 16, lent for one of the three steps. */
static void elastic__one_byte_too_few__takes_a_block_for_the_step(void **state)
{
    static struct engine_run run;
    (void)state;
    struct engine_case c = small_device("prefix", 199);
    c.config.edge.elastic = true;
    engine_case_add(&c, 0, 20, 3);
    engine_case_run(&c, &run);
    check_u64_eq(run.stats->finished, 1);
    check_u64_eq(totals(&run)->ooms, 0);
    check_u64_eq(totals(&run)->lent_peak_bytes, 16);
    check_u64_eq((uint64_t)totals(&run)->lent_byte_time, 16 * 1000);
    check_u64_eq(totals(&run)->step_time, 3000);
    /* The null block throughout, the lent one for a step. */
    check_u64_eq(engine_run_state(&run, STATE_OVERHEAD), 16 * 3000 + 16 * 1000);
    engine_run_release(&run);
}

/* 60 tokens, 4 blocks, run; 30 more want 300 + 10 bytes of 200 and take 2 blocks: 110 lent are 7 blocks, but 4 are free. The
 * later one is preempted, and comes back with the same result until the first, of 5 tokens, is done. */
static void elastic__pool_has_too_little__preempts(void **state)
{
    static struct engine_run run;
    (void)state;
    struct engine_case c = small_device("dynamic", 200);
    c.config.max_num_batched_tokens = 60;
    c.config.edge.per_token_bytes = 5;
    c.config.edge.elastic = true;
    c.config.edge.per_token_bytes = 5; /* the first's 60 tokens take 300: 100 lent are 7 of the 6 that are free */
    engine_case_add(&c, 0, 56, 5);     /* 280: 80 are 5 blocks; it holds 4 of 10 */
    engine_case_add(&c, 1000, 59, 5);  /* 59 + 1 tokens, 300: 7 blocks, but 4 + 4 are held */
    engine_case_run(&c, &run);
    all_requests_end(&run);
    check_u64_eq(run.stats->finished, 2);
    check_u64_eq(totals(&run)->ooms, 0);
    assert_true(totals(&run)->lend_preemptions > 0);
    check_u64_eq(run.stats->preemptions, totals(&run)->lend_preemptions);
    engine_run_release(&run);
}

/* 4 blocks are asked, 3 free: 16 bytes are missing. Outside the pool 8 are free and 30 residue: all of them, for the
 * boundary could lie there. */
static void pool_refusal__free_bytes_outside__pool_boundary(void **state)
{
    static struct engine_run run;
    (void)state;
    struct engine_case c = small_device("dynamic", 2000);
    c.config.edge.per_token_bytes = 0;
    engine_case_add(&c, 0, 99, 1);
    engine_case_add(&c, 0, 64, 1);
    engine_case_run(&c, &run);
    const struct episode *e = &run.episodes[0];
    assert_false(e->facts.device);
    check_u64_eq(e->facts.boundary_units, 2030 / 16);
    check_u64_eq((uint64_t)e->proof.parts_bytes[CAUSE_POOL_BOUNDARY], 16);
    engine_run_release(&run);
}

/* --- the caching allocator ---------------------------------------------------------------------- */

#define MIB DEV_MIB

/* Tokens of 1 MiB in a pool of 160 MiB; the rest of the device is `room` MiB. A token of a step takes 4 MiB. */
static struct engine_case caching_device(uint64_t room)
{
    struct engine_case c;
    engine_case_init(&c, "dynamic", NULL, 160 * MIB);
    c.config.geometry.bytes_per_token = MIB;
    c.config.edge = (struct edge_config){
        .model = EDGE_CACHING,
        .device_bytes = (500 + 200 + 160 + room) * MIB,
        .context_bytes = 500 * MIB,
        .weights_bytes = 200 * MIB,
        .per_token_bytes = 4 * MIB,
    };
    return c;
}

/* 20 tokens: 40 + 20 + 20 MiB, which stay cached. 100 - 80 = 20 MiB of the device are left, a buffer of 50 is refused
 * although nothing uses those 80; as much as is missing, 30 MiB, is idle. */
static void caching__late_buffer__cannot_have_what_is_cached(void **state)
{
    static struct engine_run run;
    (void)state;
    struct engine_case c = caching_device(102); /* 2 MiB are never handed out */
    c.config.edge.buffers[c.config.edge.buffer_count++] = (struct edge_buffer){.bytes = 50 * MIB, .by_step = true, .at = 1};
    engine_case_add(&c, 0, 20, 5);
    engine_case_run(&c, &run);
    check_u64_eq(totals(&run)->buffer_ooms, 1);
    check_u64_eq(run.episode_count, 1);
    const struct episode *e = &run.episodes[0];
    check_u64_eq(e->facts.idle_units, 80 * MIB);
    check_u64_eq(e->proof.shortfall_units, 50 * MIB - e->facts.a_units);
    check_u64_eq((uint64_t)e->proof.parts_bytes[CAUSE_IDLE_MAPPED], e->proof.shortfall_units);
    assert_int_equal(e->proof.primary, CAUSE_IDLE_MAPPED);
    assert_int_equal(e->class, CLASS_DESPITE_FREE);
    engine_run_release(&run);
}

/* The plain budget has no cache: the same buffer fits beside the one token, 4 MiB, of each later step. */
static void budget__same_late_buffer__fits(void **state)
{
    static struct engine_run run;
    (void)state;
    struct engine_case c = caching_device(102);
    c.config.edge.model = EDGE_BUDGET;
    c.config.edge.buffers[c.config.edge.buffer_count++] = (struct edge_buffer){.bytes = 50 * MIB, .by_step = true, .at = 1};
    engine_case_add(&c, 0, 20, 5);
    engine_case_run(&c, &run);
    check_u64_eq(totals(&run)->ooms, 0);
    check_u64_eq(run.stats->finished, 1);
    engine_run_release(&run);
}

static void start__what_must_be_there_does_not_fit__one_line(void **state)
{
    (void)state;
    for (int model = EDGE_BUDGET; model <= EDGE_CACHING; model++) {
        struct engine_case c = caching_device(0);
        struct err err = {0};
        c.config.edge.model = (enum edge_model)model;
        c.config.edge.device_bytes -= 4 * MIB;
        assert_null(engine_create(&c.config, &err));
        check_str_has(err.text, "pool 167772160");
    }
}

/* --- random runs --------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

static void random_run(uint64_t seed, uint64_t *ooms, uint64_t *lent)
{
    static const char *const policies[] = {"dynamic", "prefix", "ideal", "static", "static-paged"};
    static const char *const schedulers[] = {"v1", "v0", "reserve"};
    static struct engine_run run;
    struct engine_case c;
    uint64_t kind = seed % 3; /* budget, caching, elastic */
    engine_case_init(&c, policies[draw(&seed, kind == 2 ? 3 : 5)], "reserve=declared", 400 * MIB);
    c.config.geometry.bytes_per_token = MIB;
    c.config.scheduler = scheduler_find(schedulers[draw(&seed, 3)]);
    c.config.by_priority = draw(&seed, 4) == 0;
    c.config.max_num_batched_tokens = 100 + draw(&seed, 100);
    c.config.edge = (struct edge_config){
        .model = kind == 1 ? EDGE_CACHING : EDGE_BUDGET,
        .elastic = kind == 2,
        .on_oom = draw(&seed, 4) ? EDGE_OOM_REJECT : EDGE_OOM_END,
        .device_bytes = (700 + 100 + draw(&seed, 300)) * MIB + draw(&seed, MIB),
        .context_bytes = 150 * MIB + draw(&seed, MIB),
        .weights_bytes = 100 * MIB + draw(&seed, MIB),
        .residue_bytes = draw(&seed, 10 * MIB),
        .graph_bytes = draw(&seed, 20 * MIB),
        .base_bytes = draw(&seed, MIB),
        .per_token_bytes = draw(&seed, 5 * MIB),
        .per_seq_bytes = draw(&seed, MIB),
        .buffer_count = 2,
        .buffers = {{.bytes = 1 + draw(&seed, 60 * MIB), .by_step = true, .at = draw(&seed, 40)},
                    {.bytes = 1 + draw(&seed, 60 * MIB), .at = draw(&seed, 40000), .framework = kind == 1}},
    };
    for (uint64_t i = 0; i < 40; i++) {
        struct wl_request *r = engine_case_add(&c, i * draw(&seed, 2000), 1 + draw(&seed, 90), 1 + draw(&seed, 30));
        r->index = i;
        r->samples = draw(&seed, 4) == 0 ? 2 : 1;
        r->priority = (int64_t)draw(&seed, 3);
        if (i > 0 && r->arrival_ns < c.requests[i - 1].arrival_ns) r->arrival_ns = c.requests[i - 1].arrival_ns;
        if (draw(&seed, 8) == 0) r->abort_ns = r->arrival_ns + draw(&seed, 20000);
    }
    engine_case_run(&c, &run); /* walks states and device at every step */
    all_requests_end(&run);
    check_u64_eq(run.stats->requests + totals(&run)->unserved, 40);
    check_u64_eq(run.stats->refusals.by_kind[2], totals(&run)->ooms);
    check_str_eq(edge_check(run.engine->edge), NULL);
    if (run.engine->edge->device) check_str_eq(dev_check(run.engine->edge->device), NULL);
    *ooms += totals(&run)->ooms;
    *lent += totals(&run)->lent_peak_bytes > 0;
    engine_run_release(&run);
}

static void random_runs__bytes_add_up_and_all_end(void **state)
{
    uint64_t ooms = 0, lent = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) random_run(seed, &ooms, &lent);
    assert_true(ooms > 50);
    assert_true(lent > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step__exactly_what_is_free__runs),
        cmocka_unit_test(step__one_byte_too_few__ends_despite_a_free_pool),
        cmocka_unit_test(step__reject__loses_the_largest_and_goes_on),
        cmocka_unit_test(activations__base_tokens_and_sequences),
        cmocka_unit_test(late_buffer__at_a_step__leaves_too_little),
        cmocka_unit_test(late_buffer__larger_than_what_is_free__is_refused),
        cmocka_unit_test(elastic__one_byte_too_few__takes_a_block_for_the_step),
        cmocka_unit_test(elastic__pool_has_too_little__preempts),
        cmocka_unit_test(pool_refusal__free_bytes_outside__pool_boundary),
        cmocka_unit_test(caching__late_buffer__cannot_have_what_is_cached),
        cmocka_unit_test(budget__same_late_buffer__fits),
        cmocka_unit_test(start__what_must_be_there_does_not_fit__one_line),
        cmocka_unit_test(random_runs__bytes_add_up_and_all_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
