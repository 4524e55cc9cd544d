#include "sim/roofline.h"

#include <math.h>

#include "sim/step_time.h"

/* Fitted on measured steps (NVIDIA H200, PyTorch 2.11, CUDA 13.0), both Llama-3 shapes together. Bytes and
 * operations per microsecond. */
static const struct rates {
    double layer_us, weight, flops, kv_16, kv_8, attention, power, activation;
} MEASURED[2] = {
    {34.304, 4247895, 746453096, 4423416, 3118619, 392172849, 3.52, 2969906},  /* 16-bit weights */
    {35.023, 4104036, 1509602633, 4587388, 3118619, 446718457, 2.83, 3193532}, /* FP8 weights */
};
/* FP8 KV was measured beside FP8 weights only; its rate stands in both rows. */
static const double HEAD_FLOPS = 7e8;

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

void roofline_init(struct roofline *model, const struct roofline_shape *shape, const struct roofline_scale *scale)
{
    const struct rates *r = &MEASURED[shape->fp8_compute];
    double flops = r->flops * (shape->fp8_compute ? scale->flops_8 : scale->flops_16);
    /* Reading 8-bit KV is bound by its conversion as much as by memory. */
    double kv = shape->fp8_kv ? r->kv_8 * smaller(scale->bandwidth, scale->flops_16) : r->kv_16 * scale->bandwidth;
    double attention = r->attention * scale->flops_16;
    double read = r->weight * scale->bandwidth;
    double active = shape->dense_parameters;
    if (shape->experts > 0) active += shape->expert_parameters * shape->experts_per_token / shape->experts;
    /* Reads and writes between the products, in bytes of one token and layer: 14 a unit of the residual stream, 4 a unit of
     * queries, keys and values and of the attention's output, 9 a unit of the MLP. */
    double activation_bytes = 14 * shape->hidden + 4 * (shape->q_width + 2 * shape->kv_width) + 4 * shape->q_width +
                              9 * shape->intermediate;
    *model = (struct roofline){
        .layers_us = shape->layers * r->layer_us,
        .power = r->power,
        .dense_us = (shape->dense_parameters * shape->weight_bytes + shape->head_parameters * 2) / read,
        .experts_us = shape->expert_parameters * shape->expert_weight_bytes / read,
        .experts = shape->experts,
        .experts_per_token = shape->experts_per_token,
        .token_us = 2 * active / flops,
        .logit_us = 2 * shape->head_parameters / (HEAD_FLOPS * scale->flops_16),
        .kv_token_us = shape->kv_bytes / kv,
        .window_kv_token_us = shape->window_kv_bytes / kv,
        .window_tokens = shape->window_tokens,
        .state_us = 2 * shape->state_bytes / (r->kv_16 * scale->bandwidth),
        .pair_us = 4 * shape->attended_width / attention,
        .window_pair_us = 4 * shape->window_width / attention,
        .activation_us = shape->layers * activation_bytes / (r->activation * scale->bandwidth),
    };
}

/* Share of the experts that at least one of the tokens goes to, when each token takes k of E at random. */
static double experts_touched(const struct roofline *m, double tokens)
{
    if (m->experts <= 0) return 0;
    return 1 - pow(1 - m->experts_per_token / m->experts, tokens);
}

double roofline_us(const struct roofline *m, const struct step_work *work)
{
    double tokens = (double)work->decode_seqs + (double)work->prefill_tokens;
    double weights = m->dense_us + m->experts_us * experts_touched(m, tokens);
    double compute = tokens * m->token_us + (double)work->logit_seqs * m->logit_us;
    double longer = weights > compute ? weights : compute, shorter = weights > compute ? compute : weights;
    /* The same sum of powers, without overflow. */
    double product = longer <= 0 ? 0 : longer * pow(1 + pow(shorter / longer, m->power), 1 / m->power);

    double context = (double)work->decode_context_tokens, pairs = (double)work->prefill_pairs;
    double kv = context * m->kv_token_us, attention = pairs * m->pair_us;
    if (m->window_tokens > 0) {
        kv += smaller(context, (double)work->decode_seqs * m->window_tokens) * m->window_kv_token_us;
        attention += smaller(pairs, (double)work->prefill_tokens * m->window_tokens) * m->window_pair_us;
    }
    return m->layers_us + product + kv + (double)work->decode_seqs * m->state_us + attention + tokens * m->activation_us;
}
