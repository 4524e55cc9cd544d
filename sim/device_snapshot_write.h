/* The simulated device as a PyTorch memory snapshot: the file that torch.cuda.memory._dump_snapshot would have written, for
 * PyTorch's own viewers (torch/cuda/_memory_viz.py, https://docs.pytorch.org/memory_viz). */
#ifndef PAGESIM_DEVICE_SNAPSHOT_WRITE_H
#define PAGESIM_DEVICE_SNAPSHOT_WRITE_H

#include <stdio.h>

#include "sim/device_case.h"
#include "sim/device_ops.h"

/* Replays ops under a setting and writes its history and its segments at the end. An event's time is that of its operation, or
 * its number where the file gives none. 0, or -1 with err. */
int device_snapshot_write(const struct device_ops *ops, const struct device_case *c, const char *setting, FILE *out, struct err *err);

#endif
