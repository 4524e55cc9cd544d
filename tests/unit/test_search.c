/* The search of `run --find` on conditions whose answers are known: the runner here asks a function instead of simulating. */
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/search.h"

/* --- a runner without simulations ------------------------------------------------------------- */

struct search_runner {
    bool (*holds)(uint64_t value, uint64_t parameter);
    uint64_t parameter;
    uint64_t asked;      /* probes that were run, used or not */
    uint64_t fails_from; /* above 0: from here on they end in an error */
};

int search_runner_run(struct search_runner *r, struct search_probe *const *probes, size_t count, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < count; i++) {
        struct search_probe *p = probes[i];
        assert_false(p->done);
        p->done = true;
        p->holds = r->holds(p->value, r->parameter);
        p->requests_per_s = 1;
        if (r->fails_from > 0 && p->value >= r->fails_from) err_set(&p->err, ERR_FAILED, "at %llu", (unsigned long long)p->value);
        r->asked++;
    }
    return 0;
}

static const struct search_quantity pool = {.name = "pool"};

static struct search searching(struct search_runner *runner, bool smallest, uint64_t min, uint64_t max)
{
    return (struct search){.quantity = &pool, .smallest = smallest, .min = min, .max = max, .replications = 1,
                           .runs_max = 1000, .threads = 1, .runner = runner};
}

static void end(struct search *s)
{
    for (size_t i = 0; i < s->count; i++) free(s->probes[i]);
    free(s->probes);
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Steps of a bracket by doubling and of a bisection after it, and the checks. */
static uint64_t most_runs(void)
{
    return 64 + 64 + 8;
}

/* --- one change ------------------------------------------------------------------------------- */

static bool from_on(uint64_t value, uint64_t threshold)
{
    return value >= threshold;
}

static bool up_to(uint64_t value, uint64_t threshold)
{
    return value <= threshold;
}

static void check_found(bool smallest, uint64_t threshold, uint64_t start, uint64_t max, unsigned threads, uint64_t *used)
{
    struct search_runner runner = {.holds = smallest ? from_on : up_to, .parameter = threshold};
    struct search s = searching(&runner, smallest, 1, max);
    struct err err = {0};
    s.threads = threads;
    assert_int_equal(search_find(&s, start, &err), 0);
    assert_int_equal(s.outcome, SEARCH_FOUND);
    check_u64_eq(s.answer->value, threshold);
    assert_true(s.has_fails_at && s.safe == NULL);
    check_u64_eq(s.fails_at, smallest ? threshold - 1 : threshold + 1);
    assert_true(s.runs <= most_runs());
    for (size_t i = 0; i < s.count; i++) assert_true(search_expected(&s, s.probes[i]));
    *used = s.runs;
    end(&s);
}

static void find__one_change__found_exactly_from_any_start(void **state)
{
    (void)state;
    static const uint64_t maxima[] = {9, 1000, UINT64_C(1) << 40, UINT64_MAX};
    for (uint64_t i = 0; i < 4000; i++) {
        uint64_t max = maxima[i % 4], start = 1 + mix(3 * i) % max;
        uint64_t small = 2 + mix(3 * i + 1) % (max - 2), used[3];
        check_found(true, small, start, max, 1, &used[0]);
        check_found(true, small, start, max, 5, &used[1]);
        check_found(true, small, start, max, 64, &used[2]);
        /* Threads run ahead, and decide nothing. */
        check_u64_eq(used[1], used[0]);
        check_u64_eq(used[2], used[0]);
        check_found(false, 1 + mix(3 * i + 2) % (max - 2), start, max, 1 + (unsigned)(i % 7), &used[0]);
    }
}

/* --- none ------------------------------------------------------------------------------------- */

static bool constant(uint64_t value, uint64_t holds)
{
    (void)value;
    return holds != 0;
}

static void find__never_or_always__the_end_of_the_range(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 8; i++) {
        bool smallest = i % 2 == 0, holds = i / 2 % 2 == 0;
        uint64_t start = i / 4 == 0 ? 1000 : 37;
        struct search_runner runner = {.holds = constant, .parameter = holds};
        struct search s = searching(&runner, smallest, 3, 5000);
        struct err err = {0};
        assert_int_equal(search_find(&s, start, &err), 0);
        assert_int_equal(s.outcome, holds ? SEARCH_EVERYWHERE : SEARCH_NOWHERE);
        /* Away from where it should hold while it does, towards it while it does not. */
        uint64_t end_value = smallest == holds ? 3 : 5000;
        check_u64_eq(s.last, end_value);
        if (holds) check_u64_eq(s.answer->value, end_value);
        else assert_null(s.answer);
        assert_int_equal(s.has_fails_at, !holds);
        end(&s);
    }
}

/* --- more than one change --------------------------------------------------------------------- */

/* Holds on [100, 200) and from `parameter` on. */
static bool with_gap(uint64_t value, uint64_t parameter)
{
    return (value >= 100 && value < 200) || value >= parameter;
}

/* Checks stand at 100 + 25, 50 and 75: a gap beyond them is not seen, and nothing is claimed of it. */
static void find__fails_again_far_beyond__not_seen(void **state)
{
    (void)state;
    struct search_runner runner = {.holds = with_gap, .parameter = 240};
    struct search s = searching(&runner, true, 1, 100000);
    struct err err = {0};
    assert_int_equal(search_find(&s, 128, &err), 0);
    assert_int_equal(s.outcome, SEARCH_FOUND);
    check_u64_eq(s.answer->value, 100);
    assert_null(s.safe);
    end(&s);
}

/* Holds from 100 on but for [130, 140 + parameter). */
static bool with_dent(uint64_t value, uint64_t parameter)
{
    return value >= 100 && !(value >= 130 && value < 140 + parameter);
}

/* A check at 150 or 175 falls into the dent: the safe value is its upper end. */
static void find__dent_behind_the_answer__its_end_is_safe(void **state)
{
    (void)state;
    for (uint64_t width = 11; width < 35; width++) {
        struct search_runner runner = {.holds = with_dent, .parameter = width};
        struct search s = searching(&runner, true, 1, 100000);
        struct err err = {0};
        assert_int_equal(search_find(&s, 120, &err), 0);
        assert_int_equal(s.outcome, SEARCH_FOUND);
        check_u64_eq(s.answer->value, 100);
        assert_non_null(s.safe);
        check_u64_eq(s.safe->value, 140 + width);
        check_u64_eq(s.safe_fails_at, 139 + width);
        end(&s);
    }
}

/* Within [800, 1200) by chance, above always. */
static bool noisy(uint64_t value, uint64_t seed)
{
    return value >= 1200 || (value >= 800 && mix(value * 1000003 + seed) % 2 == 0);
}

static void find__noise__an_edge_within_it(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct search_runner runner = {.holds = noisy, .parameter = seed};
        struct search s = searching(&runner, true, 1, 1000000);
        struct err err = {0};
        assert_int_equal(search_find(&s, 1 + mix(seed) % 4000, &err), 0);
        assert_int_equal(s.outcome, SEARCH_FOUND);
        assert_true(s.answer->value >= 800 && s.answer->value <= 1200);
        check_u64_eq(s.fails_at, s.answer->value - 1);
        assert_true(noisy(s.answer->value, seed) && !noisy(s.fails_at, seed));
        if (s.safe) assert_true(noisy(s.safe->value, seed) && !noisy(s.safe_fails_at, seed) && s.safe->value > s.answer->value);
        assert_true(s.runs <= 2 * most_runs());
        end(&s);
    }
}

/* --- ends before its time --------------------------------------------------------------------- */

static void find__few_runs__says_what_it_knows(void **state)
{
    (void)state;
    for (uint64_t runs_max = 1; runs_max < 30; runs_max++) {
        struct search_runner runner = {.holds = from_on, .parameter = 54321};
        struct search s = searching(&runner, true, 1, UINT64_C(1) << 50);
        struct err err = {0};
        s.runs_max = runs_max;
        s.threads = 1 + (unsigned)(runs_max % 3);
        assert_int_equal(search_find(&s, 1000, &err), 0);
        assert_true(s.runs <= runs_max);
        /* 1000 ... 64000 are seven values, then 32000 wide: 15 halvings. */
        assert_int_equal(s.outcome, runs_max < 7 + 15 ? SEARCH_CUT : SEARCH_FOUND);
        if (s.answer) assert_true(s.answer->value >= 54321);
        if (s.has_fails_at) assert_true(s.fails_at < 54321);
        assert_int_equal(s.answer != NULL, runs_max >= 7);
        end(&s);
    }
}

static void find__a_probe_fails__so_does_the_search(void **state)
{
    (void)state;
    struct search_runner runner = {.holds = from_on, .parameter = 5000, .fails_from = 3000};
    struct search s = searching(&runner, true, 1, 100000);
    struct err err = {0};
    assert_int_equal(search_find(&s, 1000, &err), -1);
    check_str_has(err.text, "at 4000");
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find__one_change__found_exactly_from_any_start),
        cmocka_unit_test(find__never_or_always__the_end_of_the_range),
        cmocka_unit_test(find__fails_again_far_beyond__not_seen),
        cmocka_unit_test(find__dent_behind_the_answer__its_end_is_safe),
        cmocka_unit_test(find__noise__an_edge_within_it),
        cmocka_unit_test(find__few_runs__says_what_it_knows),
        cmocka_unit_test(find__a_probe_fails__so_does_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
