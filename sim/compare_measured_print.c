/* Simulated beside measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/compare.h"
#include "sim/compare_measured.h"

/* Metrics whose label sets are many are named once. */
static bool named_before(const struct measured *m, size_t i)
{
    return i > 0 && strcmp(m->samples[i - 1].name, m->samples[i].name) == 0;
}

static size_t unmatched(const struct measured *m)
{
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++) count += !m->samples[i].matched;
    return count;
}

static void measured_text(const struct measured_row *row, char *out, size_t bytes)
{
    char low[32], high[32];
    compare_number(row->key, row->low, false, low, sizeof low);
    compare_number(row->key, row->high, false, high, sizeof high);
    if (isinf(row->high)) snprintf(out, bytes, "above %s", low);
    else if (row->low < row->high) snprintf(out, bytes, "%s .. %s", low, high);
    else snprintf(out, bytes, "%s", high);
}

static double relative(const struct measured_row *row)
{
    double from = row->difference > 0 ? row->high : row->low;
    return row->difference == 0 ? 0 : from != 0 ? row->difference / fabs(from) : NAN;
}

static void row_line(const struct measured_row *row, FILE *out)
{
    char name[128], measured[80], simulated[32], difference[32], share[32];
    snprintf(name, sizeof name, "%.90s%s%s", row->name, row->part[0] ? " " : "", row->part);
    measured_text(row, measured, sizeof measured);
    compare_number(row->key, row->simulated, false, simulated, sizeof simulated);
    compare_number(row->key, row->difference, true, difference, sizeof difference);
    if (isnan(relative(row)) || isnan(row->difference)) snprintf(share, sizeof share, "-");
    else snprintf(share, sizeof share, "%+.2f %%", relative(row) * 100);
    bool bucket = row->low < row->high && row->difference == 0;
    fprintf(out, "%-54s %20s  %-22s %12s %12s %11s\n", name, measured, row->key, simulated, bucket ? "inside" : difference,
            bucket ? "" : share);
}

static void notes(const struct measured_row *rows, size_t count, FILE *out)
{
    for (size_t i = 0; i < count; i++) {
        bool told = false;
        for (size_t k = 0; k < i; k++) told = told || (rows[k].note && rows[i].note && strcmp(rows[k].note, rows[i].note) == 0);
        if (!rows[i].note || told) continue;
        fprintf(out, "%s: ", rows[i].note);
        bool first = true;
        for (size_t k = i; k < count; k++) {
            bool same_name = k > i && strcmp(rows[k].name, rows[k - 1].name) == 0;
            if (!rows[k].note || strcmp(rows[k].note, rows[i].note) != 0 || (same_name && !first)) continue;
            fprintf(out, "%s%s", first ? "" : ", ", rows[k].name);
            first = false;
        }
        fputc('\n', out);
    }
}

void measured_print_table(const char *simulated, const char *path, const struct measured *measured, const struct measured_row *rows,
                          size_t count, FILE *out)
{
    fprintf(out, "simulated  %s\nmeasured   %s\n\n%-54s %20s  %-22s %12s %12s %11s\n", simulated, path, "", "measured", "", "simulated",
            "sim - meas", "relative");
    for (size_t i = 0; i < count; i++) row_line(&rows[i], out);
    notes(rows, count, out);
    if (unmatched(measured) > 0) fputs("\nmeasured, without a counterpart:\n", out);
    for (size_t i = 0; i < measured->count; i++) {
        const struct measured_sample *s = &measured->samples[i];
        if (s->matched || named_before(measured, i)) continue;
        size_t sets = 1;
        while (i + sets < measured->count && strcmp(measured->samples[i + sets].name, s->name) == 0) sets++;
        if (sets > 1) fprintf(out, "  %-54s %zu values\n", s->name, sets);
        else fprintf(out, "  %-54s %.6g\n", s->name, s->value);
    }
    if (measured->left_out > 0) fprintf(out, "  %zu entries that are texts or lists\n", measured->left_out);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void write_number(double value, FILE *out)
{
    char text[40];
    result_format_f64(value, text, sizeof text);
    fputs(isfinite(value) ? text : "null", out);
}

static void write_row(const struct measured_row *row, FILE *out)
{
    const struct {
        const char *name;
        double value;
    } values[] = {{"measured_low", row->low}, {"measured_high", row->high}, {"simulated", row->simulated},
                  {"difference", row->difference}, {"relative", relative(row)}};
    fputs("    {\"name\": ", out);
    result_write_string(row->name, out);
    fprintf(out, ", \"part\": \"%s\", \"key\": ", row->part);
    result_write_string(row->key, out);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        fprintf(out, ", \"%s\": ", values[i].name);
        write_number(values[i].value, out);
    }
    fputs(", \"note\": ", out);
    if (row->note) result_write_string(row->note, out);
    else fputs("null", out);
    fputc('}', out);
}

void measured_print_json(const char *simulated, const char *path, const struct measured *measured, const struct measured_row *rows,
                         size_t count, FILE *out)
{
    fputs("{\n  \"version\": \"" PAGESIM_VERSION "\",\n  \"simulated\": ", out);
    result_write_string(simulated, out);
    fputs(",\n  \"measured\": ", out);
    result_write_string(path, out);
    fputs(",\n  \"rows\": [\n", out);
    for (size_t i = 0; i < count; i++) {
        write_row(&rows[i], out);
        fputs(i + 1 < count ? ",\n" : "\n", out);
    }
    fputs("  ],\n  \"no_counterpart\": [\n", out);
    bool first = true;
    for (size_t i = 0; i < measured->count; i++) {
        const struct measured_sample *s = &measured->samples[i];
        if (s->matched) continue;
        fputs(first ? "    {\"name\": " : ",\n    {\"name\": ", out);
        result_write_string(s->name, out);
        fputs(", \"labels\": ", out);
        result_write_string(s->labels, out);
        fputs(", \"value\": ", out);
        write_number(s->value, out);
        fputc('}', out);
        first = false;
    }
    fprintf(out, "%s  ],\n  \"left_out\": %zu\n}\n", first ? "" : "\n", measured->left_out);
}
