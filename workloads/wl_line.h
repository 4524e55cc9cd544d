/* One line of a trace file, and messages about a place in it. */
#ifndef PAGESIM_WL_LINE_H
#define PAGESIM_WL_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "workloads/err.h"

struct wl_line {
    const char *file;   /* as messages name it */
    uint64_t number;    /* from 1 */
    char *text;         /* without its end; text[length] is '\0'; the readers may change it */
    size_t length;
    struct err *err;    /* where trouble is reported */
};

/* `file:line:column: field: found 'what stands at at', expected ...`; returns -1. at may be NULL:
 * then the line has no column; field may be NULL. */
int wl_line_unexpected(const struct wl_line *line, const char *at, const char *field,
                       const char *expected);
/* The same place, with a message of the caller's. */
int wl_line_error(const struct wl_line *line, const char *at, const char *field,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
int wl_line_out_of_memory(const struct wl_line *line);

#endif
