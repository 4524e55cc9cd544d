/* The books of refused attempts: facts, episodes, the probe of the pass, and what is remembered so that an equal attempt need not be
 * made again. */
#include <stdlib.h>

#include "sim/engine_core.h"
#include "sim/numbers.h"

static void book_attempt(struct engine *e, struct sim_request *r, const struct refusal_facts *f)
{
    struct refusal_record *record = r->refusal;
    refusals_attempt(&e->refusals, &record->episode, &record->counted, r->index, f, e->now);
    engine_event(e, EVENT_REFUSE, r, f->ask_units, f->a_units);
    e->refused = true;
    if (f->demand.kind == KV_ADMISSION && f->e_units >= f->ask_units) e->head_refused_though_free = true;
    if (e->probe.present) return;
    e->probe = (struct probe){.present = true,
                              .demand = f->demand,
                              .ask_units = f->ask_units,
                              .headroom_units = f->headroom_units};
    e->probe_request = r;
}

/* What the running requests do with their memory. Where a growing request is refused, those before it have their
 * token of this pass and those behind it have not. */
static struct running_use running_use(const struct engine *e, const struct sim_request *r)
{
    struct running_use use = accounting_running_use(&e->accounting);
    uint64_t order = r->state == REQUEST_RUNNING ? r->admission_number : UINT64_MAX;
    uint64_t bytes = park_width_before(e, order) * e->config.geometry.bytes_per_token;
    use.live_bytes += bytes;
    use.reserved_bytes -= bytes;
    return use;
}

static bool has_record(struct engine *e, struct sim_request *r)
{
    if (!r->refusal) {
        r->refusal = calloc(1, sizeof *r->refusal);
        if (r->refusal) r->refusal->request = r;
        else e->out_of_memory = true;
    }
    return r->refusal != NULL;
}

void engine_book_refusal(struct engine *e, const struct refused_call *call)
{
    struct sim_request *r = call->request;
    if (!has_record(e, r)) return;
    struct kv_facts facts;
    kv_get_facts(e->policy, &facts);
    uint64_t unit = e->policy->unit_bytes;
    struct refusal_facts f = {
        .unit_bytes = unit,
        .contiguous = (e->policy->ops->flags & KV_CONTIGUOUS) != 0,
        .demand = call->demand,
        .ask_units = call->ask_units,
        .need_units = call->need_units,
        .first_part_units = call->first_units,
        .e_units = (facts.free_bytes + facts.cached_bytes) / unit,
        .r_units = kv_largest_run(e->policy, call->demand.pieces),
        .headroom_units = call->headroom_units,
        /* A size class can be full while a larger one is not: then some larger ask would succeed, but none of
         * this size. */
        .a_units = min_u64(above(kv_obtainable(e->policy, &call->demand), call->headroom_units),
                           call->ask_units - 1),
        .pinned_units = facts.pinned_bytes / unit,
        .boundary_units = e->edge ? edge_outside_bytes(e->edge) / unit : 0,
        .use = running_use(e, r),
    };
    bool opens = !r->refusal->episode.open;
    if (call->demand.kind == KV_ADMISSION) r->refusal->before.facts = f;
    book_attempt(e, r, &f);
    if (opens && e->config.hooks.refused) {
        e->config.hooks.refused(e->config.hooks.refused_context, e, call);
    }
}

bool engine_hold_back(struct engine *e, struct sim_request *r, enum kv_demand_kind kind,
                      uint64_t ask, uint64_t need, uint64_t headroom)
{
    struct refused_call call = {
        .request = r,
        .demand = {.kind = kind,
                   .something_runs = e->running.count > 0,
                   .pieces = kind == KV_ADMISSION ? r->kv.samples : 1},
        .held_back = true,
        .ask_units = ask,
        .need_units = need,
        .first_units = ask,
        .headroom_units = headroom,
    };
    uint64_t obtainable = kv_obtainable(e->policy, &call.demand);
    if (ask == 0 || (obtainable >= headroom && obtainable - headroom >= ask)) return false;
    struct kv_facts facts;
    kv_get_facts(e->policy, &facts);
    e->demand_units = facts.held_bytes / e->policy->unit_bytes + ask;
    engine_book_refusal(e, &call);
    return true;
}

/* The demand of r is met or dropped. */
void engine_close_refusal(struct engine *e, struct sim_request *r)
{
    if (r->refusal) refusals_close(&e->refusals, &r->refusal->episode, e->now);
    if (e->probe_request == r) {
        e->probe.present = false;
        e->probe_request = NULL;
    }
}

bool engine_refused_again(struct engine *e, struct sim_request *r, uint64_t budget)
{
    if (!e->park.on || !r->refusal) return false;
    struct refused_before *b = &r->refusal->before;
    if (b->pool_version != e->pool_version) return false;
    if (min_u64(b->wanted_tokens, budget) != b->new_tokens) return false;
    if (e->caches) engine_count_retry(e, r, b->hit_tokens);
    b->facts.use = running_use(e, r);
    book_attempt(e, r, &b->facts);
    return true;
}

void engine_slot_wait(struct engine *e, struct sim_request *r)
{
    if (r->slot_episode_begin != 0) return;
    r->slot_episode_begin = e->now + 1;
    if (engine_window_open(e)) e->refusals.totals.slots++;
}
