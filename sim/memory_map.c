#include "sim/memory_map.h"

#include <stdlib.h>
#include <string.h>

#include "sim/accounting_check.h"

const char *const unit_kind_names[UNIT_KINDS] = {"free", "cached", "held", "overhead", "cached_pinned"};

int memory_map_init(struct memory_map *m, const struct engine *e, struct err *err)
{
    const struct kv_policy *p = e->policy;
    bool blocks = p->ops->table != NULL;
    *m = (struct memory_map){.count = p->total_units, .unit_tokens = blocks ? p->block_tokens : 1};
    m->first_number = blocks && p->total_units == p->usable_units ? 1 : 0;
    if (p->total_units > MEMORY_MAP_SLOTS_MAX / m->unit_tokens)
        return err_set(err, ERR_USAGE, "memory map: found a pool of more than %llu token slots, expected a smaller one",
                       (unsigned long long)MEMORY_MAP_SLOTS_MAX);
    m->units = calloc(m->count, sizeof *m->units);
    m->marks = calloc(m->count, m->unit_tokens);
    m->queue = calloc(m->count, sizeof *m->queue);
    return m->units && m->marks && m->queue ? 0 : err_set(err, ERR_FAILED, "memory map: out of memory");
}

void memory_map_release(struct memory_map *m)
{
    free(m->units);
    free(m->marks);
    free(m->queue);
    memset(m, 0, sizeof *m);
}

static void hold(struct map_unit *unit, const struct sim_request *r)
{
    if (unit->holders++ == 0) unit->index = r->index;
    unit->kind = UNIT_HELD;
}

static void take_table(struct memory_map *m, const struct engine *e, const struct sim_request *r, kv_seq seq, uint64_t filled)
{
    uint32_t count;
    const kv_block *table = e->policy->ops->table(e->policy, seq, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (table[i] == 0) continue; /* given back: before the window */
        uint64_t unit = table[i] - m->first_number;
        hold(&m->units[unit], r);
        for (uint32_t k = 0; k < m->unit_tokens; k++)
            m->marks[unit * m->unit_tokens + k] |= slot_mark(e, r, (uint64_t)i * m->unit_tokens + k, filled);
    }
}

static void take_region(struct memory_map *m, const struct engine *e, const struct sim_request *r, kv_seq seq, uint64_t filled)
{
    struct kv_region region;
    e->policy->ops->region(e->policy, seq, &region);
    for (uint64_t t = 0; t < region.taken_units && region.first_unit + t < m->count; t++) {
        hold(&m->units[region.first_unit + t], r);
        m->marks[region.first_unit + t] |= t < region.asked_units ? slot_mark(e, r, t, filled) : MARK_ROUNDING;
    }
}

static void take_requests(struct memory_map *m, const struct engine *e)
{
    for (const struct sim_request *r = e->running.head; r; r = r->next) {
        for (uint32_t s = 0; s < r->kv.samples; s++) {
            uint64_t filled = s == 0 || r->forked ? r->filled : 0;
            if (e->policy->ops->table) take_table(m, e, r, r->seqs[s], filled);
            else if (e->policy->ops->region) take_region(m, e, r, r->seqs[s], filled);
        }
    }
}

static void count_slots(const struct memory_map *m, uint64_t i)
{
    struct map_unit *unit = &m->units[i];
    for (uint32_t k = 0; k < m->unit_tokens; k++) {
        uint8_t marks = m->marks[i * m->unit_tokens + k];
        if (marks == MARK_ROUNDING) {
            unit->rounding++;
            continue;
        }
        switch (slot_state(marks)) {
        case STATE_LIVE: unit->live++; break;
        case STATE_DEAD: unit->dead++; break;
        case STATE_RESERVED: unit->reserved++; break;
        default: unit->internal++; break;
        }
    }
}

/* Of blocks, what is in the free queue is free or cached. The others that no request holds are the null block, and what is
 * lent to the device's activations. */
static void take_queue(struct memory_map *m, const struct engine *e)
{
    const struct kv_policy *p = e->policy;
    m->queue_count = p->ops->free_queue ? p->ops->free_queue(p, m->queue, m->count) : 0;
    if (!p->ops->free_queue) return;
    for (uint64_t i = 0; i < m->count; i++) m->units[i].kind = UNIT_OVERHEAD;
    for (uint64_t i = 0; i < m->queue_count; i++) {
        bool keyed = p->ops->keyed && p->ops->keyed(p, m->queue[i], NULL);
        bool pinned = keyed && p->keeps_time && p->ops->pinned && p->ops->pinned(p, m->queue[i]);
        m->units[m->queue[i] - m->first_number].kind = pinned ? UNIT_PINNED : keyed ? UNIT_CACHED : UNIT_FREE;
    }
}

void memory_map_take(struct memory_map *m, struct engine *e)
{
    park_show_filled(e);
    memset(m->units, 0, m->count * sizeof *m->units);
    memset(m->marks, 0, m->count * m->unit_tokens);
    take_queue(m, e);
    take_requests(m, e);
    for (uint64_t i = 0; i < m->count; i++) {
        if (m->units[i].holders > 0) count_slots(m, i);
    }
}
