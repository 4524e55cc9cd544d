/* The slow reference against the reference decisions of vLLM v1 (this is what proves it), and the
 * random cases and the shrinker that others compare the engine with. */
#include "tests/check.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/model/case_random.h"
#include "tests/model/v1_reference.h"

enum { GOLDEN_CASES_2026_08 = 35, GOLDEN_CASES_2026_04 = 34 };

static const char *const golden_dirs[] = {"tests/golden/vllm-v1", "tests/golden/vllm-v1-2026-04"};

static struct v1_case load_or_fail(const char *dir)
{
    struct v1_case c;
    struct v1_error error;
    if (!v1_case_load(dir, &c, &error))
        fail_msg("%s: %s", dir, error.text);
    return c;
}

/* --- golden cases ------------------------------------------------------------------------ */

static void check_line(const char *dir, size_t number, const char *text, json_t *actual)
{
    json_t *expected = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    char *what = NULL;
    assert_non_null(expected);
    if (!v1_lines_equal(actual, expected, &what))
        fail_msg("%s/expected.jsonl:%zu: %s", dir, number, what);
    json_decref(expected);
    json_decref(actual);
}

/* Every field of every line, and no line more or less. */
static void golden_case__every_line__agrees(void **state)
{
    const char *dir = *state;
    struct v1_case c = load_or_fail(dir);
    struct v1_result result;
    v1_reference_run(&c, &result);

    char *text = v1_read_text(dir, "expected.jsonl");
    assert_non_null(text);
    char *rest = text;
    size_t lines = 0;
    for (char *line; (line = v1_next_line(&rest)) != NULL; lines++) {
        assert_true(lines <= result.num_steps);
        check_line(dir, lines + 1, line,
                   lines < result.num_steps ? v1_step_json(&c, &result.steps[lines])
                                            : v1_summary_json(&c, &result));
    }
    check_u64_eq(lines, result.num_steps + 1);
    free(text);
    v1_result_release(&result);
    v1_case_release(&c);
}

static int is_case(const struct dirent *entry)
{
    return entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
}

/* One test a case directory; names and initial states live until the program ends. */
static size_t add_golden_tests(const char *dir, struct CMUnitTest *tests, size_t n, size_t max)
{
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, is_case, alphasort);
    for (int i = 0; i < count; i++) {
        char *path = NULL;
        char *name = NULL;
        if (n == max || asprintf(&path, "%s/%s", dir, entries[i]->d_name) < 0 ||
            asprintf(&name, "%s: every line agrees", path) < 0)
            abort();
        tests[n++] = (struct CMUnitTest){
            .name = name, .test_func = golden_case__every_line__agrees, .initial_state = path};
        free(entries[i]);
    }
    free(entries);
    return n;
}

/* A golden folder that lost its cases must not pass for lack of tests. */
static void golden_folders__counted__hold_all_cases(void **state)
{
    (void)state;
    static const uint64_t expected[] = {GOLDEN_CASES_2026_08, GOLDEN_CASES_2026_04};
    for (size_t i = 0; i < 2; i++) {
        struct dirent **entries = NULL;
        int count = scandir(golden_dirs[i], &entries, is_case, alphasort);
        for (int j = 0; j < count; j++)
            free(entries[j]);
        free(entries);
        check_u64_eq((uint64_t)count, expected[i]);
    }
}

/* A planted error in one field is found and named: the comparison above is not vacuous. */
static void lines_equal__one_block_differs__names_the_field(void **state)
{
    (void)state;
    json_t *expected = json_loads("{\"step\":3,\"evictions\":[4,5]}", 0, NULL);
    json_t *actual = json_loads("{\"step\":3,\"evictions\":[4,6]}", 0, NULL);
    char *what = NULL;
    assert_false(v1_lines_equal(actual, expected, &what));
    check_str_eq(what, "evictions: found [4,6], expected [4,5]");
    free(what);
    json_object_del(actual, "evictions");
    assert_false(v1_lines_equal(actual, expected, &what));
    check_str_eq(what, "evictions: found nothing, expected [4,5]");
    free(what);
    assert_false(v1_lines_equal(expected, actual, &what));
    check_str_eq(what, "evictions: found [4,5], expected nothing");
    free(what);
    json_decref(actual);
    json_decref(expected);
}

/* --- cases: load, write, random ---------------------------------------------------------- */

static void case_load__no_such_directory__names_the_file(void **state)
{
    (void)state;
    struct v1_case c;
    struct v1_error error;
    assert_false(v1_case_load("tests/golden/none", &c, &error));
    check_str_eq(error.text, "config.json:0: cannot be read");
    check_u64_eq(c.num_requests, 0);
}

static void check_tokens_eq(const uint64_t *a, uint32_t num_a, const uint64_t *b, uint32_t num_b)
{
    check_u64_eq(num_a, num_b);
    for (uint32_t i = 0; i < num_a; i++)
        check_u64_eq(a[i], b[i]);
}

static char *printed(const struct v1_case *c)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    v1_case_print(c, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void check_case_eq(const struct v1_case *a, const struct v1_case *b)
{
    char *text_a = printed(a);
    char *text_b = printed(b);
    check_str_eq(text_a, text_b);
    free(text_a);
    free(text_b);
    check_u64_eq(a->num_requests, b->num_requests);
    for (uint32_t i = 0; i < a->num_requests; i++) {
        const struct v1_request *ra = &a->requests[i];
        const struct v1_request *rb = &b->requests[i];
        check_tokens_eq(ra->prompt, ra->prompt_tokens, rb->prompt, rb->prompt_tokens);
        assert_int_equal(ra->output == NULL, rb->output == NULL);
        if (ra->output != NULL)
            check_tokens_eq(ra->output, ra->output_tokens, rb->output, rb->output_tokens);
    }
}

static void remove_case(const char *dir)
{
    static const char *const names[] = {"config.json", "trace.jsonl"};
    char path[256];
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

static void case_write__random_cases__load_back_equal(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        char dir[] = "/tmp/pagesim_case_XXXXXX";
        assert_non_null(mkdtemp(dir));
        struct v1_case written = v1_case_random(seed);
        assert_true(v1_case_write(&written, dir));
        struct v1_case loaded = load_or_fail(dir);
        check_case_eq(&loaded, &written);
        remove_case(dir);
        v1_case_release(&loaded);
        v1_case_release(&written);
    }
}

static void case_write__directory_cannot_be_made__fails(void **state)
{
    (void)state;
    struct v1_case c = v1_case_random(1);
    assert_false(v1_case_write(&c, "tests/golden/none/none"));
    v1_case_release(&c);
}

static void case_random__same_seed__same_case(void **state)
{
    (void)state;
    struct v1_case a = v1_case_random(12345);
    struct v1_case b = v1_case_random(12345);
    struct v1_case other = v1_case_random(12346);
    check_case_eq(&a, &b);
    char *text_a = printed(&a);
    char *text_other = printed(&other);
    assert_string_not_equal(text_a, text_other);
    free(text_a);
    free(text_other);
    v1_case_release(&a);
    v1_case_release(&b);
    v1_case_release(&other);
}

/* What must hold in any run, whatever the rules. */
static void check_result(const struct v1_case *c, const struct v1_result *r)
{
    const struct v1_config *g = &c->config;
    const struct v1_summary *s = &r->summary;
    for (size_t i = 0; i < r->num_steps; i++) {
        assert_true(r->steps[i].scheduled_tokens <= g->max_num_batched_tokens);
        assert_true(r->steps[i].running <= g->max_num_seqs);
        assert_true(r->steps[i].free_blocks <= g->num_blocks - 1);
        assert_true(r->steps[i].cached_blocks <= (g->enable_prefix_caching ? g->num_blocks - 1 : 0));
    }
    assert_true(r->num_steps <= g->max_steps);
    if (s->max_steps_reached)
        return;
    check_u64_eq(s->finished + s->rejected + s->unfinished, c->num_requests);
    assert_true(s->stalled == (s->unfinished > 0));
    if (s->stalled)
        return;
    /* All blocks are back, each once. */
    check_u64_eq(s->free_queue.n, g->num_blocks - 1);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->free_queue.n; i++)
        sum += UINT64_C(1) << s->free_queue.v[i];
    check_u64_eq(sum, (UINT64_C(1) << g->num_blocks) - 2);
}

static bool admits_null_block(const struct v1_result *r)
{
    for (size_t i = 0; i < r->num_steps; i++)
        for (uint32_t j = 0; j < r->steps[i].num_scheduled; j++) {
            const struct v1_list *hits = &r->steps[i].scheduled[j].hit_blocks;
            if (hits->n > 0 && hits->v[0] == 0)
                return true;
        }
    return false;
}

/* The random cases are worth running: each kind of event is in at least 1 of 100 of them. */
static void case_random__2000_seeds__show_every_event(void **state)
{
    (void)state;
    enum { PREEMPTION, EVICTION, HIT, REHIT, STALL, MAX_STEPS, REJECTION, NULL_BLOCK, COMPLETE, KINDS };
    uint64_t cases_with[KINDS] = {0};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct v1_case c = v1_case_random(seed);
        struct v1_result r;
        v1_reference_run(&c, &r);
        check_result(&c, &r);
        const struct v1_summary *s = &r.summary;
        cases_with[PREEMPTION] += s->preemptions > 0;
        cases_with[EVICTION] += s->evictions > 0;
        cases_with[HIT] += s->admitted_hit_tokens > 0;
        cases_with[REHIT] += s->readmitted_hit_tokens > 0;
        cases_with[STALL] += s->stalled;
        cases_with[MAX_STEPS] += s->max_steps_reached;
        cases_with[REJECTION] += s->rejected > 0;
        cases_with[NULL_BLOCK] += admits_null_block(&r);
        cases_with[COMPLETE] += s->unfinished == 0;
        v1_result_release(&r);
        v1_case_release(&c);
    }
    for (int kind = 0; kind < KINDS; kind++)
        if (cases_with[kind] < 20)
            fail_msg("kind of event %d: only %d of 2000 cases", kind, (int)cases_with[kind]);
}

/* --- the shrinker ------------------------------------------------------------------------ */

/* Fails when a request with 3 prompt tokens or more stands before one that arrives at step 2 or
 * later and has 4 output tokens or more, in a pool of at least 5 blocks. */
static bool has_pair(const struct v1_case *c, void *context)
{
    ++*(uint64_t *)context;
    bool first_seen = false;
    for (uint32_t i = 0; i < c->num_requests; i++) {
        const struct v1_request *r = &c->requests[i];
        if (first_seen && r->arrival >= 2 && r->output_tokens >= 4)
            return c->config.num_blocks >= 5;
        first_seen = first_seen || r->prompt_tokens >= 3;
    }
    return false;
}

static void check_pair_is_least(const struct v1_case *c)
{
    check_u64_eq(c->num_requests, 2);
    check_u64_eq(c->requests[0].prompt_tokens, 3);
    check_u64_eq(c->requests[0].arrival, 0);
    check_u64_eq(c->requests[0].output_tokens, 1);
    check_u64_eq(c->requests[1].prompt_tokens, 0);
    check_u64_eq(c->requests[1].arrival, 2);
    check_u64_eq(c->requests[1].output_tokens, 4);
    assert_null(c->requests[0].output);
    assert_null(c->requests[1].output);
    check_u64_eq(c->config.num_blocks, 5);
    check_u64_eq(c->config.block_tokens, 1);
    check_u64_eq(c->config.max_steps, 1);
    check_u64_eq(c->config.sliding_window, 0);
    assert_true(c->config.enable_chunked_prefill);
    assert_false(c->config.enable_prefix_caching);
}

static void case_shrink__hand_made_predicate__least_case(void **state)
{
    (void)state;
    uint64_t tried = 0;
    uint64_t calls = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct v1_case c = v1_case_random(seed);
        if (has_pair(&c, &calls)) {
            calls = 0;
            struct v1_case small = v1_case_shrink(&c, has_pair, &calls);
            check_pair_is_least(&small);
            assert_true(calls < 1000);
            v1_case_release(&small);
            tried++;
        }
        v1_case_release(&c);
    }
    assert_true(tried >= 50);
}

/* The head of the prompt goes where only the tail matters: 'contains a token 77 or above'. */
static bool has_token_77(const struct v1_case *c, void *context)
{
    (void)context;
    for (uint32_t i = 0; i < c->num_requests; i++)
        for (uint32_t j = 0; j < c->requests[i].prompt_tokens; j++)
            if (c->requests[i].prompt[j] == 77)
                return true;
    return false;
}

static void case_shrink__one_token_in_the_middle__is_what_remains(void **state)
{
    (void)state;
    struct v1_case c = v1_case_random(7);
    struct v1_request *r = &c.requests[0];
    r->prompt = v1_resize(r->prompt, 21, sizeof *r->prompt);
    r->prompt_tokens = 21;
    for (uint32_t i = 0; i < 21; i++)
        r->prompt[i] = 70 + i;
    struct v1_case small = v1_case_shrink(&c, has_token_77, NULL);
    check_u64_eq(small.num_requests, 1);
    check_u64_eq(small.requests[0].prompt_tokens, 1);
    check_u64_eq(small.requests[0].prompt[0], 77);
    v1_case_release(&small);
    v1_case_release(&c);
}

static bool preempts_without_chunking(const struct v1_case *c, void *context)
{
    (void)context;
    if (c->config.enable_chunked_prefill)
        return false;
    struct v1_result r;
    v1_reference_run(c, &r);
    bool preempts = r.summary.preemptions > 0;
    v1_result_release(&r);
    return preempts;
}

/* A real use. The least pools that can preempt hold one token for each request: one request whose
 * first output finds no slot, or two of which one grows. */
static void case_shrink__preemption__a_pool_of_one_token_a_request(void **state)
{
    (void)state;
    uint64_t tried = 0;
    for (uint64_t seed = 0; seed < 300 && tried < 20; seed++) {
        struct v1_case c = v1_case_random(seed);
        if (preempts_without_chunking(&c, NULL)) {
            struct v1_case small = v1_case_shrink(&c, preempts_without_chunking, NULL);
            assert_true(v1_case_valid(&small));
            assert_true(preempts_without_chunking(&small, NULL));
            assert_true(small.num_requests <= 2);
            check_u64_eq(small.config.block_tokens, 1);
            check_u64_eq(small.config.num_blocks, 1 + small.num_requests);
            for (uint32_t i = 0; i < small.num_requests; i++)
                check_u64_eq(small.requests[i].prompt_tokens, 1);
            v1_case_release(&small);
            tried++;
        }
        v1_case_release(&c);
    }
    check_u64_eq(tried, 20);
}

int main(void)
{
    static const struct CMUnitTest fixed[] = {
        cmocka_unit_test(golden_folders__counted__hold_all_cases),
        cmocka_unit_test(lines_equal__one_block_differs__names_the_field),
        cmocka_unit_test(case_load__no_such_directory__names_the_file),
        cmocka_unit_test(case_write__random_cases__load_back_equal),
        cmocka_unit_test(case_write__directory_cannot_be_made__fails),
        cmocka_unit_test(case_random__same_seed__same_case),
        cmocka_unit_test(case_random__2000_seeds__show_every_event),
        cmocka_unit_test(case_shrink__hand_made_predicate__least_case),
        cmocka_unit_test(case_shrink__one_token_in_the_middle__is_what_remains),
        cmocka_unit_test(case_shrink__preemption__a_pool_of_one_token_a_request),
    };
    enum { NUM_FIXED = sizeof fixed / sizeof fixed[0], MAX_TESTS = 128 };
    static struct CMUnitTest tests[MAX_TESTS];
    memcpy(tests, fixed, sizeof fixed);
    size_t n = NUM_FIXED;
    for (size_t i = 0; i < 2; i++)
        n = add_golden_tests(golden_dirs[i], tests, n, MAX_TESTS);
    int failures = _cmocka_run_group_tests("v1_reference", tests, n, NULL, NULL);
    for (size_t i = NUM_FIXED; i < n; i++) {
        free((char *)tests[i].name);
        free(tests[i].initial_state);
    }
    return failures != 0;
}
