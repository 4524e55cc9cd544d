#include "sim/trace_pool.h"

#include <stdlib.h>
#include <string.h>

struct pooled_trace {
    const char *name;
    struct wl_options how;
    uint64_t seed;
    struct wl_trace *trace;
    uint64_t users;
};

bool trace_is_drawn(const char *name)
{
    return strncmp(name, "gen:", 4) == 0 || strncmp(name, "preset:", 7) == 0;
}

static bool same_reading(const struct pooled_trace *t, const char *name, const struct wl_options *how, uint64_t seed)
{
    const struct wl_options *a = &t->how;
    bool same_format = a->format && how->format ? strcmp(a->format, how->format) == 0
                                                : a->format == how->format;
    return strcmp(t->name, name) == 0 && same_format && t->seed == seed &&
           a->trace_block_tokens == how->trace_block_tokens && a->time_unit_ns == how->time_unit_ns &&
           a->arrival_speedup_ratio == how->arrival_speedup_ratio &&
           a->max_requests == how->max_requests && a->sort == how->sort &&
           a->skip_bad == how->skip_bad;
}

static int grow(struct trace_pool *pool, struct err *err)
{
    size_t capacity = pool->capacity ? pool->capacity * 2 : 8;
    struct pooled_trace *grown = realloc(pool->traces, capacity * sizeof *grown);
    if (!grown) return err_set(err, ERR_FAILED, "out of memory");
    pool->traces = grown;
    pool->capacity = capacity;
    return 0;
}

int trace_pool_add(struct trace_pool *pool, const struct options *o, size_t *index, struct err *err)
{
    struct wl_options how;
    options_wl(o, &how);
    uint64_t seed = trace_is_drawn(o->trace) ? o->seed : 0;
    for (*index = 0; *index < pool->count; ++*index) {
        if (same_reading(&pool->traces[*index], o->trace, &how, seed)) break;
    }
    if (*index == pool->count) {
        if (pool->count == pool->capacity && grow(pool, err)) return -1;
        pool->traces[pool->count++] = (struct pooled_trace){.name = o->trace, .how = how, .seed = seed};
    }
    pool->traces[*index].users++;
    return 0;
}

int trace_pool_check(const struct trace_pool *pool, struct err *err)
{
    size_t pipes = 0;
    for (size_t i = 0; i < pool->count; i++) pipes += strcmp(pool->traces[i].name, "-") == 0;
    if (pipes < 2) return 0;
    return err_set(err, ERR_USAGE, "--trace: found '-' to be read in %zu ways, expected a file", pipes);
}

const struct wl_summary *trace_pool_load(struct trace_pool *pool, size_t index, struct err *err)
{
    struct pooled_trace *t = &pool->traces[index];
    struct wl_source *source = NULL;
    if (t->trace) return wl_trace_summary(t->trace);
    if (wl_open(t->name, &t->how, t->seed, &source, err)) return NULL;
    int status = wl_trace_load(source, &t->trace, err);
    wl_close(source);
    return status ? NULL : wl_trace_summary(t->trace);
}

struct wl_source *trace_pool_open(const struct trace_pool *pool, size_t index)
{
    return wl_trace_open(pool->traces[index].trace);
}

void trace_pool_leave(struct trace_pool *pool, size_t index)
{
    struct pooled_trace *t = &pool->traces[index];
    if (--t->users > 0) return;
    wl_trace_destroy(t->trace);
    t->trace = NULL;
}

void trace_pool_release(struct trace_pool *pool)
{
    for (size_t i = 0; i < pool->count; i++) wl_trace_destroy(pool->traces[i].trace);
    free(pool->traces);
    *pool = (struct trace_pool){0};
}
