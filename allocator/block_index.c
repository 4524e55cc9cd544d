#include "allocator/block_index.h"

#include <assert.h>

#include "allocator/reserve.h"
#include "allocator/vm_area.h"

bool block_index_init(struct block_index *index, struct keyed_block *blocks, uint32_t block_count)
{
    assert(block_count > 0 && block_count <= BLOCK_INDEX_BLOCKS_MAX);
    index->blocks = blocks;
    /* One or two keys a bucket on average when all blocks have one: of 100 buckets one at most is too small. */
    index->mask = reserve_pow2_ceil((uint64_t)block_count / 2 + 1) - 1;
    index->buckets = vm_area_map_dense(index->mask + 1, sizeof *index->buckets);
    return index->buckets != NULL;
}

void block_index_release(struct block_index *index)
{
    vm_area_unmap(index->buckets, index->mask + 1, sizeof *index->buckets);
    index->buckets = NULL;
}

kv_block block_index_find_overflow(struct block_index index, uint64_t key)
{
    kv_block block = index_bucket_of(&index, key)->overflow;
    while (block != 0 && index.blocks[block].key != key)
        block = index.blocks[block].overflow_next;
    return block != 0 ? block : KV_BLOCK_NONE;
}

static uint32_t flags_at(unsigned place)
{
    return BLOCK_KEYED | BLOCK_FIRST | place << BLOCK_PLACE_SHIFT;
}

void block_index_enter_overflow(struct block_index index, kv_block block)
{
    struct keyed_block *b = &index.blocks[block];
    struct index_bucket *bucket = index_bucket_of(&index, b->key);
    b->overflow_next = bucket->overflow;
    bucket->overflow = block;
    b->flags = flags_at(BUCKET_BLOCKS);
}

/* What names this block in the list of its bucket. */
static kv_block *overflow_link(const struct block_index *index, kv_block block)
{
    kv_block *link = &index_bucket_of(index, index->blocks[block].key)->overflow;
    while (*link != block) {
        assert(*link != 0);
        link = &index->blocks[*link].overflow_next;
    }
    return link;
}

void block_index_leave_overflow(struct block_index index, kv_block block)
{
    *overflow_link(&index, block) = index.blocks[block].overflow_next;
}

void block_index_join_ring(struct block_index index, kv_block block, kv_block first)
{
    struct keyed_block *blocks = index.blocks;
    kv_block last = blocks[first].twin_prev;
    blocks[block].flags = BLOCK_KEYED;
    blocks[block].twin_next = first;
    blocks[block].twin_prev = last;
    blocks[last].twin_next = block;
    blocks[first].twin_prev = block;
}

void block_index_leave_ring(struct block_index index, kv_block block)
{
    struct keyed_block *blocks = index.blocks;
    struct keyed_block *b = &blocks[block], *heir = &blocks[b->twin_next];
    if ((b->flags & BLOCK_FIRST) != 0) {
        unsigned place = b->flags >> BLOCK_PLACE_SHIFT;
        if (place < BUCKET_BLOCKS)
            index_bucket_of(&index, b->key)->blocks[place] = b->twin_next;
        else
            *overflow_link(&index, block) = b->twin_next;
        heir->overflow_next = b->overflow_next;
        heir->flags = b->flags;
    }
    blocks[b->twin_prev].twin_next = b->twin_next;
    heir->twin_prev = b->twin_prev;
    b->flags = 0;
}

/* The holders of one key, from the first on. */
static const char *check_ring(const struct block_index *index, kv_block first, uint64_t *keyed_blocks)
{
    uint64_t key = index->blocks[first].key;
    kv_block block = first;
    do {
        const struct keyed_block *b = &index->blocks[block];
        bool is_first = (b->flags & BLOCK_FIRST) != 0;
        if ((b->flags & BLOCK_KEYED) == 0 || b->key != key || is_first != (block == first))
            return "block index: a block among the holders of a key is not one of them";
        if (index->blocks[b->twin_next].twin_prev != block)
            return "block index: the ring of the holders of a key is broken";
        if (++*keyed_blocks > BLOCK_INDEX_BLOCKS_MAX)
            return "block index: more holders of keys than blocks";
        block = b->twin_next;
    } while (block != first);
    return NULL;
}

static const char *check_entry(const struct block_index *index, kv_block block, unsigned place,
                               uint64_t *keyed_blocks)
{
    if (block_index_find(index, index->blocks[block].key) != block)
        return "block index: a key is not found in its bucket";
    if (index->blocks[block].flags != flags_at(place))
        return "block index: a block does not know its place";
    return check_ring(index, block, keyed_blocks);
}

static const char *check_bucket(const struct block_index *index, const struct index_bucket *bucket,
                                uint64_t *keyed_blocks)
{
    const char *wrong = NULL;
    for (unsigned i = 0; i < BUCKET_BLOCKS && wrong == NULL; i++)
        if ((bucket->tags >> 8 * i & 0xff) != 0)
            wrong = check_entry(index, bucket->blocks[i], i, keyed_blocks);
    for (kv_block b = bucket->overflow; b != 0 && wrong == NULL; b = index->blocks[b].overflow_next)
        wrong = check_entry(index, b, BUCKET_BLOCKS, keyed_blocks);
    return wrong;
}

const char *block_index_check(const struct block_index *index, uint64_t *keyed_blocks)
{
    const char *wrong = NULL;
    *keyed_blocks = 0;
    for (uint64_t at = 0; at <= index->mask && wrong == NULL; at++)
        wrong = check_bucket(index, &index->buckets[at], keyed_blocks);
    return wrong;
}
