/* Manual pages and completion: made from the option table, as the help is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/options.h"
#include "tests/check.h"
#include "tests/cli_run.h"

static const struct {
    const char *words[2];
    uint32_t options;
} PAGES[] = {
    {{"run", NULL}, FOR_RUN},
    {{"sweep", NULL}, FOR_SWEEP},
    {{"cache", NULL}, FOR_CACHE},
    {{"trace", "gen"}, FOR_TRACE_GEN},
    {{"device", "replay"}, FOR_DEVICE_REPLAY},
};

/* "block-size" as a page writes it: block\-size. */
static void escaped(char *out, size_t bytes, const char *before, const char *name)
{
    size_t n = (size_t)snprintf(out, bytes, "%s", before);
    for (; *name && n + 3 < bytes; name++) {
        if (*name == '-') out[n++] = '\\';
        out[n++] = *name;
    }
    out[n] = '\0';
}

static void man__every_command__has_each_of_its_options(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof PAGES / sizeof PAGES[0]; p++) {
        struct cli_result page;
        size_t found = 0;
        CLI(&page, "help", "--man", PAGES[p].words[0], PAGES[p].words[1]);
        assert_int_equal(page.status, 0);
        for (size_t i = 0; i < option_count(); i++) {
            const struct option_spec *spec = option_at(i);
            char text[128];
            escaped(text, sizeof text, spec->kind == OPT_BOOL ? "\\-\\-[no\\-]" : "\\-\\-", spec->name);
            strcat(text, "\\fR");
            bool has = strstr(page.out, text) != NULL;
            if (has != (option_find(PAGES[p].options, spec->name) != NULL))
                fail_msg("page of %s: option %s %s", PAGES[p].words[0], spec->name, has ? "too many" : "missing");
            found += has;
        }
        assert_true(found > 5);
        cli_release(&page);
    }
}

static void man__no_line__begins_with_a_stray_request(void **state)
{
    (void)state;
    static const char *const requests[] = {"TH", "SH", "SS", "TP", "PP", "nf", "fi", "B", "BR"};
    struct cli_result page;
    CLI(&page, "help", "--man", "cache");
    assert_int_equal(page.status, 0);
    for (char *line = strtok(page.out, "\n"); line; line = strtok(NULL, "\n")) {
        if (*line != '.') continue;
        size_t bytes = strcspn(line + 1, " "), r = 0;
        while (r < 9 && (strlen(requests[r]) != bytes || strncmp(requests[r], line + 1, bytes) != 0)) r++;
        if (r == 9) fail_msg("line '%s'", line);
    }
    cli_release(&page);
}

static void man__the_program__lists_every_command_of_the_help(void **state)
{
    (void)state;
    struct cli_result page;
    CLI(&page, "help", "--man");
    assert_int_equal(page.status, 0);
    for (const char *const *name = (const char *const[]){"run", "sweep", "cache", "trace", "device", "policies", "bench", NULL}; *name; name++) {
        char text[64];
        snprintf(text, sizeof text, ".BR pagesim\\-%s (1)", *name);
        assert_non_null(strstr(page.out, text));
    }
    cli_release(&page);
}

/* What bash would offer for the words of a command line; the last one is incomplete. */
static void complete(const char *words, int count, char *out, size_t bytes)
{
    struct cli_result script, offered;
    char text[512];
    char *dir = cli_temp_dir();
    CLI(&script, "help", "--completion", "bash");
    assert_int_equal(script.status, 0);
    const char *path = cli_write(dir, "pagesim.bash", script.out, script.out_bytes);
    snprintf(text, sizeof text, ". \"$1\"; COMP_WORDS=(%s); COMP_CWORD=%d; _pagesim; printf '%%s\\n' \"${COMPREPLY[@]}\"", words,
             count - 1);
    struct cli_input bash = {.program = "bash"};
    cli_run(&offered, &bash, (const char *const[]){"-c", text, "bash", path, NULL});
    assert_string_equal(offered.err, "");
    assert_int_equal(offered.status, 0);
    snprintf(out, bytes, "%s", offered.out);
    cli_release(&script);
    cli_release(&offered);
    cli_temp_remove(dir);
}

static void completion__bash__offers_commands_options_and_values(void **state)
{
    (void)state;
    char out[8192];
    complete("pagesim sw", 2, out, sizeof out);
    assert_string_equal(out, "sweep\n");
    complete("pagesim run --block-s", 3, out, sizeof out);
    assert_string_equal(out, "--block-size\n");
    complete("pagesim run --rules 2026-0", 4, out, sizeof out);
    assert_string_equal(out, "2026-08\n2026-04\n");
    complete("pagesim trace st", 3, out, sizeof out);
    assert_string_equal(out, "stats\n");
    complete("pagesim trace gen --bl", 4, out, sizeof out); /* an option of other commands only */
    assert_string_equal(out, "\n");
    /* readline gives --rules=2 as three words; a list goes on behind its last comma */
    complete("pagesim run --rules = 2026-04", 5, out, sizeof out);
    assert_string_equal(out, "2026-04\n");
    complete("pagesim sweep --policy static,prefix,dyn", 4, out, sizeof out);
    assert_string_equal(out, "static,prefix,dynamic\n");
}

static void completion__unknown_shell__is_a_usage_error(void **state)
{
    (void)state;
    struct cli_result result;
    CLI(&result, "help", "--completion", "fish");
    assert_int_equal(result.status, 2);
    assert_string_equal(result.out, "");
    assert_non_null(strstr(result.err, "found 'fish', expected bash"));
    cli_release(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(man__every_command__has_each_of_its_options),
        cmocka_unit_test(man__no_line__begins_with_a_stray_request),
        cmocka_unit_test(man__the_program__lists_every_command_of_the_help),
        cmocka_unit_test(completion__bash__offers_commands_options_and_values),
        cmocka_unit_test(completion__unknown_shell__is_a_usage_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
