/* What a kind of source provides; for the files that implement one. wl_next and the rest of
 * wl_source.h are thin functions over this table and do once what holds for every source: counting,
 * cutting, time scaling, the summary. */
#ifndef PAGESIM_WL_SOURCE_IMPL_H
#define PAGESIM_WL_SOURCE_IMPL_H

#include "workloads/wl_draft.h"
#include "workloads/wl_source.h"

/* xxhash.h is heavy; only wl_source.c needs it. */
struct wl_checksum;

struct wl_source_ops {
    /* 1: *draft is filled and finished, and stays the source's. 0: the end. -1: err. */
    int (*next)(struct wl_source *source, struct wl_draft **draft, struct err *err);
    int (*rewind)(struct wl_source *source, struct err *err);
    void (*release)(struct wl_source *source); /* frees what is its own, not the source */
};

/* First member of every source's own struct. */
struct wl_source {
    const struct wl_source_ops *ops;
    char *name;
    const char *format_name;
    bool can_rewind;
    uint64_t skipped;            /* kept by the source in this pass */

    /* The rest belongs to wl_source.c. */
    double arrival_speedup_ratio;
    uint64_t max_requests;
    uint64_t base_ns;            /* subtracted from calendar stamps */
    uint64_t count;              /* requests handed out in this pass */
    bool pass_ended;
    bool complete;               /* the summary is final */
    struct wl_summary summary;
    struct wl_checksum *checksum;
};

/* Fills the common part. Takes the options' speed-up and cut. -1: out of memory, reported. */
int wl_source_init(struct wl_source *source, const struct wl_source_ops *ops, const char *name,
                   const char *format_name, const struct wl_options *options, struct err *err);

/* The kinds. wl_file.c: */
int wl_file_open(const char *path, const struct wl_options *options, struct wl_source **source,
                 struct err *err);
/* wl_archive.c: a tar of conversations, told by its name. */
bool wl_is_archive(const char *path);
int wl_archive_open(const char *path, const struct wl_options *options, struct wl_source **source,
                    struct err *err);
/* wl_sort.c: takes over `inner`, also when it fails. Stable. */
int wl_sort_open(struct wl_source *inner, const struct wl_options *options,
                 struct wl_source **source, struct err *err);
/* wl_generate.c: spec is what follows "gen:". */
int wl_generator_open(const char *name, const char *spec, const struct wl_options *options,
                      uint64_t seed, struct wl_source **source, struct err *err);

#endif
