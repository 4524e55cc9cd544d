/* What a request's tokens are: the keys of its blocks, and what the infinite cache knows of it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/content.h"
#include "sim/engine_core.h"
#include "sim/numbers.h"

/* Tokens that exist once get a name space of their own: of the request's prompt, of each sample. */
static uint64_t unique_space(const struct sim_request *r, uint64_t part)
{
    return (uint64_t)1 << 63 | r->index << 13 | part;
}
#define UNIQUE_PROMPT SAMPLES_MAX

static void feed_unique(struct content_cursor *cursor, struct wl_span *span, uint64_t space,
                        uint64_t first, uint64_t count)
{
    if (count == 0) return;
    *span = (struct wl_span){.space = space, .first = first, .count = count};
    content_feed(cursor, span, 1);
}

/* Keys of sample s: known content first, then tokens of its own. cursor holds the common prompt. */
static void sample_keys(struct sim_request *r, uint32_t s, struct content_cursor cursor,
                        uint64_t from, uint64_t done_tokens)
{
    struct wl_span unique;
    uint64_t tokens = done_tokens, count = from;
    if (s == 0 && !r->final_spans && r->span_count > r->prompt_spans) {
        content_feed(&cursor, r->spans + r->prompt_spans, r->span_count - r->prompt_spans);
        count += content_next(&cursor, r->keys[s] + count, r->key_blocks - count);
        tokens = r->span_tokens;
    }
    if (count == r->key_blocks) return;
    feed_unique(&cursor, &unique, unique_space(r, s), tokens, above(r->kv.final_tokens, tokens));
    count += content_next(&cursor, r->keys[s] + count, r->key_blocks - count);
    assert(count == r->key_blocks);
}

/* Makes the content keys of all blocks that the request will ever fill. */
bool engine_prepare_keys(struct engine *e, struct sim_request *r)
{
    if (r->keys) return true;
    uint32_t samples = r->kv.samples;
    r->key_blocks = r->kv.final_tokens / e->policy->block_tokens;
    size_t row = r->key_blocks > 0 ? (size_t)r->key_blocks : 1;
    r->keys = malloc(samples * sizeof *r->keys + samples * row * sizeof **r->keys);
    if (!r->keys) {
        e->out_of_memory = true;
        return false;
    }
    uint64_t *rows = (uint64_t *)(r->keys + samples);
    for (uint32_t s = 0; s < samples; s++) r->keys[s] = rows + s * row;

    struct content_cursor cursor;
    struct wl_span unique;
    content_begin(&cursor, e->policy->block_tokens);
    uint64_t common_tokens = r->prompt_tokens;
    if (r->final_spans) {
        content_feed(&cursor, r->final_spans, r->final_span_count);
        common_tokens = r->final_span_tokens;
    } else if (r->has_content) {
        content_feed(&cursor, r->spans, r->prompt_spans);
    } else {
        feed_unique(&cursor, &unique, unique_space(r, UNIQUE_PROMPT), 0, r->prompt_tokens);
    }
    uint64_t common = content_next(&cursor, r->keys[0], r->key_blocks);
    for (uint32_t s = 1; s < samples; s++) {
        memcpy(r->keys[s], r->keys[0], (size_t)common * sizeof **r->keys);
    }
    for (uint32_t s = 0; s < samples && common < r->key_blocks; s++) {
        sample_keys(r, s, cursor, common, common_tokens);
    }
    return true;
}

bool engine_keys_may_wait(const struct engine *e, const struct sim_request *r)
{
    return e->caches && e->policy->keys_may_wait && !r->final_spans && r->span_count == r->prompt_spans;
}

static uint64_t span_sum(const struct wl_span *spans, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += spans[i].count;
    return sum;
}

/* cache_output trace: each id of the content at the end as a run of tokens. */
static bool take_final_ids(struct sim_request *r, const struct wl_request *from)
{
    r->final_spans = malloc(from->final_hash_count * sizeof *r->final_spans);
    if (!r->final_spans) return false;
    uint64_t k = from->trace_block_tokens;
    for (size_t i = 0; i < from->final_hash_count; i++) {
        uint64_t id = from->final_hash_ids[i];
        bool fits = id <= (UINT64_MAX >> 1) / k;
        r->final_spans[i] =
            (struct wl_span){.space = fits ? 0 : id, .first = fits ? id * k : 0, .count = k};
    }
    r->final_span_count = from->final_hash_count;
    r->final_span_tokens = r->final_span_count * k;
    return true;
}

void engine_take_content(struct engine *e, struct sim_request *r, const struct wl_request *from)
{
    if (!e->caches || !from->has_content) return;
    size_t count = from->prompt_spans + from->output_spans;
    r->spans = malloc((count ? count : 1) * sizeof *r->spans);
    bool ok = r->spans != NULL;
    if (ok && e->config.cache_output == CACHE_OUTPUT_TRACE && from->final_hash_count > 0) {
        ok = take_final_ids(r, from);
    }
    if (!ok) {
        e->out_of_memory = true;
        return;
    }
    memcpy(r->spans, from->prompt, from->prompt_spans * sizeof *r->spans);
    if (from->output_spans > 0) {
        memcpy(r->spans + from->prompt_spans, from->output,
               from->output_spans * sizeof *r->spans);
    }
    r->prompt_spans = from->prompt_spans;
    r->span_count = count;
    r->span_tokens = span_sum(r->spans, count);
    r->has_content = true;
    e->stats.any_content = true;
}

void engine_share_filled(struct engine *e, struct sim_request *r)
{
    if (!e->shared || !r->has_content) return;
    if (!r->cursor_open) {
        shared_cursor_begin(e->shared, &r->cursor, r);
        if (r->final_spans) shared_cursor_begin(e->shared, &r->final_cursor, r);
        r->cursor_open = true;
    }
    bool unkeyed = e->config.cache_output == CACHE_OUTPUT_UNKEYED;
    uint64_t known = r->final_spans || unkeyed ? r->prompt_tokens : r->span_tokens;
    int failed = shared_cursor_advance(e->shared, &r->cursor, r->spans, r->span_count,
                                       min_u64(r->filled, known));
    if (r->final_spans && !failed) {
        failed = shared_cursor_advance(e->shared, &r->final_cursor, r->final_spans, r->final_span_count,
                                       min_u64(r->filled, r->final_span_tokens));
    }
    if (failed) e->out_of_memory = true;
}

void engine_unshare(struct engine *e, struct sim_request *r)
{
    if (!r->cursor_open) return;
    shared_cursor_end(e->shared, &r->cursor);
    if (r->final_spans) shared_cursor_end(e->shared, &r->final_cursor);
    r->cursor_open = false;
}

/* Requests that are not visited tell what they have filled when somebody asks. */
static bool share_parked(void *context, struct shared_cursor *cursor)
{
    struct engine *e = context;
    struct sim_request *r = cursor->owner;
    uint64_t before = cursor->tokens;
    if (!r->parked) return false;
    park_show(e, r);
    engine_share_filled(e, r);
    return cursor->tokens > before;
}

uint64_t engine_shared_tokens(struct engine *e, const struct sim_request *r)
{
    struct shared_waker waker = {.wake = share_parked, .context = e};
    return shared_prefix_match(e->shared, r->spans, r->prompt_spans, r->prompt_tokens, &waker);
}
