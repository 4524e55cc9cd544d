/* Least recently used: evicts the object that was given back longest ago. This is vLLM's free queue,
 * seen from the blocks that carry content. */
#include "allocator/eviction.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

extern const struct kv_eviction_ops kv_eviction_lru_ops;

/* A ring in one array, 8 bytes an object. Node `objects` is the head: its next is the oldest, its
 * prev the newest. {0, 0} is a node outside the ring (inside, that would be a ring without head),
 * so the array starts right as zeros and untouched pages stay unmapped. */
struct node {
    uint32_t prev;
    uint32_t next;
};

struct lru {
    struct kv_eviction base;
    uint32_t head;
    struct node *nodes; /* objects + 1 */
};

static struct lru *lru_of(struct kv_eviction *order)
{
    return (struct lru *)order;
}

static bool inside(const struct node *node)
{
    return (node->prev | node->next) != 0;
}

static void lru_destroy(struct kv_eviction *order)
{
    if (order == NULL)
        return;
    free(lru_of(order)->nodes);
    free(order);
}

static struct kv_eviction *lru_create(uint32_t objects, const struct kv_value *values)
{
    struct lru *lru = malloc(sizeof *lru);

    (void)values;
    assert(objects > 0 && objects < UINT32_C(1) << 31);
    if (lru == NULL)
        return NULL;
    *lru = (struct lru){.base.ops = &kv_eviction_lru_ops, .head = objects};
    lru->nodes = calloc((size_t)objects + 1, sizeof *lru->nodes);
    if (lru->nodes == NULL) {
        free(lru);
        return NULL;
    }
    lru->nodes[objects] = (struct node){objects, objects};
    return &lru->base;
}

static void link_newest(struct lru *lru, uint32_t object)
{
    struct node *head = &lru->nodes[lru->head];

    lru->nodes[object] = (struct node){.prev = head->prev, .next = lru->head};
    lru->nodes[head->prev].next = object;
    head->prev = object;
}

static void unlink_node(struct lru *lru, uint32_t object)
{
    struct node node = lru->nodes[object];

    lru->nodes[node.prev].next = node.next;
    lru->nodes[node.next].prev = node.prev;
}

static void lru_give(struct kv_eviction *order, uint32_t object)
{
    struct lru *lru = lru_of(order);

    assert(object < lru->head && !inside(&lru->nodes[object]));
    link_newest(lru, object);
    order->count++;
}

static void lru_take(struct kv_eviction *order, uint32_t object)
{
    struct lru *lru = lru_of(order);

    assert(object < lru->head && inside(&lru->nodes[object]));
    unlink_node(lru, object);
    lru->nodes[object] = (struct node){0, 0};
    order->count--;
}

static void lru_touch(struct kv_eviction *order, uint32_t object)
{
    struct lru *lru = lru_of(order);

    assert(object < lru->head && inside(&lru->nodes[object]));
    unlink_node(lru, object);
    link_newest(lru, object);
}

static uint32_t lru_evict(struct kv_eviction *order)
{
    struct lru *lru = lru_of(order);
    uint32_t oldest = lru->nodes[lru->head].next;

    assert(order->count > 0 && oldest != lru->head);
    lru_take(order, oldest);
    __builtin_prefetch(&lru->nodes[lru->nodes[lru->head].next], 1);
    return oldest;
}

static uint32_t lru_next_victim(const struct kv_eviction *order)
{
    const struct lru *lru = (const struct lru *)order;

    assert(order->count > 0);
    return lru->nodes[lru->head].next;
}

static const char *lru_check(const struct kv_eviction *order)
{
    const struct lru *lru = (const struct lru *)order;
    uint32_t found = 0;

    for (uint32_t i = lru->nodes[lru->head].next, before = lru->head; i != lru->head;
         before = i, i = lru->nodes[i].next) {
        if (i > lru->head)
            return "lru: a link leaves the array";
        if (lru->nodes[i].prev != before)
            return "lru: links back and forth differ";
        if (++found > order->count)
            return "lru: more objects in the ring than counted";
    }
    return found == order->count ? NULL : "lru: fewer objects in the ring than counted";
}

const struct kv_eviction_ops kv_eviction_lru_ops = {
    .flags = KV_EVICTION_STACK | KV_EVICTION_LATE_KEYS,
    .name = "lru",
    .summary = "least recently used first",
    .source = "vLLM v1, free queue of the block pool",
    .description = "Least recently given back goes first. A sequence gives its last block back first, so the tail of a "
                   "prompt goes before its head. In run it is vLLM's free queue itself. O(1); every size of cache from "
                   "one pass.",
    .create = lru_create,
    .destroy = lru_destroy,
    .give = lru_give,
    .take = lru_take,
    .touch = lru_touch,
    .evict = lru_evict,
    .next_victim = lru_next_victim,
    .check = lru_check,
};
