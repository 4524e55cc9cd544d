/* Results of content studies: JSON objects of one line each for programs (cache_report.c), and tables
 * for people (cache_table.c). Keys are the fields' names in cache_sim.h, and ratios of their sums; a
 * ratio whose denominator is zero is null. */
#ifndef PAGESIM_CACHE_REPORT_H
#define PAGESIM_CACHE_REPORT_H

#include <stdio.h>

#include "sim/cache_sim.h"

/* Return 0, or -1 with err (then nothing was written). */
int cache_json_infinite(FILE *out, const struct cache_infinite *result, struct err *err);
/* host: with the keys of the host tier. */
int cache_json_prefix(FILE *out, const struct cache_config *config, const struct cache_prefix *result,
                      bool host, struct err *err);
int cache_json_stream(FILE *out, const struct cache_config *config, const struct cache_stream *result,
                      struct err *err);

/* To stdout. A head, then a line a configuration. `infinite` has two lines: all blocks, full blocks. host: with the columns
 * of the host tier. */
void cache_table_prefix_head(bool host);
void cache_table_infinite(const struct cache_infinite *result);
void cache_table_prefix(const struct cache_config *config, const struct cache_prefix *result, bool host);
void cache_table_stream_head(void);
void cache_table_stream(const struct cache_config *config, const struct cache_stream *result);

#endif
