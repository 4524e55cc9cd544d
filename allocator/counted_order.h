/* What the eviction orders share that rank objects by how often they were used: lfu, gdsf, length-aware. Uses are
 * the filling and every hit since; an evicted object's are forgotten. Ranks are taken when an object is given
 * back; among equals the one given first goes first. */
#ifndef PAGESIM_COUNTED_ORDER_H
#define PAGESIM_COUNTED_ORDER_H

#include "allocator/eviction.h"
#include "allocator/rank_lists.h"

struct counted_order {
    struct kv_eviction base;
    struct rank_lists ranks;
    uint64_t evicted; /* rank of the last victim */
    uint32_t *uses;
    uint32_t *depths; /* position in the prompt */
    /* Least goes first. */
    uint64_t (*rank)(const struct counted_order *order, uint32_t object);
};

struct kv_eviction *counted_create(const struct kv_eviction_ops *ops, uint32_t objects,
                                   uint64_t (*rank)(const struct counted_order *, uint32_t));
void counted_destroy(struct kv_eviction *order);
void counted_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content);
void counted_give(struct kv_eviction *order, uint32_t object);
void counted_take(struct kv_eviction *order, uint32_t object);
void counted_touch(struct kv_eviction *order, uint32_t object);
uint32_t counted_evict(struct kv_eviction *order);
uint32_t counted_next_victim(const struct kv_eviction *order);
const char *counted_check(const struct kv_eviction *order);

/* All of a table but its words and create. */
#define COUNTED_ORDER_CALLS                                                                                    \
    .destroy = counted_destroy, .insert = counted_insert, .give = counted_give, .take = counted_take,         \
    .touch = counted_touch, .evict = counted_evict, .next_victim = counted_next_victim, .check = counted_check

#endif
