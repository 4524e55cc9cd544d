#include "sim/host_options.h"

#include <stdio.h>

#include "allocator/host_tier.h"

static int unknown_order(const char *option, const char *name, bool on_keys, struct err *err)
{
    char known[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < kv_eviction_count() && used < sizeof known; i++) {
        const struct kv_eviction_ops *order = kv_eviction_at(i);
        if (on_keys && !host_tier_allows(order)) continue;
        int n = snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", order->name);
        used += n > 0 ? (size_t)n : 0;
    }
    return err_set(err, ERR_USAGE, "--%s: found '%.40s', expected one of %s", option, name, known);
}

int eviction_order_find(const char *option, const char *name, const struct kv_eviction_ops **order, struct err *err)
{
    *order = kv_eviction_find(name);
    return *order ? 0 : unknown_order(option, name, false, err);
}

int host_order_find(const char *name, const struct kv_eviction_ops **order, struct err *err)
{
    *order = kv_eviction_find(name);
    if (!*order) return unknown_order("host-evict", name, true, err);
    if (host_tier_allows(*order)) return 0;
    return err_set(err, ERR_USAGE,
                   "--host-evict: found '%.40s', which knows %s, expected an order that works on keys alone, all that an "
                   "evicted block leaves behind",
                   name, (*order)->flags & KV_EVICTION_CLAIRVOYANT ? "the future" : "more of requests");
}

int host_from_options(struct host_config *config, const struct optset *set, const struct options *o, struct err *err)
{
    *config = (struct host_config){
        .capacity_bytes = o->host_cache_bytes,
        .link = {.bytes_per_s = o->host_bandwidth_bytes,
                 .latency_ns = o->host_latency_ns,
                 .overlapped = o->host_transfer == OPT_HOST_TRANSFER_OVERLAPPED},
    };
    if (host_order_find(o->host_evict, &config->evict, err)) return -1;
    return options_order_values(set, config->evict, config->evict_values, err);
}
