/* Pins with a time to live: a block that an urgent request used may not be evicted until it has not been used for that long;
 * what is not pinned goes least recently used first. After SGLang's pinned prefixes (pull request 18941, merged 2026-02,
 * taken back in 2026-04 for retention times that are preferences only): pins are hard, a hit on a pinned block, by any
 * request, starts its time anew, and a pin that ended is forgotten, so that the block needs an urgent request again. The
 * block of a pinned prompt's beginning is given back last, so it is never unpinned before what continues it.
 *
 * Ours: who pins is told by priority, where SGLang has a call of its own. Above the largest share, the pins that would end
 * first end at once; SGLang refuses new pins instead, which with pins a block at a time would keep tails without their
 * beginnings. A pin lasts while a request holds the block, and its time runs from when the last gives it back. */
#include <stdlib.h>

#include "allocator/eviction.h"
#include "allocator/object_lists.h"

extern const struct kv_eviction_ops kv_eviction_ttl_ops;

static const struct kv_option ttl_option = {
    .name = "ttl-ns",
    .default_text = "300000000000",
    .count_max = UINT64_C(1) << 62,
    .help = "nanoseconds that --evict ttl keeps a block pinned after its last use",
};
static const struct kv_option share_option = {
    .name = "ttl-max-percent",
    .default_text = "100",
    .count_max = 100,
    .help = "share of the blocks that --evict ttl pins at most",
};
static const struct kv_option priority_option = {
    .name = "ttl-priority",
    .default_text = "0",
    .count_max = INT64_MAX,
    .help = "--evict ttl pins what requests of this priority or a smaller number use",
};
static const struct kv_option *const ttl_options[] = {&ttl_option, &share_option, &priority_option, NULL};

/* All pins last equally long, so they end in the order of the gives, and each list is in that order. */
enum { PINNED, ENDED, PLAIN, LISTS };

struct ttl {
    struct kv_eviction base;
    struct object_lists lists;
    struct ttl_object {
        uint64_t given;     /* number of the give, for the order of last use */
        uint64_t ends_ns;   /* of an object in PINNED */
        bool urgent;        /* to be pinned when it is given back */
        bool pinned;        /* is in PINNED */
    } *state;
    uint64_t now_ns, ttl_ns, gives;
    int64_t priority; /* least urgent that pins */
    uint32_t pinned_max;
    bool urgent; /* the request under way */
};

static void ttl_destroy(struct kv_eviction *order)
{
    struct ttl *ttl = (struct ttl *)order;

    if (ttl == NULL)
        return;
    object_lists_release(&ttl->lists);
    free(ttl->state);
    free(ttl);
}

static struct kv_eviction *ttl_create(uint32_t objects, const struct kv_value *values)
{
    struct ttl *ttl = calloc(1, sizeof *ttl);

    if (ttl == NULL)
        return NULL;
    ttl->base.ops = &kv_eviction_ttl_ops;
    ttl->ttl_ns = values[0].count;
    ttl->pinned_max = (uint32_t)(objects * values[1].count / 100);
    ttl->priority = (int64_t)values[2].count;
    ttl->urgent = ttl->priority >= 0; /* the kind before the first `begin` */
    ttl->state = calloc(objects, sizeof *ttl->state);
    if (object_lists_init(&ttl->lists, objects, LISTS) && ttl->state != NULL)
        return &ttl->base;
    ttl_destroy(&ttl->base);
    return NULL;
}

static void ttl_begin(struct kv_eviction *order, struct kv_kind kind)
{
    struct ttl *ttl = (struct ttl *)order;

    ttl->urgent = kind.priority <= ttl->priority;
}

static void ttl_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    struct ttl *ttl = (struct ttl *)order;

    (void)content;
    ttl->state[object].urgent = ttl->urgent;
}

static void ttl_share(struct kv_eviction *order, uint32_t object)
{
    struct ttl *ttl = (struct ttl *)order;

    ttl->state[object].urgent |= ttl->urgent;
}

static void unpin(struct ttl *ttl, uint32_t object)
{
    ttl->state[object].pinned = false;
    ttl->base.pinned--;
}

static void end_first_pin(struct ttl *ttl)
{
    uint32_t object = object_lists_oldest(&ttl->lists, PINNED);

    unpin(ttl, object);
    ttl->state[object].urgent = false;
    object_lists_remove(&ttl->lists, object);
    object_lists_push(&ttl->lists, ENDED, object);
}

static void ttl_give(struct kv_eviction *order, uint32_t object)
{
    struct ttl *ttl = (struct ttl *)order;
    struct ttl_object *state = &ttl->state[object];

    state->given = ++ttl->gives;
    order->count++;
    if (!state->urgent || ttl->ttl_ns == 0) {
        object_lists_push(&ttl->lists, PLAIN, object);
        return;
    }
    state->ends_ns = ttl->now_ns > UINT64_MAX - 1 - ttl->ttl_ns ? UINT64_MAX - 1 : ttl->now_ns + ttl->ttl_ns;
    state->pinned = true;
    object_lists_push(&ttl->lists, PINNED, object);
    if (++order->pinned > ttl->pinned_max)
        end_first_pin(ttl);
}

static void ttl_take(struct kv_eviction *order, uint32_t object)
{
    struct ttl *ttl = (struct ttl *)order;

    if (ttl->state[object].pinned)
        unpin(ttl, object);
    object_lists_remove(&ttl->lists, object);
    order->count--;
    ttl_share(order, object);
}

static void ttl_touch(struct kv_eviction *order, uint32_t object)
{
    ttl_take(order, object);
    ttl_give(order, object);
}

static uint32_t ttl_next_victim(const struct kv_eviction *order)
{
    const struct ttl *ttl = (const struct ttl *)order;
    uint32_t ended = object_lists_oldest(&ttl->lists, ENDED), plain = object_lists_oldest(&ttl->lists, PLAIN);

    if (ended == KV_OBJECT_NONE || plain == KV_OBJECT_NONE)
        return ended != KV_OBJECT_NONE ? ended : plain;
    return ttl->state[ended].given < ttl->state[plain].given ? ended : plain;
}

static uint32_t ttl_evict(struct kv_eviction *order)
{
    uint32_t victim = ttl_next_victim(order);

    object_lists_remove(&((struct ttl *)order)->lists, victim);
    order->count--;
    return victim;
}

static uint64_t ttl_next_unpin(const struct kv_eviction *order)
{
    const struct ttl *ttl = (const struct ttl *)order;
    uint32_t first = object_lists_oldest(&ttl->lists, PINNED);

    return first == KV_OBJECT_NONE ? UINT64_MAX : ttl->state[first].ends_ns;
}

static void ttl_clock(struct kv_eviction *order, uint64_t now_ns)
{
    struct ttl *ttl = (struct ttl *)order;

    ttl->now_ns = now_ns;
    while (ttl_next_unpin(order) <= now_ns)
        end_first_pin(ttl);
}

static bool ttl_is_pinned(const struct kv_eviction *order, uint32_t object)
{
    return ((const struct ttl *)order)->state[object].pinned;
}

static const char *ttl_check(const struct kv_eviction *order)
{
    const struct ttl *ttl = (const struct ttl *)order;
    uint32_t counts[LISTS];

    for (uint32_t list = 0; list < LISTS; list++)
        if (!object_lists_sound(&ttl->lists, list, &counts[list]))
            return "ttl: a list contradicts itself";
    if (counts[PINNED] != order->pinned || order->pinned > ttl->pinned_max)
        return "ttl: the count of pinned objects is wrong";
    return counts[PINNED] + counts[ENDED] + counts[PLAIN] == order->count ? NULL : "ttl: the count is not that of the lists";
}

const struct kv_eviction_ops kv_eviction_ttl_ops = {
    .flags = KV_EVICTION_STRUCTURE | KV_EVICTION_LATE_KEYS,
    .name = "ttl",
    .summary = "hard pins that end a time after the last use; else least recently used",
    .source = "SGLang hierarchical cache, pinned prefixes (pull request 18941, 2026-02)",
    .description = "What requests of priority --ttl-priority or more urgent use is pinned: nobody can have the block until it "
                   "was not used for --ttl-ns, however short memory is, so requests wait in front of memory that is unused "
                   "(state cached_pinned, cause pinned). A hit starts the time anew. Above --ttl-max-percent of the blocks "
                   "the pins that would end first end at once. The rest goes least recently used first. Pins end at "
                   "the first scheduling pass after their time. O(1).",
    .options = ttl_options,
    .create = ttl_create,
    .destroy = ttl_destroy,
    .begin = ttl_begin,
    .insert = ttl_insert,
    .give = ttl_give,
    .take = ttl_take,
    .share = ttl_share,
    .touch = ttl_touch,
    .evict = ttl_evict,
    .next_victim = ttl_next_victim,
    .clock = ttl_clock,
    .next_unpin = ttl_next_unpin,
    .is_pinned = ttl_is_pinned,
    .check = ttl_check,
};
