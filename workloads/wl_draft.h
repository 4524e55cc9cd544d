/* A request under construction: what a reader or a generator fills. Its arrays are kept from one
 * request to the next, so that reading allocates nothing in the steady state. */
#ifndef PAGESIM_WL_DRAFT_H
#define PAGESIM_WL_DRAFT_H

#include "workloads/err.h"
#include "workloads/wl_array.h"
#include "workloads/wl_line.h"

struct wl_draft {
    struct wl_request request;
    struct wl_ids hash_ids, final_hash_ids;
    struct wl_spans prompt, output;
    struct wl_text text;                 /* strings, each with its '\0' */
    size_t id_at, session_at, parent_at; /* offsets in text, or WL_TEXT_NONE */
    uint64_t serial;    /* numbers the drafts of one source; makes unique tokens unique */
    bool has_arrival;
    bool has_final_ids; /* final_hash_ids was given, if only as an empty array */
    bool is_calendar;   /* arrival_ns counts from 1970, not from the start of the trace */
    const char *arrival_at; /* where the arrival stands in the line, for messages */
};

#define WL_TEXT_NONE SIZE_MAX

void wl_draft_clear(struct wl_draft *draft); /* empty again, memory kept */
void wl_draft_release(struct wl_draft *draft);
/* Points the request into the draft's arrays. Called once, when all is filled. */
void wl_draft_finish(struct wl_draft *draft);

/* Makes the content that hash_ids (and final_hash_ids) stand for, trace_block_tokens being set:
 * id h is the run h*k .. h*k+k-1. Where there are only ids of full blocks, the tail of the prompt
 * is unique to the request. Where the final ids are known, they also give the tail and the
 * output: the block that prompt and output share has one id. Counts must have been checked.
 * Returns -1 when out of memory. */
int wl_draft_hash_content(struct wl_draft *draft);
/* Checks the counts of ids against the tokens and the final ids against the prompt's; reports at
 * `at`, `final_at`. */
int wl_draft_check_hashes(const struct wl_draft *draft, const struct wl_line *line, const char *at,
                          const char *final_at);
/* Tokens of all spans; WL_NONE when they exceed WL_TOKENS_MAX. */
uint64_t wl_spans_tokens(const struct wl_spans *spans);

#endif
