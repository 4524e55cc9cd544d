/* Requests as such: how one is made from the trace's, and every way in which it ends. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_core.h"
#include "sim/numbers.h"

void request_release(struct sim_request *r)
{
    free(r->refusal);
    free(r->keys);
    free(r->spans);
    free(r->final_spans);
    free(r->id);
    if (r->seqs != &r->one_seq) free(r->seqs);
}

static bool abort_before(const struct abort_entry *a, const struct abort_entry *b)
{
    return a->time != b->time ? a->time < b->time : a->index < b->index;
}

void engine_expect_abort(struct engine *e, struct sim_request *r)
{
    if (e->abort_count == e->abort_capacity) {
        struct abort_entry *grown = engine_grow_array(e, e->aborts, e->abort_count,
                                                      &e->abort_capacity, sizeof *grown);
        if (!grown) return;
        e->aborts = grown;
    }
    struct abort_entry entry = {.time = r->abort_ns, .index = r->index, .request = r};
    size_t i = e->abort_count++;
    for (; i > 0 && abort_before(&entry, &e->aborts[(i - 1) / 2]); i = (i - 1) / 2) {
        e->aborts[i] = e->aborts[(i - 1) / 2];
    }
    e->aborts[i] = entry;
}

static struct abort_entry abort_pop(struct engine *e)
{
    struct abort_entry top = e->aborts[0], last = e->aborts[--e->abort_count];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < e->abort_count) {
        if (child + 1 < e->abort_count && abort_before(&e->aborts[child + 1], &e->aborts[child])) {
            child++;
        }
        if (!abort_before(&e->aborts[child], &last)) break;
        e->aborts[i] = e->aborts[child];
        i = child;
    }
    e->aborts[i] = last;
    return top;
}

/* Clients that have left by now. A request that ended first is not its own any more: storage is
 * reused, so the number is compared too. */
void engine_apply_aborts(struct engine *e)
{
    while (e->abort_count > 0 && e->aborts[0].time <= e->now) {
        struct abort_entry entry = abort_pop(e);
        struct sim_request *r = entry.request;
        if (r->state == REQUEST_GONE || r->index != entry.index) continue;
        e->stats.aborted++;
        engine_event(e, EVENT_ABORT, r, 0, 0);
        engine_drop(e, r);
    }
}

static uint64_t declared_limit(const struct engine *e, const struct wl_request *from)
{
    const struct engine_config *c = &e->config;
    uint64_t most = c->max_model_len > from->prompt_tokens ? c->max_model_len - from->prompt_tokens
                                                           : 1;
    uint64_t limit = most;
    if (c->declared_output == DECLARED_EXACT) limit = from->output_tokens;
    if (c->declared_output == DECLARED_COLUMN && from->max_tokens != WL_NONE) {
        limit = from->max_tokens;
    }
    if (c->declared_output == DECLARED_FACTOR) {
        u128 scaled = ((u128)from->output_tokens * c->declared_factor_millionths + 999999) / 1000000;
        limit = scaled > most ? most : (uint64_t)scaled;
    }
    if (limit < 1) limit = 1;
    return min_u64(limit, most);
}

static struct sim_request *take_request(struct engine *e)
{
    struct sim_request *r = e->free_requests;
    if (r) {
        e->free_requests = r->next;
        memset(r, 0, sizeof *r);
        return r;
    }
    r = calloc(1, sizeof *r);
    if (!r) e->out_of_memory = true;
    return r;
}

static void give_request(struct engine *e, struct sim_request *r)
{
    request_release(r);
    r->refusal = NULL;
    r->keys = NULL;
    r->spans = r->final_spans = NULL;
    r->id = NULL;
    r->seqs = NULL;
    r->state = REQUEST_GONE;
    r->next = e->free_requests;
    e->free_requests = r;
}

void engine_drop(struct engine *e, struct sim_request *r)
{
    if (r->state == REQUEST_RUNNING) {
        engine_release_memory(e, r);
    } else if (r->state == REQUEST_WAITING) {
        if (r->refusal) refusals_close(&e->refusals, &r->refusal->episode, e->now);
        engine_queue_remove(e, r);
        if (e->probe_request == r) e->probe.present = false;
    } else if (r->state == REQUEST_SWAPPED) {
        engine_leave_host(e, r);
    }
    engine_unshare(e, r);
    engine_pass(e, r);
    give_request(e, r);
}

void engine_set_lengths(const struct engine *e, struct sim_request *r, const struct wl_request *from)
{
    uint64_t declared = declared_limit(e, from);
    r->prompt_tokens = from->prompt_tokens;
    r->output_tokens = min_u64(from->output_tokens, declared);
    uint64_t written = r->output_tokens > 0 ? r->output_tokens - 1 : 0;
    r->kv = (struct kv_request){
        .prompt_tokens = r->prompt_tokens,
        .max_tokens = declared,
        .output_tokens = r->output_tokens,
        .final_tokens = r->prompt_tokens + written,
        .samples = from->samples,
        .priority = from->priority,
    };
}

static bool bad_length(const struct engine *e, const struct wl_request *from)
{
    return from->prompt_tokens == 0 || from->prompt_tokens >= e->config.max_model_len;
}

/* More samples than can ever run or be scheduled together. */
static bool samples_never_fit(const struct engine *e, uint32_t samples)
{
    if (samples > e->request_seqs) return true;
    return !e->config.scheduler->serial && samples > e->config.max_num_batched_tokens;
}

bool engine_never_runs(const struct engine *e, const struct wl_request *from)
{
    return bad_length(e, from) || samples_never_fit(e, from->samples);
}

struct sim_request *engine_arrive(struct engine *e, const struct wl_request *from)
{
    struct sim_request *r = take_request(e);
    if (!r) return NULL;
    uint32_t category = 0; /* counted for all, as `cache` does */
    if (e->policy->tells_kinds && !turns_next(&e->turns, from, &category)) e->out_of_memory = true;
    e->stats.requests++;
    r->state = REQUEST_GONE;
    r->index = from->index;
    r->arrival_ns = from->arrival_ns;
    r->abort_ns = from->abort_ns;
    r->priority = from->priority;
    r->seqs = &r->one_seq;
    r->kv.samples = from->samples;
    if (from->id && !(r->id = strdup(from->id))) e->out_of_memory = true;
    engine_event(e, EVENT_ARRIVE, r, from->prompt_tokens, from->output_tokens);
    if (bad_length(e, from)) {
        e->stats.rejected++;
        engine_event(e, EVENT_REJECT, r, 0, 0);
        if (e->config.hooks.step) engine_array_add(e, &e->rejected, r); /* freed after its step's line */
        else give_request(e, r);
        return NULL;
    }
    engine_set_lengths(e, r, from);
    if (r->output_tokens < from->output_tokens) e->stats.length_capped++;
    r->kv.category = category;
    if (samples_never_fit(e, from->samples)) {
        if (e->stats.unservable_example[0] == '\0') {
            snprintf(e->stats.unservable_example, sizeof e->stats.unservable_example,
                     "request %llu needs %u of %llu sequences", (unsigned long long)r->index,
                     (unsigned)from->samples,
                     (unsigned long long)min_u64(e->request_seqs,
                                                 e->config.max_num_batched_tokens));
        }
        e->stats.unservable++;
        engine_event(e, EVENT_UNSERVABLE, r, 0, 0);
        give_request(e, r);
        return NULL;
    }
    if (from->samples > 1) {
        r->seqs = calloc(from->samples, sizeof *r->seqs);
        if (!r->seqs) e->out_of_memory = true;
    }
    engine_take_content(e, r, from);
    return r;
}
