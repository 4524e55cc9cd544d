/* pagesim edge: how likely the device is out of memory in service, against utilization. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/command.h"
#include "sim/edge_study.h"
#include "sim/gnuplot.h"
#include "sim/outfile.h"
#include "sim/plots.h"
#include "sim/run_common.h"
#include "sim/workers.h"

/* --- rows as text ------------------------------------------------------------------------------ */

static double number(const struct result *r, const char *key)
{
    double value;
    const struct result_entry *entry = result_find(r, key);
    return entry && result_number(entry, &value) ? value : 0;
}

static bool has_number(const struct result *r, const char *key)
{
    double value;
    const struct result_entry *entry = result_find(r, key);
    return entry && result_number(entry, &value);
}

static const char *verdict(const struct result *r)
{
    const struct result_entry *entry = result_find(r, "verdict");
    return entry && entry->kind == RESULT_TEXT ? entry->text : "-";
}

/* What a row differs in from others beside the utilization: 'model=llama-3-8b engine=sglang', or 'device'. */
static void series_name(const struct optset *set, const struct optset *cell, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < option_count(); i++) {
        const struct option_spec *spec = option_at(i);
        if (option_find(FOR_EDGE, spec->name) != spec || spec->kind == OPT_LIST) continue;
        if (strcmp(spec->name, "gpu-memory-utilization") == 0 || optset_values(set, spec).count < 2) continue;
        const char *value = optset_text(cell, spec->name);
        int n = snprintf(out + used, bytes - used, "%s%s=%s", used ? ";" : "", spec->name, value ? value : "");
        if (n < 0 || (size_t)n >= bytes - used) break;
        used += (size_t)n;
    }
    for (char *c = out; *c; c++) {
        if (strchr(" ,\"\n\r\t", *c)) *c = '_'; /* a word, and no CSV quoting */
    }
    if (out[0] == '\0') snprintf(out, bytes, "device");
}

static void print_csv(const struct optset *set, const struct edge_row *rows, size_t count, FILE *out)
{
    static const char *const keys[] = {"gpu_memory_utilization", "oom_probability", "oom_probability_low", "oom_probability_high",
                                       "elastic_oom_probability", "elastic_lent_mean_bytes", "pool_bytes", "room_bytes",
                                       "activation_peak_bytes", "draws"};
    fputs("series", out);
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) fprintf(out, ",%s", keys[k]);
    fputc('\n', out);
    for (size_t i = 0; i < count; i++) {
        char series[200], text[40];
        series_name(set, rows[i].cell, series, sizeof series);
        fputs(series, out);
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            const struct result_entry *entry = result_find(&rows[i].result, keys[k]);
            text[0] = '\0';
            if (entry && entry->kind == RESULT_U64) snprintf(text, sizeof text, "%" PRIu64, entry->u64);
            if (entry && entry->kind == RESULT_F64) result_format_f64(entry->f64, text, sizeof text);
            fprintf(out, ",%s", text);
        }
        fputc('\n', out);
    }
}

static void print_table(const struct optset *set, const struct edge_row *rows, size_t count, FILE *out)
{
    const double mib = 1048576;
    fprintf(out, "spreads: activations %s, late buffers %s, residue %s (guesses unless you gave them), %s draws\n\n",
            optset_text(set, "activation-spread"), optset_text(set, "late-spread"), optset_text(set, "residue-spread"),
            optset_text(set, "draws"));
    fputs("utilization   pool MiB   room MiB   peak MiB   P(OOM)   95 % interval       elastic: P   lent MiB   \n", out);
    for (size_t i = 0; i < count; i++) {
        const struct result *r = &rows[i].result;
        char series[200];
        series_name(set, rows[i].cell, series, sizeof series);
        if (strcmp(series, "device") == 0) series[0] = '\0';
        fprintf(out, "%11.4f ", number(r, "gpu_memory_utilization"));
        if (!has_number(r, "oom_probability")) {
            fprintf(out, "  %s  %s\n", verdict(r), series);
            continue;
        }
        fprintf(out, "%10.1f %10.1f %10.1f   %6.4f   %6.4f to %6.4f       %6.4f %10.1f  %s\n", number(r, "pool_bytes") / mib,
                number(r, "room_bytes") / mib, number(r, "activation_peak_bytes") / mib, number(r, "oom_probability"),
                number(r, "oom_probability_low"), number(r, "oom_probability_high"), number(r, "elastic_oom_probability"),
                number(r, "elastic_lent_mean_bytes") / mib, series);
    }
}

/* --- figure ------------------------------------------------------------------------------------- */

static int draw_figure(const char *directory, const struct optset *set, const struct edge_row *rows, size_t count, struct err *err)
{
    char scripts[4096], csv[4200], stem[4200];
    if (strlen(directory) >= sizeof scripts) return err_set(err, ERR_USAGE, "--plot: name too long");
    snprintf(csv, sizeof csv, "%s/edge.csv", directory);
    snprintf(stem, sizeof stem, "%s/edge", directory);
    if (gnuplot_scripts(scripts, sizeof scripts, err)) return -1;
    struct outfile *file = outfile_open(csv, err);
    if (!file) return -1;
    print_csv(set, rows, count, outfile_stream(file));
    if (outfile_commit(file, err)) return -1;
    return gnuplot_draw(scripts, "edge", csv, "", stem, err);
}

/* --- the command --------------------------------------------------------------------------------- */

static int judge(const struct opt_list *conditions, const struct edge_row *rows, size_t count, struct err *err)
{
    int worst = COMMAND_DONE;
    for (size_t i = 0; i < count; i++) {
        char what[40];
        snprintf(what, sizeof what, " in row %zu", i + 1);
        int status = run_judge(conditions, &rows[i].result, what, err);
        if (status < 0) return status;
        if (status > worst) worst = status;
    }
    return worst;
}

static int show(const struct optset *set, const struct edge_row *rows, size_t count, struct err *err)
{
    const char *plot = optset_text(set, "plot");
    struct opt_list conditions = optset_values(set, option_find(FOR_EDGE, "fail-if"));
    if (plot && draw_figure(plot, set, rows, count, err)) return -1;
    if (optset_given(set, "json")) {
        for (size_t i = 0; i < count; i++) result_write_line(&rows[i].result, stdout);
    } else if (optset_given(set, "csv")) {
        print_csv(set, rows, count, stdout);
    } else {
        print_table(set, rows, count, stdout);
    }
    return judge(&conditions, rows, count, err);
}

static int run(const struct optset *set, int argc, char **argv, struct err *err)
{
    (void)argc;
    (void)argv;
    struct edge_row *rows = NULL;
    size_t count = 0;
    const char *plot = optset_text(set, "plot");
    struct opt_list conditions = optset_values(set, option_find(FOR_EDGE, "fail-if"));
    if (run_check_conditions(&conditions, err) || (plot && plots_check(plot, err))) return -1;
    int status = edge_rows_make(set, &rows, &count, err);
    if (status == 0) status = edge_rows_run(rows, count, workers_threads(set), err);
    if (status == 0) status = show(set, rows, count, err);
    edge_rows_release(rows, count);
    return status;
}

const struct command command_edge = {
    .name = "edge",
    .summary = "how likely the device is out of memory in service, against utilization",
    .usage = "[OPTION=VALUE,VALUE...] [TRACE]",
    .notes = "The pool of each utilization comes from the plan; what is left of the device has\n"
             "to hold the largest step's activations, late buffers and residue, which are\n"
             "drawn. With a trace the largest step is that of its simulation, else one of\n"
             "--max-num-batched-tokens. Without --gpu-memory-utilization: 0.90 to 0.99.\n"
             "docs/edge.md says more.\n"
             "\n"
             "  pagesim edge --model llama-3-8b --gpu h100-sxm --plot figures",
    .options = FOR_EDGE,
    .many = true,
    .arguments = COMMAND_ARGS_TRACE,
    .run = run,
};
