#include "allocator/counted_order.h"

#include <assert.h>
#include <stdlib.h>

void counted_destroy(struct kv_eviction *order)
{
    struct counted_order *counted = (struct counted_order *)order;

    if (counted == NULL)
        return;
    rank_lists_release(&counted->ranks);
    free(counted->uses);
    free(counted->depths);
    free(counted);
}

struct kv_eviction *counted_create(const struct kv_eviction_ops *ops, uint32_t objects,
                                   uint64_t (*rank)(const struct counted_order *, uint32_t))
{
    struct counted_order *counted = calloc(1, sizeof *counted);

    if (counted == NULL)
        return NULL;
    counted->base.ops = ops;
    counted->rank = rank;
    counted->uses = calloc(objects, sizeof *counted->uses);
    counted->depths = calloc(objects, sizeof *counted->depths);
    if (counted->uses != NULL && counted->depths != NULL && rank_lists_init(&counted->ranks, objects))
        return &counted->base;
    counted_destroy(&counted->base);
    return NULL;
}

void counted_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    struct counted_order *counted = (struct counted_order *)order;

    counted->uses[object] = 1;
    counted->depths[object] = content->depth;
}

void counted_give(struct kv_eviction *order, uint32_t object)
{
    struct counted_order *counted = (struct counted_order *)order;

    rank_lists_push(&counted->ranks, object, counted->rank(counted, object));
    order->count++;
}

void counted_take(struct kv_eviction *order, uint32_t object)
{
    struct counted_order *counted = (struct counted_order *)order;

    if (counted->uses[object] < UINT32_MAX)
        counted->uses[object]++;
    rank_lists_remove(&counted->ranks, object);
    order->count--;
}

void counted_touch(struct kv_eviction *order, uint32_t object)
{
    counted_take(order, object);
    counted_give(order, object);
}

uint32_t counted_next_victim(const struct kv_eviction *order)
{
    return rank_lists_first(&((const struct counted_order *)order)->ranks);
}

uint32_t counted_evict(struct kv_eviction *order)
{
    struct counted_order *counted = (struct counted_order *)order;
    uint32_t victim = rank_lists_first(&counted->ranks);

    counted->evicted = rank_lists_least(&counted->ranks);
    rank_lists_remove(&counted->ranks, victim);
    order->count--;
    return victim;
}

const char *counted_check(const struct kv_eviction *order)
{
    const struct counted_order *counted = (const struct counted_order *)order;

    if (!rank_lists_sound(&counted->ranks))
        return "the lists of ranks contradict themselves";
    return counted->ranks.count == order->count ? NULL : "the count is not that of the lists";
}
