/* Tables that can be read without a script. */
#include <inttypes.h>
#include <string.h>

#include "sim/accounting.h"
#include "sim/page_internal.h"
#include "sim/refusals.h"

static const struct { const char *name, *words; } glossary[] = {
    {"live", "filled, and a running request will still read it; a shared slot counts once"},
    {"dead", "filled, but nobody will read it again"},
    {"reserved", "taken, empty now, and filled before its request ends"},
    {"internal", "taken, and never filled: over-reservation, the tail of the last block"},
    {"rounding", "added by the allocator to what was asked"},
    {"cached", "nobody runs on it, its content may be reused, it can be evicted"},
    {"cached_pinned", "the same, but something keeps it from eviction"},
    {"stranded", "free, yet not obtainable by the request that was refused"},
    {"free", "free otherwise"},
    {"overhead", "the null block, and what is left of the pool below one block"},
};

/* A figure that explains the state on whose line it stands. */
static const char *const state_figures[STATE_COUNT] = {
    [STATE_LIVE] = "utilization", [STATE_RESERVED] = "reservation_waste", [STATE_INTERNAL] = "internal_fragmentation",
    [STATE_CACHED] = "hit_rate_tokens", [STATE_FREE] = "external_fragmentation"};

/* Long tables scroll in a frame of their own. */
#define LONG_ROWS 12

static void open_table(const char *name, size_t rows, FILE *out)
{
    fprintf(out, "<div class=\"scroll%s\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">", rows > LONG_ROWS ? " tall" : "", name);
}

static void bar(const struct result *r, FILE *out)
{
    fputs("<div class=\"bar\" aria-hidden=\"true\">", out);
    for (int s = 0; s < STATE_COUNT; s++) {
        double share = page_state(r, s);
        if (share > 0) fprintf(out, "<i class=\"s-%s\" style=\"width:%.4f%%\" title=\"%s %.2f %%\"></i>", state_names[s], 100 * share, state_names[s], 100 * share);
    }
    fputs("</div>", out);
}

static void key_of_colours(FILE *out)
{
    fputs("<p class=\"key\" aria-hidden=\"true\">", out);
    for (int s = 0; s < STATE_COUNT; s++) fprintf(out, "<span><i class=\"s-%s\"></i>%s</span> ", state_names[s], state_names[s]);
    fputs("</p>\n", out);
}

/* --- the balance sheet of one result ------------------------------------------------------------- */

static void state_row(const struct result *r, int s, FILE *out)
{
    double share = page_state(r, s);
    if (share == 0) return;
    fprintf(out, "<tr><th scope=\"row\"><i class=\"s-%s\" aria-hidden=\"true\"></i>%s</th><td class=\"num\">", state_names[s], state_names[s]);
    html_count(page_whole(share * (double)page_count(r, "pool_slots")), out);
    fputs("</td><td class=\"num\">", out);
    html_bytes(page_whole(share * (double)page_count(r, "pool_bytes")), out);
    fprintf(out, "</td><td class=\"num\">%.2f %%</td><td>", 100 * share);
    double figure = state_figures[s] ? page_number(r, state_figures[s], -1) : -1;
    if (figure >= 0) fprintf(out, "%s %.4f", state_figures[s], figure);
    fputs("</td></tr>\n", out);
}

static void balance_one(const struct result *r, FILE *out)
{
    if (!page_has_states(r)) {
        fputs("<p>No time passed.</p>\n", out);
        return;
    }
    bar(r, out);
    open_table("Balance sheet", STATE_COUNT, out);
    fputs("<table id=\"balance-table\"><caption>The lines add up to the pool; averages over time.</caption>\n"
          "<thead><tr><th scope=\"col\">state</th><th scope=\"col\" class=\"num\">token slots</th><th scope=\"col\" class=\"num\">bytes</th>"
          "<th scope=\"col\" class=\"num\">share</th><th scope=\"col\">figure</th></tr></thead><tbody>\n", out);
    for (int s = 0; s < STATE_COUNT; s++) state_row(r, s, out);
    fputs("</tbody><tfoot><tr><th scope=\"row\">pool</th><td class=\"num\">", out);
    html_count(page_count(r, "pool_slots"), out);
    fputs("</td><td class=\"num\">", out);
    html_bytes(page_count(r, "pool_bytes"), out);
    fputs("</td><td class=\"num\">100.00 %</td><td>", out);
    html_count(page_count(r, "num_blocks"), out);
    fprintf(out, " blocks of %" PRIu64 "; kv_usage %.4f; running %.2f (max %" PRIu64 ")</td></tr></tfoot></table></div>\n",
            page_count(r, "block_size_tokens"), page_number(r, "kv_usage", 0), page_number(r, "running.mean", 0), page_count(r, "running.max"));
}

/* --- of several ------------------------------------------------------------------------------------ */

static const struct column { const char *key, *title; enum { SHARE, COUNT, MS, RATE } as; } columns[] = {
    {"states.live", "live", SHARE},
    {"states.reserved", "reserved", SHARE},
    {"states.internal", "internal", SHARE},
    {"states.rounding", "rounding", SHARE},
    {"states.cached", "cached", SHARE},
    {"states.stranded", "stranded", SHARE},
    {"states.free", "free", SHARE},
    {"running.mean", "running", RATE},
    {"refusals.episodes", "refusals", COUNT},
    {"refusals.by_class.despite_free", "despite free", COUNT},
    {"preemptions", "preemptions", COUNT},
    {"hit_rate_tokens", "tokens hit", SHARE},
    {"host_tier.hit_rate_tokens", "of them on the host", SHARE},
    {"ttft_ns.p50", "first token p50, ms", MS},
    {"ttft_ns.p99", "p99, ms", MS},
    {"output_tokens_per_s", "tokens/s", RATE},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void cell(const struct result *r, const struct column *c, FILE *out)
{
    double value = page_number(r, c->key, -1);
    fputs("<td class=\"num\">", out);
    if (value < 0) fputs("–", out);
    else if (c->as == SHARE) fprintf(out, "%.2f %%", 100 * value);
    else if (c->as == COUNT) html_count(page_whole(value), out);
    else if (c->as == MS) fprintf(out, "%.1f", value / 1e6);
    else fprintf(out, "%.1f", value);
    fputs("</td>", out);
}

/* A column without any figure but 0 is left out. */
static bool column_used(const struct page *page, const struct column *c)
{
    for (size_t i = 0; i < page->rows.count; i++) {
        if (page_number(page->rows.rows[i].result, c->key, 0) > 0) return true;
    }
    return false;
}

static const char *knowledge(const struct result *r)
{
    if (page_number(r, "clairvoyant_heuristic", 0) > 0) return " <small>(clairvoyant heuristic)</small>";
    return page_number(r, "clairvoyant", 0) > 0 ? " <small>(a bound)</small>" : "";
}

static void balance_many(const struct page *page, FILE *out)
{
    size_t shown = page->rows.count < PAGE_STATIC_ROWS ? page->rows.count : PAGE_STATIC_ROWS;
    key_of_colours(out);
    if (shown < page->rows.count) fprintf(out, "<p class=\"note\">The first %zu of %zu results; the plots have all of them.</p>\n", shown, page->rows.count);
    open_table("Results", shown, out);
    fputs("<table id=\"results-table\" class=\"sortable\"><caption>Shares of the pool, averages over time. Columns that are 0 everywhere are left out.</caption>\n"
          "<thead><tr><th scope=\"col\">result</th><th scope=\"col\" data-fixed>where the bytes were</th>", out);
    bool used[COLUMNS];
    for (size_t c = 0; c < COLUMNS; c++) used[c] = column_used(page, &columns[c]);
    for (size_t c = 0; c < COLUMNS; c++) {
        if (used[c]) fprintf(out, "<th scope=\"col\" class=\"num\">%s</th>", columns[c].title);
    }
    fputs("</tr></thead><tbody>\n", out);
    for (size_t i = 0; i < shown; i++) {
        const struct result *r = page->rows.rows[i].result;
        fputs("<tr><th scope=\"row\">", out);
        html_text(page->labels[i], out);
        fputs(knowledge(r), out);
        fputs("</th><td>", out);
        bar(r, out);
        fputs("</td>", out);
        for (size_t c = 0; c < COLUMNS; c++) {
            if (used[c]) cell(r, &columns[c], out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

void page_balance(const struct page *page, FILE *out)
{
    fputs("<section id=\"balance\" aria-labelledby=\"balance-title\"><h2 id=\"balance-title\">Where every byte was</h2>\n", out);
    if (page->rows.count == 1) balance_one(page->rows.rows[0].result, out);
    else balance_many(page, out);
    fputs("</section>\n", out);
}

/* --- refusals --------------------------------------------------------------------------------------- */

static uint64_t refusals_by(const struct result *r, const char *object, const char *name)
{
    char key[80];
    snprintf(key, sizeof key, "refusals.%s.%s", object, name);
    return page_count(r, key);
}

static void count_table(const struct page *page, const char *caption, const char *object, const char *const *names, int count,
                        bool meanings, FILE *out)
{
    size_t shown = page->rows.count < PAGE_STATIC_ROWS ? page->rows.count : PAGE_STATIC_ROWS;
    bool used[CAUSE_COUNT] = {false};
    for (size_t i = 0; i < shown; i++) {
        for (int c = 0; c < count; c++) used[c] = used[c] || refusals_by(page->rows.rows[i].result, object, names[c]) > 0;
    }
    open_table(caption, shown, out);
    fprintf(out, "<table><caption>%s</caption><thead><tr><th scope=\"col\">result</th>", caption);
    for (int c = count - 1; c >= 0; c--) {
        if (used[c]) fprintf(out, "<th scope=\"col\" class=\"num\"%s%s%s>%s</th>", meanings ? " title=\"" : "", meanings ? page_cause_words(c) : "", meanings ? "\"" : "", names[c]);
    }
    fputs("</tr></thead><tbody>\n", out);
    for (size_t i = 0; i < shown; i++) {
        fputs("<tr><th scope=\"row\">", out);
        html_text(page->labels[i], out);
        fputs("</th>", out);
        for (int c = count - 1; c >= 0; c--) {
            if (!used[c]) continue;
            fputs("<td class=\"num\">", out);
            html_count(refusals_by(page->rows.rows[i].result, object, names[c]), out);
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

static void cause_list(const struct page *page, FILE *out)
{
    fputs("<dl class=\"terms\">", out);
    for (int c = 0; c < CAUSE_COUNT; c++) {
        bool used = false;
        for (size_t i = 0; i < page->rows.count && !used; i++) used = refusals_by(page->rows.rows[i].result, "by_cause", cause_names[c]) > 0;
        if (used) fprintf(out, "<div><dt>%s</dt><dd>%s</dd></div>", cause_names[c], page_cause_words(c));
    }
    fputs("</dl>\n", out);
}

void page_refusals(const struct page *page, FILE *out)
{
    uint64_t episodes = 0;
    for (size_t i = 0; i < page->rows.count; i++) episodes += page_count(page->rows.rows[i].result, "refusals.episodes");
    fputs("<section id=\"refusals\" aria-labelledby=\"refusals-title\"><h2 id=\"refusals-title\">Refusals</h2>\n", out);
    if (episodes == 0) {
        fputs("<p>No request was refused memory.</p></section>\n", out);
        return;
    }
    fputs("<p>An <em>episode</em> runs from the first refused attempt until the memory is given or the request ends. <code>despite_free</code>: enough was free, "
          "and it was refused all the same; <code>despite_unused</code>: bytes that held nothing stood in the way; <code>capacity</code>: the memory was "
          "really used up.</p>\n", out);
    count_table(page, "Episodes by class", "by_class", class_names, CLASS_COUNT, false, out);
    count_table(page, "Episodes by the largest part of their proof sum", "by_cause", cause_names, CAUSE_COUNT, true, out);
    cause_list(page, out);
    page_helped(page, out);
    fputs("<div id=\"refusals-detail\"></div></section>\n", out);
}

/* --- options ------------------------------------------------------------------------------------------ */

static bool varies(const struct page *page, const char *key)
{
    for (size_t i = 0; i < page->varying_count; i++) {
        if (strcmp(page->varying[i], key) == 0) return true;
    }
    return false;
}

static void code_cell(const struct result *r, const char *key, FILE *out)
{
    char number[PLOT_NUMBER_BYTES];
    fputs("<td><code>", out);
    html_text(plot_text(result_find(r, key), number, sizeof number), out);
    fputs("</code></td>", out);
}

static void options_varying(const struct page *page, FILE *out)
{
    size_t shown = page->rows.count < PAGE_STATIC_ROWS ? page->rows.count : PAGE_STATIC_ROWS;
    open_table("Options that differ", shown, out);
    fputs("<table><caption>Options in which the results differ", out);
    if (shown < page->rows.count) fprintf(out, " (the first %zu results)", shown);
    fputs("</caption><thead><tr><th scope=\"col\">result</th>", out);
    for (size_t v = 0; v < page->varying_count; v++) {
        fputs("<th scope=\"col\">", out);
        html_text(page->varying[v] + strlen("options."), out);
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
    for (size_t i = 0; i < shown; i++) {
        fputs("<tr><th scope=\"row\">", out);
        html_text(page->labels[i], out);
        fputs("</th>", out);
        for (size_t v = 0; v < page->varying_count; v++) code_cell(page->rows.rows[i].result, page->varying[v], out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

void page_options(const struct page *page, FILE *out)
{
    static const char *const made_with[] = {"version", "rules", "scheduler", "step_time", "trace", "trace_checksum", "seed"};
    const struct result *first = page->rows.rows[0].result;
    fputs("<section id=\"options\" aria-labelledby=\"options-title\"><h2 id=\"options-title\">All options used</h2>\n", out);
    if (page->varying_count > 0) options_varying(page, out);
    open_table("Options", 0, out);
    fputs("<table><caption>Made with</caption><tbody>\n", out);
    for (size_t i = 0; page->rows.count == 1 && i < sizeof made_with / sizeof made_with[0]; i++) {
        fprintf(out, "<tr><th scope=\"row\">%s</th>", made_with[i]);
        code_cell(first, made_with[i], out);
        fputs("</tr>\n", out);
    }
    for (size_t i = 0; i < first->count; i++) {
        const char *key = first->entries[i].key;
        if (strncmp(key, "options.", 8) != 0 || varies(page, key)) continue;
        fputs("<tr><th scope=\"row\">--", out);
        html_text(key + 8, out);
        fputs("</th>", out);
        code_cell(first, key, out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div></section>\n", out);
}

void page_glossary(const struct page *page, FILE *out)
{
    (void)page;
    fputs("<section id=\"reading\" aria-labelledby=\"reading-title\"><h2 id=\"reading-title\">How to read this</h2>\n"
          "<p>At any instant each byte of the pool is in exactly one state.</p>\n<dl class=\"terms\">", out);
    for (size_t i = 0; i < sizeof glossary / sizeof glossary[0]; i++)
        fprintf(out, "<div><dt><i class=\"s-%s\" aria-hidden=\"true\"></i>%s</dt><dd>%s</dd></div>", glossary[i].name, glossary[i].name, glossary[i].words);
    fputs("</dl>\n<div id=\"thinned\"></div></section>\n", out);
}
