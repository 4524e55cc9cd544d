/* Draws of what lies outside the budget, against closed forms. */
#include "tests/check.h"

#include <math.h>
#include <string.h>

#include "sim/edge_draws.h"
#include "sim/edge_options.h"

#define MIB 1048576u

static struct edge_spread spread(const char *text, bool bytes)
{
    struct edge_spread s;
    struct err err = {0};
    if (edge_spread_parse(&s, text, bytes, &err)) fail_msg("%s", err.text);
    return s;
}

/* Activations of 100 MiB in `room`; late buffers as given. */
static struct edge_chance chance(const char *activation, const char *late, uint64_t room)
{
    struct edge_draws d = {
        .draws = 20000,
        .seed = 1,
        .activation = spread(activation, false),
        .late = spread(late, true),
        .residue = spread("fixed:0", true),
        .peak_bytes = 100 * MIB,
        .room_bytes = room,
        .pool_bytes = 1000 * MIB,
    };
    struct edge_chance c;
    edge_draw(&c, &d);
    return c;
}

/* Within four standard errors: one run in 16,000 would fail, and the seed is fixed. */
static void check_share(const struct edge_chance *c, double expected)
{
    double error = sqrt(expected * (1 - expected) / (double)c->draws);
    check_f64_near(c->probability, expected, 4 * error);
    assert_true(c->low <= c->probability && c->probability <= c->high);
}

static void fixed__below_and_above_the_room__0_and_1(void **state)
{
    (void)state;
    struct edge_chance c = chance("fixed:1", "fixed:20MiB", 120 * MIB);
    check_u64_eq(c.ooms, 0);
    c = chance("fixed:1", "fixed:20MiB", 120 * MIB - 1);
    check_u64_eq(c.ooms, 20000);
    check_f64_near(c.lent_mean_bytes, 1, 0);
    check_u64_eq(c.elastic_ooms, 0);
}

/* 100 + U(0, 80) > 120: 60 of 80. The mean excess is the integral over those, 60^2 / 2 / 80 = 22.5 MiB. */
static void uniform__share_and_mean_excess(void **state)
{
    (void)state;
    struct edge_chance c = chance("fixed:1", "uniform:0:80MiB", 120 * MIB);
    check_share(&c, 0.75);
    check_f64_near(c.lent_mean_bytes / MIB, 22.5, 0.5);
}

/* Low 0, mode 20, high 80 MiB: above 50 lie (80 - 50)^2 / (80 * 60) = 0.1875; below 10, 10^2 / (80 * 20) = 0.0625. */
static void triangular__both_sides_of_the_mode(void **state)
{
    (void)state;
    struct edge_chance c = chance("fixed:1", "triangular:0:20MiB:80MiB", 150 * MIB);
    check_share(&c, 0.1875);
    c = chance("fixed:1", "triangular:0:20MiB:80MiB", 110 * MIB);
    check_share(&c, 1 - 0.0625);
}

/* P(median * exp(0.1 Z) > 1.2) = 1 - Phi(ln(1.2) / 0.1). */
static void lognormal__share(void **state)
{
    (void)state;
    struct edge_chance c = chance("lognormal:1:0.1", "fixed:0", 120 * MIB);
    check_share(&c, 0.5 * erfc(log(1.2) / 0.1 / sqrt(2)));
}

static void draws__less_room__never_less_likely(void **state)
{
    uint64_t before = UINT64_MAX;
    (void)state;
    for (uint64_t room = 80; room <= 240; room += 5) {
        struct edge_chance c = chance("lognormal:1:0.2", "uniform:0:50MiB", room * MIB);
        assert_true(c.ooms <= before);
        before = c.ooms;
    }
}

/* The interval's closed forms: k = 0 gives z^2 / (n + z^2); k = n the mirror image; 5 of 10 is symmetric, with half width
 * z sqrt(n / 4 + z^2 / 4) / (n + z^2). z = 1.959964. */
static void wilson__closed_forms(void **state)
{
    double low, high;
    const double zz = 3.8414588;
    (void)state;
    wilson_interval(0, 10, &low, &high);
    check_f64_near(low, 0, 0);
    check_f64_near(high, zz / (10 + zz), 1e-7);
    wilson_interval(10, 10, &low, &high);
    check_f64_near(low, 1 - zz / (10 + zz), 1e-7);
    check_f64_near(high, 1, 0);
    wilson_interval(5, 10, &low, &high);
    check_f64_near(high - 0.5, sqrt(zz * (10 + zz)) / 2 / (10 + zz), 1e-7);
    check_f64_near(low + high, 1, 1e-12);
}

static void spreads__malformed__refused(void **state)
{
    static const char *const bad[] = {"", "fixed", "fixed:", "fixed:x", "fixed:1:2", "uniform:2:1", "uniform:1", "normal:1:2",
                                      "triangular:3:2:4", "triangular:1:2", "lognormal:0:1", "lognormal:1:-1", "lognormal:1:11",
                                      "fixed:1e300", "uniform:nan:1", ":1", "fixed:1:"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct edge_spread s;
        struct err err = {0};
        if (edge_spread_parse(&s, bad[i], false, &err) == 0) fail_msg("'%s' was taken", bad[i]);
        check_str_has(err.text, "expected fixed:X");
    }
}

static void late_buffers__texts(void **state)
{
    struct edge_buffer b;
    struct err err = {0};
    (void)state;
    assert_int_equal(edge_buffer_parse(&b, "70MiB@step:3:torch", &err), 0);
    check_u64_eq(b.bytes, 70 * MIB);
    check_u64_eq(b.at, 3);
    assert_true(b.by_step && b.framework);
    assert_int_equal(edge_buffer_parse(&b, "1@2us", &err), 0);
    check_u64_eq(b.at, 2000);
    assert_false(b.by_step || b.framework);
}

/* 10^6 tokens of 2^40 bytes pass every sum: said so, not wrapped. */
static void activations__absurd__saturate(void **state)
{
    struct edge_config c = {.base_bytes = 5, .per_token_bytes = 10, .per_seq_bytes = 100};
    (void)state;
    check_u64_eq(edge_activation_bytes(&c, 7, 2), 5 + 70 + 200);
    c.per_token_bytes = (uint64_t)1 << 40;
    check_u64_eq(edge_activation_bytes(&c, (uint64_t)1 << 40, 2), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed__below_and_above_the_room__0_and_1),
        cmocka_unit_test(uniform__share_and_mean_excess),
        cmocka_unit_test(triangular__both_sides_of_the_mode),
        cmocka_unit_test(lognormal__share),
        cmocka_unit_test(draws__less_room__never_less_likely),
        cmocka_unit_test(wilson__closed_forms),
        cmocka_unit_test(spreads__malformed__refused),
        cmocka_unit_test(late_buffers__texts),
        cmocka_unit_test(activations__absurd__saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
