#include "sim/cache_trace.h"

#include "sim/content.h"
#include "sim/turns.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define TOKEN_EXACT_BLOCK_TOKENS 16u /* as serving engines cut it by default */

int cache_trace_init(struct cache_trace *trace, uint32_t block_tokens, struct err *err)
{
    assert(block_tokens > 0);
    *trace = (struct cache_trace){.block_tokens = block_tokens};
    if (!id_index_init(&trace->index))
        return err_set(err, ERR_FAILED, "out of memory for the index of content ids");
    return 0;
}

void cache_trace_release(struct cache_trace *trace)
{
    free(trace->requests);
    free(trace->blocks);
    if (trace->index.places != NULL)
        id_index_release(&trace->index);
    *trace = (struct cache_trace){0};
}

/* Room for `more` elements after `count`, by doubling. NULL: out of memory, the old array stays. */
static void *grown(void *array, uint64_t count, uint64_t more, uint64_t *room, size_t element_bytes)
{
    uint64_t wanted = *room;

    if (more <= *room - count)
        return array;
    while (wanted - count < more) {
        wanted = wanted < 1024 ? 1024 : wanted;
        if (wanted > SIZE_MAX / 2 / element_bytes)
            return NULL;
        wanted *= 2;
    }
    array = realloc(array, (size_t)wanted * element_bytes);
    if (array != NULL)
        *room = wanted;
    return array;
}

/* Makes room for one more request of n blocks. */
static int reserve(struct cache_trace *trace, uint64_t n, struct err *err)
{
    void *requests = grown(trace->requests, trace->request_count, 1, &trace->request_room,
                           sizeof *trace->requests);
    void *blocks;

    if (requests == NULL)
        return err_set(err, ERR_FAILED, "out of memory at request %" PRIu64, trace->request_count);
    trace->requests = requests;
    blocks = grown(trace->blocks, trace->block_count, n + 1, &trace->block_room,
                   sizeof *trace->blocks); /* + 1: never NULL, even when no request has a block */
    if (blocks == NULL)
        return err_set(err, ERR_FAILED, "out of memory for %" PRIu64 " block references",
                       trace->block_count + n);
    trace->blocks = blocks;
    return 0;
}

static void close_request(struct cache_trace *trace, uint64_t prompt_tokens, uint64_t n)
{
    trace->block_count += n;
    trace->requests[trace->request_count++] =
        (struct cache_request){.end_block = trace->block_count, .prompt_tokens = prompt_tokens};
    trace->unique_blocks = trace->index.count;
    if (n > trace->request_blocks_max)
        trace->request_blocks_max = n;
}

static int too_many_ids(struct err *err)
{
    return err_set(err, ERR_FAILED, "more than %" PRIu32 " different blocks", ID_INDEX_MAX - 1);
}

int cache_trace_add(struct cache_trace *trace, uint64_t prompt_tokens, const uint64_t *ids,
                    uint64_t n, struct err *err)
{
    if (reserve(trace, n, err) != 0)
        return -1;
    switch (id_index_number(&trace->index, ids, n, trace->blocks + trace->block_count)) {
    case ID_INDEX_OK:
        break;
    case ID_INDEX_NO_MEMORY:
        return err_set(err, ERR_FAILED, "out of memory for the index of content ids");
    case ID_INDEX_FULL:
        return too_many_ids(err);
    }
    close_request(trace, prompt_tokens, n);
    return 0;
}

int cache_trace_add_unique(struct cache_trace *trace, uint64_t prompt_tokens, uint64_t n,
                           struct err *err)
{
    if (reserve(trace, n, err) != 0)
        return -1;
    for (uint64_t i = 0; i < n; i++)
        if (!id_index_unique(&trace->index, &trace->blocks[trace->block_count + i]))
            return too_many_ids(err);
    close_request(trace, prompt_tokens, n);
    return 0;
}

/* --- from a source ----------------------------------------------------------------------------- */

struct reading {
    struct cache_trace *trace;
    uint32_t asked_tokens; /* block size the user asked for, 0: the trace's own */
    bool use_ids;          /* the ids as they stand, else derived keys */
    bool decided;          /* use_ids and the block size are settled by the first content */
    uint64_t *keys; /* scratch for derived keys */
    uint64_t key_room;
    struct turns turns;
};

/* Sets the kind of the request that was added last. */
static int set_kind(struct reading *reading, const struct wl_request *request, struct err *err)
{
    struct cache_trace *trace = reading->trace;
    struct cache_request *added = &trace->requests[trace->request_count - 1];
    struct kv_kind *kind = &added->kind;

    added->arrival_ns = request->arrival_ns;
    kind->priority = request->priority;
    if (!turns_next(&reading->turns, request, &kind->category))
        return err_set(err, ERR_FAILED, "out of memory for the conversations");
    return 0;
}

/* The first request with content settles what a block is. */
static void decide(struct reading *reading, const struct wl_request *request)
{
    bool has_ids = request->hash_count > 0 && request->trace_block_tokens > 0;

    reading->decided = true;
    reading->use_ids = has_ids && (reading->asked_tokens == 0 ||
                                   reading->asked_tokens == request->trace_block_tokens);
    if (reading->use_ids)
        reading->trace->block_tokens = request->trace_block_tokens;
    else
        reading->trace->block_tokens =
            reading->asked_tokens > 0 ? reading->asked_tokens : TOKEN_EXACT_BLOCK_TOKENS;
}

static int add_derived(struct reading *reading, const struct wl_request *request, struct err *err)
{
    struct cache_trace *trace = reading->trace;
    uint32_t block_tokens = trace->block_tokens;
    uint64_t full = request->prompt_tokens / block_tokens;
    uint64_t partial = request->prompt_tokens % block_tokens != 0;
    struct content_cursor cursor;
    uint64_t *keys = grown(reading->keys, 0, full + 1, &reading->key_room, sizeof *keys);
    uint64_t n;

    if (keys == NULL)
        return err_set(err, ERR_FAILED, "out of memory for %" PRIu64 " blocks of one request", full);
    reading->keys = keys;
    content_begin(&cursor, block_tokens);
    content_feed(&cursor, request->prompt, request->prompt_spans);
    n = content_next(&cursor, keys, full + 1); /* one more than there are, so the rest is read too */
    assert(n == full);
    if (partial)
        keys[n] = content_partial_key(&cursor);
    if (block_tokens % (request->trace_block_tokens > 0 ? request->trace_block_tokens : 1) != 0)
        trace->lower_bound = true;
    return cache_trace_add(trace, request->prompt_tokens, keys, full + partial, err);
}

static int add_request(struct reading *reading, const struct wl_request *request, struct err *err)
{
    struct cache_trace *trace = reading->trace;

    if (!request->has_content)
        return cache_trace_add_unique(trace, request->prompt_tokens,
                                      request->prompt_tokens / trace->block_tokens, err);
    if (!reading->use_ids)
        return add_derived(reading, request, err);
    if (request->hash_count == 0 && request->prompt_tokens >= trace->block_tokens)
        return err_set(err, ERR_INPUT,
                       "request %" PRIu64 ": found content without ids in a trace with ids of %" PRIu32
                       " tokens, give --block-size of another size to derive blocks",
                       request->index, trace->block_tokens);
    if (request->hash_count > 0 && request->trace_block_tokens != trace->block_tokens)
        return err_set(err, ERR_INPUT,
                       "request %" PRIu64 ": found ids of %" PRIu32 " tokens after ids of %" PRIu32
                       ", expected one size (or a --block-size to derive blocks of)",
                       request->index, request->trace_block_tokens, trace->block_tokens);
    return cache_trace_add(trace, request->prompt_tokens, request->hash_ids, request->hash_count,
                           err);
}

/* Requests before the first content were kept without blocks, since their size was not known. */
static int number_leading(struct cache_trace *trace, struct err *err)
{
    uint64_t leading = trace->request_count;

    trace->request_count = 0;
    for (uint64_t i = 0; i < leading; i++) {
        uint64_t prompt_tokens = trace->requests[i].prompt_tokens;
        struct cache_request known = trace->requests[i];

        if (cache_trace_add_unique(trace, prompt_tokens, prompt_tokens / trace->block_tokens, err) != 0)
            return -1;
        trace->requests[i].kind = known.kind;
        trace->requests[i].arrival_ns = known.arrival_ns;
    }
    return 0;
}

static int read_all(struct reading *reading, struct wl_source *source, struct err *err)
{
    struct cache_trace *trace = reading->trace;
    struct wl_request request;
    int got;

    while ((got = wl_next(source, &request, err)) == 1) {
        int status = 0;

        if (!reading->decided && !request.has_content) {
            status = cache_trace_add_unique(trace, request.prompt_tokens, 0, err);
        } else {
            if (!reading->decided) {
                decide(reading, &request);
                status = number_leading(trace, err);
            }
            if (status == 0)
                status = add_request(reading, &request, err);
        }
        if (status != 0 || set_kind(reading, &request, err) != 0)
            return -1;
    }
    return got;
}

int cache_trace_read(struct cache_trace *trace, struct wl_source *source, uint32_t block_tokens,
                     struct err *err)
{
    struct reading reading = {.trace = trace, .asked_tokens = block_tokens};
    int status = cache_trace_init(
        trace, block_tokens > 0 ? block_tokens : TOKEN_EXACT_BLOCK_TOKENS, err);

    if (status == 0 && !turns_init(&reading.turns))
        status = err_set(err, ERR_FAILED, "out of memory for the conversations");
    if (status == 0)
        status = read_all(&reading, source, err);
    turns_release(&reading.turns);
    free(reading.keys);
    if (status == 0 && trace->request_count > 0 && !reading.decided)
        status = err_set(err, ERR_INPUT, "%s: no content ids", wl_name(source));
    if (status != 0)
        cache_trace_release(trace);
    return status;
}
