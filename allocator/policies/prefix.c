#include "allocator/paged.h"

extern const struct kv_policy_ops kv_policy_prefix_ops;

/* `dynamic` with hash-chained automatic prefix caching: blocks that nobody holds keep their content. */

static struct kv_policy *prefix_create(const struct kv_geometry *geometry, const struct kv_value *values,
                                       const struct kv_observer *observer, char *why, size_t why_bytes)
{
    struct paged_config config = paged_cache_config(geometry->block_tokens, true, values);
    return paged_create(&kv_policy_prefix_ops, geometry, &config, observer, why, why_bytes);
}

const struct kv_policy_ops kv_policy_prefix_ops = {
    .abi_version = KV_ABI_VERSION,
    .flags = KV_CACHES,
    .name = "prefix",
    .summary = "dynamic with hash-chained automatic prefix caching",
    .source = "vLLM v1, rule sets 2026-04 and 2026-08",
    .description = "dynamic, and full blocks carry the hash of their tokens and of the block before. A prompt takes the "
                   "leading blocks that are known, held or free, except that one token is always left to compute. Freed "
                   "blocks keep their content, the last block of a sequence first in line for eviction, until --evict "
                   "chooses them. With lru the free queue is the order, as in vLLM, block number by block number. Waste: "
                   "the last block; hits lost to granularity, to the last token and to eviction are reported. O(1) a "
                   "block and key: three cache lines.",
    .create = prefix_create,
    PAGED_CACHE_CALLS,
};
