/* A whole trace in memory, and sources that read it. */
#include <stdlib.h>
#include <string.h>

#include "workloads/wl_codec.h"
#include "workloads/wl_source_impl.h"

struct wl_trace {
    char *name;
    const char *format_name;
    struct wl_text bytes;
    uint64_t requests;
    struct wl_summary summary;
};

struct trace_source {
    struct wl_source source;
    const struct wl_trace *trace;
    const char *at;
    struct wl_draft draft;
};

/* A request as wl_next gives it, back in the form that can be encoded. */
static int copy_text(struct wl_draft *draft, const char *text, size_t *at)
{
    if (text == NULL)
        return 0;
    *at = draft->text.count;
    return wl_text_append(&draft->text, text, strlen(text) + 1);
}

static int copy_ids(struct wl_ids *ids, const uint64_t *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (wl_ids_add(ids, items[i]) != 0)
            return -1;
    return 0;
}

static int copy_spans(struct wl_spans *spans, const struct wl_span *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (wl_spans_add(spans, items[i].space, items[i].first, items[i].count) != 0)
            return -1;
    return 0;
}

static int copy_request(struct wl_draft *draft, const struct wl_request *request)
{
    wl_draft_clear(draft);
    draft->request = *request;
    draft->serial = request->index;
    draft->has_final_ids = request->final_hash_ids != NULL;
    if (copy_text(draft, request->id, &draft->id_at) != 0 ||
        copy_text(draft, request->session, &draft->session_at) != 0 ||
        copy_text(draft, request->parent, &draft->parent_at) != 0)
        return -1;
    if (request->trace_block_tokens == 0)
        return copy_spans(&draft->prompt, request->prompt, request->prompt_spans) != 0 ? -1
                   : copy_spans(&draft->output, request->output, request->output_spans);
    return copy_ids(&draft->hash_ids, request->hash_ids, request->hash_count) != 0 ? -1
               : copy_ids(&draft->final_hash_ids, request->final_hash_ids,
                          request->final_hash_count);
}

static int load_requests(struct wl_source *source, struct wl_trace *trace, struct err *err)
{
    struct wl_draft draft = { 0 };
    struct wl_request request;
    int rc;
    while ((rc = wl_next(source, &request, err)) == 1) {
        if (copy_request(&draft, &request) != 0 || wl_encode(&draft, &trace->bytes) != 0) {
            rc = err_set(err, ERR_FAILED, "%s: out of memory, expected room for the whole trace",
                         wl_name(source));
            break;
        }
        trace->requests++;
    }
    wl_draft_release(&draft);
    return rc;
}

int wl_trace_load(struct wl_source *source, struct wl_trace **out, struct err *err)
{
    *out = NULL;
    struct wl_trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL || (trace->name = strdup(wl_name(source))) == NULL) {
        free(trace);
        return err_set(err, ERR_FAILED, "%s: out of memory", wl_name(source));
    }
    trace->format_name = wl_format_name(source);
    if (load_requests(source, trace, err) != 0) {
        wl_trace_destroy(trace);
        return -1;
    }
    trace->summary = *wl_summary(source);
    *out = trace;
    return 0;
}

void wl_trace_destroy(struct wl_trace *trace)
{
    if (trace == NULL)
        return;
    free(trace->bytes.items);
    free(trace->name);
    free(trace);
}

const struct wl_summary *wl_trace_summary(const struct wl_trace *trace)
{
    return &trace->summary;
}

static int trace_next(struct wl_source *source, struct wl_draft **draft, struct err *err)
{
    struct trace_source *reader = (struct trace_source *)source;
    if (reader->at == reader->trace->bytes.items + reader->trace->bytes.count)
        return 0;
    if (wl_decode(&reader->at, &reader->draft) != 0)
        return err_set(err, ERR_FAILED, "%s: out of memory", source->name);
    wl_draft_finish(&reader->draft);
    *draft = &reader->draft;
    return 1;
}

static int trace_rewind(struct wl_source *source, struct err *err)
{
    (void)err;
    struct trace_source *reader = (struct trace_source *)source;
    reader->at = reader->trace->bytes.items;
    return 0;
}

static void trace_release(struct wl_source *source)
{
    wl_draft_release(&((struct trace_source *)source)->draft);
}

static const struct wl_source_ops trace_ops = { trace_next, trace_rewind, trace_release };

struct wl_source *wl_trace_open(const struct wl_trace *trace)
{
    struct trace_source *reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        return NULL;
    /* Scaling and cutting were done when the trace was loaded. */
    const struct wl_options plain = { .arrival_speedup_ratio = 1 };
    if (wl_source_init(&reader->source, &trace_ops, trace->name, trace->format_name, &plain,
                       NULL) != 0) {
        wl_close(&reader->source);
        return NULL;
    }
    reader->trace = trace;
    reader->at = trace->bytes.items;
    reader->source.can_rewind = true;
    reader->source.complete = true;
    reader->source.summary = trace->summary;
    return &reader->source;
}
