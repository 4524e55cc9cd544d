/* The future of a trace for policies that ask for it. */
#include <stdlib.h>

#include "sim/engine_core.h"
#include "sim/numbers.h"

/* Full blocks of the request that others can have too: those of its prompt, and of the output as far as the trace tells it and
 * it gets keys. */
static uint64_t known_blocks(const struct engine *e, const struct sim_request *r)
{
    uint64_t known = r->span_tokens;
    if (e->config.cache_output == CACHE_OUTPUT_UNKEYED) known = r->prompt_tokens;
    else if (r->final_spans) known = r->final_span_tokens;
    return min_u64(known, r->kv.final_tokens) / e->policy->block_tokens;
}

/* Adds a request's keys, made as they are made when it comes. One token of the prompt is always left to compute. */
static int add_request(struct engine *e, const struct wl_request *from, struct err *err)
{
    struct sim_request r = {.index = from->index};
    /* What exists once, and what will never be looked for, is nobody's next use. */
    if (!from->has_content || engine_never_runs(e, from)) return future_add(&e->future, NULL, 0, 0, err);
    engine_set_lengths(e, &r, from);
    r.kv.samples = 1; /* the others' outputs exist once */
    engine_take_content(e, &r, from);
    int status = !e->out_of_memory && engine_prepare_keys(e, &r)
                     ? future_add(&e->future, r.keys[0], (r.prompt_tokens - 1) / e->policy->block_tokens, known_blocks(e, &r), err)
                     : err_set(err, ERR_FAILED, "out of memory");
    request_release(&r);
    return status;
}

int engine_read_future(struct engine *e, struct wl_source *source)
{
    struct wl_request from;
    int more, status = 0;
    if (!e->policy->foresees) return 0;
    if (!wl_can_rewind(source)) {
        return err_set(e->err, ERR_USAGE,
                       "%s: found a trace that can be read only once, expected one that can be read twice (a file, a generator): "
                       "the eviction order must know what comes",
                       wl_name(source));
    }
    bool any_content = e->stats.any_content; /* of what has arrived */
    while (status == 0 && (more = wl_next(source, &from, e->err)) != 0) status = more < 0 ? -1 : add_request(e, &from, e->err);
    e->stats.any_content = any_content;
    if (status || future_seal(&e->future, e->err)) return -1;
    return wl_rewind(source, e->err);
}

uint64_t engine_next_use(void *context, uint64_t key)
{
    struct engine *e = context;
    return e->policy->foresees ? future_next_use(&e->future, key) : UINT64_MAX;
}

void engine_pass(struct engine *e, struct sim_request *r)
{
    if (!e->policy->foresees || r->ever_admitted) return;
    future_pass(&e->future, r->index);
    if (!r->has_content || !engine_prepare_keys(e, r)) return;
    e->policy->ops->foreseen(e->policy, r->keys[0], known_blocks(e, r));
}
