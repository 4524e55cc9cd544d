/* After Mooncake's LengthAwareCache (arXiv 2407.00079, table 1). All that the paper says is "similar to LFU but
 * prioritizing cache blocks occurring later in requests": prioritizing them to go, or to stay. Read here as: to go.
 * Fewest uses, then the greatest depth, then least recently used. The other reading breaks prefixes, and is farther
 * from lfu than the table's two rows are from each other (docs/eviction.md). */
#include "allocator/counted_order.h"

extern const struct kv_eviction_ops kv_eviction_length_aware_ops;

static uint64_t length_aware_rank(const struct counted_order *order, uint32_t object)
{
    return (uint64_t)order->uses[object] << 32 | (UINT32_MAX - order->depths[object]);
}

static struct kv_eviction *length_aware_create(uint32_t objects, const struct kv_value *values)
{
    (void)values;
    return counted_create(&kv_eviction_length_aware_ops, objects, length_aware_rank);
}

const struct kv_eviction_ops kv_eviction_length_aware_ops = {
    .flags = KV_EVICTION_STRUCTURE | KV_EVICTION_LATE_KEYS,
    .name = "length-aware",
    .summary = "fewest uses first, then latest in its prompt",
    .source = "after Mooncake, arXiv 2407.00079, LengthAwareCache, described there in one clause",
    .description = "Fewest uses go first; among equals the one latest in its prompt, since beginnings are shared by more "
                   "requests than ends; then least recently used. O(log depths).",
    .create = length_aware_create,
    COUNTED_ORDER_CALLS,
};
