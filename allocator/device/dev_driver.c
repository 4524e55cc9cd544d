#include "allocator/device/dev_driver.h"

#include <assert.h>

#define REGION_BYTES (32 * DEV_MIB)
#define ADDRESS_END (1ull << 62)

/* A fresh process has two holes above the top, looked at after all regions, the first one first. */
#define OLD_HOLE_1_OFFSET (414 * DEV_MIB)
#define OLD_HOLE_1_BYTES (2 * DEV_MIB)
#define OLD_HOLE_2_OFFSET (488 * DEV_MIB)
#define OLD_HOLE_2_BYTES (24 * DEV_MIB)
/* Expandable ranges cannot lie in between, counted from the first. */
#define RANGES_1_BYTES (966432 * DEV_MIB)
#define RANGES_2_OFFSET (1036320 * DEV_MIB)

const struct dev_machine dev_machine_h200 = {
    .total_bytes = 150109880320,
    .free_bytes = 149557477376,
    .top_address = 0x7f0000000000,
    .range_address = 0x302000000,
};

static void add_gap(struct dev_tree *gaps, struct dev_stretch *gap, uint64_t address, uint64_t bytes)
{
    gap->address = address;
    gap->bytes = bytes;
    gap->node.address = address;
    gap->node.bytes = bytes;
    gap->node.room = bytes;
    dev_tree_insert(gaps, &gap->node);
}

/* Holes as the tree's node knows them, and the region's largest one as the regions' tree knows it. */
static void add_hole(struct dev_piece *piece)
{
    piece->hole = true;
    dev_tree_insert(&piece->region->holes, &piece->node);
}

static void drop_hole(struct dev_piece *piece)
{
    dev_tree_remove(&piece->region->holes, &piece->node);
    piece->hole = false;
}

static void update_room(struct dev_stretch *region)
{
    struct dev_node *largest = dev_tree_last(&region->holes);
    dev_tree_set_room(&region->node, largest ? largest->bytes : 0);
}

/* Turns a stretch that is in no tree into a region that is one hole. */
static void make_region(struct dev_driver *d, struct dev_stretch *region, uint64_t address, uint64_t bytes)
{
    struct dev_piece *piece = dev_slab_take(&d->pieces);
    piece->node.address = address;
    piece->node.bytes = bytes;
    piece->region = region;
    *region = (struct dev_stretch){.address = address, .bytes = bytes, .first = piece};
    region->holes.order = DEV_BY_SIZE;
    add_hole(piece);
    region->node.address = d->regions_made++;
    region->node.room = bytes;
    dev_tree_insert(&d->regions, &region->node);
}

static void make_old_hole(struct dev_driver *d, uint64_t address, uint64_t bytes)
{
    struct dev_stretch *region = dev_slab_take(&d->stretches);
    make_region(d, region, address, bytes);
    region->permanent = true;
}

bool dev_driver_init(struct dev_driver *d, const struct dev_machine *machine)
{
    *d = (struct dev_driver){.free_bytes = machine->free_bytes};
    d->gaps.order = d->regions.order = d->range_gaps.order = DEV_BY_ADDRESS;
    dev_slab_init(&d->stretches, sizeof(struct dev_stretch));
    dev_slab_init(&d->pieces, sizeof(struct dev_piece));
    if (!dev_slab_reserve(&d->stretches, 5) || !dev_slab_reserve(&d->pieces, 2))
        return false;
    add_gap(&d->gaps, dev_slab_take(&d->stretches), 0, machine->top_address);
    make_old_hole(d, machine->top_address + OLD_HOLE_2_OFFSET, OLD_HOLE_2_BYTES);
    make_old_hole(d, machine->top_address + OLD_HOLE_1_OFFSET, OLD_HOLE_1_BYTES);
    uint64_t second = machine->range_address + RANGES_2_OFFSET;
    add_gap(&d->range_gaps, dev_slab_take(&d->stretches), machine->range_address, RANGES_1_BYTES);
    add_gap(&d->range_gaps, dev_slab_take(&d->stretches), second, ADDRESS_END - second);
    return true;
}

void dev_driver_release(struct dev_driver *d)
{
    dev_slab_release(&d->stretches);
    dev_slab_release(&d->pieces);
}

bool dev_driver_reserve(struct dev_driver *d, size_t calls)
{
    /* A cudaMalloc makes a region and cuts its hole in two; a range cuts a gap in two. */
    return dev_slab_reserve(&d->stretches, calls) && dev_slab_reserve(&d->pieces, 2 * calls);
}

bool dev_driver_take_pages(struct dev_driver *d, uint64_t bytes)
{
    assert(bytes % DEV_PAGE_BYTES == 0);
    /* The last whole page of a device is never handed out. */
    if (bytes / DEV_PAGE_BYTES + 1 > d->free_bytes / DEV_PAGE_BYTES)
        return false;
    d->free_bytes -= bytes;
    return true;
}

void dev_driver_give_pages(struct dev_driver *d, uint64_t bytes)
{
    d->free_bytes += bytes;
}

/* A region at the high end of the highest gap that is strictly larger; NULL when there is none. */
static struct dev_stretch *new_region(struct dev_driver *d, uint64_t bytes)
{
    struct dev_node *node = dev_tree_last_with_room(&d->gaps, bytes + 1);
    if (!node)
        return NULL;
    struct dev_stretch *gap = (struct dev_stretch *)node;
    dev_tree_remove(&d->gaps, &gap->node);
    add_gap(&d->gaps, gap, gap->address, gap->bytes - bytes);
    struct dev_stretch *region = dev_slab_take(&d->stretches);
    make_region(d, region, gap->address + gap->bytes, bytes);
    return region;
}

/* The hole's first bytes; what is left stays a hole. */
static void cut_hole(struct dev_driver *d, struct dev_piece *hole, uint64_t bytes)
{
    uint64_t left_bytes = hole->node.bytes - bytes;
    drop_hole(hole);
    if (left_bytes == 0)
        return;
    struct dev_piece *rest = dev_slab_take(&d->pieces);
    hole->node.bytes = bytes;
    rest->node.address = hole->node.address + bytes;
    rest->node.bytes = left_bytes;
    rest->region = hole->region;
    rest->prev = hole;
    rest->next = hole->next;
    if (rest->next)
        rest->next->prev = rest;
    hole->next = rest;
    add_hole(rest);
}

struct dev_piece *dev_driver_malloc(struct dev_driver *d, uint64_t bytes)
{
    assert(bytes > 0 && bytes < ADDRESS_END);
    bytes = dev_round_up(bytes, DEV_PAGE_BYTES);
    if (!dev_driver_take_pages(d, bytes))
        return NULL;
    struct dev_stretch *region = (struct dev_stretch *)dev_tree_last_with_room(&d->regions, bytes);
    if (!region)
        region = new_region(d, dev_round_up(bytes, REGION_BYTES));
    if (!region) {
        dev_driver_give_pages(d, bytes);
        return NULL;
    }
    struct dev_piece *piece = (struct dev_piece *)dev_tree_at_least(&region->holes, bytes);
    cut_hole(d, piece, bytes);
    update_room(region);
    return piece;
}

struct dev_piece *dev_driver_adopt(struct dev_driver *d, uint64_t address, uint64_t bytes)
{
    if (!dev_driver_take_pages(d, bytes))
        return NULL;
    make_old_hole(d, address, bytes);
    struct dev_stretch *region = (struct dev_stretch *)dev_tree_last(&d->regions);
    cut_hole(d, region->first, bytes);
    update_room(region);
    return region->first;
}

/* Lets a piece that is in no tree swallow the one after it, likewise. */
static void join_next(struct dev_driver *d, struct dev_piece *piece)
{
    struct dev_piece *next = piece->next;
    piece->node.bytes += next->node.bytes;
    piece->next = next->next;
    if (piece->next)
        piece->next->prev = piece;
    dev_slab_give(&d->pieces, next);
}

/* Gives a stretch back and joins it with the gaps beside it. */
static void return_stretch(struct dev_driver *d, struct dev_tree *gaps, struct dev_stretch *stretch)
{
    uint64_t address = stretch->address, bytes = stretch->bytes;
    struct dev_node *below = dev_tree_below(gaps, address);
    struct dev_node *above = below ? dev_tree_next(below) : dev_tree_first(gaps);
    if (below && below->address + below->bytes == address) {
        dev_tree_remove(gaps, below);
        address = below->address;
        bytes += below->bytes;
        dev_slab_give(&d->stretches, below);
    }
    if (above && address + bytes == above->address) {
        dev_tree_remove(gaps, above);
        bytes += above->bytes;
        dev_slab_give(&d->stretches, above);
    }
    add_gap(gaps, stretch, address, bytes);
}

void dev_driver_free(struct dev_driver *d, struct dev_piece *piece)
{
    struct dev_stretch *region = piece->region;
    dev_driver_give_pages(d, piece->node.bytes);
    if (piece->next && piece->next->hole) {
        drop_hole(piece->next);
        join_next(d, piece);
    }
    if (piece->prev && piece->prev->hole) {
        piece = piece->prev;
        drop_hole(piece);
        join_next(d, piece);
    }
    if (!piece->prev && !piece->next && !region->permanent) {
        dev_slab_give(&d->pieces, piece);
        dev_tree_remove(&d->regions, &region->node);
        return_stretch(d, &d->gaps, region);
        return;
    }
    add_hole(piece);
    update_room(region);
}

struct dev_stretch *dev_driver_reserve_range(struct dev_driver *d, uint64_t bytes)
{
    bytes = dev_round_up(bytes, REGION_BYTES);
    struct dev_stretch *gap = (struct dev_stretch *)dev_tree_first_with_room(&d->range_gaps, bytes);
    if (!gap)
        return NULL;
    struct dev_stretch *range = dev_slab_take(&d->stretches);
    range->address = gap->address;
    range->bytes = bytes;
    dev_tree_remove(&d->range_gaps, &gap->node);
    if (gap->bytes == bytes)
        dev_slab_give(&d->stretches, gap);
    else
        add_gap(&d->range_gaps, gap, gap->address + bytes, gap->bytes - bytes);
    return range;
}

void dev_driver_free_range(struct dev_driver *d, struct dev_stretch *range)
{
    return_stretch(d, &d->range_gaps, range);
}
