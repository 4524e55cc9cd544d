/* The edge of the device: what lives beside the pool on the same GPU, step by step (docs/edge.md).
 *
 * The pool is sized at start-up; activations, graphs and other libraries' buffers get what is left. When a step needs more,
 * the device is out of memory, however many blocks of the pool are free. Such a demand is a refusal with a proof sum like the
 * pool's own. Bytes outside the pool never enter the pool's states: they have a balance sheet here, and it adds up to the
 * device at every step.
 *
 * Two models of what is outside: a plain budget, in which every byte given back can be had again; and PyTorch's caching allocator
 * (allocator/device), which keeps segments and cannot lend them to other libraries. The boundary is fixed, or elastic as
 * in eLLM (arXiv 2506.15155): then a step takes what it lacks out of the pool's free blocks and gives it back at its end. */
#ifndef PAGESIM_EDGE_H
#define PAGESIM_EDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/refusals.h"
#include "workloads/err.h"

enum edge_model { EDGE_NONE, EDGE_BUDGET, EDGE_CACHING };
/* What becomes of a step that meets the edge. END: the process dies as real engines do; all requests that it has are lost. REJECT:
 * the request with most tokens in the step is aborted, the framework's cache emptied, and the rest tried again. */
enum edge_oom { EDGE_OOM_END, EDGE_OOM_REJECT };

/* Memory that somebody takes in service and never gives back. */
struct edge_buffer {
    uint64_t bytes;
    bool by_step;   /* `at` is a step's number, else nanoseconds: taken at the first step from then on */
    uint64_t at;
    bool framework; /* from the caching allocator, else from the driver, as NCCL and cuBLAS do */
};
#define EDGE_BUFFERS_MAX 16u

struct edge_config {
    enum edge_model model;
    enum edge_oom on_oom;
    bool elastic;
    uint64_t device_bytes;   /* total of the device, at most 2^47 */
    uint64_t context_bytes;  /* context, kernels, libraries: outside the framework from the start */
    uint64_t weights_bytes, residue_bytes, graph_bytes;
    /* A step's activations: base + tokens * per_token + sequences that yield a token * per_seq. */
    uint64_t base_bytes, per_token_bytes, per_seq_bytes;
    struct edge_buffer buffers[EDGE_BUFFERS_MAX];
    uint32_t buffer_count;
    const char *alloc_conf;  /* PYTORCH_CUDA_ALLOC_CONF of the caching model, or NULL */
};

/* Where the device's bytes are; their sum is the device. */
struct edge_bytes {
    uint64_t context, weights, residue, graphs, pool;
    uint64_t buffers, activations; /* outside the pool */
    uint64_t cached;      /* kept by the caching allocator, holding nothing; rounding of its blocks included */
    uint64_t free;
    uint64_t lent;        /* of the pool's, to activations; not in the sum */
};

struct edge_totals {
    uint64_t ooms, step_ooms, buffer_ooms; /* demands of the device that failed */
    uint64_t aborted;                      /* requests that were lost for it */
    uint64_t unserved;                     /* arrivals behind the end */
    bool ended;
    uint64_t first_oom_ns, first_oom_ask_bytes, first_oom_free_bytes, first_oom_cached_bytes, first_oom_pool_free_bytes;
    uint64_t activation_peak_bytes, step_tokens_peak, cached_peak_bytes, free_min_bytes, lent_peak_bytes;
    uint64_t lend_preemptions;
    unsigned __int128 lent_byte_time; /* over the steps */
    uint64_t step_time;
};

struct engine;
struct edge;
struct sim_request;
struct wl_source;

/* The activations of a step, or UINT64_MAX where they pass 2^62. */
uint64_t edge_activation_bytes(const struct edge_config *config, uint64_t tokens, uint64_t seqs);
/* Sequences that the engine's geometry must have room for beside the requests', so that as much as the largest step needs can
 * be lent; at most EDGE_SEQS_MAX, which is refused. 0 for a fixed boundary. */
#define EDGE_SEQS_MAX (1u << 20)
uint32_t edge_extra_seqs(const struct edge_config *config, uint64_t max_tokens, uint64_t max_seqs, uint64_t pool_bytes,
                         uint64_t bytes_per_token, uint32_t block_tokens, uint64_t max_seq_tokens);

/* After the engine's policy is there. NULL with err (ERR_USAGE: what must be there at start does not fit). */
struct edge *edge_create(struct engine *engine, struct err *err);
void edge_destroy(struct edge *edge); /* NULL is fine */
/* Between a pass and its step: takes the step's memory. False: the run has ended; all requests are gone. */
bool edge_begin_step(struct engine *engine);
/* The step took duration_ns. */
void edge_end_step(struct engine *engine, uint64_t duration_ns);
/* Reads the trace behind the end of a run, with the request that was read already. As wl_next. */
int edge_count_unserved(struct engine *engine, struct wl_source *source);
/* Bytes on the device outside the pool that a boundary drawn elsewhere could have given to it. */
uint64_t edge_outside_bytes(const struct edge *edge);
void edge_facts(const struct edge *edge, struct edge_bytes *bytes);
/* Under `caching`: calls visit for the framework's segments in address order, until it returns false. Nothing is called under
 * other models. False when memory is out. */
struct dev_segment_info;
bool edge_walk_segments(const struct edge *edge, bool (*visit)(void *context, const struct dev_segment_info *segment), void *context);
const struct edge_totals *edge_totals(const struct edge *edge);
/* NULL, or the line that says which sum is wrong. */
const char *edge_check(const struct edge *edge);
/* The request whose step met the edge, of the episode that has just closed, or NULL when it is not the edge's. */
const struct sim_request *edge_blamed(const struct edge *edge, const struct episode *episode);

#endif
