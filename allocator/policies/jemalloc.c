#include <assert.h>
#include <inttypes.h>
#include <jemalloc/jemalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocator/extent_set.h"
#include "allocator/reserve.h"

/* The reservations of `static` from a real general-purpose allocator: a jemalloc arena whose only source of
 * memory is an address range as large as the pool. The range is never touched (PROT_NONE); its pages are
 * handed out and taken back by the extent hooks below, lowest address first, and jemalloc adds what it always
 * adds: size classes, a page of cache-oblivious padding for large regions, slabs for small ones.
 *
 * The arena keeps nothing back: no thread cache, no decay, and an extent is granted only at the exact size
 * that the allocation needs (jemalloc would otherwise grow in steps and retain the rest where no fact shows
 * it). So what the hooks have handed out, the regions, and nothing else decide what can be obtained. */

extern const struct kv_policy_ops kv_policy_jemalloc_ops;

enum { CLASSES_MAX = 512, BINS_MAX = 128 };

/* A size class: what a region of up to region_bytes takes from the hooks. */
struct size_class {
    uint64_t region_bytes;
    uint64_t extent_pages;
    uint32_t regions_per_extent; /* 1 for large classes */
};

struct region {
    void *address; /* NULL: the sequence holds nothing */
    uint64_t asked_slots;
    uint32_t size_class;
};

struct jemalloc_policy {
    struct kv_policy base;
    extent_hooks_t hooks;
    uint64_t pool_bytes;
    struct reserve reserve;
    uint32_t max_seqs;
    unsigned arena;
    bool arena_made;
    uint64_t page_bytes;
    char *range; /* pages of address space */
    uint64_t pages;
    struct extent_set free_pages;
    struct region *regions; /* [max_seqs] */
    uint64_t asked_slots;   /* sum over the regions */
    /* The classes up to the largest that fits the range. The first bin_count are small. */
    struct size_class classes[CLASSES_MAX];
    uint32_t class_count, bin_count;
    uint64_t slabs[BINS_MAX], live[BINS_MAX]; /* by small class: extents handed out, regions in use */
    uint32_t class_asked; /* of the mallocx or dallocx under way */
};

static const struct kv_option *const jemalloc_options[] = {
    &reserve_option, &oracle_slack_option, NULL,
};

/* --- extent hooks -------------------------------------------------------------------------- */

static struct jemalloc_policy *policy_of(extent_hooks_t *hooks)
{
    return (struct jemalloc_policy *)((char *)hooks - offsetof(struct jemalloc_policy, hooks));
}

static void *hook_alloc(extent_hooks_t *hooks, void *address, size_t bytes, size_t alignment, bool *zero,
                        bool *commit, unsigned arena)
{
    struct jemalloc_policy *p = policy_of(hooks);
    (void)arena;
    const struct size_class *c = &p->classes[p->class_asked];
    if (address != NULL || alignment > p->page_bytes || bytes != c->extent_pages * p->page_bytes)
        return NULL;
    uint64_t page;
    if (!extent_set_take(&p->free_pages, EXTENT_FIRST_FIT, c->extent_pages, &page))
        return NULL;
    if (p->class_asked < p->bin_count)
        p->slabs[p->class_asked]++;
    *zero = true; /* nobody will look */
    *commit = true;
    return p->range + page * p->page_bytes;
}

static bool hook_dalloc(extent_hooks_t *hooks, void *address, size_t bytes, bool committed, unsigned arena)
{
    struct jemalloc_policy *p = policy_of(hooks);
    (void)committed, (void)arena;
    uint64_t page = (uint64_t)((char *)address - p->range) / p->page_bytes;
    extent_set_give(&p->free_pages, page, bytes / p->page_bytes);
    if (p->class_asked < p->bin_count)
        p->slabs[p->class_asked]--;
    return false; /* taken back */
}

static const extent_hooks_t hooks_template = { .alloc = hook_alloc, .dalloc = hook_dalloc };

/* --- what jemalloc's size classes are ------------------------------------------------------ */

static bool read_control(const char *name, void *value, size_t bytes)
{
    size_t got = bytes;
    return mallctl(name, value, &got, NULL, 0) == 0 && got == bytes;
}

static bool read_bin(uint32_t bin, uint64_t page_bytes, struct size_class *c)
{
    char name[64];
    size_t region_bytes, slab_bytes;
    snprintf(name, sizeof name, "arenas.bin.%" PRIu32 ".size", bin);
    if (!read_control(name, &region_bytes, sizeof region_bytes))
        return false;
    snprintf(name, sizeof name, "arenas.bin.%" PRIu32 ".slab_size", bin);
    if (!read_control(name, &slab_bytes, sizeof slab_bytes))
        return false;
    snprintf(name, sizeof name, "arenas.bin.%" PRIu32 ".nregs", bin);
    c->region_bytes = region_bytes;
    c->extent_pages = slab_bytes / page_bytes;
    return read_control(name, &c->regions_per_extent, sizeof c->regions_per_extent);
}

/* Fills p->classes. Large extents are padded by one page when jemalloc was built cache-oblivious. */
static bool read_classes(struct jemalloc_policy *p)
{
    unsigned bins, larges;
    bool padded;
    if (!read_control("arenas.nbins", &bins, sizeof bins) || bins > BINS_MAX ||
        !read_control("arenas.nlextents", &larges, sizeof larges) || larges > CLASSES_MAX - BINS_MAX ||
        !read_control("opt.cache_oblivious", &padded, sizeof padded))
        return false;
    for (; p->bin_count < bins; p->bin_count++, p->class_count++)
        if (!read_bin(p->bin_count, p->page_bytes, &p->classes[p->class_count]))
            return false;
    for (unsigned large = 0; large < larges; large++) {
        char name[64];
        size_t region_bytes;
        snprintf(name, sizeof name, "arenas.lextent.%u.size", large);
        if (!read_control(name, &region_bytes, sizeof region_bytes))
            return false;
        uint64_t extent_pages = region_bytes / p->page_bytes + padded;
        if (extent_pages > p->pages)
            break;
        p->classes[p->class_count++] = (struct size_class){ region_bytes, extent_pages, 1 };
    }
    return true;
}

/* The class of a region, or class_count when it is larger than all that fit the range. */
static uint32_t class_for(const struct jemalloc_policy *p, uint64_t slots)
{
    uint64_t unit = p->base.unit_bytes;
    if (slots > p->pool_bytes / unit)
        return p->class_count;
    uint32_t low = 0, high = p->class_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->classes[middle].region_bytes >= slots * unit)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Regions of a class that could be had: in slabs that have room, and in new extents. */
static uint64_t count_regions(const struct jemalloc_policy *p, uint32_t class)
{
    const struct size_class *c = &p->classes[class];
    uint64_t count = extent_set_count_pieces(&p->free_pages, c->extent_pages) * c->regions_per_extent;
    if (class < p->bin_count)
        count += p->slabs[class] * c->regions_per_extent - p->live[class];
    return count;
}

/* --- creation ------------------------------------------------------------------------------ */

/* Fields and order are those of jemalloc 5.3's arena_config_t, which its public header does not have. */
struct arena_config {
    extent_hooks_t *extent_hooks;
    bool metadata_use_hooks; /* false: its own data structures live outside the range */
};

static bool set_decay(unsigned arena, const char *kind)
{
    char name[64];
    ssize_t at_once = 0;
    snprintf(name, sizeof name, "arena.%u.%s_decay_ms", arena, kind);
    return mallctl(name, NULL, NULL, &at_once, sizeof at_once) == 0;
}

static bool make_arena(struct jemalloc_policy *p)
{
    struct arena_config config = { .extent_hooks = &p->hooks, .metadata_use_hooks = false };
    size_t bytes = sizeof p->arena;
    const char *junk;
    bool zero;
    /* Filling would write to the range. */
    if (!read_control("opt.junk", &junk, sizeof junk) || strcmp(junk, "false") != 0 ||
        !read_control("opt.zero", &zero, sizeof zero) || zero)
        return false;
    if (mallctl("experimental.arenas_create_ext", &p->arena, &bytes, &config, sizeof config) != 0)
        return false;
    p->arena_made = true;
    return set_decay(p->arena, "dirty") && set_decay(p->arena, "muzzy");
}

static void jemalloc_give(struct jemalloc_policy *p, struct region *region);

static void jemalloc_destroy(struct kv_policy *policy)
{
    struct jemalloc_policy *p = (struct jemalloc_policy *)policy;
    for (uint32_t k = 0; p->regions != NULL && k < p->max_seqs; k++)
        jemalloc_give(p, &p->regions[k]);
    if (p->arena_made) {
        char name[64];
        snprintf(name, sizeof name, "arena.%u.destroy", p->arena);
        mallctl(name, NULL, NULL, NULL, 0);
    }
    if (p->range != NULL)
        munmap(p->range, (size_t)(p->pages * p->page_bytes));
    extent_set_release(&p->free_pages);
    free(p->regions);
    free(p);
}

static bool make_range(struct jemalloc_policy *p)
{
    p->regions = calloc(p->max_seqs, sizeof *p->regions);
    void *range = mmap(NULL, (size_t)(p->pages * p->page_bytes), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        return false;
    p->range = range;
    return p->regions != NULL && extent_set_init(&p->free_pages, p->pages, p->max_seqs);
}

static struct kv_policy *jemalloc_create(const struct kv_geometry *geometry, const struct kv_value *values,
                                         const struct kv_observer *observer, char *why, size_t why_bytes)
{
    (void)observer; /* nothing is evicted or copied on write */
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t slots = geometry->pool_bytes / geometry->bytes_per_token;
    if (slots == 0 || geometry->pool_bytes < page_bytes) {
        snprintf(why, why_bytes, "pool of %" PRIu64 " bytes: expected at least one page of %" PRIu64
                 " bytes and one token slot of %" PRIu64 " bytes", geometry->pool_bytes, page_bytes,
                 geometry->bytes_per_token);
        return NULL;
    }
    struct jemalloc_policy *p = calloc(1, sizeof *p);
    if (p == NULL) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    p->base = (struct kv_policy){
        .ops = &kv_policy_jemalloc_ops,
        .unit_bytes = geometry->bytes_per_token,
        .total_units = slots,
        .usable_units = slots,
    };
    p->hooks = hooks_template;
    p->pool_bytes = geometry->pool_bytes;
    p->max_seqs = geometry->max_seqs;
    p->page_bytes = page_bytes;
    p->pages = geometry->pool_bytes / page_bytes;
    reserve_init(&p->reserve, geometry, values[0], values[1]);
    p->base.clairvoyant = reserve_is_clairvoyant(&p->reserve);
    const char *missing = !make_range(p) ? "an address range of that size"
                          : !read_classes(p) ? "jemalloc 5.3 or later"
                          : !make_arena(p) ? "a jemalloc arena that does not fill memory" : NULL;
    if (missing != NULL) {
        snprintf(why, why_bytes, "pool of %" PRIu64 " bytes: expected %s", geometry->pool_bytes, missing);
        jemalloc_destroy(&p->base);
        return NULL;
    }
    return &p->base;
}

/* --- regions ------------------------------------------------------------------------------- */

static bool jemalloc_take(struct jemalloc_policy *p, struct region *region, uint64_t slots, uint32_t class)
{
    assert(region->address == NULL);
    p->class_asked = class;
    void *address = mallocx((size_t)(slots * p->base.unit_bytes),
                            (int)(MALLOCX_ARENA(p->arena) | MALLOCX_TCACHE_NONE));
    if (address == NULL)
        return false;
    if (class < p->bin_count)
        p->live[class]++;
    *region = (struct region){ address, slots, class };
    p->asked_slots += slots;
    return true;
}

static void jemalloc_give(struct jemalloc_policy *p, struct region *region)
{
    if (region->address == NULL)
        return;
    p->class_asked = region->size_class;
    dallocx(region->address, MALLOCX_TCACHE_NONE);
    if (region->size_class < p->bin_count)
        p->live[region->size_class]--;
    p->asked_slots -= region->asked_slots;
    *region = (struct region){ 0 };
}

static bool fits_empty(const struct jemalloc_policy *p, uint32_t class, uint32_t pieces)
{
    if (class == p->class_count || p->classes[class].extent_pages > p->pages)
        return false;
    const struct size_class *c = &p->classes[class];
    return p->pages / c->extent_pages * c->regions_per_extent >= pieces;
}

static enum kv_status jemalloc_admit(struct kv_policy *policy, const struct kv_ask *ask,
                                     struct kv_taken *taken)
{
    struct jemalloc_policy *p = (struct jemalloc_policy *)policy;
    uint64_t slots = reserve_tokens(&p->reserve, ask->request);
    uint32_t class = class_for(p, slots);
    assert(ask->slots_tokens <= slots);
    reserve_fill_taken(ask, slots, 1, taken);
    if (!fits_empty(p, class, ask->seq_count))
        return KV_NEVER_FITS;
    for (uint32_t k = 0; k < ask->seq_count; k++) {
        if (jemalloc_take(p, &p->regions[ask->seqs[k].index], slots, class))
            continue;
        while (k-- > 0)
            jemalloc_give(p, &p->regions[ask->seqs[k].index]);
        return KV_NO_SPACE;
    }
    return KV_OK;
}

static enum kv_status jemalloc_extend(struct kv_policy *policy, const struct kv_ask *ask,
                                      struct kv_taken *taken)
{
    const struct jemalloc_policy *p = (const struct jemalloc_policy *)policy;
    (void)taken;
    for (uint32_t k = 0; k < ask->seq_count; k++)
        assert(ask->slots_tokens <= p->regions[ask->seqs[k].index].asked_slots);
    return KV_OK;
}

static void jemalloc_fork(struct kv_policy *policy, kv_seq parent, const kv_seq *children, uint32_t count,
                          uint64_t filled_tokens)
{
    const struct jemalloc_policy *p = (const struct jemalloc_policy *)policy;
    assert(filled_tokens <= p->regions[parent.index].asked_slots);
    for (uint32_t i = 0; i < count; i++)
        assert(filled_tokens <= p->regions[children[i].index].asked_slots);
}

static void jemalloc_release(struct kv_policy *policy, const kv_seq *seqs, uint32_t count)
{
    struct jemalloc_policy *p = (struct jemalloc_policy *)policy;
    for (uint32_t k = 0; k < count; k++)
        jemalloc_give(p, &p->regions[seqs[k].index]);
}

/* --- facts --------------------------------------------------------------------------------- */

static void jemalloc_facts(const struct kv_policy *policy, struct kv_facts *facts)
{
    const struct jemalloc_policy *p = (const struct jemalloc_policy *)policy;
    uint64_t held = (p->pages - p->free_pages.free_units) * p->page_bytes;
    *facts = (struct kv_facts){
        .held_bytes = held,
        .rounding_bytes = held - p->asked_slots * policy->unit_bytes,
        .free_bytes = p->free_pages.free_units * p->page_bytes,
        .overhead_bytes = p->pool_bytes - p->pages * p->page_bytes,
        .referenced_bytes = held,
    };
}

/* What is added to a large region lies behind it, to the end of its extent; regions of a slab are packed. */
static void jemalloc_region(const struct kv_policy *policy, kv_seq seq, struct kv_region *region)
{
    const struct jemalloc_policy *p = (const struct jemalloc_policy *)policy;
    const struct region *r = &p->regions[seq.index];
    *region = (struct kv_region){ .asked_units = r->asked_slots };
    if (r->address == NULL)
        return;
    const struct size_class *c = &p->classes[r->size_class];
    uint64_t offset = (uint64_t)((char *)r->address - p->range), bytes = c->region_bytes;
    if (c->regions_per_extent == 1)
        bytes = c->extent_pages * p->page_bytes - offset % p->page_bytes;
    region->first_unit = offset / policy->unit_bytes;
    region->taken_units = bytes / policy->unit_bytes;
    if (region->taken_units < region->asked_units)
        region->taken_units = region->asked_units;
}

static void jemalloc_seq_facts(const struct kv_policy *policy, kv_seq seq, struct kv_seq_facts *facts)
{
    const struct jemalloc_policy *p = (const struct jemalloc_policy *)policy;
    *facts = (struct kv_seq_facts){ .end_token = p->regions[seq.index].asked_slots, .tail_holders = 1 };
}

/* The longest region of a class, in slots; 0 when regions that long belong to a smaller class. */
static uint64_t class_slots(const struct jemalloc_policy *p, uint32_t class)
{
    uint64_t slots = p->classes[class].region_bytes / p->base.unit_bytes;
    if (slots > p->base.usable_units)
        slots = p->base.usable_units;
    return slots > 0 && class_for(p, slots) == class ? slots : 0;
}

/* From the largest class down, because a small region may find no room where a larger one does: slabs
 * serve their own class alone. */
static uint64_t jemalloc_obtainable(struct kv_policy *policy, const struct kv_demand *demand)
{
    const struct jemalloc_policy *p = (const struct jemalloc_policy *)policy;
    for (uint32_t class = p->class_count; class-- > 0;) {
        uint64_t slots = class_slots(p, class);
        if (slots > 0 && count_regions(p, class) >= demand->pieces)
            return slots * demand->pieces;
    }
    return 0;
}

static uint64_t jemalloc_largest_run(struct kv_policy *policy, uint32_t pieces)
{
    const struct jemalloc_policy *p = (const struct jemalloc_policy *)policy;
    uint64_t bytes = extent_set_longest_piece(&p->free_pages, pieces) * p->page_bytes;
    return bytes / policy->unit_bytes * pieces;
}

static uint64_t jemalloc_units_for(const struct kv_policy *policy, const struct kv_request *request,
                                   uint64_t tokens, bool forked)
{
    const struct jemalloc_policy *p = (const struct jemalloc_policy *)policy;
    (void)tokens, (void)forked; /* everything is taken at admission */
    uint64_t slots = reserve_tokens(&p->reserve, request);
    uint32_t class = class_for(p, slots);
    if (class == p->class_count)
        return request->samples * slots;
    const struct size_class *c = &p->classes[class];
    uint64_t extents = (request->samples + c->regions_per_extent - 1) / c->regions_per_extent;
    uint64_t bytes = extents * c->extent_pages * p->page_bytes;
    return bytes / policy->unit_bytes + (bytes % policy->unit_bytes != 0);
}

static uint64_t jemalloc_largest_piece(const struct kv_policy *policy)
{
    const struct jemalloc_policy *p = (const struct jemalloc_policy *)policy;
    for (uint32_t class = p->class_count; class-- > 0;)
        if (class_slots(p, class) > 0 && fits_empty(p, class, 1))
            return class_slots(p, class);
    return 0;
}

static const char *jemalloc_check(const struct kv_policy *policy)
{
    const struct jemalloc_policy *p = (const struct jemalloc_policy *)policy;
    uint64_t asked = 0, pages = p->free_pages.free_units, live[BINS_MAX] = { 0 };
    for (uint32_t k = 0; k < p->max_seqs; k++) {
        const struct region *region = &p->regions[k];
        if (region->address == NULL)
            continue;
        uint64_t bytes = region->asked_slots * policy->unit_bytes;
        asked += region->asked_slots;
        if (sallocx(region->address, 0) != p->classes[region->size_class].region_bytes ||
            nallocx((size_t)bytes, 0) != p->classes[region->size_class].region_bytes)
            return "jemalloc: a region's size class is not the one computed";
        if (region->size_class < p->bin_count)
            live[region->size_class]++;
        else
            pages += p->classes[region->size_class].extent_pages;
    }
    for (uint32_t bin = 0; bin < p->bin_count; bin++) {
        if (live[bin] != p->live[bin] || live[bin] > p->slabs[bin] * p->classes[bin].regions_per_extent)
            return "jemalloc: a slab's count of regions is wrong";
        pages += p->slabs[bin] * p->classes[bin].extent_pages;
    }
    if (asked != p->asked_slots || pages != p->pages)
        return "jemalloc: regions and free pages do not add up to the pool";
    return extent_set_check(&p->free_pages);
}

const struct kv_policy_ops kv_policy_jemalloc_ops = {
    .abi_version = KV_ABI_VERSION,
    .flags = KV_CONTIGUOUS | KV_RESERVES,
    .name = "jemalloc",
    .summary = "the reservations of static from a real jemalloc arena confined to the pool",
    .source = "jemalloc 5.3, size classes and padding as shipped",
    .description = "A real jemalloc 5.3 arena, whose extents lie in the pool's address range and nowhere else, gives "
                   "each sequence one region of the size that --reserve says. Size classes (four to a doubling) and "
                   "large-extent padding show as rounding, holes as contiguity. What a general-purpose allocator would "
                   "make of the problem; not a model of one.",
    .options = jemalloc_options,
    .create = jemalloc_create,
    .destroy = jemalloc_destroy,
    .admit = jemalloc_admit,
    .extend = jemalloc_extend,
    .fork = jemalloc_fork,
    .release = jemalloc_release,
    .facts = jemalloc_facts,
    .seq_facts = jemalloc_seq_facts,
    .obtainable = jemalloc_obtainable,
    .largest_run = jemalloc_largest_run,
    .units_for = jemalloc_units_for,
    .largest_piece = jemalloc_largest_piece,
    .check = jemalloc_check,
    .region = jemalloc_region,
};
