/* The pool of a simulation, from the plan of its server. */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/plan.h"

static bool describes_model(const struct options *o)
{
    return o->model || o->layer_groups.count || o->num_layers != OPT_UNSET;
}

static bool describes_device(const struct options *o)
{
    return o->gpu || o->gpu_memory_bytes != OPT_UNSET;
}

/* What a token takes on a rank. Simulations have one kind of token slot: layers with windows are counted in full. */
static int put_token_bytes(const struct plan_stage *stage, const struct plan_input *in, const struct optset *set,
                           struct options *o, struct err *err)
{
    if (optset_given(set, "kv-bytes-per-token"))
        return err_set(err, ERR_USAGE, "--kv-bytes-per-token and --%s both say what a token takes: give one",
                       o->model ? "model" : "num-layers");
    uint64_t bytes = stage->token_bytes / in->dcp + (stage->token_bytes % in->dcp != 0);
    if (bytes == 0) return err_set(err, ERR_USAGE, "%s has no keys and values to cache", in->shape.name);
    o->kv_bytes_per_token = bytes;
    return 0;
}

/* A window that all layers have is the simulation's; where kinds are mixed, every layer is in full. */
static void put_window(const struct plan_input *in, struct options *o)
{
    const struct model_shape *s = &in->shape;
    if (o->window_tokens != OPT_UNSET) return;
    o->window_tokens = s->mixer_count == 1 && s->mixers[0].kind == MIXER_SLIDING ? s->mixers[0].window_tokens : 0;
}

static int put_pool(const struct plan *plan, const struct plan_input *in, struct options *o, struct err *err)
{
    const struct plan_stage *stage = &plan->stages[plan->binding];
    bool given = in->pool_bytes != PLAN_UNKNOWN || in->pool_blocks != PLAN_UNKNOWN || in->pool_tokens != PLAN_UNKNOWN;
    if (given) return 0;
    if (!plan->starts) return err_set(err, ERR_USAGE, "the server %s", plan->verdict);
    /* Rounding up makes the last block reach beyond. */
    bool up = plan->uniform && stage->pool_bytes > stage->available_bytes;
    o->kv_cache_memory_bytes = up ? stage->pool_bytes : stage->available_bytes;
    return 0;
}

static int apply(struct plan *plan, struct plan_input *in, const struct optset *set, struct options *o,
                 struct err *err)
{
    if (plan_input_read(in, set, o, err) != 0) return -1;
    in->block_tokens = o->block_tokens;
    if (!in->max_model_len_given) in->max_model_len = PLAN_UNKNOWN; /* the trace's */
    plan_compute(plan, in);
    if (in->has_shape) put_window(in, o);
    if (in->has_shape && put_token_bytes(&plan->stages[plan->binding], in, set, o, err) != 0) return -1;
    return describes_device(o) ? put_pool(plan, in, o, err) : 0;
}

int plan_into_options(const struct optset *set, struct options *o, struct err *err)
{
    if (!describes_model(o) && !describes_device(o)) return 0;
    struct plan *plan = malloc(sizeof *plan);
    struct plan_input *in = malloc(sizeof *in);
    int status = plan && in ? apply(plan, in, set, o, err) : err_set(err, ERR_FAILED, "out of memory");
    free(in);
    free(plan);
    return status;
}
