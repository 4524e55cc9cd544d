#include "workloads/wl_codec.h"

#include <string.h>

enum {
    HAS_ID = 1 << 0, HAS_SESSION = 1 << 1, HAS_PARENT = 1 << 2, HAS_MAX_TOKENS = 1 << 3,
    HAS_ABORT = 1 << 4, HAS_PRIORITY = 1 << 5, HAS_SAMPLES = 1 << 6, HAS_CONTENT = 1 << 7,
    HAS_HASHES = 1 << 8, HAS_FINAL = 1 << 9, HAS_ARRIVAL = 1 << 10, IS_CALENDAR = 1 << 11,
};

enum { VARINT_BYTES_MAX = 10 };

static int put(struct wl_text *bytes, uint64_t value)
{
    char out[VARINT_BYTES_MAX];
    size_t count = 0;
    while (value >= 0x80) {
        out[count++] = (char)(value | 0x80);
        value >>= 7;
    }
    out[count++] = (char)value;
    return wl_text_append(bytes, out, count);
}

static uint64_t get(const char **at)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint64_t byte;
    do {
        byte = (unsigned char)*(*at)++;
        value |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte >= 0x80);
    return value;
}

/* Small magnitudes, of either sign, to small numbers; differences wrap around. */
static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unzigzag(uint64_t coded)
{
    return coded >> 1 ^ (0 - (coded & 1));
}

static int put_ids(struct wl_text *bytes, const struct wl_ids *ids)
{
    int rc = put(bytes, ids->count);
    uint64_t expected = 0;
    for (size_t i = 0; i < ids->count && rc == 0; i++) {
        rc = put(bytes, zigzag(ids->items[i] - expected));
        expected = ids->items[i] + 1;
    }
    return rc;
}

static int get_ids(const char **at, struct wl_ids *ids)
{
    uint64_t count = get(at);
    uint64_t expected = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t id = expected + unzigzag(get(at));
        if (wl_ids_add(ids, id) != 0)
            return -1;
        expected = id + 1;
    }
    return 0;
}

static int put_spans(struct wl_text *bytes, const struct wl_spans *spans)
{
    int rc = put(bytes, spans->count);
    for (size_t i = 0; i < spans->count && rc == 0; i++) {
        const struct wl_span *span = &spans->items[i];
        if (put(bytes, span->space) != 0 || put(bytes, span->first) != 0 ||
            put(bytes, span->count) != 0)
            rc = -1;
    }
    return rc;
}

static int get_spans(const char **at, struct wl_spans *spans)
{
    uint64_t count = get(at);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t space = get(at), first = get(at), tokens = get(at);
        if (wl_spans_add(spans, space, first, tokens) != 0)
            return -1;
    }
    return 0;
}

static int put_text(struct wl_text *bytes, const struct wl_draft *draft, size_t text_at)
{
    if (text_at == WL_TEXT_NONE)
        return 0;
    const char *text = draft->text.items + text_at;
    return wl_text_append(bytes, text, strlen(text) + 1);
}

static int get_text(const char **at, struct wl_draft *draft, size_t *text_at)
{
    size_t length = strlen(*at) + 1;
    *text_at = draft->text.count;
    int rc = wl_text_append(&draft->text, *at, length);
    *at += length;
    return rc;
}

static uint64_t flags_of(const struct wl_draft *draft)
{
    const struct wl_request *request = &draft->request;
    uint64_t flags = 0;
    flags |= draft->id_at != WL_TEXT_NONE ? HAS_ID : 0;
    flags |= draft->session_at != WL_TEXT_NONE ? HAS_SESSION : 0;
    flags |= draft->parent_at != WL_TEXT_NONE ? HAS_PARENT : 0;
    flags |= request->max_tokens != WL_NONE ? HAS_MAX_TOKENS : 0;
    flags |= request->abort_ns != WL_NONE ? HAS_ABORT : 0;
    flags |= request->priority != 0 ? HAS_PRIORITY : 0;
    flags |= request->samples != 1 ? HAS_SAMPLES : 0;
    flags |= request->has_content ? HAS_CONTENT : 0;
    flags |= request->trace_block_tokens != 0 ? HAS_HASHES : 0;
    flags |= draft->has_final_ids ? HAS_FINAL : 0;
    flags |= draft->has_arrival ? HAS_ARRIVAL : 0;
    flags |= draft->is_calendar ? IS_CALENDAR : 0;
    return flags;
}

static int put_content(struct wl_text *bytes, const struct wl_draft *draft, uint64_t flags)
{
    if ((flags & HAS_HASHES) != 0) {
        /* The spans follow from the ids and are made again. */
        if (put(bytes, draft->request.trace_block_tokens) != 0 ||
            put_ids(bytes, &draft->hash_ids) != 0)
            return -1;
        return (flags & HAS_FINAL) != 0 ? put_ids(bytes, &draft->final_hash_ids) : 0;
    }
    if ((flags & HAS_CONTENT) == 0)
        return 0;
    return put_spans(bytes, &draft->prompt) != 0 ? -1 : put_spans(bytes, &draft->output);
}

static int put_numbers(struct wl_text *bytes, const struct wl_draft *draft, uint64_t flags)
{
    const struct wl_request *request = &draft->request;
    if (put(bytes, flags) != 0 || put(bytes, draft->serial) != 0 ||
        put(bytes, request->arrival_ns) != 0 || put(bytes, request->prompt_tokens) != 0 ||
        put(bytes, request->output_tokens) != 0)
        return -1;
    if (((flags & HAS_MAX_TOKENS) != 0 && put(bytes, request->max_tokens) != 0) ||
        ((flags & HAS_ABORT) != 0 && put(bytes, request->abort_ns) != 0) ||
        ((flags & HAS_PRIORITY) != 0 && put(bytes, zigzag((uint64_t)request->priority)) != 0) ||
        ((flags & HAS_SAMPLES) != 0 && put(bytes, request->samples) != 0))
        return -1;
    return 0;
}

int wl_encode(const struct wl_draft *draft, struct wl_text *bytes)
{
    uint64_t flags = flags_of(draft);
    size_t start = bytes->count;
    if (put_numbers(bytes, draft, flags) == 0 && put_text(bytes, draft, draft->id_at) == 0 &&
        put_text(bytes, draft, draft->session_at) == 0 &&
        put_text(bytes, draft, draft->parent_at) == 0 && put_content(bytes, draft, flags) == 0)
        return 0;
    bytes->count = start;
    return -1;
}

static int get_content(const char **at, struct wl_draft *draft, uint64_t flags)
{
    if ((flags & HAS_HASHES) != 0) {
        draft->request.trace_block_tokens = (uint32_t)get(at);
        if (get_ids(at, &draft->hash_ids) != 0)
            return -1;
        draft->has_final_ids = (flags & HAS_FINAL) != 0;
        if (draft->has_final_ids && get_ids(at, &draft->final_hash_ids) != 0)
            return -1;
        return wl_draft_hash_content(draft);
    }
    draft->request.has_content = (flags & HAS_CONTENT) != 0;
    if (!draft->request.has_content)
        return 0;
    return get_spans(at, &draft->prompt) != 0 ? -1 : get_spans(at, &draft->output);
}

int wl_decode(const char **at, struct wl_draft *draft)
{
    wl_draft_clear(draft);
    struct wl_request *request = &draft->request;
    uint64_t flags = get(at);
    draft->has_arrival = (flags & HAS_ARRIVAL) != 0;
    draft->is_calendar = (flags & IS_CALENDAR) != 0;
    draft->serial = get(at);
    request->arrival_ns = get(at);
    request->prompt_tokens = get(at);
    request->output_tokens = get(at);
    if ((flags & HAS_MAX_TOKENS) != 0)
        request->max_tokens = get(at);
    if ((flags & HAS_ABORT) != 0)
        request->abort_ns = get(at);
    if ((flags & HAS_PRIORITY) != 0)
        request->priority = (int64_t)unzigzag(get(at));
    if ((flags & HAS_SAMPLES) != 0)
        request->samples = (uint32_t)get(at);
    if (((flags & HAS_ID) != 0 && get_text(at, draft, &draft->id_at) != 0) ||
        ((flags & HAS_SESSION) != 0 && get_text(at, draft, &draft->session_at) != 0) ||
        ((flags & HAS_PARENT) != 0 && get_text(at, draft, &draft->parent_at) != 0))
        return -1;
    return get_content(at, draft, flags);
}
