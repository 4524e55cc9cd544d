/* A deployment's metrics beside a result. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/compare_measured.h"

static char *folder;
static struct result result;

static int setup(void **state)
{
    (void)state;
    folder = cli_temp_dir();
    result_init(&result);
    result_text(&result, "policy", "prefix");
    result_u64(&result, "preemptions", 5);
    result_f64(&result, "kv_usage", 0.5);
    result_u64(&result, "finished", 490);
    result_f64(&result, "engine_hit_rate", 0.2);
    result_u64(&result, "num_blocks", 8000);
    result_f64(&result, "ttft_ns.mean", 50e6);
    result_u64(&result, "ttft_ns.p50", 15000000);
    result_u64(&result, "ttft_ns.p90", 300000000);
    result_u64(&result, "ttft_ns.p99", 300000000);
    result_null(&result, "tpot_ns.mean");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    result_release(&result);
    cli_temp_remove(folder);
    return 0;
}

static void read_text(struct measured *m, const char *text)
{
    struct err err = {0};
    memset(m, 0, sizeof *m);
    if (measured_read(m, cli_write(folder, "m", text, strlen(text)), &err)) fail_msg("%s", err.text);
}

static const struct measured_row *find(const struct measured_row *rows, size_t count, const char *name, const char *part)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) == 0 && strcmp(rows[i].part, part) == 0) return &rows[i];
    }
    fail_msg("found no row %s %s", name, part);
    return NULL;
}

static const char DUMP[] =
    "# HELP vllm:num_preemptions_total Cumulative number of preemption.\n"
    "# TYPE vllm:num_preemptions_total counter\n"
    "vllm:num_preemptions_total{engine=\"0\",model_name=\"a }\\\" b\"} 3.0\n"
    "vllm:num_preemptions_total{engine=\"1\",model_name=\"a\"} 1e0 1764580000000\n"
    "vllm:kv_cache_usage_perc{engine=\"0\"} 0.4\n"
    "vllm:kv_cache_usage_perc{engine=\"1\"} 0.5\n"
    "vllm:request_success_total{engine=\"0\",finished_reason=\"stop\"} 400\n"
    "vllm:request_success_total{engine=\"0\",finished_reason=\"length\"} 90\n"
    "vllm:request_success_total{engine=\"0\",finished_reason=\"abort\"} 7\n"
    "vllm:prefix_cache_queries_total 1000\n"
    "vllm:prefix_cache_hits_total 250\n"
    "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"8192\"} 1.0\n"
    "vllm:time_to_first_token_seconds_bucket{le=\"0.25\"} 90\n"
    "vllm:time_to_first_token_seconds_bucket{le=\"0.01\"} 10\n"
    "vllm:time_to_first_token_seconds_bucket{le=\"0.02\"} 50\n"
    "vllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} 100\n"
    "vllm:time_to_first_token_seconds_sum 4\n"
    "vllm:time_to_first_token_seconds_count 100\n"
    "vllm:num_requests_waiting{engine=\"0\"} 2\n";

/* Of 100 requests the 50th lies in (10, 20] ms, the 90th in (20, 250], the 99th above 250 ms. The mean is 4 s / 100 = 40 ms.
 * Preemptions 3 + 1; usage (0.4 + 0.5) / 2; finished 400 + 90. */
static void rows__prometheus__by_hand(void **state)
{
    (void)state;
    struct measured m;
    struct measured_row *rows;
    size_t count;
    struct err err = {0};
    read_text(&m, DUMP);
    assert_int_equal(measured_rows(&m, &result, &rows, &count, &err), 0);
    check_f64_near(find(rows, count, "vllm:num_preemptions_total", "")->low, 4, 0);
    check_f64_near(find(rows, count, "vllm:num_preemptions_total", "")->difference, 1, 0);
    check_f64_near(find(rows, count, "vllm:kv_cache_usage_perc", "")->difference, 0.05, 1e-12);
    check_f64_near(find(rows, count, "vllm:request_success_total", "")->difference, 0, 0);
    check_f64_near(find(rows, count, "vllm:prefix_cache_hits_total", "rate")->difference, -0.05, 1e-12);
    check_f64_near(find(rows, count, "vllm:cache_config_info", "num_blocks")->difference, -192, 0);
    const struct measured_row *r = find(rows, count, "vllm:time_to_first_token_seconds", "mean");
    check_f64_near(r->low, 40e6, 1e-3);
    check_f64_near(r->difference, 10e6, 1e-3);
    r = find(rows, count, "vllm:time_to_first_token_seconds", "p50");
    check_f64_near(r->low, 10e6, 1e-3);
    check_f64_near(r->high, 20e6, 1e-3);
    check_f64_near(r->difference, 0, 0);
    r = find(rows, count, "vllm:time_to_first_token_seconds", "p90");
    check_f64_near(r->high, 250e6, 1e-3);
    check_f64_near(r->difference, 50e6, 1e-3);
    r = find(rows, count, "vllm:time_to_first_token_seconds", "p99");
    assert_true(isinf(r->high));
    check_f64_near(r->difference, 0, 0);
    /* What has no counterpart stays unmarked, for the list. */
    size_t unmatched = 0;
    for (size_t i = 0; i < m.count; i++) {
        if (m.samples[i].matched) continue;
        unmatched++;
        check_str_eq(m.samples[i].name, "vllm:num_requests_waiting");
    }
    check_u64_eq(unmatched, 1);
    free(rows);
    measured_release(&m);
}

/* The engine counts the two levels apart; prefix_hit_tokens is both. Without a tier it is the device's. */
static void rows__host_tier__each_level_with_its_own_counter(void **state)
{
    (void)state;
    static const char dump[] = "vllm:prefix_cache_hits_total 250\nvllm:external_prefix_cache_hits_total 70\n";
    for (int host = 0; host < 2; host++) {
        struct measured m;
        struct measured_row *rows;
        size_t count;
        struct err err = {0};
        struct result simulated;
        result_init(&simulated);
        result_u64(&simulated, "prefix_hit_tokens", 300);
        if (host) result_u64(&simulated, "host_tier.device_hit_tokens", 240);
        if (host) result_u64(&simulated, "host_tier.hit_tokens", 60);
        read_text(&m, dump);
        assert_int_equal(measured_rows(&m, &simulated, &rows, &count, &err), 0);
        check_f64_near(find(rows, count, "vllm:prefix_cache_hits_total", "")->difference, host ? -10 : 50, 0);
        double external = find(rows, count, "vllm:external_prefix_cache_hits_total", "")->difference;
        if (host) check_f64_near(external, -10, 0);
        else assert_true(external != external);
        free(rows);
        measured_release(&m);
        result_release(&simulated);
    }
}

static void rows__earlier_dump__what_came_since(void **state)
{
    (void)state;
    struct measured m, before, after;
    struct measured_row *rows;
    size_t count;
    struct err err = {0};
    read_text(&m, "vllm:num_preemptions_total 9\nvllm:kv_cache_usage_perc 0.5\nvllm:time_to_first_token_seconds_sum 30\n"
                  "vllm:time_to_first_token_seconds_count 300\n");
    read_text(&before, "vllm:num_preemptions_total 4\nvllm:kv_cache_usage_perc 0.1\nvllm:time_to_first_token_seconds_sum 20\n"
                       "vllm:time_to_first_token_seconds_count 100\n");
    assert_int_equal(measured_subtract(&m, &before, "before", &err), 0);
    assert_int_equal(measured_rows(&m, &result, &rows, &count, &err), 0);
    check_f64_near(find(rows, count, "vllm:num_preemptions_total", "")->difference, 0, 0);
    check_f64_near(find(rows, count, "vllm:kv_cache_usage_perc", "")->low, 0.5, 0);
    check_f64_near(find(rows, count, "vllm:time_to_first_token_seconds", "mean")->low, 50e6, 1e-3); /* 10 s / 200 */
    free(rows);
    read_text(&after, "vllm:num_preemptions_total 3\n");
    assert_int_equal(measured_subtract(&after, &before, "before", &err), -1);
    check_str_has(err.text, "before: vllm:num_preemptions_total: found more than in the later dump");
    measured_release(&m);
    measured_release(&before);
    measured_release(&after);
}

/* The same three figures in every form; a benchmark client's names count milliseconds. */
static void rows__other_forms__the_same(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "preemptions = 4\nttft_ns.mean = 40e6\nmine = 1\n",
        "name,value\npreemptions,4\nttft_ns.mean,40000000\nmine,1\n",
        "{\"preemptions\": 4, \"ttft_ns\": {\"mean\": 4e7}, \"mine\": 1}",
        "{\"mean_ttft_ms\": 40.0, \"preemptions\": 4, \"date\": \"today\", \"ttfts\": [1, 2], \"mine\": 1}",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct measured m;
        struct measured_row *rows;
        size_t count;
        struct err err = {0};
        read_text(&m, forms[i]);
        assert_int_equal(measured_rows(&m, &result, &rows, &count, &err), 0);
        check_u64_eq(count, 2);
        check_f64_near(find(rows, count, "preemptions", "")->difference, 1, 0);
        check_f64_near(find(rows, count, i == 3 ? "mean_ttft_ms" : "ttft_ns.mean", "")->difference, 10e6, 1e-3);
        check_u64_eq(m.left_out, i == 3 ? 2 : 0);
        free(rows);
        measured_release(&m);
    }
}

static void read__malformed__says_where(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "found no metrics"},
        {"# nothing\n", "found no metrics"},
        {"a 1\nb x\n", ":2: b: found 'x"},
        {"a{x=\"1\" 1\n", ":1: a{x=\"1\" 1"},
        {"a 1 2 3\n", ":1: a: found '1 2 3"},
        {"{\"a\": 1", ":1: "},
        {"{\"a\": 1, \"a\": 2}", "duplicate"},
        {"$ 1\n", ":1: found '$ 1"},
        {"{\"\\u001b[2J\": 1}", "other characters"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct measured m = {0};
        struct err err = {0};
        assert_int_equal(measured_read(&m, cli_write(folder, "bad", cases[i].text, strlen(cases[i].text)), &err), -1);
        check_str_has(err.text, cases[i].said);
        assert_int_equal(err.kind, ERR_INPUT);
        measured_release(&m);
    }
}

static void label__quoted_and_escaped__its_text(void **state)
{
    (void)state;
    char labels[] = "a=\"1\", bc=\"x,\\\"y\\\"=}\",c=\"\"";
    struct measured_sample s = {.labels = labels};
    char out[16];
    assert_true(measured_label(&s, "bc", out, sizeof out));
    check_str_eq(out, "x,\"y\"=}");
    assert_true(measured_label(&s, "c", out, sizeof out));
    check_str_eq(out, "");
    assert_false(measured_label(&s, "b", out, sizeof out));
    assert_false(measured_label(&s, "bc", out, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows__prometheus__by_hand),
        cmocka_unit_test(rows__host_tier__each_level_with_its_own_counter),
        cmocka_unit_test(rows__earlier_dump__what_came_since),
        cmocka_unit_test(rows__other_forms__the_same),
        cmocka_unit_test(read__malformed__says_where),
        cmocka_unit_test(label__quoted_and_escaped__its_text),
    };
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
