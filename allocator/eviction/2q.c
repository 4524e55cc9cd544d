/* 2Q, full version (Johnson and Shasha, VLDB'94): new content enters the queue A1in, which hits do not reorder;
 * what leaves it is remembered in A1out; content that A1out knows enters Am, an LRU list. A1in is evicted from
 * while it holds more than Kin, by default a quarter of the objects; A1out remembers Kout keys, by default half of them; both as the
 * paper suggests and libCacheSim's `twoq` has it. A1out is asked, and forgets, when the miss is announced, before the
 * evictions; without an announcement, at the insertion. Objects in use are passed over. */
#include <assert.h>
#include <stdlib.h>

#include "allocator/eviction.h"
#include "allocator/ghost_list.h"
#include "allocator/object_lists.h"
#include "allocator/seat_queue.h"

extern const struct kv_eviction_ops kv_eviction_2q_ops;

static const struct kv_option in_option = {
    .name = "2q-in-percent",
    .default_text = "25",
    .count_min = 1,
    .count_max = 100,
    .help = "share of the blocks from which on --evict 2q takes from its queue of new ones (Kin)",
};
static const struct kv_option out_option = {
    .name = "2q-out-percent",
    .default_text = "50",
    .count_min = 1,
    .count_max = 100,
    .help = "as a share of the blocks, how many keys --evict 2q remembers of what left it (Kout)",
};
static const struct kv_option *const two_queue_options[] = {&in_option, &out_option, NULL};

enum { AHEAD = 6 }; /* seats whose keys' ghosts are asked for from memory before they are added */

struct two_queue {
    struct kv_eviction base;
    struct seat_queue in;
    struct object_lists am;
    struct ghost_list out;
    struct ghost_list recalled; /* A1out knew them at the miss; they were not inserted yet */
    uint32_t in_target;
    struct two_object { /* together: each is another cache line */
        uint64_t key;
        bool often; /* of Am, in use or not */
    } *objects;
};

static void two_queue_destroy(struct kv_eviction *order)
{
    struct two_queue *q = (struct two_queue *)order;

    if (q == NULL)
        return;
    seat_queue_release(&q->in);
    object_lists_release(&q->am);
    ghost_list_release(&q->out);
    ghost_list_release(&q->recalled);
    free(q->objects);
    free(q);
}

static struct kv_eviction *two_queue_create(uint32_t objects, const struct kv_value *values)
{
    struct two_queue *q = calloc(1, sizeof *q);
    uint32_t out_keys = object_share(objects, values[1].count);
    bool made;

    if (q == NULL)
        return NULL;
    q->base.ops = &kv_eviction_2q_ops;
    q->in_target = object_share(objects, values[0].count);
    q->objects = calloc(objects, sizeof *q->objects);
    made = seat_queue_init(&q->in, objects);
    made = object_lists_init(&q->am, objects, 1) && made;
    made = ghost_list_init(&q->out, out_keys) && made;
    made = ghost_list_init(&q->recalled, out_keys) && made;
    if (made && q->objects != NULL)
        return &q->base;
    two_queue_destroy(&q->base);
    return NULL;
}

static void two_queue_soon(const struct kv_eviction *order, uint64_t key)
{
    ghost_list_prefetch(&((const struct two_queue *)order)->out, key);
}

static void two_queue_miss(struct kv_eviction *order, uint64_t key)
{
    struct two_queue *q = (struct two_queue *)order;

    if (ghost_list_remove(&q->out, key))
        ghost_list_add(&q->recalled, key);
}

static void two_queue_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    struct two_queue *q = (struct two_queue *)order;

    q->objects[object].key = content->key;
    q->objects[object].often = ghost_list_remove(&q->recalled, content->key) ||
                       ghost_list_remove(&q->out, content->key);
}

static void two_queue_give(struct kv_eviction *order, uint32_t object)
{
    struct two_queue *q = (struct two_queue *)order;

    order->count++;
    if (q->objects[object].often)
        object_lists_push(&q->am, 0, object);
    else if (seat_queue_has(&q->in, object))
        seat_queue_show(&q->in, object);
    else
        seat_queue_push(&q->in, object);
}

static void two_queue_take(struct kv_eviction *order, uint32_t object)
{
    struct two_queue *q = (struct two_queue *)order;

    order->count--;
    if (q->objects[object].often)
        object_lists_remove(&q->am, object);
    else
        seat_queue_hide(&q->in, object);
}

static void two_queue_touch(struct kv_eviction *order, uint32_t object)
{
    struct two_queue *q = (struct two_queue *)order;

    if (!q->objects[object].often)
        return;
    object_lists_remove(&q->am, object);
    object_lists_push(&q->am, 0, object);
}

static uint32_t two_queue_next_victim(const struct kv_eviction *order)
{
    const struct two_queue *q = (const struct two_queue *)order;
    uint32_t seat = seat_queue_next(&q->in, 0), often = object_lists_oldest(&q->am, 0);

    assert(order->count > 0);
    if (seat != SEAT_NONE && (q->in.count > q->in_target || often == KV_OBJECT_NONE))
        return seat_queue_object(&q->in, seat);
    return often;
}

static uint32_t two_queue_evict(struct kv_eviction *order)
{
    struct two_queue *q = (struct two_queue *)order;
    uint32_t victim = two_queue_next_victim(order);

    order->count--;
    if (q->objects[victim].often) {
        object_lists_remove(&q->am, victim);
    } else {
        uint32_t seat = q->in.seat_of[victim] - 1, ahead = seat_queue_ahead(&q->in, seat, 2 * AHEAD);

        if (ahead != KV_OBJECT_NONE)
            __builtin_prefetch(&q->objects[ahead]);
        ahead = seat_queue_ahead(&q->in, seat, AHEAD);
        if (ahead != KV_OBJECT_NONE)
            ghost_list_prefetch(&q->out, q->objects[ahead].key);
        seat_queue_remove(&q->in, victim);
        ghost_list_add(&q->out, q->objects[victim].key);
    }
    return victim;
}

static const char *two_queue_check(const struct kv_eviction *order)
{
    const struct two_queue *q = (const struct two_queue *)order;
    uint32_t in, often;

    if (!seat_queue_sound(&q->in, &in) || !object_lists_sound(&q->am, 0, &often))
        return "2q: a queue contradicts itself";
    return in + often == order->count ? NULL : "2q: the count is not what the queues show";
}

const struct kv_eviction_ops kv_eviction_2q_ops = {
    .flags = KV_EVICTION_ORPHANS | KV_EVICTION_LATE_KEYS,
    .name = "2q",
    .summary = "new content queues in a quarter of the cache; what comes back soon after is kept by use",
    .source = "2Q, VLDB'94, full version: Kin 25 %, Kout 50 %",
    .description = "New blocks wait in a first-in-first-out queue of a quarter of the cache. What falls out of it is "
                   "remembered by key, half as many as there are blocks; when such a key comes back its block joins the "
                   "second queue, least recently used. One scan cannot flush the second queue. O(1).",
    .options = two_queue_options,
    .create = two_queue_create,
    .destroy = two_queue_destroy,
    .miss = two_queue_miss,
    .insert = two_queue_insert,
    .give = two_queue_give,
    .take = two_queue_take,
    .touch = two_queue_touch,
    .evict = two_queue_evict,
    .next_victim = two_queue_next_victim,
    .soon = two_queue_soon,
    .check = two_queue_check,
};
