/* The memory plan of a server: what of a device's memory goes where, how many blocks the cache gets, and whether it starts.
 *
 * Pure computation. An input is made from options (plan_input_read) or by hand; plan_compute never fails: what a server would refuse
 * is a verdict, what is not known is PLAN_UNKNOWN. All bytes are of one rank; pipeline stages are planned one by one, and the one
 * with the fewest blocks binds. Sums are made in 128 bits.
 *
 * Sources: see PLAN_ENGINES in plan_engine.c and docs/plan.md. */
#ifndef PAGESIM_PLAN_H
#define PAGESIM_PLAN_H

#include "sim/gpu.h"
#include "sim/model_shape.h"
#include "sim/optset.h"

#define PLAN_UNKNOWN UINT64_MAX
#define PLAN_STAGES_MAX 64u

/* What the engine's share is a share of. */
enum plan_share {
    PLAN_OF_TOTAL,       /* vLLM: the device's total; everything else is deducted from it */
    PLAN_OF_FREE_BEFORE, /* SGLang: what is free before the weights; activations and graphs live outside of it */
    PLAN_OF_FREE_AFTER,  /* TensorRT-LLM: what is free once the model is loaded and has run */
};

struct plan_engine {
    const char *name;
    const char *aliases;          /* "|a|b|" */
    enum plan_share share;
    uint64_t utilization_billionths; /* default */
    uint64_t block_tokens;        /* default */
    bool blocks_up;               /* bytes to blocks: rounded up */
    bool null_block;              /* one block is never handed out */
    bool checks_free;             /* starts only when its share is free at its start */
    bool graphs_inside;           /* of the share */
    bool groups;                  /* layers of different kinds share one pool in groups */
    uint32_t group_slack_percent; /* the commonest kind sets the groups' size while it exceeds the rarest by less */
    bool two_pools;               /* full and sliding layers have a pool each */
    bool tokens_by_concurrency;   /* how a grouped pool's tokens are counted */
    bool align_to_keys;           /* a recurrent state aligns to the key half of a page */
    const char *source;
};
size_t plan_engine_count(void);
const struct plan_engine *plan_engine_at(size_t i);
const struct plan_engine *plan_engine_find(const char *name); /* NULL: unknown */

/* Where a figure comes from. */
enum plan_origin {
    PLAN_GIVEN,    /* an option */
    PLAN_PRESET,   /* a GPU's preset */
    PLAN_COMPUTED, /* from the model */
    PLAN_DEFAULT,  /* a measured or published default */
    PLAN_GUESS,    /* a rule of thumb; to be said loudly */
};
struct plan_amount {
    uint64_t bytes; /* or PLAN_UNKNOWN */
    enum plan_origin origin;
};

struct plan_input {
    bool has_shape;
    struct model_shape shape;
    const struct plan_engine *engine;
    const struct gpu *gpu; /* NULL: none */
    enum element_type cache, weights;
    bool cache_auto; /* nobody chose the cache's type */
    uint32_t tp, pp, dp, dcp;
    bool expert_parallel;
    uint64_t block_tokens;
    bool block_given;
    uint64_t max_model_len; /* PLAN_UNKNOWN: neither given nor in the model */
    bool max_model_len_given, max_model_len_fitted; /* fitted: lowered to what the pool holds */
    uint64_t max_num_seqs, max_num_batched_tokens, tokens_in_flight;
    bool steps_given; /* both of the first two */
    uint64_t alignment_tokens;

    /* The budget; on each rank. */
    uint64_t gpu_memory;             /* PLAN_UNKNOWN: no device */
    uint64_t utilization_billionths;
    bool utilization_given;
    struct plan_amount weights_memory, offload, non_torch, activation, graphs, residue; /* unknown: to be computed */
    bool graphs_inside;
    bool eager, sleep_mode, prefix_caching;

    /* A pool that is given instead; at most one is known. */
    uint64_t pool_bytes, pool_blocks, pool_tokens;
    uint64_t page_bytes, kernel_page_bytes; /* PLAN_UNKNOWN: from the shape */
    uint64_t swap_bytes;                    /* host memory for swapped blocks; PLAN_UNKNOWN */
    uint64_t swa_ratio_millionths;

    uint64_t serve_requests, serve_tokens; /* the inverse question; requests PLAN_UNKNOWN: not asked */

    /* What --layer-groups fixes for a mixer; 0: not fixed. */
    uint64_t mixer_block_tokens[MODEL_MIXERS_MAX], mixer_blocks[MODEL_MIXERS_MAX];
};

/* Layers of one kind; one block of the pool serves `layers` of them. */
struct plan_group {
    uint32_t mixer;
    enum mixer_kind kind;
    uint64_t count;        /* groups like this one */
    uint64_t layers;       /* of all of them */
    uint64_t window_tokens;
    uint64_t block_tokens; /* 0 for STATE */
    uint64_t token_bytes;  /* of one layer; 0 for STATE or unknown */
    uint64_t state_bytes;  /* of one layer */
    uint64_t page_bytes;   /* of one layer, padding included */
    uint64_t padding_bytes;
    uint64_t fixed_blocks; /* blocks of a request whatever its length; 0: by length */
    uint64_t reserve_blocks; /* SLIDING, CHUNKED: most blocks of a request; else 0 */
    uint64_t pool_tokens;  /* tokens that two-pool engines give these layers, or PLAN_UNKNOWN */
};

/* One pipeline stage: each of its tp ranks. The parts add up to the total. */
struct plan_stage {
    uint32_t first_layer, end_layer;
    uint64_t token_bytes;      /* all layers in full */
    uint64_t full_token_bytes; /* slope: layers with full attention */
    uint64_t state_bytes;      /* of one sequence */
    uint32_t group_count;
    struct plan_group groups[MODEL_MIXERS_MAX];
    uint64_t group_total;      /* groups, each counted */
    uint64_t block_bytes;      /* PLAN_UNKNOWN without a shape */

    bool has_budget;
    uint64_t base_bytes, requested_bytes; /* what the share is of; the share */
    uint64_t deducted_bytes;   /* from it, before the cache */
    uint64_t states_bytes;     /* recurrent states outside the cache, for max_num_seqs sequences */
    struct plan_amount weights, offload, non_torch, activation, graphs, residue;
    uint64_t available_bytes;  /* for the cache; 0 when nothing is left; PLAN_UNKNOWN without pool or budget */
    uint64_t missing_bytes;    /* what the deductions exceed the share by */
    uint64_t num_blocks;       /* PLAN_UNKNOWN */
    /* The balance sheet; only with a device. */
    uint64_t pool_bytes, remainder_bytes, page_rounding_bytes, outside_bytes, overcommitted_bytes;
};

struct plan {
    uint64_t gpu_memory;
    uint32_t stage_count, binding; /* the stage with the fewest blocks */
    struct plan_stage stages[PLAN_STAGES_MAX];
    bool uniform;                  /* one group of full attention */

    uint64_t num_blocks, usable_blocks, kv_tokens, usable_kv_tokens;
    uint64_t tokens_by_division, tokens_by_concurrency; /* grouped pools */
    double max_concurrency;        /* below 0: unknown */
    uint64_t blocks_per_request;   /* of max_model_len */
    uint64_t required_bytes;       /* one request of max_model_len, tokens exact; grouped: what the engine reserves */
    uint64_t required_lower_bytes, required_upper_bytes; /* windows exact; every layer in full */
    uint64_t longest_request_tokens; /* PLAN_UNKNOWN also when there is no bound */
    uint64_t host_blocks;
    uint64_t key_bytes, value_bytes; /* of kv_tokens, every layer in full */
    double utilization_with_graphs;  /* below 0: unknown */
    uint64_t constant_bytes, slope_bytes; /* of a request: full windows and states, what a token adds */

    bool starts;
    char verdict[512];             /* "starts", "refuses: ..."; "" when there is nothing to judge */
};

/* Reads options into an input. -1 with err. The set must be the one that the options come from. */
int plan_input_read(struct plan_input *input, const struct optset *set, const struct options *options, struct err *err);
void plan_compute(struct plan *plan, const struct plan_input *input);

/* Free bytes that a context takes at start-up, measured on an H200. */
#define PLAN_CONTEXT_BYTES ((uint64_t)552402944)
/* Whether the engine finds less free at its start than its share (vLLM v1: Worker.init_device). Not judged where what runs beside is given:
 * such a figure is of later. */
bool plan_free_at_start_refuses(const struct plan_input *input, const struct plan_stage *stage);

/* Blocks that a request of `tokens` takes in the plan's binding stage. Saturates. */
uint64_t plan_request_blocks(const struct plan *plan, const struct plan_input *input, uint64_t tokens);

/* The inverse question; each figure PLAN_UNKNOWN (utilization below 0) when nothing serves. */
struct plan_serve {
    uint64_t requests, tokens;
    uint64_t lower_bytes, upper_bytes; /* windows exact; every layer in full */
    uint64_t blocks;                   /* that the engine reserves */
    bool fits;
    double utilization;                /* the smallest, rounded up to 0.0001 */
    uint64_t block_tokens;             /* the largest, of the powers of two up to 1024 */
    bool types[ELEMENT_TYPES];         /* of the cache that serve it */
};
void plan_serve(struct plan_serve *serve, const struct plan_input *input);

/* Puts the plan's bytes per token and pool into a simulation's options when its options describe a model (and a device).
 * -1 with err, also when the server would not start. */
int plan_into_options(const struct optset *set, struct options *options, struct err *err);

#endif
