/* The slow reference of vLLM v1's scheduler and block manager: what the fast engine must agree
 * with, decision by decision.
 *
 * Written from the rules in the golden cases' description alone and proved by those cases
 * (test_v1_reference). It shares no code with the engine. Arrays and linear searches
 * everywhere; content is compared token by token, so there is no hash to collide. */
#ifndef TESTS_MODEL_V1_REFERENCE_H
#define TESTS_MODEL_V1_REFERENCE_H

#include "tests/model/v1_case.h"

/* One request's share of a step. The table of an admitted request is hit_blocks + new_blocks. */
struct v1_scheduled {
    uint32_t request; /* index: line number in the trace, from 0 */
    uint32_t num_new_tokens;
    uint32_t num_computed_tokens; /* before the step; of an admission the hit tokens */
    bool admission;               /* it came from the waiting queue */
    bool preempted;               /* an admission after a preemption */
    struct v1_list hit_blocks;    /* 0 = the null block */
    struct v1_list new_blocks;    /* in the order popped */
};

struct v1_step {
    uint64_t step;
    struct v1_scheduled *scheduled; /* in scheduling order */
    uint32_t num_scheduled;
    struct v1_list preempted, finished, rejected; /* request indices, in order */
    struct v1_list evictions;                     /* block ids, in order */
    uint64_t scheduled_tokens;
    uint32_t running, waiting;    /* queue lengths after the step */
    uint32_t free_after_schedule; /* free blocks before anything is finished */
    uint32_t free_blocks;         /* after the step */
    uint32_t cached_blocks;       /* blocks with a key, duplicates counted each */
    uint64_t queries, hits;       /* tokens, by requests never preempted */
    uint64_t digest;
};

struct v1_summary {
    uint64_t unfinished; /* running or waiting at the end */
    bool stalled, max_steps_reached;
    uint64_t preemptions, evictions, finished, rejected;
    uint64_t lookups, queries, hits;
    uint64_t preempted_lookups, preempted_queries, preempted_hits;
    uint64_t admitted_tokens, admitted_hit_tokens;
    uint64_t readmitted_tokens, readmitted_hit_tokens;
    uint64_t scheduled_tokens;
    uint32_t peak_used_blocks;
    uint64_t blocks_allocated; /* popped; hits not counted */
    struct v1_list free_queue; /* at the end, head first */
    uint64_t digest;
};

struct v1_result {
    struct v1_step *steps;
    size_t num_steps;
    struct v1_summary summary;
};

/* c must be valid (v1_case_valid). The caller releases *result. */
void v1_reference_run(const struct v1_case *c, struct v1_result *result);
void v1_result_release(struct v1_result *result);

/* The lines of expected.jsonl, at the case's level of detail; the caller owns the object. */
json_t *v1_step_json(const struct v1_case *c, const struct v1_step *step);
json_t *v1_summary_json(const struct v1_case *c, const struct v1_result *result);

/* True if both lines have the same fields with the same values; else *text says which field is
 * the first to differ, and both values of it. The caller frees *text. */
bool v1_lines_equal(const json_t *actual, const json_t *expected, char **text);

#endif
