/* The layout, segment by segment, and the check that recomputes everything from it. */
#include <stdlib.h>

#include "allocator/device/dev_internal.h"

static int compare_first(const void *x, const void *y)
{
    const struct dev_segment *const *a = x, *const *b = y;
    uint64_t left = (*a)->first->node.address, right = (*b)->first->node.address;
    return (left > right) - (left < right);
}

/* All segments in address order; the caller frees it. NULL without memory, or when there are none. */
static struct dev_segment **sorted_segments(const struct dev_allocator *a)
{
    struct dev_segment **sorted = a->segment_count ? malloc(a->segment_count * sizeof(struct dev_segment *)) : NULL;
    size_t n = 0;
    for (struct dev_segment *segment = a->segments; sorted && segment; segment = segment->next)
        sorted[n++] = segment;
    if (sorted)
        qsort(sorted, n, sizeof(struct dev_segment *), compare_first);
    return sorted;
}

/* Fills blocks[] and *info from `block` to the end of its mapped stretch; returns the block behind it. */
static const struct dev_block *collect_stretch(const struct dev_block *block, struct dev_block_info *blocks, struct dev_segment_info *info)
{
    const struct dev_pool *pool = block->segment->pool;
    *info = (struct dev_segment_info){
        .address = block->node.address,
        .pool = pool->owner ? pool->owner->id : DEV_DEFAULT_POOL,
        .small = pool->small,
        .expandable = block->segment->range != NULL,
        .blocks = blocks,
    };
    for (; block && block->state != DEV_UNMAPPED; block = block->next) {
        blocks[info->block_count++] =
            (struct dev_block_info){block->node.address, block->node.bytes, block->requested_bytes, block->state};
        info->bytes += block->node.bytes;
        if (block->state == DEV_ALLOCATED) {
            info->allocated_bytes += block->node.bytes;
            info->requested_bytes += block->requested_bytes;
        }
    }
    return block;
}

enum dev_status dev_walk(struct dev_allocator *a, bool (*visit)(void *context, const struct dev_segment_info *segment), void *context)
{
    if (a->segment_count == 0)
        return DEV_OK;
    struct dev_segment **sorted = sorted_segments(a);
    struct dev_block_info *blocks = malloc(a->block_count * sizeof *blocks);
    bool go_on = sorted && blocks;
    enum dev_status status = go_on ? DEV_OK : DEV_NO_HOST_MEMORY;
    for (size_t i = 0; go_on && i < a->segment_count; i++) {
        const struct dev_block *block = sorted[i]->first;
        while (go_on && block) {
            struct dev_segment_info info;
            if (block->state == DEV_UNMAPPED) {
                block = block->next;
                continue;
            }
            block = collect_stretch(block, blocks, &info);
            go_on = visit(context, &info);
        }
    }
    free(blocks);
    free(sorted);
    return status;
}

/* ---- checking ---- */

struct sums {
    uint64_t reserved, allocated, requested, inactive_split, free_bytes, private_free;
    uint64_t allocations, inactive_splits, segments, blocks, free_blocks, unmapped_blocks, whole;
};

static const char *check_block(const struct dev_block *block, struct sums *s)
{
    const struct dev_segment *segment = block->segment;
    const struct dev_block *next = block->next;
    bool counts = !segment->range && dev_block_is_split(block);
    if (next && (next->prev != block || dev_block_end(block) != next->node.address || next->segment != segment))
        return "neighbours do not meet";
    if (next && block->state != DEV_ALLOCATED && block->state == next->state)
        return "two free neighbours were not joined";
    s->blocks++;
    if (block->state == DEV_UNMAPPED) {
        s->unmapped_blocks++;
        return segment->range ? NULL : "an unmapped block outside an expandable range";
    }
    s->reserved += block->node.bytes;
    if (block->state == DEV_ALLOCATED) {
        s->allocations++;
        s->allocated += block->node.bytes;
        s->requested += block->requested_bytes;
        return block->requested_bytes <= block->node.bytes ? NULL : "a block smaller than its request";
    }
    s->free_blocks++;
    s->free_bytes += block->node.bytes;
    s->private_free += segment->pool->owner ? block->node.bytes : 0;
    s->inactive_split += counts ? block->node.bytes : 0;
    s->inactive_splits += counts;
    s->whole += !segment->range && !counts;
    return NULL;
}

/* Order and, when asked, that every node of the tree is a free block of the pool. Returns the number of nodes. */
static size_t count_tree(const struct dev_tree *tree, const char **wrong)
{
    size_t n = 0;
    const struct dev_node *last = NULL;
    for (const struct dev_node *node = dev_tree_first(tree); node; node = dev_tree_next(node), n++) {
        bool by_size = tree->order == DEV_BY_SIZE;
        if (last && (by_size ? last->bytes > node->bytes || (last->bytes == node->bytes && last->address >= node->address)
                             : last->address >= node->address))
            *wrong = "a tree is out of order";
        int lean = (node->child[0] ? node->child[0]->height : 0) - (node->child[1] ? node->child[1]->height : 0);
        if (lean > 1 || lean < -1)
            *wrong = "a tree is out of balance";
        last = node;
    }
    if (n != tree->count)
        *wrong = "a tree's count is wrong";
    return n;
}

static void count_pool(const struct dev_pool *pool, struct sums *s, const char **wrong)
{
    s->free_blocks -= count_tree(&pool->free, wrong);
    s->whole -= count_tree(&pool->whole, wrong);
    s->unmapped_blocks -= count_tree(&pool->unmapped, wrong);
}

static const char *check_sums(const struct dev_allocator *a, const struct sums *s)
{
    const struct dev_stats *t = &a->stats;
    if (s->reserved != t->reserved_bytes.now || s->segments != t->segments.now)
        return "reserved bytes or segments disagree";
    if (s->allocated != t->allocated_bytes.now || s->allocations != t->allocations.now || s->allocations != a->map.used)
        return "allocated bytes or counts disagree";
    if (s->requested != t->requested_bytes.now)
        return "requested bytes disagree";
    if (s->inactive_split != t->inactive_split_bytes.now || s->inactive_splits != t->inactive_splits.now)
        return "inactive splits disagree";
    if (s->free_bytes != a->free_block_bytes || s->private_free != a->private_free_bytes)
        return "free bytes disagree";
    if (s->blocks != a->block_count)
        return "the number of blocks disagrees";
    return NULL;
}

const char *dev_check(struct dev_allocator *a)
{
    struct sums s = {0};
    const char *wrong = NULL;
    for (const struct dev_segment *segment = a->segments; segment; segment = segment->next) {
        s.segments += segment->piece != NULL;
        if (segment->first->prev)
            return "a segment's first block is not its first";
        for (const struct dev_block *block = segment->first; block && !wrong; block = block->next)
            wrong = check_block(block, &s);
    }
    count_pool(&a->small, &s, &wrong);
    count_pool(&a->large, &s, &wrong);
    for (uint32_t i = 0; i < a->private_count; i++) {
        if (!a->privates[i])
            continue;
        count_pool(&a->privates[i]->small, &s, &wrong);
        count_pool(&a->privates[i]->large, &s, &wrong);
    }
    if (!wrong && (s.free_blocks || s.whole || s.unmapped_blocks))
        wrong = "the free lists do not hold the free blocks";
    return wrong ? wrong : check_sums(a, &s);
}
