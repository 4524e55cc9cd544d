/* The timeline of a run, thinned to what a screen can show: a point is the mean of its rows over time, with the smallest
 * and the largest of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/csv_file.h"
#include "sim/page_digest.h"

enum { TIME, FIRST_STATE, RUNNING = FIRST_STATE + STATE_COUNT, FIELDS };
/* Values of a row: states in bytes, then running in thousandths. */
#define VALUES (STATE_COUNT + 1)

struct row {
    uint64_t time_ns, value[VALUES];
};

struct point {
    uint64_t time_ns, duration_ns, rows;
    u128 sum[VALUES]; /* over time */
    uint64_t min[VALUES], max[VALUES];
};

struct timeline_digest {
    struct point *points;
    size_t count, capacity;
    uint64_t rows, rows_per_point;
};

static void point_add(struct point *p, const struct row *row, uint64_t duration_ns)
{
    if (p->rows == 0) p->time_ns = row->time_ns;
    for (int v = 0; v < VALUES; v++) {
        p->sum[v] += (u128)row->value[v] * duration_ns;
        if (p->rows == 0 || row->value[v] < p->min[v]) p->min[v] = row->value[v];
        if (p->rows == 0 || row->value[v] > p->max[v]) p->max[v] = row->value[v];
    }
    p->duration_ns += duration_ns;
    p->rows++;
}

static void point_merge(struct point *a, const struct point *b)
{
    for (int v = 0; v < VALUES; v++) {
        a->sum[v] += b->sum[v];
        if (b->min[v] < a->min[v]) a->min[v] = b->min[v];
        if (b->max[v] > a->max[v]) a->max[v] = b->max[v];
    }
    a->duration_ns += b->duration_ns;
    a->rows += b->rows;
}

static void halve(struct timeline_digest *t)
{
    for (size_t i = 0; i < t->count / 2; i++) {
        struct point merged = t->points[2 * i];
        point_merge(&merged, &t->points[2 * i + 1]);
        t->points[i] = merged;
    }
    t->count /= 2; /* it was full, and its capacity is even */
    t->rows_per_point *= 2;
}

static void add_row(struct timeline_digest *t, const struct row *row, uint64_t duration_ns)
{
    if (t->count == 0 || t->points[t->count - 1].rows == t->rows_per_point) {
        if (t->count == t->capacity) halve(t);
        memset(&t->points[t->count++], 0, sizeof t->points[0]);
    }
    point_add(&t->points[t->count - 1], row, duration_ns);
    t->rows++;
}

static int read_row(struct csv_file *file, struct row *row)
{
    if (csv_file_u64(file, TIME, &row->time_ns)) return -1;
    for (int s = 0; s < STATE_COUNT; s++) {
        if (csv_file_u64(file, (size_t)(FIRST_STATE + s), &row->value[s])) return -1;
    }
    return csv_file_milli(file, RUNNING, &row->value[STATE_COUNT]);
}

/* A row lasts until the next; the last one as long as the one before it. */
static int read_rows(struct timeline_digest *t, struct csv_file *file, struct err *err)
{
    struct row row, last = {0};
    uint64_t duration_ns = 1;
    bool any = false;
    int got;
    while ((got = csv_file_next(file, err)) > 0) {
        if (read_row(file, &row)) return -1;
        if (any && row.time_ns <= last.time_ns)
            return wl_line_error(&file->line, NULL, "time_ns", "found %" PRIu64 ", expected a later time than the row before", row.time_ns);
        if (any) add_row(t, &last, duration_ns = row.time_ns - last.time_ns);
        last = row;
        any = true;
    }
    if (got == 0 && any) add_row(t, &last, duration_ns);
    return got;
}

static uint64_t mean_of(const struct point *p, int v)
{
    return (uint64_t)((p->sum[v] + p->duration_ns / 2) / p->duration_ns);
}

enum column { MEAN, MIN, MAX };

/* Thousandths are written as decimals, which is what `scale` is for. */
static void write_column(const struct timeline_digest *t, const char *name, int v, enum column column, FILE *json)
{
    fprintf(json, "\"%s\":[", name);
    for (size_t i = 0; i < t->count; i++) {
        const struct point *p = &t->points[i];
        uint64_t value = column == MEAN ? mean_of(p, v) : column == MIN ? p->min[v] : p->max[v];
        if (v < STATE_COUNT) fprintf(json, "%s%" PRIu64, i ? "," : "", value);
        else fprintf(json, "%s%" PRIu64 ".%03" PRIu64, i ? "," : "", value / 1000, value % 1000);
    }
    fputc(']', json);
}

static bool is_zero(const struct timeline_digest *t, int v)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->points[i].max[v] > 0) return false;
    }
    return true;
}

static void write_json(const struct timeline_digest *t, FILE *json)
{
    fprintf(json, "{\"rows\":%" PRIu64 ",\"rows_per_point\":%" PRIu64 ",\"time_ns\":[", t->rows, t->rows_per_point);
    for (size_t i = 0; i < t->count; i++) fprintf(json, "%s%" PRIu64, i ? "," : "", t->points[i].time_ns);
    const struct point *last = t->count ? &t->points[t->count - 1] : NULL;
    fprintf(json, "],\"end_ns\":%" PRIu64 ",\"values\":{", last ? last->time_ns + last->duration_ns : 0);
    const char *comma = "";
    for (int v = 0; v < VALUES; v++) {
        if (v < STATE_COUNT && is_zero(t, v)) continue;
        fprintf(json, "%s\"%s\":{", comma, v < STATE_COUNT ? state_names[v] : "running");
        write_column(t, "mean", v, MEAN, json);
        if (t->rows_per_point > 1) {
            fputc(',', json);
            write_column(t, "min", v, MIN, json);
            fputc(',', json);
            write_column(t, "max", v, MAX, json);
        }
        fputc('}', json);
        comma = ",";
    }
    fputs("}}", json);
}

int digest_timeline(const char *path, size_t runs, FILE *json, struct err *err)
{
    char columns[FIELDS][32];
    const char *names[FIELDS];
    snprintf(columns[TIME], sizeof columns[0], "time_ns");
    for (int s = 0; s < STATE_COUNT; s++) snprintf(columns[FIRST_STATE + s], sizeof columns[0], "%s_bytes", state_names[s]);
    snprintf(columns[RUNNING], sizeof columns[0], "running");
    for (int i = 0; i < FIELDS; i++) names[i] = columns[i];
    struct csv_file file;
    struct timeline_digest t = {.capacity = digest_points(runs), .rows_per_point = 1};
    t.points = calloc(t.capacity, sizeof *t.points);
    int status = t.points ? csv_file_open(&file, path, names, FIELDS, err) : err_set(err, ERR_FAILED, "out of memory");
    if (t.points) {
        if (status == 0) status = read_rows(&t, &file, err);
        csv_file_close(&file);
    }
    if (status == 0) write_json(&t, json);
    free(t.points);
    return status;
}
