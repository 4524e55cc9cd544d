/* Free blocks in first-in first-out order, and reference counts: vLLM's free queue with caching off.
 * Blocks are numbered 1 .. blocks; at the start the queue is 1, 2, ..., blocks. */
#ifndef PAGESIM_BLOCK_RING_H
#define PAGESIM_BLOCK_RING_H

#include "allocator/kv_policy.h"

struct block_ring {
    uint32_t *refs;  /* [blocks + 1] sequences that hold the block */
    kv_block *slots; /* [capacity] blocks that were used and came back, oldest at head */
    uint64_t capacity; /* power of two */
    uint64_t head, tail; /* positions, ever growing; slot = position & (capacity - 1) */
    uint32_t fresh;  /* blocks fresh .. blocks were never taken; they stand before all others, so they
                        need no slots and an untouched pool costs no memory */
    uint32_t blocks;
    uint32_t free_blocks;
};

/* False when memory is out. 0 < blocks < UINT32_MAX. */
bool block_ring_init(struct block_ring *ring, uint32_t blocks);
void block_ring_release(struct block_ring *ring);

/* Takes count <= free_blocks blocks; each gets the reference count 1. */
void block_ring_take(struct block_ring *ring, kv_block *out, uint32_t count);
/* Drops one reference of each, from the last to the first; blocks that nobody holds any more join the tail
 * in that order. Null entries are skipped. */
void block_ring_give(struct block_ring *ring, const kv_block *blocks, uint32_t count);

/* The queue in order; writes at most cap entries. */
uint64_t block_ring_queue(const struct block_ring *ring, kv_block *out, uint64_t cap);
const char *block_ring_check(const struct block_ring *ring);

#endif
