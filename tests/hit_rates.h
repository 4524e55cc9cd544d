/* Comparing content studies with the golden files in tests/golden/hit-rates/. */
#ifndef PAGESIM_TESTS_HIT_RATES_H
#define PAGESIM_TESTS_HIT_RATES_H

#include <jansson.h>

#include "sim/cache_sim.h"

/* The golden file of that name (without .json); fails the test when it cannot be read. */
json_t *hit_rates_load(const char *name);
/* Runs every `infinite`, `prefix_lru` and `block_stream_lru` of the golden file on the trace and compares every
 * key, doubles to the last bit, and no key more. Returns how many configurations were compared. */
size_t hit_rates_check(const json_t *golden, const struct cache_trace *trace);
/* found must have exactly the members of expected, and equal values; the numbers of requests' hits
 * (`per_request_hits`) may stand for their digest. `what` names the object in messages. */
void hit_rates_same(const json_t *found, const json_t *expected, const char *what);

#endif
