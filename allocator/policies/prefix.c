#include "allocator/paged.h"

extern const struct kv_policy_ops kv_policy_prefix_ops;

/* `dynamic` with hash-chained automatic prefix caching: blocks that nobody holds keep their content, and the
 * free queue doubles as the eviction order. */

static const struct kv_option evict_option = {
    .name = "evict",
    .choices = "lru",
    .default_text = "lru",
    .help = "which cached block goes first: lru is vLLM's free queue",
};

static const struct kv_option *const prefix_options[] = { &evict_option, NULL };

static struct kv_policy *prefix_create(const struct kv_geometry *geometry, const struct kv_value *values,
                                       const struct kv_observer *observer, char *why, size_t why_bytes)
{
    (void)values;
    struct paged_config config = {
        .block_tokens = geometry->block_tokens,
        .caches = true,
        .null_block = true,
    };
    return paged_create(&kv_policy_prefix_ops, geometry, &config, observer, why, why_bytes);
}

const struct kv_policy_ops kv_policy_prefix_ops = {
    .abi_version = KV_ABI_VERSION,
    .flags = KV_CACHES,
    .name = "prefix",
    .summary = "dynamic with hash-chained automatic prefix caching",
    .source = "vLLM v1, rule sets 2026-04 and 2026-08",
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
};
