/* Small runs whose figures are worked out by hand, with the arithmetic beside them. Steps last 1000 ns and a token
 * takes 1 byte unless a case says otherwise, so byte-nanoseconds are slots x steps x 1000. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "sim/engine_core.h"
#include "sim/result.h"
#include "tests/engine_case.h"

struct fixture {
    struct engine_case c;
    struct engine_run run;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    engine_run_release(&f->run);
    free(f);
    return 0;
}

/* Requests that arrive at time 0 and have one sample. */
static void add(struct fixture *f, uint64_t prompt_tokens, uint64_t output_tokens)
{
    engine_case_add(&f->c, 0, prompt_tokens, output_tokens);
}

static void check_states(const struct fixture *f, uint64_t live, uint64_t reserved, uint64_t internal,
                         uint64_t rounding)
{
    check_u64_eq(engine_run_state(&f->run, STATE_LIVE), live);
    check_u64_eq(engine_run_state(&f->run, STATE_RESERVED), reserved);
    check_u64_eq(engine_run_state(&f->run, STATE_INTERNAL), internal);
    check_u64_eq(engine_run_state(&f->run, STATE_ROUNDING), rounding);
}

static void check_verdicts(const struct fixture *f, uint64_t finished, uint64_t rejected, uint64_t unservable,
                           uint64_t aborted)
{
    check_u64_eq(f->run.stats->finished, finished);
    check_u64_eq(f->run.stats->rejected, rejected);
    check_u64_eq(f->run.stats->unservable, unservable);
    check_u64_eq(f->run.stats->aborted, aborted);
}

/* Every part that is not named is 0; parts add up to the shortfall. */
static void check_proof(const struct episode *e, uint64_t shortfall, const uint64_t parts[CAUSE_COUNT])
{
    check_u64_eq(e->proof.shortfall_units, shortfall);
    for (int c = 0; c < CAUSE_COUNT; c++) check_u64_eq((uint64_t)e->proof.parts_bytes[c], parts[c] * e->facts.unit_bytes);
}
static void check_proof_bytes(const struct episode *e, const uint64_t parts[CAUSE_COUNT])
{
    for (int c = 0; c < CAUSE_COUNT; c++) check_u64_eq((uint64_t)e->proof.parts_bytes[c], parts[c]);
}
#define PARTS(...) ((const uint64_t[CAUSE_COUNT]){__VA_ARGS__})

static void check_facts(const struct episode *e, uint64_t ask, uint64_t need, uint64_t free_units, uint64_t run,
                        uint64_t obtainable)
{
    check_u64_eq(e->facts.ask_units, ask);
    check_u64_eq(e->facts.need_units, need);
    check_u64_eq(e->facts.e_units, free_units);
    check_u64_eq(e->facts.r_units, run);
    check_u64_eq(e->facts.a_units, obtainable);
}

/* --- usage and states ----------------------------------------------------------------------- */

/* Ten prompts of 17 tokens with one output token: one step, 2 blocks of 16 each. Of 32 slots 17 are live
 * and 15 never filled. Pool: 40 blocks and the null block, 656 slots.
 *   usage = 10*32 / 640 = 0.5; live share of the usable pool = 170/640; usage / live share = 32/17. */
static void usage__17_tokens_in_blocks_of_16__is_32_17ths_of_live(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 41 * 16);
    for (int i = 0; i < 10; i++) add(f, 17, 1);
    engine_case_run(&f->c, &f->run);
    check_u64_eq(f->run.stats->steps, 1);
    check_states(f, 170 * 1000, 0, 150 * 1000, 0);
    check_u64_eq(engine_run_state(&f->run, STATE_OVERHEAD), 16 * 1000);
    check_u64_eq(engine_run_state(&f->run, STATE_FREE), 320 * 1000);
    char *json = engine_run_json(&f->run);
    check_str_has(json, "\"kv_usage\": 0.5,");
    check_str_has(json, "\"internal_fragmentation\": 0.46875,"); /* 150/320 */
    check_str_has(json, "\"utilization\": 0.25914634146341464,"); /* 170/656 */
    free(json);
}

/* Growth: prompt 3, 4 outputs, blocks of 4: final KV = 3 + 4 - 1 = 6. Slots filled in the steps: 3, 4, 5, 6.
 *   step 1: 1 block: 3 live, 1 reserved (it becomes 6 long)
 *   step 2: 1 block: 4 live
 *   step 3: 2 blocks: 5 live, 1 reserved, 2 internal
 *   step 4: 2 blocks: 6 live, 2 internal
 * live 18, reserved 2, internal 4. The last output token is never written. */
static void growth__prompt_3_output_4__states_by_step(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 10 * 4);
    f->c.config.geometry.block_tokens = 4;
    add(f, 3, 4);
    engine_case_run(&f->c, &f->run);
    check_u64_eq(f->run.stats->steps, 4);
    check_states(f, 18000, 2000, 4000, 0);
    check_u64_eq(f->run.stats->units_allocated, 2);
}

/* 1,025 slots of a buddy arena take a chunk of 2,048: 1,023 slots of rounding. One step: 1,025 live. */
static void buddy__1025_slots__rounds_to_2048(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "static", "reserve=oracle placement=buddy", 4096);
    f->c.config.max_model_len = 2000;
    add(f, 1025, 1);
    engine_case_run(&f->c, &f->run);
    check_states(f, 1025 * 1000, 0, 0, 1023 * 1000);
    check_u64_eq(engine_run_state(&f->run, STATE_FREE), 2048 * 1000);
}

/* Full reservations: max_model_len 100, prompt 10, one output token: 10 live and 90 that nobody fills. */
static void static_max__prompt_10__the_rest_is_internal(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "static", "reserve=max", 250);
    add(f, 10, 1);
    add(f, 10, 1);
    engine_case_run(&f->c, &f->run);
    check_states(f, 20000, 0, 180000, 0);
    check_u64_eq(engine_run_state(&f->run, STATE_FREE), 50000);
}

/* A window of 4 in blocks of 4, prompt 8 and 3 outputs. The query at position c reads tokens c-3 .. c.
 *   step 1 (c = 0): 8 filled, none is before the window of the query at 0: 8 live
 *   step 2 (c = 8): tokens before 8-3 = 5 are dead. Block 0 is given back whole, token 4 stays: 9 filled, blocks
 *     1 and 2: 1 dead, 4 live (5..8), of block 2 token 9 is reserved (final KV = 10), 10 and 11 internal
 *   step 3 (c = 9): tokens before 6: 4 and 5 dead; 10 filled: 6..9 live, 2 internal
 * live 8+4+4, dead 0+1+2, reserved 1, internal 2+2. */
static void window__of_4__tokens_before_it_are_dead(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 20 * 4);
    f->c.config.geometry.block_tokens = 4;
    f->c.config.geometry.window_tokens = 4;
    add(f, 8, 3);
    engine_case_run(&f->c, &f->run);
    check_states(f, 16000, 1000, 4000, 0);
    check_u64_eq(engine_run_state(&f->run, STATE_DEAD), 3000);
}

/* --- refusals -------------------------------------------------------------------------------- */

/* 15,728 slots hold seven reservations of 2,048; 15,728 - 7 * 2,048 = 1,392 are free, so the eighth is
 * refused: shortfall 2,048 - 1,392 = 656. The request needs 20 slots, so over-reservation covers all of it.
 * E = 1,392 < ask: not despite free memory; nothing of the shortfall is capacity: despite unused bytes.
 * The seven run for one step; the eighth starts in the second. Stranded is 0: U < ask is shortage. */
static void static_max__eighth_of_2048__refused_with_1392_free(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "static", "reserve=max", 15728);
    f->c.config.max_model_len = 2048;
    for (int i = 0; i < 8; i++) add(f, 20, 1);
    engine_case_run(&f->c, &f->run);
    check_u64_eq(f->run.episode_count, 1);
    const struct episode *e = &f->run.episodes[0];
    check_u64_eq(e->request_index, 7);
    check_facts(e, 2048, 20, 1392, 1392, 1392);
    check_proof(e, 656, PARTS([CAUSE_OVER_RESERVATION] = 656));
    assert_int_equal(e->class, CLASS_DESPITE_UNUSED);
    assert_int_equal(e->proof.primary, CAUSE_OVER_RESERVATION);
    check_u64_eq(e->attempts, 1);
    check_u64_eq(e->begin, 0);
    check_u64_eq(f->run.episode_end[0], 1000);
    check_u64_eq(f->run.stats->refusals.by_class[CLASS_DESPITE_UNUSED], 1);
    check_u64_eq((uint64_t)f->run.stats->refusals.byte_time_by_cause[CAUSE_OVER_RESERVATION], 656 * 1000);
    check_u64_eq(engine_run_state(&f->run, STATE_STRANDED), 0);
    check_u64_eq((uint64_t)f->run.accounting->saturated_time.time, 1000);
    check_u64_eq(f->run.stats->steps, 2);
    check_u64_eq(f->run.accounting->running_seqs_max, 7);
}

/* 16 tokens fill the only block; the 17th is refused, alone: the request outgrew the pool of 1 block. */
static void growth__16_and_one_more_in_one_block__outgrew_pool(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 2 * 16);
    add(f, 16, 2);
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 0, 0, 1, 0);
    check_u64_eq(f->run.stats->outgrew_pool, 1);
    check_str_eq(f->run.stats->unservable_example, "request 0 needs 2 of 1 blocks");
    check_u64_eq(f->run.episode_count, 1);
    assert_int_equal(f->run.episodes[0].facts.demand.kind, KV_GROWTH);
    /* ask 1, nothing free; the running request's 16 slots are live: all of it is capacity. */
    check_facts(&f->run.episodes[0], 1, 1, 0, 0, 0);
    check_proof(&f->run.episodes[0], 1, PARTS([CAUSE_CAPACITY] = 1));
    assert_int_equal(f->run.episodes[0].class, CLASS_CAPACITY);
}

/* 15 tokens and one more: the block takes it. */
static void growth__15_and_one_more_in_one_block__succeeds(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 2 * 16);
    add(f, 15, 2);
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 1, 0, 0, 0);
    check_u64_eq(f->run.episode_count, 0);
    check_states(f, 15000 + 16000, 1000, 0, 0);
}

/* Two requests of 16 tokens in 2 blocks. At 1000 the first asks for its 17th slot, is refused, preempts the second
 * and is served in the same pass: an episode of length 0. A pass that preempted admits nobody, and at 2000
 * the first has ended: the second is admitted without ever being refused. */
static void growth__grower_preempts__episode_of_length_0(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 3 * 16);
    add(f, 16, 2);
    add(f, 16, 2);
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 2, 0, 0, 0);
    check_u64_eq(f->run.stats->preemptions, 1);
    check_u64_eq(f->run.episode_count, 1);
    check_u64_eq(f->run.episodes[0].request_index, 0);
    check_u64_eq(f->run.episodes[0].begin, 1000);
    check_u64_eq(f->run.episode_end[0], 1000);
    check_u64_eq(f->run.stats->steps, 3);
    check_u64_eq(f->run.stats->ttft_ns.values[0], 1000); /* never reset by preemption */
    check_u64_eq(f->run.stats->ttft_ns.values[1], 1000);
}

/* Holes: 100 slots, oracle. A 30, B 20, C 30, D 20 fill it in that order; B and D end first.
 *   A: prompt 29, 2 outputs -> final 30. B: 20, 1 output. C: 29 and 2. D: 20, 1.
 *   After step 1 the holes are [30,50) and [80,100): 40 free, the longest 20.
 * E arrives with 25 (prompt 25, 1 output): E = 40 >= 25 but R = 20: refused despite free memory;
 *   shortfall 25 - 20 = 5, contiguity withholds 40 - 20 = 20, covers 5. Stranded: U = 40 >= 25: 40 - 20 = 20.
 * After step 2 all are gone, and E runs. One episode of one attempt, 1000 ns long. */
static void holes__25_asked_of_two_holes_of_20__contiguity(void **state)
{
    static const char *const options[] = {"reserve=oracle placement=first-fit",
                                          "reserve=oracle placement=best-fit"};
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        engine_case_init(&f->c, "static", options[i], 100);
        add(f, 29, 2);
        add(f, 20, 1);
        add(f, 29, 2);
        add(f, 20, 1);
        engine_case_add(&f->c, 500, 25, 1);
        engine_case_run(&f->c, &f->run);
        check_u64_eq(f->run.episode_count, 1);
        const struct episode *e = &f->run.episodes[0];
        check_facts(e, 25, 25, 40, 20, 20);
        check_proof(e, 5, PARTS([CAUSE_CONTIGUITY] = 5));
        assert_int_equal(e->class, CLASS_DESPITE_FREE);
        check_u64_eq(e->begin, 1000);
        check_u64_eq(f->run.episode_end[0], 2000);
        check_u64_eq(engine_run_state(&f->run, STATE_STRANDED), 20 * 1000);
        check_u64_eq(f->run.stats->head_refused_steps, 1);
        check_u64_eq((uint64_t)f->run.accounting->whole.head_refused_time, 1000);
        engine_run_release(&f->run);
    }
}

/* Where first-fit and best-fit part: holes of 20 at 30 and of 12 at 80 (D is 20 long, E 8 stays behind it).
 * 100 slots: A [0,30), B [30,50), C [50,80), D [80,92), E [92,100). B and D end after step 1, A, C and E after
 * step 3 (prompts 28, 28, 6 and 3 outputs). F asks 12, G 20, both one step, both come at 500:
 *   first-fit puts F at 30 (hole 20): G finds 12 and 8: refused, E = 20 >= 20: despite free memory
 *   best-fit puts F at 80 (hole 12): G fits at 30: no refusal. */
static void holes__12_then_20__first_fit_refuses_best_fit_does_not(void **state)
{
    static const char *const options[] = {"reserve=oracle placement=first-fit",
                                          "reserve=oracle placement=best-fit"};
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        engine_case_init(&f->c, "static", options[i], 100);
        add(f, 28, 3);
        add(f, 20, 1);
        add(f, 28, 3);
        add(f, 12, 1);
        add(f, 6, 3);
        engine_case_add(&f->c, 500, 12, 1);
        engine_case_add(&f->c, 500, 20, 1);
        engine_case_run(&f->c, &f->run);
        check_u64_eq(f->run.episode_count, i == 0);
        check_u64_eq(f->run.stats->refusals.by_class[CLASS_DESPITE_FREE], i == 0);
        if (i == 0) {
            check_facts(&f->run.episodes[0], 20, 20, 20, 12, 12);
            /* F is gone after its step: at 2000 [30,50) is free again. */
            check_u64_eq(f->run.episodes[0].begin, 1000);
            check_u64_eq(f->run.episode_end[0], 2000);
        }
        engine_run_release(&f->run);
    }
}

/* One long episode, many attempts: the first holds the only 2 blocks for 10 steps (prompt 16, 10 outputs: 25
 * tokens); the second is refused at 0, 1000, ..., 9000: 10 attempts, one episode, one request. */
static void episode__head_waits_10_steps__one_episode_of_10_attempts(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 3 * 16);
    add(f, 17, 10);
    add(f, 1, 1);
    f->c.config.max_model_len = 30;
    engine_case_run(&f->c, &f->run);
    check_u64_eq(f->run.episode_count, 1);
    check_u64_eq(f->run.stats->refusals.episodes, 1);
    check_u64_eq(f->run.stats->refusals.requests, 1);
    check_u64_eq(f->run.episodes[0].attempts, 10);
    check_u64_eq(f->run.episodes[0].begin, 0);
    check_u64_eq(f->run.episode_end[0], 10000);
    /* First attempt: 17 live, final 26: 9 reserved, 6 internal of 32. The shortfall of 1 block, 16 bytes, in that
     * proportion: 8.5, 4.5, 3, and what whole bytes leave is capacity. 17/32 is more than half. */
    check_proof_bytes(&f->run.episodes[0],
                      PARTS([CAUSE_CAPACITY] = 9, [CAUSE_RESERVATION] = 4, [CAUSE_INTERNAL] = 3));
    assert_int_equal(f->run.episodes[0].proof.primary, CAUSE_CAPACITY);
    check_u64_eq(f->run.episodes[0].time_in_class[CLASS_CAPACITY], 10000);
    check_u64_eq((uint64_t)f->run.accounting->saturated_time.time, 10000);
}

/* Expected: despite_unused, internal. Found: the division in whole units gave a shortfall of one block to capacity,
 * whatever the blocks held. 3 usable blocks of 512 hold a request of 17 tokens each (final 21); the fourth asks
 * for one: live 51, reserved 12, internal 3 * 491 = 1473 of 1536; of 512 bytes 512*12/1536 = 4, 512*1473/1536 =
 * 491, and 17 are left. */
static void proof__one_large_block_short__divided_by_bytes(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 4 * 512);
    f->c.config.geometry.block_tokens = 512;
    for (int i = 0; i < 4; i++) add(f, 17, 5);
    engine_case_run(&f->c, &f->run);
    check_u64_eq(f->run.episode_count, 1);
    check_proof_bytes(&f->run.episodes[0],
                      PARTS([CAUSE_CAPACITY] = 17, [CAUSE_RESERVATION] = 4, [CAUSE_INTERNAL] = 491));
    check_u64_eq(f->run.stats->refusals.by_class[CLASS_DESPITE_UNUSED], 1);
    check_u64_eq(f->run.stats->refusals.by_cause[CAUSE_INTERNAL], 1);
}

/* Expected: the first outgrows the pool, the second finishes. Found: among equal priorities and arrivals the first of the
 * running ones gave way, so that the two evicted each other for ever. 40 tokens and one more do not fit 34 blocks. */
static void priority__equal_requests_that_thrash__ends(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 35);
    f->c.config.geometry.block_tokens = 1;
    f->c.config.by_priority = true;
    f->c.config.whole_prompt_admission = false;
    f->c.config.long_prefill_token_threshold = 3;
    f->c.config.max_model_len = 41;
    add(f, 40, 1);
    add(f, 7, 24);
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 1, 0, 1, 0);
    check_u64_eq(f->run.stats->outgrew_pool, 1);
}

/* Expected: two verdicts. Found: v0 asked whether a request can start with what a window leaves of it, while admission
 * asks for the whole prompt: 39 tokens, 5 blocks of 8, and 3 of 7 that the watermark keeps back, of 6. */
static void v0__window_and_watermark__never_starts(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 60);
    f->c.config.scheduler = scheduler_find("v0");
    f->c.config.geometry.block_tokens = 8;
    f->c.config.geometry.watermark = 0.5;
    f->c.config.geometry.window_tokens = 10;
    f->c.config.max_model_len = 60;
    add(f, 39, 1);
    add(f, 39, 1);
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 0, 0, 2, 0);
    check_str_eq(f->run.stats->unservable_example, "request 0 needs 8 of 6 blocks");
    check_u64_eq(f->run.episode_count, 0);
}

/* Expected: a share of the window. Found: of the steps alone, with idle time left out. 10 usable blocks of 4, watermark
 * floor(0.3 * 11) = 3; a third request comes long after the others, so that the run lasts from 0 to 101 us. */
static void head_refused__idle_time_after__share_of_the_window(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 11 * 4);
    f->c.config.geometry.block_tokens = 4;
    f->c.config.geometry.watermark = 0.3;
    add(f, 16, 6);
    add(f, 16, 2);
    engine_case_add(&f->c, 100000, 1, 1);
    engine_case_run(&f->c, &f->run);
    check_u64_eq((uint64_t)f->run.accounting->whole.time, 101000);
    /* The first holds 4 blocks at 0, 5 from its 17th token on. The second asks 4: 6 or 5 are free, 3 or 2 beyond the
     * watermark: refused, with enough free, until the first has ended, at 6000. But its last two tokens, 20 and 21, take a
     * sixth block in the last step: 4 are free then, still the ask. */
    check_u64_eq((uint64_t)f->run.accounting->whole.head_refused_time, 6000);
}

/* 64 blocks and the null block, watermark 0.125 of 65: floor(8.125) = 8 blocks. The first takes 50; the second
 * asks 10: 14 are free, 6 beyond the watermark: refused despite free memory, shortfall 4, all of it watermark.
 * After the first ends nothing runs, and the watermark does not hold. */
static void watermark__10_of_14_free_with_8_kept_back__is_the_cause(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 65 * 16);
    f->c.config.geometry.watermark = 0.125;
    f->c.config.max_model_len = 1000;
    add(f, 800, 1);
    add(f, 160, 1);
    engine_case_run(&f->c, &f->run);
    check_u64_eq(f->run.episode_count, 1);
    check_facts(&f->run.episodes[0], 10, 10, 14, 14, 6);
    check_proof(&f->run.episodes[0], 4, PARTS([CAUSE_WATERMARK] = 4));
    assert_int_equal(f->run.episodes[0].class, CLASS_DESPITE_FREE);
    check_u64_eq(f->run.stats->refusals.by_cause[CAUSE_WATERMARK], 1);
}

/* 20 blocks, 96 tokens a step. The first (191 tokens) needs two steps and then holds 12 blocks. The second is 160
 * tokens: its whole prompt, 10 blocks, is asked for at once; 8 are free. A first chunk of 96 tokens would be 6
 * blocks and would have been obtained: granularity withholds 10 - 6 = 4 and covers the shortfall of 2. */
static void granularity__whole_prompt_asked_at_once__is_the_cause(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 21 * 16);
    f->c.config.max_num_batched_tokens = 96;
    f->c.config.max_model_len = 300;
    add(f, 191, 2);
    add(f, 160, 1);
    engine_case_run(&f->c, &f->run);
    check_u64_eq(f->run.episode_count, 1);
    const struct episode *e = &f->run.episodes[0];
    /* Step 1: 96 of 191 tokens; the budget is spent, the second is not tried. Step 2: 95 tokens, budget 1
     * left: tried, refused. */
    check_u64_eq(e->begin, 1000);
    check_facts(e, 10, 10, 8, 8, 8);
    check_u64_eq(e->facts.first_part_units, 6);
    check_proof(e, 2, PARTS([CAUSE_GRANULARITY] = 2));
    assert_int_equal(e->class, CLASS_DESPITE_UNUSED);
}

/* Buddy: 1,500 slots are chunks of 1024, 256, 128, 64, 16, 8, 4. The first takes the 1024. The second asks 300:
 * its chunk would be 512. E = 476 >= 300; the free run is 476 long, so no contiguity; the largest chunk is 256:
 * shortfall 44, R - A = 220 withheld by rounding. */
static void request_rounding__300_of_476_free__is_the_cause(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "static", "reserve=oracle placement=buddy", 1500);
    f->c.config.max_model_len = 1100;
    add(f, 1000, 1);
    add(f, 300, 1);
    engine_case_run(&f->c, &f->run);
    check_u64_eq(f->run.episode_count, 1);
    check_facts(&f->run.episodes[0], 300, 300, 476, 476, 256);
    check_proof(&f->run.episodes[0], 44, PARTS([CAUSE_REQUEST_ROUNDING] = 44));
    assert_int_equal(f->run.episodes[0].class, CLASS_DESPITE_FREE);
    check_u64_eq(engine_run_state(&f->run, STATE_STRANDED), (476 - 256) * 1000);
}

/* --- verdicts -------------------------------------------------------------------------------- */

/* 50 blocks of 16. The first is longer than max_model_len allows, the second has no prompt, the third needs
 * 57 blocks (900 tokens) and never fits: no episode. The fourth is served behind them. */
static void verdicts__at_the_head__rejected_and_unservable(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 51 * 16);
    f->c.config.max_model_len = 1000;
    add(f, 1000, 1);
    add(f, 0, 5);
    add(f, 900, 1);
    add(f, 16, 1);
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 1, 2, 1, 0);
    check_u64_eq(f->run.stats->outgrew_pool, 0);
    check_u64_eq(f->run.episode_count, 0);
    check_str_eq(f->run.stats->unservable_example, "request 2 needs 57 of 50 blocks");
}

/* Look-ahead belongs to the demand in the rules of 2026-08 and not in those of 2026-04: 32 tokens in 2 blocks
 * with one look-ahead slot need 3. */
static void verdicts__look_ahead__counts_where_the_rules_do(void **state)
{
    struct fixture *f = *state;
    for (int rules = 0; rules < 2; rules++) {
        engine_case_init(&f->c, "dynamic", NULL, 3 * 16);
        f->c.config.geometry.rules = rules ? KV_RULES_2026_04 : KV_RULES_2026_08;
        f->c.config.geometry.lookahead_tokens = 1;
        add(f, 32, 1);
        engine_case_run(&f->c, &f->run);
        check_verdicts(f, rules ? 1 : 0, 0, rules ? 0 : 1, 0);
        check_str_eq(f->run.stats->unservable_example, rules ? "" : "request 0 needs 3 of 2 blocks");
        engine_run_release(&f->run);
    }
}

/* Buddy in 1,500 slots: 1,025 are rounded to 2,048, and its largest chunk is 1,024. */
static void verdicts__buddy__rounded_ask_against_the_largest_chunk(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "static", "reserve=oracle placement=buddy", 1500);
    f->c.config.max_model_len = 1400;
    add(f, 1025, 1);
    add(f, 1024, 1);
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 1, 0, 1, 0);
    check_str_eq(f->run.stats->unservable_example, "request 0 needs 2048 of 1024 slots");
}

/* Expected: the request behind one that outgrew the pool is served. Found: v0's pass ended with the verdict, nothing
 * was scheduled, and the run was taken for one that cannot go on. 2 blocks: the first needs a third for its 33rd
 * token; the second waits for one block. */
static void v0__outgrown_before_a_waiting_one__the_other_is_served(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 3 * 16);
    f->c.config.scheduler = scheduler_find("v0");
    add(f, 32, 5);
    add(f, 16, 1);
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 1, 0, 1, 0);
    check_str_eq(f->run.stats->unservable_example, "request 0 needs 3 of 2 blocks");
    check_u64_eq(f->run.stats->steps, 2); /* the verdict itself takes no time */
}

/* Expected: a verdict. Found: v0 left look-ahead out when it asked whether a request can ever start, and waited
 * for ever. 10 usable blocks of 11, watermark floor(0.3 * 11) = 3, which v0 always keeps: 112 tokens take 7,
 * with one look-ahead slot 8. */
static void v0__look_ahead_and_watermark__never_starts(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 11 * 16);
    f->c.config.scheduler = scheduler_find("v0");
    f->c.config.geometry.watermark = 0.3;
    f->c.config.geometry.lookahead_tokens = 1;
    f->c.config.max_model_len = 200;
    add(f, 112, 1);
    add(f, 111, 1);
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 1, 0, 1, 0);
    check_str_eq(f->run.stats->unservable_example, "request 0 needs 11 of 10 blocks");
}

/* Expected: both run. Found: the reserving scheduler compared what jemalloc takes with its padding with what it can
 * give without, and refused for ever. 48 slots of 512 bytes; a region of 29 slots, 14,848 bytes, is of the class of
 * 16 KiB and takes a page more: 40 slots, while the largest ask that can succeed is 32. */
static void reserve__jemalloc_region_with_padding__starts(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "jemalloc", "reserve=declared", 48 * 512);
    f->c.config.geometry.bytes_per_token = 512;
    f->c.config.scheduler = scheduler_find("reserve");
    f->c.config.max_model_len = 29;
    add(f, 24, 5);
    add(f, 24, 5);
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 2, 0, 0, 0);
}

/* O = 0 is a prefill alone: L slots, one step, no TTFT. O beyond max_model_len - L is cut and counted. */
static void lengths__no_output_and_too_much__prefill_alone_and_cut(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 20 * 16);
    add(f, 20, 0);
    add(f, 90, 50); /* max_model_len 100: 10 outputs, 99 slots filled at the end */
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 2, 0, 0, 0);
    check_u64_eq(f->run.stats->length_capped, 1);
    check_u64_eq(f->run.stats->ttft_ns.count, 1);
    check_u64_eq(f->run.stats->e2e_ns.count, 1);
    check_u64_eq((uint64_t)f->run.stats->e2e_ns.sum, 10000);
    check_u64_eq(f->run.stats->output_tokens, 10);
}

/* The client of the only request leaves at 1500: it takes effect at the pass at 2000. Nothing is held from then
 * to 10000, where the next request comes. Prompt 16 and 10 outputs: 16 live in step 1, 17 in step 2; then
 * 16 in the last step. */
static void abort__of_the_only_request__its_memory_is_free_until_the_next(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 5 * 16);
    engine_case_add(&f->c, 0, 16, 10)->abort_ns = 1500;
    engine_case_add(&f->c, 10000, 16, 1);
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 1, 0, 0, 1);
    check_u64_eq(f->run.stats->steps, 3);
    check_u64_eq((uint64_t)f->run.accounting->whole.time, 11000);
    check_u64_eq(engine_run_state(&f->run, STATE_LIVE), (16 + 17 + 16) * 1000);
    check_u64_eq((uint64_t)f->run.accounting->whole.running_time, 3000);
}

/* A waiting client leaves: its episode ends then. One is refused from 0 on and leaves at 2500 (pass at 3000). */
static void abort__while_waiting__closes_the_episode(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 3 * 16);
    add(f, 17, 10);
    engine_case_add(&f->c, 0, 17, 1)->abort_ns = 2500;
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 1, 0, 0, 1);
    check_u64_eq(f->run.episode_count, 1);
    check_u64_eq(f->run.episodes[0].attempts, 3);
    check_u64_eq(f->run.episode_end[0], 3000);
}

/* --- samples ---------------------------------------------------------------------------------- */

/* n = 2, prompt 5, 3 outputs, blocks of 4: final KV = 7 each.
 *   step 1: the prompt: blocks p0 p1: 5 live, of p1 2 reserved (tokens 5 and 6), 1 internal (7). Then the fork:
 *     both share p0 and p1.
 *   step 2: both write token 5: the first copies p1, the last holder keeps it: 3 blocks. Tokens: p0 4 once,
 *     then 2 in each: 8 live; token 6 of each reserved: 2; token 7: 2 internal
 *   step 3: 3 in each: 10 live, 2 internal
 * live 23, reserved 4, internal 5; referenced: 2, 4, 4 blocks; held 2, 3, 3: saving 1 - 8/10. */
static void samples__2__fork_and_copy_on_write(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 10 * 4);
    f->c.config.geometry.block_tokens = 4;
    engine_case_add(&f->c, 0, 5, 3)->samples = 2;
    engine_case_run(&f->c, &f->run);
    check_u64_eq(f->run.stats->steps, 3);
    check_u64_eq(f->run.stats->copies, 1);
    check_u64_eq(f->run.stats->units_allocated, 3);
    check_states(f, 23000, 4000, 5000, 0);
    check_u64_eq((uint64_t)f->run.accounting->whole.referenced_byte_time, 10 * 4 * 1000);
    check_u64_eq((uint64_t)f->run.accounting->whole.held_byte_time, 8 * 4 * 1000);
    check_u64_eq(f->run.stats->output_tokens, 6);
    check_u64_eq(f->run.accounting->running_seqs_max, 2);
    char *json = engine_run_json(&f->run);
    check_str_has(json, "\"saving_by_sharing\": 0.2,");
    free(json);
}

/* n = 4, prompt 6, blocks of 4: three copies of the partial block, the fourth keeps it: 2 + 3 blocks.
 * Prefill of 6 tokens counts 6 against the budget, a decode step 4. */
static void samples__4__three_copies(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "prefix", NULL, 10 * 4);
    f->c.config.geometry.block_tokens = 4;
    engine_case_add(&f->c, 0, 6, 2)->samples = 4;
    engine_case_run(&f->c, &f->run);
    check_u64_eq(f->run.stats->copies, 3);
    check_u64_eq(f->run.stats->units_allocated, 5);
    check_u64_eq(f->run.stats->scheduled_tokens, 6 + 4);
    /* Step 1: 6 live, token 6 reserved, token 7 internal. Step 2: 4 + 4*3 live, 4 internal. */
    check_states(f, 22000, 1000, 5000, 0);
}

/* The samples of a contiguous policy have a region each from admission on, filled only after the fork. n = 2,
 * prompt 5, 2 outputs: final KV 6 each. Step 1: 5 live, 1 + 6 reserved. Step 2: 12 live. */
static void samples__2_in_regions__reserved_until_the_fork(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "static", "reserve=oracle", 100);
    engine_case_add(&f->c, 0, 5, 2)->samples = 2;
    engine_case_run(&f->c, &f->run);
    check_states(f, 17000, 7000, 0, 0);
}

/* More samples than max_num_seqs can never run. */
static void samples__more_than_max_num_seqs__unservable(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 50 * 16);
    f->c.config.max_num_seqs = 3;
    engine_case_add(&f->c, 0, 5, 2)->samples = 4;
    engine_case_add(&f->c, 0, 5, 2)->samples = 3;
    engine_case_run(&f->c, &f->run);
    check_verdicts(f, 1, 0, 1, 0);
    check_str_eq(f->run.stats->unservable_example, "request 0 needs 4 of 3 sequences");
}

/* --- latency and the window -------------------------------------------------------------------- */

/* Budget 100 tokens a step. A (at 0: prompt 150, 3 outputs), B (at 500: 60, 2), C (at 2500: 10, 1).
 *   0    A 100
 *   1000 A 50 -> its first token at 2000; B gets the 50 left
 *   2000 A 1 (second at 3000); B 10 (first at 3000)
 *   3000 A 1 (third at 4000: ends); B 1 (second at 4000: ends); C 10 (first and only at 4000)
 * TTFT 2000, 2500, 1500; TPOT A (4000-2000)/2 = 1000, B 1000; E2E 4000, 3500, 1500. */
static void latency__three_requests__by_hand(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 50 * 16);
    f->c.config.max_num_batched_tokens = 100;
    f->c.config.max_model_len = 200;
    add(f, 150, 3);
    engine_case_add(&f->c, 500, 60, 2);
    engine_case_add(&f->c, 2500, 10, 1);
    engine_case_run(&f->c, &f->run);
    struct engine_stats *s = f->run.stats;
    check_u64_eq(s->steps, 4);
    check_u64_eq(s->simulated_ns, 4000);
    check_u64_eq((uint64_t)s->ttft_ns.sum, 2000 + 2500 + 1500);
    check_u64_eq(quantiles_at(&s->ttft_ns, 50), 2000);
    check_u64_eq(quantiles_at(&s->ttft_ns, 99), 2500);
    check_u64_eq(s->tpot_ns.count, 2);
    check_u64_eq((uint64_t)s->tpot_ns.sum, 2000);
    check_u64_eq((uint64_t)s->e2e_ns.sum, 4000 + 3500 + 1500);
    check_u64_eq(s->output_tokens, 6);
}

static void count_rejected(void *context, const struct step_view *view)
{
    *(uint64_t *)context += view->rejected_count;
}

/* Step lines observe: a request that is rejected at 5000 while nothing runs takes no step, and the next, at 5500,
 * starts at once and ends at 6500. The rejection is told with that step. */
static void latency__step_lines_written__same_times(void **state)
{
    struct fixture *f = *state;
    for (int told = 0; told < 2; told++) {
        uint64_t rejected = 0;
        engine_case_init(&f->c, "dynamic", NULL, 5 * 16);
        if (told) {
            f->c.config.hooks.step = count_rejected;
            f->c.config.hooks.step_context = &rejected;
        }
        add(f, 16, 1);
        engine_case_add(&f->c, 5000, 100, 1);
        engine_case_add(&f->c, 5500, 16, 1);
        engine_case_run(&f->c, &f->run);
        check_u64_eq(f->run.stats->simulated_ns, 6500);
        check_u64_eq(f->run.stats->steps, 2);
        check_u64_eq((uint64_t)f->run.stats->ttft_ns.sum, 2000);
        check_u64_eq(rejected, told ? 1 : 0);
        engine_run_release(&f->run);
    }
}

/* The window [2000, 4000) of a request of 5 steps (prompt 16, 5 outputs, blocks of 16): steps 3 and 4 are in it,
 * with 18 and 19 tokens in 2 blocks. Tokens that come out at 3000 and 4000 count, the one at 2000 does not. The
 * request arrived before the window: no latency of it counts. */
static void window__of_two_steps__only_they_count(void **state)
{
    struct fixture *f = *state;
    engine_case_init(&f->c, "dynamic", NULL, 5 * 16);
    f->c.config.window_begin = 2000;
    f->c.config.window_end = 4000;
    add(f, 16, 5);
    engine_case_run(&f->c, &f->run);
    struct engine_stats *s = f->run.stats;
    check_u64_eq(s->finished, 1); /* verdicts are of the whole run */
    check_u64_eq((uint64_t)f->run.accounting->whole.time, 2000);
    check_u64_eq(engine_run_state(&f->run, STATE_LIVE), (18 + 19) * 1000);
    check_u64_eq(s->output_tokens, 2);
    check_u64_eq(s->ttft_ns.count, 0);
    check_u64_eq(s->window_steps, 2);
}

/* --- serial ------------------------------------------------------------------------------------ */

/* One after another in no time: averages weight by served requests. 10 slots of 1; "final" lengths 4 (3 + 2 - 1),
 * then one that never fits (30 in 10), then 8. Window: requests 1 and 2: only the third is in it. */
static void serial__unserved_request_between__weighs_nothing(void **state)
{
    struct fixture *f = *state;
    for (int windowed = 0; windowed < 2; windowed++) {
        engine_case_init(&f->c, "ideal", NULL, 10);
        f->c.config.scheduler = scheduler_find("serial");
        if (windowed) f->c.config.window_begin = 1;
        add(f, 3, 2);
        add(f, 30, 1);
        add(f, 8, 1);
        engine_case_run(&f->c, &f->run);
        check_verdicts(f, 2, 0, 1, 0);
        check_u64_eq((uint64_t)f->run.accounting->whole.time, windowed ? 1 : 2);
        check_u64_eq(engine_run_state(&f->run, STATE_LIVE), windowed ? 8 : 12);
        check_u64_eq(f->run.stats->admitted_tokens, windowed ? 8 : 11);
        engine_run_release(&f->run);
    }
}

/* --- prefix caching ----------------------------------------------------------------------------- */

/* Blocks of 4, the same 10 tokens twice, one after the other; then 8 of them. The infinite cache hits 10 and 8.
 *   second: 2 whole blocks: 8 hit, 2 lost to granularity
 *   third: both blocks are there, but one token must be computed: 4 hit, 4 lost to the last token. */
static void lost_sharing__10_10_and_8_tokens__granularity_and_last_token(void **state)
{
    static const struct wl_span ten = {.space = 0, .first = 7000, .count = 10};
    static const struct wl_span eight = {.space = 0, .first = 7000, .count = 8};
    struct fixture *f = *state;
    engine_case_init(&f->c, "prefix", NULL, 20 * 4);
    f->c.config.geometry.block_tokens = 4;
    for (int i = 0; i < 3; i++) {
        struct wl_request *r = engine_case_add(&f->c, 10000 * (uint64_t)i, i == 2 ? 8 : 10, 1);
        r->has_content = true;
        r->prompt = i == 2 ? &eight : &ten;
        r->prompt_spans = 1;
    }
    engine_case_run(&f->c, &f->run);
    const struct engine_stats *s = f->run.stats;
    check_u64_eq(s->admitted_tokens, 28);
    check_u64_eq(s->admitted_hit_tokens, 8 + 4);
    check_u64_eq(s->admitted_prompt_blocks, 2 + 2 + 2);
    check_u64_eq(s->admitted_hit_blocks, 2 + 1);
    check_u64_eq(s->lost_to_granularity, 2);
    check_u64_eq(s->lost_to_last_token, 4);
    check_u64_eq(s->lost_to_eviction, 0);
}

/* 3 blocks of 4. Eight tokens are cached; nine others evict: 3 blocks, all of them. Then the first again: 4
 * would have been hit but for eviction, 4 go to the last token. */
static void lost_sharing__evicted_between__to_eviction(void **state)
{
    static const struct wl_span first = {.space = 0, .first = 7000, .count = 8};
    static const struct wl_span other = {.space = 0, .first = 9000, .count = 9};
    struct fixture *f = *state;
    engine_case_init(&f->c, "prefix", NULL, 4 * 4);
    f->c.config.geometry.block_tokens = 4;
    for (int i = 0; i < 3; i++) {
        struct wl_request *r = engine_case_add(&f->c, 10000 * (uint64_t)i, i == 1 ? 9 : 8, 1);
        r->has_content = true;
        r->prompt = i == 1 ? &other : &first;
        r->prompt_spans = 1;
    }
    engine_case_run(&f->c, &f->run);
    const struct engine_stats *s = f->run.stats;
    check_u64_eq(s->admitted_hit_tokens, 0);
    check_u64_eq(s->lost_to_last_token, 4);
    check_u64_eq(s->lost_to_eviction, 4);
    check_u64_eq(s->evictions, 2 + 1); /* the other's unkeyed third block goes to the head of the queue */
}

/* Two requests share a block under a window: what is dead for one may be read by the other, and a slot that is
 * dead for both is dead once. Blocks of 4, window 3. Both prompts are the same 6 tokens, B comes a step later.
 *   step 1: A prefill (c = 0): 6 live of 8, tokens 6 and 7 reserved (final KV 6 + 6 - 1 = 11).
 *   step 2: A c = 6: tokens before 4 are dead: block 0 is given back, cached. B hits block 0 (tokens 0..3), c = 4:
 *     reads 2.. : dead for B 0 and 1. A: block 1: tokens 4..6 live, 7 reserved. B: block 0 2 dead, 2 live; its own
 *     block 1: 4 and 5 live, 6 and 7 reserved.
 * The walk compares every step with the sums; here the first two steps by hand. */
static void window_and_sharing__two_holders__dead_only_for_both(void **state)
{
    static const struct wl_span prompt = {.space = 0, .first = 7000, .count = 6};
    struct fixture *f = *state;
    engine_case_init(&f->c, "prefix", NULL, 20 * 4);
    f->c.config.geometry.block_tokens = 4;
    f->c.config.geometry.window_tokens = 3;
    f->c.config.window_end = 2000;
    for (int i = 0; i < 2; i++) {
        struct wl_request *r = engine_case_add(&f->c, 500 * (uint64_t)i, 6, 6);
        r->has_content = true;
        r->prompt = &prompt;
        r->prompt_spans = 1;
    }
    engine_case_run(&f->c, &f->run);
    check_u64_eq(engine_run_state(&f->run, STATE_DEAD), 2000);
    check_states(f, (6 + 3 + 2 + 2) * 1000, (2 + 1 + 2) * 1000, 0, 0);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(usage__17_tokens_in_blocks_of_16__is_32_17ths_of_live),
        CASE(growth__prompt_3_output_4__states_by_step),
        CASE(buddy__1025_slots__rounds_to_2048),
        CASE(static_max__prompt_10__the_rest_is_internal),
        CASE(window__of_4__tokens_before_it_are_dead),
        CASE(static_max__eighth_of_2048__refused_with_1392_free),
        CASE(growth__16_and_one_more_in_one_block__outgrew_pool),
        CASE(growth__15_and_one_more_in_one_block__succeeds),
        CASE(growth__grower_preempts__episode_of_length_0),
        CASE(holes__25_asked_of_two_holes_of_20__contiguity),
        CASE(holes__12_then_20__first_fit_refuses_best_fit_does_not),
        CASE(episode__head_waits_10_steps__one_episode_of_10_attempts),
        CASE(watermark__10_of_14_free_with_8_kept_back__is_the_cause),
        CASE(granularity__whole_prompt_asked_at_once__is_the_cause),
        CASE(request_rounding__300_of_476_free__is_the_cause),
        CASE(verdicts__at_the_head__rejected_and_unservable),
        CASE(verdicts__look_ahead__counts_where_the_rules_do),
        CASE(verdicts__buddy__rounded_ask_against_the_largest_chunk),
        CASE(proof__one_large_block_short__divided_by_bytes),
        CASE(priority__equal_requests_that_thrash__ends),
        CASE(v0__window_and_watermark__never_starts),
        CASE(head_refused__idle_time_after__share_of_the_window),
        CASE(v0__outgrown_before_a_waiting_one__the_other_is_served),
        CASE(v0__look_ahead_and_watermark__never_starts),
        CASE(reserve__jemalloc_region_with_padding__starts),
        CASE(lengths__no_output_and_too_much__prefill_alone_and_cut),
        CASE(abort__of_the_only_request__its_memory_is_free_until_the_next),
        CASE(abort__while_waiting__closes_the_episode),
        CASE(samples__2__fork_and_copy_on_write),
        CASE(samples__4__three_copies),
        CASE(samples__2_in_regions__reserved_until_the_fork),
        CASE(samples__more_than_max_num_seqs__unservable),
        CASE(latency__three_requests__by_hand),
        CASE(latency__step_lines_written__same_times),
        CASE(window__of_two_steps__only_they_count),
        CASE(serial__unserved_request_between__weighs_nothing),
        CASE(lost_sharing__10_10_and_8_tokens__granularity_and_last_token),
        CASE(lost_sharing__evicted_between__to_eviction),
        CASE(window_and_sharing__two_holders__dead_only_for_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
