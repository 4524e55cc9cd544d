/* `pagesim trace`: make, describe, convert and check request traces. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/command.h"
#include "sim/outfile.h"
#include "sim/result.h"
#include "sim/trace_stats.h"
#include "workloads/wl_array.h"
#include "workloads/wl_genspec.h"
#include "workloads/wl_write.h"

/* Opens the trace that the options name. */
static int open_trace(const struct options *options, struct wl_source **source, struct err *err)
{
    if (options_need_trace(options, err) != 0)
        return -1;
    struct wl_options wl;
    options_wl(options, &wl);
    return wl_open(options->trace, &wl, options->seed, source, err);
}

/* What a reader of the result should know, on standard error. */
static void tell(const struct wl_source *source)
{
    const struct wl_summary *summary = wl_summary(source);
    if (summary->cut)
        fprintf(stderr, "pagesim: %s: cut after %" PRIu64 " requests by --max-requests\n",
                wl_name(source), summary->requests);
    if (summary->skipped > 0)
        fprintf(stderr, "pagesim: %s: skipped %" PRIu64 " bad lines\n", wl_name(source),
                summary->skipped);
}

/* --- stats ------------------------------------------------------------------------------------ */

static int stats_run(const struct optset *set, int argc, char **argv, struct err *err)
{
    (void)argc;
    (void)argv;
    struct options options;
    struct wl_source *source;
    if (options_resolve(set, &options, err) != 0 || open_trace(&options, &source, err) != 0)
        return -1;
    struct wl_stats stats;
    int rc = wl_stats_read(source, &stats, err);
    if (rc == 0) {
        tell(source);
        if (options.json)
            trace_stats_json(&stats, wl_name(source), wl_format_name(source), wl_summary(source),
                             stdout);
        else
            trace_stats_table(&stats, wl_name(source), wl_format_name(source), wl_summary(source),
                              stdout);
    }
    wl_close(source);
    return rc;
}

/* --- check ------------------------------------------------------------------------------------ */

static void check_print(const struct wl_source *source, bool json)
{
    const struct wl_summary *sum = wl_summary(source);
    if (!json) {
        printf("%s: ok: %s, %" PRIu64 " requests, %" PRIu64 " skipped, arrivals %.9f to %.9f s, "
               "content %s, checksum %016" PRIx64 "\n", wl_name(source), wl_format_name(source),
               sum->requests, sum->skipped, (double)sum->first_arrival_ns * 1e-9,
               (double)sum->last_arrival_ns * 1e-9, sum->has_content ? "yes" : "no",
               sum->checksum);
        return;
    }
    char checksum[24];
    snprintf(checksum, sizeof checksum, "%016" PRIx64, sum->checksum);
    struct result result;
    result_init(&result);
    result_text(&result, "trace", wl_name(source));
    result_text(&result, "trace_format", wl_format_name(source));
    result_text(&result, "trace_checksum", checksum);
    result_u64(&result, "requests", sum->requests);
    result_u64(&result, "skipped", sum->skipped);
    result_bool(&result, "cut", sum->cut);
    result_bool(&result, "has_arrivals", sum->has_arrivals);
    result_u64(&result, "first_arrival_ns", sum->first_arrival_ns);
    result_u64(&result, "last_arrival_ns", sum->last_arrival_ns);
    result_u64(&result, "total_tokens_max", sum->total_tokens_max);
    result_u64(&result, "output_tokens_max", sum->output_tokens_max);
    result_bool(&result, "has_content", sum->has_content);
    result_bool(&result, "has_final_ids", sum->has_final_ids);
    result_u64(&result, "trace_block_tokens", sum->trace_block_tokens);
    result_write_json(&result, stdout);
    result_release(&result);
}

static int check_run(const struct optset *set, int argc, char **argv, struct err *err)
{
    (void)argc;
    (void)argv;
    struct options options;
    struct wl_source *source;
    if (options_resolve(set, &options, err) != 0 || open_trace(&options, &source, err) != 0)
        return -1;
    struct wl_request request;
    int rc;
    while ((rc = wl_next(source, &request, err)) == 1)
        ;
    if (rc == 0) {
        tell(source);
        check_print(source, options.json);
    }
    wl_close(source);
    return rc;
}

/* --- convert and gen -------------------------------------------------------------------------- */

/* Writes the whole source to --output, or standard output; takes the source over. */
static int write_trace(struct wl_source *source, const struct options *options, struct err *err)
{
    const char *path = options->output != NULL ? options->output : "-";
    enum wl_write_format format = options->to == OPT_TO_CSV ? WL_WRITE_CSV : WL_WRITE_JSONL;
    struct outfile *file = outfile_open(path, err);
    int rc = file == NULL ? -1 : wl_write(source, format, outfile_stream(file), err);
    if (rc == 0) {
        const struct wl_summary *summary = wl_summary(source);
        tell(source);
        if (format == WL_WRITE_CSV && summary->has_content)
            fprintf(stderr, "pagesim: %s: CSV holds no content; it was left out\n", wl_name(source));
        if (format == WL_WRITE_JSONL && summary->trace_block_tokens > 1)
            fprintf(stderr, "pagesim: %s: read the result with --trace-block-size %" PRIu32 "\n",
                    wl_name(source), summary->trace_block_tokens);
        rc = outfile_commit(file, err);
    } else {
        outfile_abandon(file);
    }
    wl_close(source);
    return rc;
}

static int convert_run(const struct optset *set, int argc, char **argv, struct err *err)
{
    (void)argc;
    (void)argv;
    struct options options;
    struct wl_source *source;
    if (options_resolve(set, &options, err) != 0 || open_trace(&options, &source, err) != 0)
        return -1;
    return write_trace(source, &options, err);
}

static int append(struct wl_text *text, const char *more, struct err *err)
{
    if (wl_text_append(text, more, strlen(more)) != 0)
        return err_set(err, ERR_FAILED, "out of memory");
    return 0;
}

/* The options as one text: "gen:key=value,...". Those not given are left to the generator. */
static int build_spec(const struct optset *set, struct wl_text *text, struct err *err)
{
    if (append(text, "gen:", err) != 0)
        return -1;
    for (size_t i = 0; i < wl_genspec_key_count(); i++) {
        const char *name = wl_genspec_key_at(i)->name;
        if (!optset_given(set, name))
            continue;
        const char *value = optset_text(set, name);
        if (strchr(value, ',') != NULL)
            return err_set(err, ERR_USAGE, "--%s: found '%s', expected no comma", name, value);
        if (append(text, name, err) != 0 || append(text, "=", err) != 0 ||
            append(text, value, err) != 0 || append(text, ",", err) != 0)
            return -1;
    }
    if (wl_text_append(text, "", 1) != 0)
        return err_set(err, ERR_FAILED, "out of memory");
    return 0;
}

static int gen_run(const struct optset *set, int argc, char **argv, struct err *err)
{
    (void)argc;
    (void)argv;
    struct options options;
    if (options_resolve(set, &options, err) != 0)
        return -1;
    struct wl_text spec = { 0 };
    struct wl_source *source = NULL;
    const struct wl_options wl = { .arrival_speedup_ratio = 1 };
    int rc = build_spec(set, &spec, err);
    if (rc == 0)
        rc = wl_open(spec.items, &wl, options.seed, &source, err);
    free(spec.items);
    return rc != 0 ? -1 : write_trace(source, &options, err);
}

/* --- the commands ----------------------------------------------------------------------------- */

static const struct command trace_gen = {
    .name = "gen",
    .summary = "write a generated trace",
    .usage = "[OPTION...]",
    .notes = "LENGTHS and distributions: N, uniform:LOW:HIGH, lognormal:MU:SIGMA,\n"
             "gamma:SHAPE:SCALE, exponential:MEAN, lognormals:WEIGHT:MU:SIGMA/...,\n"
             "empirical:FILE, prompts-of:TRACE or outputs-of:TRACE; @LOW..HIGH behind any of\n"
             "them clips it. Where a trace is read, gen:KEY=VALUE,... with the same keys\n"
             "generates it on the spot, and preset:NAME takes a preset as it is.\n"
             "\n"
             "Presets: azure-conv, azure-code, mooncake-conversation, shared-chat.\n",
    .options = FOR_TRACE_GEN,
    .arguments = COMMAND_ARGS_NONE,
    .run = gen_run,
};

static const struct command trace_stats = {
    .name = "stats",
    .summary = "lengths of a trace's requests, and what they alone waste",
    .usage = "[OPTION...] [TRACE]",
    .options = FOR_TRACE_STATS,
    .arguments = COMMAND_ARGS_TRACE,
    .run = stats_run,
};

static const struct command trace_convert = {
    .name = "convert",
    .summary = "rewrite a trace of any format in pagesim's own",
    .usage = "[OPTION...] [TRACE]",
    .options = FOR_TRACE_CONVERT,
    .arguments = COMMAND_ARGS_TRACE,
    .run = convert_run,
};

static const struct command trace_check = {
    .name = "check",
    .summary = "read a trace to its end and say what it holds",
    .usage = "[OPTION...] [TRACE]",
    .options = FOR_TRACE_CHECK,
    .arguments = COMMAND_ARGS_TRACE,
    .run = check_run,
};

static const struct command *const trace_parts[] = {
    &trace_gen, &trace_stats, &trace_convert, &trace_check, NULL,
};

extern const struct command command_trace;
const struct command command_trace = {
    .name = "trace",
    .summary = "make, describe, convert and check request traces",
    .usage = "gen|stats|convert|check",
    .parts = trace_parts,
};
