/* Attention in a config.json: heads, what is cached of a token, parameters. */
#include <inttypes.h>

#include "sim/model_config.h"

/* DeepSeek-V2's multi-head latent attention: one compressed row a token. */
static void latent(struct config_reader *r, struct model_mixer *mixer, uint64_t latent_dim)
{
    uint64_t nope = config_count(r, "qk_nope_head_dim", CONFIG_REQUIRED, CONFIG_DIM_MAX);
    uint64_t rope = config_count(r, "qk_rope_head_dim", CONFIG_REQUIRED, CONFIG_DIM_MAX);
    uint64_t value = config_count(r, "v_head_dim", CONFIG_REQUIRED, CONFIG_DIM_MAX);
    uint64_t query_rank = config_count(r, "q_lora_rank", 0, CONFIG_DIM_MAX);
    mixer->kv_heads = 1;
    mixer->latent_dim = latent_dim;
    mixer->rope_dim = rope;
    mixer->key_dim = nope + rope;
    mixer->value_dim = value;
    uint64_t queries = mixer->heads * (nope + rope);
    mixer->split_parameters = (query_rank ? query_rank : r->hidden) * queries +
                              latent_dim * mixer->heads * (nope + value) + mixer->heads * value * r->hidden;
    mixer->whole_parameters =
        (query_rank ? r->hidden * query_rank + query_rank : 0) + r->hidden * (latent_dim + rope) + latent_dim;
    /* DeepSeek-V3.2's indexer keeps an FP8 key with a 32-bit scale for 128 of its elements. */
    uint64_t index_dim = config_count(r, "index_head_dim", 0, CONFIG_DIM_MAX);
    uint64_t index_heads = config_count(r, "index_n_heads", 0, CONFIG_HEADS_MAX);
    if (index_dim == 0) return;
    mixer->index_row_bytes = index_dim + (index_dim + 127) / 128 * 4;
    mixer->whole_parameters +=
        query_rank * index_heads * index_dim + r->hidden * (index_dim + index_heads) + 2 * index_dim;
}

static uint64_t kv_heads(struct config_reader *r, bool sliding)
{
    /* Old multi-query models say so with a flag. */
    if (config_type_is(r, "|falcon|") && !config_bool(r, "new_decoder_architecture", false))
        return config_bool(r, "multi_query", true) ? 1 : r->heads;
    if (config_type_is(r, "|gpt_bigcode|") && config_bool(r, "multi_query", true)) return 1;
    uint64_t heads =
        config_count(r, "num_key_value_heads|num_kv_heads|n_head_kv|multi_query_group_num|num_query_groups", r->heads,
                     CONFIG_HEADS_MAX);
    if (sliding) heads = config_count(r, "swa_num_key_value_heads", heads, CONFIG_HEADS_MAX);
    if (!sliding) heads = config_count(r, "num_global_key_value_heads", heads, CONFIG_HEADS_MAX);
    return heads;
}

static uint64_t biases(const struct config_reader *r, const struct model_mixer *m, bool attention_bias)
{
    bool on_qkv =
        attention_bias ||
        config_type_is(
            r,
            "|opt|gpt2|gpt_neox|phi|starcoder2|bloom|gpt_oss|gpt_bigcode|qwen2|qwen2_moe|qwen2_vl|qwen2_5_vl|qwen2_5_vl_text|qwen2_vl_text|");
    bool on_output =
        on_qkv && !config_type_is(r, "|qwen2|qwen2_moe|qwen2_vl|qwen2_5_vl|qwen2_5_vl_text|qwen2_vl_text|glm4_moe|");
    uint64_t qkv = m->heads * m->key_dim + m->kv_heads * (m->key_dim + m->value_dim);
    return (on_qkv ? qkv : 0) + (on_output ? r->hidden : 0);
}

static void parameters(struct config_reader *r, struct model_mixer *mixer)
{
    uint64_t queries = mixer->heads * mixer->key_dim, values = mixer->heads * mixer->value_dim;
    /* Qwen3-Next: queries bring a gate for the output. */
    uint64_t gates =
        config_type_is(r, "|qwen3_next|qwen3_5_text|qwen3_5_moe_text|") || config_bool(r, "attn_output_gate", false)
            ? queries
            : 0;
    uint64_t input = config_type_is(r, "|zamba2|zamba|") ? 2 * r->hidden : r->hidden;
    mixer->split_parameters = input * (queries + gates) + values * r->hidden;
    mixer->kv_parameters = input * mixer->kv_heads * (mixer->key_dim + mixer->value_dim);
    /* Gemma 4: where keys are the values, one projection makes both; both are cached. Shared layers have none. */
    if (mixer->kind == MIXER_FULL && config_bool(r, "attention_k_eq_v", false)) mixer->kv_parameters /= 2;
    if (mixer->shares_cache) mixer->kv_parameters = 0;
    mixer->whole_parameters = biases(r, mixer, config_bool(r, "attention_bias|qkv_bias|add_qkv_bias", false));
    if (config_type_is(
            r,
            "|qwen3|qwen3_moe|qwen3_next|qwen3_5_text|qwen3_5_moe_text|gemma3_text|qwen3_vl_text|qwen3_vl_moe_text|lfm2|") ||
        config_bool(r, "use_qk_norm", false))
        mixer->whole_parameters += 2 * mixer->key_dim;
    if (config_type_is(r, "|gpt_oss|")) mixer->whole_parameters += mixer->heads; /* sinks */
}

/* The block of Zamba2 that layers share is counted once: attention on twice the width, MLP. Adapters are left out. */
static void shared_blocks(struct config_reader *r, struct model_mixer *mixer)
{
    uint64_t blocks = config_count(r, "num_mem_blocks", 1, 64);
    uint64_t width = r->shape->intermediate ? r->shape->intermediate : 4 * r->hidden;
    r->shape->other_parameters += blocks * (mixer->split_parameters + mixer->kv_parameters + 3 * r->hidden * width);
    mixer->split_parameters = r->hidden * r->hidden; /* the linear layer back into the stream */
    mixer->kv_parameters = 0;
    model_note(r->shape, "adapters of shared blocks are not counted");
}

void config_attention(struct config_reader *r, struct model_mixer *mixer, bool sliding)
{
    r->heads = config_count(r, "num_attention_heads|n_head|n_heads", CONFIG_REQUIRED, CONFIG_HEADS_MAX);
    if (!r->failed && r->heads == 0) config_fail(r, "num_attention_heads", "found 0, expected 1 or more");
    if (r->failed) return;
    mixer->heads = sliding ? config_count(r, "swa_num_attention_heads", r->heads, CONFIG_HEADS_MAX) : r->heads;
    if (sliding)
        mixer->window_tokens = config_count(
            r, mixer->kind == MIXER_CHUNKED ? "attention_chunk_size" : "sliding_window|sliding_window_size",
            CONFIG_REQUIRED, (uint64_t)1 << 40);
    uint64_t latent_dim = config_count(r, "kv_lora_rank", 0, CONFIG_DIM_MAX);
    if (latent_dim) {
        latent(r, mixer, latent_dim);
        return;
    }
    uint64_t width = config_type_is(r, "|zamba2|zamba|") ? 2 * r->hidden : r->hidden;
    mixer->kv_heads = kv_heads(r, sliding);
    mixer->key_dim = config_count(r, "head_dim|attention_head_dim|kv_channels", width / r->heads, CONFIG_DIM_MAX);
    mixer->value_dim = config_count(r, "v_head_dim", mixer->key_dim, CONFIG_DIM_MAX);
    if (sliding) {
        mixer->key_dim = config_count(r, "swa_head_dim", mixer->key_dim, CONFIG_DIM_MAX);
        mixer->value_dim = config_count(
            r, "swa_v_head_dim", config_value(r, "swa_head_dim") ? mixer->key_dim : mixer->value_dim, CONFIG_DIM_MAX);
    } else if (config_value(r, "global_head_dim")) {
        mixer->key_dim = mixer->value_dim = config_count(r, "global_head_dim", mixer->key_dim, CONFIG_DIM_MAX);
    }
    if (!r->failed && (mixer->kv_heads == 0 || mixer->key_dim == 0))
        config_fail(r, mixer->kv_heads ? "head_dim" : "num_key_value_heads", "found 0, expected 1 or more");
    if (!r->failed && mixer->kv_heads > mixer->heads)
        config_fail(r, "num_key_value_heads", "found %" PRIu64 ", expected at most the %" PRIu64 " attention heads",
                    mixer->kv_heads, mixer->heads);
    parameters(r, mixer);
    if (config_type_is(r, "|zamba2|zamba|")) shared_blocks(r, mixer);
}
