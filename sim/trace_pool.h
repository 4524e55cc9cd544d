/* Traces in memory that several simulations share: each is loaded when the first of its users needs it and dropped after the
 * last. Not thread-safe, but the sources that it opens may be read from different threads. */
#ifndef PAGESIM_TRACE_POOL_H
#define PAGESIM_TRACE_POOL_H

#include "sim/options.h"

struct pooled_trace;
struct trace_pool {
    struct pooled_trace *traces;
    size_t count, capacity;
};

/* Adds a user of the trace that the options name; users who read the same trace alike get the same index. The options' texts
 * must outlive the pool. -1 with err when memory is out. */
int trace_pool_add(struct trace_pool *pool, const struct options *options, size_t *index, struct err *err);
/* Whether no source that can be read only once would be read in two ways; -1 with err (ERR_USAGE). */
int trace_pool_check(const struct trace_pool *pool, struct err *err);
/* Reads the trace if it is not in memory; its summary. NULL with err. */
const struct wl_summary *trace_pool_load(struct trace_pool *pool, size_t index, struct err *err);
/* A source over a trace that was loaded and has users left; NULL when memory is out. */
struct wl_source *trace_pool_open(const struct trace_pool *pool, size_t index);
/* One of its users needs it no more. */
void trace_pool_leave(struct trace_pool *pool, size_t index);
void trace_pool_release(struct trace_pool *pool);

/* Whether --seed decides what the trace holds. */
bool trace_is_drawn(const char *name);

#endif
