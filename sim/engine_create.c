/* Making an engine and its policy, with what the policy tells and asks; and its end. */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocator/kv_check.h"
#include "sim/engine_core.h"

/* --- what the policy tells and asks ---------------------------------------------------------- */

static void log_evicted(struct engine *e, kv_block block)
{
    if (e->evict_log_count == e->evict_log_capacity) {
        kv_block *grown = engine_grow_array(e, e->evict_log, e->evict_log_count,
                                            &e->evict_log_capacity, sizeof *grown);
        if (!grown) return;
        e->evict_log = grown;
    }
    e->evict_log[e->evict_log_count++] = block;
}

static void on_evicted(void *context, kv_block block, uint64_t key)
{
    struct engine *e = context;
    if (e->config.host.capacity_bytes > 0) engine_host_evicted(e, key);
    if (e->config.hooks.step) log_evicted(e, block);
    engine_event(e, EVENT_EVICT, NULL, block, 0);
}

static bool on_expected(void *context, uint64_t key)
{
    return engine_queue_expects(context, key);
}

static void on_copied(void *context, kv_block from, kv_block to)
{
    struct engine *e = context;
    if (engine_window_open(e)) e->stats.copies++;
    engine_event(e, EVENT_COPY, NULL, from, to);
}

static void on_episode_closed(void *context, const struct episode *episode, uint64_t end)
{
    struct engine *e = context;
    const struct sim_request *r = NULL;
    if (episode->facts.device) {
        r = edge_blamed(e->edge, episode);
    } else {
        const struct refusal_record *record =
            (const void *)((const char *)episode - offsetof(struct refusal_record, episode));
        r = record->request;
    }
    char name[24];
    e->config.hooks.episode(e->config.hooks.context, episode,
                            r ? sim_request_name(r, name, sizeof name) : "-", end);
}

/* --- creation ------------------------------------------------------------------------------- */

#define PLUGIN_WALK_EVERY 1024u

static int make_policy(struct engine *e, struct err *err)
{
    struct kv_observer observer = {.context = e, .copied = on_copied, .next_use = engine_next_use, .expected = on_expected};
    /* A full pool evicts for every block: a call for each only where somebody listens; they are counted all the same. */
    if (e->config.hooks.step || e->config.hooks.event || e->config.host.capacity_bytes > 0) observer.evicted = on_evicted;
    const struct kv_policy_ops *ops = e->config.policy;
    char why[400] = "out of memory";
    e->policy = ops->create(&e->config.geometry, e->config.policy_values, &observer, why, sizeof why);
    if (!e->policy) return err_set(err, ERR_USAGE, "policy %s: %s", ops->name, why);
    e->caches = (ops->flags & KV_CACHES) != 0;
    uint64_t every = e->config.check_every;
    /* A plug-in is not trusted: what costs little is verified at every call, tables are walked at some. */
    if (every == 0 && kv_registry_is_added(ops)) every = PLUGIN_WALK_EVERY;
    if (every == 0) return 0;
    struct kv_policy *wrapped = kv_check_wrap(e->policy, &e->config.geometry, every, NULL, NULL);
    if (!wrapped) return err_set(err, ERR_FAILED, "out of memory");
    e->policy = wrapped;
    return 0;
}

static int make_sequences(struct engine *e, struct err *err)
{
    uint32_t count = (uint32_t)e->request_seqs;
    e->free_seqs = malloc(count * sizeof *e->free_seqs);
    if (!e->free_seqs) return err_set(err, ERR_FAILED, "out of memory");
    for (uint32_t i = 0; i < count; i++) e->free_seqs[i].index = count - 1 - i;
    e->free_seq_count = count;
    return 0;
}

static int check_config(const struct engine_config *c, struct err *err)
{
    bool whole = c->scheduler->whole_prompts || !c->chunked_prefill;
    if (!c->scheduler->serial && whole &&
        c->max_num_batched_tokens < c->max_model_len) {
        return err_set(err, ERR_USAGE,
                       "--max-num-batched-tokens: found %llu, expected at least --max-model-len, %llu, "
                       "when prompts are not cut",
                       (unsigned long long)c->max_num_batched_tokens,
                       (unsigned long long)c->max_model_len);
    }
    return 0;
}

struct engine *engine_create(const struct engine_config *config, struct err *err)
{
    if (check_config(config, err)) return NULL;
    struct engine *e = calloc(1, sizeof *e);
    if (!e) {
        err_set(err, ERR_FAILED, "out of memory");
        return NULL;
    }
    e->config = *config;
    e->config.geometry.max_seq_tokens = config->max_model_len;
    /* A serial run has one request at a time, with all its samples. */
    e->config.geometry.max_seqs = config->scheduler->serial ? SAMPLES_MAX
                                                            : (uint32_t)config->max_num_seqs;
    e->request_seqs = e->config.geometry.max_seqs;
    e->config.geometry.max_seqs +=
        edge_extra_seqs(&config->edge, config->max_num_batched_tokens, config->max_num_seqs,
                        config->geometry.pool_bytes, config->geometry.bytes_per_token,
                        config->geometry.block_tokens, config->max_model_len);
    if (make_policy(e, err) || make_sequences(e, err) || engine_host_init(e, err) || scheduler_calls_init(e, err)) {
        engine_destroy(e);
        return NULL;
    }
    e->shared = e->caches ? shared_prefix_create() : NULL;
    if (e->caches && !e->shared) {
        err_set(err, ERR_FAILED, "out of memory");
        engine_destroy(e);
        return NULL;
    }
    if (e->policy->tells_kinds && !turns_init(&e->turns)) {
        err_set(err, ERR_FAILED, "out of memory");
        engine_destroy(e);
        return NULL;
    }
    if (config->edge.model != EDGE_NONE && !(e->edge = edge_create(e, err))) {
        engine_destroy(e);
        return NULL;
    }
    accounting_init(&e->accounting, e->policy, &e->config.geometry);
    if (engine_window_init(e)) {
        err_set(err, ERR_FAILED, "out of memory");
        engine_destroy(e);
        return NULL;
    }
    e->accounting.stretch = config->hooks.stretch;
    e->accounting.stretch_context = config->hooks.context;
    e->pool_version = 1;
    e->host_units = config->swap_space_bytes / e->policy->unit_bytes;
    if (queue_window_init(e) || park_init(e)) {
        err_set(err, ERR_FAILED, "out of memory");
        engine_destroy(e);
        return NULL;
    }
    e->refusals.closed = config->hooks.episode ? on_episode_closed : NULL;
    e->refusals.closed_context = e;
    e->refusals.watch = config->watch;
    e->accounting.window_begin = e->refusals.window_begin = config->window_begin;
    e->accounting.window_end = e->refusals.window_end = config->window_end;
    quantiles_init(&e->stats.ttft_ns);
    quantiles_init(&e->stats.tpot_ns);
    quantiles_init(&e->stats.e2e_ns);
    return e;
}

void engine_destroy(struct engine *e)
{
    if (!e) return;
    struct request_list *lists[] = {&e->waiting, &e->running, &e->swapped};
    for (size_t i = 0; i < 3; i++) {
        while (lists[i]->head) {
            struct sim_request *r = lists[i]->head;
            request_list_remove(lists[i], r);
            request_release(r);
            free(r);
        }
    }
    while (e->free_requests) {
        struct sim_request *next = e->free_requests->next;
        free(e->free_requests);
        e->free_requests = next;
    }
    shared_prefix_destroy(e->shared);
    turns_release(&e->turns);
    future_release(&e->future);
    edge_destroy(e->edge);
    kv_destroy(e->policy);
    quantiles_release(&e->stats.ttft_ns);
    quantiles_release(&e->stats.tpot_ns);
    quantiles_release(&e->stats.e2e_ns);
    queue_window_release(&e->window);
    park_release(&e->park);
    engine_host_release(e);
    scheduler_calls_release(e);
    free(e->free_seqs);
    free(e->dead_of_block);
    free(e->scheduled);
    free(e->preempted.items);
    free(e->finished.items);
    free(e->rejected.items);
    free(e->block_log);
    free(e->evict_log);
    free(e->aborts);
    free(e);
}
