/* The page as a whole: what stands where, and what is embedded. */
#include <stdlib.h>
#include <string.h>

#include "sim/page_internal.h"

/* Kinds of results whose options are looked at. */
#define FIRSTS_MAX 64

/* --- names of results ------------------------------------------------------------------------- */

static bool options_differ(const struct page_input *in, const char *key)
{
    char a[PLOT_NUMBER_BYTES], b[PLOT_NUMBER_BYTES];
    for (size_t i = 1; i < in->count; i++) {
        if (strcmp(plot_text(result_find(&in->results[0], key), a, sizeof a), plot_text(result_find(&in->results[i], key), b, sizeof b)) != 0)
            return true;
    }
    return false;
}

static bool note_varying(struct page *page, const char *key)
{
    for (size_t i = 0; i < page->varying_count; i++) {
        if (strcmp(page->varying[i], key) == 0) return true;
    }
    const char **grown = realloc(page->varying, (page->varying_count + 1) * sizeof *grown);
    if (!grown) return false;
    page->varying = grown;
    page->varying[page->varying_count++] = key;
    return true;
}

/* Options that only some results have are found in those that have them. Results of one policy have the same options, so
 * the first of each policy stand for all. */
static bool is_first_of_kind(const struct page_input *in, size_t r, size_t firsts[FIRSTS_MAX], size_t *count)
{
    const char *policy = page_text(&in->results[r], "policy");
    for (size_t i = 0; i < *count; i++) {
        const struct result *first = &in->results[firsts[i]];
        const char *other = page_text(first, "policy");
        if (first->count == in->results[r].count && policy && other && strcmp(policy, other) == 0) return false;
    }
    if (*count < FIRSTS_MAX) firsts[(*count)++] = r;
    return true;
}

/* Whether one of the first `count` kinds has the option as well. */
static bool was_asked(const struct page_input *in, const char *key, const size_t firsts[FIRSTS_MAX], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (result_find(&in->results[firsts[i]], key)) return true;
    }
    return false;
}

static bool find_varying(struct page *page)
{
    const struct page_input *in = page->in;
    size_t firsts[FIRSTS_MAX], count = 0;
    for (size_t r = 0; r < in->count && count < FIRSTS_MAX; r++) {
        if (!is_first_of_kind(in, r, firsts, &count)) continue;
        for (size_t i = 0; i < in->results[r].count; i++) {
            const char *key = in->results[r].entries[i].key;
            if (strncmp(key, "options.", 8) != 0 || was_asked(in, key, firsts, count - 1)) continue;
            if (options_differ(in, key) && !note_varying(page, key)) return false;
        }
    }
    return true;
}

/* "static", "prefix, block 16, seed=2". NULL: out of memory. */
static char *label_of(const struct page *page, size_t i, bool block_sizes)
{
    const struct plot_row *row = &page->rows.rows[i];
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    fputs(row->series, out);
    if (block_sizes) fprintf(out, ", block %llu", (unsigned long long)row->block_size);
    if (*row->group) fprintf(out, ", %s", row->group);
    return fclose(out) == 0 ? text : (free(text), NULL);
}

/* Rows of one label stand beside each other. */
static bool number_twins(struct page *page)
{
    for (size_t i = 0, next; i < page->rows.count; i = next) {
        for (next = i + 1; next < page->rows.count && strcmp(page->labels[next], page->labels[i]) == 0; next++) {}
        for (size_t k = i; next - i > 1 && k < next; k++) {
            char *numbered;
            if (asprintf(&numbered, "%s #%zu", page->labels[k], k - i + 1) < 0) return false;
            free(page->labels[k]);
            page->labels[k] = numbered;
        }
    }
    return true;
}

static int name_results(struct page *page, struct err *err)
{
    bool block_sizes = options_differ(page->in, "options.block-size"), enough = true;
    page->labels = calloc(page->rows.count, sizeof *page->labels);
    for (size_t i = 0; page->labels && i < page->rows.count && enough; i++) enough = (page->labels[i] = label_of(page, i, block_sizes)) != NULL;
    if (page->labels && enough && find_varying(page) && number_twins(page)) return 0;
    return err_set(err, ERR_FAILED, "out of memory");
}

/* --- parts ---------------------------------------------------------------------------------------- */

static void put(const struct page_asset *asset, FILE *out)
{
    fwrite(asset->bytes, 1, asset->count, out);
}

/* More results than this are only counted in the title. */
#define NAMED_MAX 3

/* What a heading calls a trace; the options have it in full. */
static const char *short_trace(const char *trace)
{
    if (!trace || strncmp(trace, "gen:", 4) == 0) return "a generated trace";
    if (strcmp(trace, "-") == 0) return "a trace from a pipe";
    const char *slash = strrchr(trace, '/');
    return slash && slash[1] ? slash + 1 : trace;
}

static void write_title(const struct page *page, const char *title, FILE *out)
{
    const struct result *first = page->rows.rows[0].result;
    if (title) {
        html_text(title, out);
        return;
    }
    if (page->rows.count > NAMED_MAX) fprintf(out, "%zu simulations", page->rows.count);
    for (size_t i = 0; page->rows.count <= NAMED_MAX && i < page->rows.count; i++) {
        fputs(i == 0 ? "" : i + 1 < page->rows.count ? "; " : " and ", out);
        html_text(page->labels[i], out);
    }
    if (options_differ(page->in, "options.trace")) return;
    fputs(" on ", out);
    html_text(short_trace(page_text(first, "trace")), out);
}

static void write_head(const struct page *page, const char *title, FILE *out)
{
    /* The policy keeps the page from any network, whatever is in the data. */
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
          "<meta name=\"generator\" content=\"pagesim " PAGESIM_VERSION "\">\n<title>pagesim: ", out);
    write_title(page, title, out);
    fputs("</title>\n<style>\n", out);
    put(&page_library_style, out);
    put(&page_style, out);
    fputs("</style>\n</head>\n<body>\n", out);
}

static void write_header(const struct page *page, const char *title, FILE *out)
{
    const struct result *first = page->rows.rows[0].result;
    fputs("<header><a class=\"skip\" href=\"#answer\">Skip to the answer</a><h1>", out);
    write_title(page, title, out);
    fputs("</h1>\n<p class=\"made\">", out);
    if (page->rows.count == 1) {
        fputs("Trace <code>", out);
        html_text(page_text(first, "trace") ? page_text(first, "trace") : "-", out);
        fputs("</code>. ", out);
    }
    fputs("Simulated by pagesim ", out);
    const char *version = page_text(first, "version");
    html_text(version ? version : "?", out);
    fputs(".</p>\n<nav aria-label=\"Sections\"><a href=\"#answer\">Answer</a> <a href=\"#balance\">Balance</a> <a href=\"#compare\" data-section>Comparison</a> "
          "<a href=\"#time\" data-section>Over time</a> <a href=\"#map\" data-section>Memory map</a> <a href=\"#refusals\">Refusals</a> "
          "<a href=\"#device\" data-section>Device</a> <a href=\"#requests\" data-section>Requests</a> <a href=\"#options\">Options</a> <a href=\"#reading\">How to read</a></nav></header>\n<main>\n", out);
}

static void write_sections(const struct page *page, FILE *out)
{
    page_words(page, out);
    page_balance(page, out);
    fputs("<noscript><p class=\"note\">Plots and the memory map need a script; the tables do not.</p></noscript>\n", out);
    if (page_library_script.count == 0)
        fputs("<p class=\"note\" id=\"no-library\">The program that made this page was built without the plotting library: values are shown as tables. "
              "<code>scripts/setup.sh --full</code> gets it.</p>\n", out);
    fputs("<section id=\"compare\" aria-labelledby=\"compare-title\" hidden><h2 id=\"compare-title\">Comparison</h2></section>\n"
          "<section id=\"time\" aria-labelledby=\"time-title\" hidden><h2 id=\"time-title\">Over time</h2></section>\n"
          "<section id=\"map\" aria-labelledby=\"map-title\" hidden><h2 id=\"map-title\">The pool, block by block</h2></section>\n", out);
    page_refusals(page, out);
    page_device(page, out);
    fputs("<section id=\"requests\" aria-labelledby=\"requests-title\" hidden><h2 id=\"requests-title\">Requests</h2></section>\n", out);
    page_options(page, out);
    page_glossary(page, out);
    fputs("</main>\n", out);
}

/* JSON inside a script element: no '<' may stand in it, and inside a JSON text it may be written otherwise. */
static int write_data(const struct page *page, FILE *out, struct err *err)
{
    char *text = NULL;
    size_t bytes;
    FILE *json = open_memstream(&text, &bytes);
    if (!json) return err_set(err, ERR_FAILED, "out of memory");
    int status = page_data(page, json, err);
    if (fclose(json) != 0 && status == 0) status = err_set(err, ERR_FAILED, "out of memory");
    if (status == 0) {
        fputs("<script type=\"application/json\" id=\"page-data\">", out);
        for (size_t i = 0; i < bytes; i++) {
            if (text[i] == '<') fputs("\\u003c", out);
            else fputc(text[i], out);
        }
        fputs("</script>\n", out);
    }
    free(text);
    return status;
}

static void write_scripts(FILE *out)
{
    if (page_library_script.count > 0) {
        fputs("<!--\n", out);
        put(&page_library_licence, out);
        fputs("\n-->\n<script>", out);
        put(&page_library_script, out);
        fputs("</script>\n", out);
    }
    fputs("<script>\n", out);
    put(&page_script, out);
    fputs("</script>\n</body>\n</html>\n", out);
}

static int write_all(const struct page *page, const char *title, FILE *out, struct err *err)
{
    write_head(page, title, out);
    write_header(page, title, out);
    write_sections(page, out);
    if (write_data(page, out, err)) return -1;
    write_scripts(out);
    return 0;
}

int page_write(const struct page_input *in, const char *title, FILE *out, struct err *err)
{
    struct page page = {.in = in};
    if (plot_rows_sort(&page.rows, in->results, in->count, err)) {
        plot_rows_release(&page.rows);
        return -1;
    }
    int status = name_results(&page, err);
    if (status == 0) status = write_all(&page, title, out, err);
    for (size_t i = 0; page.labels && i < page.rows.count; i++) free(page.labels[i]);
    free(page.labels);
    free(page.varying);
    plot_rows_release(&page.rows);
    return status;
}
