/* A request's content as one key a block, for any block size.
 *
 * The key of block i stands for the tokens of block i and of all blocks before it, as vLLM's chained
 * block hash does: equal keys mean equal prefixes. It depends on the tokens alone, never on how a
 * trace cut them into spans, so a trace with ids of 512 tokens and the same trace with token ids
 * have the same keys at every block size. 64 bits: among 10^7 different blocks two collide with
 * probability 3e-6. No allocation; not thread-safe per cursor. */
#ifndef PAGESIM_CONTENT_H
#define PAGESIM_CONTENT_H

#include "workloads/wl_request.h"

/* Where the keying of one sequence stands. Plain data of fixed size: copying it forks the sequence
 * (parallel samples share the prompt's keys and part ways in the output). */
struct content_cursor {
    const struct wl_span *spans; /* the caller's, must live until used up */
    size_t spans_left;
    uint64_t used_tokens;   /* of *spans */
    uint64_t key;           /* of the last complete block; folded with the partial block's closed runs */
    struct wl_span run;     /* the partial block's last run, not yet folded; count 0: none */
    uint32_t block_tokens;  /* > 0 */
    uint32_t filled_tokens; /* of the partial block, < block_tokens */
};

/* An empty sequence. block_tokens > 0. */
void content_begin(struct content_cursor *cursor, uint32_t block_tokens);
/* Gives the next n spans (every count > 0). Those given before must be used up: content_next
 * returned less than it was asked for. */
void content_feed(struct content_cursor *cursor, const struct wl_span *spans, size_t n);
/* Writes the keys of the next complete blocks, at most max_keys, and returns how many. A rest that
 * fills no block waits in the cursor for more spans. Fewer than max_keys: all spans are used up. */
uint64_t content_next(struct content_cursor *cursor, uint64_t *keys, uint64_t max_keys);

/* The keys of the complete blocks of n spans, at most max_keys, from the beginning. Returns how many
 * it wrote: min(tokens / block_tokens, max_keys). */
uint64_t content_keys(const struct wl_span *spans, size_t n, uint32_t block_tokens, uint64_t *keys,
                      uint64_t max_keys);

/* The key of a last, partial block (a key of its own kind: never equal to a complete block's), or of
 * no tokens at all after the last complete block. For studies that count partial blocks. */
uint64_t content_partial_key(const struct content_cursor *cursor);

#endif
