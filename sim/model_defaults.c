/* What Hugging Face transformers' configuration classes assume where a config.json is silent: the fields that matter here. A type that
 * is listed with {} is known and has no defaults that differ from Llama's reading. */
#include <stddef.h>
#include <string.h>

#include "sim/model_config.h"

static const struct {
    const char *types; /* "|a|b|" */
    const char *json;
} DEFAULTS[] = {
    {"|llama|", "{\"hidden_size\":4096,\"intermediate_size\":11008,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
                "\"vocab_size\":32000,\"max_position_embeddings\":2048}"},
    {"|mistral|ministral|", "{\"hidden_size\":4096,\"intermediate_size\":14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
                            "\"num_key_value_heads\":8,\"vocab_size\":32000,\"max_position_embeddings\":131072}"},
    {"|mixtral|", "{\"hidden_size\":4096,\"intermediate_size\":14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
                  "\"num_key_value_heads\":8,\"vocab_size\":32000,\"num_local_experts\":8,\"num_experts_per_tok\":2,"
                  "\"max_position_embeddings\":131072}"},
    {"|qwen2|qwen2_vl|qwen2_5_vl|qwen2_vl_text|qwen2_5_vl_text|",
     "{\"hidden_size\":4096,\"intermediate_size\":22016,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
     "\"vocab_size\":151936,\"max_window_layers\":28,\"max_position_embeddings\":32768}"},
    {"|qwen2_moe|", "{\"hidden_size\":2048,\"intermediate_size\":5632,\"num_hidden_layers\":24,\"num_attention_heads\":16,\"num_key_value_heads\":16,"
                    "\"vocab_size\":151936,\"moe_intermediate_size\":1408,\"shared_expert_intermediate_size\":5632,"
                    "\"num_experts\":60,\"num_experts_per_tok\":4,\"max_window_layers\":28,\"max_position_embeddings\":32768}"},
    {"|qwen3|qwen3_vl_text|", "{\"hidden_size\":4096,\"intermediate_size\":22016,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
                              "\"head_dim\":128,\"vocab_size\":151936,\"max_window_layers\":28,\"max_position_embeddings\":32768}"},
    {"|qwen3_moe|qwen3_vl_moe_text|", "{\"hidden_size\":2048,\"intermediate_size\":6144,\"num_hidden_layers\":24,\"num_attention_heads\":32,"
                    "\"num_key_value_heads\":4,\"vocab_size\":151936,\"moe_intermediate_size\":768,\"num_experts\":128,"
                    "\"num_experts_per_tok\":8,\"max_window_layers\":28,\"max_position_embeddings\":32768}"},
    {"|qwen3_next|", "{\"hidden_size\":2048,\"intermediate_size\":5632,\"num_hidden_layers\":48,\"num_attention_heads\":16,"
                     "\"num_key_value_heads\":2,\"head_dim\":256,\"vocab_size\":151936,\"linear_conv_kernel_dim\":4,"
                     "\"linear_key_head_dim\":128,\"linear_value_head_dim\":128,\"linear_num_key_heads\":16,"
                     "\"linear_num_value_heads\":32,\"moe_intermediate_size\":512,\"shared_expert_intermediate_size\":512,"
                     "\"num_experts\":512,\"num_experts_per_tok\":10,\"full_attention_interval\":4,\"max_position_embeddings\":32768}"},
    {"|qwen3_5_text|", "{\"hidden_size\":4096,\"intermediate_size\":12288,\"num_hidden_layers\":32,\"num_attention_heads\":16,"
                       "\"num_key_value_heads\":4,\"head_dim\":256,\"vocab_size\":248320,\"linear_conv_kernel_dim\":4,"
                       "\"linear_key_head_dim\":128,\"linear_value_head_dim\":128,\"linear_num_key_heads\":16,"
                       "\"linear_num_value_heads\":32,\"full_attention_interval\":4,\"max_position_embeddings\":32768}"},
    {"|qwen3_5_moe_text|", "{\"hidden_size\":2048,\"intermediate_size\":5632,\"num_hidden_layers\":40,\"num_attention_heads\":16,"
                           "\"num_key_value_heads\":2,\"head_dim\":256,\"vocab_size\":248320,\"linear_conv_kernel_dim\":4,"
                           "\"linear_key_head_dim\":128,\"linear_value_head_dim\":128,\"linear_num_key_heads\":16,"
                           "\"linear_num_value_heads\":32,\"moe_intermediate_size\":512,\"shared_expert_intermediate_size\":512,"
                           "\"num_experts\":256,\"num_experts_per_tok\":8,\"full_attention_interval\":4,\"max_position_embeddings\":32768}"},
    {"|gemma|", "{\"hidden_size\":3072,\"intermediate_size\":24576,\"num_hidden_layers\":28,\"num_attention_heads\":16,"
                "\"num_key_value_heads\":16,\"head_dim\":256,\"vocab_size\":256000,\"tie_word_embeddings\":true,"
                "\"max_position_embeddings\":8192}"},
    {"|gemma2|", "{\"hidden_size\":2304,\"intermediate_size\":9216,\"num_hidden_layers\":26,\"num_attention_heads\":8,"
                 "\"num_key_value_heads\":4,\"head_dim\":256,\"vocab_size\":256000,\"tie_word_embeddings\":true,\"sliding_window\":4096,"
                 "\"max_position_embeddings\":8192}"},
    {"|gemma3_text|", "{\"hidden_size\":2304,\"intermediate_size\":9216,\"num_hidden_layers\":26,\"num_attention_heads\":8,"
                      "\"num_key_value_heads\":4,\"head_dim\":256,\"vocab_size\":262208,\"tie_word_embeddings\":true,"
                      "\"sliding_window\":4096,\"sliding_window_pattern\":6,\"max_position_embeddings\":131072}"},
    {"|gemma3n_text|gemma4_text|", "{\"tie_word_embeddings\":true,\"sliding_window\":512,\"sliding_window_pattern\":6,\"head_dim\":256}"},
    {"|deepseek|", "{\"num_experts_per_tok\":6,\"first_k_dense_replace\":0,\"moe_layer_freq\":1}"},
    {"|deepseek_v2|", "{\"hidden_size\":4096,\"intermediate_size\":11008,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
                      "\"vocab_size\":32000,\"kv_lora_rank\":512,\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"qk_nope_head_dim\":128,"
                      "\"moe_intermediate_size\":1407,\"moe_layer_freq\":1,\"max_position_embeddings\":2048}"},
    {"|deepseek_v3|deepseek_v32|kimi_k2|",
     "{\"hidden_size\":7168,\"intermediate_size\":18432,\"num_hidden_layers\":61,\"num_attention_heads\":128,\"vocab_size\":129280,"
     "\"kv_lora_rank\":512,\"q_lora_rank\":1536,\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"qk_nope_head_dim\":128,"
     "\"moe_intermediate_size\":2048,\"n_routed_experts\":256,\"n_shared_experts\":1,\"num_experts_per_tok\":8,"
     "\"first_k_dense_replace\":3,\"max_position_embeddings\":4096}"},
    {"|gpt_oss|", "{\"hidden_size\":2880,\"intermediate_size\":2880,\"num_hidden_layers\":36,\"num_attention_heads\":64,"
                  "\"num_key_value_heads\":8,\"head_dim\":64,\"vocab_size\":201088,\"num_local_experts\":128,"
                  "\"num_experts_per_tok\":4,\"sliding_window\":128,\"attention_bias\":true,\"max_position_embeddings\":131072}"},
    {"|jamba|", "{\"hidden_size\":4096,\"intermediate_size\":14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
                "\"num_key_value_heads\":8,\"vocab_size\":65536,\"num_experts\":16,\"num_experts_per_tok\":2,"
                "\"attn_layer_period\":8,\"attn_layer_offset\":4,\"expert_layer_period\":2,\"expert_layer_offset\":1,"
                "\"mamba_d_state\":16,\"mamba_d_conv\":4,\"mamba_expand\":2,\"max_position_embeddings\":262144}"},
    {"|bamba|", "{\"hidden_size\":4096,\"intermediate_size\":14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
                "\"num_key_value_heads\":8,\"vocab_size\":128000,\"mamba_n_heads\":128,\"mamba_n_groups\":1,\"mamba_d_state\":256,"
                "\"mamba_d_conv\":4,\"mamba_expand\":2,\"max_position_embeddings\":262144}"},
    {"|granitemoehybrid|", "{\"mamba_n_heads\":128,\"mamba_n_groups\":1,\"mamba_d_state\":256,\"mamba_d_conv\":4,\"mamba_expand\":2,"
                           "\"max_position_embeddings\":2048}"},
    {"|zamba2|", "{\"hidden_size\":2560,\"num_hidden_layers\":54,\"num_attention_heads\":32,\"vocab_size\":32000,\"tie_word_embeddings\":true,"
                 "\"mamba_d_state\":64,\"mamba_d_conv\":4,\"mamba_expand\":2,\"mamba_ngroups\":1,\"mamba_headdim\":64,"
                 "\"num_mem_blocks\":1,\"intermediate_size\":10240,\"max_position_embeddings\":4096}"},
    {"|nemotron_h|", "{\"hidden_size\":4096,\"intermediate_size\":21504,\"num_hidden_layers\":52,\"num_attention_heads\":32,"
                     "\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":131072,\"ssm_state_size\":128,\"mamba_num_heads\":128,"
                     "\"n_groups\":8,\"mamba_head_dim\":64,\"conv_kernel\":4,\"max_position_embeddings\":4096}"},
    {"|falcon_h1|", "{\"hidden_size\":4096,\"intermediate_size\":14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
                    "\"num_key_value_heads\":8,\"vocab_size\":128000,\"mamba_d_ssm\":1024,\"mamba_n_heads\":128,\"mamba_n_groups\":1,"
                    "\"mamba_d_state\":256,\"mamba_d_conv\":4,\"mamba_expand\":2,\"max_position_embeddings\":8192}"},
    {"|minimax|", "{\"hidden_size\":4096,\"intermediate_size\":14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
                  "\"num_key_value_heads\":8,\"vocab_size\":32000,\"num_local_experts\":8,\"num_experts_per_tok\":2,"
                  "\"max_position_embeddings\":131072}"},
    {"|opt|", "{\"hidden_size\":768,\"ffn_dim\":3072,\"num_hidden_layers\":12,\"num_attention_heads\":12,\"vocab_size\":50272,"
              "\"tie_word_embeddings\":true,\"max_position_embeddings\":2048}"},
    {"|gpt2|gpt_bigcode|", "{\"n_embd\":768,\"n_layer\":12,\"n_head\":12,\"vocab_size\":50257,\"n_positions\":1024,\"tie_word_embeddings\":true}"},
    {"|gpt_neox|", "{\"hidden_size\":6144,\"intermediate_size\":24576,\"num_hidden_layers\":44,\"num_attention_heads\":64,"
                   "\"vocab_size\":50432,\"max_position_embeddings\":2048}"},
    {"|falcon|", "{\"hidden_size\":4544,\"num_hidden_layers\":32,\"num_attention_heads\":71,\"vocab_size\":65024,\"tie_word_embeddings\":true,"
                 "\"max_position_embeddings\":2048}"},
    {"|phi3|", "{\"hidden_size\":3072,\"intermediate_size\":8192,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
               "\"vocab_size\":32064,\"max_position_embeddings\":4096}"},
    {"|llama4_text|", "{\"hidden_size\":5120,\"intermediate_size\":8192,\"intermediate_size_mlp\":16384,\"num_hidden_layers\":48,"
                      "\"num_attention_heads\":40,\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":202048,"
                      "\"num_local_experts\":16,\"num_experts_per_tok\":1,\"interleave_moe_layer_step\":1,\"attention_chunk_size\":8192,"
                      "\"max_position_embeddings\":131072}"},
    {"|cohere|", "{\"tie_word_embeddings\":true}"},
    {"|cohere2|", "{\"tie_word_embeddings\":true,\"sliding_window\":4096,\"sliding_window_pattern\":4}"},
    {"|bloom|starcoder2|", "{\"tie_word_embeddings\":true}"},
    {"|mamba|mamba2|falcon_mamba|", "{\"tie_word_embeddings\":true,\"conv_kernel\":4,\"expand\":2}"},
    {"|phi|phimoe|gptj|codegen|mpt|nemotron|stablelm|olmo|olmo2|olmoe|granite|granitemoe|exaone|internlm2|baichuan|chatglm|glm|glm4|glm4_moe|"
     "minimax_text_01|minimax_m1|minimax_m2|kimi_linear|lfm2|lfm2_moe|mimo|mimo_v2_flash|seed_oss|smollm3|ernie4_5|ernie4_5_moe|hunyuan_v1_dense|"
     "hunyuan_v1_moe|mistral3|pixtral|arcee|apertus|dots1|",
     "{}"},
};

const char *config_defaults(const char *type)
{
    char key[80] = "|";
    strncat(key, type, 64);
    strcat(key, "|");
    for (size_t i = 0; i < sizeof DEFAULTS / sizeof DEFAULTS[0]; i++)
        if (type[0] && strstr(DEFAULTS[i].types, key)) return DEFAULTS[i].json;
    return NULL;
}
