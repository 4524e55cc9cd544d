/* pagesim run: one simulation. */
#include <stdio.h>

#include "sim/command.h"
#include "sim/condition.h"
#include "sim/report.h"
#include "sim/run_logs.h"
#include "sim/simulation.h"

static int check_conditions(const struct options *o, struct err *err)
{
    for (size_t i = 0; i < o->fail_if.count; i++) {
        if (condition_check(o->fail_if.items[i], err)) return -1;
    }
    return 0;
}

/* COMMAND_DONE, COMMAND_CONDITION_HELD after saying which on stderr, or -1. */
static int judge(const struct options *o, const struct result *result, struct err *err)
{
    int status = COMMAND_DONE;
    for (size_t i = 0; i < o->fail_if.count; i++) {
        bool holds;
        if (condition_holds(o->fail_if.items[i], result, &holds, err)) return -1;
        if (!holds) continue;
        fprintf(stderr, "pagesim: condition holds: %s\n", o->fail_if.items[i]);
        status = COMMAND_CONDITION_HELD;
    }
    return status;
}

static void warn(const struct result *result)
{
    const struct result_entry *cut = result_find(result, "trace_cut");
    const struct result_entry *skipped = result_find(result, "trace_skipped");
    const struct result_entry *requests = result_find(result, "requests");
    if (cut && cut->yes && requests) {
        fprintf(stderr, "pagesim: trace cut: only the first %llu requests were simulated (--max-requests)\n",
                (unsigned long long)requests->u64);
    }
    if (skipped && skipped->u64 > 0) {
        fprintf(stderr, "pagesim: %llu bad lines were skipped (--skip-bad)\n",
                (unsigned long long)skipped->u64);
    }
}

static int simulate(struct result *result, const struct optset *set, const struct options *o,
                    struct wl_source *source, struct err *err)
{
    struct trace_facts facts;
    struct run_logs logs;
    if (trace_facts_read(&facts, source, o, err)) return -1;
    if (run_logs_open(&logs, o->timeline, o->timeline_interval_ns, o->events, o->oom_log, err)) {
        return -1;
    }
    struct engine_hooks hooks = {.context = &logs};
    run_logs_hook(&logs, &hooks);
    if (simulation_run(result, set, o, source, &facts, &hooks, err)) {
        run_logs_abandon(&logs);
        return -1;
    }
    return run_logs_commit(&logs, err);
}

static int run(const struct optset *set, int argc, char **argv, struct err *err)
{
    (void)argc;
    (void)argv;
    struct options o;
    struct wl_options how;
    struct wl_source *source = NULL;
    struct result result;
    if (options_resolve(set, &o, err) || options_need_trace(&o, err) || check_conditions(&o, err)) {
        return -1;
    }
    options_wl(&o, &how);
    if (wl_open(o.trace, &how, o.seed, &source, err)) return -1;
    result_init(&result);
    int status = simulate(&result, set, &o, source, err);
    if (status == 0) {
        warn(&result);
        if (o.json) result_write_json(&result, stdout);
        else report_table(&result, stdout);
        status = judge(&o, &result, err);
    }
    result_release(&result);
    wl_close(source);
    return status;
}

const struct command command_run = {
    .name = "run",
    .summary = "one simulation: a table for people, or JSON",
    .usage = "[OPTION...] TRACE",
    .options = FOR_RUN,
    .arguments = COMMAND_ARGS_TRACE,
    .run = run,
};
