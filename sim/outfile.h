/* An output file that appears whole or not at all: written under a temporary name in the same folder,
 * renamed at the end. A failure, a signal or an early exit removes it. What is there and is no regular file
 * (a pipe, /dev/null) is written directly; "-" is standard output. */
#ifndef PAGESIM_OUTFILE_H
#define PAGESIM_OUTFILE_H

#include <stdio.h>

#include "workloads/err.h"

struct outfile;

/* NULL with err. path is copied. */
struct outfile *outfile_open(const char *path, struct err *err);
FILE *outfile_stream(struct outfile *file);
/* Finishes: everything is on its way to the disk and stands under its name. -1 with err (and nothing left behind)
 * otherwise. The file is gone in either case. Standard output is flushed, not closed. */
int outfile_commit(struct outfile *file, struct err *err);
/* Removes what was written. NULL is fine. */
void outfile_abandon(struct outfile *file);

/* From now on SIGINT, SIGTERM, SIGHUP and SIGABRT remove unfinished files before they end the program. */
void outfile_catch_signals(void);

#endif
