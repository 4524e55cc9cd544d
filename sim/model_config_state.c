/* Recurrent layers in a config.json: sizes of their states, parameters. Shapes of states as vLLM allocates them
 * (MambaStateShapeCalculator); Mamba-2 and gated delta net share one rule, so does Mamba-1. */
#include <string.h>

#include "sim/model_config.h"

static void mamba2(struct config_reader *r, struct model_mixer *m)
{
    uint64_t expand = config_count(r, "mamba_expand|expand", 2, 1024);
    uint64_t inner = config_count(r, "mamba_d_ssm", expand * r->hidden, CONFIG_DIM_MAX);
    m->state_name = "Mamba-2";
    json_t *dim = config_value(r, "mamba_head_dim|mamba_d_head|mamba_headdim");
    uint64_t heads = json_integer_value(dim) > 0 ? inner / (uint64_t)json_integer_value(dim) : CONFIG_REQUIRED;
    m->state_heads =
        config_count(r, "mamba_num_heads|mamba_n_heads|n_mamba_heads|num_heads", heads, CONFIG_HEADS_MAX);
    if (!r->failed && m->state_heads == 0) config_fail(r, "mamba_n_heads", "found 0, expected 1 or more");
    if (r->failed) return;
    uint64_t otherwise = config_type_is(r, "|mamba2|")
                             ? config_count(r, "head_dim", inner / m->state_heads, CONFIG_DIM_MAX)
                             : inner / m->state_heads;
    /* 'auto' in Bamba and Granite. */
    m->state_rows = json_is_string(dim)
                        ? otherwise
                        : config_count(r, "mamba_head_dim|mamba_d_head|mamba_headdim", otherwise, CONFIG_DIM_MAX);
    m->state_cols = config_count(r, "ssm_state_size|mamba_d_state|state_size", 128, CONFIG_DIM_MAX);
    m->conv_groups = config_count(r, "n_groups|mamba_n_groups|mamba_ngroups", 1, CONFIG_HEADS_MAX);
    m->conv_group_channels = 2 * m->state_cols;
    inner = m->state_heads * m->state_rows;
    uint64_t kernel = config_count(r, "conv_kernel|mamba_d_conv", 4, 4096);
    m->conv_rows = kernel ? kernel - 1 : 0;
    m->conv_split_channels = inner;
    uint64_t channels = inner + m->conv_groups * m->conv_group_channels;
    m->split_parameters = r->hidden * (inner + channels + m->state_heads) + channels * (kernel + 1) +
                          3 * m->state_heads + inner + inner * r->hidden;
}

static void mamba1(struct config_reader *r, struct model_mixer *m)
{
    uint64_t inner = config_count(r, "mamba_expand|expand", 2, 1024) * r->hidden;
    uint64_t rank = (r->hidden + 15) / 16;
    json_t *given = config_value(r, "mamba_dt_rank|time_step_rank");
    if (given && !json_is_string(given)) rank = config_count(r, "mamba_dt_rank|time_step_rank", rank, CONFIG_DIM_MAX);
    if (config_type_is(r, "|mamba|falcon_mamba|"))
        inner = config_count(r, "intermediate_size|d_inner", inner, CONFIG_DIM_MAX);
    uint64_t state = config_count(r, "mamba_d_state|state_size", 16, CONFIG_DIM_MAX);
    uint64_t kernel = config_count(r, "mamba_d_conv|conv_kernel", 4, 4096);
    m->state_name = "Mamba";
    m->state_heads = inner;
    m->state_rows = 1;
    m->state_cols = state;
    m->conv_rows = kernel ? kernel - 1 : 0;
    m->conv_split_channels = inner;
    m->split_parameters = r->hidden * 2 * inner + inner * (kernel + 1) + inner * (rank + 2 * state) + rank * inner +
                          inner + inner * state + inner + inner * r->hidden;
    m->whole_parameters = config_type_is(r, "|jamba|") ? rank + 2 * state : 0;
}

/* Qwen3-Next and later; Kimi Delta Attention has keys and values of one size. */
static void gated_delta(struct config_reader *r, struct model_mixer *m)
{
    uint64_t key_heads = config_count(r, "linear_num_key_heads", CONFIG_REQUIRED, CONFIG_HEADS_MAX);
    uint64_t value_heads = config_count(r, "linear_num_value_heads", key_heads, CONFIG_HEADS_MAX);
    uint64_t key_dim = config_count(r, "linear_key_head_dim", 128, CONFIG_DIM_MAX);
    uint64_t value_dim = config_count(r, "linear_value_head_dim", 128, CONFIG_DIM_MAX);
    uint64_t kernel = config_count(r, "linear_conv_kernel_dim", 4, 4096);
    uint64_t keys = key_heads * key_dim, values = value_heads * value_dim;
    m->state_name = "gated delta net";
    m->state_heads = value_heads;
    m->state_rows = value_dim;
    m->state_cols = key_dim;
    m->conv_rows = kernel ? kernel - 1 : 0;
    m->conv_split_channels = 2 * keys + values;
    m->split_parameters = r->hidden * (2 * keys + 2 * values + 2 * value_heads) + (2 * keys + values) * kernel +
                          2 * value_heads + values * r->hidden;
    m->whole_parameters = value_dim;
}

static uint64_t member(struct config_reader *r, json_t *object, const char *name, uint64_t otherwise)
{
    json_t *value = json_object_get(object, name);
    if (!value) return otherwise;
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 1 || (uint64_t)number > CONFIG_HEADS_MAX)
        config_fail(r, name, "expected a count of 1 to %d", 1 << 20);
    return r->failed ? 1 : (uint64_t)number;
}

static void kimi_delta(struct config_reader *r, struct model_mixer *m)
{
    json_t *linear = config_value(r, "linear_attn_config");
    uint64_t heads = member(r, linear, "num_heads", 32), dim = member(r, linear, "head_dim", 128);
    uint64_t kernel = member(r, linear, "short_conv_kernel_size", 4);
    m->state_name = "Kimi delta attention";
    m->state_heads = heads;
    m->state_rows = m->state_cols = dim;
    m->conv_rows = kernel - 1;
    m->conv_split_channels = 3 * heads * dim;
    m->split_parameters =
        r->hidden * heads * dim * 4 + 3 * heads * dim * kernel + heads * dim * dim * 2 + r->hidden * heads;
    m->whole_parameters = r->hidden * dim * 2;
}

/* MiniMax: lightning attention, a square state for each head, no convolution. */
static void lightning(struct config_reader *r, struct model_mixer *m)
{
    uint64_t heads = config_count(r, "num_attention_heads", CONFIG_REQUIRED, CONFIG_HEADS_MAX);
    uint64_t dim = config_count(r, "head_dim", heads ? r->hidden / heads : 0, CONFIG_DIM_MAX);
    m->state_name = "lightning attention";
    m->state_heads = heads;
    m->state_rows = m->state_cols = dim;
    m->split_parameters = 5 * r->hidden * heads * dim + heads * dim;
}

static void short_convolution(struct config_reader *r, struct model_mixer *m)
{
    uint64_t kernel = config_count(r, "conv_L_cache", 3, 4096);
    m->state_name = "short convolution";
    m->conv_rows = kernel ? kernel - 1 : 0;
    m->conv_split_channels = r->hidden;
    m->split_parameters = r->hidden * 4 * r->hidden + r->hidden * kernel;
}

/* The type of the recurrent part, where the file says more than torch_dtype. */
static void state_types(struct config_reader *r, struct model_mixer *m)
{
    m->state_type = m->conv_type = r->shape->type;
    const char *name = config_text(r, "mamba_ssm_cache_dtype|mamba_ssm_dtype");
    if (name && strcmp(name, "auto") != 0 && !element_type_find(name, ELEMENT_FOR_WEIGHTS, &m->state_type))
        config_fail(r, "mamba_ssm_dtype", "found '%.40s', expected a type like float32", name);
}

void config_state(struct config_reader *r, struct model_mixer *m)
{
    state_types(r, m);
    if (config_value(r, "linear_attn_config")) kimi_delta(r, m);
    else if (config_value(r, "linear_num_key_heads")) gated_delta(r, m);
    else if (config_value(r, "attn_type_list|decoder_attention_types") ||
             config_type_is(r, "|minimax|minimax_text_01|minimax_m1|"))
        lightning(r, m);
    else if (config_value(r, "conv_L_cache")) short_convolution(r, m);
    else if (config_type_is(r, "|jamba|mamba|falcon_mamba|zamba|")) mamba1(r, m);
    else mamba2(r, m);
}
