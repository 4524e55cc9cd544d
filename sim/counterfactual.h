/* What would have had to be different? One refusal of a run, tried again with one change at a time.
 *
 * Local changes apply to the state at the refusal. A simulation is deterministic, so the same run, stopped at the
 * same episode, is an exact clone of that state; the change is made there and the very ask is tried again on the real
 * policy. Global changes are other settings: the whole run again, and whether this request is still refused in it. */
#ifndef PAGESIM_COUNTERFACTUAL_H
#define PAGESIM_COUNTERFACTUAL_H

#include "sim/engine.h"
#include "sim/optset.h"
#include "sim/result.h"
#include "sim/simulation.h"

/* Local changes, cheapest first. */
enum local_change {
    LOCAL_WATERMARK_0,  /* nothing is kept back: neither watermark nor the scheduler's headroom */
    LOCAL_FIRST_CHUNK,  /* the ask for the first chunk (of a growth: for one token) instead of all at once */
    LOCAL_EXACT_NEED,   /* only what will hold a token */
    LOCAL_COMPACTION,   /* all regions moved together */
    LOCAL_NO_PINS,      /* all pins end */
    LOCAL_BOUNDARY,     /* bytes moved into the pool from outside it */
    LOCAL_COUNT,
};
extern const char *const local_change_names[LOCAL_COUNT];

enum verdict { VERDICT_OPEN, VERDICT_NOT_APPLICABLE, VERDICT_UNKNOWN, VERDICT_REFUSED, VERDICT_GRANTED };
extern const char *const verdict_names[]; /* by enum verdict */

#define COUNTERFACTUAL_WHY_BYTES 160
struct local_trial {
    enum verdict verdict;
    char why[COUNTERFACTUAL_WHY_BYTES]; /* the arithmetic, or why it does not apply */
};

/* Context of the hook `refused`. */
struct local_trials {
    uint64_t episode;        /* number of the refusal */
    uint64_t boundary_bytes; /* to move; 0: as many as are missing, and then moved_bytes says how many */
    uint64_t moved_bytes;
    bool reached, out_of_memory;
    struct local_trial trials[LOCAL_COUNT];
};
/* The hook: at the episode settles trials that are open, until one succeeds on the live policy and so uses
 * the state up; then, or when all are settled, stops the run. Run again while some are open. */
void local_trials_refused(void *context, struct engine *engine, const struct refused_call *call);
bool local_trials_open(const struct local_trials *trials);

/* A policy made anew (counterfactual_refill.c) with this pool, in which every running request holds what it holds in
 * the engine's: regions in falling order of size, block tables with the same sharing; cached content is gone.
 * NULL when it cannot be had, with the reason. kv_destroy() it. */
struct kv_policy *policy_refilled(struct engine *engine, uint64_t pool_bytes, char *why, size_t why_bytes);
/* An empty one; why is "" when there is one. */
struct kv_policy *policy_anew(const struct engine *engine, uint64_t pool_bytes, char *why, size_t why_bytes);
/* Content keys under which block ids of the engine's policy are known in a refilled one. keys[i] for i < count
 * gets ids[i]'s, the null block and i >= known one that nobody else has. */
void refill_keys(uint64_t *keys, uint32_t count, const kv_block *ids, uint32_t known, uint64_t owner);

/* The settings that a run of this set could be given instead, one change each, cheapest first. */
struct variant {
    char name[48];        /* as a key: block_size_8 */
    const char *option;   /* without dashes */
    char value[32];
};
#define VARIANTS_MAX 40
size_t variants_list(struct variant *variants, const struct options *options, const struct engine_config *config,
                     uint64_t pool_bytes, uint64_t running_max);
/* The set with the change, the pool given in bytes. NULL with err. */
struct optset *variant_set(const struct optset *set, const struct variant *variant, uint64_t pool_bytes,
                           struct err *err);

/* A run that was made, with what it kept of its refusals. source must be one that rewinds. */
struct explained_run {
    const struct optset *set;
    const struct options *options;
    struct wl_source *source;
    const struct trace_facts *facts;
    const struct refusal_watch *watch;
    uint64_t boundary_bytes;
};
/* Explains the refusal that the watch kept, or says that there was none: adds the keys explain.* to the run's own
 * result. -1 with err. */
int counterfactual_run(struct result *result, const struct explained_run *run, struct err *err);
/* The same keys for people. */
void counterfactual_table(const struct result *result, FILE *out);
/* 'first', 'worst' or a number from 1 on, as an episode to watch (0: the worst). */
int counterfactual_parse(const char *text, uint64_t *number, struct err *err);

#endif
