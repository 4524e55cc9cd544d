/* ARC (Megiddo and Modha, FAST'03, figure 4), c = the objects: T1 holds what was used once, T2 what was used again,
 * B1 and B2 the keys that they evicted; the target p of T1 grows by max(1, |B2| / |B1|) when B1 knows a miss, and
 * shrinks by max(1, |B1| / |B2|) when B2 does. The quotients are real numbers. libCacheSim's `arc` on streams.
 * A miss is judged when it is announced; of several before the evictions, the last decides the cases that ask which
 * list knew it. |T1| and |T2| count objects in use, victims do not; where a list has no victim, the other gives one. */
#include <assert.h>
#include <stdlib.h>

#include "allocator/eviction.h"
#include "allocator/ghost_list.h"
#include "allocator/object_lists.h"

extern const struct kv_eviction_ops kv_eviction_arc_ops;

enum { AHEAD = 3 }; /* objects whose keys' ghosts are asked for from memory before they are added */
enum { T1, T2, LISTS };
enum where { NOWHERE, IN_B1, IN_B2 };

struct arc {
    struct kv_eviction base;
    struct object_lists lists;
    struct ghost_list ghosts[LISTS]; /* B1, B2 */
    uint32_t sizes[LISTS];           /* |T1|, |T2|: objects in use too */
    uint32_t objects;
    double target; /* p */
    enum where missed;
    struct arc_object { /* together: each is another cache line */
        uint64_t key;
        uint8_t list;
    } *state;
};

static void arc_destroy(struct kv_eviction *order)
{
    struct arc *arc = (struct arc *)order;

    if (arc == NULL)
        return;
    object_lists_release(&arc->lists);
    ghost_list_release(&arc->ghosts[T1]);
    ghost_list_release(&arc->ghosts[T2]);
    free(arc->state);
    free(arc);
}

static struct kv_eviction *arc_create(uint32_t objects, const struct kv_value *values)
{
    struct arc *arc = calloc(1, sizeof *arc);
    bool made;

    (void)values;
    if (arc == NULL)
        return NULL;
    arc->base.ops = &kv_eviction_arc_ops;
    arc->objects = objects;
    arc->state = calloc(objects, sizeof *arc->state);
    made = object_lists_init(&arc->lists, objects, LISTS);
    /* One more than c: REPLACE adds a key before the missed one leaves. */
    made = ghost_list_init(&arc->ghosts[T1], objects + 1) && made;
    made = ghost_list_init(&arc->ghosts[T2], objects + 1) && made;
    if (made && arc->state != NULL)
        return &arc->base;
    arc_destroy(&arc->base);
    return NULL;
}

/* How far the target moves: by the other ghost's size over the own, at least 1. */
static double step(const struct ghost_list *own, const struct ghost_list *other)
{
    return other->count > own->count ? (double)other->count / (double)own->count : 1;
}

static void arc_soon(const struct kv_eviction *order, uint64_t key)
{
    ghost_list_prefetch(&((const struct arc *)order)->ghosts[T1], key);
    ghost_list_prefetch(&((const struct arc *)order)->ghosts[T2], key);
}

static void arc_miss(struct kv_eviction *order, uint64_t key)
{
    struct arc *arc = (struct arc *)order;

    arc->missed = NOWHERE;
    if (ghost_list_has(&arc->ghosts[T1], key)) {
        arc->missed = IN_B1;
        arc->target += step(&arc->ghosts[T1], &arc->ghosts[T2]);
        if (arc->target > arc->objects)
            arc->target = arc->objects;
    } else if (ghost_list_has(&arc->ghosts[T2], key)) {
        arc->missed = IN_B2;
        arc->target -= step(&arc->ghosts[T2], &arc->ghosts[T1]);
        if (arc->target < 0)
            arc->target = 0;
    }
}

static void arc_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    struct arc *arc = (struct arc *)order;
    bool known = ghost_list_remove(&arc->ghosts[T1], content->key) ||
                 ghost_list_remove(&arc->ghosts[T2], content->key);

    arc->state[object].key = content->key;
    arc->state[object].list = known ? T2 : T1;
    arc->sizes[arc->state[object].list]++;
    arc->missed = NOWHERE;
}

static void arc_give(struct kv_eviction *order, uint32_t object)
{
    struct arc *arc = (struct arc *)order;

    order->count++;
    object_lists_push(&arc->lists, arc->state[object].list, object);
}

static void arc_take(struct kv_eviction *order, uint32_t object)
{
    struct arc *arc = (struct arc *)order;

    order->count--;
    object_lists_remove(&arc->lists, object);
    arc->sizes[arc->state[object].list]--;
    arc->state[object].list = T2;
    arc->sizes[T2]++;
}

static void arc_touch(struct kv_eviction *order, uint32_t object)
{
    arc_take(order, object);
    arc_give(order, object);
}

/* Evicts the oldest of a list, remembered by its ghost or not. */
static uint32_t evict_from(struct arc *arc, unsigned list, bool remembered)
{
    uint32_t victim = object_lists_oldest(&arc->lists, list), ahead = object_lists_ahead(&arc->lists, list, 2 * AHEAD);

    if (ahead != KV_OBJECT_NONE)
        __builtin_prefetch(&arc->state[ahead]);
    ahead = object_lists_ahead(&arc->lists, list, AHEAD);
    if (ahead != KV_OBJECT_NONE)
        ghost_list_prefetch(&arc->ghosts[list], arc->state[ahead].key);
    object_lists_remove(&arc->lists, victim);
    arc->sizes[list]--;
    arc->base.count--;
    if (remembered)
        ghost_list_add(&arc->ghosts[list], arc->state[victim].key);
    return victim;
}

/* REPLACE of the paper. */
static uint32_t replace(struct arc *arc)
{
    bool once = arc->sizes[T1] > arc->target ||
                (arc->missed == IN_B2 && arc->sizes[T1] > 0 && !(arc->sizes[T1] < arc->target));
    unsigned list = once ? T1 : T2;

    if (object_lists_oldest(&arc->lists, list) == KV_OBJECT_NONE)
        list = 1 - list;
    return evict_from(arc, list, true);
}

static uint32_t arc_evict(struct kv_eviction *order)
{
    struct arc *arc = (struct arc *)order;
    struct ghost_list *b1 = &arc->ghosts[T1], *b2 = &arc->ghosts[T2];

    assert(order->count > 0);
    if (arc->missed != NOWHERE)
        return replace(arc);
    if (arc->sizes[T1] + b1->count >= arc->objects) { /* case IV A */
        if (b1->count == 0 && object_lists_oldest(&arc->lists, T1) != KV_OBJECT_NONE)
            return evict_from(arc, T1, false);
        if (b1->count > 0)
            ghost_list_drop_oldest(b1);
    } else if ((uint64_t)arc->sizes[T1] + arc->sizes[T2] + b1->count + b2->count >= 2 * (uint64_t)arc->objects &&
               b2->count > 0) { /* case IV B */
        ghost_list_drop_oldest(b2);
    }
    return replace(arc);
}

static const char *arc_check(const struct kv_eviction *order)
{
    const struct arc *arc = (const struct arc *)order;
    uint32_t once, again;

    if (!object_lists_sound(&arc->lists, T1, &once) || !object_lists_sound(&arc->lists, T2, &again))
        return "arc: a list contradicts itself";
    if (once > arc->sizes[T1] || again > arc->sizes[T2])
        return "arc: a list is longer than its size";
    return once + again == order->count ? NULL : "arc: the count is not that of the lists";
}

const struct kv_eviction_ops kv_eviction_arc_ops = {
    .flags = KV_EVICTION_ORPHANS,
    .name = "arc",
    .summary = "balances what was used once and what was used again by the keys that each evicted",
    .source = "ARC, FAST'03, figure 4",
    .description = "Two least-recently-used lists, of blocks used once and of blocks used again, and for each a list of "
                   "the keys that it evicted last. A miss on a remembered key shifts the target between the two in "
                   "favour of the list that should have kept it. c is the blocks, the target a real number; on streams exactly "
                   "figure 4. O(1).",
    .create = arc_create,
    .destroy = arc_destroy,
    .miss = arc_miss,
    .insert = arc_insert,
    .give = arc_give,
    .take = arc_take,
    .touch = arc_touch,
    .evict = arc_evict,
    .soon = arc_soon,
    .check = arc_check,
};
