/* A request as a trace or a generator gives it. */
#ifndef PAGESIM_WL_REQUEST_H
#define PAGESIM_WL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WL_NONE UINT64_MAX /* "the trace does not say" */

/* Largest token count of one request, and largest time: beyond these a value is a mistake. */
#define WL_TOKENS_MAX ((uint64_t)1 << 32)
#define WL_TIME_NS_MAX ((uint64_t)1 << 62)
#define WL_SAMPLES_MAX 65536

/* A run of tokens: first, first + 1, ... of a name space. Two tokens are equal exactly if name space
 * and number are. Token ids and content ids are in space 0 (id h of k tokens is the run
 * h*k .. h*k+k-1; where that would pass 2^63, h itself is the space, first is 0). */
#define WL_SPACE_UNIQUE 1 /* tokens that occur in one request only (a prompt's tail without an id) */
struct wl_span {
    uint64_t space;
    uint64_t first;
    uint64_t count; /* > 0 */
};

struct wl_request {
    uint64_t index;         /* position in the trace, from 0, after sorting and cutting */
    const char *id;         /* as the trace names it, or NULL: then the index is its name */
    uint64_t arrival_ns;    /* from the trace's first arrival for calendar stamps, else as given */
    uint64_t prompt_tokens; /* L */
    uint64_t output_tokens; /* O */
    uint64_t max_tokens;    /* declared output limit, or WL_NONE */
    uint64_t abort_ns;      /* absolute time at which the client leaves, or WL_NONE */
    int64_t priority;       /* smaller is served first; 0 when absent */
    uint32_t samples;       /* n >= 1 */
    const char *session;    /* or NULL */
    const char *parent;     /* id of the request whose conversation it continues, or NULL */

    /* Content, when the trace has it. Spans cover exactly prompt_tokens; output spans cover at most
     * output_tokens, what is not covered is unique to this request and sample. */
    bool has_content;
    const struct wl_span *prompt;
    size_t prompt_spans;
    const struct wl_span *output;
    size_t output_spans;

    /* The ids as they stand in the trace, for content-only studies; hash_count 0 when absent. */
    uint32_t trace_block_tokens; /* tokens one id stands for */
    const uint64_t *hash_ids;    /* of the prompt; the last may stand for a partial block */
    size_t hash_count;
    const uint64_t *final_hash_ids; /* of the full blocks that exist at the end; or NULL */
    size_t final_hash_count;
};
/* All pointers belong to the source and are valid until its next call. */

#endif
