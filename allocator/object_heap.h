/* Objects 0 .. objects-1 by rank, least first, with removal from the middle: O(log n) a call. */
#ifndef PAGESIM_OBJECT_HEAP_H
#define PAGESIM_OBJECT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct object_heap {
    struct heap_entry *entries; /* [count], a 4-ary heap */
    uint32_t *place_of;         /* object → its entry's index + 1; 0: outside */
    uint32_t objects, count;
};

bool object_heap_init(struct object_heap *heap, uint32_t objects); /* false: out of memory */
void object_heap_release(struct object_heap *heap);                /* a zeroed struct is fine */
bool object_heap_has(const struct object_heap *heap, uint32_t object);
/* The object, outside, enters; ranks are compared by major, then by minor. Equal ones have no order
 * that may be relied on, so callers make minor unique. */
void object_heap_push(struct object_heap *heap, uint32_t object, uint64_t major, uint64_t minor);
void object_heap_remove(struct object_heap *heap, uint32_t object);
/* The object of least rank; count > 0. */
uint32_t object_heap_top(const struct object_heap *heap);
uint64_t object_heap_top_major(const struct object_heap *heap);
bool object_heap_sound(const struct object_heap *heap); /* O(objects) */

#endif
