/* The scripts that a newcomer and the continuous check rely on. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli_run.h"

static int folder_setup(void **state)
{
    *state = cli_temp_dir();
    return 0;
}

static int folder_teardown(void **state)
{
    cli_temp_remove(*state);
    return 0;
}

/* A test program that is a shell script, printing what cmocka prints. */
static void write_program(const char *folder, const char *name, const char *body)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "#!/bin/sh\n%s\n", body);
    assert_true(n > 0 && (size_t)n < sizeof text);
    assert_int_equal(chmod(cli_write(folder, name, text, (size_t)n), 0755), 0);
}

#define OK "echo '[       OK ] a'\n"
#define BAD "echo '[  FAILED  ] b'\necho reason >&2\n"
#define SKIP "echo '[  SKIPPED ] c'\n"
#define RAN(n) "echo '[==========] " #n " test(s) run.'\n"

/* Runs the repository's run_tests.sh in the folder. */
static void runner(struct cli_result *result, const char *folder, const char *programs)
{
    char root[4096], script[9000];
    assert_non_null(getcwd(root, sizeof root));
    snprintf(script, sizeof script, "cd '%s' && PAGESIM_TEST_SECONDS=2 sh '%s/scripts/run_tests.sh' %s",
             folder, root, programs);
    const struct cli_input input = {.program = "sh"};
    cli_run(result, &input, (const char *const[]){"-c", script, NULL});
}

static const char *last_line(const char *text)
{
    const char *end = text + strlen(text);
    if (end > text) end--;
    while (end > text && end[-1] != '\n') end--;
    return end;
}

static void run_tests__programs__are_added_up(void **state)
{
    static const struct {
        const char *body, *sum;
        int status;
    } cases[] = {
        {OK OK SKIP RAN(3) "exit 0", "2 passed, 0 failed, 1 skipped\n", 0},
        {OK BAD RAN(2) "exit 1", "1 passed, 1 failed, 0 skipped\n", 1},
        {OK "exit 0", "1 passed, 1 failed, 0 skipped\n", 1},            /* ended early */
        {OK RAN(1) "exit 3", "1 passed, 1 failed, 0 skipped\n", 1},     /* died at exit */
        {OK "kill -SEGV $$", "1 passed, 1 failed, 0 skipped\n", 1},
        {"exec sleep 60", "0 passed, 1 failed, 0 skipped\n", 1},        /* hangs */
        {SKIP RAN(1) "exit 0", "0 passed, 0 failed, 1 skipped\n", 1},   /* nothing was tested */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_result result;
        write_program(*state, "t", cases[i].body);
        runner(&result, *state, "./t");
        check_str_eq(last_line(result.out), cases[i].sum);
        check_i64_eq(result.status, cases[i].status);
        if (strstr(cases[i].body, "reason")) check_str_has(result.out, "reason");
        cli_release(&result);
    }
}

static void run_tests__two_groups_in_a_program__both_count(void **state)
{
    struct cli_result result;
    write_program(*state, "t", OK RAN(1) OK OK RAN(2) "exit 0");
    write_program(*state, "u", OK RAN(1) "exit 0");
    runner(&result, *state, "./t ./u");
    check_str_eq(last_line(result.out), "4 passed, 0 failed, 0 skipped\n");
    check_i64_eq(result.status, 0);
    cli_release(&result);
}

static void run_tests__no_program__is_a_failure(void **state)
{
    struct cli_result result;
    runner(&result, *state, "");
    check_str_eq(last_line(result.out), "0 passed, 0 failed, 0 skipped\n");
    check_i64_eq(result.status, 1);
    cli_release(&result);
}

/* A PATH with the few commands that the script itself uses, and no apt-get. */
static void setup__no_apt_get__prints_what_is_needed_and_stops(void **state)
{
    struct cli_result result;
    char script[4096];
    snprintf(script, sizeof script,
             "for c in sh dirname sed id; do ln -s \"$(command -v $c)\" '%s/'; done; "
             "PATH='%s' exec /bin/sh scripts/setup.sh demo",
             (char *)*state, (char *)*state);
    const struct cli_input input = {.program = "sh"};
    cli_run(&result, &input, (const char *const[]){"-c", script, NULL});
    check_i64_eq(result.status, 1);
    check_str_has(result.err, "this system has no apt-get");
    check_str_has(result.err, "make demo:\n");
    check_str_has(result.err, "  the command gnuplot\n");
    check_str_has(result.err, "  the library that Debian calls libcmocka-dev\n");
    cli_release(&result);
}

int main(void)
{
#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(run_tests__programs__are_added_up),
        WITH_FOLDER(run_tests__two_groups_in_a_program__both_count),
        WITH_FOLDER(run_tests__no_program__is_a_failure),
        WITH_FOLDER(setup__no_apt_get__prints_what_is_needed_and_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
