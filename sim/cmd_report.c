/* pagesim report: results as one HTML page. */
#include <unistd.h>

#include "sim/command.h"
#include "sim/outfile.h"
#include "sim/page.h"

/* The k-th file belongs to the k-th result. */
static int attach(struct page_input *in, enum page_detail detail, const struct opt_list *paths, struct err *err)
{
    if (paths->count > in->count)
        return err_set(err, ERR_USAGE, "--%s: found %zu files for %zu results, expected at most one for each", page_detail_options[detail],
                       paths->count, in->count);
    for (size_t i = 0; i < paths->count; i++) {
        if (page_input_attach(in, i, detail, paths->items[i], err)) return -1;
    }
    return 0;
}

static int read_all(struct page_input *in, const struct options *o, int argc, char **argv, struct err *err)
{
    const struct opt_list *files[DETAIL_COUNT] = {[DETAIL_TIMELINE] = &o->page_timelines, [DETAIL_EVENTS] = &o->page_events,
                                                  [DETAIL_OOM_LOG] = &o->page_oom_logs, [DETAIL_MAP] = &o->page_maps};
    for (int i = 0; i < argc; i++) {
        if (page_input_read(in, argv[i], err)) return -1;
    }
    for (int d = 0; d < DETAIL_COUNT; d++) {
        if (attach(in, (enum page_detail)d, files[d], err)) return -1;
    }
    return 0;
}

static int write_page(const struct page_input *in, const struct options *o, struct err *err)
{
    struct outfile *file = outfile_open(o->output ? o->output : "-", err);
    if (!file) return -1;
    if (page_write(in, o->page_title, outfile_stream(file), err)) {
        outfile_abandon(file);
        return -1;
    }
    return outfile_commit(file, err);
}

static int run(const struct optset *set, int argc, char **argv, struct err *err)
{
    struct options options;
    struct page_input in = {0};
    if (options_resolve(set, &options, err)) return -1;
    if (argc == 0) return err_set(err, ERR_USAGE, "found no RESULT, expected a file of 'pagesim run --json' or 'sweep', or a folder of 'run --record'");
    if (!options.output && isatty(STDOUT_FILENO)) return err_set(err, ERR_USAGE, "--output: found a terminal, expected a FILE for the page");
    int status = read_all(&in, &options, argc, argv, err);
    if (status == 0) status = write_page(&in, &options, err);
    page_input_release(&in);
    return status;
}

const struct command command_report = {
    .name = "report",
    .summary = "one HTML page from results: the answer in words, plots, refusals, options",
    .usage = "[OPTION...] RESULT...",
    .notes = "RESULT is the output of 'pagesim run --json', a results file of 'sweep', or a\n"
             "folder that 'run --record' wrote. The page needs no network and no server.\n"
             "docs/report.md says what stands in it.\n"
             "\n"
             "  pagesim run trace.jsonl --policy static --record static/\n"
             "  pagesim run trace.jsonl --policy prefix --record prefix/\n"
             "  pagesim report static/ prefix/ --output page.html",
    .options = FOR_REPORT,
    .arguments = COMMAND_ARGS_OWN,
    .run = run,
};
