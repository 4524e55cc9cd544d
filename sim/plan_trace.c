#include "sim/plan_trace.h"

#include <string.h>

#include "sim/shared_prefix.h"

static int share(struct plan_trace *t, struct shared_prefix *tree, const struct wl_request *r, uint64_t block_tokens,
                 struct err *err)
{
    struct shared_cursor cursor;
    uint64_t match = shared_prefix_match(tree, r->prompt, r->prompt_spans, r->prompt_tokens - 1, NULL);
    t->shared_tokens += match / block_tokens * block_tokens;
    shared_cursor_begin(tree, &cursor, NULL);
    int status = shared_cursor_advance(tree, &cursor, r->prompt, r->prompt_spans, r->prompt_tokens);
    shared_cursor_end(tree, &cursor);
    return status == 0 ? 0 : err_set(err, ERR_FAILED, "out of memory");
}

static int read_all(struct plan_trace *t, struct wl_source *source, struct shared_prefix *tree, uint64_t block_tokens,
                    uint64_t max_model_len, struct err *err)
{
    struct wl_request r;
    int more;
    while ((more = wl_next(source, &r, err)) == 1) {
        uint64_t tokens = r.prompt_tokens + (r.output_tokens ? r.output_tokens : 1);
        t->requests++;
        if (tokens > t->longest_tokens) t->longest_tokens = tokens;
        t->too_long += tokens > max_model_len;
        t->prompt_tokens += r.prompt_tokens;
        if (!r.has_content || r.prompt_tokens == 0) continue;
        t->has_content = true;
        if (share(t, tree, &r, block_tokens, err) != 0) return -1;
    }
    return more;
}

int plan_trace_read(struct plan_trace *t, const struct options *options, uint64_t block_tokens,
                    uint64_t max_model_len, struct err *err)
{
    memset(t, 0, sizeof *t);
    if (!options->trace) return 0;
    struct wl_options wl;
    struct wl_source *source;
    options_wl(options, &wl);
    if (wl_open(options->trace, &wl, options->seed, &source, err) != 0) return -1;
    struct shared_prefix *tree = shared_prefix_create();
    int status = tree ? read_all(t, source, tree, block_tokens, max_model_len, err)
                      : err_set(err, ERR_FAILED, "out of memory");
    t->known = status == 0;
    shared_prefix_destroy(tree);
    wl_close(source);
    return status;
}
