/* pagesim report, run --report and run --record, as a user runs them. What a browser shows is in tests/browser. */
#include "tests/check.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli_run.h"

#define TRACE "gen:requests=200,arrivals=poisson:40,prompt-tokens=lognormal:5:1@1..1500,output-tokens=lognormal:4:0.8@1..300"
#define POOL "--pool-tokens", "4000"

static int setup(void **state)
{
    *state = cli_temp_dir();
    return 0;
}

static int teardown(void **state)
{
    cli_temp_remove(*state);
    return 0;
}

static void run_to(const char *dir, const char *policy, const char *folder)
{
    struct cli_result r;
    CLI(&r, "run", TRACE, "--policy", policy, POOL, "--record", cli_path(dir, folder));
    check_i64_eq(r.status, 0);
    cli_release(&r);
}

/* The page of one argument. free() it. */
static char *page_of(const char *dir, const char *argument)
{
    struct cli_result r;
    CLI(&r, "report", argument, "--output", cli_path(dir, "page.html"));
    check_str_eq(r.err, "");
    check_i64_eq(r.status, 0);
    cli_release(&r);
    char *page = cli_read(cli_path(dir, "page.html"));
    assert_non_null(page);
    return page;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* The data of the page, parsed. */
static json_t *data_of(const char *page)
{
    const char *at = strstr(page, "id=\"page-data\">");
    assert_non_null(at);
    at += strlen("id=\"page-data\">");
    const char *end = strstr(at, "</script>");
    assert_non_null(end);
    json_error_t trouble;
    json_t *data = json_loadb(at, (size_t)(end - at), 0, &trouble);
    if (!data) fail_msg("page data: line %d: %s", trouble.line, trouble.text);
    return data;
}

/* --- what stands in a page ------------------------------------------------------------------------ */

static void report__one_run__same_numbers_as_the_table_for_people(void **state)
{
    struct cli_result table;
    run_to(*state, "static", "a");
    char *page = page_of(*state, cli_path(*state, "a"));
    CLI(&table, "run", TRACE, "--policy", "static", POOL);
    size_t states = 0;
    for (char *line = strtok(table.out, "\n"); line; line = strtok(NULL, "\n")) {
        char name[32], slots[32], share[32], cell[200];
        if (sscanf(line, "  %31s %31s slots %31s %%", name, slots, share) != 3) continue;
        snprintf(cell, sizeof cell, "</i>%s</th><td class=\"num\">%s</td>", name, slots);
        assert_true(has(page, cell));
        snprintf(cell, sizeof cell, "<td class=\"num\">%s %%</td>", share);
        assert_true(has(page, cell));
        states++;
    }
    assert_true(states >= 4); /* live, reserved, internal, free */
    assert_true(has(page, "<td class=\"num\">4,000</td>")); /* the pool's line */
    assert_true(has(page, "<td class=\"num\">100.00 %</td>"));
    cli_release(&table);
    free(page);
}

static void report__one_run__answer_balance_refusals_options(void **state)
{
    static const char *const parts[] = {"id=\"answer\"", "id=\"balance-table\"", "id=\"time\"", "id=\"refusals\"", "id=\"requests\"",
        "id=\"options\"", "id=\"reading\"", "despite_unused", "over_reservation", "--pool-tokens", "lang=\"en\"", "Skip to the answer",
        "because bytes that held nothing stood in the way", "Of <strong>500.0\u00a0MiB</strong>"}; /* 4,000 slots of 128 KiB */
    run_to(*state, "static", "a");
    char *page = page_of(*state, cli_path(*state, "a"));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!has(page, parts[i])) fail_msg("the page lacks %s", parts[i]);
    }
    free(page);
}

static void report__any__needs_no_network(void **state)
{
    static const char *const calls[] = {" src=", "href=\"http", "url(http", "url(//", "@import", "fetch(", "XMLHttpRequest", "WebSocket", "sendBeacon", "<link"};
    run_to(*state, "prefix", "a");
    char *page = page_of(*state, cli_path(*state, "a"));
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (has(page, calls[i])) fail_msg("the page has '%s'", calls[i]);
    }
    assert_true(has(page, "Content-Security-Policy\" content=\"default-src 'none';"));
    free(page);
}

/* Every step the same way: the sweep's lines, and the objects of run --json one after another. */
static void report__sweep__a_row_a_cell(void **state)
{
    struct cli_result r;
    CLI(&r, "sweep", TRACE, "--policy", "static,dynamic", "--block-size", "16,64", POOL, "--output", cli_path(*state, "s.jsonl"));
    check_i64_eq(r.status, 0);
    cli_release(&r);
    char *page = page_of(*state, cli_path(*state, "s.jsonl"));
    json_t *data = data_of(page);
    check_u64_eq(json_array_size(json_object_get(data, "runs")), 4);
    assert_true(has(page, "<th scope=\"row\">dynamic, block 64</th>"));
    assert_true(has(page, "4 results"));
    json_decref(data);
    free(page);
}

static void report__files_by_options__same_page_as_a_folder(void **state)
{
    struct cli_result r;
    run_to(*state, "static", "a");
    char *folder = page_of(*state, cli_path(*state, "a"));
    CLI(&r, "report", cli_path(*state, "a/result.json"), "--timeline", cli_path(*state, "a/timeline.csv"), "--events",
        cli_path(*state, "a/events.csv"), "--oom-log", cli_path(*state, "a/oom-log.csv"));
    check_i64_eq(r.status, 0);
    /* The memory map is the one detail that is left out here. */
    json_t *one = data_of(folder), *two = data_of(r.out);
    json_t *details = json_array_get(json_object_get(one, "details"), 0);
    json_object_del(details, "memory-map");
    assert_true(json_equal(one, two));
    json_decref(one);
    json_decref(two);
    cli_release(&r);
    free(folder);
}

static void run_report__alone__page_of_the_run_and_nothing_else(void **state)
{
    struct cli_result r;
    CLI(&r, "run", TRACE, "--policy", "static", POOL, "--report", cli_path(*state, "b.html"), "--json");
    check_i64_eq(r.status, 0);
    check_u64_eq(cli_count_entries(*state), 1);
    cli_release(&r);
    run_to(*state, "static", "a");
    char *one = cli_read(cli_path(*state, "b.html")), *two = page_of(*state, cli_path(*state, "a"));
    assert_non_null(one);
    check_str_eq(one, two);
    free(one);
    free(two);
}

/* --- numbers --------------------------------------------------------------------------------------- */

static double sum_of(const char *text, int column)
{
    double sum = 0, last_time = -1, last_value = 0;
    for (const char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        double time = strtod(line, NULL);
        const char *at = line;
        for (int c = 0; c < column; c++) at = strchr(at, ',') + 1;
        if (last_time >= 0) sum += last_value * (time - last_time);
        last_time = time;
        last_value = strtod(at, NULL);
    }
    return sum;
}

/* The interval is chosen; the means of the rows still make the run's mean. The last row's length is not in the file: its
 * part of 1,000 or more is what the tolerance is for. */
static void run_record__timeline__adds_up_to_the_result(void **state)
{
    struct cli_result r;
    run_to(*state, "static", "a");
    char *timeline = cli_read(cli_path(*state, "a/timeline.csv")), *text = cli_read(cli_path(*state, "a/result.json"));
    json_t *result = json_loads(text, 0, NULL);
    double states[10], all = 0;
    size_t rows = 0;
    for (const char *p = timeline; *p; p++) rows += *p == '\n';
    assert_true(rows > 1000 && rows <= 32768);
    for (int s = 0; s < 10; s++) all += states[s] = sum_of(timeline, s + 1);
    double live = json_number_value(json_object_get(json_object_get(result, "states"), "live"));
    assert_true(live > 0.1);
    assert_true(fabs(states[0] / all - live) < 2e-3);
    json_decref(result);
    free(text);
    free(timeline);
    CLI(&r, "run", TRACE, "--policy", "static", POOL, "--record", cli_path(*state, "b"), "--timeline-interval", "10s");
    check_i64_eq(r.status, 0);
    timeline = cli_read(cli_path(*state, "b/timeline.csv"));
    rows = 0;
    for (const char *p = timeline; *p; p++) rows += *p == '\n';
    assert_true(rows < 20);
    free(timeline);
    cli_release(&r);
}

/* A timeline of 5,000 rows in which one row stands out, at a height written here: thinning keeps it. */
static void report__long_timeline__thinned_with_smallest_and_largest(void **state)
{
    struct cli_result r;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    fputs("time_ns,live_bytes,dead_bytes,reserved_bytes,internal_bytes,rounding_bytes,cached_bytes,cached_pinned_bytes,stranded_bytes,free_bytes,overhead_bytes,running\n", out);
    for (int i = 0; i < 5000; i++) fprintf(out, "%d,%d,0,0,0,0,0,0,0,%d,0,1.500\n", i * 10, i == 3777 ? 900 : 100, i == 3777 ? 100 : 900);
    fclose(out);
    const char *timeline = cli_write(*state, "t.csv", text, bytes);
    run_to(*state, "static", "a");
    CLI(&r, "report", cli_path(*state, "a/result.json"), "--timeline", timeline);
    check_i64_eq(r.status, 0);
    json_t *data = data_of(r.out);
    json_t *t = json_object_get(json_array_get(json_object_get(data, "details"), 0), "timeline");
    check_u64_eq((uint64_t)json_integer_value(json_object_get(t, "rows")), 5000);
    uint64_t per_point = (uint64_t)json_integer_value(json_object_get(t, "rows_per_point"));
    check_u64_eq(per_point, 4); /* 5,000 in at most 2,048 points */
    json_t *live = json_object_get(json_object_get(t, "values"), "live");
    size_t point = 3777 / 4;
    check_u64_eq((uint64_t)json_integer_value(json_array_get(json_object_get(live, "max"), point)), 900);
    check_u64_eq((uint64_t)json_integer_value(json_array_get(json_object_get(live, "min"), point)), 100);
    check_u64_eq((uint64_t)json_integer_value(json_array_get(json_object_get(live, "mean"), point)), 300); /* (3 * 100 + 900) / 4 */
    check_u64_eq((uint64_t)json_integer_value(json_array_get(json_object_get(live, "mean"), 0)), 100);
    json_decref(data);
    cli_release(&r);
    free(text);
}

/* Two waiting at once, one running: worked out by hand from the rows. */
static void report__events__levels_and_counts(void **state)
{
    static const char events[] = "time_ns,event,request,a,b\n"
                                 "1000,arrive,one,10,5\n1000,arrive,two,20,5\n2000,admit,one,0,1\n9000,first_token,one,0,0\n"
                                 "12000,preempt,one,7,0\n15000,abort,two,0,0\n16000,admit,one,0,1\n30000,finish,one,0,0\n";
    struct cli_result r;
    run_to(*state, "static", "a");
    CLI(&r, "report", cli_path(*state, "a/result.json"), "--events", cli_write(*state, "e.csv", events, strlen(events)));
    check_i64_eq(r.status, 0);
    json_t *data = data_of(r.out);
    json_t *e = json_object_get(json_array_get(json_object_get(data, "details"), 0), "events");
    json_t *waiting = json_object_get(json_object_get(e, "waiting"), "max"), *running = json_object_get(json_object_get(e, "running"), "max");
    check_u64_eq(json_array_size(waiting), 30); /* 1,000 to 30,000 in spans of 1,000 ns */
    const int expected[][3] = {{0, 2, 0}, {1, 2, 1}, {10, 1, 1}, {11, 2, 1}, {14, 2, 0}, {15, 1, 1}, {20, 0, 1}, {29, 0, 1}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        check_i64_eq(json_integer_value(json_array_get(waiting, (size_t)expected[i][0])), expected[i][1]);
        check_i64_eq(json_integer_value(json_array_get(running, (size_t)expected[i][0])), expected[i][2]);
    }
    json_t *first = json_array_get(json_object_get(json_object_get(e, "requests"), "shown"), 0);
    check_str_eq(json_string_value(json_array_get(first, 0)), "one");
    check_i64_eq(json_integer_value(json_array_get(first, 6)), 30000);
    check_i64_eq(json_integer_value(json_array_get(first, 7)), 1);
    json_decref(data);
    cli_release(&r);
}

/* --- hostile and broken input ------------------------------------------------------------------------ */

static void report__hostile_names__stay_text(void **state)
{
    static const char hostile[] = "{\"id\":\"</script><img src=x onerror=alert(1)>\",\"arrival_ns\":0,\"prompt_tokens\":100,\"output_tokens\":9}\n"
                                  "{\"id\":\"\\u2028<!--\",\"arrival_ns\":0,\"prompt_tokens\":100,\"output_tokens\":9}\n";
    struct cli_result r;
    const char *trace = cli_write(*state, "<script>alert(2)<&\"'.jsonl", hostile, strlen(hostile));
    CLI(&r, "run", trace, "--policy", "static", "--pool-tokens", "120", "--report", cli_path(*state, "p.html"), "--max-model-len", "110");
    check_i64_eq(r.status, 0);
    cli_release(&r);
    char *page = cli_read(cli_path(*state, "p.html"));
    assert_non_null(page);
    assert_false(has(page, "<img"));
    assert_false(has(page, "<script>alert"));
    assert_true(has(page, "&lt;script&gt;alert(2)&lt;&amp;&quot;&#39;.jsonl"));
    json_t *data = data_of(page);
    json_t *shown = json_object_get(json_object_get(json_object_get(json_array_get(json_object_get(data, "details"), 0), "events"), "requests"), "shown");
    bool found = false;
    for (size_t i = 0; i < json_array_size(shown); i++)
        found = found || strcmp(json_string_value(json_array_get(json_array_get(shown, i), 0)), "</script><img src=x onerror=alert(1)>") == 0;
    assert_true(found);
    json_decref(data);
    free(page);
}

static void report__hostile_title__stays_text(void **state)
{
    struct cli_result r;
    run_to(*state, "static", "a");
    CLI(&r, "report", cli_path(*state, "a"), "--title", "</title><b>x</b>");
    check_i64_eq(r.status, 0);
    assert_false(has(r.out, "<b>x</b>"));
    assert_true(has(r.out, "&lt;/title&gt;&lt;b&gt;x&lt;/b&gt;"));
    cli_release(&r);
}

static void report__bad_input__one_line_and_no_page(void **state)
{
    run_to(*state, "static", "a");
    static const struct { const char *name, *bytes; } files[] = {
        {"empty.json", ""}, {"list.json", "[1]"}, {"other.json", "{\"a\": 1}"}, {"cut.json", "{\"policy\": \"st"},
        {"bad.csv", "time_ns,event,request,a,b\n5,arrive,x,1,1\n4,arrive,y,1,1\n"}, {"word.csv", "time_ns,event,request,a,b\n5,dance,x,1,1\n"},
        {"columns.csv", "time_ns,event\n"}, {"nothing.csv", ""}, {"number.csv", "time_ns,event,request,a,b\n-5,arrive,x,1,1\n"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) cli_write(*state, files[i].name, files[i].bytes, strlen(files[i].bytes));
    const struct { const char *result, *events; int status; const char *says; } cases[] = {
        {"missing.json", NULL, 3, "missing.json: No such file"}, {"empty.json", NULL, 3, "found nothing, expected results"},
        {"list.json", NULL, 3, "found a list"}, {"other.json", NULL, 3, "found no 'policy'"}, {"cut.json", NULL, 3, "cut.json: object 1"},
        {"a", "bad.csv", 3, "bad.csv:3: time_ns"}, {"a", "word.csv", 3, "word.csv:2"}, {"a", "columns.csv", 3, "columns.csv:1"},
        {"a", "nothing.csv", 3, "found an empty file"}, {"a", "number.csv", 3, "number.csv:2"}, {"a", "gone.csv", 3, "gone.csv"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_result r;
        char result[300], events[300];
        snprintf(result, sizeof result, "%s/%s", (const char *)*state, cases[i].result);
        snprintf(events, sizeof events, "%s/%s", (const char *)*state, cases[i].events ? cases[i].events : "");
        if (cases[i].events) CLI(&r, "report", result, "--events", events, "--output", cli_path(*state, "page.html"));
        else CLI(&r, "report", result, "--output", cli_path(*state, "page.html"));
        check_i64_eq(r.status, cases[i].status);
        if (!has(r.err, cases[i].says)) fail_msg("'%s' lacks '%s'", r.err, cases[i].says);
        assert_true(strchr(r.err, '\n') == r.err + r.err_bytes - 1);
        assert_null(cli_read(cli_path(*state, "page.html")));
        cli_release(&r);
    }
}

static void report__usage__says_what_is_missing(void **state)
{
    struct cli_result r;
    CLI(&r, "report");
    check_i64_eq(r.status, 2);
    assert_true(has(r.err, "found no RESULT"));
    cli_release(&r);
    run_to(*state, "static", "a");
    CLI(&r, "report", cli_path(*state, "a"), "--events", "x", "--events", "y");
    check_i64_eq(r.status, 2);
    assert_true(has(r.err, "--events: found 2 files for 1 results"));
    cli_release(&r);
    cli_write(*state, "file", "x", 1);
    CLI(&r, "run", TRACE, "--record", cli_path(*state, "file"));
    check_i64_eq(r.status, 1);
    assert_true(has(r.err, "is no folder"));
    cli_release(&r);
}

/* --- size ------------------------------------------------------------------------------------------- */

static void report__million_events__at_most_10_mb(void **state)
{
    struct cli_result r;
    CLI(&r, "run", "gen:requests=30000,arrivals=poisson:400,prompt-tokens=200,output-tokens=100", "--policy", "dynamic", "--block-size", "4",
        "--pool-tokens", "30000", "--record", cli_path(*state, "big"));
    check_i64_eq(r.status, 0);
    cli_release(&r);
    char *events = cli_read(cli_path(*state, "big/events.csv"));
    size_t rows = 0;
    for (const char *p = events; *p; p++) rows += *p == '\n';
    free(events);
    assert_true(rows > 900000);
    char *page = page_of(*state, cli_path(*state, "big"));
    assert_true(strlen(page) < 10000000);
    assert_true(has(page, "\"shown\":["));
    json_t *data = data_of(page);
    json_t *counted = json_object_get(json_object_get(json_array_get(json_object_get(data, "details"), 0), "events"), "rows");
    check_u64_eq((uint64_t)json_integer_value(counted), rows - 1);
    json_decref(data);
    free(page);
}

/* The more runs, the less each may take. */
static void report__many_recorded_runs__at_most_10_mb(void **state)
{
    char folder[32][300];
    const char *argv[40] = {"report", "--output", strdup(cli_path(*state, "page.html"))};
    struct cli_result r;
    CLI(&r, "run", "gen:requests=1200,arrivals=poisson:400,prompt-tokens=200,output-tokens=100", "--policy", "dynamic", "--block-size", "16",
        "--pool-tokens", "20000", "--record", cli_path(*state, "run"));
    check_i64_eq(r.status, 0);
    cli_release(&r);
    for (size_t i = 0; i < 32; i++) {
        snprintf(folder[i], sizeof folder[i], "%s/run", (const char *)*state);
        argv[3 + i] = folder[i];
    }
    cli_run(&r, NULL, argv);
    check_str_eq(r.err, "");
    check_i64_eq(r.status, 0);
    cli_release(&r);
    char *page = cli_read(argv[2]);
    assert_true(strlen(page) > 1000000 && strlen(page) < 10000000);
    free(page);
    free((char *)argv[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        CASE(report__one_run__same_numbers_as_the_table_for_people),
        CASE(report__one_run__answer_balance_refusals_options),
        CASE(report__any__needs_no_network),
        CASE(report__sweep__a_row_a_cell),
        CASE(report__files_by_options__same_page_as_a_folder),
        CASE(run_report__alone__page_of_the_run_and_nothing_else),
        CASE(run_record__timeline__adds_up_to_the_result),
        CASE(report__long_timeline__thinned_with_smallest_and_largest),
        CASE(report__events__levels_and_counts),
        CASE(report__hostile_names__stay_text),
        CASE(report__hostile_title__stays_text),
        CASE(report__bad_input__one_line_and_no_page),
        CASE(report__usage__says_what_is_missing),
        CASE(report__million_events__at_most_10_mb),
        CASE(report__many_recorded_runs__at_most_10_mb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
