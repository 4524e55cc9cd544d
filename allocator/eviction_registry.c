#include "allocator/eviction.h"

#include <assert.h>
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

size_t kv_eviction_count(void)
{
    return sizeof orders / sizeof orders[0];
}

const struct kv_eviction_ops *kv_eviction_at(size_t i)
{
    assert(i < kv_eviction_count());
    return orders[i];
}

const struct kv_eviction_ops *kv_eviction_find(const char *name)
{
    for (size_t i = 0; i < kv_eviction_count(); i++)
        if (strcmp(orders[i]->name, name) == 0)
            return orders[i];
    return NULL;
}
