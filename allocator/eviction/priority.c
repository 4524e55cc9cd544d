/* Priorities of requests decide what stays: the block of the least urgent request goes first, among equals the least
 * recently used. A block has the most urgent priority of the requests that used it since it was filled, so a prefix
 * is never less urgent than what continues it. SGLang's radix cache with eviction policy `priority` is like it (a
 * node has the highest priority that came through it); there larger numbers are more urgent, here smaller ones are, as
 * in vLLM's scheduler and in traces. TensorRT-LLM keeps a list a priority in the same way, but a block keeps the
 * priority with which it was stored, and may lose it after a time. */
#include <stdlib.h>

#include "allocator/eviction.h"
#include "allocator/rank_lists.h"

extern const struct kv_eviction_ops kv_eviction_priority_ops;

struct urgency {
    struct kv_eviction base;
    struct rank_lists ranks;
    int64_t now;      /* priority of the request under way */
    int64_t *highest; /* [objects] the most urgent, that is the smallest, so far */
};

static void priority_destroy(struct kv_eviction *order)
{
    struct urgency *urgency = (struct urgency *)order;

    if (urgency == NULL)
        return;
    rank_lists_release(&urgency->ranks);
    free(urgency->highest);
    free(urgency);
}

static struct kv_eviction *priority_create(uint32_t objects, const struct kv_value *values)
{
    struct urgency *urgency = calloc(1, sizeof *urgency);

    (void)values;
    if (urgency == NULL)
        return NULL;
    urgency->base.ops = &kv_eviction_priority_ops;
    urgency->highest = calloc(objects, sizeof *urgency->highest);
    if (urgency->highest != NULL && rank_lists_init(&urgency->ranks, objects))
        return &urgency->base;
    priority_destroy(&urgency->base);
    return NULL;
}

static void priority_begin(struct kv_eviction *order, struct kv_kind kind)
{
    ((struct urgency *)order)->now = kind.priority;
}

static void priority_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    (void)content;
    ((struct urgency *)order)->highest[object] = ((struct urgency *)order)->now;
}

static void priority_share(struct kv_eviction *order, uint32_t object)
{
    struct urgency *urgency = (struct urgency *)order;

    if (urgency->now < urgency->highest[object])
        urgency->highest[object] = urgency->now;
}

/* The least rank is the largest number: turned round, after the sign bit made it one without sign. */
static void priority_give(struct kv_eviction *order, uint32_t object)
{
    struct urgency *urgency = (struct urgency *)order;
    uint64_t unsigned_priority = (uint64_t)urgency->highest[object] ^ (uint64_t)1 << 63;

    rank_lists_push(&urgency->ranks, object, UINT64_MAX - unsigned_priority);
    order->count++;
}

static void priority_take(struct kv_eviction *order, uint32_t object)
{
    rank_lists_remove(&((struct urgency *)order)->ranks, object);
    order->count--;
    priority_share(order, object);
}

static void priority_touch(struct kv_eviction *order, uint32_t object)
{
    priority_take(order, object);
    priority_give(order, object);
}

static uint32_t priority_next_victim(const struct kv_eviction *order)
{
    return rank_lists_first(&((const struct urgency *)order)->ranks);
}

static uint32_t priority_evict(struct kv_eviction *order)
{
    uint32_t victim = priority_next_victim(order);

    rank_lists_remove(&((struct urgency *)order)->ranks, victim);
    order->count--;
    return victim;
}

static const char *priority_check(const struct kv_eviction *order)
{
    const struct urgency *urgency = (const struct urgency *)order;

    if (!rank_lists_sound(&urgency->ranks))
        return "priority: the lists contradict themselves";
    return urgency->ranks.count == order->count ? NULL : "priority: the count is not that of the lists";
}

const struct kv_eviction_ops kv_eviction_priority_ops = {
    .flags = KV_EVICTION_STRUCTURE | KV_EVICTION_LATE_KEYS,
    .name = "priority",
    .summary = "blocks of the least urgent requests first, then least recently used",
    .source = "SGLang radix cache, eviction policy priority",
    .description = "A block has the most urgent priority (the smallest number) of all requests that used it since it was "
                   "filled; the largest number goes first, among equals the least recently used. Priorities are the "
                   "trace's column, whatever the scheduler does with them; without it this is lru. O(log priorities).",
    .create = priority_create,
    .destroy = priority_destroy,
    .begin = priority_begin,
    .insert = priority_insert,
    .give = priority_give,
    .take = priority_take,
    .share = priority_share,
    .touch = priority_touch,
    .evict = priority_evict,
    .next_victim = priority_next_victim,
    .check = priority_check,
};
