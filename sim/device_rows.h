/* The rows of a replay, in the schema of the recordings: one JSON object for the header, then one for each operation.
 *
 * Counters stand on every row, or, with counters_every N, on every Nth, on rows with segment events and on
 * failures; the whole message of the first failure is left out then. */
#ifndef PAGESIM_DEVICE_ROWS_H
#define PAGESIM_DEVICE_ROWS_H

#include <stdio.h>

#include "sim/device_replay.h"

struct device_rows {
    FILE *out;
    uint64_t counters_every; /* 0: as recorded, 16 in cases named long_*, else 1 */
};

/* Replays twice: the header comes first and tells the peaks of the whole run. Nothing is written when an operation is at
 * fault. 0, or -1 with err. */
int device_rows_write(const struct device_rows *rows, const struct device_ops *ops, const struct device_case *c,
                      const char *variant, const char *setting, struct err *err);

#endif
