/* Going back from the segments at the end: which were there at the start, which pool each allocation came from, and which
 * allocations are older than the history. */
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "sim/device_import_internal.h"

int import_out_of_memory(struct import_work *w)
{
    return err_set(w->err, ERR_FAILED, "out of memory");
}

/* ---- going back: which segments and pools ---- */

/* Pools of the final segments, numbered in order of appearance; the default pool, {0, 0}, is 0. */
static int pool_number(struct import_work *w, const uint64_t pool[2], uint32_t *number)
{
    uint64_t key = XXH3_64bits(pool, 2 * sizeof pool[0]);
    if (id_index_number(&w->pool_keys, &key, 1, number) != ID_INDEX_OK)
        return -1;
    if (*number == w->pool_count)
        memcpy(w->pools[w->pool_count++], pool, sizeof w->pools[0]);
    return 0;
}

static int start_from_the_end(struct import_work *w)
{
    uint32_t number;
    if (pool_number(w, (const uint64_t[2]){0, 0}, &number) != 0)
        return import_out_of_memory(w);
    for (size_t i = 0; i < w->s->segment_count; i++) {
        const struct snapshot_segment *segment = &w->s->segments[i];
        struct device_span span = {.small = segment->small, .expandable = segment->expandable};
        if (pool_number(w, segment->pool, &span.pool) != 0)
            return import_out_of_memory(w);
        span.node.address = segment->address;
        span.node.bytes = segment->bytes;
        if (!device_spans_add(&w->spans, &span))
            return import_out_of_memory(w);
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

static int go_back_over(struct import_work *w, size_t i)
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
    return ok ? 0 : import_out_of_memory(w);
}

int import_go_back(struct import_work *w)
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

static int number_addresses(struct import_work *w)
{
    for (size_t i = 0; i < w->s->event_count; i++)
        if (import_is_allocation(&w->s->events[i]) &&
            id_index_number(&w->addresses, &w->s->events[i].address, 1, &w->address_of_event[i]) != ID_INDEX_OK)
            return import_out_of_memory(w);
    return 0;
}

static void add_old(struct import_work *w, uint64_t address, uint64_t bytes, bool known, uint32_t number)
{
    w->old[w->old_count++] = (struct import_old_block){address, bytes, known, number};
}

/* `live` says what an address is while the events go by: 0 never seen, 1 live, 2 free. */
enum { UNSEEN, LIVE, DEAD };

int import_find_old(struct import_work *w)
{
    const struct device_snapshot *s = w->s;
    if (number_addresses(w) != 0)
        return -1;
    for (size_t i = 0; i < s->event_count; i++) {
        if (!import_is_allocation(&s->events[i]))
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
            return import_out_of_memory(w);
        if (w->live[number] == UNSEEN)
            add_old(w, s->blocks[i].address, s->blocks[i].bytes, true, number);
        w->live[number] = LIVE;
    }
    memset(w->live, 0, (s->event_count + s->block_count + 1) * sizeof *w->live);
    return 0;
}
