#include <stdio.h>
#include <string.h>

#include "allocator/paged.h"

extern const struct kv_policy_ops kv_policy_prefix_ops;

/* `dynamic` with hash-chained automatic prefix caching: blocks that nobody holds keep their content. Under lru the
 * free queue doubles as the eviction order, as in vLLM; other orders stand beside it, and there blocks without a
 * key are always taken first. */

/* "lru|2q|arc|...": vLLM's queue, then every order that needs no knowledge of the future. */
static char evict_choices[512] = "lru";

static const struct kv_option evict_option = {
    .name = "evict",
    .choices = evict_choices,
    .default_text = "lru",
    .help = "which cached block goes first: lru is vLLM's free queue",
};

static const struct kv_option *const prefix_options[] = { &evict_option, NULL };

static bool is_choice(const struct kv_eviction_ops *order)
{
    return strcmp(order->name, "lru") != 0 && (order->flags & KV_EVICTION_CLAIRVOYANT) == 0;
}

/* The text of a constant table has to be there before main. Nothing is registered here: the orders are listed by
 * the file names, and this object is linked because the policy is. */
__attribute__((constructor)) static void list_choices(void)
{
    size_t chars = strlen(evict_choices);
    for (size_t i = 0; i < kv_eviction_count(); i++)
        if (is_choice(kv_eviction_at(i)) && chars + strlen(kv_eviction_at(i)->name) + 2 < sizeof evict_choices)
            chars += (size_t)snprintf(evict_choices + chars, sizeof evict_choices - chars, "|%s",
                                      kv_eviction_at(i)->name);
}

/* NULL: the free queue. */
static const struct kv_eviction_ops *chosen_order(uint64_t choice)
{
    for (size_t i = 0; choice > 0 && i < kv_eviction_count(); i++)
        if (is_choice(kv_eviction_at(i)) && --choice == 0)
            return kv_eviction_at(i);
    return NULL;
}

static struct kv_policy *prefix_create(const struct kv_geometry *geometry, const struct kv_value *values,
                                       const struct kv_observer *observer, char *why, size_t why_bytes)
{
    struct paged_config config = {
        .block_tokens = geometry->block_tokens,
        .caches = true,
        .null_block = true,
        .evict = chosen_order(values[0].count),
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
    .keyed = paged_keyed,
};
