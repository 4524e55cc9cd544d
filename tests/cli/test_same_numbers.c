/* One run, told in different ways: the JSON result, the table for people, the HTML page, trace events, the timeline, the
 * pictures of the pool and those of the terminal have the same numbers. */
#include "tests/check.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli_run.h"

#define STATES 10
static const char *const state_names[STATES] = {"live", "dead", "reserved", "internal", "rounding",
                                                "cached", "cached_pinned", "stranded", "free", "overhead"};

#define RUN "gen:requests=150,arrivals=poisson:60,prefix-tokens=80,content=tokens", "--policy", "prefix", "--pool-tokens", "3000", "--max-model-len", "3500"
#define TOKEN_BYTES 131072 /* the default of --kv-bytes-per-token */

struct run {
    char *dir;
    json_t *result, *page, *trace;
    char *html, *table;
};

static json_t *parse(const char *text, size_t bytes)
{
    json_error_t trouble;
    json_t *value = json_loadb(text, bytes, 0, &trouble);
    if (!value) fail_msg("line %d: %s", trouble.line, trouble.text);
    return value;
}

static json_t *parse_file(const char *path)
{
    char *text = cli_read(path);
    assert_non_null(text);
    json_t *value = parse(text, strlen(text));
    free(text);
    return value;
}

static json_t *page_data(const char *html)
{
    const char *at = strstr(html, "id=\"page-data\">") + strlen("id=\"page-data\">");
    return parse(at, (size_t)(strstr(at, "</script>") - at));
}

/* Preemptions, evictions, refusals of two classes, verdicts: a run in which every number is above 0. */
static int setup(void **state)
{
    static struct run run;
    struct cli_result r;
    run.dir = cli_temp_dir();
    CLI(&r, "run", RUN, "--record", cli_path(run.dir, "run"), "--perfetto", cli_path(run.dir, "trace.json"));
    check_i64_eq(r.status, 0);
    run.table = strdup(r.out);
    cli_release(&r);
    CLI(&r, "report", cli_path(run.dir, "run"), "--output", cli_path(run.dir, "page.html"));
    check_i64_eq(r.status, 0);
    cli_release(&r);
    run.result = parse_file(cli_path(run.dir, "run/result.json"));
    run.trace = parse_file(cli_path(run.dir, "trace.json"));
    run.html = cli_read(cli_path(run.dir, "page.html"));
    run.page = page_data(run.html);
    *state = &run;
    return 0;
}

static int teardown(void **state)
{
    struct run *run = *state;
    json_decref(run->result);
    json_decref(run->page);
    json_decref(run->trace);
    free(run->html);
    free(run->table);
    cli_temp_remove(run->dir);
    return 0;
}

/* "refusals.by_class.capacity" */
static const json_t *at_path(const json_t *object, const char *path)
{
    char name[80];
    for (const char *dot; object && (dot = strchr(path, '.')); path = dot + 1) {
        snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
        object = json_object_get(object, name);
    }
    return json_object_get(object, path);
}

static double number(const json_t *object, const char *path)
{
    const json_t *value = at_path(object, path);
    if (!json_is_number(value)) fail_msg("no number %s", path);
    return json_number_value(value);
}

static double state_share(const struct run *run, int s)
{
    char path[40];
    snprintf(path, sizeof path, "states.%s", state_names[s]);
    return number(run->result, path);
}

/* Digit for digit. */
static void page__figures__are_the_results(void **state)
{
    const struct run *run = *state;
    const json_t *names = json_object_get(run->page, "figure_names"), *shown = json_array_get(json_object_get(run->page, "runs"), 0);
    size_t above_0 = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const json_t *value = at_path(run->result, json_string_value(json_array_get(names, i)));
        assert_non_null(value);
        assert_true(json_equal(value, json_array_get(json_object_get(shown, "figures"), i)));
        above_0 += json_number_value(value) > 0;
    }
    assert_true(above_0 > 20);
    for (int s = 0; s < STATES; s++) assert_true(json_number_value(json_array_get(json_object_get(shown, "states"), (size_t)s)) == state_share(run, s));
}

/* The table for people has a line a state: slots and percent stand in the page's balance sheet too. */
static void page__balance_sheet__is_the_table_for_people(void **state)
{
    const struct run *run = *state;
    size_t lines = 0;
    char *copy = strdup(run->table);
    for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n")) {
        char name[32], slots[32], share[32], cell[200];
        if (sscanf(line, "  %31s %31s slots %31s %%", name, slots, share) != 3) continue;
        snprintf(cell, sizeof cell, "</i>%s</th><td class=\"num\">%s</td>", name, slots);
        assert_non_null(strstr(run->html, cell));
        snprintf(cell, sizeof cell, "<td class=\"num\">%s %%</td>", share);
        assert_non_null(strstr(run->html, cell));
        lines++;
    }
    free(copy);
    assert_true(lines >= 5);
}

/* --- trace events -------------------------------------------------------------------------------- */

static bool is_event(const json_t *event, const char *name, const char *phase)
{
    return strcmp(json_string_value(json_object_get(event, "name")), name) == 0 && strcmp(json_string_value(json_object_get(event, "ph")), phase) == 0;
}

static uint64_t count_events(const struct run *run, const char *name, const char *phase)
{
    uint64_t count = 0;
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(run->trace, "traceEvents"), i, event) count += is_event(event, name, phase);
    return count;
}

static double ns_of(const json_t *event)
{
    return json_number_value(json_object_get(event, "ts")) * 1000;
}

static void trace_events__counts__are_the_results(void **state)
{
    const struct run *run = *state;
    static const struct { const char *name, *phase, *path; } counts[] = {
        {"step", "X", "steps"}, {"preempt", "i", "preemptions"}, {"evict", "i", "evictions"}, {"reject", "i", "rejected"},
        {"unservable", "i", "unservable"}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        assert_true(number(run->result, counts[i].path) > 0);
        check_u64_eq(count_events(run, counts[i].name, counts[i].phase), (uint64_t)number(run->result, counts[i].path));
    }
}

/* The counters' integral over the window, by hand: each holds until the next. */
static void trace_events__counters__make_the_mean_states(void **state)
{
    const struct run *run = *state;
    double sums[STATES] = {0}, all = 0, bytes[STATES] = {0}, since = -1, begin = -1;
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(run->trace, "traceEvents"), i, event) {
        if (!is_event(event, "pool bytes", "C")) continue;
        double now = ns_of(event);
        if (since < 0) begin = now;
        for (int s = 0; s < STATES; s++) {
            if (since >= 0) sums[s] += bytes[s] * (now - since);
            bytes[s] = json_number_value(json_object_get(json_object_get(event, "args"), state_names[s]));
        }
        since = now;
    }
    double end = begin + number(run->result, "window_ns");
    for (int s = 0; s < STATES; s++) all += sums[s] += bytes[s] * (end - since);
    assert_true(end >= since && fabs(all / (number(run->result, "pool_bytes") * (end - begin)) - 1) < 1e-9);
    for (int s = 0; s < STATES; s++) assert_true(fabs(sums[s] / all - state_share(run, s)) < 1e-9);
}

/* --- the page's timeline, refusals and pictures ------------------------------------------------------ */

static const json_t *detail_of(const struct run *run, const char *name)
{
    const json_t *detail = json_object_get(json_array_get(json_object_get(run->page, "details"), 0), name);
    if (!detail) fail_msg("the page has no %s", name);
    return detail;
}

/* Points are means over their time: their integral is the run's. Rows are rounded to a byte. */
static void page__timeline__makes_the_mean_states(void **state)
{
    const struct run *run = *state;
    const json_t *t = detail_of(run, "timeline"), *times = json_object_get(t, "time_ns");
    size_t points = json_array_size(times);
    double window = number(run->result, "window_ns"), pool = number(run->result, "pool_bytes");
    double begin = json_number_value(json_array_get(times, 0));
    for (int s = 0; s < STATES; s++) {
        const json_t *mean = json_object_get(json_object_get(json_object_get(t, "values"), state_names[s]), "mean");
        double sum = 0;
        for (size_t i = 0; i < points && mean; i++) {
            double from = json_number_value(json_array_get(times, i));
            double to = i + 1 < points ? json_number_value(json_array_get(times, i + 1)) : begin + window;
            sum += json_number_value(json_array_get(mean, i)) * (to - from);
        }
        assert_true(fabs(sum / (pool * window) - state_share(run, s)) < 1e-6);
    }
}

static void page__refusals__add_up_to_the_results(void **state)
{
    const struct run *run = *state;
    const json_t *groups = json_object_get(detail_of(run, "oom-log"), "groups");
    double episodes = 0;
    for (size_t i = 0; i < json_array_size(groups); i++) episodes += number(json_array_get(groups, i), "episodes");
    assert_true(episodes > 0 && episodes == number(run->result, "refusals.episodes"));
    static const char *const classes[] = {"despite_free", "despite_unused", "capacity"};
    for (size_t c = 0; c < 3; c++) {
        char path[60];
        double sum = 0;
        for (size_t i = 0; i < json_array_size(groups); i++) {
            const json_t *group = json_array_get(groups, i);
            if (strcmp(json_string_value(json_object_get(group, "class")), classes[c]) == 0) sum += number(group, "episodes");
        }
        snprintf(path, sizeof path, "refusals.by_class.%s", classes[c]);
        assert_true(sum == number(run->result, path));
    }
}

static const json_t *step_event(const struct run *run, uint64_t step)
{
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(run->trace, "traceEvents"), i, event) {
        if (is_event(event, "step", "X") && (uint64_t)number(event, "args.step") == step) return event;
    }
    fail_msg("no step %llu", (unsigned long long)step);
    return NULL;
}

/* A picture is taken at the end of a step: who runs and waits then, and when that is, its trace event says too. */
static void page__pictures__are_the_steps_of_the_trace_events(void **state)
{
    const struct run *run = *state;
    const json_t *frames = json_object_get(detail_of(run, "memory-map"), "frames");
    assert_true(json_array_size(frames) >= 50);
    for (size_t f = 0; f < json_array_size(frames); f++) {
        const json_t *frame = json_array_get(frames, f), *step = step_event(run, (uint64_t)number(frame, "step"));
        check_u64_eq(json_array_size(json_object_get(frame, "running")), (uint64_t)number(step, "args.running"));
        check_u64_eq((uint64_t)number(frame, "waiting"), (uint64_t)number(step, "args.waiting"));
        assert_true(fabs(ns_of(step) + number(step, "dur") * 1000 - number(frame, "time_ns")) < 0.5);
        double pool = 0;
        for (int s = 0; s < STATES; s++) pool += number(json_object_get(frame, "states"), state_names[s]);
        assert_true(pool == number(run->result, "pool_bytes"));
    }
}

/* Slots of a state in the terminal's picture, whose line leaves out those without any. */
static double slots_in(const char *picture, const char *state)
{
    char name[40];
    const char *line = strstr(picture, "\nslots:");
    assert_non_null(line);
    snprintf(name, sizeof name, " %s ", state);
    const char *at = strstr(line, name);
    return at && at < strchr(line + 1, '\n') ? strtod(at + strlen(name), NULL) : 0;
}

static void check_picture(const char *picture, const json_t *frame)
{
    for (int s = 0; s < STATES; s++) assert_true(slots_in(picture, state_names[s]) * TOKEN_BYTES == number(json_object_get(frame, "states"), state_names[s]));
    /* The block table of the first running request, whole. */
    const json_t *first = json_array_get(json_object_get(frame, "running"), 0), *blocks = json_array_get(first, 4);
    if (!first) return;
    char line[200];
    snprintf(line, sizeof line, " request %s: %lld of %lld tokens; blocks", json_string_value(json_array_get(first, 1)),
             (long long)json_integer_value(json_array_get(first, 2)), (long long)json_integer_value(json_array_get(first, 3)));
    const char *at = strstr(picture, line);
    if (!at) fail_msg("no '%s' in\n%s", line, picture);
    at += strlen(line);
    for (size_t i = 0; i < 8 && i < json_array_size(blocks); i++) {
        char *end;
        check_u64_eq(strtoull(at, &end, 10), (uint64_t)json_integer_value(json_array_get(blocks, i)));
        at = end;
    }
}

static void terminal__pictures__are_those_of_the_page(void **state)
{
    const struct run *run = *state;
    const json_t *frames = json_object_get(detail_of(run, "memory-map"), "frames");
    size_t count = json_array_size(frames);
    for (size_t k = 1; k < 8; k++) {
        const json_t *frame = json_array_get(frames, k * count / 8);
        struct cli_result r;
        char step[40];
        snprintf(step, sizeof step, "%llu+", (unsigned long long)number(frame, "step"));
        CLI(&r, "explain", RUN, "--at", step);
        check_i64_eq(r.status, 0);
        check_picture(r.out, frame);
        cli_release(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page__figures__are_the_results),
        cmocka_unit_test(page__balance_sheet__is_the_table_for_people),
        cmocka_unit_test(trace_events__counts__are_the_results),
        cmocka_unit_test(trace_events__counters__make_the_mean_states),
        cmocka_unit_test(page__timeline__makes_the_mean_states),
        cmocka_unit_test(page__refusals__add_up_to_the_results),
        cmocka_unit_test(page__pictures__are_the_steps_of_the_trace_events),
        cmocka_unit_test(terminal__pictures__are_those_of_the_page),
    };
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
