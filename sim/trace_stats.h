/* Prints what wl_stats.h computes: the JSON object of `trace stats --json` and the table for people. */
#ifndef PAGESIM_TRACE_STATS_H
#define PAGESIM_TRACE_STATS_H

#include <stdio.h>

#include "workloads/wl_stats.h"

/* name: of the trace; summary: of the source that the statistics were read from. */
void trace_stats_json(const struct wl_stats *stats, const char *name, const char *format,
                      const struct wl_summary *summary, FILE *out);
void trace_stats_table(const struct wl_stats *stats, const char *name, const char *format,
                       const struct wl_summary *summary, FILE *out);

#endif
