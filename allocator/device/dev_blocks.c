#include "allocator/device/dev_internal.h"

void dev_pool_init(struct dev_pool *pool, bool small, struct dev_private *owner)
{
    *pool = (struct dev_pool){.owner = owner, .restored_from = DEV_NONE, .small = small};
    pool->page_bytes = small ? DEV_SMALL_SEGMENT_BYTES : DEV_LARGE_SEGMENT_BYTES;
    pool->free.order = pool->whole.order = DEV_BY_SIZE;
    pool->unmapped.order = DEV_BY_ADDRESS;
}

struct dev_block *dev_block_new(struct dev_allocator *a, struct dev_segment *segment, uint64_t address, uint64_t bytes, enum dev_block_state state)
{
    struct dev_block *block = dev_slab_take(&a->blocks_slab);
    block->node.address = address;
    block->node.bytes = bytes;
    block->segment = segment;
    block->state = state;
    a->block_count++;
    return block;
}

void dev_block_drop(struct dev_allocator *a, struct dev_block *block)
{
    a->block_count--;
    dev_slab_give(&a->blocks_slab, block);
}

struct dev_block *dev_block_split_front(struct dev_allocator *a, struct dev_block *block, uint64_t bytes)
{
    assert(bytes > 0 && bytes < block->node.bytes);
    struct dev_block *front = dev_block_new(a, block->segment, block->node.address, bytes, block->state);
    front->prev = block->prev;
    front->next = block;
    if (front->prev)
        front->prev->next = front;
    else
        block->segment->first = front;
    block->prev = front;
    block->node.address += bytes;
    block->node.bytes -= bytes;
    return front;
}

uint64_t dev_block_swallow(struct dev_allocator *a, struct dev_block *block, struct dev_block *neighbour)
{
    if (!neighbour || neighbour->state != block->state)
        return 0;
    assert(block->state != DEV_ALLOCATED);
    if (neighbour->state == DEV_FREE)
        dev_free_list_remove(a, neighbour);
    else
        dev_unmapped_remove(neighbour);
    if (block->prev == neighbour) {
        block->node.address = neighbour->node.address;
        block->prev = neighbour->prev;
        if (block->prev)
            block->prev->next = block;
        else
            block->segment->first = block;
    } else {
        block->next = neighbour->next;
        if (block->next)
            block->next->prev = block;
    }
    uint64_t gained = neighbour->node.bytes;
    block->node.bytes += gained;
    dev_block_drop(a, neighbour);
    return gained;
}

void dev_free_list_add(struct dev_allocator *a, struct dev_block *block)
{
    struct dev_segment *segment = block->segment;
    struct dev_pool *pool = segment->pool;
    assert(block->state == DEV_FREE);
    block->lookups_when_freed = pool->lookups;
    dev_tree_insert(&pool->free, &block->node);
    if (!segment->range && !dev_block_is_split(block)) {
        segment->whole.bytes = block->node.bytes;
        segment->whole.address = block->node.address;
        dev_tree_insert(&pool->whole, &segment->whole);
    }
    a->free_block_bytes += block->node.bytes;
    if (pool->owner)
        a->private_free_bytes += block->node.bytes;
}

void dev_free_list_remove(struct dev_allocator *a, struct dev_block *block)
{
    struct dev_segment *segment = block->segment;
    struct dev_pool *pool = segment->pool;
    dev_tree_remove(&pool->free, &block->node);
    if (!segment->range && !dev_block_is_split(block))
        dev_tree_remove(&pool->whole, &segment->whole);
    a->free_block_bytes -= block->node.bytes;
    if (pool->owner)
        a->private_free_bytes -= block->node.bytes;
}

void dev_unmapped_add(struct dev_block *block)
{
    assert(block->state == DEV_UNMAPPED);
    dev_tree_insert(&block->segment->pool->unmapped, &block->node);
}

void dev_unmapped_remove(struct dev_block *block)
{
    dev_tree_remove(&block->segment->pool->unmapped, &block->node);
}

struct dev_segment *dev_segment_new(struct dev_allocator *a, struct dev_pool *pool)
{
    struct dev_segment *segment = dev_slab_take(&a->segments_slab);
    segment->pool = pool;
    segment->next = a->segments;
    if (segment->next)
        segment->next->prev = segment;
    a->segments = segment;
    a->segment_count++;
    if (pool->owner)
        pool->owner->segments++;
    return segment;
}

void dev_segment_drop(struct dev_allocator *a, struct dev_segment *segment)
{
    if (segment->prev)
        segment->prev->next = segment->next;
    else
        a->segments = segment->next;
    if (segment->next)
        segment->next->prev = segment->prev;
    a->segment_count--;
    if (segment->pool->owner)
        segment->pool->owner->segments--;
    dev_slab_give(&a->segments_slab, segment);
}

void dev_event_add(struct dev_allocator *a, enum dev_event_kind kind, uint64_t address, uint64_t bytes)
{
    assert(a->event_count < a->event_room);
    a->events[a->event_count++] = (struct dev_event){kind, address, bytes};
    if (kind == DEV_SEGMENT_ALLOC || kind == DEV_SEGMENT_MAP)
        a->stats.device_allocs++;
    else
        a->stats.device_frees++;
}

void dev_reserved_add(struct dev_allocator *a, const struct dev_pool *pool, uint64_t bytes)
{
    dev_counter_add(&a->stats.reserved_bytes, bytes);
    if (pool->small)
        dev_counter_add(&a->stats.reserved_small_bytes, bytes);
}

void dev_reserved_sub(struct dev_allocator *a, const struct dev_pool *pool, uint64_t bytes)
{
    dev_counter_sub(&a->stats.reserved_bytes, bytes);
    if (pool->small)
        dev_counter_sub(&a->stats.reserved_small_bytes, bytes);
}
