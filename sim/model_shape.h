/* What memory and time depend on in a model: its layers, their caches and states, its parameters.
 *
 * A shape comes from a Hugging Face config.json as it is (model_shape_read), from a preset, whose text is such a file
 * (model_shape_preset), or from three numbers (model_shape_plain). Each of them bounds every dimension, so that no sum or product below
 * passes 128 bits; results of 64 bits saturate at UINT64_MAX, which no accepted shape with at most 4,096 ranks reaches
 * (model_shape_* refuse those of more than 2^60 bytes of weights).
 *
 * Sources of the rules: config classes of Hugging Face transformers 4.57 for fields and their defaults; vLLM 0.11 to 0.19 for what a
 * rank holds (kv heads replicated when there are fewer than ranks, MLA latents never divided, experts divided over
 * expert-parallel ranks, get_pp_indices for the layers of a pipeline stage, MambaStateShapeCalculator for states). */
#ifndef PAGESIM_MODEL_SHAPE_H
#define PAGESIM_MODEL_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/element_type.h"
#include "workloads/err.h"

#define MODEL_LAYERS_MAX 4096u
#define MODEL_MIXERS_MAX 8u
#define MODEL_RANKS_MAX 4096u
#define MODEL_NOTE_BYTES 320u

enum mixer_kind {
    MIXER_FULL,    /* attention to all tokens */
    MIXER_SLIDING, /* attention to the last window_tokens, this one included */
    MIXER_CHUNKED, /* attention within chunks of window_tokens (Llama 4) */
    MIXER_STATE,   /* a state of fixed size for a sequence: Mamba, linear attention, short convolution */
};

/* What mixes tokens in a layer. A layer has one, or an attention and a state (Falcon-H1, Zamba2). */
struct model_mixer {
    enum mixer_kind kind;
    uint64_t layers;   /* of the whole model that have it */
    uint64_t heads;    /* query heads; 0: not known */
    uint64_t kv_heads; /* of the whole model */
    uint64_t key_dim, value_dim; /* of one head, as cached; MLA: of one head before compression */
    uint64_t latent_dim, rope_dim; /* MLA: the cached row is latent_dim + rope_dim, one for all heads; else 0 */
    uint64_t index_row_bytes; /* beside the row of MLA: keys of a sparse attention's indexer, with scales; else 0 */
    uint64_t window_tokens;   /* SLIDING, CHUNKED; else 0 */
    bool shares_cache;        /* attends to the keys and values of an earlier layer, has none of its own (Gemma 3n) */

    /* STATE: state_heads x state_rows x state_cols elements of state_type, and conv_rows x conv_channels of conv_type.
     * conv_channels = conv_split_channels + conv_groups x conv_group_channels. */
    uint64_t state_heads, state_rows, state_cols;
    uint64_t conv_rows, conv_split_channels, conv_groups, conv_group_channels;
    enum element_type state_type, conv_type;
    const char *state_name; /* "mamba", "mamba2", "linear attention", ... */

    /* Bytes of one layer on one rank, as given instead of following from the above; 0: not given. */
    uint64_t fixed_token_bytes, fixed_key_bytes, fixed_recurrent_bytes, fixed_conv_bytes;

    /* Parameters of one layer's mixer: divided by the ranks; divided by min(ranks, kv heads); on every rank. */
    uint64_t split_parameters, kv_parameters, whole_parameters;
};

enum mlp_kind { MLP_NONE, MLP_DENSE, MLP_EXPERTS };

struct model_shape {
    char name[128];         /* of the preset or file, for messages */
    char architecture[64];  /* model_type */
    uint32_t layers;
    uint32_t mixer_count;
    struct model_mixer mixers[MODEL_MIXERS_MAX];
    uint8_t layer_mixers[MODEL_LAYERS_MAX]; /* bit m: the layer has mixers[m] */
    uint8_t layer_mlp[MODEL_LAYERS_MAX];    /* enum mlp_kind */

    /* Zero when only the cache's shape is known (model_shape_plain): then there are no parameters and no FLOPs. */
    uint64_t hidden, vocabulary, intermediate;
    bool gated_mlp;                  /* three matrices instead of two */
    uint64_t experts, experts_active, expert_intermediate; /* routed, of one layer */
    uint64_t expert_hidden;          /* width that routed experts see; 0: hidden */
    uint64_t shared_intermediate;    /* width of the shared experts together */
    uint64_t mlp_bias, expert_bias, router_bias; /* parameters of one layer; expert_bias: of one expert */
    uint64_t layer_norms;            /* parameters of a layer's norms */
    uint64_t other_parameters;       /* counted once: final norm, positions, blocks that layers share */
    bool tied_embeddings;            /* the head is the embedding */
    uint64_t max_positions;          /* max_position_embeddings; 0: unknown */

    enum element_type type;          /* torch_dtype */
    bool quantized;                  /* the checkpoint has quantization_config that is understood */
    enum element_type quantized_type;
    bool quantized_experts_only;     /* attention stays in `type` (gpt-oss) */
    bool cache_fp8;                  /* the checkpoint brings scales for an FP8 cache */

    /* What was assumed or left out, "; " between; "" when nothing. To be shown to the user. */
    char note[MODEL_NOTE_BYTES];
};

/* Parameters by what they are for. Embeddings and head are never quantized. */
struct model_parameters {
    uint64_t embedding, head;
    uint64_t mixers;         /* attention, Mamba and the like, projections included */
    uint64_t dense_mlp;
    uint64_t routers;
    uint64_t experts;        /* routed */
    uint64_t experts_active; /* of them, those that one token passes */
    uint64_t shared_experts;
    uint64_t other;          /* norms, positions */
};

/* One rank of many. tp: tensor-parallel ranks; pp: pipeline stages, of which this is stage pp_rank; ep: ranks over which
 * whole experts are spread, 0: experts are cut like the rest. */
struct model_part {
    uint32_t tp, pp, pp_rank, ep;
};
#define MODEL_WHOLE ((struct model_part){1, 1, 0, 0})

/* A model of `layers` equal attention layers, of which nothing but the cache is known. -1 with err when out of range.
 * heads: query heads, 0 when unknown; windows: 0, or every layer slides. */
int model_shape_plain(struct model_shape *shape, uint64_t layers, uint64_t heads, uint64_t kv_heads,
                      uint64_t key_dim, uint64_t value_dim, uint64_t window_tokens, struct err *err);
/* A config.json, or a folder that holds one. -1 with err: file, field, found, expected. */
int model_shape_read(struct model_shape *shape, const char *path, struct err *err);
/* The same from memory; `what` is what messages call it. */
int model_shape_parse(struct model_shape *shape, const char *text, size_t bytes, const char *what,
                      struct err *err);

struct model_preset {
    const char *name;    /* "llama-3-8b" */
    const char *aliases; /* Hugging Face ids, "|meta-llama/Meta-Llama-3-8B|...|" */
    const char *config;  /* text of a config.json, cut to the fields that matter */
    const char *source;
};
size_t model_preset_count(void);
const struct model_preset *model_preset_at(size_t i);
/* By name or alias, in any case. NULL: none. */
const struct model_preset *model_preset_find(const char *name);
/* -1 with err when there is no such preset. */
int model_shape_preset(struct model_shape *shape, const char *name, struct err *err);

/* Layers [*begin, *end) of a stage, as vLLM's get_pp_indices cuts them. */
void model_stage(const struct model_shape *shape, const struct model_part *part, uint32_t *begin, uint32_t *end);
/* Layers of the stage that have mixers[m]. */
uint64_t model_stage_layers(const struct model_shape *shape, const struct model_part *part, uint32_t m);

/* Heads that one of tp ranks caches: max(1, kv_heads / tp). */
uint64_t model_rank_kv_heads(const struct model_mixer *mixer, uint32_t tp);
/* Cache bytes of one token in one layer on one rank; 0 for STATE. */
uint64_t model_layer_token_bytes(const struct model_mixer *mixer, enum element_type cache, uint32_t tp);
/* The same, keys (or the latent) alone. */
uint64_t model_layer_key_bytes(const struct model_mixer *mixer, enum element_type cache, uint32_t tp);
/* Cache bytes of one token over all attention layers of the part, every layer counted in full. */
uint64_t model_token_bytes(const struct model_shape *shape, enum element_type cache, const struct model_part *part);
/* State bytes of one sequence in one layer on one rank: recurrent, convolution, both. */
uint64_t model_layer_recurrent_bytes(const struct model_mixer *mixer, uint32_t tp);
uint64_t model_layer_conv_bytes(const struct model_mixer *mixer, uint32_t tp);
/* State bytes of one sequence over all layers of the part. */
uint64_t model_state_bytes(const struct model_shape *shape, const struct model_part *part);

/* Parameters that a part holds; all zero when hidden is 0. MODEL_WHOLE: the model's. */
void model_parameters(const struct model_shape *shape, const struct model_part *part,
                      struct model_parameters *parameters);
uint64_t model_parameters_total(const struct model_parameters *p);
/* Those that one token passes, embedding included. */
uint64_t model_parameters_active(const struct model_parameters *p);
/* Bytes of a part's weights when its matrices (or its experts only, if the shape says so) are in `type`: embeddings, head, routers and
 * norms stay in shape->type if that is wider. 0 when hidden is 0. */
uint64_t model_weight_bytes(const struct model_shape *shape, enum element_type type, const struct model_part *part);
/* The type in which the checkpoint's matrices are stored. */
enum element_type model_checkpoint_type(const struct model_shape *shape);

/* FLOPs to compute one token that attends to `context` tokens, whole model, head included. MLA is counted as decoding computes it, on
 * latents. States are counted as 6 an element. */
double model_token_flops(const struct model_shape *shape, uint64_t context_tokens);

/* Replaces what is no printable ASCII by '?': files may hold anything, terminals must not get it. */
void model_printable(char *text);
/* Adds a text to shape->note, printable. */
void model_note(struct model_shape *shape, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What every way of making a shape calls last: counts layers per mixer, bounds the sums. -1 with err (ERR_INPUT). */
int model_shape_finish(struct model_shape *shape, struct err *err);

#endif
