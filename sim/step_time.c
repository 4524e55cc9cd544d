#include "sim/step_time.h"

#include <string.h>

#include "sim/numbers.h"

/* Fitted on measured steps (NVIDIA H200, PyTorch 2.11, CUDA 13.0): one row a combination. Errors of
 * the fit: decode 2-3 % in the median, prefill 1-4 %, mixed steps, which were held out, 1-7 %. */
static const struct fit {
    const char *shape, *dtypes;
    double layer_us, weight_rate, flop_rate, kv_rate, attention_rate; /* bytes or operations per us */
    double weight_bytes, kv_element_bytes;
} fits[] = {
    {"8b", "bf16-bf16", 35.085, 4247895, 630679915, 4375488, 581712636, 2, 2},
    {"8b", "fp8-bf16", 33.01, 4104036, 1135571094, 4369800, 584056706, 1, 2},
    {"8b", "fp8-fp8", 34.206, 4104036, 1145970428, 3050201, 577087520, 1, 1},
    {"70b/8", "bf16-bf16", 35.869, 4247895, 654668582, 3546090, 248361648, 2, 2},
    {"70b/8", "fp8-fp8", 37.797, 4104036, 1208592143, 2011763, 275939070, 1, 1},
};
static const double head_flop_rate = 7e8;

/* One GPU's share of the model. Llama-3-8B on one, Llama-3-70B on eight. */
static const struct shape {
    const char *name;
    double layers, hidden, intermediate, vocabulary, q_heads, kv_heads;
} shapes[] = {
    {"8b", 32, 4096, 14336, 128256, 32, 8},
    {"70b/8", 80, 8192, 3584, 16032, 8, 1},
};
static const double head_dim = 128;

int step_time_linear_init(struct step_time *model, const char *shape_name, const char *dtypes,
                          struct err *err)
{
    const struct shape *shape = NULL;
    const struct fit *fit = NULL;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strcmp(shapes[i].name, shape_name) == 0) shape = &shapes[i];
    }
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        if (strcmp(fits[i].shape, shape_name) == 0 && strcmp(fits[i].dtypes, dtypes) == 0) {
            fit = &fits[i];
        }
    }
    if (!shape || !fit) {
        return err_set(err, ERR_USAGE,
                       "--step-time linear: found shape '%s' with data types '%s', expected 8b with "
                       "bf16-bf16, fp8-bf16 or fp8-fp8, or 70b/8 with bf16-bf16 or fp8-fp8",
                       shape_name, dtypes);
    }
    double layer_parameters = shape->hidden * (shape->q_heads + 2 * shape->kv_heads) * head_dim +
                              shape->q_heads * head_dim * shape->hidden +
                              3 * shape->hidden * shape->intermediate;
    double parameters = shape->layers * layer_parameters;
    double head = shape->vocabulary * shape->hidden;
    model->kind = STEP_TIME_LINEAR;
    model->linear = (struct step_time_linear){
        .layers_us = shape->layers * fit->layer_us,
        .weights_us = (parameters * fit->weight_bytes + head * 2) / fit->weight_rate,
        .token_us = 2 * parameters / fit->flop_rate,
        .logit_us = 2 * head / head_flop_rate,
        .context_token_us = shape->layers * shape->kv_heads * 2 * head_dim * fit->kv_element_bytes /
                            fit->kv_rate,
        .pair_us = 4 * head_dim * shape->q_heads * shape->layers / fit->attention_rate,
    };
    return 0;
}

#define NS_MAX ((uint64_t)1 << 62)

uint64_t host_copy_ns(const struct host_link *link, uint64_t bytes)
{
    if (bytes == 0 || link->bytes_per_s == 0) return 0;
    unsigned __int128 ns = (unsigned __int128)bytes * 1000000000 / link->bytes_per_s + link->latency_ns;
    return ns < NS_MAX ? (uint64_t)ns : NS_MAX;
}

uint64_t host_link_step_ns(const struct host_link *link, uint64_t compute_ns, const struct host_traffic *traffic)
{
    uint64_t in = host_copy_ns(link, traffic->to_device_bytes), out = host_copy_ns(link, traffic->to_host_bytes);
    if (!link->overlapped) return min_u64(compute_ns + in + out, NS_MAX); /* each at most 2^62: no overflow */
    uint64_t copies = in > out ? in : out;
    return compute_ns > copies ? compute_ns : copies;
}

static double linear_us(const struct step_time_linear *m, const struct step_work *work)
{
    double compute_us = (double)(work->decode_seqs + work->prefill_tokens) * m->token_us +
                        (double)work->logit_seqs * m->logit_us;
    return m->layers_us + (compute_us > m->weights_us ? compute_us : m->weights_us) +
           (double)work->decode_context_tokens * m->context_token_us +
           (double)work->prefill_pairs * m->pair_us;
}

uint64_t step_time_ns(const struct step_time *model, const struct step_work *work)
{
    if (model->kind == STEP_TIME_UNIT) return model->step_ns;
    double us = model->kind == STEP_TIME_LINEAR ? linear_us(&model->linear, work)
                                                : roofline_us(&model->roofline, work);
    double ns = us * 1000.0 + 0.5;
    if (!(ns >= 1)) return 1;
    return ns >= 4611686018427387904.0 ? NS_MAX : (uint64_t)ns;
}
