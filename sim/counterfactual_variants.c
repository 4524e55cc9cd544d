/* Which settings could be different, and option sets in which one is. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/counterfactual.h"
#include "sim/engine_core.h"
#include "sim/optset_change.h"

struct list {
    struct variant *items;
    size_t count;
};

__attribute__((format(printf, 4, 5))) static void add(struct list *list, const char *name, const char *option,
                                                      const char *format, ...)
{
    if (list->count == VARIANTS_MAX) return;
    struct variant *v = &list->items[list->count++];
    va_list arguments;
    va_start(arguments, format);
    v->option = option;
    vsnprintf(v->value, sizeof v->value, format, arguments);
    va_end(arguments);
    snprintf(v->name, sizeof v->name, "%s_%s", name, v->value);
    for (char *c = v->name; *c; c++) {
        if (*c == '-' || *c == '.') *c = '_';
    }
}

/* Every other choice of a policy's option. */
static void add_choices(struct list *list, const struct options *o, const char *option)
{
    const struct kv_option *const *have = o->policy_ops->options;
    for (size_t i = 0; have && have[i]; i++) {
        if (strcmp(have[i]->name, option) != 0 || !have[i]->choices) continue;
        const char *choice = have[i]->choices;
        for (uint64_t k = 0; *choice; k++) {
            size_t length = strcspn(choice, "|");
            if (k != o->policy_values[i].count) add(list, option, option, "%.*s", (int)length, choice);
            choice += length + (choice[length] == '|');
        }
    }
}

static void add_policies(struct list *list, const struct kv_policy_ops *ops)
{
    bool reserves = (ops->flags & KV_RESERVES) != 0, caches = (ops->flags & KV_CACHES) != 0;
    if (reserves) add(list, "policy", "policy", "dynamic");
    if (!caches) add(list, "policy", "policy", "prefix");
    if (strcmp(ops->name, "ideal") != 0) add(list, "policy", "policy", "ideal");
}

size_t variants_list(struct variant *variants, const struct options *o, const struct engine_config *c,
                     uint64_t pool_bytes, uint64_t running_max)
{
    struct list list = {.items = variants};
    uint32_t flags = o->policy_ops->flags;
    uint64_t block = c->geometry.block_tokens;
    if (c->geometry.watermark > 0) add(&list, "watermark", "watermark", "0");
    if (!(flags & KV_RESERVES)) {
        add(&list, "admission", "admission", "%s", c->whole_prompt_admission ? "first-chunk" : "whole-prompt");
    }
    if (!c->chunked_prefill && !c->scheduler->whole_prompts) {
        add(&list, "chunked_prefill", "enable-chunked-prefill", "yes");
    }
    /* Only a simulated device has an edge. */
    bool lends = c->edge.model == EDGE_BUDGET && !c->edge.elastic && !(flags & (KV_CONTIGUOUS | KV_RESERVES));
    if (lends) add(&list, "device_boundary", "device-boundary", "elastic");
    const struct kv_eviction_ops *order = kv_eviction_of(o->policy_ops->options, o->policy_values);
    if (order && order->clock) add(&list, "evict", "evict", "lru"); /* it pins */
    add_choices(&list, o, "placement");
    add_choices(&list, o, "reserve");
    if (!(flags & (KV_CONTIGUOUS | KV_TOKEN_UNITS))) {
        if (block > 1) add(&list, "block_size", "block-size", "%" PRIu64, block / 2);
        if (block < 524288) add(&list, "block_size", "block-size", "%" PRIu64, block * 2);
    }
    bool reserve = strcmp(c->scheduler->name, "reserve") == 0;
    add(&list, "scheduler", "scheduler", "%s", strcmp(c->scheduler->name, "v1") == 0 ? "reserve" : "v1");
    if (reserve) add(&list, "declared_output", "declared-output", "exact");
    if (running_max > 1) add(&list, "max_num_seqs", "max-num-seqs", "%" PRIu64, running_max / 2);
    add_policies(&list, o->policy_ops);
    static const uint64_t percent[] = {95, 90, 105, 110, 125}; /* a smaller pool leaves the device more */
    for (size_t i = c->edge.model == EDGE_NONE ? 2 : 0; i < sizeof percent / sizeof percent[0]; i++) {
        u128 bytes = (u128)pool_bytes * percent[i] / 100;
        if (bytes > (uint64_t)1 << 62) break;
        char name[16];
        snprintf(name, sizeof name, "pool_%" PRIu64, percent[i]);
        add(&list, name, "kv-cache-memory-bytes", "%" PRIu64, (uint64_t)bytes);
        snprintf(list.items[list.count - 1].name, sizeof list.items[0].name, "%s_percent", name);
    }
    return list.count;
}

struct optset *variant_set(const struct optset *set, const struct variant *v, uint64_t pool_bytes,
                           struct err *err)
{
    char bytes[24];
    snprintf(bytes, sizeof bytes, "%" PRIu64, pool_bytes);
    const struct setting settings[] = {{v->option, v->value}, {"kv-cache-memory-bytes", bytes}};
    return optset_change(set, settings, optset_is_pool(v->option) ? 1 : 2, err);
}
