/* Content key -> block: a table of small buckets, made once. Several blocks may carry one key; they form a ring in the
 * order in which they got it, and only the first, which a look-up returns, stands in the table. Keys are hashes already,
 * so their low bits choose the bucket as they are. */
#ifndef PAGESIM_BLOCK_INDEX_H
#define PAGESIM_BLOCK_INDEX_H

#include <assert.h>

#include "allocator/kv_policy.h"

/* What a caching policy knows of a block, 32 bytes: two to a cache line. */
struct keyed_block {
    uint64_t key;      /* valid with BLOCK_KEYED */
    uint32_t refs;     /* sequences that hold it; 0: it is in the free queue */
    uint32_t flags;
    uint32_t place;    /* in the free queue, see block_queue.c for the encoding */
    kv_block overflow_next; /* 0: the last that its bucket had no room for */
    kv_block twin_next, twin_prev; /* ring of the blocks with the same key; valid with BLOCK_KEYED */
};

/* Flags; above them, from bit BLOCK_PLACE_SHIFT on, stands which of its bucket's places the first of a key has. */
enum {
    BLOCK_KEYED = 1 << 0, /* carries a key */
    BLOCK_FIRST = 1 << 1, /* is the one that a look-up of its key returns */
    BLOCK_PLACE_SHIFT = 8,
};

enum { BUCKET_BLOCKS = 5 };

/* Half a cache line. A byte of each key tells with which blocks a search need not bother, all five at once: no loop
 * whose end the processor has to guess, and nothing moves when a key goes. */
struct index_bucket {
    uint64_t tags;     /* byte i: of the key of blocks[i]; 0: no block there, whatever blocks[i] says */
    kv_block overflow; /* first of those that had no room, linked by overflow_next; 0: none */
    kv_block blocks[BUCKET_BLOCKS];
};

struct block_index {
    struct index_bucket *buckets;
    uint64_t mask;
    struct keyed_block *blocks; /* [block_count + 1], of the owner */
};

enum { BLOCK_INDEX_BLOCKS_MAX = INT32_MAX };

/* For up to block_count <= BLOCK_INDEX_BLOCKS_MAX keyed blocks. False when memory is out. */
bool block_index_init(struct block_index *index, struct keyed_block *blocks, uint32_t block_count);
void block_index_release(struct block_index *index);

/* The block that got this key first among those that carry it, or KV_BLOCK_NONE. */
static inline kv_block block_index_find(const struct block_index *index, uint64_t key);
/* Gives a block without a key one. Returns whether no other block carries it. */
static inline bool block_index_add(const struct block_index *index, kv_block block, uint64_t key);
/* Takes the key from a block; its field keeps the value. Returns whether no other block carries it. */
static inline bool block_index_remove(const struct block_index *index, kv_block block);

/* NULL when sound; also counts the blocks that can be reached. O(buckets + blocks). */
const char *block_index_check(const struct block_index *index, uint64_t *keyed_blocks);

/* --- each of these runs once a block of the simulation: inline, with the rare cases elsewhere --------------- */

static inline struct index_bucket *index_bucket_of(const struct block_index *index, uint64_t key)
{
    return &index->buckets[key & index->mask];
}

/* Never 0, which marks a free place. */
static inline uint64_t index_tag_of(uint64_t key)
{
    uint64_t tag = key >> 56;
    return tag + (tag == 0);
}

/* The high bit of each byte that equals the tag: adding 0x7f sets it in all others, and carries into none. */
static inline uint64_t index_places_with(uint64_t tags, uint64_t tag)
{
    const uint64_t each_byte = UINT64_C(0x0101010101), low_bits = 0x7f * each_byte;
    uint64_t differences = tags ^ tag * each_byte;
    return ~(((differences & low_bits) + low_bits) | differences) & 0x80 * each_byte;
}

static inline unsigned index_lowest(uint64_t places)
{
    return (unsigned)__builtin_ctzll(places) / 8;
}

/* Starts loading the bucket of a key; and, once that is there, the block that a find of the key will look at. */
static inline void block_index_prefetch_bucket(const struct block_index *index, uint64_t key)
{
    __builtin_prefetch(index_bucket_of(index, key));
}

static inline void block_index_prefetch_block(const struct block_index *index, uint64_t key)
{
    const struct index_bucket *bucket = index_bucket_of(index, key);
    uint64_t places = index_places_with(bucket->tags, index_tag_of(key));
    if (places != 0)
        __builtin_prefetch(&index->blocks[bucket->blocks[index_lowest(places)]]);
}

/* By value: a loop's own copy of the index stays in registers. */
kv_block block_index_find_overflow(struct block_index index, uint64_t key);
void block_index_enter_overflow(struct block_index index, kv_block block);
void block_index_leave_overflow(struct block_index index, kv_block block);
void block_index_join_ring(struct block_index index, kv_block block, kv_block first);
void block_index_leave_ring(struct block_index index, kv_block block);

static inline kv_block block_index_find(const struct block_index *index, uint64_t key)
{
    const struct index_bucket *bucket = index_bucket_of(index, key);
    for (uint64_t places = index_places_with(bucket->tags, index_tag_of(key)); places != 0; places &= places - 1) {
        kv_block block = bucket->blocks[index_lowest(places)];
        if (index->blocks[block].key == key)
            return block;
    }
    return bucket->overflow == 0 ? KV_BLOCK_NONE : block_index_find_overflow(*index, key);
}

__attribute__((always_inline)) static inline bool block_index_add(const struct block_index *index, kv_block block, uint64_t key)
{
    struct index_bucket *bucket = index_bucket_of(index, key);
    struct keyed_block *b = &index->blocks[block];
    assert((b->flags & BLOCK_KEYED) == 0);
    uint64_t tag = index_tag_of(key), tags = bucket->tags;
    b->key = key;
    if ((index_places_with(tags, tag) | bucket->overflow) != 0) {
        kv_block first = block_index_find(index, key);
        if (first != KV_BLOCK_NONE) {
            block_index_join_ring(*index, block, first);
            return false;
        }
    }
    b->twin_next = b->twin_prev = block;
    uint64_t places = index_places_with(tags, 0);
    if (places == 0) {
        block_index_enter_overflow(*index, block);
        return true;
    }
    unsigned place = index_lowest(places);
    bucket->tags = tags | tag << 8 * place;
    bucket->blocks[place] = block;
    b->flags = BLOCK_KEYED | BLOCK_FIRST | place << BLOCK_PLACE_SHIFT;
    return true;
}

static inline bool block_index_remove(const struct block_index *index, kv_block block)
{
    struct keyed_block *b = &index->blocks[block];
    assert((b->flags & BLOCK_KEYED) != 0);
    if (b->twin_next != block) {
        block_index_leave_ring(*index, block);
        return false;
    }
    unsigned place = b->flags >> BLOCK_PLACE_SHIFT;
    if (place < BUCKET_BLOCKS)
        index_bucket_of(index, b->key)->tags &= ~(UINT64_C(0xff) << 8 * place);
    else
        block_index_leave_overflow(*index, block);
    b->flags = 0;
    return true;
}

#endif
