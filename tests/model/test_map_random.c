/* Maps of the pool: at every look at random small runs under every policy their sums are the accounting's states, and what
 * they say of blocks agrees with the tables; two small pools, unit by unit. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_core.h"
#include "sim/accounting_check.h"
#include "sim/memory_map.h"
#include "tests/model/engine_random.h"

struct watch {
    struct memory_map map;
    uint64_t seed, looks;
    const struct engine_variant *v;
};

#define REQUIRE(w, e, holds)                                                                                            \
    do {                                                                                                               \
        if (!(holds))                                                                                                  \
            fail_msg("seed %llu, %s %s, step %llu: does not hold: %s", (unsigned long long)(w)->seed, (w)->v->policy,   \
                     (w)->v->options ? (w)->v->options : "", (unsigned long long)(e)->stats.steps, #holds);             \
    } while (0)

static void check_sums(const struct watch *w, const struct engine *e)
{
    const struct memory_map *m = &w->map;
    const uint64_t *states = e->accounting.now.state_bytes;
    uint64_t token = e->config.geometry.bytes_per_token, unit = e->policy->unit_bytes, kinds[UNIT_KINDS] = {0};
    uint64_t live = 0, dead = 0, reserved = 0, internal = 0, rounding = 0;
    for (uint64_t i = 0; i < m->count; i++) {
        kinds[m->units[i].kind]++;
        live += m->units[i].live;
        dead += m->units[i].dead;
        reserved += m->units[i].reserved;
        internal += m->units[i].internal;
        rounding += m->units[i].rounding;
    }
    REQUIRE(w, e, live * token == states[STATE_LIVE]);
    REQUIRE(w, e, dead * token == states[STATE_DEAD]);
    REQUIRE(w, e, reserved * token == states[STATE_RESERVED]);
    REQUIRE(w, e, internal * token == states[STATE_INTERNAL]);
    /* jemalloc's pages are no whole slots: what it adds between regions has no slot of its own. */
    if (strcmp(e->policy->ops->name, "jemalloc") == 0) return;
    uint64_t remainder = e->config.geometry.pool_bytes - m->count * unit;
    REQUIRE(w, e, rounding * token == states[STATE_ROUNDING]);
    REQUIRE(w, e, kinds[UNIT_CACHED] * unit == states[STATE_CACHED]);
    REQUIRE(w, e, kinds[UNIT_PINNED] * unit == states[STATE_CACHED_PINNED]);
    REQUIRE(w, e, kinds[UNIT_FREE] * unit == states[STATE_FREE] + states[STATE_STRANDED]);
    REQUIRE(w, e, kinds[UNIT_OVERHEAD] * unit + remainder == states[STATE_OVERHEAD]);
}

/* Holders are the entries of tables; what nobody holds is in the queue. */
static void check_blocks(const struct watch *w, const struct engine *e)
{
    const struct memory_map *m = &w->map;
    uint32_t *holders = calloc(m->count, sizeof *holders);
    assert_non_null(holders);
    for (const struct sim_request *r = e->running.head; r; r = r->next) {
        for (uint32_t s = 0; s < r->kv.samples; s++) {
            uint32_t count;
            const kv_block *table = e->policy->ops->table(e->policy, r->seqs[s], &count);
            for (uint32_t i = 0; i < count; i++) {
                if (table[i] > 0) holders[table[i] - m->first_number]++;
            }
        }
    }
    uint64_t unheld = 0;
    for (uint64_t i = 0; i < m->count; i++) {
        REQUIRE(w, e, holders[i] == m->units[i].holders);
        REQUIRE(w, e, (holders[i] > 0) == (m->units[i].kind == UNIT_HELD));
        unheld += holders[i] == 0 && i + m->first_number > 0;
    }
    free(holders);
    REQUIRE(w, e, unheld == m->queue_count);
}

static void on_look(void *context, struct engine *e, enum look_kind kind)
{
    struct watch *w = context;
    struct err err = {0};
    (void)kind;
    if (!w->map.units) assert_int_equal(memory_map_init(&w->map, e, &err), 0);
    memory_map_take(&w->map, e);
    w->looks++;
    check_sums(w, e);
    if (e->policy->ops->table) check_blocks(w, e);
}

static void map__every_look_at_random_runs__sums_are_the_states(void **state)
{
    const struct engine_variant *v = *state;
    static struct engine_random random;
    static struct engine_run run;
    for (uint64_t i = 0; i < ENGINE_RANDOM_RUNS / 4; i++) {
        struct watch w = {.v = v};
        w.seed = 31000 + i * ENGINE_VARIANTS + (uint64_t)(v - engine_variants);
        engine_random_case(w.seed, v, &random);
        random.c.config.check_every = 0;
        random.c.config.hooks.look = on_look;
        random.c.config.hooks.look_context = &w;
        engine_case_run(&random.c, &run);
        assert_true(w.looks >= run.stats->steps);
        engine_run_release(&run);
        memory_map_release(&w.map);
    }
}

/* --- pools by hand ---------------------------------------------------------------------------- */

struct picture {
    uint64_t step;
    enum look_kind kind;
    struct memory_map map;
};

static void take_one(void *context, struct engine *e, enum look_kind kind)
{
    struct picture *p = context;
    struct err err = {0};
    if (p->map.units || e->stats.steps != p->step || kind != p->kind) return;
    assert_int_equal(memory_map_init(&p->map, e, &err), 0);
    memory_map_take(&p->map, e);
}

static void run_to(struct engine_case *c, struct picture *p)
{
    struct engine_run run;
    c->config.hooks.look = take_one;
    c->config.hooks.look_context = p;
    engine_case_run(c, &run);
    engine_run_release(&run);
    assert_non_null(p->map.units);
}

/* One letter a slot: l live, r reserved, i internal, . free, c cached, o overhead. */
static void check_slots(const struct memory_map *m, const char *expected)
{
    char found[256];
    size_t n = 0;
    for (uint64_t u = 0; u < m->count; u++) {
        for (uint32_t k = 0; k < m->unit_tokens; k++, n++) {
            uint8_t marks = m->marks[u * m->unit_tokens + k];
            assert_true(n + 1 < sizeof found);
            found[n] = m->units[u].kind != UNIT_HELD ? ".c?o"[m->units[u].kind] : "ldri"[slot_state(marks)];
        }
    }
    found[n] = '\0';
    check_str_eq(found, expected);
}

/* 100 slots first-fit, reservations of final tokens: 30 end, 20 take their place, and 35 find 10 + 30 free in two pieces. */
static void map__static_with_a_hole__regions_and_holes(void **state)
{
    (void)state;
    struct engine_case c;
    struct picture p = {.step = 3, .kind = LOOK_PASS};
    engine_case_init(&c, "static", "reserve=oracle placement=first-fit", 100);
    engine_case_add(&c, 0, 29, 2);     /* 0..30, ends with step 1 */
    engine_case_add(&c, 0, 31, 10);    /* 30..70 */
    engine_case_add(&c, 2000, 11, 10); /* 0..20 from step 2 on */
    engine_case_add(&c, 2000, 35, 1);  /* refused */
    run_to(&c, &p);
    /* With step 3's tokens the second request has 31 + 3, the third 11 + 1. */
    check_slots(&p.map, "llllllllllllrrrrrrrr.........." /* 0..30 */
                        "llllllllllllllllllllllllllllllllllrrrrrr" /* 30..70 */
                        "..............................");
    memory_map_release(&p.map);
}

/* Blocks of 4 and the null block in a pool of 6: 5 tokens of a prompt in blocks 1 and 2, 2 final tokens more. */
static void map__prefix__slots_and_queue(void **state)
{
    (void)state;
    struct engine_case c;
    struct picture p = {.step = 0, .kind = LOOK_PASS};
    engine_case_init(&c, "prefix", NULL, 6 * 4 + 1);
    c.config.geometry.block_tokens = 4;
    engine_case_add(&c, 0, 5, 3); /* final: 5 + 3 - 1 = 7 */
    run_to(&c, &p);
    check_slots(&p.map, "oooo" "llll" "lrri" "...." "...." "....");
    const kv_block queue[] = {3, 4, 5};
    check_u64_eq(p.map.queue_count, 3);
    assert_memory_equal(p.map.queue, queue, sizeof queue);
    memory_map_release(&p.map);
    /* After its last step (2) the keyed block stays, cached; the other went to the head of the queue. */
    p = (struct picture){.step = 2, .kind = LOOK_END};
    run_to(&c, &p);
    check_slots(&p.map, "oooo" "cccc" "...." "...." "...." "....");
    const kv_block after[] = {2, 3, 4, 5, 1};
    check_u64_eq(p.map.queue_count, 5);
    assert_memory_equal(p.map.queue, after, sizeof after);
    memory_map_release(&p.map);
}

/* 20 tokens of activations of 10 bytes want 200 of 199: a block of the pool is lent for the step. Held by no request, and not free. */
static void map__block_lent_to_the_device__overhead(void **state)
{
    (void)state;
    struct engine_case c;
    struct picture p = {.step = 0, .kind = LOOK_PASS};
    engine_case_init(&c, "prefix", NULL, 5 * 16);
    c.config.edge = (struct edge_config){
        .model = EDGE_BUDGET, .elastic = true, .device_bytes = 5 * 16 + 199, .per_token_bytes = 10};
    engine_case_add(&c, 0, 20, 3);
    run_to(&c, &p);
    check_slots(&p.map, "oooooooooooooooo" "llllllllllllllll" "llllrriiiiiiiiii" "oooooooooooooooo" "................");
    memory_map_release(&p.map);
    p = (struct picture){.step = 0, .kind = LOOK_END};
    run_to(&c, &p);
    check_slots(&p.map, "oooooooooooooooo" "llllllllllllllll" "llllrriiiiiiiiii" "................" "................");
    memory_map_release(&p.map);
}

/* --- the tests ------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    static const struct CMUnitTest by_hand[] = {
        cmocka_unit_test(map__static_with_a_hole__regions_and_holes),
        cmocka_unit_test(map__prefix__slots_and_queue),
        cmocka_unit_test(map__block_lent_to_the_device__overhead),
    };
    struct CMUnitTest random[ENGINE_VARIANTS];
    for (size_t i = 0; i < ENGINE_VARIANTS; i++) {
        char *name = NULL;
        if (asprintf(&name, "%s %s: map sums", engine_variants[i].policy, engine_variants[i].options ? engine_variants[i].options : "") < 0) abort();
        random[i] = (struct CMUnitTest){.name = name,
                                        .test_func = map__every_look_at_random_runs__sums_are_the_states,
                                        .initial_state = (void *)(uintptr_t)&engine_variants[i]};
    }
    int failures = cmocka_run_group_tests(by_hand, NULL, NULL);
    failures += _cmocka_run_group_tests("random", random, ENGINE_VARIANTS, NULL, NULL);
    for (size_t i = 0; i < ENGINE_VARIANTS; i++) free((char *)(uintptr_t)random[i].name);
    return failures != 0;
}
