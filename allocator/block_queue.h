/* The pool of a caching policy: a free queue with keyed blocks in it, reference counts, and the index of keys. Blocks are numbered 1 .. blocks; at the start the queue is 1, 2, ..., blocks. A block
 * is in the queue exactly when nobody holds it; it keeps its key there until it is popped.
 *
 * With an eviction order beside the queue, blocks that nobody holds and that have a key are in the order instead.
 * Blocks without a key are always taken first. */
#ifndef PAGESIM_BLOCK_QUEUE_H
#define PAGESIM_BLOCK_QUEUE_H

#include "allocator/block_index.h"
#include "allocator/eviction.h"
#include "allocator/kv_policy.h"

/* The free queue in an array, with holes where blocks were taken out of its middle. */
struct queue_ring {
    uint32_t *entries; /* encoded, see block_queue.c */
    uint32_t mask;     /* place = position & mask; one less than a power of two */
};

struct block_queue {
    struct keyed_block *nodes; /* [blocks + 1]; node 0 is the null block's */
    struct block_index index;
    struct queue_ring ring;
    uint64_t head, tail; /* positions in the ring, modulo 2^64 */
    uint32_t blocks;
    uint32_t free_blocks;   /* in the queue, keyed ones and pinned ones included */
    uint32_t cached_blocks; /* of these, with a key */
    uint32_t keyed_blocks;  /* with a key, held or not */
    uint32_t distinct_keys; /* different keys among these */
    uint64_t duplicate_keys; /* since the start: keys given while another block carried the same */
    uint64_t evicted_blocks; /* since the start: keys lost to other use */
    uint64_t generation;    /* changes whenever a key is added or lost */
    bool unkeyed_to_head;   /* rules 2026-08: freed blocks without a key are the next to be taken */
    struct kv_observer observer;
    struct kv_eviction *order; /* its object i is block i + 1; NULL: the queue is the order */
};

/* False when memory is out. observer may be NULL. */
bool block_queue_init(struct block_queue *queue, uint32_t blocks, bool unkeyed_to_head,
                      const struct kv_observer *observer);
void block_queue_release(struct block_queue *queue);
/* From now on, before any block was taken, keyed blocks are evicted in this order. False when memory is out. */
bool block_queue_use_order(struct block_queue *queue, const struct kv_eviction_ops *ops, const struct kv_value *values);

/* Blocks that nobody holds and that may be taken: all but the pinned ones. */
static inline uint32_t block_queue_obtainable(const struct block_queue *queue)
{
    return queue->free_blocks - (queue->order != NULL ? queue->order->pinned : 0);
}

/* Whether a block with a key counts among these. */
static inline bool block_queue_is_obtainable(const struct block_queue *queue, kv_block block)
{
    const struct kv_eviction *order = queue->order;
    return queue->nodes[block].refs == 0 &&
           (order == NULL || order->pinned == 0 || !order->ops->is_pinned(order, block - 1));
}

/* Whether a waiting request will look for the key, for all blocks that carry it. The order has `expect`. */
void block_queue_expect(struct block_queue *queue, uint64_t key, bool expected);

/* Pops count <= obtainable blocks off the head; keyed ones lose their key. Each gets the count 1. */
void block_queue_take(struct block_queue *queue, kv_block *out, uint32_t count);
/* Drops one reference of each, from the last to the first; blocks that nobody holds any more join the
 * queue: keyed ones at the tail, in that order; the others too, or at the head as a group, the first of
 * them foremost. Null entries are skipped. */
void block_queue_give(struct block_queue *queue, const kv_block *blocks, uint32_t count);
/* One more holder of a block, which leaves the queue if it is there. */
void block_queue_hold(struct block_queue *queue, kv_block block);
/* Gives a held block a key, unless it has one. */
void block_queue_set_key(struct block_queue *queue, kv_block block, uint64_t key);

/* The same for count blocks, in order, which are a sequence's from number `first` on: where that is above 0,
 * blocks[-1] is the one before. */
void block_queue_set_keys(struct block_queue *queue, const kv_block *blocks, const uint64_t *keys,
                          uint32_t count, uint32_t first);

/* Of orders that must know the future: of these keys' blocks those that a look-up finds and nobody holds are told their next
 * use anew, by the observer's word, or, without `useful`, that there is none. */
void block_queue_foresee(struct block_queue *queue, const uint64_t *keys, uint64_t count, bool useful);

/* How many leading keys are those of some block; writes these blocks to out and counts the unheld ones. */
uint32_t block_queue_find_chain(const struct block_queue *queue, const uint64_t *keys, uint32_t count,
                                kv_block *out, uint32_t *unheld);

/* The queue in order, then, in order of number, what is in the eviction order; writes at most cap entries. */
uint64_t block_queue_list(const struct block_queue *queue, kv_block *out, uint64_t cap);
const char *block_queue_check(const struct block_queue *queue);

#endif
