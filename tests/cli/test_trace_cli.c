/* `pagesim trace` as a user runs it: the four parts, and what bad input says and leaves behind. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/options.h"
#include "tests/cli_run.h"
#include "workloads/wl_genspec.h"

static char *dir;

static int make_dir(void **state)
{
    (void)state;
    dir = cli_temp_dir();
    return dir == NULL;
}

static int remove_dir(void **state)
{
    (void)state;
    cli_temp_remove(dir);
    return 0;
}

static const char *file(const char *text)
{
    return cli_write(dir, "t.csv", text, strlen(text));
}

/* argv ends the program with this status, nothing on standard output, one line on standard error
 * that is `pagesim: ` and the message. */
static void check_fails(const char *const *argv, int status, const char *message)
{
    struct cli_result result;
    cli_run(&result, NULL, argv);
    char line[2048];
    snprintf(line, sizeof line, "pagesim: %s\n", message);
    check_str_eq(result.err, line);
    check_str_eq(result.out, "");
    check_i64_eq(result.status, status);
    cli_release(&result);
}

#define FAILS(status, message, ...)                                                                \
    check_fails((const char *const[]){ __VA_ARGS__, NULL }, (status), (message))

static void gen_keys__every_one__is_an_option(void **state)
{
    (void)state;
    for (size_t i = 0; i < wl_genspec_key_count(); i++)
        if (option_find(FOR_TRACE_GEN, wl_genspec_key_at(i)->name) == NULL)
            fail_msg("no option --%s", wl_genspec_key_at(i)->name);
}

static void gen__options_and_spec__say_the_same(void **state)
{
    (void)state;
    struct cli_result by_options, by_spec;
    CLI(&by_options, "trace", "gen", "--preset", "shared-chat", "--requests", "50", "--seed", "7");
    CLI(&by_spec, "trace", "convert", "gen:preset=shared-chat,requests=50", "--seed=7");
    check_i64_eq(by_options.status, 0);
    check_str_eq(by_options.out, by_spec.out);
    check_str_eq(by_options.err, "");
    cli_release(&by_options);
    cli_release(&by_spec);
}

static void check__generated_file__has_the_generators_checksum(void **state)
{
    (void)state;
    struct cli_result gen, direct, from_file;
    const char *path = cli_path(dir, "g.jsonl");
    CLI(&gen, "trace", "gen", "--preset", "mooncake-conversation", "--requests", "400", "--output", path);
    check_i64_eq(gen.status, 0);
    check_str_eq(gen.out, "");
    check_str_has(gen.err, "read the result with --trace-block-size 512");
    CLI(&direct, "trace", "check", "--json", "gen:preset=mooncake-conversation,requests=400");
    CLI(&from_file, "trace", "check", "--json", "--trace-block-size", "512", path);
    const char *one = strstr(direct.out, "trace_checksum"), *other = strstr(from_file.out, "trace_checksum");
    assert_non_null(one);
    assert_non_null(other);
    check_str_eq(one, other); /* and all that follows */
    cli_release(&gen);
    cli_release(&direct);
    cli_release(&from_file);
}

static void convert__csv_from_a_pipe__goes_to_standard_output(void **state)
{
    (void)state;
    static const char text[] = "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"token_ids\": [1, 2, 3]}\n";
    const struct cli_input input = { .stdin_bytes = text, .stdin_count = sizeof text - 1 };
    struct cli_result result;
    cli_run(&result, &input, (const char *const[]){ "trace", "convert", "-", "--to", "csv", NULL });
    check_i64_eq(result.status, 0);
    check_str_eq(result.out, "arrival_ns,prompt_tokens,output_tokens,max_tokens,n,abort_ns,priority,"
                 "id,session,parent\n,3,2,,,,,,,\n");
    check_str_eq(result.err, "pagesim: -: CSV holds no content; it was left out\n");
    cli_release(&result);
}

static void stats__three_requests__add_up(void **state)
{
    (void)state;
    struct cli_result result;
    const char *path = file("prompt_tokens,output_tokens\n10,6\n20,0\n30,3\n");
    CLI(&result, "trace", "stats", "--json", path);
    check_i64_eq(result.status, 0);
    /* Totals 16, 20, 33. Blocks of 16: 1 + 2 + 3 = 6, 96 slots, 69 used. */
    check_str_has(result.out, "\"requests\": 3");
    check_str_has(result.out, "\"blocks\": 6,\n   \"allocated_slots\": 96,\n   \"used_slots\": 69,\n"
                              "   \"wasted_slots\": 27,\n   \"waste_ratio\": 0.28125");
    cli_release(&result);
    CLI(&result, "trace", "stats", path, "--max-requests", "2");
    check_str_has(result.out, "requests       2 (cut by --max-requests)");
    check_str_has(result.err, "cut after 2 requests by --max-requests");
    cli_release(&result);
}

static void convert__bad_line__leaves_nothing_behind(void **state)
{
    (void)state;
    char message[512];
    const char *path = file("prompt_tokens,output_tokens\n1,1\n2,-1\n");
    const char *out = cli_path(dir, "out.jsonl");
    snprintf(message, sizeof message, "%s:3:3: output_tokens: found '-1', expected a count of tokens "
             "up to 2^32", path);
    size_t before = cli_count_entries(dir);
    FAILS(3, message, "trace", "convert", path, "--output", out);
    check_u64_eq(cli_count_entries(dir), before);
    struct cli_result result;
    CLI(&result, "trace", "convert", path, "--output", out, "--skip-bad");
    check_i64_eq(result.status, 0);
    check_str_has(result.err, "skipped 1 bad lines");
    check_u64_eq(cli_count_entries(dir), before + 1);
    cli_release(&result);
}

static void check__bad_input__one_line_and_its_status(void **state)
{
    (void)state;
    char message[1024];
    const char *path = file("arrival_ns,prompt_tokens,output_tokens\n5,1,1\n4,1,1\n");
    snprintf(message, sizeof message, "%s:3:1: arrival_ns: found an arrival before that of the request "
             "before it, expected none earlier (--sort accepts any order)", path);
    FAILS(3, message, "trace", "check", path);
    struct cli_result result;
    CLI(&result, "trace", "check", "--sort", path);
    check_i64_eq(result.status, 0);
    cli_release(&result);
    snprintf(message, sizeof message, "%s: found a directory, expected a file", dir);
    FAILS(3, message, "trace", "check", dir);
    path = file("");
    snprintf(message, sizeof message, "%s: found an empty file, expected a trace", path);
    FAILS(3, message, "trace", "check", path);
    FAILS(3, "no/such: cannot open: No such file or directory", "trace", "stats", "no/such");
    FAILS(2, "preset: found 'x', expected one of azure-conv, azure-code, mooncake-conversation, "
          "shared-chat", "trace", "check", "preset:x");
    FAILS(2, "format: found 'x', expected one of azure_csv, llmservingsim_jsonl, mooncake_jsonl, "
          "pagesim_csv, pagesim_jsonl, vidur_csv, vllm_case_jsonl", "trace", "check", "--format", "x",
          path);
    FAILS(2, "trace: found 'x', expected one of gen, stats, convert, check", "trace", "x");
}

/* A line without end from a pipe: refused at 64 MiB. */
static void check__endless_line__is_refused(void **state)
{
    (void)state;
    size_t count = (size_t)70 << 20;
    char *bytes = malloc(count);
    assert_non_null(bytes);
    memset(bytes, '7', count);
    const struct cli_input input = { .stdin_bytes = bytes, .stdin_count = count };
    struct cli_result result;
    cli_run(&result, &input, (const char *const[]){ "trace", "check", "-", NULL });
    check_i64_eq(result.status, 3);
    check_str_eq(result.err, "pagesim: standard input:1: found a line longer than 64 MiB, expected one "
                 "request a line\n");
    cli_release(&result);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gen_keys__every_one__is_an_option),
        cmocka_unit_test(gen__options_and_spec__say_the_same),
        cmocka_unit_test(check__generated_file__has_the_generators_checksum),
        cmocka_unit_test(convert__csv_from_a_pipe__goes_to_standard_output),
        cmocka_unit_test(stats__three_requests__add_up),
        cmocka_unit_test(convert__bad_line__leaves_nothing_behind),
        cmocka_unit_test(check__bad_input__one_line_and_its_status),
        cmocka_unit_test(check__endless_line__is_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir) != 0;
}
