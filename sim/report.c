#include "sim/report.h"

#include <stdlib.h>
#include <string.h>

#include "sim/edge_report.h"
#include "sim/engine_core.h"

static void key_of(char *buffer, size_t bytes, const char *a, const char *b)
{
    snprintf(buffer, bytes, "%s.%s", a, b);
}

void report_provenance(struct result *r, const struct optset *set, const struct options *o,
                       const char *trace, const struct wl_summary *summary)
{
    char checksum[24];
    snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)summary->checksum);
    result_text(r, "version", PAGESIM_VERSION);
    result_text(r, "policy", o->policy_ops->name);
    result_text(r, "rules", optset_text(set, "rules"));
    result_text(r, "scheduler", o->scheduler);
    result_text(r, "step_time", optset_text(set, "step-time"));
    result_text(r, "trace", trace);
    result_text(r, "trace_checksum", checksum);
    result_u64(r, "seed", o->seed);
}

void report_options(struct result *r, const struct optset *set)
{
    const struct option_spec *spec;
    char text[OPTSET_ECHO_BYTES], key[80];
    for (size_t i = 0; optset_echo(set, &i, &spec, text, sizeof text);) {
        key_of(key, sizeof key, "options", spec->name);
        if (!option_is_number(spec)) result_text(r, key, text);
        else if (strspn(text, "0123456789") == strlen(text)) result_u64(r, key, strtoull(text, NULL, 10));
        else result_f64(r, key, strtod(text, NULL));
    }
}

static void report_counts(struct result *r, const struct engine_stats *s,
                          const struct wl_summary *summary, bool serial)
{
    result_u64(r, "requests", s->requests);
    result_u64(r, "finished", s->finished);
    result_u64(r, "rejected", s->rejected);
    result_u64(r, "unservable", s->unservable);
    result_u64(r, "outgrew_pool", s->outgrew_pool);
    result_u64(r, "aborted", s->aborted);
    result_u64(r, "length_capped", s->length_capped);
    result_text(r, "unservable_example", s->unservable_example[0] ? s->unservable_example : NULL);
    result_bool(r, "trace_cut", summary->cut);
    result_u64(r, "trace_skipped", summary->skipped);
    result_u64(r, "steps", s->steps);
    result_u64(r, "simulated_ns", serial ? 0 : s->simulated_ns);
}

static void report_pool(struct result *r, const struct engine *e, const struct options *o)
{
    const struct kv_policy *p = e->policy;
    bool blocks = p->block_tokens > 0;
    uint64_t block_tokens = blocks ? p->block_tokens : o->block_tokens;
    result_u64(r, "num_blocks", blocks ? p->total_units : p->total_units / block_tokens);
    result_u64(r, "usable_blocks", blocks ? p->usable_units : p->usable_units / block_tokens);
    result_u64(r, "block_size_tokens", block_tokens);
    result_u64(r, "pool_bytes", e->config.geometry.pool_bytes);
    result_u64(r, "pool_slots", e->config.geometry.pool_bytes / e->config.geometry.bytes_per_token);
    result_u64(r, "max_model_len", e->config.max_model_len);
    result_bool(r, "clairvoyant", p->clairvoyant);
    result_bool(r, "clairvoyant_heuristic", p->foresees);
    const struct kv_eviction_ops *order = kv_eviction_of(p->ops->options, e->config.policy_values);
    result_bool(r, "evicts_orphans", order && order->flags & KV_EVICTION_ORPHANS);
}

/* A trace without content has no hit rate, which is not the same as a hit rate of 0. */
static void report_hits(struct result *r, const struct engine *e, uint64_t trace_block_tokens)
{
    const struct engine_stats *s = &e->stats;
    bool known = e->caches && s->any_content;
    result_text(r, "hit_rate_note",
                !e->caches            ? "policy does not cache"
                : !s->any_content     ? "no content ids"
                : trace_block_tokens > e->policy->block_tokens ? "lower bound: content ids are coarser than a block"
                                      : NULL);
    result_ratio(r, "hit_rate_tokens", s->admitted_hit_tokens, known ? s->admitted_tokens : 0);
    result_ratio(r, "hit_rate_blocks", s->admitted_hit_blocks,
                 known ? s->admitted_prompt_blocks : 0);
    result_ratio(r, "engine_hit_rate", s->hits, known ? s->queries : 0);
    result_u64(r, "prefix_query_tokens", e->caches ? s->admitted_tokens : 0);
    result_u64(r, "prefix_hit_tokens", s->admitted_hit_tokens);
    result_u64(r, "prefix_self_hit_tokens", s->readmitted_hit_tokens);
    if (known) {
        result_u64(r, "lost_sharing.to_granularity", s->lost_to_granularity);
        result_u64(r, "lost_sharing.to_last_token", s->lost_to_last_token);
        result_u64(r, "lost_sharing.to_eviction", s->lost_to_eviction);
    } else {
        result_null(r, "lost_sharing.to_granularity");
        result_null(r, "lost_sharing.to_last_token");
        result_null(r, "lost_sharing.to_eviction");
    }
}

static void report_host(struct result *r, const struct engine *e)
{
    const struct engine_stats *s = &e->stats;
    uint64_t unit = e->policy->unit_bytes, known = s->any_content ? s->admitted_tokens : 0;
    if (!e->host) return;
    result_u64(r, "host_tier.capacity_blocks", e->host->capacity);
    result_u64(r, "host_tier.hit_tokens", s->host.hit_tokens);
    result_u64(r, "host_tier.device_hit_tokens", s->admitted_hit_tokens - s->host.hit_tokens);
    result_ratio(r, "host_tier.hit_rate_tokens", s->host.hit_tokens, known);
    result_ratio(r, "host_tier.device_hit_rate_tokens", s->admitted_hit_tokens - s->host.hit_tokens, known);
    result_u64(r, "host_tier.fetched_blocks", s->host.fetched_blocks);
    result_u64(r, "host_tier.offloaded_blocks", s->host.offloaded_blocks);
    result_u64(r, "host_tier.already_there_blocks", s->host.already_there_blocks);
    result_u64(r, "host_tier.evicted_blocks", s->host.evicted_blocks);
    result_u64(r, "host_tier.resident_blocks_at_end", e->host->used_blocks);
    result_u64(r, "host_tier.to_device_bytes", s->host.fetched_blocks * unit);
    result_u64(r, "host_tier.to_host_bytes", s->host.offloaded_blocks * unit);
    result_u64(r, "host_tier.transfer_ns", s->host.transfer_ns);
}

static void report_states(struct result *r, const char *object, const struct integrals *in)
{
    u128 sum = 0;
    for (int s = 0; s < STATE_COUNT; s++) sum += in->state_byte_time[s];
    if (sum == 0) {
        result_null(r, object);
        return;
    }
    for (int s = 0; s < STATE_COUNT; s++) {
        char key[64];
        key_of(key, sizeof key, object, state_names[s]);
        result_ratio(r, key, in->state_byte_time[s], sum);
    }
}

static void report_ratios(struct result *r, const struct integrals *in)
{
    const u128 *t = in->state_byte_time;
    u128 pool = 0;
    for (int s = 0; s < STATE_COUNT; s++) pool += t[s];
    u128 unheld = t[STATE_CACHED] + t[STATE_CACHED_PINNED] + t[STATE_STRANDED] + t[STATE_FREE];
    u128 held = pool - unheld - t[STATE_OVERHEAD];
    u128 free_bytes = t[STATE_FREE] + t[STATE_STRANDED];
    result_ratio(r, "utilization", t[STATE_LIVE], pool);
    result_ratio(r, "kv_usage", held, pool - t[STATE_OVERHEAD]);
    result_ratio(r, "internal_fragmentation",
                 t[STATE_INTERNAL] + t[STATE_ROUNDING] + t[STATE_DEAD], held);
    result_ratio(r, "reservation_waste", t[STATE_RESERVED], held);
    result_ratio(r, "external_fragmentation", t[STATE_STRANDED], free_bytes);
    u128 obtainable = in->one_obtainable_byte_time;
    result_ratio(r, "largest_run_index", free_bytes - (obtainable < free_bytes ? obtainable : free_bytes),
                 free_bytes);
    u128 token = t[STATE_LIVE] + t[STATE_DEAD];
    result_ratio(r, "paper_split.token_states", token, pool);
    result_ratio(r, "paper_split.reservation", t[STATE_RESERVED], pool);
    result_ratio(r, "paper_split.internal", t[STATE_INTERNAL], pool);
    result_ratio(r, "paper_split.external_and_others",
                 t[STATE_ROUNDING] + unheld + t[STATE_OVERHEAD], pool);
    result_ratio(r, "saving_by_sharing", in->referenced_byte_time - in->held_byte_time,
                 in->referenced_byte_time);
}

static void report_running(struct result *r, const struct accounting *a)
{
    result_ratio(r, "running.mean", a->whole.running_time, a->whole.time);
    result_ratio(r, "running.mean_saturated", a->saturated_time.running_time,
                 a->saturated_time.time);
    result_u64(r, "running.max", a->running_seqs_max);
}

static void report_refusals(struct result *r, const struct engine_stats *s,
                            const struct integrals *whole)
{
    const struct refusal_totals *t = &s->refusals;
    char key[80];
    result_u64(r, "refusals.episodes", t->episodes);
    result_u64(r, "refusals.requests", t->requests);
    for (int k = 0; k < REFUSAL_KINDS; k++) {
        key_of(key, sizeof key, "refusals.by_kind", demand_kind_names[k]);
        result_u64(r, key, t->by_kind[k]);
    }
    for (int c = CLASS_COUNT - 1; c >= 0; c--) {
        key_of(key, sizeof key, "refusals.by_class", class_names[c]);
        result_u64(r, key, t->by_class[c]);
    }
    for (int c = 0; c < CAUSE_COUNT; c++) {
        key_of(key, sizeof key, "refusals.by_cause", cause_names[c]);
        result_u64(r, key, t->by_cause[c]);
    }
    for (int c = 0; c < CAUSE_COUNT; c++) {
        key_of(key, sizeof key, "refusals.byte_ns_by_cause", cause_names[c]);
        u128 v = t->byte_time_by_cause[c];
        if (v <= INT64_MAX) result_u64(r, key, (uint64_t)v);
        else result_f64(r, key, (double)v);
    }
    result_u64(r, "refusals.slots", t->slots);
    result_ratio(r, "head_refused_though_free.steps", s->head_refused_steps, s->window_steps);
    result_ratio(r, "head_refused_though_free.time", whole->head_refused_time, whole->time);
}

static void report_quantiles(struct result *r, const char *object, struct quantiles *q)
{
    static const struct { const char *name; unsigned percent; } ranks[] = {
        {"p50", 50}, {"p90", 90}, {"p99", 99}};
    char key[64];
    key_of(key, sizeof key, object, "mean");
    if (q->count > 0) result_f64(r, key, quantiles_mean(q));
    else result_null(r, key);
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        key_of(key, sizeof key, object, ranks[i].name);
        if (q->count > 0) result_u64(r, key, quantiles_at(q, ranks[i].percent));
        else result_null(r, key);
    }
    key_of(key, sizeof key, object, "count");
    result_u64(r, key, q->count);
    key_of(key, sizeof key, object, "exact");
    result_bool(r, key, quantiles_exact(q));
}

void report_figures(struct result *r, struct engine *e, const struct options *o,
                    const struct wl_summary *summary)
{
    struct engine_stats *s = &e->stats;
    const struct accounting *a = &e->accounting;
    bool serial = e->config.scheduler->serial;
    report_counts(r, s, summary, serial);
    result_u64(r, "saturated_ns", serial ? 0 : (uint64_t)a->saturated_time.time);
    result_u64(r, "window_ns", serial ? 0 : (uint64_t)a->whole.time);
    result_u64(r, "preemptions", s->preemptions);
    result_u64(r, "swap_outs", s->swap_outs);
    result_u64(r, "swap_ins", s->swap_ins);
    result_u64(r, "evictions", s->evictions);
    result_u64(r, "copies", s->copies);
    result_u64(r, "units_allocated", s->units_allocated);
    result_u64(r, "scheduled_tokens", s->scheduled_tokens);
    result_text(r, "step_time_note", e->config.step_time.note[0] ? e->config.step_time.note : NULL);
    report_pool(r, e, o);
    report_hits(r, e, summary->trace_block_tokens);
    report_host(r, e);
    report_states(r, "states", &a->whole);
    report_states(r, "states_saturated", &a->saturated_time);
    report_ratios(r, &a->whole);
    report_running(r, a);
    report_refusals(r, s, &a->whole);
    report_quantiles(r, "ttft_ns", &s->ttft_ns);
    report_quantiles(r, "tpot_ns", &s->tpot_ns);
    report_quantiles(r, "e2e_ns", &s->e2e_ns);
    if (serial || a->whole.time == 0) result_null(r, "output_tokens_per_s");
    else result_f64(r, "output_tokens_per_s", (double)s->output_tokens * 1e9 / (double)a->whole.time);
    report_device(r, e);
}
