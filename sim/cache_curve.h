/* Miss-ratio curves: the hit ratio of a trace's content at many capacities.
 *
 *   exact      a stack order (lru): all capacities from one pass over the trace, by stack distances (Mattson et al.,
 *              1970). A request is looked up as a whole: its i-th block hits at the capacities that are at least
 *              the largest distance among its first i blocks. Holds from the largest request on, below which
 *              requests are rejected, and where no request names a block twice
 *   simulated  the cache itself, once for each capacity
 *   shards     as exact, over a sample of the blocks by hash, distances scaled (SHARDS-adj, FAST'15)
 *   mini       a cache of a sample of the blocks, capacity scaled (miniature simulation, ATC'17), four samples, with
 *              the same adjustment. A block hits when the sampled ones before it do: orders that evict a block
 *              before what continues it come out too well
 *
 * Sampled points have an error: the standard error of the mean, over 16 parts of the sample (shards) or over the
 * four samples (mini). */
#ifndef PAGESIM_CACHE_CURVE_H
#define PAGESIM_CACHE_CURVE_H

#include <stdio.h>

#include "sim/cache_sim.h"

struct curve_config {
    const struct kv_eviction_ops *evict;
    enum cache_release release;
    enum cache_blocks blocks;
    bool stream;        /* the textbook rule; release and blocks do not matter */
    double sample_rate; /* (0, 1]; below 0: 1 for traces that are short enough, else what gives about
                           4 million references */
    const struct kv_value *evict_values; /* of the order's options; NULL: the defaults */
};

enum curve_method { CURVE_EXACT, CURVE_SIMULATED, CURVE_SHARDS, CURVE_MINI };

struct curve_point {
    uint64_t capacity_blocks;
    enum curve_method method;
    uint64_t lookup_blocks, hit_blocks; /* 0 where sampled */
    double hit_ratio;                   /* of blocks; NAN: nothing was looked up */
    double token_hit_ratio;             /* NAN for streams and where it is not sampled */
    double error;                       /* of hit_ratio; 0 where not sampled */
    bool apart; /* less than the largest request: some are rejected, and count in no figure */
};

const char *curve_method_name(enum curve_method method);

/* capacities ascending, > 0, none infinite; count > 0. Fills count points. 0, or -1 with err. */
int cache_curve(const struct cache_trace *trace, const struct curve_config *config, const uint64_t *capacities,
                size_t count, struct curve_point *points, struct err *err);

/* The point of the working-set knee, among those that are not apart (0 where there is none): where the curve of hits over capacity, both as shares of their largest value,
 * is farthest above the diagonal. Beyond it a block of capacity buys less than average. */
size_t curve_knee(const struct curve_point *points, size_t count);

/* Capacities for a curve: about four for each doubling, up to all different blocks, and the largest request. The caller
 * frees them; NULL: out of memory. */
uint64_t *curve_capacities(const struct cache_trace *trace, size_t *count);

#endif
