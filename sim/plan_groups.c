/* How a stage's layers share one pool of blocks.
 *
 * vLLM v1 (kv_cache_utils.py): pages of all layers have equal bytes; layers of a kind are cut into groups of equal size, a block
 * serves one group, and a layer of each group shares the same memory. A recurrent state that is larger than an attention page enlarges the block; smaller
 * token rows get larger blocks instead. Other engines count all attention layers in full, in one group. */
#include <string.h>

#include "sim/numbers.h"
#include "sim/plan_internal.h"

static uint64_t narrow(u128 value)
{
    return value >= PLAN_UNKNOWN ? PLAN_UNKNOWN - 1 : (uint64_t)value;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Layers of the stage that need pages of their own. */
static uint64_t cached_layers(const struct plan_input *in, const struct model_part *part, uint32_t m)
{
    return in->shape.mixers[m].shares_cache ? 0 : model_stage_layers(&in->shape, part, m);
}

static void add_group(struct plan_stage *stage, const struct plan_input *in, uint32_t m, uint64_t layers)
{
    const struct model_mixer *x = &in->shape.mixers[m];
    stage->groups[stage->group_count++] = (struct plan_group){
        .mixer = m,
        .kind = x->kind,
        .count = 1,
        .layers = layers,
        .window_tokens = x->window_tokens,
        .block_tokens = x->kind == MIXER_STATE ? 0 : in->block_tokens,
        .token_bytes = model_layer_token_bytes(x, in->cache, in->tp),
        .state_bytes = model_layer_recurrent_bytes(x, in->tp) + model_layer_conv_bytes(x, in->tp),
        .fixed_blocks = in->mixer_blocks[m],
        .pool_tokens = PLAN_UNKNOWN,
    };
}

/* All attention layers as one group, every layer in full. */
static void merge_groups(struct plan_stage *stage, const struct plan_input *in, const struct model_part *part)
{
    struct plan_group all = {.mixer = MODEL_MIXERS_MAX,
                             .kind = MIXER_FULL,
                             .count = 1,
                             .block_tokens = in->block_tokens,
                             .pool_tokens = PLAN_UNKNOWN};
    uint64_t mixers = 0;
    for (uint32_t m = 0; m < in->shape.mixer_count; m++) {
        uint64_t layers = cached_layers(in, part, m);
        if (layers == 0 || in->shape.mixers[m].kind == MIXER_STATE) continue;
        all.layers += layers;
        all.token_bytes = model_layer_token_bytes(&in->shape.mixers[m], in->cache, in->tp);
        all.mixer = mixers++ ? MODEL_MIXERS_MAX : m;
    }
    if (mixers) stage->groups[stage->group_count++] = all;
}

/* The block size that the largest state forces. */
static uint64_t forced_block(const struct plan_input *in, const struct plan_stage *stage, uint64_t token,
                             uint64_t key)
{
    uint64_t state = 0;
    for (uint32_t g = 0; g < stage->group_count; g++) {
        const struct plan_group *group = &stage->groups[g];
        if (group->kind != MIXER_STATE) continue;
        uint64_t bytes = in->engine->align_to_keys
                             ? model_layer_recurrent_bytes(&in->shape.mixers[group->mixer], in->tp)
                             : group->state_bytes;
        if (bytes > state) state = bytes;
    }
    uint64_t row = in->engine->align_to_keys ? key : token;
    if (state == 0 || row == 0) return 0;
    return in->alignment_tokens * ceil_div(state, in->alignment_tokens * row);
}

/* Equal page bytes for all groups. */
static void equal_pages(struct plan_stage *stage, const struct plan_input *in)
{
    uint64_t token = 0, key = 0, page = 0;
    for (uint32_t g = 0; g < stage->group_count; g++) {
        const struct plan_group *group = &stage->groups[g];
        if (group->token_bytes <= token) continue;
        token = group->token_bytes;
        key = model_layer_key_bytes(&in->shape.mixers[group->mixer], in->cache, in->tp);
    }
    uint64_t forced = forced_block(in, stage, token, key);
    uint64_t block = forced > in->block_tokens ? forced : in->block_tokens;
    for (uint32_t g = 0; g < stage->group_count; g++) {
        struct plan_group *group = &stage->groups[g];
        uint64_t fixed = in->mixer_block_tokens[group->mixer];
        /* Rows that are smaller by a whole factor get blocks that are larger by it. */
        if (group->kind != MIXER_STATE)
            group->block_tokens = fixed ? fixed : block * (group->token_bytes ? token / group->token_bytes : 1);
        u128 bytes = group->kind == MIXER_STATE ? group->state_bytes : (u128)group->block_tokens * group->token_bytes;
        group->page_bytes = narrow(bytes);
        /* A page that its keys were fitted to takes the convolution beside it. */
        if (group->kind == MIXER_STATE && in->engine->align_to_keys)
            group->page_bytes =
                narrow((u128)block * token + model_layer_conv_bytes(&in->shape.mixers[group->mixer], in->tp));
        if (group->page_bytes > page) page = group->page_bytes;
    }
    for (uint32_t g = 0; g < stage->group_count; g++) {
        struct plan_group *group = &stage->groups[g];
        uint64_t used = group->kind == MIXER_STATE ? group->state_bytes : group->block_tokens * group->token_bytes;
        group->padding_bytes = page - used;
        group->page_bytes = page;
    }
}

/* Groups of equal size: of the rarest kind, or of the commonest when they are close. */
static uint64_t group_size(const struct plan_stage *stage, const struct plan_engine *engine)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t g = 0; g < stage->group_count; g++) {
        least = min_u64(least, stage->groups[g].layers);
        if (stage->groups[g].layers > most) most = stage->groups[g].layers;
    }
    return 100 * most < (100 + engine->group_slack_percent) * least ? most : least;
}

/* Most blocks that a window takes: the tokens that the step's first one sees, and those in flight. */
static void window_reserve(struct plan_group *group, const struct plan_input *in)
{
    if (group->kind == MIXER_SLIDING)
        group->reserve_blocks = ceil_div(group->window_tokens - 1 + in->tokens_in_flight, group->block_tokens) + 1;
    if (group->kind == MIXER_CHUNKED)
        group->reserve_blocks = ceil_div(group->window_tokens + in->tokens_in_flight, group->block_tokens);
}

/* Groups are the whole model's, on every stage the same; vLLM deals the layers of a kind out to its groups in turn, so a stage has
 * ceil(its layers / groups) of them in one, and the largest number sizes its blocks. */
static void grouped(struct plan_stage *stage, const struct plan_input *in, const struct model_part *part)
{
    const struct model_part whole = {.tp = part->tp, .pp = 1};
    uint64_t size = 0;
    for (uint32_t m = 0; m < in->shape.mixer_count; m++) {
        uint64_t layers = cached_layers(in, &whole, m);
        if (layers) add_group(stage, in, m, layers);
    }
    if (stage->group_count == 0) return;
    equal_pages(stage, in);
    uint64_t group_layers = group_size(stage, in->engine);
    for (uint32_t g = 0; g < stage->group_count; g++) {
        struct plan_group *group = &stage->groups[g];
        group->count = ceil_div(group->layers, group_layers);
        group->layers = cached_layers(in, part, group->mixer);
        uint64_t largest = ceil_div(group->layers, group->count);
        if (largest > size) size = largest;
        window_reserve(group, in);
        stage->group_total += group->count;
    }
    stage->block_bytes = narrow((u128)stage->groups[0].page_bytes * size);
}

/* SGLang: for one token of the full pool `ratio` tokens of the sliding one. */
static void two_pools(struct plan_stage *stage, const struct plan_input *in, const struct model_part *part)
{
    u128 millionths = 0;
    for (uint32_t m = 0; m < in->shape.mixer_count; m++) {
        uint64_t layers = cached_layers(in, part, m);
        const struct model_mixer *x = &in->shape.mixers[m];
        if (layers == 0 || x->kind == MIXER_STATE) continue;
        add_group(stage, in, m, layers);
        stage->groups[stage->group_count - 1].kind = MIXER_FULL;
        uint64_t ratio = x->kind == MIXER_FULL ? 1000000 : in->swa_ratio_millionths;
        millionths += (u128)layers * model_layer_token_bytes(x, in->cache, in->tp) * ratio;
    }
    /* A request's blocks are counted in the first pool; the other follows it. */
    for (uint32_t g = 1; g < stage->group_count; g++) stage->groups[g].count = 0;
    stage->group_total = stage->group_count ? 1 : 0;
    stage->block_bytes = narrow(millionths * in->block_tokens / 1000000);
}

static void one_group(struct plan_stage *stage, const struct plan_input *in, const struct model_part *part)
{
    merge_groups(stage, in, part);
    stage->group_total = stage->group_count;
    stage->block_bytes = narrow((u128)in->block_tokens * stage->token_bytes);
    if (stage->group_count)
        stage->groups[0].page_bytes = narrow((u128)in->block_tokens * stage->groups[0].token_bytes);
}

/* Pages of given bytes; a kernel's padding counts where it makes them larger. */
static void given_pages(struct plan_stage *stage, const struct plan_input *in)
{
    uint64_t layers = stage->group_count ? stage->groups[0].layers : 1;
    uint64_t planned = in->page_bytes;
    if (planned == PLAN_UNKNOWN && stage->group_count) planned = stage->groups[0].page_bytes;
    uint64_t page = planned;
    if (in->kernel_page_bytes != PLAN_UNKNOWN && (page == PLAN_UNKNOWN || in->kernel_page_bytes > page))
        page = in->kernel_page_bytes;
    if (page == PLAN_UNKNOWN) return;
    if (stage->group_count == 0) {
        stage->groups[stage->group_count++] = (struct plan_group){.mixer = MODEL_MIXERS_MAX,
                                                                  .count = 1,
                                                                  .layers = 1,
                                                                  .block_tokens = in->block_tokens,
                                                                  .pool_tokens = PLAN_UNKNOWN};
        stage->group_total = 1;
    }
    struct plan_group *group = &stage->groups[0];
    group->page_bytes = page;
    group->padding_bytes = group->token_bytes && page > group->block_tokens * group->token_bytes
                               ? page - group->block_tokens * group->token_bytes
                               : 0;
    stage->block_bytes = narrow((u128)page * layers);
}

static bool has_many_kinds(const struct plan_input *in)
{
    uint32_t kinds = 0;
    for (uint32_t m = 0; m < in->shape.mixer_count; m++) {
        if (cached_layers(in, &MODEL_WHOLE, m) == 0) continue;
        kinds++;
        if (in->shape.mixers[m].kind != MIXER_FULL || in->mixer_block_tokens[m]) return true;
    }
    return kinds > 1;
}

void plan_groups(struct plan_stage *stage, const struct plan_input *in, const struct model_part *part)
{
    stage->block_bytes = PLAN_UNKNOWN;
    if (in->has_shape) {
        u128 slope = 0;
        for (uint32_t m = 0; m < in->shape.mixer_count; m++)
            if (in->shape.mixers[m].kind == MIXER_FULL)
                slope += (u128)cached_layers(in, part, m) *
                         model_layer_token_bytes(&in->shape.mixers[m], in->cache, in->tp);
        stage->full_token_bytes = narrow(slope);
        bool many = has_many_kinds(in);
        if (many && in->engine->groups) grouped(stage, in, part);
        else if (many && in->engine->two_pools) two_pools(stage, in, part);
        else one_group(stage, in, part);
        if (stage->block_bytes == 0) stage->block_bytes = PLAN_UNKNOWN;
    }
    if (in->page_bytes != PLAN_UNKNOWN || in->kernel_page_bytes != PLAN_UNKNOWN) given_pages(stage, in);
}

void plan_pool_tokens(struct plan *plan, const struct plan_input *in)
{
    if (!in->engine->two_pools || plan->kv_tokens == PLAN_UNKNOWN) return;
    struct plan_stage *stage = &plan->stages[plan->binding];
    for (uint32_t g = 0; g < stage->group_count; g++) {
        struct plan_group *group = &stage->groups[g];
        if (group->mixer == MODEL_MIXERS_MAX) continue;
        bool slides = in->shape.mixers[group->mixer].kind != MIXER_FULL;
        u128 tokens = slides ? (u128)plan->kv_tokens * in->swa_ratio_millionths / 1000000 : plan->kv_tokens;
        group->pool_tokens = narrow(tokens) / in->block_tokens * in->block_tokens;
    }
}
