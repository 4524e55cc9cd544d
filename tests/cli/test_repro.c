/* make repro: exit status 0 says that every published figure with a bound is within it. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void repro__built_program__figures_within_bounds(void **state)
{
    (void)state;
    char *dir = cli_temp_dir();
    struct cli_result r;
    struct cli_input input = {.program = "sh", .limit_ms = 300000};
    cli_run(&r, &input,
            (const char *const[]){"scripts/repro/repro.sh", cli_program(), dir, NULL});
    if (r.status != 0) print_error("%s%s", r.out, r.err);
    assert_int_equal(r.status, 0);
    /* 7 reservations of 2,048 leave 15,728 - 14,336 = 1,392 slots: 8.85 %. */
    check_str_has(r.out, "8.9       8.85");
    char *csv = cli_read(cli_path(dir, "figure2.csv"));
    assert_non_null(csv);
    check_str_has(csv, "Orca (max),simulated,");
    free(csv);
    char *svg = cli_read(cli_path(dir, "figure2.svg"));
    assert_non_null(svg);
    check_str_has(svg, "</svg>");
    free(svg);
    cli_release(&r);
    cli_temp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repro__built_program__figures_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
