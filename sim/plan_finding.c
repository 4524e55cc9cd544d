#include "sim/plan_finding.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/numbers.h"
#include "sim/plan_internal.h"
#include "sim/plan_report.h"

#define MIB ((uint64_t)1 << 20)
/* What a process takes after the pool was sized and that no rule counts; measured on an H200: a second stream's cuBLAS (70 MiB), what
 * graphs leave behind (128 to 161 MiB), rounded up. */
#define LATE_BUFFERS (256 * MIB)

struct context {
    const struct plan *plan;
    const struct plan_input *in;
    const struct plan_stage *stage; /* the binding one */
    const struct plan_trace *trace; /* NULL: none is known */
    char a[32], b[32], c[32], d[32];
};

/* A text into one of the finding's fields. */
#define SAY(field, ...) snprintf(f->field, sizeof f->field, __VA_ARGS__)
#define A(bytes) plan_bytes_text((bytes), x->a, sizeof x->a)
#define B(bytes) plan_bytes_text((bytes), x->b, sizeof x->b)
#define C(bytes) plan_bytes_text((bytes), x->c, sizeof x->c)
#define D(bytes) plan_bytes_text((bytes), x->d, sizeof x->d)

static uint64_t weights16(const struct context *x)
{
    struct model_part part = plan_part(x->in, x->plan->binding);
    return x->in->has_shape ? model_weight_bytes(&x->in->shape, ELEMENT_BF16, &part) : 0;
}

static uint64_t token_bytes(const struct context *x, enum element_type cache)
{
    struct model_part part = plan_part(x->in, x->plan->binding);
    return model_token_bytes(&x->in->shape, cache, &part);
}

static bool cache_16_bit(struct context *x, struct plan_finding *f)
{
    const struct plan_input *in = x->in;
    if (!in->has_shape || !element_type_is_small(in->weights) || element_type_is_small(in->cache)) return false;
    uint64_t now = token_bytes(x, in->cache), then = token_bytes(x, ELEMENT_FP8);
    if (now == 0 || then == 0) return false;
    SAY(found, "weights are in %s, but keys and values stay in %s%s", element_spec(in->weights)->name,
        element_spec(in->cache)->name,
        in->cache_auto ? ": a quantized checkpoint does not change the cache's type" : "");
    SAY(arithmetic, "%" PRIu64 " bytes a token; fp8 takes %" PRIu64 ": %.2f times the tokens in the same pool", now,
        then, (double)now / (double)then);
    SAY(change, "--kv-cache-dtype fp8, if the model's answers bear it");
    return true;
}

static bool type_needs_gpu(struct context *x, struct plan_finding *f)
{
    const struct plan_input *in = x->in;
    const struct gpu *gpu = in->gpu;
    if (!gpu) return false;
    bool cache8 = in->cache == ELEMENT_FP8 || in->cache == ELEMENT_FP8_PER_HEAD || in->cache == ELEMENT_FP8_MLA;
    bool weights8 = in->weights == ELEMENT_FP8, four = in->weights == ELEMENT_NVFP4;
    if (gpu->capability >= 89 && !(four && gpu->capability < 100)) return false;
    if (!cache8 && !weights8 && !four) return false;
    f->severity = cache8 && gpu->capability < 80 ? FINDING_ERROR : FINDING_WARNING;
    SAY(found, "%s%s%s on %s", weights8 || four ? element_spec(in->weights)->name : "",
        weights8 || four ? " weights" : "", cache8 ? (weights8 || four ? " and an fp8 cache" : "an fp8 cache") : "",
        gpu->name);
    SAY(arithmetic, "compute capability %u.%u; %s arithmetic begins at %s", gpu->capability / 10,
        gpu->capability % 10, four ? "NVFP4" : "FP8", four ? "10.0" : "8.9");
    SAY(change,
        "expect memory saved but no speed (weights are widened in the kernel), or kernels that refuse: use int8, AWQ or GPTQ, or another GPU");
    return true;
}

static bool bf16_needs_gpu(struct context *x, struct plan_finding *f)
{
    const struct gpu *gpu = x->in->gpu;
    if (!gpu || gpu->capability >= 80 || !x->in->has_shape || x->in->shape.hidden == 0 ||
        x->in->shape.type != ELEMENT_BF16)
        return false;
    SAY(found, "bfloat16 on %s", gpu->name);
    SAY(arithmetic, "compute capability %u.%u; bfloat16 begins at 8.0", gpu->capability / 10, gpu->capability % 10);
    SAY(change, "--dtype half: the same bytes; watch for overflows in models trained in bfloat16");
    return true;
}

static bool device_overcommitted(struct context *x, struct plan_finding *f)
{
    /* Where no block fits the verdict says it all. */
    if (!x->stage->has_budget || x->stage->overcommitted_bytes == 0 || x->stage->num_blocks == 0) return false;
    f->severity = FINDING_ERROR;
    SAY(found, "what the plan puts on the device exceeds it");
    SAY(arithmetic, "%s more than the %s there are; %s of CUDA graphs are %s the share",
        A(x->stage->overcommitted_bytes), B(x->in->gpu_memory), C(x->stage->graphs.bytes),
        x->in->graphs_inside ? "inside" : "outside");
    SAY(change, "lower --gpu-memory-utilization by %.3f, or --enforce-eager",
        (double)x->stage->overcommitted_bytes / (double)x->in->gpu_memory + 0.0005);
    return true;
}

static bool utilization_high(struct context *x, struct plan_finding *f)
{
    const struct plan_stage *s = x->stage;
    if (!s->has_budget || s->overcommitted_bytes || s->num_blocks == PLAN_UNKNOWN ||
        x->in->engine->share == PLAN_OF_FREE_BEFORE)
        return false;
    if (s->outside_bytes >= LATE_BUFFERS) return false;
    SAY(found, "utilization %.4g leaves too little for what no rule counts",
        (double)x->in->utilization_billionths / 1e9);
    SAY(arithmetic, "%s stay free; buffers that libraries allocate late took up to %s on an H200",
        A(s->outside_bytes), B(LATE_BUFFERS));
    SAY(change, "--gpu-memory-utilization %.3f or less",
        ((double)x->in->utilization_billionths / 1e9) -
            (double)(LATE_BUFFERS - s->outside_bytes) / (double)x->in->gpu_memory);
    return true;
}

/* vLLM compares the share with what is free when the process begins. */
static bool free_at_start(struct context *x, struct plan_finding *f)
{
    const struct plan_input *in = x->in;
    if (!x->stage->has_budget || in->engine->share != PLAN_OF_TOTAL) return false;
    uint64_t context = min_u64(x->stage->non_torch.bytes, PLAN_CONTEXT_BYTES), free_bytes = above(in->gpu_memory, context);
    if (x->stage->requested_bytes <= free_bytes) return false;
    bool refuses = plan_free_at_start_refuses(in, x->stage);
    f->severity = refuses ? FINDING_ERROR : FINDING_WARNING;
    SAY(found, "the share exceeds what is free once the context exists%s", refuses ? ": vLLM refuses to start" : "");
    SAY(arithmetic, "%.4g x %s = %s; free after the context of %s: %s", (double)in->utilization_billionths / 1e9,
        A(in->gpu_memory), B(x->stage->requested_bytes), C(context), D(free_bytes));
    SAY(change, "--gpu-memory-utilization %.3f or less", (double)free_bytes / (double)in->gpu_memory - 0.0005);
    return true;
}

static bool has_latent(const struct plan_input *in)
{
    for (uint32_t m = 0; m < in->shape.mixer_count; m++)
        if (in->shape.mixers[m].latent_dim) return true;
    return false;
}

static bool block_kernels(struct context *x, struct plan_finding *f)
{
    const struct plan_input *in = x->in;
    bool vllm = strncmp(in->engine->name, "vllm", 4) == 0, v0 = strcmp(in->engine->name, "vllm-v0") == 0,
         latent = has_latent(in);
    uint64_t step = v0 ? 8 : vllm ? 16 : strcmp(in->engine->name, "tensorrt-llm") == 0 ? 8 : 1;
    if (v0 && in->block_given && in->block_tokens != 8 && in->block_tokens != 16 && in->block_tokens != 32) {
        f->severity = FINDING_ERROR;
        SAY(found, "block size %" PRIu64 " has no kernel", in->block_tokens);
        SAY(arithmetic, "engine v0's kernels were built for 8, 16 and 32 tokens");
        SAY(change, "--block-size 32, or a newer engine");
        return true;
    }
    if (!in->block_given || in->block_tokens % step == 0) return false;
    f->severity = FINDING_ERROR;
    SAY(found, "block size %" PRIu64 " has no kernel", in->block_tokens);
    SAY(arithmetic, "%" PRIu64 " is no multiple of %" PRIu64, in->block_tokens, step);
    SAY(change, "--block-size %" PRIu64 "%s", (in->block_tokens / step + 1) * step,
        latent ? " (64 for FlashMLA)" : "");
    return true;
}

static bool block_latent(struct context *x, struct plan_finding *f)
{
    const struct plan_input *in = x->in;
    bool vllm = strncmp(in->engine->name, "vllm", 4) == 0;
    if (!vllm || !in->block_given || !has_latent(in) || in->block_tokens % 64 == 0 || in->block_tokens % 16 != 0)
        return false;
    SAY(found, "block size %" PRIu64 " with latent attention", in->block_tokens);
    SAY(arithmetic, "FlashMLA's kernels take blocks of 64, CUTLASS MLA's of 128");
    SAY(change, "--block-size 64, or leave it out");
    return true;
}

static bool block_sharing(struct context *x, struct plan_finding *f)
{
    const struct plan_input *in = x->in;
    if (!in->prefix_caching || !in->block_given || in->block_tokens <= 64) return false;
    f->severity = FINDING_NOTE;
    SAY(found, "blocks of %" PRIu64 " tokens lose sharing: only full blocks are reused", in->block_tokens);
    SAY(arithmetic,
        "(%" PRIu64
        " - 1) / 2 = %.1f tokens of each shared prefix are computed again, on average; 7.5 with blocks of 16",
        in->block_tokens, (double)(in->block_tokens - 1) / 2);
    SAY(change, "--block-size 16 or 32 where prefixes are shared; see pagesim sweep");
    return true;
}

static bool sleep_mode(struct context *x, struct plan_finding *f)
{
    if (!x->in->sleep_mode) return false;
    f->severity = FINDING_NOTE;
    SAY(found, "sleep mode: level 1 moves the weights to host memory and drops the cache");
    SAY(arithmetic,
        "%s of pinned host memory on each rank while it sleeps; context, graphs and late buffers (%s and more) stay on the device",
        A(x->stage->weights.bytes), B(PLAN_CONTEXT_BYTES));
    SAY(change,
        "leave it out unless another process needs the device; check that the residue after waking is in the budget (--loader-residue)");
    return true;
}

static bool loader_residue(struct context *x, struct plan_finding *f)
{
    uint64_t residue = x->stage->residue.bytes, wide = weights16(x), saved = above(wide, x->stage->weights.bytes);
    if (residue == 0) return false;
    SAY(found, "loading left %s on the device", A(residue));
    if (saved)
        SAY(arithmetic, "%s saved %s of weights; the residue takes %.0f %% of that back",
            element_spec(x->in->weights)->name, B(saved), 100.0 * (double)residue / (double)saved);
    else if (x->stage->block_bytes != PLAN_UNKNOWN)
        SAY(arithmetic, "%" PRIu64 " blocks fewer", residue / x->stage->block_bytes);
    SAY(change,
        "load a checkpoint that is already quantized, or free the originals (empty_cache) before the pool is sized");
    return true;
}

/* A 16-bit checkpoint is loaded whole and quantized on the device, unless the engine does it layer by layer. */
static bool online_quantization(struct context *x, struct plan_finding *f)
{
    const struct plan_input *in = x->in;
    uint64_t wide = weights16(x);
    if (!x->stage->has_budget || wide == 0 || in->shape.quantized || in->weights != ELEMENT_FP8) return false;
    SAY(found, "fp8 from a %s checkpoint: it is quantized while it is loaded", element_spec(in->shape.type)->name);
    SAY(arithmetic,
        "up to %s on the device at that moment (unless it goes layer by layer), %s afterwards; there are %s", A(wide),
        B(x->stage->weights.bytes), C(in->gpu_memory));
    SAY(change, "a checkpoint in FP8, if there is one; static scales come with it");
    return true;
}

/* Without a trace it may cost much or nothing; with one it is known. */
static bool caching_off(struct context *x, struct plan_finding *f)
{
    const struct plan_trace *t = x->trace;
    if (x->in->prefix_caching || (t && t->has_content && t->shared_tokens == 0)) return false;
    SAY(found, "prefix caching is off: repeated prompts are computed and stored again");
    if (t && t->has_content)
        SAY(arithmetic,
            "%" PRIu64 " of the trace's %" PRIu64
            " prompt tokens (%.1f %%) repeat an earlier prompt in whole blocks of %" PRIu64,
            t->shared_tokens, t->prompt_tokens, 100.0 * (double)t->shared_tokens / (double)t->prompt_tokens,
            x->in->block_tokens);
    else
        SAY(arithmetic, "how much that is depends on the requests: %s",
            t ? "the trace has no content ids" : "give their --trace");
    SAY(change, "--enable-prefix-caching, unless no two requests share a prefix");
    return true;
}

static bool length_refuses(struct context *x, struct plan_finding *f)
{
    const struct plan *p = x->plan;
    const struct plan_input *in = x->in;
    bool known = p->num_blocks != PLAN_UNKNOWN && p->num_blocks > 0 && p->longest_request_tokens != PLAN_UNKNOWN &&
                 in->max_model_len != PLAN_UNKNOWN;
    if (!known || in->max_model_len <= p->longest_request_tokens) return false;
    f->severity = FINDING_ERROR;
    SAY(found, "max_model_len %" PRIu64 "%s does not fit the pool", in->max_model_len,
        in->max_model_len_given ? "" : " (the model's own)");
    SAY(arithmetic, "one such request takes %" PRIu64 " blocks of %" PRIu64, p->blocks_per_request, p->num_blocks);
    SAY(change, "--max-model-len %" PRIu64 ", a smaller cache type, more ranks, or a larger share",
        p->longest_request_tokens);
    return true;
}

/* Start-up compares with all blocks, service hands out one less. */
static bool length_null_block(struct context *x, struct plan_finding *f)
{
    const struct plan *p = x->plan;
    bool short_by_one = p->uniform && p->starts && p->num_blocks != PLAN_UNKNOWN && p->blocks_per_request != PLAN_UNKNOWN &&
                        p->blocks_per_request > p->usable_blocks;
    if (!short_by_one) return false;
    f->severity = FINDING_WARNING;
    SAY(found, "a request of max_model_len %" PRIu64 " can never be served: the null block is counted at start-up only",
        x->in->max_model_len);
    SAY(arithmetic, "it takes %" PRIu64 " blocks; of %" PRIu64 ", %" PRIu64 " can be handed out", p->blocks_per_request, p->num_blocks,
        p->usable_blocks);
    SAY(change, "--max-model-len %" PRIu64 " or less, or a larger pool", p->usable_kv_tokens);
    return true;
}

static bool length_beyond_model(struct context *x, struct plan_finding *f)
{
    const struct plan_input *in = x->in;
    uint64_t own = in->shape.max_positions;
    if (!in->max_model_len_given || own == 0 || in->max_model_len <= own) return false;
    SAY(found, "max_model_len %" PRIu64 " is longer than the model was made for", in->max_model_len);
    SAY(arithmetic, "max_position_embeddings is %" PRIu64, own);
    SAY(change, "--max-model-len %" PRIu64 " or less; vLLM takes more only with rope scaling or VLLM_ALLOW_LONG_MAX_MODEL_LEN=1", own);
    return true;
}

static bool length_wastes(struct context *x, struct plan_finding *f)
{
    const struct plan *p = x->plan;
    const struct plan_input *in = x->in;
    if (p->num_blocks == PLAN_UNKNOWN || in->max_model_len == PLAN_UNKNOWN || !in->max_model_len_given) return false;
    u128 demand = (u128)p->blocks_per_request * in->max_num_seqs;
    if (demand == 0 || demand * 2 > p->num_blocks) return false;
    f->severity = FINDING_NOTE;
    SAY(found, "the pool is larger than all sequences together can ever fill");
    SAY(arithmetic, "%" PRIu64 " sequences x %" PRIu64 " blocks = %" PRIu64 " of %" PRIu64 " blocks",
        in->max_num_seqs, p->blocks_per_request, (uint64_t)demand, p->num_blocks);
    SAY(change, "raise --max-num-seqs or --max-model-len, or lower the share; the rest only caches prefixes");
    return true;
}

static bool length_unused(struct context *x, struct plan_finding *f)
{
    const struct plan_trace *t = x->trace;
    uint64_t length = x->in->max_model_len;
    if (!t || t->requests == 0 || length == PLAN_UNKNOWN || length / 2 < t->longest_tokens) return false;
    f->severity = FINDING_NOTE;
    SAY(found, "max_model_len %" PRIu64 " is more than twice what any request of the trace needs", length);
    SAY(arithmetic,
        "the longest has %" PRIu64
        " tokens; a paged cache reserves nothing for the rest, contiguous ones and the profile run do",
        t->longest_tokens);
    SAY(change, "--max-model-len %" PRIu64, t->longest_tokens);
    return true;
}

static bool length_cuts(struct context *x, struct plan_finding *f)
{
    const struct plan_trace *t = x->trace;
    if (!t || t->too_long == 0) return false;
    SAY(found, "requests of the trace are longer than max_model_len %" PRIu64 ": rejected or cut",
        x->in->max_model_len);
    SAY(arithmetic, "%" PRIu64 " of %" PRIu64 " requests; the longest has %" PRIu64 " tokens", t->too_long,
        t->requests, t->longest_tokens);
    SAY(change, "--max-model-len %" PRIu64 ", if the pool bears it", t->longest_tokens);
    return true;
}

static bool heads_replicated(struct context *x, struct plan_finding *f)
{
    const struct plan_input *in = x->in;
    for (uint32_t m = 0; m < in->shape.mixer_count; m++) {
        const struct model_mixer *mixer = &in->shape.mixers[m];
        if (mixer->kind == MIXER_STATE || mixer->kv_heads == 0 || in->tp <= mixer->kv_heads || in->dcp > 1 ||
            mixer->fixed_token_bytes || mixer->fixed_key_bytes)
            continue;
        f->severity = mixer->latent_dim ? FINDING_NOTE : FINDING_WARNING;
        SAY(found, "%u ranks share %" PRIu64 " %s: each token is stored %.3g times", in->tp, mixer->kv_heads,
            mixer->latent_dim ? "latent row" : "key-value heads", (double)in->tp / (double)mixer->kv_heads);
        SAY(arithmetic, "%" PRIu64 " bytes a token on every rank", x->stage->token_bytes);
        SAY(change,
            "--decode-context-parallel-size %" PRIu64 ", or replicas (--data-parallel-size) instead of so many ranks",
            in->tp / mixer->kv_heads);
        return true;
    }
    return false;
}

static bool activation_large(struct context *x, struct plan_finding *f)
{
    const struct plan_stage *s = x->stage;
    if (!s->has_budget || s->requested_bytes == 0 || s->activation.bytes < s->requested_bytes / 5) return false;
    SAY(found, "activations take a fifth of the share or more");
    SAY(arithmetic, "%s of %s, for steps of up to %" PRIu64 " tokens", A(s->activation.bytes), B(s->requested_bytes),
        x->in->max_num_batched_tokens);
    SAY(change, "--max-num-batched-tokens %" PRIu64 " leaves about %s more to the cache",
        x->in->max_num_batched_tokens / 2 + 1, C(s->activation.bytes / 2));
    return true;
}

/* vLLM v1's server on 70 GiB and more, A100 excepted (EngineArgs): steps of 8,192 tokens and 1,024 sequences. */
static bool steps_default(struct context *x, struct plan_finding *f)
{
    const struct plan_input *in = x->in;
    bool v1 = strcmp(in->engine->name, "vllm") == 0 || strcmp(in->engine->name, "vllm-0.20") == 0;
    bool large = in->gpu && in->gpu->memory_bytes >= (uint64_t)70 << 30 && strncmp(in->gpu->name, "a100", 4) != 0;
    if (!v1 || !large || in->steps_given) return false;
    f->severity = FINDING_NOTE;
    SAY(found, "the plan's steps are smaller than the server's own default on %s", in->gpu->name);
    SAY(arithmetic, "planned: %" PRIu64 " tokens, %" PRIu64 " sequences; vLLM's default there: 8192 and 1024, with more activations",
        in->max_num_batched_tokens, in->max_num_seqs);
    SAY(change, "--max-num-batched-tokens 8192 --max-num-seqs 1024 to plan what it would do, or give both to the server");
    return true;
}

static const struct {
    const char *id;
    bool (*find)(struct context *x, struct plan_finding *f);
} FINDINGS[] = {
    {"cache-16-bit", cache_16_bit},         {"type-needs-gpu", type_needs_gpu},
    {"bf16-needs-gpu", bf16_needs_gpu},     {"device-overcommitted", device_overcommitted},
    {"free-at-start", free_at_start},       {"utilization-high", utilization_high},
    {"length-refuses", length_refuses},     {"length-beyond-model", length_beyond_model},
    {"length-null-block", length_null_block}, {"length-wastes", length_wastes},       {"length-unused", length_unused},
    {"length-cuts", length_cuts},           {"block-kernels", block_kernels},
    {"block-latent", block_latent},         {"block-sharing", block_sharing},
    {"caching-off", caching_off},           {"sleep-mode", sleep_mode},
    {"loader-residue", loader_residue},     {"online-quantization", online_quantization},
    {"heads-replicated", heads_replicated}, {"activation-large", activation_large},
    {"steps-default", steps_default},
};
_Static_assert(sizeof FINDINGS / sizeof FINDINGS[0] <= PLAN_FINDINGS_MAX, "room for all");

void plan_find(struct plan_findings *findings, const struct plan *plan, const struct plan_input *in,
               const struct plan_trace *trace)
{
    struct plan_findings all = {0};
    struct context x = {
        .plan = plan, .in = in, .stage = &plan->stages[plan->binding], .trace = trace && trace->known ? trace : NULL};
    for (size_t i = 0; i < sizeof FINDINGS / sizeof FINDINGS[0]; i++) {
        struct plan_finding *f = &all.items[all.count];
        *f = (struct plan_finding){.id = FINDINGS[i].id, .severity = FINDING_WARNING};
        if (FINDINGS[i].find(&x, f)) all.count++;
    }
    findings->count = 0;
    for (int severity = FINDING_ERROR; severity <= FINDING_NOTE; severity++)
        for (uint32_t i = 0; i < all.count; i++)
            if ((int)all.items[i].severity == severity) findings->items[findings->count++] = all.items[i];
}

const char *finding_severity_text(enum finding_severity severity)
{
    static const char *const TEXTS[] = {"error", "warning", "note"};
    return TEXTS[severity];
}

json_t *plan_findings_json(const struct plan_findings *findings)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < findings->count; i++) {
        const struct plan_finding *f = &findings->items[i];
        json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", f->id, "severity",
                                               finding_severity_text(f->severity), "found", f->found, "arithmetic",
                                               f->arithmetic, "change", f->change));
    }
    return array;
}
