/* Mooncake's LengthAwareCache (arXiv 2407.00079, table 1), of which the paper says only that it is like LFU but evicts
 * blocks late in their request first: fewest uses, then the greatest depth, then least recently used. */
#include "allocator/counted_order.h"

extern const struct kv_eviction_ops kv_eviction_length_aware_ops;

static uint64_t length_aware_rank(const struct counted_order *order, uint32_t object)
{
    return (uint64_t)order->uses[object] << 32 | (UINT32_MAX - order->depths[object]);
}

static struct kv_eviction *length_aware_create(uint32_t objects)
{
    return counted_create(&kv_eviction_length_aware_ops, objects, length_aware_rank);
}

const struct kv_eviction_ops kv_eviction_length_aware_ops = {
    .name = "length-aware",
    .summary = "fewest uses first, then latest in its prompt",
    .source = "Mooncake, arXiv 2407.00079, LengthAwareCache",
    .description = "Fewest uses go first; among equals the one latest in its prompt, since beginnings are shared by more "
                   "requests than ends; then least recently used. O(log n).",
    .create = length_aware_create,
    .destroy = counted_destroy,
    .insert = counted_insert,
    .give = counted_give,
    .take = counted_take,
    .touch = counted_touch,
    .evict = counted_evict,
    .next_victim = counted_next_victim,
    .check = counted_check,
};
