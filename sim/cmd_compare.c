/* pagesim compare: two settings on the same requests, two files of results, or a result and a deployment's metrics. */
#include <stdlib.h>
#include <string.h>

#include "sim/command.h"
#include "sim/compare.h"
#include "sim/compare_measured.h"
#include "sim/page.h"
#include "sim/run_common.h"
#include "sim/simulation.h"

/* --- a deployment ----------------------------------------------------------------------------- */

/* One run of the settings. */
static int simulate(const struct optset *set, const char *settings, const char *trace, struct result *result, struct err *err)
{
    struct wl_source *source = NULL;
    struct wl_options how;
    struct trace_facts facts;
    struct options o;
    struct optset *side = compare_variant(set, settings, err);
    int status = side ? 0 : -1;
    if (status == 0 && trace) status = optset_put_trace(side, trace, err);
    if (status == 0) status = options_resolve(side, &o, err) || options_need_trace(&o, err) ? -1 : 0;
    if (status == 0) {
        run_warn_plan(side);
        options_wl(&o, &how);
        status = wl_open(o.trace, &how, o.seed, &source, err);
    }
    if (status == 0) status = trace_facts_read(&facts, source, &o, err);
    if (status == 0) status = simulation_run(result, side, &o, source, &facts, NULL, err);
    if (status == 0) run_warn(result);
    wl_close(source);
    optset_destroy(side);
    return status;
}

static int read_result(const char *path, struct result *result, struct err *err)
{
    struct page_input in = {0};
    int status = page_input_read(&in, path, err);
    if (status == 0 && in.count != 1) status = err_set(err, ERR_INPUT, "%s: found %zu results, expected one beside --measured", path, in.count);
    if (status == 0) {
        *result = in.results[0];
        result_init(&in.results[0]);
    }
    page_input_release(&in);
    return status;
}

static int read_measured(const struct optset *set, struct measured *measured, struct err *err)
{
    const char *from = optset_text(set, "measured-from");
    struct measured earlier = {0};
    int status = measured_read(measured, optset_text(set, "measured"), err);
    if (status == 0 && from) status = measured_read(&earlier, from, err);
    if (status == 0 && from) status = measured_subtract(measured, &earlier, from, err);
    measured_release(&earlier);
    return status;
}

static int with_measured(const struct optset *set, int argc, char **argv, struct err *err)
{
    bool settings = argc > 0 && compare_is_variant(argv[0]);
    int most = settings && !optset_given(set, "trace") ? 2 : 1;
    if (argc < 1) return err_set(err, ERR_USAGE, "found no side beside --measured, expected settings or a result");
    if (argc > most) return err_set(err, ERR_USAGE, "found '%.200s', expected one side beside --measured", argv[most]);
    struct result result;
    struct measured measured = {0};
    struct measured_row *rows = NULL;
    size_t count = 0;
    result_init(&result);
    int status = read_measured(set, &measured, err);
    if (status == 0 && settings) status = simulate(set, argv[0], argc > 1 ? argv[1] : NULL, &result, err);
    else if (status == 0) status = read_result(argv[0], &result, err);
    if (status == 0) status = measured_rows(&measured, &result, &rows, &count, err);
    if (status == 0) {
        void (*print)(const char *, const char *, const struct measured *, const struct measured_row *, size_t, FILE *) =
            optset_given(set, "json") ? measured_print_json : measured_print_table;
        print(argv[0], optset_text(set, "measured"), &measured, rows, count, stdout);
    }
    free(rows);
    measured_release(&measured);
    result_release(&result);
    return status;
}

/* --- two sides -------------------------------------------------------------------------------- */

static int check_arguments(const struct optset *set, int argc, char **argv, struct err *err)
{
    if (argc < 2) return err_set(err, ERR_USAGE, "found %d of the two sides, expected A B: POLICY,OPTION=VALUE,... or files of results", argc);
    bool a = compare_is_variant(argv[0]), b = compare_is_variant(argv[1]);
    if (a != b) {
        return err_set(err, ERR_USAGE, "found settings on one side and '%.200s' on the other, expected settings or results on both (a file may be given as ./FILE)",
                       argv[a ? 1 : 0]);
    }
    int most = a && !optset_given(set, "trace") ? 3 : 2;
    if (argc > most) return err_set(err, ERR_USAGE, "found '%.200s', expected nothing after the two sides%s", argv[most], most == 3 ? " and the trace" : "");
    if (!a && strcmp(argv[0], "-") == 0 && strcmp(argv[1], "-") == 0)
        return err_set(err, ERR_USAGE, "found '-' twice, expected a file: standard input can be read only once");
    return 0;
}

static int compare_settings(const struct optset *set, const char *trace, const char *const sides[2], struct compare_head *head,
                            struct err *err)
{
    struct optset *sets[2] = {NULL, NULL};
    int status = 0;
    for (int s = 0; status == 0 && s < 2; s++) {
        sets[s] = compare_variant(set, sides[s], err);
        if (!sets[s]) status = -1;
        else if (trace) status = optset_put_trace(sets[s], trace, err);
    }
    if (status == 0) status = compare_run(set, sets, head, err);
    optset_destroy(sets[0]);
    optset_destroy(sets[1]);
    return status;
}

static int run(const struct optset *set, int argc, char **argv, struct err *err)
{
    if (optset_given(set, "measured")) return with_measured(set, argc, argv, err);
    if (optset_given(set, "measured-from")) return err_set(err, ERR_USAGE, "--measured-from: expected --measured with it");
    if (check_arguments(set, argc, argv, err)) return -1;
    const char *const sides[2] = {argv[0], argv[1]};
    struct compare_head head = {.a = argv[0], .b = argv[1]};
    if (!compare_is_variant(argv[0])) return compare_files(set, sides, &head, err);
    return compare_settings(set, argc > 2 ? argv[2] : NULL, sides, &head, err);
}

const struct command command_compare = {
    .name = "compare",
    .summary = "two policies or settings on the same requests, or two results: differences with confidence",
    .usage = "[OPTION...] A B [TRACE]",
    .notes = "A and B are settings, POLICY or POLICY,OPTION=VALUE,... (prefix,evict=lru), on\n"
             "top of the options that both have; or files of 'run --json' or 'sweep', whose\n"
             "results are paired where their options agree. With --measured FILE there is no\n"
             "B: the figures of A stand beside those of a server or a benchmark client.",
    .options = FOR_COMPARE,
    .arguments = COMMAND_ARGS_OWN,
    .run = run,
};
