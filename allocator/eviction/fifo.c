/* First in, first out. Unit-size streams: the textbook FIFO, as libCacheSim's `fifo`. Hits change nothing;
 * a block in use keeps its place. */
#include <assert.h>

#include "allocator/eviction.h"
#include "allocator/seat_queue.h"

#include <stdlib.h>

extern const struct kv_eviction_ops kv_eviction_fifo_ops;

struct fifo {
    struct kv_eviction base;
    struct seat_queue queue;
};

static void fifo_destroy(struct kv_eviction *order)
{
    if (order != NULL)
        seat_queue_release(&((struct fifo *)order)->queue);
    free(order);
}

static struct kv_eviction *fifo_create(uint32_t objects, const struct kv_value *values)
{
    struct fifo *fifo = calloc(1, sizeof *fifo);

    (void)values;
    if (fifo == NULL)
        return NULL;
    fifo->base.ops = &kv_eviction_fifo_ops;
    if (seat_queue_init(&fifo->queue, objects))
        return &fifo->base;
    free(fifo);
    return NULL;
}

static void fifo_give(struct kv_eviction *order, uint32_t object)
{
    struct fifo *fifo = (struct fifo *)order;

    if (seat_queue_has(&fifo->queue, object))
        seat_queue_show(&fifo->queue, object);
    else
        seat_queue_push(&fifo->queue, object);
    order->count++;
}

static void fifo_take(struct kv_eviction *order, uint32_t object)
{
    seat_queue_hide(&((struct fifo *)order)->queue, object);
    order->count--;
}

static void fifo_touch(struct kv_eviction *order, uint32_t object)
{
    (void)order;
    (void)object;
}

static uint32_t fifo_next_victim(const struct kv_eviction *order)
{
    const struct seat_queue *queue = &((const struct fifo *)order)->queue;

    assert(order->count > 0);
    return seat_queue_object(queue, seat_queue_next(queue, 0));
}

static uint32_t fifo_evict(struct kv_eviction *order)
{
    uint32_t victim = fifo_next_victim(order);

    seat_queue_remove(&((struct fifo *)order)->queue, victim);
    order->count--;
    return victim;
}

static const char *fifo_check(const struct kv_eviction *order)
{
    uint32_t shown;

    if (!seat_queue_sound(&((const struct fifo *)order)->queue, &shown))
        return "fifo: the queue contradicts itself";
    return shown == order->count ? NULL : "fifo: the count is not what the queue shows";
}

const struct kv_eviction_ops kv_eviction_fifo_ops = {
    .flags = KV_EVICTION_ORPHANS | KV_EVICTION_LATE_KEYS,
    .name = "fifo",
    .summary = "first filled, first evicted",
    .source = "textbook; as libCacheSim's fifo on streams",
    .description = "Evicts in the order in which content was filled; hits change nothing. A block in use keeps its "
                   "place. O(1).",
    .create = fifo_create,
    .destroy = fifo_destroy,
    .give = fifo_give,
    .take = fifo_take,
    .touch = fifo_touch,
    .evict = fifo_evict,
    .next_victim = fifo_next_victim,
    .check = fifo_check,
};
