#include "sim/v1_pass.h"
#include "sim/numbers.h"

/* Tokens of each of its sequences that the request may compute with this budget. */
static uint64_t cut(const struct engine *e, uint64_t tokens, uint64_t budget, uint32_t width)
{
    uint64_t threshold = e->config.long_prefill_token_threshold;
    if (threshold > 0) tokens = min_u64(tokens, threshold);
    return min_u64(tokens, budget / width);
}

/* Who gives way: the last admitted, or with priorities the least important, latest arrival. vLLM takes the first of
 * equals of its running list, but its arrival times are never equal; here the later line of the trace counts as the later
 * arrival, as in the waiting queue. So the first request in this order is never preempted for another, and goes on. */
static struct sim_request *choose_victim(const struct engine *e)
{
    struct sim_request *victim = e->running.tail;
    if (!e->config.by_priority) return victim;
    victim = e->running.head;
    for (struct sim_request *r = victim->next; r; r = r->next) {
        if (request_comes_after(r, victim)) victim = r;
    }
    return victim;
}

/* Makes room for r. A victim that has been served in this pass gives its tokens back to the budget. Returns false when r
 * itself is gone: preempted, or ended because it will never fit; or when it can only wait until pins end, alone, and then
 * nobody else gets what is left. */
static bool extend_or_preempt(struct engine *e, struct sim_request *r, uint64_t tokens,
                              uint64_t *budget)
{
    while (!engine_extend(e, r, tokens)) {
        struct sim_request *victim = choose_victim(e);
        if (victim == r && e->running.count == 1 && engine_outgrew_pool(e, r)) {
            engine_unservable(e, r, true);
            return false;
        }
        if (victim == r && e->running.count == 1 && engine_waits_for_pins(e)) {
            *budget = 0;
            return false;
        }
        if (e->config.by_priority) *budget += engine_unschedule(e, victim);
        engine_preempt(e, victim);
        if (victim == r) return false;
    }
    return true;
}

uint64_t v1_schedule_running(struct engine *e, uint64_t budget)
{
    struct sim_request *r = e->running.head;
    if (e->park.on) {
        /* Parked requests come first and get a token each; there is budget for all of them. */
        while ((r = park_next_due(e)) != NULL) {
            if (!extend_or_preempt(e, r, 1, &budget)) break;
            budget -= request_width(r);
        }
        park_book(e);
        budget -= e->park.width;
        if (r) return budget; /* preempted itself, or ended: it was the last one */
        r = e->park.first_active;
    }
    while (r && budget > 0) {
        uint32_t width = request_width(r);
        uint64_t tokens = cut(e, request_target(r) - r->computed, budget, width);
        tokens = min_u64(tokens, e->config.max_model_len - 1 - r->computed);
        if (tokens > 0) {
            if (!extend_or_preempt(e, r, tokens, &budget)) break;
            budget -= tokens * width;
        }
        r = r->next;
    }
    return budget;
}

void v1_schedule_waiting(struct engine *e, uint64_t budget, v1_gate gate)
{
    while (e->waiting.head && budget > 0) {
        struct sim_request *r = e->waiting.head;
        if (e->running_seqs + r->kv.samples > e->config.max_num_seqs) {
            engine_slot_wait(e, r);
            break;
        }
        struct engine_hit hit;
        if (!gate && engine_refused_again(e, r, budget)) break;
        engine_lookup(e, r, &hit);
        if (e->out_of_memory) break;
        uint64_t wanted = request_target(r) - hit.tokens;
        uint64_t threshold = e->config.long_prefill_token_threshold;
        if (threshold > 0) wanted = min_u64(wanted, threshold);
        if (!e->config.chunked_prefill && wanted > budget) break;
        uint64_t tokens = min_u64(wanted, budget), promise = 0;
        enum kv_status status = gate ? gate(e, r, &hit, &promise) : KV_OK;
        if (status == KV_OK) status = engine_admit(e, r, &hit, wanted, tokens);
        if (status == KV_NEVER_FITS) {
            engine_unservable(e, r, false);
            continue;
        }
        if (status != KV_OK) break;
        engine_promise(e, r, promise);
        budget -= tokens;
    }
}
