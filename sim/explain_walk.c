#include <stdlib.h>
#include <string.h>

#include "sim/explain.h"
#include "sim/run_common.h"

int explain_walk_open(struct explain_walk *w, const struct optset *set, struct err *err)
{
    struct wl_options how;
    const char *case_dir = optset_text(set, "case");
    memset(w, 0, sizeof *w);
    w->set = set;
    if (case_dir) {
        if (replay_open(&w->replay, case_dir, set, err)) return -1;
        w->set = w->replay.set;
    }
    if (options_resolve(w->set, &w->options, err) || options_need_trace(&w->options, err)) return -1;
    run_warn_plan(w->set);
    /* Every sequence is visited at every step, so that keys are there as soon as their blocks are full. */
    w->options.plain_loop = true;
    options_wl(&w->options, &how);
    if (wl_open(w->options.trace, &how, w->options.seed, &w->source, err)) return -1;
    return trace_facts_read(&w->facts, w->source, &w->options, err);
}

void explain_walk_release(struct explain_walk *w)
{
    memory_map_release(&w->map);
    wl_close(w->source);
    replay_release(&w->replay);
}

/* --- one run ---------------------------------------------------------------------------------- */

struct pass {
    struct explain_walk *w;
    const struct explain_goal *goal; /* NULL: only count */
    struct engine *engine;
    struct explain_events events;
    struct explain_keys keys;
    uint64_t instant;   /* the present one */
    uint64_t found;     /* the last that matched, UINT64_MAX: none */
    bool done, failed;
    struct err *err;
};

static void on_begin(void *context, struct engine *e)
{
    struct pass *p = context;
    p->engine = e;
}

static void on_event(void *context, uint64_t time_ns, enum event_kind kind, const struct sim_request *r, uint64_t a, uint64_t b)
{
    struct pass *p = context;
    (void)time_ns;
    if (p->done) return;
    explain_events_add(&p->events, p->engine, kind, r, a, b);
    if (kind == EVENT_ADMIT) explain_keys_add(&p->keys, r);
}

static bool has_event(const struct pass *p)
{
    for (size_t i = 0; i < p->events.count; i++) {
        const struct explain_event *event = &p->events.items[i];
        if (p->goal->kind == GOAL_REQUEST ? strcmp(event->name, p->goal->request) == 0 : (p->goal->events >> event->kind & 1) != 0) return true;
    }
    return false;
}

static bool matches(const struct pass *p, enum look_kind kind)
{
    const struct explain_goal *g = p->goal;
    bool serial = p->engine->config.scheduler->serial;
    uint64_t step = serial ? p->engine->stats.requests - 1 : p->engine->stats.steps;
    switch (g->kind) {
    case GOAL_INSTANT: return p->instant == g->number;
    case GOAL_STEP: return step == g->number && (!g->end || kind == LOOK_END || serial);
    case GOAL_EVENT:
    case GOAL_REQUEST: break;
    }
    return (g->backwards ? p->instant < g->from : p->instant > g->from || g->from == UINT64_MAX) && has_event(p);
}

static void draw(struct pass *p, enum look_kind kind)
{
    struct explain_moment moment = {p->instant, p->w->instants, kind, &p->events, &p->keys};
    p->failed = explain_draw(&p->w->screen, p->engine, &moment, &p->w->map, p->err) != 0;
}

static void on_look(void *context, struct engine *e, enum look_kind kind)
{
    struct pass *p = context;
    if (p->done) return;
    if (p->goal && matches(p, kind)) {
        p->found = p->instant;
        if (!p->goal->backwards) {
            draw(p, kind);
            p->done = true;
        }
    }
    bool behind = p->goal && p->goal->backwards && p->instant >= p->goal->from;
    if (behind) p->done = true;
    if (p->done) engine_stop(e);
    p->events.count = 0;
    p->instant++;
}

/* Simulates from the start until the goal is met. */
static int run(struct pass *p, struct err *err)
{
    struct explain_walk *w = p->w;
    struct simulation_extras extras = {
        .hooks = {.context = p, .event = on_event, .look = on_look, .look_context = p},
        .replay_stalls = w->replay.set != NULL,
        .max_steps = w->replay.max_steps,
        .begin = on_begin,
        .context = p,
    };
    p->found = UINT64_MAX;
    p->err = err;
    if (w->used && wl_rewind(w->source, err)) return -1;
    w->used = true;
    struct engine *e = simulation_engine(w->set, &w->options, w->source, &w->facts, &extras, err);
    engine_destroy(e);
    bool out_of_memory = p->events.out_of_memory;
    free(p->events.items);
    explain_keys_release(&p->keys);
    if (!e || p->failed) return -1;
    return out_of_memory ? err_set(err, ERR_FAILED, "out of memory") : 0;
}

int explain_walk_count(struct explain_walk *w, struct err *err)
{
    struct pass p = {.w = w};
    if (run(&p, err)) return -1;
    w->instants = p.instant;
    return 0;
}

int explain_walk_to(struct explain_walk *w, const struct explain_goal *goal, uint64_t *at, struct err *err)
{
    struct pass p = {.w = w, .goal = goal};
    if (run(&p, err)) return -1;
    if (p.found == UINT64_MAX) return 0;
    *at = p.found;
    if (!goal->backwards) return 1;
    struct explain_goal there = {.kind = GOAL_INSTANT, .number = p.found};
    return explain_walk_to(w, &there, at, err);
}
