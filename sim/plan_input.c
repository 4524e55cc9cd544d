/* From options to the input of a plan. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/numbers.h"
#include "sim/plan.h"
#include "sim/sizes.h"

#define DIM_MAX ((uint64_t)1 << 24)

/* --- layer groups ------------------------------------------------------------------------------ */

/* What a group may say; NULL-terminated by count. */
static uint64_t *group_field(struct plan_input *in, uint32_t m, const char *key, size_t bytes)
{
    struct model_mixer *x = &in->shape.mixers[m];
    const struct {
        const char *key;
        uint64_t *field;
    } FIELDS[] = {
        {"heads", &x->kv_heads},
        {"kv-heads", &x->kv_heads},
        {"dim", &x->key_dim},
        {"key-dim", &x->key_dim},
        {"value-dim", &x->value_dim},
        {"window", &x->window_tokens},
        {"latent", &x->latent_dim},
        {"rope", &x->rope_dim},
        {"token-bytes", &x->fixed_token_bytes},
        {"key-bytes", &x->fixed_key_bytes},
        {"state", &x->fixed_recurrent_bytes},
        {"conv", &x->fixed_conv_bytes},
        {"block", &in->mixer_block_tokens[m]},
        {"blocks", &in->mixer_blocks[m]},
    };
    for (size_t i = 0; i < sizeof FIELDS / sizeof FIELDS[0]; i++)
        if (strlen(FIELDS[i].key) == bytes && memcmp(FIELDS[i].key, key, bytes) == 0) return FIELDS[i].field;
    return NULL;
}

static int group_value(struct plan_input *in, uint32_t m, const char *text, size_t bytes, struct err *err)
{
    char value[64];
    const char *equals = memchr(text, '=', bytes);
    size_t key_bytes = equals ? (size_t)(equals - text) : bytes;
    uint64_t *field = group_field(in, m, text, key_bytes);
    if (!equals || !field)
        return err_set(
            err, ERR_USAGE,
            "--layer-groups: found '%.*s', expected KEY=VALUE with heads, dim, key-dim, value-dim, window, latent, rope, "
            "token-bytes, key-bytes, state, conv, block or blocks",
            (int)(bytes > 60 ? 60 : bytes), text);
    snprintf(value, sizeof value, "%.*s", (int)min_u64(bytes - key_bytes - 1, 60), equals + 1);
    if (size_parse_bytes(value, field) == SIZE_OK && *field >= 1 && *field <= (uint64_t)1 << 36) return 0;
    return err_set(err, ERR_USAGE, "--layer-groups: %.*s: found '%s', expected a count from 1 to 2^36",
                   (int)key_bytes, text, value);
}

static bool group_kind(const char *text, size_t bytes, enum mixer_kind *kind)
{
    static const struct {
        const char *name;
        enum mixer_kind kind;
    } KINDS[] = {
        {"full", MIXER_FULL}, {"sliding", MIXER_SLIDING}, {"chunked", MIXER_CHUNKED}, {"recurrent", MIXER_STATE}};
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (strlen(KINDS[i].name) != bytes || memcmp(KINDS[i].name, text, bytes) != 0) continue;
        *kind = KINDS[i].kind;
        return true;
    }
    return false;
}

static uint64_t window_given(const struct options *o)
{
    return o->window_tokens == OPT_UNSET ? 0 : o->window_tokens;
}

/* Heads and sizes that a group does not give are those of the other options. */
static void group_defaults(struct model_mixer *x, const struct options *o)
{
    x->kv_heads = o->num_kv_heads == OPT_UNSET ? 0 : o->num_kv_heads;
    x->key_dim = o->head_dim == OPT_UNSET ? 0 : o->head_dim;
    x->value_dim = o->head_dim_v == OPT_UNSET ? 0 : o->head_dim_v;
}

static int group_finish(struct model_mixer *x, const char *item, struct err *err)
{
    if (x->value_dim == 0) x->value_dim = x->key_dim;
    if (x->kv_heads == 0) x->kv_heads = x->key_dim ? 1 : 0;
    if ((x->kind == MIXER_SLIDING || x->kind == MIXER_CHUNKED) && x->window_tokens == 0)
        return err_set(err, ERR_USAGE, "--layer-groups: found '%.60s', expected window=TOKENS in it", item);
    return 0;
}

static int group_read(struct plan_input *in, const struct options *o, const char *item, struct err *err)
{
    struct model_shape *shape = &in->shape;
    uint32_t m = shape->mixer_count;
    if (m == MODEL_MIXERS_MAX)
        return err_set(err, ERR_USAGE, "--layer-groups: more than %u groups", MODEL_MIXERS_MAX);
    struct model_mixer *x = &shape->mixers[m];
    size_t kind_bytes = strcspn(item, ":");
    char *end = NULL;
    unsigned long long layers = item[kind_bytes] ? strtoull(item + kind_bytes + 1, &end, 10) : 0;
    if (!group_kind(item, kind_bytes, &x->kind) || layers < 1 || layers > MODEL_LAYERS_MAX - shape->layers ||
        (*end && *end != ':'))
        return err_set(
            err, ERR_USAGE,
            "--layer-groups: found '%.60s', expected KIND:LAYERS[:KEY=VALUE]..., KIND full, sliding, chunked or "
            "recurrent, at most %u layers in all",
            item, MODEL_LAYERS_MAX);
    group_defaults(x, o);
    x->state_name = "recurrent";
    if (x->kind == MIXER_SLIDING || x->kind == MIXER_CHUNKED) x->window_tokens = window_given(o);
    for (const char *at = end; *at == ':';) {
        size_t bytes = strcspn(++at, ":");
        if (group_value(in, m, at, bytes, err) != 0) return -1;
        at += bytes;
    }
    memset(shape->layer_mixers + shape->layers, (int)(1u << m), layers);
    shape->layers += (uint32_t)layers;
    shape->mixer_count++;
    return group_finish(x, item, err);
}

/* --- the model ---------------------------------------------------------------------------------- */

static int groups_shape(struct plan_input *in, const struct options *o, struct err *err)
{
    memset(&in->shape, 0, sizeof in->shape);
    snprintf(in->shape.name, sizeof in->shape.name, "layer groups");
    for (size_t i = 0; i < o->layer_groups.count; i++)
        if (group_read(in, o, o->layer_groups.items[i], err) != 0) return -1;
    return model_shape_finish(&in->shape, err);
}

static int numbers_shape(struct plan_input *in, const struct options *o, struct err *err)
{
    bool latent = o->kv_lora_rank != OPT_UNSET;
    if (!latent && (o->num_kv_heads == OPT_UNSET || o->head_dim == OPT_UNSET))
        return err_set(err, ERR_USAGE,
                       "--num-layers: needs --num-kv-heads and --head-dim beside it (or --kv-lora-rank)");
    uint64_t heads = o->num_attention_heads == OPT_UNSET ? 0 : o->num_attention_heads;
    uint64_t dim = o->head_dim == OPT_UNSET ? 1 : o->head_dim;
    if (model_shape_plain(&in->shape, o->num_layers, heads, o->num_kv_heads == OPT_UNSET ? 1 : o->num_kv_heads, dim,
                          o->head_dim_v == OPT_UNSET ? dim : o->head_dim_v, window_given(o), err) != 0)
        return -1;
    if (latent) {
        in->shape.mixers[0].latent_dim = o->kv_lora_rank;
        in->shape.mixers[0].rope_dim = o->qk_rope_head_dim == OPT_UNSET ? 64 : o->qk_rope_head_dim;
    }
    return 0;
}

/* A preset, else a path; what is neither gets one line that says both. */
static int named_shape(struct plan_input *in, const char *name, struct err *err)
{
    struct stat info;
    if (model_preset_find(name)) return model_shape_preset(&in->shape, name, err);
    if (stat(name, &info) == 0) return model_shape_read(&in->shape, name, err);
    return err_set(
        err, ERR_USAGE,
        "--model: found '%.200s', expected a config.json, a folder with one, or a built-in model ('pagesim plan --list')",
        name);
}

static int read_type(const char *option, const char *text, enum element_use use, enum element_type *type,
                     struct err *err)
{
    char names[256];
    if (!text || strcasecmp(text, "auto") == 0 || element_type_find(text, use, type)) return 0;
    element_type_names(use, names, sizeof names);
    return err_set(err, ERR_USAGE, "--%s: found '%.60s', expected auto|%s", option, text, names);
}

static int read_state_types(struct plan_input *in, const struct options *o, struct err *err)
{
    for (uint32_t m = 0; m < in->shape.mixer_count; m++) {
        struct model_mixer *x = &in->shape.mixers[m];
        if (read_type("mamba-cache-dtype", o->mamba_cache_dtype, ELEMENT_FOR_WEIGHTS, &x->conv_type, err) != 0)
            return -1;
        if (o->mamba_cache_dtype && strcasecmp(o->mamba_cache_dtype, "auto") != 0) x->state_type = x->conv_type;
        if (read_type("mamba-ssm-cache-dtype", o->mamba_ssm_cache_dtype, ELEMENT_FOR_WEIGHTS, &x->state_type, err) !=
            0)
            return -1;
    }
    return 0;
}

/* Methods that leave the type to the checkpoint. */
static bool names_no_type(const char *method)
{
    static const char METHODS[] =
        "|none|auto|compressed-tensors|compressed_tensors|quark|torchao|gguf|hqq|modelopt_mixed|";
    char key[40] = "|";
    strncat(key, method, 36);
    strcat(key, "|");
    return strcasestr(METHODS, key) != NULL;
}

/* auto: what the checkpoint asks for, else the type of the activations. */
static int read_types(struct plan_input *in, const struct options *o, struct err *err)
{
    if (!in->has_shape) in->shape.type = ELEMENT_BF16;
    if (read_type("dtype", o->dtype, ELEMENT_FOR_WEIGHTS, &in->shape.type, err) != 0) return -1;
    in->weights = model_checkpoint_type(&in->shape);
    if (o->quantization && !names_no_type(o->quantization) &&
        read_type("quantization", o->quantization, ELEMENT_FOR_WEIGHTS, &in->weights, err) != 0)
        return -1;
    in->cache_auto = !o->kv_cache_dtype || strcasecmp(o->kv_cache_dtype, "auto") == 0;
    in->cache = in->shape.cache_fp8                     ? ELEMENT_FP8
                : element_type_is_small(in->shape.type) ? ELEMENT_BF16
                                                        : in->shape.type;
    if (read_type("kv-cache-dtype", o->kv_cache_dtype, ELEMENT_FOR_CACHE, &in->cache, err) != 0) return -1;
    bool latent = false;
    for (uint32_t m = 0; m < in->shape.mixer_count; m++) latent |= in->shape.mixers[m].latent_dim > 0;
    if (in->cache == ELEMENT_FP8_MLA && !latent)
        return err_set(err, ERR_USAGE,
                       "--kv-cache-dtype: found 'fp8_ds_mla', which is for latent attention (MLA) only");
    return read_state_types(in, o, err);
}

static int read_model(struct plan_input *in, const struct options *o, struct err *err)
{
    int status = 0;
    in->has_shape = true;
    if (o->model) status = named_shape(in, o->model, err);
    else if (o->layer_groups.count) status = groups_shape(in, o, err);
    else if (o->num_layers != OPT_UNSET) status = numbers_shape(in, o, err);
    else in->has_shape = false;
    return status != 0 ? -1 : read_types(in, o, err);
}

/* --- the device ------------------------------------------------------------------------------------ */

static uint64_t known(uint64_t option)
{
    return option == OPT_UNSET ? PLAN_UNKNOWN : option;
}

static struct plan_amount amount(uint64_t option)
{
    return (struct plan_amount){known(option), PLAN_GIVEN};
}

static int read_device(struct plan_input *in, const struct options *o, struct err *err)
{
    in->gpu = o->gpu ? gpu_find(o->gpu) : NULL;
    if (o->gpu && !in->gpu)
        return err_set(
            err, ERR_USAGE,
            "--gpu: found '%.60s', expected one of those that 'pagesim plan --list' names, or --gpu-memory BYTES",
            o->gpu);
    in->gpu_memory = o->gpu_memory_bytes != OPT_UNSET ? o->gpu_memory_bytes
                     : in->gpu                        ? in->gpu->memory_bytes
                                                      : PLAN_UNKNOWN;
    in->utilization_given = o->gpu_memory_utilization >= 0;
    in->utilization_billionths = in->utilization_given ? (uint64_t)llround(o->gpu_memory_utilization * 1e9)
                                                       : in->engine->utilization_billionths;
    in->weights_memory = amount(o->weights_bytes);
    in->offload = amount(o->offload_bytes == OPT_UNSET ? 0 : o->offload_bytes);
    in->non_torch = amount(o->non_torch_bytes);
    in->activation = amount(o->activation_bytes);
    in->graphs = amount(o->graph_bytes);
    in->residue = amount(o->loader_residue_bytes == OPT_UNSET ? 0 : o->loader_residue_bytes);
    in->graphs_inside =
        o->graph_budget == OPT_WORD_UNSET ? in->engine->graphs_inside : o->graph_budget == OPT_GRAPHS_INSIDE;
    in->eager = o->enforce_eager;
    in->sleep_mode = o->sleep_mode;
    return 0;
}

static void read_pool(struct plan_input *in, const struct optset *set, const struct options *o)
{
    bool bytes = optset_given(set, "kv-cache-memory-bytes");
    in->pool_bytes = bytes ? o->kv_cache_memory_bytes : PLAN_UNKNOWN;
    in->pool_tokens = known(o->pool_tokens);
    in->pool_blocks = known(o->num_gpu_blocks);
    in->page_bytes = known(o->page_bytes);
    in->kernel_page_bytes = known(o->kernel_page_bytes);
    in->swap_bytes = optset_given(set, "swap-space") ? o->swap_space_bytes : PLAN_UNKNOWN;
    in->swa_ratio_millionths = o->swa_ratio < 0 ? 800000 : (uint64_t)llround(o->swa_ratio * 1e6);
}

static void read_lengths(struct plan_input *in, const struct optset *set, const struct options *o)
{
    in->max_model_len_given = o->max_model_len != OPT_UNSET;
    in->max_model_len = in->max_model_len_given   ? o->max_model_len
                        : in->shape.max_positions ? in->shape.max_positions
                                                  : PLAN_UNKNOWN;
    in->max_num_seqs = o->max_num_seqs;
    in->steps_given = optset_given(set, "max-num-seqs") && optset_given(set, "max-num-batched-tokens");
    in->max_num_batched_tokens = o->max_num_batched_tokens;
    in->tokens_in_flight = o->max_num_batched_tokens * (o->async_scheduling ? 2 : 1);
    in->block_given = optset_given(set, "block-size");
    in->block_tokens = in->block_given ? o->block_tokens : in->engine->block_tokens;
    in->alignment_tokens =
        o->block_alignment_tokens == OPT_UNSET ? (in->engine->align_to_keys ? 128 : 16) : o->block_alignment_tokens;
    in->serve_requests = known(o->serve_requests);
    in->serve_tokens = o->serve_tokens != OPT_UNSET ? o->serve_tokens : in->max_model_len;
}

static uint32_t ranks(uint64_t option)
{
    return option == OPT_UNSET ? 1 : (uint32_t)option;
}

/* Sums that would pass 2^62 bytes are refused, so that every figure is the right one. */
static int check_sums(const struct plan_input *in, struct err *err)
{
    typedef unsigned __int128 u128;
    const u128 most = (u128)1 << 62;
    if (!in->has_shape) return 0;
    u128 token = model_token_bytes(&in->shape, in->cache, &MODEL_WHOLE), state = model_state_bytes(&in->shape, &MODEL_WHOLE);
    uint64_t length = in->max_model_len == PLAN_UNKNOWN ? 0 : in->max_model_len;
    if (in->serve_tokens != PLAN_UNKNOWN && in->serve_tokens > length) length = in->serve_tokens;
    if (token * length + state > most)
        return err_set(err, ERR_USAGE, "a request of %" PRIu64 " tokens would take more than 2^62 bytes", length);
    u128 block = (token + 1) * in->block_tokens + state;
    u128 blocks = in->pool_blocks == PLAN_UNKNOWN ? 0 : in->pool_blocks;
    if (in->pool_tokens != PLAN_UNKNOWN) blocks = in->pool_tokens / in->block_tokens + 1;
    if (block * blocks > most) return err_set(err, ERR_USAGE, "a pool of more than 2^62 bytes");
    return 0;
}

/* vLLM's `auto`: a length that would not start is lowered to the longest that does. */
static int fit_length(struct plan_input *in, struct err *err)
{
    struct plan *plan = malloc(sizeof *plan);
    if (!plan) return err_set(err, ERR_FAILED, "out of memory");
    plan_compute(plan, in);
    uint64_t longest = plan->longest_request_tokens;
    free(plan);
    if (longest == PLAN_UNKNOWN || longest == 0 || longest >= in->max_model_len) return 0;
    if (in->serve_tokens == in->max_model_len) in->serve_tokens = longest;
    in->max_model_len = longest;
    in->max_model_len_fitted = true;
    return 0;
}

int plan_input_read(struct plan_input *in, const struct optset *set, const struct options *o, struct err *err)
{
    memset(in, 0, sizeof *in);
    /* A simulation of an older engine is planned by its rules. */
    bool older = o->rules == KV_RULES_2026_04;
    in->engine = plan_engine_find(o->engine ? o->engine : older ? "vllm-0.20" : "vllm");
    if (!in->engine)
        return err_set(
            err, ERR_USAGE,
            "--engine: found '%.60s', expected vllm, vllm-0.20, vllm-v0, vllm-ascend, sglang or tensorrt-llm",
            o->engine);
    in->tp = ranks(o->tensor_parallel);
    in->pp = ranks(o->pipeline_parallel);
    in->dp = ranks(o->data_parallel);
    in->dcp = ranks(o->context_parallel);
    in->expert_parallel = o->expert_parallel;
    in->prefix_caching = o->prefix_caching;
    if (read_model(in, o, err) != 0 || read_device(in, o, err) != 0) return -1;
    if (in->has_shape && in->pp > in->shape.layers)
        return err_set(err, ERR_USAGE, "--pipeline-parallel-size: found %u stages, more than the %u layers", in->pp,
                       in->shape.layers);
    read_pool(in, set, o);
    read_lengths(in, set, o);
    if (check_sums(in, err) != 0) return -1;
    bool fit = o->fit_model_len && !in->max_model_len_given && in->max_model_len != PLAN_UNKNOWN;
    return fit ? fit_length(in, err) : 0;
}
