/* Nearest-rank quantiles: exact by hand, and from the histogram against a sorted array. */
#include "tests/check.h"

#include <stdlib.h>

#include "sim/quantiles.h"

static int setup(void **state)
{
    struct quantiles *q = malloc(sizeof *q);
    if (!q) return -1;
    quantiles_init(q);
    *state = q;
    return 0;
}

static int teardown(void **state)
{
    quantiles_release(*state);
    free(*state);
    return 0;
}

static void add(struct quantiles *q, uint64_t value)
{
    assert_int_equal(quantiles_add(q, value), 0);
}

/* Rank ceil(n * percent / 100): of ten values the 5th, the 9th, the 10th (ceil 9.9) and the 1st (ceil 0.1). */
static void at__ten_values_out_of_order__nearest_rank(void **state)
{
    static const uint64_t values[] = {70, 10, 100, 40, 20, 90, 30, 60, 50, 80};
    struct quantiles *q = *state;
    for (size_t i = 0; i < 10; i++) add(q, values[i]);
    check_u64_eq(quantiles_at(q, 50), 50);
    check_u64_eq(quantiles_at(q, 51), 60);
    check_u64_eq(quantiles_at(q, 90), 90);
    check_u64_eq(quantiles_at(q, 99), 100);
    check_u64_eq(quantiles_at(q, 100), 100);
    check_u64_eq(quantiles_at(q, 1), 10);
    check_f64_near(quantiles_mean(q), 55, 0);
    assert_true(quantiles_exact(q));
}

static void at__value_added_after_a_question__counts(void **state)
{
    struct quantiles *q = *state;
    add(q, 5);
    check_u64_eq(quantiles_at(q, 50), 5);
    add(q, 1);
    check_u64_eq(quantiles_at(q, 50), 1);
    check_u64_eq(quantiles_at(q, 99), 5);
}

/* The sum is wider than 64 bits. */
static void mean__two_of_the_largest__does_not_wrap(void **state)
{
    struct quantiles *q = *state;
    add(q, UINT64_MAX);
    add(q, UINT64_MAX);
    check_f64_near(quantiles_mean(q), 18446744073709551615.0, 0);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 10^6 values are kept; one more, and the answers come from buckets, within 0.1 %. Values over all magnitudes,
 * 0 and the largest among them; those below 2048 stay exact. */
static void at__one_value_too_many__within_a_thousandth(void **state)
{
    enum { COUNT = QUANTILES_EXACT + 1 };
    struct quantiles *q = *state;
    uint64_t *sorted = malloc(COUNT * sizeof *sorted), seed = 1;
    assert_non_null(sorted);
    for (size_t i = 0; i < COUNT; i++) {
        sorted[i] = draw(&seed) >> (draw(&seed) % 64);
        if (i == 7) sorted[i] = UINT64_MAX;
        if (i == 8) sorted[i] = 0;
        if (i == COUNT - 1) assert_true(quantiles_exact(q));
        add(q, sorted[i]);
    }
    assert_false(quantiles_exact(q));
    check_u64_eq(q->count, COUNT);
    qsort(sorted, COUNT, sizeof *sorted, compare);
    for (unsigned percent = 1; percent <= 100; percent++) {
        uint64_t expected = sorted[((uint64_t)COUNT * percent + 99) / 100 - 1];
        uint64_t found = quantiles_at(q, percent);
        if (expected < 2048) check_u64_eq(found, expected);
        else check_f64_near((double)found / (double)expected, 1, 0.001);
    }
    free(sorted);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(at__ten_values_out_of_order__nearest_rank),
        CASE(at__value_added_after_a_question__counts),
        CASE(mean__two_of_the_largest__does_not_wrap),
        CASE(at__one_value_too_many__within_a_thousandth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
