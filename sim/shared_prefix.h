/* The infinite, token-exact prefix cache: a radix tree of all content ever filled. It bounds the hits of
 * every real cache, and says how many shared tokens block size, last-token rule and eviction lost.
 * Memory grows with the distinct content of the trace (about 50 bytes a distinct run of tokens). */
#ifndef PAGESIM_SHARED_PREFIX_H
#define PAGESIM_SHARED_PREFIX_H

#include <stdbool.h>

#include "workloads/wl_request.h"

struct shared_prefix;

/* NULL when memory is out. */
struct shared_prefix *shared_prefix_create(void);
void shared_prefix_destroy(struct shared_prefix *tree); /* NULL is fine */

/* A growing insertion of one sequence's content. */
struct shared_cursor {
    uint32_t node;         /* the inserted content ends in this node ... */
    uint64_t left;         /* ... so many tokens before its end, less than it has */
    struct shared_cursor *prev, *next; /* of those in the same node */
    size_t span;           /* next token to insert: span index ... */
    uint64_t span_tokens;  /* ... and tokens of it already inserted */
    uint64_t tokens;       /* inserted so far */
    void *owner;           /* the caller's */
};
/* The cursor must stay where it is in memory until it ends. */
void shared_cursor_begin(struct shared_prefix *tree, struct shared_cursor *cursor, void *owner);
/* Inserts the content up to upto_tokens (nothing when that is not beyond the cursor); spans is the same
 * content at every call and has at least upto_tokens tokens. -1 when memory is out. */
int shared_cursor_advance(struct shared_prefix *tree, struct shared_cursor *cursor,
                          const struct wl_span *spans, size_t span_count, uint64_t upto_tokens);
void shared_cursor_end(struct shared_prefix *tree, struct shared_cursor *cursor);

/* Told of a cursor that stands on the way of a search: may advance it, and says whether it did. */
struct shared_waker {
    bool (*wake)(void *context, struct shared_cursor *cursor);
    void *context;
};

/* How many leading tokens of the content are in the tree, at most max_tokens. Sequences may be behind with their
 * insertion: only those that stand on the way of the search could lead it on, so that only they are woken. NULL: none is. */
uint64_t shared_prefix_match(struct shared_prefix *tree, const struct wl_span *spans, size_t span_count,
                             uint64_t max_tokens, const struct shared_waker *waker);

#endif
