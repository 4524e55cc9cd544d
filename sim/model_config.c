#include "sim/model_config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A config.json is a few kilobytes; vocabularies do not belong there. */
#define CONFIG_BYTES_MAX ((size_t)4 << 20)

/* --- look-ups ------------------------------------------------------------------------------- */

int config_fail(struct config_reader *r, const char *field, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!r->failed) err_set(r->err, ERR_INPUT, "%s: %s: %s", r->what, field, text);
    r->failed = true;
    return -1;
}

/* The value of the first of the names that is there; *name is that name. */
static json_t *lookup(const struct config_reader *r, const char *names, char *name, size_t name_bytes)
{
    for (const char *at = names; *at;) {
        size_t bytes = strcspn(at, "|");
        snprintf(name, name_bytes, "%.*s", (int)bytes, at);
        json_t *value = json_object_get(r->text, name);
        if (value && !json_is_null(value)) return value;
        at += bytes + (at[bytes] == '|');
    }
    snprintf(name, name_bytes, "%.*s", (int)strcspn(names, "|"), names);
    return NULL;
}

json_t *config_value(const struct config_reader *r, const char *names)
{
    char name[64];
    return lookup(r, names, name, sizeof name);
}

/* What a value is, for messages. */
static void describe(const json_t *value, char *out, size_t out_bytes)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
    snprintf(out, out_bytes, "%.40s", text ? text : "?");
    free(text);
}

/* The largest whole number of a list, or the value itself. */
static json_t *largest(struct config_reader *r, const char *name, json_t *value)
{
    json_t *best = json_array_get(value, 0);
    if (!best) return value;
    bool same = true;
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_t *item = json_array_get(value, i);
        if (!json_is_integer(item)) return value;
        same &= json_integer_value(item) == json_integer_value(best);
        if (json_integer_value(item) > json_integer_value(best)) best = item;
    }
    if (!same) model_note(r->shape, "%s differs by layer: the largest is counted", name);
    return best;
}

uint64_t config_count(struct config_reader *r, const char *names, uint64_t otherwise, uint64_t max)
{
    char name[64], found[64];
    json_t *value = lookup(r, names, name, sizeof name);
    uint64_t safe = otherwise == CONFIG_REQUIRED ? 1 : otherwise;
    if (r->failed) return safe;
    if (!value) {
        if (otherwise == CONFIG_REQUIRED) config_fail(r, name, "not found, expected a count of 1 to %" PRIu64, max);
        return safe;
    }
    value = largest(r, name, value);
    double real = json_real_value(value);
    if (json_is_integer(value) && json_integer_value(value) >= 0 && (uint64_t)json_integer_value(value) <= max)
        return (uint64_t)json_integer_value(value);
    /* Some files write counts as 2.0. */
    if (json_is_real(value) && real >= 0 && real <= (double)max && real == (double)(uint64_t)real)
        return (uint64_t)real;
    describe(value, found, sizeof found);
    config_fail(r, name, "found %s, expected a count of at most %" PRIu64, found, max);
    return safe;
}

bool config_bool(struct config_reader *r, const char *names, bool otherwise)
{
    char name[64], found[64];
    json_t *value = lookup(r, names, name, sizeof name);
    if (!value) return otherwise;
    if (json_is_boolean(value)) return json_is_true(value);
    describe(value, found, sizeof found);
    config_fail(r, name, "found %s, expected true or false", found);
    return otherwise;
}

const char *config_text(struct config_reader *r, const char *names)
{
    char name[64], found[64];
    json_t *value = lookup(r, names, name, sizeof name);
    if (!value || json_is_string(value)) return json_string_value(value);
    describe(value, found, sizeof found);
    config_fail(r, name, "found %s, expected a text", found);
    return NULL;
}

bool config_type_is(const struct config_reader *r, const char *types)
{
    char key[80];
    snprintf(key, sizeof key, "|%s|", r->type);
    return strstr(types, key) != NULL;
}

/* --- types ----------------------------------------------------------------------------------- */

static void read_type(struct config_reader *r)
{
    const char *name = config_text(r, "torch_dtype|dtype");
    if (!name) name = json_string_value(json_object_get(r->root, "torch_dtype"));
    if (!name) name = json_string_value(json_object_get(r->root, "dtype"));
    r->shape->type = ELEMENT_BF16;
    if (!name) model_note(r->shape, "no torch_dtype in the file: bf16 assumed");
    else if (!element_type_find(name, ELEMENT_FOR_WEIGHTS, &r->shape->type))
        config_fail(r, "torch_dtype", "found '%.40s', expected a type like bfloat16", name);
}

/* compressed-tensors: num_bits and type of the first group's weights. */
static const char *compressed_type(const json_t *config)
{
    const char *key;
    json_t *group;
    json_object_foreach (json_object_get(config, "config_groups"), key, group) {
        json_t *weights = json_object_get(group, "weights");
        json_int_t bits = json_integer_value(json_object_get(weights, "num_bits"));
        const char *type = json_string_value(json_object_get(weights, "type"));
        bool is_float = type && strcmp(type, "float") == 0;
        if (bits == 8) return is_float ? "fp8" : "int8";
        if (bits == 4) return is_float ? "nvfp4" : "int4";
        return "";
    }
    return "";
}

static const char *quantized_name(const json_t *config, const char *method)
{
    if (strcmp(method, "compressed-tensors") == 0) return compressed_type(config);
    if (strcmp(method, "bitsandbytes") == 0)
        return json_is_true(json_object_get(config, "load_in_4bit")) ? "int4" : "int8";
    if (strcmp(method, "gptq") == 0 && json_integer_value(json_object_get(config, "bits")) == 8) return "int8";
    if (strcmp(method, "modelopt") == 0) {
        const char *algorithm = json_string_value(json_object_get(config, "quant_algo"));
        if (!algorithm)
            algorithm = json_string_value(json_object_get(json_object_get(config, "quantization"), "quant_algo"));
        return !algorithm ? "" : strstr(algorithm, "FP4") ? "nvfp4" : strstr(algorithm, "FP8") ? "fp8" : "";
    }
    return method;
}

static void read_quantization(struct config_reader *r)
{
    json_t *config = json_object_get(r->root, "quantization_config");
    if (!json_is_object(config)) config = json_object_get(r->text, "quantization_config");
    if (!json_is_object(config)) config = json_object_get(r->root, "compression_config");
    if (!json_is_object(config)) return;
    const char *method = json_string_value(json_object_get(config, "quant_method"));
    if (!method) method = json_string_value(json_object_get(json_object_get(config, "producer"), "name"));
    const char *name = method ? quantized_name(config, method) : "";
    struct model_shape *shape = r->shape;
    shape->quantized = element_type_find(name, ELEMENT_FOR_WEIGHTS, &shape->quantized_type);
    if (!shape->quantized)
        model_note(shape, "quantization_config '%.40s' is not understood: weights counted in %s",
                   method ? method : "without quant_method", element_spec(shape->type)->name);
    shape->quantized_experts_only = shape->quantized && shape->quantized_type == ELEMENT_MXFP4;
    const char *cache = json_string_value(json_object_get(config, "kv_cache_quant_algo"));
    shape->cache_fp8 = json_is_object(json_object_get(config, "kv_cache_scheme")) || (cache && strstr(cache, "FP8"));
}

/* --- the MLP ----------------------------------------------------------------------------------- */

#define PLAIN_MLP "|opt|gpt2|gpt_neox|falcon|phi|starcoder2|bloom|mpt|gptj|nemotron|nemotron_h|gpt_bigcode|codegen|"

static void read_experts(struct config_reader *r)
{
    struct model_shape *shape = r->shape;
    shape->experts =
        config_count(r, "num_local_experts|n_routed_experts|num_experts|moe_num_experts", 0, CONFIG_HEADS_MAX);
    shape->experts_active = config_count(r, "num_experts_per_tok|num_experts_per_token|moe_topk|moe_k|top_k_experts",
                                         shape->experts ? 1 : 0, CONFIG_HEADS_MAX);
    if (shape->experts == 0) return;
    if (shape->experts_active > shape->experts)
        config_fail(r, "num_experts_per_tok", "found %" PRIu64 ", expected at most the %" PRIu64 " experts",
                    shape->experts_active, shape->experts);
    shape->expert_intermediate = config_count(r, "moe_intermediate_size|moe_ffn_hidden_size|intermediate_size",
                                              CONFIG_REQUIRED, CONFIG_DIM_MAX);
    uint64_t shared = config_count(r, "n_shared_experts|num_shared_experts|moe_num_shared_experts", 0, 4096);
    shape->shared_intermediate = config_count(
        r, "shared_expert_intermediate_size|moe_shared_expert_intermediate_size|shared_intermediate_size", 0,
        CONFIG_DIM_MAX);
    if (config_type_is(r, "|nemotron_h|")) shape->shared_intermediate *= shared; /* there it is the width of one */
    else if (shape->shared_intermediate == 0) shape->shared_intermediate = shared * shape->expert_intermediate;
    if (config_type_is(r, "|llama4_text|")) shape->shared_intermediate = shape->expert_intermediate;
    /* Gemma 4 has its dense MLP beside the experts. */
    if (config_type_is(r, "|gemma4_text|")) shape->shared_intermediate = shape->intermediate;
    shape->expert_hidden = config_count(r, "moe_latent_size", 0, CONFIG_DIM_MAX);
    /* A gate on the shared expert; a correction for each expert; biases everywhere. */
    if (config_type_is(r, "|qwen2_moe|qwen3_next|qwen3_5_moe_text|")) shape->router_bias = r->hidden;
    if (config_type_is(r, "|deepseek_v3|deepseek_v32|kimi_k2|glm4_moe|")) shape->router_bias = shape->experts;
    if (config_type_is(r, "|gpt_oss|")) {
        shape->router_bias = shape->experts;
        shape->expert_bias = 2 * shape->expert_intermediate + r->hidden;
    }
}

static void read_mlp(struct config_reader *r)
{
    struct model_shape *shape = r->shape;
    shape->gated_mlp = !config_type_is(r, PLAIN_MLP);
    uint64_t usual = config_type_is(r, "|gpt2|falcon|bloom|gptj|mpt|gpt_bigcode|codegen|") ? 4 * r->hidden
                     : config_type_is(r, "|mamba|mamba2|falcon_mamba|")                    ? 0
                                                                                           : CONFIG_REQUIRED;
    shape->intermediate = config_count(
        r, "intermediate_size_mlp|intermediate_size|ffn_dim|n_inner|ffn_hidden_size|d_ff", usual, CONFIG_DIM_MAX);
    if (config_type_is(r, "|opt|gpt2|gpt_neox|phi|starcoder2|bloom|gptj|gpt_bigcode|codegen|") ||
        config_bool(r, "mlp_bias", false))
        shape->mlp_bias = shape->intermediate * (shape->gated_mlp ? 2 : 1) + r->hidden;
    read_experts(r);
}

/* --- the whole --------------------------------------------------------------------------------- */

/* Mixers in the order in which letters first appear, so that a plain model has one. */
static void assign_mixers(struct config_reader *r)
{
    static const char LETTERS[] = {LAYER_FULL,  LAYER_SLIDING,     LAYER_CHUNKED,
                                   LAYER_STATE, LAYER_FULL_SHARED, LAYER_SLIDING_SHARED};
    static const enum mixer_kind KINDS[] = {MIXER_FULL,  MIXER_SLIDING, MIXER_CHUNKED,
                                            MIXER_STATE, MIXER_FULL,    MIXER_SLIDING};
    struct model_shape *shape = r->shape;
    for (size_t k = 0; k < sizeof LETTERS; k++) {
        uint8_t bit = (uint8_t)(1u << shape->mixer_count);
        bool any = false;
        for (uint32_t i = 0; i < shape->layers; i++) {
            bool both = r->letters[i] == LAYER_BOTH && (LETTERS[k] == LAYER_FULL || LETTERS[k] == LAYER_STATE);
            if (r->letters[i] != LETTERS[k] && !both) continue;
            shape->layer_mixers[i] = (uint8_t)(shape->layer_mixers[i] | bit);
            any = true;
        }
        if (!any) continue;
        struct model_mixer *mixer = &shape->mixers[shape->mixer_count++];
        mixer->kind = KINDS[k];
        mixer->shares_cache = LETTERS[k] == LAYER_FULL_SHARED || LETTERS[k] == LAYER_SLIDING_SHARED;
        if (KINDS[k] == MIXER_STATE) config_state(r, mixer);
        else config_attention(r, mixer, KINDS[k] != MIXER_FULL);
    }
}

static void read_norms(struct config_reader *r)
{
    uint64_t norm =
        r->hidden * (config_type_is(r, "|opt|gpt2|gpt_neox|falcon|phi|starcoder2|bloom|gptj|mpt|") ? 2 : 1);
    bool four = config_type_is(r, "|gemma2|gemma3_text|gemma3n_text|gemma4_text|glm4|");
    bool one = config_type_is(r, "|nemotron_h|mamba|mamba2|falcon_mamba|falcon|phi|gptj|");
    r->shape->layer_norms = norm * (four ? 4 : one ? 1 : 2);
    r->shape->other_parameters = norm;
    if (config_type_is(r, "|opt|")) r->shape->other_parameters += (r->shape->max_positions + 2) * r->hidden;
    if (config_type_is(r, "|phi|gptj|")) r->shape->other_parameters += r->shape->vocabulary; /* biases of the head */
    /* Embeddings for each layer (Gemma 3n, 4). */
    uint64_t per_layer = config_count(r, "hidden_size_per_layer_input", 0, CONFIG_DIM_MAX);
    r->shape->other_parameters +=
        per_layer * r->layers *
        config_count(r, "vocab_size_per_layer_input", r->shape->vocabulary, (uint64_t)1 << 32);
    if (config_type_is(r, "|gpt2|gpt_bigcode|")) r->shape->other_parameters += r->shape->max_positions * r->hidden;
}

/* As vLLM derives the longest context: yarn stretches the original length, linear and dynamic scaling the given one; the others' files
 * give the stretched one. */
static void stretch_positions(struct config_reader *r)
{
    json_t *scaling = config_value(r, "rope_scaling|rope_parameters");
    const char *type = json_string_value(json_object_get(scaling, "rope_type"));
    if (!type) type = json_string_value(json_object_get(scaling, "type"));
    double factor = json_number_value(json_object_get(scaling, "factor"));
    json_t *original = json_object_get(scaling, "original_max_position_embeddings");
    if (!type || !(factor >= 1 && factor <= 1e6)) return;
    bool yarn = strcmp(type, "yarn") == 0;
    if (!yarn && strcmp(type, "linear") != 0 && strcmp(type, "dynamic") != 0) return;
    uint64_t base = r->shape->max_positions;
    if (yarn && json_integer_value(original) > 0 && json_integer_value(original) < (json_int_t)1 << 40)
        base = (uint64_t)json_integer_value(original);
    r->shape->max_positions = (uint64_t)((double)base * factor);
}

static void read_shape(struct config_reader *r)
{
    struct model_shape *shape = r->shape;
    r->layers = config_count(r, "num_hidden_layers|n_layer|n_layers|num_layers", CONFIG_REQUIRED, MODEL_LAYERS_MAX);
    r->hidden = config_count(r, "hidden_size|n_embd|d_model|model_dim", CONFIG_REQUIRED, CONFIG_DIM_MAX);
    shape->vocabulary = config_count(r, "vocab_size|padded_vocab_size", CONFIG_REQUIRED, (uint64_t)1 << 32);
    shape->max_positions =
        config_count(r, "max_position_embeddings|n_positions|max_sequence_length|seq_length|n_ctx|max_seq_len", 0,
                     (uint64_t)1 << 40);
    stretch_positions(r);
    if (!r->failed && r->layers == 0)
        config_fail(r, "num_hidden_layers", "found 0, expected 1 to %u", MODEL_LAYERS_MAX);
    if (!r->failed && r->hidden == 0) config_fail(r, "hidden_size", "found 0, expected 1 or more");
    shape->layers = (uint32_t)r->layers;
    shape->hidden = r->hidden;
    shape->tied_embeddings =
        config_bool(r, "tie_word_embeddings", json_is_true(json_object_get(r->root, "tie_word_embeddings")));
    read_type(r);
    read_quantization(r);
    read_norms(r);
    read_mlp(r);
    if (r->failed) return;
    config_layers(r);
    assign_mixers(r);
    if (config_count(r, "num_nextn_predict_layers|mtp_num_hidden_layers", 0, 64))
        model_note(shape, "multi-token prediction layers are not counted");
    if (json_object_get(r->root, "vision_config")) model_note(shape, "the vision tower's weights are not counted");
    if (json_object_get(r->root, "audio_config")) model_note(shape, "the audio tower's weights are not counted");
}

/* The part that describes the language model. */
static json_t *text_part(json_t *root)
{
    static const char *const NAMES[] = {"text_config", "llm_config", "language_config", "text_model",
                                        "language_model"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        json_t *part = json_object_get(root, NAMES[i]);
        if (json_is_object(part)) return part;
    }
    json_t *thinker = json_object_get(json_object_get(root, "thinker_config"), "text_config");
    return json_is_object(thinker) ? thinker : root;
}

static const char *model_type(const json_t *root, const json_t *text)
{
    const char *type = json_string_value(json_object_get(text, "model_type"));
    if (!type) type = json_string_value(json_object_get(root, "model_type"));
    return type ? type : "";
}

static int parse_root(struct config_reader *r)
{
    struct model_shape *shape = r->shape;
    if (!json_is_object(r->root))
        return config_fail(r, "the whole file", "found no JSON object, expected a model's config.json");
    r->text = text_part(r->root);
    /* A text part without type of its own has its model's: gemma3 -> gemma3_text. */
    const char *type = model_type(r->root, r->text);
    bool nested = r->text != r->root && !json_object_get(r->text, "model_type");
    snprintf(shape->architecture, sizeof shape->architecture, "%.40s%s", type,
             nested && (strcmp(type, "gemma3") == 0 || strcmp(type, "llama4") == 0 || strcmp(type, "gemma4") == 0 ||
                        strcmp(type, "gemma3n") == 0)
                 ? "_text"
                 : "");
    model_printable(shape->architecture);
    r->type = shape->architecture;
    const char *defaults = config_defaults(r->type);
    json_t *filled = defaults ? json_loads(defaults, 0, NULL) : NULL;
    if (filled) json_object_update_missing(r->text, filled);
    json_decref(filled);
    if (!defaults)
        model_note(shape,
                   type[0] ? "model_type '%s' is not known here: read like Llama"
                           : "no model_type%s: read like Llama",
                   type);
    read_shape(r);
    return r->failed ? -1 : model_shape_finish(shape, r->err);
}

int model_shape_parse(struct model_shape *shape, const char *text, size_t bytes, const char *what, struct err *err)
{
    memset(shape, 0, sizeof *shape);
    snprintf(shape->name, sizeof shape->name, "%s", what);
    model_printable(shape->name);
    json_error_t why;
    struct config_reader *r = calloc(1, sizeof *r);
    if (!r) return err_set(err, ERR_FAILED, "out of memory");
    *r = (struct config_reader){.what = what, .shape = shape, .err = err};
    int status;
    if (bytes > CONFIG_BYTES_MAX)
        status = err_set(err, ERR_INPUT, "%s: more than 4 MiB, expected a model's config.json", what);
    else if (!(r->root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why)))
        status = err_set(err, ERR_INPUT, "%s:%d:%d: %s", what, why.line, why.column, why.text);
    else status = parse_root(r);
    json_decref(r->root);
    free(r);
    return status;
}

int model_shape_read(struct model_shape *shape, const char *path, struct err *err)
{
    char inside[4096];
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        int length = snprintf(inside, sizeof inside, "%s/config.json", path);
        if (length >= (int)sizeof inside) return err_set(err, ERR_INPUT, "%.200s...: path too long", path);
        path = inside;
    }
    FILE *file = fopen(path, "rb");
    if (!file) return err_set(err, ERR_INPUT, "%s: %m", path);
    char *text = malloc(CONFIG_BYTES_MAX + 1);
    size_t bytes = text ? fread(text, 1, CONFIG_BYTES_MAX + 1, file) : 0;
    bool broken = ferror(file) != 0;
    fclose(file);
    int status = !text    ? err_set(err, ERR_FAILED, "out of memory")
                 : broken ? err_set(err, ERR_INPUT, "%s: cannot be read", path)
                          : model_shape_parse(shape, text, bytes, path, err);
    free(text);
    return status;
}
