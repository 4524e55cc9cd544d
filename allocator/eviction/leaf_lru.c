/* Least recently used among the leaves (SGLang's radix cache): a block goes only when no cached block continues it.
 * A block continues the one that stood before it when it was filled, while both stay cached. When every
 * evictable block is continued, the least recently used of them goes.
 *
 * A search for a leaf starts at the oldest block and leaves those that are continued behind it, so it never looks at a
 * block twice; one of these that becomes a leaf is older than all that the search has not seen. Where owners give a
 * prompt's last block back first, the oldest nearly always is a leaf. */
#include <assert.h>
#include <stdlib.h>

#include "allocator/eviction.h"
#include "allocator/object_heap.h"
#include "allocator/object_lists.h"

extern const struct kv_eviction_ops kv_eviction_leaf_lru_ops;

struct leaf {
    uint32_t parent;       /* or KV_OBJECT_NONE */
    uint32_t parent_life;  /* its `life` when this was filled: another now means another content */
    uint32_t life;         /* contents evicted so far */
    uint32_t children : 31;
    uint32_t behind : 1;   /* the search has passed it since it was given back */
    uint64_t given;        /* clock when it was given back */
};

enum { AHEAD, BEHIND, LISTS }; /* of the search; behind it: no leaves */

struct leaf_lru {
    struct kv_eviction base;
    struct object_lists lists; /* both by `given` */
    struct object_heap ripe;   /* leaves that were behind the search, by `given` */
    struct leaf *leaves;
    uint64_t clock;
};

static void leaf_destroy(struct kv_eviction *order)
{
    struct leaf_lru *lru = (struct leaf_lru *)order;

    if (lru == NULL)
        return;
    object_lists_release(&lru->lists);
    object_heap_release(&lru->ripe);
    free(lru->leaves);
    free(lru);
}

static struct kv_eviction *leaf_create(uint32_t objects, const struct kv_value *values)
{
    struct leaf_lru *lru = calloc(1, sizeof *lru);
    bool made;

    (void)values;
    if (lru == NULL)
        return NULL;
    lru->base.ops = &kv_eviction_leaf_lru_ops;
    lru->leaves = calloc(objects, sizeof *lru->leaves);
    made = object_lists_init(&lru->lists, objects, LISTS);
    made = object_heap_init(&lru->ripe, objects) && made;
    if (made && lru->leaves != NULL)
        return &lru->base;
    leaf_destroy(&lru->base);
    return NULL;
}

static void lose_child(struct leaf_lru *lru, uint32_t object)
{
    struct leaf *leaf = &lru->leaves[object];

    assert(leaf->children > 0);
    if (--leaf->children > 0 || !leaf->behind || !object_lists_has(&lru->lists, object))
        return;
    object_lists_remove(&lru->lists, object);
    object_heap_push(&lru->ripe, object, leaf->given, 0);
}

static void leaf_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    struct leaf_lru *lru = (struct leaf_lru *)order;
    struct leaf *leaf = &lru->leaves[object];

    leaf->children = 0;
    leaf->parent = content->parent;
    if (content->parent != KV_OBJECT_NONE) {
        leaf->parent_life = lru->leaves[content->parent].life;
        assert(!object_lists_has(&lru->lists, content->parent) && !object_heap_has(&lru->ripe, content->parent));
        lru->leaves[content->parent].children++;
    }
}

static void leaf_give(struct kv_eviction *order, uint32_t object)
{
    struct leaf_lru *lru = (struct leaf_lru *)order;

    lru->leaves[object].given = ++lru->clock;
    lru->leaves[object].behind = false;
    object_lists_push(&lru->lists, AHEAD, object);
    order->count++;
}

static void leaf_take(struct kv_eviction *order, uint32_t object)
{
    struct leaf_lru *lru = (struct leaf_lru *)order;

    if (object_heap_has(&lru->ripe, object))
        object_heap_remove(&lru->ripe, object);
    else
        object_lists_remove(&lru->lists, object);
    order->count--;
}

static void leaf_touch(struct kv_eviction *order, uint32_t object)
{
    leaf_take(order, object);
    leaf_give(order, object);
}

static uint32_t leaf_next_victim(const struct kv_eviction *order)
{
    const struct leaf_lru *lru = (const struct leaf_lru *)order;
    uint32_t ahead = object_lists_oldest(&lru->lists, AHEAD), behind = object_lists_oldest(&lru->lists, BEHIND);
    uint32_t leaf = ahead;

    assert(order->count > 0);
    if (lru->ripe.count > 0)
        return object_heap_top(&lru->ripe);
    while (leaf != KV_OBJECT_NONE && lru->leaves[leaf].children > 0)
        leaf = object_lists_newer(&lru->lists, leaf);
    if (leaf != KV_OBJECT_NONE)
        return leaf;
    return behind != KV_OBJECT_NONE ? behind : ahead;
}

/* The same, and what is passed on the way stays behind. */
static uint32_t search(struct leaf_lru *lru)
{
    uint32_t at;

    if (lru->ripe.count > 0)
        return object_heap_top(&lru->ripe);
    while ((at = object_lists_oldest(&lru->lists, AHEAD)) != KV_OBJECT_NONE && lru->leaves[at].children > 0) {
        object_lists_remove(&lru->lists, at);
        object_lists_push(&lru->lists, BEHIND, at);
        lru->leaves[at].behind = true;
    }
    return at != KV_OBJECT_NONE ? at : object_lists_oldest(&lru->lists, BEHIND);
}

static uint32_t leaf_evict(struct kv_eviction *order)
{
    struct leaf_lru *lru = (struct leaf_lru *)order;
    uint32_t victim = search(lru);
    struct leaf *leaf = &lru->leaves[victim];

    leaf_take(order, victim);
    leaf->life++;
    if (leaf->parent != KV_OBJECT_NONE && lru->leaves[leaf->parent].life == leaf->parent_life)
        lose_child(lru, leaf->parent);
    return victim;
}

static const char *leaf_check(const struct kv_eviction *order)
{
    const struct leaf_lru *lru = (const struct leaf_lru *)order;
    uint32_t ahead, behind;

    if (!object_heap_sound(&lru->ripe))
        return "leaf-lru: the heap contradicts itself";
    if (!object_lists_sound(&lru->lists, AHEAD, &ahead) || !object_lists_sound(&lru->lists, BEHIND, &behind))
        return "leaf-lru: a list contradicts itself";
    for (uint32_t at = object_lists_oldest(&lru->lists, BEHIND); at != KV_OBJECT_NONE; at = object_lists_newer(&lru->lists, at))
        if (lru->leaves[at].children == 0 || !lru->leaves[at].behind)
            return "leaf-lru: the search has passed a leaf";
    return ahead + behind + lru->ripe.count == order->count ? NULL : "leaf-lru: the count is not that of lists and heap";
}

const struct kv_eviction_ops kv_eviction_leaf_lru_ops = {
    .flags = KV_EVICTION_STRUCTURE | KV_EVICTION_LATE_KEYS,
    .name = "leaf-lru",
    .summary = "least recently used among the blocks that no cached block continues",
    .source = "SGLang radix cache",
    .description = "A block can go only when no cached block continues it: leaves of the tree of prompts, the least "
                   "recently used first. If all are continued, the least recently used. O(1) where "
                   "prompts are given back last block first, else O(log n).",
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
