/* The driver below the allocator: the device's pages, and where cudaMalloc and address reservations put things.
 *
 * cudaMalloc takes address space in *regions*, multiples of 32 MiB, from the top down, each in the highest free gap strictly larger
 * than itself. A block sits at the start of its region and the rest of the region serves later blocks: those look into the most
 * recently made region first, inside one at the smallest hole that fits, the lowest on a tie. An empty region goes back and
 * adjoining gaps join. Expandable ranges sit at the lowest address with room, rounded to 32 MiB. Measured, not documented by
 * NVIDIA; source: docs/device.md. */
#ifndef PAGESIM_DEV_DRIVER_H
#define PAGESIM_DEV_DRIVER_H

#include <stdbool.h>

#include "allocator/device/dev_slab.h"
#include "allocator/device/dev_tree.h"
#include "allocator/device/device_allocator.h"

#define DEV_PAGE_BYTES (2 * DEV_MIB)

/* A stretch of address space: a gap that nobody uses, a region, or an expandable range. */
struct dev_stretch {
    struct dev_node node;        /* gaps by address, room = bytes; regions by age, room = largest hole */
    uint64_t address;
    uint64_t bytes;
    bool permanent;              /* a region that never goes back */
    struct dev_tree holes;       /* of a region, by size */
    struct dev_piece *first;     /* of a region */
};

/* A part of a region: a block that cudaMalloc handed out, or a hole. */
struct dev_piece {
    struct dev_node node; /* in the region's holes */
    struct dev_piece *prev, *next;
    struct dev_stretch *region;
    bool hole;
};

struct dev_driver {
    uint64_t free_bytes;    /* of the device */
    struct dev_tree gaps;   /* below top_address, for regions */
    struct dev_tree regions;
    uint64_t regions_made;
    struct dev_tree range_gaps;
    struct dev_slab stretches;
    struct dev_slab pieces;
};

/* False when this process has no memory; release is due all the same. */
bool dev_driver_init(struct dev_driver *d, const struct dev_machine *machine);
void dev_driver_release(struct dev_driver *d);

/* To be called before an operation that makes up to `calls` of the calls below. False when this process has no memory. */
bool dev_driver_reserve(struct dev_driver *d, size_t calls);

/* Whole pages; NULL when the device has no room. */
struct dev_piece *dev_driver_malloc(struct dev_driver *d, uint64_t bytes);
void dev_driver_free(struct dev_driver *d, struct dev_piece *piece);
/* Memory that is there already, at an address above all that the driver hands out. Its region never goes back. */
struct dev_piece *dev_driver_adopt(struct dev_driver *d, uint64_t address, uint64_t bytes);
/* cuMemCreate and cuMemRelease of pages; bytes is a multiple of 2 MiB. */
bool dev_driver_take_pages(struct dev_driver *d, uint64_t bytes);
void dev_driver_give_pages(struct dev_driver *d, uint64_t bytes);
/* Addresses without memory. NULL when no gap is large enough. */
struct dev_stretch *dev_driver_reserve_range(struct dev_driver *d, uint64_t bytes);
void dev_driver_free_range(struct dev_driver *d, struct dev_stretch *range);

static inline uint64_t dev_round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

#endif
