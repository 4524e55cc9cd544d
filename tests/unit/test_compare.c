/* The arithmetic of pairs. */
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/compare.h"

static struct result a[3], b[3];
static struct compare_pair pairs[3];

static int setup(void **state)
{
    (void)state;
    static const uint64_t values[2][3] = {{10, 12, 14}, {9, 13, 11}};
    for (size_t i = 0; i < 3; i++) {
        result_init(&a[i]);
        result_init(&b[i]);
        pairs[i] = (struct compare_pair){&a[i], &b[i]};
        result_u64(&a[i], "seed", i);
        result_u64(&b[i], "seed", i);
        result_u64(&a[i], "noisy", values[0][i]);
        result_u64(&b[i], "noisy", values[1][i]);
        result_u64(&a[i], "shifted", 100 + i);
        result_u64(&b[i], "shifted", 107 + i);
        result_f64(&a[i], "falls", 4);
        result_f64(&b[i], "falls", i == 0 ? 0.9 : i == 1 ? 1.0 : 1.1);
        result_u64(&a[i], "equal", i);
        result_u64(&b[i], "equal", i);
        result_null(&a[i], "nowhere");
        result_null(&b[i], "nowhere");
        if (i == 1) result_null(&a[i], "once");
        else result_u64(&a[i], "once", 5);
        result_u64(&b[i], "once", 6);
        result_u64(&a[i], "options.block-size", 16);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        result_release(&a[i]);
        result_release(&b[i]);
    }
    return 0;
}

static const struct compare_metric *find(const struct compare_metric *metrics, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(metrics[i].key, key) == 0) return &metrics[i];
    }
    return NULL;
}

/* Differences -1, +1, -3: mean -1, spread 2, error 2/sqrt(3) = 1.154701; t of two degrees at 95 % is 4.302653, so the half
 * width is 4.968275. Differences -3.1, -3, -2.9: spread 0.1, half width 0.248414. */
static void metrics__three_pairs__by_hand(void **state)
{
    (void)state;
    struct compare_metric *metrics;
    size_t count;
    struct err err = {0};
    assert_int_equal(compare_metrics(pairs, 3, 0.95, &metrics, &count, &err), 0);
    check_u64_eq(count, 5);
    const struct compare_metric *m = find(metrics, count, "noisy");
    check_f64_near(m->a, 12, 0);
    check_f64_near(m->b, 11, 1e-12);
    check_f64_near(m->difference, -1, 1e-12);
    check_f64_near(m->relative, -1.0 / 12, 1e-12);
    check_f64_near(m->half, 4.968275, 1e-6);
    assert_int_equal(m->verdict, COMPARE_NOT_SHOWN);
    m = find(metrics, count, "falls");
    check_f64_near(m->half, 0.248414, 1e-6);
    check_f64_near(m->half_a, 0, 0);
    assert_int_equal(m->verdict, COMPARE_LOWER);
    m = find(metrics, count, "shifted");
    check_f64_near(m->difference, 7, 1e-12);
    check_f64_near(m->half, 0, 0);
    assert_int_equal(m->verdict, COMPARE_HIGHER);
    assert_int_equal(find(metrics, count, "equal")->verdict, COMPARE_SAME);
    m = find(metrics, count, "once");
    check_u64_eq(m->pairs, 2);
    check_f64_near(m->a, 5, 0);
    assert_null(find(metrics, count, "nowhere"));
    assert_null(find(metrics, count, "seed"));
    assert_null(find(metrics, count, "options.block-size"));
    free(metrics);
}

static void metrics__one_pair__no_interval(void **state)
{
    (void)state;
    struct compare_metric *metrics;
    size_t count;
    struct err err = {0};
    assert_int_equal(compare_metrics(pairs, 1, 0.95, &metrics, &count, &err), 0);
    const struct compare_metric *m = find(metrics, count, "noisy");
    assert_true(isnan(m->half));
    assert_int_equal(m->verdict, COMPARE_LOWER);
    free(metrics);
}

/* Two replications of mean -1 and 3: mean 1, spread sqrt(8), error 2, t of one degree 12.706205. */
static void differences__two_replications__means_of_each(void **state)
{
    (void)state;
    int64_t values[] = {-3, 1, 3, 3, 3};
    const size_t starts[] = {0, 2, 5};
    struct compare_differences d;
    struct err err = {0};
    assert_int_equal(compare_differences(&d, values, starts, 2, 0.95, &err), 0);
    check_u64_eq(d.count, 5);
    check_f64_near(d.mean, 1, 1e-12);
    check_f64_near(d.half, 25.412410, 1e-6);
    check_u64_eq(d.groups, 2);
    check_i64_eq(d.p5, -3);  /* rank 1 of 5 */
    check_i64_eq(d.p25, 1);  /* rank ceil(1.25) = 2 */
    check_i64_eq(d.p50, 3);
    check_u64_eq(d.b_lower, 1);
    check_u64_eq(d.b_higher, 4);
}

/* 2000 values in 20 batches of 100. Batch i is i odd ? 2 : 0 on average: mean 1, spread of the means sqrt(20/19), error
 * sqrt(1/19) = 0.229416, t of 19 degrees 2.093024: 0.480172. Neighbours differ, so their correlation is below 0. */
static void differences__one_run_of_independent_batches__interval(void **state)
{
    (void)state;
    int64_t values[2000];
    const size_t starts[] = {0, 2000};
    struct compare_differences d;
    struct err err = {0};
    for (size_t i = 0; i < 2000; i++) values[i] = (int64_t)(i / 100 % 2 * 2) + (i % 2 ? 50 : -50);
    assert_int_equal(compare_differences(&d, values, starts, 1, 0.95, &err), 0);
    check_u64_eq(d.groups, 20);
    check_f64_near(d.mean, 1, 1e-12);
    check_f64_near(d.half, 0.480172, 1e-6);
}

/* A run whose differences climb has no mean to speak of, and one of 90 requests no batches of ten. */
static void differences__one_run_that_drifts_or_is_short__no_interval(void **state)
{
    (void)state;
    int64_t values[2000];
    const size_t long_run[] = {0, 2000}, short_run[] = {0, 90};
    struct compare_differences d;
    struct err err = {0};
    for (size_t i = 0; i < 2000; i++) values[i] = (int64_t)i;
    assert_int_equal(compare_differences(&d, values, long_run, 1, 0.95, &err), 0);
    check_u64_eq(d.groups, 0);
    assert_true(isnan(d.half));
    assert_int_equal(compare_differences(&d, values, short_run, 1, 0.95, &err), 0);
    assert_true(isnan(d.half));
}

static void number__unit_of_its_key(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        double value;
        bool sign;
        const char *text;
    } cases[] = {
        {"ttft_ns.p99", 1500000, false, "1.5 ms"}, {"ttft_ns.p99", -2e9, true, "-2 s"},  {"simulated_ns", 0, false, "0"},
        {"tpot_ns.mean", 12, true, "+12 ns"},      {"preemptions", 1234567, false, "1234567"}, {"evictions", 2.5, true, "+2.5"},
        {"utilization", 0.123456, false, "0.1235"}, {"hit_rate_tokens", NAN, false, "-"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        compare_number(cases[i].key, cases[i].value, cases[i].sign, text, sizeof text);
        check_str_eq(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(metrics__three_pairs__by_hand, setup, teardown),
        cmocka_unit_test_setup_teardown(metrics__one_pair__no_interval, setup, teardown),
        cmocka_unit_test(differences__two_replications__means_of_each),
        cmocka_unit_test(differences__one_run_of_independent_batches__interval),
        cmocka_unit_test(differences__one_run_that_drifts_or_is_short__no_interval),
        cmocka_unit_test(number__unit_of_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
