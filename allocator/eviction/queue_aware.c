/* What waiting requests will look for stays as long as something else can go: least recently used first among the blocks
 * that none of the first requests of the waiting queue has in its prompt, then least recently used among the others. After
 * vLLM's proposal of a waiting-queue-informed LRU (RFC 48485, 2026-07), which changes neither the queue's order nor what
 * is obtainable: nothing is reserved or pinned.
 *
 * vLLM looks when it evicts, and protects only leading blocks that are cached at that moment; here all blocks of those
 * prompts count, also behind one that is missing. As chains lose their tails first, these are nearly always the same. */
#include <stdlib.h>

#include "allocator/age_queue.h"
#include "allocator/eviction.h"

extern const struct kv_eviction_ops kv_eviction_queue_aware_ops;

static const struct kv_option depth_option = {
    .name = "queue-depth",
    .default_text = "256",
    .count_min = 1,
    .count_max = UINT32_MAX,
    .help = "waiting requests, from the head of the queue and with the one under way, whose prompts --evict queue-aware "
            "protects; in 'cache' the next ones of the trace",
};
static const struct kv_option *const queue_options[] = {&depth_option, NULL};

struct queue_aware {
    struct kv_eviction base;
    struct age_queue rest;   /* by last use */
    struct object_heap kept; /* those expected, by last use */
    bool *expected;          /* [objects] */
};

static void queue_destroy(struct kv_eviction *order)
{
    struct queue_aware *q = (struct queue_aware *)order;

    if (q == NULL)
        return;
    age_queue_release(&q->rest);
    object_heap_release(&q->kept);
    free(q->expected);
    free(q);
}

static struct kv_eviction *queue_create(uint32_t objects, const struct kv_value *values)
{
    struct queue_aware *q = calloc(1, sizeof *q);
    bool made;

    if (q == NULL)
        return NULL;
    q->base.ops = &kv_eviction_queue_aware_ops;
    q->base.queue_requests = (uint32_t)values[0].count;
    q->expected = calloc(objects, sizeof *q->expected);
    made = age_queue_init(&q->rest, objects);
    made = object_heap_init(&q->kept, objects) && made;
    if (made && q->expected != NULL)
        return &q->base;
    queue_destroy(&q->base);
    return NULL;
}

static void queue_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    (void)content;
    ((struct queue_aware *)order)->expected[object] = false;
}

static void keep(struct queue_aware *q, uint32_t object)
{
    object_heap_push(&q->kept, object, q->rest.stamps[object], 0);
}

static void queue_give(struct kv_eviction *order, uint32_t object)
{
    struct queue_aware *q = (struct queue_aware *)order;

    order->count++;
    if (!q->expected[object]) {
        age_queue_push(&q->rest, object);
        return;
    }
    age_queue_stamp(&q->rest, object);
    keep(q, object);
}

static void queue_take(struct kv_eviction *order, uint32_t object)
{
    struct queue_aware *q = (struct queue_aware *)order;

    if (object_heap_has(&q->kept, object))
        object_heap_remove(&q->kept, object);
    else
        age_queue_remove(&q->rest, object);
    order->count--;
}

static void queue_touch(struct kv_eviction *order, uint32_t object)
{
    queue_take(order, object);
    queue_give(order, object);
}

static void queue_expect(struct kv_eviction *order, uint32_t object, bool expected)
{
    struct queue_aware *q = (struct queue_aware *)order;

    if (q->expected[object] == expected)
        return;
    q->expected[object] = expected;
    if (object_heap_has(&q->kept, object)) {
        object_heap_remove(&q->kept, object);
        age_queue_put_back(&q->rest, object);
    } else if (age_queue_has(&q->rest, object)) {
        age_queue_remove(&q->rest, object);
        keep(q, object);
    }
}

static uint32_t queue_next_victim(const struct kv_eviction *order)
{
    const struct queue_aware *q = (const struct queue_aware *)order;

    return q->rest.count > 0 ? age_queue_oldest(&q->rest) : object_heap_top(&q->kept);
}

static uint32_t queue_evict(struct kv_eviction *order)
{
    uint32_t victim = queue_next_victim(order);

    queue_take(order, victim);
    return victim;
}

static const char *queue_check(const struct kv_eviction *order)
{
    const struct queue_aware *q = (const struct queue_aware *)order;

    if (!age_queue_sound(&q->rest) || !object_heap_sound(&q->kept))
        return "queue-aware: a queue contradicts itself";
    return q->rest.count + q->kept.count == order->count ? NULL : "queue-aware: the count is not that of the queues";
}

const struct kv_eviction_ops kv_eviction_queue_aware_ops = {
    .flags = KV_EVICTION_STRUCTURE | KV_EVICTION_LATE_KEYS,
    .name = "queue-aware",
    .summary = "what waiting requests will look for last, else least recently used",
    .source = "vLLM RFC 48485, waiting-queue-informed LRU, 2026-07",
    .description = "The prompts of the first --queue-depth waiting requests, the one that is being admitted among them, are known. Blocks that none "
                   "of them contains go first, least recently used; then the others in the same order. Nothing is pinned, "
                   "and what is obtainable does not change. In 'cache', where nobody waits, the queue is the next "
                   "requests of the trace; when they want more than there is room for, all are protected alike. O(1), O(log n) for blocks that are expected, and a look-up for each block of "
                   "a prompt that enters or leaves the head of the queue.",
    .options = queue_options,
    .create = queue_create,
    .destroy = queue_destroy,
    .insert = queue_insert,
    .give = queue_give,
    .take = queue_take,
    .touch = queue_touch,
    .evict = queue_evict,
    .next_victim = queue_next_victim,
    .expect = queue_expect,
    .check = queue_check,
};
