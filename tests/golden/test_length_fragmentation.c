/* Golden length statistics of public traces: every key and every value, integers and ratios alike,
 * exactly. The figures were made by two other programs (Python and C) that agreed on all of them.
 * The traces are not part of the project: they are read below $PAGESIM_TRACES, else skipped. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "sim/trace_stats.h"

struct golden_trace {
    const char *name;
    uint32_t trace_block_tokens;
};

static const struct golden_trace traces[] = {
    { "arxiv-long-offline", 0 },
    { "arxiv-long-online", 0 },
    { "arxiv-sample", 0 },
    { "arxiv-summarization-v2-llama2", 0 },
    { "azure-2023-code", 0 },
    { "azure-2023-conv", 0 },
    { "mooncake-arxiv-slice-head", 0 },
    { "mooncake-fast25-conversation", 0 },
    { "mooncake-fast25-synthetic", 0 },
    { "sharegpt-8k-llama2", 0 },
    { "sharegpt-llmservingsim-300", 0 },
    { "weka-agentic-60", 64 },
    { "weka-agentic-710", 0 },
};

enum { TRACES = sizeof traces / sizeof traces[0] };

static void compare(const json_t *golden, const json_t *ours, const char *where);

static void compare_object(const json_t *golden, const json_t *ours, const char *where)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)golden, key, value) {
        /* What the trace is called depends on the caller. */
        if (strcmp(key, "trace") == 0 || strcmp(key, "trace_file") == 0)
            continue;
        char path[256];
        snprintf(path, sizeof path, "%s.%s", where, key);
        compare(value, json_object_get(ours, key), path);
    }
}

static void compare_array(const json_t *golden, const json_t *ours, const char *where)
{
    if (json_array_size(golden) != json_array_size(ours))
        fail_msg("%s: %zu elements, expected %zu", where, json_array_size(ours),
                 json_array_size(golden));
    for (size_t i = 0; i < json_array_size(golden); i++) {
        char path[256];
        snprintf(path, sizeof path, "%s[%zu]", where, i);
        compare(json_array_get(golden, i), json_array_get(ours, i), path);
    }
}

static void compare(const json_t *golden, const json_t *ours, const char *where)
{
    if (ours == NULL)
        fail_msg("%s: missing", where);
    if (json_is_object(golden))
        compare_object(golden, ours, where);
    else if (json_is_array(golden))
        compare_array(golden, ours, where);
    else if (json_is_string(golden))
        check_str_eq(json_string_value(ours), json_string_value(golden));
    else if (json_is_integer(golden) && json_integer_value(golden) != json_integer_value(ours))
        fail_msg("%s: %lld, expected %lld", where, (long long)json_integer_value(ours),
                 (long long)json_integer_value(golden));
    else if (json_is_real(golden) && json_number_value(golden) != json_number_value(ours))
        fail_msg("%s: %.17g, expected %.17g", where, json_number_value(ours),
                 json_number_value(golden));
}

/* The JSON that `trace stats --json` prints. */
static json_t *stats_of(const char *path, uint32_t trace_block_tokens)
{
    const struct wl_options options = { .arrival_speedup_ratio = 1,
                                        .trace_block_tokens = trace_block_tokens };
    struct wl_source *source = NULL;
    struct wl_stats stats;
    struct err err = { 0 };
    if (wl_open(path, &options, 1, &source, &err) != 0 || wl_stats_read(source, &stats, &err) != 0)
        fail_msg("%s", err.text);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    trace_stats_json(&stats, wl_name(source), wl_format_name(source), wl_summary(source), out);
    assert_int_equal(fclose(out), 0);
    wl_close(source);
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL)
        fail_msg("line %d: %s", error.line, error.text);
    free(text);
    return json;
}

static void every_figure_agrees(void **state)
{
    const struct golden_trace *trace = *state;
    char path[256];
    snprintf(path, sizeof path, "tests/golden/length-fragmentation/%s.json", trace->name);
    json_error_t error;
    json_t *golden = json_load_file(path, 0, &error);
    if (golden == NULL)
        fail_msg("%s: %s", path, error.text);
    const char *file = check_traces(json_string_value(json_object_get(golden, "trace_file")));
    if (file == NULL) {
        json_decref(golden);
        skip();
        return;
    }
    json_t *ours = stats_of(file, trace->trace_block_tokens);
    compare(golden, ours, trace->name);
    json_decref(golden);
    json_decref(ours);
}

int main(void)
{
    struct CMUnitTest tests[TRACES];
    for (size_t i = 0; i < TRACES; i++)
        tests[i] = (struct CMUnitTest){ traces[i].name, every_figure_agrees, NULL, NULL,
                                        (void *)&traces[i] };
    return _cmocka_run_group_tests("length_fragmentation", tests, TRACES, NULL, NULL) != 0;
}
