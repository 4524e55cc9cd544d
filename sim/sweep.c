#include "sim/sweep.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "sim/result_read.h"
#include "sim/simulation.h"
#include "sim/trace_pool.h"
#include "sim/workers.h"

struct cell {
    struct optset *set;
    size_t trace; /* in the pool */
    char *line;   /* its results line, when done */
    char *made;   /* the same, not handed over yet */
    size_t leader, next_same; /* the first cell with the same simulation, and the next one; NONE: no such cell */
};
#define NONE SIZE_MAX

struct sweep {
    struct cell *cells;
    size_t cell_count;
    struct trace_pool traces;
    struct result *rows;

    /* While it runs, under the workers' lock, as the traces and the sink. */
    size_t next, done, started_done;
    sweep_sink sink;
    void *sink_context;
    struct timespec begin;
};

/* --- cells ---------------------------------------------------------------------------------- */

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
    return trace_pool_add(&s->traces, o, &cell->trace, err);
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
    return status ? status : trace_pool_check(&s->traces, err);
}

struct sweep *sweep_create(const struct optset *set, struct err *err)
{
    struct sweep *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(err, ERR_FAILED, "out of memory");
        return NULL;
    }
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
    trace_pool_release(&s->traces);
    free(s->rows);
    free(s->cells);
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

/* A line taken over from an earlier run counts only if the trace is still the same. */
static int drop_outdated(struct sweep *s, struct err *err)
{
    for (size_t i = 0; i < s->cell_count; i++) {
        struct cell *cell = &s->cells[i];
        if (!cell->line) continue;
        const struct wl_summary *summary = trace_pool_load(&s->traces, cell->trace, err);
        if (!summary) return -1;
        char checksum[48];
        snprintf(checksum, sizeof checksum, "\"trace_checksum\": \"%016llx\"",
                 (unsigned long long)summary->checksum);
        if (strstr(cell->line, checksum)) {
            s->done++;
            trace_pool_leave(&s->traces, cell->trace);
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
static int run_cell(void *context, size_t index, struct err *err)
{
    struct sweep *s = context;
    struct cell *cell = &s->cells[index];
    struct options o;
    struct trace_facts facts;
    if (options_resolve(cell->set, &o, err)) return -1;
    struct wl_source *source = trace_pool_open(&s->traces, cell->trace);
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

static int finish_cell(struct sweep *s, size_t index, struct err *err)
{
    struct cell *cell = &s->cells[index];
    if (!cell->made) return 0; /* an earlier run's line counts */
    cell->line = cell->made;
    cell->made = NULL;
    s->done++;
    trace_pool_leave(&s->traces, cell->trace);
    int status = s->sink ? s->sink(s->sink_context, index, cell->line, err) : 0;
    show_progress(s);
    return status;
}

static int finish_same(void *context, size_t index, struct err *err)
{
    struct sweep *s = context;
    for (size_t i = index; i != NONE; i = s->cells[i].next_same) {
        if (finish_cell(s, i, err)) return -1;
    }
    return 0;
}

/* The next cell to run, its trace loaded. */
static int next_cell(void *context, size_t *index, struct err *err)
{
    struct sweep *s = context;
    while (s->next < s->cell_count && (s->cells[s->next].line || s->cells[s->next].leader != NONE)) s->next++;
    if (s->next == s->cell_count) return 0;
    *index = s->next++;
    return trace_pool_load(&s->traces, s->cells[*index].trace, err) ? 1 : -1;
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
    const struct work work = {.context = s, .next = next_cell, .run = run_cell, .done = finish_same};
    if (workers_run(&work, threads, err)) return -1;
    return read_rows(s, err);
}
