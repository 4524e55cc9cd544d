/* How long a step takes. A model is a pure function of what a step does. */
#ifndef PAGESIM_STEP_TIME_H
#define PAGESIM_STEP_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/roofline.h"
#include "workloads/err.h"

/* What one step does, summed over its sequences. */
struct step_work {
    uint64_t decode_seqs;           /* sequences that compute one token */
    uint64_t decode_context_tokens; /* sum of their contexts, the new token included */
    uint64_t prefill_tokens;        /* tokens of all other sequences */
    /* sum over prefills of q*(kv - q) + q*(q + 1)/2: attended pairs, q new tokens of kv in all */
    unsigned __int128 prefill_pairs;
    uint64_t logit_seqs;            /* sequences that yield an output token */
};

enum step_time_kind { STEP_TIME_UNIT, STEP_TIME_LINEAR, STEP_TIME_ROOFLINE };

/* T = L*t_layer + max(W/BW, flops/F + head_flops/F_head) + kv_bytes/BW_kv + attention_flops/F_att:
 * the `simple` form fitted to steps of Llama-3 shapes measured on an H200 (docs/step-time.md). */
struct step_time_linear {
    double layers_us;           /* L * t_layer */
    double weights_us;          /* W / BW */
    double token_us;            /* flops / F of one token */
    double logit_us;            /* head_flops / F_head of one sequence */
    double context_token_us;    /* KV bytes of one token / BW_kv */
    double pair_us;             /* attention flops of one attended pair / F_att */
};

struct step_time {
    enum step_time_kind kind;
    uint64_t step_ns; /* unit: every step takes this long, > 0 */
    struct step_time_linear linear;
    struct roofline roofline;
    char note[96]; /* what of it is measured, for reports; "" when there is nothing to say */
};

/* The built-in coefficients. shape: "8b" or "70b/8"; dtypes: weights and KV, "bf16-bf16", "fp8-bf16",
 * "fp8-fp8". -1 with err when that combination was not measured. */
int step_time_linear_init(struct step_time *model, const char *shape, const char *dtypes,
                          struct err *err);

/* The link between a device and its host's memory. All copies of a step in one direction count as one: its bytes at the
 * bandwidth, and the latency once, which is what one copy of pinned memory took on an H200 (55 GB/s, 16 us; the
 * defaults of the options). Hundreds of small copies in a row took 7.5 us each there: engines gather, or pay more. */
struct host_link {
    uint64_t bytes_per_s; /* each way; 0: copies take no time */
    uint64_t latency_ns;
    bool overlapped;      /* with the step and with each other, layer by layer, as well as can be; else one after the other */
};

struct host_traffic {
    uint64_t to_device_bytes, to_host_bytes;
};

/* Time of one copy, at most 2^62; 0 for nothing. */
uint64_t host_copy_ns(const struct host_link *link, uint64_t bytes);
/* Duration of a step that computes for so long (at most 2^62) and copies this: the sum of the three, or the longest of
 * them when they overlap; at most 2^62. */
uint64_t host_link_step_ns(const struct host_link *link, uint64_t compute_ns, const struct host_traffic *traffic);

/* Duration of a step in nanoseconds, at least 1, at most 2^62. */
uint64_t step_time_ns(const struct step_time *model, const struct step_work *work);

#endif
