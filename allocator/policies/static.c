#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocator/buddy.h"
#include "allocator/extent_set.h"
#include "allocator/reserve.h"

/* Before paging: each sequence gets one contiguous region at admission, as long as it may ever become, and
 * keeps it to its end. Units are token slots. The samples of a request are regions of their own, taken all
 * or none; a fork copies into them, which costs no memory. */

extern const struct kv_policy_ops kv_policy_static_ops;

enum placement { PLACE_FIRST_FIT, PLACE_BEST_FIT, PLACE_WORST_FIT, PLACE_BUDDY };

struct region {
    uint64_t start;
    uint64_t asked_slots; /* 0: the sequence holds nothing */
    uint64_t taken_slots; /* asked and what buddy added */
};

struct static_policy {
    struct kv_policy base;
    uint64_t pool_bytes;
    struct reserve reserve;
    enum placement placement;
    struct extent_set runs; /* the free address runs; for fits also where regions are taken */
    struct buddy buddy;     /* PLACE_BUDDY only */
    struct region *regions; /* [max_seqs] */
    uint32_t max_seqs;
    uint64_t asked_slots; /* sum over the regions */
};

static const struct kv_option placement_option = {
    .name = "placement",
    .choices = "first-fit|best-fit|worst-fit|buddy",
    .default_text = "first-fit",
    .help = "where a region goes: the lowest, shortest or longest hole, or a binary buddy's chunk",
};

static const struct kv_option *const static_options[] = {
    &reserve_option, &oracle_slack_option, &placement_option, NULL,
};

static const struct static_policy *as_static(const struct kv_policy *policy)
{
    return (const struct static_policy *)policy;
}

static void static_destroy(struct kv_policy *policy)
{
    struct static_policy *p = (struct static_policy *)policy;
    extent_set_release(&p->runs);
    buddy_release(&p->buddy);
    free(p->regions);
    free(p);
}

static bool make_space(struct static_policy *p, const struct kv_geometry *geometry)
{
    uint64_t slots = p->base.total_units;
    p->regions = calloc(geometry->max_seqs, sizeof *p->regions);
    if (p->regions == NULL || !extent_set_init(&p->runs, slots, geometry->max_seqs))
        return false;
    return p->placement != PLACE_BUDDY || buddy_init(&p->buddy, slots);
}

static struct kv_policy *static_create(const struct kv_geometry *geometry, const struct kv_value *values,
                                       const struct kv_observer *observer, char *why, size_t why_bytes)
{
    (void)observer; /* nothing is evicted or copied on write */
    uint64_t slots = geometry->pool_bytes / geometry->bytes_per_token;
    if (slots == 0) {
        snprintf(why, why_bytes, "pool of %" PRIu64 " bytes: expected at least one token slot of %" PRIu64
                 " bytes", geometry->pool_bytes, geometry->bytes_per_token);
        return NULL;
    }
    struct static_policy *p = calloc(1, sizeof *p);
    if (p == NULL) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    p->base = (struct kv_policy){
        .ops = &kv_policy_static_ops,
        .unit_bytes = geometry->bytes_per_token,
        .total_units = slots,
        .usable_units = slots,
    };
    p->pool_bytes = geometry->pool_bytes;
    p->max_seqs = geometry->max_seqs;
    reserve_init(&p->reserve, geometry, values[0], values[1]);
    p->placement = (enum placement)values[2].count;
    p->base.clairvoyant = reserve_is_clairvoyant(&p->reserve);
    if (!make_space(p, geometry)) {
        snprintf(why, why_bytes, "pool of %" PRIu64 " slots and %" PRIu32 " sequences: out of memory",
                 slots, geometry->max_seqs);
        static_destroy(&p->base);
        return NULL;
    }
    return &p->base;
}

/* Slots that a region of this length occupies. */
static uint64_t rounded_slots(const struct static_policy *p, uint64_t slots)
{
    return p->placement == PLACE_BUDDY ? reserve_pow2_ceil(slots) : slots;
}

static bool fits_empty(const struct static_policy *p, uint64_t slots, uint32_t pieces)
{
    if (slots > p->base.total_units)
        return false;
    if (p->placement == PLACE_BUDDY)
        return buddy_count_empty(&p->buddy, reserve_log2_ceil(slots)) >= pieces;
    return p->base.total_units / slots >= pieces;
}

static bool take_region(struct static_policy *p, struct region *region, uint64_t slots)
{
    uint64_t start, taken = rounded_slots(p, slots);
    if (p->placement == PLACE_BUDDY) {
        if (!buddy_take(&p->buddy, reserve_log2_ceil(slots), &start))
            return false;
        extent_set_take_at(&p->runs, start, taken);
    } else if (!extent_set_take(&p->runs, (enum extent_fit)p->placement, slots, &start)) {
        return false;
    }
    *region = (struct region){ .start = start, .asked_slots = slots, .taken_slots = taken };
    p->asked_slots += slots;
    return true;
}

static void give_region(struct static_policy *p, struct region *region)
{
    if (region->asked_slots == 0)
        return;
    if (p->placement == PLACE_BUDDY)
        buddy_give(&p->buddy, region->start, reserve_log2_ceil(region->taken_slots));
    extent_set_give(&p->runs, region->start, region->taken_slots);
    p->asked_slots -= region->asked_slots;
    *region = (struct region){ 0 };
}

static enum kv_status static_admit(struct kv_policy *policy, const struct kv_ask *ask,
                                   struct kv_taken *taken)
{
    struct static_policy *p = (struct static_policy *)policy;
    uint64_t slots = reserve_tokens(&p->reserve, ask->request);
    assert(ask->slots_tokens <= slots);
    reserve_fill_taken(ask, slots, 1, taken);
    if (!fits_empty(p, slots, ask->seq_count))
        return KV_NEVER_FITS;
    for (uint32_t k = 0; k < ask->seq_count; k++) {
        struct region *region = &p->regions[ask->seqs[k].index];
        assert(region->asked_slots == 0);
        if (take_region(p, region, slots))
            continue;
        while (k-- > 0)
            give_region(p, &p->regions[ask->seqs[k].index]);
        return KV_NO_SPACE;
    }
    return KV_OK;
}

static enum kv_status static_extend(struct kv_policy *policy, const struct kv_ask *ask,
                                    struct kv_taken *taken)
{
    (void)taken;
    for (uint32_t k = 0; k < ask->seq_count; k++)
        assert(ask->slots_tokens <= as_static(policy)->regions[ask->seqs[k].index].asked_slots);
    return KV_OK;
}

static void static_fork(struct kv_policy *policy, kv_seq parent, const kv_seq *children, uint32_t count,
                        uint64_t filled_tokens)
{
    const struct static_policy *p = as_static(policy);
    assert(filled_tokens <= p->regions[parent.index].asked_slots);
    for (uint32_t i = 0; i < count; i++)
        assert(filled_tokens <= p->regions[children[i].index].asked_slots);
}

static void static_release(struct kv_policy *policy, const kv_seq *seqs, uint32_t count)
{
    struct static_policy *p = (struct static_policy *)policy;
    for (uint32_t k = 0; k < count; k++)
        give_region(p, &p->regions[seqs[k].index]);
}

static void static_facts(const struct kv_policy *policy, struct kv_facts *facts)
{
    const struct static_policy *p = as_static(policy);
    uint64_t unit = policy->unit_bytes;
    uint64_t held_slots = policy->total_units - p->runs.free_units;
    *facts = (struct kv_facts){
        .held_bytes = held_slots * unit,
        .rounding_bytes = (held_slots - p->asked_slots) * unit,
        .free_bytes = p->runs.free_units * unit,
        .overhead_bytes = p->pool_bytes - policy->total_units * unit,
        .referenced_bytes = held_slots * unit,
    };
}

static void static_seq_facts(const struct kv_policy *policy, kv_seq seq, struct kv_seq_facts *facts)
{
    *facts = (struct kv_seq_facts){
        .end_token = as_static(policy)->regions[seq.index].asked_slots,
        .tail_holders = 1,
    };
}

static void static_region(const struct kv_policy *policy, kv_seq seq, struct kv_region *region)
{
    const struct region *r = &as_static(policy)->regions[seq.index];
    *region = (struct kv_region){
        .first_unit = r->start, .asked_units = r->asked_slots, .taken_units = r->taken_slots
    };
}

static uint64_t static_obtainable(struct kv_policy *policy, const struct kv_demand *demand)
{
    const struct static_policy *p = as_static(policy);
    if (p->placement != PLACE_BUDDY)
        return extent_set_longest_piece(&p->runs, demand->pieces) * demand->pieces;
    for (unsigned order = p->buddy.order_count; order-- > 0;)
        if (buddy_count(&p->buddy, order) >= demand->pieces)
            return demand->pieces * (UINT64_C(1) << order);
    return 0;
}

static uint64_t static_largest_run(struct kv_policy *policy, uint32_t pieces)
{
    return extent_set_longest_piece(&as_static(policy)->runs, pieces) * pieces;
}

static uint64_t static_units_for(const struct kv_policy *policy, const struct kv_request *request,
                                 uint64_t tokens, bool forked)
{
    const struct static_policy *p = as_static(policy);
    (void)tokens, (void)forked; /* everything is taken at admission */
    return request->samples * rounded_slots(p, reserve_tokens(&p->reserve, request));
}

static uint64_t static_largest_piece(const struct kv_policy *policy)
{
    const struct static_policy *p = as_static(policy);
    return p->placement == PLACE_BUDDY ? UINT64_C(1) << (p->buddy.order_count - 1) : policy->total_units;
}

/* Takes each region out of an empty space: regions must not overlap, and must leave just what is free. */
static const char *take_regions_again(const struct static_policy *p, struct extent_set *rest)
{
    uint64_t asked = 0;
    for (uint32_t k = 0; k < p->max_seqs; k++) {
        const struct region *region = &p->regions[k];
        if (region->asked_slots == 0)
            continue;
        if (!extent_set_is_free(rest, region->start, region->taken_slots))
            return "static: two regions overlap";
        extent_set_take_at(rest, region->start, region->taken_slots);
        asked += region->asked_slots;
    }
    if (asked != p->asked_slots)
        return "static: the sum of asked slots is wrong";
    bool same = rest->free_units == p->runs.free_units &&
                extent_set_longest(rest) == extent_set_longest(&p->runs);
    return same ? NULL : "static: regions and free runs do not add up to the pool";
}

static const char *check_regions(const struct static_policy *p)
{
    struct extent_set rest;
    if (!extent_set_init(&rest, p->base.total_units, p->max_seqs))
        return "static: no memory for the check";
    const char *wrong = take_regions_again(p, &rest);
    extent_set_release(&rest);
    return wrong;
}

static const char *static_check(const struct kv_policy *policy)
{
    const struct static_policy *p = as_static(policy);
    const char *wrong = extent_set_check(&p->runs);
    if (wrong == NULL && p->placement == PLACE_BUDDY) {
        wrong = buddy_check(&p->buddy);
        if (wrong == NULL && p->buddy.free_units != p->runs.free_units)
            wrong = "static: buddy chunks and free runs differ";
    }
    return wrong != NULL ? wrong : check_regions(p);
}

const struct kv_policy_ops kv_policy_static_ops = {
    .abi_version = KV_ABI_VERSION,
    .flags = KV_CONTIGUOUS | KV_RESERVES,
    .name = "static",
    .summary = "one contiguous region a sequence, reserved at admission",
    .source = "FasterTransformer and Orca as modelled in SOSP'23 section 6.1",
    .description = "A request gets a contiguous region for each sequence at admission and keeps it to its end; growth "
                   "never asks. --reserve says how long: the model's longest sequence (max), a power of two from the "
                   "true output length (pow2, pow2-total), the exact length (oracle; both look at what no server knows), "
                   "or prompt plus max_tokens (declared). --placement says where. Waste: reserved and internal slots of "
                   "every region, buddy's rounding, and holes that are too small. O(log n) a region.",
    .options = static_options,
    .create = static_create,
    .destroy = static_destroy,
    .admit = static_admit,
    .extend = static_extend,
    .fork = static_fork,
    .release = static_release,
    .facts = static_facts,
    .seq_facts = static_seq_facts,
    .obtainable = static_obtainable,
    .largest_run = static_largest_run,
    .units_for = static_units_for,
    .largest_piece = static_largest_piece,
    .check = static_check,
    .region = static_region,
};
