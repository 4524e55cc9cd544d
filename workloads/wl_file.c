/* A trace file as a source: stream -> format -> requests. */
#include "workloads/wl_source_impl.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/wl_format.h"
#include "workloads/wl_stream.h"

struct file_source {
    struct wl_source source;
    struct wl_stream *stream;
    const struct wl_format *format;
    struct wl_options options;
    struct wl_parse parse;
    struct wl_draft draft;
    uint64_t parsed;          /* requests in this pass */
    uint64_t last_arrival_ns;
    bool first_has_arrival;
};

static bool is_blank(const struct wl_line *line)
{
    return line->text[strspn(line->text, " \t")] == '\0' && strlen(line->text) == line->length;
}

/* A line with something on it. 1, 0 at the end, -1. */
static int next_line(struct file_source *file, struct wl_line *line, struct err *err)
{
    int rc;
    do
        rc = wl_stream_line(file->stream, line, err);
    while (rc == 1 && is_blank(line));
    return rc;
}

static void drop_bom(struct wl_line *line)
{
    if (line->number == 1 && strncmp(line->text, "\xef\xbb\xbf", 3) == 0) {
        line->text += 3;
        line->length -= 3;
    }
}

/* Order, and arrivals that some requests have and others lack. */
static int check_arrival(struct file_source *file, const struct wl_line *line)
{
    const struct wl_draft *draft = &file->draft;
    const char *field = file->format->arrival_field;
    uint64_t arrival_ns = draft->request.arrival_ns;
    if (file->parsed > 0 && draft->has_arrival != file->first_has_arrival)
        return wl_line_error(line, draft->arrival_at, field, "found %s arrival, expected %s as in "
                             "the requests before", draft->has_arrival ? "an" : "no",
                             draft->has_arrival ? "none" : "one");
    if (draft->request.abort_ns < arrival_ns)
        return wl_line_error(line, draft->arrival_at, "abort_ns", "found a time before the arrival, "
                             "expected a later one");
    if (!file->options.sort && arrival_ns < file->last_arrival_ns) {
        file->options.skip_bad = false; /* the order of a trace is no bad line */
        return wl_line_error(line, draft->arrival_at, field, "found an arrival before that of the "
                             "request before it, expected none earlier (--sort accepts any order)");
    }
    return 0;
}

static int parse_request(struct file_source *file, struct wl_line *line)
{
    wl_draft_clear(&file->draft);
    file->draft.serial = file->parsed;
    if (file->format->parse(line, &file->parse, &file->draft) != 0)
        return -1;
    if (check_arrival(file, line) != 0)
        return -1;
    file->first_has_arrival = file->draft.has_arrival;
    file->last_arrival_ns = file->draft.request.arrival_ns;
    file->parsed++;
    wl_draft_finish(&file->draft);
    return 0;
}

static int file_next(struct wl_source *source, struct wl_draft **draft, struct err *err)
{
    struct file_source *file = (struct file_source *)source;
    for (;;) {
        struct wl_line line;
        int rc = next_line(file, &line, err);
        if (rc != 1)
            return rc;
        drop_bom(&line);
        struct err trouble;
        trouble.kind = ERR_NONE;
        line.err = &trouble;
        if (parse_request(file, &line) == 0) {
            *draft = &file->draft;
            return 1;
        }
        if (!file->options.skip_bad || trouble.kind != ERR_INPUT)
            return err_set(err, trouble.kind, "%s", trouble.text);
        source->skipped++;
    }
}

/* Reads the header, where the format has one. */
static int begin(struct file_source *file, struct err *err)
{
    file->parsed = 0;
    file->last_arrival_ns = 0;
    if (file->format->header == NULL)
        return 0;
    struct wl_line line;
    int rc = next_line(file, &line, err);
    if (rc != 1)
        return rc < 0 ? -1 : err_set(err, ERR_INPUT, "%s: found an empty file, expected a trace",
                                     wl_stream_name(file->stream));
    drop_bom(&line);
    line.err = err;
    return file->format->header(&line, &file->parse);
}

static int file_rewind(struct wl_source *source, struct err *err)
{
    struct file_source *file = (struct file_source *)source;
    return wl_stream_rewind(file->stream, err) != 0 ? -1 : begin(file, err);
}

static void file_release(struct wl_source *source)
{
    struct file_source *file = (struct file_source *)source;
    wl_stream_close(file->stream);
    wl_draft_release(&file->draft);
}

static const struct wl_source_ops file_ops = { file_next, file_rewind, file_release };

static int unknown_format(const struct wl_line *line, struct err *err)
{
    char names[256];
    wl_format_names(names, sizeof names);
    int shown = line->length < 60 ? (int)line->length : 60;
    return err_set(err, ERR_INPUT, "%s:%llu: found '%.*s'%s, expected the first line of a known "
                   "format (--format %s)", line->file, (unsigned long long)line->number, shown,
                   line->text, line->length > 60 ? "..." : "", names);
}

static int choose_format(struct file_source *file, const char *name, struct err *err)
{
    if (name != NULL) {
        file->format = wl_format_find(name);
        if (file->format != NULL)
            return 0;
        char names[256];
        wl_format_names(names, sizeof names);
        return err_set(err, ERR_USAGE, "format: found '%s', expected one of %s", name, names);
    }
    struct wl_line line;
    int rc = next_line(file, &line, err);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return err_set(err, ERR_INPUT, "%s: found an empty file, expected a trace",
                       wl_stream_name(file->stream));
    const char *text = line.text;
    if (line.number == 1 && strncmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    file->format = wl_format_recognise(text);
    if (file->format == NULL)
        return unknown_format(&line, err);
    wl_stream_unread(file->stream);
    return 0;
}

int wl_file_open(const char *path, const struct wl_options *options, struct wl_source **out,
                 struct err *err)
{
    struct file_source *file = calloc(1, sizeof *file);
    if (file == NULL)
        return err_set(err, ERR_FAILED, "%s: out of memory", path);
    file->options = *options;
    file->parse.options = &file->options;
    if (wl_source_init(&file->source, &file_ops, path, NULL, options, err) != 0 ||
        wl_stream_open(path, &file->stream, err) != 0 ||
        choose_format(file, options->format, err) != 0 || begin(file, err) != 0) {
        wl_close(&file->source);
        return -1;
    }
    file->source.format_name = file->format->name;
    file->source.can_rewind = wl_stream_can_rewind(file->stream);
    file->options.format = NULL; /* the caller's; not needed any more */
    if (options->sort)
        return wl_sort_open(&file->source, options, out, err);
    *out = &file->source;
    return 0;
}
