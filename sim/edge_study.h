/* The probability of the device's out of memory, row by row: a row is a cell of the options' lists. */
#ifndef PAGESIM_EDGE_STUDY_H
#define PAGESIM_EDGE_STUDY_H

#include "sim/edge_draws.h"
#include "sim/optset.h"
#include "sim/result.h"

struct edge_row {
    struct optset *cell;       /* FOR_EDGE */
    char utilization[24];      /* put where the cell has none; "" otherwise */
    struct result result;
};

/* The rows that the set stands for: one for each cell, and without --gpu-memory-utilization for each of 0.90, 0.91 ...
 * 0.99. *rows is the caller's to release with edge_rows_release. -1 with err. */
int edge_rows_make(const struct optset *set, struct edge_row **rows, size_t *count, struct err *err);
/* Works all rows out on so many threads; the same on any number. -1 with the first row's err. */
int edge_rows_run(struct edge_row *rows, size_t count, unsigned threads, struct err *err);
void edge_rows_release(struct edge_row *rows, size_t count);

#endif
