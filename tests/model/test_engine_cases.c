/* The engine against the slow reference of vLLM v1's published rules, on random small cases: every field of
 * every step line and of the summary. A failure is shrunk to the shortest trace and printed as a case. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_core.h"
#include "sim/replay.h"
#include "tests/engine_case.h"
#include "tests/model/case_random.h"
#include "tests/model/v1_reference.h"

/* Sanitized builds take a part of the cases: they run on more seeds by hand. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CASES 1500
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CASES 1500
#endif
#endif
#ifndef CASES
#define CASES 12000
#endif
#ifndef FIRST_SEED
#define FIRST_SEED 0
#endif
#define STRINGIFY(x) #x
#define AS_TEXT(x) STRINGIFY(x)

/* One case in ten is run with policy and states walked at every call. */
#define CHECK_EVERY_TENTH 10

/* --- a case for the engine ----------------------------------------------------------------- */

struct prepared {
    struct engine_case c;
    struct wl_span *spans[ENGINE_CASE_REQUESTS]; /* prompt, then output */
};

static size_t add_tokens(struct wl_span *spans, size_t count, const uint64_t *tokens, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct wl_span *last = count > 0 ? &spans[count - 1] : NULL;
        if (i > 0 && last->first + last->count == tokens[i]) last->count++;
        else spans[count++] = (struct wl_span){.space = 0, .first = tokens[i], .count = 1};
    }
    return count;
}

static void prepare_request(struct prepared *p, const struct v1_request *from, size_t i)
{
    struct wl_request *r =
        engine_case_add(&p->c, from->arrival, from->prompt_tokens, from->output_tokens);
    p->spans[i] = v1_resize(NULL, (size_t)from->prompt_tokens + from->output_tokens + 1, sizeof *p->spans[i]);
    r->id = from->id;
    r->has_content = true;
    r->prompt = p->spans[i];
    r->prompt_spans = add_tokens(p->spans[i], 0, from->prompt, from->prompt_tokens);
    if (!from->output) return;
    r->output = r->prompt + r->prompt_spans;
    r->output_spans = add_tokens(p->spans[i] + r->prompt_spans, 0, from->output, from->output_tokens);
}

static void prepare(struct prepared *p, const struct v1_case *v, uint64_t check_every)
{
    const struct v1_config *g = &v->config;
    engine_case_init(&p->c, g->enable_prefix_caching ? "prefix" : "dynamic", NULL,
                     (uint64_t)g->num_blocks * g->block_tokens);
    struct engine_config *config = &p->c.config;
    config->geometry.block_tokens = g->block_tokens;
    config->geometry.lookahead_tokens = g->num_lookahead_tokens;
    config->geometry.window_tokens = g->sliding_window;
    config->geometry.watermark = g->watermark;
    config->geometry.rules = g->rules == V1_RULES_2026_08 ? KV_RULES_2026_08 : KV_RULES_2026_04;
    config->step_time.step_ns = 1;
    config->max_num_seqs = g->max_num_seqs;
    config->max_num_batched_tokens = g->max_num_batched_tokens;
    config->max_model_len = g->max_model_len;
    config->long_prefill_token_threshold = g->long_prefill_token_threshold;
    config->chunked_prefill = g->enable_chunked_prefill;
    config->whole_prompt_admission = g->reserve_full_prompt;
    config->declared_output = DECLARED_MAX;
    config->replay_stalls = true;
    config->max_steps = g->max_steps;
    config->check_every = check_every;
    for (uint32_t i = 0; i < v->num_requests; i++) prepare_request(p, &v->requests[i], i);
}

/* The step lines that the engine writes; free() them. */
static char *engine_lines(const struct v1_case *v, uint64_t check_every)
{
    static struct prepared p;
    char *text = NULL;
    size_t bytes = 0;
    struct err err = {0};
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    struct step_writer writer = {
        .out = out,
        .counters = !v->config.detail_full,
        .clock_steps = true,
        .rules = v->config.rules == V1_RULES_2026_08 ? "2026-08" : "2026-04",
    };
    prepare(&p, v, check_every);
    p.c.config.hooks.step = step_writer_step;
    p.c.config.hooks.step_context = &writer;
    struct engine *engine = engine_create(&p.c.config, &err);
    if (!engine) fail_msg("%s", err.text);
    step_writer_begin(&writer, engine);
    struct wl_source *source = engine_case_source(&p.c);
    if (engine_run(engine, source, &err)) fail_msg("%s", err.text);
    step_writer_end(&writer);
    wl_close(source);
    engine_destroy(engine);
    assert_int_equal(fclose(out), 0);
    for (uint32_t i = 0; i < v->num_requests; i++) free(p.spans[i]);
    return text;
}

/* --- comparison ---------------------------------------------------------------------------- */

/* NULL when equal, else what differs; free() it. Takes `expected`. */
static char *line_difference(const char *actual_text, json_t *expected, size_t number)
{
    char *what = NULL, *text = NULL;
    json_t *actual = actual_text ? json_loads(actual_text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (!actual) what = strdup(actual_text ? "not JSON" : "missing");
    else v1_lines_equal(actual, expected, &what);
    if (what && asprintf(&text, "line %zu: %s", number, what) < 0) abort();
    free(what);
    json_decref(actual);
    json_decref(expected);
    return text;
}

static char *difference(const struct v1_case *v, uint64_t check_every)
{
    struct v1_result result;
    char *lines = engine_lines(v, check_every), *rest = lines, *text = NULL;
    v1_reference_run(v, &result);
    for (size_t i = 0; i <= result.num_steps && !text; i++) {
        json_t *expected = i < result.num_steps ? v1_step_json(v, &result.steps[i]) : v1_summary_json(v, &result);
        text = line_difference(v1_next_line(&rest), expected, i + 1);
    }
    if (!text && v1_next_line(&rest)) text = strdup("more lines than expected");
    v1_result_release(&result);
    free(lines);
    return text;
}

/* A trace is read in order of arrival; requests of one time stay in the order of their lines. */
static void sort_by_arrival(struct v1_case *v)
{
    for (uint32_t i = 1; i < v->num_requests; i++) {
        struct v1_request moved = v->requests[i];
        uint32_t k = i;
        for (; k > 0 && v->requests[k - 1].arrival > moved.arrival; k--) v->requests[k] = v->requests[k - 1];
        v->requests[k] = moved;
    }
}

static bool differs(const struct v1_case *v, void *context)
{
    (void)context;
    struct v1_case sorted = v1_case_copy(v);
    sort_by_arrival(&sorted);
    char *text = difference(&sorted, 0);
    v1_case_release(&sorted);
    free(text);
    return text != NULL;
}

static void report_shrunk(uint64_t seed, const struct v1_case *v, const char *text)
{
    print_error("seed %llu: %s\nthe smallest case that differs:\n", (unsigned long long)seed, text);
    if (!differs(v, NULL)) fail_msg("seed %llu: differs only under check", (unsigned long long)seed);
    struct v1_case small = v1_case_shrink(v, differs, NULL);
    sort_by_arrival(&small);
    v1_case_print(&small, stderr);
    char *why = difference(&small, 0);
    print_error("%s\n", why ? why : "");
    free(why);
    v1_case_release(&small);
    fail();
}

static void engine__random_cases__every_line_as_the_reference(void **state)
{
    (void)state;
    for (uint64_t seed = FIRST_SEED; seed < (uint64_t)FIRST_SEED + CASES; seed++) {
        struct v1_case v = v1_case_random(seed);
        sort_by_arrival(&v);
        char *text = difference(&v, seed % CHECK_EVERY_TENTH == 0);
        if (text) report_shrunk(seed, &v, text);
        v1_case_release(&v);
    }
}

/* --- the comparison itself ------------------------------------------------------------------ */

/* A planted difference is found: with one block less the engine's lines are others. */
static void comparison__one_block_less__is_found(void **state)
{
    (void)state;
    struct v1_case v = v1_case_random(3), less = v1_case_copy(&v);
    less.config.num_blocks--;
    struct v1_result result;
    v1_reference_run(&v, &result);
    char *lines = engine_lines(&less, 0), *rest = lines;
    char *text = line_difference(v1_next_line(&rest), v1_step_json(&v, &result.steps[0]), 1);
    assert_non_null(text);
    check_str_has(text, "line 1: ");
    free(text);
    free(lines);
    v1_result_release(&result);
    v1_case_release(&less);
    v1_case_release(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {.name = "engine: " AS_TEXT(CASES) " random cases: every line as the reference",
         .test_func = engine__random_cases__every_line_as_the_reference},
        cmocka_unit_test(comparison__one_block_less__is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
