#include "allocator/paged.h"

extern const struct kv_policy_ops kv_policy_ideal_ops;

/* The bound that paging aims at: `prefix` with blocks of one token and no null block. Nothing is empty inside a
 * block, and sharing ends at the last common token. */

static struct kv_policy *ideal_create(const struct kv_geometry *geometry, const struct kv_value *values,
                                      const struct kv_observer *observer, char *why, size_t why_bytes)
{
    struct paged_config config = paged_cache_config(1, false, values);
    return paged_create(&kv_policy_ideal_ops, geometry, &config, observer, why, why_bytes);
}

const struct kv_policy_ops kv_policy_ideal_ops = {
    .abi_version = KV_ABI_VERSION,
    .flags = KV_CACHES | KV_CLAIRVOYANT | KV_TOKEN_UNITS,
    .name = "ideal",
    .summary = "token-exact paging and sharing: the bound of the memory states",
    .source = "prefix with block size 1 and no null block",
    .description = "The rules of prefix with blocks of one token and no null block: nothing is empty, sharing ends at "
                   "the last common token. It bounds the memory states of every other policy, not their latency, since "
                   "it preempts like paging; and it knows no cost of small blocks.",
    .create = ideal_create,
    PAGED_CACHE_CALLS,
};
