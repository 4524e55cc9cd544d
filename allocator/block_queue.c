#include "allocator/block_queue.h"

#include <assert.h>

#include "allocator/reserve.h"
#include "allocator/vm_area.h"

/* The free queue is an array, so that what will be evicted next is known ahead and can be fetched. Entries and the
 * blocks' places in it are stored as distances from where they are at the start, so that zeroed memory *is* the queue
 * 1, 2, ..., blocks, and a pool of which little is used costs little. Arithmetic is modulo 2^32. */

static uint32_t place_at(struct queue_ring ring, uint64_t position)
{
    return (uint32_t)position & ring.mask;
}

/* The block at a position, 0: a hole. */
static kv_block block_at(struct queue_ring ring, uint64_t position)
{
    uint32_t place = place_at(ring, position);
    return ring.entries[place] + place + 1;
}

static void put_at(struct queue_ring ring, struct keyed_block *nodes, uint64_t position, kv_block block)
{
    uint32_t place = place_at(ring, position);
    ring.entries[place] = block - place - 1;
    nodes[block].place = place - block + 1;
}

/* Makes room for `count` more entries, at most as many as there are blocks outside: moves the blocks together at the
 * head. Then at least half the ring is free, so that this is rare. */
static void make_room(struct block_queue *queue, uint32_t count)
{
    if (queue->tail - queue->head + count <= (uint64_t)queue->ring.mask + 1)
        return;
    uint64_t to = queue->head;
    for (uint64_t from = queue->head; from != queue->tail; from++) {
        kv_block block = block_at(queue->ring, from);
        if (block != 0)
            put_at(queue->ring, queue->nodes, to++, block);
    }
    queue->tail = to;
}

/* The first block, which leaves the queue; 0: it is empty. */
static kv_block pop_head(struct block_queue *queue)
{
    kv_block block = 0;
    while (queue->head != queue->tail && block == 0)
        block = block_at(queue->ring, queue->head++);
    return block;
}

static void take_out(struct block_queue *queue, kv_block block)
{
    uint32_t place = queue->nodes[block].place + block - 1;
    queue->ring.entries[place] = 0 - place - 1;
}

bool block_queue_init(struct block_queue *queue, uint32_t blocks, bool unkeyed_to_head,
                      const struct kv_observer *observer)
{
    assert(blocks > 0 && blocks <= BLOCK_INDEX_BLOCKS_MAX);
    *queue = (struct block_queue){ .blocks = blocks, .free_blocks = blocks, .tail = blocks,
                                   .ring.mask = (uint32_t)(reserve_pow2_ceil(2 * (uint64_t)blocks) - 1),
                                   .unkeyed_to_head = unkeyed_to_head };
    if (observer != NULL)
        queue->observer = *observer;
    queue->nodes = vm_area_map_dense((uint64_t)blocks + 1, sizeof *queue->nodes);
    queue->ring.entries = vm_area_map_dense((uint64_t)queue->ring.mask + 1, sizeof *queue->ring.entries);
    if (queue->nodes != NULL && queue->ring.entries != NULL && block_index_init(&queue->index, queue->nodes, blocks))
        return true;
    block_queue_release(queue);
    return false;
}

bool block_queue_use_order(struct block_queue *queue, const struct kv_eviction_ops *ops, const struct kv_value *values)
{
    assert(queue->free_blocks == queue->blocks && queue->order == NULL);
    queue->order = kv_eviction_create(ops, queue->blocks, values);
    return queue->order != NULL;
}

void block_queue_release(struct block_queue *queue)
{
    if (queue->order != NULL)
        queue->order->ops->destroy(queue->order);
    queue->order = NULL;
    if (queue->index.buckets != NULL)
        block_index_release(&queue->index);
    vm_area_unmap(queue->nodes, (uint64_t)queue->blocks + 1, sizeof *queue->nodes);
    vm_area_unmap(queue->ring.entries, (uint64_t)queue->ring.mask + 1, sizeof *queue->ring.entries);
    queue->nodes = NULL;
    queue->ring.entries = NULL;
}

/* What a loop touches is asked for so many rounds before: blocks, then the buckets of their keys. The loops read
 * copies of the queue's constant fields, which no write through a pointer can change. */
enum { BLOCKS_AHEAD = 24, BUCKETS_AHEAD = 12 };

/* The counts after `blocks` unheld blocks lost their keys, `distinct` of which nobody else carries. */
static void count_evicted(struct block_queue *queue, uint32_t blocks, uint32_t distinct)
{
    queue->cached_blocks -= blocks;
    queue->keyed_blocks -= blocks;
    queue->distinct_keys -= distinct;
    queue->evicted_blocks += blocks;
    queue->generation += blocks;
}

/* Blocks that their order let go lose their keys. */
static void drop_keys(struct block_queue *queue, const kv_block *blocks, uint32_t count)
{
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < count; i++)
        block_index_prefetch_bucket(&queue->index, queue->nodes[blocks[i]].key);
    for (uint32_t i = 0; i < count; i++) {
        distinct += block_index_remove(&queue->index, blocks[i]);
        if (queue->observer.evicted != NULL)
            queue->observer.evicted(queue->observer.context, blocks[i], queue->nodes[blocks[i]].key);
    }
    count_evicted(queue, count, distinct);
}

/* Blocks without a key are in the queue and go first, those with one in the order. */
static void take_in_order(struct block_queue *queue, kv_block *out, uint32_t count)
{
    struct kv_eviction *order = queue->order;
    uint32_t taken = 0;
    for (kv_block block; taken < count && (block = pop_head(queue)) != 0; taken++)
        out[taken] = block;
    for (uint32_t batch; taken < count; taken += batch) {
        batch = count - taken < BLOCKS_AHEAD ? count - taken : BLOCKS_AHEAD;
        for (uint32_t i = taken; i < taken + batch; i++) {
            out[i] = order->ops->evict(order) + 1;
            __builtin_prefetch(&queue->nodes[out[i]], 1);
        }
        drop_keys(queue, out + taken, batch);
    }
    for (uint32_t i = 0; i < count; i++)
        queue->nodes[out[i]].refs = 1;
}

void block_queue_take(struct block_queue *queue, kv_block *out, uint32_t count)
{
    assert(count <= block_queue_obtainable(queue));
    queue->free_blocks -= count;
    if (queue->order != NULL) {
        take_in_order(queue, out, count);
        return;
    }
    const struct queue_ring ring = queue->ring;
    const struct block_index index = queue->index;
    uint64_t head = queue->head, tail = queue->tail;
    uint32_t evicted = 0, distinct = 0;
    for (uint32_t i = 0; i < count; head++) {
        /* Also beyond the present call: whoever takes next finds it there. */
        if (tail - head > BLOCKS_AHEAD) {
            __builtin_prefetch(&index.blocks[block_at(ring, head + BLOCKS_AHEAD)]);
            block_index_prefetch_bucket(&index, index.blocks[block_at(ring, head + BUCKETS_AHEAD)].key);
        }
        kv_block block = block_at(ring, head);
        struct keyed_block *node = &index.blocks[block];
        if (block == 0)
            continue;
        node->refs = 1;
        out[i++] = block;
        if ((node->flags & BLOCK_KEYED) == 0)
            continue;
        evicted++;
        distinct += block_index_remove(&index, block);
        if (queue->observer.evicted != NULL)
            queue->observer.evicted(queue->observer.context, block, node->key);
    }
    queue->head = head;
    count_evicted(queue, evicted, distinct);
}

/* Of the blocks with one key, look-ups find the first: the others have no use while it is there. */
static uint64_t next_use(const struct block_queue *queue, kv_block block)
{
    const struct keyed_block *node = &queue->nodes[block];
    if ((node->flags & BLOCK_FIRST) == 0 || queue->observer.next_use == NULL)
        return UINT64_MAX;
    return queue->observer.next_use(queue->observer.context, node->key);
}

void block_queue_foresee(struct block_queue *queue, const uint64_t *keys, uint64_t count, bool useful)
{
    struct kv_eviction *order = queue->order;
    for (uint64_t i = 0; i < count; i++) {
        kv_block block = block_index_find(&queue->index, keys[i]);
        if (block == KV_BLOCK_NONE || queue->nodes[block].refs > 0)
            continue;
        order->ops->foresee(order, block - 1, useful ? next_use(queue, block) : UINT64_MAX);
        order->ops->touch(order, block - 1);
    }
}

static void give_foreseen(struct block_queue *queue, kv_block block)
{
    struct kv_eviction *order = queue->order;
    order->ops->foresee(order, block - 1, next_use(queue, block));
    order->ops->give(order, block - 1);
    /* The first may have been given up for this one: it is what will be found. */
    if ((queue->nodes[block].flags & BLOCK_FIRST) == 0)
        block_queue_foresee(queue, &queue->nodes[block].key, 1, true);
}

/* Of the blocks from number i on, those that have just been freed without a key go to the head, the last foremost. */
static void give_to_head(struct block_queue *queue, const kv_block *blocks, uint32_t i, uint32_t count)
{
    for (; i < count; i++) {
        const struct keyed_block *node = &queue->nodes[blocks[i]];
        if (blocks[i] != 0 && node->refs == 0 && (node->flags & BLOCK_KEYED) == 0)
            put_at(queue->ring, queue->nodes, --queue->head, blocks[i]);
    }
}

void block_queue_give(struct block_queue *queue, const kv_block *blocks, uint32_t count)
{
    make_room(queue, count);
    const struct queue_ring ring = queue->ring;
    struct keyed_block *nodes = queue->nodes;
    struct kv_eviction *order = queue->order;
    bool to_head = queue->unkeyed_to_head;
    uint64_t tail = queue->tail;
    uint32_t freed = 0, cached = 0, first_for_head = count;
    for (uint32_t i = count; i-- > 0;) {
        kv_block block = blocks[i];
        struct keyed_block *node = &nodes[block];
        if (i >= BLOCKS_AHEAD)
            __builtin_prefetch(&nodes[blocks[i - BLOCKS_AHEAD]]);
        if (block == 0)
            continue;
        assert(node->refs > 0);
        if (--node->refs > 0)
            continue;
        bool keyed = (node->flags & BLOCK_KEYED) != 0;
        freed++;
        cached += keyed;
        if (keyed && order != NULL && order->ops->foresee != NULL)
            give_foreseen(queue, block);
        else if (keyed && order != NULL)
            order->ops->give(order, block - 1);
        else if (keyed || !to_head)
            put_at(ring, nodes, tail++, block);
        else
            first_for_head = i;
    }
    queue->tail = tail;
    queue->free_blocks += freed;
    queue->cached_blocks += cached;
    give_to_head(queue, blocks, first_for_head, count);
}

void block_queue_hold(struct block_queue *queue, kv_block block)
{
    struct keyed_block *node = &queue->nodes[block];
    bool keyed = (node->flags & BLOCK_KEYED) != 0;
    if (node->refs++ > 0) {
        if (keyed && queue->order != NULL && queue->order->ops->share != NULL)
            queue->order->ops->share(queue->order, block - 1);
        return;
    }
    if (keyed && queue->order != NULL)
        queue->order->ops->take(queue->order, block - 1);
    else
        take_out(queue, block);
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
    if (order->queue_requests > 0 && queue->observer.expected != NULL &&
        queue->observer.expected(queue->observer.context, key))
        order->ops->expect(order, block - 1, true);
}

void block_queue_expect(struct block_queue *queue, uint64_t key, bool expected)
{
    kv_block first = block_index_find(&queue->index, key), block = first;
    while (block != KV_BLOCK_NONE) {
        queue->order->ops->expect(queue->order, block - 1, expected);
        block = queue->nodes[block].twin_next;
        if (block == first)
            break;
    }
}

/* The counts after `blocks` blocks got keys, `distinct` of which nobody else carries. */
static void count_keyed(struct block_queue *queue, uint32_t blocks, uint32_t distinct)
{
    queue->distinct_keys += distinct;
    queue->duplicate_keys += blocks - distinct;
    queue->keyed_blocks += blocks;
    queue->generation += blocks;
}

/* A block may have a key already: it is shared after a fork, and the other sequence was first. */
static bool wants_key(const struct block_index *index, kv_block block)
{
    assert(index->blocks[block].refs > 0);
    return (index->blocks[block].flags & BLOCK_KEYED) == 0;
}

static void prefetch_key(const struct block_queue *queue, uint64_t key)
{
    block_index_prefetch_bucket(&queue->index, key);
    if (queue->order->ops->soon != NULL)
        queue->order->ops->soon(queue->order, key);
}

static void set_keys_in_order(struct block_queue *queue, const kv_block *blocks, const uint64_t *keys,
                              uint32_t count, uint32_t first)
{
    for (uint32_t i = 1; i < count && i < BUCKETS_AHEAD; i++)
        prefetch_key(queue, keys[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (count - i > BUCKETS_AHEAD)
            prefetch_key(queue, keys[i + BUCKETS_AHEAD]);
        if (!wants_key(&queue->index, blocks[i]))
            continue;
        count_keyed(queue, 1, block_index_add(&queue->index, blocks[i], keys[i]));
        tell_order(queue, blocks[i], keys[i], i > 0 || first > 0 ? blocks[(int64_t)i - 1] : 0, first + i);
    }
}

void block_queue_set_keys(struct block_queue *queue, const kv_block *blocks, const uint64_t *keys,
                          uint32_t count, uint32_t first)
{
    if (queue->order != NULL) {
        set_keys_in_order(queue, blocks, keys, count, first);
        return;
    }
    const struct block_index index = queue->index;
    uint32_t given = 0, distinct = 0;
    for (uint32_t i = 1; i < count && i < BUCKETS_AHEAD; i++)
        block_index_prefetch_bucket(&index, keys[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (count - i > BUCKETS_AHEAD)
            block_index_prefetch_bucket(&index, keys[i + BUCKETS_AHEAD]);
        if (!wants_key(&index, blocks[i]))
            continue;
        given++;
        distinct += block_index_add(&index, blocks[i], keys[i]);
    }
    count_keyed(queue, given, distinct);
}

void block_queue_set_key(struct block_queue *queue, kv_block block, uint64_t key)
{
    block_queue_set_keys(queue, &block, &key, 1, 0);
}

/* One batch: all slots are requested from memory before the first is used, then all blocks. */
static uint32_t find_batch(const struct block_queue *queue, const uint64_t *keys, uint32_t count,
                           kv_block *out, uint32_t *unheld)
{
    for (uint32_t i = 0; i < count; i++)
        block_index_prefetch_bucket(&queue->index, keys[i]);
    for (uint32_t i = 0; i < count; i++)
        block_index_prefetch_block(&queue->index, keys[i]);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = block_index_find(&queue->index, keys[i]);
        if (out[i] == KV_BLOCK_NONE)
            return i;
        *unheld += block_queue_is_obtainable(queue, out[i]);
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
    for (uint64_t at = queue->head; at != queue->tail; at++) {
        kv_block block = block_at(queue->ring, at);
        if (block == 0)
            continue;
        if (n < cap)
            out[n] = block;
        n++;
    }
    for (kv_block block = 1; queue->order != NULL && block <= queue->blocks; block++) {
        if (queue->nodes[block].refs > 0 || (queue->nodes[block].flags & BLOCK_KEYED) == 0)
            continue;
        if (n < cap)
            out[n] = block;
        n++;
    }
    return n;
}

static const char *check_ring(const struct block_queue *queue)
{
    uint64_t length = 0, cached = 0;
    if (queue->tail - queue->head > (uint64_t)queue->ring.mask + 1)
        return "block queue: more entries than places";
    for (uint64_t at = queue->head; at != queue->tail; at++) {
        kv_block block = block_at(queue->ring, at);
        if (block == 0)
            continue;
        if (block > queue->blocks || ++length > queue->free_blocks)
            return "block queue: longer than the count of free blocks, or an entry is no block";
        if (queue->nodes[block].place + block - 1 != place_at(queue->ring, at))
            return "block queue: a block does not know its place";
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
    const char *wrong = check_ring(queue);
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
