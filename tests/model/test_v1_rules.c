/* Rules of vLLM v1 that the golden cases state but that no golden case can tell from a plausible
 * other rule (found by breaking the reference rule by rule). Each is pinned here by a case small
 * enough to follow by hand; the arithmetic stands beside it. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "tests/model/v1_reference.h"

/* Caching off, nothing restricted, rules 2026-08. */
static struct v1_case plain_case(uint32_t num_blocks, uint32_t block_tokens)
{
    return (struct v1_case){.config = {
                                .rules = V1_RULES_2026_08,
                                .num_blocks = num_blocks,
                                .block_tokens = block_tokens,
                                .enable_chunked_prefill = true,
                                .detail_full = true,
                                .max_num_seqs = 16,
                                .max_num_batched_tokens = 512,
                                .max_model_len = 64,
                                .max_steps = 100,
                            }};
}

static void add_request(struct v1_case *c, const char *id, uint64_t arrival, uint32_t output_tokens,
                        const uint64_t *prompt, uint32_t prompt_tokens)
{
    c->requests = v1_grow(c->requests, c->num_requests, sizeof *c->requests);
    struct v1_request *r = &c->requests[c->num_requests++];
    *r = (struct v1_request){
        .id = strdup(id),
        .arrival = arrival,
        .output_tokens = output_tokens,
        .prompt = v1_resize(NULL, prompt_tokens, sizeof *prompt),
        .prompt_tokens = prompt_tokens,
    };
    assert_non_null(r->id);
    memcpy(r->prompt, prompt, prompt_tokens * sizeof *prompt);
}

#define ADD(c, id, arrival, output_tokens, ...)                                                              \
    add_request((c), (id), (arrival), (output_tokens), (const uint64_t[]){__VA_ARGS__},                      \
                sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* A prompt of n tokens that nobody else has. */
static void add_unique(struct v1_case *c, const char *id, uint64_t arrival, uint32_t output_tokens,
                       uint32_t n)
{
    uint64_t prompt[64];
    assert_true(n <= 64);
    for (uint32_t i = 0; i < n; i++)
        prompt[i] = 1000 * ((uint64_t)c->num_requests + 1) + i;
    add_request(c, id, arrival, output_tokens, prompt, n);
}

static void print_list(FILE *out, const struct v1_list *list)
{
    fputc('[', out);
    for (uint32_t i = 0; i < list->n; i++)
        fprintf(out, i > 0 ? ",%u" : "%u", (unsigned)list->v[i]);
    fputc(']', out);
}

/* "id new@computed hit_blocks new_blocks", joined by "; ". */
static void check_step(const struct v1_case *c, const struct v1_result *r, size_t line, const char *expected)
{
    assert_true(line < r->num_steps);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    for (uint32_t i = 0; i < r->steps[line].num_scheduled; i++) {
        const struct v1_scheduled *entry = &r->steps[line].scheduled[i];
        fprintf(out, "%s%s %u@%u ", i > 0 ? "; " : "", c->requests[entry->request].id,
                (unsigned)entry->num_new_tokens, (unsigned)entry->num_computed_tokens);
        print_list(out, &entry->hit_blocks);
        print_list(out, &entry->new_blocks);
    }
    assert_int_equal(fclose(out), 0);
    check_str_eq(text, expected);
    free(text);
}

static void release(struct v1_case *c, struct v1_result *r)
{
    v1_result_release(r);
    v1_case_release(c);
}

/* Two blocks with one key, the younger with the smaller number. Queue before each step:
 * 1,2,3: a takes 1. 2,3,1: b takes 2 for [7] and 3 for [7,8]. 1,3,2: c hits 2, computes its last
 * token again into 1, the second block with the key of [7,8]. 3,1,2: d hits 2 and then 3, not 1. */
static void lookup__two_blocks_with_the_key__first_keyed_not_lowest(void **state)
{
    (void)state;
    struct v1_case c = plain_case(4, 1);
    c.config.enable_prefix_caching = true;
    ADD(&c, "a", 0, 1, 100);
    ADD(&c, "b", 1, 1, 7, 8);
    ADD(&c, "c", 2, 1, 7, 8);
    ADD(&c, "d", 3, 1, 7, 8, 9);
    struct v1_result r;
    v1_reference_run(&c, &r);
    check_step(&c, &r, 0, "a 1@0 [][1]");
    check_step(&c, &r, 1, "b 2@0 [][2,3]");
    check_step(&c, &r, 2, "c 1@1 [2][1]");
    check_step(&c, &r, 3, "d 1@2 [2,3][1]");
    release(&c, &r);
}

/* Window 5, budget 4, blocks of 2: at most ceil(min(4 + 4, 64) / 2) + 1 = 5 blocks are asked for, not
 * the 20 of the prompt. 5 usable blocks admit, 4 stall. */
static void whole_prompt__window__asks_for_window_and_budget_plus_one(void **state)
{
    (void)state;
    for (uint32_t usable = 4; usable <= 5; usable++) {
        struct v1_case c = plain_case(usable + 1, 2);
        c.config.reserve_full_prompt = true;
        c.config.sliding_window = 5;
        c.config.max_num_batched_tokens = 4;
        add_unique(&c, "a", 0, 1, 40);
        struct v1_result r;
        v1_reference_run(&c, &r);
        check_u64_eq(r.summary.finished, usable == 5);
        check_u64_eq(r.summary.stalled, usable == 4);
        release(&c, &r);
    }
}

/* 3 tokens and 3 look-ahead slots, but sequences end at 4: 2 blocks of 2, not 3. */
static void allocate__lookahead_beyond_model_len__is_cut(void **state)
{
    (void)state;
    struct v1_case c = plain_case(8, 2);
    c.config.num_lookahead_tokens = 3;
    c.config.max_model_len = 4;
    add_unique(&c, "a", 0, 1, 3);
    struct v1_result r;
    v1_reference_run(&c, &r);
    check_step(&c, &r, 0, "a 3@0 [][1,2]");
    release(&c, &r);
}

/* Budget 8, cut at 4: after a's 4 tokens b's 6 are cut to 4 first, and 4 are not more than the rest
 * of the budget. */
static void no_chunking__long_prompt__is_cut_before_it_is_compared(void **state)
{
    (void)state;
    struct v1_case c = plain_case(16, 2);
    c.config.enable_chunked_prefill = false;
    c.config.max_num_batched_tokens = 8;
    c.config.max_model_len = 8;
    c.config.long_prefill_token_threshold = 4;
    add_unique(&c, "a", 0, 1, 5);
    add_unique(&c, "b", 0, 1, 6);
    struct v1_result r;
    v1_reference_run(&c, &r);
    check_step(&c, &r, 0, "a 4@0 [][1,2]; b 4@0 [][3,4]");
    release(&c, &r);
}

/* Window 9 over blocks of 2 needs a run of ceil(8 / 2) = 4. Only 2 blocks of b's prompt are cached, at
 * its start: they are the hit. b frees nothing of them: 4 - 9 + 1 < 0. */
static void lookup__window_without_a_long_run__hits_the_prefix(void **state)
{
    (void)state;
    struct v1_case c = plain_case(16, 2);
    c.config.enable_prefix_caching = true;
    c.config.sliding_window = 9;
    ADD(&c, "a", 0, 1, 1, 2, 3, 4, 5);
    ADD(&c, "b", 1, 1, 1, 2, 3, 4, 50, 51, 52, 53, 54, 55, 56, 57);
    struct v1_result r;
    v1_reference_run(&c, &r);
    check_step(&c, &r, 0, "a 5@0 [][1,2,3]");
    /* a's unkeyed block 3 is at the head of the queue again. */
    check_step(&c, &r, 1, "b 8@4 [1,2][3,4,5,6]");
    release(&c, &r);
}

/* Window 2, blocks of 1, queue 3: with 2 tokens computed, block 0 of the table (2 - 2 + 1 = 1 token)
 * goes to the tail: 3,1; the new token takes 3. With 3 computed, 2 follows: 1,2; it takes 1. */
static void window__blocks_of_one_token__leave_one_by_one(void **state)
{
    (void)state;
    struct v1_case c = plain_case(4, 1);
    c.config.sliding_window = 2;
    add_unique(&c, "a", 0, 3, 2);
    struct v1_result r;
    v1_reference_run(&c, &r);
    check_step(&c, &r, 0, "a 2@0 [][1,2]");
    check_step(&c, &r, 1, "a 1@2 [][3]");
    check_step(&c, &r, 2, "a 1@3 [][1]");
    release(&c, &r);
}

/* Rules 2026-04, window 2, look-ahead 2 for running requests, queue 3 after the admission into 1, 2.
 * Step 1 gives up block 1 (queue 3,1), wants 2 + 1 + 2 - 2 = 3 blocks, fails with 2, and a preempts
 * itself: 2 goes to the tail. Had the failed attempt left block 1 alone, 2 would stand before 1. */
static void window__allocation_fails__blocks_have_left_all_the_same(void **state)
{
    (void)state;
    struct v1_case c = plain_case(4, 1);
    c.config.rules = V1_RULES_2026_04;
    c.config.sliding_window = 2;
    c.config.num_lookahead_tokens = 2;
    c.config.max_steps = 3;
    add_unique(&c, "a", 0, 9, 2);
    struct v1_result r;
    v1_reference_run(&c, &r);
    check_step(&c, &r, 0, "a 2@0 [][1,2]");
    check_step(&c, &r, 1, "");
    check_step(&c, &r, 2, "a 3@0 [][3,1,2]");
    release(&c, &r);
}

/* floor(0.5 * 8) = 4 of 7 usable blocks stay free while something runs. a takes 2 of 7 and leaves 5:
 * a prompt of 1 block (1 + 4) fits beside it, one of 2 (2 + 4) does not. */
static void watermark__first_chunk_admission__holds_too(void **state)
{
    (void)state;
    for (uint32_t prompt = 1; prompt <= 2; prompt++) {
        for (int whole = 0; whole <= 1; whole++) {
            struct v1_case c = plain_case(8, 1);
            c.config.reserve_full_prompt = whole;
            c.config.watermark = 0.5;
            add_unique(&c, "a", 0, 1, 2);
            add_unique(&c, "b", 0, 1, prompt);
            struct v1_result r;
            v1_reference_run(&c, &r);
            check_step(&c, &r, 0, prompt == 1 ? "a 2@0 [][1,2]; b 1@0 [][3]" : "a 2@0 [][1,2]");
            release(&c, &r);
        }
    }
}

/* The same pool, but b's 2 tokens are more than the rest of the budget, 1. Its first chunk fits
 * (1 + 4 of 5); the whole prompt (2 + 4) does not. */
static void watermark__whole_prompt_admission__counts_the_whole_prompt(void **state)
{
    (void)state;
    for (int whole = 0; whole <= 1; whole++) {
        struct v1_case c = plain_case(8, 1);
        c.config.reserve_full_prompt = whole;
        c.config.watermark = 0.5;
        c.config.max_num_batched_tokens = 3;
        add_unique(&c, "a", 0, 1, 2);
        add_unique(&c, "b", 0, 1, 2);
        struct v1_result r;
        v1_reference_run(&c, &r);
        check_step(&c, &r, 0, whole ? "a 2@0 [][1,2]" : "a 2@0 [][1,2]; b 1@0 [][3]");
        release(&c, &r);
    }
}

/* Rules 2026-04 know no watermark. */
static void watermark__rules_2026_04__is_ignored(void **state)
{
    (void)state;
    struct v1_case c = plain_case(8, 1);
    c.config.rules = V1_RULES_2026_04;
    c.config.watermark = 1.0;
    add_unique(&c, "a", 0, 1, 2);
    add_unique(&c, "b", 0, 1, 2);
    struct v1_result r;
    v1_reference_run(&c, &r);
    check_step(&c, &r, 0, "a 2@0 [][1,2]; b 2@0 [][3,4]");
    release(&c, &r);
}

/* Added in order of (arrival, line number), whatever the order of the lines. */
static void arrivals__lines_out_of_order__queue_by_arrival_then_line(void **state)
{
    (void)state;
    struct v1_case c = plain_case(8, 1);
    c.config.max_num_seqs = 1;
    add_unique(&c, "late", 2, 1, 1);
    add_unique(&c, "x", 1, 1, 1);
    add_unique(&c, "y", 1, 1, 1);
    struct v1_result r;
    v1_reference_run(&c, &r);
    check_u64_eq(r.num_steps, 3);
    check_u64_eq(r.steps[0].step, 1); /* nothing is written for step 0 */
    check_step(&c, &r, 0, "x 1@0 [][1]");
    check_step(&c, &r, 1, "y 1@0 [][2]");
    check_step(&c, &r, 2, "late 1@0 [][3]");
    release(&c, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookup__two_blocks_with_the_key__first_keyed_not_lowest),
        cmocka_unit_test(whole_prompt__window__asks_for_window_and_budget_plus_one),
        cmocka_unit_test(allocate__lookahead_beyond_model_len__is_cut),
        cmocka_unit_test(no_chunking__long_prompt__is_cut_before_it_is_compared),
        cmocka_unit_test(lookup__window_without_a_long_run__hits_the_prefix),
        cmocka_unit_test(window__blocks_of_one_token__leave_one_by_one),
        cmocka_unit_test(window__allocation_fails__blocks_have_left_all_the_same),
        cmocka_unit_test(watermark__first_chunk_admission__holds_too),
        cmocka_unit_test(watermark__whole_prompt_admission__counts_the_whole_prompt),
        cmocka_unit_test(watermark__rules_2026_04__is_ignored),
        cmocka_unit_test(arrivals__lines_out_of_order__queue_by_arrival_then_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
