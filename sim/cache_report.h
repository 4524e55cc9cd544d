/* Results of content studies as JSON objects of one line each; keys are the fields' names in
 * cache_sim.h, and ratios of their sums. A ratio whose denominator is zero is null. */
#ifndef PAGESIM_CACHE_REPORT_H
#define PAGESIM_CACHE_REPORT_H

#include <stdio.h>

#include "sim/cache_sim.h"

/* All return 0, or -1 with err (then nothing was written). */
int cache_json_infinite(FILE *out, const struct cache_infinite *result, struct err *err);
int cache_json_prefix(FILE *out, const struct cache_config *config, const struct cache_prefix *result,
                      struct err *err);
int cache_json_stream(FILE *out, const struct cache_config *config, const struct cache_stream *result,
                      struct err *err);

#endif
