/* Orders that know time and the waiting queue, under the engine: small cases whose figures are worked out beside them. Blocks of
 * 16 tokens, a token of a byte, steps of 1000 ns; one block of the pool is the null block. */
#include "tests/check.h"

#include "sim/engine_core.h"
#include "tests/engine_case.h"

/* --- pins ------------------------------------------------------------------------------------ */

/* Four blocks. The first request has 33 tokens: its two full blocks stay pinned from its end at 1000 to 1000 + 5000; the third and
 * the fourth are free. The second, of 40 tokens, needs three. */
static void two_requests(struct engine_case *c, uint64_t second_arrival_ns)
{
    engine_case_init(c, "prefix", "evict=ttl ttl-ns=5000", 5 * 16);
    engine_case_add(c, 0, 33, 1);
    engine_case_add(c, second_arrival_ns, 40, 1);
}

/* Refused at 1000 for one block, and nothing can happen until the pins end: 6000. Its step ends at 7000. */
static void pins__nothing_else_runs__request_waits_for_their_end(void **state)
{
    static struct engine_case c;
    static struct engine_run run;
    (void)state;
    two_requests(&c, 1000);
    engine_case_run(&c, &run);
    check_u64_eq(run.stats->finished, 2);
    check_u64_eq(run.stats->steps, 3); /* one of them waits */
    check_u64_eq(run.stats->simulated_ns, 7000);
    check_u64_eq((uint64_t)run.stats->ttft_ns.sum, 1000 + 6000);
    check_u64_eq(run.episode_count, 1);
    check_u64_eq(run.episodes[0].begin, 1000);
    check_u64_eq(run.episode_end[0], 6000);
    check_u64_eq(run.episodes[0].proof.primary, CAUSE_PINNED);
    check_u64_eq((uint64_t)run.episodes[0].proof.parts_bytes[CAUSE_PINNED], 16);
    check_u64_eq(run.episodes[0].class, CLASS_DESPITE_UNUSED);
    check_u64_eq(run.episodes[0].facts.ask_units, 3);
    check_u64_eq(run.episodes[0].facts.a_units, 2);
    check_u64_eq(engine_run_state(&run, STATE_CACHED_PINNED), 32 * 5000);
    check_u64_eq(engine_run_state(&run, STATE_CACHED), 16 * 1000); /* one was evicted, one is left, in the last step */
    check_u64_eq(run.stats->evictions, 1);
    engine_run_release(&run);
}

/* Nobody is there from 1000 to 20000: pinned until 6000, then cached. */
static void pins__end_while_nobody_is_there__states_change_then(void **state)
{
    static struct engine_case c;
    static struct engine_run run;
    (void)state;
    two_requests(&c, 20000);
    engine_case_run(&c, &run);
    check_u64_eq(run.episode_count, 0);
    check_u64_eq(run.stats->simulated_ns, 21000);
    check_u64_eq(engine_run_state(&run, STATE_CACHED_PINNED), 32 * 5000);
    check_u64_eq(engine_run_state(&run, STATE_CACHED), 32 * 14000 + 16 * 1000);
    engine_run_release(&run);
}

/* A third of the same content as the first, at 4000: it hits both pinned blocks and takes one of the two free ones, gives them back at
 * 5000, and the pins last until 10000. So the second, refused before and after, starts then. */
static void pins__hit__their_time_starts_anew(void **state)
{
    static struct engine_case c;
    static struct engine_run run;
    static const struct wl_span content[] = {{.space = 0, .first = 1000000, .count = 33}};
    (void)state;
    engine_case_init(&c, "prefix", "evict=ttl ttl-ns=5000", 5 * 16);
    for (int i = 0; i < 2; i++) {
        struct wl_request *r = engine_case_add(&c, i == 0 ? 0 : 4000, 33, 1);
        r->has_content = true;
        r->prompt = content;
        r->prompt_spans = 1;
    }
    engine_case_add(&c, 4000, 40, 1);
    engine_case_run(&c, &run);
    check_u64_eq(run.stats->finished, 3);
    check_u64_eq(run.stats->admitted_hit_tokens, 32);
    check_u64_eq(run.stats->simulated_ns, 11000);
    check_u64_eq((uint64_t)run.stats->ttft_ns.sum, 1000 + 1000 + 7000);
    /* 1000 to 4000 and 5000 to 10000; between, the request holds them. */
    check_u64_eq(engine_run_state(&run, STATE_CACHED_PINNED), 32 * 3000 + 32 * 5000);
    engine_run_release(&run);
}

/* The cap: one of four blocks. The tail, given back first, loses its pin to the beginning; the second request evicts it. */
static void pins__above_the_largest_share__first_to_end_ends(void **state)
{
    static struct engine_case c;
    static struct engine_run run;
    (void)state;
    two_requests(&c, 1000);
    engine_case_init(&c, "prefix", "evict=ttl ttl-ns=5000 ttl-max-percent=25", 5 * 16);
    engine_case_add(&c, 0, 33, 1);
    engine_case_add(&c, 1000, 40, 1);
    engine_case_run(&c, &run);
    check_u64_eq(run.episode_count, 0);
    check_u64_eq(run.stats->evictions, 1);
    check_u64_eq(run.stats->simulated_ns, 2000);
    check_u64_eq(engine_run_state(&run, STATE_CACHED_PINNED), 16 * 1000);
    engine_run_release(&run);
}

/* Less urgent requests than --ttl-priority pin nothing. */
static void pins__request_is_not_urgent__none(void **state)
{
    static struct engine_case c;
    static struct engine_run run;
    (void)state;
    two_requests(&c, 1000);
    c.requests[0].priority = 1;
    engine_case_run(&c, &run);
    check_u64_eq(run.episode_count, 0);
    check_u64_eq(engine_run_state(&run, STATE_CACHED_PINNED), 0);
    engine_run_release(&run);
}

/* A lone request that grows into pinned memory waits for it and is not preempted: 33 tokens and 15 outputs fill three blocks, the
 * next token needs a fourth. Here the pool has five: two pinned by the first request until 6000, and three. It comes at 1000,
 * computes its prompt until 2000 and a token each 1000 ns from then on: tokens 34 to 48 until 17000 would do, so pins that last
 * until 40000 are met: outputs 1 to 16 are there at 2000, 3000, ..., 17000; the 16th is token 49, whose slot the pass at 17000 asks
 * for. It waits until 1000 + 39000; then the last, 17th, is there at 41000. */
static void pins__lone_request_grows__waits(void **state)
{
    static struct engine_case c;
    static struct engine_run run;
    (void)state;
    engine_case_init(&c, "prefix", "evict=ttl ttl-ns=39000", 6 * 16);
    engine_case_add(&c, 0, 33, 1);
    engine_case_add(&c, 1000, 33, 17);
    engine_case_run(&c, &run);
    check_u64_eq(run.stats->finished, 2);
    check_u64_eq(run.stats->preemptions, 0);
    check_u64_eq(run.episode_count, 1);
    check_u64_eq(run.episodes[0].begin, 17000);
    check_u64_eq(run.episodes[0].facts.demand.kind, KV_GROWTH);
    check_u64_eq(run.episodes[0].proof.primary, CAUSE_PINNED);
    check_u64_eq(run.episode_end[0], 40000);
    check_u64_eq(run.stats->simulated_ns, 41000);
    engine_run_release(&run);
}

/* --- the waiting queue ------------------------------------------------------------------------ */

static void add_content(struct engine_case *c, uint64_t prompt_tokens, const struct wl_span *content)
{
    struct wl_request *r = engine_case_add(c, 0, prompt_tokens, 1);
    r->has_content = true;
    r->prompt = content;
    r->prompt_spans = 1;
}

/* Five blocks, one request at a time: A and B leave a block each, C needs four, so one of the two goes; D has A's content. */
static uint64_t hits_of_d(const char *options)
{
    static struct engine_case c;
    static struct engine_run run;
    static const struct wl_span a[] = {{.space = 0, .first = 1000000, .count = 17}};
    static const struct wl_span b[] = {{.space = 0, .first = 2000000, .count = 17}};
    engine_case_init(&c, "prefix", options, 6 * 16);
    c.config.max_num_seqs = 1;
    add_content(&c, 17, a);
    add_content(&c, 17, b);
    engine_case_add(&c, 0, 60, 1);
    add_content(&c, 17, a);
    engine_case_run(&c, &run);
    check_u64_eq(run.stats->finished, 4);
    uint64_t hits = run.stats->admitted_hit_tokens;
    check_u64_eq(run.stats->evictions, 2 - hits / 16); /* C leaves one block without a key, and D lacks one or two */
    engine_run_release(&run);
    return hits;
}

static void queue_aware__waiting_request_has_the_content__stays(void **state)
{
    (void)state;
    check_u64_eq(hits_of_d("evict=lru"), 0);
    check_u64_eq(hits_of_d("evict=queue-aware queue-depth=1"), 0); /* C itself is the first of the queue */
    check_u64_eq(hits_of_d("evict=queue-aware queue-depth=2"), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pins__nothing_else_runs__request_waits_for_their_end),
        cmocka_unit_test(pins__end_while_nobody_is_there__states_change_then),
        cmocka_unit_test(pins__hit__their_time_starts_anew),
        cmocka_unit_test(pins__above_the_largest_share__first_to_end_ends),
        cmocka_unit_test(pins__request_is_not_urgent__none),
        cmocka_unit_test(pins__lone_request_grows__waits),
        cmocka_unit_test(queue_aware__waiting_request_has_the_content__stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
