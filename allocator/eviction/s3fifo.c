/* S3-FIFO (Yang et al., SOSP'23, algorithm 1): a small queue S of a tenth of the objects (at least one) by default, a main
 * queue M of the rest, and a ghost of as many keys as M. New content enters S, or M when the ghost knows it. What
 * leaves S goes to M if it was hit at least twice, with its count cleared, else to the ghost. M gives the oldest
 * another round for each of its hits, of which at most three count. libCacheSim's `s3fifo` with small 0.1, ghost
 * 0.9 and threshold 2, but that newer versions of it fill M directly while the cache warms up.
 * The ghost is asked at the insertion, after the evictions. Objects in use are passed over. */
#include <assert.h>
#include <stdlib.h>

#include "allocator/eviction.h"
#include "allocator/ghost_list.h"
#include "allocator/object_lists.h"
#include "allocator/seat_queue.h"

extern const struct kv_eviction_ops kv_eviction_s3fifo_ops;

static const struct kv_option small_option = {
    .name = "s3fifo-small-percent",
    .default_text = "10",
    .count_min = 1,
    .count_max = 99,
    .help = "share of the blocks that --evict s3fifo's small queue aims at",
};
static const struct kv_option *const s3fifo_options[] = {&small_option, NULL};

enum { HITS_MAX = 3, HITS_TO_MOVE = 2 };
enum { NO_QUEUE, SMALL, MAIN };
enum { AHEAD = 6 }; /* seats whose keys' ghosts are asked for from memory before they are added */

struct s3fifo {
    struct kv_eviction base;
    struct seat_queue small, main;
    struct ghost_list ghost;
    uint32_t small_target;
    struct s3_object { /* together: each is another cache line */
        uint64_t key;
        uint8_t hits;
        bool known; /* the ghost knew it when it was filled: it enters M */
        uint8_t queue; /* where it stands, in use or not */
    } *objects;
};

static void s3fifo_destroy(struct kv_eviction *order)
{
    struct s3fifo *s3 = (struct s3fifo *)order;

    if (s3 == NULL)
        return;
    seat_queue_release(&s3->small);
    seat_queue_release(&s3->main);
    ghost_list_release(&s3->ghost);
    free(s3->objects);
    free(s3);
}

static struct kv_eviction *s3fifo_create(uint32_t objects, const struct kv_value *values)
{
    struct s3fifo *s3 = calloc(1, sizeof *s3);
    bool made;

    if (s3 == NULL)
        return NULL;
    s3->base.ops = &kv_eviction_s3fifo_ops;
    s3->small_target = object_share(objects, values[0].count);
    s3->objects = calloc(objects, sizeof *s3->objects);
    made = seat_queue_init(&s3->small, objects);
    made = seat_queue_init(&s3->main, objects) && made;
    made = ghost_list_init(&s3->ghost, objects - s3->small_target) && made;
    if (made && s3->objects != NULL)
        return &s3->base;
    s3fifo_destroy(&s3->base);
    return NULL;
}

static struct seat_queue *queue_of(struct s3fifo *s3, uint32_t object)
{
    return s3->objects[object].queue == SMALL ? &s3->small : &s3->main;
}

static void enter(struct s3fifo *s3, uint32_t object, uint8_t queue)
{
    s3->objects[object].queue = queue;
    seat_queue_push(queue_of(s3, object), object);
}

static void leave(struct s3fifo *s3, uint32_t object)
{
    seat_queue_remove(queue_of(s3, object), object);
    s3->objects[object].queue = NO_QUEUE;
}

static void s3fifo_soon(const struct kv_eviction *order, uint64_t key)
{
    ghost_list_prefetch(&((const struct s3fifo *)order)->ghost, key);
}

static void s3fifo_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    struct s3fifo *s3 = (struct s3fifo *)order;

    s3->objects[object] = (struct s3_object){.key = content->key, .known = ghost_list_remove(&s3->ghost, content->key)};
}

static void s3fifo_give(struct kv_eviction *order, uint32_t object)
{
    struct s3fifo *s3 = (struct s3fifo *)order;

    order->count++;
    if (s3->objects[object].queue != NO_QUEUE)
        seat_queue_show(queue_of(s3, object), object);
    else
        enter(s3, object, s3->objects[object].known ? MAIN : SMALL);
}

static void s3fifo_touch(struct kv_eviction *order, uint32_t object)
{
    struct s3fifo *s3 = (struct s3fifo *)order;

    if (s3->objects[object].hits < HITS_MAX)
        s3->objects[object].hits++;
}

static void s3fifo_take(struct kv_eviction *order, uint32_t object)
{
    struct s3fifo *s3 = (struct s3fifo *)order;

    s3fifo_touch(order, object);
    seat_queue_hide(queue_of(s3, object), object);
    order->count--;
}

/* One evicted object, or KV_OBJECT_NONE when nothing in M may go. */
static uint32_t evict_main(struct s3fifo *s3)
{
    uint32_t seat;

    while ((seat = seat_queue_next(&s3->main, 0)) != SEAT_NONE) {
        uint32_t object = seat_queue_object(&s3->main, seat);

        leave(s3, object);
        if (s3->objects[object].hits == 0)
            return object;
        s3->objects[object].hits--;
        enter(s3, object, MAIN);
    }
    return KV_OBJECT_NONE;
}

/* The oldest of S leaves it: returns it if evicted, else KV_OBJECT_NONE. */
static uint32_t evict_small(struct s3fifo *s3, uint32_t seat)
{
    uint32_t object = seat_queue_object(&s3->small, seat), ahead;

    leave(s3, object);
    if ((ahead = seat_queue_ahead(&s3->small, seat, 2 * AHEAD)) != KV_OBJECT_NONE)
        __builtin_prefetch(&s3->objects[ahead]);
    if ((ahead = seat_queue_ahead(&s3->small, seat, AHEAD)) != KV_OBJECT_NONE)
        ghost_list_prefetch(&s3->ghost, s3->objects[ahead].key);
    if (s3->objects[object].hits < HITS_TO_MOVE) {
        ghost_list_add(&s3->ghost, s3->objects[object].key);
        return object;
    }
    /* If M is now above its share, S is below its own, and the next victim comes from M as the paper has it. */
    s3->objects[object].hits = 0;
    enter(s3, object, MAIN);
    return KV_OBJECT_NONE;
}

static uint32_t s3fifo_evict(struct kv_eviction *order)
{
    struct s3fifo *s3 = (struct s3fifo *)order;
    uint32_t victim = KV_OBJECT_NONE;

    assert(order->count > 0);
    while (victim == KV_OBJECT_NONE) {
        uint32_t small = seat_queue_next(&s3->small, 0);
        bool main_can = seat_queue_next(&s3->main, 0) != SEAT_NONE;

        if (small != SEAT_NONE && (s3->small.count >= s3->small_target || !main_can))
            victim = evict_small(s3, small);
        else
            victim = evict_main(s3);
    }
    order->count--;
    return victim;
}

static const char *s3fifo_check(const struct kv_eviction *order)
{
    const struct s3fifo *s3 = (const struct s3fifo *)order;
    uint32_t small, main;

    if (!seat_queue_sound(&s3->small, &small) || !seat_queue_sound(&s3->main, &main))
        return "s3fifo: a queue contradicts itself";
    return small + main == order->count ? NULL : "s3fifo: the count is not what the queues show";
}

const struct kv_eviction_ops kv_eviction_s3fifo_ops = {
    .flags = KV_EVICTION_ORPHANS | KV_EVICTION_LATE_KEYS,
    .name = "s3fifo",
    .summary = "small queue 10 %, main queue, ghost as large as the main queue",
    .source = "S3-FIFO, SOSP'23, algorithm 1",
    .description = "New blocks go to a small queue of a tenth of the cache. What was hit twice there moves to the main "
                   "queue with its count cleared, the rest is evicted and its key remembered; a remembered key goes to the main queue at once. "
                   "The main queue gives blocks that were hit another round for each hit, three at most. O(1) amortised.",
    .options = s3fifo_options,
    .create = s3fifo_create,
    .destroy = s3fifo_destroy,
    .insert = s3fifo_insert,
    .give = s3fifo_give,
    .take = s3fifo_take,
    .touch = s3fifo_touch,
    .evict = s3fifo_evict,
    .soon = s3fifo_soon,
    .check = s3fifo_check,
};
