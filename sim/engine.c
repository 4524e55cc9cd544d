#include "sim/engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/accounting_check.h"
#include "sim/engine_core.h"
#include "sim/numbers.h"

const char *const event_names[EVENT_KIND_COUNT] = {
    [EVENT_ARRIVE] = "arrive",
    [EVENT_REJECT] = "reject",
    [EVENT_UNSERVABLE] = "unservable",
    [EVENT_ADMIT] = "admit",
    [EVENT_GROW] = "grow",
    [EVENT_REFUSE] = "refuse",
    [EVENT_PREEMPT] = "preempt",
    [EVENT_SWAP_OUT] = "swap_out",
    [EVENT_SWAP_IN] = "swap_in",
    [EVENT_FORK] = "fork",
    [EVENT_EVICT] = "evict",
    [EVENT_COPY] = "copy",
    [EVENT_FIRST_TOKEN] = "first_token",
    [EVENT_FINISH] = "finish",
    [EVENT_ABORT] = "abort",
    [EVENT_FETCH] = "fetch",
    [EVENT_OFFLOAD] = "offload",
    [EVENT_DEVICE_OOM] = "device_oom",
};

/* --- small tools ---------------------------------------------------------------------------- */

void request_list_append(struct request_list *list, struct sim_request *r)
{
    r->prev = list->tail;
    r->next = NULL;
    if (list->tail) list->tail->next = r;
    else list->head = r;
    list->tail = r;
    list->count++;
}

void request_list_push_front(struct request_list *list, struct sim_request *r)
{
    r->prev = NULL;
    r->next = list->head;
    if (list->head) list->head->prev = r;
    else list->tail = r;
    list->head = r;
    list->count++;
}

void request_list_insert_after(struct request_list *list, struct sim_request *after,
                               struct sim_request *r)
{
    if (!after) {
        request_list_push_front(list, r);
        return;
    }
    r->prev = after;
    r->next = after->next;
    if (after->next) after->next->prev = r;
    else list->tail = r;
    after->next = r;
    list->count++;
}

void request_list_remove(struct request_list *list, struct sim_request *r)
{
    if (r->prev) r->prev->next = r->next;
    else list->head = r->next;
    if (r->next) r->next->prev = r->prev;
    else list->tail = r->prev;
    r->prev = r->next = NULL;
    list->count--;
}

void *engine_grow_array(struct engine *e, void *items, size_t count, size_t *capacity,
                        size_t item_bytes)
{
    size_t wanted = *capacity ? *capacity * 2 : 64;
    assert(count <= wanted);
    void *grown = realloc(items, wanted * item_bytes);
    if (!grown) {
        e->out_of_memory = true;
        return NULL;
    }
    *capacity = wanted;
    return grown;
}

void engine_array_add(struct engine *e, struct request_array *a, struct sim_request *r)
{
    if (a->count == a->capacity) {
        struct sim_request **grown =
            engine_grow_array(e, a->items, a->count, &a->capacity, sizeof *grown);
        if (!grown) return;
        a->items = grown;
    }
    a->items[a->count++] = r;
}

void engine_event(struct engine *e, enum event_kind kind, const struct sim_request *r, uint64_t a,
                  uint64_t b)
{
    if (e->config.hooks.event) e->config.hooks.event(e->config.hooks.context, e->now, kind, r, a, b);
}

const char *sim_request_name(const struct sim_request *r, char *buffer, size_t bytes)
{
    if (r->id) return r->id;
    snprintf(buffer, bytes, "%llu", (unsigned long long)r->index);
    return buffer;
}

uint64_t sim_request_index(const struct sim_request *r)
{
    return r->index;
}

static uint64_t unfinished(const struct engine *e)
{
    return e->waiting.count + e->running.count + e->swapped.count;
}

/* --- time ----------------------------------------------------------------------------------- */

/* By whether the window is open, so whenever it opens or closes, and at the end. */
static void count_evictions(struct engine *e)
{
    struct kv_cache_facts facts;
    kv_get_cache_facts(e->policy, &facts);
    if (engine_window_open(e)) e->stats.evictions += facts.evicted_blocks - e->evictions_seen;
    e->evictions_seen = facts.evicted_blocks;
}

void engine_move_clock(struct engine *e, uint64_t now)
{
    if (e->host) engine_host_flush(e);
    bool will_be_open = now >= e->accounting.window_begin && now < e->accounting.window_end;
    if (e->caches && engine_window_open(e) != will_be_open) count_evictions(e);
    e->now = now;
}

void engine_tell_time(struct engine *e, uint64_t now_ns)
{
    if (!e->policy->keeps_time || now_ns <= e->policy_ns) return;
    e->policy_ns = now_ns;
    if (e->policy->ops->clock(e->policy, now_ns)) e->pool_version++;
}

static uint64_t next_unpin(const struct engine *e)
{
    return e->policy->keeps_time ? e->policy->ops->next_unpin(e->policy) : UINT64_MAX;
}

bool engine_waits_for_pins(const struct engine *e)
{
    return next_unpin(e) != UINT64_MAX;
}

struct engine_stats *engine_stats(struct engine *e)
{
    return &e->stats;
}

const struct accounting *engine_accounting(const struct engine *e)
{
    return &e->accounting;
}

struct kv_policy *engine_policy(struct engine *e)
{
    return e->policy;
}

void engine_stop(struct engine *e)
{
    e->stats.stopped = true;
}

/* --- the end of a step ---------------------------------------------------------------------- */

static void add_sample(struct engine *e, struct quantiles *q, uint64_t value)
{
    if (quantiles_add(q, value)) e->out_of_memory = true;
}

static void finish_request(struct engine *e, struct sim_request *r)
{
    e->stats.finished++;
    if (r->in_window && r->output_tokens > 0) {
        add_sample(e, &e->stats.e2e_ns, e->now - r->arrival_ns);
        if (r->output_tokens >= 2) {
            add_sample(e, &e->stats.tpot_ns,
                       (e->now - r->first_token_ns) / (r->output_tokens - 1));
        }
    }
    engine_event(e, EVENT_FINISH, r, 0, 0);
    engine_release_memory(e, r);
    engine_array_add(e, &e->finished, r); /* dropped after the step's line is written */
}

static bool yields_in_window(const struct engine *e)
{
    return e->now > e->accounting.window_begin && e->now <= e->accounting.window_end;
}

/* All of the request's known tokens are computed: a new one comes out, for each sample. */
static void yield_token(struct engine *e, struct sim_request *r)
{
    if (r->output_tokens > 0) {
        if (r->outputs == 0) {
            r->first_token_ns = e->now;
            if (r->in_window) add_sample(e, &e->stats.ttft_ns, e->now - r->arrival_ns);
            engine_event(e, EVENT_FIRST_TOKEN, r, 0, 0);
        }
        r->outputs++;
        if (yields_in_window(e)) e->stats.output_tokens += r->kv.samples;
    }
    if (r->outputs == r->output_tokens) finish_request(e, r);
}

static void end_step(struct engine *e)
{
    for (size_t i = 0; i < e->scheduled_count; i++) {
        struct sim_request *r = e->scheduled[i].request;
        r->computed = r->filled;
        bool prompt_done = !r->forked && r->computed == r->prompt_tokens;
        if (r->computed == r->prompt_tokens + r->outputs) yield_token(e, r);
        if (prompt_done && r->kv.samples > 1 && r->state == REQUEST_RUNNING) engine_fork(e, r);
        /* The window has moved on, also for a request that the next step may leave out. */
        else if (e->config.geometry.window_tokens && r->state == REQUEST_RUNNING) engine_account(e, r);
    }
}

/* --- the loop ------------------------------------------------------------------------------- */

/* Copies between host and device are part of it, except where all steps take the same time. */
static uint64_t step_duration(struct engine *e)
{
    struct step_work work = {0};
    if (e->config.step_time.kind == STEP_TIME_UNIT) return e->config.step_time.step_ns;
    for (size_t i = 0; i < e->scheduled_count; i++) {
        const struct scheduled *s = &e->scheduled[i];
        uint64_t kv = s->computed_before + s->new_tokens, q = s->new_tokens;
        if (q == 1) {
            work.decode_seqs += s->width;
            work.decode_context_tokens += s->width * kv;
        } else {
            work.prefill_tokens += s->width * q;
            work.prefill_pairs +=
                s->width * ((u128)q * (kv - q) + (u128)q * (q + 1) / 2);
        }
        if (kv == request_target(s->request)) work.logit_seqs += s->request->kv.samples;
    }
    work.decode_seqs += e->park.width;
    work.decode_context_tokens += e->park.context_tokens + e->park.width;
    work.logit_seqs += e->park.width;
    uint64_t compute = step_time_ns(&e->config.step_time, &work);
    if ((e->traffic.to_device_bytes | e->traffic.to_host_bytes) == 0) return compute;
    uint64_t duration = host_link_step_ns(&e->config.host.link, compute, &e->traffic);
    if (engine_window_open(e)) e->stats.host.transfer_ns += duration - compute;
    return duration;
}

static uint64_t free_units(const struct engine *e)
{
    struct kv_facts facts;
    kv_get_facts(e->policy, &facts);
    return (facts.free_bytes + facts.cached_bytes) / e->policy->unit_bytes;
}

static void clear_step(struct engine *e)
{
    e->scheduled_count = 0;
    e->preempted.count = 0;
    e->block_log_count = e->evict_log_count = 0;
    e->step_queries = e->step_hits = 0;
    e->traffic = (struct host_traffic){0};
    e->refused = e->head_refused_though_free = false;
    e->probe.present = false;
    e->probe_request = NULL;
}

static void drop_all(struct engine *e, struct request_array *a)
{
    for (size_t i = 0; i < a->count; i++) engine_drop(e, a->items[i]);
    a->count = 0;
}

static void report_step(struct engine *e, uint64_t free_after_schedule, uint64_t begin)
{
    if (e->config.hooks.step) {
        struct step_view view = {
            .step = e->stats.steps,
            .time_ns = begin,
            .duration_ns = e->now - begin,
            .scheduled = e->scheduled,
            .scheduled_count = e->scheduled_count,
            .block_log = e->block_log,
            .preempted = e->preempted.items,
            .preempted_count = e->preempted.count,
            .finished = e->finished.items,
            .finished_count = e->finished.count,
            .rejected = e->rejected.items,
            .rejected_count = e->rejected.count,
            .evicted = e->evict_log,
            .evicted_count = e->evict_log_count,
            .running = e->running.count,
            .waiting = e->waiting.count,
            .free_after_schedule_units = free_after_schedule,
            .free_units = free_units(e),
            .queries = e->step_queries,
            .hits = e->step_hits,
        };
        e->config.hooks.step(e->config.hooks.step_context, &view);
    }
    drop_all(e, &e->finished);
    drop_all(e, &e->rejected);
}

static void count_step(struct engine *e)
{
    uint64_t held_bytes = e->accounting.now.held_bytes;
    if (held_bytes > e->peak_held_bytes) e->peak_held_bytes = held_bytes;
    if (!engine_window_open(e)) return;
    e->stats.window_steps++;
    if (e->head_refused_though_free) e->stats.head_refused_steps++;
}

static void check_states(struct engine *e, const struct probe *probe)
{
    if (e->config.check_every == 0) return;
    park_show_filled(e);
    accounting_check(e, probe);
    const char *wrong = e->edge ? edge_check(e->edge) : NULL;
    if (!wrong) return;
    fprintf(stderr, "%s\n", wrong);
    abort();
}

/* Whether nothing is worth another pass before next_change_ns: pins must end; or a plug-in's scheduler, which may do so out of whim, lets
 * all wait while more will arrive. */
static bool only_time_helps(const struct engine *e, bool more_arrivals)
{
    return engine_waits_for_pins(e) || (e->config.scheduler->plugin && more_arrivals);
}

/* Nothing can be done before a pin ends, or somebody comes or leaves. */
static uint64_t next_change_ns(const struct engine *e, uint64_t next_arrival_ns)
{
    uint64_t next = min_u64(next_unpin(e), next_arrival_ns);
    if (e->abort_count > 0) next = min_u64(next, e->aborts[0].time);
    return next > e->now ? next : e->now + 1;
}

/* Nobody is there, but pins end all the same. */
static void pass_idle_time(struct engine *e, uint64_t until)
{
    for (uint64_t next; (next = next_unpin(e)) < until;) {
        if (next > e->now) engine_move_clock(e, next);
        accounting_advance(&e->accounting, e->now);
        engine_tell_time(e, e->now);
        accounting_set(&e->accounting, 0, false, NULL);
    }
    if (until > e->now) engine_move_clock(e, until);
    accounting_advance(&e->accounting, e->now);
    engine_tell_time(e, e->now);
}

/* One pass and the step that follows. Returns false when the run cannot go on. */
static bool run_step(struct engine *e, uint64_t next_arrival_ns)
{
    uint64_t verdicts = e->stats.unservable, lost = e->stats.aborted;
    bool more_arrivals = next_arrival_ns != UINT64_MAX;
    clear_step(e);
    e->config.scheduler->pass(e);
    if (e->stats.stopped) return false;
    park_book(e);
    if (e->edge && !edge_begin_step(e)) return false;
    if (e->host) engine_host_end_pass(e);
    bool idle = e->scheduled_count == 0 && e->preempted.count == 0 && e->park.width == 0 &&
                e->traffic.to_device_bytes + e->traffic.to_host_bytes == 0;
    /* In recorded cases a step that only rejects has a line. Elsewhere the next step's line tells it: writing
     * step lines must not take simulated time. */
    bool tells_rejections = e->config.replay_stalls && e->rejected.count > 0;
    bool verdict = e->stats.unservable != verdicts || e->stats.aborted != lost;
    if (idle && (unfinished(e) == 0 || verdict) && !tells_rejections) {
        accounting_set(&e->accounting, e->running_seqs, false, NULL);
        park_end_step(e);
        return true; /* only verdicts: no step, and another pass at once if requests are left */
    }
    bool waits = idle && only_time_helps(e, more_arrivals);
    uint64_t begin = e->now, duration = waits ? next_change_ns(e, next_arrival_ns) - begin : step_duration(e);
    uint64_t free_after_schedule = e->config.hooks.step ? free_units(e) : 0;
    accounting_set(&e->accounting, e->running_seqs, e->refused, &e->probe);
    check_states(e, &e->probe);
    if (e->config.hooks.look) e->config.hooks.look(e->config.hooks.look_context, e, LOOK_PASS);
    e->accounting.now.head_refused_though_free = e->head_refused_though_free;
    count_step(e);
    engine_move_clock(e, e->now + duration);
    accounting_advance(&e->accounting, e->now);
    if (e->policy->keeps_time) engine_tell_time(e, e->now);
    if (e->edge) edge_end_step(e, duration);
    if (yields_in_window(e)) e->stats.output_tokens += e->park.width;
    end_step(e);
    park_end_step(e);
    /* While requests are left, the next pass sets the levels anew before any time passes. */
    if (unfinished(e) == 0 || e->config.hooks.look || e->config.check_every > 0) {
        accounting_set(&e->accounting, e->running_seqs, false, NULL);
    }
    check_states(e, NULL);
    if (e->config.hooks.look) e->config.hooks.look(e->config.hooks.look_context, e, LOOK_END);
    report_step(e, free_after_schedule, begin);
    e->stats.steps++;
    if (scheduler_calls_in_vain(e) || (idle && !waits && !more_arrivals && unfinished(e) > 0)) {
        e->stats.stalled = true;
        return false;
    }
    if (e->config.max_steps > 0 && e->stats.steps >= e->config.max_steps) {
        e->stats.max_steps_reached = unfinished(e) > 0 || more_arrivals;
        return false;
    }
    return true;
}

static void start_clock(struct engine *e, uint64_t first_arrival_ns)
{
    e->started = true;
    engine_move_clock(e, first_arrival_ns);
    e->accounting.time = first_arrival_ns;
    if (e->accounting.window_begin < first_arrival_ns) {
        e->accounting.window_begin = e->refusals.window_begin = first_arrival_ns;
    }
}

static void add_arrival(struct engine *e, const struct wl_request *from)
{
    struct sim_request *r = engine_arrive(e, from);
    if (!r) return;
    r->in_window = r->arrival_ns >= e->accounting.window_begin &&
                   r->arrival_ns < e->accounting.window_end;
    r->state = REQUEST_WAITING;
    engine_enqueue(e, r, false);
    if (r->abort_ns != WL_NONE) engine_expect_abort(e, r);
}

/* A recorded case counts all its requests, also those that would arrive after its last step. */
static int count_rest(struct engine *e, struct wl_source *source, int more)
{
    struct wl_request next;
    for (; more == 1; more = wl_next(source, &next, e->err)) e->stats.requests++;
    return more;
}

static int stalled(struct engine *e)
{
    const struct scheduler *s = e->config.scheduler;
    char why[160] = "";
    if (scheduler_calls_in_vain(e))
        snprintf(why, sizeof why, ": scheduler %s made %llu passes in a row that computed nothing new", s->name,
                 (unsigned long long)e->calls.barren_passes);
    else if (s->plugin) snprintf(why, sizeof why, ": scheduler %s scheduled nothing", s->name);
    return err_set(e->err, ERR_FAILED, "step %llu: %llu requests are left and none can go on%s", (unsigned long long)e->stats.steps,
                   (unsigned long long)unfinished(e), why);
}

/* The plain loop: every step is simulated on its own. */
static int run_steps(struct engine *e, struct wl_source *source)
{
    struct wl_request next;
    int more = wl_next(source, &next, e->err);
    uint64_t begin_ns = more == 1 ? next.arrival_ns : 0;
    while (more == 1 || unfinished(e) > 0) {
        if (unfinished(e) == 0) {
            if (!e->started) start_clock(e, next.arrival_ns);
            pass_idle_time(e, next.arrival_ns);
        }
        while (more == 1 && next.arrival_ns <= e->now) {
            add_arrival(e, &next);
            more = wl_next(source, &next, e->err);
        }
        if (more < 0) return -1;
        engine_apply_aborts(e);
        if (e->now > WL_TIME_NS_MAX) {
            return err_set(e->err, ERR_FAILED, "simulated time passed 2^62 ns at step %llu%s",
                           (unsigned long long)e->stats.steps, engine_waits_for_pins(e) ? ": cached blocks are pinned that long" : "");
        }
        if (e->out_of_memory) return err_set(e->err, ERR_FAILED, "out of memory");
        if (unfinished(e) + e->rejected.count == 0) {
            accounting_set(&e->accounting, 0, false, NULL); /* the last one left: nothing runs till more come */
            continue;
        }
        if (!run_step(e, more == 1 ? next.arrival_ns : UINT64_MAX)) break;
    }
    if (more == 1 && e->config.replay_stalls) more = count_rest(e, source, more);
    if (more == 1 && e->edge) more = edge_count_unserved(e, source);
    drop_all(e, &e->rejected); /* of a last step that was none */
    if (more < 0) return -1;
    if (e->stats.stalled && !e->config.replay_stalls) return stalled(e);
    e->stats.simulated_ns = e->now - begin_ns;
    return 0;
}

int engine_run(struct engine *e, struct wl_source *source, struct err *err)
{
    e->err = err;
    if (engine_read_future(e, source)) return -1;
    int status = e->config.scheduler->serial ? engine_run_serial(e, source) : run_steps(e, source);
    if (status) return -1;
    if (e->out_of_memory) return err_set(err, ERR_FAILED, "out of memory");
    e->stats.refusals = e->refusals.totals;
    if (e->host) engine_host_flush(e); /* what the last request evicted */
    if (e->caches) count_evictions(e);
    e->stats.peak_held_units = e->peak_held_bytes / e->policy->unit_bytes;
    return 0;
}
