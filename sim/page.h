/* `pagesim report`: results and their detail files in, one HTML file out that needs nothing else (docs/report.md).
 *
 * The page is made in two parts. What can be read without a script is written here as HTML: the answer in words,
 * balance sheets, refusals, options. Plots and the memory map are drawn by the page's script (sim/page/) from one JSON
 * value in the page, which the functions of page_digest.h write. Every text of a file is escaped on its way. */
#ifndef PAGESIM_PAGE_H
#define PAGESIM_PAGE_H

#include <stdio.h>

#include "sim/result.h"
#include "workloads/err.h"

enum page_detail { DETAIL_TIMELINE, DETAIL_EVENTS, DETAIL_OOM_LOG, DETAIL_MAP, DETAIL_COUNT };
/* What `run` calls the option, and the file of a recorded folder. */
extern const char *const page_detail_options[DETAIL_COUNT];
extern const char *const page_detail_files[DETAIL_COUNT];
#define PAGE_RESULT_FILE "result.json"

/* More results than this are refused: the page would be too large. */
#define PAGE_RUNS_MAX 10000u
/* Runs whose detail files a page takes. */
#define PAGE_DETAILED_MAX 32u

struct page_files {
    char *path[DETAIL_COUNT]; /* NULL: none */
};

struct page_input {
    struct result *results;
    struct page_files *files; /* of each result */
    size_t count, capacity;
};

/* All zero is empty. */
void page_input_release(struct page_input *in);
/* Appends what a file holds — the object of `run --json`, or a sweep's lines — or a folder of `run --record` with its
 * detail files. -1 with err. */
int page_input_read(struct page_input *in, const char *path, struct err *err);
/* Appends one result, which is moved: *result is empty afterwards. */
int page_input_add(struct page_input *in, struct result *result, struct err *err);
/* Says which detail file belongs to result i; path is copied. */
int page_input_attach(struct page_input *in, size_t i, enum page_detail detail, const char *path, struct err *err);

/* Writes the page. title NULL: one from the results. */
int page_write(const struct page_input *in, const char *title, FILE *out, struct err *err);

#endif
