/* Shapes of models: parameter totals against those that the published checkpoints count, cache bytes by hand. */
#include <stdio.h>
#include <string.h>

#include "sim/gpu.h"
#include "sim/model_shape.h"
#include "tests/check.h"

#define WHOLE MODEL_WHOLE

static struct model_shape shape;

static void load(const char *text)
{
    struct err err = {0};
    int status = model_shape_parse(&shape, text, strlen(text), "config.json", &err);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
}

static void preset(const char *name)
{
    struct err err = {0};
    int status = model_shape_preset(&shape, name, &err);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
}

static uint64_t total(void)
{
    struct model_parameters p;
    model_parameters(&shape, &WHOLE, &p);
    return model_parameters_total(&p);
}

/* Totals of the checkpoints' safetensors headers, as the hub shows them; Gemma without its vision tower and projector. */
static void presets__parameters__equal_the_checkpoints(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t parameters;
    } CASES[] = {
        {"llama-2-7b", 6738415616},    {"llama-2-13b", 13015864320},   {"llama-2-70b", 68976648192},
        {"llama-3-8b", 8030261248},    {"llama-3.1-70b", 70553706496}, {"llama-3.1-405b", 405853388800},
        {"mistral-7b", 7241732096},    {"mixtral-8x7b", 46702792704},  {"qwen2.5-7b", 7615616512},
        {"qwen2.5-72b", 72706203648},  {"qwen3-30b-a3b", 30532122624}, {"qwen3-8b", 8190735360},
        {"deepseek-v3", 671026419200}, {"gpt-oss-20b", 20914757184},   {"gpt-oss-120b", 116829156672},
        {"gemma-3-27b", 27009346304},  {"opt-13b", 12853473280},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        preset(CASES[i].name);
        if (total() != CASES[i].parameters) print_message("%s\n", CASES[i].name);
        check_u64_eq(total(), CASES[i].parameters);
    }
}

/* Fields of published files, cut to those that differ from the classes' defaults; totals of their checkpoints. */
static void configs__parameters__equal_the_checkpoints(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t parameters;
        const char *config;
    } CASES[] = {
        {"Qwen3-Next-80B-A3B without its prediction layer", 79674391296, "{\"model_type\":\"qwen3_next\"}"},
        {"DeepSeek-V2-Lite", 15706484224,
         "{\"model_type\":\"deepseek_v2\",\"hidden_size\":2048,\"intermediate_size\":10944,\"kv_lora_rank\":512,\""
         "moe_intermediate_size\":1408,\"n_routed_experts\":64,\"n_shared_experts\":2,\"num_attention_heads\":16,\""
         "num_experts_per_tok\":6,\"num_hidden_layers\":27,\"num_key_value_heads\":16,\"q_lora_rank\":null,\"vocab"
         "_size\":102400,\"first_k_dense_replace\":1,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim"
         "\":128,\"moe_layer_freq\":1}"},
        {"DeepSeek-V2", 235741434880,
         "{\"model_type\":\"deepseek_v2\",\"hidden_size\":5120,\"intermediate_size\":12288,\"kv_lora_rank\":512,\""
         "moe_intermediate_size\":1536,\"n_routed_experts\":160,\"n_shared_experts\":2,\"num_attention_heads\":128"
         ",\"num_experts_per_tok\":6,\"num_hidden_layers\":60,\"q_lora_rank\":1536,\"vocab_size\":102400,\"first_k"
         "_dense_replace\":1}"},
        {"deepseek-moe-16b", 16375728128,
         "{\"model_type\":\"deepseek\",\"hidden_size\":2048,\"intermediate_size\":10944,\"moe_intermediate_size\":"
         "1408,\"n_routed_experts\":64,\"n_shared_experts\":2,\"num_attention_heads\":16,\"num_experts_per_tok\":6"
         ",\"num_hidden_layers\":28,\"vocab_size\":102400,\"first_k_dense_replace\":1}"},
        {"mamba-2.8b", 2768345600,
         "{\"model_type\":\"mamba\",\"hidden_size\":2560,\"num_hidden_layers\":64,\"intermediate_size\":5120,\"voc"
         "ab_size\":50280,\"state_size\":16,\"time_step_rank\":160}"},
        {"mamba2-2.7b", 2702599680,
         "{\"model_type\":\"mamba2\",\"hidden_size\":2560,\"num_hidden_layers\":64,\"num_heads\":80,\"head_dim\":6"
         "4,\"vocab_size\":50288,\"state_size\":128,\"n_groups\":1}"},
        {"falcon-mamba-7b", 7272665088,
         "{\"model_type\":\"falcon_mamba\",\"hidden_size\":4096,\"num_hidden_layers\":64,\"intermediate_size\":819"
         "2,\"vocab_size\":65024,\"state_size\":16,\"time_step_rank\":256,\"tie_word_embeddings\":false}"},
        {"gemma2-27b", 27227128320,
         "{\"model_type\":\"gemma2\",\"hidden_size\":4608,\"intermediate_size\":36864,\"num_hidden_layers\":46,\"n"
         "um_attention_heads\":32,\"num_key_value_heads\":16,\"head_dim\":128,\"vocab_size\":256000}"},
        {"gemma2-2b", 2614341888, "{\"model_type\":\"gemma2\"}"},
        {"gemma-7b", 8537680896, "{\"model_type\":\"gemma\"}"},
        {"phi3-mini", 3821079552, "{\"model_type\":\"phi3\"}"},
        {"Qwen1.5-MoE-A2.7B", 14315784192, "{\"model_type\":\"qwen2_moe\"}"},
        {"falcon-7b", 6921720704,
         "{\"model_type\":\"falcon\",\"hidden_size\":4544,\"new_decoder_architecture\":false,\"multi_query\":true}"},
        {"gpt2", 124439808, "{\"model_type\":\"gpt2\"}"},
        {"neox-20b", 20554567680, "{\"model_type\":\"gpt_neox\",\"vocab_size\":50432}"},
        {"starcoder2-7b", 7173923840,
         "{\"model_type\":\"starcoder2\",\"hidden_size\":4608,\"intermediate_size\":18432,\"num_hidden_layers\":32"
         ",\"num_attention_heads\":36,\"num_key_value_heads\":4,\"vocab_size\":49152,\"sliding_window\":4096}"},
        {"phi-2", 2779683840,
         "{\"model_type\":\"phi\",\"hidden_size\":2560,\"intermediate_size\":10240,\"num_hidden_layers\":32,\"num_"
         "attention_heads\":32,\"vocab_size\":51200}"},
        {"mixtral-8x22b", 140630071296,
         "{\"model_type\":\"mixtral\",\"hidden_size\":6144,\"intermediate_size\":16384,\"num_hidden_layers\":56,\""
         "num_attention_heads\":48,\"vocab_size\":32768}"},
        {"minimax-text-01", 456089655296,
         "{\"model_type\":\"minimax\",\"num_hidden_layers\":80,\"hidden_size\":6144,\"head_dim\":128,\"num_attenti"
         "on_heads\":64,\"num_local_experts\":32,\"intermediate_size\":9216,\"vocab_size\":200064,\"attn_type_list"
         "\":[0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,"
         "0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1]}"},
        {"lfm2-1.2b", 1170340608,
         "{\"model_type\":\"lfm2\",\"hidden_size\":2048,\"intermediate_size\":8192,\"num_hidden_layers\":16,\"num_"
         "attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":65536,\"conv_L_cache\":3,\"full_attn_idxs\""
         ":[2,5,8,10,12,14],\"tie_word_embeddings\":true}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        load(CASES[i].config);
        if (total() != CASES[i].parameters) print_message("%s\n", CASES[i].name);
        check_u64_eq(total(), CASES[i].parameters);
    }
}

static void presets__all__parse_and_are_found_by_alias(void **state)
{
    (void)state;
    for (size_t i = 0; i < model_preset_count(); i++) {
        preset(model_preset_at(i)->name);
        check_str_eq(shape.name, model_preset_at(i)->name);
    }
    check_str_eq(model_preset_find("meta-llama/meta-llama-3-70b")->name, "llama-3-70b");
    assert_null(model_preset_find("llama"));
    assert_null(model_preset_find(""));
    assert_null(model_preset_find("|"));
}

/* layers x heads x dim x 2 x bytes. */
static void token_bytes__gqa__by_hand(void **state)
{
    (void)state;
    preset("llama-3-8b");
    check_u64_eq(model_token_bytes(&shape, ELEMENT_BF16, &WHOLE), 32 * 8 * 128 * 2 * 2);
    check_u64_eq(model_token_bytes(&shape, ELEMENT_FP8, &WHOLE), 32 * 8 * 128 * 2);
    check_u64_eq(model_token_bytes(&shape, ELEMENT_FP8, &(struct model_part){.tp = 4, .pp = 1}), 32 * 2 * 128 * 2);
    /* Sixteen ranks share eight heads: each has one. */
    check_u64_eq(model_token_bytes(&shape, ELEMENT_BF16, &(struct model_part){.tp = 16, .pp = 1}),
                 32 * 1 * 128 * 2 * 2);
    /* NVFP4: 64 bytes of nibbles and 8 scales for a row of 128. */
    check_u64_eq(model_token_bytes(&shape, ELEMENT_NVFP4, &WHOLE), 32 * 8 * 2 * (64 + 8));
    /* A scale of 4 bytes for each token and head. */
    check_u64_eq(model_token_bytes(&shape, ELEMENT_FP8_PER_HEAD, &WHOLE), 32 * 8 * 2 * (128 + 4));
}

/* DeepSeek-V3: 512 + 64 elements in each of 61 layers; ranks do not divide them. */
static void token_bytes__mla__is_not_divided(void **state)
{
    (void)state;
    preset("deepseek-v3");
    check_u64_eq(model_token_bytes(&shape, ELEMENT_BF16, &WHOLE), 61 * 576 * 2);
    check_u64_eq(model_token_bytes(&shape, ELEMENT_BF16, &(struct model_part){.tp = 8, .pp = 1}), 61 * 576 * 2);
    check_u64_eq(model_token_bytes(&shape, ELEMENT_FP8_MLA, &WHOLE), 61 * 656);
}

static void stages__vllm__remainder_before_the_last(void **state)
{
    (void)state;
    uint32_t begin, end;
    preset("deepseek-v3"); /* 61 = 15 + 15 + 16 + 15 */
    static const uint32_t ENDS[] = {15, 30, 46, 61};
    for (uint32_t s = 0; s < 4; s++) {
        model_stage(&shape, &(struct model_part){.tp = 1, .pp = 4, .pp_rank = s}, &begin, &end);
        check_u64_eq(end, ENDS[s]);
    }
    struct model_parameters p;
    uint64_t sum = 0;
    for (uint32_t s = 0; s < 4; s++) {
        model_parameters(&shape, &(struct model_part){.tp = 1, .pp = 4, .pp_rank = s}, &p);
        sum += model_parameters_total(&p);
    }
    check_u64_eq(sum, total());
}

/* gpt-oss, Gemma 3 and Gemma 2 alternate; Mistral slides everywhere; Qwen2 has its window off. */
static void layers__sliding__by_architecture(void **state)
{
    (void)state;
    preset("gpt-oss-20b");
    check_u64_eq(shape.mixer_count, 2);
    check_u64_eq(shape.mixers[1].kind, MIXER_SLIDING);
    check_u64_eq(shape.mixers[1].layers, 12);
    check_u64_eq(shape.layer_mixers[0], 2); /* the first slides */
    preset("gemma-3-27b");
    check_u64_eq(shape.mixers[0].layers, 10);
    check_u64_eq(shape.mixers[1].layers, 52);
    check_u64_eq(shape.mixers[1].window_tokens, 1024);
    preset("mistral-7b");
    check_u64_eq(shape.mixer_count, 1);
    check_u64_eq(shape.mixers[0].kind, MIXER_SLIDING);
    preset("qwen2.5-7b");
    check_u64_eq(shape.mixers[0].kind, MIXER_FULL);
    load("{\"model_type\":\"gemma2\",\"num_hidden_layers\":42,\"hidden_size\":3584,\"num_attention_heads\":16,"
         "\"num_key_value_heads\":8,\"head_dim\":256,\"intermediate_size\":14336,\"vocab_size\":256000}");
    check_u64_eq(shape.mixers[0].layers, 21);
    check_u64_eq(total(), 9241705984); /* gemma-2-9b */
}

/* Jamba-v0.1 on the hub: 51,570,323,328 parameters; attention in every eighth layer, experts in every second. */
static void layers__jamba__mamba_attention_and_experts(void **state)
{
    (void)state;
    load("{\"model_type\":\"jamba\",\"num_hidden_layers\":32,\"hidden_size\":4096,\"torch_dtype\":\"bfloat16\"}");
    check_u64_eq(total(), 51570323328);
    check_u64_eq(shape.mixers[0].layers, 4);
    check_u64_eq(shape.mixers[1].layers, 28);
    check_u64_eq(model_layer_recurrent_bytes(&shape.mixers[1], 1), 8192 * 16 * 2);
    check_u64_eq(model_layer_conv_bytes(&shape.mixers[1], 1), 3 * 8192 * 2);
}

/* Nemotron-Nano-9B-v2: 128 heads of 80 x 128 and 3 rows of 10240 + 2 x 8 x 128 channels, 16 bits. */
static void states__mamba2__heads_and_groups(void **state)
{
    (void)state;
    load(
        "{\"model_type\":\"nemotron_h\",\"torch_dtype\":\"bfloat16\",\"num_hidden_layers\":4,\"hybrid_override_pattern\":\"M-M*\","
        "\"hidden_size\":4480,\"intermediate_size\":15680,\"num_attention_heads\":40,\"mamba_num_heads\":128,\"mamba_head_dim\":80}");
    const struct model_mixer *m = &shape.mixers[1];
    check_u64_eq(m->kind, MIXER_STATE);
    check_u64_eq(m->layers, 2);
    check_u64_eq(shape.layer_mixers[1], 0);
    check_u64_eq(model_layer_recurrent_bytes(m, 1), 2621440);
    check_u64_eq(model_layer_conv_bytes(m, 1), 73728);
    check_u64_eq(model_layer_conv_bytes(m, 8), 73728 / 8);
    /* Sixteen ranks: each of eight groups is there twice. */
    check_u64_eq(model_layer_conv_bytes(m, 16), 3 * (10240 + 2 * 16 * 128) / 16 * 2);
}

/* Qwen3.5-27B class, nested: 48 value heads x 128 x 128 in 32 bits, 3 rows of 2 x 2048 + 6144 channels. */
static void states__gated_delta__nested_config(void **state)
{
    (void)state;
    load(
        "{\"model_type\":\"qwen3_5\",\"text_config\":{\"model_type\":\"qwen3_5_text\",\"dtype\":\"bfloat16\",\"num_hidden_layers\":64,"
        "\"hidden_size\":5120,\"intermediate_size\":17408,\"num_attention_heads\":24,\"linear_num_value_heads\":48,"
        "\"mamba_ssm_dtype\":\"float32\"},\"vision_config\":{}}");
    check_u64_eq(shape.mixers[0].layers, 16);
    check_u64_eq(shape.mixers[1].layers, 48);
    check_u64_eq(model_layer_token_bytes(&shape.mixers[0], ELEMENT_BF16, 1), 4096);
    check_u64_eq(model_layer_recurrent_bytes(&shape.mixers[1], 1), 3145728);
    check_u64_eq(model_layer_conv_bytes(&shape.mixers[1], 1), 61440);
    check_str_has(shape.note, "vision");
}

/* MiniMax-Text-01: 456 B parameters; 7 of 8 layers are linear, a 128 x 128 state for each of 64 heads. */
static void states__lightning__no_convolution(void **state)
{
    (void)state;
    load(
        "{\"model_type\":\"minimax\",\"torch_dtype\":\"bfloat16\",\"num_hidden_layers\":8,\"hidden_size\":6144,\"head_dim\":128,"
        "\"num_attention_heads\":64,\"num_local_experts\":32,\"intermediate_size\":9216,\"vocab_size\":200064,"
        "\"attn_type_list\":[0,0,0,0,0,0,0,1]}");
    check_u64_eq(shape.mixers[1].layers, 7);
    check_u64_eq(model_state_bytes(&shape, &WHOLE), 7 * 64 * 128 * 128 * 2);
    check_u64_eq(model_layer_conv_bytes(&shape.mixers[1], 1), 0);
}

/* Falcon-H1 has both in every layer; Zamba2 attends to twice the width in its hybrid layers. */
static void layers__both__falcon_h1_and_zamba2(void **state)
{
    (void)state;
    load("{\"model_type\":\"falcon_h1\",\"num_hidden_layers\":3,\"torch_dtype\":\"bfloat16\"}");
    check_u64_eq(shape.mixers[0].layers, 3);
    check_u64_eq(shape.mixers[1].layers, 3);
    load(
        "{\"model_type\":\"zamba2\",\"num_hidden_layers\":12,\"hidden_size\":2560,\"num_attention_heads\":32,\"hybrid_layer_ids\":[5,11],"
        "\"n_mamba_heads\":80,\"torch_dtype\":\"bfloat16\"}");
    check_u64_eq(shape.mixers[0].layers, 2);
    check_u64_eq(shape.mixers[1].layers, 12);
    check_u64_eq(shape.mixers[0].key_dim, 160);
}

/* Gemma 4 E2B class: the last 4 of 7 layers use the cache of earlier ones; full layers have wider heads. */
static void layers__shared_cache__no_bytes(void **state)
{
    (void)state;
    load(
        "{\"model_type\":\"gemma4\",\"text_config\":{\"model_type\":\"gemma4_text\",\"dtype\":\"bfloat16\",\"hidden_size\":1536,\"intermediate_size\":6144,"
        "\"num_hidden_layers\":7,\"num_attention_heads\":8,\"num_key_value_heads\":1,\"head_dim\":256,\"global_head_dim\":512,\"vocab_size\":262144,"
        "\"num_kv_shared_layers\":4,\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"full_attention\",\"sliding_attention\","
        "\"sliding_attention\",\"sliding_attention\",\"full_attention\"]}}");
    check_u64_eq(model_token_bytes(&shape, ELEMENT_BF16, &WHOLE), 2 * (256 * 2 * 2) + 1 * (512 * 2 * 2));
    check_u64_eq(shape.mixers[0].layers, 1);
    check_u64_eq(shape.mixers[1].layers, 2);
}

/* Nemotron 3 Nano: 31.6 B parameters, 3.6 B of them active; a layer is a mixer or an MLP, by words. */
static void layers__nemotron_words__mixer_or_mlp(void **state)
{
    (void)state;
    load(
        "{\"model_type\":\"nemotron_h\",\"dtype\":\"bfloat16\",\"num_hidden_layers\":4,\"hidden_size\":2688,\"num_key_value_heads\":2,"
        "\"mamba_num_heads\":64,\"mamba_ssm_cache_dtype\":\"float32\",\"n_routed_experts\":128,\"num_experts_per_tok\":6,\"n_shared_experts\":1,"
        "\"moe_intermediate_size\":1856,\"moe_shared_expert_intermediate_size\":3712,\"layers_block_type\":[\"mamba\",\"moe\",\"attention\",\"mlp\"]}");
    struct model_parameters p;
    model_parameters(&shape, &WHOLE, &p);
    check_u64_eq(p.experts, 128ull * 2 * 2688 * 1856); /* not gated: two matrices */
    check_u64_eq(p.shared_experts, 2ull * 2688 * 3712);
    check_u64_eq(p.dense_mlp, 2ull * 2688 * 21504);
    check_u64_eq(shape.mixers[0].layers, 1);
    check_u64_eq(model_layer_recurrent_bytes(&shape.mixers[1], 1), 64 * 64 * 128 * 4);
}

static void parse__lists__largest_and_said(void **state)
{
    (void)state;
    load(
        "{\"model_type\":\"minimax_text_01\",\"vocab_size\":97,\"hidden_size\":32,\"intermediate_size\":[16,24],\"num_hidden_layers\":2,"
        "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,\"attn_type_list\":[0,1],\"shared_intermediate_size\":[0],\"dtype\":\"bfloat16\"}");
    check_u64_eq(shape.intermediate, 24);
    check_str_eq(shape.note, "intermediate_size differs by layer: the largest is counted");
}

static void positions__rope_scaling__as_vllm_derives(void **state)
{
    (void)state;
    static const struct {
        const char *scaling;
        uint64_t positions;
    } CASES[] = {
        {"null", 32768},
        {"{\"rope_type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":16384}", 65536},
        {"{\"type\":\"yarn\",\"factor\":4.0}", 131072},
        {"{\"type\":\"linear\",\"factor\":2}", 65536},
        {"{\"rope_type\":\"llama3\",\"factor\":8.0,\"original_max_position_embeddings\":8192}", 32768},
        {"{\"type\":\"dynamic\",\"factor\":-1}", 32768},
        {"{\"type\":\"dynamic\",\"factor\":1e300}", 32768},
        {"7", 32768},
    };
    char text[300];
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        snprintf(text, sizeof text, "{\"model_type\":\"llama\",\"max_position_embeddings\":32768,\"rope_scaling\":%s}", CASES[i].scaling);
        load(text);
        check_u64_eq(shape.max_positions, CASES[i].positions);
    }
}

/* A terminal gets nothing that moves its cursor. */
static void parse__control_characters__replaced(void **state)
{
    (void)state;
    load("{\"model_type\":\"x\\u001b[2J\\u0007z\",\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":4,\"intermediate_size\":128,"
         "\"vocab_size\":100,\"torch_dtype\":\"float16\"}");
    check_str_eq(shape.architecture, "x?[2J?z");
    check_str_has(shape.note, "'x?[2J?z' is not known");
}

/* Producers that are named instead of a method; mixtures that say no type. */
static void quantization__forms__understood_or_said(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        bool known;
        enum element_type type;
    } CASES[] = {
        {"{\"quant_method\":\"fp8\"}", true, ELEMENT_FP8},
        {"{\"quant_method\":\"awq\",\"bits\":4}", true, ELEMENT_INT4},
        {"{\"quant_method\":\"gptq\",\"bits\":8}", true, ELEMENT_INT8},
        {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\",\"kv_cache_quant_algo\":\"FP8\"}", true,
         ELEMENT_NVFP4},
        {"{\"producer\":{\"name\":\"modelopt\"},\"quant_algo\":\"FP8\"}", true, ELEMENT_FP8},
        {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\"}", false, ELEMENT_BF16},
        {"{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":8,\"type\":\"float\"}}}}",
         true, ELEMENT_FP8},
        {"{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":4,\"type\":\"int\"}}}}",
         true, ELEMENT_INT4},
        {"{\"quant_method\":\"compressed-tensors\",\"config_groups\":7}", false, ELEMENT_BF16},
        {"{\"quant_method\":5}", false, ELEMENT_BF16},
        {"{}", false, ELEMENT_BF16},
    };
    char text[512];
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        snprintf(text, sizeof text,
                 "{\"model_type\":\"llama\",\"torch_dtype\":\"bfloat16\",\"quantization_config\":%s}",
                 CASES[i].config);
        load(text);
        assert_int_equal(shape.quantized, CASES[i].known);
        check_u64_eq(model_checkpoint_type(&shape), CASES[i].type);
        if (!CASES[i].known) check_str_has(shape.note, "is not understood");
        assert_int_equal(shape.cache_fp8, strstr(text, "kv_cache") != NULL);
    }
}

/* FP8 weights of Llama-3.1-70B: vLLM printed 67.7229 GiB for them; embeddings and head stay in 16 bits. */
static void weights__fp8__embeddings_stay(void **state)
{
    (void)state;
    preset("llama-3.1-70b");
    const uint64_t table = 128256ull * 8192;
    uint64_t matrices = 80ull * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3ull * 8192 * 28672);
    check_u64_eq(model_weight_bytes(&shape, ELEMENT_FP8, &WHOLE), matrices + 2 * 2 * table + 161 * 8192 * 2);
    check_f64_near((double)model_weight_bytes(&shape, ELEMENT_FP8, &WHOLE) / (1 << 30), 67.7229, 0.07);
    check_u64_eq(model_weight_bytes(&shape, ELEMENT_BF16, &WHOLE), 2 * total());
    /* gpt-oss: 13.0 GiB on disk. */
    preset("gpt-oss-20b");
    check_u64_eq(model_checkpoint_type(&shape), ELEMENT_MXFP4);
    check_f64_near((double)model_weight_bytes(&shape, ELEMENT_MXFP4, &WHOLE) / (1 << 30), 12.8, 0.1);
}

static void parameters__active__mixture(void **state)
{
    (void)state;
    struct model_parameters p;
    preset("deepseek-v3");
    model_parameters(&shape, &WHOLE, &p);
    check_f64_near((double)model_parameters_active(&p) / 1e9, 37.5, 0.1); /* 37 B in its report */
    preset("qwen3-30b-a3b");
    model_parameters(&shape, &WHOLE, &p);
    check_f64_near((double)model_parameters_active(&p) / 1e9, 3.35, 0.02);
    /* Whole experts on eight ranks. */
    model_parameters(&shape, &(struct model_part){.tp = 8, .pp = 1, .ep = 8}, &p);
    check_u64_eq(p.experts, 48ull * 16 * 3 * 2048 * 768);
}

/* 2 FLOPs a parameter and 2 x heads x (key + value) for each token attended to. */
static void flops__dense__by_hand(void **state)
{
    (void)state;
    preset("llama-3-8b");
    double matrices = 8030261248.0 - 128256.0 * 4096 - 65 * 4096;
    check_f64_near(model_token_flops(&shape, 0), 2 * matrices, 0.5);
    check_f64_near(model_token_flops(&shape, 1000) - model_token_flops(&shape, 0), 32 * 2.0 * 32 * 256 * 1000, 0.5);
}

static void parse__bad__one_line_with_the_field(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } CASES[] = {
        {"", "config.json:1:"},
        {"[]", "JSON object"},
        {"{}", "num_hidden_layers: not found"},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":-1}", "num_hidden_layers: found -1"},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":1e99}", "num_hidden_layers: found 1e99"},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":9223372036854775807}",
         "num_hidden_layers: found 9223372036854775807"},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":0}", "num_hidden_layers: found 0"},
        {"{\"model_type\":\"llama\",\"hidden_size\":\"big\"}", "hidden_size: found \"big\""},
        {"{\"model_type\":\"llama\",\"num_attention_heads\":0}", "num_attention_heads: found 0"},
        {"{\"model_type\":\"llama\",\"num_key_value_heads\":64}", "num_key_value_heads: found 64"},
        {"{\"model_type\":\"llama\",\"torch_dtype\":\"float7\"}", "torch_dtype: found 'float7'"},
        {"{\"model_type\":\"llama\",\"layer_types\":[\"full_attention\"]}", "layer_types: found 1 words"},
        {"{\"model_type\":\"nemotron_h\",\"num_hidden_layers\":2,\"hybrid_override_pattern\":\"MX\"}", "found 'X'"},
        {"{\"model_type\":\"llama\",\"model_type\":\"llama\"}", "duplicate"},
        {"{\"model_type\":\"mixtral\",\"num_experts_per_tok\":9}", "num_experts_per_tok: found 9"},
        {"{\"model_type\":\"mixtral\",\"num_local_experts\":1048576,\"intermediate_size\":16777216,\"hidden_size\":16777216,"
         "\"num_hidden_layers\":4096}",
         "2^58 parameters"},
        {"{\"model_type\":\"llama\",\"num_attention_heads\":1048576,\"head_dim\":16777216,\"num_hidden_layers\":4096}",
         "2^40 bytes"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct err err = {0};
        assert_int_equal(model_shape_parse(&shape, CASES[i].text, strlen(CASES[i].text), "config.json", &err), -1);
        check_u64_eq(err.kind, ERR_INPUT);
        check_str_has(err.text, CASES[i].part);
    }
}

static void parse__unknown_type__read_like_llama_and_said(void **state)
{
    (void)state;
    load(
        "{\"model_type\":\"brandnew\",\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":4,\"intermediate_size\":128,"
        "\"vocab_size\":100,\"torch_dtype\":\"float16\"}");
    check_str_has(shape.note, "'brandnew' is not known");
    check_u64_eq(model_token_bytes(&shape, ELEMENT_FP16, &WHOLE), 2 * 4 * 16 * 2 * 2);
}

/* Ten trillion parameters and more: right, not wrapped. */
static void huge__ten_trillion__counted(void **state)
{
    (void)state;
    load(
        "{\"model_type\":\"mixtral\",\"hidden_size\":16384,\"intermediate_size\":65536,\"num_hidden_layers\":128,\"num_attention_heads\":128,"
        "\"num_local_experts\":64,\"vocab_size\":256000,\"torch_dtype\":\"bfloat16\"}");
    uint64_t experts = 128ull * 64 * 3 * 16384 * 65536;
    struct model_parameters p;
    model_parameters(&shape, &WHOLE, &p);
    check_u64_eq(p.experts, experts);
    assert_true(total() > 26000000000000ull);
    check_u64_eq(model_weight_bytes(&shape, ELEMENT_BF16, &WHOLE), 2 * total());
}

static void plain__three_numbers__and_bounds(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(model_shape_plain(&shape, 32, 0, 1, 128, 128, 0, &err), 0);
    check_u64_eq(model_token_bytes(&shape, ELEMENT_BFP8, &WHOLE), 32 * 2 * 136);
    check_u64_eq(model_weight_bytes(&shape, ELEMENT_BF16, &WHOLE), 0);
    assert_int_equal(model_shape_plain(&shape, 5000, 0, 1, 128, 128, 0, &err), -1);
    check_str_has(err.text, "5000 layers");
}

static void gpus__names__and_capability(void **state)
{
    (void)state;
    check_str_eq(gpu_find("H100")->name, "h100-sxm");
    check_str_eq(gpu_find("A100-80GB")->name, "a100-80gb");
    check_u64_eq(gpu_find("h200")->memory_bytes, 150109880320);
    check_u64_eq(gpu_find("t4")->capability, 75);
    assert_null(gpu_find("h1000"));
    assert_null(gpu_find(""));
    for (size_t i = 0; i < gpu_count(); i++) /* FP8 units from 8.9 on */
        assert_int_equal(gpu_at(i)->flops_8 > 0, gpu_at(i)->capability >= 89);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets__parameters__equal_the_checkpoints),
        cmocka_unit_test(configs__parameters__equal_the_checkpoints),
        cmocka_unit_test(presets__all__parse_and_are_found_by_alias),
        cmocka_unit_test(token_bytes__gqa__by_hand),
        cmocka_unit_test(token_bytes__mla__is_not_divided),
        cmocka_unit_test(stages__vllm__remainder_before_the_last),
        cmocka_unit_test(layers__sliding__by_architecture),
        cmocka_unit_test(layers__jamba__mamba_attention_and_experts),
        cmocka_unit_test(states__mamba2__heads_and_groups),
        cmocka_unit_test(states__gated_delta__nested_config),
        cmocka_unit_test(states__lightning__no_convolution),
        cmocka_unit_test(layers__both__falcon_h1_and_zamba2),
        cmocka_unit_test(layers__shared_cache__no_bytes),
        cmocka_unit_test(layers__nemotron_words__mixer_or_mlp),
        cmocka_unit_test(parse__lists__largest_and_said),
        cmocka_unit_test(positions__rope_scaling__as_vllm_derives),
        cmocka_unit_test(parse__control_characters__replaced),
        cmocka_unit_test(quantization__forms__understood_or_said),
        cmocka_unit_test(weights__fp8__embeddings_stay),
        cmocka_unit_test(parameters__active__mixture),
        cmocka_unit_test(flops__dense__by_hand),
        cmocka_unit_test(parse__bad__one_line_with_the_field),
        cmocka_unit_test(parse__unknown_type__read_like_llama_and_said),
        cmocka_unit_test(huge__ten_trillion__counted),
        cmocka_unit_test(plain__three_numbers__and_bounds),
        cmocka_unit_test(gpus__names__and_capability),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
