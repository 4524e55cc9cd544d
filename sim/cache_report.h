/* Results of content studies as JSON objects; keys are the fields' names in cache_sim.h, and ratios of
 * their sums. A ratio whose denominator is zero is null. */
#ifndef PAGESIM_CACHE_REPORT_H
#define PAGESIM_CACHE_REPORT_H

#include <stdio.h>

#include "sim/cache_sim.h"

void cache_json_infinite(FILE *out, const struct cache_infinite *result);
void cache_json_prefix(FILE *out, const struct cache_config *config,
                       const struct cache_prefix *result);
void cache_json_stream(FILE *out, const struct cache_config *config,
                       const struct cache_stream *result);
/* A string in quotes; control characters and what is not ASCII are escaped or replaced. */
void cache_json_text(FILE *out, const char *text);

/* part / whole, NAN when whole is 0. */
double cache_ratio(uint64_t part, uint64_t whole);

#endif
