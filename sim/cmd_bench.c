/* pagesim bench: the project's own benchmark. */
#include <stdio.h>
#include <string.h>

#include "sim/bench.h"
#include "sim/command.h"
#include "sim/result.h"

struct printer {
    bool json, first;
};

static void print_case(struct printer *p, const struct bench_case *c, const struct bench_result *r)
{
    if (!p->json) {
        if (r->skipped) printf("%-56s %12s\n", c->name, "skipped");
        else printf("%-56s %12.4g %-12s %10.4g %10.4g %9.1f\n", c->name, r->median, c->unit, r->smallest, r->largest,
                    (double)r->peak_kib / 1024);
        fflush(stdout);
        return;
    }
    printf("%s\n  {\"name\": ", p->first ? "" : ",");
    p->first = false;
    result_write_string(c->name, stdout);
    printf(", \"unit\": ");
    result_write_string(c->unit, stdout);
    if (r->skipped) printf(", \"median\": null}");
    else printf(", \"median\": %.9g, \"min\": %.9g, \"max\": %.9g, \"peak_resident_kib\": %ld}", r->median,
                r->smallest, r->largest, r->peak_kib);
}

static int measure_case(struct printer *p, const struct bench_case *c, const struct options *o, struct err *err)
{
    struct bench_result result;
    if (c->full && !o->bench_full) return 0;
    if (o->bench_only && !strstr(c->name, o->bench_only)) return 0;
    if (bench_measure(c, (unsigned)o->bench_runs, &result, err)) return -1;
    print_case(p, c, &result);
    return 0;
}

static int measure_cases(struct printer *p, const struct bench_case *cases, size_t count, const struct options *o, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (measure_case(p, &cases[i], o, err)) return -1;
    }
    return 0;
}

static int measure_orders(struct printer *p, const struct options *o, struct err *err)
{
    char name[100];
    for (size_t i = 0; i < bench_orders_count(); i++) {
        struct bench_case c = bench_orders_case(i, name, sizeof name);
        if (measure_case(p, &c, o, err)) return -1;
    }
    return 0;
}

static int run(const struct optset *set, int argc, char **argv, struct err *err)
{
    (void)argc;
    (void)argv;
    struct options o;
    if (options_resolve(set, &o, err)) return -1;
    struct printer p = {.json = o.json, .first = true};
    option_count(); /* the table of options is built before children share it */
    if (p.json) printf("[");
    else printf("%-56s %12s %-12s %10s %10s %9s\n", "", "median", "", "min", "max", "peak MiB");
    if (!p.json) fflush(stdout);
    if (measure_cases(&p, bench_pool_cases, bench_pool_count, &o, err) ||
        measure_cases(&p, bench_run_cases, bench_run_count, &o, err) ||
        measure_cases(&p, bench_cache_cases, bench_cache_count, &o, err) ||
        measure_orders(&p, &o, err)) {
        return -1;
    }
    if (p.json) printf("\n]\n");
    return COMMAND_DONE;
}

const struct command command_bench = {
    .name = "bench",
    .summary = "the project's own benchmark",
    .usage = "[OPTION...]",
    .notes = "Public traces are measured where PAGESIM_TRACES names their folder, recorded\n"
             "cases where the current folder is the source tree. Each measurement is a process\n"
             "of its own; the last column is its peak of resident memory.",
    .options = FOR_BENCH,
    .arguments = COMMAND_ARGS_NONE,
    .run = run,
};
