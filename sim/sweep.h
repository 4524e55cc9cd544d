/* A grid of simulations over all cores. */
#ifndef PAGESIM_SWEEP_H
#define PAGESIM_SWEEP_H

#include <stddef.h>

#include "sim/optset.h"
#include "sim/result.h"

struct sweep;

/* Checks the options of every cell. NULL with err. The set must outlive the sweep. */
struct sweep *sweep_create(const struct optset *set, struct err *err);
void sweep_destroy(struct sweep *sweep); /* NULL is fine */

size_t sweep_cells(const struct sweep *sweep);

/* Lets cell k be taken from an earlier, unfinished sweep: `line` is its results line without the line feed. The
 * sweep compares the options in it; a line of other options is not taken. */
void sweep_offer(struct sweep *sweep, const char *line);

/* Told of every finished cell, in any order, one at a time. `line` is its results line with the line feed. Return
 * -1 with err to stop the sweep. */
typedef int (*sweep_sink)(void *context, size_t cell, const char *line, struct err *err);

/* Runs every cell that was not taken over, `threads` at a time. Progress goes to stderr when that is a
 * terminal. -1 with err at the first failure; cells in flight are finished first. */
int sweep_run(struct sweep *sweep, unsigned threads, sweep_sink sink, void *context,
              struct err *err);

/* The results line of a finished cell, with its line feed. */
const char *sweep_line(const struct sweep *sweep, size_t cell);
/* The row of a cell, once sweep_run succeeded; rows are in cell order. */
const struct result *sweep_rows(const struct sweep *sweep);

#endif
