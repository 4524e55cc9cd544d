/* What a replay comes to: peaks, where the bytes are, and of each failure the sum that proves it. */
#ifndef PAGESIM_DEVICE_SUMMARY_H
#define PAGESIM_DEVICE_SUMMARY_H

#include "sim/device_replay.h"

/* Every reserved byte is in exactly one of them. */
struct device_states {
    uint64_t requested_bytes; /* handed out, and asked for */
    uint64_t rounding_bytes;  /* handed out beyond what was asked */
    uint64_t private_bytes;   /* free, in private pools: only they can use it */
    uint64_t pinned_bytes;    /* free, in segments (expandable: pages) that a live block holds */
    uint64_t cached_bytes;    /* free, in whole segments or pages: the next release gives them back */
};

#define DEVICE_HOLE_CLASSES 49 /* class k: 2^k up to below 2^(k+1) bytes */
#define DEVICE_PINS_MAX 5

/* A segment with free bytes in it that cannot go back, and the largest block that keeps it. */
struct device_pin {
    int64_t address;
    uint64_t segment_bytes;
    uint64_t free_bytes;
    uint64_t live_blocks;
    uint64_t holder_id;
    uint64_t holder_bytes;
    const char *holder_tag; /* into the ops; "" without one */
};

struct device_oom {
    size_t op;
    uint64_t requested_bytes;
    struct dev_oom numbers;
    /* limit = room + states, added up. Without a cap the limit is what the device can give. */
    uint64_t limit_bytes;
    uint64_t room_bytes;     /* that the driver or the cap would still have given */
    uint64_t reserved_bytes;
    struct device_states states;
    uint64_t own_pool_bytes;  /* free in the pool that the request belongs to */
    uint64_t largest_hole_bytes; /* the largest of them */
    struct {
        uint64_t count, bytes;
    } holes[DEVICE_HOLE_CLASSES]; /* of that pool */
    struct device_pin pins[DEVICE_PINS_MAX]; /* of that pool, the most free bytes first */
    size_t pin_count;
    size_t pinned_segments; /* all there are */
};

enum device_verdict {
    DEVICE_SHORTAGE,      /* all that is free together would not do */
    DEVICE_FRAGMENTED,    /* the pool's free bytes would do, in one piece */
    DEVICE_OTHER_POOL,    /* with what other pools have free, it would do */
};

struct device_summary {
    struct dev_stats stats;
    struct device_states peak; /* when reserved bytes were highest */
    struct device_states last;
    size_t peak_op;
    struct device_oom *ooms;   /* the first ooms_kept */
    size_t ooms_kept;
    size_t *oom_ops;           /* all stats.ooms of them, ascending */
};

/* Replays under `config` and keeps the proof of up to ooms_max failures. 0, or -1 with err; then nothing is to be released. */
int device_summary_run(const struct device_ops *ops, const struct dev_config *config, size_t ooms_max, struct device_summary *summary,
                       struct err *err);
void device_summary_release(struct device_summary *summary);
enum device_verdict device_oom_verdict(const struct device_oom *oom);
/* Whether operation `op` failed. */
bool device_summary_failed(const struct device_summary *summary, size_t op);
uint64_t device_states_reserved(const struct device_states *states);

#endif
