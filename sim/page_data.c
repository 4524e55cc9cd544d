/* The JSON value that the page's script draws from. */
#include <inttypes.h>
#include <string.h>

#include "sim/accounting.h"
#include "sim/page_digest.h"
#include "sim/page_internal.h"
#include "sim/refusals.h"

/* What the plots of several results can show, if any of them has it. Latencies stay in nanoseconds. */
static const char *const figures[] = {
    "utilization", "kv_usage", "internal_fragmentation", "reservation_waste", "external_fragmentation", "largest_run_index",
    "hit_rate_tokens", "host_tier.hit_rate_tokens", "host_tier.transfer_ns", "saving_by_sharing", "running.mean", "running.max", "refusals.episodes", "refusals.requests",
    "refusals.by_class.despite_free", "refusals.by_class.despite_unused", "refusals.by_class.capacity",
    "head_refused_though_free.time", "preemptions", "evictions", "units_allocated", "requests", "finished", "unservable",
    "ttft_ns.p50", "ttft_ns.p99", "tpot_ns.p50", "tpot_ns.p99", "e2e_ns.p50", "e2e_ns.p99", "output_tokens_per_s",
};
#define FIGURES (sizeof figures / sizeof figures[0])

struct shown {
    const char *names[FIGURES];
    size_t count;
};

static struct shown shown_figures(const struct page *page)
{
    struct shown shown = {.count = 0};
    for (size_t f = 0; f < FIGURES; f++) {
        size_t i = 0;
        while (i < page->rows.count && !result_find(page->rows.rows[i].result, figures[f])) i++;
        if (i < page->rows.count) shown.names[shown.count++] = figures[f];
    }
    return shown;
}

static void write_value(const struct result_entry *entry, FILE *json)
{
    char number[PLOT_NUMBER_BYTES];
    double value;
    if (entry && entry->kind == RESULT_TEXT) result_write_string(entry->text, json);
    else if (entry && entry->kind == RESULT_BOOL) fputs(entry->yes ? "true" : "false", json);
    else if (entry && result_number(entry, &value)) fputs(plot_text(entry, number, sizeof number), json);
    else fputs("null", json);
}

static void write_strings(const char *name, const char *const *texts, size_t count, size_t skip, FILE *json)
{
    fprintf(json, "\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i) fputc(',', json);
        result_write_string(texts[i] + skip, json);
    }
    fputs("],\n", json);
}

static void write_run(const struct page *page, size_t i, const struct shown *shown, FILE *json)
{
    const struct plot_row *row = &page->rows.rows[i];
    const struct result *r = row->result;
    fputs("{\"label\":", json);
    result_write_string(page->labels[i], json);
    fputs(",\"series\":", json);
    result_write_string(row->series, json);
    fprintf(json, ",\"flat\":%s,\"bound\":%s,\"pool_bytes\":%" PRIu64 ",\"states\":", row->flat ? "true" : "false",
            page_number(r, "clairvoyant", 0) > 0 ? "true" : "false", page_count(r, "pool_bytes"));
    if (page_has_states(r)) {
        for (int s = 0; s < STATE_COUNT; s++) {
            char key[48];
            snprintf(key, sizeof key, "states.%s", state_names[s]);
            fputc(s ? ',' : '[', json);
            write_value(result_find(r, key), json);
        }
        fputc(']', json);
    } else {
        fputs("null", json);
    }
    fputs(",\"figures\":[", json);
    for (size_t f = 0; f < shown->count; f++) {
        if (f) fputc(',', json);
        write_value(result_find(r, shown->names[f]), json);
    }
    fputs("],\"options\":[", json);
    for (size_t v = 0; v < page->varying_count; v++) {
        if (v) fputc(',', json);
        write_value(result_find(r, page->varying[v]), json);
    }
    fputs("]}", json);
}

static int (*const digests[DETAIL_COUNT])(const char *, size_t, FILE *, struct err *) = {
    [DETAIL_TIMELINE] = digest_timeline, [DETAIL_EVENTS] = digest_events, [DETAIL_OOM_LOG] = digest_refusals, [DETAIL_MAP] = digest_map};

static const struct page_files *files_of(const struct page *page, size_t i)
{
    return &page->in->files[page->rows.rows[i].result - page->in->results];
}

static bool has_details(const struct page_files *files)
{
    for (int d = 0; d < DETAIL_COUNT; d++) {
        if (files->path[d]) return true;
    }
    return false;
}

static int write_details(const struct page *page, size_t i, size_t detailed, FILE *json, struct err *err)
{
    const struct page_files *files = files_of(page, i);
    fprintf(json, "{\"run\":%zu", i);
    for (int d = 0; d < DETAIL_COUNT; d++) {
        if (!files->path[d]) continue;
        fprintf(json, ",\n\"%s\":", page_detail_options[d]);
        if (digests[d](files->path[d], detailed, json, err)) return -1;
    }
    fputc('}', json);
    return 0;
}

int page_data(const struct page *page, FILE *json, struct err *err)
{
    size_t detailed = 0;
    for (size_t i = 0; i < page->rows.count; i++) detailed += has_details(files_of(page, i));
    if (detailed > PAGE_DETAILED_MAX)
        return err_set(err, ERR_USAGE, "found detail files of %zu results, expected at most %u in one report", detailed, PAGE_DETAILED_MAX);
    struct shown shown = shown_figures(page);
    fputs("{", json);
    write_strings("state_names", state_names, STATE_COUNT, 0, json);
    write_strings("class_names", class_names, CLASS_COUNT, 0, json);
    write_strings("figure_names", shown.names, shown.count, 0, json);
    write_strings("option_names", page->varying, page->varying_count, strlen("options."), json);
    fputs("\"cause_words\":{", json);
    for (int c = 0; c < CAUSE_COUNT; c++) {
        fprintf(json, "%s\"%s\":", c ? "," : "", cause_names[c]);
        result_write_string(page_cause_words(c), json);
    }
    fputs("},\n\"runs\":[", json);
    for (size_t i = 0; i < page->rows.count; i++) {
        if (i) fputs(",\n", json);
        write_run(page, i, &shown, json);
    }
    fputs("],\n\"details\":[", json);
    const char *comma = "";
    for (size_t i = 0; i < page->rows.count; i++) {
        if (!has_details(files_of(page, i))) continue;
        fputs(comma, json);
        if (write_details(page, i, detailed, json, err)) return -1;
        comma = ",\n";
    }
    fputs("]}", json);
    return 0;
}
