/* Sections for what only some runs have: the device beside the pool, and what would have helped a refusal. */
#include <inttypes.h>
#include <string.h>

#include "sim/page_internal.h"

/* --- the device -------------------------------------------------------------------------------- */

static const struct { const char *key, *words; } device_rows[] = {
    {"context_bytes", "context and libraries"},
    {"weights_bytes", "weights"},
    {"residue_bytes", "what the loader left"},
    {"graphs_bytes", "captured graphs"},
    {"pool_bytes", "the KV cache’s pool"},
    {"buffers_bytes", "buffers taken late"},
    {"activation_peak_bytes", "activations, at most"},
    {"cached_peak_bytes", "kept by the framework’s allocator without use, at most"},
    {"free_min_bytes", "free, at least"},
    {"lent_peak_bytes", "lent by the pool, at most"},
};

static uint64_t device_count(const struct result *r, const char *name)
{
    char key[60];
    snprintf(key, sizeof key, "device.%s", name);
    return page_count(r, key);
}

static bool has_device(const struct result *r)
{
    return page_text(r, "device.model") != NULL;
}

static void say_device(const struct result *r, FILE *out)
{
    uint64_t ooms = device_count(r, "ooms");
    if (ooms == 0) {
        fputs("<p>The device was never out of memory.</p>\n", out);
        return;
    }
    fputs("<p><strong>The device was out of memory ", out);
    if (ooms == 1) fputs("once", out);
    else html_count(ooms, out);
    fputs(ooms == 1 ? "</strong>: at " : " times</strong>, first at ", out);
    html_seconds((double)device_count(r, "first_oom_ns"), out);
    fputs(", when ", out);
    html_bytes(device_count(r, "first_oom_ask_bytes"), out);
    fputs(" were asked for; the device had ", out);
    html_bytes(device_count(r, "first_oom_free_bytes"), out);
    fputs(" free, the framework’s allocator kept ", out);
    html_bytes(device_count(r, "first_oom_cached_bytes"), out);
    fputs(", and the pool had ", out);
    html_bytes(device_count(r, "first_oom_pool_free_bytes"), out);
    fputs(" free. ", out);
    html_count(device_count(r, "aborted"), out);
    fputs(" requests were lost.</p>\n", out);
}

static void device_of(const struct result *r, FILE *out)
{
    say_device(r, out);
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Device\"><table><caption>The device: model ", out);
    html_text(page_text(r, "device.model"), out);
    fputs(", boundary ", out);
    html_text(page_text(r, "device.boundary") ? page_text(r, "device.boundary") : "-", out);
    fputs("</caption><tbody>\n<tr><th scope=\"row\">the whole device</th><td class=\"num\">", out);
    html_bytes(device_count(r, "total_bytes"), out);
    fputs("</td></tr>\n", out);
    for (size_t i = 0; i < sizeof device_rows / sizeof device_rows[0]; i++) {
        uint64_t bytes = device_count(r, device_rows[i].key);
        if (bytes == 0) continue;
        fprintf(out, "<tr><th scope=\"row\">%s</th><td class=\"num\">", device_rows[i].words);
        html_bytes(bytes, out);
        fputs("</td></tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

/* More results than this show what they say of the device in the tables and plots alone. */
#define TOLD_MAX 8

void page_device(const struct page *page, FILE *out)
{
    size_t devices = 0;
    for (size_t i = 0; i < page->rows.count; i++) devices += has_device(page->rows.rows[i].result);
    if (devices == 0) return;
    fputs("<section id=\"device\" aria-labelledby=\"device-title\"><h2 id=\"device-title\">The device beside the pool</h2>\n", out);
    if (devices > TOLD_MAX) fprintf(out, "<p class=\"note\">The first %d of %zu results with a device.</p>\n", TOLD_MAX, devices);
    size_t told = 0;
    for (size_t i = 0; i < page->rows.count && told < TOLD_MAX; i++) {
        if (!has_device(page->rows.rows[i].result)) continue;
        if (page->rows.count > 1) {
            fputs("<h3>", out);
            html_text(page->labels[i], out);
            fputs("</h3>\n", out);
        }
        device_of(page->rows.rows[i].result, out);
        told++;
    }
    fputs("</section>\n", out);
}

/* --- what would have helped ------------------------------------------------------------------------ */

/* The part of a key between "explain.OBJECT." and the next dot; false when the key is another's. */
static bool change_of(const char *key, const char *object, const char *last, char *name, size_t bytes)
{
    char prefix[32];
    int n = snprintf(prefix, sizeof prefix, "explain.%s.", object);
    if (strncmp(key, prefix, (size_t)n) != 0) return false;
    const char *dot = strchr(key + n, '.');
    if (!dot || strcmp(dot + 1, last) != 0 || (size_t)(dot - key - n) >= bytes) return false;
    snprintf(name, bytes, "%.*s", (int)(dot - key - n), key + n);
    return true;
}

static const struct result_entry *of_change(const struct result *r, const char *object, const char *name, const char *last)
{
    char key[160];
    snprintf(key, sizeof key, "explain.%s.%s.%s", object, name, last);
    return result_find(r, key);
}

static void text_cell(const struct result_entry *entry, FILE *out)
{
    char number[PLOT_NUMBER_BYTES];
    fputs("<td>", out);
    html_text(plot_text(entry, number, sizeof number), out);
    fputs("</td>", out);
}

static void local_table(const struct result *r, FILE *out)
{
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"At the same moment\"><table><caption>At the same moment, with one change</caption>"
          "<thead><tr><th scope=\"col\">change</th><th scope=\"col\">verdict</th><th scope=\"col\">why</th></tr></thead><tbody>\n", out);
    for (size_t i = 0; i < r->count; i++) {
        char name[64];
        if (!change_of(r->entries[i].key, "local", "verdict", name, sizeof name)) continue;
        fputs("<tr><th scope=\"row\">", out);
        html_text(name, out);
        fputs("</th>", out);
        text_cell(&r->entries[i], out);
        text_cell(of_change(r, "local", name, "why"), out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

static void global_table(const struct result *r, FILE *out)
{
    static const char *const cells[] = {"value", "still_refused", "episodes", "despite_free", "requests", "preemptions", "error"};
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The whole run again\"><table class=\"sortable\"><caption>The whole run again, with another setting</caption>"
          "<thead><tr><th scope=\"col\">option</th><th scope=\"col\">value</th><th scope=\"col\">still refused</th><th scope=\"col\">episodes in all</th>"
          "<th scope=\"col\">despite free</th><th scope=\"col\">requests refused</th><th scope=\"col\">preemptions</th><th scope=\"col\">does not run</th></tr></thead><tbody>\n", out);
    for (size_t i = 0; i < r->count; i++) {
        char name[64], number[PLOT_NUMBER_BYTES];
        if (!change_of(r->entries[i].key, "global", "option", name, sizeof name)) continue;
        const struct result_entry *bound = of_change(r, "global", name, "clairvoyant");
        fputs("<tr><th scope=\"row\">--", out);
        html_text(plot_text(&r->entries[i], number, sizeof number), out);
        fputs(bound && bound->kind == RESULT_BOOL && bound->yes ? " <small>(a bound)</small></th>" : "</th>", out);
        for (size_t c = 0; c < sizeof cells / sizeof cells[0]; c++) text_cell(of_change(r, "global", name, cells[c]), out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

static void helped(const struct result *r, FILE *out)
{
    const char *cheapest = page_text(r, "explain.cheapest"), *primary = page_text(r, "explain.refusal.primary");
    fputs("<p>Refusal ", out);
    html_count(page_count(r, "explain.refusal.number"), out);
    fputs(", of the request on line ", out);
    html_count(page_count(r, "explain.refusal.request_line"), out);
    fputs(" of the trace: ", out);
    html_count(page_count(r, "explain.refusal.ask_units"), out);
    fputs(" units were asked for, ", out);
    html_count(page_count(r, "explain.refusal.a_units"), out);
    fputs(" could be had. In the way stood most of all <em>", out);
    html_text(primary ? primary : "-", out);
    fputs(cheapest ? "</em>. The cheapest change that helps: <strong>" : "</em>. None of these changes helps", out);
    if (cheapest) html_text(cheapest, out);
    fputs(cheapest ? "</strong>.</p>\n" : ".</p>\n", out);
    local_table(r, out);
    global_table(r, out);
}

void page_helped(const struct page *page, FILE *out)
{
    size_t told = 0;
    for (size_t i = 0; i < page->rows.count && told < TOLD_MAX; i++) {
        const struct result *r = page->rows.rows[i].result;
        if (page_number(r, "explain.found", 0) <= 0) continue;
        if (told++ == 0) fputs("<h3>What would have helped</h3>\n", out);
        if (page->rows.count > 1) {
            fputs("<p><strong>", out);
            html_text(page->labels[i], out);
            fputs("</strong></p>\n", out);
        }
        helped(r, out);
    }
}
