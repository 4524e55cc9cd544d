/* Content key -> block, by open addressing over a table made once. Several blocks may carry one key; they
 * form a ring in the order in which they got it, and a look-up returns the first. Keys are hashes already, so
 * their low bits choose the slot as they are. */
#ifndef PAGESIM_BLOCK_INDEX_H
#define PAGESIM_BLOCK_INDEX_H

#include "allocator/kv_policy.h"

/* What a caching policy knows of a block, 32 bytes: two to a cache line. */
struct keyed_block {
    uint64_t key;      /* valid with BLOCK_KEYED */
    uint32_t refs;     /* sequences that hold it; 0: it is in the free queue */
    uint32_t flags;
    uint32_t next, prev; /* free queue, see block_queue.c for the encoding */
    kv_block twin_next, twin_prev; /* ring of the blocks with the same key; valid with BLOCK_KEYED */
};

enum {
    BLOCK_KEYED = 1 << 0, /* carries a key */
    BLOCK_FIRST = 1 << 1, /* is the one that a look-up of its key returns */
};

struct block_index {
    uint64_t *slots; /* low bits of the key << 32 | block; 0: empty */
    uint64_t mask;
    struct keyed_block *blocks; /* [block_count + 1], of the owner */
};

enum { BLOCK_INDEX_BLOCKS_MAX = INT32_MAX };

/* For up to block_count <= BLOCK_INDEX_BLOCKS_MAX keyed blocks, at most a quarter full (half, beyond 2^30). False when memory is out. */
bool block_index_init(struct block_index *index, struct keyed_block *blocks, uint32_t block_count);
void block_index_release(struct block_index *index);

/* The block that got this key first among those that carry it, or KV_BLOCK_NONE. */
kv_block block_index_find(const struct block_index *index, uint64_t key);
/* Gives a block without a key one. */
void block_index_add(struct block_index *index, kv_block block, uint64_t key);
/* Takes the key from a block. */
void block_index_remove(struct block_index *index, kv_block block);

/* Starts loading the slot of a key; and the block that a find of it will look at. */
static inline void block_index_prefetch_slot(const struct block_index *index, uint64_t key)
{
    __builtin_prefetch(&index->slots[key & index->mask]);
}

static inline void block_index_prefetch_block(const struct block_index *index, uint64_t key)
{
    __builtin_prefetch(&index->blocks[(uint32_t)index->slots[key & index->mask]]);
}

/* NULL when sound; also counts the blocks that can be reached. O(slots). */
const char *block_index_check(const struct block_index *index, uint64_t *keyed_blocks);

#endif
