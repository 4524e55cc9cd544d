/* What a trace format is: one file in formats/ defines `const struct wl_format wl_format_NAME`, and
 * make lists it. A format turns one line into one request; streams, order, sums are done elsewhere. */
#ifndef PAGESIM_WL_FORMAT_H
#define PAGESIM_WL_FORMAT_H

#include "workloads/wl_csv.h"
#include "workloads/wl_draft.h"
#include "workloads/wl_json.h"
#include "workloads/wl_source.h"

/* What a format may look at beside the line. */
struct wl_parse {
    const struct wl_options *options;
    struct wl_columns columns; /* filled by header(), for CSV */
};

struct wl_format {
    const char *name;
    const char *summary;       /* one line, lower case, no full stop */
    const char *arrival_field; /* for messages */
    bool (*recognise)(const char *first_line);
    /* Reads the header line; NULL when the format has none. 0, or -1 reported to line->err. */
    int (*header)(struct wl_line *line, struct wl_parse *parse);
    /* Fills a cleared draft whose serial is set; does not finish it. 0, or -1 reported. */
    int (*parse)(struct wl_line *line, const struct wl_parse *parse, struct wl_draft *draft);
};

size_t wl_format_count(void);
const struct wl_format *wl_format_at(size_t i);
/* NULL when there is none of that name. */
const struct wl_format *wl_format_find(const char *name);
/* The first format that recognises the line, or NULL. */
const struct wl_format *wl_format_recognise(const char *first_line);
/* "a, b, c", for messages; cut when it does not fit. */
void wl_format_names(char *out, size_t out_bytes);

#endif
