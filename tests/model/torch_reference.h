/* PyTorch's caching allocator once more, slow and obvious: arrays that are searched from end to end, written from the rules in
 * docs/device.md alone and sharing nothing with allocator/device. What tests compare the real one with. */
#ifndef PAGESIM_TORCH_REFERENCE_H
#define PAGESIM_TORCH_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REF_NONE UINT64_MAX

struct ref_config {
    bool expandable;
    uint64_t max_split;    /* bytes, REF_NONE: none */
    double gc;             /* 0: off */
    uint64_t divisions;    /* roundup_power2_divisions, 0: off */
    uint64_t cap;          /* bytes, REF_NONE: none */
    uint64_t total, free;  /* of the device */
    uint64_t top, range;   /* addresses: below top segments, from range on expandable ranges */
};

enum { REF_ALLOC_EVENT, REF_FREE_EVENT, REF_MAP_EVENT, REF_UNMAP_EVENT };

struct ref_event {
    int kind;
    uint64_t addr, bytes;
};

/* Counters in the order of the recordings' rows. */
enum {
    REF_ALLOCATED, REF_RESERVED, REF_REQUESTED, REF_INACTIVE_SPLIT, REF_LIVE, REF_INACTIVE_SPLITS, REF_SMALL_SEGMENTS,
    REF_LARGE_SEGMENTS, REF_RESERVED_SMALL, REF_ALLOCATED_SMALL, REF_RETRIES, REF_OOMS, REF_DEVICE_ALLOCS, REF_DEVICE_FREES,
    REF_OVERSIZE_ALLOCATIONS, REF_OVERSIZE_SEGMENTS, REF_SYNCS, REF_DEVICE_FREE, REF_PRIVATE_FREE, REF_COUNTERS
};

struct ref_model;

struct ref_model *ref_create(const struct ref_config *config);
void ref_destroy(struct ref_model *m);
/* False: out of memory. */
bool ref_alloc(struct ref_model *m, uint64_t bytes, uint64_t *addr, uint64_t *size);
void ref_free(struct ref_model *m, uint64_t addr);
void ref_empty_cache(struct ref_model *m);
int ref_pool_create(struct ref_model *m);
void ref_pool_begin(struct ref_model *m, int pool);
void ref_pool_end(struct ref_model *m, int pool);
void ref_pool_release(struct ref_model *m, int pool);
bool ref_foreign(struct ref_model *m, uint64_t bytes);
const struct ref_event *ref_events(const struct ref_model *m, size_t *count);
/* Recounted from the segments at every call. */
void ref_counters(const struct ref_model *m, uint64_t counters[REF_COUNTERS]);
/* The layout as text, one line a segment: address bytes kind pool expandable: blocks, live ones with '*'. free() it. */
char *ref_layout(const struct ref_model *m);

#endif
