/* The discrete-event engine: requests arrive, a scheduler admits, grows and preempts them, a policy
 * gives and takes memory, a step-time model says how long each step lasts. Time is whole
 * nanoseconds; the same input and configuration give the same result on any machine. */
#ifndef PAGESIM_ENGINE_H
#define PAGESIM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/host_tier.h"
#include "allocator/kv_policy.h"
#include "sim/accounting.h"
#include "sim/edge.h"
#include "sim/quantiles.h"
#include "sim/refusals.h"
#include "sim/step_time.h"
#include "workloads/wl_source.h"

struct engine;
struct sim_request;
struct scheduler;
struct refused_call; /* engine_core.h */

#define SAMPLES_MAX 4096u

/* What output blocks are keyed by. */
enum cache_output { CACHE_OUTPUT_KEYED, CACHE_OUTPUT_UNKEYED, CACHE_OUTPUT_TRACE };

/* The output limit that clients declare. COLUMN: the trace's max_tokens, where it has one. */
enum declared_output { DECLARED_COLUMN, DECLARED_MAX, DECLARED_EXACT, DECLARED_FACTOR };

/* One scheduled entry of a step, for step lines and events. */
struct scheduled {
    struct sim_request *request;
    uint64_t new_tokens;      /* of each of its sequences */
    uint64_t computed_before;
    uint64_t hit_tokens;      /* admissions only */
    uint32_t width;           /* sequences that compute them */
    bool admitted;            /* admission in this step */
    bool readmitted;          /* ... after a preemption */
    bool first_admission;
    /* Into the step's block log (only when a step hook is set): table entries at admission. */
    size_t hit_blocks_at, new_blocks_at;
    uint32_t hit_blocks, new_blocks;
};

/* What happened in one step; valid during the call. */
struct step_view {
    uint64_t step, time_ns, duration_ns;
    const struct scheduled *scheduled;
    size_t scheduled_count;
    const kv_block *block_log;
    struct sim_request *const *preempted;
    size_t preempted_count;
    struct sim_request *const *finished;
    size_t finished_count;
    struct sim_request *const *rejected;
    size_t rejected_count;
    const kv_block *evicted;
    size_t evicted_count;
    uint64_t running, waiting;   /* requests, after the step */
    uint64_t free_after_schedule_units, free_units;
    uint64_t queries, hits;      /* tokens looked up and hit in this step, never-preempted requests */
};

enum event_kind {
    EVENT_ARRIVE,
    EVENT_REJECT,
    EVENT_UNSERVABLE,
    EVENT_ADMIT,   /* a = hit tokens, b = new units */
    EVENT_GROW,    /* a = computed tokens after, b = new units (only when > 0) */
    EVENT_REFUSE,  /* a = ask units, b = obtainable units */
    EVENT_PREEMPT, /* a = computed tokens lost */
    EVENT_SWAP_OUT, /* a = units moved to the host */
    EVENT_SWAP_IN,
    EVENT_FORK,    /* a = children */
    EVENT_EVICT,   /* a = block */
    EVENT_COPY,    /* a = from, b = to */
    EVENT_FIRST_TOKEN,
    EVENT_FINISH,
    EVENT_ABORT,
    EVENT_FETCH,   /* a = blocks copied from the host tier at an admission */
    EVENT_OFFLOAD, /* a = blocks copied to the host tier in a pass */
    EVENT_DEVICE_OOM, /* a = bytes asked, b = bytes free on the device; the request with most tokens */
    EVENT_KIND_COUNT,
};
extern const char *const event_names[EVENT_KIND_COUNT];

/* When the pool can be looked at: with a pass's decisions carried out, as the step's memory then is (a serial run: with the
 * request at its full length); and between two steps, with what ended in the first given back. */
enum look_kind { LOOK_PASS, LOOK_END };

/* Every member may be NULL. */
struct engine_hooks {
    void *context;
    void (*event)(void *context, uint64_t time_ns, enum event_kind kind,
                  const struct sim_request *request, uint64_t a, uint64_t b);
    void (*step)(void *context, const struct step_view *view); /* gets step_context */
    void *step_context;
    void (*episode)(void *context, const struct episode *episode, const char *request_id,
                    uint64_t end_ns);
    void (*stretch)(void *context, const struct levels *levels, uint64_t begin, uint64_t end);
    /* A demand has just been refused for the first time: the pool is as the refusal found it. Gets
     * refused_context. May try other asks on the policy when it gives back what it got and calls engine_stop. */
    void (*refused)(void *context, struct engine *engine, const struct refused_call *call);
    void *refused_context;
    /* For pictures: the levels as they stand. Unlike `step` it has no part in what the engine may skip; see
     * park_show_filled. May call engine_stop. Gets look_context. */
    void (*look)(void *context, struct engine *engine, enum look_kind kind);
    void *look_context;
};

/* Host memory as a second level of the pool's cache. */
struct host_config {
    uint64_t capacity_bytes;            /* 0: none */
    const struct kv_eviction_ops *evict; /* one that host_tier_allows */
    struct kv_value evict_values[KV_OPTIONS_MAX];
    struct host_link link;              /* also of the swaps of scheduler v0 */
};

struct engine_config {
    const struct kv_policy_ops *policy;
    struct kv_value policy_values[KV_OPTIONS_MAX];
    struct kv_geometry geometry;         /* max_seqs, max_seq_tokens, lookahead are filled in by create */
    const struct scheduler *scheduler;
    struct step_time step_time;
    uint64_t max_num_seqs;               /* > 0 */
    uint64_t max_num_batched_tokens;     /* > 0 */
    uint64_t max_model_len;              /* > 1 */
    uint64_t long_prefill_token_threshold; /* 0: none */
    bool chunked_prefill;
    bool whole_prompt_admission;
    enum cache_output cache_output;
    enum declared_output declared_output;
    uint64_t declared_factor_millionths; /* FACTOR: of the true output, rounded up */
    /* Only what happens in [begin, end) is measured: nanoseconds, or request numbers in serial runs. */
    uint64_t window_begin, window_end;
    uint64_t check_every;                /* 0: O(1) checks only; k: full walk at every k-th call */
    uint64_t swap_space_bytes;           /* host memory for swapped requests */
    struct host_config host;
    bool by_priority;                    /* smaller numbers first, arrival order among equals */
    bool plain_loop;                     /* visit every sequence at every step: slow, obvious, the same result */
    bool replay_stalls;                  /* golden cases: no verdicts at the head; a stall ends the run */
    uint64_t max_steps;                  /* 0: no limit */
    struct engine_hooks hooks;
    struct refusal_watch *watch; /* the caller's, or NULL */
    struct edge_config edge;     /* model EDGE_NONE: the pool alone */
};

/* Counts of the whole run: verdicts, steps. Of the measured window: the rest. */
struct engine_stats {
    uint64_t requests, finished, rejected, unservable, outgrew_pool, aborted, length_capped;
    uint64_t steps, simulated_ns;
    bool stalled, max_steps_reached, stopped;
    uint64_t preemptions, evictions, copies;
    uint64_t swap_outs, swap_ins; /* of the preemptions: to host memory; and back */
    uint64_t units_allocated; /* handed out anew, hits not counted */
    uint64_t scheduled_tokens;

    /* Prefix cache. Look-ups as the rule set counts them, by whether the request was ever preempted. */
    uint64_t lookups, queries, hits;
    uint64_t preempted_lookups, preempted_queries, preempted_hits;
    uint64_t admitted_tokens, admitted_hit_tokens;     /* first admissions */
    uint64_t readmitted_tokens, readmitted_hit_tokens; /* after a preemption */
    uint64_t admitted_prompt_blocks, admitted_hit_blocks;
    uint64_t lost_to_granularity, lost_to_last_token, lost_to_eviction;
    bool any_content;

    /* The host tier, as in host_tier.h. Hits count above too, except as look-ups and their hits. */
    struct {
        uint64_t hit_tokens, hit_blocks; /* first admissions */
        uint64_t fetched_blocks, offloaded_blocks, already_there_blocks, evicted_blocks;
        uint64_t transfer_ns;            /* that copies, swaps included, added to steps */
    } host;

    uint64_t head_refused_steps;
    uint64_t window_steps;
    uint64_t output_tokens; /* delivered in the window */
    uint64_t peak_held_units;

    struct quantiles ttft_ns, tpot_ns, e2e_ns;
    struct refusal_totals refusals;
    char unservable_example[160]; /* arithmetic of the first unservable request, or "" */

    /* Serial runs: the pool as a cache of blocks. */
    struct {
        uint64_t accepted, rejected, queried_full_blocks, hit_blocks, hit_tokens, input_tokens;
        uint64_t allocated_blocks, zero_hit_requests;
    } serial;
};

/* Validates the configuration and makes the engine and its policy. NULL with err on failure. */
struct engine *engine_create(const struct engine_config *config, struct err *err);
/* Runs the source to its end. -1 with err when the source or memory fails. */
int engine_run(struct engine *engine, struct wl_source *source, struct err *err);
struct engine_stats *engine_stats(struct engine *engine);
const struct accounting *engine_accounting(const struct engine *engine);
struct kv_policy *engine_policy(struct engine *engine);
/* For hooks: the run ends with the present pass, and its figures mean nothing. */
void engine_stop(struct engine *engine);
void engine_destroy(struct engine *engine); /* NULL is fine */

/* The name of a request in outputs: its id, or its number written to buffer. */
const char *sim_request_name(const struct sim_request *request, char *buffer, size_t bytes);
uint64_t sim_request_index(const struct sim_request *request);

#endif
