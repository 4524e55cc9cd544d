/* Schedulers of plug-ins: the functions of sim/scheduler.h, each of which checks its caller, and the pass around them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_core.h"
#include "sim/numbers.h"

/* --- rules ------------------------------------------------------------------------------------- */

static _Noreturn void broken(const struct engine *e, const char *call, const struct sim_request *r, const char *what)
{
    char name[24];
    fprintf(stderr, "pagesim: scheduler %s: pass %llu (%s): ", e->config.scheduler->name, (unsigned long long)e->calls.pass, call);
    if (r) fprintf(stderr, "request %.40s: ", sim_request_name(r, name, sizeof name));
    fprintf(stderr, "%s\n", what);
    abort();
}

static void must_be_inside(const struct engine *e, const char *call)
{
    if (!e->calls.inside) broken(e, call, NULL, "called outside of a pass");
}

/* A request that has ended keeps its storage as long as the engine lives, so its state can be read. */
static void must_be_there(const struct engine *e, const char *call, const struct sim_request *r)
{
    must_be_inside(e, call);
    if (!r) broken(e, call, NULL, "no request was given");
    if (r->state != REQUEST_WAITING && r->state != REQUEST_RUNNING) broken(e, call, r, "it has ended");
}

static void must_wait(const struct engine *e, const char *call, const struct sim_request *r)
{
    must_be_there(e, call, r);
    if (r->state != REQUEST_WAITING) broken(e, call, r, "it does not wait, it runs");
}

static void must_run(const struct engine *e, const char *call, const struct sim_request *r)
{
    must_be_there(e, call, r);
    if (r->state != REQUEST_RUNNING) broken(e, call, r, "it does not run, it waits");
}

static bool has_outcome(const struct engine *e, const struct sim_request *r, enum call_outcome outcome)
{
    return r->calls.pass == e->calls.pass && r->calls.outcome == outcome;
}

static bool is_scheduled(const struct engine *e, const struct sim_request *r)
{
    return has_outcome(e, r, CALL_ADMITTED) || has_outcome(e, r, CALL_EXTENDED);
}

/* Of actions: what was done to a request in this pass stands. */
static void must_be_free(const struct engine *e, const char *call, const struct sim_request *r)
{
    if (is_scheduled(e, r)) broken(e, call, r, "it is scheduled in this pass already");
    if (has_outcome(e, r, CALL_PREEMPTED)) broken(e, call, r, "it was preempted in this pass, and has to wait until the next");
}

static uint64_t left_tokens(const struct engine *e, const struct sim_request *r)
{
    if (r->state == REQUEST_WAITING) return request_target(r);
    return min_u64(request_target(r) - r->computed, e->config.max_model_len - 1 - r->computed);
}

/* Tokens of each of `width` sequences. */
static void must_be_tokens(const struct engine *e, const char *call, const struct sim_request *r, uint64_t tokens, uint64_t left)
{
    char what[160];
    if (tokens == 0) broken(e, call, r, "no tokens were given");
    if (tokens > left) {
        snprintf(what, sizeof what, "%llu tokens were given, it has only %llu left to compute", (unsigned long long)tokens,
                 (unsigned long long)left);
        broken(e, call, r, what);
    }
    if (tokens > e->calls.budget_tokens / request_width(r)) {
        snprintf(what, sizeof what, "%llu tokens for each of %u sequences were given, the step has only %llu left", (unsigned long long)tokens,
                 (unsigned)request_width(r), (unsigned long long)e->calls.budget_tokens);
        broken(e, call, r, what);
    }
    bool again = has_outcome(e, r, CALL_REFUSED) && r->calls.refused_version == e->pool_version && tokens >= r->calls.refused_tokens;
    if (again) broken(e, call, r, "it asks for as much again, although nothing has changed since it was refused");
}

/* --- books of the pass ------------------------------------------------------------------------- */

static void note(struct engine *e, struct sim_request *r, enum call_outcome outcome)
{
    r->calls.pass = e->calls.pass;
    r->calls.outcome = outcome;
}

static void note_refusal(struct engine *e, struct sim_request *r, uint64_t tokens)
{
    note(e, r, CALL_REFUSED);
    r->calls.refused_tokens = tokens;
    r->calls.refused_version = e->pool_version;
}

static enum scheduler_answer end_request(struct engine *e, struct sim_request *r, bool outgrew_pool)
{
    if (e->calls.looked_up == r) e->calls.looked_up = NULL;
    engine_unservable(e, r, outgrew_pool);
    return SCHEDULER_ENDED;
}

static bool hit_is_fresh(const struct engine *e, const struct sim_request *r)
{
    return e->calls.looked_up == r && e->calls.hit_version == e->pool_version;
}

/* --- the pass ---------------------------------------------------------------------------------- */

int scheduler_calls_init(struct engine *e, struct err *err)
{
    const struct scheduler_ops *ops = e->config.scheduler->plugin;
    if (!ops || !ops->create) return 0;
    e->calls.state = ops->create();
    return e->calls.state ? 0 : err_set(err, ERR_FAILED, "scheduler %s: out of memory", ops->name);
}

void scheduler_calls_release(struct engine *e)
{
    if (e->calls.state) e->config.scheduler->plugin->destroy(e->calls.state);
}

/* Whether the step computes a token that no step before has computed. There are finitely many. */
static bool computes_new(struct engine *e)
{
    bool new = false;
    for (size_t i = 0; i < e->scheduled_count; i++) {
        struct sim_request *r = e->scheduled[i].request;
        if (r->filled <= r->calls.furthest) continue;
        r->calls.furthest = r->filled;
        new = true;
    }
    return new;
}

void scheduler_calls_pass(struct engine *e)
{
    struct scheduler_calls *c = &e->calls;
    c->pass++;
    c->budget_tokens = e->config.max_num_batched_tokens;
    c->looked_up = NULL;
    c->inside = true;
    e->config.scheduler->plugin->pass(e, c->state);
    c->inside = false;
    if (computes_new(e)) c->barren_passes = 0;
    else if (e->scheduled_count + e->preempted.count > 0) c->barren_passes++;
}

/* --- facts ------------------------------------------------------------------------------------- */

void scheduler_get_limits(const struct engine *e, struct scheduler_limits *limits)
{
    const struct engine_config *c = &e->config;
    must_be_inside(e, "get_limits");
    *limits = (struct scheduler_limits){
        .max_num_batched_tokens = c->max_num_batched_tokens,
        .max_num_seqs = c->max_num_seqs,
        .max_model_len = c->max_model_len,
        .long_prefill_token_threshold = c->long_prefill_token_threshold,
        .lookahead_tokens = c->geometry.lookahead_tokens,
        .pool_units = e->policy->usable_units,
        .chunked_prefill = c->chunked_prefill,
        .by_priority = c->by_priority,
        .policy_caches = e->caches,
        .policy_reserves = (e->policy->ops->flags & KV_RESERVES) != 0,
    };
}

void scheduler_get_now(const struct engine *e, struct scheduler_now *now)
{
    must_be_inside(e, "get_now");
    *now = (struct scheduler_now){
        .pass = e->calls.pass,
        .now_ns = e->now,
        .budget_tokens = e->calls.budget_tokens,
        .running = e->running.count,
        .waiting = e->waiting.count,
        .running_seqs = e->running_seqs,
        .preempted = e->preempted.count,
    };
}

void scheduler_get_request(const struct engine *e, const struct sim_request *r, struct scheduler_request *facts)
{
    must_be_there(e, "get_request", r);
    *facts = (struct scheduler_request){
        .number = r->index,
        .arrival_ns = r->arrival_ns,
        .priority = r->priority,
        .prompt_tokens = r->prompt_tokens,
        .max_tokens = r->kv.max_tokens,
        .output_tokens = r->outputs,
        .computed_tokens = r->computed,
        .left_tokens = left_tokens(e, r),
        .taken_units = r->taken_units,
        .samples = r->kv.samples,
        .width = request_width(r),
        .preemptions = r->preemptions,
        .scheduled = is_scheduled(e, r),
    };
}

/* --- the lists --------------------------------------------------------------------------------- */

struct sim_request *scheduler_first_running(const struct engine *e)
{
    must_be_inside(e, "first_running");
    return e->running.head;
}

struct sim_request *scheduler_last_running(const struct engine *e)
{
    must_be_inside(e, "last_running");
    return e->running.tail;
}

struct sim_request *scheduler_next_running(const struct engine *e, const struct sim_request *r)
{
    must_run(e, "next_running", r);
    return r->next;
}

struct sim_request *scheduler_previous_running(const struct engine *e, const struct sim_request *r)
{
    must_run(e, "previous_running", r);
    return r->prev;
}

struct sim_request *scheduler_first_waiting(const struct engine *e)
{
    must_be_inside(e, "first_waiting");
    return e->waiting.head;
}

struct sim_request *scheduler_next_waiting(const struct engine *e, const struct sim_request *r)
{
    must_wait(e, "next_waiting", r);
    return r->next;
}

/* --- memory ------------------------------------------------------------------------------------ */

uint64_t scheduler_obtainable_units(const struct engine *e, const struct sim_request *r)
{
    must_be_there(e, "obtainable_units", r);
    bool waits = r->state == REQUEST_WAITING;
    struct kv_demand demand = {.kind = waits ? KV_ADMISSION : KV_GROWTH,
                               .something_runs = !waits || e->running.count > 0 || e->config.scheduler->watermark_always,
                               .pieces = waits ? r->kv.samples : 1};
    return kv_obtainable(e->policy, &demand);
}

static void must_be_lengths(const struct engine *e, const char *call, const struct sim_request *r, uint64_t tokens, bool forked)
{
    must_be_there(e, call, r);
    if (tokens > e->config.max_model_len) broken(e, call, r, "more tokens than max_model_len");
    if (forked && tokens < r->prompt_tokens) broken(e, call, r, "samples grow apart behind the prompt, not before");
}

/* Of the waiting request, as it was looked up last, or none. */
static const struct engine_hit *fresh_hit(const struct engine *e, const struct sim_request *r)
{
    static const struct engine_hit none;
    return hit_is_fresh(e, r) ? &e->calls.hit : &none;
}

static uint64_t without_hit(uint64_t units, const struct engine_hit *hit)
{
    return above(units, hit->device.blocks) + hit->device.free_blocks;
}

uint64_t scheduler_units(const struct engine *e, const struct sim_request *r, uint64_t tokens, bool forked)
{
    must_be_lengths(e, "units", r, tokens, forked);
    bool apart = (forked || r->forked) && r->kv.samples > 1;
    uint64_t units = kv_units_for(e->policy, &r->kv, tokens, apart);
    if (r->state == REQUEST_WAITING) return without_hit(units, fresh_hit(e, r));
    return above(units, kv_units_for(e->policy, &r->kv, r->computed, r->forked && r->written_since_fork));
}

uint64_t scheduler_units_in_all(const struct engine *e, const struct sim_request *r, uint64_t tokens, bool forked)
{
    must_be_lengths(e, "units_in_all", r, tokens, forked);
    return kv_units_for(e->policy, &r->kv, tokens, forked && r->kv.samples > 1);
}

uint64_t scheduler_cached_tokens(struct engine *e, struct sim_request *r)
{
    struct engine_hit hit;
    must_wait(e, "cached_tokens", r);
    if (!e->caches || !engine_prepare_keys(e, r)) return 0;
    engine_find_hit(e, r, &hit);
    return hit.tokens;
}

/* --- actions ----------------------------------------------------------------------------------- */

uint64_t scheduler_look_up(struct engine *e, struct sim_request *r)
{
    must_wait(e, "look_up", r);
    must_be_free(e, "look_up", r);
    engine_lookup(e, r, &e->calls.hit);
    e->calls.looked_up = r;
    e->calls.hit_version = e->pool_version;
    return request_target(r) - e->calls.hit.tokens;
}

/* A scheduler that says so never cuts a prompt; else, where prompts may not be cut, the threshold may. */
static void must_be_whole(const struct engine *e, const struct sim_request *r, uint64_t tokens, uint64_t left)
{
    bool never_cuts = e->config.scheduler->whole_prompts;
    uint64_t threshold = never_cuts ? 0 : e->config.long_prefill_token_threshold;
    if (threshold > 0) left = min_u64(left, threshold);
    if ((never_cuts || !e->config.chunked_prefill) && tokens < left)
        broken(e, "admit", r, "prompts may not be cut, and it was given less than it has left");
}

enum scheduler_answer scheduler_admit(struct engine *e, struct sim_request *r, uint64_t new_tokens)
{
    must_wait(e, "admit", r);
    must_be_free(e, "admit", r);
    if (!hit_is_fresh(e, r)) broken(e, "admit", r, "it was not looked up, or the pool has changed since");
    if (e->out_of_memory) return SCHEDULER_REFUSED; /* the run ends behind this pass */
    uint64_t left = request_target(r) - e->calls.hit.tokens;
    must_be_tokens(e, "admit", r, new_tokens, left);
    must_be_whole(e, r, new_tokens, left);
    if (r->kv.samples > e->config.max_num_seqs - e->running_seqs)
        broken(e, "admit", r, "its samples have no place among max_num_seqs");
    enum kv_status status = engine_admit(e, r, &e->calls.hit, new_tokens, new_tokens);
    if (status == KV_NEVER_FITS) return end_request(e, r, false);
    if (status != KV_OK) {
        note_refusal(e, r, new_tokens);
        return SCHEDULER_REFUSED;
    }
    note(e, r, CALL_ADMITTED);
    e->calls.budget_tokens -= new_tokens;
    return SCHEDULER_OK;
}

/* It has the whole pool and was refused. Ended at once when its next token needs more than there is; else it may come to that when it
 * is preempted, or it waits for pins, which engine_outgrew_pool must know. */
static enum scheduler_answer refused_alone(struct engine *e, struct sim_request *r)
{
    bool exceeds = kv_units_for(e->policy, &r->kv, r->computed + 1, r->forked) > e->policy->usable_units;
    if (!exceeds && !engine_waits_for_pins(e)) return SCHEDULER_REFUSED;
    return engine_outgrew_pool(e, r) ? end_request(e, r, true) : SCHEDULER_WAIT;
}

enum scheduler_answer scheduler_extend(struct engine *e, struct sim_request *r, uint64_t new_tokens)
{
    must_run(e, "extend", r);
    must_be_free(e, "extend", r);
    if (e->out_of_memory) return SCHEDULER_REFUSED;
    must_be_tokens(e, "extend", r, new_tokens, left_tokens(e, r));
    if (!engine_extend(e, r, new_tokens)) {
        note_refusal(e, r, new_tokens);
        return e->running.count == 1 ? refused_alone(e, r) : SCHEDULER_REFUSED;
    }
    note(e, r, CALL_EXTENDED);
    e->calls.budget_tokens -= new_tokens * request_width(r);
    return SCHEDULER_OK;
}

enum scheduler_answer scheduler_preempt(struct engine *e, struct sim_request *r)
{
    must_run(e, "preempt", r);
    if (has_outcome(e, r, CALL_ADMITTED)) broken(e, "preempt", r, "it was admitted in this pass");
    bool refused_alone = e->running.count == 1 && has_outcome(e, r, CALL_REFUSED) && r->calls.refused_version == e->pool_version;
    if (refused_alone && engine_outgrew_pool(e, r)) return end_request(e, r, true);
    e->calls.budget_tokens += engine_unschedule(e, r);
    engine_preempt(e, r);
    note(e, r, CALL_PREEMPTED);
    return SCHEDULER_OK;
}

bool scheduler_hold_back(struct engine *e, struct sim_request *r, uint64_t units, uint64_t headroom_units)
{
    must_wait(e, "hold_back", r);
    must_be_free(e, "hold_back", r);
    if (headroom_units > UINT64_MAX - units) broken(e, "hold_back", r, "units and headroom exceed 64 bits");
    uint64_t needed = without_hit(kv_units_for(e->policy, &r->kv, r->kv.final_tokens, r->kv.samples > 1), fresh_hit(e, r));
    return engine_hold_back(e, r, KV_ADMISSION, units, min_u64(needed, units), headroom_units);
}

void scheduler_wait_for_slot(struct engine *e, struct sim_request *r)
{
    must_wait(e, "wait_for_slot", r);
    if (r->kv.samples <= e->config.max_num_seqs - e->running_seqs)
        broken(e, "wait_for_slot", r, "its samples have a place among max_num_seqs");
    engine_slot_wait(e, r);
}

void scheduler_unservable(struct engine *e, struct sim_request *r, uint64_t units)
{
    must_be_there(e, "unservable", r);
    must_be_free(e, "unservable", r);
    if (units <= e->policy->usable_units) broken(e, "unservable", r, "the pool has as many units as it is said to need");
    e->demand_units = units;
    end_request(e, r, r->state == REQUEST_RUNNING);
}
