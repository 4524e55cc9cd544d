/* SIEVE (Zhang et al., NSDI'24, algorithm 1): one queue that hits do not reorder, a visited bit an object, and a
 * hand that moves from the oldest to the newest. The hand evicts the first object that was not hit since it
 * last passed, and clears the bits of those it passes; past the newest it starts again at the oldest. Unit-size
 * streams are libCacheSim's `sieve`. Objects in use are passed over and keep their bit. */
#include <assert.h>
#include <stdlib.h>

#include "allocator/eviction.h"
#include "allocator/seat_queue.h"

extern const struct kv_eviction_ops kv_eviction_sieve_ops;

struct sieve {
    struct kv_eviction base;
    struct seat_queue queue; /* its cursor is the hand: the next seat to look at */
    bool *visited;
};

static void sieve_destroy(struct kv_eviction *order)
{
    struct sieve *sieve = (struct sieve *)order;

    if (sieve == NULL)
        return;
    seat_queue_release(&sieve->queue);
    free(sieve->visited);
    free(sieve);
}

static struct kv_eviction *sieve_create(uint32_t objects, const struct kv_value *values)
{
    struct sieve *sieve = calloc(1, sizeof *sieve);

    (void)values;
    if (sieve == NULL)
        return NULL;
    sieve->base.ops = &kv_eviction_sieve_ops;
    sieve->visited = calloc(objects, sizeof *sieve->visited);
    if (sieve->visited != NULL && seat_queue_init(&sieve->queue, objects))
        return &sieve->base;
    sieve_destroy(&sieve->base);
    return NULL;
}

static void sieve_give(struct kv_eviction *order, uint32_t object)
{
    struct sieve *sieve = (struct sieve *)order;

    order->count++;
    if (seat_queue_has(&sieve->queue, object)) {
        seat_queue_show(&sieve->queue, object);
        return;
    }
    sieve->visited[object] = false;
    seat_queue_push(&sieve->queue, object);
}

static void sieve_touch(struct kv_eviction *order, uint32_t object)
{
    ((struct sieve *)order)->visited[object] = true;
}

static void sieve_take(struct kv_eviction *order, uint32_t object)
{
    sieve_touch(order, object);
    seat_queue_hide(&((struct sieve *)order)->queue, object);
    order->count--;
}

static uint32_t sieve_evict(struct kv_eviction *order)
{
    struct sieve *sieve = (struct sieve *)order;

    assert(order->count > 0);
    for (;;) { /* at most one round clears bits, so the second finds a victim */
        uint32_t seat = seat_queue_next(&sieve->queue, sieve->queue.cursor), object;

        if (seat == SEAT_NONE) {
            sieve->queue.cursor = 0;
            continue;
        }
        object = seat_queue_object(&sieve->queue, seat);
        sieve->queue.cursor = seat + 1;
        if (!sieve->visited[object]) {
            seat_queue_remove(&sieve->queue, object);
            if (sieve->queue.cursor >= sieve->queue.next_seat)
                sieve->queue.cursor = 0; /* now: what arrives next is not under the hand */
            order->count--;
            return object;
        }
        sieve->visited[object] = false;
    }
}

static const char *sieve_check(const struct kv_eviction *order)
{
    uint32_t shown;

    if (!seat_queue_sound(&((const struct sieve *)order)->queue, &shown))
        return "sieve: the queue contradicts itself";
    return shown == order->count ? NULL : "sieve: the count is not what the queue shows";
}

const struct kv_eviction_ops kv_eviction_sieve_ops = {
    .flags = KV_EVICTION_ORPHANS | KV_EVICTION_LATE_KEYS,
    .name = "sieve",
    .summary = "a hand over a queue evicts what was not hit since it last passed",
    .source = "SIEVE, NSDI'24, algorithm 1",
    .description = "One queue in the order of filling and a hand that walks it from the oldest: a block that was hit "
                   "since the hand last passed is spared once, the next that was not goes. O(1) amortised.",
    .create = sieve_create,
    .destroy = sieve_destroy,
    .give = sieve_give,
    .take = sieve_take,
    .touch = sieve_touch,
    .evict = sieve_evict,
    .check = sieve_check,
};
