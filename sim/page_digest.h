/* Detail files of a run, each read once as a stream and written as one JSON value for the page's script. A file of any
 * length becomes a bounded value: neighbours are merged in pairs, keeping mean, smallest and largest, and the value
 * says how many rows stand behind a point. -1 with err. */
#ifndef PAGESIM_PAGE_DIGEST_H
#define PAGESIM_PAGE_DIGEST_H

#include <stdio.h>

#include "sim/accounting.h"
#include "workloads/err.h"

/* points: at most this many along the time axis, a power of two >= 16. */
int digest_timeline(const char *path, size_t points, FILE *json, struct err *err);
int digest_events(const char *path, size_t points, FILE *json, struct err *err);
int digest_refusals(const char *path, size_t points, FILE *json, struct err *err);
/* bytes: frames are left out, every so many alike, until the value is about so long. */
int digest_map(const char *path, size_t bytes, FILE *json, struct err *err);

/* Sums beyond 64 bits as a close number. */
void digest_sum(u128 value, FILE *json);

#endif
