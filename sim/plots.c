#include "sim/plots.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/accounting.h"
#include "sim/csv_file.h"
#include "sim/gnuplot.h"
#include "sim/outfile.h"
#include "sim/plot_rows.h"
#include "sim/refusals.h"

#define KEYS_MAX 32
#define KEY_BYTES 64
#define TITLE_BYTES 512

/* What a figure needs. Drawn when any row has a number under one of the first `needed` keys. */
struct figure {
    const char *name; /* of the script, the CSV and the pictures */
    size_t count, needed;
    char keys[KEYS_MAX][KEY_BYTES];
};

static void figure_add(struct figure *f, const char *object, const char *name)
{
    if (f->count == KEYS_MAX) abort();
    snprintf(f->keys[f->count++], KEY_BYTES, "%s%s%s", object, *object ? "." : "", name);
}

static void figure_add_all(struct figure *f, const char *object, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) figure_add(f, object, names[i]);
}

static size_t figures_list(struct figure figures[5])
{
    static const char *const shares[] = {"internal_fragmentation", "reservation_waste",
                                         "external_fragmentation"};
    static const char *const quantiles[] = {"ttft_ns.p50", "ttft_ns.p99", "e2e_ns.p50", "e2e_ns.p99",
                                            "requests", "finished"};
    static const char *const hits[] = {"hit_rate_tokens", "hit_rate_note"};
    memset(figures, 0, 5 * sizeof *figures);
    figures[0].name = "fragmentation";
    figure_add_all(&figures[0], "", shares, 3);
    figures[1].name = "states";
    figure_add_all(&figures[1], "states", state_names, STATE_COUNT);
    figures[2].name = "refusals";
    figure_add_all(&figures[2], "refusals.by_class", class_names, CLASS_COUNT);
    figure_add_all(&figures[2], "refusals.by_cause", cause_names, CAUSE_COUNT);
    figure_add(&figures[2], "", "requests");
    figure_add(&figures[2], "", "unservable");
    figures[3].name = "hit_rate";
    figure_add_all(&figures[3], "", hits, 2);
    figures[4].name = "latency";
    figure_add_all(&figures[4], "", quantiles, 6);
    for (size_t i = 0; i < 5; i++) figures[i].needed = figures[i].count;
    figures[2].needed = CLASS_COUNT + CAUSE_COUNT;
    figures[3].needed = 1;
    figures[4].needed = 4;
    return 5;
}

static int path_join(char *path, size_t bytes, const char *folder, const char *name,
                     const char *end, struct err *err)
{
    int n = snprintf(path, bytes, "%s/%s%s", folder, name, end);
    if (n > 0 && (size_t)n < bytes) return 0;
    return err_set(err, ERR_FAILED, "%.600s: name too long", folder);
}

/* Like mkdir -p. */
static int make_folder(const char *folder, struct err *err)
{
    char path[PATH_MAX];
    struct stat facts;
    size_t length = strlen(folder);
    if (length == 0 || length >= sizeof path)
        return err_set(err, ERR_USAGE, "folder for plots: found a name of %zu bytes, expected 1 to %zu",
                       length, sizeof path - 1);
    memcpy(path, folder, length + 1);
    for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(path, 0777); /* the last one tells */
        *slash = '/';
    }
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return err_set(err, ERR_FAILED, "%.600s: %s", folder, strerror(errno));
    if (stat(path, &facts) != 0)
        return err_set(err, ERR_FAILED, "%.600s: %s", folder, strerror(errno));
    if (!S_ISDIR(facts.st_mode))
        return err_set(err, ERR_FAILED, "%.600s: is a file, expected a folder", folder);
    return 0;
}

/* --- CSV ---------------------------------------------------------------------------------- */

static int write_csv(const char *path, const struct figure *f, const struct plot_row *rows,
                     size_t count, struct err *err)
{
    char number[PLOT_NUMBER_BYTES];
    struct outfile *file = outfile_open(path, err);
    if (!file) return -1;
    FILE *out = outfile_stream(file);
    fputs("series,block_size,flat,bar", out);
    for (size_t k = 0; k < f->count; k++) fprintf(out, ",%s", f->keys[k]);
    fputc('\n', out);
    for (size_t i = 0; i < count; i++) {
        csv_write_field(rows[i].series, out);
        fprintf(out, ",%llu,%d,%zu", (unsigned long long)rows[i].block_size, rows[i].flat, rows[i].bar);
        for (size_t k = 0; k < f->count; k++) {
            fputc(',', out);
            csv_write_field(plot_text(result_find(rows[i].result, f->keys[k]), number, sizeof number), out);
        }
        fputc('\n', out);
    }
    return outfile_commit(file, err);
}

/* --- titles and names --------------------------------------------------------------------- */

/* The trace's name without folders, or what gen: and preset: say, shortened. */
static const char *trace_name(const struct result *result)
{
    const struct result_entry *entry = result_find(result, "trace");
    if (!entry || entry->kind != RESULT_TEXT) return "unknown trace";
    const char *slash = strrchr(entry->text, '/');
    bool spec = strncmp(entry->text, "gen:", 4) == 0;
    return slash && slash[1] && !spec ? slash + 1 : entry->text;
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t bytes,
                                                         const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, bytes - used, format, args); /* a title may be cut */
    va_end(args);
}

static bool same_in_group(const struct plot_row *rows, size_t count, const char *key)
{
    char first[PLOT_NUMBER_BYTES], other[PLOT_NUMBER_BYTES];
    const char *text = plot_text(result_find(rows[0].result, key), first, sizeof first);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(text, plot_text(result_find(rows[i].result, key), other, sizeof other)) != 0) return false;
    }
    return *text != '\0';
}

/* An option that changes the load so much that a figure without it would mislead. */
static void append_option(char *title, const struct plot_row *rows, size_t count, const char *key,
                          const char *usual, const char *what)
{
    char number[PLOT_NUMBER_BYTES];
    if (!same_in_group(rows, count, key)) return;
    const char *text = plot_text(result_find(rows[0].result, key), number, sizeof number);
    if (strcmp(text, usual) == 0) return;
    append(title, TITLE_BYTES, "%s%s", what, text);
}

/* What the rows of a group have in common, in two lines: the load and the pool, then the engine. */
static void group_title(char *title, const struct plot_row *rows, size_t count)
{
    *title = '\0';
    append(title, TITLE_BYTES, "%.80s", trace_name(rows[0].result));
    append_option(title, rows, count, "options.max-requests", "0", ", first requests: ");
    append_option(title, rows, count, "options.arrival-speedup-ratio", "1", ", arrivals \u00d7 ");
    const struct result_entry *pool = result_find(rows[0].result, "pool_bytes");
    if (pool && pool->kind == RESULT_U64 && same_in_group(rows, count, "pool_bytes"))
        append(title, TITLE_BYTES, ", pool %.4g GiB", (double)pool->u64 / (1024.0 * 1024 * 1024));
    append_option(title, rows, count, "scheduler", "", "\nscheduler ");
    append_option(title, rows, count, "rules", "", ", rules ");
    append_option(title, rows, count, "step_time", "", ", step time ");
    const char *group = rows[0].group;
    if (*group && strncmp(group, "trace=", 6) != 0) append(title, TITLE_BYTES, " (%.120s)", group);
    else if ((group = strchr(group, ','))) append(title, TITLE_BYTES, " (%.120s)", group + 1);
}

/* A group's label as the name of a folder: no folders of a trace in it, only plain characters, not longer than names can
 * be. Names that come out alike are told apart by number. */
static void folder_name(char *name, size_t bytes, const char *group, size_t number)
{
    const char *trace = strncmp(group, "trace=", 6) == 0 ? group + 6 : NULL;
    size_t used = 0;
    if (trace) {
        size_t length = strcspn(trace, ",");
        const char *last = trace;
        for (const char *p = trace; p < trace + length; p++) {
            if (*p == '/' && p + 1 < trace + length) last = p + 1;
        }
        used = (size_t)snprintf(name, bytes, "trace=");
        group = last;
    }
    for (; *group && used < 100; group++) {
        bool plain = (*group >= '0' && *group <= '9') || (*group >= 'a' && *group <= 'z') ||
                     (*group >= 'A' && *group <= 'Z') || strchr("=,._-", *group);
        name[used++] = plain ? *group : '_';
    }
    name[used] = '\0';
    if (number > 0) snprintf(name + used, bytes - used, "-%zu", number + 1);
}

/* How many groups before this one have the same folder name. */
static size_t same_names_before(const struct plot_rows *sorted, size_t begin, const char *name)
{
    char other[160];
    size_t same = 0;
    for (size_t i = 0; i < begin; i = plot_rows_group_end(sorted, i)) {
        folder_name(other, sizeof other, sorted->rows[i].group, 0);
        same += strcmp(other, name) == 0;
    }
    return same;
}

/* --- drawing ------------------------------------------------------------------------------ */

static bool has_data(const struct figure *f, const struct plot_row *rows, size_t count)
{
    double value;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < f->needed; k++) {
            const struct result_entry *entry = result_find(rows[i].result, f->keys[k]);
            if (entry && result_number(entry, &value)) return true;
        }
    }
    return false;
}

static int draw_figure(const char *folder, const char *scripts, const struct figure *f,
                       const struct plot_row *rows, size_t count, const char *title, struct err *err)
{
    char csv[PATH_MAX], stem[PATH_MAX];
    if (!has_data(f, rows, count)) {
        fprintf(stderr, "pagesim: %s: no figure %s, since no row has a value for it\n", folder, f->name);
        return 0;
    }
    if (path_join(csv, sizeof csv, folder, f->name, ".csv", err) ||
        path_join(stem, sizeof stem, folder, f->name, "", err) ||
        write_csv(csv, f, rows, count, err))
        return -1;
    return gnuplot_draw(scripts, f->name, csv, title, stem, err);
}

static int draw_group(const char *folder, const char *scripts, const struct plot_row *rows, size_t count,
                      struct err *err)
{
    struct figure figures[5];
    char title[TITLE_BYTES];
    size_t number = figures_list(figures);
    group_title(title, rows, count);
    for (size_t i = 0; i < number; i++) {
        if (draw_figure(folder, scripts, &figures[i], rows, count, title, err)) return -1;
    }
    return 0;
}

static int draw_sorted(const char *directory, const char *scripts, const struct plot_rows *sorted,
                       struct err *err)
{
    for (size_t begin = 0, end; begin < sorted->count; begin = end) {
        const struct plot_row *rows = &sorted->rows[begin];
        char name[160], folder[PATH_MAX];
        end = plot_rows_group_end(sorted, begin);
        if (!*rows->group) return draw_group(directory, scripts, rows, end - begin, err);
        folder_name(name, sizeof name, rows->group, 0);
        folder_name(name, sizeof name, rows->group, same_names_before(sorted, begin, name));
        if (path_join(folder, sizeof folder, directory, name, "", err) ||
            make_folder(folder, err) || draw_group(folder, scripts, rows, end - begin, err))
            return -1;
    }
    return 0;
}

int plots_check(const char *directory, struct err *err)
{
    char scripts[PATH_MAX];
    if (gnuplot_check(err) || gnuplot_scripts(scripts, sizeof scripts, err)) return -1;
    return make_folder(directory, err);
}

int plots_draw(const char *directory, const struct result *results, size_t count, struct err *err)
{
    char scripts[PATH_MAX];
    struct plot_rows sorted;
    if (gnuplot_scripts(scripts, sizeof scripts, err) || make_folder(directory, err)) return -1;
    int status = plot_rows_sort(&sorted, results, count, err);
    if (status == 0) status = draw_sorted(directory, scripts, &sorted, err);
    plot_rows_release(&sorted);
    return status;
}

int plots_timeline(const char *directory, const char *timeline_csv, const char *title,
                   struct err *err)
{
    char scripts[PATH_MAX], stem[PATH_MAX];
    if (gnuplot_scripts(scripts, sizeof scripts, err) || make_folder(directory, err) ||
        path_join(stem, sizeof stem, directory, "timeline", "", err))
        return -1;
    return gnuplot_draw(scripts, "timeline", timeline_csv, title ? title : "", stem, err);
}
