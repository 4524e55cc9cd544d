/* The conditions of --fail-if and --such-that. */
#include "tests/check.h"

#include <string.h>

#include "sim/condition.h"

static int setup(void **state)
{
    static struct result result;
    result_init(&result);
    result_u64(&result, "preemptions", 3);
    result_f64(&result, "internal_fragmentation", 0.25);
    result_null(&result, "tpot_ns.p99");
    result_u64(&result, "refusals.by_class.despite_free", 0);
    result_null(&result, "states_saturated");
    result_text(&result, "policy", "dynamic");
    result_bool(&result, "trace_cut", true);
    *state = &result;
    return 0;
}

static int teardown(void **state)
{
    result_release(*state);
    return 0;
}

static void holds__well_formed__as_written(void **state)
{
    static const struct {
        const char *text;
        bool holds;
    } cases[] = {
        {"preemptions > 2", true},
        {"preemptions > 3", false},
        {"preemptions >= 3", true},
        {"preemptions<4", true},
        {"preemptions <= 2", false},
        {"preemptions == 3", true},
        {"preemptions != 3", false},
        {"internal_fragmentation > 2e-1", true},
        {"internal_fragmentation > -1", true},
        {"refusals.by_class.despite_free == 0", true},
        {"trace_cut == 1", true},
        /* && binds closer than ||: false && true || true; false || false && true */
        {"preemptions > 9 && preemptions > 0 || preemptions == 3", true},
        {"preemptions > 9 || preemptions > 9 && preemptions > 0", false},
        {"preemptions > 2 && internal_fragmentation > 0.2", true},
        {"preemptions > 2 && internal_fragmentation > 0.3", false},
        /* parentheses: (true || false) && false; false && (true || true); nested */
        {"(preemptions == 3 || preemptions > 9) && preemptions > 9", false},
        {"preemptions > 9 && (preemptions == 3 || preemptions > 0)", false},
        {"preemptions == 3 && (preemptions > 9 || ((preemptions < 4)))", true},
        {"(preemptions>9)||(internal_fragmentation<1&&trace_cut==1)", true},
        /* null makes every comparison false, also != and those inside an object that is one null */
        {"tpot_ns.p99 > 0", false},
        {"tpot_ns.p99 <= 0", false},
        {"tpot_ns.p99 != 7", false},
        {"states_saturated.live < 2", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool holds = !cases[i].holds;
    char null_key[CONDITION_KEY_BYTES];
        struct err err = {0};
        if (condition_check(cases[i].text, &err)) fail_msg("%s", err.text);
        if (condition_holds(cases[i].text, *state, &holds, null_key, &err)) fail_msg("%s", err.text);
        if (holds != cases[i].holds) fail_msg("%s: found %d", cases[i].text, holds);
    }
}

static void holds__malformed__says_where(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "'': column 1: found '', expected the name of a figure"},
        {"preemptions", "'preemptions': column 12: found '', expected one of < <= > >= == !="},
        {"preemptions > x", "'preemptions > x': column 15: found 'x', expected a number"},
        {"preemptions > nan", "'preemptions > nan': column 15: found 'nan', expected a number"},
        {"preemptions > 1 x", "'preemptions > 1 x': column 17: found 'x', expected &&, || or the end"},
        {"preemptions > 1 &&", "'preemptions > 1 &&': column 19: found '', expected the name of a figure"},
        {"(preemptions > 1", "'(preemptions > 1': column 17: found '', expected &&, || or )"},
        {"preemptions > 1)", "'preemptions > 1)': column 16: found ')', expected &&, || or the end"},
        {"()", "'()': column 2: found ')', expected the name of a figure"},
        {"((((((((((((((((((((((((((((((((((a > 1", "'((((((((((((((((((((((((((((((((((a > 1': column 34: found '(a > 1', expected at most 32 parentheses within each other"},
        {"= 3", "'= 3': column 1: found '= 3', expected the name of a figure"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool holds;
    char null_key[CONDITION_KEY_BYTES];
        struct err err = {0}, check_err = {0};
        assert_int_equal(condition_holds(cases[i].text, *state, &holds, null_key, &err), -1);
        check_str_eq(err.text, cases[i].message);
        assert_int_equal(err.kind, ERR_USAGE);
        assert_int_equal(condition_check(cases[i].text, &check_err), -1); /* found before anything runs */
        check_str_eq(check_err.text, cases[i].message);
    }
}

/* Known only once there is a result. */
static void holds__no_such_figure_or_a_text__is_an_error(void **state)
{
    bool holds;
    char null_key[CONDITION_KEY_BYTES];
    struct err err = {0}, text_err = {0};
    assert_int_equal(condition_holds("premptions > 1", *state, &holds, null_key, &err), -1);
    check_str_eq(err.text, "'premptions > 1': no figure is called 'premptions'");
    assert_int_equal(condition_holds("policy > 1", *state, &holds, null_key, &text_err), -1);
    check_str_eq(text_err.text, "'policy > 1': policy is a text, expected a number");
}

/* A name as long as the longest buffer and one longer must be refused, not cut. */
static void holds__very_long_name__is_refused(void **state)
{
    char text[200];
    bool holds;
    char null_key[CONDITION_KEY_BYTES];
    struct err err = {0};
    for (size_t i = 0; i < sizeof text; i++) text[i] = 'a';
    text[sizeof text - 1] = '\0';
    assert_int_equal(condition_holds(text, *state, &holds, null_key, &err), -1);
    check_str_has(err.text, "expected the name of a figure");
}

static void keep(void *context, const char *key)
{
    char *all = context;
    strcat(strcat(all, key), " ");
}

static void keys__any_condition__in_order(void **state)
{
    (void)state;
    char all[200] = "";
    struct err err = {0};
    assert_int_equal(condition_keys("(a.b > 1 || c < 2) && a.b != 3", keep, all, &err), 0);
    check_str_eq(all, "a.b c a.b ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds__well_formed__as_written),
        cmocka_unit_test(holds__malformed__says_where),
        cmocka_unit_test(holds__no_such_figure_or_a_text__is_an_error),
        cmocka_unit_test(holds__very_long_name__is_refused),
        cmocka_unit_test(keys__any_condition__in_order),
    };
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
