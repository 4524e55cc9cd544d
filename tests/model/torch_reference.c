#include "tests/model/torch_reference.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { FREE, LIVE, UNMAPPED };

struct ref_block {
    uint64_t addr, bytes, asked;
    int state;
    uint64_t freed_at; /* look-ups of its pool when it was freed */
};

struct ref_segment {
    int pool; /* 0: the default pool */
    bool small, expandable;
    uint64_t base, span; /* of an expandable one: the whole range */
    struct ref_block *blocks;
    int count;
};

struct ref_region {
    uint64_t start, bytes;
    int order; /* the larger, the younger */
    bool permanent;
};

struct ref_taken {
    uint64_t addr, bytes;
    int region; /* its order */
};

struct ref_pool {
    bool open, released;
};

struct ref_model {
    struct ref_config config;
    struct ref_segment *segments;
    int segment_count;
    struct ref_region *regions;
    int region_count, next_order;
    struct ref_taken *taken;
    int taken_count;
    uint64_t device_free;
    struct ref_pool *pools; /* [0] unused */
    int pool_count;
    int *open; /* the innermost last */
    int open_count;
    uint64_t (*lookups)[2]; /* [pool][small] */
    struct ref_event *events;
    size_t event_count;
    uint64_t retries, ooms, device_allocs, device_frees, syncs;
};

static void *more(void *items, size_t count, size_t bytes)
{
    void *moved = realloc(items, (count + 1) * bytes);
    assert(moved);
    return moved;
}

static uint64_t up(uint64_t value, uint64_t unit)
{
    return value % unit == 0 ? value : value - value % unit + unit;
}

static void note(struct ref_model *m, int kind, uint64_t addr, uint64_t bytes)
{
    m->events = more(m->events, m->event_count, sizeof *m->events);
    m->events[m->event_count++] = (struct ref_event){kind, addr, bytes};
    if (kind == REF_ALLOC_EVENT || kind == REF_MAP_EVENT)
        m->device_allocs++;
    else
        m->device_frees++;
}

/* ---- the driver ---- */

static void add_region(struct ref_model *m, uint64_t start, uint64_t bytes, bool permanent)
{
    m->regions = more(m->regions, (size_t)m->region_count, sizeof *m->regions);
    m->regions[m->region_count++] = (struct ref_region){start, bytes, m->next_order++, permanent};
}

static bool has_pages(const struct ref_model *m, uint64_t bytes)
{
    uint64_t whole = m->device_free / (2 * MIB);
    return whole > 0 && bytes / (2 * MIB) <= whole - 1;
}

static const struct ref_taken *taken_over(const struct ref_model *m, uint64_t addr)
{
    for (int i = 0; i < m->taken_count; i++)
        if (addr >= m->taken[i].addr && addr < m->taken[i].addr + m->taken[i].bytes)
            return &m->taken[i];
    return NULL;
}

/* Address of the smallest hole of the region that fits, the lowest on a tie; REF_NONE if none does. */
static uint64_t hole_in(const struct ref_model *m, const struct ref_region *region, uint64_t bytes)
{
    uint64_t best = REF_NONE, best_bytes = REF_NONE, at = region->start;
    while (at < region->start + region->bytes) {
        const struct ref_taken *taken = taken_over(m, at);
        if (taken) {
            at = taken->addr + taken->bytes;
            continue;
        }
        uint64_t end = region->start + region->bytes;
        for (int i = 0; i < m->taken_count; i++)
            if (m->taken[i].addr > at && m->taken[i].addr < end)
                end = m->taken[i].addr;
        if (end - at >= bytes && end - at < best_bytes) {
            best = at;
            best_bytes = end - at;
        }
        at = end;
    }
    return best;
}

static const struct ref_region *region_over(const struct ref_model *m, uint64_t addr)
{
    for (int i = 0; i < m->region_count; i++)
        if (addr >= m->regions[i].start && addr < m->regions[i].start + m->regions[i].bytes)
            return &m->regions[i];
    return NULL;
}

/* Goes down from the top, gap by gap. */
static uint64_t start_of_new_region(const struct ref_model *m, uint64_t bytes)
{
    uint64_t end = m->config.top;
    while (end > 0) {
        const struct ref_region *region = region_over(m, end - 1);
        if (region) {
            end = region->start;
            continue;
        }
        uint64_t low = 0;
        for (int i = 0; i < m->region_count; i++) {
            uint64_t region_end = m->regions[i].start + m->regions[i].bytes;
            if (region_end <= end && region_end > low)
                low = region_end;
        }
        if (end - low > bytes)
            return end - bytes;
        end = low;
    }
    return REF_NONE;
}

static uint64_t driver_malloc(struct ref_model *m, uint64_t bytes)
{
    bytes = up(bytes, 2 * MIB);
    if (!has_pages(m, bytes))
        return REF_NONE;
    uint64_t addr = REF_NONE;
    int order = -1;
    for (int i = 0; i < m->region_count; i++) {
        uint64_t hole = hole_in(m, &m->regions[i], bytes);
        if (hole != REF_NONE && m->regions[i].order > order) {
            addr = hole;
            order = m->regions[i].order;
        }
    }
    if (addr == REF_NONE) {
        uint64_t region_bytes = up(bytes, 32 * MIB);
        addr = start_of_new_region(m, region_bytes);
        if (addr == REF_NONE)
            return REF_NONE;
        order = m->next_order;
        add_region(m, addr, region_bytes, false);
    }
    m->taken = more(m->taken, (size_t)m->taken_count, sizeof *m->taken);
    m->taken[m->taken_count++] = (struct ref_taken){addr, bytes, order};
    m->device_free -= bytes;
    return addr;
}

static void driver_free(struct ref_model *m, uint64_t addr)
{
    int at = 0;
    while (m->taken[at].addr != addr)
        at++;
    int order = m->taken[at].region;
    bool empty = true;
    m->device_free += m->taken[at].bytes;
    m->taken[at] = m->taken[--m->taken_count];
    for (int i = 0; i < m->taken_count; i++)
        empty = empty && m->taken[i].region != order;
    for (int i = 0; empty && i < m->region_count; i++)
        if (m->regions[i].order == order && !m->regions[i].permanent)
            m->regions[i] = m->regions[--m->region_count];
}

static bool range_is_free(const struct ref_model *m, uint64_t start, uint64_t bytes)
{
    uint64_t from = start - m->config.range;
    if (from < 1036320 * MIB && from + bytes > 966432 * MIB)
        return false;
    for (int i = 0; i < m->segment_count; i++) {
        const struct ref_segment *s = &m->segments[i];
        if (s->expandable && s->base < start + bytes && start < s->base + up(s->span, 32 * MIB))
            return false;
    }
    return true;
}

/* The lowest multiple of 32 MiB that has room: candidates are the beginnings of the two areas and the ends of ranges. */
static uint64_t place_range(const struct ref_model *m, uint64_t bytes)
{
    uint64_t best = REF_NONE;
    bytes = up(bytes, 32 * MIB);
    for (int i = -2; i < m->segment_count; i++) {
        if (i >= 0 && !m->segments[i].expandable)
            continue;
        uint64_t start = i == -2 ? m->config.range : i == -1 ? m->config.range + 1036320 * MIB
                                                             : m->segments[i].base + up(m->segments[i].span, 32 * MIB);
        if (start < best && range_is_free(m, start, bytes))
            best = start;
    }
    return best;
}

/* ---- segments and blocks ---- */

static struct ref_segment *add_segment(struct ref_model *m, int pool, bool small, bool expandable, uint64_t base, uint64_t span, int state)
{
    m->segments = more(m->segments, (size_t)m->segment_count, sizeof *m->segments);
    struct ref_segment *s = &m->segments[m->segment_count++];
    *s = (struct ref_segment){.pool = pool, .small = small, .expandable = expandable, .base = base, .span = span, .count = 1};
    s->blocks = more(NULL, 0, sizeof *s->blocks);
    s->blocks[0] = (struct ref_block){base, span, 0, state, m->lookups[pool][small]};
    return s;
}

static void drop_segment(struct ref_model *m, int index)
{
    free(m->segments[index].blocks);
    m->segments[index] = m->segments[--m->segment_count];
}

/* Cuts block i in two at `bytes`. */
static void cut(struct ref_segment *s, int i, uint64_t bytes)
{
    if (bytes == 0 || bytes == s->blocks[i].bytes)
        return;
    s->blocks = more(s->blocks, (size_t)s->count, sizeof *s->blocks);
    memmove(&s->blocks[i + 1], &s->blocks[i], (size_t)(s->count - i) * sizeof *s->blocks);
    s->count++;
    s->blocks[i].bytes = bytes;
    s->blocks[i + 1].addr += bytes;
    s->blocks[i + 1].bytes -= bytes;
}

/* Joins neighbours in the same state, live ones excepted. The age of what is joined is that of the last one freed. */
static void join(struct ref_segment *s)
{
    for (int i = 0; i + 1 < s->count;) {
        struct ref_block *a = &s->blocks[i], *b = &s->blocks[i + 1];
        if (a->state != b->state || a->state == LIVE) {
            i++;
            continue;
        }
        a->bytes += b->bytes;
        a->freed_at = a->freed_at > b->freed_at ? a->freed_at : b->freed_at;
        memmove(b, b + 1, (size_t)(s->count - i - 2) * sizeof *s->blocks);
        s->count--;
    }
}

/* A block by segment and place. */
struct ref_spot {
    int segment, block; /* segment -1: none */
};

static const struct ref_block *at_spot(const struct ref_model *m, struct ref_spot spot)
{
    return &m->segments[spot.segment].blocks[spot.block];
}

static bool comes_after(const struct ref_block *a, uint64_t bytes, uint64_t addr)
{
    return a->bytes > bytes || (a->bytes == bytes && a->addr > addr);
}

/* The first free block of the pool behind (bytes, addr) in the order of size and address. */
static struct ref_spot next_free(const struct ref_model *m, int pool, bool small, uint64_t bytes, uint64_t addr)
{
    struct ref_spot best = {-1, -1};
    for (int i = 0; i < m->segment_count; i++) {
        const struct ref_segment *s = &m->segments[i];
        for (int k = 0; s->pool == pool && s->small == small && k < s->count; k++) {
            const struct ref_block *b = &s->blocks[k];
            if (b->state != FREE || !comes_after(b, bytes, addr))
                continue;
            if (best.segment < 0 || comes_after(at_spot(m, best), b->bytes, b->addr))
                best = (struct ref_spot){i, k};
        }
    }
    return best;
}

static uint64_t could_grow_to(const struct ref_model *m, struct ref_spot spot)
{
    const struct ref_segment *s = &m->segments[spot.segment];
    const struct ref_block *b = &s->blocks[spot.block];
    bool grows = spot.block + 1 < s->count && b[1].state == UNMAPPED;
    return b->bytes + (grows ? b[1].bytes : 0);
}

static struct ref_spot best_fit(const struct ref_model *m, int pool, bool small, uint64_t size)
{
    struct ref_spot none = {-1, -1};
    /* Behind every block of size - 1 means: of at least size. */
    struct ref_spot spot = next_free(m, pool, small, size - 1, UINT64_MAX);
    while (spot.segment >= 0 && m->config.expandable) {
        struct ref_spot next = next_free(m, pool, small, at_spot(m, spot)->bytes, at_spot(m, spot)->addr);
        if (next.segment < 0 || could_grow_to(m, next) >= could_grow_to(m, spot))
            break;
        spot = next;
    }
    if (spot.segment < 0)
        return none;
    uint64_t bytes = at_spot(m, spot)->bytes;
    if (size < m->config.max_split ? bytes >= m->config.max_split : bytes >= size + 20 * MIB)
        return none;
    return spot;
}

/* ---- counters ---- */

void ref_counters(const struct ref_model *m, uint64_t c[REF_COUNTERS])
{
    memset(c, 0, REF_COUNTERS * sizeof *c);
    for (int i = 0; i < m->segment_count; i++) {
        const struct ref_segment *s = &m->segments[i];
        uint64_t mapped = 0;
        for (int k = 0; k < s->count; k++) {
            const struct ref_block *b = &s->blocks[k];
            mapped += b->state == UNMAPPED ? 0 : b->bytes;
            if (b->state == LIVE) {
                c[REF_ALLOCATED] += b->bytes;
                c[REF_REQUESTED] += b->asked;
                c[REF_LIVE]++;
                c[REF_ALLOCATED_SMALL] += s->small ? b->bytes : 0;
                c[REF_OVERSIZE_ALLOCATIONS] += b->bytes >= m->config.max_split;
            }
            if (b->state == FREE && s->pool != 0)
                c[REF_PRIVATE_FREE] += b->bytes;
            if (b->state == FREE && !s->expandable && s->count > 1) {
                c[REF_INACTIVE_SPLIT] += b->bytes;
                c[REF_INACTIVE_SPLITS]++;
            }
        }
        c[REF_RESERVED] += mapped;
        c[REF_RESERVED_SMALL] += s->small ? mapped : 0;
        c[REF_SMALL_SEGMENTS] += s->small && !s->expandable;
        c[REF_LARGE_SEGMENTS] += !s->small && !s->expandable;
        c[REF_OVERSIZE_SEGMENTS] += !s->expandable && s->span >= m->config.max_split;
    }
    c[REF_RETRIES] = m->retries;
    c[REF_OOMS] = m->ooms;
    c[REF_DEVICE_ALLOCS] = m->device_allocs;
    c[REF_DEVICE_FREES] = m->device_frees;
    c[REF_SYNCS] = m->syncs;
    c[REF_DEVICE_FREE] = m->device_free;
}

static uint64_t reserved(const struct ref_model *m)
{
    uint64_t c[REF_COUNTERS];
    ref_counters(m, c);
    return c[REF_RESERVED];
}

/* ---- giving back ---- */

static bool is_whole(const struct ref_segment *s)
{
    return !s->expandable && s->count == 1 && s->blocks[0].state == FREE;
}

static void give_back(struct ref_model *m, int index)
{
    struct ref_segment *s = &m->segments[index];
    note(m, REF_FREE_EVENT, s->base, s->span);
    driver_free(m, s->base);
    drop_segment(m, index);
}

/* The whole segment next in the order of size and address; -1: none. */
static int next_whole(const struct ref_model *m, int pool, bool small, uint64_t bytes, uint64_t addr)
{
    int best = -1;
    for (int i = 0; i < m->segment_count; i++) {
        const struct ref_segment *s = &m->segments[i];
        if (s->pool != pool || s->small != small || !is_whole(s) || !comes_after(&s->blocks[0], bytes, addr))
            continue;
        if (best < 0 || comes_after(&m->segments[best].blocks[0], s->span, s->base))
            best = i;
    }
    return best;
}

/* Whole pages inside block k of a range lose their memory. */
static void unmap_inside(struct ref_model *m, int index, uint64_t addr)
{
    struct ref_segment *s = &m->segments[index];
    uint64_t page = s->small ? 2 * MIB : 20 * MIB;
    int k = 0;
    while (s->blocks[k].addr != addr)
        k++;
    uint64_t begin = s->base + up(addr - s->base, page);
    uint64_t end = s->base + (addr + s->blocks[k].bytes - s->base) / page * page;
    if (begin >= end)
        return;
    if (begin > addr) {
        cut(s, k, begin - addr);
        k++;
    }
    cut(s, k, end - begin);
    s->blocks[k].state = UNMAPPED;
    join(s);
    m->device_free += end - begin;
    note(m, REF_UNMAP_EVENT, begin, end - begin);
    if (s->count == 1)
        drop_segment(m, index);
}

static int segment_of(const struct ref_model *m, uint64_t addr)
{
    for (int i = 0; i < m->segment_count; i++)
        if (addr >= m->segments[i].base && addr < m->segments[i].base + m->segments[i].span)
            return i;
    return -1;
}

static void release(struct ref_model *m, int pool, bool small)
{
    for (int i; (i = next_whole(m, pool, small, 0, 0)) >= 0;)
        give_back(m, i);
    if (!m->config.expandable)
        return;
    /* The list of what is free is made before the first page goes. */
    uint64_t *list = NULL;
    size_t n = 0;
    struct ref_spot spot = next_free(m, pool, small, 0, 0);
    while (spot.segment >= 0) {
        list = more(list, n, sizeof *list);
        list[n++] = at_spot(m, spot)->addr;
        spot = next_free(m, pool, small, at_spot(m, spot)->bytes, at_spot(m, spot)->addr);
    }
    for (size_t i = 0; i < n; i++)
        unmap_inside(m, segment_of(m, list[i]), list[i]);
    free(list);
}

static void release_all(struct ref_model *m)
{
    if (m->open_count == 0) {
        m->syncs++;
        release(m, 0, false);
        release(m, 0, true);
    }
    for (int pool = 1; pool < m->pool_count; pool++)
        if (m->pools[pool].released) {
            release(m, pool, true);
            release(m, pool, false);
        }
}

static void collect(struct ref_model *m)
{
    uint64_t threshold = (uint64_t)(m->config.gc * (double)m->config.cap), held = reserved(m), freed = 0;
    if (held <= threshold)
        return;
    while (freed < held - threshold) {
        uint64_t count = 0, sum = 0, addr = 0, bytes = 0;
        bool any = false;
        for (int i = 0; i < m->segment_count; i++)
            if (m->segments[i].pool == 0 && !m->segments[i].small && is_whole(&m->segments[i])) {
                sum += m->lookups[0][0] - m->segments[i].blocks[0].freed_at;
                count++;
            }
        for (int i; (i = next_whole(m, 0, false, bytes, addr)) >= 0;) {
            uint64_t age = m->lookups[0][0] - m->segments[i].blocks[0].freed_at;
            bytes = m->segments[i].span;
            addr = m->segments[i].base;
            if (age * count < sum)
                continue;
            freed += bytes;
            any = true;
            give_back(m, i);
        }
        if (!any)
            return;
    }
}

static bool sacrifice(struct ref_model *m, int pool, bool small, uint64_t size)
{
    if (m->config.max_split == REF_NONE || m->config.expandable)
        return false;
    uint64_t wanted = size > m->config.max_split ? size : m->config.max_split, freed = 0;
    int index = next_whole(m, pool, small, wanted - 1, UINT64_MAX);
    if (index >= 0) {
        give_back(m, index);
        return true;
    }
    while (freed < wanted) {
        int largest = -1;
        for (int i = 0; i < m->segment_count; i++) {
            const struct ref_segment *s = &m->segments[i];
            if (s->pool == pool && s->small == small && is_whole(s) && s->span >= m->config.max_split &&
                (largest < 0 || comes_after(&s->blocks[0], m->segments[largest].span, m->segments[largest].base)))
                largest = i;
        }
        if (largest < 0)
            return false;
        freed += m->segments[largest].span;
        give_back(m, largest);
    }
    return true;
}

/* ---- getting more ---- */

/* The lowest run of blocks that are not live, with an unmapped one among them, where `size` fits. Returns its first block. */
static struct ref_spot lowest_run(const struct ref_model *m, int pool, bool small, uint64_t size)
{
    struct ref_spot best = {-1, -1};
    for (int i = 0; i < m->segment_count; i++) {
        const struct ref_segment *s = &m->segments[i];
        if (!s->expandable || s->pool != pool || s->small != small)
            continue;
        for (int from = 0; from < s->count; from++) {
            bool starts = s->blocks[from].state != LIVE && (from == 0 || s->blocks[from - 1].state == LIVE);
            uint64_t bytes = 0;
            bool gap = false;
            for (int k = from; starts && k < s->count && s->blocks[k].state != LIVE; k++) {
                bytes += s->blocks[k].bytes;
                gap = gap || s->blocks[k].state == UNMAPPED;
            }
            if (starts && gap && bytes >= size && (best.segment < 0 || s->blocks[from].addr < at_spot(m, best)->addr))
                best = (struct ref_spot){i, from};
        }
    }
    return best;
}

/* Maps what is missing of [first block, size), gap by gap. */
static bool grow_range(struct ref_model *m, struct ref_spot *spot, uint64_t size)
{
    struct ref_segment *s = &m->segments[spot->segment];
    uint64_t page = s->small ? 2 * MIB : 20 * MIB, start = s->blocks[spot->block].addr;
    for (;;) {
        int k = 0;
        while (s->blocks[k].addr + s->blocks[k].bytes <= start)
            k++;
        if (s->blocks[k].state == FREE && s->blocks[k].bytes >= size) {
            spot->block = k;
            return true;
        }
        uint64_t have = 0;
        if (s->blocks[k].state == FREE)
            have = s->blocks[k++].bytes;
        uint64_t pages = up(size - have < s->blocks[k].bytes ? size - have : s->blocks[k].bytes, page);
        if (!has_pages(m, pages))
            return false;
        m->device_free -= pages;
        note(m, REF_MAP_EVENT, s->blocks[k].addr, pages);
        cut(s, k, pages);
        s->blocks[k].state = FREE;
        s->blocks[k].freed_at = m->lookups[s->pool][s->small];
        join(s);
    }
}

static struct ref_spot take_new(struct ref_model *m, int pool, bool small, uint64_t size, uint64_t segment)
{
    struct ref_spot none = {-1, -1}, spot;
    if (m->config.cap != REF_NONE && reserved(m) + segment > m->config.cap)
        return none;
    if (m->config.expandable) {
        spot = lowest_run(m, pool, small, size);
        if (spot.segment < 0) {
            uint64_t span = up(m->config.total + m->config.total / 8, small ? 2 * MIB : 20 * MIB);
            add_segment(m, pool, small, true, place_range(m, span), span, UNMAPPED);
            spot = (struct ref_spot){m->segment_count - 1, 0};
        }
        return grow_range(m, &spot, size) ? spot : none;
    }
    uint64_t addr = driver_malloc(m, segment);
    if (addr == REF_NONE)
        return none;
    note(m, REF_ALLOC_EVENT, addr, segment);
    add_segment(m, pool, small, false, addr, segment, FREE);
    return (struct ref_spot){m->segment_count - 1, 0};
}

static uint64_t rounded(const struct ref_model *m, uint64_t bytes)
{
    uint64_t d = m->config.divisions, floor = 512;
    if (bytes < 512)
        return 512;
    if (d <= 1 || bytes <= 512 * d)
        return up(bytes, 512);
    while (floor * 2 <= bytes)
        floor *= 2;
    uint64_t size = floor;
    while (size < bytes)
        size += floor / d;
    return size;
}

bool ref_alloc(struct ref_model *m, uint64_t bytes, uint64_t *addr, uint64_t *result)
{
    uint64_t size = rounded(m, bytes);
    bool small = size <= MIB;
    int pool = m->open_count > 0 ? m->open[m->open_count - 1] : 0;
    uint64_t segment = small ? 2 * MIB : size < 10 * MIB ? 20 * MIB : up(size, 2 * MIB);
    bool gc = m->config.gc > 0 && m->config.cap != REF_NONE;
    m->event_count = 0;
    m->lookups[pool][small] += gc;
    struct ref_spot spot = best_fit(m, pool, small, size);
    if (spot.segment < 0) {
        if (gc)
            collect(m);
        spot = take_new(m, pool, small, size, segment);
        if (spot.segment < 0 && sacrifice(m, pool, small, size))
            spot = take_new(m, pool, small, size, segment);
        if (spot.segment < 0 && m->open_count == 0) {
            release_all(m);
            m->retries++;
            spot = take_new(m, pool, small, size, segment);
        }
    }
    if (spot.segment < 0) {
        m->ooms++;
        return false;
    }
    struct ref_segment *s = &m->segments[spot.segment];
    uint64_t rest = s->blocks[spot.block].bytes - size;
    bool split = small || m->config.expandable ? rest >= 512 : size < m->config.max_split && rest > MIB;
    if (split) {
        cut(s, spot.block, size);
        if (rest > 0)
            s->blocks[spot.block + 1].freed_at = m->lookups[pool][small];
    }
    s->blocks[spot.block].state = LIVE;
    s->blocks[spot.block].asked = bytes;
    *addr = s->blocks[spot.block].addr;
    *result = s->blocks[spot.block].bytes;
    return true;
}

void ref_free(struct ref_model *m, uint64_t addr)
{
    m->event_count = 0;
    struct ref_segment *s = &m->segments[segment_of(m, addr)];
    for (int k = 0; k < s->count; k++)
        if (s->blocks[k].addr == addr) {
            s->blocks[k].state = FREE;
            s->blocks[k].freed_at = m->lookups[s->pool][s->small];
        }
    join(s);
}

void ref_empty_cache(struct ref_model *m)
{
    m->event_count = 0;
    release_all(m);
}

bool ref_foreign(struct ref_model *m, uint64_t bytes)
{
    m->event_count = 0;
    return driver_malloc(m, bytes) != REF_NONE;
}

/* ---- pools ---- */

int ref_pool_create(struct ref_model *m)
{
    m->pools = more(m->pools, (size_t)m->pool_count, sizeof *m->pools);
    m->open = more(m->open, (size_t)m->pool_count, sizeof *m->open);
    m->lookups = more(m->lookups, (size_t)m->pool_count, sizeof *m->lookups);
    memset(&m->pools[m->pool_count], 0, sizeof *m->pools);
    memset(&m->lookups[m->pool_count], 0, sizeof *m->lookups);
    m->event_count = 0;
    return m->pool_count++;
}

void ref_pool_begin(struct ref_model *m, int pool)
{
    m->event_count = 0;
    m->open[m->open_count++] = pool;
}

void ref_pool_end(struct ref_model *m, int pool)
{
    int kept = 0;
    m->event_count = 0;
    for (int i = 0; i < m->open_count; i++)
        if (m->open[i] != pool)
            m->open[kept++] = m->open[i];
    m->open_count = kept;
}

void ref_pool_release(struct ref_model *m, int pool)
{
    m->event_count = 0;
    m->syncs++;
    m->pools[pool].released = true;
    release(m, pool, true);
    release(m, pool, false);
}

/* ---- life ---- */

struct ref_model *ref_create(const struct ref_config *config)
{
    struct ref_model *m = calloc(1, sizeof *m);
    assert(m);
    m->config = *config;
    m->device_free = config->free;
    add_region(m, config->top + 488 * MIB, 24 * MIB, true);
    add_region(m, config->top + 414 * MIB, 2 * MIB, true);
    ref_pool_create(m); /* 0, the default pool */
    return m;
}

void ref_destroy(struct ref_model *m)
{
    for (int i = 0; i < m->segment_count; i++)
        free(m->segments[i].blocks);
    free(m->segments);
    free(m->regions);
    free(m->taken);
    free(m->pools);
    free(m->open);
    free(m->lookups);
    free(m->events);
    free(m);
}

const struct ref_event *ref_events(const struct ref_model *m, size_t *count)
{
    *count = m->event_count;
    return m->events;
}

static void print_stretch(FILE *out, const struct ref_segment *s, int first, int end)
{
    uint64_t bytes = 0;
    for (int k = first; k < end; k++)
        bytes += s->blocks[k].bytes;
    fprintf(out, "%" PRIu64 " %" PRIu64 " %s %d %d:", s->blocks[first].addr, bytes, s->small ? "small" : "large", s->pool, s->expandable);
    for (int k = first; k < end; k++)
        fprintf(out, " %" PRIu64 "%s", s->blocks[k].bytes, s->blocks[k].state == LIVE ? "*" : "");
    fputc('\n', out);
}

static void print_segment(FILE *out, const struct ref_segment *s)
{
    for (int first = 0, end; first < s->count; first = end) {
        end = first + 1;
        if (s->blocks[first].state == UNMAPPED)
            continue;
        while (end < s->count && s->blocks[end].state != UNMAPPED)
            end++;
        print_stretch(out, s, first, end);
    }
}

char *ref_layout(const struct ref_model *m)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert(out);
    uint64_t from = 0;
    for (int n = 0; n < m->segment_count; n++) {
        int lowest = -1;
        for (int i = 0; i < m->segment_count; i++)
            if (m->segments[i].base >= from && (lowest < 0 || m->segments[i].base < m->segments[lowest].base))
                lowest = i;
        print_segment(out, &m->segments[lowest]);
        from = m->segments[lowest].base + 1;
    }
    fclose(out);
    return text;
}
