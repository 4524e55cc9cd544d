/* Local changes: tried on the state that the refusal found. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/counterfactual.h"
#include "sim/engine_core.h"
#include "sim/numbers.h"

const char *const local_change_names[LOCAL_COUNT] = {
    [LOCAL_WATERMARK_0] = "watermark_0",   [LOCAL_FIRST_CHUNK] = "first_chunk",
    [LOCAL_EXACT_NEED] = "exact_need",     [LOCAL_COMPACTION] = "compaction",
    [LOCAL_NO_PINS] = "no_pins",           [LOCAL_BOUNDARY] = "boundary",
};
const char *const verdict_names[] = {
    [VERDICT_OPEN] = "not tried",
    [VERDICT_NOT_APPLICABLE] = "does not apply",
    [VERDICT_UNKNOWN] = "not known",
    [VERDICT_REFUSED] = "refused",
    [VERDICT_GRANTED] = "granted",
};

/* One trial: which state, which ask. */
struct attempt {
    struct engine *e;
    const struct refused_call *call;
    enum local_change change;
    struct local_trial *result;
    struct local_trials *all;
    bool live_used; /* the live policy has changed: it granted the ask, or pins ended */
};

static bool admission(const struct attempt *a)
{
    return a->call->demand.kind == KV_ADMISSION;
}

static bool reserves(const struct attempt *a)
{
    return (a->e->policy->ops->flags & KV_RESERVES) != 0;
}

static bool contiguous(const struct attempt *a)
{
    return (a->e->policy->ops->flags & KV_CONTIGUOUS) != 0;
}

static const char *units_name(const struct attempt *a)
{
    return contiguous(a) ? "slots" : "blocks";
}

__attribute__((format(printf, 3, 4))) static void settle(struct attempt *a, enum verdict verdict,
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    a->result->verdict = verdict;
    vsnprintf(a->result->why, sizeof a->result->why, format, arguments);
    va_end(arguments);
}

/* --- the ask, as it was or smaller ----------------------------------------------------------- */

static uint64_t kept_back(const struct attempt *a, bool all)
{
    return all ? 0 : a->call->headroom_units;
}

/* Tokens that the step would compute: what the scheduler had chosen, or would have chosen next. */
static uint64_t new_tokens(const struct attempt *a, uint64_t hit_tokens)
{
    const struct sim_request *r = a->call->request;
    const struct engine_config *c = &a->e->config;
    if (!admission(a)) {
        if (a->change == LOCAL_FIRST_CHUNK) return 1;
        return a->call->held_back ? min_u64(request_target(r) - r->computed, c->max_num_batched_tokens)
                                  : a->call->new_tokens;
    }
    if (!a->call->held_back && a->change != LOCAL_FIRST_CHUNK) return a->call->new_tokens;
    uint64_t left = request_target(r) - hit_tokens;
    if (c->scheduler->whole_prompts && a->change != LOCAL_FIRST_CHUNK) return left;
    return min_u64(left, c->max_num_batched_tokens);
}

/* Units that the ask is judged by where the scheduler has its own test before the policy's. */
static uint64_t judged_units(const struct attempt *a, const struct kv_ask *ask)
{
    const struct refused_call *call = a->call;
    if (a->change == LOCAL_EXACT_NEED) return call->need_units;
    if (a->change != LOCAL_FIRST_CHUNK) return call->ask_units;
    if (!admission(a)) return min_u64(call->ask_units, engine_growth_units(a->e, call->request, 1));
    uint64_t units = kv_units_for(a->e->policy, &call->request->kv, ask->filled_tokens, false);
    if (!ask->hit) return min_u64(call->ask_units, units);
    return min_u64(call->ask_units, above(units, ask->hit->blocks) + ask->hit->free_blocks);
}

/* Whether the scheduler's own test lets it pass: headroom and ask together. */
static bool scheduler_grants(const struct attempt *a, struct kv_policy *p, const struct kv_ask *ask)
{
    if (!a->call->held_back) return true;
    struct kv_demand demand = a->call->demand;
    if (a->change == LOCAL_WATERMARK_0) demand.something_runs = false;
    uint64_t headroom = kept_back(a, a->change == LOCAL_WATERMARK_0);
    uint64_t obtainable = kv_obtainable(p, &demand), units = judged_units(a, ask);
    return obtainable >= headroom && obtainable - headroom >= units;
}

static void change_ask(const struct attempt *a, struct kv_ask *ask)
{
    if (a->change == LOCAL_WATERMARK_0) ask->something_runs = false;
    if (a->change == LOCAL_FIRST_CHUNK) ask->whole_tokens = 0;
    if (a->change == LOCAL_EXACT_NEED) ask->slots_tokens = ask->filled_tokens;
}

static bool try_growth(const struct attempt *a, struct kv_policy *p)
{
    struct kv_ask ask;
    struct kv_taken taken;
    engine_growth_ask(a->e, a->call->request, new_tokens(a, 0), &ask);
    change_ask(a, &ask);
    if (p != a->e->policy) ask.keyed_tokens = 0; /* another pool's keys are not these */
    return scheduler_grants(a, p, &ask) && kv_extend(p, &ask, &taken) == KV_OK;
}

static bool give_back(struct kv_policy *p, const struct sim_request *r)
{
    kv_release(p, r->seqs, r->kv.samples);
    return true;
}

/* The keys of the hit blocks as a refilled pool knows them; NULL when memory is out. */
static uint64_t *keys_for(const struct attempt *a, const struct kv_hit *hit)
{
    const struct sim_request *r = a->call->request;
    uint32_t count = (uint32_t)(request_target(r) / a->e->policy->block_tokens) + 1;
    uint64_t *keys = malloc(count * sizeof *keys);
    if (!keys) a->all->out_of_memory = true;
    else refill_keys(keys, count, hit->ids, hit->blocks, a->e->config.geometry.max_seqs);
    return keys;
}

/* Admission to another pool than the live one: the same tokens, with the hits that it has. */
static bool try_elsewhere(const struct attempt *a, struct kv_policy *p, const struct engine_hit *live_hit)
{
    struct sim_request *r = a->call->request;
    struct kv_ask ask;
    struct kv_taken taken;
    struct kv_hit hit = {0};
    uint64_t *keys = NULL;
    engine_admission_ask(a->e, r, live_hit, new_tokens(a, live_hit->tokens), &ask);
    ask.keyed_tokens = 0;
    ask.keys = NULL;
    if (a->e->caches) {
        keys = keys_for(a, &live_hit->device);
        if (!keys) return false;
        kv_lookup(p, keys, request_target(r), &hit);
    }
    ask.computed_tokens = hit.tokens + (live_hit->tokens - live_hit->device.tokens); /* the host's are fetched here too */
    ask.hit = hit.blocks > 0 ? &hit : NULL;
    const uint64_t *chain = keys;
    if (keys && r->kv.samples == 1) ask.keys = &chain;
    change_ask(a, &ask);
    bool granted = scheduler_grants(a, p, &ask) && kv_admit(p, &ask, &taken) == KV_OK;
    free(keys);
    return granted;
}

static bool try_admission(const struct attempt *a, struct kv_policy *p)
{
    struct sim_request *r = a->call->request;
    struct engine_hit hit;
    struct kv_ask ask = {0};
    struct kv_taken taken;
    if (r->state == REQUEST_SWAPPED) {
        bool live = p == a->e->policy;
        return scheduler_grants(a, p, &ask) && (!live || (engine_rebuild_swapped(a->e, r) && give_back(p, r)));
    }
    engine_find_hit(a->e, r, &hit);
    if (p != a->e->policy) return try_elsewhere(a, p, &hit);
    engine_admission_ask(a->e, r, &hit, new_tokens(a, hit.tokens), &ask);
    change_ask(a, &ask);
    return scheduler_grants(a, p, &ask) && kv_admit(p, &ask, &taken) == KV_OK && give_back(p, r);
}

static bool granted_in(const struct attempt *a, struct kv_policy *p)
{
    return admission(a) ? try_admission(a, p) : try_growth(a, p);
}

static enum verdict verdict_of(bool granted)
{
    return granted ? VERDICT_GRANTED : VERDICT_REFUSED;
}

static bool granted_live(struct attempt *a)
{
    a->live_used = granted_in(a, a->e->policy);
    return a->live_used;
}

/* Tokens of the prompt that the cache does not have. */
static uint64_t left_tokens(const struct attempt *a)
{
    const struct sim_request *r = a->call->request;
    struct engine_hit hit;
    engine_find_hit(a->e, r, &hit);
    return request_target(r) - hit.tokens;
}

/* --- the changes ------------------------------------------------------------------------------ */

static void try_watermark(struct attempt *a)
{
    const struct refused_call *call = a->call;
    struct kv_demand without = call->demand;
    without.something_runs = false;
    uint64_t obtainable = kv_obtainable(a->e->policy, &without);
    uint64_t back = call->headroom_units + above(obtainable, kv_obtainable(a->e->policy, &call->demand));
    if (back == 0) {
        settle(a, VERDICT_NOT_APPLICABLE, "nothing is kept back");
        return;
    }
    bool granted = granted_live(a);
    settle(a, verdict_of(granted),
           "%" PRIu64 " %s kept back; %" PRIu64 " obtainable without, %" PRIu64 " asked", back, units_name(a),
           obtainable, call->ask_units);
}

static void try_first_chunk(struct attempt *a)
{
    const struct refused_call *call = a->call;
    if (reserves(a)) {
        settle(a, VERDICT_NOT_APPLICABLE, "the policy takes everything at admission");
        return;
    }
    if (call->request->state == REQUEST_SWAPPED) {
        settle(a, VERDICT_NOT_APPLICABLE, "a swapped request comes back as a whole");
        return;
    }
    if (admission(a) && !call->held_back && left_tokens(a) <= a->e->config.max_num_batched_tokens) {
        settle(a, VERDICT_NOT_APPLICABLE, "the ask is for the first chunk alone");
        return;
    }
    struct attempt as_it_was = {.e = a->e, .call = call, .change = LOCAL_COUNT};
    uint64_t tokens = new_tokens(&as_it_was, 0);
    if (!admission(a) && tokens <= 1) {
        settle(a, VERDICT_NOT_APPLICABLE, "the ask is for one token");
        return;
    }
    bool granted = granted_live(a);
    if (admission(a)) {
        settle(a, verdict_of(granted), "%" PRIu64 " %s at first instead of %" PRIu64,
               call->held_back ? judged_units(a, &(struct kv_ask){.filled_tokens = new_tokens(a, 0)})
                               : call->first_units,
               units_name(a), call->ask_units);
    } else {
        settle(a, verdict_of(granted), "one token instead of %" PRIu64, tokens);
    }
}

static void try_exact_need(struct attempt *a)
{
    const struct refused_call *call = a->call;
    if (call->need_units >= call->ask_units) {
        settle(a, VERDICT_NOT_APPLICABLE, "every unit of the ask will hold a token");
        return;
    }
    uint64_t obtainable = above(kv_obtainable(a->e->policy, &call->demand), call->headroom_units);
    /* A reservation's size is the policy's own; what is obtainable is its promise, which the contract's tests hold
     * it to. */
    bool granted = reserves(a) ? obtainable >= call->need_units : granted_live(a);
    settle(a, verdict_of(granted),
           "%" PRIu64 " of %" PRIu64 " %s will hold a token, %" PRIu64 " obtainable", call->need_units,
           call->ask_units, units_name(a), obtainable);
}

static void try_compaction(struct attempt *a)
{
    char why[COUNTERFACTUAL_WHY_BYTES];
    if (!contiguous(a)) {
        settle(a, VERDICT_NOT_APPLICABLE, "fixed-size blocks: any free one will do");
        return;
    }
    struct kv_policy *p = policy_refilled(a->e, a->e->config.geometry.pool_bytes, why, sizeof why);
    if (!p) {
        settle(a, VERDICT_UNKNOWN, "%s", why);
        return;
    }
    uint64_t run = kv_largest_run(p, a->call->demand.pieces);
    bool granted = granted_in(a, p);
    settle(a, verdict_of(granted), "longest free run %" PRIu64 " slots, from %" PRIu64 "; %" PRIu64 " asked",
           run, kv_largest_run(a->e->policy, a->call->demand.pieces), a->call->ask_units);
    kv_destroy(p);
}

static void try_no_pins(struct attempt *a)
{
    struct kv_policy *p = a->e->policy;
    struct kv_facts facts;
    kv_get_facts(p, &facts);
    if (facts.pinned_bytes == 0) {
        settle(a, VERDICT_NOT_APPLICABLE, "nothing is pinned");
        return;
    }
    p->ops->clock(p, UINT64_MAX - 1); /* later than any pin ends */
    bool granted = granted_live(a);
    a->live_used = true; /* either way: the pins are gone */
    settle(a, verdict_of(granted), "%" PRIu64 " %s pinned, %" PRIu64 " asked", facts.pinned_bytes / p->unit_bytes,
           units_name(a), a->call->ask_units);
}

/* --- bytes moved across the boundary ---------------------------------------------------------- */

/* A region has to lie in the bytes that come: they are no neighbours of the holes. */
static bool granted_with_region(struct attempt *a, uint64_t bytes, char *why)
{
    struct kv_policy *p = policy_anew(a->e, bytes, why, COUNTERFACTUAL_WHY_BYTES);
    bool granted = p && granted_in(a, p);
    kv_destroy(p);
    return granted;
}

static bool granted_with_blocks(struct attempt *a, uint64_t bytes, char *why)
{
    uint64_t pool = a->e->config.geometry.pool_bytes;
    struct kv_policy *p = policy_refilled(a->e, pool + bytes, why, COUNTERFACTUAL_WHY_BYTES);
    bool granted = p && granted_in(a, p);
    kv_destroy(p);
    return granted;
}

/* The first guess at what is missing. */
static uint64_t missing_bytes(const struct attempt *a)
{
    struct kv_policy *p = a->e->policy;
    if (contiguous(a)) {
        const struct sim_request *r = a->call->request;
        return kv_units_for(p, &r->kv, request_target(r), r->forked) * p->unit_bytes;
    }
    uint64_t obtainable = above(kv_obtainable(p, &a->call->demand), a->call->headroom_units);
    return above(a->call->ask_units, obtainable) * p->unit_bytes;
}

#define BOUNDARY_TRIES 40 /* each with an eighth more: 100 times the first guess */

static void try_boundary(struct attempt *a)
{
    char why[COUNTERFACTUAL_WHY_BYTES] = "";
    uint64_t room = ((uint64_t)1 << 62) - a->e->config.geometry.pool_bytes;
    uint64_t unit = a->e->policy->unit_bytes, given = a->all->boundary_bytes;
    uint64_t bytes = given > 0 ? given : missing_bytes(a);
    bool granted = false;
    for (int i = 0; i < (given > 0 ? 1 : BOUNDARY_TRIES) && bytes > 0 && bytes <= room; i++) {
        if (i > 0) bytes += (bytes / unit / 8 + 1) * unit;
        granted = contiguous(a) ? granted_with_region(a, bytes, why) : granted_with_blocks(a, bytes, why);
        if (granted || a->all->out_of_memory) break;
    }
    a->all->moved_bytes = bytes;
    if (!granted && why[0] != '\0') {
        settle(a, VERDICT_UNKNOWN, "%.120s", why);
        return;
    }
    settle(a, verdict_of(granted), "%" PRIu64 " bytes (%" PRIu64 " %s) moved into the pool%s", bytes, bytes / unit,
           units_name(a), contiguous(a) ? ", as a region of their own" : "");
}

static void (*const changes[LOCAL_COUNT])(struct attempt *) = {
    [LOCAL_WATERMARK_0] = try_watermark,   [LOCAL_FIRST_CHUNK] = try_first_chunk,
    [LOCAL_EXACT_NEED] = try_exact_need,   [LOCAL_COMPACTION] = try_compaction,
    [LOCAL_NO_PINS] = try_no_pins,         [LOCAL_BOUNDARY] = try_boundary,
};

bool local_trials_open(const struct local_trials *t)
{
    for (int c = 0; c < LOCAL_COUNT; c++) {
        if (t->trials[c].verdict == VERDICT_OPEN) return true;
    }
    return false;
}

void local_trials_refused(void *context, struct engine *e, const struct refused_call *call)
{
    struct local_trials *t = context;
    if (e->stats.stopped || call->request->refusal->episode.number != t->episode) return;
    t->reached = true;
    engine_stop(e);
    for (int c = 0; c < LOCAL_COUNT; c++) {
        if (t->trials[c].verdict != VERDICT_OPEN) continue;
        struct attempt a = {.e = e, .call = call, .change = (enum local_change)c, .result = &t->trials[c], .all = t};
        changes[c](&a);
        if (a.live_used) return;
    }
}
