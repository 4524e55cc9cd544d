/* pagesim edge from outside: rows, formats, figures, errors. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define TRACE "{\"arrival_ns\":0,\"prompt_tokens\":100,\"output_tokens\":3}\n"
/* 1,000 MiB of device, 400 of weights, 100 of context; the share less 500 and 100 of activations is the pool. */
#define DEVICE "--gpu-memory", "1000MiB", "--weights-memory", "400MiB", "--non-torch-memory", "100MiB", "--activation-memory", "100MiB"

static json_t *row_at(const char *text, size_t line)
{
    json_error_t error;
    for (; text && line > 0; line--) text = strchr(text, '\n') + 1;
    json_t *row = json_loads(text, JSON_DISABLE_EOF_CHECK, &error);
    if (!row) fail_msg("%s: %s", error.text, text);
    return row;
}

static double number(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    if (!json_is_number(value)) fail_msg("%s is no number", key);
    return json_number_value(value);
}

/* At 0.9: pool 900 - 600 = 300, room 1000 - 500 - 300 = 200 MiB; activations 100; late 100 fit, a byte more does not. */
static void edge__room_and_peak_follow_the_plan(void **state)
{
    struct cli_result r;
    (void)state;
    CLI(&r, "edge", DEVICE, "--gpu-memory-utilization", "0.5,0.9", "--json", "--activation-spread", "fixed:1", "--late-spread",
        "fixed:104857600");
    json_t *refused = row_at(r.out, 0), *row = row_at(r.out, 1);
    check_str_has(json_string_value(json_object_get(refused, "verdict")), "refuses");
    assert_true(json_is_null(json_object_get(refused, "oom_probability")));
    check_f64_near(number(row, "pool_bytes"), 300 << 20, 0);
    check_f64_near(number(row, "room_bytes"), 200 << 20, 0);
    check_f64_near(number(row, "activation_peak_bytes"), 100 << 20, 0);
    check_f64_near(number(row, "oom_probability"), 0, 0);
    json_decref(refused);
    json_decref(row);
    cli_release(&r);
    CLI(&r, "edge", DEVICE, "--gpu-memory-utilization", "0.9", "--json", "--activation-spread", "fixed:1", "--late-spread",
        "fixed:100MiB", "--residue-spread", "fixed:1", "--fail-if", "oom_probability > 0.5");
    assert_int_equal(r.status, 4);
    row = row_at(r.out, 0);
    check_f64_near(number(row, "oom_probability"), 1, 0);
    check_f64_near(number(row, "elastic_lent_mean_bytes"), 1, 0);
    json_decref(row);
    cli_release(&r);
}

/* The trace's only prompt has 100 tokens of at most 2,048: 51,200 bytes a token, the plan's 100 MiB / 2,048. */
static void edge__trace__its_largest_step_counts(void **state)
{
    struct cli_result r;
    char *dir = cli_temp_dir();
    (void)state;
    const char *trace = cli_write(dir, "t.jsonl", TRACE, strlen(TRACE));
    CLI(&r, "edge", DEVICE, "--gpu-memory-utilization", "0.9", "--json", trace);
    json_t *row = row_at(r.out, 0);
    check_f64_near(number(row, "activation_peak_bytes"), 100 * 51200.0, 0);
    json_decref(row);
    cli_release(&r);
    cli_temp_remove(dir);
}

static void edge__default__ten_utilizations_rising(void **state)
{
    struct cli_result r;
    double before = -1;
    (void)state;
    CLI(&r, "edge", DEVICE, "--json", "--threads", "1");
    for (size_t i = 0; i < 10; i++) {
        json_t *row = row_at(r.out, i);
        check_f64_near(number(row, "gpu_memory_utilization"), 0.90 + 0.01 * (double)i, 1e-12);
        assert_true(number(row, "oom_probability") >= before);
        before = number(row, "oom_probability");
        json_decref(row);
    }
    assert_true(before > 0);
    struct cli_result more;
    CLI(&more, "edge", DEVICE, "--json", "--threads", "7");
    check_str_eq(more.out, r.out);
    cli_release(&more);
    cli_release(&r);
}

static void edge__keys_are_documented(void **state)
{
    struct cli_result r;
    char *text = cli_read("docs/edge.md");
    const char *key;
    json_t *value;
    (void)state;
    assert_non_null(text);
    CLI(&r, "edge", DEVICE, "--json");
    json_t *row = row_at(r.out, 0);
    json_object_foreach(row, key, value) {
        char quoted[100];
        snprintf(quoted, sizeof quoted, "`%s`", key);
        if (strncmp(key, "options.", 8) != 0) check_str_has(text, quoted);
    }
    json_decref(row);
    free(text);
    cli_release(&r);
}

static void edge__csv_and_figure(void **state)
{
    struct cli_result r;
    char *dir = cli_temp_dir();
    (void)state;
    CLI(&r, "edge", DEVICE, "--csv", "--plot", dir, "--max-num-seqs", "8,16");
    if (r.status != 0) fail_msg("%s", r.err);
    check_str_has(r.out, "series,gpu_memory_utilization,oom_probability,");
    check_str_has(r.out, "\nmax-num-seqs=8,0.9,");
    check_str_has(r.out, "\nmax-num-seqs=16,0.99,");
    char *csv = cli_read(cli_path(dir, "edge.csv")), *svg = cli_read(cli_path(dir, "edge.svg"));
    check_str_eq(csv, r.out);
    check_str_has(svg, "gpu-memory-utilization");
    check_str_has(svg, "max-num-seqs=16");
    check_u64_eq(cli_count_entries(dir), 3);
    free(csv);
    free(svg);
    cli_release(&r);
    cli_temp_remove(dir);
}

static void edge__bad_input__one_line(void **state)
{
    static const char *const bad[][2] = {{"--late-spread", "fixed:x"}, {"--activation-spread", "uniform:3:1"}, {"--draws", "0"},
                                         {"--late-buffer", "x"}, {"--gpu-memory-utilization", "2"}, {"--policy", "none"}};
    struct cli_result r;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CLI(&r, "edge", DEVICE, bad[i][0], bad[i][1]);
        if (r.status != 2) fail_msg("%s %s: status %d", bad[i][0], bad[i][1], r.status);
        check_str_eq(r.out, "");
        cli_release(&r);
    }
    CLI(&r, "edge");
    assert_int_equal(r.status, 2);
    check_str_has(r.err, "--gpu");
    cli_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edge__room_and_peak_follow_the_plan), cmocka_unit_test(edge__trace__its_largest_step_counts),
        cmocka_unit_test(edge__default__ten_utilizations_rising), cmocka_unit_test(edge__keys_are_documented),
        cmocka_unit_test(edge__csv_and_figure), cmocka_unit_test(edge__bad_input__one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
