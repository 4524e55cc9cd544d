#include "sim/roofline_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/plan.h"

/* The card that the efficiencies were measured on. */
static const char MEASURED_GPU[] = "h200";

/* Layers that read an earlier layer's keys and values have none of their own, but read them all the same. */
static double token_read_bytes(const struct model_mixer *mixer, enum element_type cache, uint32_t tp)
{
    struct model_mixer own = *mixer;
    own.shares_cache = false;
    return (double)model_layer_token_bytes(&own, cache, tp);
}

static void add_mixer(struct roofline_shape *r, const struct plan_input *in, const struct model_mixer *m)
{
    double layers = (double)m->layers, ranks = in->tp;
    if (m->kind == MIXER_STATE) {
        r->q_width += layers * (double)m->state_heads * (double)m->state_rows / ranks;
        return;
    }
    double heads = (double)m->heads / ranks;
    double attended = layers * heads * (double)(m->key_dim + m->value_dim) / 2;
    double read = layers * token_read_bytes(m, in->cache, in->tp) / in->dcp;
    r->q_width += layers * heads * (double)m->key_dim;
    r->kv_width += layers * (double)model_rank_kv_heads(m, in->tp) * (double)(m->key_dim + m->value_dim) / 2;
    if (m->kind == MIXER_FULL) {
        r->attended_width += attended;
        r->kv_bytes += read;
    } else {
        r->window_width += attended;
        r->window_kv_bytes += read;
        if (r->window_tokens <= 0) r->window_tokens = (double)m->window_tokens;
    }
}

/* Mean over the layers of the width that one token passes. */
static double mean_mlp_width(const struct model_shape *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->layers; i++) {
        if (s->layer_mlp[i] == MLP_DENSE) sum += (double)s->intermediate;
        if (s->layer_mlp[i] == MLP_EXPERTS)
            sum += (double)s->experts_active * (double)s->expert_intermediate + (double)s->shared_intermediate;
    }
    return sum / s->layers;
}

static double type_bytes(enum element_type type)
{
    return element_spec(type)->bytes_256 / 256.0;
}

void roofline_shape_of(struct roofline_shape *r, const struct plan_input *in)
{
    const struct model_shape *s = &in->shape;
    struct model_parameters p;
    struct model_part part = {in->tp, 1, 0, in->expert_parallel ? in->tp * in->dp : 0};
    model_parameters(s, &part, &p);
    memset(r, 0, sizeof *r);
    for (uint32_t m = 0; m < s->mixer_count; m++) add_mixer(r, in, &s->mixers[m]);
    r->layers = s->layers;
    r->q_width /= r->layers;
    r->kv_width /= r->layers;
    r->hidden = (double)s->hidden;
    r->intermediate = mean_mlp_width(s) / in->tp;
    r->dense_parameters = (double)(p.mixers + p.dense_mlp + p.routers + p.shared_experts + p.other);
    r->expert_parameters = (double)p.experts;
    r->experts = (double)s->experts;
    r->experts_per_token = (double)s->experts_active;
    r->head_parameters = (double)(p.head ? p.head : p.embedding);
    r->expert_weight_bytes = type_bytes(in->weights);
    r->weight_bytes = type_bytes(s->quantized && s->quantized_experts_only ? s->type : in->weights);
    r->state_bytes = (double)model_state_bytes(s, &part);
    r->fp8_kv = element_type_is_small(in->cache);
}

/* Products run in 8 bits where the weights have 8 bits and the GPU multiplies them. */
static double rate_8(const struct plan_input *in)
{
    if (in->weights == ELEMENT_FP8) return (double)in->gpu->flops_8;
    return in->weights == ELEMENT_INT8 ? (double)in->gpu->ops_int8 : 0;
}

static int set_up(struct step_time *model, struct plan_input *in, const struct optset *set, const struct options *o,
                  struct err *err)
{
    const struct gpu *measured = gpu_find(MEASURED_GPU);
    if (plan_input_read(in, set, o, err) != 0) return -1;
    if (!in->has_shape || in->shape.hidden == 0)
        return err_set(err, ERR_USAGE, "--step-time roofline: expected a model with its widths, --model");
    if (!in->gpu) return err_set(err, ERR_USAGE, "--step-time roofline: expected --gpu (`pagesim plan --list`)");
    struct roofline_shape shape;
    roofline_shape_of(&shape, in);
    shape.fp8_compute = rate_8(in) > 0;
    const struct roofline_scale scale = {
        .bandwidth = (double)in->gpu->bandwidth_bytes_per_s / (double)measured->bandwidth_bytes_per_s,
        .flops_16 = (double)in->gpu->flops_16 / (double)measured->flops_16,
        .flops_8 = rate_8(in) / (double)measured->flops_8,
    };
    model->kind = STEP_TIME_ROOFLINE;
    roofline_init(&model->roofline, &shape, &scale);
    snprintf(model->note, sizeof model->note, in->gpu == measured ? "%s: efficiencies measured on Llama-3 shapes"
                                                                  : "%s: scaled, not measured (data sheet against the h200's)",
             in->gpu->name);
    return 0;
}

int roofline_from_options(struct step_time *model, const struct optset *set, const struct options *o, struct err *err)
{
    struct plan_input *in = malloc(sizeof *in);
    int status = in ? set_up(model, in, set, o, err) : err_set(err, ERR_FAILED, "out of memory");
    free(in);
    return status;
}
