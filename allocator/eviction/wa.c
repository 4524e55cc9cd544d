/* Workload-aware eviction (KVCache Cache in the Wild, ATC'25): blocks are kept in one LRU list for each category of
 * the request that used them last, and only the lists' oldest are compared. Their rank is the probability of a
 * use between age and age + life, life being how long a block stays unused before it is evicted:
 *
 *     share x (exp(-rate x age) - exp(-rate x (age + life)))
 *
 * rate: an exponential distribution fitted to the times between uses in the category; share: of its uses, those
 * that were used again. Equal ranks: the later in its prompt first, then the lower category.
 *
 * This variant: time is counted in uses of any block, so it needs no clock. The fit sees the
 * reuse of what is cached and of the last victims, as many as objects; its sums are halved every 8 x objects uses of
 * the category, so it follows the workload. life is a moving mean over
 * victims, weight 1/64, that starts at the number of objects. With one category it is lru.
 *
 * wa-rank distribution leaves the life out: share x exp(-rate x age), a use at any later time. wa-rank lru leaves the fit
 * out too: the block that was used longest ago, as lru. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "allocator/eviction.h"
#include "allocator/ghost_list.h"
#include "allocator/object_lists.h"
#include "allocator/wa_fit.h"

extern const struct kv_eviction_ops kv_eviction_wa_ops;

/* The steps of the paper's ablation: what the oldest blocks of the categories are compared by. */
enum rank { RANK_FULL, RANK_DISTRIBUTION, RANK_LRU };

static const struct kv_option rank_option = {
    .name = "wa-rank",
    .choices = "full|distribution|lru",
    .default_text = "full",
    .help = "what --evict wa compares: reuse within the expected life; at any later time; the time of the last use",
};
static const struct kv_option *const wa_options[] = {&rank_option, NULL};

enum { AHEAD = 3 }; /* objects whose keys' ghosts are asked for from memory before they are added */

struct category {
    double uses, reuses, reuse_time; /* sums, fading */
};

struct wa {
    struct kv_eviction base;
    struct object_lists lists;
    struct category categories[KV_EVICTION_CATEGORIES];
    enum rank rank;
    uint32_t category; /* of the request under way */
    uint32_t objects;
    uint64_t clock;
    double life;
    struct wa_object {
        uint64_t key;
        uint64_t used; /* clock of the last use */
        uint32_t depth;
        uint32_t category;
    } *state;
    struct ghost_list ghosts;
    struct wa_ghost {
        uint64_t used;
        uint32_t category;
    } *ghost_state; /* by slot */
};

static void wa_destroy(struct kv_eviction *order)
{
    struct wa *wa = (struct wa *)order;

    if (wa == NULL)
        return;
    object_lists_release(&wa->lists);
    ghost_list_release(&wa->ghosts);
    free(wa->ghost_state);
    free(wa->state);
    free(wa);
}

static struct kv_eviction *wa_create(uint32_t objects, const struct kv_value *values)
{
    struct wa *wa = calloc(1, sizeof *wa);
    bool made;

    if (wa == NULL)
        return NULL;
    wa->base.ops = &kv_eviction_wa_ops;
    wa->rank = (enum rank)values[0].count;
    wa->objects = objects;
    wa->life = objects;
    wa->state = calloc(objects, sizeof *wa->state);
    wa->ghost_state = calloc((size_t)objects + 1, sizeof *wa->ghost_state);
    made = object_lists_init(&wa->lists, objects, KV_EVICTION_CATEGORIES);
    made = ghost_list_init(&wa->ghosts, objects) && made;
    if (made && wa->state != NULL && wa->ghost_state != NULL)
        return &wa->base;
    wa_destroy(&wa->base);
    return NULL;
}

static void wa_begin(struct kv_eviction *order, struct kv_kind kind)
{
    assert(kind.category < KV_EVICTION_CATEGORIES);
    ((struct wa *)order)->category = kind.category;
}

static void count_reuse(struct wa *wa, uint32_t category, uint64_t used)
{
    wa->categories[category].reuses++;
    wa->categories[category].reuse_time += (double)(wa->clock - used + 1);
}

static void wa_soon(const struct kv_eviction *order, uint64_t key)
{
    ghost_list_prefetch(&((const struct wa *)order)->ghosts, key);
}

static void wa_miss(struct kv_eviction *order, uint64_t key)
{
    struct wa *wa = (struct wa *)order;
    uint32_t slot = ghost_list_find(&wa->ghosts, key);

    if (slot == 0)
        return;
    count_reuse(wa, wa->ghost_state[slot].category, wa->ghost_state[slot].used);
    ghost_list_remove(&wa->ghosts, key);
}

static void wa_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    struct wa *wa = (struct wa *)order;

    wa->state[object].key = content->key;
    wa->state[object].depth = content->depth;
    wa->state[object].category = wa->category;
}

static void wa_share(struct kv_eviction *order, uint32_t object)
{
    struct wa *wa = (struct wa *)order;

    wa->state[object].category = wa->category;
}

static void count_use(struct wa *wa, uint32_t number)
{
    struct category *category = &wa->categories[number];

    if (++category->uses >= 8.0 * wa->objects) {
        category->uses /= 2;
        category->reuses /= 2;
        category->reuse_time /= 2;
    }
}

static void wa_give(struct kv_eviction *order, uint32_t object)
{
    struct wa *wa = (struct wa *)order;

    wa->state[object].used = ++wa->clock;
    count_use(wa, wa->state[object].category);
    object_lists_push(&wa->lists, wa->state[object].category, object);
    order->count++;
}

static void remove_object(struct wa *wa, uint32_t object)
{
    object_lists_remove(&wa->lists, object);
    wa->base.count--;
}

static void wa_take(struct kv_eviction *order, uint32_t object)
{
    struct wa *wa = (struct wa *)order;

    count_reuse(wa, wa->state[object].category, wa->state[object].used);
    remove_object(wa, object);
    wa->state[object].category = wa->category;
}

static void wa_touch(struct kv_eviction *order, uint32_t object)
{
    wa_take(order, object);
    wa_give(order, object);
}

struct wa_fit wa_fit(const struct kv_eviction *order, uint32_t number)
{
    const struct category *category = &((const struct wa *)order)->categories[number];

    if (!(category->reuses > 0)) /* nothing was ever used again */
        return (struct wa_fit){0, 0};
    return (struct wa_fit){category->reuses / category->uses, category->reuses / category->reuse_time};
}

/* The least goes first. */
static double rank_of(const struct wa *wa, uint32_t object)
{
    const struct wa_object *state = &wa->state[object];
    double age = (double)(wa->clock - state->used);
    struct wa_fit fit;

    if (wa->rank == RANK_LRU)
        return -age;
    fit = wa_fit(&wa->base, state->category);
    if (wa->rank == RANK_DISTRIBUTION)
        return fit.share * exp(-fit.rate * age);
    return fit.share * (exp(-fit.rate * age) - exp(-fit.rate * (age + wa->life)));
}

/* Not offered as next_victim: owners ask that for what costs nothing. */
static uint32_t choose(const struct wa *wa)
{
    uint32_t victim = KV_OBJECT_NONE, lists = 0;
    double least = 0;

    assert(wa->base.count > 0);
    for (uint32_t category = 0; category < KV_EVICTION_CATEGORIES; category++) {
        uint32_t oldest = object_lists_oldest(&wa->lists, category);

        lists += oldest != KV_OBJECT_NONE;
        victim = oldest != KV_OBJECT_NONE ? oldest : victim;
    }
    if (lists == 1)
        return victim;
    victim = KV_OBJECT_NONE;
    for (uint32_t category = 0; category < KV_EVICTION_CATEGORIES; category++) {
        uint32_t oldest = object_lists_oldest(&wa->lists, category);
        double rank;

        if (oldest == KV_OBJECT_NONE)
            continue;
        rank = rank_of(wa, oldest);
        if (victim == KV_OBJECT_NONE || rank < least ||
            (!(rank > least) && wa->state[oldest].depth > wa->state[victim].depth)) {
            victim = oldest;
            least = rank;
        }
    }
    return victim;
}

static uint32_t wa_evict(struct kv_eviction *order)
{
    struct wa *wa = (struct wa *)order;
    uint32_t victim = choose(wa);
    uint32_t ahead = object_lists_ahead(&wa->lists, wa->state[victim].category, 2 * AHEAD);

    if (ahead != KV_OBJECT_NONE)
        __builtin_prefetch(&wa->state[ahead]);
    ahead = object_lists_ahead(&wa->lists, wa->state[victim].category, AHEAD);
    if (ahead != KV_OBJECT_NONE)
        ghost_list_prefetch(&wa->ghosts, wa->state[ahead].key);
    wa->life += ((double)(wa->clock - wa->state[victim].used) - wa->life) / 64;
    remove_object(wa, victim);
    wa->ghost_state[ghost_list_add(&wa->ghosts, wa->state[victim].key)] =
        (struct wa_ghost){wa->state[victim].used, wa->state[victim].category};
    return victim;
}

static const char *wa_check(const struct kv_eviction *order)
{
    const struct wa *wa = (const struct wa *)order;
    uint32_t inside = 0, count;

    for (uint32_t category = 0; category < KV_EVICTION_CATEGORIES; category++) {
        if (!object_lists_sound(&wa->lists, category, &count))
            return "wa: a list contradicts itself";
        inside += count;
    }
    return inside == order->count ? NULL : "wa: the count is not that of the lists";
}

const struct kv_eviction_ops kv_eviction_wa_ops = {
    .flags = KV_EVICTION_ORPHANS | KV_EVICTION_STRUCTURE | KV_EVICTION_LATE_KEYS,
    .name = "wa",
    .summary = "least probable reuse first, by category of request",
    .source = "KVCache Cache in the Wild, ATC'25, workload-aware policy",
    .description = "Requests fall into categories (turn of the conversation). Each has its own list, least recently "
                   "used, and a fitted distribution of the time to reuse; of the oldest blocks of all lists the one "
                   "least likely to be used within its expected life goes. O(categories).",
    .options = wa_options,
    .create = wa_create,
    .destroy = wa_destroy,
    .begin = wa_begin,
    .miss = wa_miss,
    .insert = wa_insert,
    .give = wa_give,
    .take = wa_take,
    .share = wa_share,
    .touch = wa_touch,
    .evict = wa_evict,
    .soon = wa_soon,
    .check = wa_check,
};
