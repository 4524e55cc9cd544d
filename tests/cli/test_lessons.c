/* The lessons: every command prints what stands behind it, every number of the prose stands in a block. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void lessons__as_they_stand__agree_with_the_program(void **state)
{
    (void)state;
    struct cli_result r;
    const struct cli_input input = {.program = "sh", .limit_ms = 120000};
    cli_run(&r, &input, (const char *const[]){"scripts/lessons.sh", cli_program(), NULL});
    if (r.status != 0) fail_msg("%s%s", r.out, r.err);
    cli_release(&r);
}

/* In a copy, one line of sed spoils a page: the check must notice. */
static void spoiled(const char *sed, const char *says)
{
    char *dir = cli_temp_dir();
    char root[4096], text[20000];
    assert_non_null(getcwd(root, sizeof root));
    const char *program = cli_program();
    snprintf(text, sizeof text,
             "cd '%s' && mkdir -p scripts docs && cp '%s/scripts/lessons.sh' scripts/ && cp -r '%s/docs/lessons' docs/ && "
             "sed -i '%s' docs/lessons/9-usage.md && sh scripts/lessons.sh '%s%s%s'",
             dir, root, root, sed, *program == '/' ? "" : root, *program == '/' ? "" : "/", program);
    struct cli_result r;
    const struct cli_input input = {.program = "sh", .limit_ms = 120000};
    cli_run(&r, &input, (const char *const[]){"-c", text, NULL});
    assert_int_equal(r.status, 1);
    check_str_has(r.err, says);
    cli_release(&r);
    cli_temp_remove(dir);
}

static void lessons__another_output__is_found(void **state)
{
    (void)state;
    spoiled("s/internal_fragmentation 0.4688/internal_fragmentation 0.4700/", "9-usage.md differs from what its commands print");
}

static void lessons__a_number_from_nowhere__is_found(void **state)
{
    (void)state;
    spoiled("s/Ten prompts of 17 tokens take/Ten prompts of 93 tokens take/", "9-usage.md: numbers that stand in no block: 93");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lessons__as_they_stand__agree_with_the_program),
        cmocka_unit_test(lessons__another_output__is_found),
        cmocka_unit_test(lessons__a_number_from_nowhere__is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
