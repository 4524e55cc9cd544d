/* Random numbers, distributions, generators and presets. Moments are compared with the formulae
 * within 5 standard errors (about one failure in two million draws of a seed; seeds are fixed). */
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workloads/wl_dist.h"
#include "workloads/wl_presets.h"
#include "workloads/wl_source.h"
#include "workloads/wl_stats.h"
#include "workloads/wl_write.h"

static const struct wl_options plain = { .arrival_speedup_ratio = 1 };

static struct wl_source *open_seed(const char *spec, uint64_t seed)
{
    struct wl_source *source = NULL;
    struct err err = { 0 };
    if (wl_open(spec, &plain, seed, &source, &err) != 0)
        fail_msg("%s", err.text);
    return source;
}

static bool next(struct wl_source *source, struct wl_request *request)
{
    struct err err = { 0 };
    int rc = wl_next(source, request, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
    return rc == 1;
}

/* The authors' recurrence, written down a second time. */
static void rng__against_the_definition__is_xoshiro256ss(void **state)
{
    (void)state;
    struct wl_rng rng;
    wl_rng_init(&rng, 42, 7);
    uint64_t s[4] = { rng.state[0], rng.state[1], rng.state[2], rng.state[3] };
    for (int i = 0; i < 1000; i++) {
        uint64_t x = s[1] * 5;
        uint64_t expected = ((x << 7) | (x >> 57)) * 9;
        uint64_t t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = (s[3] << 45) | (s[3] >> 19);
        check_u64_eq(wl_rng_u64(&rng), expected);
    }
}

static void rng_below__three__each_as_likely(void **state)
{
    (void)state;
    enum { DRAWS = 300000 };
    struct wl_rng rng;
    wl_rng_init(&rng, 1, 1);
    uint64_t seen[3] = { 0 };
    for (int i = 0; i < DRAWS; i++)
        seen[wl_rng_below(&rng, 3)]++;
    /* Binomial: standard deviation sqrt(n p (1 - p)) = sqrt(300000 * 2 / 9) = 258.2 */
    for (int i = 0; i < 3; i++)
        check_f64_near((double)seen[i], 100000, 5 * 258.2);
}

struct moments {
    const char *text;
    double mean, variance, kurtosis; /* kurtosis: fourth central moment / variance^2 */
};

static void dist__draws__have_the_moments_of_the_formulae(void **state)
{
    (void)state;
    enum { DRAWS = 200000 };
    /* lognormal(mu, s), e = exp(s^2): mean exp(mu + s^2/2), variance (e - 1) mean^2, kurtosis
     * e^4 + 2 e^3 + 3 e^2 - 3. gamma(k, t): k t, k t^2, 3 + 6/k. uniform: (b - a)^2 / 12, 1.8. */
    double e = exp(0.25), mean = exp(2 + 0.125);
    double lognormal_kurtosis = pow(e, 4) + 2 * pow(e, 3) + 3 * pow(e, 2) - 3;
    const struct moments cases[] = {
        { "uniform:10:30", 20, 400.0 / 12, 1.8 },
        { "exponential:4", 4, 16, 9 },
        { "gamma:2.5:3", 7.5, 22.5, 3 + 6 / 2.5 },
        { "gamma:0.3:2", 0.6, 1.2, 3 + 6 / 0.3 },
        { "lognormal:2:0.5", mean, (e - 1) * mean * mean, lognormal_kurtosis },
        { "lognormals:2:2:0.5/3:2:0.5", mean, (e - 1) * mean * mean, lognormal_kurtosis },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wl_dist dist;
        struct wl_rng rng;
        struct err err = { 0 };
        assert_int_equal(wl_dist_parse(&dist, "test", cases[i].text, &err), 0);
        wl_rng_init(&rng, 3, i);
        double sum = 0, squares = 0;
        for (int n = 0; n < DRAWS; n++) {
            double value = wl_dist_draw(&dist, &rng) - cases[i].mean;
            sum += value;
            squares += value * value;
        }
        double v = cases[i].variance;
        check_f64_near(sum / DRAWS, 0, 5 * sqrt(v / DRAWS));
        check_f64_near(squares / DRAWS, v, 5 * v * sqrt((cases[i].kurtosis - 1) / DRAWS));
        wl_dist_release(&dist);
    }
}

static void dist__clip_and_fixed__stay_in_range(void **state)
{
    (void)state;
    struct wl_dist dist;
    struct wl_rng rng;
    struct err err = { 0 };
    wl_rng_init(&rng, 3, 1);
    assert_int_equal(wl_dist_parse(&dist, "test", "lognormal:5:3@10..20", &err), 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t count = wl_dist_draw_count(&dist, &rng);
        assert_true(count >= 10 && count <= 20);
    }
    assert_int_equal(wl_dist_parse(&dist, "test", "17", &err), 0);
    check_u64_eq(wl_dist_draw_count(&dist, &rng), 17);
}

/* Values 1, 2, 2, 5: mean 2.5, variance (2.25 + 0.25 + 0.25 + 6.25) / 4 = 2.25. */
static void dist__empirical__draws_from_file_and_trace(void **state)
{
    (void)state;
    enum { DRAWS = 40000 };
    static const char *const texts[3][2] = {
        { "1 2\n2, 5\n", "empirical" },
        { "prompt_tokens,output_tokens\n1,9\n2,9\n2,9\n5,9\n", "prompts-of" },
        { "prompt_tokens,output_tokens\n9,1\n9,2\n9,2\n9,5\n", "outputs-of" },
    };
    char path[] = "/tmp/pagesim_values_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < 3; i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(texts[i][0], file);
        fclose(file);
        char text[128];
        snprintf(text, sizeof text, "%s:%s", texts[i][1], path);
        struct wl_dist dist;
        struct wl_rng rng;
        struct err err = { 0 };
        assert_int_equal(wl_dist_parse(&dist, "test", text, &err), 0);
        check_u64_eq(dist.values_count, 4);
        wl_rng_init(&rng, 8, i);
        double sum = 0;
        for (int n = 0; n < DRAWS; n++)
            sum += wl_dist_draw(&dist, &rng);
        check_f64_near(sum / DRAWS, 2.5, 5 * sqrt(2.25 / DRAWS));
        wl_dist_release(&dist);
    }
    remove(path);
}

/* Exponent 1, 4 ranks: weights 1, 1/2, 1/3, 1/4; sum 25/12; shares 0.48, 0.24, 0.16, 0.12. */
static void zipf__draws__follow_the_law(void **state)
{
    (void)state;
    enum { DRAWS = 100000 };
    static const double share[4] = { 0.48, 0.24, 0.16, 0.12 };
    struct wl_zipf zipf;
    struct wl_rng rng;
    wl_rng_init(&rng, 9, 9);
    assert_int_equal(wl_zipf_init(&zipf, 4, 1), 0);
    double seen[4] = { 0 };
    for (int i = 0; i < DRAWS; i++)
        seen[wl_zipf_draw(&zipf, &rng)]++;
    for (int i = 0; i < 4; i++)
        check_f64_near(seen[i] / DRAWS, share[i], 5 * sqrt(share[i] * (1 - share[i]) / DRAWS));
    wl_zipf_release(&zipf);
}

static void arrivals__each_process__has_its_rate_and_spread(void **state)
{
    (void)state;
    enum { REQUESTS = 100000 };
    static const struct { const char *text; double mean_s, cv, tolerance_cv; } cases[] = {
        /* Standard error of a mean gap: cv * mean / sqrt(n). */
        { "gen:requests=100000,arrivals=poisson:10", 0.1, 1, 0.03 },
        { "gen:requests=100000,arrivals=gamma:10:3", 0.1, 3, 0.15 },
        { "gen:requests=100000,arrivals=constant:10", 0.1, 0, 1e-6 },
        /* On half of the time: 5 a second on average; the spread is not checked. */
        { "gen:requests=100000,arrivals=onoff:10:2:2", 0.2, -1, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wl_source *source = open_seed(cases[i].text, 5);
        struct wl_stats stats;
        struct err err = { 0 };
        assert_int_equal(wl_stats_read(source, &stats, &err), 0);
        double mean_s = (double)wl_summary(source)->last_arrival_ns * 1e-9 / REQUESTS;
        /* An on/off cycle of 4 s holds 20 requests; 5,000 cycles whose length varies by about
         * sqrt(2)*2/4 = 0.71 and whose count by as much: 5 * 1 / sqrt(5000) = 0.07. */
        double spread = cases[i].cv >= 0 ? cases[i].cv * 5 / sqrt(REQUESTS) + 1e-4 : 0.07;
        check_f64_near(mean_s, cases[i].mean_s, spread * cases[i].mean_s);
        if (cases[i].cv >= 0)
            check_f64_near(stats.interarrival_cv, cases[i].cv, cases[i].tolerance_cv);
        wl_close(source);
    }
}

static char *written(const char *spec, uint64_t seed, bool twice)
{
    struct wl_source *source = open_seed(spec, seed);
    struct wl_request request;
    struct err err = { 0 };
    if (twice) {
        for (int i = 0; i < 17; i++)
            next(source, &request);
        assert_int_equal(wl_rewind(source, &err), 0);
    }
    char *text = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&text, &count);
    assert_non_null(out);
    assert_int_equal(wl_write(source, WL_WRITE_JSONL, out, &err), 0);
    fclose(out);
    wl_close(source);
    return text;
}

static void generator__same_seed__same_bytes(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "gen:requests=300", "preset:mooncake-conversation", "gen:preset=shared-chat,requests=300",
        "gen:arrivals=onoff:5:1:1,continue=0.8/0.5,prefix-tokens=30,prefix-groups=3,prefix-zipf=1",
        "gen:arrivals=gamma:5:2,n=uniform:1:4,abort-ratio=0.3,max-tokens=fixed:99",
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        char *one = written(specs[i], 1, false), *again = written(specs[i], 1, false);
        char *rewound = written(specs[i], 1, true), *other = written(specs[i], 2, false);
        assert_true(strcmp(one, again) == 0);
        assert_true(strcmp(one, rewound) == 0);
        assert_true(strcmp(one, other) != 0);
        free(one);
        free(again);
        free(rewound);
        free(other);
    }
}

/* A draw more for outputs must not move the prompts. */
static void generator__streams__are_independent(void **state)
{
    (void)state;
    struct wl_source *one = open_seed("gen:requests=100,output-tokens=5", 1);
    struct wl_source *other = open_seed("gen:requests=100,output-tokens=gamma:2:9,abort-ratio=0.5", 1);
    struct wl_request a, b;
    while (next(one, &a)) {
        assert_true(next(other, &b));
        check_u64_eq(a.prompt_tokens, b.prompt_tokens);
        check_u64_eq(a.arrival_ns, b.arrival_ns);
    }
    wl_close(one);
    wl_close(other);
}

/* One conversation, prefix 10, 5 new tokens and 3 output tokens a turn: prompt k has
 * 15 + 8 k tokens and repeats all that came before. At 40 tokens it starts afresh: turn 3 would
 * have 39 + 3 = 42. */
static void sessions__turns__repeat_the_whole_conversation(void **state)
{
    (void)state;
    struct wl_source *source = open_seed("gen:requests=8,sessions=1,prefix-tokens=10,prompt=5,"
                                         "output=3,context-tokens-max=40", 1);
    static const uint64_t expected[8] = { 15, 23, 31, 15, 23, 31, 15, 23 };
    struct wl_request r;
    uint64_t region = 0;
    for (size_t i = 0; i < 8; i++) {
        assert_true(next(source, &r));
        check_u64_eq(r.prompt_tokens, expected[i]);
        check_str_eq(r.session, "s0");
        check_u64_eq(r.prompt_spans, 2);
        check_u64_eq(r.prompt[0].first, 0); /* the prefix */
        check_u64_eq(r.prompt[0].count, 10);
        if (i % 3 == 0)
            assert_true(r.prompt[1].first != region);
        else
            check_u64_eq(r.prompt[1].first, region);
        region = r.prompt[1].first;
        check_u64_eq(r.prompt[1].count, expected[i] - 10);
        check_u64_eq(r.output[0].first, region + expected[i] - 10); /* goes on where the prompt ends */
        check_u64_eq(r.output[0].count, 3);
    }
    wl_close(source);
}

static void ids__later_turns__keep_the_ids_of_full_blocks(void **state)
{
    (void)state;
    /* Blocks of 4; prompts 6, 12, 18, ...: 1, 3, 4 full blocks, partial ones in prompts 1 and 3. */
    struct wl_source *source = open_seed("gen:requests=3,sessions=1,content=ids:4,prompt=6,output=2,"
                                         "history=prompt", 1);
    static const uint64_t expected[3][5] = { { 0, 1 }, { 0, 2, 3 }, { 0, 2, 3, 4, 5 } };
    static const size_t counts[3] = { 2, 3, 5 };
    struct wl_request r;
    for (size_t i = 0; i < 3; i++) {
        assert_true(next(source, &r));
        check_u64_eq(r.hash_count, counts[i]);
        for (size_t k = 0; k < counts[i]; k++)
            check_u64_eq(r.hash_ids[k], expected[i][k]);
    }
    wl_close(source);
}

static void conversations__many__arrive_in_order(void **state)
{
    (void)state;
    struct wl_source *source = open_seed("gen:requests=5000,continue=0.7,think=exponential:3", 1);
    struct wl_request r;
    uint64_t last_ns = 0;
    while (next(source, &r)) {
        assert_true(r.arrival_ns >= last_ns);
        assert_non_null(r.session);
        last_ns = r.arrival_ns;
    }
    check_u64_eq(wl_summary(source)->requests, 5000);
    wl_close(source);
}

static void extras__shares__are_as_asked(void **state)
{
    (void)state;
    struct wl_source *source = open_seed("gen:requests=10000,n=uniform:1:4,abort-ratio=0.2,"
                                         "abort-delay=fixed:2", 1);
    struct wl_request r;
    uint64_t samples = 0, aborts = 0;
    while (next(source, &r)) {
        samples += r.samples;
        if (r.abort_ns == WL_NONE)
            continue;
        aborts++;
        check_u64_eq(r.abort_ns - r.arrival_ns, UINT64_C(2000000000));
    }
    /* Mean of 1..4 is 2.5, variance 1.25: 5 * sqrt(1.25 * 10000) = 559. Binomial: 5 * 40. */
    check_f64_near((double)samples, 25000, 559);
    check_f64_near((double)aborts, 2000, 200);
    wl_close(source);
}

struct preset_case {
    const char *name;
    double prompt_mean, prompt_p50, prompt_p90, output_mean, output_p50, output_p90;
};

/* Means and quantiles of the fitted laws. The clip at the trace's largest value takes off some of
 * the mean; 10,000 to 20,000 requests leave an error of about 1.5 %. */
static void presets__lengths__are_near_the_fits(void **state)
{
    (void)state;
    static const struct preset_case cases[] = {
        { "preset:azure-conv", 1178.66, 1000.31, 3143.08, 213.023, 129.331, 419.114 },
        { "preset:azure-code", 2069.84, 1479.66, 4926.26, 26.3147, 13.1199, 60.4479 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct preset_case *c = &cases[i];
        struct wl_source *source = open_seed(c->name, 1);
        struct wl_stats stats;
        struct err err = { 0 };
        assert_int_equal(wl_stats_read(source, &stats, &err), 0);
        check_f64_near(stats.input.mean, c->prompt_mean, 0.05 * c->prompt_mean);
        check_f64_near((double)stats.input.p50, c->prompt_p50, 0.05 * c->prompt_p50);
        check_f64_near((double)stats.input.p90, c->prompt_p90, 0.05 * c->prompt_p90);
        check_f64_near(stats.output.mean, c->output_mean, 0.05 * c->output_mean);
        check_f64_near((double)stats.output.p50, c->output_p50, 0.05 * c->output_p50);
        check_f64_near((double)stats.output.p90, c->output_p90, 0.05 * c->output_p90);
        wl_close(source);
    }
}

static void presets__all__open_and_have_a_source(void **state)
{
    (void)state;
    for (size_t i = 0; i < wl_preset_count(); i++) {
        const struct wl_preset *preset = wl_preset_at(i);
        char name[64];
        snprintf(name, sizeof name, "preset:%s", preset->name);
        struct wl_source *source = open_seed(name, 1);
        struct wl_request r;
        assert_true(next(source, &r));
        assert_true(strlen(preset->source) > 10 && strlen(preset->summary) > 10);
        wl_close(source);
    }
}

static void spec__wrong__one_clear_line(void **state)
{
    (void)state;
    static const struct { const char *spec, *message; } cases[] = {
        { "preset:azure", "preset: found 'azure', expected one of azure-conv, azure-code, "
          "mooncake-conversation, shared-chat" },
        { "gen:request=5", "gen: found key 'request', expected one of requests, arrivals, "
          "prompt-tokens, output-tokens and others (see trace gen --help)" },
        { "gen:requests=5,requests=6", "gen: found key 'requests' again, expected it once" },
        { "gen:requests=0", "requests: found '0', expected a number from 1 to 1e+12" },
        { "gen:requests=1.5", "requests: found '1.5', expected a whole number" },
        { "gen:requests", "gen: found 'requests', expected key=value" },
        { "gen:arrivals=poisson:0", "arrivals: found '0', expected a number from 1e-09 to 1e+09" },
        { "gen:arrivals=weekly", "arrivals: found 'weekly', expected poisson:RATE, gamma:RATE:CV, "
          "onoff:RATE:ON_S:OFF_S, constant:RATE (per second) or none" },
        { "gen:prompt=lognormal:5", "prompt-tokens: found '5', expected 2 numbers separated by ':'" },
        { "gen:prompt=lognormal:5:nan",
          "prompt-tokens: found 'nan', expected a number from -100 to 1e+12" },
        { "gen:prompt=empirical:no/such", "no/such: cannot open: No such file or directory" },
        { "gen:continue=1", "continue: found '1', expected a number from 0 to 0.9999" },
        { "gen:sessions=2,continue=0.5", "sessions: found beside continue, expected one of the two" },
        { "gen:abort-ratio=2", "abort-ratio: found '2', expected a number from 0 to 1" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wl_source *source = NULL;
        struct err err = { 0 };
        assert_int_equal(wl_open(cases[i].spec, &plain, 1, &source, &err), -1);
        check_str_eq(err.text, cases[i].message);
        assert_null(source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rng__against_the_definition__is_xoshiro256ss),
        cmocka_unit_test(rng_below__three__each_as_likely),
        cmocka_unit_test(dist__draws__have_the_moments_of_the_formulae),
        cmocka_unit_test(dist__clip_and_fixed__stay_in_range),
        cmocka_unit_test(dist__empirical__draws_from_file_and_trace),
        cmocka_unit_test(zipf__draws__follow_the_law),
        cmocka_unit_test(arrivals__each_process__has_its_rate_and_spread),
        cmocka_unit_test(generator__same_seed__same_bytes),
        cmocka_unit_test(generator__streams__are_independent),
        cmocka_unit_test(sessions__turns__repeat_the_whole_conversation),
        cmocka_unit_test(ids__later_turns__keep_the_ids_of_full_blocks),
        cmocka_unit_test(conversations__many__arrive_in_order),
        cmocka_unit_test(extras__shares__are_as_asked),
        cmocka_unit_test(presets__lengths__are_near_the_fits),
        cmocka_unit_test(presets__all__open_and_have_a_source),
        cmocka_unit_test(spec__wrong__one_clear_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
