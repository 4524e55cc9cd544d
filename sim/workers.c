#include "sim/workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct crew {
    const struct work *work;
    pthread_mutex_t lock; /* everything below, and what work's context holds */
    struct err *err;
    bool failed;
    size_t taken, failed_at; /* jobs handed out; which of them err is of */
};

/* Jobs are handed out in order, and those in flight are finished. So whichever fails first in time, the first in order that
 * fails has been started too: its error is the one to tell, with any number of threads. */
static void fail(struct crew *crew, size_t order, const struct err *err)
{
    if (crew->failed && order > crew->failed_at) return;
    *crew->err = *err;
    crew->failed = true;
    crew->failed_at = order;
}

/* With the lock held. */
static bool take(struct crew *crew, size_t *job, size_t *order)
{
    struct err err = {0};
    if (crew->failed) return false;
    *order = crew->taken++;
    int more = crew->work->next(crew->work->context, job, &err);
    if (more < 0) fail(crew, *order, &err);
    return more > 0;
}

static void *worker(void *context)
{
    struct crew *crew = context;
    const struct work *work = crew->work;
    size_t job, order;
    pthread_mutex_lock(&crew->lock);
    while (take(crew, &job, &order)) {
        struct err err = {0};
        pthread_mutex_unlock(&crew->lock);
        int status = work->run(work->context, job, &err);
        pthread_mutex_lock(&crew->lock);
        if (status == 0 && work->done) status = work->done(work->context, job, &err);
        if (status) fail(crew, order, &err);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

int workers_run(const struct work *work, unsigned threads, struct err *err)
{
    struct crew crew = {.work = work, .err = err};
    pthread_t *ids = calloc(threads ? threads : 1, sizeof *ids);
    if (!ids) return err_set(err, ERR_FAILED, "out of memory");
    pthread_mutex_init(&crew.lock, NULL);
    unsigned started = 0;
    while (started < threads && pthread_create(&ids[started], NULL, worker, &crew) == 0) started++;
    if (started == 0) worker(&crew);
    for (unsigned i = 0; i < started; i++) pthread_join(ids[i], NULL);
    pthread_mutex_destroy(&crew.lock);
    free(ids);
    return crew.failed ? -1 : 0;
}

unsigned workers_threads(const struct optset *set)
{
    const struct option_spec *spec = option_find(optset_command(set), "threads");
    const char *text = optset_text(set, "threads");
    uint64_t threads;
    struct err ignored = {0};
    if (text && option_parse(spec, text, &threads, &ignored) == 0) return (unsigned)threads;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (unsigned)cores : 1;
}
