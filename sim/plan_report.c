/* A plan for people. */
#include "sim/plan_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/command.h"
#include "sim/plan_finding.h"
#include "sim/serving_command.h"

const char *plan_bytes_text(uint64_t bytes, char *out, size_t out_bytes)
{
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof UNITS / sizeof UNITS[0]; unit++) value /= 1024;
    snprintf(out, out_bytes, unit ? "%.2f %s" : "%.0f %s", value, UNITS[unit]);
    return out;
}

const char *plan_origin_text(enum plan_origin origin)
{
    static const char *const TEXTS[] = {"given", "preset", "computed", "default", "guess"};
    return TEXTS[origin];
}

const char *mixer_kind_text(enum mixer_kind kind)
{
    static const char *const TEXTS[] = {"full", "sliding", "chunked", "recurrent"};
    return TEXTS[kind];
}

/* --- head --------------------------------------------------------------------------------------------- */

static void print_model(const struct plan_input *in, FILE *out)
{
    const struct model_shape *s = &in->shape;
    if (!in->has_shape) return;
    fprintf(out, "model     %s", s->name);
    if (s->architecture[0]) fprintf(out, " (%s)", s->architecture);
    fprintf(out, ", %u layers", s->layers);
    struct model_parameters p;
    model_parameters(s, &MODEL_WHOLE, &p);
    uint64_t total = model_parameters_total(&p), active = model_parameters_active(&p);
    if (total) fprintf(out, ", %.2f G parameters", (double)total / 1e9);
    if (active != total) fprintf(out, " (%.2f G active)", (double)active / 1e9);
    fprintf(out, ", weights %s, cache %s%s\n", element_spec(in->weights)->name, element_spec(in->cache)->name,
            in->cache_auto ? " (auto)" : "");
    if (s->note[0]) fprintf(out, "          note: %s\n", s->note);
}

static void print_head(const struct plan_report *r, FILE *out)
{
    const struct plan_input *in = r->input;
    char text[32];
    print_model(in, out);
    if (in->gpu_memory != PLAN_UNKNOWN) {
        fprintf(out, "device    %s, %s", in->gpu ? in->gpu->name : "given",
                plan_bytes_text(in->gpu_memory, text, sizeof text));
        if (in->gpu) fprintf(out, ", compute capability %u.%u", in->gpu->capability / 10, in->gpu->capability % 10);
        fprintf(out, "\n");
    }
    fprintf(out, "engine    %s", in->engine->name);
    if (in->tp > 1) fprintf(out, ", %u tensor-parallel ranks", in->tp);
    if (in->pp > 1) fprintf(out, ", %u pipeline stages (stage %u binds)", in->pp, r->plan->binding);
    fprintf(out, "\nsteps     up to %" PRIu64 " tokens, %" PRIu64 " sequences\n", in->max_num_batched_tokens,
            in->max_num_seqs);
}

/* --- the balance sheet -------------------------------------------------------------------------------- */

static void line(FILE *out, const char *label, uint64_t bytes, uint64_t total, const char *why)
{
    char text[32];
    if (bytes == 0 && !why) return;
    fprintf(out, "  %-26s %16" PRIu64 "  %11s  %5.1f %%  %s\n", label, bytes,
            plan_bytes_text(bytes, text, sizeof text), total ? 100.0 * (double)bytes / (double)total : 0.0,
            why ? why : "");
}

static const char *origin_note(const struct plan_amount *amount, const char *option)
{
    static char text[96];
    if (amount->bytes == 0 && amount->origin != PLAN_GUESS) return NULL;
    static const char *const NOTES[] = {"given", "preset", "computed", "default, measured on an H200", "a guess"};
    bool settable = amount->origin == PLAN_GUESS || amount->origin == PLAN_DEFAULT;
    snprintf(text, sizeof text, "%s%s%s", NOTES[amount->origin], settable ? ": set " : "", settable ? option : "");
    return text;
}

static void print_sheet(const struct plan_report *r, FILE *out)
{
    const struct plan_stage *s = &r->plan->stages[r->plan->binding];
    uint64_t total = r->input->gpu_memory;
    if (!s->has_budget) return;
    fprintf(out, "\nmemory of one rank%s\n", r->input->pp > 1 ? " of the binding stage" : "");
    line(out, "context and libraries", s->non_torch.bytes, total, origin_note(&s->non_torch, "--non-torch-memory"));
    line(out, "weights", s->weights.bytes - s->offload.bytes, total, origin_note(&s->weights, "--weights-memory"));
    line(out, "loader residue", s->residue.bytes, total, origin_note(&s->residue, "--loader-residue"));
    line(out, "recurrent states", s->states_bytes, total, NULL);
    line(out, "activation peak", s->activation.bytes, total, origin_note(&s->activation, "--activation-memory"));
    line(out, r->input->graphs_inside ? "CUDA graphs" : "CUDA graphs, outside", s->graphs.bytes, total,
         origin_note(&s->graphs, "--cuda-graph-memory"));
    line(out, "KV cache", s->pool_bytes, total, "");
    line(out, "remainder below a block", s->remainder_bytes, total, NULL);
    line(out, "rounding to device pages", s->page_rounding_bytes, total, NULL);
    line(out, "left free", s->outside_bytes, total, "");
    if (s->overcommitted_bytes)
        fprintf(out, "  %-26s %16s%" PRIu64 "\n", "more than there is", "-", s->overcommitted_bytes);
    line(out, "total", total, total, "");
    static const char *const OF[] = {"the total", "what is free before the weights", "what is free after a run"};
    fprintf(out, "  utilization %.4g of %s = %" PRIu64 " bytes%s\n", (double)r->input->utilization_billionths / 1e9,
            OF[r->input->engine->share], s->requested_bytes,
            r->input->utilization_given ? "" : " (the engine's default)");
}

/* --- the cache ------------------------------------------------------------------------------------------ */

static void figure(FILE *out, const char *label, uint64_t value, const char *unit)
{
    if (value != PLAN_UNKNOWN) fprintf(out, "  %-26s %16" PRIu64 " %s\n", label, value, unit);
}

static void print_groups(const struct plan_stage *s, FILE *out)
{
    if (s->group_count == 1 && s->groups[0].kind == MIXER_FULL) return;
    for (uint32_t g = 0; g < s->group_count; g++) {
        const struct plan_group *p = &s->groups[g];
        fprintf(out, "    %-9s %4" PRIu64 " layers", mixer_kind_text(p->kind), p->layers);
        if (p->count) fprintf(out, " in %" PRIu64 " group%s", p->count, p->count == 1 ? "" : "s");
        if (p->block_tokens) fprintf(out, ", blocks of %" PRIu64 " tokens", p->block_tokens);
        if (p->window_tokens) fprintf(out, ", window %" PRIu64, p->window_tokens);
        if (p->reserve_blocks) fprintf(out, " (at most %" PRIu64 " blocks)", p->reserve_blocks);
        if (p->state_bytes) fprintf(out, ", state %" PRIu64 " bytes", p->state_bytes);
        if (p->page_bytes) fprintf(out, ", page %" PRIu64 " bytes", p->page_bytes);
        if (p->padding_bytes) fprintf(out, ", padding %" PRIu64, p->padding_bytes);
        if (p->pool_tokens != PLAN_UNKNOWN) fprintf(out, ", %" PRIu64 " tokens", p->pool_tokens);
        fprintf(out, "\n");
    }
}

static void print_cache(const struct plan_report *r, FILE *out)
{
    const struct plan *p = r->plan;
    const struct plan_stage *s = &p->stages[p->binding];
    fprintf(out, "\ncache of one rank\n");
    figure(out, "bytes per token", r->input->has_shape ? s->token_bytes : PLAN_UNKNOWN,
           p->uniform ? "" : "(every layer in full)");
    if (r->input->has_shape && !p->uniform) {
        figure(out, "a request: constant", p->constant_bytes, "bytes (windows and states)");
        figure(out, "a request: slope", p->slope_bytes, "bytes a token");
    }
    figure(out, "bytes per block", s->block_bytes, "");
    print_groups(s, out);
    figure(out, "available", s->available_bytes, "bytes");
    figure(out, "blocks", p->num_blocks, p->usable_blocks < p->num_blocks ? "(one of them the null block)" : "");
    figure(out, "KV tokens", p->kv_tokens, "");
    figure(out, "longest request", p->longest_request_tokens, "tokens");
    if (r->input->max_model_len != PLAN_UNKNOWN) {
        figure(out, "max_model_len", r->input->max_model_len,
               r->input->max_model_len_given    ? "tokens"
               : r->input->max_model_len_fitted ? "tokens (what the pool holds)"
                                                : "tokens (the model's)");
        figure(out, "one such request", p->required_bytes, "bytes");
        if (!p->uniform && p->required_lower_bytes != PLAN_UNKNOWN)
            fprintf(out, "    between %" PRIu64 " (windows and states) and %" PRIu64 " (every layer in full)\n",
                    p->required_lower_bytes, p->required_upper_bytes);
        if (p->max_concurrency >= 0) fprintf(out, "  %-26s %16.2f\n", "maximum concurrency", p->max_concurrency);
    }
    figure(out, "host blocks", p->host_blocks, "");
}

static void print_stages(const struct plan *p, FILE *out)
{
    if (p->stage_count < 2) return;
    fprintf(out, "\nstage  layers        weights     available  bytes per block     blocks\n");
    for (uint32_t i = 0; i < p->stage_count; i++) {
        const struct plan_stage *s = &p->stages[i];
        char a[32] = "-", b[32] = "-", c[32] = "-", d[32] = "-";
        if (s->has_budget) plan_bytes_text(s->weights.bytes, a, sizeof a);
        if (s->available_bytes != PLAN_UNKNOWN) plan_bytes_text(s->available_bytes, b, sizeof b);
        if (s->block_bytes != PLAN_UNKNOWN) snprintf(c, sizeof c, "%" PRIu64, s->block_bytes);
        if (s->num_blocks != PLAN_UNKNOWN) snprintf(d, sizeof d, "%" PRIu64, s->num_blocks);
        fprintf(out, "%5u  %2u..%-3u  %11s  %12s  %15s  %9s%s\n", i, s->first_layer, s->end_layer - 1, a, b, c, d,
                i == p->binding ? "  binds" : "");
    }
}

/* --- inverse, findings, command --------------------------------------------------------------------------- */

static void print_serve(const struct plan_serve *v, FILE *out)
{
    char a[32], b[32];
    if (!v) return;
    fprintf(out, "\n%" PRIu64 " requests of %" PRIu64 " tokens at once\n", v->requests, v->tokens);
    if (v->lower_bytes != PLAN_UNKNOWN && v->upper_bytes != PLAN_UNKNOWN)
        fprintf(out, "  hold between %s and %s (every layer in full)\n", plan_bytes_text(v->lower_bytes, a, sizeof a),
                plan_bytes_text(v->upper_bytes, b, sizeof b));
    if (v->blocks != PLAN_UNKNOWN)
        fprintf(out, "  take %" PRIu64 " blocks: %s\n", v->blocks, v->fits ? "they fit" : "they do not fit");
    if (v->utilization >= 0) fprintf(out, "  smallest utilization: %.4f\n", v->utilization);
    else fprintf(out, "  smallest utilization: none is enough, or there is no device\n");
    if (v->block_tokens != PLAN_UNKNOWN)
        fprintf(out, "  largest block size (of powers of two up to 1024): %" PRIu64 "\n", v->block_tokens);
    fprintf(out, "  cache types that serve them:");
    bool any = false;
    for (unsigned t = 0; t < ELEMENT_TYPES; t++)
        if (v->types[t]) any = fprintf(out, " %s", element_spec((enum element_type)t)->name) > 0;
    fprintf(out, "%s\n", any ? "" : " none");
}

static void print_findings(const struct plan_findings *findings, FILE *out)
{
    if (!findings || findings->count == 0) return;
    fprintf(out, "\nfindings\n");
    for (uint32_t i = 0; i < findings->count; i++) {
        const struct plan_finding *f = &findings->items[i];
        fprintf(out, "  %s: %s [%s]\n    %s\n    change: %s\n", finding_severity_text(f->severity), f->found, f->id,
                f->arithmetic, f->change);
    }
}

static void print_list_of(FILE *out, const char *label, uint32_t count, const char list[][SERVING_NOTE_BYTES])
{
    if (count == 0) return;
    fprintf(out, "  %s:", label);
    for (uint32_t i = 0; i < count && i < SERVING_NOTES_MAX; i++) fprintf(out, "%s %s", i ? "," : "", list[i]);
    if (count > SERVING_NOTES_MAX) fprintf(out, " and %u more", count - SERVING_NOTES_MAX);
    fprintf(out, "\n");
}

static void print_notes(const struct serving_notes *n, FILE *out)
{
    if (!n) return;
    fprintf(out, "\ncommand (%s)\n", n->engine);
    print_list_of(out, "read", n->read_count, n->read);
    print_list_of(out, "no effect on memory", n->neutral_count, n->neutral);
    print_list_of(out, "NOT KNOWN, left out of the plan", n->unknown_count, n->unknown);
}

void plan_print(const struct plan_report *r, FILE *out)
{
    print_head(r, out);
    print_sheet(r, out);
    print_cache(r, out);
    print_stages(r->plan, out);
    print_serve(r->serve, out);
    print_findings(r->findings, out);
    print_notes(r->notes, out);
    if (r->plan->verdict[0]) fprintf(out, "\nverdict: %s\n", r->plan->verdict);
}

void plan_print_list(FILE *out)
{
    char text[32];
    struct model_shape *shape = calloc(1, sizeof *shape);
    fprintf(out, "Models (--model)\n");
    for (size_t i = 0; shape && i < model_preset_count(); i++) {
        const struct model_preset *preset = model_preset_at(i);
        struct model_parameters p;
        struct err err = {0};
        if (model_shape_preset(shape, preset->name, &err) != 0) continue;
        model_parameters(shape, &MODEL_WHOLE, &p);
        fprintf(out, "  %-16s %8.2f G parameters  %7" PRIu64 " bytes a token in 16 bits  %s\n", preset->name,
                (double)model_parameters_total(&p) / 1e9, model_token_bytes(shape, ELEMENT_BF16, &MODEL_WHOLE),
                preset->source);
    }
    free(shape);
    fprintf(out, "\nGPUs (--gpu)\n");
    for (size_t i = 0; i < gpu_count(); i++) {
        const struct gpu *g = gpu_at(i);
        fprintf(
            out, "  %-11s %10s  %5.0f GB/s  16 bits %6.1f  FP8 %6.1f TFLOP/s  capability %u.%u\n              %s\n",
            g->name, plan_bytes_text(g->memory_bytes, text, sizeof text), (double)g->bandwidth_bytes_per_s / 1e9,
            (double)g->flops_16 / 1e12, (double)g->flops_8 / 1e12, g->capability / 10, g->capability % 10, g->source);
    }
    fprintf(out, "\nEngines (--engine)\n");
    for (size_t i = 0; i < plan_engine_count(); i++) {
        int column = fprintf(out, "  %-13s ", plan_engine_at(i)->name);
        command_print_wrapped(plan_engine_at(i)->source, column, 16);
    }
}
