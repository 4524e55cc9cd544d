#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "allocator/eviction.h"
#include "allocator/kv_policy.h"

/* One line X(file_name) for each allocator/policies/file_name.c, in file-name order. */
#define X(name) extern const struct kv_policy_ops kv_policy_##name##_ops;
#include "kv_policies.inc"
#undef X

static const struct kv_policy_ops *const registry[] = {
#define X(name) &kv_policy_##name##_ops,
#include "kv_policies.inc"
#undef X
};

#define BUILT_INS (sizeof registry / sizeof registry[0])

/* Those of plug-ins, behind the built-in ones, in the order in which they came. */
static const struct kv_policy_ops *added[KV_REGISTRY_ADDED_MAX];
static size_t added_count;

size_t kv_registry_count(void)
{
    return BUILT_INS + added_count;
}

bool kv_registry_add(const struct kv_policy_ops *ops)
{
    if (added_count == KV_REGISTRY_ADDED_MAX)
        return false;
    added[added_count++] = ops;
    return true;
}

bool kv_registry_is_added(const struct kv_policy_ops *ops)
{
    for (size_t i = 0; i < added_count; i++)
        if (added[i] == ops)
            return true;
    return false;
}

const struct kv_policy_ops *kv_registry_at(size_t i)
{
    assert(i < kv_registry_count());
    return i < BUILT_INS ? registry[i] : added[i - BUILT_INS];
}

const struct kv_policy_ops *kv_registry_find(const char *name)
{
    for (size_t i = 0; i < kv_registry_count(); i++)
        if (strcmp(kv_registry_at(i)->name, name) == 0)
            return kv_registry_at(i);
    return NULL;
}

bool kv_policy_values(const struct kv_policy_ops *ops, const char *const *texts, struct kv_value *values, char *why,
                      size_t why_bytes)
{
    size_t own = kv_options_count(ops->options);
    if (!kv_options_parse(ops->options, texts, values, why, why_bytes))
        return false;
    const struct kv_eviction_ops *order = kv_eviction_of(ops->options, values);
    if (order == NULL)
        return true;
    assert(own + kv_options_count(order->options) <= KV_OPTIONS_MAX);
    return kv_options_parse(order->options, NULL, values + own, why, why_bytes);
}
