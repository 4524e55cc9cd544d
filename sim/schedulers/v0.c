/* vLLM v0: a step is either prefills or decodes. Waiting requests go first, with whole prompts, as long as nothing is
 * swapped out; then the running ones decode in order of arrival, preempting the latest arrivals when blocks run out:
 * by recomputation a request with one sequence, by swapping to host memory one with several, whose shared blocks
 * would be lost. (vLLM 0.1 to 0.5, core/scheduler.py and core/block_manager.py; SOSP 2023, section 4.5.)
 *
 * Differences that the contract brings: the policy keeps its own null block and order of free blocks. Where v0 ends the
 * whole engine because host memory is full, the group is recomputed instead, and counted under refusals.slots. */
#include "sim/engine_core.h"

static uint64_t watermark_units(const struct engine *e)
{
    return (uint64_t)(e->config.geometry.watermark * (double)e->policy->total_units);
}

/* Latest arrival last, whatever the order of admission. */
static void sort_in(struct engine *e, struct sim_request *r)
{
    struct sim_request *at = r->prev;
    while (at && (at->arrival_ns > r->arrival_ns ||
                  (at->arrival_ns == r->arrival_ns && at->index > r->index))) {
        at = at->prev;
    }
    if (at == r->prev) return;
    request_list_remove(&e->running, r);
    request_list_insert_after(&e->running, at, r);
}

/* v0 keeps the watermark whether or not anything runs, so that what exceeds the rest can never start. */
static bool never_starts(struct engine *e, struct sim_request *r)
{
    const struct kv_geometry *g = &e->config.geometry;
    uint64_t slots = request_target(r) + (g->rules == KV_RULES_2026_04 ? 0 : g->lookahead_tokens);
    if (slots > e->config.max_model_len) slots = e->config.max_model_len;
    uint64_t units = kv_units_for(e->policy, &r->kv, slots, false);
    e->demand_units = units + watermark_units(e); /* for the verdict's arithmetic */
    return e->demand_units > e->policy->usable_units;
}

static void prefill(struct engine *e)
{
    uint64_t budget = e->config.max_num_batched_tokens;
    while (e->waiting.head) {
        struct sim_request *r = e->waiting.head;
        struct engine_hit hit;
        if (never_starts(e, r)) {
            engine_unservable(e, r, false);
            continue;
        }
        if (e->running_seqs + r->kv.samples > e->config.max_num_seqs) {
            engine_slot_wait(e, r);
            break;
        }
        engine_lookup(e, r, &hit);
        if (e->out_of_memory) break;
        uint64_t tokens = request_target(r) - hit.tokens;
        if (tokens > budget) break;
        enum kv_status status = engine_admit(e, r, &hit, tokens, tokens);
        if (status == KV_NEVER_FITS) {
            engine_unservable(e, r, false);
            continue;
        }
        if (status != KV_OK) break;
        sort_in(e, r);
        budget -= tokens;
    }
}

/* Frees the memory of the latest arrival. */
static void preempt(struct engine *e, struct sim_request *victim)
{
    if (victim->forked && engine_swap_out(e, victim)) return;
    engine_preempt(e, victim);
}

/* A group grows only when there is a free block for each of its sequences, even if most have room. */
static bool grow(struct engine *e, struct sim_request *r, uint64_t tokens)
{
    uint32_t width = request_width(r);
    uint64_t need = engine_growth_units(e, r, tokens);
    bool reserves = (e->policy->ops->flags & KV_RESERVES) != 0;
    if (!reserves && engine_hold_back(e, r, KV_GROWTH, need > width ? need : width, need, 0)) {
        return false;
    }
    return engine_extend(e, r, tokens);
}

static void decode(struct engine *e)
{
    uint64_t budget = e->config.max_num_batched_tokens;
    struct sim_request *r = e->running.head, *next;
    for (; r; r = next) {
        uint32_t width = request_width(r);
        uint64_t tokens = request_target(r) - r->computed;
        if (tokens > budget / width) tokens = budget / width;
        if (tokens == 0) break;
        bool grown;
        while (!(grown = grow(e, r, tokens)) && e->running.tail != r) preempt(e, e->running.tail);
        next = r->next;
        if (grown) {
            budget -= tokens * width;
            continue;
        }
        bool alone = e->running.count == 1;
        if (alone && engine_outgrew_pool(e, r)) engine_unservable(e, r, true);
        else if (!alone || !engine_waits_for_pins(e)) preempt(e, r);
        break; /* it was the last one */
    }
}

static void swap_in(struct engine *e)
{
    while (e->swapped.head) {
        struct sim_request *r = e->swapped.head;
        if (e->running_seqs + r->kv.samples > e->config.max_num_seqs) break;
        if (!engine_swap_in(e, r, watermark_units(e))) break;
        sort_in(e, r);
    }
}

static void pass(struct engine *e)
{
    if (!e->swapped.head) prefill(e);
    if (e->scheduled_count > 0) return;
    decode(e);
    if (e->preempted.count == 0) swap_in(e);
}

const struct scheduler scheduler_v0 = {
    .name = "v0",
    .summary = "vLLM v0: prefill steps first, watermark, recompute or swap by group",
    .source = "vLLM 0.1-0.5 scheduler; PagedAttention, SOSP 2023, section 4.5",
    .description = "A step is either prefill or decode. While requests wait and memory allows, whole prompts are "
                   "admitted and nothing else runs; else all running requests get one token. A watermark of 1 % is kept "
                   "at admission. Preempted: one sequence is computed again, groups of samples are swapped to host "
                   "memory (--swap-space) and come back before anything is admitted.",
    .default_watermark = 0.01,
    .watermark_always = true,
    .whole_prompts = true,
    .pass = pass,
};
