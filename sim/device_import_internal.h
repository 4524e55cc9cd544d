/* Shared by the parts of the import: what is worked out going back through the history, and written going forward. */
#ifndef PAGESIM_DEVICE_IMPORT_INTERNAL_H
#define PAGESIM_DEVICE_IMPORT_INTERNAL_H

#include "allocator/device/device_allocator.h"
#include "sim/device_import.h"
#include "sim/device_spans.h"
#include "sim/id_index.h"

#define SMALL_MAX_BYTES DEV_MIB
#define SMALL_SEGMENT_BYTES (2 * DEV_MIB)
#define LARGE_SEGMENT_BYTES (20 * DEV_MIB)
#define ROUND_BYTES 512ull

/* An allocation that was there when the history began. */
struct import_old_block {
    uint64_t address;
    uint64_t bytes;       /* of the block if known, else asked for */
    bool bytes_are_known;
    uint32_t number;      /* of its address */
};

struct import_work {
    const struct device_snapshot *s;
    struct device_import *import;
    struct dev_settings settings;
    FILE *out;
    struct device_spans spans;  /* going back: those held before event i; then those at the start */
    struct device_spans now;    /* in the history: those held */
    uint64_t idle;              /* of them: cudaMalloc'd, of the default pool, without live blocks */
    struct id_index addresses;
    struct id_index pool_keys;  /* hashes of their two numbers */
    uint32_t *address_of_event; /* numbers */
    uint64_t *live;             /* by number: the operation id that lives there, 0: none */
    uint32_t *pool_of_event;
    uint64_t (*pools)[2];       /* [0]: the default pool */
    uint32_t pool_count;
    struct import_old_block *old;
    size_t old_count;
    uint64_t base_address;
    uint64_t last_id;
    uint32_t open_pool;
    uint32_t next_pool;         /* going back: of the allocation after event i */
    struct err *err;
};

static inline bool import_is_allocation(const struct snapshot_event *event)
{
    return event->action == SNAPSHOT_ALLOC || event->action == SNAPSHOT_FREE_COMPLETED;
}

/* Reports it; returns -1. */
int import_out_of_memory(struct import_work *w);
/* Fills spans with the segments at the start, and the pool of each event. 0, or -1 with err. */
int import_go_back(struct import_work *w);
/* Numbers the addresses, and lists the allocations that were there at the start. 0, or -1 with err. */
int import_find_old(struct import_work *w);

#endif
