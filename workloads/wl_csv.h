/* Comma-separated values with a header line. Columns are found by name, in any order; unknown ones
 * are ignored. A field may stand in double quotes ("" is a quote inside it). */
#ifndef PAGESIM_WL_CSV_H
#define PAGESIM_WL_CSV_H

#include <stdbool.h>

#include "workloads/wl_array.h"
#include "workloads/wl_line.h"

enum { WL_CSV_COLUMNS_MAX = 64, WL_CSV_UNKNOWN = 255 };

struct wl_columns {
    size_t count;
    uint8_t field[WL_CSV_COLUMNS_MAX]; /* index into the names, or WL_CSV_UNKNOWN */
};

struct wl_csv_row {
    size_t count;
    const char *at[WL_CSV_COLUMNS_MAX];
    size_t length[WL_CSV_COLUMNS_MAX];
};

/* Whether a header line has this column. */
bool wl_csv_mentions(const char *header, const char *name);
/* required: one bit a name. Reports missing and repeated columns. */
int wl_csv_header(struct wl_line *line, const char *const *names, size_t names_count,
                  uint32_t required, struct wl_columns *columns);
/* Cuts a row into as many fields as there are columns; resolves quotes in place. */
int wl_csv_split(struct wl_line *line, const struct wl_columns *columns, struct wl_csv_row *row);

/* Values of column i; name is for messages. Each returns 0, or -1 reported. */
int wl_csv_u64(const struct wl_line *line, const struct wl_csv_row *row, size_t i,
               const char *name, uint64_t max, const char *expected, uint64_t *value);
int wl_csv_tokens(const struct wl_line *line, const struct wl_csv_row *row, size_t i,
                  const char *name, uint64_t *value);
int wl_csv_time(const struct wl_line *line, const struct wl_csv_row *row, size_t i,
                const char *name, uint64_t unit_ns, uint64_t *value);

#endif
