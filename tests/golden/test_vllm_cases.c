/* The built program against the recorded decisions of vLLM v1: every case of both rule sets, every field of
 * every line that `pagesim run --case DIR --steps -` writes. */
#include "tests/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/cli_run.h"
#include "tests/model/v1_reference.h"

enum { CASES_2026_08 = 35, CASES_2026_04 = 34 };

static const char *const folders[] = {"tests/golden/vllm-v1", "tests/golden/vllm-v1-2026-04"};

static void check_line(const char *dir, size_t number, const char *actual_text, const char *expected_text)
{
    json_t *actual = json_loads(actual_text, JSON_REJECT_DUPLICATES, NULL);
    json_t *expected = json_loads(expected_text, JSON_REJECT_DUPLICATES, NULL);
    char *what = NULL;
    assert_non_null(expected);
    if (!actual) fail_msg("%s: line %zu is not JSON: %s", dir, number, actual_text);
    if (!v1_lines_equal(actual, expected, &what)) fail_msg("%s/expected.jsonl:%zu: %s", dir, number, what);
    json_decref(actual);
    json_decref(expected);
}

static void case__replayed__every_line_agrees(void **state)
{
    const char *dir = *state;
    struct cli_result result;
    CLI(&result, "run", "--case", dir, "--steps", "-");
    check_str_eq(result.err, "");
    check_i64_eq(result.status, 0);
    char *text = v1_read_text(dir, "expected.jsonl");
    assert_non_null(text);
    char *expected_rest = text, *actual_rest = result.out, *expected, *actual;
    size_t number = 0;
    while ((expected = v1_next_line(&expected_rest)) != NULL) {
        number++;
        actual = v1_next_line(&actual_rest);
        if (!actual) fail_msg("%s: the output ends before line %zu", dir, number);
        check_line(dir, number, actual, expected);
    }
    if (v1_next_line(&actual_rest)) fail_msg("%s: more than %zu lines", dir, number);
    free(text);
    cli_release(&result);
}

static int is_case(const struct dirent *entry)
{
    return entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
}

/* Names and initial states live until the program ends. */
static size_t add_cases(const char *folder, struct CMUnitTest *tests, size_t n, size_t max)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_case, alphasort);
    for (int i = 0; i < count; i++) {
        char *path = NULL, *name = NULL;
        if (n == max || asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0 ||
            asprintf(&name, "%s: every line of the program agrees", path) < 0) {
            abort();
        }
        tests[n++] = (struct CMUnitTest){
            .name = name, .test_func = case__replayed__every_line_agrees, .initial_state = path};
        free(entries[i]);
    }
    free(entries);
    return n;
}

int main(void)
{
    static struct CMUnitTest tests[CASES_2026_08 + CASES_2026_04]; /* static: the names stay reachable */
    size_t n = 0;
    for (size_t i = 0; i < 2; i++) n = add_cases(folders[i], tests, n, sizeof tests / sizeof tests[0]);
    if (n != CASES_2026_08 + CASES_2026_04) {
        fprintf(stderr, "tests/golden: found %zu cases, expected %d\n", n, CASES_2026_08 + CASES_2026_04);
        return 1;
    }
    return _cmocka_run_group_tests("test_vllm_cases", tests, n, NULL, NULL) != 0;
}
