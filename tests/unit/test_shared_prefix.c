/* The infinite prefix cache against arrays of tokens that are compared one by one. */
#include "tests/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/shared_prefix.h"

enum { SEQUENCES = 12, SPANS = 8, ROUNDS = 3000 };

struct token {
    uint64_t space, number;
};

struct sequence {
    struct wl_span spans[SPANS];
    size_t span_count;
    struct token tokens[SPANS * 8];
    uint64_t length, inserted;
    struct shared_cursor cursor;
    bool open;
};

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Few spaces and numbers, so that sequences meet, part, and cut equal content into different spans. */
static void make_sequence(uint64_t *state, struct sequence *s)
{
    memset(s, 0, sizeof *s);
    s->span_count = draw(state) % SPANS + 1;
    uint64_t next = draw(state) % 3;
    for (size_t i = 0; i < s->span_count; i++) {
        if (draw(state) % 3 == 0) next = draw(state) % 6; /* else it goes on where the last one ended */
        struct wl_span *span = &s->spans[i];
        *span = (struct wl_span){.space = draw(state) % 8 == 0, .first = next, .count = draw(state) % 8 + 1};
        for (uint64_t k = 0; k < span->count; k++) {
            s->tokens[s->length++] = (struct token){span->space, span->first + k};
        }
        next += span->count;
    }
}

static uint64_t naive_match(const struct sequence *all, const struct sequence *s, uint64_t max_tokens)
{
    uint64_t best = 0;
    for (size_t i = 0; i < SEQUENCES; i++) {
        uint64_t t = 0;
        while (t < s->length && t < max_tokens && t < all[i].inserted &&
               s->tokens[t].space == all[i].tokens[t].space && s->tokens[t].number == all[i].tokens[t].number) {
            t++;
        }
        if (t > best) best = t;
    }
    return best;
}

static bool catch_up(void *context, struct shared_cursor *cursor)
{
    struct sequence *s = cursor->owner;
    uint64_t before = cursor->tokens;
    assert_int_equal(shared_cursor_advance(context, cursor, s->spans, s->span_count, s->inserted), 0);
    return cursor->tokens > before;
}

/* Several sequences grow at once, by a few tokens at a time, and end at any point. Half of the time they only say so, and
 * the tree learns it when it asks. */
static void match__random_growing_sequences__as_the_arrays_say(void **state)
{
    (void)state;
    static struct sequence all[SEQUENCES], probe;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        uint64_t random = seed;
        struct shared_prefix *tree = shared_prefix_create();
        struct shared_waker waker = {.wake = catch_up, .context = tree};
        assert_non_null(tree);
        for (size_t i = 0; i < SEQUENCES; i++) make_sequence(&random, &all[i]);
        for (int step = 0; step < 40; step++) {
            struct sequence *s = &all[draw(&random) % SEQUENCES];
            uint64_t upto = draw(&random) % (s->length + 1);
            if (!s->open) shared_cursor_begin(tree, &s->cursor, s);
            s->open = true;
            if (upto > s->inserted) s->inserted = upto;
            if (draw(&random) % 2) {
                assert_int_equal(shared_cursor_advance(tree, &s->cursor, s->spans, s->span_count, s->inserted), 0);
                check_u64_eq(s->cursor.tokens, s->inserted);
            }
            make_sequence(&random, &probe);
            const struct sequence *asked = draw(&random) % 2 ? &probe : &all[draw(&random) % SEQUENCES];
            uint64_t most = draw(&random) % 2 ? UINT64_MAX : draw(&random) % 20;
            check_u64_eq(shared_prefix_match(tree, asked->spans, asked->span_count, most, &waker),
                         naive_match(all, asked, most));
        }
        for (size_t i = 0; i < SEQUENCES; i++) {
            if (all[i].open) shared_cursor_end(tree, &all[i].cursor);
        }
        shared_prefix_destroy(tree);
    }
}

static void match__empty_tree_or_no_content__is_0(void **state)
{
    (void)state;
    const struct wl_span span = {.space = 0, .first = 5, .count = 10};
    struct shared_prefix *tree = shared_prefix_create();
    assert_non_null(tree);
    check_u64_eq(shared_prefix_match(tree, &span, 1, 10, NULL), 0);
    check_u64_eq(shared_prefix_match(tree, NULL, 0, 10, NULL), 0);
    shared_prefix_destroy(tree);
    shared_prefix_destroy(NULL);
}

/* One sequence that grows by single tokens stays one node: memory follows distinct runs, not tokens. */
static void match__one_long_run__is_found_to_its_end(void **state)
{
    (void)state;
    const struct wl_span span = {.space = 3, .first = 1, .count = (uint64_t)1 << 40};
    struct shared_cursor cursor;
    struct shared_prefix *tree = shared_prefix_create();
    assert_non_null(tree);
    shared_cursor_begin(tree, &cursor, NULL);
    for (uint64_t upto = 1; upto < 1000; upto++) {
        assert_int_equal(shared_cursor_advance(tree, &cursor, &span, 1, upto), 0);
        check_u64_eq(shared_prefix_match(tree, &span, 1, UINT64_MAX, NULL), upto);
    }
    assert_int_equal(shared_cursor_advance(tree, &cursor, &span, 1, span.count), 0);
    check_u64_eq(shared_prefix_match(tree, &span, 1, UINT64_MAX, NULL), span.count);
    shared_cursor_end(tree, &cursor);
    shared_prefix_destroy(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(match__random_growing_sequences__as_the_arrays_say),
        cmocka_unit_test(match__empty_tree_or_no_content__is_0),
        cmocka_unit_test(match__one_long_run__is_found_to_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
