/* A stream of requests: a trace file, standard input, a generator, or a trace in memory.
 * Memory does not grow with the trace, except for sorting and wl_trace. Not thread-safe; several
 * sources over one wl_trace may be read from different threads. */
#ifndef PAGESIM_WL_SOURCE_H
#define PAGESIM_WL_SOURCE_H

#include "workloads/err.h"
#include "workloads/wl_request.h"

struct wl_source;
struct wl_trace; /* a whole trace in memory, read-only once made, shareable between threads */

struct wl_options {
    const char *format;          /* name of a format, or NULL: recognise by content */
    uint32_t trace_block_tokens; /* tokens of one hash id; 0: the format's own (Mooncake 512) */
    uint64_t time_unit_ns;       /* nanoseconds of one `arrival` unit of pagesim's own formats; 0: ns */
    double arrival_speedup_ratio; /* arrival times are divided by it; > 0; 1 = as recorded */
    uint64_t max_requests;       /* stop after so many; 0 = all. wl_was_cut tells */
    bool sort;                   /* accept arrivals out of order (reads the whole trace first) */
    bool skip_bad;               /* count bad lines and go on */
};

/* Opens a trace. path "-" is standard input (not rewindable). A preset or generator is named
 * "preset:NAME" or "gen:key=value,...", with `seed` for its draws. Returns 0, or -1 with err. */
int wl_open(const char *path, const struct wl_options *options, uint64_t seed,
            struct wl_source **source, struct err *err);
/* 1: *request filled. 0: the end. -1: err. */
int wl_next(struct wl_source *source, struct wl_request *request, struct err *err);
bool wl_can_rewind(const struct wl_source *source);
/* Back to the first request. -1 with err when the source cannot, or the file changed underneath. */
int wl_rewind(struct wl_source *source, struct err *err);
void wl_close(struct wl_source *source); /* NULL is fine */
/* What the trace is called in reports (path or generator text). */
const char *wl_name(const struct wl_source *source);
const char *wl_format_name(const struct wl_source *source);

/* Known once a source was read to its end. */
struct wl_summary {
    uint64_t requests;
    uint64_t skipped;            /* bad lines under skip_bad */
    bool cut;                    /* max_requests ended it early */
    uint64_t total_tokens_max;   /* largest L + max(O, 1) */
    uint64_t output_tokens_max;
    uint64_t first_arrival_ns, last_arrival_ns;
    uint64_t checksum;           /* XXH3-64 over the trace's requests, in a fixed binary form of every
                                    field, so that the same requests in another file format or
                                    compression have the same checksum */
    bool has_content;            /* any request has content */
    bool has_final_ids;
    bool has_arrivals;           /* false: lengths only, all arrivals are 0 */
    uint32_t trace_block_tokens; /* largest token count of one id; 1 for token-exact content; 0 none */
};
const struct wl_summary *wl_summary(const struct wl_source *source);
/* Whether the summary is of the whole source: it was read to its end once, or is in memory. */
bool wl_summary_complete(const struct wl_source *source);

/* Reads the rest of the source into memory. */
int wl_trace_load(struct wl_source *source, struct wl_trace **trace, struct err *err);
struct wl_source *wl_trace_open(const struct wl_trace *trace); /* NULL: out of memory */
const struct wl_summary *wl_trace_summary(const struct wl_trace *trace);
void wl_trace_destroy(struct wl_trace *trace);

#endif
