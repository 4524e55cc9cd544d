/* Runs two settings on the same requests. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/compare.h"
#include "sim/engine_core.h"
#include "sim/optset_change.h"
#include "sim/run_common.h"
#include "sim/simulation.h"
#include "sim/trace_pool.h"
#include "sim/workers.h"

#define SETTINGS_MAX 64u
#define NOT_THERE UINT64_MAX

/* --- what a side is --------------------------------------------------------------------------- */

bool compare_is_variant(const char *text)
{
    char name[64];
    size_t bytes = strcspn(text, ",=");
    if (bytes == 0 || bytes >= sizeof name) return false;
    memcpy(name, text, bytes);
    name[bytes] = '\0';
    if (text[bytes] == '=') return option_find(FOR_COMPARE, name) != NULL;
    return kv_registry_find(name) != NULL;
}

/* The requests are the same in both, so settings are about anything else. */
static int check_setting(const struct optset *set, const struct setting *s, struct err *err)
{
    const struct option_spec *spec = option_find(optset_command(set), s->option);
    if (!spec) {
        const char *nearest = option_nearest(optset_command(set), s->option);
        return err_set(err, ERR_USAGE, "found '%.60s', expected an option%s%s%s", s->option, nearest ? ", did you mean " : "",
                       nearest ? nearest : "", nearest ? "?" : "");
    }
    if (spec->section != OPT_TRACE && spec->section < OPT_MEASURE) return 0;
    return err_set(err, ERR_USAGE, "found '%s', expected an option that leaves the requests and what is measured alone: both sides have them in common",
                   s->option);
}

/* Cuts the text, in place, into settings. */
static int read_settings(const struct optset *set, char *text, struct setting *settings, size_t *count, struct err *err)
{
    *count = 0;
    for (char *item = text, *next; item; item = next) {
        next = strchr(item, ',');
        if (next) *next++ = '\0';
        char *equals = strchr(item, '=');
        if (equals) *equals = '\0';
        if (*count == SETTINGS_MAX) return err_set(err, ERR_USAGE, "more than %u settings", SETTINGS_MAX);
        struct setting *s = &settings[(*count)++];
        if (equals) *s = (struct setting){item, equals + 1};
        else if (item == text) *s = (struct setting){"policy", item};
        else *s = (struct setting){item, "yes"}; /* a switch */
        if (check_setting(set, s, err)) return -1;
    }
    return 0;
}

struct optset *compare_variant(const struct optset *set, const char *text, struct err *err)
{
    struct setting settings[SETTINGS_MAX];
    size_t count;
    struct optset *made = NULL;
    char *copy = strdup(text);
    if (!copy) err_set(err, ERR_FAILED, "out of memory");
    else if (read_settings(set, copy, settings, &count, err) == 0) made = optset_change(set, settings, count, err);
    if (!made) err_prefix(err, "'%.200s'", text);
    free(copy);
    return made;
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* Job 2r is A in replication r, 2r + 1 is B. */
struct job {
    struct optset *set;
    size_t trace;
    struct result result;
    uint64_t *times[COMPARE_TIMES]; /* of each request of the window that finished; NOT_THERE */
    size_t requests;
    bool done;
};

struct comparison {
    struct job *jobs;
    size_t count, next;
    struct trace_pool traces;
    struct compare_requests requests;
    struct replication {
        int64_t *differences[COMPARE_TIMES];
        size_t count[COMPARE_TIMES];
    } *replications;
};

static void release_times(struct job *job)
{
    for (int t = 0; t < COMPARE_TIMES; t++) {
        free(job->times[t]);
        job->times[t] = NULL;
    }
}

static void release(struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        release_times(&c->jobs[i]);
        result_release(&c->jobs[i].result);
        optset_destroy(c->jobs[i].set);
    }
    for (size_t r = 0; c->replications && r < c->count / 2; r++) {
        for (int t = 0; t < COMPARE_TIMES; t++) free(c->replications[r].differences[t]);
    }
    trace_pool_release(&c->traces);
    free(c->replications);
    free(c->jobs);
}

static int make_job(struct comparison *c, struct job *job, const struct optset *side, uint64_t seed, struct err *err)
{
    char text[24];
    struct options o;
    snprintf(text, sizeof text, "%" PRIu64, seed);
    job->set = optset_change(side, &(struct setting){"seed", text}, 1, err);
    if (!job->set || options_resolve(job->set, &o, err)) return -1;
    return trace_pool_add(&c->traces, &o, &job->trace, err);
}

static int make_jobs(struct comparison *c, struct optset *const sets[2], uint64_t seed, uint64_t replications, struct err *err)
{
    c->jobs = calloc((size_t)replications * 2, sizeof *c->jobs);
    c->replications = calloc((size_t)replications, sizeof *c->replications);
    if (!c->jobs || !c->replications) return err_set(err, ERR_FAILED, "out of memory");
    c->count = (size_t)replications * 2;
    for (size_t i = 0; i < c->count; i++) {
        if (make_job(c, &c->jobs[i], sets[i % 2], seed + i / 2, err)) return -1;
    }
    return 0;
}

/* --- running ---------------------------------------------------------------------------------- */

static void on_event(void *context, uint64_t time_ns, enum event_kind kind, const struct sim_request *r, uint64_t a, uint64_t b)
{
    struct job *job = context;
    (void)a;
    (void)b;
    if (kind != EVENT_FIRST_TOKEN && kind != EVENT_FINISH) return;
    if (!r->in_window || r->output_tokens == 0 || r->index >= job->requests) return;
    job->times[kind == EVENT_FINISH ? COMPARE_E2E : COMPARE_TTFT][r->index] = time_ns - r->arrival_ns;
}

static int prepare_times(struct job *job, uint64_t requests, struct err *err)
{
    job->requests = (size_t)requests;
    for (int t = 0; t < COMPARE_TIMES; t++) {
        job->times[t] = malloc(job->requests ? job->requests * sizeof *job->times[t] : 1);
        if (!job->times[t]) return err_set(err, ERR_FAILED, "out of memory");
        memset(job->times[t], 0xff, job->requests * sizeof *job->times[t]);
    }
    return 0;
}

static int run_job(void *context, size_t index, struct err *err)
{
    struct comparison *c = context;
    struct job *job = &c->jobs[index];
    struct simulation_extras extras = {.hooks = {.event = on_event, .context = job}};
    struct options o;
    struct trace_facts facts;
    if (options_resolve(job->set, &o, err)) return -1;
    struct wl_source *source = trace_pool_open(&c->traces, job->trace);
    if (!source) return err_set(err, ERR_FAILED, "out of memory");
    /* The serial scheduler takes no time: its requests have no times to compare. */
    bool timed = strcmp(o.scheduler, "serial") != 0;
    int status = prepare_times(job, timed ? wl_summary(source)->requests : 0, err);
    if (status == 0) status = trace_facts_read(&facts, source, &o, err);
    if (status == 0) status = simulation_run(&job->result, job->set, &o, source, &facts, &extras, err);
    wl_close(source);
    if (status) err_prefix(err, "%s, seed %" PRIu64, index % 2 ? "B" : "A", o.seed);
    return status;
}

static int next_job(void *context, size_t *job, struct err *err)
{
    struct comparison *c = context;
    if (c->next == c->count) return 0;
    *job = c->next++;
    return trace_pool_load(&c->traces, c->jobs[*job].trace, err) ? 1 : -1;
}

/* Keeps the differences of a replication, and lets its times go. */
static int pair_requests(struct comparison *c, size_t r, struct err *err)
{
    struct job *a = &c->jobs[2 * r], *b = &c->jobs[2 * r + 1];
    struct replication *into = &c->replications[r];
    size_t requests = a->requests < b->requests ? a->requests : b->requests;
    for (int t = 0; t < COMPARE_TIMES; t++) {
        into->differences[t] = malloc(requests ? requests * sizeof(int64_t) : 1);
        if (!into->differences[t]) return err_set(err, ERR_FAILED, "out of memory");
    }
    for (size_t i = 0; i < requests; i++) {
        bool in_a = a->times[COMPARE_E2E][i] != NOT_THERE, in_b = b->times[COMPARE_E2E][i] != NOT_THERE;
        c->requests.both += in_a && in_b;
        c->requests.only_a += in_a && !in_b;
        c->requests.only_b += in_b && !in_a;
        for (int t = 0; t < COMPARE_TIMES; t++) {
            uint64_t of_a = a->times[t][i], of_b = b->times[t][i]; /* times stay below 2^62 */
            if (of_a == NOT_THERE || of_b == NOT_THERE) continue;
            into->differences[t][into->count[t]++] = (int64_t)of_b - (int64_t)of_a;
        }
    }
    release_times(a);
    release_times(b);
    return 0;
}

static int end_job(void *context, size_t index, struct err *err)
{
    struct comparison *c = context;
    struct job *job = &c->jobs[index];
    job->done = true;
    trace_pool_leave(&c->traces, job->trace);
    return c->jobs[index ^ 1].done ? pair_requests(c, index / 2, err) : 0;
}

/* --- putting together ------------------------------------------------------------------------- */

static int gather(struct comparison *c, double confidence, struct err *err)
{
    size_t replications = c->count / 2;
    size_t *starts = calloc(replications + 1, sizeof *starts);
    int status = starts ? 0 : err_set(err, ERR_FAILED, "out of memory");
    for (int t = 0; status == 0 && t < COMPARE_TIMES; t++) {
        for (size_t r = 0; r < replications; r++) starts[r + 1] = starts[r] + c->replications[r].count[t];
        int64_t *all = malloc(starts[replications] ? starts[replications] * sizeof *all : 1);
        if (!all) status = err_set(err, ERR_FAILED, "out of memory");
        for (size_t r = 0; all && r < replications; r++) {
            memcpy(all + starts[r], c->replications[r].differences[t], c->replications[r].count[t] * sizeof *all);
        }
        if (all) status = compare_differences(&c->requests.times[t], all, starts, replications, confidence, err);
        free(all);
    }
    free(starts);
    return status;
}

static int show(struct comparison *c, const struct compare_head *head, bool json, struct err *err)
{
    struct compare_group group = {.count = c->count / 2, .requests = &c->requests};
    group.pairs = calloc(group.count, sizeof *group.pairs);
    if (!group.pairs) return err_set(err, ERR_FAILED, "out of memory");
    for (size_t r = 0; r < group.count; r++) {
        group.pairs[r] = (struct compare_pair){&c->jobs[2 * r].result, &c->jobs[2 * r + 1].result};
    }
    run_warn(group.pairs[0].a);
    int status = json ? compare_print_json(head, &group, stdout, err) : compare_print_table(head, &group, stdout, err);
    free(group.pairs);
    return status;
}

/* How many the options ask for; 0 with err. */
static uint64_t replications_of(const struct options *o, struct err *err)
{
    bool drawn = trace_is_drawn(o->trace);
    uint64_t wanted = o->replications;
    if (wanted == OPT_UNSET) wanted = drawn ? 10 : 1;
    if (!drawn && wanted > 1) {
        err_set(err, ERR_USAGE, "--replications: found %" PRIu64 ", but %s is recorded: other seeds would replay the same requests; expected a generator (gen:, preset:)",
                wanted, o->trace);
        return 0;
    }
    if (o->seed > UINT64_MAX - 1 - wanted) {
        err_set(err, ERR_USAGE, "--seed: found %" PRIu64 ", expected room for %" PRIu64 " seeds from there on", o->seed, wanted);
        return 0;
    }
    return wanted;
}

static int run_all(struct comparison *c, const struct optset *set, struct optset *const sets[2], const struct options *o,
                   struct compare_head *head, struct err *err)
{
    const struct work work = {.context = c, .next = next_job, .run = run_job, .done = end_job};
    uint64_t replications = replications_of(o, err);
    if (replications == 0 || make_jobs(c, sets, o->seed, replications, err)) return -1;
    if (trace_pool_check(&c->traces, err) || workers_run(&work, workers_threads(set), err)) return -1;
    head->drawn = trace_is_drawn(o->trace);
    head->confidence = o->confidence;
    head->keys = &o->compare_keys;
    return gather(c, o->confidence, err) || show(c, head, optset_given(set, "json"), err) ? -1 : 0;
}

int compare_run(const struct optset *set, struct optset *const sets[2], struct compare_head *head, struct err *err)
{
    struct options o;
    struct comparison c = {0};
    if (options_resolve(sets[0], &o, err) || options_need_trace(&o, err)) return -1;
    run_warn_plan(sets[0]);
    int status = run_all(&c, set, sets, &o, head, err);
    release(&c);
    return status;
}
