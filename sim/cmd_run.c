/* pagesim run: one simulation. */
#include <stdio.h>
#include <string.h>

#include "sim/command.h"
#include "sim/counterfactual.h"
#include "sim/map_log.h"
#include "sim/plots.h"
#include "sim/replay.h"
#include "sim/report.h"
#include "sim/run_common.h"
#include "sim/run_logs.h"
#include "sim/run_record.h"
#include "sim/run_snapshot.h"
#include "sim/search.h"
#include "sim/simulation.h"

/* One run with everything that belongs to it. */
struct job {
    const struct optset *set;
    struct options options;
    struct wl_source *source;
    struct replay replay;
    struct run_record record;
    struct run_logs logs;
    struct map_log map;
    struct outfile *steps_file;
    struct step_writer steps;
    struct refusal_watch watch;
    struct result result;
};

/* Step hooks and log hooks have their own contexts; these two hand on to the right one. */
static void on_step(void *context, const struct step_view *view)
{
    struct job *job = context;
    if (job->steps_file) step_writer_step(&job->steps, view);
    if (job->logs.perfetto.out) perfetto_step(&job->logs.perfetto, view);
}

static void on_begin(void *context, struct engine *engine)
{
    struct job *job = context;
    step_writer_begin(&job->steps, engine);
}

static void on_end(void *context)
{
    struct job *job = context;
    step_writer_end(&job->steps);
}

static int open_steps(struct job *job, struct simulation_extras *extras, struct err *err)
{
    const struct options *o = &job->options;
    if (!o->steps) return 0;
    job->steps_file = outfile_open(o->steps, err);
    if (!job->steps_file) return -1;
    job->steps.out = outfile_stream(job->steps_file);
    job->steps.counters = job->replay.counters;
    job->steps.clock_steps = job->replay.set != NULL;
    job->steps.rules = optset_text(job->set, "rules");
    extras->hooks.step = on_step;
    extras->begin = on_begin;
    extras->end = on_end;
    extras->context = job;
    return 0;
}

static int write_snapshot(const struct job *job, struct err *err)
{
    uint64_t pool_bytes;
    if (options_pool_bytes(&job->options, &pool_bytes, err)) return -1;
    return run_snapshot_write(job->options.device_snapshot, pool_bytes, err);
}

static int explain(struct job *job, const struct trace_facts *facts, struct err *err)
{
    const struct options *o = &job->options;
    struct explained_run run = {
        .set = job->set,
        .options = o,
        .source = job->source,
        .facts = facts,
        .watch = &job->watch,
        .boundary_bytes = o->explain_boundary == OPT_UNSET ? 0 : o->explain_boundary,
    };
    return o->explain_refusal ? counterfactual_run(&job->result, &run, err) : 0;
}

static int simulate(struct job *job, struct err *err)
{
    const struct options *o = &job->options;
    struct trace_facts facts;
    struct simulation_extras extras = {.max_steps = job->replay.max_steps,
                                       .replay_stalls = job->replay.set != NULL};
    if (trace_facts_read(&facts, job->source, o, err)) return -1;
    /* A timeline that nobody asked to have at some interval. */
    bool chosen = job->record.paths[DETAIL_TIMELINE] && !optset_given(job->set, "timeline-interval");
    if (run_logs_open(&job->logs, o->timeline, chosen ? 0 : o->timeline_interval_ns, o->events, o->oom_log, err) ||
        open_steps(job, &extras, err)) {
        return -1;
    }
    if (o->perfetto && perfetto_open(&job->logs.perfetto, o->perfetto, err)) return -1;
    if (o->perfetto) extras.hooks.step = on_step;
    if (o->memory_map && map_log_open(&job->map, o->memory_map, o->map_frames, err)) return -1;
    run_logs_hook(&job->logs, &extras.hooks);
    extras.hooks.look = o->memory_map ? map_log_look : NULL;
    extras.hooks.look_context = &job->map;
    extras.hooks.context = &job->logs;
    extras.hooks.step_context = job;
    extras.watch = o->explain_refusal ? &job->watch : NULL;
    if (simulation_run(&job->result, job->set, o, job->source, &facts, &extras, err)) return -1;
    struct outfile *steps = job->steps_file;
    job->steps_file = NULL;
    if (steps && outfile_commit(steps, err)) return -1;
    if (run_logs_commit(&job->logs, err) || map_log_commit(&job->map, err)) return -1;
    if (o->device_snapshot && write_snapshot(job, err)) return -1;
    if (explain(job, &facts, err) || run_record_finish(&job->record, o, &job->result, err)) return -1;
    return o->plot ? plots_timeline(o->plot, o->timeline, o->trace, err) : 0;
}

/* What can be known to fail is said before the work. */
static int check_plot(const struct options *o, struct err *err)
{
    if (!o->plot) return 0;
    if (!o->timeline || strcmp(o->timeline, "-") == 0) {
        return err_set(err, ERR_USAGE, "--plot: found no --timeline FILE, expected one to draw");
    }
    return plots_check(o->plot, err);
}

/* The same run has to be made again and again. */
static int check_explain(struct job *job, struct err *err)
{
    const struct options *o = &job->options;
    job->watch.request = UINT64_MAX;
    if (!o->explain_refusal) return 0;
    if (job->replay.set) {
        return err_set(err, ERR_USAGE, "--explain-refusal: found --case, whose runs have no refusals, expected a trace");
    }
    if (!wl_can_rewind(job->source)) {
        return err_set(err, ERR_USAGE, "--explain-refusal: %s can be read only once, expected a file",
                       wl_name(job->source));
    }
    return counterfactual_parse(o->explain_refusal, &job->watch.number, err);
}

static int print(struct job *job, struct err *err)
{
    const struct options *o = &job->options;
    run_warn(&job->result);
    int status = run_judge(&o->fail_if, &job->result, "", err);
    if (status < 0) return status;
    if (o->steps && strcmp(o->steps, "-") == 0) return status; /* the step lines are the output */
    if (o->json) result_write_json(&job->result, stdout);
    else report_table(&job->result, stdout);
    if (!o->json && o->explain_refusal) counterfactual_table(&job->result, stdout);
    return status;
}

static int prepare(struct job *job, struct err *err)
{
    struct wl_options how;
    const char *case_dir = optset_text(job->set, "case");
    if (case_dir) {
        if (replay_open(&job->replay, case_dir, job->set, err)) return -1;
        job->set = job->replay.set;
    }
    if (options_resolve(job->set, &job->options, err) || options_need_trace(&job->options, err) ||
        check_plot(&job->options, err) || run_check_conditions(&job->options.fail_if, err)) {
        return -1;
    }
    run_warn_plan(job->set);
    options_wl(&job->options, &how);
    if (wl_open(job->options.trace, &how, job->options.seed, &job->source, err)) return -1;
    if (check_explain(job, err)) return -1;
    return run_record_open(&job->record, &job->options, err);
}

static int check_find_options(const struct optset *set, struct err *err)
{
    static const char *const names[] = {"such-that", "find-runs", "replications", "threads"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (optset_given(set, names[i])) return err_set(err, ERR_USAGE, "--%s: expected --find with it; one run has no use for it", names[i]);
    }
    return 0;
}

static int run(const struct optset *set, int argc, char **argv, struct err *err)
{
    (void)argc;
    (void)argv;
    if (optset_given(set, "find")) return search_command(set, err);
    if (check_find_options(set, err)) return -1;
    struct job job = {.set = set};
    result_init(&job.result);
    int status = prepare(&job, err);
    if (status == 0) status = simulate(&job, err);
    if (status == 0) status = print(&job, err);
    run_logs_abandon(&job.logs);
    map_log_abandon(&job.map);
    run_record_release(&job.record);
    outfile_abandon(job.steps_file);
    result_release(&job.result);
    wl_close(job.source);
    replay_release(&job.replay);
    return status;
}

const struct command command_run = {
    .name = "run",
    .summary = "one simulation: a table for people, or JSON",
    .usage = "[OPTION...] TRACE",
    .notes = "--find searches 'min WHAT' or 'max WHAT'. WHAT: pool, pool-tokens, pool-bytes,\n"
             "rate (of arrivals), utilization, block-size, max-num-seqs or\n"
             "max-num-batched-tokens. It runs many simulations, over all cores.",
    .options = FOR_RUN,
    .arguments = COMMAND_ARGS_TRACE,
    .run = run,
};
