#include "sim/edge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/edge_internal.h"
#include "sim/numbers.h"

#define BYTES_MAX ((uint64_t)1 << 62)

uint64_t edge_activation_bytes(const struct edge_config *c, uint64_t tokens, uint64_t seqs)
{
    u128 sum = (u128)c->base_bytes + (u128)tokens * c->per_token_bytes + (u128)seqs * c->per_seq_bytes;
    return sum > BYTES_MAX ? UINT64_MAX : (uint64_t)sum;
}

/* --- creation ------------------------------------------------------------------------------- */

static int does_not_fit(const struct edge_config *c, uint64_t pool, struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "--gpu-memory: found %" PRIu64 " bytes, expected at least what must be there at start: context %" PRIu64
                   " + weights %" PRIu64 " + residue %" PRIu64 " + graphs %" PRIu64 " + pool %" PRIu64,
                   c->device_bytes, c->context_bytes, c->weights_bytes, c->residue_bytes, c->graph_bytes, pool);
}

static int budget_create(struct edge *edge, uint64_t pool_bytes, struct err *err)
{
    const struct edge_config *c = &edge->config;
    u128 fixed = (u128)c->context_bytes + c->weights_bytes + c->residue_bytes + c->graph_bytes + pool_bytes;
    if (fixed > c->device_bytes) return does_not_fit(c, pool_bytes, err);
    edge->bytes = (struct edge_bytes){
        .context = c->context_bytes,
        .weights = c->weights_bytes,
        .residue = c->residue_bytes,
        .graphs = c->graph_bytes,
        .pool = pool_bytes,
        .free = c->device_bytes - (uint64_t)fixed,
    };
    return 0;
}

static int check_use(const struct engine *e, struct err *err)
{
    uint32_t flags = e->policy->ops->flags;
    if (e->config.scheduler->serial) {
        return err_set(err, ERR_USAGE, "--device-model: found scheduler serial, which has no steps, expected another");
    }
    if (!e->config.edge.elastic) return 0;
    if (e->config.edge.model == EDGE_CACHING) {
        return err_set(err, ERR_USAGE, "--device-boundary: found elastic, expected fixed under --device-model caching");
    }
    if (e->config.geometry.max_seqs - e->request_seqs >= EDGE_SEQS_MAX) {
        return err_set(err, ERR_USAGE,
                       "--device-boundary: found elastic, expected a larger --max-model-len or --block-size: more than %u "
                       "sequences of them would be lent", EDGE_SEQS_MAX);
    }
    if (!(flags & (KV_CONTIGUOUS | KV_RESERVES))) return 0;
    return err_set(err, ERR_USAGE,
                   "--device-boundary: found elastic, expected fixed: policy %s has no blocks to lend on demand",
                   e->policy->ops->name);
}

struct edge *edge_create(struct engine *e, struct err *err)
{
    uint64_t pool = e->config.geometry.pool_bytes;
    struct edge *edge = calloc(1, sizeof *edge);
    if (!edge) {
        err_set(err, ERR_FAILED, "out of memory");
        return NULL;
    }
    edge->config = e->config.edge;
    edge->counted = true; /* requests that wait for the pool are counted, not the device's */
    edge->first_seq = (uint32_t)e->request_seqs;
    edge->seq_count = e->config.geometry.max_seqs - edge->first_seq;
    edge->totals.free_min_bytes = UINT64_MAX;
    int status = check_use(e, err);
    if (status == 0 && edge->config.model == EDGE_BUDGET) status = budget_create(edge, pool, err);
    if (status == 0 && edge->config.model == EDGE_CACHING) {
        status = edge_device_create(edge, pool, err);
        if (status > 0) status = does_not_fit(&edge->config, pool, err);
    }
    if (status == 0) return edge;
    edge_destroy(edge);
    return NULL;
}

void edge_destroy(struct edge *edge)
{
    if (!edge) return;
    dev_allocator_destroy(edge->device);
    free(edge);
}

/* --- what is asked --------------------------------------------------------------------------- */

struct step_need {
    uint64_t tokens, seqs;
    struct sim_request *largest; /* most tokens, the first of equals */
};

static void measure_step(const struct engine *e, struct step_need *need)
{
    uint64_t most = 0;
    *need = (struct step_need){0};
    for (size_t i = 0; i < e->scheduled_count; i++) {
        const struct scheduled *s = &e->scheduled[i];
        uint64_t tokens = s->new_tokens * s->width;
        need->tokens += tokens;
        if (s->computed_before + s->new_tokens == request_target(s->request)) need->seqs += s->request->kv.samples;
        if (tokens > most) {
            most = tokens;
            need->largest = s->request;
        }
    }
}

/* What is neither the pool's nor there from the start. */
static uint64_t outside_room(const struct edge *edge)
{
    const struct edge_bytes *b = &edge->bytes;
    return edge->config.device_bytes - b->context - b->weights - b->residue - b->graphs - b->pool;
}

/* Buffers stay where they are; activations get the rest of the room outside the pool, and what is over has been lent. */
static void settle(struct edge *edge, uint64_t activations)
{
    struct edge_bytes *b = &edge->bytes;
    uint64_t room = outside_room(edge);
    b->buffers = min_u64(edge->buffer_bytes, room);
    b->activations = min_u64(activations, room - b->buffers);
    b->free = room - b->buffers - b->activations;
}

static bool take_buffer(struct edge *edge, const struct edge_buffer *b, struct edge_shortage *shortage)
{
    if (edge->device) return edge_device_take_buffer(edge, b, shortage);
    if (!edge->config.elastic && b->bytes > edge->bytes.free) {
        *shortage = (struct edge_shortage){.ask_bytes = b->bytes, .free_bytes = edge->bytes.free};
        return false;
    }
    edge->buffer_bytes += b->bytes; /* an elastic boundary makes room for them with each step */
    settle(edge, 0);
    return true;
}

static bool take_step(struct engine *e, const struct step_need *need, struct edge_shortage *shortage)
{
    struct edge *edge = e->edge;
    uint64_t bytes = edge_activation_bytes(&edge->config, need->tokens, need->seqs);
    if (edge->device) return edge_device_take_step(edge, need->tokens, need->seqs, shortage);
    uint64_t room = outside_room(edge);
    uint64_t wanted = bytes > BYTES_MAX ? bytes : bytes + edge->buffer_bytes;
    bool fits = wanted <= room || (edge->config.elastic && edge_lend(e, wanted - room));
    if (!fits) {
        bool elastic = edge->config.elastic;
        *shortage = (struct edge_shortage){.ask_bytes = elastic ? wanted : bytes,
                                           .free_bytes = elastic ? room : edge->bytes.free};
        return false;
    }
    settle(edge, bytes);
    return true;
}

static bool is_due(const struct engine *e, uint32_t i)
{
    const struct edge_buffer *b = &e->edge->config.buffers[i];
    if (e->edge->buffers_taken >> i & 1) return false;
    return b->by_step ? e->stats.steps >= b->at : e->now >= b->at;
}

/* Buffers that are due, then the activations; *buffer: a buffer it was that failed. */
static bool take_all(struct engine *e, const struct step_need *need, struct edge_shortage *shortage, bool *buffer)
{
    struct edge *edge = e->edge;
    *buffer = true;
    for (uint32_t i = 0; i < edge->config.buffer_count; i++) {
        if (!is_due(e, i)) continue;
        if (!take_buffer(edge, &edge->config.buffers[i], shortage)) return false;
        edge->buffers_taken |= 1u << i;
    }
    *buffer = false;
    return take_step(e, need, shortage);
}

/* --- when it cannot be had -------------------------------------------------------------------- */

static void book(struct engine *e, const struct edge_shortage *s, bool buffer, const struct sim_request *blamed)
{
    struct edge *edge = e->edge;
    struct edge_totals *t = &edge->totals;
    struct kv_facts pool;
    kv_get_facts(e->policy, &pool);
    uint64_t pool_free = pool.free_bytes + pool.cached_bytes;
    struct refusal_facts facts = {
        .unit_bytes = 1,
        .device = true,
        .demand = {.kind = KV_GROWTH, .something_runs = true, .pieces = 1},
        .ask_units = s->ask_bytes,
        .need_units = s->ask_bytes,
        .first_part_units = s->ask_bytes,
        .e_units = s->free_bytes + s->idle_bytes + pool_free,
        .r_units = s->free_bytes,
        .a_units = min_u64(s->free_bytes, s->ask_bytes - 1),
        .idle_units = s->idle_bytes,
        .boundary_units = pool_free,
        .use = accounting_running_use(&e->accounting),
    };
    if (t->ooms++ == 0) {
        t->first_oom_ns = e->now;
        t->first_oom_ask_bytes = s->ask_bytes;
        t->first_oom_free_bytes = s->free_bytes;
        t->first_oom_cached_bytes = s->idle_bytes;
        t->first_oom_pool_free_bytes = pool_free;
    }
    if (buffer) t->buffer_ooms++;
    else t->step_ooms++;
    edge->blamed = blamed;
    uint64_t index = blamed ? blamed->index : UINT64_MAX;
    refusals_attempt(&e->refusals, &edge->episode, &edge->counted, index, &facts, e->now);
    engine_event(e, EVENT_DEVICE_OOM, blamed, s->ask_bytes, s->free_bytes);
    refusals_close(&e->refusals, &edge->episode, e->now);
    edge->blamed = NULL;
    e->refused = true;
}

static void lose(struct engine *e, struct sim_request *r)
{
    e->edge->totals.aborted++;
    e->stats.aborted++;
    engine_event(e, EVENT_ABORT, r, 0, 0);
    engine_unschedule(e, r);
    engine_drop(e, r);
}

static void lose_all(struct engine *e)
{
    struct request_list *lists[] = {&e->running, &e->swapped, &e->waiting};
    for (size_t i = 0; i < 3; i++) {
        while (lists[i]->head) lose(e, lists[i]->head);
    }
    e->preempted.count = 0; /* they are among those that were waiting */
    e->edge->totals.ended = true;
    accounting_set(&e->accounting, 0, false, NULL);
}

/* The last admitted, or the least important; but not the first request of the step, which goes on whatever happens, so that
 * no two requests keep each other from going on for ever. */
static struct sim_request *lending_victim(const struct engine *e)
{
    struct sim_request *first = e->scheduled[0].request, *victim = NULL;
    for (struct sim_request *r = e->running.tail; r; r = r->prev) {
        if (r == first) continue;
        if (!victim || (e->config.by_priority && request_comes_after(r, victim))) victim = r;
        if (!e->config.by_priority) break;
    }
    return victim;
}

/* Under an elastic boundary memory is made as the pool makes it: by preemption. */
static bool preempt_for_lending(struct engine *e)
{
    struct sim_request *victim = e->edge->config.elastic ? lending_victim(e) : NULL;
    if (!victim) return false;
    engine_unschedule(e, victim);
    engine_preempt(e, victim);
    e->edge->totals.lend_preemptions++;
    return true;
}

static void note_peaks(struct edge *edge, const struct step_need *need)
{
    struct edge_totals *t = &edge->totals;
    const struct edge_bytes *b = &edge->bytes;
    uint64_t activations = edge_activation_bytes(&edge->config, need->tokens, need->seqs);
    if (activations > t->activation_peak_bytes) t->activation_peak_bytes = activations;
    if (need->tokens > t->step_tokens_peak) t->step_tokens_peak = need->tokens;
    if (b->cached > t->cached_peak_bytes) t->cached_peak_bytes = b->cached;
    if (b->free < t->free_min_bytes) t->free_min_bytes = b->free;
    if (b->lent > t->lent_peak_bytes) t->lent_peak_bytes = b->lent;
}

bool edge_begin_step(struct engine *e)
{
    struct edge *edge = e->edge;
    struct edge_shortage shortage = {0};
    struct step_need need;
    bool buffer;
    for (;;) {
        measure_step(e, &need);
        if (e->scheduled_count == 0) return true; /* nothing is computed */
        if (take_all(e, &need, &shortage, &buffer)) break;
        if (preempt_for_lending(e)) continue;
        book(e, &shortage, buffer, need.largest);
        if (edge->config.on_oom == EDGE_OOM_END) {
            lose_all(e);
            return false;
        }
        lose(e, need.largest);
        if (edge->device) dev_empty_cache(edge->device);
    }
    if (edge->device) edge_device_facts(edge);
    note_peaks(edge, &need);
    return true;
}

void edge_end_step(struct engine *e, uint64_t duration_ns)
{
    struct edge *edge = e->edge;
    edge->totals.lent_byte_time += (u128)edge->bytes.lent * duration_ns;
    edge->totals.step_time += duration_ns;
    if (edge->device) {
        edge_device_give_step(edge);
        return;
    }
    settle(edge, 0);
    edge_give_back(e);
}

int edge_count_unserved(struct engine *e, struct wl_source *source)
{
    struct wl_request next;
    int more = 1;
    for (; more == 1; more = wl_next(source, &next, e->err)) e->edge->totals.unserved++;
    return more;
}

/* --- facts -------------------------------------------------------------------------------------- */

uint64_t edge_outside_bytes(const struct edge *edge)
{
    const struct edge_bytes *b = &edge->bytes;
    return b->free + b->cached + b->residue;
}

void edge_facts(const struct edge *edge, struct edge_bytes *bytes)
{
    *bytes = edge->bytes;
}

const struct edge_totals *edge_totals(const struct edge *edge)
{
    return &edge->totals;
}

const struct sim_request *edge_blamed(const struct edge *edge, const struct episode *episode)
{
    return episode == &edge->episode ? edge->blamed : NULL;
}

const char *edge_check(const struct edge *edge)
{
    const struct edge_bytes *b = &edge->bytes;
    u128 sum = (u128)b->context + b->weights + b->residue + b->graphs + b->buffers + b->pool + b->activations + b->cached +
               b->free;
    if (sum != edge->config.device_bytes) return "check: the bytes of the device do not add up to its total";
    if (edge->config.elastic && b->lent > b->pool) return "check: more is lent than the pool has";
    return NULL;
}
