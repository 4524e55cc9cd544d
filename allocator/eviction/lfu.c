/* Least frequently used, counted while a block is cached; among equals the least recently used. libCacheSim's
 * `lfu` on streams. */
#include "allocator/counted_order.h"

extern const struct kv_eviction_ops kv_eviction_lfu_ops;

static uint64_t lfu_rank(const struct counted_order *order, uint32_t object)
{
    return order->uses[object];
}

static struct kv_eviction *lfu_create(uint32_t objects, const struct kv_value *values)
{
    (void)values;
    return counted_create(&kv_eviction_lfu_ops, objects, lfu_rank);
}

const struct kv_eviction_ops kv_eviction_lfu_ops = {
    .flags = KV_EVICTION_LATE_KEYS,
    .name = "lfu",
    .summary = "fewest uses first, then least recently used",
    .source = "textbook, in-cache counts; as libCacheSim's lfu on streams",
    .description = "Fewest uses while cached go first, then least recently used. Counts are lost with the block. O(log "
                   "counts).",
    .create = lfu_create,
    COUNTED_ORDER_CALLS,
};
