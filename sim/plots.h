/* Figures of results: a CSV file a figure, and gnuplot's SVG and PNG of it (scripts/plot/).
 *
 *   fragmentation   internal, reserved and external against block size
 *   states          where the pool's bytes were, a bar for each policy and a few block sizes
 *   refusals        refused allocations by class and by cause, the same bars
 *   hit_rate        prefix-cache hit rate against block size; open symbols are lower bounds
 *   latency         time to first token and to last, against block size
 *   timeline        states over time, from the timeline of one run
 *
 * A CSV has the columns `series`, `block_size`, `flat`, `bar`, and one for each key of the results that the figure
 * needs, under the key's own name; null is an empty field. A series is a policy, with the values of its own
 * options where they vary: static(oracle). `flat` is 1 where block size has no meaning to the policy; `bar` is the
 * row's place among the bars, from 1 at the top, or 0. */
#ifndef PAGESIM_PLOTS_H
#define PAGESIM_PLOTS_H

#include <stddef.h>

#include "sim/result.h"
#include "workloads/err.h"

/* Makes the folder, with parents, if need be, and sees that gnuplot and the scripts are there: to be called before long
 * work whose results are to be drawn. -1 with err. */
int plots_check(const char *directory, struct err *err);

/* Draws every figure that the rows have data for; which were left out goes to stderr. Rows that differ in an
 * option that is neither the policy's own nor the block size make a set of figures each, in a folder of
 * its own below `directory`, named by what differs: trace=azure,seed=2. Each file appears whole or not at
 * all. -1 with err at the first failure. */
int plots_draw(const char *directory, const struct result *rows, size_t count, struct err *err);

/* Draws timeline.svg and .png from the CSV that `run --timeline` wrote. `title` may be NULL. */
int plots_timeline(const char *directory, const char *timeline_csv, const char *title,
                   struct err *err);

#endif
