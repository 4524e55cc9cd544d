/* Private pools: torch.cuda.MemPool, and with it CUDA graph captures. */
#include <stdlib.h>

#include "allocator/device/dev_internal.h"

static struct dev_private *find_pool(const struct dev_allocator *a, uint32_t pool)
{
    if (pool == DEV_DEFAULT_POOL || pool > a->private_count)
        return NULL;
    struct dev_private *private = a->privates[pool - 1];
    return private && !private->released ? private : NULL;
}

static bool grow(struct dev_allocator *a)
{
    if (a->private_count < a->private_room)
        return true;
    if (a->private_room > UINT32_MAX / 4)
        return false;
    uint32_t room = a->private_room ? 2 * a->private_room : 8;
    struct dev_private **privates = realloc(a->privates, room * sizeof *privates);
    if (!privates)
        return false;
    a->privates = privates;
    uint32_t *open_pools = realloc(a->open_pools, room * sizeof *open_pools);
    if (!open_pools)
        return false;
    a->open_pools = open_pools;
    a->private_room = room;
    return true;
}

enum dev_status dev_pool_create(struct dev_allocator *a, uint32_t *pool)
{
    struct dev_private *private = calloc(1, sizeof *private);
    if (!private || !grow(a)) {
        free(private);
        return DEV_NO_HOST_MEMORY;
    }
    a->privates[a->private_count++] = private;
    private->id = a->private_count;
    dev_pool_init(&private->small, true, private);
    dev_pool_init(&private->large, false, private);
    a->event_count = 0;
    *pool = private->id;
    return DEV_OK;
}

enum dev_status dev_pool_begin(struct dev_allocator *a, uint32_t pool)
{
    struct dev_private *private = find_pool(a, pool);
    if (!private)
        return DEV_UNKNOWN_POOL;
    if (private->open)
        return DEV_POOL_OPEN;
    private->open = true;
    a->open_pools[a->open_count++] = pool; /* as roomy as privates */
    a->event_count = 0;
    return DEV_OK;
}

enum dev_status dev_pool_end(struct dev_allocator *a, uint32_t pool)
{
    struct dev_private *private = find_pool(a, pool);
    if (!private)
        return DEV_UNKNOWN_POOL;
    if (!private->open)
        return DEV_POOL_NOT_OPEN;
    private->open = false;
    uint32_t at = a->open_count;
    while (a->open_pools[at - 1] != pool)
        at--;
    for (; at < a->open_count; at++)
        a->open_pools[at - 1] = a->open_pools[at];
    a->open_count--;
    a->event_count = 0;
    return DEV_OK;
}

enum dev_status dev_pool_release(struct dev_allocator *a, uint32_t pool)
{
    struct dev_private *private = find_pool(a, pool);
    if (!private)
        return DEV_UNKNOWN_POOL;
    if (private->open)
        return DEV_POOL_OPEN;
    if (!dev_reserve_slow(a))
        return DEV_NO_HOST_MEMORY;
    a->event_count = 0;
    a->stats.syncs++;
    private->released = true;
    dev_release_private(a, private);
    return DEV_OK;
}
