/* run --perfetto against the trace event format's description, and against the run's own results. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX 400

struct seen {
    uint64_t spans, instants, counters, steps;
    uint64_t preempted, decodes;
    const char *open[REQUESTS_MAX];   /* name of the span that is open on a request's track */
    double open_ts[REQUESTS_MAX];
    double step_end;                  /* of the last step */
    double decode_us[REQUESTS_MAX];
};

static double number(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    if (!json_is_number(value)) fail_msg("%s: no number in %s", key, json_dumps(event, 0));
    return json_number_value(value);
}

static const char *text(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    if (!json_is_string(value)) fail_msg("%s: no text in %s", key, json_dumps(event, 0));
    return json_string_value(value);
}

/* Every event has name, ph, ts, pid, tid; X has dur, i a scope, C and M args. Spans of a track do not overlap: one ends before
 * the next begins, and ends under the name that it began with. */
static void check_event(struct seen *seen, const json_t *e)
{
    const char *ph = text(e, "ph"), *name = text(e, "name");
    double ts = number(e, "ts");
    uint64_t pid = (uint64_t)number(e, "pid"), tid = (uint64_t)number(e, "tid");
    assert_true(ts >= 0 && strlen(ph) == 1 && strchr("BEXiCM", *ph));
    if (*ph == 'X') {
        assert_int_equal(pid, 2);
        assert_true(ts >= seen->step_end - 1e-3); /* steps follow each other */
        seen->step_end = ts + number(e, "dur");
        seen->steps++;
    } else if (*ph == 'i') {
        assert_true(strchr("gpt", *text(e, "s")) != NULL);
        seen->instants++;
        seen->preempted += strcmp(name, "preempt") == 0;
    } else if (*ph == 'C' || *ph == 'M') {
        assert_true(json_is_object(json_object_get(e, "args")));
        seen->counters += *ph == 'C' && strcmp(name, "pool bytes") == 0;
    } else {
        assert_int_equal(pid, 1);
        assert_true(tid >= 1 && tid < REQUESTS_MAX);
        if (*ph == 'B') {
            assert_null(seen->open[tid]);
            assert_true(ts >= seen->open_ts[tid]);
            seen->open[tid] = name;
            seen->spans++;
        } else {
            assert_non_null(seen->open[tid]);
            check_str_eq(seen->open[tid], name);
            assert_true(ts >= seen->open_ts[tid]);
            if (strcmp(name, "decode") == 0) seen->decode_us[tid] += ts - seen->open_ts[tid];
            seen->open[tid] = NULL;
        }
        seen->open_ts[tid] = ts;
    }
}

/* The integral of a counter over the window, which begins with the first one, divided by pool and time: a state's share. */
static double mean_share(const json_t *events, const char *state, double window_us)
{
    double sum = 0, since = 0, level = 0, pool = 0, begin = -1;
    size_t i;
    const json_t *e;
    json_array_foreach(events, i, e)
    {
        if (strcmp(text(e, "ph"), "C") != 0 || strcmp(text(e, "name"), "pool bytes") != 0) continue;
        const json_t *args = json_object_get(e, "args");
        const char *key;
        json_t *value;
        double ts = number(e, "ts");
        if (begin < 0) begin = ts;
        sum += level * (ts - since);
        since = ts;
        level = number(args, state);
        pool = 0;
        json_object_foreach((json_t *)args, key, value) pool += json_number_value(value);
    }
    sum += level * (begin + window_us - since);
    return sum / pool / window_us;
}

static json_t *run_and_load(const char *dir, json_t **result, const char *const *options)
{
    const char *argv[40] = {"run", "--json", "--perfetto", NULL};
    char path[512];
    snprintf(path, sizeof path, "%s/p.json", dir);
    size_t n = 3;
    argv[n++] = path;
    for (; *options; options++) argv[n++] = *options;
    argv[n] = NULL;
    struct cli_result r;
    cli_run(&r, NULL, argv);
    if (r.status != 0) fail_msg("%s", r.err);
    *result = json_loads(r.out, 0, NULL);
    assert_non_null(*result);
    cli_release(&r);
    json_error_t where;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    if (!root) fail_msg("%s: %s", path, where.text);
    return root;
}

static double of(const json_t *result, const char *a, const char *b)
{
    const json_t *v = json_object_get(result, a);
    return json_number_value(b ? json_object_get(v, b) : v);
}

static void check_run(const char *const *options, bool preempts)
{
    char *dir = cli_temp_dir();
    json_t *result, *root = run_and_load(dir, &result, options);
    const json_t *events = json_object_get(root, "traceEvents");
    struct seen seen = {0};
    size_t i;
    const json_t *e;
    json_array_foreach(events, i, e) check_event(&seen, e);
    for (size_t t = 0; t < REQUESTS_MAX; t++) assert_null(seen.open[t]);
    check_u64_eq(seen.steps, (uint64_t)of(result, "steps", NULL));
    check_u64_eq(seen.preempted, (uint64_t)of(result, "preemptions", NULL));
    assert_int_equal(seen.preempted > 0, preempts);
    assert_true(seen.spans > 2 * (uint64_t)of(result, "requests", NULL));
    /* the counters integrate to the states of the results */
    double window_us = of(result, "window_ns", NULL) / 1000;
    static const char *const states[] = {"live", "reserved", "internal", "cached", "free", "overhead"};
    for (i = 0; i < sizeof states / sizeof states[0]; i++)
        check_f64_near(mean_share(events, states[i], window_us), of(result, "states", states[i]), 1e-6);
    json_decref(root);
    json_decref(result);
    cli_temp_remove(dir);
}

static void perfetto__a_run__is_valid_and_agrees_with_the_results(void **state)
{
    (void)state;
    const char *const options[] = {"gen:requests=200,arrivals=poisson:20,prompt-tokens=lognormal:5:1@1..1000,output-tokens=lognormal:4:1@1..300",
                                   "--policy", "prefix", "--num-gpu-blocks-override", "2000", NULL};
    check_run(options, false);
}

static void perfetto__preemptions_and_samples__likewise(void **state)
{
    (void)state;
    const char *const options[] = {"gen:requests=60,arrivals=none,prompt-tokens=lognormal:4:1@1..300,output-tokens=lognormal:4:1@1..300,n=2",
                                   "--policy", "dynamic", "--pool-tokens", "1500", "--step-time", "unit", NULL};
    check_run(options, true);
}

/* Request 3 of the lesson on preemption: queued 0, prefill to 1 ms, decode to 17, preempted to 33, prefill to 34, decode to 49:
 * 16 + 15 ms of decoding. */
static void perfetto__one_request__phases_by_hand(void **state)
{
    (void)state;
    char *dir = cli_temp_dir();
    json_t *result;
    const char *const options[] = {"docs/lessons/7-thrashing.jsonl", "--policy", "dynamic", "--block-size", "16",
                                   "--num-gpu-blocks-override", "9", "--step-time", "unit", NULL};
    json_t *root = run_and_load(dir, &result, options);
    struct seen seen = {0};
    size_t i;
    const json_t *e;
    json_array_foreach(json_object_get(root, "traceEvents"), i, e) check_event(&seen, e);
    check_f64_near(seen.decode_us[4], 31000, 0);
    json_decref(root);
    json_decref(result);
    cli_temp_remove(dir);
}

/* Steps of 1 ms: who arrives at 0.25 ms waits from then on, not from the step's end, where the engine learns of it. */
static void perfetto__arrival_within_a_step__queued_from_then_on(void **state)
{
    (void)state;
    char *dir = cli_temp_dir();
    json_t *result;
    const char trace[] = "{\"arrival_ns\": 0, \"prompt_tokens\": 8, \"output_tokens\": 2}\n"
                         "{\"arrival_ns\": 250000, \"prompt_tokens\": 8, \"output_tokens\": 2}\n";
    const char *const options[] = {cli_write(dir, "t.jsonl", trace, strlen(trace)), "--step-time", "unit", NULL};
    json_t *root = run_and_load(dir, &result, options);
    double begun = -1, ended = -1;
    size_t i;
    const json_t *e;
    json_array_foreach(json_object_get(root, "traceEvents"), i, e)
    {
        if (strcmp(text(e, "name"), "queued") != 0 || number(e, "tid") != 2) continue;
        *(strcmp(text(e, "ph"), "B") == 0 ? &begun : &ended) = number(e, "ts");
    }
    check_f64_near(begun, 250, 0);
    check_f64_near(ended, 1000, 0);
    json_decref(root);
    json_decref(result);
    cli_temp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perfetto__a_run__is_valid_and_agrees_with_the_results),
        cmocka_unit_test(perfetto__preemptions_and_samples__likewise),
        cmocka_unit_test(perfetto__one_request__phases_by_hand),
        cmocka_unit_test(perfetto__arrival_within_a_step__queued_from_then_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
