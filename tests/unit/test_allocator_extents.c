/* extent_set and buddy: figures computed by hand, and random scripts against a map of single units. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/buddy.h"
#include "allocator/extent_set.h"
#include "allocator/reserve.h"

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

/* --- extent_set ---------------------------------------------------------------------------- */

/* Holes [0,10) [20,25) [40,60) of a space of 60. */
static void make_three_holes(struct extent_set *set)
{
    assert_true(extent_set_init(set, 60, 8));
    extent_set_take_at(set, 10, 10);
    extent_set_take_at(set, 25, 15);
}

static void extent_set__three_holes__each_fit_chooses_its_own(void **state)
{
    (void)state;
    static const struct { enum extent_fit fit; uint64_t units, start; } cases[] = {
        { EXTENT_FIRST_FIT, 5, 0 },   { EXTENT_FIRST_FIT, 11, 40 }, { EXTENT_BEST_FIT, 5, 20 },
        { EXTENT_BEST_FIT, 6, 0 },    { EXTENT_BEST_FIT, 11, 40 },  { EXTENT_WORST_FIT, 1, 40 },
        { EXTENT_WORST_FIT, 20, 40 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct extent_set set;
        uint64_t start;
        make_three_holes(&set);
        assert_true(extent_set_take(&set, cases[i].fit, cases[i].units, &start));
        check_u64_eq(start, cases[i].start);
        check_u64_eq(set.free_units, 35 - cases[i].units);
        assert_null(extent_set_check(&set));
        extent_set_release(&set);
    }
}

static void extent_set__longer_than_any_hole__refused(void **state)
{
    (void)state;
    struct extent_set set;
    uint64_t start;
    make_three_holes(&set);
    for (int fit = EXTENT_FIRST_FIT; fit <= EXTENT_WORST_FIT; fit++)
        assert_false(extent_set_take(&set, (enum extent_fit)fit, 21, &start));
    check_u64_eq(set.free_units, 35);
    extent_set_release(&set);
}

static void extent_set__pieces__counted_hole_by_hole(void **state)
{
    (void)state;
    struct extent_set set;
    make_three_holes(&set);
    check_u64_eq(extent_set_longest_piece(&set, 1), 20);
    check_u64_eq(extent_set_longest_piece(&set, 2), 10); /* 10 | - | 10 + 10: three of 10, none of 11 twice */
    check_u64_eq(extent_set_longest_piece(&set, 3), 10);
    check_u64_eq(extent_set_longest_piece(&set, 4), 6);  /* 6 | - | 6 6 6 */
    check_u64_eq(extent_set_longest_piece(&set, 36), 0); /* 35 units are free */
    check_u64_eq(extent_set_count_pieces(&set, 6), 4);
    extent_set_release(&set);
}

static void extent_set__given_back_between_two_holes__all_join(void **state)
{
    (void)state;
    struct extent_set set;
    make_three_holes(&set);
    extent_set_give(&set, 25, 15);
    check_u64_eq(extent_set_longest(&set), 40);
    extent_set_give(&set, 10, 10);
    check_u64_eq(extent_set_longest(&set), 60);
    assert_null(extent_set_check(&set));
    extent_set_release(&set);
}

enum { SPACE = 97, TAKEN_MAX = 24 };

/* The slow twin: the run that a fit chooses in a map of single units, or SPACE. */
static uint64_t choose_run(const bool *taken, enum extent_fit fit, uint64_t units)
{
    uint64_t best = SPACE, best_units = 0;
    for (uint64_t start = 0; start < SPACE;) {
        uint64_t end = start;
        while (end < SPACE && !taken[end])
            end++;
        uint64_t run = end - start;
        bool better = best == SPACE || (fit == EXTENT_BEST_FIT && run < best_units) ||
                      (fit == EXTENT_WORST_FIT && run > best_units);
        if (run >= units && better) {
            best = start;
            best_units = run;
        }
        start = end + 1;
    }
    return best;
}

static void run_extent_script(enum extent_fit fit)
{
    struct extent_set set;
    bool taken[SPACE] = { false };
    struct { uint64_t start, units; } held[TAKEN_MAX];
    size_t held_count = 0;
    assert_true(extent_set_init(&set, SPACE, TAKEN_MAX));
    for (int step = 0; step < 4000; step++) {
        uint64_t units = 1 + draw(20), start;
        if (held_count == TAKEN_MAX || (held_count > 0 && draw(2) == 0)) {
            size_t k = draw(held_count);
            extent_set_give(&set, held[k].start, held[k].units);
            memset(taken + held[k].start, 0, held[k].units);
            held[k] = held[--held_count];
        } else {
            uint64_t expected = choose_run(taken, fit, units);
            bool took = extent_set_take(&set, fit, units, &start);
            assert_int_equal(took, expected != SPACE);
            if (took) {
                check_u64_eq(start, expected);
                memset(taken + start, 1, units);
                held[held_count].start = start;
                held[held_count++].units = units;
            }
        }
        assert_null(extent_set_check(&set));
    }
    extent_set_release(&set);
}

static void extent_set__random_script__agrees_with_a_map(void **state)
{
    (void)state;
    random_state = 1;
    for (int fit = EXTENT_FIRST_FIT; fit <= EXTENT_WORST_FIT; fit++)
        run_extent_script((enum extent_fit)fit);
}

/* --- buddy --------------------------------------------------------------------------------- */

static void buddy__15728_units__cut_into_maximal_powers(void **state)
{
    (void)state;
    struct buddy buddy;
    assert_true(buddy_init(&buddy, 15728));
    uint64_t units = 0;
    for (unsigned order = 0; order < 14; order++) {
        /* 15,728 = 8192 + 4096 + 2048 + 1024 + 256 + 64 + 32 + 16 */
        static const uint64_t expected = 8192 | 4096 | 2048 | 1024 | 256 | 64 | 32 | 16;
        check_u64_eq(buddy_free_chunks(&buddy, order), expected >> order & 1);
        units += buddy_free_chunks(&buddy, order) << order;
    }
    check_u64_eq(units, 15728);
    check_u64_eq(buddy_count_empty(&buddy, 11), 7); /* 4 + 2 + 1 chunks of 2048 */
    assert_null(buddy_check(&buddy));
    buddy_release(&buddy);
}

static void buddy__seven_of_2048__eighth_refused_with_1392_free(void **state)
{
    (void)state;
    struct buddy buddy;
    uint64_t start;
    assert_true(buddy_init(&buddy, 15728));
    check_u64_eq(buddy_count(&buddy, 11), 7);
    /* The smallest sufficient order first: the chunk of 2048 at 8192 + 4096, then 4096, then 8192. */
    static const uint64_t starts[7] = { 12288, 8192, 10240, 0, 2048, 4096, 6144 };
    for (size_t i = 0; i < 7; i++) {
        assert_true(buddy_take(&buddy, 11, &start));
        check_u64_eq(start, starts[i]);
    }
    assert_false(buddy_take(&buddy, 11, &start));
    check_u64_eq(buddy.free_units, 15728 - 7 * 2048); /* 1392 */
    check_u64_eq(buddy.free_units, 1392);
    buddy_release(&buddy);
}

static void buddy__random_script__chunks_disjoint_and_all_come_back(void **state)
{
    (void)state;
    struct buddy buddy;
    bool taken[1000] = { false };
    struct { uint64_t start; unsigned order; } held[64];
    size_t held_count = 0;
    random_state = 7;
    assert_true(buddy_init(&buddy, 1000));
    for (int step = 0; step < 6000 || held_count > 0; step++) {
        uint64_t start;
        unsigned order = (unsigned)draw(8);
        bool can = held_count < 64 && step < 6000 && draw(2) == 0;
        uint64_t count = buddy_count(&buddy, order);
        if (can && buddy_take(&buddy, order, &start)) {
            assert_true(count > 0);
            check_u64_eq(start & ((UINT64_C(1) << order) - 1), 0);
            for (uint64_t i = start; i < start + (UINT64_C(1) << order); i++) {
                assert_true(i < 1000 && !taken[i]);
                taken[i] = true;
            }
            held[held_count].start = start;
            held[held_count++].order = order;
        } else if (can) {
            check_u64_eq(count, 0);
        } else if (held_count > 0) {
            size_t k = draw(held_count);
            buddy_give(&buddy, held[k].start, held[k].order);
            memset(taken + held[k].start, 0, (size_t)1 << held[k].order);
            held[k] = held[--held_count];
        }
        assert_null(buddy_check(&buddy));
    }
    check_u64_eq(buddy.free_units, 1000);
    for (unsigned order = 0; order < 10; order++) /* 1000 = 512 + 256 + 128 + 64 + 32 + 8 again */
        check_u64_eq(buddy_free_chunks(&buddy, order), UINT64_C(1000) >> order & 1);
    buddy_release(&buddy);
}

static void buddy__one_unit__taken_and_given(void **state)
{
    (void)state;
    struct buddy buddy;
    uint64_t start;
    assert_true(buddy_init(&buddy, 1));
    assert_true(buddy_take(&buddy, 0, &start));
    assert_false(buddy_take(&buddy, 0, &start));
    buddy_give(&buddy, 0, 0);
    check_u64_eq(buddy.free_units, 1);
    buddy_release(&buddy);
}

/* --- reserve ------------------------------------------------------------------------------- */

static void reserve__each_kind__slots_by_hand(void **state)
{
    (void)state;
    struct kv_geometry g = { .max_seq_tokens = 2048 };
    /* L = 100, O = 25, final = 100 + 24, max_tokens = 500 */
    struct kv_request r = { .prompt_tokens = 100, .output_tokens = 25, .final_tokens = 124,
                            .max_tokens = 500, .samples = 1 };
    static const struct { enum reserve_kind kind; uint64_t slack, lookahead, slots; } cases[] = {
        { RESERVE_MAX, 0, 0, 2048 },       { RESERVE_POW2, 0, 0, 132 }, /* 100 + 32 */
        { RESERVE_POW2_TOTAL, 0, 0, 128 }, /* >= 125 */
        { RESERVE_ORACLE, 0, 0, 124 },     { RESERVE_ORACLE, 1, 0, 125 },
        { RESERVE_ORACLE, 0, 4, 128 },     { RESERVE_DECLARED, 0, 0, 600 },
        { RESERVE_MAX, 0, 4, 2048 },       { RESERVE_ORACLE, 5000, 0, 2048 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reserve reserve;
        g.lookahead_tokens = cases[i].lookahead;
        reserve_init(&reserve, &g, (struct kv_value){ cases[i].kind }, (struct kv_value){ cases[i].slack });
        check_u64_eq(reserve_tokens(&reserve, &r), cases[i].slots);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extent_set__three_holes__each_fit_chooses_its_own),
        cmocka_unit_test(extent_set__longer_than_any_hole__refused),
        cmocka_unit_test(extent_set__pieces__counted_hole_by_hole),
        cmocka_unit_test(extent_set__given_back_between_two_holes__all_join),
        cmocka_unit_test(extent_set__random_script__agrees_with_a_map),
        cmocka_unit_test(buddy__15728_units__cut_into_maximal_powers),
        cmocka_unit_test(buddy__seven_of_2048__eighth_refused_with_1392_free),
        cmocka_unit_test(buddy__random_script__chunks_disjoint_and_all_come_back),
        cmocka_unit_test(buddy__one_unit__taken_and_given),
        cmocka_unit_test(reserve__each_kind__slots_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
