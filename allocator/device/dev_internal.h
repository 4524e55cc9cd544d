/* What the files of the allocator share. See device_allocator.h for the words. */
#ifndef PAGESIM_DEV_INTERNAL_H
#define PAGESIM_DEV_INTERNAL_H

#include <assert.h>

#include "allocator/device/dev_driver.h"
#include "allocator/device/dev_slab.h"
#include "allocator/device/dev_tree.h"
#include "allocator/device/device_allocator.h"

#define DEV_ROUND_BYTES 512ull
#define DEV_SMALL_MAX_BYTES DEV_MIB              /* larger requests go to the large pool */
#define DEV_SMALL_SEGMENT_BYTES (2 * DEV_MIB)
#define DEV_LARGE_SEGMENT_BYTES (20 * DEV_MIB)   /* also the slack a request of max_split_bytes or more may waste */
#define DEV_OWN_SEGMENT_MIN_BYTES (10 * DEV_MIB) /* from here a request gets a segment of its own size ... */
#define DEV_OWN_SEGMENT_ROUND_BYTES (2 * DEV_MIB) /* ... rounded up to this */

struct dev_pool;
struct dev_segment;

struct dev_block {
    struct dev_node node; /* bytes and address; in pool->free or pool->unmapped unless it is handed out */
    struct dev_block *prev, *next; /* of the same segment, in address order */
    struct dev_segment *segment;
    uint64_t requested_bytes;
    uint64_t lookups_when_freed; /* pool->lookups then: its age is counted in look-ups */
    enum dev_block_state state;
};

/* A cudaMalloc, or an expandable range. */
struct dev_segment {
    struct dev_node whole; /* in pool->whole while the segment is one free block */
    struct dev_segment *prev, *next; /* all segments, in no order that matters */
    struct dev_pool *pool;
    struct dev_block *first;
    struct dev_piece *piece;   /* NULL when expandable */
    struct dev_stretch *range; /* NULL when not */
};

/* The small or the large blocks of the default pool or of a private one. */
struct dev_pool {
    struct dev_tree free;     /* all free blocks, by size */
    struct dev_tree whole;    /* segments that are one free block, by size; expandable ranges never */
    struct dev_tree unmapped; /* expandable: blocks without pages, by address */
    uint64_t lookups;         /* counted while garbage collection is on */
    uint64_t page_bytes;      /* of expandable ranges */
    struct dev_private *owner; /* NULL: the default pool */
    uint64_t restored_from;   /* address of the first restored stretch, as it was given; DEV_NONE: none */
    bool small;
};

struct dev_private {
    uint32_t id;
    bool open;
    bool released;
    size_t segments; /* and ranges; once released and empty, the pool is forgotten */
    struct dev_pool small, large;
};

/* Handed-out blocks by address: open addressing, at most half full. */
struct dev_map {
    struct dev_block **slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t used;
};

struct dev_allocator {
    struct dev_config config;
    struct dev_driver driver;
    struct dev_stats stats;
    struct dev_pool small, large;
    struct dev_private **privates; /* [id - 1]; NULL once forgotten */
    uint32_t private_count, private_room;
    uint32_t *open_pools; /* ids, the innermost last */
    uint32_t open_count;
    struct dev_segment *segments;
    struct dev_slab blocks_slab, segments_slab;
    size_t block_count;
    size_t segment_count;
    uint64_t free_block_bytes;    /* mapped, all pools */
    uint64_t private_free_bytes;  /* of them, in private pools */
    struct dev_map map;
    struct dev_event *events;
    size_t event_count, event_room;
    struct dev_oom oom;
    uint64_t restored_end; /* of the restored segments so far, as they were given */
};

/* A request on its way through malloc. */
struct dev_request {
    struct dev_pool *pool;
    uint64_t bytes;         /* rounded */
    uint64_t segment_bytes; /* what the driver would be asked for */
};

static inline struct dev_block *dev_block_of(struct dev_node *node)
{
    return (struct dev_block *)node; /* its first member */
}

static inline struct dev_segment *dev_segment_of(struct dev_node *node)
{
    return (struct dev_segment *)node;
}

static inline bool dev_block_is_split(const struct dev_block *block)
{
    return block->prev || block->next;
}

static inline uint64_t dev_block_end(const struct dev_block *block)
{
    return block->node.address + block->node.bytes;
}

static inline void dev_counter_add(struct dev_counter *counter, uint64_t amount)
{
    counter->now += amount;
    if (counter->now > counter->peak)
        counter->peak = counter->now;
}

static inline void dev_counter_sub(struct dev_counter *counter, uint64_t amount)
{
    assert(counter->now >= amount);
    counter->now -= amount;
}

/* dev_blocks.c: blocks, free lists and segments. Nothing here fails: room was reserved. */
void dev_pool_init(struct dev_pool *pool, bool small, struct dev_private *owner);
struct dev_block *dev_block_new(struct dev_allocator *a, struct dev_segment *segment, uint64_t address, uint64_t bytes, enum dev_block_state state);
void dev_block_drop(struct dev_allocator *a, struct dev_block *block);
/* A new block in front of `block`, which keeps its end. Neither is in a tree. */
struct dev_block *dev_block_split_front(struct dev_allocator *a, struct dev_block *block, uint64_t bytes);
/* Lets `block`, which is in no tree, swallow a neighbour in the same state; returns what it gained, 0 if it cannot. */
uint64_t dev_block_swallow(struct dev_allocator *a, struct dev_block *block, struct dev_block *neighbour);
void dev_free_list_add(struct dev_allocator *a, struct dev_block *block);
void dev_free_list_remove(struct dev_allocator *a, struct dev_block *block);
void dev_unmapped_add(struct dev_block *block);
void dev_unmapped_remove(struct dev_block *block);
struct dev_segment *dev_segment_new(struct dev_allocator *a, struct dev_pool *pool);
void dev_segment_drop(struct dev_allocator *a, struct dev_segment *segment);
void dev_event_add(struct dev_allocator *a, enum dev_event_kind kind, uint64_t address, uint64_t bytes);
void dev_reserved_add(struct dev_allocator *a, const struct dev_pool *pool, uint64_t bytes);
void dev_reserved_sub(struct dev_allocator *a, const struct dev_pool *pool, uint64_t bytes);

/* dev_map.c */
bool dev_map_reserve(struct dev_map *map, size_t more);
void dev_map_add(struct dev_map *map, struct dev_block *block);
/* Takes out the block at that address; NULL if there is none. */
struct dev_block *dev_map_take(struct dev_map *map, uint64_t address);

/* dev_expandable.c */
/* A free block of at least `bytes`, out of the free list, by mapping pages; NULL when the device has none left. */
struct dev_block *dev_expandable_allocate(struct dev_allocator *a, struct dev_pool *pool, uint64_t bytes);
/* Maps [address, address + bytes) of the range whose last block, unmapped, holds it; returns the block, free and in no tree. NULL
 * when the device has no room. */
struct dev_block *dev_expandable_restore(struct dev_allocator *a, struct dev_block *tail, uint64_t address, uint64_t bytes);
/* A range that is one unmapped block; NULL when no address space is left. */
struct dev_block *dev_expandable_range(struct dev_allocator *a, struct dev_pool *pool);
/* Unmaps every whole page inside the pool's free blocks. */
void dev_expandable_release(struct dev_allocator *a, struct dev_pool *pool);

/* dev_release.c: rules 5 and 6, the ways back to the driver. */
void dev_collect_garbage(struct dev_allocator *a);
bool dev_release_oversize(struct dev_allocator *a, const struct dev_request *request);
void dev_release_pool(struct dev_allocator *a, struct dev_pool *pool);
void dev_release_private(struct dev_allocator *a, struct dev_private *private);
/* Does nothing but released pools while a private pool is open. */
void dev_release_cached(struct dev_allocator *a);

/* dev_allocator.c: room for whatever one operation may do; false when this process has no memory. */
bool dev_reserve_slow(struct dev_allocator *a);
/* Marks a block that is in no tree as handed out, and counts it. */
void dev_hand_out(struct dev_allocator *a, struct dev_block *block, uint64_t requested_bytes);

#endif
