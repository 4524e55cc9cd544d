#include "workloads/wl_draft.h"

#include <stdlib.h>

void wl_draft_clear(struct wl_draft *draft)
{
    draft->request = (struct wl_request){ .max_tokens = WL_NONE, .abort_ns = WL_NONE, .samples = 1 };
    draft->hash_ids.count = 0;
    draft->final_hash_ids.count = 0;
    draft->prompt.count = 0;
    draft->output.count = 0;
    draft->text.count = 0;
    draft->id_at = WL_TEXT_NONE;
    draft->session_at = WL_TEXT_NONE;
    draft->parent_at = WL_TEXT_NONE;
    draft->has_arrival = false;
    draft->has_final_ids = false;
    draft->is_calendar = false;
    draft->arrival_at = NULL;
}

void wl_draft_release(struct wl_draft *draft)
{
    free(draft->hash_ids.items);
    free(draft->final_hash_ids.items);
    free(draft->prompt.items);
    free(draft->output.items);
    free(draft->text.items);
    *draft = (struct wl_draft){ 0 };
}

static const char *text_at(const struct wl_draft *draft, size_t at)
{
    return at == WL_TEXT_NONE ? NULL : draft->text.items + at;
}

void wl_draft_finish(struct wl_draft *draft)
{
    struct wl_request *request = &draft->request;
    request->id = text_at(draft, draft->id_at);
    request->session = text_at(draft, draft->session_at);
    request->parent = text_at(draft, draft->parent_at);
    request->prompt = draft->prompt.items;
    request->prompt_spans = draft->prompt.count;
    request->output = draft->output.items;
    request->output_spans = draft->output.count;
    request->hash_ids = draft->hash_ids.count > 0 ? draft->hash_ids.items : NULL;
    request->hash_count = draft->hash_ids.count;
    /* An empty list of final ids says "no block is ever full"; that is not the same as NULL. */
    static const uint64_t no_ids[1] = { 0 };
    request->final_hash_count = draft->has_final_ids ? draft->final_hash_ids.count : 0;
    request->final_hash_ids = NULL;
    if (draft->has_final_ids)
        request->final_hash_ids = draft->final_hash_ids.count > 0 ? draft->final_hash_ids.items : no_ids;
}

uint64_t wl_spans_tokens(const struct wl_spans *spans)
{
    uint64_t tokens = 0;
    for (size_t i = 0; i < spans->count; i++) {
        if (spans->items[i].count > WL_TOKENS_MAX - tokens)
            return WL_NONE;
        tokens += spans->items[i].count;
    }
    return tokens;
}

/* Adds `count` tokens of block `id`, from its token `skip` on. */
static int add_id(struct wl_spans *spans, uint64_t id, uint64_t block_tokens, uint64_t skip,
                  uint64_t count)
{
    if (id < ((uint64_t)1 << 63) / block_tokens)
        return wl_spans_add(spans, 0, id * block_tokens + skip, count);
    return wl_spans_add(spans, id, skip, count);
}

/* Full blocks; the common case, ids that count upwards, makes one span of many ids. */
static int add_full_blocks(struct wl_spans *spans, const uint64_t *ids, size_t count,
                           uint64_t block_tokens)
{
    uint64_t numbered_ids = ((uint64_t)1 << 63) / block_tokens;
    for (size_t i = 0; i < count;) {
        size_t run = 1;
        if (ids[i] < numbered_ids)
            while (i + run < count && ids[i + run] == ids[i] + run && ids[i + run] < numbered_ids)
                run++;
        if (add_id(spans, ids[i], block_tokens, 0, run * block_tokens) != 0)
            return -1;
        i += run;
    }
    return 0;
}

static int add_output(struct wl_draft *draft, uint64_t block_tokens, uint64_t full_blocks)
{
    uint64_t skip = draft->request.prompt_tokens % block_tokens;
    for (uint64_t i = full_blocks; i < draft->final_hash_ids.count; i++) {
        if (add_id(&draft->output, draft->final_hash_ids.items[i], block_tokens, skip,
                   block_tokens - skip) != 0)
            return -1;
        skip = 0;
    }
    return 0;
}

int wl_draft_hash_content(struct wl_draft *draft)
{
    struct wl_request *request = &draft->request;
    uint64_t block_tokens = request->trace_block_tokens;
    uint64_t full_blocks = request->prompt_tokens / block_tokens;
    uint64_t tail_tokens = request->prompt_tokens % block_tokens;
    request->has_content = true;
    if (add_full_blocks(&draft->prompt, draft->hash_ids.items, full_blocks, block_tokens) != 0)
        return -1;
    int rc;
    if (draft->has_final_ids && draft->final_hash_ids.count > full_blocks)
        rc = add_id(&draft->prompt, draft->final_hash_ids.items[full_blocks], block_tokens, 0,
                    tail_tokens);
    else if (draft->hash_ids.count > full_blocks)
        rc = add_id(&draft->prompt, draft->hash_ids.items[full_blocks], block_tokens, 0,
                    tail_tokens);
    else
        rc = wl_spans_add(&draft->prompt, WL_SPACE_UNIQUE, draft->serial << 32, tail_tokens);
    if (rc != 0 || !draft->has_final_ids)
        return rc;
    return add_output(draft, block_tokens, full_blocks);
}

int wl_draft_check_hashes(const struct wl_draft *draft, const struct wl_line *line, const char *at,
                          const char *final_at)
{
    const struct wl_request *request = &draft->request;
    uint64_t block_tokens = request->trace_block_tokens;
    uint64_t full = request->prompt_tokens / block_tokens;
    uint64_t all = full + (request->prompt_tokens % block_tokens != 0);
    size_t count = draft->hash_ids.count;
    if (count != full && count != all)
        return wl_line_error(line, at, "hash_ids", "found %zu ids, expected %llu for %llu tokens "
                             "at %llu tokens an id (see --trace-block-size)", count,
                             (unsigned long long)all, (unsigned long long)request->prompt_tokens,
                             (unsigned long long)block_tokens);
    if (!draft->has_final_ids)
        return 0;
    uint64_t output = request->output_tokens;
    uint64_t final = (request->prompt_tokens + (output > 0 ? output - 1 : 0)) / block_tokens;
    if (draft->final_hash_ids.count != final)
        return wl_line_error(line, final_at, "final_hash_ids", "found %zu ids, expected %llu full "
                             "blocks of %llu tokens", draft->final_hash_ids.count,
                             (unsigned long long)final, (unsigned long long)block_tokens);
    for (uint64_t i = 0; i < full; i++)
        if (draft->final_hash_ids.items[i] != draft->hash_ids.items[i])
            return wl_line_error(line, final_at, "final_hash_ids", "found %llu as id %llu, expected "
                                 "%llu as in hash_ids",
                                 (unsigned long long)draft->final_hash_ids.items[i],
                                 (unsigned long long)i,
                                 (unsigned long long)draft->hash_ids.items[i]);
    return 0;
}
