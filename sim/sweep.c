#include "sim/sweep.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "sim/result_read.h"
#include "sim/simulation.h"

/* A trace in memory, loaded by the first cell that needs it and dropped after the last. */
struct shared_trace {
    const char *name;
    struct wl_options how;
    uint64_t seed;
    struct wl_trace *trace;
    uint64_t cells_left;
};

struct cell {
    struct optset *set;
    size_t trace; /* index of its shared trace */
    char *line;   /* its results line, when done */
    char *made;   /* the same, not handed over yet */
    size_t leader, next_same; /* the first cell with the same simulation, and the next one; NONE: no such cell */
};
#define NONE SIZE_MAX

struct sweep {
    struct cell *cells;
    size_t cell_count;
    struct shared_trace *traces;
    size_t trace_count, trace_capacity;
    struct result *rows;

    /* While it runs. */
    pthread_mutex_t lock;        /* everything below, the traces, the sink */
    size_t next, done, started_done;
    bool failed;
    struct err *err;
    sweep_sink sink;
    void *sink_context;
    struct timespec begin;
};

/* --- cells ---------------------------------------------------------------------------------- */

static bool same_reading(const struct shared_trace *t, const char *name, const struct wl_options *how,
                         uint64_t seed)
{
    const struct wl_options *a = &t->how;
    bool same_format = a->format && how->format ? strcmp(a->format, how->format) == 0
                                                : a->format == how->format;
    return strcmp(t->name, name) == 0 && same_format && t->seed == seed &&
           a->trace_block_tokens == how->trace_block_tokens && a->time_unit_ns == how->time_unit_ns &&
           a->arrival_speedup_ratio == how->arrival_speedup_ratio &&
           a->max_requests == how->max_requests && a->sort == how->sort &&
           a->skip_bad == how->skip_bad;
}

static bool find_trace(struct sweep *s, const struct options *o, size_t *index)
{
    struct wl_options how;
    options_wl(o, &how);
    /* Only what is drawn at random depends on the seed. */
    bool drawn = strncmp(o->trace, "gen:", 4) == 0 || strncmp(o->trace, "preset:", 7) == 0;
    uint64_t seed = drawn ? o->seed : 0;
    for (size_t i = 0; i < s->trace_count; i++) {
        if (!same_reading(&s->traces[i], o->trace, &how, seed)) continue;
        *index = i;
        return true;
    }
    if (s->trace_count == s->trace_capacity) {
        size_t capacity = s->trace_capacity ? s->trace_capacity * 2 : 8;
        struct shared_trace *grown = realloc(s->traces, capacity * sizeof *grown);
        if (!grown) return false;
        s->traces = grown;
        s->trace_capacity = capacity;
    }
    *index = s->trace_count++;
    s->traces[*index] = (struct shared_trace){.name = o->trace, .how = how, .seed = seed};
    return true;
}

/* Standard input can be read into memory once, and shared by all cells that read it alike. */
static int check_pipes(const struct sweep *s, struct err *err)
{
    size_t pipes = 0;
    for (size_t i = 0; i < s->trace_count; i++) pipes += strcmp(s->traces[i].name, "-") == 0;
    if (pipes < 2) return 0;
    return err_set(err, ERR_USAGE, "--trace: found '-' to be read in %zu ways, expected a file", pipes);
}

/* What decides a cell's simulation: a hash of it, where other cells may have the same. */
struct cell_mark {
    uint64_t hash;
    size_t cell;
};

/* The next option that counts; skips the block size, which is all that may differ. */
static bool next_counting(const struct optset *set, size_t *i, const struct option_spec **spec, char *text)
{
    do {
        if (!optset_echo(set, i, spec, text, OPTSET_ECHO_BYTES)) return false;
    } while (strcmp((*spec)->name, "block-size") == 0);
    return true;
}

static uint64_t hash_counting(const struct optset *set)
{
    const struct option_spec *spec;
    char text[OPTSET_ECHO_BYTES];
    uint64_t hash = 0;
    for (size_t i = 0; next_counting(set, &i, &spec, text);) hash = XXH3_64bits_withSeed(text, strlen(text), hash);
    return hash;
}

static bool same_counting(const struct optset *a, const struct optset *b)
{
    const struct option_spec *of_a, *of_b;
    char text_a[OPTSET_ECHO_BYTES], text_b[OPTSET_ECHO_BYTES];
    for (size_t i = 0, k = 0;;) {
        bool more = next_counting(a, &i, &of_a, text_a);
        if (more != next_counting(b, &k, &of_b, text_b)) return false;
        if (!more) return true;
        if (of_a != of_b || strcmp(text_a, text_b) != 0) return false;
    }
}

static int by_hash(const void *pa, const void *pb)
{
    const struct cell_mark *a = pa, *b = pb;
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    return (a->cell > b->cell) - (a->cell < b->cell);
}

/* Whether the block size plays no part in the cell's simulation. */
static bool heeds_no_block_size(const struct options *o)
{
    return (o->policy_ops->flags & (KV_TOKEN_UNITS | KV_CONTIGUOUS)) != 0 && (o->pool_tokens != OPT_UNSET || o->num_gpu_blocks == OPT_UNSET);
}

/* Cells that differ only in a block size that does not matter to them are simulated once. marks: of those for which it
 * does not. */
static void find_same(struct sweep *s, struct cell_mark *marks, size_t count)
{
    if (count > 0) qsort(marks, count, sizeof *marks, by_hash);
    for (size_t first = 0, i = 1; i < count; i++) {
        struct cell *a = &s->cells[marks[first].cell], *b = &s->cells[marks[i].cell];
        if (marks[i].hash != marks[first].hash || a->trace != b->trace || !same_counting(a->set, b->set)) {
            first = i;
            continue;
        }
        b->leader = marks[first].cell;
        s->cells[marks[i - 1].cell].next_same = marks[i].cell;
    }
}

/* More cells than this are a mistake in a list. */
#define CELLS_MAX 10000000u

/* Cell number cell_count; options: of it. */
static int make_cell(struct sweep *s, const struct optset *set, struct options *o, struct err *err)
{
    struct cell *cell = &s->cells[s->cell_count];
    cell->leader = cell->next_same = NONE;
    cell->set = optset_cell(set, s->cell_count);
    if (!cell->set) return err_set(err, ERR_FAILED, "out of memory");
    if (options_resolve(cell->set, o, err) || options_need_trace(o, err)) return -1;
    if (!find_trace(s, o, &cell->trace)) return err_set(err, ERR_FAILED, "out of memory");
    s->traces[cell->trace].cells_left++;
    return 0;
}

static int make_cells(struct sweep *s, const struct optset *set, struct err *err)
{
    uint64_t count = optset_cells(set);
    if (count > CELLS_MAX) {
        return err_set(err, ERR_USAGE, "sweep: the lists make %llu cells, expected at most %u",
                       (unsigned long long)count, CELLS_MAX);
    }
    s->cells = calloc((size_t)count, sizeof *s->cells);
    struct cell_mark *marks = calloc((size_t)count, sizeof *marks);
    size_t marked = 0;
    int status = s->cells && marks ? 0 : err_set(err, ERR_FAILED, "out of memory");
    for (; status == 0 && s->cell_count < count; s->cell_count++) {
        struct options o;
        struct cell *cell = &s->cells[s->cell_count];
        status = make_cell(s, set, &o, err);
        if (status || !heeds_no_block_size(&o)) continue;
        marks[marked++] = (struct cell_mark){.hash = hash_counting(cell->set), .cell = s->cell_count};
    }
    if (status == 0) find_same(s, marks, marked);
    free(marks);
    return status ? status : check_pipes(s, err);
}

struct sweep *sweep_create(const struct optset *set, struct err *err)
{
    struct sweep *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(err, ERR_FAILED, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    if (make_cells(s, set, err)) {
        sweep_destroy(s);
        return NULL;
    }
    return s;
}

void sweep_destroy(struct sweep *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->cell_count; i++) {
        optset_destroy(s->cells[i].set);
        free(s->cells[i].line);
        free(s->cells[i].made);
        if (s->rows) result_release(&s->rows[i]);
    }
    for (size_t i = 0; i < s->trace_count; i++) wl_trace_destroy(s->traces[i].trace);
    free(s->rows);
    free(s->cells);
    free(s->traces);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

size_t sweep_cells(const struct sweep *s)
{
    return s->cell_count;
}

const char *sweep_line(const struct sweep *s, size_t cell)
{
    return s->cells[cell].line;
}

const struct result *sweep_rows(const struct sweep *s)
{
    return s->rows;
}

/* --- resuming ------------------------------------------------------------------------------- */

/* Whether a results line was made by this version with the cell's options. */
static bool same_options(const struct optset *set, const struct result *row)
{
    const struct option_spec *spec;
    char text[OPTSET_ECHO_BYTES], key[80], found[OPTSET_ECHO_BYTES];
    const struct result_entry *version = result_find(row, "version");
    if (!version || version->kind != RESULT_TEXT || strcmp(version->text, PAGESIM_VERSION) != 0) {
        return false;
    }
    for (size_t i = 0; optset_echo(set, &i, &spec, text, sizeof text);) {
        snprintf(key, sizeof key, "options.%s", spec->name);
        const struct result_entry *entry = result_find(row, key);
        if (!entry) return false;
        if (entry->kind == RESULT_TEXT) snprintf(found, sizeof found, "%s", entry->text);
        else if (entry->kind == RESULT_U64) snprintf(found, sizeof found, "%llu", (unsigned long long)entry->u64);
        else if (entry->kind == RESULT_F64) {
            if (entry->f64 != strtod(text, NULL)) return false;
            continue;
        }
        if (strcmp(found, text) != 0) return false;
    }
    return true;
}

void sweep_offer(struct sweep *s, const char *line)
{
    struct result row;
    result_init(&row);
    if (result_read_line(line, &row) == 0) {
        for (size_t i = 0; i < s->cell_count; i++) {
            struct cell *cell = &s->cells[i];
            if (cell->line || !same_options(cell->set, &row)) continue;
            size_t length = strlen(line);
            cell->line = malloc(length + 2);
            if (!cell->line) break;
            memcpy(cell->line, line, length);
            memcpy(cell->line + length, "\n", 2);
            break;
        }
    }
    result_release(&row);
}

/* --- running -------------------------------------------------------------------------------- */

static int load_trace(struct shared_trace *t, struct err *err)
{
    struct wl_source *source = NULL;
    if (t->trace) return 0;
    if (wl_open(t->name, &t->how, t->seed, &source, err)) return -1;
    int status = wl_trace_load(source, &t->trace, err);
    wl_close(source);
    return status;
}

/* A line taken over from an earlier run counts only if the trace is still the same. */
static int drop_outdated(struct sweep *s, struct err *err)
{
    for (size_t i = 0; i < s->cell_count; i++) {
        struct cell *cell = &s->cells[i];
        if (!cell->line) continue;
        struct shared_trace *t = &s->traces[cell->trace];
        if (load_trace(t, err)) return -1;
        char checksum[48];
        snprintf(checksum, sizeof checksum, "\"trace_checksum\": \"%016llx\"",
                 (unsigned long long)wl_trace_summary(t->trace)->checksum);
        if (strstr(cell->line, checksum)) {
            s->done++;
            t->cells_left--;
        } else {
            free(cell->line);
            cell->line = NULL;
        }
    }
    return 0;
}

/* The cell's results line, from an engine that has run. */
static int write_line(struct cell *cell, const struct wl_source *source, struct engine *engine, struct err *err)
{
    struct options o;
    struct result result;
    size_t bytes;
    if (options_resolve(cell->set, &o, err)) return -1;
    result_init(&result);
    int status = simulation_report(&result, cell->set, &o, source, engine, err);
    if (status == 0) {
        FILE *out = open_memstream(&cell->made, &bytes);
        if (out) result_write_line(&result, out);
        if (!out || fclose(out)) status = err_set(err, ERR_FAILED, "out of memory");
    }
    result_release(&result);
    return status;
}

/* Makes the lines of a cell and of those with the same simulation. */
static int run_cell(struct sweep *s, size_t index, struct err *err)
{
    struct cell *cell = &s->cells[index];
    struct options o;
    struct trace_facts facts;
    if (options_resolve(cell->set, &o, err)) return -1;
    struct wl_source *source = wl_trace_open(s->traces[cell->trace].trace);
    if (!source) return err_set(err, ERR_FAILED, "out of memory");
    struct engine *engine = NULL;
    if (trace_facts_read(&facts, source, &o, err) == 0) {
        engine = simulation_engine(cell->set, &o, source, &facts, NULL, err);
    }
    int status = engine ? 0 : -1;
    for (size_t i = index; status == 0 && i != NONE; i = s->cells[i].next_same) {
        if (!s->cells[i].line) status = write_line(&s->cells[i], source, engine, err);
    }
    if (status) {
        err_prefix(err, "cell %zu (policy %s, block size %llu)", index + 1, o.policy_ops->name,
                   (unsigned long long)o.block_tokens);
    }
    engine_destroy(engine);
    wl_close(source);
    return status;
}

/* Whose first cell an earlier run has done is run on its own. */
static void part_from_done(struct sweep *s)
{
    for (size_t i = 0; i < s->cell_count; i++) {
        struct cell *cell = &s->cells[i];
        if (cell->line && cell->leader == NONE) cell->next_same = NONE;
        if (cell->leader == NONE || !s->cells[cell->leader].line) continue;
        cell->leader = cell->next_same = NONE;
    }
}

static double seconds_since(const struct timespec *begin)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) * 1e-9;
}

static void show_progress(const struct sweep *s)
{
    if (!isatty(STDERR_FILENO)) return;
    size_t run = s->done - s->started_done, left = s->cell_count - s->done;
    double eta = run > 0 ? seconds_since(&s->begin) / (double)run * (double)left : 0;
    fprintf(stderr, "\rpagesim: %zu of %zu cells, %.0f s left  ", s->done, s->cell_count, eta);
    if (left == 0) fputc('\n', stderr);
}

/* With the lock held. */
static void finish_cell(struct sweep *s, size_t index)
{
    struct cell *cell = &s->cells[index];
    struct shared_trace *t = &s->traces[cell->trace];
    if (!cell->made) return; /* an earlier run's line counts */
    cell->line = cell->made;
    cell->made = NULL;
    s->done++;
    if (--t->cells_left == 0) {
        wl_trace_destroy(t->trace);
        t->trace = NULL;
    }
    if (s->sink && s->sink(s->sink_context, index, cell->line, s->err)) s->failed = true;
    show_progress(s);
}

/* With the lock held: the next cell to run, its trace loaded; false when there is none. */
static bool next_cell(struct sweep *s, size_t *index)
{
    while (!s->failed && s->next < s->cell_count && (s->cells[s->next].line || s->cells[s->next].leader != NONE)) {
        s->next++;
    }
    if (s->failed || s->next == s->cell_count) return false;
    *index = s->next++;
    if (load_trace(&s->traces[s->cells[*index].trace], s->err)) s->failed = true;
    return !s->failed;
}

static void *worker(void *context)
{
    struct sweep *s = context;
    size_t index;
    pthread_mutex_lock(&s->lock);
    while (next_cell(s, &index)) {
        struct err err = {0};
        pthread_mutex_unlock(&s->lock);
        int status = run_cell(s, index, &err);
        pthread_mutex_lock(&s->lock);
        if (status) {
            if (!s->failed) *s->err = err;
            s->failed = true;
            continue;
        }
        for (size_t i = index; i != NONE; i = s->cells[i].next_same) finish_cell(s, i);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int run_threads(struct sweep *s, unsigned threads, struct err *err)
{
    pthread_t *ids = calloc(threads, sizeof *ids);
    if (!ids) return err_set(err, ERR_FAILED, "out of memory");
    unsigned started = 0;
    while (started < threads && pthread_create(&ids[started], NULL, worker, s) == 0) started++;
    if (started == 0) worker(s);
    for (unsigned i = 0; i < started; i++) pthread_join(ids[i], NULL);
    free(ids);
    return s->failed ? -1 : 0;
}

static int read_rows(struct sweep *s, struct err *err)
{
    s->rows = calloc(s->cell_count, sizeof *s->rows);
    if (!s->rows) return err_set(err, ERR_FAILED, "out of memory");
    for (size_t i = 0; i < s->cell_count; i++) {
        if (result_read_line(s->cells[i].line, &s->rows[i])) {
            return err_set(err, ERR_FAILED, "cell %zu: its results line cannot be read back", i + 1);
        }
    }
    return 0;
}

int sweep_run(struct sweep *s, unsigned threads, sweep_sink sink, void *context, struct err *err)
{
    s->err = err;
    s->sink = sink;
    s->sink_context = context;
    clock_gettime(CLOCK_MONOTONIC, &s->begin);
    if (drop_outdated(s, err)) return -1;
    part_from_done(s);
    s->started_done = s->done;
    for (size_t i = 0; sink && i < s->cell_count; i++) {
        if (s->cells[i].line && sink(context, i, s->cells[i].line, err)) return -1;
    }
    if (threads > s->cell_count) threads = (unsigned)s->cell_count;
    if (run_threads(s, threads ? threads : 1, err)) return -1;
    return read_rows(s, err);
}
