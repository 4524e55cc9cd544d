#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "sim/device_import_internal.h"

/* ---- writing ---- */

static void print(struct import_work *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print(struct import_work *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (w->out)
        vfprintf(w->out, format, args);
    va_end(args);
}

static void print_pool_name(struct import_work *w, uint32_t pool)
{
    print(w, "\"%" PRIu64 ".%" PRIu64 "\"", w->pools[pool][0], w->pools[pool][1]);
}

static void switch_pool(struct import_work *w, uint32_t pool)
{
    if (pool == w->open_pool)
        return;
    if (w->open_pool != 0) {
        print(w, "{\"op\":\"pool_end\",\"pool\":");
        print_pool_name(w, w->open_pool);
        print(w, "}\n");
    }
    if (pool != 0) {
        print(w, "{\"op\":\"pool_begin\",\"pool\":");
        print_pool_name(w, pool);
        print(w, "}\n");
    }
    w->open_pool = pool;
}

static uint64_t write_alloc(struct import_work *w, uint64_t bytes, uint64_t time_us)
{
    print(w, "{\"op\":\"alloc\",\"id\":%" PRIu64 ",\"bytes\":%" PRIu64, ++w->last_id, bytes);
    if (time_us > 0)
        print(w, ",\"time_us\":%" PRIu64, time_us);
    print(w, "}\n");
    w->import->allocs++;
    return w->last_id;
}

static void write_free(struct import_work *w, uint64_t id, uint64_t time_us)
{
    print(w, "{\"op\":\"free\",\"id\":%" PRIu64, id);
    if (time_us > 0)
        print(w, ",\"time_us\":%" PRIu64, time_us);
    print(w, "}\n");
    w->import->frees++;
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* ---- the segments at the start ---- */

static int compare_old(const void *x, const void *y)
{
    const struct import_old_block *a = x, *b = y;
    return (a->address > b->address) - (a->address < b->address);
}

/* The size of an old block, when `room` bytes follow it up to the next one or the segment's end. A cudaMalloc'd large segment has no
 * free block of 1 MiB or less: such a rest belongs to the block before it. */
static uint64_t old_block_bytes(const struct import_old_block *block, const struct device_span *span, uint64_t room)
{
    uint64_t bytes = block->bytes_are_known ? block->bytes : round_up(block->bytes, ROUND_BYTES);
    if (bytes > room)
        return room;
    if (!block->bytes_are_known && !span->small && !span->expandable && room - bytes <= SMALL_MAX_BYTES)
        return room;
    return bytes;
}

struct cell {
    uint64_t bytes;
    uint64_t id; /* 0: free */
};

/* The blocks of one span: old[first .. *next) lie in it. cells[] has room for two a block and one more. */
static size_t fill_cells(struct import_work *w, const struct device_span *span, size_t *next, struct cell *cells)
{
    uint64_t at = span->node.address, end = at + span->node.bytes;
    size_t n = 0;
    for (; *next < w->old_count && w->old[*next].address < end; (*next)++) {
        const struct import_old_block *block = &w->old[*next];
        uint64_t stop = *next + 1 < w->old_count && w->old[*next + 1].address < end ? w->old[*next + 1].address : end;
        if (block->address < at || (block->address - span->node.address) % ROUND_BYTES != 0 || block->address == stop)
            continue; /* overlaps the one before: written as a plain allocation later */
        if (block->address > at)
            cells[n++] = (struct cell){block->address - at, 0};
        uint64_t bytes = old_block_bytes(block, span, stop - block->address) / ROUND_BYTES * ROUND_BYTES;
        if (bytes == 0)
            continue;
        w->live[block->number] = ++w->last_id;
        cells[n++] = (struct cell){bytes, w->last_id};
        w->import->start_live_blocks++;
        w->import->start_live_bytes += bytes;
        at = block->address + bytes;
    }
    if (end > at)
        cells[n++] = (struct cell){end - at, 0};
    return n;
}

static void write_segment(struct import_work *w, const struct device_span *span, const struct cell *cells, size_t n)
{
    print(w, "{\"op\":\"segment\",\"address\":%" PRId64 ",\"kind\":\"%s%s\"", (int64_t)(span->node.address - w->base_address),
          span->expandable ? "expandable_" : "", span->small ? "small" : "large");
    if (span->pool != 0) {
        print(w, ",\"pool\":");
        print_pool_name(w, span->pool);
    }
    print(w, ",\"blocks\":[");
    for (size_t i = 0; i < n; i++)
        print(w, "%s%" PRIu64, i ? "," : "", cells[i].bytes);
    print(w, "],\"ids\":[");
    for (size_t i = 0; i < n; i++)
        print(w, "%s%" PRIu64, i ? "," : "", cells[i].id);
    print(w, "]}\n");
}

/* The span is what the history begins with. */
static bool hold(struct import_work *w, const struct device_span *span, const struct cell *cells, size_t n)
{
    struct device_span held = *span;
    held.live = 0;
    for (size_t i = 0; i < n; i++)
        held.live += cells[i].id != 0;
    w->idle += !held.expandable && held.pool == 0 && held.live == 0;
    return device_spans_add(&w->now, &held);
}

/* Allocations that lie in no segment the snapshot knows of. */
static void write_strays(struct import_work *w)
{
    for (size_t i = 0; i < w->old_count; i++)
        if (w->live[w->old[i].number] == 0)
            w->live[w->old[i].number] = write_alloc(w, w->old[i].bytes, 0);
}

static int write_start(struct import_work *w)
{
    struct cell *cells = malloc((2 * w->old_count + 2) * sizeof *cells);
    size_t next = 0;
    if (!cells)
        return import_out_of_memory(w);
    if (w->old_count > 0)
        qsort(w->old, w->old_count, sizeof *w->old, compare_old);
    struct device_span *span = device_spans_first(&w->spans);
    w->base_address = span ? span->node.address : 0;
    for (; span; span = device_spans_next(span)) {
        while (next < w->old_count && w->old[next].address < span->node.address)
            next++;
        size_t n = fill_cells(w, span, &next, cells);
        write_segment(w, span, cells, n);
        if (!hold(w, span, cells, n)) {
            free(cells);
            return import_out_of_memory(w);
        }
        w->import->start_segments++;
        w->import->start_bytes += span->node.bytes;
    }
    free(cells);
    write_strays(w);
    return 0;
}

/* ---- the history ---- */

static bool gives_back(const struct snapshot_event *event)
{
    return event->action == SNAPSHOT_SEGMENT_FREE || event->action == SNAPSHOT_SEGMENT_UNMAP;
}

static uint64_t segment_bytes_for(uint64_t bytes)
{
    if (bytes <= SMALL_MAX_BYTES)
        return SMALL_SEGMENT_BYTES;
    return bytes < LARGE_SEGMENT_BYTES / 2 ? LARGE_SEGMENT_BYTES : round_up(bytes, SMALL_SEGMENT_BYTES);
}

/* What went back in one go: events [first, end). */
struct run {
    size_t end;
    uint64_t segments; /* cudaFree'd ones */
    bool in_order;     /* of empty_cache: large segments by size and address, then small ones */
    uint64_t first_bytes, bytes_max;
};

static bool in_release_order(const struct snapshot_event *a, const struct snapshot_event *b)
{
    bool a_small = a->bytes == SMALL_SEGMENT_BYTES, b_small = b->bytes == SMALL_SEGMENT_BYTES;
    if (a_small != b_small)
        return b_small;
    return a->bytes < b->bytes || (a->bytes == b->bytes && a->address < b->address);
}

static struct run find_run(const struct device_snapshot *s, size_t i)
{
    struct run run = {.end = i, .in_order = true, .first_bytes = s->events[i].bytes};
    const struct snapshot_event *last = NULL;
    for (; run.end < s->event_count && gives_back(&s->events[run.end]); run.end++) {
        const struct snapshot_event *event = &s->events[run.end];
        if (event->action != SNAPSHOT_SEGMENT_FREE)
            continue;
        run.segments++;
        run.in_order = run.in_order && (!last || in_release_order(last, event));
        run.bytes_max = event->bytes > run.bytes_max ? event->bytes : run.bytes_max;
        last = event;
    }
    return run;
}

/* What the next request would make of `held` bytes. */
static uint64_t wanted_bytes(const struct device_snapshot *s, size_t i, uint64_t held)
{
    while (i < s->event_count && s->events[i].action != SNAPSHOT_ALLOC && s->events[i].action != SNAPSHOT_OOM)
        i++;
    return i < s->event_count ? held + segment_bytes_for(s->events[i].bytes) : held;
}

/* Whether what goes back from event i on does so by empty_cache, and not inside a request that was refused. held: bytes before. */
static bool is_empty_cache(const struct import_work *w, size_t i, uint64_t held, size_t *end)
{
    const struct device_snapshot *s = w->s;
    struct run run = find_run(s, i);
    *end = run.end;
    if (run.end == s->event_count)
        return true;
    enum snapshot_action then = s->events[run.end].action;
    uint64_t max_split = w->settings.max_split_bytes;
    if (!run.in_order)
        return false; /* garbage collection, or large segments that were sacrificed first */
    /* A refused request would have sacrificed a large segment before any other, unless garbage collection came before. */
    if (w->settings.gc_threshold <= 0.0 && run.first_bytes < max_split && run.bytes_max >= max_split)
        return true;
    if (then == SNAPSHOT_OOM)
        return false;
    if (then != SNAPSHOT_SEGMENT_ALLOC && then != SNAPSHOT_SEGMENT_MAP)
        return true;
    /* When it is not certain that the request was refused, emptying the cache first leads to the same segments, unless some that
     * were free as well stay, as after garbage collection or when max_split_size sacrifices a large one. */
    return wanted_bytes(s, run.end, held) <= w->import->cap_bytes_max && run.segments >= w->idle;
}

static uint64_t held_after(const struct snapshot_event *event, uint64_t held)
{
    if (gives_back(event))
        return held - (event->bytes < held ? event->bytes : held);
    bool takes = event->action == SNAPSHOT_SEGMENT_ALLOC || event->action == SNAPSHOT_SEGMENT_MAP;
    return takes ? held + event->bytes : held;
}

/* The cap was at least what was ever held, and less than what was ever refused. */
static void bound_cap(struct import_work *w)
{
    struct device_import *import = w->import;
    uint64_t held = import->start_bytes;
    import->cap_bytes_min = import->reserved_bytes_peak;
    for (size_t i = 0; i < w->s->event_count; i++) {
        held = held_after(&w->s->events[i], held);
        uint64_t wanted = held + segment_bytes_for(w->s->events[i].bytes);
        if (w->s->events[i].action == SNAPSHOT_OOM && wanted - 1 < import->cap_bytes_max)
            import->cap_bytes_max = wanted - 1;
    }
}

static bool is_idle(const struct device_span *span)
{
    return !span->expandable && span->pool == 0 && span->live == 0;
}

/* Keeps `now` and `idle` up to date. */
static int follow(struct import_work *w, size_t i)
{
    const struct snapshot_event *event = &w->s->events[i];
    struct device_span *span = device_spans_find(&w->now, event->address);
    struct device_span taken = {.expandable = event->action == SNAPSHOT_SEGMENT_MAP};
    w->idle -= span && is_idle(span);
    switch (event->action) {
    case SNAPSHOT_ALLOC:
        if (span) {
            span->live++;
            span->pool = w->pool_of_event[i];
        }
        break;
    case SNAPSHOT_FREE_COMPLETED:
        if (span && span->live > 0)
            span->live--;
        break;
    case SNAPSHOT_SEGMENT_ALLOC:
    case SNAPSHOT_SEGMENT_MAP:
        taken.node.address = event->address;
        taken.node.bytes = event->bytes;
        if (event->bytes > 0 && !device_spans_add(&w->now, &taken))
            return import_out_of_memory(w);
        break;
    case SNAPSHOT_SEGMENT_FREE:
    case SNAPSHOT_SEGMENT_UNMAP:
        if (!device_spans_remove(&w->now, event->address, event->bytes))
            return import_out_of_memory(w);
        break;
    case SNAPSHOT_OOM: /* its address is none */
        w->idle += span && is_idle(span);
        return 0;
    default:
        break;
    }
    span = device_spans_find(&w->now, event->address);
    w->idle += span && is_idle(span);
    return 0;
}

/* Nothing goes back for a request while a private pool is open. When nothing could, the open pool is the likely one if it serves the
 * next allocation as well. */
static uint32_t pool_of_oom(const struct import_work *w, size_t i)
{
    if (i > 0 && gives_back(&w->s->events[i - 1]))
        return 0;
    return w->pool_of_event[i] == w->open_pool ? w->open_pool : 0;
}

static void write_event(struct import_work *w, size_t i)
{
    const struct snapshot_event *event = &w->s->events[i];
    uint64_t *live = import_is_allocation(event) ? &w->live[w->address_of_event[i]] : NULL;
    switch (event->action) {
    case SNAPSHOT_ALLOC:
        w->import->other_streams += event->stream != w->s->events[0].stream;
        if (event->bytes == 0)
            break;
        switch_pool(w, w->pool_of_event[i]);
        *live = write_alloc(w, event->bytes, event->time_us);
        break;
    case SNAPSHOT_FREE_COMPLETED:
        if (*live != 0)
            write_free(w, *live, event->time_us);
        else
            w->import->unknown_frees++;
        *live = 0;
        break;
    case SNAPSHOT_OOM:
        w->import->ooms++;
        switch_pool(w, pool_of_oom(w, i));
        if (event->bytes > 0)
            write_alloc(w, event->bytes, event->time_us);
        break;
    default:
        break;
    }
}

static int write_history(struct import_work *w)
{
    uint64_t held = w->import->start_bytes;
    size_t run_end = 0;
    for (size_t i = 0; i < w->s->event_count; i++) {
        const struct snapshot_event *event = &w->s->events[i];
        if (gives_back(event) && i >= run_end && is_empty_cache(w, i, held, &run_end)) {
            switch_pool(w, 0);
            print(w, "{\"op\":\"empty_cache\"}\n");
            w->import->empty_caches++;
        }
        held = held_after(event, held);
        write_event(w, i);
        if (follow(w, i) != 0)
            return -1;
    }
    switch_pool(w, 0);
    return 0;
}

static int import_all(struct import_work *w)
{
    if (import_go_back(w) != 0 || import_find_old(w) != 0 || write_start(w) != 0)
        return -1;
    bound_cap(w);
    if (write_history(w) != 0)
        return -1;
    if (w->out && ferror(w->out))
        return err_set(w->err, ERR_FAILED, "cannot write the operations");
    return 0;
}

int device_import_write(const struct device_snapshot *snapshot, FILE *out, struct device_import *import, struct err *err)
{
    size_t events = snapshot->event_count, blocks = snapshot->block_count;
    struct import_work w = {.s = snapshot, .import = import, .out = out, .err = err};
    *import = (struct device_import){.snapshot = snapshot, .cap_bytes_max = UINT64_MAX};
    device_spans_init(&w.spans);
    device_spans_init(&w.now);
    dev_settings_init(&w.settings);
    dev_settings_parse(&w.settings, snapshot->setting, NULL, 0); /* one that cannot be read counts as none */
    w.address_of_event = calloc(events + 1, sizeof *w.address_of_event);
    w.pool_of_event = calloc(events + 1, sizeof *w.pool_of_event);
    w.live = calloc(events + blocks + 1, sizeof *w.live);
    w.old = calloc(events + blocks + 1, sizeof *w.old);
    w.pools = calloc(snapshot->segment_count + 1, sizeof *w.pools);
    int status = -1;
    if (!w.address_of_event || !w.pool_of_event || !w.live || !w.old || !w.pools || !id_index_init(&w.addresses) ||
        !id_index_init(&w.pool_keys))
        import_out_of_memory(&w);
    else
        status = import_all(&w);
    id_index_release(&w.addresses);
    id_index_release(&w.pool_keys);
    device_spans_release(&w.spans);
    device_spans_release(&w.now);
    free(w.address_of_event);
    free(w.pool_of_event);
    free(w.live);
    free(w.old);
    free(w.pools);
    return status;
}
