/* Segmented LRU (Karedla, Love and Wherry, 1994): two LRU lists. New content enters the probationary one; a hit
 * moves to the protected one, which holds by default at most four fifths of the objects (at least one); what it has too many
 * returns to the newest end of the probationary list. Victims come from the probationary list first. (libCacheSim's
 * `slru` has four segments of a quarter each.) Objects in use count where they will return to. */
#include <assert.h>
#include <stdlib.h>

#include "allocator/eviction.h"
#include "allocator/object_lists.h"

extern const struct kv_eviction_ops kv_eviction_slru_ops;

static const struct kv_option protected_option = {
    .name = "slru-protected-percent",
    .default_text = "80",
    .count_min = 1,
    .count_max = 100,
    .help = "share of the blocks that --evict slru protects at most",
};
static const struct kv_option *const slru_options[] = {&protected_option, NULL};

enum { PROBATION, PROTECTED, LISTS };

struct slru {
    struct kv_eviction base;
    struct object_lists lists;
    uint32_t protected_max;
    uint32_t protected_count; /* in its list */
    bool *hit;                /* is protected, or will be when it is given back */
};

static void slru_destroy(struct kv_eviction *order)
{
    struct slru *slru = (struct slru *)order;

    if (slru == NULL)
        return;
    object_lists_release(&slru->lists);
    free(slru->hit);
    free(slru);
}

static struct kv_eviction *slru_create(uint32_t objects, const struct kv_value *values)
{
    struct slru *slru = calloc(1, sizeof *slru);

    if (slru == NULL)
        return NULL;
    slru->base.ops = &kv_eviction_slru_ops;
    slru->protected_max = object_share(objects, values[0].count);
    slru->hit = calloc(objects, sizeof *slru->hit);
    if (slru->hit != NULL && object_lists_init(&slru->lists, objects, LISTS))
        return &slru->base;
    slru_destroy(&slru->base);
    return NULL;
}

static void slru_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    (void)content;
    ((struct slru *)order)->hit[object] = false;
}

static void slru_give(struct kv_eviction *order, uint32_t object)
{
    struct slru *slru = (struct slru *)order;

    order->count++;
    if (!slru->hit[object]) {
        object_lists_push(&slru->lists, PROBATION, object);
        return;
    }
    object_lists_push(&slru->lists, PROTECTED, object);
    if (++slru->protected_count > slru->protected_max) {
        uint32_t oldest = object_lists_oldest(&slru->lists, PROTECTED);

        object_lists_remove(&slru->lists, oldest);
        object_lists_push(&slru->lists, PROBATION, oldest);
        slru->hit[oldest] = false;
        slru->protected_count--;
    }
}

static void slru_take(struct kv_eviction *order, uint32_t object)
{
    struct slru *slru = (struct slru *)order;

    order->count--;
    object_lists_remove(&slru->lists, object);
    slru->protected_count -= slru->hit[object];
    slru->hit[object] = true;
}

static void slru_touch(struct kv_eviction *order, uint32_t object)
{
    slru_take(order, object);
    slru_give(order, object);
}

static uint32_t slru_next_victim(const struct kv_eviction *order)
{
    const struct slru *slru = (const struct slru *)order;
    uint32_t victim = object_lists_oldest(&slru->lists, PROBATION);

    assert(order->count > 0);
    return victim != KV_OBJECT_NONE ? victim : object_lists_oldest(&slru->lists, PROTECTED);
}

static uint32_t slru_evict(struct kv_eviction *order)
{
    uint32_t victim = slru_next_victim(order);

    slru_take(order, victim);
    return victim;
}

static const char *slru_check(const struct kv_eviction *order)
{
    const struct slru *slru = (const struct slru *)order;
    uint32_t probation, protected_count;

    if (!object_lists_sound(&slru->lists, PROBATION, &probation) ||
        !object_lists_sound(&slru->lists, PROTECTED, &protected_count))
        return "slru: a list contradicts itself";
    if (protected_count != slru->protected_count || protected_count > slru->protected_max)
        return "slru: the protected count is wrong";
    return probation + protected_count == order->count ? NULL : "slru: the count is not that of the lists";
}

const struct kv_eviction_ops kv_eviction_slru_ops = {
    .flags = KV_EVICTION_LATE_KEYS,
    .name = "slru",
    .summary = "least recently used, those never hit since they came first",
    .source = "Karedla, Love, Wherry 1994: two segments, protected 80 %",
    .description = "Two lists: probation for blocks never hit, protected (80 %) for those that were. Victims come from "
                   "probation; what overflows protected returns to it. O(1).",
    .options = slru_options,
    .create = slru_create,
    .destroy = slru_destroy,
    .insert = slru_insert,
    .give = slru_give,
    .take = slru_take,
    .touch = slru_touch,
    .evict = slru_evict,
    .next_victim = slru_next_victim,
    .check = slru_check,
};
