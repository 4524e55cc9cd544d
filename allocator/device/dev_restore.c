/* Segments that are there when a recording begins. */
#include "allocator/device/dev_internal.h"

#define RESTORED_ADDRESS (1ull << 51) /* above all that the driver hands out */
#define RESTORED_MAX (1ull << 50)

static struct dev_pool *pool_of(struct dev_allocator *a, const struct dev_restored *r)
{
    if (r->pool == DEV_DEFAULT_POOL)
        return r->small ? &a->small : &a->large;
    struct dev_private *private = r->pool <= a->private_count ? a->privates[r->pool - 1] : NULL;
    if (!private || private->released)
        return NULL;
    return r->small ? &private->small : &private->large;
}

/* The sum of the blocks; 0 when they cannot be a segment. */
static uint64_t bytes_of(const struct dev_restored *r, uint64_t page_bytes)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->block_count; i++) {
        const struct dev_restored_block *block = &r->blocks[i];
        if (block->bytes == 0 || block->bytes % DEV_ROUND_BYTES != 0 || block->bytes > DEV_BYTES_MAX ||
            (block->allocated && block->requested_bytes > block->bytes))
            return 0;
        bytes += block->bytes;
        if (bytes > DEV_BYTES_MAX)
            return 0;
    }
    return bytes % page_bytes == 0 ? bytes : 0;
}

/* The stretch as one free block in no tree; its place in the range is that of its address among those restored. */
static enum dev_status map_stretch(struct dev_allocator *a, struct dev_pool *pool, const struct dev_restored *r, uint64_t bytes,
                                   struct dev_block **block)
{
    struct dev_node *last = dev_tree_last(&pool->unmapped);
    if (pool->restored_from == DEV_NONE) {
        pool->restored_from = r->address;
        struct dev_block *range = dev_expandable_range(a, pool);
        if (!range)
            return DEV_OUT_OF_MEMORY;
        last = &range->node;
    }
    struct dev_block *tail = dev_block_of(last);
    uint64_t offset = r->address - pool->restored_from;
    uint64_t address = tail->segment->range->address + offset;
    bool touches = tail->prev && address == tail->node.address; /* then it would be one stretch with the one before */
    if (touches || offset % pool->page_bytes != 0 || address < tail->node.address || address >= dev_block_end(tail) ||
        bytes >= dev_block_end(tail) - address)
        return DEV_BAD_SIZE;
    *block = dev_expandable_restore(a, tail, address, bytes);
    return *block ? DEV_OK : DEV_OUT_OF_MEMORY;
}

static enum dev_status adopt(struct dev_allocator *a, struct dev_pool *pool, const struct dev_restored *r, uint64_t bytes,
                             struct dev_block **block)
{
    struct dev_piece *piece = dev_driver_adopt(&a->driver, RESTORED_ADDRESS + r->address, bytes);
    if (!piece)
        return DEV_OUT_OF_MEMORY;
    struct dev_segment *segment = dev_segment_new(a, pool);
    segment->piece = piece;
    segment->first = *block = dev_block_new(a, segment, piece->node.address, bytes, DEV_FREE);
    dev_reserved_add(a, pool, bytes);
    dev_counter_add(&a->stats.segments, 1);
    dev_counter_add(pool->small ? &a->stats.segments_small : &a->stats.segments_large, 1);
    if (bytes >= a->config.settings.max_split_bytes)
        dev_counter_add(&a->stats.oversize_segments, 1);
    return DEV_OK;
}

/* Cuts the stretch into its blocks; free ones side by side are one. */
static void cut_blocks(struct dev_allocator *a, const struct dev_restored *r, struct dev_block *rest)
{
    for (size_t i = 0; i < r->block_count;) {
        uint64_t bytes = r->blocks[i].bytes;
        bool allocated = r->blocks[i].allocated;
        uint64_t requested = r->blocks[i++].requested_bytes;
        while (!allocated && i < r->block_count && !r->blocks[i].allocated)
            bytes += r->blocks[i++].bytes;
        struct dev_block *block = i < r->block_count ? dev_block_split_front(a, rest, bytes) : rest;
        if (allocated)
            dev_hand_out(a, block, requested);
        else
            block->requested_bytes = requested;
    }
}

/* Now that all neighbours are known: which free blocks belong to a split segment? */
static void list_free_blocks(struct dev_allocator *a, struct dev_block *block, uint64_t end)
{
    for (; block && block->node.address < end; block = block->next) {
        if (block->state != DEV_FREE)
            continue;
        dev_free_list_add(a, block);
        if (block->segment->range || !dev_block_is_split(block))
            continue;
        dev_counter_add(&a->stats.inactive_split_bytes, block->node.bytes);
        dev_counter_add(&a->stats.inactive_splits, 1);
    }
}

enum dev_status dev_restore(struct dev_allocator *a, const struct dev_restored *r, uint64_t *address)
{
    bool expandable = r->expandable && a->config.settings.expandable_segments;
    struct dev_pool *pool = pool_of(a, r);
    if (!pool)
        return DEV_UNKNOWN_POOL;
    uint64_t bytes = bytes_of(r, expandable ? pool->page_bytes : DEV_PAGE_BYTES);
    if (bytes == 0 || r->address < a->restored_end || r->address > RESTORED_MAX - bytes)
        return DEV_BAD_SIZE;
    if (!dev_reserve_slow(a) || !dev_slab_reserve(&a->blocks_slab, r->block_count + 4) || !dev_map_reserve(&a->map, r->block_count))
        return DEV_NO_HOST_MEMORY;
    struct dev_block *block;
    enum dev_status status = expandable ? map_stretch(a, pool, r, bytes, &block) : adopt(a, pool, r, bytes, &block);
    if (status != DEV_OK)
        return status;
    a->restored_end = r->address + bytes;
    a->event_count = 0;
    *address = block->node.address;
    struct dev_block *before = block->prev;
    struct dev_segment *segment = block->segment;
    cut_blocks(a, r, block);
    list_free_blocks(a, before ? before->next : segment->first, *address + bytes);
    return DEV_OK;
}
