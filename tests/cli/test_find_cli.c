/* pagesim run --find and compare: cases whose answer is known. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <jansson.h>
#include <string.h>

/* One server, one request at a time, each served by one step of 1 ms, Poisson arrivals: M/D/1. With load r the mean time from
 * arrival to the end of service is D + D r / (2 (1 - r)). */
#define MD1 "--step-time", "unit", "--max-num-seqs", "1", "--policy", "dynamic"

static json_t *object_of(const char *text)
{
    json_t *object = json_loads(text, 0, NULL);
    assert_true(json_is_object(object));
    return object;
}

static double number_at(json_t *object, const char *const *path)
{
    for (; *path; path++) object = json_object_get(object, *path);
    if (!json_is_number(object)) fail_msg("found no number");
    return json_number_value(object);
}
#define AT(object, ...) number_at((object), (const char *const[]){__VA_ARGS__, NULL})

static const char *text_at(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* 500 arrivals a second, r = 0.5: a mean of 1 + 0.5/(2*0.5) = 1.5 ms. 800, r = 0.8: 1 + 0.8/(2*0.2) = 3 ms. Means of ten
 * independent runs of 20,000 requests; the first ones find the server idle, which is less than a thousandth of them. */
static void mean__md1__within_its_confidence_interval(void **state)
{
    (void)state;
    static const struct {
        const char *trace;
        double mean_ns, half_most_ns;
    } cases[] = {
        {"gen:requests=20000,arrivals=poisson:500,prompt-tokens=16,output-tokens=1", 1.5e6, 0.03e6},
        {"gen:requests=20000,arrivals=poisson:800,prompt-tokens=16,output-tokens=1", 3e6, 0.3e6},
    };
    for (size_t i = 0; i < 2; i++) {
        struct cli_result r;
        CLI(&r, "compare", "dynamic", "dynamic,block-size=32", cases[i].trace, MD1, "--confidence", "0.99", "--replications", "10", "--json");
        assert_int_equal(r.status, 0);
        json_t *o = object_of(r.out);
        double mean = AT(o, "metrics", "ttft_ns", "mean", "a"), half = AT(o, "metrics", "ttft_ns", "mean", "a_half_width");
        check_f64_near(mean, cases[i].mean_ns, half);
        assert_true(half > 0 && half < cases[i].half_most_ns);
        json_decref(o);
        cli_release(&r);
    }
}

#define SLOWER "compare", "step-ns=1ms", "step-ns=1200us"
#define SLOWER_LOAD "--step-time", "unit", "--max-num-seqs", "1", "--policy", "dynamic", "--json"

/* The same arrivals, 500 a second, at service times of 1 and 1.2 ms: means of 1 + 0.5/(2*0.5) = 1.5 and, with r = 0.6,
 * 1.2 + 1.2 * 0.6/(2*0.4) = 2.1 ms. The difference of 0.6 ms lies in the paired interval. */
static void difference__two_md1__within_the_paired_interval(void **state)
{
    (void)state;
    struct cli_result r;
    CLI(&r, SLOWER, "gen:requests=20000,arrivals=poisson:500,prompt-tokens=16,output-tokens=1", SLOWER_LOAD, "--confidence", "0.99");
    json_t *o = object_of(r.out);
    double middle = AT(o, "metrics", "ttft_ns", "mean", "difference"), high = AT(o, "metrics", "ttft_ns", "mean", "high");
    check_f64_near(middle, 0.6e6, high - middle);
    check_f64_near(AT(o, "requests", "ttft_ns", "mean"), middle, 1e-3 * middle);
    /* Pairing pays: independent samples would leave both half widths, added in squares. */
    double a = AT(o, "metrics", "ttft_ns", "mean", "a_half_width"), b = AT(o, "metrics", "ttft_ns", "mean", "b_half_width");
    assert_true((high - middle) * (high - middle) < 0.75 * (a * a + b * b));
    json_decref(o);
    cli_release(&r);
}

/* Intervals from batches of single runs of 4000 requests. If 95 % of such intervals hold the true difference, 38 of 40 do on
 * average, with a spread of 1.4; from 33 on it is what it says. */
static void difference__batches_of_single_runs__cover_the_truth(void **state)
{
    (void)state;
    unsigned intervals = 0, hold = 0;
    for (unsigned seed = 1; seed <= 40; seed++) {
        char text[16];
        struct cli_result r;
        snprintf(text, sizeof text, "%u", seed);
        CLI(&r, SLOWER, "gen:requests=4000,arrivals=poisson:500,prompt-tokens=16,output-tokens=1", SLOWER_LOAD, "--replications", "1",
            "--seed", text);
        json_t *o = object_of(r.out), *times = json_object_get(json_object_get(o, "requests"), "ttft_ns");
        if (json_is_number(json_object_get(times, "low"))) {
            intervals++;
            hold += AT(times, "low") <= 0.6e6 && AT(times, "high") >= 0.6e6;
        }
        json_decref(o);
        cli_release(&r);
    }
    assert_in_range(intervals, 36, 40);
    assert_in_range(hold, 33, 40);
}

/* Mean at most 2 ms: r/(2(1 - r)) <= 1, r <= 2/3, so 4/3 of 500 a second: 1.333 of the generator's rate. Mean at most 1.25 ms:
 * r <= 1/3: 0.667. One run of 100,000 requests: the standard error of its mean is about 1 %, and the mean rises by 4.5 (2.25)
 * times the change of r there, so the answer is good to about 1 %. */
static void find__md1_highest_rate__the_analytic_one(void **state)
{
    (void)state;
    static const struct {
        const char *condition;
        double thousandths;
    } cases[] = {{"ttft_ns.mean <= 2e6", 1333.3}, {"ttft_ns.mean <= 1.25e6 && finished == 100000", 666.7}};
    for (size_t i = 0; i < 2; i++) {
        struct cli_result r;
        CLI(&r, "run", "gen:requests=100000,arrivals=poisson:500,prompt-tokens=16,output-tokens=1", MD1, "--find", "max rate",
            "--such-that", cases[i].condition, "--json");
        assert_int_equal(r.status, 0);
        json_t *o = object_of(r.out);
        check_str_eq(text_at(o, "outcome"), "found");
        check_f64_near(AT(o, "value"), cases[i].thousandths, 0.015 * cases[i].thousandths);
        check_f64_near(AT(o, "requests_per_s"), cases[i].thousandths / 2, 0.02 * cases[i].thousandths / 2);
        check_f64_near(AT(o, "fails_at"), AT(o, "value") + 1, 0);
        check_f64_near(AT(o, "unexpected_probes"), 0, 0);
        json_decref(o);
        cli_release(&r);
    }
}

/* Four requests at once, each with final KV tokens 16 + 17 - 1 = 32, two blocks of 16: eight, and the null block. The default
 * pool is far above, one of two blocks far below. */
static void find__smallest_pool__by_hand_from_both_sides(void **state)
{
    (void)state;
    static const char *const starts[] = {"10000", "2"};
    for (size_t i = 0; i < 2; i++) {
        struct cli_result r;
        CLI(&r, "run", "gen:requests=4,arrivals=none,prompt-tokens=16,output-tokens=17", "--policy", "dynamic", "--num-gpu-blocks-override",
            starts[i], "--find", "min pool", "--such-that", "refusals.episodes == 0 && finished == 4", "--json");
        assert_int_equal(r.status, 0);
        json_t *o = object_of(r.out);
        check_f64_near(AT(o, "value"), 9, 0);
        check_f64_near(AT(o, "fails_at"), 8, 0);
        check_f64_near(AT(o, "result", "num_blocks"), 9, 0);
        json_decref(o);
        cli_release(&r);
    }
}

#define SMALL "gen:requests=4,arrivals=none,prompt-tokens=16,output-tokens=17", "--policy", "dynamic"
#define FIND(r, start, condition, ...) \
    CLI((r), "run", SMALL, "--num-gpu-blocks-override", start, "--find", "min pool", "--such-that", condition, ##__VA_ARGS__)

/* A condition on the pool itself has whatever answer one likes. */
static void find__odd_conditions__are_told(void **state)
{
    (void)state;
    static const struct {
        const char *start, *condition, *said;
    } cases[] = {
        {"3000", "num_blocks > 1000", "--num-gpu-blocks-override 1001 (16016 token slots, 1.955 GiB)\nholds there, fails at 1000 (checked)\n"},
        /* checks lie at 3/4, 1/2 and 1/4 of the answer, and 5/4, 3/2 and 7/4: 1001 - 750 = 251; 1001 + 250 = 1251 */
        {"3000", "num_blocks > 1000 || (num_blocks > 200 && num_blocks < 300)", "not monotone: also holds at 251\n"},
        {"3000", "num_blocks > 1000 && num_blocks != 1251", "not monotone: fails at 1251\nfrom 1252 on it holds wherever it was tried, fails at 1251 (checked)\n"},
        {"3000", "num_blocks > 1000 && num_blocks != 1251 && num_blocks != 1002", "not monotone: fails at 1002, 1251\n"},
        /* a pool of one block is the null block: it cannot be run */
        {"3000", "requests == 4", "--num-gpu-blocks-override 2 (32 token slots, 0.003906 GiB)\nholds there, fails at 1 (checked)\n"},
        {"3000", "requests == 5", "no value found: the condition fails from the start to 16777216"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_result r;
        FIND(&r, cases[i].start, cases[i].condition);
        check_str_has(r.out, cases[i].said);
        if (i == 0) assert_null(strstr(r.out, "monotone"));
        assert_int_equal(r.status, 0);
        cli_release(&r);
    }
    struct cli_result r;
    CLI(&r, "run", SMALL, "--find", "min max-num-seqs", "--such-that", "requests == 4");
    check_str_has(r.out, "--max-num-seqs 1\nholds there and at all that was tried: the end of the range\n");
    cli_release(&r);
    CLI(&r, "run", SMALL, "--find", "max rate", "--such-that", "requests == 4");
    check_str_has(r.err, "--find: found a trace whose requests all arrive at once");
    assert_int_equal(r.status, 3);
    cli_release(&r);
    CLI(&r, "run", SMALL, "--find", "min utilization", "--such-that", "num_blocks >= 1000", "--gpu", "h100-sxm", "--model", "llama-3-8b");
    check_str_has(r.out, "holds there, fails at 0.");
    cli_release(&r);
}

/* Three runs: 3000, 1500, 750. */
static void find__too_few_runs__says_between_what(void **state)
{
    (void)state;
    struct cli_result r;
    FIND(&r, "3000", "num_blocks > 1000", "--find-runs", "3");
    check_str_has(r.out, "not finished: --find-runs 3 were not enough; holds at --num-gpu-blocks-override 1500");
    check_str_has(r.out, "and fails at 750\n");
    assert_int_equal(r.status, 0);
    cli_release(&r);
}

static void find__threads__same_bytes(void **state)
{
    (void)state;
    struct cli_result one, many;
    CLI(&one, "run", "gen:requests=200,arrivals=poisson:8", "--find", "min pool", "--such-that", "preemptions == 0 && unservable == 0",
        "--replications", "3", "--threads", "1", "--json");
    CLI(&many, "run", "gen:requests=200,arrivals=poisson:8", "--find", "min pool", "--such-that", "preemptions == 0 && unservable == 0",
        "--replications", "3", "--threads", "9", "--json");
    assert_int_equal(one.status, 0);
    check_str_eq(many.out, one.out);
    json_t *o = object_of(one.out);
    char value[32];
    snprintf(value, sizeof value, "%.0f", AT(o, "value"));
    check_f64_near(AT(o, "probes", value, "held"), 3, 0);
    json_decref(o);
    cli_release(&one);
    cli_release(&many);
}

static void find__fail_if__judges_the_answer(void **state)
{
    (void)state;
    struct cli_result r;
    FIND(&r, "100", "refusals.episodes == 0 && finished == 4", "--fail-if", "num_blocks == 9");
    assert_int_equal(r.status, 4);
    cli_release(&r);
}

static void find__mistakes__one_line(void **state)
{
    (void)state;
    const struct {
        const char *arguments[8];
        const char *said;
    } cases[] = {
        {{"--find", "min pool"}, "--find: expected --such-that CONDITION"},
        {{"--such-that", "requests > 1"}, "--such-that: expected --find"},
        {{"--find", "pool", "--such-that", "requests > 1"}, "--find: found 'pool', expected min or max and one of pool, pool-tokens"},
        {{"--find", "min pol", "--such-that", "requests > 1"}, "--find: found 'min pol'"},
        {{"--find", "min pool", "--such-that", "requests >"}, "--such-that: 'requests >': column 11"},
        {{"--find", "min pool", "--such-that", "speed > 1"}, "--such-that: 'speed > 1': no figure is called 'speed'"},
        {{"--find", "min pool", "--such-that", "requests > 1", "--timeline", "x.csv"}, "--timeline: found --find, expected one run"},
        {{"--find", "min utilization", "--such-that", "requests > 1"}, "utilization without a device"},
        {{"--find", "min pool", "--such-that", "requests > 1", "--scheduler", "none"}, "--scheduler: found 'none'"},
        {{"--threads", "2"}, "--threads: expected --find"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *argv[11] = {"run", "gen:requests=4"};
        struct cli_result r;
        for (size_t k = 0; k < 8; k++) argv[k + 2] = cases[i].arguments[k];
        cli_run(&r, NULL, argv);
        check_str_has(r.err, cases[i].said);
        assert_int_equal(r.status, 2);
        check_str_eq(r.out, "");
        cli_release(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean__md1__within_its_confidence_interval),
        cmocka_unit_test(difference__two_md1__within_the_paired_interval),
        cmocka_unit_test(difference__batches_of_single_runs__cover_the_truth),
        cmocka_unit_test(find__md1_highest_rate__the_analytic_one),
        cmocka_unit_test(find__smallest_pool__by_hand_from_both_sides),
        cmocka_unit_test(find__odd_conditions__are_told),
        cmocka_unit_test(find__too_few_runs__says_between_what),
        cmocka_unit_test(find__threads__same_bytes),
        cmocka_unit_test(find__fail_if__judges_the_answer),
        cmocka_unit_test(find__mistakes__one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
