/* Confidence intervals against published tables. */
#include "tests/check.h"

#include <math.h>

#include "sim/student_t.h"

/* Two-sided critical values as the tables of Student's distribution print them (to three digits; NIST/SEMATECH e-Handbook,
 * 1.3.6.7.2: the columns 0.95, 0.975 and 0.995 of the cumulative probability). */
static void quantile__published_table__same_digits(void **state)
{
    (void)state;
    static const struct {
        size_t degrees;
        double at_90, at_95, at_99;
    } table[] = {
        {1, 6.314, 12.706, 63.657}, {2, 2.920, 4.303, 9.925},   {3, 2.353, 3.182, 5.841},
        {4, 2.132, 2.776, 4.604},   {5, 2.015, 2.571, 4.032},   {8, 1.860, 2.306, 3.355},
        {9, 1.833, 2.262, 3.250},   {19, 1.729, 2.093, 2.861},  {30, 1.697, 2.042, 2.750},
        {60, 1.671, 2.000, 2.660},  {100, 1.660, 1.984, 2.626},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        check_f64_near(student_t_quantile(0.90, table[i].degrees), table[i].at_90, 0.00051);
        check_f64_near(student_t_quantile(0.95, table[i].degrees), table[i].at_95, 0.00051);
        check_f64_near(student_t_quantile(0.99, table[i].degrees), table[i].at_99, 0.00051);
    }
}

/* One degree: tan(pi/2 * p). Two: A = t/sqrt(2 + t^2), so t = p*sqrt(2/(1 - p^2)). */
static void quantile__one_and_two_degrees__closed_forms(void **state)
{
    (void)state;
    static const double p[] = {0.001, 0.5, 0.8, 0.999};
    for (size_t i = 0; i < sizeof p / sizeof p[0]; i++) {
        double one = tan(1.57079632679489661923 * p[i]), two = p[i] * sqrt(2 / (1 - p[i] * p[i]));
        check_f64_near(student_t_quantile(p[i], 1) / one, 1, 1e-12);
        check_f64_near(student_t_quantile(p[i], 2) / two, 1, 1e-12);
    }
}

/* The normal distribution's 1.959964, 2.575829; t is 1 + (z^2 + 1)/(4v) times that, nearly. */
static void quantile__many_degrees__normal(void **state)
{
    (void)state;
    check_f64_near(student_t_quantile(0.95, 1000000), 1.959964, 0.00001);
    check_f64_near(student_t_quantile(0.99, 999999), 2.575829, 0.00001);
}

/* 1, 2, 3, 4: mean 2.5, variance 5/3, error sqrt(5/12) = 0.645497; times 3.182446 (three degrees). */
static void interval__four_values__by_hand(void **state)
{
    (void)state;
    double half;
    check_f64_near(mean_with_interval((const double[]){1, 2, 3, 4}, 4, 0.95, &half), 2.5, 0);
    check_f64_near(half, 2.054260, 0.000001);
    check_f64_near(mean_with_interval((const double[]){7, 7, 7}, 3, 0.95, &half), 7, 0);
    check_f64_near(half, 0, 0);
    check_f64_near(mean_with_interval((const double[]){7}, 1, 0.95, &half), 7, 0);
    assert_true(isnan(half));
}

static double uniform(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

/* Box and Muller. */
static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

/* Of many samples from a normal distribution an interval of 95 % holds the mean in 95 % of the cases, whatever the sizes of sample, mean
 * and spread. Of 10,000 the share's own standard error is sqrt(0.05 * 0.95 / 10,000) = 0.22 %. */
static void interval__many_normal_samples__holds_the_mean_as_often_as_it_says(void **state)
{
    (void)state;
    static const size_t sizes[] = {2, 3, 5, 10, 20};
    static const double confidences[] = {0.95, 0.90, 0.99};
    enum { SAMPLES = 10000 };
    uint64_t chance = 1;
    for (size_t c = 0; c < sizeof confidences / sizeof confidences[0]; c++) {
        for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
            double true_mean = 7e5 * (double)n - 3, spread = 1 + 1000 * (double)n;
            size_t held = 0;
            for (size_t i = 0; i < SAMPLES; i++) {
                double values[20], half;
                for (size_t k = 0; k < sizes[n]; k++) values[k] = true_mean + spread * normal(&chance);
                double mean = mean_with_interval(values, sizes[n], confidences[c], &half);
                held += fabs(mean - true_mean) <= half;
            }
            check_f64_near((double)held / SAMPLES, confidences[c], 0.01);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantile__published_table__same_digits),
        cmocka_unit_test(quantile__one_and_two_degrees__closed_forms),
        cmocka_unit_test(quantile__many_degrees__normal),
        cmocka_unit_test(interval__four_values__by_hand),
        cmocka_unit_test(interval__many_normal_samples__holds_the_mean_as_often_as_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
