/* The future of a trace for policies that ask for it. */
#include <stdlib.h>

#include "sim/engine_core.h"

/* Adds a prompt's keys, made as they are made when the request comes. */
static int add_prompt(struct engine *e, const struct wl_request *from, struct err *err)
{
    uint32_t block_tokens = e->policy->block_tokens;
    struct sim_request r = {.index = from->index, .prompt_tokens = from->prompt_tokens};
    /* What exists once, and what will never be looked for, is nobody's next use. */
    if (!from->has_content || engine_never_runs(e, from)) return future_add(&e->future, NULL, 0, false, err);
    r.kv = (struct kv_request){.prompt_tokens = from->prompt_tokens, .final_tokens = from->prompt_tokens, .samples = 1};
    engine_take_content(e, &r, from);
    int status = !e->out_of_memory && engine_prepare_keys(e, &r)
                     ? future_add(&e->future, r.keys[0], from->prompt_tokens / block_tokens, from->prompt_tokens % block_tokens == 0, err)
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
    while (status == 0 && (more = wl_next(source, &from, e->err)) != 0) status = more < 0 ? -1 : add_prompt(e, &from, e->err);
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
    e->policy->ops->foreseen(e->policy, r->keys[0], r->prompt_tokens / e->policy->block_tokens);
}
