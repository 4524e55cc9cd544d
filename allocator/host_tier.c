#include "allocator/host_tier.h"

#include <assert.h>
#include <stdlib.h>

#include "allocator/vm_area.h"

bool host_tier_allows(const struct kv_eviction_ops *order)
{
    bool keys_alone = (order->flags & (KV_EVICTION_STRUCTURE | KV_EVICTION_CLAIRVOYANT)) == 0;
    return keys_alone && order->clock == NULL && order->expect == NULL;
}

struct host_tier *host_tier_create(uint32_t capacity, const struct kv_eviction_ops *order, const struct kv_value *values)
{
    assert(capacity > 0 && capacity <= HOST_TIER_BLOCKS_MAX && host_tier_allows(order));
    struct host_tier *tier = calloc(1, sizeof *tier);
    if (tier == NULL)
        return NULL;
    tier->capacity = capacity;
    tier->places = vm_area_map_dense((uint64_t)capacity + 1, sizeof *tier->places);
    tier->order = kv_eviction_create(order, capacity, values);
    if (tier->places != NULL && tier->order != NULL && block_index_init(&tier->index, tier->places, capacity))
        return tier;
    host_tier_destroy(tier);
    return NULL;
}

void host_tier_destroy(struct host_tier *tier)
{
    if (tier == NULL)
        return;
    if (tier->index.buckets != NULL)
        block_index_release(&tier->index);
    if (tier->order != NULL)
        tier->order->ops->destroy(tier->order);
    vm_area_unmap(tier->places, (uint64_t)tier->capacity + 1, sizeof *tier->places);
    free(tier);
}

bool host_tier_has(const struct host_tier *tier, uint64_t key)
{
    return block_index_find(&tier->index, key) != KV_BLOCK_NONE;
}

uint64_t host_tier_leading(const struct host_tier *tier, const uint64_t *keys, uint64_t n)
{
    uint64_t run = 0;
    while (run < n && host_tier_has(tier, keys[run]))
        run++;
    return run;
}

static void touch(struct host_tier *tier, kv_block place)
{
    tier->order->ops->touch(tier->order, place - 1);
}

void host_tier_fetch(struct host_tier *tier, uint64_t key)
{
    kv_block place = block_index_find(&tier->index, key);
    assert(place != KV_BLOCK_NONE);
    touch(tier, place);
    tier->fetched++;
}

/* A place without content, the victim's when none is free. */
static kv_block free_place(struct host_tier *tier)
{
    if (tier->used_blocks < tier->capacity)
        return ++tier->used_blocks;
    kv_block place = tier->order->ops->evict(tier->order) + 1;
    block_index_remove(&tier->index, place);
    tier->evicted++;
    return place;
}

void host_tier_offload(struct host_tier *tier, uint64_t key)
{
    const struct kv_eviction_ops *ops = tier->order->ops;
    kv_block place = block_index_find(&tier->index, key);
    if (place != KV_BLOCK_NONE) {
        touch(tier, place);
        tier->already_there++;
        return;
    }
    if (ops->miss != NULL)
        ops->miss(tier->order, key);
    place = free_place(tier);
    block_index_add(&tier->index, place, key);
    if (ops->insert != NULL) {
        struct kv_content content = { .key = key, .parent = KV_OBJECT_NONE };
        ops->insert(tier->order, place - 1, &content);
    }
    ops->give(tier->order, place - 1);
    tier->offloaded++;
}

/* Rounds ahead that a key's bucket, then the block in it, are asked for: each is a miss of the processor's caches. */
enum { BUCKETS_AHEAD = 16, BLOCKS_AHEAD = 8 };

void host_tier_offload_all(struct host_tier *tier, const uint64_t *keys, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (i + BUCKETS_AHEAD < n)
            block_index_prefetch_bucket(&tier->index, keys[i + BUCKETS_AHEAD]);
        if (i + BLOCKS_AHEAD < n)
            block_index_prefetch_block(&tier->index, keys[i + BLOCKS_AHEAD]);
        host_tier_offload(tier, keys[i]);
    }
}

const char *host_tier_check(const struct host_tier *tier)
{
    uint64_t keyed = 0;
    const char *wrong = block_index_check(&tier->index, &keyed);
    if (wrong == NULL && tier->order->ops->check != NULL)
        wrong = tier->order->ops->check(tier->order);
    if (wrong != NULL)
        return wrong;
    if (keyed != tier->used_blocks || tier->order->count != tier->used_blocks)
        return "host tier: blocks with a key, in the order and in use differ";
    if (tier->offloaded - tier->evicted != tier->used_blocks)
        return "host tier: blocks copied to the host and dropped do not add up to those there";
    return NULL;
}
