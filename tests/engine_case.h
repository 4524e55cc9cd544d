/* Simulations in a test's own memory: a configuration, a few requests, and what came of them. */
#ifndef PAGESIM_ENGINE_CASE_H
#define PAGESIM_ENGINE_CASE_H

#include "sim/engine.h"
#include "workloads/wl_source.h"

#define ENGINE_CASE_REQUESTS 256
#define ENGINE_CASE_EPISODES 4096

struct engine_case {
    struct engine_config config;
    struct wl_request requests[ENGINE_CASE_REQUESTS]; /* in order of arrival; the caller's content */
    size_t count;
};

/* v1, unit steps of 1000 ns, a token of 1 byte, blocks of 16, a pool of pool_bytes, max_model_len 100,
 * everything else as by default. options: "reserve=oracle placement=buddy" or NULL; options that the policy does
 * not have are left out. A walk at every call and every step is on. */
void engine_case_init(struct engine_case *c, const char *policy, const char *options, uint64_t pool_bytes);
/* One more request with one sample and no content; the pointer lives as long as the case. */
struct wl_request *engine_case_add(struct engine_case *c, uint64_t arrival_ns, uint64_t prompt_tokens,
                                   uint64_t output_tokens);

/* The case's requests as a source, for tests that run the engine themselves. wl_close() it. */
struct wl_source *engine_case_source(const struct engine_case *c);

/* Everything that a run told. */
struct engine_run {
    struct engine *engine;
    struct engine_stats *stats;
    const struct accounting *accounting;
    struct episode episodes[ENGINE_CASE_EPISODES]; /* in the order in which they closed */
    uint64_t episode_end[ENGINE_CASE_EPISODES];
    size_t episode_count; /* all that closed, recorded or not */
};

/* Fails the test when the run does. Release the run. The case's hooks but episode are kept. */
void engine_case_run(const struct engine_case *c, struct engine_run *run);
void engine_run_release(struct engine_run *run);

/* Integral of one state over the window, in byte-nanoseconds; it must fit 64 bits. */
uint64_t engine_run_state(const struct engine_run *run, enum state state);
/* The figures as one JSON text, made as a command does. free() it. */
char *engine_run_json(struct engine_run *run);

#endif
