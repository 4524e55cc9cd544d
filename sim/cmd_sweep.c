/* pagesim sweep: every combination of the lists given, over all cores, one results line a cell. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/command.h"
#include "sim/outfile.h"
#include "sim/plots.h"
#include "sim/run_common.h"
#include "sim/sweep.h"
#include "sim/workers.h"

/* Results to standard output, a pipe or a device appear in cell order as soon as all before them are there. Those to a file go
 * to FILE.partial as they come, which a later sweep takes over; FILE is written in cell order at the end. */
struct output {
    struct outfile *direct; /* or NULL */
    FILE *partial;
    char *partial_path;
    const char *path;
    const char **waiting; /* lines that wait for an earlier cell */
    size_t cells, next;
};

static int to_partial(struct output *out, const char *line, struct err *err)
{
    if (fputs(line, out->partial) >= 0 && fflush(out->partial) == 0) return 0;
    return err_set(err, ERR_FAILED, "%s: %s", out->partial_path, strerror(errno));
}

static int on_cell(void *context, size_t cell, const char *line, struct err *err)
{
    struct output *out = context;
    if (out->partial) return to_partial(out, line, err);
    out->waiting[cell] = line;
    for (; out->next < out->cells && out->waiting[out->next]; out->next++) {
        FILE *stream = outfile_stream(out->direct);
        if (fputs(out->waiting[out->next], stream) < 0) {
            return err_set(err, ERR_FAILED, "%s: %s", stream == stdout ? "standard output" : out->path, strerror(errno));
        }
    }
    return 0;
}

/* Offers what an earlier sweep of the same name had finished. */
static int take_over(struct output *out, struct sweep *sweep, struct err *err)
{
    FILE *in = fopen(out->partial_path, "r");
    if (!in) {
        if (errno == ENOENT) return 0;
        return err_set(err, ERR_FAILED, "%s: %s", out->partial_path, strerror(errno));
    }
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, in)) > 0) {
        if (line[length - 1] != '\n') break; /* the line that was being written when it was killed */
        line[length - 1] = '\0';
        sweep_offer(sweep, line);
    }
    free(line);
    fclose(in);
    return 0;
}

static int open_output(struct output *out, const char *path, struct sweep *sweep, struct err *err)
{
    memset(out, 0, sizeof *out);
    out->cells = sweep_cells(sweep);
    out->waiting = calloc(out->cells, sizeof *out->waiting);
    if (!out->waiting) return err_set(err, ERR_FAILED, "out of memory");
    out->path = path ? path : "-";
    struct stat facts;
    bool there = strcmp(out->path, "-") != 0 && stat(out->path, &facts) == 0;
    if (strcmp(out->path, "-") == 0 || (there && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))) {
        out->direct = outfile_open(out->path, err);
        return out->direct ? 0 : -1;
    }
    /* The final name is tried first: an output that cannot be written is found before the work. */
    struct outfile *probe = outfile_open(path, err);
    if (!probe) return -1;
    outfile_abandon(probe);
    if (asprintf(&out->partial_path, "%s.partial", path) < 0) {
        out->partial_path = NULL;
        return err_set(err, ERR_FAILED, "out of memory");
    }
    if (take_over(out, sweep, err)) return -1;
    out->partial = fopen(out->partial_path, "w");
    if (!out->partial) return err_set(err, ERR_FAILED, "%s: %s", out->partial_path, strerror(errno));
    return 0;
}

static int commit_rows(const char *path, struct sweep *sweep, struct err *err)
{
    struct outfile *file = outfile_open(path, err);
    if (!file) return -1;
    for (size_t i = 0; i < sweep_cells(sweep); i++) {
        fputs(sweep_line(sweep, i), outfile_stream(file));
    }
    return outfile_commit(file, err);
}

static int judge_rows(const struct optset *set, const struct result *rows, size_t count,
                      struct err *err)
{
    struct opt_list conditions = optset_values(set, option_find(FOR_SWEEP, "fail-if"));
    int worst = COMMAND_DONE;
    for (size_t i = 0; i < count; i++) {
        char what[40];
        snprintf(what, sizeof what, " in cell %zu", i + 1);
        int status = run_judge(&conditions, &rows[i], what, err);
        if (status < 0) return status;
        if (status > worst) worst = status;
    }
    return worst;
}

static int run_and_write(const struct optset *set, struct sweep *sweep, struct output *out,
                         struct err *err)
{
    const char *path = optset_text(set, "output"), *plot = optset_text(set, "plot");
    if (plot && plots_check(plot, err)) return -1;
    if (open_output(out, path, sweep, err)) return -1;
    if (sweep_run(sweep, workers_threads(set), on_cell, out, err)) return -1;
    const struct result *rows = sweep_rows(sweep);
    size_t count = sweep_cells(sweep);
    if (out->direct) {
        struct outfile *file = out->direct;
        out->direct = NULL;
        if (outfile_commit(file, err)) return -1;
    }
    if (out->partial) {
        if (commit_rows(path, sweep, err)) return -1;
        fclose(out->partial);
        out->partial = NULL;
        unlink(out->partial_path);
    }
    run_warn(&rows[0]);
    if (plot && plots_draw(plot, rows, count, err)) return -1;
    return judge_rows(set, rows, count, err);
}

static int run(const struct optset *set, int argc, char **argv, struct err *err)
{
    (void)argc;
    (void)argv;
    struct opt_list conditions = optset_values(set, option_find(FOR_SWEEP, "fail-if"));
    if (run_check_conditions(&conditions, err)) return -1;
    struct sweep *sweep = sweep_create(set, err);
    if (!sweep) return -1;
    run_warn_plan(set);
    struct output out = {0};
    int status = run_and_write(set, sweep, &out, err);
    outfile_abandon(out.direct);
    if (out.partial) fclose(out.partial);
    free(out.partial_path);
    free(out.waiting);
    sweep_destroy(sweep);
    return status;
}

const struct command command_sweep = {
    .name = "sweep",
    .summary = "a grid of simulations over all cores: one results line a cell",
    .usage = "[OPTION=VALUE,VALUE...] TRACE...",
    .notes = "Results are one JSON object a line, in the order of the lists: trace, policy,\n"
             "then as in this help, the last option fastest. With --output, a sweep that was\n"
             "stopped goes on where it was when it is started again.",
    .options = FOR_SWEEP,
    .many = true,
    .arguments = COMMAND_ARGS_TRACE,
    .run = run,
};
