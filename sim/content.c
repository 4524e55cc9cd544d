#include "sim/content.h"

#include <assert.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Any constants: they only keep the first block and partial blocks apart from the rest. */
#define FIRST_PARENT UINT64_C(0x70616765)
#define PARTIAL_MARK UINT64_C(0x7061727469616c)

/* A block's key is the fold of its maximal runs onto its parent's key. Folding run by run, not
 * hashing an array of runs, keeps the state of a half-filled block at a fixed size. */
static inline uint64_t fold(uint64_t key, uint64_t space, uint64_t first, uint64_t count)
{
    const uint64_t words[3] = {space, first, count};

    return XXH3_64bits_withSeed(words, sizeof words, key);
}

void content_begin(struct content_cursor *cursor, uint32_t block_tokens)
{
    assert(block_tokens > 0);
    *cursor = (struct content_cursor){.key = FIRST_PARENT, .block_tokens = block_tokens};
}

void content_feed(struct content_cursor *cursor, const struct wl_span *spans, size_t n)
{
    assert(cursor->spans_left == 0);
    cursor->spans = spans;
    cursor->spans_left = n;
    cursor->used_tokens = 0;
}

static void use_tokens(struct content_cursor *cursor, uint64_t tokens)
{
    cursor->used_tokens += tokens;
    if (cursor->used_tokens == cursor->spans->count) {
        cursor->spans++;
        cursor->spans_left--;
        cursor->used_tokens = 0;
    }
}

/* Whole blocks inside the current span: one fold each, nothing to merge. Callers are at the start
 * of a block. Returns how many keys it wrote. */
static uint64_t next_whole(struct content_cursor *cursor, uint64_t *keys, uint64_t max_keys)
{
    const struct wl_span *span = cursor->spans;
    uint64_t n = (span->count - cursor->used_tokens) / cursor->block_tokens;
    uint64_t first = span->first + cursor->used_tokens;
    uint64_t key = cursor->key;

    n = n < max_keys ? n : max_keys;
    for (uint64_t i = 0; i < n; i++, first += cursor->block_tokens)
        keys[i] = key = fold(key, span->space, first, cursor->block_tokens);
    cursor->key = key;
    if (n > 0)
        use_tokens(cursor, n * cursor->block_tokens);
    return n;
}

static void fold_run(struct content_cursor *cursor)
{
    const struct wl_span *run = &cursor->run;

    if (run->count > 0)
        cursor->key = fold(cursor->key, run->space, run->first, run->count);
    cursor->run.count = 0;
}

/* Takes what the current span has for the partial block, merged with the run before it where it
 * goes on in the same numbers: that makes the runs maximal. Returns true when the block is full. */
static bool fill_partial(struct content_cursor *cursor)
{
    const struct wl_span *span = cursor->spans;
    uint64_t first = span->first + cursor->used_tokens;
    uint64_t left = span->count - cursor->used_tokens;
    uint64_t room = cursor->block_tokens - cursor->filled_tokens;
    uint64_t n = left < room ? left : room;
    struct wl_span *run = &cursor->run;

    assert(span->count > 0);
    if (run->count > 0 && run->space == span->space && run->first + run->count == first) {
        run->count += n;
    } else {
        fold_run(cursor);
        *run = (struct wl_span){.space = span->space, .first = first, .count = n};
    }
    use_tokens(cursor, n);
    cursor->filled_tokens += (uint32_t)n;
    if (cursor->filled_tokens < cursor->block_tokens)
        return false;
    fold_run(cursor);
    cursor->filled_tokens = 0;
    return true;
}

uint64_t content_next(struct content_cursor *cursor, uint64_t *keys, uint64_t max_keys)
{
    uint64_t n = 0;

    while (n < max_keys && cursor->spans_left > 0) {
        if (cursor->filled_tokens == 0) {
            uint64_t whole = next_whole(cursor, keys + n, max_keys - n);

            n += whole;
            if (whole > 0)
                continue;
        }
        if (fill_partial(cursor))
            keys[n++] = cursor->key;
    }
    return n;
}

uint64_t content_keys(const struct wl_span *spans, size_t n, uint32_t block_tokens, uint64_t *keys,
                      uint64_t max_keys)
{
    struct content_cursor cursor;

    content_begin(&cursor, block_tokens);
    content_feed(&cursor, spans, n);
    return content_next(&cursor, keys, max_keys);
}

uint64_t content_partial_key(const struct content_cursor *cursor)
{
    struct content_cursor copy = *cursor;

    fold_run(&copy);
    return fold(copy.key, PARTIAL_MARK, copy.filled_tokens, 0);
}
