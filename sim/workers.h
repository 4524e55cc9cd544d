/* Threads that take jobs from one list until it is empty or a job fails. */
#ifndef PAGESIM_WORKERS_H
#define PAGESIM_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/optset.h"
#include "workloads/err.h"

struct work {
    void *context;
    /* With the lock held, as `done`: 1 and the next job, 0 when there is none, -1 with err. Called until it does not return 1. */
    int (*next)(void *context, size_t *job, struct err *err);
    /* Without the lock, several at once. -1 with err. */
    int (*run)(void *context, size_t job, struct err *err);
    /* After a run that succeeded; -1 with err. May be NULL. */
    int (*done)(void *context, size_t job, struct err *err);
};

/* Does all of it, `threads` jobs at a time (at least one; fewer when the system gives no more threads). -1 with the error
 * of the first job, in the order of `next`, that failed; jobs in flight are finished first. */
int workers_run(const struct work *work, unsigned threads, struct err *err);

/* What --threads says, or the number of cores. The command must have that option. */
unsigned workers_threads(const struct optset *set);

#endif
