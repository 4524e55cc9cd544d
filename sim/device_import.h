/* A PyTorch memory snapshot as an operation file, and what it holds.
 *
 * The history of a snapshot says what was allocated and freed and where, and which segments came and went. Going back from the
 * segments at the end, segment by segment, gives those that were there when the history began, and of each allocation the
 * pool. What the history does not say is inferred: device_import_write states how. */
#ifndef PAGESIM_DEVICE_IMPORT_H
#define PAGESIM_DEVICE_IMPORT_H

#include <stdio.h>

#include "sim/device_snapshot.h"

struct device_import {
    const struct device_snapshot *snapshot;
    uint64_t allocs, frees, ooms, empty_caches; /* operations */
    uint64_t other_streams;         /* allocations on another stream than the first one's: replayed on one */
    uint64_t unknown_frees;         /* of addresses that were freed already: left out */
    size_t start_segments;          /* there when the history begins */
    uint64_t start_bytes;
    uint64_t start_live_blocks, start_live_bytes;
    uint64_t reserved_bytes_peak;   /* while the history lasts */
    uint64_t cap_bytes_min, cap_bytes_max; /* the cap lay between them: it allowed the one and refused the other. max UINT64_MAX: nothing
                                              was refused */
};

/* Writes one operation a line to `out` (NULL: only counts). 0, or -1 with err.
 *
 *  - empty_cache: segments went back, and the request after them need not have been the reason. Where it can be told that the
 *    request was refused first, none is written.
 *  - a failed request: the history tells its rounded size, not the one asked for.
 *  - the size of a block that was there at the start and is freed later: the requested one, rounded up, and what no
 *    free block could be. */
int device_import_write(const struct device_snapshot *snapshot, FILE *out, struct device_import *import, struct err *err);
/* What the snapshot holds, for people. */
void device_import_print(const struct device_import *import, const char *name, FILE *out);

#endif
