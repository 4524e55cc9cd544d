/* The memory picture as a table: which addresses were what, from when to when. scripts/plot/device_memory.gp draws it.
 *
 * CSV: begin_op, end_op, low_mib, high_mib, state (live, free, private_live, private_free), pool (large, small), expandable (0, 1),
 * address_bytes (relative to the first segment). low and high are places on an axis on which all addresses that ever were a segment
 * stand side by side, in address order. Rows are rectangles that do not overlap. */
#ifndef PAGESIM_DEVICE_PICTURE_H
#define PAGESIM_DEVICE_PICTURE_H

#include <stdio.h>

#include "sim/device_case.h"
#include "sim/device_ops.h"

#define DEVICE_PICTURE_COLUMNS 600 /* most moments that are looked at */

/* 0, or -1 with err. */
int device_picture_write(const struct device_ops *ops, const struct device_case *c, const char *setting, FILE *out, struct err *err);

#endif
