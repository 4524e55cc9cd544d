/* pagesim compare, as a user runs it. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <jansson.h>
#include <string.h>

#define LOAD "gen:requests=300,arrivals=poisson:20,sessions=30,content=tokens,prompt-tokens=64,output-tokens=30"

static json_t *object_of(const char *text)
{
    json_t *object = json_loads(text, 0, NULL);
    assert_true(json_is_object(object));
    return object;
}

/* "metrics", "ttft_ns", "mean", "a" */
static double number_at(json_t *object, const char *const *path)
{
    for (; *path; path++) object = json_object_get(object, *path);
    if (!json_is_number(object)) fail_msg("found no number");
    return json_number_value(object);
}
#define AT(object, ...) number_at((object), (const char *const[]){__VA_ARGS__, NULL})

/* Two requests at time 0 of 16 tokens and 3 outputs, steps of 1 ms. One at a time: first tokens at 1 and 4 ms, last at 3 and
 * 6. Together: 1 and 1, 3 and 3. So B - A is 0 and -3 ms in both times. */
static void compare__two_requests__differences_by_hand(void **state)
{
    (void)state;
    static const char trace[] = "{\"arrival_ns\": 0, \"prompt_tokens\": 16, \"output_tokens\": 3}\n"
                                "{\"arrival_ns\": 0, \"prompt_tokens\": 16, \"output_tokens\": 3}\n";
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "two.jsonl", trace, sizeof trace - 1);
    struct cli_result r;
    CLI(&r, "compare", "max-num-seqs=1", "dynamic,max-num-seqs=2", path, "--policy", "dynamic", "--step-time", "unit", "--json");
    check_str_eq(r.err, "");
    assert_int_equal(r.status, 0);
    json_t *o = object_of(r.out);
    check_f64_near(AT(o, "metrics", "ttft_ns", "mean", "a"), 2.5e6, 0);
    check_f64_near(AT(o, "metrics", "ttft_ns", "mean", "b"), 1e6, 0);
    check_f64_near(AT(o, "metrics", "ttft_ns", "mean", "relative"), -0.6, 1e-12);
    check_f64_near(AT(o, "requests", "both"), 2, 0);
    check_f64_near(AT(o, "requests", "ttft_ns", "mean"), -1.5e6, 0);
    check_f64_near(AT(o, "requests", "ttft_ns", "p5"), -3e6, 0);
    check_f64_near(AT(o, "requests", "ttft_ns", "p75"), 0, 0);
    check_f64_near(AT(o, "requests", "e2e_ns", "mean"), -1.5e6, 0);
    check_f64_near(AT(o, "requests", "e2e_ns", "b_lower"), 1, 0);
    check_f64_near(AT(o, "requests", "e2e_ns", "same"), 1, 0);
    json_decref(o);
    cli_release(&r);
    cli_temp_remove(dir);
}

/* The means of the pairs are those of the figures, and whoever runs it, with however many threads, reads the same. */
static void compare__threads__same_bytes_and_means_agree(void **state)
{
    (void)state;
    struct cli_result one, many;
    CLI(&one, "compare", "prefix,evict=lru", "prefix,evict=fifo", LOAD, "--pool-tokens", "3000", "--replications", "5", "--json", "--threads", "1");
    CLI(&many, "compare", "prefix,evict=lru", "prefix,evict=fifo", LOAD, "--pool-tokens", "3000", "--replications", "5", "--json", "--threads", "7");
    assert_int_equal(one.status, 0);
    check_str_eq(many.out, one.out);
    json_t *o = object_of(one.out);
    check_f64_near(AT(o, "pairs"), 5, 0);
    check_f64_near(AT(o, "requests", "both") + AT(o, "requests", "only_a"), 5 * AT(o, "metrics", "finished", "a"), 1e-6);
    check_f64_near(AT(o, "requests", "ttft_ns", "mean"), AT(o, "metrics", "ttft_ns", "mean", "difference"), 1e-3);
    check_f64_near(AT(o, "requests", "ttft_ns", "low"), AT(o, "metrics", "ttft_ns", "mean", "low"), 1);
    json_decref(o);
    cli_release(&one);
    cli_release(&many);
}

/* Files of sweeps over the same seeds say what the runs said; cells of other block sizes get tables of their own. */
static void compare__files_of_sweeps__as_the_runs(void **state)
{
    (void)state;
    char *dir = cli_temp_dir();
    const char *a = cli_path(dir, "a.jsonl"), *b = cli_path(dir, "b.jsonl");
    struct cli_result r, direct;
    CLI(&r, "sweep", LOAD, "--policy", "prefix", "--pool-tokens", "3000", "--seed", "1,2,3", "--block-size", "8,16", "--output", a);
    cli_release(&r);
    CLI(&r, "sweep", LOAD, "--policy", "dynamic", "--pool-tokens", "3000", "--seed", "3,2,1,4", "--block-size", "16", "--output", b);
    cli_release(&r);
    CLI(&direct, "compare", "prefix", "dynamic", LOAD, "--pool-tokens", "3000", "--replications", "3", "--json");
    CLI(&r, "compare", a, b, "--json");
    assert_int_equal(r.status, 0);
    json_t *from_files = object_of(r.out), *from_runs = object_of(direct.out);
    check_str_eq(json_string_value(json_object_get(from_files, "label")), "block-size 16");
    assert_true(json_equal(json_object_get(from_files, "metrics"), json_object_get(from_runs, "metrics")));
    check_str_has(r.err, "a.jsonl: 3 of 6 results have no partner");
    check_str_has(r.err, "b.jsonl: 1 of 4 results have no partner");
    json_decref(from_files);
    json_decref(from_runs);
    cli_release(&r);
    CLI(&r, "compare", a, a);
    assert_int_equal(r.status, 0);
    check_str_has(r.out, "block-size 8\n");
    check_str_has(r.out, "block-size 16\n");
    assert_null(strstr(r.out, "B lower\n"));
    cli_release(&r);
    cli_release(&direct);
    cli_temp_remove(dir);
}

static void compare__mistakes__one_line(void **state)
{
    (void)state;
    char *dir = cli_temp_dir();
    const char *file = cli_write(dir, "t.jsonl", "{\"arrival_ns\": 0, \"prompt_tokens\": 1, \"output_tokens\": 1}\n", 59);
    const struct {
        const char *arguments[8];
        int status;
        const char *said;
    } cases[] = {
        {{"prefix"}, 2, "found 1 of the two sides"},
        {{"prefix", "dynamic"}, 2, "no trace given"},
        {{"prefix", "dynamic", "x", "y"}, 2, "found 'y', expected nothing after"},
        {{"prefix", "dynamic,seed=2", LOAD}, 2, "'dynamic,seed=2': found 'seed', expected an option that leaves the requests"},
        {{"prefix", "dynamic,max-requests=2", LOAD}, 2, "expected an option that leaves the requests"},
        {{"prefix", "dynamic,blok-size=2", LOAD}, 2, "found 'blok-size', expected an option, did you mean block-size?"},
        {{"prefix", "dynamic,block-size=x", LOAD}, 2, "'dynamic,block-size=x': --block-size: found 'x'"},
        {{"prefix", "dynamic,reserve=max", LOAD}, 2, "policy dynamic has no such option"},
        {{"prefix", "nothing.json", LOAD}, 2, "expected settings or results on both"},
        {{"nothing.json", "nothing2.json"}, 3, "nothing.json: No such file"},
        {{"prefix", "dynamic", file, "--replications", "3"}, 2, "is recorded"},
        {{"prefix", "dynamic", LOAD, "--replications", "0"}, 2, "--replications"},
        {{"prefix", "dynamic", LOAD, "--confidence", "1"}, 2, "--confidence"},
        {{"prefix", "dynamic", LOAD, "--metrics", "nonsense"}, 2, "--metrics: found 'nonsense'"},
        {{"--measured", file}, 2, "found no side beside --measured"},
        {{"dynamic", LOAD, "--measured", "none.txt"}, 3, "none.txt: No such file"},
        {{"dynamic", LOAD, "prefix", "--measured", file}, 2, "found 'prefix', expected one side"},
        {{"dynamic", LOAD, "--measured-from", file}, 2, "--measured-from: expected --measured"},
        {{"-", "-"}, 2, "found '-' twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *argv[10] = {"compare"};
        struct cli_result r;
        for (size_t k = 0; k < 8; k++) argv[k + 1] = cases[i].arguments[k];
        cli_run(&r, NULL, argv);
        check_str_has(r.err, cases[i].said);
        assert_int_equal(r.status, cases[i].status);
        assert_ptr_equal(strchr(r.err, '\n'), r.err + strlen(r.err) - 1);
        cli_release(&r);
    }
    cli_temp_remove(dir);
}

/* Requests of one token each in steps of 1 ms: TTFT and the end are 1 ms for all; 4 requests in 3 s. */
static void compare__measured__beside_simulated(void **state)
{
    (void)state;
    static const char metrics[] = "vllm:num_preemptions_total{engine=\"0\"} 2\n"
                                  "vllm:time_to_first_token_seconds_bucket{le=\"0.001\"} 2\n"
                                  "vllm:time_to_first_token_seconds_bucket{le=\"0.002\"} 4\n"
                                  "vllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} 4\n"
                                  "vllm:num_requests_waiting 7\n";
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "metrics.txt", metrics, sizeof metrics - 1), *result = cli_path(dir, "result.json");
    struct cli_result r, from_file;
    CLI(&r, "compare", "dynamic", "gen:requests=4,arrivals=constant:1,prompt-tokens=8,output-tokens=1", "--step-time", "unit", "--measured", path);
    check_str_eq(r.err, "");
    assert_int_equal(r.status, 0);
    check_str_has(r.out, "vllm:num_preemptions_total                                                2  preemptions                       0           -2   -100.00 %\n");
    check_str_has(r.out, " 0 .. 1 ms  ttft_ns.p50                    1 ms       inside");
    check_str_has(r.out, " 1 ms .. 2 ms  ttft_ns.p99                    1 ms       inside");
    check_str_has(r.out, "measured, without a counterpart:\n  vllm:num_requests_waiting                              7\n");
    cli_release(&r);
    CLI(&r, "compare", "dynamic", "gen:requests=4,arrivals=constant:1,prompt-tokens=8,output-tokens=1", "--step-time", "unit", "--measured", path, "--json");
    json_t *o = object_of(r.out);
    assert_int_equal(json_array_size(json_object_get(o, "no_counterpart")), 1);
    json_t *row = json_array_get(json_object_get(o, "rows"), 0);
    check_str_eq(json_string_value(json_object_get(row, "key")), "preemptions");
    check_f64_near(AT(row, "difference"), -2, 0);
    json_decref(o);
    CLI(&from_file, "run", "gen:requests=4,arrivals=constant:1,prompt-tokens=8,output-tokens=1", "--step-time", "unit", "--policy", "dynamic", "--json");
    cli_write(dir, "result.json", from_file.out, from_file.out_bytes);
    cli_release(&from_file);
    CLI(&from_file, "compare", result, "--measured", path, "--json");
    check_str_eq(strstr(from_file.out, "\"rows\""), strstr(r.out, "\"rows\""));
    cli_release(&from_file);
    cli_release(&r);
    cli_temp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compare__two_requests__differences_by_hand),
        cmocka_unit_test(compare__threads__same_bytes_and_means_agree),
        cmocka_unit_test(compare__files_of_sweeps__as_the_runs),
        cmocka_unit_test(compare__measured__beside_simulated),
        cmocka_unit_test(compare__mistakes__one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
