#include "sim/simulation.h"

#include <string.h>

#include "sim/edge_options.h"
#include "sim/engine_core.h"
#include "sim/host_options.h"
#include "sim/numbers.h"
#include "sim/report.h"
#include "sim/roofline_plan.h"

/* --- what must be known of the trace -------------------------------------------------------- */

static int read_through(struct wl_source *source, struct err *err)
{
    struct wl_request request;
    int more;
    while ((more = wl_next(source, &request, err)) == 1) continue;
    return more;
}

/* The arrival of request number `index`, or UINT64_MAX past the end. */
static int arrival_of(struct wl_source *source, uint64_t index, uint64_t *arrival_ns,
                      struct err *err)
{
    struct wl_request request;
    int more;
    if (wl_rewind(source, err)) return -1;
    *arrival_ns = UINT64_MAX;
    while ((more = wl_next(source, &request, err)) == 1) {
        if (request.index < index) continue;
        *arrival_ns = request.arrival_ns;
        break;
    }
    return more < 0 ? -1 : 0;
}

static uint64_t share_of(const struct opt_extent *extent, uint64_t requests)
{
    return (uint64_t)((u128)requests * extent->share_millionths / 1000000);
}

/* The point that lies `extent` after a given point, on the scale of the run: time, or request number. */
static int point_after(uint64_t *point, const struct opt_extent *extent, uint64_t from,
                       uint64_t *from_index, struct wl_source *source, uint64_t requests,
                       bool serial, struct err *err)
{
    if (extent->kind == OPT_EXTENT_TIME) {
        *point = add_clamped(from, extent->time_ns);
        return 0;
    }
    *from_index += share_of(extent, requests);
    if (serial || *from_index >= requests) {
        *point = serial ? *from_index : UINT64_MAX;
        return 0;
    }
    return arrival_of(source, *from_index, point, err);
}

static int set_window(struct trace_facts *facts, struct wl_source *source, const struct options *o,
                      bool serial, struct err *err)
{
    const struct wl_summary *s = &facts->summary;
    uint64_t index = 0;
    facts->window_begin = serial ? 0 : s->first_arrival_ns;
    facts->window_end = UINT64_MAX;
    if (serial && (o->warmup.kind == OPT_EXTENT_TIME || o->measure.kind == OPT_EXTENT_TIME)) {
        return err_set(err, ERR_USAGE, "--warmup, --measure: found a time, expected a share of the "
                                       "requests: the serial scheduler takes no time");
    }
    if (o->warmup.kind != OPT_EXTENT_NONE &&
        point_after(&facts->window_begin, &o->warmup, facts->window_begin, &index, source,
                    s->requests, serial, err)) {
        return -1;
    }
    if (o->measure.kind != OPT_EXTENT_NONE &&
        point_after(&facts->window_end, &o->measure, facts->window_begin, &index, source,
                    s->requests, serial, err)) {
        return -1;
    }
    return 0;
}

int trace_facts_read(struct trace_facts *facts, struct wl_source *source, const struct options *o,
                     struct err *err)
{
    const struct scheduler *scheduler = scheduler_find(o->scheduler);
    memset(facts, 0, sizeof *facts);
    facts->window_end = UINT64_MAX;
    if (!wl_can_rewind(source)) {
        if (o->warmup.kind == OPT_EXTENT_NONE && o->measure.kind == OPT_EXTENT_NONE) return 0;
        return err_set(err, ERR_USAGE, "--warmup, --measure: %s can be read only once, expected a file",
                       wl_name(source));
    }
    if (!wl_summary_complete(source) && read_through(source, err)) return -1;
    facts->known = true;
    facts->summary = *wl_summary(source);
    if (set_window(facts, source, o, scheduler && scheduler->serial, err)) return -1;
    return wl_rewind(source, err);
}

/* --- configuration -------------------------------------------------------------------------- */

static int set_step_time(struct step_time *model, const struct optset *set, const struct options *o,
                         struct err *err)
{
    model->step_ns = o->step_ns;
    model->kind = STEP_TIME_UNIT;
    if (o->step_time == OPT_STEP_TIME_UNIT) return 0;
    if (o->step_time == OPT_STEP_TIME_ROOFLINE) return roofline_from_options(model, set, o, err);
    return step_time_linear_init(model, optset_text(set, "step-time-shape"),
                                 optset_text(set, "step-time-dtypes"), err);
}

static uint64_t default_model_len(const struct trace_facts *facts)
{
    if (!facts->known) return DEFAULT_MODEL_LEN;
    uint64_t longest = facts->summary.total_tokens_max;
    if (longest > MODEL_LEN_FROM_TRACE_MAX) return MODEL_LEN_FROM_TRACE_MAX;
    return longest > 2 ? longest : 2;
}

static enum declared_output declared_output(const struct opt_declared *declared)
{
    switch (declared->kind) {
    case OPT_DECLARED_MAX: return DECLARED_MAX;
    case OPT_DECLARED_EXACT: return DECLARED_EXACT;
    case OPT_DECLARED_FACTOR: return DECLARED_FACTOR;
    case OPT_DECLARED_COLUMN: break;
    }
    return DECLARED_COLUMN;
}

static int check_scheduler(const struct options *o, const struct trace_facts *facts,
                           struct err *err)
{
    if (!scheduler_find(o->scheduler)) {
        char known[200] = "";
        for (size_t i = 0; i < scheduler_count(); i++) {
            size_t used = strlen(known);
            snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                     scheduler_at(i)->name);
        }
        return err_set(err, ERR_USAGE, "--scheduler: found '%s', expected one of %s", o->scheduler, known);
    }
    if (o->rules == KV_RULES_2026_04 && o->watermark > 0) {
        return err_set(err, ERR_USAGE,
                       "--watermark: found %g, expected none: rule set 2026-04 has no watermark",
                       o->watermark);
    }
    if (o->cache_output == OPT_CACHE_OUTPUT_TRACE && facts->known && !facts->summary.has_final_ids) {
        return err_set(err, ERR_INPUT,
                       "--cache-output: found 'trace', but the trace has no final_hash_ids");
    }
    if (o->max_model_len != OPT_UNSET && o->max_model_len < 2) {
        return err_set(err, ERR_USAGE, "--max-model-len: found %llu, expected at least 2",
                       (unsigned long long)o->max_model_len);
    }
    return 0;
}

int simulation_configure(struct engine_config *c, const struct optset *set, const struct options *o,
                         const struct trace_facts *facts, struct err *err)
{
    memset(c, 0, sizeof *c);
    if (check_scheduler(o, facts, err)) return -1;
    c->scheduler = scheduler_find(o->scheduler);
    c->policy = o->policy_ops;
    memcpy(c->policy_values, o->policy_values, sizeof c->policy_values);
    c->geometry = (struct kv_geometry){
        .bytes_per_token = o->kv_bytes_per_token,
        .block_tokens = (uint32_t)o->block_tokens,
        .lookahead_tokens = o->lookahead_tokens,
        .window_tokens = o->window_tokens,
        .watermark = o->watermark < 0 ? c->scheduler->default_watermark : o->watermark,
        .rules = (enum kv_rules)o->rules,
    };
    if (options_pool_bytes(o, &c->geometry.pool_bytes, err)) return -1;
    if (set_step_time(&c->step_time, set, o, err)) return -1;
    c->max_num_seqs = o->max_num_seqs;
    c->max_num_batched_tokens = o->max_num_batched_tokens;
    c->max_model_len = o->max_model_len == OPT_UNSET ? default_model_len(facts) : o->max_model_len;
    /* Engines that do not cut prompts take a larger default, as vLLM v0 did. */
    if (c->scheduler->whole_prompts && !optset_given(set, "max-num-batched-tokens")) {
        c->max_num_batched_tokens = c->max_model_len > 2560 ? c->max_model_len : 2560;
    }
    if (c->geometry.rules == KV_RULES_2026_04) c->geometry.watermark = 0;
    c->long_prefill_token_threshold = o->long_prefill_tokens;
    c->chunked_prefill = o->chunked_prefill;
    c->whole_prompt_admission = o->admission == OPT_ADMISSION_WHOLE_PROMPT;
    c->cache_output = (enum cache_output)o->cache_output;
    c->declared_output = declared_output(&o->declared_output);
    c->declared_factor_millionths = o->declared_output.factor_millionths;
    c->window_begin = facts->window_begin;
    c->window_end = facts->window_end;
    c->by_priority = o->scheduling_policy == OPT_SCHEDULING_PRIORITY;
    c->swap_space_bytes = o->swap_space_bytes;
    if (host_from_options(&c->host, set, o, err)) return -1;
    c->plain_loop = o->plain_loop;
    c->check_every = o->check ? o->check_every : 0;
    return edge_from_options(&c->edge, set, o, err);
}

/* --- running -------------------------------------------------------------------------------- */

/* The pool as a cache of blocks, with the keys of the published hit rates. */
static void report_paged_pool(struct result *r, const struct engine *e)
{
    const struct engine_stats *s = &e->stats;
    bool keyed = e->config.cache_output != CACHE_OUTPUT_UNKEYED;
    bool head = e->config.geometry.rules == KV_RULES_2026_08;
    struct kv_cache_facts cache = {0};
    kv_get_cache_facts(e->policy, &cache);
    result_u64(r, "paged_pool.pool_blocks", e->policy->usable_units);
    result_bool(r, "paged_pool.cache_output_blocks", keyed);
    result_text(r, "paged_pool.unkeyed_blocks", head ? "head" : "tail");
    result_u64(r, "paged_pool.requests", s->serial.accepted);
    result_u64(r, "paged_pool.rejected_requests", s->serial.rejected);
    result_u64(r, "paged_pool.queried_full_blocks", s->serial.queried_full_blocks);
    result_u64(r, "paged_pool.hit_blocks", s->serial.hit_blocks);
    result_u64(r, "paged_pool.input_tokens", s->serial.input_tokens);
    result_u64(r, "paged_pool.hit_tokens", s->serial.hit_tokens);
    result_u64(r, "paged_pool.allocated_blocks", s->serial.allocated_blocks);
    result_u64(r, "paged_pool.evicted_cached_blocks", s->evictions);
    result_u64(r, "paged_pool.duplicate_hash_insertions", cache.duplicate_keys);
    result_u64(r, "paged_pool.zero_hit_requests", s->serial.zero_hit_requests);
    result_u64(r, "paged_pool.cached_blocks_at_end", cache.keyed_blocks);
    result_u64(r, "paged_pool.distinct_cached_hashes_at_end", cache.distinct_keys);
    result_ratio(r, "paged_pool.hit_ratio_full_blocks", s->serial.hit_blocks,
                 s->serial.queried_full_blocks);
    result_ratio(r, "paged_pool.hit_ratio_tokens", s->serial.hit_tokens, s->serial.input_tokens);
    char hex[HIT_DIGEST_HEX_BYTES];
    hit_digest_hex(&e->serial_hits, hex);
    result_text(r, "paged_pool.per_request_hits_sha256", hex);
}

struct engine *simulation_engine(const struct optset *set, const struct options *o, struct wl_source *source,
                                 const struct trace_facts *facts, const struct simulation_extras *extras, struct err *err)
{
    static const struct simulation_extras none;
    struct engine_config config;
    if (!extras) extras = &none;
    if (simulation_configure(&config, set, o, facts, err)) return NULL;
    config.hooks = extras->hooks;
    config.replay_stalls = extras->replay_stalls;
    config.max_steps = extras->max_steps;
    config.watch = extras->watch;
    struct engine *e = engine_create(&config, err);
    if (!e) return NULL;
    if (extras->begin) extras->begin(extras->context, e);
    if (engine_run(e, source, err)) {
        engine_destroy(e);
        return NULL;
    }
    if (extras->end) extras->end(extras->context);
    return e;
}

int simulation_report(struct result *r, const struct optset *set, const struct options *o,
                      const struct wl_source *source, struct engine *e, struct err *err)
{
    const struct wl_summary *summary = wl_summary(source);
    report_provenance(r, set, o, wl_name(source), summary);
    report_figures(r, e, o, summary);
    if (e->config.scheduler->serial && e->caches) report_paged_pool(r, e);
    report_options(r, set);
    if (r->out_of_memory) return err_set(err, ERR_FAILED, "out of memory");
    return 0;
}

int simulation_run(struct result *r, const struct optset *set, const struct options *o,
                   struct wl_source *source, const struct trace_facts *facts,
                   const struct simulation_extras *extras, struct err *err)
{
    struct engine *e = simulation_engine(set, o, source, facts, extras, err);
    if (!e) return -1;
    int status = simulation_report(r, set, o, source, e, err);
    engine_destroy(e);
    return status;
}
