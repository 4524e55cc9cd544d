/* Runs gnuplot on the scripts in scripts/plot/, without a shell. C never draws. */
#ifndef PAGESIM_GNUPLOT_H
#define PAGESIM_GNUPLOT_H

#include <stddef.h>

#include "workloads/err.h"

/* Folder of the scripts: $PAGESIM_DATADIR/plot, else PREFIX/share/pagesim/plot of the program that runs, else
 * scripts/plot of the source tree that it was built in. -1 with err, which names all three. */
int gnuplot_scripts(char *folder, size_t bytes, struct err *err);

/* -1 with err when there is no gnuplot that starts. */
int gnuplot_check(struct err *err);

/* Draws STEM.svg and STEM.png with folder/FIGURE.gp. Each appears whole or not at all. -1 with err, which
 * has gnuplot's own message. */
int gnuplot_draw(const char *folder, const char *figure, const char *csv, const char *title,
                 const char *stem, struct err *err);

#endif
