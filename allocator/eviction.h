/* The contract of an eviction order: which cached block goes next.
 *
 * An order knows objects 0 .. objects-1 (physical blocks of a pool, places of a cache) and the
 * content keys they carry, nothing else. Its owner decides when something must go. An object that
 * somebody uses is outside the order; one that nobody uses is inside and may be evicted:
 *
 *     insert -> (in use) -> give -> (evictable) -> take -> (in use) -> give -> ... -> evict
 *
 * create() makes everything; no later call allocates or fails. Not thread-safe. A new order is one
 * new file in allocator/eviction/ that defines kv_eviction_NAME_ops. */
#ifndef PAGESIM_EVICTION_H
#define PAGESIM_EVICTION_H

#include <stddef.h>
#include <stdint.h>

struct kv_eviction {
    const struct kv_eviction_ops *ops;
    uint32_t count; /* objects inside the order; kept by the order */
};

/* Required unless marked optional. */
struct kv_eviction_ops {
    const char *name;
    const char *summary; /* one line */
    const char *source;  /* paper or engine whose rule it is */

    /* An empty order for at most `objects` objects, > 0 and < 2^31. NULL: out of memory. */
    struct kv_eviction *(*create)(uint32_t objects);
    void (*destroy)(struct kv_eviction *order); /* NULL is fine */

    /* Optional. The object, in use, now carries the content `key`: a miss was filled. Orders that
     * remember what they evicted recognise it here. */
    void (*insert)(struct kv_eviction *order, uint32_t object, uint64_t key);
    /* Nobody uses the object any more. */
    void (*give)(struct kv_eviction *order, uint32_t object);
    /* A hit: somebody uses the object again. */
    void (*take)(struct kv_eviction *order, uint32_t object);
    /* A hit on an object inside the order that is over at once: take and give in one call. */
    void (*touch)(struct kv_eviction *order, uint32_t object);
    /* Removes the next victim and returns it. count > 0. */
    uint32_t (*evict)(struct kv_eviction *order);
    /* Optional. What evict would return now. Changes nothing; count > 0. */
    uint32_t (*next_victim)(const struct kv_eviction *order);

    /* Optional. Walks the order; NULL when it is sound, else what is wrong. O(objects). */
    const char *(*check)(const struct kv_eviction *order);
};

/* The orders in allocator/eviction/, in name order. */
size_t kv_eviction_count(void);
const struct kv_eviction_ops *kv_eviction_at(size_t i);
const struct kv_eviction_ops *kv_eviction_find(const char *name); /* NULL when unknown */

#endif
