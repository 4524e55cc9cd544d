/* The contract of an eviction order: which cached block goes next.
 *
 * An order knows objects 0 .. objects-1 (physical blocks of a pool, places of a cache) and the
 * content keys they carry, nothing else. Its owner decides when something must go. An object that
 * somebody uses is outside the order; one that nobody uses is inside and may be evicted:
 *
 *     insert -> (in use) -> give -> (evictable) -> take -> (in use) -> give -> ... -> evict
 *
 * Words that the orders share: a *hit* is a take or a touch. An object that is in use keeps its place
 * where a rule knows places (fifo, sieve), and loses it where the last use decides (lru). An object
 * enters a queue when it is given back for the first time, not when it is filled: the owner gives a
 * prompt's last block back first, so that among blocks of one age the tail goes before its prefix.
 *
 * create() makes everything; no later call allocates or fails. Not thread-safe. A new order is one
 * new file in allocator/eviction/ that defines kv_eviction_NAME_ops. */
#ifndef PAGESIM_EVICTION_H
#define PAGESIM_EVICTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/kv_option.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KV_EVICTION_ABI_VERSION 3u

struct kv_eviction {
    const struct kv_eviction_ops *ops;
    uint32_t count; /* objects inside the order; kept by the order */
    uint32_t pinned; /* of these, may not be evicted now; kept by orders that pin */
    uint32_t queue_requests; /* of so many waiting requests, the first ones, it wants to be told: expect is there */
};

#define KV_OBJECT_NONE UINT32_MAX

enum kv_eviction_flags {
    /* May evict a block while blocks that continue it stay: these can hit no more until it is back.
     * Orders without the mark never do when owners give the last block of a chain back first. */
    KV_EVICTION_ORPHANS = 1 << 0,
    /* A larger cache always holds what a smaller one holds, the most recently given: miss-ratio
     * curves come from one pass. */
    KV_EVICTION_STACK = 1 << 1,
    /* Must be told the future, through foresee. In `cache` a bound; in `run`, where what is evicted decides what runs when, a
     * heuristic. */
    KV_EVICTION_CLAIRVOYANT = 1 << 2,
    /* Uses more of a block than its key and its uses: its place in its prompt, or the kind of request. It cannot order a
     * host tier, where evicted blocks arrive with their keys alone. */
    KV_EVICTION_STRUCTURE = 1 << 3,
    /* Of content that was never inserted before, begin, miss and insert may come at any time between the filling of the block
     * and the first give of a block of its sequence, whatever is called for other objects in between: all that follows is the
     * same. The engine then need not look at every request whenever a block fills. Wrong where a filled block counts
     * before anybody gives it back. */
    KV_EVICTION_LATE_KEYS = 1 << 4,
};

#define KV_EVICTION_CATEGORIES 16 /* kinds of requests that an order can tell apart */

/* What an order may know of a request. */
struct kv_kind {
    int64_t priority;  /* as the trace and the scheduler count: smaller is more urgent, 0 by default */
    uint32_t category; /* < KV_EVICTION_CATEGORIES: turn of its conversation, 0 the first, the last all later ones */
};

/* What an object was filled with. */
struct kv_content {
    uint64_t key;
    uint32_t parent; /* the object in use with the block before it in its prompt, or KV_OBJECT_NONE */
    uint32_t depth;  /* blocks before it in its prompt */
};

/* Required unless marked optional. */
struct kv_eviction_ops {
    uint32_t flags; /* enum kv_eviction_flags */
    const char *name;
    const char *summary; /* one line */
    const char *source;  /* paper or engine whose rule it is */
    const char *description; /* what it does step by step, costs, what it shows; a paragraph, or NULL */
    const struct kv_option *const *options; /* NULL-terminated; may be NULL */

    /* An empty order for at most `objects` objects, > 0 and < 2^31. values[] is parallel to options. NULL: out of memory. */
    struct kv_eviction *(*create)(uint32_t objects, const struct kv_value *values);
    void (*destroy)(struct kv_eviction *order); /* NULL is fine */

    /* Optional. The calls that follow are for a request of this kind; before the first, for the zeroed kind.
     * A policy under the engine says it before hits and fillings, not before it gives blocks back. */
    void (*begin)(struct kv_eviction *order, struct kv_kind kind);
    /* Optional. The content was looked for and is not there; the evictions that follow make room for
     * it, then it is inserted. Orders that learn from what they evicted do it here. */
    void (*miss)(struct kv_eviction *order, uint64_t key);
    /* Optional. The object, in use, now carries this content: a miss was filled. */
    void (*insert)(struct kv_eviction *order, uint32_t object, const struct kv_content *content);
    /* Clairvoyant orders only. The object's next use is the next-th, UINT64_MAX: it has none. Told
     * before the object is given or touched; when the future of an object inside changes, it is told and touched. */
    void (*foresee)(struct kv_eviction *order, uint32_t object, uint64_t next);
    /* Nobody uses the object any more. */
    void (*give)(struct kv_eviction *order, uint32_t object);
    /* A hit: somebody uses the object again. */
    void (*take)(struct kv_eviction *order, uint32_t object);
    /* Optional. One more request holds an object that is in use. */
    void (*share)(struct kv_eviction *order, uint32_t object);
    /* A hit on an object inside the order that is over at once: take and give in one call. */
    void (*touch)(struct kv_eviction *order, uint32_t object);
    /* Removes the next victim, which is not pinned, and returns it. count > pinned. */
    uint32_t (*evict)(struct kv_eviction *order);
    /* Optional. What evict would return now. Changes nothing; count > pinned. */
    uint32_t (*next_victim)(const struct kv_eviction *order);

    /* Orders that pin have these three, others none. It is now_ns, never less than before: pins that end by then end. */
    void (*clock)(struct kv_eviction *order, uint64_t now_ns);
    /* When the first pin of an object inside ends, UINT64_MAX: none is pinned. */
    uint64_t (*next_unpin)(const struct kv_eviction *order);
    /* Of an object inside. */
    bool (*is_pinned)(const struct kv_eviction *order, uint32_t object);
    /* Orders with queue_requests. Whether, from now on, one of the first waiting requests will look for what the object, in
     * use or inside, carries. After insert: no. */
    void (*expect)(struct kv_eviction *order, uint32_t object, bool expected);

    /* Optional. This key will be missed or inserted in a moment: the order may start to load what it will look at. Changes
     * nothing. */
    void (*soon)(const struct kv_eviction *order, uint64_t key);
    /* Optional. Walks the order; NULL when it is sound, else what is wrong. O(objects). */
    const char *(*check)(const struct kv_eviction *order);
};

/* The orders in allocator/eviction/, in name order, then those of plug-ins. */
size_t kv_eviction_count(void);
const struct kv_eviction_ops *kv_eviction_at(size_t i);
const struct kv_eviction_ops *kv_eviction_find(const char *name); /* NULL when unknown */
/* An order of `objects` objects; those of plug-ins under the checks below. values: NULL, the defaults of its options.
 * NULL: out of memory. */
struct kv_eviction *kv_eviction_create(const struct kv_eviction_ops *ops, uint32_t objects, const struct kv_value *values);

/* "lru|2q|...": all orders as choices of an option; and the order of a choice, NULL for the first, which a free queue makes by
 * itself. */
extern char kv_eviction_choices[];
const struct kv_eviction_ops *kv_eviction_choice(uint64_t index);

/* The order that a policy's parsed options choose; NULL: none of them chooses one. */
const struct kv_eviction_ops *kv_eviction_of(const struct kv_option *const *options, const struct kv_value *values);

/* Adds a plug-in's order, whose table and name are sound and new, before threads start. False when there is no room. */
#define KV_EVICTION_ADDED_MAX 32
bool kv_eviction_add(const struct kv_eviction_ops *ops);

/* An order that verifies another after every call: that it counts right, evicts what is inside and what it said it would, and gives nothing
 * out twice. handler: called at the first violation with the call's number and name and what is wrong; NULL prints to stderr and
 * aborts. NULL: out of memory. */
typedef void (*kv_eviction_handler)(void *context, uint64_t call_number, const char *call, const char *order_name,
                                    const char *what);
struct kv_eviction *kv_eviction_check_create(const struct kv_eviction_ops *ops, uint32_t objects,
                                             const struct kv_value *values, kv_eviction_handler handler,
                                             void *context);

#ifdef __cplusplus
}
#endif

#endif
