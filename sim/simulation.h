/* One simulation, from options and a trace to a result. What `run` and every cell of `sweep` do. */
#ifndef PAGESIM_SIMULATION_H
#define PAGESIM_SIMULATION_H

#include "sim/engine.h"
#include "sim/optset.h"
#include "sim/result.h"

/* What has to be known of a trace before it is run: from one read of it, or nothing for a pipe. */
struct trace_facts {
    bool known;
    struct wl_summary summary;
    /* --warmup and --measure as points of the run: nanoseconds, or request numbers for serial. */
    uint64_t window_begin, window_end;
};

/* max-model-len by default for a trace that cannot be read beforehand. */
#define DEFAULT_MODEL_LEN 8192u
/* Longest sequence that the default takes from a trace: longer prompts in it are rejected. */
#define MODEL_LEN_FROM_TRACE_MAX ((uint64_t)1 << 28)

/* Reads the source once if its summary is not known (once more when --warmup or --measure is a share of the requests) and rewinds it.
 * A source that cannot be rewound leaves facts->known false and must not need the facts. */
int trace_facts_read(struct trace_facts *facts, struct wl_source *source,
                     const struct options *options, struct err *err);

/* Fills in an engine's configuration, without hooks. -1 with err (ERR_USAGE). */
int simulation_configure(struct engine_config *config, const struct optset *set,
                         const struct options *options, const struct trace_facts *facts,
                         struct err *err);

/* What a run may be given beyond options. All zero: nothing. */
struct simulation_extras {
    struct engine_hooks hooks;
    bool replay_stalls;
    uint64_t max_steps;
    struct refusal_watch *watch;
    /* Before the first and after the last step; may be NULL. */
    void (*begin)(void *context, struct engine *engine);
    void (*end)(void *context);
    void *context;
};

/* The parts of it. The engine has run to its end; NULL with err. Its report is that of any options which differ from those
 * it was made with only in what its policy does not heed. */
struct engine *simulation_engine(const struct optset *set, const struct options *options, struct wl_source *source,
                                 const struct trace_facts *facts, const struct simulation_extras *extras, struct err *err);
int simulation_report(struct result *result, const struct optset *set, const struct options *options,
                      const struct wl_source *source, struct engine *engine, struct err *err);

/* Configures, runs, reports. extras may be NULL. result must be initialised; the source stands at its
 * beginning and is read to its end. */
int simulation_run(struct result *result, const struct optset *set, const struct options *options,
                   struct wl_source *source, const struct trace_facts *facts,
                   const struct simulation_extras *extras, struct err *err);

#endif
