/* Runs operations on the framework's allocator and says what each one did. */
#ifndef PAGESIM_DEVICE_REPLAY_H
#define PAGESIM_DEVICE_REPLAY_H

#include "sim/device_case.h"
#include "sim/device_ops.h"

enum device_result {
    DEVICE_DONE,
    DEVICE_ALLOCATED,
    DEVICE_OOM,
    DEVICE_NOOP,     /* free of an allocation that had failed */
    DEVICE_FOREIGN,  /* device_alloc; rc says how it went */
    DEVICE_MARKED,
};

struct device_outcome {
    enum device_result result;
    struct dev_allocation block; /* ALLOCATED */
    uint64_t freed_address;      /* DONE by a free */
    uint64_t freed_bytes;        /* what had been asked for */
    int rc;                      /* FOREIGN: the driver's result, 0 or 2 (out of memory) */
};

/* Of one id. */
enum device_id_state { DEVICE_ID_NEW, DEVICE_ID_LIVE, DEVICE_ID_FREED, DEVICE_ID_FAILED, DEVICE_ID_FOREIGN };

struct device_id {
    uint64_t address;
    uint64_t bytes;       /* asked for */
    uint64_t op;          /* that changed the state last, an index */
    uint8_t state;        /* enum device_id_state */
};

struct device_replay {
    struct dev_allocator *allocator;
    const struct device_ops *ops;
    struct device_id *ids;   /* by slot */
    uint32_t *pools;         /* by slot: the allocator's number, 0: none yet */
    uint64_t base_address;   /* of the first segment: addresses are shown relative to it */
    bool has_base;
    bool started;            /* something else than a segment was seen */
};

/* 0, or -1 with err; then nothing is to be released. ops must outlive the replay. */
int device_replay_init(struct device_replay *r, const struct device_ops *ops, const struct dev_config *config, struct err *err);
void device_replay_release(struct device_replay *r);
/* Runs operation i; they must be run in order. 0, or -1 with err (an input error with file, line and field). */
int device_replay_step(struct device_replay *r, size_t i, struct device_outcome *outcome, struct err *err);
/* An address relative to the first segment. */
static inline int64_t device_replay_relative(const struct device_replay *r, uint64_t address)
{
    return (int64_t)(address - r->base_address);
}

#endif
