/* The contract of a scheduler: who gets memory and tokens in the next step.
 *
 * The engine calls `pass` before every step. The pass looks at the requests that run and at those that wait, in whatever order it
 * likes, and gives tokens to compute: to a running request (scheduler_extend), or to a waiting one, which is thereby
 * admitted (scheduler_admit). It may take everything back from a running request (scheduler_preempt). Then the step takes its
 * time, what was scheduled is computed, and the next pass begins.
 *
 * What holds for all functions:
 * - They are exported by the program, and in libpagesim.a. They are called inside of a pass, by its thread, with its engine.
 * - A request is a pointer that is good until the end of the pass; its number is its name for longer.
 * - Every call is checked. A call that breaks a rule ends the program with a line that names the scheduler, the pass, the call and
 *   the request. The rules are below, with "only" and "must".
 * - In a pass a request is scheduled at most once, and one that was preempted is left alone until the next.
 * - A refused demand changes nothing, and is booked as a refusal (docs/metrics.md); asking again for as much, before
 *   anything else has changed, breaks a rule.
 *
 * What is not told: how many tokens a request will really put out.
 *
 * A run ends with an error when a pass schedules nothing although requests are left and no more will arrive; when nothing is
 * scheduled and more will arrive, the next pass is at the next arrival. It also ends with an error after
 * 100,000 passes in a row, and as many as --max-model-len has tokens, that only compute what had been computed before. */
#ifndef PAGESIM_SCHEDULER_H
#define PAGESIM_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAGESIM_SCHEDULER_ABI 1u

struct engine;      /* a run under way */
struct sim_request; /* a request between its arrival and its end */

enum scheduler_flags {
    /* Never cuts a prompt, which is checked: --max-num-batched-tokens must be at least --max-model-len, and is by default. */
    SCHEDULER_WHOLE_PROMPTS = 1 << 0,
    /* The policy keeps --watermark free at every admission; without, only while something runs. */
    SCHEDULER_WATERMARK_ALWAYS = 1 << 1,
};

struct scheduler_ops {
    const char *name;        /* up to 39 of a-z, 0-9 and - */
    const char *summary;     /* a line */
    const char *source;      /* of the rule: paper, engine and version */
    const char *description; /* a paragraph, or NULL */
    uint32_t flags;
    double default_watermark; /* share of the pool, 0 <= .. < 1, when --watermark is not given */

    /* State of one run, or both NULL. Runs go on side by side in several threads: what changes belongs here, not into globals.
     * create returns NULL when memory is out. */
    void *(*create)(void);
    void (*destroy)(void *state);

    void (*pass)(struct engine *engine, void *state); /* state: what create returned, or NULL */
};

/* --- facts ------------------------------------------------------------------------------------- */

/* The same in every pass of a run. Units are the policy's: blocks, or slots of one token. */
struct scheduler_limits {
    uint64_t max_num_batched_tokens; /* of a step */
    uint64_t max_num_seqs;           /* running sequences; a request counts as many as it has samples */
    uint64_t max_model_len;          /* tokens of a sequence */
    uint64_t long_prefill_token_threshold; /* a request should get no more in a step; 0: none. Up to the scheduler */
    uint64_t lookahead_tokens;       /* slots that are kept ahead of the tokens */
    uint64_t pool_units;             /* usable by requests */
    bool chunked_prefill;            /* prompts may be cut */
    bool by_priority;                /* the waiting queue is in order of priority, arrival, number; else first come, first served */
    bool policy_caches;              /* the policy shares prefixes: look-ups can hit */
    bool policy_reserves;            /* an admission takes all that the request may ever need; growth then asks for nothing */
};
void scheduler_get_limits(const struct engine *engine, struct scheduler_limits *limits);

struct scheduler_now {
    uint64_t pass;          /* from 1 */
    uint64_t now_ns;
    uint64_t budget_tokens; /* what is left of the step's; preempting a request that was scheduled gives its tokens back */
    uint64_t running, waiting; /* requests */
    uint64_t running_seqs;
    uint64_t preempted; /* requests, in this pass */
};
void scheduler_get_now(const struct engine *engine, struct scheduler_now *now);

struct scheduler_request {
    uint64_t number; /* place in the trace, from 0 */
    uint64_t arrival_ns;
    int64_t priority; /* smaller is more important */
    uint64_t prompt_tokens;
    uint64_t max_tokens;      /* most output tokens, of each sample, as declared */
    uint64_t output_tokens;   /* so far, of each sample */
    uint64_t computed_tokens; /* of each sequence that has some; 0 while it waits */
    /* Of each sequence, to be computed until the next output token, at least 1: a decoding request has one. While it waits, what
     * a cache may have of it is among them. */
    uint64_t left_tokens;
    uint64_t taken_units; /* that it has asked for since its admission; 0 while it waits */
    uint32_t samples; /* sequences that it is, or will be */
    uint32_t width;   /* sequences that compute now: 1 as long as the samples share the prompt */
    uint32_t preemptions; /* so far */
    bool scheduled;   /* in this pass */
};
void scheduler_get_request(const struct engine *engine, const struct sim_request *request, struct scheduler_request *facts);

/* --- the lists: NULL behind the last ----------------------------------------------------------- */

/* In the order of admission. Admitted ones come to the end at once. */
struct sim_request *scheduler_first_running(const struct engine *engine);
struct sim_request *scheduler_last_running(const struct engine *engine);
/* Only of a request that runs: take the next one before this one is preempted. */
struct sim_request *scheduler_next_running(const struct engine *engine, const struct sim_request *request);
struct sim_request *scheduler_previous_running(const struct engine *engine, const struct sim_request *request);
/* In the order of arrival, preempted ones before all others; or by priority. */
struct sim_request *scheduler_first_waiting(const struct engine *engine);
/* Only of a request that waits: take the next one before this one is admitted. */
struct sim_request *scheduler_next_waiting(const struct engine *engine, const struct sim_request *request);

/* --- memory ------------------------------------------------------------------------------------ */

/* The largest ask of this request, for admission if it waits, for growth if it runs, that the pool would grant now. */
uint64_t scheduler_obtainable_units(const struct engine *engine, const struct sim_request *request);
/* Units that the pool must give until each sequence of the request has so many tokens; forked: its samples have grown apart behind the
 * prompt. Of a waiting request without the hit, if it has just been looked up; of a running one beyond what it has. An admission or growth
 * may ask for more: look-ahead slots, and the whole prompt under --admission whole-prompt. */
uint64_t scheduler_units(const struct engine *engine, const struct sim_request *request, uint64_t tokens, bool forked);
/* Units of such a request in all, if it shares nothing with others. */
uint64_t scheduler_units_in_all(const struct engine *engine, const struct sim_request *request, uint64_t tokens, bool forked);
/* Leading tokens of a waiting request that are cached, for choosing among requests: nothing is counted. Makes the keys of its blocks when
 * it is asked for the first time. */
uint64_t scheduler_cached_tokens(struct engine *engine, struct sim_request *request);

/* --- actions ----------------------------------------------------------------------------------- */

enum scheduler_answer {
    SCHEDULER_OK,
    SCHEDULER_REFUSED, /* for want of memory */
    SCHEDULER_WAIT,    /* extend: refused, it runs alone, and preempting it does not help: cached blocks are pinned for a time */
    SCHEDULER_ENDED,   /* it can never be served: the verdict is booked, the request is gone, its pointer must not be used */
};

/* Looks a waiting request up in the cache, counted as the rule set says. Returns the tokens that are left to compute, at
 * least 1. An admission must follow a look-up of the same request, with no change of the pool between. */
uint64_t scheduler_look_up(struct engine *engine, struct sim_request *request);

/* Admits a waiting request, any of the queue, with so many tokens to compute in this step: 1 to what the look-up left, within the
 * budget; all of them, or at least the long-prefill threshold, when prompts may not be cut. Only while its samples have a
 * place among max_num_seqs. SCHEDULER_ENDED: not even an empty pool has room. */
enum scheduler_answer scheduler_admit(struct engine *engine, struct sim_request *request, uint64_t new_tokens);

/* Gives a running request so many tokens of each sequence: 1 to left_tokens, times width within the budget.
 * SCHEDULER_ENDED: it runs alone and has outgrown the pool. */
enum scheduler_answer scheduler_extend(struct engine *engine, struct sim_request *request, uint64_t new_tokens);

/* Takes all memory from a running request (there is no swapping to the host), which waits then, before all others or where its priority belongs, and is computed
 * again. Only of one that was not admitted in this pass. One that runs alone and was refused in this pass has the
 * pool for itself and comes back to the same place; the second time without a new token it is ended, SCHEDULER_ENDED;
 * else SCHEDULER_OK. */
enum scheduler_answer scheduler_preempt(struct engine *engine, struct sim_request *request);

/* A scheduler that keeps memory back says no by this: unless so many units for the waiting request, and the headroom beside them, are
 * obtainable, true, and its refusal is booked, with the headroom as kept back by the scheduler. */
bool scheduler_hold_back(struct engine *engine, struct sim_request *request, uint64_t units, uint64_t headroom_units);

/* A waiting request cannot start as there is no place among max_num_seqs. Booked once until it starts. */
void scheduler_wait_for_slot(struct engine *engine, struct sim_request *request);

/* Ends a request, neither scheduled nor preempted in this pass, that could only be served with so many units: more than the pool has. */
void scheduler_unservable(struct engine *engine, struct sim_request *request, uint64_t units);

#ifdef __cplusplus
}
#endif

#endif
