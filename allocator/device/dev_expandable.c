/* Expandable segments (rule 8): one address range per pool, into which pages are mapped where they are needed. */
#include "allocator/device/dev_internal.h"

/* Total memory * 9/8, in whole pages: room to leave gaps behind and go on at the end. */
static uint64_t range_bytes(const struct dev_allocator *a, const struct dev_pool *pool)
{
    uint64_t total_bytes = a->config.machine.total_bytes;
    return dev_round_up(total_bytes + total_bytes / 8, pool->page_bytes);
}

struct dev_block *dev_expandable_range(struct dev_allocator *a, struct dev_pool *pool)
{
    struct dev_stretch *range = dev_driver_reserve_range(&a->driver, range_bytes(a, pool));
    if (!range)
        return NULL;
    struct dev_segment *segment = dev_segment_new(a, pool);
    segment->range = range;
    struct dev_block *block = dev_block_new(a, segment, range->address, range_bytes(a, pool), DEV_UNMAPPED);
    segment->first = block;
    dev_unmapped_add(block);
    return block;
}

/* Bytes from `block` on up to the next block that is handed out, counted no further than `bytes`. */
static uint64_t room_from(const struct dev_block *block, uint64_t bytes, const struct dev_block **end)
{
    uint64_t room = 0;
    while (block && block->state != DEV_ALLOCATED && room < bytes) {
        room += block->node.bytes;
        block = block->next;
    }
    *end = block;
    return room;
}

/* The lowest place with an unmapped block in it, or just behind it, where `bytes` fit. */
static struct dev_block *find_room(struct dev_allocator *a, struct dev_pool *pool, uint64_t bytes)
{
    struct dev_node *node = dev_tree_first_with_room(&pool->unmapped, 0);
    while (node) {
        struct dev_block *from = dev_block_of(node);
        if (from->prev && from->prev->state == DEV_FREE)
            from = from->prev;
        const struct dev_block *end;
        if (room_from(from, bytes, &end) >= bytes)
            return from;
        /* Nothing between here and `end` has room either. */
        do
            node = dev_tree_next(node);
        while (node && end && node->address < end->node.address && dev_block_of(node)->segment == end->segment);
    }
    return dev_expandable_range(a, pool);
}

/* Cuts the end off an unmapped block, which stays in its tree with `bytes`. */
static struct dev_block *cut_unmapped(struct dev_allocator *a, struct dev_block *block, uint64_t bytes)
{
    struct dev_block *rest = dev_block_new(a, block->segment, block->node.address + bytes, block->node.bytes - bytes, DEV_UNMAPPED);
    rest->prev = block;
    rest->next = block->next;
    if (rest->next)
        rest->next->prev = rest;
    block->next = rest;
    block->node.bytes = bytes; /* no part of the key: the tree goes by address */
    dev_unmapped_add(rest);
    return rest;
}

struct dev_block *dev_expandable_restore(struct dev_allocator *a, struct dev_block *tail, uint64_t address, uint64_t bytes)
{
    assert(tail->state == DEV_UNMAPPED && address >= tail->node.address && bytes < dev_block_end(tail) - address);
    if (!dev_driver_take_pages(&a->driver, bytes))
        return NULL;
    struct dev_block *block = tail;
    if (address > tail->node.address)
        block = cut_unmapped(a, tail, address - tail->node.address);
    cut_unmapped(a, block, bytes);
    dev_unmapped_remove(block);
    block->state = DEV_FREE;
    dev_reserved_add(a, block->segment->pool, bytes);
    return block;
}

/* Maps whole pages for the first `bytes` of an unmapped block, which joins its free neighbours. */
static bool map_pages(struct dev_allocator *a, struct dev_block *block, uint64_t bytes)
{
    struct dev_pool *pool = block->segment->pool;
    uint64_t address = block->node.address;
    uint64_t mapped = dev_round_up(bytes, pool->page_bytes);
    assert(block->state == DEV_UNMAPPED && mapped <= block->node.bytes);
    if (!dev_driver_take_pages(&a->driver, mapped))
        return false;
    if (mapped < block->node.bytes)
        cut_unmapped(a, block, mapped);
    dev_unmapped_remove(block);
    block->state = DEV_FREE;
    dev_block_swallow(a, block, block->prev);
    dev_block_swallow(a, block, block->next);
    dev_free_list_add(a, block);
    dev_reserved_add(a, pool, mapped);
    dev_event_add(a, DEV_SEGMENT_MAP, address, mapped);
    return true;
}

static uint64_t smaller_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct dev_block *dev_expandable_allocate(struct dev_allocator *a, struct dev_pool *pool, uint64_t bytes)
{
    struct dev_block *block = find_room(a, pool, bytes);
    if (!block)
        return NULL;
    if (block->state == DEV_UNMAPPED && !map_pages(a, block, smaller_of(block->node.bytes, bytes)))
        return NULL;
    while (block->node.bytes < bytes) {
        struct dev_block *next = block->next;
        if (!map_pages(a, next, smaller_of(next->node.bytes, bytes - block->node.bytes)))
            return NULL; /* what was mapped so far stays, free */
        block = next; /* it swallowed the block before it */
    }
    dev_free_list_remove(a, block);
    return block;
}

/* Cuts a free block that is in no tree so that [address, address + bytes) stands alone; the ends go to the free list. */
static void free_the_ends(struct dev_allocator *a, struct dev_block *block, uint64_t address, uint64_t bytes)
{
    if (address > block->node.address) {
        struct dev_block *front = dev_block_split_front(a, block, address - block->node.address);
        dev_free_list_add(a, front);
    }
    if (block->node.bytes > bytes) {
        struct dev_block *back = dev_block_new(a, block->segment, address + bytes, block->node.bytes - bytes, DEV_FREE);
        back->prev = block;
        back->next = block->next;
        if (back->next)
            back->next->prev = back;
        block->next = back;
        block->node.bytes = bytes;
        dev_free_list_add(a, back);
    }
}

static void give_up_range(struct dev_allocator *a, struct dev_block *block)
{
    struct dev_segment *segment = block->segment;
    dev_unmapped_remove(block);
    dev_block_drop(a, block);
    dev_driver_free_range(&a->driver, segment->range);
    dev_segment_drop(a, segment);
}

static void unmap_block(struct dev_allocator *a, struct dev_block *block)
{
    struct dev_pool *pool = block->segment->pool;
    uint64_t base = block->segment->range->address;
    uint64_t begin = base + dev_round_up(block->node.address - base, pool->page_bytes);
    uint64_t end = dev_block_end(block) - (dev_block_end(block) - base) % pool->page_bytes;
    if (begin >= end)
        return; /* no whole page in it */
    dev_free_list_remove(a, block);
    free_the_ends(a, block, begin, end - begin);
    block->state = DEV_UNMAPPED;
    dev_block_swallow(a, block, block->prev);
    dev_block_swallow(a, block, block->next);
    dev_unmapped_add(block);
    dev_driver_give_pages(&a->driver, end - begin);
    dev_reserved_sub(a, pool, end - begin);
    dev_event_add(a, DEV_SEGMENT_UNMAP, begin, end - begin);
    if (!dev_block_is_split(block))
        give_up_range(a, block);
}

void dev_expandable_release(struct dev_allocator *a, struct dev_pool *pool)
{
    /* Unmapping only ever adds free blocks smaller than a page, so whatever was large enough keeps its order. */
    struct dev_node *node = dev_tree_at_least(&pool->free, pool->page_bytes);
    while (node) {
        struct dev_node *next = dev_tree_next(node);
        unmap_block(a, dev_block_of(node));
        node = next;
    }
}
