/* The program from outside: what it prints where, its exit statuses, and one clear line for each misuse. */
#include "tests/check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/eviction.h"
#include "sim/engine_core.h"
#include "allocator/kv_policy.h"
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

static const char TRACE[] = "{\"arrival_ns\":0,\"prompt_tokens\":17,\"output_tokens\":2}\n";

static const char *write_trace(const char *folder)
{
    return cli_write(folder, "trace.jsonl", TRACE, sizeof TRACE - 1);
}

/* Nothing on stdout, and `line` on stderr. */
static void check_refused(struct cli_result *result, int status, const char *line)
{
    char expected[1200];
    snprintf(expected, sizeof expected, "pagesim: %s\n", line);
    check_str_eq(result->err, expected);
    check_str_eq(result->out, "");
    check_i64_eq(result->status, status);
    cli_release(result);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

/* --- misuse --------------------------------------------------------------------------------------- */

static void usage__wrong_arguments__say_so_in_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *argv[8];
        const char *line;
    } cases[] = {
        {{NULL}, "no command given; 'pagesim help' lists them"},
        {{"rnu"}, "unknown command 'rnu'; 'pagesim help' lists them"},
        {{"help", "rnu"}, "unknown command 'rnu'; 'pagesim help' lists them"},
        {{"run"},
         "no trace given: name a file, or a built-in one such as --trace preset:azure-conv"},
        {{"run", "--blok-size", "3"}, "--blok-size: unknown option, did you mean --block-size?"},
        {{"run", "--block-size", "0", "t"},
         "--block-size: found '0', expected a count from 1 to 1048576"},
        {{"run", "--kv-cache-memory-bytes", "16GIB", "t"},
         "--kv-cache-memory-bytes: found '16GIB', expected bytes (16GiB, 80GB, 16k) from 1 to "
         "4611686018427387904"},
        {{"run", "--kv-cache-memory-bytes", "99999999999999999999TB", "t"},
         "--kv-cache-memory-bytes: found '99999999999999999999TB', expected bytes (16GiB, 80GB, 16k) from 1 "
         "to 4611686018427387904"},
        {{"run", "--seed", "1", "--seed=2", "t"}, "--seed: given twice"},
        {{"run", "--policy", "dynamic", "--reserve", "max", "t"},
         "--reserve: policy dynamic has no such option"},
        {{"run", "--config", "/nowhere/c.ini"}, "/nowhere/c.ini: No such file or directory"},
        {{"run", "--config", "tests"}, "tests: Is a directory"},
        {{"policies", "slab"}, "unknown policy 'slab'; 'pagesim policies' lists them"},
        {{"policies", "static", "dynamic"}, "found 'dynamic', expected one policy"},
        {{"run", "--\033[2J"}, "--?[2J: unknown option"}, /* nothing that steers a terminal */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_result result;
        cli_run(&result, NULL, cases[i].argv);
        check_refused(&result, 2, cases[i].line);
    }
}

static void usage__pool_below_one_block__is_refused(void **state)
{
    struct cli_result result;
    CLI(&result, "run", write_trace(*state), "--pool-tokens", "15");
    check_refused(&result, 2,
                  "--pool-tokens: a pool of 1966080 bytes is smaller than one block of 16 tokens, "
                  "2097152 bytes");
}

static void usage__config_file__names_file_and_line(void **state)
{
    static const char text[] = "seed = 2\n[run]\nblock-size = 0\n";
    const char *path = cli_write(*state, "c.ini", text, sizeof text - 1);
    char line[4400];
    struct cli_result result;
    CLI(&result, "run", "--config", path, "t");
    snprintf(line, sizeof line, "%s:3: block-size: found '0', expected a count from 1 to 1048576", path);
    check_refused(&result, 2, line);
}

static void input__missing_trace_or_folder__is_bad_input(void **state)
{
    struct cli_result result;
    CLI(&result, "run", cli_path(*state, "none.csv"));
    check_i64_eq(result.status, 3);
    check_str_has(result.err, "none.csv: ");
    check_u64_eq(count_lines(result.err), 1);
    check_str_eq(result.out, "");
    cli_release(&result);
    CLI(&result, "run", (const char *)*state);
    check_i64_eq(result.status, 3);
    check_str_has(result.err, "directory");
    check_u64_eq(count_lines(result.err), 1);
    cli_release(&result);
}

static void output__folder_for_a_file__leaves_nothing(void **state)
{
    struct cli_result result;
    const char *trace = write_trace(*state);
    CLI(&result, "run", trace, "--timeline", (const char *)*state);
    check_i64_eq(result.status, 2);
    check_str_has(result.err, ": is a directory, expected a file\n");
    check_u64_eq(count_lines(result.err), 1);
    cli_release(&result);
    check_u64_eq(cli_count_entries(*state), 1); /* the trace */
}

/* --- standard output that cannot be written --------------------------------------------------------- */

static void stdout__nobody_reads__is_a_failure_in_one_line(void **state)
{
    (void)state;
    struct cli_result result;
    const struct cli_input closed = {.stdout_closed_pipe = 1};
    cli_run(&result, &closed, (const char *const[]){"run", "--help", NULL});
    check_refused(&result, 1, "standard output: Broken pipe");
}

static void stdout__disk_full__is_a_failure_in_one_line(void **state)
{
    (void)state;
    struct cli_result result;
    const struct cli_input full = {.stdout_path = "/dev/full"};
    cli_run(&result, &full, (const char *const[]){"policies", "--json", NULL});
    check_refused(&result, 1, "standard output: No space left on device");
}

static void stdout__full_while_running__is_a_failure_in_one_line(void **state)
{
    struct cli_result result;
    const struct cli_input full = {.stdout_path = "/dev/full"};
    cli_run(&result, &full, (const char *const[]){"run", "--json", write_trace(*state), NULL});
    check_refused(&result, 1, "standard output: No space left on device");
}

/* Started without a stdout, an output file must not become it. */
static void stdout__closed_from_the_start__no_file_is_hit(void **state)
{
    struct cli_result result;
    const char *trace = write_trace(*state), *timeline = cli_path(*state, "timeline.csv");
    const struct cli_input closed = {.stdout_closed = 1};
    cli_run(&result, &closed,
            (const char *const[]){"run", trace, "--json", "--timeline", timeline, NULL});
    check_refused(&result, 1, "standard output: Bad file descriptor");
    char *text = cli_read(timeline);
    if (text) assert_null(strstr(text, "finished"));
    free(text);
    text = cli_read(trace);
    check_str_eq(text, TRACE);
    free(text);
}

/* --- help and version -------------------------------------------------------------------------------- */

static void check_help(const struct cli_result *result, const char *command)
{
    check_i64_eq(result->status, 0);
    check_str_eq(result->err, "");
    check_str_has(result->out, "usage: pagesim ");
    size_t width = 0;
    for (const char *p = result->out; *p; p++) {
        width = *p == '\n' ? 0 : width + 1;
        if (width > 80) fail_msg("%s: wider than 80 columns: %.60s", command, p - 80);
    }
}

/* Every command that `help` lists has a help, the same by either way to it. */
static void help__each_command__fits_80_columns(void **state)
{
    (void)state;
    struct cli_result all, one, other;
    size_t commands = 0;
    CLI(&all, "help");
    check_help(&all, "help");
    for (char *line = strtok(all.out, "\n"); line; line = strtok(NULL, "\n")) {
        char name[32];
        if (strncmp(line, "  ", 2) != 0 || line[2] == ' ') continue;
        if (sscanf(line + 2, "%31[a-z]", name) != 1) continue;
        if (strcmp(name, "help") == 0) break;
        CLI(&one, name, "--help");
        CLI(&other, "help", name);
        check_help(&one, name);
        check_str_eq(other.out, one.out);
        cli_release(&one);
        cli_release(&other);
        commands++;
    }
    cli_release(&all);
    assert_true(commands >= 2);
}

static void help__run__shows_defaults_units_and_sections(void **state)
{
    (void)state;
    struct cli_result result;
    CLI(&result, "run", "--help");
    static const char *const parts[] = {
        "usage: pagesim run [OPTION...] ",
        "\nMemory\n  --block-size TOKENS         token slots of a block [16]\n",
        "\nAllocation policy\n",
        "  --reserve WORD ",
        "  --[no-]enable-chunked-prefill\n",
        "duration of a step under --step-time unit [1ms]\n",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) check_str_has(result.out, parts[i]);
    cli_release(&result);
}

static void version__asked__is_one_line(void **state)
{
    (void)state;
    struct cli_result result;
    CLI(&result, "--version");
    check_i64_eq(result.status, 0);
    check_str_eq(result.out, "pagesim " PAGESIM_VERSION "\n");
    cli_release(&result);
}

/* --- policies ------------------------------------------------------------------------------------------ */

static void policies__list__names_each(void **state)
{
    (void)state;
    struct cli_result list, page;
    CLI(&list, "policies");
    check_i64_eq(list.status, 0);
    for (size_t i = 0; i < kv_registry_count(); i++) {
        const struct kv_policy_ops *ops = kv_registry_at(i);
        char heading[64];
        snprintf(heading, sizeof heading, "\n%s\n", ops->name);
        check_str_has(list.out, heading);
        CLI(&page, "policies", ops->name);
        check_i64_eq(page.status, 0);
        check_str_has(page.out, "\nSource: ");
        cli_release(&page);
    }
    cli_release(&list);
}

static void policies__json__is_the_policies_own_tables(void **state)
{
    (void)state;
    struct cli_result result;
    CLI(&result, "policies", "--json");
    check_i64_eq(result.status, 0);
    json_error_t where;
    json_t *root = json_loads(result.out, JSON_REJECT_DUPLICATES, &where);
    assert_non_null(root);
    check_u64_eq(json_array_size(root), kv_registry_count() + kv_eviction_count() + scheduler_count());
    for (size_t i = 0; i < kv_eviction_count(); i++)
        check_str_eq(json_string_value(json_object_get(json_array_get(root, kv_registry_count() + i), "name")),
                     kv_eviction_at(i)->name);
    for (size_t i = 0; i < kv_registry_count(); i++) {
        const struct kv_policy_ops *ops = kv_registry_at(i);
        const json_t *policy = json_array_get(root, i);
        const json_t *options = json_object_get(policy, "options");
        check_str_eq(json_string_value(json_object_get(policy, "name")), ops->name);
        size_t count = 0;
        for (; ops->options && ops->options[count]; count++)
            check_str_eq(json_string_value(json_object_get(json_array_get(options, count), "default")),
                         ops->options[count]->default_text);
        check_u64_eq(json_array_size(options), count);
    }
    json_decref(root);
    cli_release(&result);
}

/* --- runs ------------------------------------------------------------------------------------------------- */

/* A condition decides the exit status, and results come all the same. */
static void fail_if__holds__exits_with_4(void **state)
{
    struct cli_result result;
    const char *trace = write_trace(*state);
    CLI(&result, "run", trace, "--json", "--fail-if", "finished >= 1");
    check_i64_eq(result.status, 4);
    check_str_has(result.out, "\"finished\"");
    cli_release(&result);
    CLI(&result, "run", trace, "--json", "--fail-if", "finished > 1");
    check_i64_eq(result.status, 0);
    check_str_eq(result.err, "");
    cli_release(&result);
}

/* The command line, a configuration file and vLLM's spelling with '_' mean the same bytes. */
static void config__same_options__same_bytes(void **state)
{
    struct cli_result line, file, spelled;
    static const char text[] = "[run]\nblock-size = 32\npolicy = dynamic\njson = yes\n";
    const char *trace = write_trace(*state);
    const char *path = cli_write(*state, "c.ini", text, sizeof text - 1);
    CLI(&line, "run", trace, "--block-size", "32", "--policy", "dynamic", "--json");
    CLI(&file, "run", "--config", path, "--trace", trace);
    CLI(&spelled, "run", "--block_size=32", "--policy=dynamic", "--json", "--", trace);
    check_i64_eq(line.status, 0);
    check_str_has(line.out, "dynamic");
    check_str_eq(file.out, line.out);
    check_str_eq(spelled.out, line.out);
    cli_release(&line);
    cli_release(&file);
    cli_release(&spelled);
}

static void stdin__trace__is_read(void **state)
{
    (void)state;
    struct cli_result result;
    const struct cli_input input = {.stdin_bytes = TRACE, .stdin_count = sizeof TRACE - 1};
    cli_run(&result, &input, (const char *const[]){"run", "-", "--json", NULL});
    check_i64_eq(result.status, 0);
    check_str_has(result.out, "\"requests\"");
    cli_release(&result);
}

int main(void)
{
#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage__wrong_arguments__say_so_in_one_line),
        WITH_FOLDER(usage__pool_below_one_block__is_refused),
        WITH_FOLDER(usage__config_file__names_file_and_line),
        WITH_FOLDER(input__missing_trace_or_folder__is_bad_input),
        WITH_FOLDER(output__folder_for_a_file__leaves_nothing),
        cmocka_unit_test(stdout__nobody_reads__is_a_failure_in_one_line),
        cmocka_unit_test(stdout__disk_full__is_a_failure_in_one_line),
        WITH_FOLDER(stdout__full_while_running__is_a_failure_in_one_line),
        WITH_FOLDER(stdout__closed_from_the_start__no_file_is_hit),
        cmocka_unit_test(help__each_command__fits_80_columns),
        cmocka_unit_test(help__run__shows_defaults_units_and_sections),
        cmocka_unit_test(version__asked__is_one_line),
        cmocka_unit_test(policies__list__names_each),
        cmocka_unit_test(policies__json__is_the_policies_own_tables),
        WITH_FOLDER(fail_if__holds__exits_with_4),
        WITH_FOLDER(config__same_options__same_bytes),
        cmocka_unit_test(stdin__trace__is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
