#include "sim/device_summary.h"

#include <assert.h>
#include <stdlib.h>

#define PAGE_BYTES (2 * DEV_MIB)

uint64_t device_states_reserved(const struct device_states *s)
{
    return s->requested_bytes + s->rounding_bytes + s->private_bytes + s->pinned_bytes + s->cached_bytes;
}

enum device_verdict device_oom_verdict(const struct device_oom *oom)
{
    const struct device_states *s = &oom->states;
    uint64_t need = oom->numbers.rounded_bytes;
    if (oom->own_pool_bytes + oom->room_bytes >= need)
        return DEVICE_FRAGMENTED;
    return s->private_bytes + s->pinned_bytes + s->cached_bytes + oom->room_bytes >= need ? DEVICE_OTHER_POOL : DEVICE_SHORTAGE;
}

bool device_summary_failed(const struct device_summary *summary, size_t op)
{
    size_t low = 0, high = (size_t)summary->stats.ooms;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (summary->oom_ops[middle] < op)
            low = middle + 1;
        else
            high = middle;
    }
    return low < summary->stats.ooms && summary->oom_ops[low] == op;
}

void device_summary_release(struct device_summary *summary)
{
    free(summary->ooms);
    free(summary->oom_ops);
    *summary = (struct device_summary){0};
}

/* Who holds which block, by address. */
struct holder {
    uint64_t address;
    uint32_t slot;
};

struct survey {
    const struct device_replay *replay;
    struct device_states states;
    struct device_oom *oom; /* NULL: states only */
    const struct holder *holders;
    size_t holder_count;
};

/* Free bytes of a block that lie in pages which a release would unmap. A stretch begins at a page. */
static uint64_t whole_pages(const struct dev_segment_info *segment, const struct dev_block_info *block)
{
    uint64_t page_bytes = segment->small ? PAGE_BYTES : 10 * PAGE_BYTES;
    uint64_t begin = block->address - segment->address, end = begin + block->bytes;
    begin = (begin + page_bytes - 1) / page_bytes * page_bytes;
    end = end / page_bytes * page_bytes;
    return end > begin ? end - begin : 0;
}

static uint64_t releasable(const struct dev_segment_info *segment, const struct dev_block_info *block)
{
    if (segment->expandable)
        return whole_pages(segment, block);
    return segment->block_count == 1 ? block->bytes : 0;
}

static unsigned class_of(uint64_t bytes)
{
    unsigned class = 63u - (unsigned)__builtin_clzll(bytes);
    return class < DEVICE_HOLE_CLASSES ? class : DEVICE_HOLE_CLASSES - 1;
}

static void note_hole(struct device_oom *oom, uint64_t bytes)
{
    oom->holes[class_of(bytes)].count++;
    oom->holes[class_of(bytes)].bytes += bytes;
    oom->own_pool_bytes += bytes;
    if (bytes > oom->largest_hole_bytes)
        oom->largest_hole_bytes = bytes;
}

static const struct holder *holder_at(const struct survey *s, uint64_t address)
{
    size_t low = 0, high = s->holder_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->holders[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->holder_count && s->holders[low].address == address ? &s->holders[low] : NULL;
}

static void name_holder(const struct survey *s, const struct dev_block_info *block, struct device_pin *pin)
{
    const struct holder *holder = holder_at(s, block->address);
    const struct device_ops *ops = s->replay->ops;
    pin->holder_bytes = block->bytes;
    pin->holder_tag = "";
    if (!holder)
        return;
    pin->holder_id = ops->ids[holder->slot];
    pin->holder_tag = ops->texts + ops->items[s->replay->ids[holder->slot].op].text;
}

/* Keeps the segments with the most free bytes, in that order; the lower address first among equals. */
static void keep_pin(struct device_oom *oom, const struct device_pin *pin)
{
    size_t at = oom->pin_count;
    oom->pinned_segments++;
    while (at > 0 && oom->pins[at - 1].free_bytes < pin->free_bytes)
        at--;
    if (at == DEVICE_PINS_MAX)
        return;
    if (oom->pin_count < DEVICE_PINS_MAX)
        oom->pin_count++;
    for (size_t i = oom->pin_count - 1; i > at; i--)
        oom->pins[i] = oom->pins[i - 1];
    oom->pins[at] = *pin;
}

static void survey_pins(struct survey *s, const struct dev_segment_info *segment)
{
    struct device_pin pin = {.address = device_replay_relative(s->replay, segment->address), .segment_bytes = segment->bytes};
    const struct dev_block_info *largest = NULL;
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct dev_block_info *block = &segment->blocks[i];
        if (block->state == DEV_FREE) {
            note_hole(s->oom, block->bytes);
            pin.free_bytes += block->bytes;
            continue;
        }
        pin.live_blocks++;
        if (!largest || block->bytes > largest->bytes)
            largest = block;
    }
    if (!largest || pin.free_bytes == 0)
        return;
    name_holder(s, largest, &pin);
    keep_pin(s->oom, &pin);
}

static bool survey_segment(void *context, const struct dev_segment_info *segment)
{
    struct survey *s = context;
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct dev_block_info *block = &segment->blocks[i];
        if (block->state == DEV_ALLOCATED) {
            s->states.requested_bytes += block->requested_bytes;
            s->states.rounding_bytes += block->bytes - block->requested_bytes;
        } else if (segment->pool != DEV_DEFAULT_POOL) {
            s->states.private_bytes += block->bytes;
        } else {
            uint64_t cached = releasable(segment, block);
            s->states.cached_bytes += cached;
            s->states.pinned_bytes += block->bytes - cached;
        }
    }
    if (s->oom && segment->pool == s->oom->numbers.pool && segment->small == s->oom->numbers.small)
        survey_pins(s, segment);
    return true;
}

static int survey_run(struct survey *s, struct err *err)
{
    if (dev_walk(s->replay->allocator, survey_segment, s) != DEV_OK)
        return err_set(err, ERR_FAILED, "out of memory");
    assert(device_states_reserved(&s->states) == dev_stats(s->replay->allocator)->reserved_bytes.now);
    return 0;
}

static int compare_holders(const void *x, const void *y)
{
    const struct holder *a = x, *b = y;
    return (a->address > b->address) - (a->address < b->address);
}

static size_t collect_holders(const struct device_replay *r, struct holder *holders)
{
    size_t n = 0;
    for (size_t slot = 0; slot < r->ops->id_count; slot++)
        if (r->ids[slot].state == DEVICE_ID_LIVE)
            holders[n++] = (struct holder){r->ids[slot].address, (uint32_t)slot};
    qsort(holders, n, sizeof *holders, compare_holders);
    return n;
}

/* What could still be had: of the cap's rest and of the device's whole pages, of which the last is never given. */
static uint64_t room_bytes(const struct dev_oom *numbers, uint64_t reserved_bytes)
{
    uint64_t pages = numbers->free_bytes / PAGE_BYTES;
    uint64_t room = pages > 0 ? (pages - 1) * PAGE_BYTES : 0;
    if (numbers->allowed_bytes == DEV_NONE)
        return room;
    uint64_t rest = numbers->allowed_bytes > reserved_bytes ? numbers->allowed_bytes - reserved_bytes : 0;
    return rest < room ? rest : room;
}

static int prove(const struct device_replay *r, size_t i, struct device_oom *oom, struct err *err)
{
    struct holder *holders = malloc((r->ops->id_count + 1) * sizeof *holders);
    if (!holders)
        return err_set(err, ERR_FAILED, "out of memory");
    *oom = (struct device_oom){.op = i, .requested_bytes = r->ops->items[i].bytes, .numbers = *dev_last_oom(r->allocator)};
    struct survey s = {.replay = r, .oom = oom, .holders = holders};
    s.holder_count = collect_holders(r, holders);
    int status = survey_run(&s, err);
    oom->states = s.states;
    oom->reserved_bytes = dev_stats(r->allocator)->reserved_bytes.now;
    oom->room_bytes = room_bytes(&oom->numbers, oom->reserved_bytes);
    oom->limit_bytes = oom->room_bytes + oom->reserved_bytes;
    free(holders);
    return status;
}

static int survey_states(const struct device_replay *r, struct device_states *states, struct err *err)
{
    struct survey s = {.replay = r};
    int status = survey_run(&s, err);
    *states = s.states;
    return status;
}

/* First pass: counters, and at which operation reserved bytes were highest. */
static int count_pass(const struct device_ops *ops, const struct dev_config *config, struct device_summary *summary, struct err *err)
{
    struct device_replay r;
    struct device_outcome outcome;
    uint64_t peak = 0;
    int status = 0;
    if (device_replay_init(&r, ops, config, err) != 0)
        return -1;
    for (size_t i = 0; status == 0 && i < ops->count; i++) {
        status = device_replay_step(&r, i, &outcome, err);
        if (dev_stats(r.allocator)->reserved_bytes.now > peak) {
            peak = dev_stats(r.allocator)->reserved_bytes.now;
            summary->peak_op = i;
        }
    }
    summary->stats = *dev_stats(r.allocator);
    device_replay_release(&r);
    return status;
}

static int detail_pass(const struct device_ops *ops, const struct dev_config *config, struct device_summary *summary, size_t ooms_max,
                       struct err *err)
{
    struct device_replay r;
    struct device_outcome outcome;
    size_t failures = 0;
    int status = 0;
    if (device_replay_init(&r, ops, config, err) != 0)
        return -1;
    for (size_t i = 0; status == 0 && i < ops->count; i++) {
        status = device_replay_step(&r, i, &outcome, err);
        if (status == 0 && outcome.result == DEVICE_OOM) {
            summary->oom_ops[failures++] = i;
            if (summary->ooms_kept < ooms_max)
                status = prove(&r, i, &summary->ooms[summary->ooms_kept++], err);
        }
        if (status == 0 && i == summary->peak_op)
            status = survey_states(&r, &summary->peak, err);
    }
    if (status == 0)
        status = survey_states(&r, &summary->last, err);
    device_replay_release(&r);
    return status;
}

int device_summary_run(const struct device_ops *ops, const struct dev_config *config, size_t ooms_max, struct device_summary *summary,
                       struct err *err)
{
    *summary = (struct device_summary){0};
    if (count_pass(ops, config, summary, err) != 0)
        return -1;
    size_t failures = (size_t)summary->stats.ooms;
    size_t kept = failures < ooms_max ? failures : ooms_max;
    summary->oom_ops = calloc(failures + 1, sizeof *summary->oom_ops);
    summary->ooms = calloc(kept + 1, sizeof *summary->ooms);
    int status = -1;
    if (!summary->oom_ops || !summary->ooms)
        err_set(err, ERR_FAILED, "out of memory");
    else
        status = detail_pass(ops, config, summary, ooms_max, err);
    if (status != 0)
        device_summary_release(summary);
    return status;
}
