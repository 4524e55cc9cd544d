/* What `pagesim cache` is asked for, and its two ways: over a trace's content, or over a bare stream of
 * object ids. Both print to stdout. */
#ifndef PAGESIM_CACHE_STUDY_H
#define PAGESIM_CACHE_STUDY_H

#include "sim/cache_curve.h"
#include "sim/cache_sim.h"
#include "sim/id_file.h"

/* An eviction order and the values of its options. */
struct cache_order {
    const struct kv_eviction_ops *ops;
    struct kv_value values[KV_OPTIONS_MAX];
};

/* The product of these lists. */
struct cache_study {
    uint64_t *capacities; /* CACHE_INFINITE for inf */
    size_t capacity_count;
    struct cache_order *orders;
    size_t order_count;
    uint64_t *host_capacities; /* 0: without a host tier */
    size_t host_capacity_count;
    struct cache_order *host_orders;
    size_t host_order_count;
    bool host; /* any of them is not 0: lines and objects tell of the host */
    enum cache_release releases[2];
    size_t release_count;
    enum cache_blocks blocks[2];
    size_t blocks_count;
    bool stream; /* the textbook rule alone */
    bool json;
    bool curve;         /* miss-ratio curves on stdout instead of one line a combination */
    const char *plot;   /* folder that gets miss_ratio.csv, .svg and .png, or NULL; then curves are made in any case */
    double sample_rate; /* of curves; below 0: by the length of the trace */
};

/* The source was read to its end into *trace. 0, or -1 with err. */
int cache_study_trace(const struct cache_study *study, const struct cache_trace *trace,
                      const struct wl_source *source, struct err *err);
/* One pass over the file, all caches side by side, so that pipes work; only the index of ids and the caches
 * are kept. path and format are named in the output. Nothing is printed when it fails on the way. */
int cache_study_ids(const struct cache_study *study, const char *path, enum id_format format,
                    struct err *err);
/* Curves at the study's finite capacities, or at capacities of their own choice when it has none: CSV, or one JSON
 * object. name: of the trace, in JSON. */
int cache_study_curve(const struct cache_study *study, const struct cache_trace *trace, const char *name,
                      struct err *err);
int cache_study_curve_ids(const struct cache_study *study, const char *path, enum id_format format, struct err *err);

#endif
