/* PyTorch's CUDA caching allocator on a modelled GPU, to the byte. The archive libpagesim_device.a is usable by itself: this is
 * its only public header, and it includes nothing of the rest of the program.
 *
 *   segment   memory that the allocator got from the driver with one call, or, with expandable segments, a range of addresses
 *             into which pages are mapped
 *   block     a stretch of one segment: handed out, free, or (expandable) not mapped
 *   pool      the blocks that may serve one request: small (at most 1 MiB) and large ones apart, the default pools and the private
 *             ones of CUDA graphs apart. Pools never lend to each other
 *   address   as a CUDA process would see it; below 2^62
 *
 * The rules are those measured on PyTorch 2.11.0, CUDA 13.0 and an H200; docs/device.md states them with their sources. One
 * device, one stream. Not thread-safe; any number of allocators may live side by side. */
#ifndef PAGESIM_DEVICE_ALLOCATOR_H
#define PAGESIM_DEVICE_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEV_MIB (1ull << 20)
#define DEV_NONE UINT64_MAX            /* no limit, no such address */
#define DEV_BYTES_MAX (1ull << 48)     /* the largest request that is taken */
#define DEV_ROUNDUP_CLASSES 16         /* of roundup_power2_divisions: 1 MiB, 2 MiB, ... 32 GiB and more */
#define DEV_DEFAULT_POOL 0             /* private pools are numbered from 1 */

enum dev_status {
    DEV_OK = 0,
    DEV_OUT_OF_MEMORY,    /* an answer, not a failure: counted, and the cache is left as PyTorch leaves it */
    DEV_BAD_SIZE,         /* 0 or above DEV_BYTES_MAX; nothing changed, like all that follow */
    DEV_UNKNOWN_ADDRESS,  /* freed twice, or never handed out */
    DEV_UNKNOWN_POOL,     /* never created, or released */
    DEV_POOL_OPEN,        /* begun twice, or released while it is open */
    DEV_POOL_NOT_OPEN,    /* ended without being begun */
    DEV_NO_HOST_MEMORY,   /* this process has no memory */
};

/* What PYTORCH_CUDA_ALLOC_CONF says. */
struct dev_settings {
    bool expandable_segments;
    uint64_t max_split_bytes;                        /* DEV_NONE: no limit */
    double gc_threshold;                             /* share of the cap, 0: off */
    uint32_t roundup_divisions[DEV_ROUNDUP_CLASSES]; /* 0: off; a power of two otherwise */
};

/* PyTorch's defaults: everything off. */
void dev_settings_init(struct dev_settings *settings);
/* Reads "max_split_size_mb:128,expandable_segments:True". On a mistake returns false, writes what was found and expected to
 * why[0..why_bytes), and leaves *settings as it was. Keys without effect on one stream of one device are accepted. */
bool dev_settings_parse(struct dev_settings *settings, const char *text, char *why, size_t why_bytes);

struct dev_machine {
    uint64_t total_bytes;   /* cudaMemGetInfo's total; also sizes expandable ranges */
    uint64_t free_bytes;    /* cudaMemGetInfo's free once the context is there */
    uint64_t top_address;   /* below it the driver places segments, downwards; a multiple of 32 MiB */
    uint64_t range_address; /* the first expandable range; a multiple of 32 MiB */
};

/* NVIDIA H200 with driver 580.159.04, a fresh process. */
extern const struct dev_machine dev_machine_h200;

struct dev_config {
    struct dev_settings settings;
    struct dev_machine machine;
    uint64_t cap_bytes;     /* set_per_process_memory_fraction, in bytes; DEV_NONE: not set */
    uint64_t ballast_bytes; /* taken from the device, addresses too, before anything else; 0: none */
};

/* No settings, an H200, no cap, no ballast. */
void dev_config_init(struct dev_config *config);
/* The ballast, in whole 2 MiB pages, that leaves about `left_bytes` of the device. */
uint64_t dev_ballast_bytes(const struct dev_machine *machine, uint64_t left_bytes);

struct dev_counter {
    uint64_t now;
    uint64_t peak;
};

/* Names and meanings of torch.cuda.memory_stats. `active` equals `allocated` on one stream. */
struct dev_stats {
    struct dev_counter allocated_bytes;
    struct dev_counter reserved_bytes;
    struct dev_counter requested_bytes;
    struct dev_counter inactive_split_bytes; /* free blocks of split segments; expandable ones never count */
    struct dev_counter allocations;
    struct dev_counter inactive_splits;
    struct dev_counter segments;             /* expandable ranges never count */
    struct dev_counter segments_small, segments_large;
    struct dev_counter reserved_small_bytes, allocated_small_bytes;
    struct dev_counter oversize_allocations, oversize_segments;
    uint64_t retries;                        /* num_alloc_retries */
    uint64_t ooms;                           /* num_ooms */
    uint64_t device_allocs, device_frees;    /* cudaMalloc and maps, cudaFree and unmaps */
    uint64_t syncs;                          /* num_sync_all_streams */
};

enum dev_event_kind { DEV_SEGMENT_ALLOC, DEV_SEGMENT_FREE, DEV_SEGMENT_MAP, DEV_SEGMENT_UNMAP };

struct dev_event {
    enum dev_event_kind kind;
    uint64_t address;
    uint64_t bytes;
};

/* "segment_alloc", ... */
const char *dev_event_name(enum dev_event_kind kind);

struct dev_allocation {
    uint64_t address;
    uint64_t bytes; /* of the block: rounded, or with a remainder that was not split off */
};

/* The last failure, as its message states it. */
struct dev_oom {
    uint64_t tried_bytes;       /* the segment that was asked of the driver, not the request */
    uint64_t rounded_bytes;     /* the request, rounded */
    uint64_t capacity_bytes;
    uint64_t free_bytes;        /* of the device */
    uint64_t allowed_bytes;     /* the cap, DEV_NONE without one */
    uint64_t allocated_bytes;   /* handed out + free in private pools */
    uint64_t private_bytes;     /* free in private pools */
    uint64_t unallocated_bytes; /* the rest of what is reserved */
    uint32_t pool;              /* that the request would have come from */
    bool small;
};

struct dev_allocator;

enum dev_status dev_allocator_create(const struct dev_config *config, struct dev_allocator **out);
void dev_allocator_destroy(struct dev_allocator *a); /* NULL is fine */

/* From the innermost open pool. *out is written on DEV_OK only. */
enum dev_status dev_allocate(struct dev_allocator *a, uint64_t bytes, struct dev_allocation *out);
enum dev_status dev_free(struct dev_allocator *a, uint64_t address);
/* torch.cuda.empty_cache(). While a private pool is open only released pools give memory back. */
enum dev_status dev_empty_cache(struct dev_allocator *a);

/* torch.cuda.MemPool, the mechanism of CUDA graph captures. Pools may be open inside one another. A released pool gives its free
 * segments back at once and the rest when their blocks are free and a release runs. */
enum dev_status dev_pool_create(struct dev_allocator *a, uint32_t *pool);
enum dev_status dev_pool_begin(struct dev_allocator *a, uint32_t pool);
enum dev_status dev_pool_end(struct dev_allocator *a, uint32_t pool);
enum dev_status dev_pool_release(struct dev_allocator *a, uint32_t pool);

/* cuMemAlloc by somebody else in the process, never freed. DEV_OUT_OF_MEMORY when the device has no room. */
enum dev_status dev_foreign_allocate(struct dev_allocator *a, uint64_t bytes, uint64_t *address);

/* A segment that is there when a recording begins. */
struct dev_restored_block {
    uint64_t bytes; /* a multiple of 512 */
    uint64_t requested_bytes;
    bool allocated;
};

struct dev_restored {
    uint64_t address;  /* relative to the other restored segments, which come in ascending order; up to 2^50 */
    uint32_t pool;     /* DEV_DEFAULT_POOL or a private one */
    bool small;
    bool expandable;   /* a mapped stretch of a range; whole pages. Taken as a cudaMalloc unless the settings say expandable */
    size_t block_count;
    const struct dev_restored_block *blocks;
};

/* Only before anything was allocated. *address is where it lies now: free its blocks by addresses counted from there.
 * DEV_BAD_SIZE when it overlaps another one or is not made of whole pages; DEV_OUT_OF_MEMORY when the device has no room. */
enum dev_status dev_restore(struct dev_allocator *a, const struct dev_restored *segment, uint64_t *address);

/* What the last dev_allocate ... dev_pool_release did with segments, in order; valid until the next of them. */
const struct dev_event *dev_events(const struct dev_allocator *a, size_t *count);
const struct dev_stats *dev_stats(const struct dev_allocator *a);
/* Valid after a DEV_OUT_OF_MEMORY of dev_allocate. */
const struct dev_oom *dev_last_oom(const struct dev_allocator *a);
/* cudaMemGetInfo's free bytes. */
uint64_t dev_device_free_bytes(const struct dev_allocator *a);

/* A size as PyTorch's messages print it: "512 bytes", "2.00 MiB". Returns text, which needs 32 bytes. */
char *dev_size_text(uint64_t bytes, char *text, size_t text_bytes);
/* The message of torch.cuda.OutOfMemoryError. Returns its length, as snprintf does. */
int dev_oom_message(const struct dev_oom *oom, char *text, size_t text_bytes);

enum dev_block_state { DEV_ALLOCATED, DEV_FREE, DEV_UNMAPPED };

struct dev_block_info {
    uint64_t address;
    uint64_t bytes;
    uint64_t requested_bytes; /* as PyTorch's snapshots show it: of a free block, what was last asked of its beginning */
    enum dev_block_state state;
};

/* A segment, or one contiguous mapped stretch of an expandable range. */
struct dev_segment_info {
    uint64_t address;
    uint64_t bytes;
    uint64_t allocated_bytes;
    uint64_t requested_bytes; /* of its allocated blocks */
    uint32_t pool;
    bool small;
    bool expandable;
    size_t block_count;
    const struct dev_block_info *blocks; /* in address order; never DEV_UNMAPPED */
};

/* Calls `visit` for every segment in address order, until it returns false. Nothing of the allocator may be changed meanwhile. */
enum dev_status dev_walk(struct dev_allocator *a, bool (*visit)(void *context, const struct dev_segment_info *segment), void *context);

/* Bytes of free blocks, mapped, over all pools. */
uint64_t dev_free_bytes_in_pools(const struct dev_allocator *a);

/* Recomputes everything by a walk: neighbours, trees, sums. NULL when all of it agrees, else what does not. For tests. */
const char *dev_check(struct dev_allocator *a);

#endif
