/* The events of a run: how many of each kind, and how many requests waited and ran, in equal spans of time; and the
 * requests that took longest from their arrival to their end. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "sim/csv_file.h"
#include "sim/engine.h"
#include "sim/id_index.h"
#include "sim/page_digest.h"

enum { TIME, EVENT, REQUEST, A, B, FIELDS };
static const char *const field_names[FIELDS] = {"time_ns", "event", "request", "a", "b"};

enum place { PLACE_NONE, PLACE_WAITING, PLACE_RUNNING, PLACE_COUNT };
static const char *const place_names[PLACE_COUNT] = {"", "waiting", "running"};

struct span {
    uint64_t count[EVENT_KIND_COUNT];
    uint64_t min[PLACE_COUNT], max[PLACE_COUNT];
};

struct history {
    size_t name_at; /* in names */
    uint64_t prompt_tokens, output_tokens;
    uint64_t arrive_ns, admit_ns, first_token_ns, end_ns; /* UINT64_MAX: it did not come to that */
    uint64_t preemptions;
    enum place place;
    enum event_kind end;
};

struct events_digest {
    struct span *spans;
    size_t count, capacity, shown_max;
    uint64_t begin_ns, width_ns, rows;
    uint64_t level[PLACE_COUNT];
    struct id_index index; /* hash of the name → number */
    struct history *requests;
    size_t request_count, request_capacity;
    struct wl_text names;
};

static void span_merge(struct span *a, const struct span *b)
{
    for (int k = 0; k < EVENT_KIND_COUNT; k++) a->count[k] += b->count[k];
    for (int p = 0; p < PLACE_COUNT; p++) {
        if (b->min[p] < a->min[p]) a->min[p] = b->min[p];
        if (b->max[p] > a->max[p]) a->max[p] = b->max[p];
    }
}

static void halve(struct events_digest *d)
{
    size_t count = (d->count + 1) / 2;
    for (size_t i = 0; i < count; i++) {
        struct span merged = d->spans[2 * i];
        if (2 * i + 1 < d->count) span_merge(&merged, &d->spans[2 * i + 1]);
        d->spans[i] = merged;
    }
    d->count = count;
    d->width_ns *= 2;
}

/* The span of a time; those skipped on the way keep the levels as they were. */
static struct span *span_at(struct events_digest *d, uint64_t time_ns)
{
    if (d->rows == 0) d->begin_ns = time_ns;
    while ((time_ns - d->begin_ns) / d->width_ns >= d->capacity) halve(d);
    size_t i = (size_t)((time_ns - d->begin_ns) / d->width_ns);
    while (d->count <= i) {
        struct span *span = &d->spans[d->count++];
        memset(span, 0, sizeof *span);
        for (int p = 0; p < PLACE_COUNT; p++) span->min[p] = span->max[p] = d->level[p];
    }
    return &d->spans[i];
}

static void note_levels(const struct events_digest *d, struct span *span)
{
    for (int p = 0; p < PLACE_COUNT; p++) {
        if (d->level[p] < span->min[p]) span->min[p] = d->level[p];
        if (d->level[p] > span->max[p]) span->max[p] = d->level[p];
    }
}

static enum place place_after(enum event_kind kind, enum place before)
{
    switch (kind) {
    case EVENT_ARRIVE:
    case EVENT_PREEMPT:
    case EVENT_SWAP_OUT: return PLACE_WAITING;
    case EVENT_ADMIT:
    case EVENT_SWAP_IN: return PLACE_RUNNING;
    case EVENT_REJECT:
    case EVENT_UNSERVABLE:
    case EVENT_FINISH:
    case EVENT_ABORT: return PLACE_NONE;
    default: return before;
    }
}

static bool is_end(enum event_kind kind)
{
    return kind == EVENT_REJECT || kind == EVENT_UNSERVABLE || kind == EVENT_FINISH || kind == EVENT_ABORT;
}

static void tell(struct history *r, enum event_kind kind, uint64_t time_ns, uint64_t a, uint64_t b)
{
    if (kind == EVENT_ARRIVE) {
        r->arrive_ns = time_ns;
        r->prompt_tokens = a;
        r->output_tokens = b;
    }
    if (kind == EVENT_ADMIT && r->admit_ns == UINT64_MAX) r->admit_ns = time_ns;
    if (kind == EVENT_FIRST_TOKEN && r->first_token_ns == UINT64_MAX) r->first_token_ns = time_ns;
    if (kind == EVENT_PREEMPT) r->preemptions++;
    if (is_end(kind)) {
        r->end_ns = time_ns;
        r->end = kind;
    }
}

/* NULL: out of memory. */
static struct history *request_of(struct events_digest *d, const char *name)
{
    size_t bytes = strlen(name) + 1;
    uint64_t id = XXH3_64bits(name, bytes);
    uint32_t number;
    if (id_index_number(&d->index, &id, 1, &number) != ID_INDEX_OK) return NULL;
    if (number < d->request_count) return &d->requests[number];
    void *items = d->requests;
    if (wl_array_reserve(&items, &d->request_capacity, sizeof *d->requests, d->request_count + 1)) return NULL;
    d->requests = items;
    struct history *r = &d->requests[d->request_count];
    *r = (struct history){.name_at = d->names.count, .arrive_ns = UINT64_MAX, .admit_ns = UINT64_MAX,
                          .first_token_ns = UINT64_MAX, .end_ns = UINT64_MAX};
    if (wl_text_append(&d->names, name, bytes)) return NULL;
    d->request_count++;
    return r;
}

static int read_row(struct events_digest *d, struct csv_file *file, uint64_t *last_ns, struct err *err)
{
    uint64_t time_ns, a, b;
    size_t kind;
    if (csv_file_u64(file, TIME, &time_ns) || csv_file_word(file, EVENT, event_names, EVENT_KIND_COUNT, &kind) ||
        csv_file_u64(file, A, &a) || csv_file_u64(file, B, &b)) {
        return -1;
    }
    if (d->rows > 0 && time_ns < *last_ns)
        return wl_line_error(&file->line, NULL, "time_ns", "found %" PRIu64 ", expected no earlier time than the row before", time_ns);
    *last_ns = time_ns;
    struct span *span = span_at(d, time_ns);
    span->count[kind]++;
    d->rows++;
    const char *name = csv_file_text(file, REQUEST);
    if (*name == '\0') return 0;
    struct history *r = request_of(d, name);
    if (!r) return err_set(err, ERR_FAILED, "out of memory");
    enum place after = place_after((enum event_kind)kind, r->place);
    d->level[r->place] -= r->place != PLACE_NONE;
    d->level[after] += after != PLACE_NONE;
    r->place = after;
    tell(r, (enum event_kind)kind, time_ns, a, b);
    note_levels(d, span);
    return 0;
}

static uint64_t life_ns(const struct history *r)
{
    return r->arrive_ns == UINT64_MAX || r->end_ns == UINT64_MAX ? 0 : r->end_ns - r->arrive_ns;
}

static int longest_first(const void *a_, const void *b_)
{
    const struct history *a = a_, *b = b_;
    if (life_ns(a) != life_ns(b)) return life_ns(a) > life_ns(b) ? -1 : 1;
    return a->name_at < b->name_at ? -1 : a->name_at > b->name_at;
}

static void write_time(uint64_t time_ns, FILE *json)
{
    if (time_ns == UINT64_MAX) fputs(",null", json);
    else fprintf(json, ",%" PRIu64, time_ns);
}

/* Rows [name, prompt, output, arrive, admit, first token, end, preemptions, how it ended]. */
static void write_requests(struct events_digest *d, FILE *json)
{
    if (d->request_count > 0) qsort(d->requests, d->request_count, sizeof *d->requests, longest_first);
    fprintf(json, ",\"requests\":{\"count\":%zu,\"shown\":[", d->request_count);
    for (size_t i = 0; i < d->request_count && i < d->shown_max; i++) {
        const struct history *r = &d->requests[i];
        fputs(i ? ",[" : "[", json);
        digest_name(d->names.items + r->name_at, json);
        fprintf(json, ",%" PRIu64 ",%" PRIu64, r->prompt_tokens, r->output_tokens);
        write_time(r->arrive_ns, json);
        write_time(r->admit_ns, json);
        write_time(r->first_token_ns, json);
        write_time(r->end_ns, json);
        fprintf(json, ",%" PRIu64 ",\"%s\"]", r->preemptions, r->end_ns == UINT64_MAX ? "" : event_names[r->end]);
    }
    fputs("]}", json);
}

static void write_levels(const struct events_digest *d, enum place place, FILE *json)
{
    fprintf(json, ",\"%s\":{\"min\":[", place_names[place]);
    for (size_t i = 0; i < d->count; i++) fprintf(json, "%s%" PRIu64, i ? "," : "", d->spans[i].min[place]);
    fputs("],\"max\":[", json);
    for (size_t i = 0; i < d->count; i++) fprintf(json, "%s%" PRIu64, i ? "," : "", d->spans[i].max[place]);
    fputs("]}", json);
}

static void write_json(struct events_digest *d, FILE *json)
{
    fprintf(json, "{\"rows\":%" PRIu64 ",\"begin_ns\":%" PRIu64 ",\"width_ns\":%" PRIu64 ",\"counts\":{", d->rows, d->begin_ns,
            d->width_ns);
    const char *comma = "";
    for (int k = 0; k < EVENT_KIND_COUNT; k++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < d->count; i++) sum += d->spans[i].count[k];
        if (sum == 0) continue;
        fprintf(json, "%s\"%s\":[", comma, event_names[k]);
        for (size_t i = 0; i < d->count; i++) fprintf(json, "%s%" PRIu64, i ? "," : "", d->spans[i].count[k]);
        fputc(']', json);
        comma = ",";
    }
    fputc('}', json);
    write_levels(d, PLACE_WAITING, json);
    write_levels(d, PLACE_RUNNING, json);
    write_requests(d, json);
    fputc('}', json);
}

static int read_all(struct events_digest *d, struct csv_file *file, const char *path, struct err *err)
{
    uint64_t last_ns = 0;
    int got;
    if (csv_file_open(file, path, field_names, FIELDS, err)) return -1;
    while ((got = csv_file_next(file, err)) > 0) {
        if (read_row(d, file, &last_ns, err)) return -1;
    }
    return got;
}

int digest_events(const char *path, size_t runs, FILE *json, struct err *err)
{
    struct csv_file file = {0};
    struct events_digest d = {.capacity = digest_points(runs), .shown_max = digest_rows(runs), .width_ns = 1000};
    d.spans = calloc(d.capacity, sizeof *d.spans);
    bool indexed = id_index_init(&d.index);
    int status = d.spans && indexed ? read_all(&d, &file, path, err) : err_set(err, ERR_FAILED, "out of memory");
    if (status == 0) write_json(&d, json);
    csv_file_close(&file);
    if (indexed) id_index_release(&d.index);
    free(d.spans);
    free(d.requests);
    free(d.names.items);
    return status;
}
