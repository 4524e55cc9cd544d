#include "sim/model_shape.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/numbers.h"

typedef unsigned __int128 u128;

/* Weights of more bytes than this are a mistake; it leaves room for sums over ranks in 64 bits. */
#define WEIGHT_BYTES_MAX ((u128)1 << 60)
#define HEADS_MAX ((uint64_t)1 << 20)
#define DIM_MAX ((uint64_t)1 << 24)
#define TOKEN_BYTES_MAX ((u128)1 << 40)

static uint64_t narrow(u128 value)
{
    return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

void model_printable(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~') *text = '?';
}

void model_note(struct model_shape *shape, const char *format, ...)
{
    size_t at = strlen(shape->note);
    char text[MODEL_NOTE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    model_printable(text);
    /* A note that does not fit is left out whole. */
    if (at + strlen(text) + 3 > sizeof shape->note) return;
    if (at) strcat(shape->note, "; ");
    strcat(shape->note, text);
}

int model_shape_plain(struct model_shape *shape, uint64_t layers, uint64_t heads, uint64_t kv_heads,
                      uint64_t key_dim, uint64_t value_dim, uint64_t window_tokens, struct err *err)
{
    memset(shape, 0, sizeof *shape);
    snprintf(shape->name, sizeof shape->name, "%" PRIu64 " layers", layers);
    if (layers == 0 || layers > MODEL_LAYERS_MAX)
        return err_set(err, ERR_USAGE, "found %" PRIu64 " layers, expected 1 to %u", layers, MODEL_LAYERS_MAX);
    shape->layers = (uint32_t)layers;
    shape->mixer_count = 1;
    shape->mixers[0] = (struct model_mixer){
        .kind = window_tokens ? MIXER_SLIDING : MIXER_FULL,
        .heads = heads,
        .kv_heads = kv_heads,
        .key_dim = key_dim,
        .value_dim = value_dim,
        .window_tokens = window_tokens,
    };
    memset(shape->layer_mixers, 1, layers);
    return model_shape_finish(shape, err);
}

int model_shape_finish(struct model_shape *shape, struct err *err)
{
    for (uint32_t m = 0; m < shape->mixer_count; m++) {
        shape->mixers[m].layers = 0;
        for (uint32_t i = 0; i < shape->layers; i++)
            if (shape->layer_mixers[i] & (1u << m)) shape->mixers[m].layers++;
    }
    for (uint32_t m = 0; m < shape->mixer_count; m++) {
        const struct model_mixer *x = &shape->mixers[m];
        if (x->kv_heads > HEADS_MAX || x->key_dim > DIM_MAX || x->value_dim > DIM_MAX)
            return err_set(err, ERR_INPUT, "%s: more than 2^20 heads or 2^24 elements of a head", shape->name);
    }
    u128 token = 0, state = 0;
    for (uint32_t m = 0; m < shape->mixer_count; m++) {
        const struct model_mixer *mixer = &shape->mixers[m];
        token += (u128)model_layer_token_bytes(mixer, ELEMENT_FP32, 1) * mixer->layers;
        state += ((u128)model_layer_recurrent_bytes(mixer, 1) + model_layer_conv_bytes(mixer, 1)) * mixer->layers;
    }
    if (token > TOKEN_BYTES_MAX)
        return err_set(err, ERR_INPUT, "%s: a token's keys and values take more than 2^40 bytes", shape->name);
    if (state > TOKEN_BYTES_MAX)
        return err_set(err, ERR_INPUT, "%s: a sequence's state takes more than 2^40 bytes", shape->name);
    struct model_parameters p;
    model_parameters(shape, &MODEL_WHOLE, &p);
    if ((u128)model_parameters_total(&p) * 4 > WEIGHT_BYTES_MAX)
        return err_set(err, ERR_INPUT, "%s: more than 2^58 parameters", shape->name);
    return 0;
}

/* --- parts --------------------------------------------------------------------------------- */

/* vLLM: an equal share for every stage; what remains goes one by one to the stages before the last, from behind. */
void model_stage(const struct model_shape *shape, const struct model_part *part, uint32_t *begin, uint32_t *end)
{
    assert(part->pp >= 1 && part->pp_rank < part->pp);
    uint32_t each = shape->layers / part->pp, remain = shape->layers % part->pp;
    *begin = 0;
    for (uint32_t stage = 0;; stage++) {
        bool extra = stage + 1 < part->pp && part->pp - 1 - stage <= remain;
        *end = *begin + each + (extra ? 1 : 0);
        if (stage == part->pp_rank) return;
        *begin = *end;
    }
}

uint64_t model_stage_layers(const struct model_shape *shape, const struct model_part *part, uint32_t m)
{
    uint32_t begin, end;
    uint64_t layers = 0;
    model_stage(shape, part, &begin, &end);
    for (uint32_t i = begin; i < end; i++) if (shape->layer_mixers[i] & (1u << m)) layers++;
    return layers;
}

/* --- cache --------------------------------------------------------------------------------- */

uint64_t model_rank_kv_heads(const struct model_mixer *mixer, uint32_t tp)
{
    return mixer->kv_heads < tp ? 1 : mixer->kv_heads / tp;
}

/* One row for all heads and ranks. */
static uint64_t latent_bytes(const struct model_mixer *mixer, enum element_type cache)
{
    uint64_t row = cache == ELEMENT_FP8_MLA
                       ? mixer->latent_dim + 4 * ceil_div(mixer->latent_dim, 128) + 2 * mixer->rope_dim
                       : element_row_bytes(cache, mixer->latent_dim + mixer->rope_dim);
    return row + mixer->index_row_bytes;
}

uint64_t model_layer_key_bytes(const struct model_mixer *mixer, enum element_type cache, uint32_t tp)
{
    if (mixer->kind == MIXER_STATE || mixer->shares_cache) return 0;
    if (mixer->fixed_key_bytes) return mixer->fixed_key_bytes;
    if (mixer->fixed_token_bytes) return mixer->fixed_token_bytes / 2;
    if (mixer->latent_dim) return latent_bytes(mixer, cache);
    return model_rank_kv_heads(mixer, tp) * element_row_bytes(cache, mixer->key_dim);
}

uint64_t model_layer_token_bytes(const struct model_mixer *mixer, enum element_type cache, uint32_t tp)
{
    if (mixer->shares_cache) return 0;
    if (mixer->fixed_token_bytes) return mixer->fixed_token_bytes;
    if (mixer->fixed_key_bytes) return 2 * mixer->fixed_key_bytes;
    uint64_t keys = model_layer_key_bytes(mixer, cache, tp);
    if (mixer->kind == MIXER_STATE || mixer->latent_dim) return keys;
    return keys + model_rank_kv_heads(mixer, tp) * element_row_bytes(cache, mixer->value_dim);
}

uint64_t model_token_bytes(const struct model_shape *shape, enum element_type cache, const struct model_part *part)
{
    u128 bytes = 0;
    for (uint32_t m = 0; m < shape->mixer_count; m++)
        bytes += (u128)model_stage_layers(shape, part, m) *
                 model_layer_token_bytes(&shape->mixers[m], cache, part->tp);
    return narrow(bytes);
}

uint64_t model_layer_recurrent_bytes(const struct model_mixer *mixer, uint32_t tp)
{
    if (mixer->kind != MIXER_STATE) return 0;
    if (mixer->fixed_recurrent_bytes) return mixer->fixed_recurrent_bytes;
    u128 elements = (u128)ceil_div(mixer->state_heads, tp) * mixer->state_rows * mixer->state_cols;
    return narrow(element_bytes(mixer->state_type, elements));
}

uint64_t model_layer_conv_bytes(const struct model_mixer *mixer, uint32_t tp)
{
    if (mixer->kind != MIXER_STATE) return 0;
    if (mixer->fixed_conv_bytes || mixer->fixed_recurrent_bytes) return mixer->fixed_conv_bytes;
    /* Groups that ranks cannot share evenly are repeated until each rank has one. */
    uint64_t groups = mixer->conv_groups;
    if (groups && groups % tp != 0) groups = groups < tp ? tp : ceil_div(groups, tp) * tp;
    uint64_t channels = ceil_div(mixer->conv_split_channels + groups * mixer->conv_group_channels, tp);
    return narrow(element_bytes(mixer->conv_type, (u128)mixer->conv_rows * channels));
}

uint64_t model_state_bytes(const struct model_shape *shape, const struct model_part *part)
{
    u128 bytes = 0;
    for (uint32_t m = 0; m < shape->mixer_count; m++)
        bytes += (u128)model_stage_layers(shape, part, m) *
                 ((u128)model_layer_recurrent_bytes(&shape->mixers[m], part->tp) +
                  model_layer_conv_bytes(&shape->mixers[m], part->tp));
    return narrow(bytes);
}

/* --- parameters ------------------------------------------------------------------------------ */

/* Sums in 128 bits; narrowed once. */
struct sums {
    u128 embedding, head, mixers, dense_mlp, routers, experts, experts_active, shared_experts, other;
};

static void add_mixers(struct sums *s, const struct model_shape *shape, uint32_t layer, uint32_t tp)
{
    for (uint32_t m = 0; m < shape->mixer_count; m++) {
        const struct model_mixer *mixer = &shape->mixers[m];
        if (!(shape->layer_mixers[layer] & (1u << m))) continue;
        /* A head that several ranks need is on each of them. */
        uint64_t kv_ranks = mixer->kv_heads && mixer->kv_heads < tp ? mixer->kv_heads : tp;
        s->mixers += ceil_div(mixer->split_parameters, tp) + ceil_div(mixer->kv_parameters, kv_ranks) +
                     mixer->whole_parameters;
    }
}

static void add_mlp(struct sums *s, const struct model_shape *shape, uint32_t layer, const struct model_part *part)
{
    const uint64_t matrices = shape->gated_mlp ? 3 : 2;
    const u128 hidden = shape->hidden;
    if (shape->layer_mlp[layer] == MLP_DENSE) {
        s->dense_mlp += matrices * hidden * ceil_div(shape->intermediate, part->tp) + shape->mlp_bias;
        return;
    }
    if (shape->layer_mlp[layer] != MLP_EXPERTS) return;
    u128 expert_hidden = shape->expert_hidden ? shape->expert_hidden : hidden;
    u128 expert = matrices * expert_hidden * shape->expert_intermediate + shape->expert_bias;
    u128 all = expert * shape->experts;
    s->experts += part->ep ? expert * ceil_div(shape->experts, part->ep) : (all + part->tp - 1) / part->tp;
    /* The share of a rank that one token passes, on average. */
    u128 active = expert * shape->experts_active;
    uint32_t ranks = part->ep ? part->ep : part->tp;
    s->experts_active += (active + ranks - 1) / ranks;
    s->shared_experts += matrices * hidden * ceil_div(shape->shared_intermediate, part->tp);
    s->routers += hidden * shape->experts + shape->router_bias + 2 * hidden * shape->expert_hidden; /* into that width and back */
}

void model_parameters(const struct model_shape *shape, const struct model_part *part,
                      struct model_parameters *p)
{
    memset(p, 0, sizeof *p);
    if (shape->hidden == 0) return;
    struct sums s = {0};
    uint32_t begin, end;
    model_stage(shape, part, &begin, &end);
    for (uint32_t i = begin; i < end; i++) {
        add_mixers(&s, shape, i, part->tp);
        add_mlp(&s, shape, i, part);
        s.other += shape->layer_norms;
    }
    u128 table = (u128)shape->hidden * ceil_div(shape->vocabulary, part->tp);
    bool first = part->pp_rank == 0, last = part->pp_rank + 1 == part->pp;
    if (first) s.embedding = table;
    /* A head that is the embedding exists twice only when they are on different ranks. */
    if (last && (!shape->tied_embeddings || !first)) s.head = table;
    if (last) s.other += shape->other_parameters;
    *p = (struct model_parameters){
        .embedding = narrow(s.embedding),
        .head = narrow(s.head),
        .mixers = narrow(s.mixers),
        .dense_mlp = narrow(s.dense_mlp),
        .routers = narrow(s.routers),
        .experts = narrow(s.experts),
        .experts_active = narrow(s.experts_active),
        .shared_experts = narrow(s.shared_experts),
        .other = narrow(s.other),
    };
}

uint64_t model_parameters_total(const struct model_parameters *p)
{
    return narrow((u128)p->embedding + p->head + p->mixers + p->dense_mlp + p->routers + p->experts +
                  p->shared_experts + p->other);
}

uint64_t model_parameters_active(const struct model_parameters *p)
{
    return narrow((u128)p->embedding + p->head + p->mixers + p->dense_mlp + p->routers + p->experts_active +
                  p->shared_experts + p->other);
}

enum element_type model_checkpoint_type(const struct model_shape *shape)
{
    return shape->quantized ? shape->quantized_type : shape->type;
}

uint64_t model_weight_bytes(const struct model_shape *shape, enum element_type type, const struct model_part *part)
{
    struct model_parameters p;
    model_parameters(shape, part, &p);
    bool small = element_type_is_small(type);
    enum element_type kept = small && !element_type_is_small(shape->type) ? shape->type : type;
    bool experts_only = small && shape->quantized_experts_only;
    u128 matrices = (u128)p.mixers + p.dense_mlp + p.shared_experts;
    u128 others = (u128)p.embedding + p.head + p.routers + p.other;
    return narrow(element_bytes(type, p.experts) + element_bytes(experts_only ? kept : type, matrices) +
                  element_bytes(kept, others));
}

/* --- arithmetic ---------------------------------------------------------------------------- */

static double layer_flops(const struct model_mixer *mixer, uint64_t context_tokens)
{
    if (mixer->kind == MIXER_STATE)
        return 6.0 * (double)mixer->state_heads * (double)mixer->state_rows * (double)mixer->state_cols;
    uint64_t seen = mixer->window_tokens ? min_u64(context_tokens, mixer->window_tokens) : context_tokens;
    double width = mixer->latent_dim ? (double)(2 * mixer->latent_dim + mixer->rope_dim)
                                     : (double)(mixer->key_dim + mixer->value_dim);
    return 2.0 * (double)mixer->heads * width * (double)seen;
}

double model_token_flops(const struct model_shape *shape, uint64_t context_tokens)
{
    struct model_parameters p;
    model_parameters(shape, &MODEL_WHOLE, &p);
    uint64_t head = shape->tied_embeddings ? p.embedding : p.head;
    double flops = 2.0 * ((double)p.mixers + (double)p.dense_mlp + (double)p.routers +
                          (double)p.experts_active + (double)p.shared_experts + (double)head);
    for (uint32_t m = 0; m < shape->mixer_count; m++)
        flops += layer_flops(&shape->mixers[m], context_tokens) * (double)shape->mixers[m].layers;
    return flops;
}
