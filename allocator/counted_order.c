#include "allocator/counted_order.h"

#include <assert.h>
#include <stdlib.h>

void counted_destroy(struct kv_eviction *order)
{
    struct counted_order *counted = (struct counted_order *)order;

    if (counted == NULL)
        return;
    object_heap_release(&counted->heap);
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
    if (counted->uses != NULL && counted->depths != NULL && object_heap_init(&counted->heap, objects))
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

    object_heap_push(&counted->heap, object, counted->rank(counted, object), ++counted->clock);
    order->count++;
}

void counted_take(struct kv_eviction *order, uint32_t object)
{
    struct counted_order *counted = (struct counted_order *)order;

    if (counted->uses[object] < UINT32_MAX)
        counted->uses[object]++;
    object_heap_remove(&counted->heap, object);
    order->count--;
}

void counted_touch(struct kv_eviction *order, uint32_t object)
{
    counted_take(order, object);
    counted_give(order, object);
}

uint32_t counted_next_victim(const struct kv_eviction *order)
{
    return object_heap_top(&((const struct counted_order *)order)->heap);
}

uint32_t counted_evict(struct kv_eviction *order)
{
    struct counted_order *counted = (struct counted_order *)order;
    uint32_t victim = object_heap_top(&counted->heap);

    counted->evicted = object_heap_top_major(&counted->heap);
    object_heap_remove(&counted->heap, victim);
    order->count--;
    return victim;
}

const char *counted_check(const struct kv_eviction *order)
{
    const struct counted_order *counted = (const struct counted_order *)order;

    if (!object_heap_sound(&counted->heap))
        return "the heap of ranks contradicts itself";
    return counted->heap.count == order->count ? NULL : "the count is not that of the heap";
}
