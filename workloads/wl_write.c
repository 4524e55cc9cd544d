#include "workloads/wl_write.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void put_u64(FILE *out, uint64_t value)
{
    char text[20];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    fwrite_unlocked(text + at, 1, sizeof text - at, out);
}

static void put_json_text(FILE *out, const char *text)
{
    putc_unlocked('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            putc_unlocked(c, out);
    }
    putc_unlocked('"', out);
}

static void put_key(FILE *out, const char *name)
{
    fputs_unlocked(", \"", out);
    fputs_unlocked(name, out);
    fputs_unlocked("\": ", out);
}

static void put_json_ids(FILE *out, const char *name, const uint64_t *ids, size_t count)
{
    put_key(out, name);
    putc_unlocked('[', out);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            fputs_unlocked(", ", out);
        put_u64(out, ids[i]);
    }
    putc_unlocked(']', out);
}

static int put_json_ranges(FILE *out, const char *name, const struct wl_span *spans, size_t count)
{
    put_key(out, name);
    putc_unlocked('[', out);
    for (size_t i = 0; i < count; i++) {
        if (spans[i].space != 0)
            return -1;
        fputs_unlocked(i > 0 ? ", [" : "[", out);
        put_u64(out, spans[i].first);
        fputs_unlocked(", ", out);
        put_u64(out, spans[i].count);
        putc_unlocked(']', out);
    }
    putc_unlocked(']', out);
    return 0;
}

static int put_json_content(FILE *out, const struct wl_request *request)
{
    if (request->trace_block_tokens != 0) {
        put_json_ids(out, "hash_ids", request->hash_ids, request->hash_count);
        if (request->final_hash_ids != NULL)
            put_json_ids(out, "final_hash_ids", request->final_hash_ids, request->final_hash_count);
        return 0;
    }
    if (!request->has_content)
        return 0;
    if (put_json_ranges(out, "ranges", request->prompt, request->prompt_spans) != 0)
        return -1;
    if (request->output_spans == 0)
        return 0;
    return put_json_ranges(out, "output_ranges", request->output, request->output_spans);
}

static int put_json(FILE *out, const struct wl_request *request, bool has_arrivals)
{
    fputs_unlocked("{\"prompt_tokens\": ", out);
    put_u64(out, request->prompt_tokens);
    put_key(out, "output_tokens");
    put_u64(out, request->output_tokens);
    if (has_arrivals) {
        put_key(out, "arrival_ns");
        put_u64(out, request->arrival_ns);
    }
    const struct { const char *name, *text; } texts[] = {
        { "id", request->id }, { "session", request->session }, { "parent", request->parent },
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].text == NULL)
            continue;
        put_key(out, texts[i].name);
        put_json_text(out, texts[i].text);
    }
    if (request->max_tokens != WL_NONE) {
        put_key(out, "max_tokens");
        put_u64(out, request->max_tokens);
    }
    if (request->samples != 1) {
        put_key(out, "n");
        put_u64(out, request->samples);
    }
    if (request->abort_ns != WL_NONE) {
        put_key(out, "abort_ns");
        put_u64(out, request->abort_ns);
    }
    if (request->priority != 0)
        fprintf(out, ", \"priority\": %" PRId64, request->priority);
    if (put_json_content(out, request) != 0)
        return -1;
    fputs_unlocked("}\n", out);
    return 0;
}

/* --- CSV ------------------------------------------------------------------------------------- */

static const char csv_header[] =
    "arrival_ns,prompt_tokens,output_tokens,max_tokens,n,abort_ns,priority,id,session,parent\n";

static int put_csv_text(FILE *out, const char *text)
{
    if (text == NULL)
        return 0;
    if (strpbrk(text, "\n\r") != NULL)
        return -1; /* a field of several lines would not read back */
    if (strpbrk(text, ",\"") == NULL) {
        fputs_unlocked(text, out);
        return 0;
    }
    putc_unlocked('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            putc_unlocked('"', out);
        putc_unlocked(*text, out);
    }
    putc_unlocked('"', out);
    return 0;
}

static void put_csv_u64(FILE *out, uint64_t value, bool present)
{
    if (present)
        put_u64(out, value);
    putc_unlocked(',', out);
}

static int put_csv(FILE *out, const struct wl_request *request, bool has_arrivals)
{
    put_csv_u64(out, request->arrival_ns, has_arrivals);
    put_csv_u64(out, request->prompt_tokens, true);
    put_csv_u64(out, request->output_tokens, true);
    put_csv_u64(out, request->max_tokens, request->max_tokens != WL_NONE);
    put_csv_u64(out, request->samples, request->samples != 1);
    put_csv_u64(out, request->abort_ns, request->abort_ns != WL_NONE);
    if (request->priority != 0)
        fprintf(out, "%" PRId64, request->priority);
    const char *const texts[] = { request->id, request->session, request->parent };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        putc_unlocked(',', out);
        if (put_csv_text(out, texts[i]) != 0)
            return -1;
    }
    putc_unlocked('\n', out);
    return 0;
}

int wl_write(struct wl_source *source, enum wl_write_format format, FILE *out, struct err *err)
{
    if (format == WL_WRITE_CSV)
        fputs_unlocked(csv_header, out);
    struct wl_request request;
    int rc;
    while ((rc = wl_next(source, &request, err)) == 1) {
        bool has_arrivals = wl_summary(source)->has_arrivals;
        int bad = format == WL_WRITE_CSV ? put_csv(out, &request, has_arrivals)
                                         : put_json(out, &request, has_arrivals);
        if (bad != 0)
            return err_set(err, ERR_INPUT, "%s: request %" PRIu64 ": found what the output format "
                           "cannot hold, expected other names or content", wl_name(source),
                           request.index);
        if (ferror(out))
            return err_set(err, ERR_FAILED, "output: %s", strerror(errno));
    }
    return rc;
}
