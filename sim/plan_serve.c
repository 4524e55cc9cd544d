/* What would serve N requests of L tokens at once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/plan_internal.h"

/* Blocks of the largest need; 128 bits, as both factors are free. */
static u128 needed_blocks(const struct plan *plan, const struct plan_input *in)
{
    u128 blocks = (u128)plan_request_blocks(plan, in, in->serve_tokens) * in->serve_requests;
    return blocks + (in->engine->null_block ? 1 : 0);
}

static bool fits(const struct plan *plan, const struct plan_input *in)
{
    return plan->num_blocks != PLAN_UNKNOWN && plan->num_blocks > 0 && needed_blocks(plan, in) <= plan->num_blocks;
}

/* The plan of a changed input; `plan` is scratch. */
static bool would_fit(struct plan *plan, const struct plan_input *in)
{
    plan_compute(plan, in);
    return fits(plan, in);
}

static double least_utilization(const struct plan *plan, const struct plan_input *in)
{
    double least = -1;
    for (uint32_t s = 0; s < plan->stage_count; s++) {
        const struct plan_stage *stage = &plan->stages[s];
        if (!stage->has_budget || stage->base_bytes == 0 || stage->block_bytes == PLAN_UNKNOWN) return -1;
        u128 need = needed_blocks(plan, in) * stage->block_bytes;
        /* Rounded up, a byte of the last block is enough. */
        if (in->engine->blocks_up && need) need -= stage->block_bytes - 1;
        need += stage->deducted_bytes;
        if (need > stage->base_bytes) return -1;
        double share = ceil((double)need / (double)stage->base_bytes * 1e4 - 1e-9) / 1e4;
        if (share > least) least = share;
    }
    return least > 1 ? -1 : least;
}

static uint64_t largest_block(struct plan *plan, const struct plan_input *in)
{
    struct plan_input *other = malloc(sizeof *other);
    uint64_t best = PLAN_UNKNOWN;
    if (!other) return best;
    memcpy(other, in, sizeof *other);
    other->block_given = true;
    for (uint64_t block = 1; block <= 1024; block *= 2) {
        other->block_tokens = block;
        if (would_fit(plan, other)) best = block;
    }
    free(other);
    return best;
}

static void cache_types(struct plan_serve *serve, struct plan *plan, const struct plan_input *in)
{
    struct plan_input *other = malloc(sizeof *other);
    if (!other) return;
    memcpy(other, in, sizeof *other);
    bool latent = false;
    for (uint32_t m = 0; m < in->shape.mixer_count; m++) latent |= in->shape.mixers[m].latent_dim > 0;
    for (unsigned t = 0; t < ELEMENT_TYPES; t++) {
        if (!(element_spec((enum element_type)t)->uses & ELEMENT_FOR_CACHE) || (t == ELEMENT_FP8_MLA && !latent))
            continue;
        other->cache = (enum element_type)t;
        serve->types[t] = would_fit(plan, other);
    }
    free(other);
}

void plan_serve(struct plan_serve *serve, const struct plan_input *in)
{
    *serve = (struct plan_serve){.requests = in->serve_requests,
                                 .tokens = in->serve_tokens,
                                 .utilization = -1,
                                 .block_tokens = PLAN_UNKNOWN,
                                 .blocks = PLAN_UNKNOWN,
                                 .lower_bytes = PLAN_UNKNOWN,
                                 .upper_bytes = PLAN_UNKNOWN};
    struct plan *plan = malloc(sizeof *plan);
    if (!plan || in->serve_requests == PLAN_UNKNOWN || in->serve_tokens == PLAN_UNKNOWN || !in->has_shape) {
        free(plan);
        return;
    }
    struct plan_input *one = malloc(sizeof *one);
    if (one) {
        memcpy(one, in, sizeof *one);
        one->max_model_len = in->serve_tokens;
        plan_compute(plan, one);
        u128 lower = (u128)plan->required_lower_bytes * in->serve_requests,
             upper = (u128)plan->required_upper_bytes * in->serve_requests;
        if (lower < INT64_MAX) serve->lower_bytes = (uint64_t)lower;
        if (upper < INT64_MAX) serve->upper_bytes = (uint64_t)upper;
    }
    free(one);
    plan_compute(plan, in);
    u128 blocks = needed_blocks(plan, in);
    if (blocks < INT64_MAX) serve->blocks = (uint64_t)blocks;
    serve->fits = fits(plan, in);
    serve->utilization = least_utilization(plan, in);
    bool whole_blocks = in->pool_blocks != PLAN_UNKNOWN || in->pool_tokens != PLAN_UNKNOWN;
    if (!whole_blocks && plan->num_blocks != PLAN_UNKNOWN) {
        serve->block_tokens = largest_block(plan, in);
        cache_types(serve, plan, in);
    }
    free(plan);
}
