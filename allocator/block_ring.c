#include "allocator/block_ring.h"

#include <assert.h>
#include <string.h>

#include "allocator/reserve.h"
#include "allocator/vm_area.h"

bool block_ring_init(struct block_ring *ring, uint32_t blocks)
{
    assert(blocks > 0 && blocks < UINT32_MAX);
    *ring = (struct block_ring){ .capacity = reserve_pow2_ceil(blocks), .fresh = 1, .blocks = blocks,
                                 .free_blocks = blocks };
    ring->refs = vm_area_map((uint64_t)blocks + 1, sizeof *ring->refs);
    ring->slots = vm_area_map(ring->capacity, sizeof *ring->slots);
    if (ring->refs != NULL && ring->slots != NULL)
        return true;
    block_ring_release(ring);
    return false;
}

void block_ring_release(struct block_ring *ring)
{
    vm_area_unmap(ring->refs, (uint64_t)ring->blocks + 1, sizeof *ring->refs);
    vm_area_unmap(ring->slots, ring->capacity, sizeof *ring->slots);
    ring->refs = NULL;
    ring->slots = NULL;
}

static uint32_t take_fresh(struct block_ring *ring, kv_block *out, uint32_t count)
{
    uint32_t left = ring->blocks - ring->fresh + 1;
    uint32_t taken = count < left ? count : left;
    for (uint32_t i = 0; i < taken; i++) {
        out[i] = ring->fresh + i;
        ring->refs[ring->fresh + i] = 1;
    }
    ring->fresh += taken;
    return taken;
}

static void take_straight(struct block_ring *ring, const kv_block *slots, kv_block *out, uint32_t count)
{
    uint32_t *refs = ring->refs;
    memcpy(out, slots, count * sizeof *out);
    for (uint32_t i = 0; i < count; i++)
        refs[slots[i]] = 1;
}

void block_ring_take(struct block_ring *ring, kv_block *out, uint32_t count)
{
    assert(count <= ring->free_blocks);
    ring->free_blocks -= count;
    uint32_t taken = ring->fresh <= ring->blocks ? take_fresh(ring, out, count) : 0;
    while (taken < count) { /* once, or twice around the ring's end */
        uint64_t at = ring->head & (ring->capacity - 1);
        uint64_t straight = ring->capacity - at;
        uint32_t part = count - taken < straight ? count - taken : (uint32_t)straight;
        take_straight(ring, &ring->slots[at], out + taken, part);
        ring->head += part;
        taken += part;
    }
}

void block_ring_give(struct block_ring *ring, const kv_block *blocks, uint32_t count)
{
    const uint64_t mask = ring->capacity - 1;
    kv_block *slots = ring->slots;
    uint32_t *refs = ring->refs;
    uint64_t tail = ring->tail;
    for (uint32_t i = count; i-- > 0;) {
        kv_block block = blocks[i];
        if (block == 0)
            continue;
        if (--refs[block] == 0)
            slots[tail++ & mask] = block;
    }
    ring->free_blocks += (uint32_t)(tail - ring->tail);
    ring->tail = tail;
}

uint64_t block_ring_queue(const struct block_ring *ring, kv_block *out, uint64_t cap)
{
    uint64_t n = 0;
    for (uint64_t block = ring->fresh; block <= ring->blocks; block++, n++)
        if (n < cap)
            out[n] = (kv_block)block;
    for (uint64_t at = ring->head; at != ring->tail; at++, n++)
        if (n < cap)
            out[n] = ring->slots[at & (ring->capacity - 1)];
    return n;
}

const char *block_ring_check(const struct block_ring *ring)
{
    uint64_t fresh = (uint64_t)ring->blocks + 1 - ring->fresh;
    if (ring->tail - ring->head > ring->capacity || fresh + (ring->tail - ring->head) != ring->free_blocks)
        return "block ring: the count of free blocks differs from the queue's length";
    for (uint64_t at = ring->head; at != ring->tail; at++) {
        kv_block block = ring->slots[at & (ring->capacity - 1)];
        if (block == 0 || block >= ring->fresh)
            return "block ring: a queued block has no valid number";
        if (ring->refs[block] != 0)
            return "block ring: a queued block is held";
    }
    uint64_t unheld = fresh;
    for (uint64_t block = 1; block < ring->fresh; block++)
        unheld += ring->refs[block] == 0;
    return unheld == ring->free_blocks ? NULL : "block ring: a block nobody holds is not in the queue";
}
