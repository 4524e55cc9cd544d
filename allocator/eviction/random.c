/* Any evictable block with equal chance, from a given seed, so that a run can be repeated. */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "allocator/eviction.h"

extern const struct kv_eviction_ops kv_eviction_random_ops;

static const struct kv_option seed_option = {
    .name = "random-seed",
    .default_text = "1",
    .count_max = UINT64_MAX,
    .help = "start of the numbers that --evict random draws",
};
static const struct kv_option *const random_options[] = {&seed_option, NULL};

struct any {
    struct kv_eviction base;
    uint32_t *inside;   /* [count] */
    uint32_t *place_of; /* object → index in inside + 1, or 0 */
    uint32_t objects;
    uint64_t state; /* splitmix64 */
};

static void random_destroy(struct kv_eviction *order)
{
    struct any *any = (struct any *)order;

    if (any == NULL)
        return;
    free(any->inside);
    free(any->place_of);
    free(any);
}

static struct kv_eviction *random_create(uint32_t objects, const struct kv_value *values)
{
    struct any *any = calloc(1, sizeof *any);

    if (any == NULL)
        return NULL;
    *any = (struct any){.base.ops = &kv_eviction_random_ops, .objects = objects, .state = values[0].count};
    any->inside = malloc((size_t)objects * sizeof *any->inside);
    any->place_of = calloc(objects, sizeof *any->place_of);
    if (any->inside != NULL && any->place_of != NULL)
        return &any->base;
    random_destroy(&any->base);
    return NULL;
}

static void random_give(struct kv_eviction *order, uint32_t object)
{
    struct any *any = (struct any *)order;

    assert(object < any->objects && any->place_of[object] == 0);
    any->inside[order->count++] = object;
    any->place_of[object] = order->count;
}

static void random_take(struct kv_eviction *order, uint32_t object)
{
    struct any *any = (struct any *)order;
    uint32_t at = any->place_of[object], last = any->inside[--order->count];

    assert(at > 0);
    any->inside[at - 1] = last;
    any->place_of[last] = at;
    any->place_of[object] = 0;
}

static void random_touch(struct kv_eviction *order, uint32_t object)
{
    (void)order;
    (void)object;
}

static uint64_t draw(struct any *any)
{
    uint64_t z = any->state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static uint32_t random_evict(struct kv_eviction *order)
{
    struct any *any = (struct any *)order;
    uint32_t victim;

    assert(order->count > 0);
    /* Multiply and shift: the bias is below count / 2^32. */
    victim = any->inside[(draw(any) >> 32) * order->count >> 32];
    random_take(order, victim);
    return victim;
}

static const char *random_check(const struct kv_eviction *order)
{
    const struct any *any = (const struct any *)order;
    uint32_t inside = 0;

    for (uint32_t object = 0; object < any->objects; object++) {
        uint32_t at = any->place_of[object];

        inside += at != 0;
        if (at > order->count || (at != 0 && any->inside[at - 1] != object))
            return "random: an object is not at its place";
    }
    return inside == order->count ? NULL : "random: the count is wrong";
}

const struct kv_eviction_ops kv_eviction_random_ops = {
    .flags = KV_EVICTION_ORPHANS | KV_EVICTION_LATE_KEYS,
    .name = "random",
    .summary = "any block with equal chance, from a seed",
    .source = "baseline",
    .description = "Each block inside has the same chance, drawn from --random-seed. What an order without information "
                   "achieves. O(1).",
    .options = random_options,
    .create = random_create,
    .destroy = random_destroy,
    .give = random_give,
    .take = random_take,
    .touch = random_touch,
    .evict = random_evict,
    .check = random_check,
};
