/* The content of a whole trace, packed for cache studies: every block reference as a dense 32-bit
 * number, in trace order. 4 bytes a reference and 40 a request, plus the id index while it is built. */
#ifndef PAGESIM_CACHE_TRACE_H
#define PAGESIM_CACHE_TRACE_H

#include "allocator/eviction.h"
#include "sim/id_index.h"
#include "workloads/err.h"
#include "workloads/wl_source.h"

struct cache_request {
    uint64_t end_block; /* its blocks are blocks[end_block of the one before .. end_block) */
    uint64_t prompt_tokens;
    uint64_t arrival_ns;
    struct kv_kind kind; /* category: turn of its conversation, 0: the first; the last category takes all later
                            ones. 0 where the trace has neither sessions nor parents */
};

struct cache_trace {
    uint32_t block_tokens;
    bool lower_bound; /* content is known in coarser pieces than blocks: hits may be missed */
    struct cache_request *requests;
    uint64_t request_count, request_room;
    uint32_t *blocks; /* numbers below unique_blocks, in order of first appearance */
    uint64_t block_count, block_room;
    uint32_t unique_blocks;
    uint64_t request_blocks_max;
    struct id_index index;
};

/* An empty trace; 0, or -1 with err. block_tokens > 0. */
int cache_trace_init(struct cache_trace *trace, uint32_t block_tokens, struct err *err);
void cache_trace_release(struct cache_trace *trace); /* a zeroed struct is fine */

/* Appends a request whose blocks have these ids. */
int cache_trace_add(struct cache_trace *trace, uint64_t prompt_tokens, const uint64_t *ids,
                    uint64_t n, struct err *err);
/* Appends a request whose content nobody else has: `n` blocks of its own. */
int cache_trace_add_unique(struct cache_trace *trace, uint64_t prompt_tokens, uint64_t n,
                           struct err *err);

/* Reads a source to its end. block_tokens 0: the trace's own ids as they are, or blocks of 16 where it
 * says its content token by token. Else, and if the trace's ids stand for another number of tokens,
 * blocks are derived from the content: the full ones by their chain of tokens and, as in traces that
 * give it an id, the last partial one. A trace without any content is ERR_INPUT 'no content ids'.
 * On failure *trace is released. */
int cache_trace_read(struct cache_trace *trace, struct wl_source *source, uint32_t block_tokens,
                     struct err *err);

/* One request of a trace, as loops over it see it. */
struct cache_view {
    const uint32_t *blocks;
    uint64_t n;
    uint64_t full; /* whole blocks of the prompt, whether or not the trace has ids for them */
    uint64_t prompt_tokens;
};

static inline struct cache_view cache_view_of(const struct cache_trace *trace, uint64_t i)
{
    uint64_t begin = i > 0 ? trace->requests[i - 1].end_block : 0;
    const struct cache_request *request = &trace->requests[i];

    return (struct cache_view){
        .blocks = trace->blocks + begin,
        .n = request->end_block - begin,
        .full = request->prompt_tokens / trace->block_tokens,
        .prompt_tokens = request->prompt_tokens,
    };
}

#endif
