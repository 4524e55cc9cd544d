#include "allocator/eviction.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The list is made from the file names in allocator/eviction/. */
#define X(name) extern const struct kv_eviction_ops kv_eviction_##name##_ops;
#include "evictions.inc"
#undef X

static const struct kv_eviction_ops *const orders[] = {
#define X(name) &kv_eviction_##name##_ops,
#include "evictions.inc"
#undef X
};

#define BUILT_INS (sizeof orders / sizeof orders[0])

static const struct kv_eviction_ops *added[KV_EVICTION_ADDED_MAX];
static size_t added_count;

size_t kv_eviction_count(void)
{
    return BUILT_INS + added_count;
}

char kv_eviction_choices[1024] = "lru";

static bool is_choice(const struct kv_eviction_ops *order)
{
    return strcmp(order->name, "lru") != 0;
}

static bool add_choice(const struct kv_eviction_ops *order)
{
    size_t chars = strlen(kv_eviction_choices);
    if (!is_choice(order))
        return true;
    if (chars + strlen(order->name) + 2 > sizeof kv_eviction_choices)
        return false;
    snprintf(kv_eviction_choices + chars, sizeof kv_eviction_choices - chars, "|%s", order->name);
    return true;
}

/* The text of a constant table has to be there before main. */
__attribute__((constructor)) static void list_choices(void)
{
    for (size_t i = 0; i < BUILT_INS; i++)
        add_choice(orders[i]);
}

const struct kv_eviction_ops *kv_eviction_choice(uint64_t index)
{
    for (size_t i = 0; index > 0 && i < kv_eviction_count(); i++)
        if (is_choice(kv_eviction_at(i)) && --index == 0)
            return kv_eviction_at(i);
    return NULL;
}

const struct kv_eviction_ops *kv_eviction_of(const struct kv_option *const *options, const struct kv_value *values)
{
    for (size_t i = 0; options != NULL && options[i] != NULL; i++)
        if (options[i]->choices == kv_eviction_choices)
            return values[i].count == 0 ? kv_eviction_find("lru") : kv_eviction_choice(values[i].count);
    return NULL;
}

bool kv_eviction_add(const struct kv_eviction_ops *ops)
{
    if (added_count == KV_EVICTION_ADDED_MAX || !add_choice(ops))
        return false;
    added[added_count++] = ops;
    return true;
}

struct kv_eviction *kv_eviction_create(const struct kv_eviction_ops *ops, uint32_t objects, const struct kv_value *values)
{
    struct kv_value defaults[KV_OPTIONS_MAX];
    char why[200];
    if (values == NULL && !kv_options_parse(ops->options, NULL, defaults, why, sizeof why))
        return NULL; /* plug-ins were asked when they were loaded, and the tests know the others */
    values = values != NULL ? values : defaults;
    for (size_t i = 0; i < added_count; i++)
        if (added[i] == ops)
            return kv_eviction_check_create(ops, objects, values, NULL, NULL);
    return ops->create(objects, values);
}

const struct kv_eviction_ops *kv_eviction_at(size_t i)
{
    assert(i < kv_eviction_count());
    return i < BUILT_INS ? orders[i] : added[i - BUILT_INS];
}

const struct kv_eviction_ops *kv_eviction_find(const char *name)
{
    for (size_t i = 0; i < kv_eviction_count(); i++)
        if (strcmp(kv_eviction_at(i)->name, name) == 0)
            return kv_eviction_at(i);
    return NULL;
}
