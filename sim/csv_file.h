/* Reads back the CSV files that the program writes (--timeline, --events, --oom-log): plain, gzip or zstd. Columns
 * are found by name; others are ignored. */
#ifndef PAGESIM_CSV_FILE_H
#define PAGESIM_CSV_FILE_H

#include <stdio.h>

#include "workloads/wl_csv.h"
#include "workloads/wl_stream.h"

#define CSV_FILE_NAMES_MAX 32

struct csv_file {
    struct wl_stream *stream;
    struct wl_line line;
    struct wl_columns columns;
    struct wl_csv_row row;
    const char *const *names;
    uint8_t column_of[CSV_FILE_NAMES_MAX];
};

/* Opens it and reads the header, which must have all names (at most CSV_FILE_NAMES_MAX). -1 with err, also for an
 * empty file. names must outlive *file. Close it in either case. */
int csv_file_open(struct csv_file *file, const char *path, const char *const *names, size_t count, struct err *err);
/* 1: the next row is there. 0: the end. -1 with err. */
int csv_file_next(struct csv_file *file, struct err *err);
void csv_file_close(struct csv_file *file);

/* Fields of the row by the name's index; -1 reported. */
int csv_file_u64(struct csv_file *file, size_t name, uint64_t *value);
/* A decimal number, in thousandths. */
int csv_file_milli(struct csv_file *file, size_t name, uint64_t *value);
/* Valid until the next row. Do not ask for the same field's number afterwards. */
const char *csv_file_text(struct csv_file *file, size_t name);
/* The index of the field's text among words. */
int csv_file_word(struct csv_file *file, size_t name, const char *const *words, size_t count, size_t *value);


/* Writes a text as a field: in quotes where a comma, a quote or a line end stands in it (RFC 4180). */
void csv_write_field(const char *text, FILE *out);

#endif
