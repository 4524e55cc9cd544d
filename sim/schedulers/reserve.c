/* Admission by full reservation: a request starts only when everything that it may ever need, prompt and max_tokens
 * of all samples, is obtainable beside what the running ones may still need. Nothing is preempted, blocks are taken on
 * demand all the same. Otherwise as v1. The rule of Text Generation Inference's router (backends/v3 queue.rs,
 * block_allocator.rs), which takes the blocks at once; the promise here keeps the same number back. */
#include "sim/v1_pass.h"
#include "sim/numbers.h"

static enum kv_status gate(struct engine *e, struct sim_request *r, const struct engine_hit *hit,
                           uint64_t *promise)
{
    const struct engine_config *c = &e->config;
    if (e->policy->ops->flags & KV_RESERVES) return KV_OK; /* the policy takes everything at once by itself */
    uint64_t most = r->prompt_tokens + r->kv.max_tokens - 1; /* the last token is never written */
    uint64_t slots = most + c->geometry.lookahead_tokens;
    if (slots > c->max_model_len) slots = c->max_model_len;
    bool forked = r->kv.samples > 1;
    uint64_t units = kv_units_for(e->policy, &r->kv, slots, forked);
    e->demand_units = units; /* for the verdict's arithmetic */
    if (units > e->policy->usable_units) return KV_NEVER_FITS;
    uint64_t ask = above(units, hit->device.blocks) + hit->device.free_blocks;
    uint64_t needed = kv_units_for(e->policy, &r->kv, r->kv.final_tokens, forked);
    uint64_t need = above(needed, hit->device.blocks) + hit->device.free_blocks;
    *promise = ask;
    return engine_hold_back(e, r, KV_ADMISSION, ask, need < ask ? need : ask, e->promised_units)
               ? KV_NO_SPACE
               : KV_OK;
}

static void pass(struct engine *e)
{
    uint64_t budget = v1_schedule_running(e, e->config.max_num_batched_tokens);
    if (e->preempted.count == 0) v1_schedule_waiting(e, budget, gate);
}

const struct scheduler scheduler_reserve = {
    .name = "reserve",
    .summary = "v1, but a request starts only when prompt and max_tokens are assured",
    .source = "Text Generation Inference, backends/v3 (full reservation at admission)",
    .description = "As v1, but a request starts only when prompt and max_tokens of all its samples are obtainable beside "
                   "what running ones may still need. Nothing is ever preempted; memory that is promised stands idle "
                   "until it is used.",
    .default_watermark = 0,
    .skips = true,
    .pass = pass,
};
