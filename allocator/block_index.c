#include "allocator/block_index.h"

#include <assert.h>

#include "allocator/reserve.h"
#include "allocator/vm_area.h"

/* A slot holds 32 bits of the key beside the block, so that a probe touches the block only when it almost
 * certainly is the right one, and so that deletion can find the home of every slot without the blocks. */

#define SLOTS_MAX ((uint64_t)1 << 32)

static uint64_t slot_of(uint64_t key, kv_block block)
{
    return key << 32 | block;
}

static uint64_t slot_home(const struct block_index *index, uint64_t slot)
{
    return slot >> 32 & index->mask;
}

static kv_block slot_block(uint64_t slot)
{
    return (kv_block)slot;
}

bool block_index_init(struct block_index *index, struct keyed_block *blocks, uint32_t block_count)
{
    assert(block_count > 0 && block_count <= BLOCK_INDEX_BLOCKS_MAX);
    index->blocks = blocks;
    /* Mostly empty: a deletion shifts what follows, and the mispredicted ends of those loops cost more than the
     * memory (half full: 44 ns to evict, key and free a block, a quarter full: 33). A slot knows 32 bits of its key. */
    uint64_t slots = reserve_pow2_ceil(4 * (uint64_t)block_count);
    index->mask = (slots < SLOTS_MAX ? slots : SLOTS_MAX) - 1;
    index->slots = vm_area_map(index->mask + 1, sizeof *index->slots);
    return index->slots != NULL;
}

void block_index_release(struct block_index *index)
{
    vm_area_unmap(index->slots, index->mask + 1, sizeof *index->slots);
    index->slots = NULL;
}

/* The slot of a key, or the empty slot where it would go. */
static uint64_t find_slot(const struct block_index *index, uint64_t key)
{
    uint64_t at = key & index->mask;
    for (;; at = (at + 1) & index->mask) {
        uint64_t slot = index->slots[at];
        if (slot == 0)
            return at;
        if (slot >> 32 == (key & UINT32_MAX) && index->blocks[slot_block(slot)].key == key)
            return at;
    }
}

kv_block block_index_find(const struct block_index *index, uint64_t key)
{
    uint64_t slot = index->slots[find_slot(index, key)];
    return slot == 0 ? KV_BLOCK_NONE : slot_block(slot);
}

void block_index_add(struct block_index *index, kv_block block, uint64_t key)
{
    struct keyed_block *blocks = index->blocks;
    struct keyed_block *b = &blocks[block];
    assert((b->flags & BLOCK_KEYED) == 0);
    uint64_t at = find_slot(index, key);
    b->key = key;
    if (index->slots[at] == 0) {
        index->slots[at] = slot_of(key, block);
        b->flags |= BLOCK_KEYED | BLOCK_FIRST;
        b->twin_next = b->twin_prev = block;
        return;
    }
    kv_block first = slot_block(index->slots[at]);
    kv_block last = blocks[first].twin_prev;
    b->flags |= BLOCK_KEYED;
    b->twin_next = first;
    b->twin_prev = last;
    blocks[last].twin_next = block;
    blocks[first].twin_prev = block;
}

/* Empties a slot and moves later ones of its run back, so that no probe meets a gap. */
static void empty_slot(struct block_index *index, uint64_t hole)
{
    uint64_t at = hole;
    for (;;) {
        at = (at + 1) & index->mask;
        uint64_t slot = index->slots[at];
        if (slot == 0)
            break;
        /* It may move when its home is not in (hole, at]. */
        if (((at - slot_home(index, slot)) & index->mask) >= ((at - hole) & index->mask)) {
            index->slots[hole] = slot;
            hole = at;
        }
    }
    index->slots[hole] = 0;
}

/* The slot of a block that is the first of its key: looks at no block. */
static uint64_t find_first(const struct block_index *index, uint64_t key, kv_block block)
{
    uint64_t at = key & index->mask, slot = slot_of(key, block);
    while (index->slots[at] != slot) {
        assert(index->slots[at] != 0);
        at = (at + 1) & index->mask;
    }
    return at;
}

void block_index_remove(struct block_index *index, kv_block block)
{
    struct keyed_block *blocks = index->blocks;
    struct keyed_block *b = &blocks[block];
    assert((b->flags & BLOCK_KEYED) != 0);
    if ((b->flags & BLOCK_FIRST) != 0) {
        uint64_t at = find_first(index, b->key, block);
        if (b->twin_next == block) {
            empty_slot(index, at);
        } else {
            index->slots[at] = slot_of(b->key, b->twin_next);
            blocks[b->twin_next].flags |= BLOCK_FIRST;
        }
    }
    blocks[b->twin_prev].twin_next = b->twin_next;
    blocks[b->twin_next].twin_prev = b->twin_prev;
    b->flags &= ~(uint32_t)(BLOCK_KEYED | BLOCK_FIRST);
}

const char *block_index_check(const struct block_index *index, uint64_t *keyed_blocks)
{
    *keyed_blocks = 0;
    for (uint64_t at = 0; at <= index->mask; at++) {
        uint64_t slot = index->slots[at];
        if (slot == 0)
            continue;
        kv_block first = slot_block(slot), block = first;
        uint64_t key = index->blocks[first].key;
        if (find_slot(index, key) != at || slot != slot_of(key, first))
            return "block index: a key is not found at its slot";
        do {
            const struct keyed_block *b = &index->blocks[block];
            bool is_first = (b->flags & BLOCK_FIRST) != 0;
            if ((b->flags & BLOCK_KEYED) == 0 || b->key != key || is_first != (block == first))
                return "block index: a block among the holders of a key is not one of them";
            if (index->blocks[b->twin_next].twin_prev != block)
                return "block index: the ring of the holders of a key is broken";
            (*keyed_blocks)++;
            block = b->twin_next;
        } while (block != first && *keyed_blocks <= index->mask);
        if (block != first)
            return "block index: the ring of the holders of a key does not close";
    }
    return NULL;
}
