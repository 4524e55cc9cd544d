/* Writes requests in pagesim's own formats. What is written reads back as the same requests. */
#ifndef PAGESIM_WL_WRITE_H
#define PAGESIM_WL_WRITE_H

#include <stdio.h>

#include "workloads/wl_source.h"

enum wl_write_format { WL_WRITE_JSONL, WL_WRITE_CSV };

/* Reads the rest of the source and writes it. CSV leaves content out. Write errors stay in `out` for
 * the caller to find (ferror). 0, or -1 with err. */
int wl_write(struct wl_source *source, enum wl_write_format format, FILE *out, struct err *err);

#endif
