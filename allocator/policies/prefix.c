#include "allocator/paged.h"

extern const struct kv_policy_ops kv_policy_prefix_ops;

/* `dynamic` with hash-chained automatic prefix caching: blocks that nobody holds keep their content. Under lru the
 * free queue doubles as the eviction order, as in vLLM; other orders stand beside it, and there blocks without a
 * key are always taken first. */

static const struct kv_option evict_option = {
    .name = "evict",
    .choices = kv_eviction_choices,
    .default_text = "lru",
    .help = "which cached block goes first: lru is vLLM's free queue",
};

static const struct kv_option *const prefix_options[] = { &evict_option, NULL };

static struct kv_policy *prefix_create(const struct kv_geometry *geometry, const struct kv_value *values,
                                       const struct kv_observer *observer, char *why, size_t why_bytes)
{
    struct paged_config config = {
        .block_tokens = geometry->block_tokens,
        .caches = true,
        .null_block = true,
        .evict = kv_eviction_choice(values[0].count),
        .evict_values = values + 1,
    };
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
    .options = prefix_options,
    .create = prefix_create,
    .destroy = paged_destroy,
    .lookup = paged_lookup,
    .admit = paged_admit,
    .extend = paged_extend,
    .fork = paged_fork,
    .trim = paged_trim,
    .release = paged_release,
    .facts = paged_facts,
    .seq_facts = paged_seq_facts,
    .obtainable = paged_obtainable,
    .units_for = paged_units_for,
    .largest_piece = paged_largest_piece,
    .table = paged_table,
    .free_queue = paged_free_queue,
    .cache_facts = paged_cache_facts,
    .check = paged_check,
    .foreseen = paged_foreseen,
    .pinned = paged_pinned,
    .clock = paged_clock,
    .next_unpin = paged_next_unpin,
    .expect = paged_expect,
    .keyed = paged_keyed,
};
