/* What the parts of the page share. */
#ifndef PAGESIM_PAGE_INTERNAL_H
#define PAGESIM_PAGE_INTERNAL_H

#include "sim/page.h"
#include "sim/plot_rows.h"

/* Files of sim/page/ and the plotting library's, as make embedded them (scripts/embed.sh). The library's are empty in
 * a build without it. */
struct page_asset {
    const unsigned char *bytes;
    size_t count;
};
extern const struct page_asset page_style, page_script, page_library_script, page_library_style, page_library_licence;

/* The page in the making. */
struct page {
    const struct page_input *in;
    struct plot_rows rows;   /* in the order of the page */
    char **labels;           /* of each row: never the same twice */
    const char **varying;    /* names of options in which results differ, "policy" first; point into the results */
    size_t varying_count;
};

/* Tables in the page itself show at most so many results; the script has them all. */
#define PAGE_STATIC_ROWS 200

/* Text between tags and in quoted attributes. */
void html_text(const char *text, FILE *out);
/* 1,234,567 */
void html_count(uint64_t value, FILE *out);
/* 16.0 GiB */
void html_bytes(uint64_t bytes, FILE *out);
/* 53 ms */
void html_seconds(double ns, FILE *out);
/* 61.0 %; what is above 0 never looks like 0 */
void html_percent(double share, FILE *out);

double page_number(const struct result *r, const char *key, double otherwise);
uint64_t page_count(const struct result *r, const char *key);
/* NULL when it is no text. */
const char *page_text(const struct result *r, const char *key);
bool page_has_states(const struct result *r);
double page_state(const struct result *r, int state); /* share of the pool; 0 to 1 whatever a file says */
/* The nearest count; no input makes it overflow. */
uint64_t page_whole(double value);

/* What a cause of a refusal means, in a few words. */
const char *page_cause_words(int cause);

void page_words(const struct page *page, FILE *out);
void page_balance(const struct page *page, FILE *out);
void page_refusals(const struct page *page, FILE *out);
/* Nothing where no result has such a thing. The second one is a part of the refusals. */
void page_device(const struct page *page, FILE *out);
void page_helped(const struct page *page, FILE *out);
void page_options(const struct page *page, FILE *out);
void page_glossary(const struct page *page, FILE *out);
/* The JSON value for the script. points: along the time axis of each detail file. */
int page_data(const struct page *page, FILE *json, struct err *err);

#endif
