/* The infinite, token-exact prefix cache: a radix tree of all content ever filled. It bounds the hits of
 * every real cache, and says how many shared tokens block size, last-token rule and eviction lost.
 * Memory grows with the distinct content of the trace (about 100 bytes a distinct run of tokens). */
#ifndef PAGESIM_SHARED_PREFIX_H
#define PAGESIM_SHARED_PREFIX_H

#include "workloads/wl_request.h"

struct shared_prefix;

/* NULL when memory is out. */
struct shared_prefix *shared_prefix_create(void);
void shared_prefix_destroy(struct shared_prefix *tree); /* NULL is fine */

/* How many leading tokens of the content are in the tree, at most max_tokens. */
uint64_t shared_prefix_match(const struct shared_prefix *tree, const struct wl_span *spans,
                             size_t span_count, uint64_t max_tokens);

/* A growing insertion of one sequence's content. */
struct shared_cursor {
    uint32_t node;         /* the inserted content ends in this node ... */
    uint64_t left;         /* ... so many tokens before its end */
    size_t span;           /* next token to insert: span index ... */
    uint64_t span_tokens;  /* ... and tokens of it already inserted */
    uint64_t tokens;       /* inserted so far */
};
void shared_cursor_begin(struct shared_prefix *tree, struct shared_cursor *cursor);
/* Inserts the content up to upto_tokens (nothing when that is not beyond the cursor); spans is the same
 * content at every call and has at least upto_tokens tokens. -1 when memory is out. */
int shared_cursor_advance(struct shared_prefix *tree, struct shared_cursor *cursor,
                          const struct wl_span *spans, size_t span_count, uint64_t upto_tokens);
void shared_cursor_end(struct shared_prefix *tree, struct shared_cursor *cursor);

#endif
