/* The refusals of a run: sums by class and primary cause, counts over time, and the longest episodes with their proof
 * sums. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/csv_file.h"
#include "sim/page_digest.h"
#include "sim/refusals.h"
#include "sim/result.h"

enum { KIND, START, END, ATTEMPTS, REQUEST, UNIT_BYTES, ASK, NEED, E, R, A, CLASS, PRIMARY, NUMBER, FIRST_CAUSE,
       FIELDS = FIRST_CAUSE + CAUSE_COUNT };
static const char *const plain_names[FIRST_CAUSE] = {
    "kind", "start_ns", "end_ns", "attempts", "request", "unit_bytes", "ask_units", "need_units",
    "e_units", "r_units", "a_units", "class", "primary", "number"};

#define NAME_BYTES 128

struct row {
    uint64_t start_ns, end_ns, attempts, number;
    uint64_t unit_bytes, ask_units, need_units, e_units, r_units, a_units;
    uint64_t parts_bytes[CAUSE_COUNT];
    uint64_t shortfall_bytes;
    size_t kind, class, primary;
    char request[NAME_BYTES]; /* more than is shown of it */
};

struct group {
    uint64_t episodes;
    u128 shortfall_bytes, duration_ns, parts_bytes[CAUSE_COUNT];
};

struct refusals_digest {
    struct group groups[CLASS_COUNT][CAUSE_COUNT]; /* by class and primary cause */
    /* Episodes that the page lists: those that lasted longest, of equal ones those that missed most. */
    struct row *kept;
    size_t kept_count, shown_max; /* up to twice as many are kept */
    uint64_t rows;
    uint64_t (*spans)[CLASS_COUNT]; /* episodes that began in each */
    size_t count, capacity;
    uint64_t width_ns; /* spans begin at time 0: rows are in order of their end */
};

static uint64_t duration_of(const struct row *r)
{
    return r->end_ns - r->start_ns;
}

static int longest_first(const void *a_, const void *b_)
{
    const struct row *a = a_, *b = b_;
    if (duration_of(a) != duration_of(b)) return duration_of(a) > duration_of(b) ? -1 : 1;
    if (a->shortfall_bytes != b->shortfall_bytes) return a->shortfall_bytes > b->shortfall_bytes ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static void keep(struct refusals_digest *d, const struct row *row)
{
    if (d->kept_count == 2 * d->shown_max) {
        qsort(d->kept, d->kept_count, sizeof *d->kept, longest_first);
        d->kept_count = d->shown_max;
    }
    d->kept[d->kept_count++] = *row;
}

static void count_span(struct refusals_digest *d, const struct row *row)
{
    while (row->start_ns / d->width_ns >= d->capacity) {
        for (size_t i = 0; i < d->capacity / 2; i++) {
            for (int c = 0; c < CLASS_COUNT; c++) d->spans[i][c] = d->spans[2 * i][c] + d->spans[2 * i + 1][c];
        }
        memset(d->spans + d->capacity / 2, 0, d->capacity / 2 * sizeof *d->spans);
        d->width_ns *= 2;
        d->count = (d->count + 1) / 2;
    }
    size_t i = (size_t)(row->start_ns / d->width_ns);
    d->spans[i][row->class]++;
    if (i >= d->count) d->count = i + 1;
}

static int read_row(struct csv_file *file, struct row *row)
{
    const struct {
        size_t name;
        uint64_t *value;
    } counts[] = {{START, &row->start_ns}, {END, &row->end_ns}, {ATTEMPTS, &row->attempts}, {NUMBER, &row->number},
                  {UNIT_BYTES, &row->unit_bytes}, {ASK, &row->ask_units}, {NEED, &row->need_units},
                  {E, &row->e_units}, {R, &row->r_units}, {A, &row->a_units}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (csv_file_u64(file, counts[i].name, counts[i].value)) return -1;
    }
    row->shortfall_bytes = 0;
    for (int c = 0; c < CAUSE_COUNT; c++) {
        if (csv_file_u64(file, (size_t)(FIRST_CAUSE + c), &row->parts_bytes[c])) return -1;
        row->shortfall_bytes += row->parts_bytes[c];
    }
    if (csv_file_word(file, KIND, demand_kind_names, REFUSAL_KINDS, &row->kind) ||
        csv_file_word(file, CLASS, class_names, CLASS_COUNT, &row->class) ||
        csv_file_word(file, PRIMARY, cause_names, CAUSE_COUNT, &row->primary)) {
        return -1;
    }
    if (row->end_ns < row->start_ns)
        return wl_line_error(&file->line, NULL, "end_ns", "found %" PRIu64 ", expected no earlier time than start_ns", row->end_ns);
    snprintf(row->request, sizeof row->request, "%s", csv_file_text(file, REQUEST));
    return 0;
}

static void add_row(struct refusals_digest *d, const struct row *row)
{
    struct group *g = &d->groups[row->class][row->primary];
    g->episodes++;
    g->shortfall_bytes += row->shortfall_bytes;
    g->duration_ns += duration_of(row);
    for (int c = 0; c < CAUSE_COUNT; c++) g->parts_bytes[c] += row->parts_bytes[c];
    d->rows++;
    keep(d, row);
    count_span(d, row);
}

#define NAME_SHOWN_BYTES 100

void digest_name(const char *name, FILE *json)
{
    char cut[NAME_SHOWN_BYTES + 4];
    size_t bytes = strlen(name), end = NAME_SHOWN_BYTES;
    if (bytes > NAME_SHOWN_BYTES) {
        while (end > 0 && ((unsigned char)name[end] & 0xc0) == 0x80) end--; /* between two characters */
        memcpy(cut, name, end);
        memcpy(cut + end, "…", sizeof "…");
        name = cut;
    }
    result_write_string(name, json);
}

void digest_sum(u128 value, FILE *json)
{
    if (value <= INT64_MAX) fprintf(json, "%" PRIu64, (uint64_t)value);
    else fprintf(json, "%.17g", (double)value);
}

static void write_groups(const struct refusals_digest *d, FILE *json)
{
    const char *comma = "";
    for (int c = CLASS_COUNT - 1; c >= 0; c--) {
        for (int p = 0; p < CAUSE_COUNT; p++) {
            const struct group *g = &d->groups[c][p];
            if (g->episodes == 0) continue;
            fprintf(json, "%s{\"class\":\"%s\",\"primary\":\"%s\",\"episodes\":%" PRIu64 ",\"shortfall_bytes\":", comma, class_names[c],
                    cause_names[p], g->episodes);
            digest_sum(g->shortfall_bytes, json);
            fputs(",\"duration_ns\":", json);
            digest_sum(g->duration_ns, json);
            fputs(",\"parts\":{", json);
            const char *part_comma = "";
            for (int k = 0; k < CAUSE_COUNT; k++) {
                if (g->parts_bytes[k] == 0) continue;
                fprintf(json, "%s\"%s\":", part_comma, cause_names[k]);
                digest_sum(g->parts_bytes[k], json);
                part_comma = ",";
            }
            fputs("}}", json);
            comma = ",";
        }
    }
}

static void write_episode(const struct row *r, FILE *json)
{
    fprintf(json, "{\"number\":%" PRIu64 ",\"kind\":\"%s\",\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 ",\"attempts\":%" PRIu64 ",\"request\":",
            r->number, demand_kind_names[r->kind], r->start_ns, r->end_ns, r->attempts);
    digest_name(r->request, json);
    fprintf(json, ",\"class\":\"%s\",\"primary\":\"%s\",\"unit_bytes\":%" PRIu64 ",\"ask\":%" PRIu64 ",\"need\":%" PRIu64 ",\"e\":%" PRIu64
            ",\"r\":%" PRIu64 ",\"a\":%" PRIu64 ",\"parts\":{",
            class_names[r->class], cause_names[r->primary], r->unit_bytes, r->ask_units, r->need_units, r->e_units, r->r_units, r->a_units);
    const char *comma = "";
    for (int c = 0; c < CAUSE_COUNT; c++) {
        if (r->parts_bytes[c] == 0) continue;
        fprintf(json, "%s\"%s\":%" PRIu64, comma, cause_names[c], r->parts_bytes[c]);
        comma = ",";
    }
    fputs("}}", json);
}

static void write_json(struct refusals_digest *d, FILE *json)
{
    fprintf(json, "{\"episodes\":%" PRIu64 ",\"groups\":[", d->rows);
    write_groups(d, json);
    fprintf(json, "],\"width_ns\":%" PRIu64 ",\"counts\":{", d->width_ns);
    for (int c = CLASS_COUNT - 1; c >= 0; c--) {
        fprintf(json, "\"%s\":[", class_names[c]);
        for (size_t i = 0; i < d->count; i++) fprintf(json, "%s%" PRIu64, i ? "," : "", d->spans[i][c]);
        fputs(c ? "]," : "]", json);
    }
    if (d->kept_count > 0) qsort(d->kept, d->kept_count, sizeof *d->kept, longest_first);
    fputs("},\"shown\":[", json);
    for (size_t i = 0; i < d->kept_count && i < d->shown_max; i++) {
        if (i) fputc(',', json);
        write_episode(&d->kept[i], json);
    }
    fputs("]}", json);
}

static int read_all(struct refusals_digest *d, struct csv_file *file, const char *path, struct err *err)
{
    char columns[CAUSE_COUNT][64];
    const char *names[FIELDS];
    struct row row;
    int got;
    for (int i = 0; i < FIRST_CAUSE; i++) names[i] = plain_names[i];
    for (int c = 0; c < CAUSE_COUNT; c++) {
        snprintf(columns[c], sizeof columns[c], "cause_%s_bytes", cause_names[c]);
        names[FIRST_CAUSE + c] = columns[c];
    }
    if (csv_file_open(file, path, names, FIELDS, err)) return -1;
    while ((got = csv_file_next(file, err)) > 0) {
        if (read_row(file, &row)) return -1;
        add_row(d, &row);
    }
    return got;
}

int digest_refusals(const char *path, size_t runs, FILE *json, struct err *err)
{
    struct csv_file file = {0};
    struct refusals_digest *d = calloc(1, sizeof *d);
    if (d) {
        *d = (struct refusals_digest){.capacity = digest_points(runs), .shown_max = digest_rows(runs), .width_ns = 1000};
        d->kept = calloc(2 * d->shown_max, sizeof *d->kept);
        d->spans = calloc(d->capacity, sizeof *d->spans);
    }
    int status = d && d->kept && d->spans ? read_all(d, &file, path, err) : err_set(err, ERR_FAILED, "out of memory");
    if (status == 0) write_json(d, json);
    csv_file_close(&file);
    if (d) {
        free(d->kept);
        free(d->spans);
    }
    free(d);
    return status;
}
