/* Belady's MIN (1966) for prompts: evicts what is needed again last; among equals the latest in its prompt, then
 * the lowest number. A block is needed no later than what continues it, so with content that forms chains the
 * prefix of a cached block is cached too, every cached block of a prompt hits, and no policy that keeps a
 * running request whole hits more blocks. It must be told the future. In `run` that is what the trace says (sim/future.h). */
#include <assert.h>
#include <stdlib.h>

#include "allocator/eviction.h"
#include "allocator/object_heap.h"

extern const struct kv_eviction_ops kv_eviction_opt_ops;

struct opt {
    struct kv_eviction base;
    struct object_heap heap;
    uint64_t *next_use;
    uint32_t *depths;
};

static void opt_destroy(struct kv_eviction *order)
{
    struct opt *opt = (struct opt *)order;

    if (opt == NULL)
        return;
    object_heap_release(&opt->heap);
    free(opt->next_use);
    free(opt->depths);
    free(opt);
}

static struct kv_eviction *opt_create(uint32_t objects, const struct kv_value *values)
{
    struct opt *opt = calloc(1, sizeof *opt);

    (void)values;
    if (opt == NULL)
        return NULL;
    opt->base.ops = &kv_eviction_opt_ops;
    opt->next_use = calloc(objects, sizeof *opt->next_use);
    opt->depths = calloc(objects, sizeof *opt->depths);
    if (opt->next_use != NULL && opt->depths != NULL && object_heap_init(&opt->heap, objects))
        return &opt->base;
    opt_destroy(&opt->base);
    return NULL;
}

static void opt_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    struct opt *opt = (struct opt *)order;

    opt->depths[object] = content->depth;
    opt->next_use[object] = UINT64_MAX;
}

static void opt_foresee(struct kv_eviction *order, uint32_t object, uint64_t next)
{
    ((struct opt *)order)->next_use[object] = next;
}

static void opt_give(struct kv_eviction *order, uint32_t object)
{
    struct opt *opt = (struct opt *)order;

    object_heap_push(&opt->heap, object, UINT64_MAX - opt->next_use[object],
                     (uint64_t)(UINT32_MAX - opt->depths[object]) << 32 | object);
    order->count++;
}

static void opt_take(struct kv_eviction *order, uint32_t object)
{
    object_heap_remove(&((struct opt *)order)->heap, object);
    order->count--;
}

static void opt_touch(struct kv_eviction *order, uint32_t object)
{
    opt_take(order, object);
    opt_give(order, object);
}

static uint32_t opt_next_victim(const struct kv_eviction *order)
{
    return object_heap_top(&((const struct opt *)order)->heap);
}

static uint32_t opt_evict(struct kv_eviction *order)
{
    uint32_t victim = opt_next_victim(order);

    opt_take(order, victim);
    return victim;
}

static const char *opt_check(const struct kv_eviction *order)
{
    const struct opt *opt = (const struct opt *)order;

    if (!object_heap_sound(&opt->heap))
        return "opt: the heap contradicts itself";
    return opt->heap.count == order->count ? NULL : "opt: the count is not that of the heap";
}

const struct kv_eviction_ops kv_eviction_opt_ops = {
    .flags = KV_EVICTION_CLAIRVOYANT | KV_EVICTION_LATE_KEYS,
    .name = "opt",
    .summary = "what is needed again last goes first: the bound on hit blocks",
    .source = "Belady 1966, for whole prompts",
    .description = "Knows when each block is needed next and evicts the one needed last, the latest in its prompt among "
                   "those never needed. In 'cache' the most hit blocks that any order can reach, for requests that fit: a "
                   "bound, not a policy. In 'run' a clairvoyant heuristic: the next use of a block is the first request of the "
                   "trace, among those not admitted yet, that would look for it; but what is evicted decides what runs when, so "
                   "another order can do better. It reads the trace twice, so no pipe. O(log n).",
    .create = opt_create,
    .destroy = opt_destroy,
    .insert = opt_insert,
    .foresee = opt_foresee,
    .give = opt_give,
    .take = opt_take,
    .touch = opt_touch,
    .evict = opt_evict,
    .next_victim = opt_next_victim,
    .check = opt_check,
};
