/* pagesim bench: the form of what it prints. Never how fast anything was. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <jansson.h>
#include <string.h>

static void bench__json__a_figure_each_within_its_bounds(void **state)
{
    (void)state;
    struct cli_result r;
    json_error_t error;
    CLI(&r, "bench", "--json", "--runs", "3", "--only", "pool 10^4");
    assert_int_equal(r.status, 0);
    json_t *all = json_loads(r.out, 0, &error), *one;
    assert_non_null(all);
    check_u64_eq(json_array_size(all), 3); /* hits, misses, evictions */
    size_t i;
    json_array_foreach(all, i, one) {
        double median = json_number_value(json_object_get(one, "median"));
        double least = json_number_value(json_object_get(one, "min"));
        double most = json_number_value(json_object_get(one, "max"));
        assert_true(least > 0 && least <= median && median <= most);
        assert_true(json_integer_value(json_object_get(one, "peak_resident_kib")) > 0);
        assert_true(json_is_string(json_object_get(one, "unit")));
    }
    json_decref(all);
    cli_release(&r);
}

static void bench__only__no_match_no_line(void **state)
{
    (void)state;
    struct cli_result r;
    CLI(&r, "bench", "--runs", "1", "--only", "no such measurement");
    assert_int_equal(r.status, 0);
    check_str_has(r.out, "median");
    assert_ptr_equal(strchr(r.out, '\n') + 1, r.out + r.out_bytes); /* the heading alone */
    cli_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bench__json__a_figure_each_within_its_bounds),
        cmocka_unit_test(bench__only__no_match_no_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
