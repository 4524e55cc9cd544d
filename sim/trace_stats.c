#include "sim/trace_stats.h"

#include <inttypes.h>
#include <math.h>

#include "sim/result.h"

/* --- JSON ------------------------------------------------------------------------------------ */

/* An object or array under construction: knows whether a comma is due. */
struct json {
    FILE *out;
    int depth;
    bool first;
};

static void json_item(struct json *json, const char *key)
{
    fputs(json->first ? "\n" : ",\n", json->out);
    json->first = false;
    for (int i = 0; i < json->depth; i++)
        fputc(' ', json->out);
    if (key != NULL)
        fprintf(json->out, "\"%s\": ", key);
}

static void json_open(struct json *json, const char *key, char bracket)
{
    if (json->depth > 0)
        json_item(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->first = true;
}

static void json_close(struct json *json, char bracket)
{
    json->depth--;
    fputc('\n', json->out);
    for (int i = 0; i < json->depth; i++)
        fputc(' ', json->out);
    fputc(bracket, json->out);
    json->first = false;
}

static void print_u128(FILE *out, wl_u128 value)
{
    char text[40];
    size_t at = sizeof text;
    text[--at] = '\0';
    do {
        text[--at] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value > 0);
    fputs(text + at, out);
}

static void json_count(struct json *json, const char *key, wl_u128 value)
{
    json_item(json, key);
    print_u128(json->out, value);
}

static void json_real(struct json *json, const char *key, double value)
{
    json_item(json, key);
    if (!isfinite(value)) {
        fputs("null", json->out);
        return;
    }
    char text[64];
    result_format_f64(value, text, sizeof text);
    fputs(text, json->out);
}

static void json_text(struct json *json, const char *key, const char *value)
{
    json_item(json, key);
    result_write_string(value, json->out);
}

static double quotient(wl_u128 part, wl_u128 whole)
{
    return whole == 0 ? NAN : (double)part / (double)whole;
}

static double waste_ratio(const struct wl_waste *waste)
{
    return quotient(waste->allocated - waste->used, waste->allocated);
}

static void json_quantiles(struct json *json, const char *key, const struct wl_quantiles *values)
{
    json_open(json, key, '{');
    json_real(json, "mean", values->mean);
    json_real(json, "stdev", values->stdev);
    json_count(json, "min", values->min);
    json_count(json, "p50", values->p50);
    json_count(json, "p90", values->p90);
    json_count(json, "p99", values->p99);
    json_count(json, "max", values->max);
    json_count(json, "sum", values->sum);
    json_close(json, '}');
}

static void json_waste(struct json *json, const struct wl_waste *waste, bool mean)
{
    json_count(json, "allocated_slots", waste->allocated);
    json_count(json, "used_slots", waste->used);
    json_count(json, "wasted_slots", waste->allocated - waste->used);
    json_real(json, "waste_ratio", waste_ratio(waste));
    if (mean)
        json_real(json, "mean_request_waste_ratio", waste->mean_request_ratio);
}

static void json_step_average(struct json *json, const struct wl_waste *waste)
{
    json_count(json, "allocated_slot_steps", waste->allocated);
    json_count(json, "used_slot_steps", waste->used);
    json_real(json, "waste_ratio", waste_ratio(waste));
}

static void json_paged(struct json *json, const struct wl_stats *stats)
{
    json_open(json, "paged", '[');
    for (size_t i = 0; i < WL_STATS_BLOCKS; i++) {
        const struct wl_stats_paged *paged = &stats->paged[i];
        const struct wl_waste *waste = &paged->at_completion;
        json_open(json, NULL, '{');
        json_count(json, "block_size", wl_stats_block_tokens[i]);
        json_count(json, "blocks", waste->allocated / wl_stats_block_tokens[i]);
        json_waste(json, waste, true);
        json_real(json, "mean_wasted_slots_per_request",
                  quotient(waste->allocated - waste->used, stats->requests));
        json_count(json, "exact_fit_requests", paged->exact_fit_requests);
        json_count(json, "kv_written_used_slots", paged->kv_written.used);
        json_count(json, "kv_written_allocated_slots", paged->kv_written.allocated);
        json_real(json, "kv_written_waste_ratio", waste_ratio(&paged->kv_written));
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_reservation(struct json *json, const struct wl_stats_static *reserved, uint64_t accepted)
{
    char name[24];
    snprintf(name, sizeof name, "%" PRIu64, reserved->reserve_tokens);
    json_text(json, "reservation", reserved->is_trace_max ? "trace_max" : name);
    json_count(json, "reserved_slots_per_request", reserved->reserve_tokens);
    json_count(json, "accepted_requests", accepted);
}

static void json_static(struct json *json, const struct wl_stats *stats)
{
    json_open(json, "static", '[');
    for (size_t i = 0; i < WL_STATS_RESERVES; i++) {
        if (stats->reserved[i].accepted == 0)
            continue;
        json_open(json, NULL, '{');
        json_reservation(json, &stats->reserved[i], stats->reserved[i].accepted);
        json_count(json, "rejected_requests", stats->requests - stats->reserved[i].accepted);
        json_waste(json, &stats->reserved[i].at_completion, true);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_step_averages(struct json *json, const struct wl_stats *stats)
{
    json_open(json, "paged_step_average", '[');
    for (size_t i = 0; i < WL_STATS_BLOCKS; i++) {
        json_open(json, NULL, '{');
        json_count(json, "block_size", wl_stats_block_tokens[i]);
        json_step_average(json, &stats->paged[i].step_average);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_open(json, "static_step_average", '[');
    for (size_t i = 0; i < WL_STATS_RESERVES; i++) {
        if (stats->reserved[i].accepted == 0)
            continue;
        json_open(json, NULL, '{');
        json_reservation(json, &stats->reserved[i], stats->reserved[i].accepted_with_output);
        json_step_average(json, &stats->reserved[i].step_average);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void trace_stats_json(const struct wl_stats *stats, const char *name, const char *format,
                      const struct wl_summary *summary, FILE *out)
{
    struct json json = { .out = out, .first = true };
    char checksum[24];
    snprintf(checksum, sizeof checksum, "%016" PRIx64, summary->checksum);
    json_open(&json, NULL, '{');
    json_text(&json, "trace", name);
    json_text(&json, "trace_file", name);
    json_text(&json, "trace_format", format);
    json_text(&json, "trace_checksum", checksum);
    json_count(&json, "requests", stats->requests);
    json_quantiles(&json, "input_tokens", &stats->input);
    json_quantiles(&json, "output_tokens", &stats->output);
    json_quantiles(&json, "total_tokens", &stats->total);
    json_paged(&json, stats);
    json_static(&json, stats);
    json_open(&json, "pow2_total", '{');
    json_waste(&json, &stats->pow2_total, true);
    json_close(&json, '}');
    json_open(&json, "pow2_output", '{');
    json_waste(&json, &stats->pow2_output, false);
    json_close(&json, '}');
    json_step_averages(&json, stats);
    json_close(&json, '}');
    fputc('\n', out);
}

/* --- the table for people -------------------------------------------------------------------- */

static void table_quantiles(const char *name, const struct wl_quantiles *values, FILE *out)
{
    fprintf(out, "%-14s %10.1f %10.1f %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64
            "\n", name, values->mean, values->stdev, values->min, values->p50, values->p90,
            values->p99, values->max);
}

static void table_percent(double share, FILE *out)
{
    if (isfinite(share))
        fprintf(out, " %9.2f %%", 100 * share);
    else
        fprintf(out, " %11s", "-");
}

static void table_arrivals(const struct wl_stats *stats, const struct wl_summary *summary, FILE *out)
{
    if (!summary->has_arrivals) {
        fprintf(out, "arrivals       none in the trace (lengths only)\n");
        return;
    }
    double span_s = (double)(summary->last_arrival_ns - summary->first_arrival_ns) * 1e-9;
    fprintf(out, "arrivals       %.3f s from first to last", span_s);
    if (span_s > 0)
        fprintf(out, ", %.4g requests/s", (double)(stats->requests - 1) / span_s);
    if (isfinite(stats->interarrival_cv))
        fprintf(out, ", gaps with a coefficient of variation of %.3g", stats->interarrival_cv);
    fputc('\n', out);
}

static void table_content(const struct wl_summary *summary, FILE *out)
{
    if (!summary->has_content)
        fprintf(out, "content        none: such a trace has no hit rate\n");
    else if (summary->trace_block_tokens == 1)
        fprintf(out, "content        token by token\n");
    else
        fprintf(out, "content        hash ids of %" PRIu32 " tokens\n", summary->trace_block_tokens);
}

void trace_stats_table(const struct wl_stats *stats, const char *name, const char *format,
                       const struct wl_summary *summary, FILE *out)
{
    fprintf(out, "trace          %s (%s)\n", name, format);
    fprintf(out, "requests       %" PRIu64 "%s\n", stats->requests,
            summary->cut ? " (cut by --max-requests)" : "");
    fprintf(out, "checksum       %016" PRIx64 "\n", summary->checksum);
    table_arrivals(stats, summary, out);
    table_content(summary, out);
    fprintf(out, "\n%-14s %10s %10s %9s %9s %9s %9s %9s\n", "tokens", "mean", "stdev", "min", "p50",
            "p90", "p99", "max");
    table_quantiles("prompt", &stats->input, out);
    table_quantiles("output", &stats->output, out);
    table_quantiles("both", &stats->total, out);
    fprintf(out, "\nshare of the memory given to a request that holds no token, each alone\n");
    fprintf(out, "%-24s %11s %11s  %s\n", "", "at its end", "over life", "not served");
    for (size_t i = 0; i < WL_STATS_BLOCKS; i++) {
        fprintf(out, "blocks of %-14" PRIu32, wl_stats_block_tokens[i]);
        table_percent(waste_ratio(&stats->paged[i].at_completion), out);
        table_percent(waste_ratio(&stats->paged[i].step_average), out);
        fputc('\n', out);
    }
    for (size_t i = 0; i < WL_STATS_RESERVES; i++) {
        const struct wl_stats_static *reserved = &stats->reserved[i];
        if (reserved->accepted == 0)
            continue;
        fprintf(out, "reserving %-14" PRIu64, reserved->reserve_tokens);
        table_percent(waste_ratio(&reserved->at_completion), out);
        table_percent(waste_ratio(&reserved->step_average), out);
        fprintf(out, "  %" PRIu64 "%s\n", stats->requests - reserved->accepted,
                reserved->is_trace_max ? "  (the longest)" : "");
    }
    fprintf(out, "%-24s", "power of two, both");
    table_percent(waste_ratio(&stats->pow2_total), out);
    fprintf(out, "\n%-24s", "power of two, output");
    table_percent(waste_ratio(&stats->pow2_output), out);
    fputc('\n', out);
}
