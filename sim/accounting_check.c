#include "sim/accounting_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    const struct engine *e;
    uint8_t *slots;      /* marks of each slot of the pool; NULL: regions, which nobody shares */
    uint64_t slot_count;
    uint64_t tokens[STATE_COUNT]; /* only live, dead, reserved, internal */
    uint64_t asked_tokens;        /* of regions */
    uint64_t references;          /* of tables to blocks */
    uint64_t running_seqs;
};

uint8_t slot_mark(const struct engine *e, const struct sim_request *r, uint64_t t, uint64_t filled)
{
    uint64_t window = e->config.geometry.window_tokens;
    bool read_again = window == 0 || t + window > r->computed;
    if (t < filled) return MARK_FILLED | (read_again ? MARK_READ : 0);
    return t < r->kv.final_tokens ? MARK_LATER : MARK_ASKED;
}

/* The precedence of the states: filled, else filled later, else asked. */
enum state slot_state(uint8_t marks)
{
    if (marks & MARK_FILLED) return marks & MARK_READ ? STATE_LIVE : STATE_DEAD;
    return marks & MARK_LATER ? STATE_RESERVED : STATE_INTERNAL;
}

static void walk_table(struct walk *w, const struct sim_request *r, kv_seq seq, uint64_t filled)
{
    uint32_t count, block_tokens = w->e->policy->block_tokens;
    const kv_block *table = w->e->policy->ops->table(w->e->policy, seq, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (table[i] == 0) continue; /* given back: before the window */
        w->references++;
        for (uint32_t k = 0; k < block_tokens; k++) {
            uint64_t t = (uint64_t)i * block_tokens + k;
            w->slots[(uint64_t)table[i] * block_tokens + k] |= slot_mark(w->e, r, t, filled);
        }
    }
}

static void walk_region(struct walk *w, const struct sim_request *r, kv_seq seq, uint64_t filled)
{
    struct kv_seq_facts facts;
    kv_get_seq_facts(w->e->policy, seq, &facts);
    for (uint64_t t = facts.first_token; t < facts.end_token; t++) {
        w->tokens[slot_state(slot_mark(w->e, r, t, filled))]++;
        w->asked_tokens++;
    }
}

static void walk_requests(struct walk *w)
{
    for (const struct sim_request *r = w->e->running.head; r; r = r->next) {
        for (uint32_t s = 0; s < r->kv.samples; s++) {
            uint64_t filled = s == 0 || r->forked ? r->filled : 0;
            if (w->slots) walk_table(w, r, r->seqs[s], filled);
            else walk_region(w, r, r->seqs[s], filled);
            w->running_seqs++;
        }
    }
    for (uint64_t i = 0; i < w->slot_count; i++) {
        if (w->slots[i]) w->tokens[slot_state(w->slots[i])]++;
    }
}

/* Not obtainable by the demand that was refused, although it asks for no more than is free. */
static uint64_t stranded_bytes(const struct engine *e, const struct probe *probe, uint64_t free_bytes)
{
    if (!probe || !probe->present) return 0;
    uint64_t unit = e->policy->unit_bytes;
    uint64_t units = kv_obtainable(e->policy, &probe->demand);
    uint64_t obtainable = (units > probe->headroom_units ? units - probe->headroom_units : 0) * unit;
    if (probe->ask_units * unit > free_bytes || obtainable > free_bytes) return 0;
    return free_bytes - obtainable;
}

/* The states as the walk has them. */
static void expected_states(const struct walk *w, const struct kv_facts *facts, const struct probe *probe,
                            uint64_t bytes[STATE_COUNT])
{
    uint64_t used = 0, token = w->e->config.geometry.bytes_per_token;
    for (int s = 0; s < STATE_COUNT; s++) used += bytes[s] = w->tokens[s] * token;
    bytes[STATE_ROUNDING] = w->slots ? 0 : facts->held_bytes - used;
    bytes[STATE_CACHED] = facts->cached_bytes;
    bytes[STATE_CACHED_PINNED] = facts->pinned_bytes;
    bytes[STATE_STRANDED] = stranded_bytes(w->e, probe, facts->free_bytes);
    bytes[STATE_FREE] = facts->free_bytes - bytes[STATE_STRANDED];
    bytes[STATE_OVERHEAD] = facts->overhead_bytes + w->e->accounting.lent_bytes;
}

static bool differs(const struct walk *w, const char *what, uint64_t found, uint64_t walked, char *text)
{
    if (found == walked) return false;
    snprintf(text, ACCOUNTING_WALK_TEXT,
             "check: %s at %" PRIu64 " ns, step %" PRIu64 ": %s: found %" PRIu64 ", a walk counts %" PRIu64,
             w->e->policy->ops->name, w->e->now, w->e->stats.steps, what, found, walked);
    return true;
}

static const char *compare(const struct walk *w, const struct probe *probe, char *text)
{
    const struct levels *now = &w->e->accounting.now;
    struct kv_facts facts;
    uint64_t bytes[STATE_COUNT], sum = 0;
    kv_get_facts(w->e->policy, &facts);
    expected_states(w, &facts, probe, bytes);
    for (int s = 0; s < STATE_COUNT; s++) {
        sum += bytes[s];
        if (differs(w, state_names[s], now->state_bytes[s], bytes[s], text)) return text;
    }
    uint64_t references = w->slots ? w->references * w->e->policy->unit_bytes : facts.held_bytes;
    if (differs(w, "all states together", w->e->config.geometry.pool_bytes, sum, text) ||
        differs(w, "bytes that sequences refer to", now->referenced_bytes, references, text) ||
        differs(w, "running sequences", now->running_seqs, w->running_seqs, text)) {
        return text;
    }
    return NULL;
}

const char *accounting_walk(const struct engine *e, const struct probe *probe,
                            char text[ACCOUNTING_WALK_TEXT])
{
    struct walk w = {.e = e};
    if (e->policy->ops->table) {
        /* Blocks are numbered up to total_units, 0 being the null block or not there. */
        w.slot_count = (e->policy->total_units + 1) * e->policy->block_tokens;
        w.slots = calloc(w.slot_count, 1);
        if (!w.slots) return "check: out of memory";
    }
    walk_requests(&w);
    const char *wrong = compare(&w, probe, text);
    free(w.slots);
    return wrong;
}

void accounting_check(struct engine *e, const struct probe *probe)
{
    char text[ACCOUNTING_WALK_TEXT];
    if (e->config.check_every == 0 || ++e->checks % e->config.check_every != 0) return;
    const char *wrong = accounting_walk(e, probe, text);
    if (!wrong) return;
    fprintf(stderr, "%s\n", wrong);
    abort();
}
