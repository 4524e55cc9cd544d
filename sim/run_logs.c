#include "sim/run_logs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/csv_file.h"
#include "sim/engine_core.h"

/* Where a chosen interval begins. */
#define SHORTEST_INTERVAL_NS 1000u

static struct outfile *open_log(const char *path, FILE **stream, struct err *err)
{
    struct outfile *file = outfile_open(path, err);
    if (file) *stream = outfile_stream(file);
    return file;
}

static void timeline_header(FILE *out)
{
    fputs("time_ns", out);
    for (int s = 0; s < STATE_COUNT; s++) fprintf(out, ",%s_bytes", state_names[s]);
    fputs(",running\n", out);
}

static void oom_header(FILE *out)
{
    fputs("kind,start_ns,end_ns,attempts,request,unit_bytes,ask_units,need_units,e_units,r_units,"
          "a_units,shortfall_units,ask_bytes,e_bytes,a_bytes,class",
          out);
    for (int c = CLASS_COUNT - 1; c >= 0; c--) fprintf(out, ",%s_ns", class_names[c]);
    fputs(",primary", out);
    for (int c = 0; c < CAUSE_COUNT; c++) fprintf(out, ",cause_%s_bytes", cause_names[c]);
    fputs(",number\n", out);
}

int run_logs_open(struct run_logs *logs, const char *timeline_path, uint64_t timeline_interval_ns,
                  const char *events_path, const char *oom_path, struct err *err)
{
    memset(logs, 0, sizeof *logs);
    if ((timeline_path && !(logs->timeline_file = open_log(timeline_path, &logs->timeline.out, err))) ||
        (events_path && !(logs->events_file = open_log(events_path, &logs->events, err))) ||
        (oom_path && !(logs->oom_file = open_log(oom_path, &logs->oom, err)))) {
        run_logs_abandon(logs);
        return -1;
    }
    logs->timeline.interval_ns = timeline_interval_ns ? timeline_interval_ns : SHORTEST_INTERVAL_NS;
    if (logs->timeline.out) timeline_header(logs->timeline.out);
    if (logs->timeline.out && timeline_interval_ns == 0) {
        logs->timeline.kept = malloc(TIMELINE_CHOSEN_ROWS * sizeof *logs->timeline.kept);
        if (!logs->timeline.kept) {
            run_logs_abandon(logs);
            return err_set(err, ERR_FAILED, "out of memory");
        }
    }
    if (logs->events) fputs("time_ns,event,request,a,b\n", logs->events);
    if (logs->oom) oom_header(logs->oom);
    return 0;
}

/* Integer mean, rounded to nearest. */
static uint64_t mean_of(u128 sum, uint64_t duration)
{
    return (uint64_t)((sum + duration / 2) / duration);
}

static void print_row(const struct timeline_row *row, FILE *out)
{
    uint64_t duration = row->end_ns - row->begin_ns;
    fprintf(out, "%" PRIu64, row->begin_ns);
    for (int s = 0; s < STATE_COUNT; s++) fprintf(out, ",%" PRIu64, mean_of(row->state_byte_time[s], duration));
    fprintf(out, ",%.3f\n", (double)row->running_time / (double)duration);
}

/* Ends the present row, and begins the next. */
static void timeline_row(struct run_logs *logs)
{
    struct timeline *t = &logs->timeline;
    uint64_t end = t->row.end_ns;
    if (end == t->row.begin_ns) return;
    if (t->rows == TIMELINE_ROWS_MAX) {
        logs->too_many_rows = true;
    } else {
        if (t->kept) t->kept[t->rows] = t->row;
        else print_row(&t->row, t->out);
        t->rows++;
    }
    t->row = (struct timeline_row){.begin_ns = end, .end_ns = end};
}

static void merge_rows(struct timeline_row *into, const struct timeline_row *next)
{
    for (int s = 0; s < STATE_COUNT; s++) into->state_byte_time[s] += next->state_byte_time[s];
    into->running_time += next->running_time;
    into->end_ns = next->end_ns;
}

/* The next longer interval. Rows that now share one become one, the present row among them. */
static void lengthen_interval(struct timeline *t)
{
    uint64_t rows = 0;
    t->interval_ns *= t->grow_by_5 ? 5 : 2;
    t->grow_by_5 = !t->grow_by_5;
    for (uint64_t i = 0; i < t->rows; i++) {
        const struct timeline_row row = t->kept[i];
        if (rows > 0 && t->kept[rows - 1].begin_ns / t->interval_ns == row.begin_ns / t->interval_ns) merge_rows(&t->kept[rows - 1], &row);
        else t->kept[rows++] = row;
    }
    t->rows = rows;
    if (rows > 0 && t->kept[rows - 1].begin_ns / t->interval_ns == t->row.begin_ns / t->interval_ns) {
        struct timeline_row row = t->kept[--t->rows];
        merge_rows(&row, &t->row);
        t->row = row;
    }
}

static void make_room(struct timeline *t, uint64_t end)
{
    uint64_t first = t->rows > 0 ? t->kept[0].begin_ns : t->row.begin_ns;
    while ((end - first) / t->interval_ns + 2 > TIMELINE_CHOSEN_ROWS) lengthen_interval(t);
}

static void on_stretch(void *context, const struct levels *levels, uint64_t begin, uint64_t end)
{
    struct run_logs *logs = context;
    struct timeline *t = &logs->timeline;
    if (logs->perfetto.out) perfetto_stretch(&logs->perfetto, levels, begin, end);
    if (!t->out) return;
    if (!t->started) {
        t->started = true;
        t->row.begin_ns = t->row.end_ns = begin;
    }
    if (t->kept) make_room(t, end);
    else if ((end - begin) / t->interval_ns > TIMELINE_ROWS_MAX) logs->too_many_rows = true; /* known at once */
    while (begin < end && !logs->too_many_rows) {
        uint64_t row_end = begin - begin % t->interval_ns + t->interval_ns;
        uint64_t until = end < row_end ? end : row_end;
        for (int s = 0; s < STATE_COUNT; s++) {
            t->row.state_byte_time[s] += (u128)levels->state_bytes[s] * (until - begin);
        }
        t->row.running_time += (u128)levels->running_seqs * (until - begin);
        t->row.end_ns = until;
        if (until == row_end) timeline_row(logs);
        begin = until;
    }
}

static void on_event(void *context, uint64_t time_ns, enum event_kind kind,
                     const struct sim_request *request, uint64_t a, uint64_t b)
{
    struct run_logs *logs = context;
    char name[24] = "";
    if (logs->perfetto.out) perfetto_event(&logs->perfetto, time_ns, kind, request, a, b);
    if (!logs->events) return;
    fprintf(logs->events, "%" PRIu64 ",%s,", time_ns, event_names[kind]);
    if (request) csv_write_field(sim_request_name(request, name, sizeof name), logs->events);
    fprintf(logs->events, ",%" PRIu64 ",%" PRIu64 "\n", a, b);
}

static void on_episode(void *context, const struct episode *e, const char *request, uint64_t end)
{
    struct run_logs *logs = context;
    const struct refusal_facts *f = &e->facts;
    FILE *out = logs->oom;
    fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", demand_kind_names[refusal_kind(f)], e->begin, end,
            e->attempts);
    csv_write_field(request, out);
    const uint64_t numbers[] = {f->unit_bytes, f->ask_units, f->need_units, f->e_units, f->r_units,
                                f->a_units, e->proof.shortfall_units, f->ask_units * f->unit_bytes,
                                f->e_units * f->unit_bytes, f->a_units * f->unit_bytes};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        fprintf(out, ",%" PRIu64, numbers[i]);
    }
    fprintf(out, ",%s", class_names[e->class]);
    for (int c = CLASS_COUNT - 1; c >= 0; c--) fprintf(out, ",%" PRIu64, e->time_in_class[c]);
    fprintf(out, ",%s", cause_names[e->proof.primary]);
    for (int c = 0; c < CAUSE_COUNT; c++) fprintf(out, ",%" PRIu64, (uint64_t)e->proof.parts_bytes[c]);
    fprintf(out, ",%" PRIu64 "\n", e->number);
}

void run_logs_hook(struct run_logs *logs, struct engine_hooks *hooks)
{
    if (logs->timeline.out || logs->perfetto.out) hooks->stretch = on_stretch;
    if (logs->events || logs->perfetto.out) hooks->event = on_event;
    if (logs->oom) hooks->episode = on_episode;
}

int run_logs_commit(struct run_logs *logs, struct err *err)
{
    struct timeline *t = &logs->timeline;
    if (t->out && t->started) timeline_row(logs);
    for (uint64_t i = 0; t->kept && i < t->rows; i++) print_row(&t->kept[i], t->out);
    free(t->kept);
    t->kept = NULL;
    if (logs->too_many_rows) {
        run_logs_abandon(logs);
        return err_set(err, ERR_USAGE,
                       "--timeline-interval: more than %u rows, expected a longer interval",
                       TIMELINE_ROWS_MAX);
    }
    if (perfetto_commit(&logs->perfetto, err)) {
        run_logs_abandon(logs);
        return -1;
    }
    struct outfile **files[] = {&logs->timeline_file, &logs->events_file, &logs->oom_file};
    for (size_t i = 0; i < 3; i++) {
        struct outfile *file = *files[i];
        *files[i] = NULL;
        if (file && outfile_commit(file, err)) {
            run_logs_abandon(logs);
            return -1;
        }
    }
    return 0;
}

void run_logs_abandon(struct run_logs *logs)
{
    perfetto_abandon(&logs->perfetto);
    outfile_abandon(logs->timeline_file);
    outfile_abandon(logs->events_file);
    outfile_abandon(logs->oom_file);
    logs->timeline_file = logs->events_file = logs->oom_file = NULL;
    free(logs->timeline.kept);
    logs->timeline.kept = NULL;
}
