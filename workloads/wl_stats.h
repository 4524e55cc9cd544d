/* What the lengths of a trace's requests alone decide: their distribution, and how much of the
 * memory given to each holds no token, for paged allocation and for reservations. No arrival times,
 * no capacity, no sharing. docs/traces.md defines each figure. */
#ifndef PAGESIM_WL_STATS_H
#define PAGESIM_WL_STATS_H

#include "workloads/wl_source.h"

typedef unsigned __int128 wl_u128;

struct wl_quantiles {
    double mean, stdev; /* of the population */
    uint64_t min, p50, p90, p99, max; /* nearest rank */
    wl_u128 sum;
};

enum { WL_STATS_BLOCKS = 8, WL_STATS_RESERVES = 7 };
extern const uint32_t wl_stats_block_tokens[WL_STATS_BLOCKS];

/* Memory given, and how much of it is used. */
struct wl_waste {
    wl_u128 allocated, used;
    double mean_request_ratio; /* mean of the requests' own ratios */
};

struct wl_stats_paged {
    struct wl_waste at_completion; /* allocated = block tokens * blocks */
    struct wl_waste kv_written;    /* without the last output token; no mean ratio */
    uint64_t exact_fit_requests;
    struct wl_waste step_average;  /* summed over decode steps; no mean ratio */
};

struct wl_stats_static {
    uint64_t reserve_tokens;
    bool is_trace_max;
    uint64_t accepted;             /* 0: left out of reports */
    uint64_t accepted_with_output; /* of these: only they have decode steps */
    struct wl_waste at_completion;
    struct wl_waste step_average;  /* no mean ratio */
};

struct wl_stats {
    uint64_t requests;
    struct wl_quantiles input, output, total;
    struct wl_stats_paged paged[WL_STATS_BLOCKS];
    struct wl_stats_static reserved[WL_STATS_RESERVES];
    struct wl_waste pow2_total;
    struct wl_waste pow2_output;   /* no mean ratio */
    double interarrival_cv;        /* of all gaps; NaN with fewer than two */
};

/* Reads the source to its end. Memory: 24 bytes a request. 0, or -1 with err. */
int wl_stats_read(struct wl_source *source, struct wl_stats *stats, struct err *err);

#endif
