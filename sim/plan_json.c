/* A plan as one JSON object. Figures that are not known are null; all bytes are of one rank of the binding stage. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "sim/plan_finding.h"
#include "sim/plan_report.h"
#include "sim/serving_command.h"

/* Exact to two places, as engines print them, where that is asked for. */
static json_t *number(uint64_t value)
{
    if (value == PLAN_UNKNOWN) return json_null();
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *ratio(double value)
{
    return value < 0 || !isfinite(value) ? json_null() : json_real(value);
}

static json_t *amount_json(const struct plan_amount *amount)
{
    return json_pack("{s:o, s:s}", "bytes", number(amount->bytes), "origin", plan_origin_text(amount->origin));
}

static json_t *group_json(const struct plan_group *g)
{
    json_t *o = json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:o}", "kind", mixer_kind_text(g->kind), "groups",
                          (json_int_t)g->count, "layers", number(g->layers), "token_bytes", number(g->token_bytes),
                          "page_bytes", number(g->page_bytes), "padding_bytes", number(g->padding_bytes),
                          "pool_tokens", number(g->pool_tokens));
    json_object_set_new(o, "block_tokens", g->block_tokens ? number(g->block_tokens) : json_null());
    json_object_set_new(o, "window_tokens", g->window_tokens ? number(g->window_tokens) : json_null());
    json_object_set_new(o, "reserve_blocks_per_group", g->reserve_blocks ? number(g->reserve_blocks) : json_null());
    json_object_set_new(o, "key_page_bytes",
                        g->token_bytes ? number(g->block_tokens * (g->token_bytes / 2)) : json_null());
    if (g->kind != MIXER_STATE) return o;
    json_object_set_new(o, "state_bytes", number(g->state_bytes));
    json_object_set_new(o, "padding_percent",
                        g->state_bytes ? json_real(100.0 * (double)g->padding_bytes / (double)g->state_bytes)
                                       : json_null());
    json_object_set_new(o, "wasted_fraction",
                        g->page_bytes ? json_real((double)g->padding_bytes / (double)g->page_bytes) : json_null());
    return o;
}

static json_t *sheet_json(const struct plan_stage *s, const struct plan_input *in)
{
    if (!s->has_budget) return json_null();
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "total_bytes", number(in->gpu_memory), "non_torch",
                          amount_json(&s->non_torch), "weights", amount_json(&s->weights), "cpu_offload",
                          amount_json(&s->offload), "loader_residue", amount_json(&s->residue), "activation",
                          amount_json(&s->activation), "cuda_graphs", amount_json(&s->graphs));
    json_object_set_new(o, "recurrent_states_bytes", number(s->states_bytes));
    json_object_set_new(o, "pool_bytes", number(s->pool_bytes));
    json_object_set_new(o, "remainder_bytes", number(s->remainder_bytes));
    json_object_set_new(o, "page_rounding_bytes", number(s->page_rounding_bytes));
    json_object_set_new(o, "outside_bytes", number(s->outside_bytes));
    json_object_set_new(o, "overcommitted_bytes", number(s->overcommitted_bytes));
    json_object_set_new(o, "cuda_graphs_inside", json_boolean(in->graphs_inside));
    return o;
}

static json_t *stages_json(const struct plan_report *r)
{
    json_t *stages = json_array();
    for (uint32_t i = 0; i < r->plan->stage_count; i++) {
        const struct plan_stage *s = &r->plan->stages[i];
        json_t *o = json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "stage", (int)i, "first_layer",
                              (int)s->first_layer, "layers", (int)(s->end_layer - s->first_layer), "bytes_per_token",
                              number(s->token_bytes), "bytes_per_block", number(s->block_bytes), "available_kv_bytes",
                              number(s->available_bytes), "num_blocks", number(s->num_blocks));
        json_object_set_new(o, "memory", sheet_json(s, r->input));
        json_array_append_new(stages, o);
    }
    return stages;
}

static json_t *groups_json(const struct plan_stage *s)
{
    json_t *groups = json_array();
    for (uint32_t g = 0; g < s->group_count; g++) json_array_append_new(groups, group_json(&s->groups[g]));
    return groups;
}

static json_t *serve_json(const struct plan_serve *serve)
{
    if (!serve) return json_null();
    json_t *types = json_array();
    for (unsigned t = 0; t < ELEMENT_TYPES; t++)
        if (serve->types[t]) json_array_append_new(types, json_string(element_spec((enum element_type)t)->name));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o}", "requests", number(serve->requests), "tokens",
                     number(serve->tokens), "lower_bound_bytes", number(serve->lower_bytes), "upper_bound_bytes",
                     number(serve->upper_bytes), "blocks", number(serve->blocks), "fits", serve->fits,
                     "smallest_utilization", ratio(serve->utilization), "largest_block_size",
                     number(serve->block_tokens), "kv_cache_dtypes", types);
}

static void set_figures(json_t *o, const struct plan_report *r)
{
    const struct plan *p = r->plan;
    const struct plan_stage *s = &p->stages[p->binding];
    const struct plan_input *in = r->input;
    const struct {
        const char *key;
        uint64_t value;
    } FIGURES[] = {
        {"bytes_per_token", in->has_shape && (s->token_bytes || s->state_bytes) ? s->token_bytes : PLAN_UNKNOWN},
        {"bytes_per_block", s->block_bytes},
        {"available_kv_bytes", s->available_bytes},
        {"num_blocks", p->num_blocks},
        {"usable_blocks", p->usable_blocks},
        {"kv_tokens", p->kv_tokens},
        {"usable_kv_tokens", p->usable_kv_tokens},
        {"kv_tokens_by_concurrency", p->tokens_by_concurrency},
        {"kv_tokens_by_old_division", p->tokens_by_division},
        {"max_model_len", in->max_model_len},
        {"blocks_per_request", p->blocks_per_request},
        {"required_bytes", p->required_bytes},
        {"required_lower_bytes", p->required_lower_bytes},
        {"required_upper_bytes", p->required_upper_bytes},
        {"constant_bytes_per_request", in->has_shape ? p->constant_bytes : PLAN_UNKNOWN},
        {"slope_bytes_per_token", in->has_shape ? p->slope_bytes : PLAN_UNKNOWN},
        {"longest_request_tokens", p->longest_request_tokens},
        {"host_blocks", p->host_blocks},
        {"key_bytes", p->key_bytes},
        {"value_bytes", p->value_bytes},
        {"requested_bytes", s->has_budget ? s->requested_bytes : PLAN_UNKNOWN},
        {"missing_bytes", s->has_budget ? s->missing_bytes : PLAN_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof FIGURES / sizeof FIGURES[0]; i++)
        json_object_set_new(o, FIGURES[i].key, number(FIGURES[i].value));
    json_object_set_new(o, "max_concurrency", ratio(p->max_concurrency));
    json_object_set_new(o, "utilization_with_graphs", ratio(p->utilization_with_graphs));
}

static void set_settings(json_t *o, const struct plan_input *in, const struct plan *plan)
{
    const struct plan_stage *s = &plan->stages[plan->binding];
    uint64_t block = in->block_tokens;
    for (uint32_t g = s->group_count; g-- > 0;)
        if (s->groups[g].block_tokens) block = s->groups[g].block_tokens;
    json_object_set_new(o, "engine", json_string(in->engine->name));
    json_object_set_new(o, "model", in->has_shape ? json_string(in->shape.name) : json_null());
    json_object_set_new(o, "model_note", in->shape.note[0] ? json_string(in->shape.note) : json_null());
    json_object_set_new(o, "gpu", in->gpu ? json_string(in->gpu->name) : json_null());
    json_object_set_new(o, "kv_cache_dtype", json_string(element_spec(in->cache)->name));
    json_object_set_new(o, "weights_dtype", json_string(element_spec(in->weights)->name));
    json_object_set_new(o, "block_size", number(block));
    json_object_set_new(o, "gpu_memory_utilization",
                        in->gpu_memory == PLAN_UNKNOWN ? json_null()
                                                       : json_real((double)in->utilization_billionths / 1e9));
    json_object_set_new(o, "max_num_seqs", number(in->max_num_seqs));
    json_object_set_new(o, "max_num_batched_tokens", number(in->max_num_batched_tokens));
    json_object_set_new(o, "tensor_parallel_size", json_integer(in->tp));
    json_object_set_new(o, "pipeline_parallel_size", json_integer(in->pp));
    json_object_set_new(o, "binding_stage", json_integer(plan->binding));
    struct model_parameters p;
    model_parameters(&in->shape, &MODEL_WHOLE, &p);
    bool has = in->has_shape && in->shape.hidden > 0;
    json_object_set_new(o, "parameters", has ? number(model_parameters_total(&p)) : json_null());
    json_object_set_new(o, "active_parameters", has ? number(model_parameters_active(&p)) : json_null());
}

static json_t *presets_json(void)
{
    json_t *models = json_array();
    struct model_shape *shape = calloc(1, sizeof *shape);
    for (size_t i = 0; shape && i < model_preset_count(); i++) {
        const struct model_preset *preset = model_preset_at(i);
        struct model_parameters p;
        struct err err = {0};
        if (model_shape_preset(shape, preset->name, &err) != 0) continue;
        model_parameters(shape, &MODEL_WHOLE, &p);
        json_array_append_new(models, json_pack("{s:s, s:s, s:o, s:o, s:o}", "name", preset->name, "source", preset->source, "parameters",
                                                number(model_parameters_total(&p)), "active_parameters", number(model_parameters_active(&p)),
                                                "bytes_per_token_16_bits", number(model_token_bytes(shape, ELEMENT_BF16, &MODEL_WHOLE))));
    }
    free(shape);
    return models;
}

static json_t *gpus_json(void)
{
    json_t *gpus = json_array();
    for (size_t i = 0; i < gpu_count(); i++) {
        const struct gpu *g = gpu_at(i);
        json_array_append_new(gpus, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:i}", "name", g->name, "source", g->source, "memory_bytes",
                                              number(g->memory_bytes), "bandwidth_bytes_per_s", number(g->bandwidth_bytes_per_s), "flops_16_bits",
                                              number(g->flops_16), "flops_fp8", number(g->flops_8), "compute_capability_x10", (int)g->capability));
    }
    return gpus;
}

int plan_json_list(FILE *out, struct err *err)
{
    json_t *engines = json_array();
    for (size_t i = 0; i < plan_engine_count(); i++)
        json_array_append_new(engines, json_pack("{s:s, s:s}", "name", plan_engine_at(i)->name, "source", plan_engine_at(i)->source));
    json_t *o = json_pack("{s:o, s:o, s:o}", "models", presets_json(), "gpus", gpus_json(), "engines", engines);
    char *text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
    json_decref(o);
    if (!text) return err_set(err, ERR_FAILED, "out of memory");
    fprintf(out, "%s\n", text);
    free(text);
    return 0;
}

int plan_json(const struct plan_report *r, FILE *out, struct err *err)
{
    json_t *o = json_object();
    set_settings(o, r->input, r->plan);
    set_figures(o, r);
    json_object_set_new(o, "verdict", r->plan->verdict[0] ? json_string(r->plan->verdict) : json_null());
    json_object_set_new(o, "groups", groups_json(&r->plan->stages[r->plan->binding]));
    json_object_set_new(o, "memory", sheet_json(&r->plan->stages[r->plan->binding], r->input));
    if (r->plan->stage_count > 1) json_object_set_new(o, "stages", stages_json(r));
    json_object_set_new(o, "serve", serve_json(r->serve));
    if (r->findings) json_object_set_new(o, "findings", plan_findings_json(r->findings));
    if (r->notes) json_object_set_new(o, "command", serving_notes_json(r->notes));
    char *text = o ? json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(o);
    if (!text) return err_set(err, ERR_FAILED, "out of memory");
    fprintf(out, "%s\n", text);
    free(text);
    return 0;
}
