/* What the engine asks of the policy: admission, growth, forks, release; and the books that go with
 * each: accounting and prefix-cache counts. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_core.h"
#include "sim/numbers.h"

uint64_t request_target(const struct sim_request *r)
{
    bool prompt_only = r->kv.samples > 1 && !r->forked;
    return prompt_only ? r->prompt_tokens : r->prompt_tokens + r->outputs;
}

uint32_t request_width(const struct sim_request *r)
{
    return r->forked ? r->kv.samples : 1;
}

/* --- look-up -------------------------------------------------------------------------------- */

static void count_lookup(struct engine *e, struct sim_request *r, uint64_t tokens, uint64_t hits)
{
    if (r->preemptions > 0) {
        e->stats.preempted_lookups++;
        e->stats.preempted_queries += tokens;
        e->stats.preempted_hits += hits;
    } else {
        e->stats.lookups++;
        e->stats.queries += tokens;
        e->stats.hits += hits;
        e->step_queries += tokens;
        e->step_hits += hits;
    }
}

static bool counts_every_lookup(const struct engine *e)
{
    return e->config.geometry.rules == KV_RULES_2026_04;
}

void engine_count_retry(struct engine *e, struct sim_request *r, uint64_t hit_tokens)
{
    if (counts_every_lookup(e)) count_lookup(e, r, request_target(r), hit_tokens);
}

void engine_find_hit(struct engine *e, const struct sim_request *r, struct engine_hit *hit)
{
    memset(hit, 0, sizeof *hit);
    if (!e->caches) return;
    kv_lookup(e->policy, r->keys[0], request_target(r), &hit->device);
    hit->tokens = hit->device.tokens;
    engine_host_look(e, r, hit);
}

void engine_lookup(struct engine *e, struct sim_request *r, struct engine_hit *hit)
{
    memset(hit, 0, sizeof *hit);
    if (!e->caches || !engine_prepare_keys(e, r)) return;
    engine_find_hit(e, r, hit);
    engine_count_retry(e, r, hit->device.tokens);
}

/* What the infinite token-exact cache would have hit, and where the difference went. */
static void count_lost_sharing(struct engine *e, const struct sim_request *r, uint64_t hit_tokens)
{
    if (!e->shared || !r->has_content) return;
    uint64_t block = e->policy->block_tokens, shared = engine_shared_tokens(e, r);
    uint64_t whole_blocks = shared - shared % block;
    uint64_t usable = min_u64(shared, r->prompt_tokens - 1);
    usable -= usable % block;
    e->stats.lost_to_granularity += shared - whole_blocks;
    e->stats.lost_to_last_token += whole_blocks - usable;
    e->stats.lost_to_eviction += above(usable, hit_tokens);
}

static void count_admission(struct engine *e, struct sim_request *r, const struct engine_hit *hit)
{
    uint64_t tokens = request_target(r);
    if (e->caches && !counts_every_lookup(e)) count_lookup(e, r, tokens, hit->device.tokens);
    if (!r->in_window) return;
    if (r->ever_admitted) {
        e->stats.readmitted_tokens += tokens;
        e->stats.readmitted_hit_tokens += hit->tokens;
        return;
    }
    e->stats.admitted_tokens += tokens;
    e->stats.admitted_hit_tokens += hit->tokens;
    if (!e->caches) return;
    e->stats.admitted_prompt_blocks += r->prompt_tokens / e->policy->block_tokens;
    e->stats.admitted_hit_blocks += hit->device.blocks + hit->host_blocks;
    e->stats.host.hit_tokens += hit->tokens - hit->device.tokens;
    e->stats.host.hit_blocks += hit->host_blocks;
    count_lost_sharing(e, r, hit->tokens);
}

/* --- admission, growth, release ------------------------------------------------------------- */

/* Units of the ask for the first chunk alone: what a policy that asks by the chunk would have asked. */
static uint64_t first_part_units(const struct engine *e, const struct sim_request *r,
                                 const struct engine_hit *hit, uint64_t ask_units)
{
    uint64_t chunk = min_u64(above(request_target(r), hit->tokens),
                             e->config.max_num_batched_tokens);
    uint64_t units = kv_units_for(e->policy, &r->kv, hit->tokens + chunk, false);
    return min_u64(ask_units, above(units, hit->device.blocks) + hit->device.free_blocks);
}

void engine_account(struct engine *e, struct sim_request *r)
{
    accounting_update(&e->accounting, &r->account, r->seqs, r->kv.samples, request_width(r),
                      r->filled, r->computed, r->kv.final_tokens);
}

static void log_blocks(struct engine *e, const kv_block *blocks, uint32_t count)
{
    while (e->block_log_count + count > e->block_log_capacity) {
        kv_block *grown = engine_grow_array(e, e->block_log, e->block_log_capacity,
                                            &e->block_log_capacity, sizeof *blocks);
        if (!grown) return;
        e->block_log = grown;
    }
    if (count > 0) memcpy(e->block_log + e->block_log_count, blocks, count * sizeof *blocks);
    e->block_log_count += count;
}

/* Enters the step's list of scheduled requests. */
static void log_scheduled(struct engine *e, struct sim_request *r, uint64_t computed_before,
                          const struct engine_hit *hit, const struct kv_taken *taken)
{
    if (e->scheduled_count == e->scheduled_capacity) {
        struct scheduled *grown = engine_grow_array(
            e, e->scheduled, e->scheduled_count, &e->scheduled_capacity, sizeof *grown);
        if (!grown) return;
        e->scheduled = grown;
    }
    struct scheduled *entry = &e->scheduled[e->scheduled_count++];
    *entry = (struct scheduled){
        .request = r,
        .new_tokens = r->filled - computed_before,
        .computed_before = computed_before,
        .width = request_width(r),
        .admitted = hit != NULL,
        .readmitted = hit != NULL && r->ever_admitted,
        .first_admission = hit != NULL && !r->ever_admitted,
        .hit_tokens = hit ? hit->tokens : 0,
        .new_blocks = taken->new_blocks,
    };
    e->stats.scheduled_tokens += entry->new_tokens * entry->width;
    if (!e->config.hooks.step || !e->policy->ops->table) return;
    uint32_t length = 0;
    const kv_block *table = e->policy->ops->table(e->policy, r->seqs[0], &length);
    assert(length >= taken->new_blocks);
    if (hit) {
        entry->hit_blocks = length - taken->new_blocks;
        entry->hit_blocks_at = e->block_log_count;
        log_blocks(e, table, entry->hit_blocks);
    }
    entry->new_blocks_at = e->block_log_count;
    log_blocks(e, table + length - taken->new_blocks, taken->new_blocks);
}

static uint64_t keyed_limit(const struct engine *e, const struct sim_request *r)
{
    if (!e->caches) return 0;
    return e->config.cache_output == CACHE_OUTPUT_UNKEYED ? r->prompt_tokens : UINT64_MAX;
}

/* Tokens before this are read by no query from position computed on. */
static uint64_t first_needed_token(const struct engine *e, uint64_t computed)
{
    uint64_t window = e->config.geometry.window_tokens;
    return window ? above(computed + 1, window) : 0;
}

static uint64_t whole_blocks_max(const struct engine *e)
{
    const struct engine_config *c = &e->config;
    uint64_t window = c->geometry.window_tokens;
    if (!window || c->geometry.rules == KV_RULES_2026_04 || e->policy->block_tokens == 0) return 0;
    uint64_t tokens = min_u64(window - 1 + c->max_num_batched_tokens, c->max_model_len);
    return kv_blocks_for_tokens(tokens, e->policy->block_tokens) + 1;
}

/* What an admission that exceeds the empty pool asks for; of contiguous policies with its rounding. */
static uint64_t never_fitting_units(const struct engine *e, const struct sim_request *r,
                                    const struct kv_taken *taken)
{
    bool contiguous = (e->policy->ops->flags & KV_CONTIGUOUS) != 0;
    return contiguous ? kv_units_for(e->policy, &r->kv, request_target(r), false) : taken->ask_units;
}

/* Units handed out anew. Of a hit, those that nobody held were asked for too; under a window not even all of
 * them, so they cannot be subtracted. */
static uint64_t admitted_units(const struct kv_taken *taken, const struct engine_hit *hit)
{
    return hit->device.blocks > 0 ? taken->new_blocks : taken->ask_units;
}

void engine_admission_ask(struct engine *e, struct sim_request *r, const struct engine_hit *hit,
                          uint64_t new_tokens, struct kv_ask *ask)
{
    const struct engine_config *c = &e->config;
    uint32_t samples = r->kv.samples;
    assert(e->free_seq_count >= samples);
    for (uint32_t s = 0; s < samples; s++) {
        r->seqs[s] = e->free_seqs[e->free_seq_count - 1 - s];
    }
    uint64_t filled = hit->tokens + new_tokens;
    uint64_t lookahead = c->geometry.rules == KV_RULES_2026_04 ? 0 : c->geometry.lookahead_tokens;
    *ask = (struct kv_ask){
        .request = &r->kv,
        .seqs = r->seqs,
        .seq_count = samples,
        .something_runs = e->running.count > 0 || c->scheduler->watermark_always,
        .computed_tokens = hit->tokens,
        .filled_tokens = filled,
        .slots_tokens = min_u64(filled + lookahead, c->max_model_len),
        .keyed_tokens = min_u64(filled, keyed_limit(e, r)),
        .keys = (const uint64_t *const *)r->keys,
        .hit = hit->device.blocks > 0 ? &hit->device : NULL,
        .whole_tokens = c->whole_prompt_admission ? request_target(r) : 0,
        .whole_blocks_max = whole_blocks_max(e),
    };
}

enum kv_status engine_admit(struct engine *e, struct sim_request *r, const struct engine_hit *hit,
                            uint64_t wanted_tokens, uint64_t new_tokens)
{
    const struct engine_config *c = &e->config;
    uint32_t samples = r->kv.samples;
    uint64_t filled = hit->tokens + new_tokens;
    struct kv_ask ask;
    struct kv_taken taken;
    engine_admission_ask(e, r, hit, new_tokens, &ask);
    enum kv_status status = kv_admit(e->policy, &ask, &taken);
    struct kv_demand demand = {.kind = KV_ADMISSION, .something_runs = ask.something_runs, .pieces = samples};
    if (status == KV_NEVER_FITS) e->demand_units = never_fitting_units(e, r, &taken);
    if (status == KV_NEVER_FITS && c->replay_stalls) status = KV_NO_SPACE;
    if (status == KV_NO_SPACE && !c->replay_stalls && e->running.count + e->swapped.count == 0 &&
        !engine_waits_for_pins(e)) {
        /* Nobody holds anything: what an empty pool refuses, with what it keeps back, it will always refuse. */
        uint64_t kept_back = above(e->policy->usable_units, kv_obtainable(e->policy, &demand));
        e->demand_units = taken.ask_units + kept_back;
        return KV_NEVER_FITS;
    }
    if (status == KV_NO_SPACE && !c->replay_stalls) {
        struct refused_call call = {
            .request = r,
            .demand = demand,
            .new_tokens = new_tokens,
            .ask_units = taken.ask_units,
            .need_units = taken.need_units,
            .first_units = first_part_units(e, r, hit, taken.ask_units),
        };
        engine_book_refusal(e, &call);
        if (!r->refusal) return status; /* memory is out */
        r->refusal->before.pool_version = e->pool_version;
        r->refusal->before.wanted_tokens = wanted_tokens;
        r->refusal->before.new_tokens = new_tokens;
        r->refusal->before.hit_tokens = hit->device.tokens;
    }
    if (status != KV_OK) return status;

    accounting_touch(&e->accounting);
    e->free_seq_count -= samples;
    e->running_seqs += samples;
    uint64_t new_units = admitted_units(&taken, hit);
    e->stats.units_allocated += new_units;
    r->taken_units = taken.ask_units;
    engine_close_refusal(e, r);
    r->slot_episode_begin = 0;
    count_admission(e, r, hit);
    r->computed = hit->tokens;
    r->filled = filled;
    r->written_since_fork = false;
    r->admission_number = ++e->admissions;
    e->pool_version++;
    engine_queue_remove(e, r);
    request_list_append(&e->running, r);
    park_list_changed(e, r, true);
    r->state = REQUEST_RUNNING;
    engine_share_filled(e, r);
    engine_account(e, r);
    log_scheduled(e, r, hit->tokens, hit, &taken);
    engine_pass(e, r);
    r->ever_admitted = true;
    engine_event(e, EVENT_ADMIT, r, hit->tokens, new_units);
    engine_host_fetch(e, r, hit);
    return KV_OK;
}

void engine_promise(struct engine *e, struct sim_request *r, uint64_t units)
{
    r->promised_units = above(units, r->taken_units);
    e->promised_units += r->promised_units;
}

uint64_t engine_growth_units(const struct engine *e, const struct sim_request *r, uint64_t new_tokens)
{
    bool own_blocks = r->forked && r->written_since_fork;
    uint64_t after = kv_units_for(e->policy, &r->kv, r->computed + new_tokens, r->forked);
    return above(after, kv_units_for(e->policy, &r->kv, r->computed, own_blocks));
}

void engine_growth_ask(const struct engine *e, const struct sim_request *r, uint64_t new_tokens,
                       struct kv_ask *ask)
{
    const struct engine_config *c = &e->config;
    uint64_t filled = r->computed + new_tokens;
    *ask = (struct kv_ask){
        .request = &r->kv,
        .seqs = r->seqs,
        .seq_count = request_width(r),
        .something_runs = true,
        .computed_tokens = r->computed,
        .filled_tokens = filled,
        .slots_tokens = min_u64(filled + c->geometry.lookahead_tokens, c->max_model_len),
        .keyed_tokens = min_u64(filled, keyed_limit(e, r)),
        .keys = (const uint64_t *const *)r->keys,
        .hit = NULL, /* named, so that nothing has to be cleared beforehand: this runs for every block */
        .whole_tokens = 0,
        .whole_blocks_max = 0,
    };
}

static bool try_extend(struct engine *e, struct sim_request *r, uint64_t new_tokens,
                       struct kv_taken *taken)
{
    struct kv_ask ask;
    engine_growth_ask(e, r, new_tokens, &ask);
    if (e->config.geometry.window_tokens && e->policy->ops->trim) {
        uint64_t needed = first_needed_token(e, r->computed);
        for (uint32_t s = 0; s < ask.seq_count; s++) kv_trim(e->policy, r->seqs[s], needed);
    }
    return kv_extend(e->policy, &ask, taken) == KV_OK;
}

static void book_growth(struct engine *e, struct sim_request *r, const struct kv_taken *taken)
{
    r->taken_units += taken->ask_units;
    uint64_t kept = min_u64(taken->ask_units, r->promised_units);
    r->promised_units -= kept;
    e->promised_units -= kept;
    e->stats.units_allocated += taken->ask_units;
    if (taken->ask_units > 0 || e->caches) e->pool_version++;
}

bool engine_extend(struct engine *e, struct sim_request *r, uint64_t new_tokens)
{
    struct kv_taken taken;
    if (!try_extend(e, r, new_tokens, &taken)) {
        struct kv_facts facts;
        kv_get_facts(e->policy, &facts);
        e->demand_units = facts.held_bytes / e->policy->unit_bytes + taken.ask_units;
        if (!e->config.replay_stalls) {
            struct refused_call call = {
                .request = r,
                .demand = {.kind = KV_GROWTH, .something_runs = true, .pieces = 1},
                .new_tokens = new_tokens,
                .ask_units = taken.ask_units,
                .need_units = taken.need_units,
                .first_units = taken.ask_units,
            };
            engine_book_refusal(e, &call);
        }
        /* What left the window has been given back all the same, and the request may stay. */
        if (e->config.geometry.window_tokens) engine_account(e, r);
        return false;
    }
    engine_close_refusal(e, r);
    book_growth(e, r, &taken);
    uint64_t before = r->computed;
    r->filled = before + new_tokens;
    r->written_since_fork = r->forked;
    engine_share_filled(e, r);
    engine_account(e, r);
    log_scheduled(e, r, before, NULL, &taken);
    if (taken.ask_units > 0) engine_event(e, EVENT_GROW, r, r->filled, taken.ask_units);
    return true;
}

bool engine_grow_parked(struct engine *e, struct sim_request *r)
{
    struct kv_taken taken;
    assert(r->parked && (!r->refusal || !r->refusal->episode.open));
    if (!try_extend(e, r, 1, &taken)) return false;
    book_growth(e, r, &taken);
    if (taken.ask_units == 0) return true;
    /* The token itself is booked with those of all parked ones. */
    uint64_t slots = taken.ask_units / r->kv.samples * e->policy->block_tokens;
    accounting_add_slots(&e->accounting, &r->account, r->kv.samples, r->computed, slots, r->kv.final_tokens);
    engine_event(e, EVENT_GROW, r, r->computed + 1, taken.ask_units);
    return true;
}

/* What visits at every step would have told the caches, before the memory goes. */
static void settle(struct engine *e, struct sim_request *r)
{
    if (!e->park.on) return;
    engine_share_filled(e, r);
    if (!engine_keys_may_wait(e, r)) return;
    struct kv_ask ask;
    struct kv_taken taken;
    engine_growth_ask(e, r, 0, &ask);
    ask.slots_tokens = ask.filled_tokens; /* not a slot more: cannot be refused */
    kv_extend(e->policy, &ask, &taken);
}

void engine_fork(struct engine *e, struct sim_request *r)
{
    assert(!r->forked && r->kv.samples > 1);
    kv_fork(e->policy, r->seqs[0], r->seqs + 1, r->kv.samples - 1, r->computed);
    r->forked = true;
    e->pool_version++;
    engine_account(e, r);
    engine_event(e, EVENT_FORK, r, r->kv.samples - 1, 0);
}

/* Memory and sequence numbers go back; the request is in no queue afterwards. */
void engine_release_memory(struct engine *e, struct sim_request *r)
{
    assert(r->state == REQUEST_RUNNING);
    park_leave(e, r);
    settle(e, r);
    e->promised_units -= r->promised_units;
    r->promised_units = r->taken_units = 0;
    engine_close_refusal(e, r);
    e->pool_version++;
    kv_release(e->policy, r->seqs, r->kv.samples);
    accounting_touch(&e->accounting);
    accounting_close(&e->accounting, &r->account);
    for (uint32_t s = r->kv.samples; s-- > 0;) e->free_seqs[e->free_seq_count++] = r->seqs[s];
    e->running_seqs -= r->kv.samples;
    park_list_changed(e, r, false);
    request_list_remove(&e->running, r);
    r->state = REQUEST_GONE;
}

uint64_t engine_unschedule(struct engine *e, struct sim_request *r)
{
    for (size_t i = 0; i < e->scheduled_count; i++) {
        if (e->scheduled[i].request != r) continue;
        uint64_t tokens = e->scheduled[i].new_tokens * e->scheduled[i].width;
        e->scheduled_count--;
        memmove(&e->scheduled[i], &e->scheduled[i + 1],
                (e->scheduled_count - i) * sizeof e->scheduled[0]);
        e->stats.scheduled_tokens -= tokens;
        return tokens;
    }
    return 0;
}

bool request_comes_after(const struct sim_request *a, const struct sim_request *b)
{
    if (a->priority != b->priority) return a->priority > b->priority;
    if (a->arrival_ns != b->arrival_ns) return a->arrival_ns > b->arrival_ns;
    return a->index > b->index;
}

void engine_enqueue(struct engine *e, struct sim_request *r, bool front)
{
    struct sim_request *after = front && !e->config.by_priority ? NULL : e->waiting.tail;
    while (e->config.by_priority && after && request_comes_after(after, r)) after = after->prev;
    engine_queue_insert(e, after, r);
}

void engine_preempt(struct engine *e, struct sim_request *r)
{
    engine_release_memory(e, r); /* which brings the counters of a parked request up to date */
    engine_event(e, EVENT_PREEMPT, r, r->computed, 0);
    r->computed = r->filled = 0;
    r->forked = false;
    if (r->preemptions < UINT32_MAX) r->preemptions++;
    r->state = REQUEST_WAITING;
    engine_enqueue(e, r, true);
    engine_count_preemption(e, r);
}

void engine_count_preemption(struct engine *e, struct sim_request *r)
{
    if (engine_window_open(e)) {
        e->stats.preemptions++;
    }
    struct request_array *a = &e->preempted;
    if (a->count == a->capacity) {
        struct sim_request **grown =
            engine_grow_array(e, a->items, a->count, &a->capacity, sizeof *grown);
        if (!grown) return;
        a->items = grown;
    }
    a->items[a->count++] = r;
}

/* --- verdicts ------------------------------------------------------------------------------- */

bool engine_outgrew_pool(struct engine *e, struct sim_request *r)
{
    if (e->config.replay_stalls) return false;
    uint64_t units = kv_units_for(e->policy, &r->kv, r->computed + 1, r->forked);
    if (units > e->policy->usable_units) {
        e->demand_units = units;
        return true;
    }
    /* It would be preempted, come back and stand here again: without a new token since the last
     * time, for ever; unless pins end meanwhile. */
    bool no_progress = r->solitary_outputs == r->outputs + 1 && !engine_waits_for_pins(e);
    r->solitary_outputs = r->outputs + 1;
    return no_progress;
}

void engine_unservable(struct engine *e, struct sim_request *r, bool outgrew_pool)
{
    assert(r->state != REQUEST_GONE);
    engine_close_refusal(e, r);
    e->stats.unservable++;
    if (outgrew_pool) e->stats.outgrew_pool++;
    struct refusal_watch *watch = e->refusals.watch;
    if (watch && watch->request == r->index) watch->request_unservable = true;
    if (e->stats.unservable_example[0] == '\0') {
        char name[24];
        const struct kv_policy *p = e->policy;
        bool contiguous = (p->ops->flags & KV_CONTIGUOUS) != 0;
        /* One region has to lie in one piece: buddy's largest chunk may be half the pool. */
        uint64_t most = contiguous && r->kv.samples == 1 ? p->ops->largest_piece(p) : p->usable_units;
        snprintf(e->stats.unservable_example, sizeof e->stats.unservable_example,
                 "request %.40s needs %llu of %llu %s", sim_request_name(r, name, sizeof name),
                 (unsigned long long)e->demand_units, (unsigned long long)most,
                 contiguous ? "slots" : "blocks");
    }
    engine_event(e, EVENT_UNSERVABLE, r, outgrew_pool, 0);
    engine_drop(e, r);
}
