#include "allocator/device/device_allocator.h"

#include <stdlib.h>

#include "allocator/device/dev_internal.h"

/* ---- sizes (rules 1 and 5) ---- */

static unsigned log2_of(uint64_t value)
{
    assert(value > 0);
    return 63u - (unsigned)__builtin_clzll(value);
}

static uint32_t divisions_for(const struct dev_settings *settings, uint64_t bytes)
{
    unsigned class = log2_of(bytes) > 20 ? log2_of(bytes) - 20 : 0;
    return settings->roundup_divisions[class < DEV_ROUNDUP_CLASSES ? class : DEV_ROUNDUP_CLASSES - 1];
}

static uint64_t round_request(const struct dev_settings *settings, uint64_t bytes)
{
    if (bytes < DEV_ROUND_BYTES)
        return DEV_ROUND_BYTES;
    uint64_t divisions = divisions_for(settings, bytes);
    if (divisions <= 1 || bytes <= DEV_ROUND_BYTES * divisions)
        return dev_round_up(bytes, DEV_ROUND_BYTES);
    /* Equal steps between the power of two below and the next; a power of two stays. */
    return dev_round_up(bytes, (1ull << log2_of(bytes)) / divisions);
}

static uint64_t segment_bytes_for(uint64_t rounded_bytes)
{
    if (rounded_bytes <= DEV_SMALL_MAX_BYTES)
        return DEV_SMALL_SEGMENT_BYTES;
    if (rounded_bytes < DEV_OWN_SEGMENT_MIN_BYTES)
        return DEV_LARGE_SEGMENT_BYTES;
    return dev_round_up(rounded_bytes, DEV_OWN_SEGMENT_ROUND_BYTES);
}

/* ---- life ---- */

void dev_config_init(struct dev_config *config)
{
    *config = (struct dev_config){.machine = dev_machine_h200, .cap_bytes = DEV_NONE};
    dev_settings_init(&config->settings);
}

uint64_t dev_ballast_bytes(const struct dev_machine *machine, uint64_t left_bytes)
{
    if (left_bytes >= machine->free_bytes)
        return 0;
    return (machine->free_bytes - left_bytes) / DEV_PAGE_BYTES * DEV_PAGE_BYTES;
}

static bool machine_is_usable(const struct dev_machine *m)
{
    return m->total_bytes > 0 && m->total_bytes <= DEV_BYTES_MAX && m->free_bytes <= m->total_bytes &&
           m->top_address <= DEV_BYTES_MAX && m->range_address <= DEV_BYTES_MAX;
}

enum dev_status dev_allocator_create(const struct dev_config *config, struct dev_allocator **out)
{
    if (!machine_is_usable(&config->machine))
        return DEV_BAD_SIZE;
    struct dev_allocator *a = calloc(1, sizeof *a);
    if (!a)
        return DEV_NO_HOST_MEMORY;
    a->config = *config;
    dev_slab_init(&a->blocks_slab, sizeof(struct dev_block));
    dev_slab_init(&a->segments_slab, sizeof(struct dev_segment));
    dev_pool_init(&a->small, true, NULL);
    dev_pool_init(&a->large, false, NULL);
    enum dev_status status = DEV_OK;
    if (!dev_driver_init(&a->driver, &config->machine) || !dev_driver_reserve(&a->driver, 1))
        status = DEV_NO_HOST_MEMORY;
    else if (config->ballast_bytes > DEV_BYTES_MAX)
        status = DEV_BAD_SIZE;
    else if (config->ballast_bytes > 0 && !dev_driver_malloc(&a->driver, config->ballast_bytes))
        status = DEV_OUT_OF_MEMORY;
    if (status != DEV_OK)
        dev_allocator_destroy(a);
    else
        *out = a;
    return status;
}

void dev_allocator_destroy(struct dev_allocator *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; i < a->private_count; i++)
        free(a->privates[i]);
    free(a->privates);
    free(a->open_pools);
    free(a->map.slots);
    free(a->events);
    dev_slab_release(&a->blocks_slab);
    dev_slab_release(&a->segments_slab);
    dev_driver_release(&a->driver);
    free(a);
}

/* ---- room for an operation, so that nothing can fail half way ---- */

static bool reserve_events(struct dev_allocator *a, size_t count)
{
    if (count <= a->event_room)
        return true;
    size_t room = count + count / 2 + 16;
    struct dev_event *events = realloc(a->events, room * sizeof *events);
    if (!events)
        return false;
    a->events = events;
    a->event_room = room;
    return true;
}

/* Serving from a free block needs a block to split it and a place in the map. */
static bool reserve_fast(struct dev_allocator *a)
{
    return dev_slab_reserve(&a->blocks_slab, 1) && dev_map_reserve(&a->map, 1);
}

bool dev_reserve_slow(struct dev_allocator *a)
{
    /* Unmapping cuts a free block in up to three; every block yields at most one event, and a request a few more. */
    size_t cuts = a->config.settings.expandable_segments ? 2 * a->block_count : 0;
    return dev_slab_reserve(&a->blocks_slab, cuts + 4) && dev_slab_reserve(&a->segments_slab, 2) && dev_map_reserve(&a->map, 1) &&
           reserve_events(a, 2 * a->block_count + 8) && dev_driver_reserve(&a->driver, 4);
}

/* ---- malloc ---- */

static struct dev_pool *pool_for(struct dev_allocator *a, uint64_t rounded_bytes)
{
    bool small = rounded_bytes <= DEV_SMALL_MAX_BYTES;
    if (a->open_count == 0)
        return small ? &a->small : &a->large;
    struct dev_private *private = a->privates[a->open_pools[a->open_count - 1] - 1];
    return small ? &private->small : &private->large;
}

/* A free block counts as large as it could grow. */
static uint64_t growable_bytes(const struct dev_block *block)
{
    bool grows = block->next && block->next->state == DEV_UNMAPPED;
    return block->node.bytes + (grows ? block->next->node.bytes : 0);
}

static bool collects_garbage(const struct dev_allocator *a)
{
    return a->config.settings.gc_threshold > 0.0 && a->config.cap_bytes != DEV_NONE;
}

/* Rule 3. The block is taken out of the free list; NULL when the best fit is refused or there is none. */
static struct dev_block *take_best_fit(struct dev_allocator *a, const struct dev_request *request)
{
    uint64_t max_split = a->config.settings.max_split_bytes;
    if (collects_garbage(a))
        request->pool->lookups++;
    struct dev_node *node = dev_tree_at_least(&request->pool->free, request->bytes);
    if (!node)
        return NULL;
    if (a->config.settings.expandable_segments) {
        struct dev_node *next = dev_tree_next(node);
        while (next && growable_bytes(dev_block_of(next)) < growable_bytes(dev_block_of(node))) {
            node = next;
            next = dev_tree_next(node);
        }
    }
    if (request->bytes < max_split && node->bytes >= max_split)
        return NULL;
    if (request->bytes >= max_split && node->bytes >= request->bytes + DEV_LARGE_SEGMENT_BYTES)
        return NULL;
    dev_free_list_remove(a, dev_block_of(node));
    return dev_block_of(node);
}

/* A segment from the driver (rule 5), or pages of one (rule 8); NULL when the cap or the device refuses. */
static struct dev_block *take_new(struct dev_allocator *a, const struct dev_request *request)
{
    uint64_t bytes = request->segment_bytes;
    struct dev_pool *pool = request->pool;
    /* The cap is a limit on what was asked, not on the pages: expandable segments can pass it by less than a page. */
    if (a->config.cap_bytes != DEV_NONE && a->stats.reserved_bytes.now + bytes > a->config.cap_bytes)
        return NULL;
    if (a->config.settings.expandable_segments)
        return dev_expandable_allocate(a, pool, request->bytes);
    struct dev_piece *piece = dev_driver_malloc(&a->driver, bytes);
    if (!piece)
        return NULL;
    struct dev_segment *segment = dev_segment_new(a, pool);
    segment->piece = piece;
    segment->first = dev_block_new(a, segment, piece->node.address, bytes, DEV_FREE);
    dev_reserved_add(a, pool, bytes);
    dev_counter_add(&a->stats.segments, 1);
    dev_counter_add(pool->small ? &a->stats.segments_small : &a->stats.segments_large, 1);
    if (bytes >= a->config.settings.max_split_bytes)
        dev_counter_add(&a->stats.oversize_segments, 1);
    dev_event_add(a, DEV_SEGMENT_ALLOC, piece->node.address, bytes);
    return segment->first;
}

/* The ladder of rules 5 and 6. */
static struct dev_block *take_the_hard_way(struct dev_allocator *a, const struct dev_request *request)
{
    if (collects_garbage(a))
        dev_collect_garbage(a);
    struct dev_block *block = take_new(a, request);
    if (!block && dev_release_oversize(a, request))
        block = take_new(a, request);
    if (!block && a->open_count == 0) {
        dev_release_cached(a);
        a->stats.retries++;
        block = take_new(a, request);
    }
    return block;
}

/* Rule 4. */
static bool should_split(const struct dev_allocator *a, const struct dev_block *block, uint64_t bytes)
{
    uint64_t left_bytes = block->node.bytes - bytes;
    if (block->segment->pool->small || a->config.settings.expandable_segments)
        return left_bytes >= DEV_ROUND_BYTES;
    return bytes < a->config.settings.max_split_bytes && left_bytes > DEV_SMALL_MAX_BYTES;
}

/* Splits the block if it is worth it, and returns the part to hand out. */
static struct dev_block *cut_to_size(struct dev_allocator *a, struct dev_block *block, uint64_t bytes)
{
    struct dev_stats *stats = &a->stats;
    bool was_split = dev_block_is_split(block);
    bool counts = !block->segment->range; /* inactive_split never counts expandable blocks */
    if (!should_split(a, block, bytes)) {
        if (was_split && counts) {
            dev_counter_sub(&stats->inactive_split_bytes, block->node.bytes);
            dev_counter_sub(&stats->inactive_splits, 1);
        }
        return block;
    }
    struct dev_block *front = dev_block_split_front(a, block, bytes);
    dev_free_list_add(a, block);
    if (was_split && counts) {
        dev_counter_sub(&stats->inactive_split_bytes, bytes);
    } else if (counts) {
        dev_counter_add(&stats->inactive_split_bytes, block->node.bytes);
        dev_counter_add(&stats->inactive_splits, 1);
    }
    return front;
}

void dev_hand_out(struct dev_allocator *a, struct dev_block *block, uint64_t requested_bytes)
{
    struct dev_stats *stats = &a->stats;
    block->state = DEV_ALLOCATED;
    block->requested_bytes = requested_bytes;
    dev_map_add(&a->map, block);
    dev_counter_add(&stats->allocations, 1);
    dev_counter_add(&stats->allocated_bytes, block->node.bytes);
    dev_counter_add(&stats->requested_bytes, requested_bytes);
    if (block->segment->pool->small)
        dev_counter_add(&stats->allocated_small_bytes, block->node.bytes);
    if (block->node.bytes >= a->config.settings.max_split_bytes)
        dev_counter_add(&stats->oversize_allocations, 1);
}

static void record_oom(struct dev_allocator *a, const struct dev_request *request)
{
    const struct dev_stats *stats = &a->stats;
    a->stats.ooms++;
    a->oom = (struct dev_oom){
        .tried_bytes = request->segment_bytes,
        .rounded_bytes = request->bytes,
        .capacity_bytes = a->config.machine.total_bytes,
        .free_bytes = a->driver.free_bytes,
        .allowed_bytes = a->config.cap_bytes,
        .allocated_bytes = stats->allocated_bytes.now + a->private_free_bytes,
        .private_bytes = a->private_free_bytes,
        .unallocated_bytes = stats->reserved_bytes.now - stats->allocated_bytes.now - a->private_free_bytes,
        .pool = request->pool->owner ? request->pool->owner->id : DEV_DEFAULT_POOL,
        .small = request->pool->small,
    };
}

enum dev_status dev_allocate(struct dev_allocator *a, uint64_t bytes, struct dev_allocation *out)
{
    if (bytes == 0 || bytes > DEV_BYTES_MAX)
        return DEV_BAD_SIZE;
    if (!reserve_fast(a))
        return DEV_NO_HOST_MEMORY;
    struct dev_request request = {.bytes = round_request(&a->config.settings, bytes)};
    request.pool = pool_for(a, request.bytes);
    request.segment_bytes = segment_bytes_for(request.bytes);
    a->event_count = 0;
    struct dev_block *block = take_best_fit(a, &request);
    if (!block) {
        if (!dev_reserve_slow(a)) {
            request.pool->lookups -= collects_garbage(a); /* as if nothing had been asked */
            return DEV_NO_HOST_MEMORY;
        }
        block = take_the_hard_way(a, &request);
    }
    if (!block) {
        record_oom(a, &request);
        return DEV_OUT_OF_MEMORY;
    }
    block = cut_to_size(a, block, request.bytes);
    dev_hand_out(a, block, bytes);
    *out = (struct dev_allocation){block->node.address, block->node.bytes};
    return DEV_OK;
}

/* ---- free (rule 7) ---- */

static void swallow_neighbours(struct dev_allocator *a, struct dev_block *block)
{
    struct dev_stats *stats = &a->stats;
    bool counts = !block->segment->range;
    struct dev_block *neighbours[2] = {block->prev, block->next};
    for (int i = 0; i < 2; i++) {
        uint64_t gained = dev_block_swallow(a, block, neighbours[i]);
        if (gained > 0 && counts) {
            /* Below the final value at no time, so peaks stay true: what is taken here comes back in the sum. */
            dev_counter_sub(&stats->inactive_split_bytes, gained);
            dev_counter_sub(&stats->inactive_splits, 1);
        }
    }
    if (counts && dev_block_is_split(block)) {
        dev_counter_add(&stats->inactive_split_bytes, block->node.bytes);
        dev_counter_add(&stats->inactive_splits, 1);
    }
}

enum dev_status dev_free(struct dev_allocator *a, uint64_t address)
{
    struct dev_block *block = dev_map_take(&a->map, address);
    if (!block)
        return DEV_UNKNOWN_ADDRESS;
    struct dev_stats *stats = &a->stats;
    a->event_count = 0;
    dev_counter_sub(&stats->allocations, 1);
    dev_counter_sub(&stats->allocated_bytes, block->node.bytes);
    dev_counter_sub(&stats->requested_bytes, block->requested_bytes);
    if (block->segment->pool->small)
        dev_counter_sub(&stats->allocated_small_bytes, block->node.bytes);
    if (block->node.bytes >= a->config.settings.max_split_bytes)
        dev_counter_sub(&stats->oversize_allocations, 1);
    block->state = DEV_FREE;
    swallow_neighbours(a, block);
    dev_free_list_add(a, block);
    return DEV_OK;
}

enum dev_status dev_empty_cache(struct dev_allocator *a)
{
    if (!dev_reserve_slow(a))
        return DEV_NO_HOST_MEMORY;
    a->event_count = 0;
    dev_release_cached(a);
    return DEV_OK;
}

enum dev_status dev_foreign_allocate(struct dev_allocator *a, uint64_t bytes, uint64_t *address)
{
    if (bytes == 0 || bytes > DEV_BYTES_MAX)
        return DEV_BAD_SIZE;
    if (!dev_driver_reserve(&a->driver, 1))
        return DEV_NO_HOST_MEMORY;
    a->event_count = 0;
    struct dev_piece *piece = dev_driver_malloc(&a->driver, bytes);
    if (!piece)
        return DEV_OUT_OF_MEMORY;
    *address = piece->node.address;
    return DEV_OK;
}

/* ---- what can be seen ---- */

const struct dev_event *dev_events(const struct dev_allocator *a, size_t *count)
{
    *count = a->event_count;
    return a->events;
}

const struct dev_stats *dev_stats(const struct dev_allocator *a)
{
    return &a->stats;
}

const struct dev_oom *dev_last_oom(const struct dev_allocator *a)
{
    return &a->oom;
}

uint64_t dev_device_free_bytes(const struct dev_allocator *a)
{
    return a->driver.free_bytes;
}

uint64_t dev_free_bytes_in_pools(const struct dev_allocator *a)
{
    return a->free_block_bytes;
}
