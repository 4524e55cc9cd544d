/* Content keys: equal exactly when the tokens up to the block's end are equal, however they were cut. */
#include "tests/check.h"

#include <stdbool.h>
#include <string.h>

#include "sim/content.h"

#define TOKENS 96

static uint64_t state = 1;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

struct token {
    uint64_t space, number;
};

/* Tokens whose runs are of random length, so that blocks hold one run, several, or part of one. */
static void draw_tokens(struct token *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tokens[i] = i > 0 && draw(8) > 0
                        ? (struct token){tokens[i - 1].space, tokens[i - 1].number + 1}
                        : (struct token){draw(2), draw(4) * 10};
}

/* Cuts tokens into spans at random places, and where a run ends. */
static size_t cut(const struct token *tokens, size_t n, struct wl_span *spans)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        struct wl_span *last = count > 0 ? &spans[count - 1] : NULL;

        if (last != NULL && last->space == tokens[i].space &&
            last->first + last->count == tokens[i].number && draw(3) > 0)
            last->count++;
        else
            spans[count++] = (struct wl_span){tokens[i].space, tokens[i].number, 1};
    }
    return count;
}

static void keys__any_cut_of_the_same_tokens__same_keys(void **fixture)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 16, 64, 96};
    struct token tokens[TOKENS];
    struct wl_span spans[TOKENS];
    uint64_t first[TOKENS], second[TOKENS];

    (void)fixture;
    for (int round = 0; round < 2000; round++) {
        uint32_t b = sizes[draw(sizeof sizes / sizeof sizes[0])];

        draw_tokens(tokens, TOKENS);
        check_u64_eq(content_keys(spans, cut(tokens, TOKENS, spans), b, first, TOKENS), TOKENS / b);
        check_u64_eq(content_keys(spans, cut(tokens, TOKENS, spans), b, second, TOKENS), TOKENS / b);
        assert_memory_equal(first, second, TOKENS / b * sizeof first[0]);
    }
}

/* Two sequences that share exactly their first `same` tokens share exactly the first same / b keys. */
static void keys__first_difference_at_a_token__keys_differ_from_its_block_on(void **fixture)
{
    struct token tokens[TOKENS];
    struct wl_span spans[TOKENS];
    uint64_t first[TOKENS], second[TOKENS];

    (void)fixture;
    for (int round = 0; round < 2000; round++) {
        uint32_t b = (uint32_t)draw(20) + 1;
        size_t same = draw(TOKENS);

        draw_tokens(tokens, TOKENS);
        content_keys(spans, cut(tokens, TOKENS, spans), b, first, TOKENS);
        tokens[same].number += 1000;
        content_keys(spans, cut(tokens, TOKENS, spans), b, second, TOKENS);
        for (size_t i = 0; i < TOKENS / b; i++)
            assert_true((first[i] == second[i]) == (i < same / b));
    }
}

/* A coarse id of 8 tokens is the run 8h .. 8h+7, so two blocks of 4 inside it chain like its tokens. */
static void keys__coarse_id_or_its_tokens__same_keys(void **fixture)
{
    struct wl_span coarse[2] = {{0, 8 * 5, 8}, {0, 8 * 9, 8}};
    struct wl_span exact[16];
    uint64_t first[4], second[4];

    (void)fixture;
    for (uint64_t i = 0; i < 16; i++)
        exact[i] = (struct wl_span){0, (i < 8 ? 40 : 64) + i, 1};
    check_u64_eq(content_keys(coarse, 2, 4, first, 4), 4);
    check_u64_eq(content_keys(exact, 16, 4, second, 4), 4);
    assert_memory_equal(first, second, sizeof first);
}

/* A cursor that gets its spans and gives its keys in pieces ends with the same keys as one call. */
static void cursor__fed_and_read_in_pieces__same_keys_as_at_once(void **fixture)
{
    struct token tokens[TOKENS];
    struct wl_span all[TOKENS], piece[TOKENS];
    uint64_t expected[TOKENS], found[TOKENS];

    (void)fixture;
    for (int round = 0; round < 2000; round++) {
        uint32_t b = (uint32_t)draw(20) + 1;
        size_t done = 0;
        uint64_t n = 0;
        struct content_cursor cursor;

        draw_tokens(tokens, TOKENS);
        content_keys(all, cut(tokens, TOKENS, all), b, expected, TOKENS);
        content_begin(&cursor, b);
        while (done < TOKENS) {
            size_t part = draw(TOKENS - done) + 1;
            uint64_t asked, got;

            content_feed(&cursor, piece, cut(tokens + done, part, piece));
            done += part;
            do {
                asked = draw(3) + 1;
                got = content_next(&cursor, found + n, asked);
                n += got;
            } while (got == asked);
        }
        check_u64_eq(n, TOKENS / b);
        assert_memory_equal(found, expected, n * sizeof found[0]);
    }
}

static void keys__fewer_wanted_than_there_are__stops_there(void **fixture)
{
    struct wl_span span = {0, 100, 64};
    uint64_t keys[4] = {0, 0, 7, 7};

    (void)fixture;
    check_u64_eq(content_keys(&span, 1, 16, keys, 2), 2);
    check_u64_eq(keys[2], 7);
}

static void partial__same_rest_after_same_blocks__same_key(void **fixture)
{
    struct wl_span whole = {0, 0, 22}, cut_in_two[2] = {{0, 0, 19}, {0, 19, 3}}, longer = {0, 0, 23};
    struct content_cursor a, b, c;
    uint64_t keys[2];

    (void)fixture;
    content_begin(&a, 16);
    content_feed(&a, &whole, 1);
    content_next(&a, keys, 2);
    content_begin(&b, 16);
    content_feed(&b, cut_in_two, 2);
    content_next(&b, keys, 2);
    content_begin(&c, 16);
    content_feed(&c, &longer, 1);
    content_next(&c, keys, 2);
    assert_true(content_partial_key(&a) == content_partial_key(&b));
    assert_true(content_partial_key(&a) != content_partial_key(&c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys__any_cut_of_the_same_tokens__same_keys),
        cmocka_unit_test(keys__first_difference_at_a_token__keys_differ_from_its_block_on),
        cmocka_unit_test(keys__coarse_id_or_its_tokens__same_keys),
        cmocka_unit_test(cursor__fed_and_read_in_pieces__same_keys_as_at_once),
        cmocka_unit_test(keys__fewer_wanted_than_there_are__stops_there),
        cmocka_unit_test(partial__same_rest_after_same_blocks__same_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
