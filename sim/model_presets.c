/* Built-in models: the fields of their published config.json files that matter here, read as any other file. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sim/model_shape.h"

#define HUB(id) "https://huggingface.co/" id "/blob/main/config.json"
#define LLAMA(rest) "{\"model_type\":\"llama\",\"torch_dtype\":\"bfloat16\"," rest "}"
#define LLAMA2(rest) "{\"model_type\":\"llama\",\"torch_dtype\":\"float16\",\"vocab_size\":32000,\"max_position_embeddings\":4096," rest "}"
#define OPT(rest) "{\"model_type\":\"opt\",\"torch_dtype\":\"float16\",\"vocab_size\":50272,\"max_position_embeddings\":2048," rest "}"
#define LLAMA_8B                                                                                    \
    "\"hidden_size\":4096,\"intermediate_size\":14336,\"num_hidden_layers\":32,"                    \
    "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":128256"
#define LLAMA_70B                                                                                   \
    "\"hidden_size\":8192,\"intermediate_size\":28672,\"num_hidden_layers\":80,"                    \
    "\"num_attention_heads\":64,\"num_key_value_heads\":8,\"vocab_size\":128256"
#define GPT_OSS(layers, experts)                                                                    \
    "{\"model_type\":\"gpt_oss\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":2880,"                \
    "\"intermediate_size\":2880,\"num_hidden_layers\":" layers ",\"num_attention_heads\":64,"       \
    "\"num_key_value_heads\":8,\"head_dim\":64,\"vocab_size\":201088,\"num_local_experts\":" experts \
    ",\"num_experts_per_tok\":4,\"sliding_window\":128,\"attention_bias\":true,"                    \
    "\"max_position_embeddings\":131072,\"quantization_config\":{\"quant_method\":\"mxfp4\"}}"

static const struct model_preset PRESETS[] = {
    {"opt-13b", "|facebook/opt-13b|",
     OPT("\"hidden_size\":5120,\"ffn_dim\":20480,\"num_hidden_layers\":40,\"num_attention_heads\":40"),
     HUB("facebook/opt-13b")},
    {"opt-66b", "|facebook/opt-66b|",
     OPT("\"hidden_size\":9216,\"ffn_dim\":36864,\"num_hidden_layers\":64,\"num_attention_heads\":72"),
     HUB("facebook/opt-66b")},
    {"opt-175b", "|facebook/opt-175b|",
     OPT("\"hidden_size\":12288,\"ffn_dim\":49152,\"num_hidden_layers\":96,\"num_attention_heads\":96"),
     "Zhang et al., OPT: Open Pre-trained Transformer Language Models, 2022, table 1"},
    {"llama-2-7b", "|meta-llama/Llama-2-7b-hf|meta-llama/Llama-2-7b-chat-hf|",
     LLAMA2("\"hidden_size\":4096,\"intermediate_size\":11008,\"num_hidden_layers\":32,\"num_attention_heads\":32"),
     HUB("meta-llama/Llama-2-7b-hf")},
    {"llama-2-13b", "|meta-llama/Llama-2-13b-hf|meta-llama/Llama-2-13b-chat-hf|",
     LLAMA2("\"hidden_size\":5120,\"intermediate_size\":13824,\"num_hidden_layers\":40,\"num_attention_heads\":40"),
     HUB("meta-llama/Llama-2-13b-hf")},
    {"llama-2-70b", "|meta-llama/Llama-2-70b-hf|meta-llama/Llama-2-70b-chat-hf|",
     LLAMA2("\"hidden_size\":8192,\"intermediate_size\":28672,\"num_hidden_layers\":80,\"num_attention_heads\":64,\"num_key_value_heads\":8"),
     HUB("meta-llama/Llama-2-70b-hf")},
    {"llama-3-8b", "|meta-llama/Meta-Llama-3-8B|meta-llama/Meta-Llama-3-8B-Instruct|meta-llama/Llama-3-8B|meta-llama/Llama-3-8B-Instruct|",
     LLAMA(LLAMA_8B ",\"max_position_embeddings\":8192"), HUB("meta-llama/Meta-Llama-3-8B")},
    {"llama-3-70b", "|meta-llama/Meta-Llama-3-70B|meta-llama/Meta-Llama-3-70B-Instruct|meta-llama/Llama-3-70B|meta-llama/Llama-3-70B-Instruct|",
     LLAMA(LLAMA_70B ",\"max_position_embeddings\":8192"), HUB("meta-llama/Meta-Llama-3-70B")},
    {"llama-3.1-8b", "|meta-llama/Llama-3.1-8B|meta-llama/Llama-3.1-8B-Instruct|meta-llama/Meta-Llama-3.1-8B|meta-llama/Meta-Llama-3.1-8B-Instruct|",
     LLAMA(LLAMA_8B ",\"max_position_embeddings\":131072"), HUB("meta-llama/Llama-3.1-8B")},
    {"llama-3.1-70b",
     "|meta-llama/Llama-3.1-70B|meta-llama/Llama-3.1-70B-Instruct|meta-llama/Meta-Llama-3.1-70B|meta-llama/Meta-Llama-3.1-70B-Instruct|"
     "meta-llama/Llama-3.3-70B-Instruct|",
     LLAMA(LLAMA_70B ",\"max_position_embeddings\":131072"), HUB("meta-llama/Llama-3.1-70B")},
    {"llama-3.1-405b",
     "|meta-llama/Llama-3.1-405B|meta-llama/Llama-3.1-405B-Instruct|meta-llama/Meta-Llama-3.1-405B|meta-llama/Meta-Llama-3.1-405B-Instruct|",
     LLAMA("\"hidden_size\":16384,\"intermediate_size\":53248,\"num_hidden_layers\":126,\"num_attention_heads\":128,"
           "\"num_key_value_heads\":8,\"vocab_size\":128256,\"max_position_embeddings\":131072"),
     HUB("meta-llama/Llama-3.1-405B")},
    {"mistral-7b", "|mistralai/Mistral-7B-v0.1|mistralai/Mistral-7B-Instruct-v0.1|",
     "{\"model_type\":\"mistral\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":4096,\"intermediate_size\":14336,"
     "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":32000,"
     "\"sliding_window\":4096,\"max_position_embeddings\":32768}",
     HUB("mistralai/Mistral-7B-v0.1")},
    {"mistral-7b-v0.3", "|mistralai/Mistral-7B-v0.3|mistralai/Mistral-7B-Instruct-v0.3|",
     "{\"model_type\":\"mistral\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":4096,\"intermediate_size\":14336,"
     "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":32768,"
     "\"sliding_window\":null,\"max_position_embeddings\":32768}",
     HUB("mistralai/Mistral-7B-v0.3")},
    {"mixtral-8x7b", "|mistralai/Mixtral-8x7B-v0.1|mistralai/Mixtral-8x7B-Instruct-v0.1|",
     "{\"model_type\":\"mixtral\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":4096,\"intermediate_size\":14336,"
     "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":32000,"
     "\"num_local_experts\":8,\"num_experts_per_tok\":2,\"sliding_window\":null,\"max_position_embeddings\":32768}",
     HUB("mistralai/Mixtral-8x7B-v0.1")},
    {"qwen2.5-7b", "|Qwen/Qwen2.5-7B|Qwen/Qwen2.5-7B-Instruct|",
     "{\"model_type\":\"qwen2\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":3584,\"intermediate_size\":18944,"
     "\"num_hidden_layers\":28,\"num_attention_heads\":28,\"num_key_value_heads\":4,\"vocab_size\":152064,"
     "\"sliding_window\":131072,\"use_sliding_window\":false,\"max_position_embeddings\":32768}",
     HUB("Qwen/Qwen2.5-7B-Instruct")},
    {"qwen2.5-72b", "|Qwen/Qwen2.5-72B|Qwen/Qwen2.5-72B-Instruct|",
     "{\"model_type\":\"qwen2\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":8192,\"intermediate_size\":29568,"
     "\"num_hidden_layers\":80,\"num_attention_heads\":64,\"num_key_value_heads\":8,\"vocab_size\":152064,"
     "\"sliding_window\":131072,\"use_sliding_window\":false,\"max_position_embeddings\":32768}",
     HUB("Qwen/Qwen2.5-72B-Instruct")},
    {"qwen3-8b", "|Qwen/Qwen3-8B|",
     "{\"model_type\":\"qwen3\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":4096,\"intermediate_size\":12288,"
     "\"num_hidden_layers\":36,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":151936,"
     "\"max_position_embeddings\":40960}",
     HUB("Qwen/Qwen3-8B")},
    {"qwen3-30b-a3b", "|Qwen/Qwen3-30B-A3B|",
     "{\"model_type\":\"qwen3_moe\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":2048,\"intermediate_size\":6144,"
     "\"num_hidden_layers\":48,\"num_attention_heads\":32,\"num_key_value_heads\":4,\"head_dim\":128,\"vocab_size\":151936,"
     "\"num_experts\":128,\"num_experts_per_tok\":8,\"moe_intermediate_size\":768,\"decoder_sparse_step\":1,"
     "\"mlp_only_layers\":[],\"max_position_embeddings\":40960}",
     HUB("Qwen/Qwen3-30B-A3B")},
    {"gemma-3-27b", "|google/gemma-3-27b-it|google/gemma-3-27b-pt|",
     "{\"model_type\":\"gemma3\",\"torch_dtype\":\"bfloat16\",\"text_config\":{\"hidden_size\":5376,\"intermediate_size\":21504,"
     "\"num_attention_heads\":32,\"num_hidden_layers\":62,\"num_key_value_heads\":16,\"head_dim\":128,"
     "\"sliding_window\":1024,\"vocab_size\":262208},\"vision_config\":{}}",
     HUB("google/gemma-3-27b-it")},
    {"deepseek-v3", "|deepseek-ai/DeepSeek-V3|deepseek-ai/DeepSeek-V3-0324|deepseek-ai/DeepSeek-R1|deepseek-ai/DeepSeek-R1-0528|",
     "{\"model_type\":\"deepseek_v3\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":7168,\"intermediate_size\":18432,"
     "\"num_hidden_layers\":61,\"num_attention_heads\":128,\"num_key_value_heads\":128,\"vocab_size\":129280,"
     "\"kv_lora_rank\":512,\"q_lora_rank\":1536,\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":128,\"v_head_dim\":128,"
     "\"n_routed_experts\":256,\"n_shared_experts\":1,\"num_experts_per_tok\":8,\"moe_intermediate_size\":2048,"
     "\"first_k_dense_replace\":3,\"moe_layer_freq\":1,\"num_nextn_predict_layers\":1,\"max_position_embeddings\":163840,"
     "\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}}",
     HUB("deepseek-ai/DeepSeek-V3")},
    {"gpt-oss-20b", "|openai/gpt-oss-20b|", GPT_OSS("24", "32"), HUB("openai/gpt-oss-20b")},
    {"gpt-oss-120b", "|openai/gpt-oss-120b|", GPT_OSS("36", "128"), HUB("openai/gpt-oss-120b")},
};

size_t model_preset_count(void)
{
    return sizeof PRESETS / sizeof PRESETS[0];
}

const struct model_preset *model_preset_at(size_t i)
{
    return &PRESETS[i];
}

static bool is_alias(const struct model_preset *preset, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *at = preset->aliases; (at = strcasestr(at, name)) != NULL; at++)
        if (bytes && at[-1] == '|' && at[bytes] == '|') return true;
    return false;
}

const struct model_preset *model_preset_find(const char *name)
{
    /* An alias is searched from its second byte on, so that at[-1] exists: aliases begin with '|', names do not. */
    if (name[0] == '|' || name[0] == '\0') return NULL;
    for (size_t i = 0; i < model_preset_count(); i++)
        if (strcasecmp(PRESETS[i].name, name) == 0 || is_alias(&PRESETS[i], name)) return &PRESETS[i];
    return NULL;
}

int model_shape_preset(struct model_shape *shape, const char *name, struct err *err)
{
    const struct model_preset *preset = model_preset_find(name);
    if (!preset) return err_set(err, ERR_USAGE, "unknown model '%.100s'; 'pagesim plan --list' names those that are built in", name);
    int status = model_shape_parse(shape, preset->config, strlen(preset->config), preset->name, err);
    return status;
}
