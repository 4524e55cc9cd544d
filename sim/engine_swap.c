/* Swapping: a forked request's blocks move to host memory as they are, and come back with the same sharing. */
#include <assert.h>

#include "sim/engine_core.h"

bool engine_swap_out(struct engine *e, struct sim_request *r)
{
    assert(r->state == REQUEST_RUNNING && r->forked);
    uint64_t units = kv_units_for(e->policy, &r->kv, r->computed, r->written_since_fork);
    if (units > e->host_units - e->host_units_used) {
        if (engine_window_open(e)) e->refusals.totals.slots++;
        return false;
    }
    engine_event(e, EVENT_SWAP_OUT, r, units, 0);
    engine_release_memory(e, r);
    r->state = REQUEST_SWAPPED;
    r->filled = r->computed;
    r->host_units = units;
    e->host_units_used += units;
    e->traffic.to_host_bytes += units * e->policy->unit_bytes;
    if (engine_window_open(e)) e->stats.swap_outs++;
    request_list_append(&e->swapped, r);
    engine_count_preemption(e, r);
    return true;
}

void engine_leave_host(struct engine *e, struct sim_request *r)
{
    assert(r->state == REQUEST_SWAPPED);
    engine_close_refusal(e, r);
    request_list_remove(&e->swapped, r);
    e->host_units_used -= r->host_units;
    r->host_units = 0;
    r->state = REQUEST_GONE;
}

/* Admits the prompt, forks, and grows every sample to where it was. False when the policy says no. */
bool engine_rebuild_swapped(struct engine *e, struct sim_request *r)
{
    struct kv_taken taken;
    uint32_t samples = r->kv.samples;
    for (uint32_t s = 0; s < samples; s++) r->seqs[s] = e->free_seqs[e->free_seq_count - 1 - s];
    struct kv_ask ask = {
        .request = &r->kv,
        .seqs = r->seqs,
        .seq_count = samples,
        .something_runs = e->running.count > 0,
        .filled_tokens = r->prompt_tokens,
        .slots_tokens = r->prompt_tokens,
        .keyed_tokens = e->caches ? r->prompt_tokens : 0,
        .keys = (const uint64_t *const *)r->keys,
    };
    if (kv_admit(e->policy, &ask, &taken) != KV_OK) return false;
    kv_fork(e->policy, r->seqs[0], r->seqs + 1, samples - 1, r->prompt_tokens);
    if (r->computed == r->prompt_tokens) return true;
    ask.computed_tokens = r->prompt_tokens;
    ask.filled_tokens = ask.slots_tokens = r->computed;
    bool keys_output = e->caches && e->config.cache_output != CACHE_OUTPUT_UNKEYED;
    ask.keyed_tokens = keys_output ? r->computed : ask.keyed_tokens;
    if (kv_extend(e->policy, &ask, &taken) == KV_OK) return true;
    kv_release(e->policy, r->seqs, samples);
    return false;
}

bool engine_swap_in(struct engine *e, struct sim_request *r, uint64_t headroom_units)
{
    assert(r->state == REQUEST_SWAPPED && e->free_seq_count >= r->kv.samples);
    uint64_t units = r->host_units, ask = units + r->kv.samples;
    bool refused = engine_hold_back(e, r, KV_ADMISSION, ask, units, headroom_units);
    if (refused || !engine_rebuild_swapped(e, r)) {
        if (e->running.count == 0 && !engine_waits_for_pins(e)) engine_unservable(e, r, true); /* an empty pool is too small for it */
        return false;
    }
    engine_leave_host(e, r);
    e->free_seq_count -= r->kv.samples;
    e->running_seqs += r->kv.samples;
    e->stats.units_allocated += units;
    e->traffic.to_device_bytes += units * e->policy->unit_bytes;
    if (engine_window_open(e)) e->stats.swap_ins++;
    accounting_touch(&e->accounting);
    r->filled = r->computed;
    r->written_since_fork = r->computed > r->prompt_tokens;
    r->admission_number = ++e->admissions;
    e->pool_version++;
    r->state = REQUEST_RUNNING;
    request_list_append(&e->running, r);
    park_list_changed(e, r, true);
    engine_account(e, r);
    engine_event(e, EVENT_SWAP_IN, r, units, 0);
    return true;
}
