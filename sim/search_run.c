/* Simulates the probes of a search. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/condition.h"
#include "sim/optset_change.h"
#include "sim/search.h"
#include "sim/simulation.h"
#include "sim/trace_pool.h"
#include "sim/workers.h"

struct job {
    struct search_probe *probe;
    size_t replication, trace;
    struct err err;
    bool runs; /* its options are sound */
};

struct search_runner {
    const struct optset *set;
    const struct search_quantity *quantity;
    const char *condition;
    uint64_t seed, replications;
    unsigned threads;
    struct trace_pool traces;
    /* The present batch. */
    struct job *jobs;
    size_t count, next;
};

struct search_runner *search_runner_create(const struct optset *set, const struct options *o, const struct search_quantity *q,
                                           struct err *err)
{
    struct search_runner *r = calloc(1, sizeof *r);
    if (!r) {
        err_set(err, ERR_FAILED, "out of memory");
        return NULL;
    }
    *r = (struct search_runner){.set = set, .quantity = q, .condition = o->such_that, .seed = o->seed,
                                .replications = o->replications == OPT_UNSET ? 1 : o->replications, .threads = workers_threads(set)};
    /* A user that never leaves: the trace that most searches read stays in memory from one batch to the next. */
    struct options one = *o;
    for (uint64_t i = 0; i < r->replications; i++) {
        size_t index;
        one.seed = o->seed + i;
        if (trace_pool_add(&r->traces, &one, &index, err)) {
            search_runner_destroy(r);
            return NULL;
        }
    }
    return r;
}

void search_runner_destroy(struct search_runner *r)
{
    if (!r) return;
    trace_pool_release(&r->traces);
    free(r);
}

void search_probe_release(struct search_runner *r, struct search_probe *p)
{
    for (uint64_t i = 0; i < r->replications; i++) {
        if (p->sets) optset_destroy(p->sets[i]);
        if (p->results) result_release(&p->results[i]);
    }
    free(p->sets);
    free(p->results);
    free(p);
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* Options that cannot be are a probe's answer; anything else ends the search. */
static int make_job(struct search_runner *r, struct job *job, struct err *err)
{
    struct options o;
    char value[SEARCH_TEXT_BYTES], seed[24];
    r->quantity->text(job->probe->value, value, sizeof value);
    snprintf(seed, sizeof seed, "%" PRIu64, r->seed + job->replication);
    const struct setting settings[] = {{r->quantity->option, value}, {"seed", seed}};
    struct optset *set = optset_change(r->set, settings, 2, &job->err);
    job->probe->sets[job->replication] = set;
    if (set && options_resolve(set, &o, &job->err) == 0) {
        if (trace_pool_add(&r->traces, &o, &job->trace, err)) return -1;
        job->runs = true;
    }
    return 0;
}

static int make_jobs(struct search_runner *r, struct search_probe *const *probes, size_t count, struct err *err)
{
    r->count = r->next = 0;
    r->jobs = calloc(count * (size_t)r->replications, sizeof *r->jobs);
    if (!r->jobs) return err_set(err, ERR_FAILED, "out of memory");
    for (size_t i = 0; i < count; i++) {
        struct search_probe *p = probes[i];
        p->sets = calloc((size_t)r->replications, sizeof(*p->sets));
        p->results = calloc((size_t)r->replications, sizeof *p->results);
        p->requests_per_s = NAN;
        if (!p->sets || !p->results) return err_set(err, ERR_FAILED, "out of memory");
        for (uint64_t k = 0; k < r->replications; k++) {
            struct job *job = &r->jobs[r->count++];
            *job = (struct job){.probe = p, .replication = (size_t)k};
            if (make_job(r, job, err)) return -1;
        }
    }
    return trace_pool_check(&r->traces, err);
}

static int next_job(void *context, size_t *index, struct err *err)
{
    struct search_runner *r = context;
    while (r->next < r->count && !r->jobs[r->next].runs) r->next++;
    if (r->next == r->count) return 0;
    *index = r->next++;
    return trace_pool_load(&r->traces, r->jobs[*index].trace, err) ? 1 : -1;
}

static double rate_of(const struct wl_summary *s)
{
    double seconds = (double)(s->last_arrival_ns - s->first_arrival_ns) * 1e-9;
    return s->requests > 1 && seconds > 0 ? (double)(s->requests - 1) / seconds : NAN;
}

/* Whatever goes wrong in it is the probe's own affair. */
static int run_job(void *context, size_t index, struct err *err)
{
    struct search_runner *r = context;
    struct job *job = &r->jobs[index];
    const struct optset *set = job->probe->sets[job->replication];
    struct result *result = &job->probe->results[job->replication];
    struct options o;
    struct trace_facts facts;
    struct wl_source *source = trace_pool_open(&r->traces, job->trace);
    if (!source) return err_set(err, ERR_FAILED, "out of memory");
    if (job->replication == 0) job->probe->requests_per_s = rate_of(wl_summary(source));
    if (options_resolve(set, &o, &job->err) == 0 && trace_facts_read(&facts, source, &o, &job->err) == 0) {
        simulation_run(result, set, &o, source, &facts, NULL, &job->err);
    }
    wl_close(source);
    return 0;
}

static int end_job(void *context, size_t index, struct err *err)
{
    struct search_runner *r = context;
    (void)err;
    trace_pool_leave(&r->traces, r->jobs[index].trace);
    return 0;
}

static void judge(const struct search_runner *r, struct job *job)
{
    struct search_probe *p = job->probe;
    bool holds = false;
    char null_key[CONDITION_KEY_BYTES];
    if (job->err.kind == ERR_NONE && condition_holds(r->condition, &p->results[job->replication], &holds, null_key, &job->err)) {
        err_prefix(&job->err, "--such-that");
        if (p->err.kind == ERR_NONE) p->err = job->err;
    } else if (job->err.kind == ERR_USAGE) {
        snprintf(p->trouble, sizeof p->trouble, "%.200s", job->err.text);
    } else if (job->err.kind != ERR_NONE && p->err.kind == ERR_NONE) {
        p->err = job->err;
    }
    p->held += holds;
}

int search_runner_run(struct search_runner *r, struct search_probe *const *probes, size_t count, struct err *err)
{
    const struct work work = {.context = r, .next = next_job, .run = run_job, .done = end_job};
    int status = make_jobs(r, probes, count, err);
    if (status == 0) status = workers_run(&work, r->threads, err);
    for (size_t i = 0; status == 0 && i < r->count; i++) judge(r, &r->jobs[i]);
    for (size_t i = 0; status == 0 && i < count; i++) {
        probes[i]->done = true;
        probes[i]->holds = probes[i]->held == r->replications;
    }
    free(r->jobs);
    r->jobs = NULL;
    return status;
}
