/* Which layer of a config.json is of which kind. */
#include <inttypes.h>
#include <string.h>

#include "sim/model_config.h"

static void fill(struct config_reader *r, char letter)
{
    memset(r->letters, letter, r->layers);
}

static char word_letter(const char *word)
{
    static const struct {
        const char *words;
        char letter;
    } WORDS[] = {
        {"|full_attention|attention|", LAYER_FULL},
        {"|sliding_attention|sliding_window_attention|", LAYER_SLIDING},
        {"|chunked_attention|", LAYER_CHUNKED},
        {"|linear_attention|mamba|mamba2|conv|recurrent|short_conv|", LAYER_STATE},
        {"|hybrid|", LAYER_BOTH},
        {"|moe|mlp|", LAYER_NONE},
    };
    char key[48] = "|";
    strncat(key, word, 40);
    strcat(key, "|");
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if (strstr(WORDS[i].words, key)) return WORDS[i].letter;
    return 0;
}

/* layer_types and the like: a word a layer. */
static bool from_words(struct config_reader *r)
{
    json_t *words = config_value(r, "layer_types|layers_block_type|layer_block_types");
    if (!json_is_array(words)) return false;
    if (json_array_size(words) < r->layers) {
        config_fail(r, "layer_types", "found %zu words, expected one for each of %" PRIu64 " layers",
                    json_array_size(words), r->layers);
        return true;
    }
    for (size_t i = 0; i < r->layers && !r->failed; i++) {
        const char *word = json_string_value(json_array_get(words, i));
        r->letters[i] = word ? word_letter(word) : 0;
        /* There a layer is one thing: a mixer or an MLP. */
        if (word && config_type_is(r, "|nemotron_h|"))
            r->shape->layer_mlp[i] = strcmp(word, "moe") == 0   ? MLP_EXPERTS
                                     : strcmp(word, "mlp") == 0 ? MLP_DENSE
                                                                : MLP_NONE;
        if (r->letters[i] == 0)
            config_fail(
                r, "layer_types",
                "layer %zu: found '%.40s', expected full_attention, sliding_attention, mamba or another known kind",
                i, word ? word : "no text");
    }
    return true;
}

/* A number a layer: `letter` where it equals `number`. */
static bool from_numbers(struct config_reader *r, const char *name, json_int_t number, char letter)
{
    json_t *numbers = config_value(r, name);
    if (!json_is_array(numbers)) return false;
    if (json_array_size(numbers) < r->layers)
        config_fail(r, name, "found %zu numbers, expected one for each of %" PRIu64 " layers",
                    json_array_size(numbers), r->layers);
    for (size_t i = 0; i < r->layers && !r->failed; i++)
        if (json_integer_value(json_array_get(numbers, i)) == number) r->letters[i] = letter;
    return true;
}

/* Numbers of layers that are `letter`, counted from `first`. */
static bool from_indices(struct config_reader *r, json_t *indices, json_int_t first, char letter)
{
    if (!json_is_array(indices)) return false;
    for (size_t i = 0; i < json_array_size(indices); i++) {
        json_int_t at = json_integer_value(json_array_get(indices, i)) - first;
        if (at >= 0 && (uint64_t)at < r->layers) r->letters[at] = letter;
    }
    return true;
}

/* Nemotron-H: a letter a layer, M Mamba, * attention, - MLP, E experts. */
static bool from_pattern(struct config_reader *r)
{
    const char *pattern = config_text(r, "hybrid_override_pattern");
    if (!pattern) return false;
    if (strlen(pattern) != r->layers) {
        config_fail(r, "hybrid_override_pattern", "found %zu letters, expected one for each of %" PRIu64 " layers",
                    strlen(pattern), r->layers);
        return true;
    }
    for (size_t i = 0; i < r->layers; i++) {
        char at = pattern[i];
        r->letters[i] = at == 'M' ? LAYER_STATE : at == '*' ? LAYER_FULL : LAYER_NONE;
        r->shape->layer_mlp[i] = at == '-' ? MLP_DENSE : at == 'E' ? MLP_EXPERTS : MLP_NONE;
        if (!strchr("M*-E", at)) config_fail(r, "hybrid_override_pattern", "found '%c', expected M, *, - or E", at);
    }
    return true;
}

/* Every `period`-th layer, from `offset`, is `letter`. */
static void every(struct config_reader *r, uint64_t period, uint64_t offset, char letter)
{
    for (uint64_t i = 0; period && i < r->layers; i++)
        if (i % period == offset % period) r->letters[i] = letter;
}

/* Models with a window: which layers slide. */
static void sliding_layers(struct config_reader *r)
{
    uint64_t window = config_count(r, "sliding_window|sliding_window_size", 0, (uint64_t)1 << 40);
    if (window == 0) return;
    /* Only these classes have it off by default. */
    bool on =
        config_bool(r, "use_sliding_window",
                    !config_type_is(r, "|qwen2|qwen2_moe|qwen3|qwen3_moe|qwen2_vl|qwen2_5_vl|qwen2_5_vl_text|"));
    if (!on || config_type_is(r, "|phi3|phimoe|mixtral|")) {
        if (!on) return;
        fill(r, LAYER_SLIDING);
        return;
    }
    if (from_numbers(r, "hybrid_layer_pattern", 1, LAYER_SLIDING)) return;
    uint64_t pattern = config_count(r, "sliding_window_pattern|_sliding_window_pattern",
                                    config_type_is(r, "|gemma2|gpt_oss|") ? 2 : 0, MODEL_LAYERS_MAX);
    uint64_t first = config_count(r, "max_window_layers", 0, MODEL_LAYERS_MAX);
    if (pattern) {
        fill(r, LAYER_SLIDING);
        every(r, pattern, pattern - 1, LAYER_FULL);
    } else {
        for (uint64_t i = first; i < r->layers; i++) r->letters[i] = LAYER_SLIDING;
    }
}

/* Llama 4: layers with rotary positions attend within chunks; every fourth has none and sees everything. */
static void chunked_layers(struct config_reader *r)
{
    if (config_count(r, "attention_chunk_size", 0, (uint64_t)1 << 40) == 0) return;
    json_t *rope = config_value(r, "no_rope_layers");
    if (json_is_array(rope) && json_array_size(rope) >= r->layers) {
        from_numbers(r, "no_rope_layers", 1, LAYER_CHUNKED);
        return;
    }
    fill(r, LAYER_CHUNKED);
    every(r, 4, 3, LAYER_FULL);
}

/* The last layers of Gemma 3n and the small Gemma 4 use the cache of earlier ones. */
static void shared_layers(struct config_reader *r)
{
    uint64_t shared = config_count(r, "num_kv_shared_layers", 0, MODEL_LAYERS_MAX);
    for (uint64_t i = shared < r->layers ? r->layers - shared : 0; shared && i < r->layers; i++)
        r->letters[i] = r->letters[i] == LAYER_FULL      ? LAYER_FULL_SHARED
                        : r->letters[i] == LAYER_SLIDING ? LAYER_SLIDING_SHARED
                                                         : r->letters[i];
}

static void mixer_letters(struct config_reader *r)
{
    fill(r, LAYER_FULL);
    if (from_pattern(r)) return;
    if (config_type_is(r, "|zamba2|zamba|")) fill(r, LAYER_STATE);
    if (from_words(r) || r->failed) return;
    json_t *linear = json_object_get(config_value(r, "linear_attn_config"), "kda_layers");
    if (from_indices(r, linear, 1, LAYER_STATE)) return;
    if (from_numbers(r, "attn_type_list", 0, LAYER_STATE) ||
        from_numbers(r, "decoder_attention_types", 0, LAYER_STATE))
        return;
    if (config_type_is(r, "|mamba|mamba2|falcon_mamba|")) {
        fill(r, LAYER_STATE);
    } else if (config_type_is(r, "|falcon_h1|")) {
        fill(r, LAYER_BOTH);
    } else if (config_type_is(r, "|zamba2|zamba|")) {
        from_indices(r, config_value(r, "hybrid_layer_ids"), 0, LAYER_BOTH);
    } else if (config_type_is(r, "|bamba|")) {
        fill(r, LAYER_STATE);
        from_indices(r, config_value(r, "attn_layer_indices"), 0, LAYER_FULL);
    } else if (config_value(r, "full_attn_idxs")) {
        fill(r, LAYER_STATE);
        from_indices(r, config_value(r, "full_attn_idxs"), 0, LAYER_FULL);
    } else if (config_value(r, "attn_layer_period")) {
        fill(r, LAYER_STATE);
        every(r, config_count(r, "attn_layer_period", 0, MODEL_LAYERS_MAX),
              config_count(r, "attn_layer_offset", 0, MODEL_LAYERS_MAX), LAYER_FULL);
    } else if (config_value(r, "full_attention_interval")) {
        uint64_t interval = config_count(r, "full_attention_interval", 4, MODEL_LAYERS_MAX);
        fill(r, LAYER_STATE);
        every(r, interval, interval ? interval - 1 : 0, LAYER_FULL);
    } else {
        chunked_layers(r);
        sliding_layers(r);
    }
}

/* --- MLPs -------------------------------------------------------------------------------------- */

static bool has_experts(struct config_reader *r, uint64_t layer)
{
    if (r->shape->experts < 2) return false;
    uint64_t dense = config_count(r, "first_k_dense_replace|num_dense_layers", 0, MODEL_LAYERS_MAX);
    if (layer < dense) return false;
    uint64_t step = config_count(
        r, "decoder_sparse_step|interleave_moe_layer_step|expert_layer_period|moe_layer_freq|moe_layer_freq_every", 1,
        MODEL_LAYERS_MAX);
    if (step == 0) return false;
    if (config_type_is(r, "|jamba|"))
        return layer % step == config_count(r, "expert_layer_offset", 1, MODEL_LAYERS_MAX) % step;
    if (config_type_is(r, "|deepseek|deepseek_v2|deepseek_v3|deepseek_v32|kimi_k2|")) return layer % step == 0;
    return (layer + 1) % step == 0;
}

static void mlp_kinds(struct config_reader *r)
{
    json_t *flags = config_value(r, "moe_layer_freq");
    bool a_list = json_is_array(flags);
    if (a_list && json_array_size(flags) < r->layers) {
        config_fail(r, "moe_layer_freq", "found %zu numbers, expected one for each layer", json_array_size(flags));
        return;
    }
    for (uint64_t i = 0; i < r->layers && !r->failed; i++) {
        bool experts =
            a_list ? r->shape->experts > 1 && json_integer_value(json_array_get(flags, i)) != 0 : has_experts(r, i);
        r->shape->layer_mlp[i] = experts ? MLP_EXPERTS : MLP_DENSE;
    }
    json_t *dense = config_value(r, "mlp_only_layers");
    for (size_t i = 0; i < json_array_size(dense); i++) {
        json_int_t at = json_integer_value(json_array_get(dense, i));
        if (at >= 0 && (uint64_t)at < r->layers) r->shape->layer_mlp[at] = MLP_DENSE;
    }
    /* Zamba2's MLPs are in the blocks that layers share; Mamba has none. */
    if (config_type_is(r, "|mamba|mamba2|falcon_mamba|zamba2|zamba|"))
        memset(r->shape->layer_mlp, MLP_NONE, r->layers);
}

void config_layers(struct config_reader *r)
{
    bool has_pattern = config_value(r, "hybrid_override_pattern") != NULL;
    if (!has_pattern) mlp_kinds(r);
    if (!r->failed) mixer_letters(r);
    shared_layers(r);
}
