/* Results sorted for figures: which rows share a figure, and which of them a line. */
#ifndef PAGESIM_PLOT_ROWS_H
#define PAGESIM_PLOT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/result.h"
#include "workloads/err.h"

struct plot_row {
    const struct result *result; /* the caller's */
    char *group;       /* values of the options that make another figure: "trace=a.csv,seed=2", or "" */
    char *series;      /* "static", "static(oracle)": never a blank or comma */
    size_t group_rank, series_rank; /* by first appearance */
    uint64_t block_size;
    bool flat; /* block size has no meaning to the policy, and its rows agree */
    size_t bar; /* place among the bars of its group, from 1; 0: not chosen, for figures that cannot show every block size */
};

struct plot_rows {
    struct plot_row *rows; /* by group, series, block size */
    size_t count;
};

/* The results must outlive *sorted. -1 with err when memory is short. Release in either case. */
int plot_rows_sort(struct plot_rows *sorted, const struct result *results, size_t count,
                   struct err *err);
void plot_rows_release(struct plot_rows *sorted);

/* End of the group that begins at `begin`. */
size_t plot_rows_group_end(const struct plot_rows *sorted, size_t begin);

/* The text of an entry as a CSV field or a label has it: "" for null and for NULL. Owned by the entry or by buffer. */
const char *plot_text(const struct result_entry *entry, char *buffer, size_t bytes);
#define PLOT_NUMBER_BYTES 40

#endif
