/* make claims: every verdict comes from the runs, and follows when an input changes. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The verdict as it is, by a reason that stands in the comment, and another input with its verdict. Each is the beginning
 * of the text. */
static const struct {
    const char *number, *verdict;
    const char *inputs[2]; /* NAME=VALUE */
    const char *changed;
} CLAIMS[] = {
    {"1", "true", {"FLAGS=--quantization fp8 --kv-cache-dtype fp8"}, "false"},
    {"2", "true", {"KV=bf16"}, "false"},
    /* 70.55 G parameters on four GPUs: 35.3 GB, in FP8 18.2 GB. 30 GB of cache, and half of them, with each. */
    {"3", "false", {"MEMORY=65.3 48.2 33.2", "SPEEDS=1000 1650 1700"}, "true"},
    {"4", "true", {"POLICY=static"}, "false"},
    {"5", "false", {"BLOCK_SIZES=16,32"}, "true"},
    {"6", "false", {"EVEN=1.2", "UNEVEN=fixed"}, "depends on the pool: lower in 1 of 2"},
    {"7", "depends: in 1 of 6", {"ACTIVATIONS=1"}, "false"},
    {"8", "false", {"OPTIONS=--cuda-graph-memory 8GiB", "SERVERS=llama-3-8b:h100-sxm:1"}, "true"},
    /*9*/ {"9", "depends on the device: safe at 0.90 and 0.92 in 8 of 8", {"LATE=fixed:40GiB"},
     "depends on the device: safe at 0.90 and 0.92 in 0 of 8"},
    {"10", "depends: the loader", {"RESIDUE=0"}, "false"},
    {"11", "depends on sharing and load: 6 of 12", {"SHARED_TOKENS=2000 6000"}, "true"},
    {"12", "true", {"OLDER=prefix", "NEWER=static"}, "false"},
    {"13", "not known", {"DYNAMIC_US_PER_LAYER=18"}, "true"},
};

static void run_claim(const char *number, const char *const *inputs, const char *verdict)
{
    char *dir = cli_temp_dir();
    char line[200];
    const struct cli_input input = {.program = "env", .limit_ms = 120000};
    const char *argv[8];
    size_t n = 0;
    for (; n < 2 && inputs[n]; n++) argv[n] = inputs[n];
    argv[n++] = "sh";
    argv[n++] = "scripts/claims/claims.sh";
    argv[n++] = cli_program();
    argv[n++] = dir;
    argv[n++] = number;
    argv[n] = NULL;
    struct cli_result r;
    cli_run(&r, &input, argv);
    snprintf(line, sizeof line, "   verdict: %s", verdict);
    if (r.status != 0 || r.err[0] || !strstr(r.out, line)) fail_msg("claim %s:\n%s%s", number, r.out, r.err);
    cli_release(&r);
    cli_temp_remove(dir);
}

/* All in one go; the table is the one in the documentation. */
static void claims__as_they_are__have_these_verdicts(void **state)
{
    (void)state;
    char *dir = cli_temp_dir();
    struct cli_result r;
    const struct cli_input input = {.program = "sh", .limit_ms = 300000};
    cli_run(&r, &input, (const char *const[]){"scripts/claims/claims.sh", cli_program(), dir, NULL});
    if (r.status != 0 || r.err[0]) fail_msg("%s%s", r.out, r.err);
    char *table = cli_read(cli_path(dir, "claims.md")), *page = cli_read("docs/claims.md");
    assert_non_null(table);
    assert_non_null(page);
    for (size_t i = 0; i < sizeof CLAIMS / sizeof CLAIMS[0]; i++) {
        char row[16], verdict[200];
        snprintf(row, sizeof row, "\n| %s | ", CLAIMS[i].number);
        snprintf(verdict, sizeof verdict, "| **%s", CLAIMS[i].verdict);
        const char *at = strstr(table, row), *found = at ? strstr(at, verdict) : NULL;
        if (!found || memchr(at + 1, '\n', (size_t)(found - at - 1))) fail_msg("claim %s: not '%s' in\n%s", CLAIMS[i].number, verdict, table);
    }
    if (!strstr(page, table)) fail_msg("docs/claims.md has not this table (make claims):\n%s", table);
    free(table);
    free(page);
    cli_release(&r);
    cli_temp_remove(dir);
}

static void claims__another_input__other_verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CLAIMS / sizeof CLAIMS[0]; i++)
        run_claim(CLAIMS[i].number, CLAIMS[i].inputs, CLAIMS[i].changed);
}

static void claims__unknown_number__is_said(void **state)
{
    (void)state;
    char *dir = cli_temp_dir();
    struct cli_result r;
    const struct cli_input input = {.program = "sh"};
    cli_run(&r, &input, (const char *const[]){"scripts/claims/claims.sh", cli_program(), dir, "14", NULL});
    assert_int_equal(r.status, 2);
    check_str_has(r.err, "no claim has the number 14");
    cli_release(&r);
    cli_temp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims__as_they_are__have_these_verdicts),
        cmocka_unit_test(claims__another_input__other_verdicts),
        cmocka_unit_test(claims__unknown_number__is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
