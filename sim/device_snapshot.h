/* PyTorch memory snapshots (torch.cuda.memory._dump_snapshot) as plain tables. */
#ifndef PAGESIM_DEVICE_SNAPSHOT_H
#define PAGESIM_DEVICE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workloads/err.h"

enum snapshot_action {
    SNAPSHOT_ALLOC,
    SNAPSHOT_FREE_REQUESTED,
    SNAPSHOT_FREE_COMPLETED,
    SNAPSHOT_SEGMENT_ALLOC,
    SNAPSHOT_SEGMENT_FREE,
    SNAPSHOT_SEGMENT_MAP,
    SNAPSHOT_SEGMENT_UNMAP,
    SNAPSHOT_OOM,
    SNAPSHOT_OTHER, /* "snapshot" and what later versions may add */
    SNAPSHOT_ACTIONS
};

struct snapshot_event {
    enum snapshot_action action;
    uint64_t address; /* oom: the device's free bytes */
    uint64_t bytes;   /* asked for; of segments their own; oom: what was tried */
    uint64_t stream;
    uint64_t time_us;
};

enum snapshot_state { SNAPSHOT_ACTIVE, SNAPSHOT_AWAITING_FREE, SNAPSHOT_INACTIVE };

struct snapshot_block {
    uint64_t address;
    uint64_t bytes;
    uint64_t requested_bytes;
    enum snapshot_state state;
};

struct snapshot_segment {
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
    uint64_t pool[2]; /* {0, 0}: the default pool */
    bool small;
    bool expandable;
    size_t block_first, block_count; /* in blocks; they fill the segment */
};

struct device_snapshot {
    struct snapshot_segment *segments; /* in address order */
    size_t segment_count;
    struct snapshot_block *blocks;
    size_t block_count;
    struct snapshot_event *events;
    size_t event_count;
    char *setting; /* PYTORCH_CUDA_ALLOC_CONF; "" if it does not say */
    size_t devices; /* that have segments or events */
};

const char *snapshot_action_name(enum snapshot_action action);
/* What one device of a snapshot file holds. path "-" is standard input. 0, or -1 with err; then nothing is to be released. */
int device_snapshot_read(const char *path, uint64_t device, struct device_snapshot *snapshot, struct err *err);
/* The same from memory; `name` is what messages call it. */
int device_snapshot_parse(const void *bytes, size_t count, const char *name, uint64_t device, struct device_snapshot *snapshot,
                          struct err *err);
void device_snapshot_release(struct device_snapshot *snapshot);

#endif
