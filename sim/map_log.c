#include "sim/map_log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/device/device_allocator.h"
#include "sim/result.h"

int map_log_open(struct map_log *log, const char *path, uint64_t frames, struct err *err)
{
    *log = (struct map_log){.wanted = frames, .stride = 1};
    log->frames = calloc(2 * frames, sizeof *log->frames);
    if (!log->frames) return err_set(err, ERR_FAILED, "out of memory");
    log->file = outfile_open(path, err);
    return log->file ? 0 : -1;
}

/* --- a frame's text -------------------------------------------------------------------------------- */

/* Units of a cell added up. The kind and the request are those of the unit with most slots in use; of equals the first. */
static struct map_unit cell_at(const struct map_log *log, uint64_t cell)
{
    uint64_t begin = cell * log->units_per_cell, end = begin + log->units_per_cell;
    struct map_unit sum = log->map.units[begin];
    for (uint64_t i = begin + 1; i < end && i < log->map.count; i++) {
        const struct map_unit *u = &log->map.units[i];
        if (sum.kind != UNIT_HELD && u->kind > sum.kind && u->kind != UNIT_OVERHEAD) {
            sum.kind = u->kind;
            sum.index = u->index;
        }
        if (u->holders > sum.holders) sum.holders = u->holders;
        sum.live += u->live;
        sum.dead += u->dead;
        sum.reserved += u->reserved;
        sum.internal += u->internal;
        sum.rounding += u->rounding;
    }
    return sum;
}

static bool same_cell(const struct map_unit *a, const struct map_unit *b)
{
    return a->kind == b->kind && a->holders == b->holders && a->index == b->index && a->live == b->live && a->dead == b->dead &&
           a->reserved == b->reserved && a->internal == b->internal && a->rounding == b->rounding;
}

/* [how many alike, kind] or [..., request, holders, live, dead, reserved, internal, rounding]. */
static void write_cell(const struct map_unit *u, uint64_t run, bool first, FILE *out)
{
    fprintf(out, "%s[%" PRIu64 ",%u", first ? "" : ",", run, u->kind);
    if (u->kind == UNIT_HELD)
        fprintf(out, ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32, u->index, u->holders, u->live, u->dead, u->reserved,
                u->internal, u->rounding);
    fputc(']', out);
}

static void write_cells(const struct map_log *log, FILE *out)
{
    uint64_t cells = (log->map.count + log->units_per_cell - 1) / log->units_per_cell, run = 0;
    struct map_unit last = {0};
    bool first = true;
    fputs("\"cells\":[", out);
    for (uint64_t c = 0; c < cells; c++) {
        struct map_unit cell = cell_at(log, c);
        if (run > 0 && !same_cell(&cell, &last)) {
            write_cell(&last, run, first, out);
            first = false;
            run = 0;
        }
        last = cell;
        run++;
    }
    write_cell(&last, run, first, out);
    fputc(']', out);
}

/* Where a sequence is: its blocks in order, or the region's first slot, slots asked and slots taken. */
static void write_place(const struct engine *e, kv_seq seq, FILE *out)
{
    if (e->policy->ops->table) {
        uint32_t count;
        const kv_block *table = e->policy->ops->table(e->policy, seq, &count);
        for (uint32_t i = 0; i < count; i++) fprintf(out, "%s%" PRIu32, i ? "," : "", table[i]);
    } else if (e->policy->ops->region) {
        struct kv_region region;
        e->policy->ops->region(e->policy, seq, &region);
        fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, region.first_unit, region.asked_units, region.taken_units);
    }
}

/* [number, id, tokens filled, tokens at the end, [where its first sequence is]]. Tables of very many blocks are left out. */
static void write_requests(const struct map_log *log, const struct engine *e, FILE *out)
{
    bool tables = log->units_per_cell == 1 || !e->policy->ops->table;
    fputs("\"running\":[", out);
    for (const struct sim_request *r = e->running.head; r; r = r->next) {
        char name[24];
        fprintf(out, "%s[%" PRIu64 ",", r == e->running.head ? "" : ",", r->index);
        result_write_string(sim_request_name(r, name, sizeof name), out);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",[", r->filled, r->kv.final_tokens);
        if (tables) write_place(e, r->seqs[0], out);
        fputs("]]", out);
    }
    fputc(']', out);
}

static void write_states(const struct engine *e, FILE *out)
{
    fputs("\"states\":{", out);
    for (int s = 0; s < STATE_COUNT; s++)
        fprintf(out, "%s\"%s\":%" PRIu64, s ? "," : "", state_names[s], e->accounting.now.state_bytes[s]);
    fputs("},", out);
}

struct segment_writer {
    FILE *out;
    uint64_t segments, left_out;
};

/* [bytes, [bytes of a block, 1: in use or 0: kept without use], ...] */
static bool write_segment(void *context, const struct dev_segment_info *s)
{
    struct segment_writer *w = context;
    if (w->segments == MAP_SEGMENTS_MAX) {
        w->left_out++;
        return true;
    }
    fprintf(w->out, "%s[%" PRIu64, w->segments++ ? "," : "", s->bytes);
    for (size_t i = 0; i < s->block_count; i++)
        fprintf(w->out, ",[%" PRIu64 ",%d]", s->blocks[i].bytes, s->blocks[i].state == DEV_ALLOCATED);
    fputc(']', w->out);
    return true;
}

/* The device beside the pool, where one is simulated: bytes by purpose, which add up to it, and the framework's segments. */
static bool write_device(const struct engine *e, FILE *out)
{
    struct edge_bytes b;
    struct segment_writer w = {.out = out};
    if (!e->edge) return true;
    edge_facts(e->edge, &b);
    const struct {
        const char *name;
        uint64_t bytes;
    } purposes[] = {{"context", b.context}, {"weights", b.weights},         {"residue", b.residue}, {"graphs", b.graphs}, {"pool", b.pool},
                    {"buffers", b.buffers}, {"activations", b.activations}, {"cached", b.cached},   {"free", b.free}};
    fputs("\"device\":{\"bytes\":{", out);
    for (size_t i = 0; i < sizeof purposes / sizeof purposes[0]; i++)
        fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "", purposes[i].name, purposes[i].bytes);
    fputs("},\"segments\":[", out);
    bool walked = edge_walk_segments(e->edge, write_segment, &w);
    fprintf(out, "],\"segments_left_out\":%" PRIu64 "},", w.left_out);
    return walked;
}

static char *frame_line(const struct map_log *log, const struct engine *e)
{
    char *line = NULL;
    size_t bytes;
    FILE *out = open_memstream(&line, &bytes);
    if (!out) return NULL;
    fprintf(out, "{\"step\":%" PRIu64 ",\"time_ns\":%" PRIu64 ",\"waiting\":%" PRIu64 ",", e->stats.steps, e->now, e->waiting.count + e->swapped.count);
    write_states(e, out);
    bool whole = write_device(e, out);
    write_requests(log, e, out);
    fputc(',', out);
    write_cells(log, out);
    fputs("}\n", out);
    return fclose(out) == 0 && whole ? line : (free(line), NULL);
}

/* --- frames over time -------------------------------------------------------------------------------- */

static char *header_line(const struct map_log *log, const struct engine *e)
{
    char *line;
    int n = asprintf(&line,
                     "{\"memory_map\":1,\"policy\":\"%s\",\"units\":%" PRIu64 ",\"first_number\":%" PRIu64 ",\"unit_tokens\":%" PRIu32
                     ",\"unit_bytes\":%" PRIu64 ",\"units_per_cell\":%" PRIu64 ",\"contiguous\":%s}\n",
                     e->policy->ops->name, log->map.count, log->map.first_number, log->map.unit_tokens, e->policy->unit_bytes,
                     log->units_per_cell, e->policy->ops->table ? "false" : "true");
    return n < 0 ? NULL : line;
}

static void begin(struct map_log *log, struct engine *e)
{
    log->ready = true;
    if (memory_map_init(&log->map, e, &log->err)) {
        log->failed = true;
        return;
    }
    log->units_per_cell = (log->map.count + MAP_CELLS_MAX - 1) / MAP_CELLS_MAX;
    log->header = header_line(log, e);
    log->failed = log->header == NULL;
}

static void drop_every_second(struct map_log *log)
{
    size_t kept = 0;
    log->stride *= 2;
    for (size_t i = 0; i < log->count; i++) {
        if (log->frames[i].step % log->stride == 0) log->frames[kept++] = log->frames[i];
        else free(log->frames[i].line);
    }
    log->count = kept;
}

void map_log_look(void *context, struct engine *e, enum look_kind kind)
{
    struct map_log *log = context;
    if (kind != LOOK_END) return;
    if (!log->ready) begin(log, e);
    if (log->failed || e->stats.steps % log->stride != 0) return;
    memory_map_take(&log->map, e);
    char *line = frame_line(log, e);
    log->failed = line == NULL;
    if (!line) return;
    log->frames[log->count++] = (struct map_frame){line, e->stats.steps};
    if (log->count == 2 * log->wanted) drop_every_second(log);
}

int map_log_commit(struct map_log *log, struct err *err)
{
    if (!log->file) return 0;
    if (log->failed) {
        if (log->err.kind != ERR_NONE) err_set(err, log->err.kind, "%s", log->err.text);
        else err_set(err, ERR_FAILED, "--memory-map: out of memory");
        map_log_abandon(log);
        return -1;
    }
    FILE *out = outfile_stream(log->file);
    fputs(log->header ? log->header : "{\"memory_map\":1}\n", out); /* no step, no frame: nothing is known of the pool */
    for (size_t i = 0; i < log->count; i++) fputs(log->frames[i].line, out);
    struct outfile *file = log->file;
    log->file = NULL;
    int status = outfile_commit(file, err);
    map_log_abandon(log);
    return status;
}

void map_log_abandon(struct map_log *log)
{
    outfile_abandon(log->file);
    for (size_t i = 0; i < log->count; i++) free(log->frames[i].line);
    free(log->frames);
    free(log->header);
    memory_map_release(&log->map);
    *log = (struct map_log){0};
}
