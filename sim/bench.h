/* The project's own benchmark. Each measurement runs in a child process of its own, so that its peak of memory is
 * its own too, several times; the median is given with the smallest and the largest. */
#ifndef PAGESIM_BENCH_H
#define PAGESIM_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "workloads/err.h"

/* One measurement. measure returns the figure (rates: more is better), or a negative number when what it needs is not
 * there; a is the measurement's own parameter. */
struct bench_case {
    const char *name, *unit;
    double (*measure)(unsigned long a);
    unsigned long a;
    bool full; /* only under --full */
};

struct bench_result {
    double median, smallest, largest;
    long peak_kib;  /* resident memory of the child, largest of the runs */
    bool skipped;
};

/* Memory (bench_pool.c), reading and whole runs (bench_run.c), streams of ids (bench_cache.c). */
extern const struct bench_case bench_pool_cases[], bench_run_cases[], bench_cache_cases[];
extern const size_t bench_pool_count, bench_run_count, bench_cache_count;

/* Every eviction order against lru, in runs and in caches (bench_orders.c). The name is written to the caller's buffer. */
size_t bench_orders_count(void);
struct bench_case bench_orders_case(size_t i, char *name, size_t name_bytes);

/* Seconds of a run set up by pairs of an option and its value, NULL behind them; its trace is read beforehand. Negative when it
 * fails. */
double bench_run_seconds(const char *const *pairs);
/* Seconds of a monotonic clock. */
double bench_seconds(void);
/* Runs a case `runs` times in children. -1 with err when a child fails. */
int bench_measure(const struct bench_case *c, unsigned runs, struct bench_result *result,
                  struct err *err);

#endif
