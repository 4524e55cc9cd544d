/* Greedy-Dual-Size-Frequency (Cherkasova 1998): rank = L + uses x cost / size, L = the rank of the last victim.
 * Blocks have one size and, here, one cost, so it is LFU with dynamic aging; L is that of the time when the block is
 * given back. A cost that grows with the position in the prompt, as in RAGCache's PGDSF, would keep tails longer than
 * the prefix they need. Among equals the least recently used. */
#include "allocator/counted_order.h"

extern const struct kv_eviction_ops kv_eviction_gdsf_ops;

static uint64_t gdsf_rank(const struct counted_order *order, uint32_t object)
{
    return order->evicted + order->uses[object];
}

static struct kv_eviction *gdsf_create(uint32_t objects, const struct kv_value *values)
{
    (void)values;
    return counted_create(&kv_eviction_gdsf_ops, objects, gdsf_rank);
}

const struct kv_eviction_ops kv_eviction_gdsf_ops = {
    .flags = KV_EVICTION_LATE_KEYS,
    .name = "gdsf",
    .summary = "uses plus the rank of the last victim: frequency that ages",
    .source = "GDSF, Cherkasova 1998, with equal cost and size",
    .description = "A block's rank is its uses plus the rank of the last victim at its last use, so old popularity fades "
                   "as victims' ranks rise. Cost and size are 1 for all. Ties: least recently used. O(log ranks).",
    .create = gdsf_create,
    COUNTED_ORDER_CALLS,
};
