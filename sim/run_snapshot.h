/* The device that a run's pool lives on, as a PyTorch memory snapshot. */
#ifndef PAGESIM_RUN_SNAPSHOT_H
#define PAGESIM_RUN_SNAPSHOT_H

#include <stdint.h>

#include "workloads/err.h"

/* Allocates the pool as an engine does at start-up, one tensor through the framework's caching allocator on an H200, and
 * writes that device to path. Nothing else of the device is modelled in a run. -1 with err, also when the pool
 * does not fit on the device. */
int run_snapshot_write(const char *path, uint64_t pool_bytes, struct err *err);

#endif
