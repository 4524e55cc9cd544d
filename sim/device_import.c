#include "sim/device_import.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "allocator/device/device_allocator.h"
#include "sim/device_spans.h"
#include "sim/id_index.h"

#define SMALL_MAX_BYTES DEV_MIB
#define SMALL_SEGMENT_BYTES (2 * DEV_MIB)
#define LARGE_SEGMENT_BYTES (20 * DEV_MIB)
#define ROUND_BYTES 512ull

/* An allocation that was there when the history began. */
struct old_block {
    uint64_t address;
    uint64_t bytes;       /* of the block if known, else asked for */
    bool bytes_are_known;
    uint32_t number;      /* of its address */
};

struct work {
    const struct device_snapshot *s;
    struct device_import *import;
    struct dev_settings settings;
    FILE *out;
    struct device_spans spans;  /* going back: those held before event i; then those at the start */
    struct device_spans now;    /* in the history: those held */
    uint64_t idle;              /* of them: cudaMalloc'd, of the default pool, without live blocks */
    struct id_index addresses;
    struct id_index pool_keys;  /* hashes of their two numbers */
    uint32_t *address_of_event; /* numbers */
    uint64_t *live;             /* by number: the operation id that lives there, 0: none */
    uint32_t *pool_of_event;
    uint64_t (*pools)[2];       /* [0]: the default pool */
    uint32_t pool_count;
    struct old_block *old;
    size_t old_count;
    uint64_t base_address;
    uint64_t last_id;
    uint32_t open_pool;
    uint32_t next_pool;         /* going back: of the allocation after event i */
    struct err *err;
};

static int out_of_memory(struct work *w)
{
    return err_set(w->err, ERR_FAILED, "out of memory");
}

/* ---- going back: which segments and pools ---- */

/* Pools of the final segments, numbered in order of appearance; the default pool, {0, 0}, is 0. */
static int pool_number(struct work *w, const uint64_t pool[2], uint32_t *number)
{
    uint64_t key = XXH3_64bits(pool, 2 * sizeof pool[0]);
    if (id_index_number(&w->pool_keys, &key, 1, number) != ID_INDEX_OK)
        return -1;
    if (*number == w->pool_count)
        memcpy(w->pools[w->pool_count++], pool, sizeof w->pools[0]);
    return 0;
}

static int start_from_the_end(struct work *w)
{
    uint32_t number;
    if (pool_number(w, (const uint64_t[2]){0, 0}, &number) != 0)
        return out_of_memory(w);
    for (size_t i = 0; i < w->s->segment_count; i++) {
        const struct snapshot_segment *segment = &w->s->segments[i];
        struct device_span span = {.small = segment->small, .expandable = segment->expandable};
        if (pool_number(w, segment->pool, &span.pool) != 0)
            return out_of_memory(w);
        span.node.address = segment->address;
        span.node.bytes = segment->bytes;
        if (!device_spans_add(&w->spans, &span))
            return out_of_memory(w);
    }
    return 0;
}

/* A segment that is gone at the end: small ones are told by their size, pages by what 20 MiB divides. */
static struct device_span gone_span(const struct snapshot_event *event, bool expandable)
{
    struct device_span span = {.expandable = expandable};
    span.node.address = event->address;
    span.node.bytes = event->bytes;
    span.small = expandable ? event->bytes % LARGE_SEGMENT_BYTES != 0 : event->bytes == SMALL_SEGMENT_BYTES;
    return span;
}

static int go_back_over(struct work *w, size_t i)
{
    const struct snapshot_event *event = &w->s->events[i];
    struct device_span *span = device_spans_find(&w->spans, event->address), gone;
    bool ok = true;
    if (w->spans.bytes > w->import->reserved_bytes_peak)
        w->import->reserved_bytes_peak = w->spans.bytes;
    switch (event->action) {
    case SNAPSHOT_ALLOC:
        w->pool_of_event[i] = w->next_pool = span ? span->pool : 0;
        break;
    case SNAPSHOT_OOM: /* of the next allocation: good for a guess */
        w->pool_of_event[i] = w->next_pool;
        break;
    case SNAPSHOT_SEGMENT_ALLOC:
    case SNAPSHOT_SEGMENT_MAP:
        ok = device_spans_remove(&w->spans, event->address, event->bytes);
        break;
    case SNAPSHOT_SEGMENT_FREE:
    case SNAPSHOT_SEGMENT_UNMAP:
        if (event->bytes == 0)
            break;
        gone = gone_span(event, event->action == SNAPSHOT_SEGMENT_UNMAP);
        ok = device_spans_add(&w->spans, &gone);
        break;
    default:
        break;
    }
    return ok ? 0 : out_of_memory(w);
}

static int go_back(struct work *w)
{
    if (start_from_the_end(w) != 0)
        return -1;
    for (size_t i = w->s->event_count; i-- > 0;)
        if (go_back_over(w, i) != 0)
            return -1;
    if (w->spans.bytes > w->import->reserved_bytes_peak)
        w->import->reserved_bytes_peak = w->spans.bytes;
    return 0;
}

/* ---- which allocations were there already ---- */

static bool is_allocation(const struct snapshot_event *event)
{
    return event->action == SNAPSHOT_ALLOC || event->action == SNAPSHOT_FREE_COMPLETED;
}

static int number_addresses(struct work *w)
{
    for (size_t i = 0; i < w->s->event_count; i++)
        if (is_allocation(&w->s->events[i]) &&
            id_index_number(&w->addresses, &w->s->events[i].address, 1, &w->address_of_event[i]) != ID_INDEX_OK)
            return out_of_memory(w);
    return 0;
}

static void add_old(struct work *w, uint64_t address, uint64_t bytes, bool known, uint32_t number)
{
    w->old[w->old_count++] = (struct old_block){address, bytes, known, number};
}

/* `live` says what an address is while the events go by: 0 never seen, 1 live, 2 free. */
enum { UNSEEN, LIVE, DEAD };

static int find_old(struct work *w)
{
    const struct device_snapshot *s = w->s;
    for (size_t i = 0; i < s->event_count; i++) {
        if (!is_allocation(&s->events[i]))
            continue;
        uint64_t *seen = &w->live[w->address_of_event[i]];
        bool frees = s->events[i].action == SNAPSHOT_FREE_COMPLETED;
        if (frees && *seen == UNSEEN && s->events[i].bytes > 0)
            add_old(w, s->events[i].address, s->events[i].bytes, false, w->address_of_event[i]);
        *seen = frees ? DEAD : LIVE;
    }
    for (size_t i = 0; i < s->block_count; i++) {
        uint32_t number;
        if (s->blocks[i].state == SNAPSHOT_INACTIVE)
            continue;
        if (id_index_number(&w->addresses, &s->blocks[i].address, 1, &number) != ID_INDEX_OK)
            return out_of_memory(w);
        if (w->live[number] == UNSEEN)
            add_old(w, s->blocks[i].address, s->blocks[i].bytes, true, number);
        w->live[number] = LIVE;
    }
    memset(w->live, 0, (s->event_count + s->block_count + 1) * sizeof *w->live);
    return 0;
}

static int compare_old(const void *x, const void *y)
{
    const struct old_block *a = x, *b = y;
    return (a->address > b->address) - (a->address < b->address);
}

/* ---- writing ---- */

static void print(struct work *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print(struct work *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (w->out)
        vfprintf(w->out, format, args);
    va_end(args);
}

static void print_pool_name(struct work *w, uint32_t pool)
{
    print(w, "\"%" PRIu64 ".%" PRIu64 "\"", w->pools[pool][0], w->pools[pool][1]);
}

static void switch_pool(struct work *w, uint32_t pool)
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

static uint64_t write_alloc(struct work *w, uint64_t bytes, uint64_t time_us)
{
    print(w, "{\"op\":\"alloc\",\"id\":%" PRIu64 ",\"bytes\":%" PRIu64, ++w->last_id, bytes);
    if (time_us > 0)
        print(w, ",\"time_us\":%" PRIu64, time_us);
    print(w, "}\n");
    w->import->allocs++;
    return w->last_id;
}

static void write_free(struct work *w, uint64_t id, uint64_t time_us)
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

/* The size of an old block, when `room` bytes follow it up to the next one or the segment's end. A cudaMalloc'd large segment has no
 * free block of 1 MiB or less: such a rest belongs to the block before it. */
static uint64_t old_block_bytes(const struct old_block *block, const struct device_span *span, uint64_t room)
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
static size_t fill_cells(struct work *w, const struct device_span *span, size_t *next, struct cell *cells)
{
    uint64_t at = span->node.address, end = at + span->node.bytes;
    size_t n = 0;
    for (; *next < w->old_count && w->old[*next].address < end; (*next)++) {
        const struct old_block *block = &w->old[*next];
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

static void write_segment(struct work *w, const struct device_span *span, const struct cell *cells, size_t n)
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
static bool hold(struct work *w, const struct device_span *span, const struct cell *cells, size_t n)
{
    struct device_span held = *span;
    held.live = 0;
    for (size_t i = 0; i < n; i++)
        held.live += cells[i].id != 0;
    w->idle += !held.expandable && held.pool == 0 && held.live == 0;
    return device_spans_add(&w->now, &held);
}

/* Allocations that lie in no segment the snapshot knows of. */
static void write_strays(struct work *w)
{
    for (size_t i = 0; i < w->old_count; i++)
        if (w->live[w->old[i].number] == 0)
            w->live[w->old[i].number] = write_alloc(w, w->old[i].bytes, 0);
}

static int write_start(struct work *w)
{
    struct cell *cells = malloc((2 * w->old_count + 2) * sizeof *cells);
    size_t next = 0;
    if (!cells)
        return out_of_memory(w);
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
            return out_of_memory(w);
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
static bool is_empty_cache(const struct work *w, size_t i, uint64_t held, size_t *end)
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
static void bound_cap(struct work *w)
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
static int follow(struct work *w, size_t i)
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
            return out_of_memory(w);
        break;
    case SNAPSHOT_SEGMENT_FREE:
    case SNAPSHOT_SEGMENT_UNMAP:
        if (!device_spans_remove(&w->now, event->address, event->bytes))
            return out_of_memory(w);
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
static uint32_t pool_of_oom(const struct work *w, size_t i)
{
    if (i > 0 && gives_back(&w->s->events[i - 1]))
        return 0;
    return w->pool_of_event[i] == w->open_pool ? w->open_pool : 0;
}

static void write_event(struct work *w, size_t i)
{
    const struct snapshot_event *event = &w->s->events[i];
    uint64_t *live = is_allocation(event) ? &w->live[w->address_of_event[i]] : NULL;
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

static int write_history(struct work *w)
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

static int import_all(struct work *w)
{
    if (go_back(w) != 0 || number_addresses(w) != 0 || find_old(w) != 0 || write_start(w) != 0)
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
    struct work w = {.s = snapshot, .import = import, .out = out, .err = err};
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
        out_of_memory(&w);
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

static void print_line(FILE *out, const char *what, uint64_t count, uint64_t bytes)
{
    char size[32];
    fprintf(out, "  %-38s %10" PRIu64 "  %14s\n", what, count, dev_size_text(bytes, size, sizeof size));
}

static void print_end(const struct device_snapshot *s, FILE *out)
{
    uint64_t counts[2] = {0}, bytes[2] = {0}, live = 0, live_bytes = 0, free_count = 0, free_bytes = 0, waiting = 0, waiting_bytes = 0;
    for (size_t i = 0; i < s->segment_count; i++) {
        counts[s->segments[i].small]++;
        bytes[s->segments[i].small] += s->segments[i].bytes;
    }
    for (size_t i = 0; i < s->block_count; i++) {
        const struct snapshot_block *block = &s->blocks[i];
        *(block->state == SNAPSHOT_ACTIVE ? &live : block->state == SNAPSHOT_INACTIVE ? &free_count : &waiting) += 1;
        *(block->state == SNAPSHOT_ACTIVE ? &live_bytes : block->state == SNAPSHOT_INACTIVE ? &free_bytes : &waiting_bytes) += block->bytes;
    }
    fprintf(out, "at the end\n");
    print_line(out, "large segments", counts[0], bytes[0]);
    print_line(out, "small segments", counts[1], bytes[1]);
    print_line(out, "live blocks", live, live_bytes);
    if (waiting > 0)
        print_line(out, "blocks that wait for a stream", waiting, waiting_bytes);
    print_line(out, "free blocks", free_count, free_bytes);
}

void device_import_print(const struct device_import *import, const char *name, FILE *out)
{
    const struct device_snapshot *s = import->snapshot;
    char a[32], b[32];
    fprintf(out, "%s: %zu segments, %zu events, setting '%s'\n", name, s->segment_count, s->event_count, s->setting);
    fprintf(out, "at the start of the history\n");
    print_line(out, "segments", import->start_segments, import->start_bytes);
    print_line(out, "live blocks", import->start_live_blocks, import->start_live_bytes);
    fprintf(out, "in the history\n");
    fprintf(out, "  %-38s %10" PRIu64 "\n  %-38s %10" PRIu64 "\n  %-38s %10" PRIu64 "\n  %-38s %10" PRIu64 "\n", "allocations, failed ones too",
            import->allocs, "frees", import->frees, "out of memory", import->ooms, "cache emptied", import->empty_caches);
    fprintf(out, "  %-38s %10s  %14s\n", "peak reserved", "", dev_size_text(import->reserved_bytes_peak, a, sizeof a));
    if (import->cap_bytes_max != UINT64_MAX && import->cap_bytes_max >= import->cap_bytes_min)
        fprintf(out, "  memory ended between %s and %s (%" PRIu64 " and %" PRIu64 " bytes): give --cap\n",
                dev_size_text(import->cap_bytes_min, a, sizeof a), dev_size_text(import->cap_bytes_max, b, sizeof b), import->cap_bytes_min,
                import->cap_bytes_max);
    if (s->event_count > 0) {
        uint64_t first = s->events[0].time_us, last = s->events[s->event_count - 1].time_us;
        fprintf(out, "  %-38s %10s  %13.3fs\n", "time", "", last > first ? (double)(last - first) * 1e-6 : 0.0);
    }
    print_end(s, out);
    if (import->other_streams > 0)
        fprintf(out, "note: %" PRIu64 " allocations on other streams are replayed on one\n", import->other_streams);
    if (import->unknown_frees > 0)
        fprintf(out, "note: %" PRIu64 " frees of addresses that were free already are left out\n", import->unknown_frees);
    if (s->devices > 1)
        fprintf(out, "note: the file has the history of %zu devices; --device chooses\n", s->devices);
}
