#include "allocator/block_queue.h"

#include <assert.h>

#include "allocator/vm_area.h"

/* Links are stored as the distance from the neighbour in number order, so that zeroed memory *is* the queue
 * 1, 2, ..., blocks, and a pool of which little is used costs little. Arithmetic is modulo 2^32. */

static kv_block next_of(const struct block_queue *queue, kv_block block)
{
    return queue->nodes[block].next + block + 1;
}

static kv_block prev_of(const struct block_queue *queue, kv_block block)
{
    return queue->nodes[block].prev + block - 1;
}

static void link_pair(struct block_queue *queue, kv_block a, kv_block b)
{
    queue->nodes[a].next = b - a - 1;
    queue->nodes[b].prev = a - b + 1;
}

static void insert_after(struct block_queue *queue, kv_block at, kv_block block)
{
    kv_block next = next_of(queue, at);
    link_pair(queue, at, block);
    link_pair(queue, block, next);
}

bool block_queue_init(struct block_queue *queue, uint32_t blocks, bool unkeyed_to_head,
                      const struct kv_observer *observer)
{
    assert(blocks > 0 && blocks <= BLOCK_INDEX_BLOCKS_MAX);
    *queue = (struct block_queue){ .blocks = blocks, .free_blocks = blocks,
                                   .unkeyed_to_head = unkeyed_to_head };
    if (observer != NULL)
        queue->observer = *observer;
    queue->nodes = vm_area_map((uint64_t)blocks + 1, sizeof *queue->nodes);
    if (queue->nodes == NULL)
        return false;
    if (!block_index_init(&queue->index, queue->nodes, blocks)) {
        block_queue_release(queue);
        return false;
    }
    link_pair(queue, blocks, 0);
    return true;
}

bool block_queue_use_order(struct block_queue *queue, const struct kv_eviction_ops *ops)
{
    assert(queue->free_blocks == queue->blocks && queue->order == NULL);
    queue->order = ops->create(queue->blocks);
    return queue->order != NULL;
}

void block_queue_release(struct block_queue *queue)
{
    if (queue->order != NULL)
        queue->order->ops->destroy(queue->order);
    queue->order = NULL;
    if (queue->index.slots != NULL)
        block_index_release(&queue->index);
    vm_area_unmap(queue->nodes, (uint64_t)queue->blocks + 1, sizeof *queue->nodes);
    queue->nodes = NULL;
}

#define PREFETCH_AHEAD 12u

static void evict(struct block_queue *queue, kv_block block)
{
    queue->distinct_keys -= queue->nodes[block].twin_next == block;
    block_index_remove(&queue->index, block);
    queue->cached_blocks--;
    queue->keyed_blocks--;
    queue->generation++;
    if (queue->observer.evicted != NULL)
        queue->observer.evicted(queue->observer.context, block, queue->nodes[block].key);
}

/* Blocks without a key are in the queue, those with one in the order. */
static void take_in_order(struct block_queue *queue, kv_block *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        kv_block block = next_of(queue, 0);
        if (block != 0) {
            link_pair(queue, 0, next_of(queue, block));
        } else {
            block = queue->order->ops->evict(queue->order) + 1;
            evict(queue, block);
        }
        queue->nodes[block].refs = 1;
        out[i] = block;
    }
    queue->free_blocks -= count;
}

void block_queue_take(struct block_queue *queue, kv_block *out, uint32_t count)
{
    assert(count <= queue->free_blocks);
    if (count == 0)
        return;
    if (queue->order != NULL) {
        take_in_order(queue, out, count);
        return;
    }
    /* Evicting a block looks its key up. A second walk runs ahead and has these slots on their way. */
    kv_block block = next_of(queue, 0), ahead = block;
    uint32_t announced = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (; announced < count && announced < i + PREFETCH_AHEAD; announced++) {
            block_index_prefetch_slot(&queue->index, queue->nodes[ahead].key);
            ahead = next_of(queue, ahead);
            __builtin_prefetch(&queue->nodes[ahead]);
        }
        struct keyed_block *node = &queue->nodes[block];
        kv_block next = next_of(queue, block);
        node->refs = 1;
        if ((node->flags & BLOCK_KEYED) != 0)
            evict(queue, block);
        out[i] = block;
        block = next;
    }
    link_pair(queue, 0, block);
    queue->free_blocks -= count;
}

void block_queue_give(struct block_queue *queue, const kv_block *blocks, uint32_t count)
{
    kv_block head_group = 0; /* the last block put at the head by this call */
    for (uint32_t i = count; i-- > 0;) {
        kv_block block = blocks[i];
        struct keyed_block *node = &queue->nodes[block];
        if (i >= PREFETCH_AHEAD)
            __builtin_prefetch(&queue->nodes[blocks[i - PREFETCH_AHEAD]]);
        if (block == 0)
            continue;
        assert(node->refs > 0);
        if (--node->refs > 0)
            continue;
        queue->free_blocks++;
        bool keyed = (node->flags & BLOCK_KEYED) != 0;
        queue->cached_blocks += keyed;
        if (keyed && queue->order != NULL) {
            queue->order->ops->give(queue->order, block - 1);
        } else if (keyed || !queue->unkeyed_to_head) {
            insert_after(queue, prev_of(queue, 0), block);
        } else {
            insert_after(queue, head_group, block);
            head_group = block;
        }
    }
}

void block_queue_hold(struct block_queue *queue, kv_block block)
{
    struct keyed_block *node = &queue->nodes[block];
    if (node->refs++ > 0)
        return;
    bool keyed = (node->flags & BLOCK_KEYED) != 0;
    if (keyed && queue->order != NULL)
        queue->order->ops->take(queue->order, block - 1);
    else
        link_pair(queue, prev_of(queue, block), next_of(queue, block));
    queue->free_blocks--;
    queue->cached_blocks -= keyed;
}

/* The order learns what the block carries; parent: the block before it in its sequence, 0: none. */
static void tell_order(struct block_queue *queue, kv_block block, uint64_t key, kv_block parent, uint32_t depth)
{
    struct kv_eviction *order = queue->order;
    struct kv_content content = { key, parent > 0 ? parent - 1 : KV_OBJECT_NONE, depth };
    if (order->ops->miss != NULL)
        order->ops->miss(order, key);
    if (order->ops->insert != NULL)
        order->ops->insert(order, block - 1, &content);
}

static void give_key(struct block_queue *queue, kv_block block, uint64_t key, kv_block parent, uint32_t depth)
{
    const struct keyed_block *node = &queue->nodes[block];
    assert(node->refs > 0);
    if ((node->flags & BLOCK_KEYED) != 0)
        return; /* shared after a fork, and the other sequence was first */
    block_index_add(&queue->index, block, key);
    bool distinct = node->twin_next == block;
    queue->distinct_keys += distinct;
    queue->duplicate_keys += !distinct;
    queue->keyed_blocks++;
    queue->generation++;
    if (queue->order != NULL)
        tell_order(queue, block, key, parent, depth);
}

void block_queue_set_keys(struct block_queue *queue, const kv_block *blocks, const uint64_t *keys,
                          uint32_t count, uint32_t first)
{
    for (uint32_t i = 0; i < count && i < PREFETCH_AHEAD; i++)
        block_index_prefetch_slot(&queue->index, keys[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH_AHEAD < count)
            block_index_prefetch_slot(&queue->index, keys[i + PREFETCH_AHEAD]);
        give_key(queue, blocks[i], keys[i], i > 0 || first > 0 ? blocks[(int64_t)i - 1] : 0, first + i);
    }
}

void block_queue_set_key(struct block_queue *queue, kv_block block, uint64_t key)
{
    give_key(queue, block, key, 0, 0);
}

/* One batch: all slots are requested from memory before the first is used, then all blocks. */
static uint32_t find_batch(const struct block_queue *queue, const uint64_t *keys, uint32_t count,
                           kv_block *out, uint32_t *unheld)
{
    for (uint32_t i = 0; i < count; i++)
        block_index_prefetch_slot(&queue->index, keys[i]);
    for (uint32_t i = 0; i < count; i++)
        block_index_prefetch_block(&queue->index, keys[i]);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = block_index_find(&queue->index, keys[i]);
        if (out[i] == KV_BLOCK_NONE)
            return i;
        *unheld += queue->nodes[out[i]].refs == 0;
    }
    return count;
}

uint32_t block_queue_find_chain(const struct block_queue *queue, const uint64_t *keys, uint32_t count,
                                kv_block *out, uint32_t *unheld)
{
    /* Most chains miss at once or run long: a small first batch wastes little on the former. */
    uint32_t found = 0, batch = 4;
    *unheld = 0;
    while (found < count) {
        uint32_t want = count - found < batch ? count - found : batch;
        uint32_t got = find_batch(queue, keys + found, want, out + found, unheld);
        found += got;
        if (got < want)
            break;
        batch = 32;
    }
    return found;
}

uint64_t block_queue_list(const struct block_queue *queue, kv_block *out, uint64_t cap)
{
    uint64_t n = 0;
    for (kv_block block = next_of(queue, 0); block != 0; block = next_of(queue, block), n++)
        if (n < cap)
            out[n] = block;
    for (kv_block block = 1; queue->order != NULL && block <= queue->blocks; block++) {
        if (queue->nodes[block].refs > 0 || (queue->nodes[block].flags & BLOCK_KEYED) == 0)
            continue;
        if (n < cap)
            out[n] = block;
        n++;
    }
    return n;
}

static const char *check_links(const struct block_queue *queue)
{
    uint64_t length = 0, cached = 0;
    for (kv_block block = next_of(queue, 0); block != 0; block = next_of(queue, block)) {
        if (block > queue->blocks || ++length > queue->free_blocks)
            return "block queue: longer than the count of free blocks, or a link leads nowhere";
        if (prev_of(queue, next_of(queue, block)) != block)
            return "block queue: a back link is wrong";
        if (queue->nodes[block].refs != 0)
            return "block queue: a queued block is held";
        cached += (queue->nodes[block].flags & BLOCK_KEYED) != 0;
    }
    if (queue->order != NULL) {
        if (cached != 0)
            return "block queue: a block with a key is not in the eviction order";
        cached = queue->order->count;
        length += cached;
    }
    if (length != queue->free_blocks)
        return "block queue: shorter than the count of free blocks";
    return cached == queue->cached_blocks ? NULL : "block queue: the count of cached blocks is wrong";
}

const char *block_queue_check(const struct block_queue *queue)
{
    const char *wrong = check_links(queue);
    if (wrong == NULL && queue->order != NULL && queue->order->ops->check != NULL)
        wrong = queue->order->ops->check(queue->order);
    uint64_t unheld = 0, keyed = 0, indexed = 0;
    for (uint32_t block = 1; wrong == NULL && block <= queue->blocks; block++) {
        unheld += queue->nodes[block].refs == 0;
        keyed += (queue->nodes[block].flags & BLOCK_KEYED) != 0;
    }
    if (wrong == NULL && unheld != queue->free_blocks)
        wrong = "block queue: a block nobody holds is not in the queue";
    if (wrong == NULL)
        wrong = block_index_check(&queue->index, &indexed);
    if (wrong == NULL && (keyed != queue->keyed_blocks || indexed != keyed))
        wrong = "block queue: the counts of keyed blocks differ";
    return wrong;
}
