#include "sim/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/numbers.h"
#include "sim/plan_internal.h"

static uint64_t narrow(u128 value)
{
    /* PLAN_UNKNOWN is not a figure. */
    return value >= PLAN_UNKNOWN ? PLAN_UNKNOWN - 1 : (uint64_t)value;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

struct model_part plan_part(const struct plan_input *in, uint32_t stage)
{
    return (struct model_part){
        .tp = in->tp,
        .pp = in->pp,
        .pp_rank = stage,
        .ep = in->expert_parallel ? in->tp * in->dp : 0,
    };
}

/* --- the budget ------------------------------------------------------------------------------------ */

/* Measured on an H200: context, kernels loaded at first use, cuBLAS. */
#define NON_TORCH_DEFAULT ((uint64_t)799854592) /* 762.8 MiB */
/* First graph captured, the pool of 35 graphs, and each graph: 0.27 MiB and 2.9 KB a node; a layer has 14 nodes. */
#define GRAPH_FIXED ((uint64_t)(70 + 116) << 20)
#define GRAPH_EACH ((uint64_t)283116)
#define GRAPH_NODE ((uint64_t)2900)
#define LAYER_NODES 14u

/* One graph for each batch size 1, 2, 4 and the multiples of 8 up to the most sequences, at most 512. */
static uint64_t graphs_default(const struct plan_input *in, uint64_t layers)
{
    uint64_t graphs = 3 + min_u64(in->max_num_seqs, 512) / 8;
    return GRAPH_FIXED + graphs * (GRAPH_EACH + GRAPH_NODE * LAYER_NODES * layers);
}

/* 16-bit values of the widest moment of a layer for every token of the step, and 32-bit logits, twice, for every sequence. */
static uint64_t activation_guess(const struct plan_input *in)
{
    const struct model_shape *s = &in->shape;
    u128 width = s->intermediate;
    u128 experts = (u128)s->experts_active * s->expert_intermediate + s->shared_intermediate;
    if (experts > width) width = experts;
    u128 token = 4 * (u128)s->hidden + 2 * ((width + in->tp - 1) / in->tp);
    u128 sequences = min_u64(in->max_num_seqs, in->max_num_batched_tokens);
    return narrow(2 * token * in->max_num_batched_tokens + 8 * sequences * s->vocabulary);
}

/* Without a model nothing is guessed: what is not given is not deducted. */
static struct plan_amount settle(struct plan_amount given, uint64_t otherwise, enum plan_origin origin,
                                 bool may_guess)
{
    if (given.bytes != PLAN_UNKNOWN) return given;
    return may_guess ? (struct plan_amount){otherwise, origin} : (struct plan_amount){0, PLAN_DEFAULT};
}

static void settle_amounts(struct plan_stage *stage, const struct plan_input *in, uint32_t number)
{
    struct model_part part = plan_part(in, number);
    bool model = in->has_shape && in->shape.hidden > 0;
    uint64_t layers = stage->end_layer - stage->first_layer;
    stage->weights = settle(in->weights_memory, model ? model_weight_bytes(&in->shape, in->weights, &part) : 0,
                            PLAN_COMPUTED, model);
    stage->offload = in->offload;
    if (stage->offload.bytes > stage->weights.bytes) stage->offload.bytes = stage->weights.bytes;
    stage->non_torch = settle(in->non_torch, NON_TORCH_DEFAULT, PLAN_DEFAULT, model);
    stage->activation = settle(in->activation, model ? activation_guess(in) : 0, PLAN_GUESS, model);
    stage->graphs =
        settle(in->graphs, in->eager ? 0 : graphs_default(in, layers), in->eager ? PLAN_COMPUTED : PLAN_GUESS, model);
    if (in->eager) stage->graphs = (struct plan_amount){0, PLAN_COMPUTED};
    stage->residue = in->residue;
}

static u128 share(u128 base, const struct plan_input *in)
{
    return base * in->utilization_billionths / 1000000000u;
}

/* What the engine takes its share of, the share, and what it deducts from it. */
static void budget_share(struct plan_stage *stage, const struct plan_input *in, u128 *base, u128 *taken)
{
    const u128 loaded =
        (u128)stage->weights.bytes - stage->offload.bytes + stage->residue.bytes + stage->states_bytes;
    const u128 graphs = in->graphs_inside ? stage->graphs.bytes : 0;
    const u128 run = loaded + stage->non_torch.bytes + stage->activation.bytes + graphs;
    const u128 total = in->gpu_memory;
    switch (in->engine->share) {
    case PLAN_OF_TOTAL:
        *base = total;
        *taken = run;
        return;
    case PLAN_OF_FREE_BEFORE:
        *base = total > stage->non_torch.bytes ? total - stage->non_torch.bytes : 0;
        *taken = loaded;
        return;
    case PLAN_OF_FREE_AFTER:
        *base = total > run ? total - run : 0;
        *taken = total > run ? 0 : run - total;
        return;
    }
}

static void budget(struct plan_stage *stage, const struct plan_input *in)
{
    stage->has_budget = in->gpu_memory != PLAN_UNKNOWN;
    if (!stage->has_budget) return;
    u128 base = 0, taken = 0;
    budget_share(stage, in, &base, &taken);
    u128 requested = share(base, in);
    stage->base_bytes = narrow(base);
    stage->requested_bytes = narrow(requested);
    stage->deducted_bytes = narrow(taken);
    stage->available_bytes = requested > taken ? narrow(requested - taken) : 0;
    stage->missing_bytes = requested > taken ? 0 : narrow(taken - requested);
}

/* A pool that is given wins over the budget. */
static void given_pool(struct plan_stage *stage, const struct plan_input *in)
{
    bool block = stage->block_bytes != PLAN_UNKNOWN;
    if (in->pool_bytes != PLAN_UNKNOWN) stage->available_bytes = in->pool_bytes;
    else if (in->pool_blocks != PLAN_UNKNOWN)
        stage->available_bytes = block ? narrow((u128)stage->num_blocks * stage->block_bytes) : PLAN_UNKNOWN;
    else if (in->pool_tokens != PLAN_UNKNOWN)
        stage->available_bytes = block ? narrow((u128)stage->num_blocks * stage->block_bytes) : PLAN_UNKNOWN;
    else return;
    stage->missing_bytes = 0;
}

/* --- blocks ------------------------------------------------------------------------------------------ */

/* A given number of blocks, where the kernel makes more of a page than was planned. */
static uint64_t padded_blocks(const struct plan_input *in, const struct plan_stage *stage)
{
    if (in->kernel_page_bytes == PLAN_UNKNOWN || stage->group_count == 0) return in->pool_blocks;
    uint64_t planned = in->page_bytes != PLAN_UNKNOWN ? in->page_bytes
                                                      : stage->groups[0].block_tokens * stage->groups[0].token_bytes;
    if (planned == 0 || planned >= in->kernel_page_bytes) return in->pool_blocks;
    return narrow((u128)in->pool_blocks * planned / in->kernel_page_bytes);
}

static void count_blocks(struct plan_stage *stage, const struct plan_input *in)
{
    uint64_t bytes = in->pool_bytes != PLAN_UNKNOWN ? in->pool_bytes : stage->available_bytes;
    stage->num_blocks = PLAN_UNKNOWN;
    if (in->pool_blocks != PLAN_UNKNOWN) stage->num_blocks = padded_blocks(in, stage);
    else if (in->pool_tokens != PLAN_UNKNOWN) stage->num_blocks = in->pool_tokens / in->block_tokens;
    else if (bytes != PLAN_UNKNOWN && stage->block_bytes != PLAN_UNKNOWN && stage->block_bytes > 0)
        stage->num_blocks = in->engine->blocks_up ? ceil_div(bytes, stage->block_bytes) : bytes / stage->block_bytes;
}

static void compute_stage(struct plan_stage *stage, const struct plan_input *in, uint32_t number)
{
    struct model_part part = plan_part(in, number);
    if (in->has_shape) {
        model_stage(&in->shape, &part, &stage->first_layer, &stage->end_layer);
        stage->token_bytes = model_token_bytes(&in->shape, in->cache, &part);
        stage->state_bytes = model_state_bytes(&in->shape, &part);
    }
    plan_groups(stage, in, &part);
    /* Engines without groups keep states apart, a set for each sequence that may run. */
    if (!in->engine->groups) stage->states_bytes = narrow((u128)stage->state_bytes * in->max_num_seqs);
    settle_amounts(stage, in, number);
    stage->available_bytes = PLAN_UNKNOWN;
    budget(stage, in);
    count_blocks(stage, in);
    given_pool(stage, in);
}

/* A tensor for each layer that a block serves, in whole pages of the device. */
static uint64_t page_rounding(const struct plan_stage *stage, uint64_t num_blocks)
{
    const uint64_t device_page = (uint64_t)2 << 20;
    uint64_t page = stage->group_count ? stage->groups[0].page_bytes : 0;
    if (num_blocks == PLAN_UNKNOWN || page == 0 || stage->block_bytes == PLAN_UNKNOWN ||
        stage->block_bytes % page != 0)
        return 0;
    u128 tensor = (u128)num_blocks * page;
    u128 rounded = (tensor + device_page - 1) / device_page * device_page;
    return narrow((rounded - tensor) * (stage->block_bytes / page));
}

/* What is left of the device; the pool holds the same number of blocks on every rank. */
static void balance(struct plan_stage *stage, const struct plan_input *in, uint64_t num_blocks)
{
    if (!stage->has_budget) return;
    u128 pool =
        num_blocks == PLAN_UNKNOWN || stage->block_bytes == PLAN_UNKNOWN ? 0 : (u128)num_blocks * stage->block_bytes;
    stage->pool_bytes = narrow(pool);
    uint64_t available = stage->available_bytes == PLAN_UNKNOWN ? 0 : stage->available_bytes;
    stage->remainder_bytes = available > pool ? narrow(available - pool) : 0;
    stage->page_rounding_bytes = page_rounding(stage, num_blocks);
    u128 used = stage->page_rounding_bytes + (u128)stage->weights.bytes - stage->offload.bytes +
                stage->residue.bytes + stage->states_bytes + stage->non_torch.bytes + stage->activation.bytes +
                stage->graphs.bytes + pool + stage->remainder_bytes;
    stage->outside_bytes = used < in->gpu_memory ? narrow(in->gpu_memory - used) : 0;
    stage->overcommitted_bytes = used > in->gpu_memory ? narrow(used - in->gpu_memory) : 0;
}

/* --- requests ------------------------------------------------------------------------------------------ */

/* Blocks of one group for a request of so many tokens. */
static uint64_t group_blocks(const struct plan_group *g, uint32_t dcp, uint64_t tokens)
{
    if (g->fixed_blocks) return g->fixed_blocks;
    if (g->kind == MIXER_STATE) return 1;
    uint64_t full = ceil_div(tokens, g->block_tokens * dcp);
    return g->reserve_blocks ? min_u64(full, g->reserve_blocks) : full;
}

uint64_t plan_request_blocks(const struct plan *plan, const struct plan_input *in, uint64_t tokens)
{
    const struct plan_stage *stage = &plan->stages[plan->binding];
    u128 blocks = 0;
    for (uint32_t g = 0; g < stage->group_count; g++)
        blocks += (u128)stage->groups[g].count * group_blocks(&stage->groups[g], in->dcp, tokens);
    return narrow(blocks);
}

/* Largest length whose blocks fit; PLAN_UNKNOWN when every length does. */
static uint64_t longest_request(const struct plan *plan, const struct plan_input *in)
{
    uint64_t low = 0, high = (uint64_t)1 << 50;
    if (plan->num_blocks == PLAN_UNKNOWN || plan_request_blocks(plan, in, 1) == 0) return PLAN_UNKNOWN;
    if (plan_request_blocks(plan, in, high) <= plan->num_blocks) return PLAN_UNKNOWN;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (plan_request_blocks(plan, in, middle) <= plan->num_blocks) low = middle;
        else high = middle;
    }
    return low;
}

static u128 attended_bytes(const struct plan_input *in, const struct model_part *part, uint64_t tokens, bool windows)
{
    u128 bytes = 0;
    for (uint32_t m = 0; m < in->shape.mixer_count; m++) {
        const struct model_mixer *x = &in->shape.mixers[m];
        uint64_t held = windows && x->window_tokens ? min_u64(tokens, x->window_tokens) : tokens;
        bytes += (u128)model_stage_layers(&in->shape, part, m) * model_layer_token_bytes(x, in->cache, in->tp) *
                 ceil_div(held, in->dcp);
    }
    return bytes;
}

static void requirements(struct plan *plan, const struct plan_input *in)
{
    const struct plan_stage *stage = &plan->stages[plan->binding];
    struct model_part part = plan_part(in, plan->binding);
    plan->blocks_per_request = plan->required_bytes = plan->required_lower_bytes = plan->required_upper_bytes =
        PLAN_UNKNOWN;
    if (in->max_model_len == PLAN_UNKNOWN) return;
    uint64_t tokens = in->max_model_len;
    plan->blocks_per_request = plan_request_blocks(plan, in, tokens);
    if (!in->has_shape) return;
    plan->required_lower_bytes = narrow(attended_bytes(in, &part, tokens, true) + stage->state_bytes);
    plan->required_upper_bytes = narrow(attended_bytes(in, &part, tokens, false) + stage->state_bytes);
    bool reserved = !plan->uniform && in->engine->groups && stage->block_bytes != PLAN_UNKNOWN;
    plan->required_bytes =
        reserved ? narrow((u128)plan->blocks_per_request * stage->block_bytes) : plan->required_upper_bytes;
}

static void split_keys(struct plan *plan, const struct plan_input *in)
{
    struct model_part part = plan_part(in, plan->binding);
    u128 keys = 0, all = 0;
    plan->key_bytes = plan->value_bytes = PLAN_UNKNOWN;
    if (plan->kv_tokens == PLAN_UNKNOWN || !in->has_shape) return;
    const struct plan_stage *stage = &plan->stages[plan->binding];
    for (uint32_t g = 0; g < stage->group_count; g++) {
        const struct plan_group *group = &stage->groups[g];
        if (group->kind == MIXER_STATE) continue;
        uint64_t tokens = group->pool_tokens == PLAN_UNKNOWN ? plan->kv_tokens : group->pool_tokens;
        tokens = ceil_div(tokens, in->dcp);
        for (uint32_t m = 0; m < in->shape.mixer_count; m++) {
            if (m != group->mixer && group->mixer != MODEL_MIXERS_MAX) continue;
            const struct model_mixer *x = &in->shape.mixers[m];
            u128 layers = model_stage_layers(&in->shape, &part, m);
            keys += layers * model_layer_key_bytes(x, in->cache, in->tp) * tokens;
            all += layers * model_layer_token_bytes(x, in->cache, in->tp) * tokens;
        }
    }
    plan->key_bytes = narrow(keys);
    plan->value_bytes = narrow(all - keys);
}

/* --- capacity -------------------------------------------------------------------------------------------- */

/* Tokens of a grouped pool: by the old division, and by concurrency. */
static void grouped_tokens(struct plan *plan, const struct plan_input *in)
{
    const struct plan_stage *stage = &plan->stages[plan->binding];
    uint64_t smallest = PLAN_UNKNOWN;
    for (uint32_t g = 0; g < stage->group_count; g++)
        if (stage->groups[g].block_tokens) smallest = min_u64(smallest, stage->groups[g].block_tokens);
    if (smallest != PLAN_UNKNOWN && stage->group_total)
        plan->tokens_by_division = narrow((u128)(plan->num_blocks / stage->group_total) * smallest * in->dcp);
    if (plan->blocks_per_request != PLAN_UNKNOWN && plan->blocks_per_request)
        plan->tokens_by_concurrency = narrow((u128)plan->num_blocks * in->max_model_len / plan->blocks_per_request);
    bool by_concurrency = in->engine->tokens_by_concurrency && plan->tokens_by_concurrency != PLAN_UNKNOWN;
    plan->kv_tokens = by_concurrency ? plan->tokens_by_concurrency : plan->tokens_by_division;
}

static void capacity(struct plan *plan, const struct plan_input *in)
{
    const struct plan_stage *stage = &plan->stages[plan->binding];
    plan->kv_tokens = plan->usable_kv_tokens = plan->usable_blocks = PLAN_UNKNOWN;
    plan->tokens_by_division = plan->tokens_by_concurrency = plan->host_blocks = PLAN_UNKNOWN;
    plan->max_concurrency = -1;
    if (in->swap_bytes != PLAN_UNKNOWN && stage->block_bytes != PLAN_UNKNOWN && stage->block_bytes)
        plan->host_blocks = in->swap_bytes / stage->block_bytes;
    if (plan->num_blocks == PLAN_UNKNOWN) return;
    plan->usable_blocks = plan->num_blocks - (in->engine->null_block && plan->num_blocks > 0);
    if (plan->uniform) {
        uint64_t block = stage->group_count ? stage->groups[0].block_tokens : in->block_tokens;
        plan->kv_tokens = narrow((u128)plan->num_blocks * block * in->dcp);
        plan->usable_kv_tokens = narrow((u128)plan->usable_blocks * block * in->dcp);
    } else {
        grouped_tokens(plan, in);
    }
    if (in->max_model_len == PLAN_UNKNOWN) return;
    if (plan->uniform) plan->max_concurrency = (double)plan->kv_tokens / (double)in->max_model_len;
    else if (plan->blocks_per_request)
        plan->max_concurrency = (double)plan->num_blocks / (double)plan->blocks_per_request;
}

/* --- the verdict --------------------------------------------------------------------------------------------- */

static void refuse_memory(struct plan *plan, const struct plan_input *in, uint32_t number)
{
    const struct plan_stage *s = &plan->stages[number];
    plan->starts = false;
    if (s->missing_bytes || s->available_bytes == 0)
        snprintf(plan->verdict, sizeof plan->verdict,
                 "refuses: no memory for the cache: %.4f x %" PRIu64 " = %" PRIu64 " bytes, less %" PRIu64
                 " for weights and what runs beside them: %" PRIu64 " missing",
                 (double)in->utilization_billionths / 1e9, s->base_bytes, s->requested_bytes, s->deducted_bytes,
                 s->missing_bytes);
    else
        snprintf(plan->verdict, sizeof plan->verdict,
                 "refuses: no block fits: %" PRIu64 " bytes are there, a block takes %" PRIu64, s->available_bytes,
                 s->block_bytes);
}

static void refuse_length(struct plan *plan, const struct plan_input *in)
{
    plan->starts = false;
    snprintf(plan->verdict, sizeof plan->verdict,
             "refuses: %" PRIu64 " > %" PRIu64 ": one request of %" PRIu64 " tokens takes %" PRIu64
             " blocks, %" PRIu64 " are there; the largest max_model_len that would start is %" PRIu64,
             in->max_model_len, plan->longest_request_tokens, in->max_model_len, plan->blocks_per_request,
             plan->num_blocks, plan->longest_request_tokens);
}

/* Heads that ranks cannot share. */
static bool refuse_ranks(struct plan *plan, const struct plan_input *in)
{
    for (uint32_t m = 0; in->has_shape && m < in->shape.mixer_count; m++) {
        const struct model_mixer *x = &in->shape.mixers[m];
        bool heads = x->heads == 0 || x->heads % in->tp == 0;
        /* Divided among the ranks, or each on as many of them; one latent row serves all heads. */
        bool pairs = x->kv_heads == 0 || x->latent_dim > 0 || x->kv_heads % in->tp == 0 || in->tp % x->kv_heads == 0;
        if (heads && pairs) continue;
        plan->starts = false;
        if (!heads)
            snprintf(plan->verdict, sizeof plan->verdict,
                     "refuses: %" PRIu64 " attention heads are not divisible by %u tensor-parallel ranks", x->heads, in->tp);
        else
            snprintf(plan->verdict, sizeof plan->verdict,
                     "refuses: %" PRIu64 " KV heads cannot be shared evenly by %u tensor-parallel ranks", x->kv_heads, in->tp);
        return true;
    }
    return false;
}

/* A pool of given size is allocated as it is. */
static bool refuse_pool(struct plan *plan, const struct plan_input *in, uint32_t number)
{
    const struct plan_stage *s = &plan->stages[number];
    bool given = in->pool_bytes != PLAN_UNKNOWN || in->pool_blocks != PLAN_UNKNOWN || in->pool_tokens != PLAN_UNKNOWN;
    if (!given || s->overcommitted_bytes == 0) return false;
    plan->starts = false;
    snprintf(plan->verdict, sizeof plan->verdict,
             "refuses: the pool of %" PRIu64 " bytes and what is beside it exceed the device by %" PRIu64 " bytes",
             s->pool_bytes, s->overcommitted_bytes);
    return true;
}

bool plan_free_at_start_refuses(const struct plan_input *in, const struct plan_stage *stage)
{
    bool judged = stage->has_budget && in->engine->checks_free && stage->non_torch.origin != PLAN_GIVEN;
    return judged && stage->requested_bytes > above(in->gpu_memory, PLAN_CONTEXT_BYTES);
}

static bool refuse_start(struct plan *plan, const struct plan_input *in, uint32_t number)
{
    const struct plan_stage *s = &plan->stages[number];
    if (!plan_free_at_start_refuses(in, s)) return false;
    plan->starts = false;
    snprintf(plan->verdict, sizeof plan->verdict,
             "refuses: %.4f x %" PRIu64 " = %" PRIu64 " bytes, and %" PRIu64 " are free once the context exists",
             (double)in->utilization_billionths / 1e9, s->base_bytes, s->requested_bytes, above(in->gpu_memory, PLAN_CONTEXT_BYTES));
    return true;
}

static void judge(struct plan *plan, const struct plan_input *in)
{
    plan->starts = true;
    if (refuse_ranks(plan, in)) return;
    for (uint32_t s = 0; s < plan->stage_count; s++) {
        const struct plan_stage *stage = &plan->stages[s];
        bool none = stage->available_bytes == 0 || stage->num_blocks == 0;
        if (refuse_start(plan, in, s) || refuse_pool(plan, in, s)) return;
        if (!none) continue;
        refuse_memory(plan, in, s);
        return;
    }
    if (plan->num_blocks == PLAN_UNKNOWN) return;
    bool too_long = in->max_model_len != PLAN_UNKNOWN && plan->longest_request_tokens != PLAN_UNKNOWN &&
                    in->max_model_len > plan->longest_request_tokens;
    if (too_long) refuse_length(plan, in);
    else snprintf(plan->verdict, sizeof plan->verdict, "starts");
}

/* --- the whole ------------------------------------------------------------------------------------------------ */

void plan_compute(struct plan *plan, const struct plan_input *in)
{
    memset(plan, 0, sizeof *plan);
    plan->gpu_memory = in->gpu_memory;
    plan->stage_count = in->pp;
    plan->num_blocks = PLAN_UNKNOWN;
    for (uint32_t s = 0; s < in->pp; s++) {
        compute_stage(&plan->stages[s], in, s);
        uint64_t blocks = plan->stages[s].num_blocks;
        bool fewer = blocks < plan->num_blocks;
        /* Without a count the stage with the largest blocks would bind. */
        bool larger = blocks == PLAN_UNKNOWN && plan->stages[s].token_bytes > plan->stages[plan->binding].token_bytes;
        if (fewer || larger) plan->binding = s;
        if (fewer) plan->num_blocks = blocks;
    }
    const struct plan_stage *stage = &plan->stages[plan->binding];
    plan->uniform = !in->engine->groups || stage->group_count == 0 ||
                    (stage->group_count == 1 && stage->groups[0].count == 1 && stage->groups[0].reserve_blocks == 0 &&
                     stage->groups[0].kind == MIXER_FULL);
    for (uint32_t s = 0; s < in->pp; s++) balance(&plan->stages[s], in, plan->num_blocks);
    requirements(plan, in);
    capacity(plan, in);
    plan_pool_tokens(plan, in);
    split_keys(plan, in);
    plan->longest_request_tokens = longest_request(plan, in);
    if (in->has_shape) {
        struct model_part part = plan_part(in, plan->binding);
        plan->slope_bytes = stage->full_token_bytes;
        plan->constant_bytes = narrow(attended_bytes(in, &part, (uint64_t)1 << 41, true) + stage->state_bytes -
                                      (u128)stage->full_token_bytes * ceil_div((uint64_t)1 << 41, in->dcp));
    }
    bool graphs = stage->has_budget && in->engine->share == PLAN_OF_TOTAL;
    plan->utilization_with_graphs =
        graphs ? (double)in->utilization_billionths / 1e9 + (double)stage->graphs.bytes / (double)in->gpu_memory : -1;
    judge(plan, in);
}
