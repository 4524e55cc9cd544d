/* Least recently used among the leaves (SGLang's radix cache): a block goes only when no cached block continues it.
 * A block continues the one that stood before it when it was filled, while both stay cached. When every
 * evictable block is continued by one in use, the least recently used of them goes. A block becomes a leaf at any age,
 * hence a heap: about six times the time of lru a block where nothing else is done. */
#include <assert.h>
#include <stdlib.h>

#include "allocator/eviction.h"
#include "allocator/object_heap.h"

extern const struct kv_eviction_ops kv_eviction_leaf_lru_ops;

struct leaf {
    uint32_t parent;       /* or KV_OBJECT_NONE */
    uint32_t parent_life;  /* its `life` when this was filled: another now means another content */
    uint32_t life;         /* contents evicted so far */
    uint32_t children;
    uint64_t given;        /* clock when it was given back */
};

struct leaf_lru {
    struct kv_eviction base;
    struct object_heap heap; /* leaves first, then by `given` */
    struct leaf *leaves;
    uint64_t clock;
};

static void leaf_destroy(struct kv_eviction *order)
{
    struct leaf_lru *lru = (struct leaf_lru *)order;

    if (lru == NULL)
        return;
    object_heap_release(&lru->heap);
    free(lru->leaves);
    free(lru);
}

static struct kv_eviction *leaf_create(uint32_t objects, const struct kv_value *values)
{
    struct leaf_lru *lru = calloc(1, sizeof *lru);

    (void)values;
    if (lru == NULL)
        return NULL;
    lru->base.ops = &kv_eviction_leaf_lru_ops;
    lru->leaves = calloc(objects, sizeof *lru->leaves);
    if (lru->leaves != NULL && object_heap_init(&lru->heap, objects))
        return &lru->base;
    leaf_destroy(&lru->base);
    return NULL;
}

static void enter(struct leaf_lru *lru, uint32_t object)
{
    object_heap_push(&lru->heap, object, lru->leaves[object].children > 0, lru->leaves[object].given);
}

/* One child more (+1) or less (-1). */
static void add_child(struct leaf_lru *lru, uint32_t object, int change)
{
    struct leaf *leaf = &lru->leaves[object];
    bool inside = object_heap_has(&lru->heap, object);

    assert(change > 0 || leaf->children > 0);
    if (inside)
        object_heap_remove(&lru->heap, object);
    leaf->children += (uint32_t)change;
    if (inside)
        enter(lru, object);
}

static void leaf_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    struct leaf_lru *lru = (struct leaf_lru *)order;
    struct leaf *leaf = &lru->leaves[object];

    leaf->children = 0;
    leaf->parent = content->parent;
    if (content->parent != KV_OBJECT_NONE) {
        leaf->parent_life = lru->leaves[content->parent].life;
        add_child(lru, content->parent, 1);
    }
}

static void leaf_give(struct kv_eviction *order, uint32_t object)
{
    struct leaf_lru *lru = (struct leaf_lru *)order;

    lru->leaves[object].given = ++lru->clock;
    enter(lru, object);
    order->count++;
}

static void leaf_take(struct kv_eviction *order, uint32_t object)
{
    object_heap_remove(&((struct leaf_lru *)order)->heap, object);
    order->count--;
}

static void leaf_touch(struct kv_eviction *order, uint32_t object)
{
    leaf_take(order, object);
    leaf_give(order, object);
}

static uint32_t leaf_next_victim(const struct kv_eviction *order)
{
    return object_heap_top(&((const struct leaf_lru *)order)->heap);
}

static uint32_t leaf_evict(struct kv_eviction *order)
{
    struct leaf_lru *lru = (struct leaf_lru *)order;
    uint32_t victim = leaf_next_victim(order);
    struct leaf *leaf = &lru->leaves[victim];

    leaf_take(order, victim);
    leaf->life++;
    if (leaf->parent != KV_OBJECT_NONE && lru->leaves[leaf->parent].life == leaf->parent_life)
        add_child(lru, leaf->parent, -1);
    return victim;
}

static const char *leaf_check(const struct kv_eviction *order)
{
    const struct leaf_lru *lru = (const struct leaf_lru *)order;

    if (!object_heap_sound(&lru->heap))
        return "leaf-lru: the heap contradicts itself";
    return lru->heap.count == order->count ? NULL : "leaf-lru: the count is not that of the heap";
}

const struct kv_eviction_ops kv_eviction_leaf_lru_ops = {
    .flags = KV_EVICTION_STRUCTURE | KV_EVICTION_LATE_KEYS,
    .name = "leaf-lru",
    .summary = "least recently used among the blocks that no cached block continues",
    .source = "SGLang radix cache",
    .description = "A block can go only when no cached block continues it: leaves of the tree of prompts, the least "
                   "recently used first. If all are continued, the least recently used. O(log n).",
    .create = leaf_create,
    .destroy = leaf_destroy,
    .insert = leaf_insert,
    .give = leaf_give,
    .take = leaf_take,
    .touch = leaf_touch,
    .evict = leaf_evict,
    .next_victim = leaf_next_victim,
    .check = leaf_check,
};
