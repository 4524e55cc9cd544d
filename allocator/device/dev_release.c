#include <stdlib.h>

#include "allocator/device/dev_internal.h"

/* cudaFree of a segment that is one free block. */
static void release_segment(struct dev_allocator *a, struct dev_segment *segment)
{
    struct dev_block *block = segment->first;
    struct dev_pool *pool = segment->pool;
    uint64_t bytes = block->node.bytes;
    assert(!dev_block_is_split(block) && block->state == DEV_FREE && segment->piece);
    dev_event_add(a, DEV_SEGMENT_FREE, block->node.address, bytes);
    dev_driver_free(&a->driver, segment->piece);
    dev_free_list_remove(a, block);
    dev_reserved_sub(a, pool, bytes);
    dev_counter_sub(&a->stats.segments, 1);
    dev_counter_sub(pool->small ? &a->stats.segments_small : &a->stats.segments_large, 1);
    if (bytes >= a->config.settings.max_split_bytes)
        dev_counter_sub(&a->stats.oversize_segments, 1);
    dev_block_drop(a, block);
    dev_segment_drop(a, segment);
}

static uint64_t age_of(const struct dev_segment *segment)
{
    return segment->pool->lookups - segment->first->lookups_when_freed;
}

/* One round: every segment of at least the mean age goes, even past the target. Returns the bytes freed. */
static uint64_t collect_round(struct dev_allocator *a, uint64_t *total_age)
{
    struct dev_tree *whole = &a->large.whole;
    uint64_t freed_bytes = 0, count = whole->count, age_sum = *total_age;
    for (struct dev_node *node = dev_tree_first(whole), *next; node; node = next) {
        struct dev_segment *segment = dev_segment_of(node);
        next = dev_tree_next(node);
        uint64_t age = age_of(segment);
        if ((unsigned __int128)age * count < age_sum)
            continue;
        *total_age -= age;
        freed_bytes += segment->first->node.bytes;
        release_segment(a, segment);
    }
    return freed_bytes;
}

void dev_collect_garbage(struct dev_allocator *a)
{
    /* PyTorch multiplies in double precision and cuts; so must we, to the byte. */
    uint64_t threshold = (uint64_t)(a->config.settings.gc_threshold * (double)a->config.cap_bytes);
    uint64_t held = a->stats.reserved_bytes.now;
    if (held <= threshold)
        return;
    uint64_t target = held - threshold, freed = 0, total_age = 0;
    for (struct dev_node *node = dev_tree_first(&a->large.whole); node; node = dev_tree_next(node))
        total_age += age_of(dev_segment_of(node));
    while (freed < target && a->large.whole.count > 0)
        freed += collect_round(a, &total_age);
}

bool dev_release_oversize(struct dev_allocator *a, const struct dev_request *request)
{
    uint64_t max_split = a->config.settings.max_split_bytes;
    /* With expandable segments no block is a segment of its own, and nothing can be given back this way. */
    if (max_split == DEV_NONE || a->config.settings.expandable_segments)
        return false;
    struct dev_tree *whole = &request->pool->whole;
    uint64_t wanted = request->bytes > max_split ? request->bytes : max_split;
    struct dev_node *node = dev_tree_at_least(whole, wanted);
    if (node) {
        release_segment(a, dev_segment_of(node));
        return true;
    }
    uint64_t freed = 0;
    node = dev_tree_last(whole);
    while (node && freed < wanted && node->bytes >= max_split) {
        struct dev_node *smaller = dev_tree_prev(node);
        freed += node->bytes;
        release_segment(a, dev_segment_of(node));
        node = smaller;
    }
    return freed >= wanted;
}

void dev_release_pool(struct dev_allocator *a, struct dev_pool *pool)
{
    for (struct dev_node *node = dev_tree_first(&pool->whole), *next; node; node = next) {
        next = dev_tree_next(node);
        release_segment(a, dev_segment_of(node));
    }
    if (a->config.settings.expandable_segments)
        dev_expandable_release(a, pool);
}

void dev_release_private(struct dev_allocator *a, struct dev_private *private)
{
    dev_release_pool(a, &private->small);
    dev_release_pool(a, &private->large);
    if (private->segments == 0) {
        a->privates[private->id - 1] = NULL;
        free(private);
    }
}

void dev_release_cached(struct dev_allocator *a)
{
    if (a->open_count == 0) {
        a->stats.syncs++;
        dev_release_pool(a, &a->large);
        dev_release_pool(a, &a->small);
    }
    for (uint32_t i = 0; i < a->private_count; i++)
        if (a->privates[i] && a->privates[i]->released)
            dev_release_private(a, a->privates[i]);
}
