/* Detail files of a run, each read once as a stream and written as one JSON value for the page's script. A file of any
 * length becomes a bounded value: neighbours are merged in pairs, keeping mean, smallest and largest, and the value
 * says how many rows stand behind a point. -1 with err. */
#ifndef PAGESIM_PAGE_DIGEST_H
#define PAGESIM_PAGE_DIGEST_H

#include <stdio.h>

#include "sim/accounting.h"
#include "workloads/err.h"

/* runs: how many runs share the room of the page; the more, the less each may take. A page stays below 10 MB. */
int digest_timeline(const char *path, size_t runs, FILE *json, struct err *err);
int digest_events(const char *path, size_t runs, FILE *json, struct err *err);
int digest_refusals(const char *path, size_t runs, FILE *json, struct err *err);
int digest_map(const char *path, size_t runs, FILE *json, struct err *err);

/* Points along the time axis: a power of two. */
static inline size_t digest_points(size_t runs)
{
    size_t points = 2048;
    while (points > 128 && points * runs > 4096) points /= 2;
    return points;
}

/* Rows of a list. */
static inline size_t digest_rows(size_t runs)
{
    return runs > 4 ? 2000 / runs : 500;
}

/* A JSON string of a name, which is cut when it is very long. */
void digest_name(const char *name, FILE *json);
/* Sums beyond 64 bits as a close number. */
void digest_sum(u128 value, FILE *json);

#endif
