/* pagesim sweep --plot, as a user runs it. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli_run.h"

#define TRACE "gen:requests=40,arrivals=poisson:20,prompt=fixed:100,output=fixed:20"

static int setup(void **state)
{
    *state = cli_temp_dir();
    return 0;
}

static int teardown(void **state)
{
    cli_temp_remove(*state);
    return 0;
}

static void sweep(struct cli_result *result, const char *dir, const char *policies)
{
    CLI(result, "sweep", TRACE, "--policy", policies, "--block-size", "16,64", "--pool-tokens", "1024", "--output",
        cli_path(dir, "results.jsonl"), "--plot", cli_path(dir, "plots"));
}

/* What one line is: not empty, and no line feed but the last byte. */
static void check_one_line(const char *text)
{
    const char *end = strchr(text, '\n');
    assert_non_null(end);
    assert_true(end > text);
    check_str_eq(end, "\n");
}

static void sweep_plot__two_policies__figures_beside_results(void **state)
{
    static const char *const files[] = {
        "plots/fragmentation.csv", "plots/fragmentation.svg", "plots/fragmentation.png", "plots/states.svg",
        "plots/states.png",        "plots/refusals.svg",      "plots/refusals.png",      "plots/latency.svg",
        "plots/latency.png",       "results.jsonl"};
    struct cli_result result;
    sweep(&result, *state, "static,dynamic");
    check_i64_eq(result.status, 0);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *text = cli_read(cli_path(*state, files[i]));
        assert_non_null(text);
        assert_true(text[0] != '\0');
        free(text);
    }
    cli_release(&result);
}

/* The figure's numbers are those of the results, digit for digit. */
static void sweep_plot__csv__has_the_figures_of_the_results(void **state)
{
    struct cli_result result;
    char key[] = "\"internal_fragmentation\": ";
    sweep(&result, *state, "dynamic");
    check_i64_eq(result.status, 0);
    char *rows = cli_read(cli_path(*state, "results.jsonl"));
    char *csv = cli_read(cli_path(*state, "plots/fragmentation.csv"));
    assert_non_null(rows);
    assert_non_null(csv);
    const char *line = rows;
    size_t lines = 0;
    for (; (line = strstr(line, key)); lines++) {
        char field[64];
        line += sizeof key - 1;
        size_t digits = strcspn(line, ",}");
        assert_true(digits > 0 && digits < sizeof field - 2);
        field[0] = field[digits + 1] = ',';
        memcpy(field + 1, line, digits);
        field[digits + 2] = '\0';
        check_str_has(csv, field);
    }
    check_u64_eq(lines, 2);
    free(rows);
    free(csv);
    cli_release(&result);
}

static void sweep_plot__no_gnuplot__one_clear_line(void **state)
{
    struct cli_result result;
    char *old = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    assert_non_null(old);
    setenv("PATH", "", 1);
    sweep(&result, *state, "dynamic");
    setenv("PATH", old, 1);
    free(old);
    check_i64_eq(result.status, 1);
    check_str_has(result.err, "gnuplot: not found in PATH");
    check_one_line(result.err);
    cli_release(&result);
}

static void sweep_plot__folder_is_a_file__one_clear_line(void **state)
{
    struct cli_result result;
    cli_write(*state, "plots", "x", 1);
    sweep(&result, *state, "dynamic");
    check_i64_eq(result.status, 1);
    check_str_has(result.err, "/plots: is a file, expected a folder");
    check_one_line(result.err);
    cli_release(&result);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(sweep_plot__two_policies__figures_beside_results),
        CASE(sweep_plot__csv__has_the_figures_of_the_results),
        CASE(sweep_plot__no_gnuplot__one_clear_line),
        CASE(sweep_plot__folder_is_a_file__one_clear_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
