#include "workloads/wl_source_impl.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "workloads/wl_presets.h"

struct wl_checksum {
    XXH3_state_t *state;
};

int wl_source_init(struct wl_source *source, const struct wl_source_ops *ops, const char *name,
                   const char *format_name, const struct wl_options *options, struct err *err)
{
    source->ops = ops;
    source->format_name = format_name;
    source->arrival_speedup_ratio = options->arrival_speedup_ratio;
    source->max_requests = options->max_requests;
    source->name = strdup(name);
    source->checksum = calloc(1, sizeof *source->checksum);
    if (source->checksum != NULL)
        source->checksum->state = XXH3_createState();
    if (source->name == NULL || source->checksum == NULL || source->checksum->state == NULL)
        return err_set(err, ERR_FAILED, "%s: out of memory", name);
    XXH3_64bits_reset(source->checksum->state);
    return 0;
}

void wl_close(struct wl_source *source)
{
    if (source == NULL)
        return;
    source->ops->release(source);
    if (source->checksum != NULL)
        XXH3_freeState(source->checksum->state);
    free(source->checksum);
    free(source->name);
    free(source);
}

int wl_open(const char *path, const struct wl_options *options, uint64_t seed,
            struct wl_source **source, struct err *err)
{
    *source = NULL;
    /* Not `<= 0`: NaN must fail too. */
    if (!(options->arrival_speedup_ratio > 0))
        return err_set(err, ERR_USAGE, "arrival-speedup-ratio: found %g, expected more than 0",
                       options->arrival_speedup_ratio);
    if (strncmp(path, "gen:", 4) == 0)
        return wl_generator_open(path, path + 4, options, seed, source, err);
    if (strncmp(path, "preset:", 7) == 0) {
        const struct wl_preset *preset = wl_preset_find(path + 7, err);
        if (preset == NULL)
            return -1;
        return wl_generator_open(path, preset->spec, options, seed, source, err);
    }
    if (wl_is_archive(path))
        return wl_archive_open(path, options, source, err);
    return wl_file_open(path, options, source, err);
}

/* --- the checksum's fixed form --------------------------------------------------------------
 * All integers are 64 bits, little-endian; strings are their length (WL_NONE: absent) and bytes.
 * Spans that only restate hash ids are left out: the ids say all. */

enum { WORDS_FIXED = 16 };

static void add_words(XXH3_state_t *state, const void *words, size_t count)
{
    if (count > 0)
        XXH3_64bits_update(state, words, count * sizeof(uint64_t));
}

static uint64_t text_length(const char *text)
{
    return text == NULL ? WL_NONE : strlen(text);
}

static void add_text(XXH3_state_t *state, const char *text)
{
    if (text != NULL)
        XXH3_64bits_update(state, text, strlen(text));
}

static void checksum_add(struct wl_checksum *checksum, const struct wl_request *request)
{
    XXH3_state_t *state = checksum->state;
    bool by_ids = request->trace_block_tokens != 0;
    const uint64_t words[WORDS_FIXED] = {
        request->arrival_ns,
        request->prompt_tokens,
        request->output_tokens,
        request->max_tokens,
        request->abort_ns,
        (uint64_t)request->priority,
        request->samples,
        text_length(request->id),
        text_length(request->session),
        text_length(request->parent),
        request->has_content,
        request->trace_block_tokens,
        request->hash_count,
        request->final_hash_ids == NULL ? WL_NONE : request->final_hash_count,
        by_ids ? 0 : request->prompt_spans,
        by_ids ? 0 : request->output_spans,
    };
    add_words(state, words, WORDS_FIXED);
    add_text(state, request->id);
    add_text(state, request->session);
    add_text(state, request->parent);
    add_words(state, request->hash_ids, request->hash_count);
    add_words(state, request->final_hash_ids, request->final_hash_count);
    _Static_assert(sizeof(struct wl_span) == 3 * sizeof(uint64_t), "spans are hashed as they lie");
    if (!by_ids) {
        add_words(state, request->prompt, 3 * request->prompt_spans);
        add_words(state, request->output, 3 * request->output_spans);
    }
}

/* --- requests ------------------------------------------------------------------------------ */

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void summary_add(struct wl_source *source, const struct wl_request *request,
                        bool has_arrival)
{
    struct wl_summary *sum = &source->summary;
    if (sum->requests == 0)
        sum->first_arrival_ns = request->arrival_ns;
    sum->requests++;
    sum->last_arrival_ns = request->arrival_ns;
    sum->total_tokens_max = max_u64(sum->total_tokens_max, request->prompt_tokens +
                                    max_u64(request->output_tokens, 1));
    sum->output_tokens_max = max_u64(sum->output_tokens_max, request->output_tokens);
    sum->has_content = sum->has_content || request->has_content;
    sum->has_final_ids = sum->has_final_ids || request->final_hash_ids != NULL;
    sum->has_arrivals = sum->has_arrivals || has_arrival;
    uint32_t granule = request->trace_block_tokens;
    if (granule == 0 && request->has_content)
        granule = 1;
    if (granule > sum->trace_block_tokens)
        sum->trace_block_tokens = granule;
    checksum_add(source->checksum, request);
}

static int finish_pass(struct wl_source *source, bool cut, struct err *err)
{
    if (source->count == 0)
        return err_set(err, ERR_INPUT, "%s: found no %srequest, expected at least one", source->name,
                       source->skipped > 0 ? "valid " : "");
    source->pass_ended = true;
    if (!source->complete) {
        source->complete = true;
        source->summary.cut = cut;
        source->summary.skipped = source->skipped;
        source->summary.checksum = XXH3_64bits_digest(source->checksum->state);
    }
    return 0;
}

/* Whether requests are left beyond the cut; trouble in them is of no interest any more. */
static bool is_cut(struct wl_source *source)
{
    struct wl_draft *draft;
    struct err ignored = { 0 };
    return source->ops->next(source, &draft, &ignored) != 0;
}

static int scale_times(struct wl_source *source, struct wl_draft *draft, struct err *err)
{
    struct wl_request *request = &draft->request;
    uint64_t abort_after_ns = 0; /* a client's patience is not sped up */
    if (request->abort_ns != WL_NONE)
        abort_after_ns = request->abort_ns > request->arrival_ns
                             ? request->abort_ns - request->arrival_ns : 0;
    if (draft->is_calendar) {
        if (source->count == 0)
            source->base_ns = request->arrival_ns;
        request->arrival_ns -= source->base_ns;
    }
    if (source->arrival_speedup_ratio != 1) {
        double scaled = (double)request->arrival_ns / source->arrival_speedup_ratio;
        if (scaled >= (double)WL_TIME_NS_MAX)
            return err_set(err, ERR_INPUT, "%s: request %llu: found an arrival beyond 2^62 ns after "
                           "scaling, expected an earlier one", source->name,
                           (unsigned long long)source->count);
        request->arrival_ns = (uint64_t)(scaled + 0.5);
    }
    if (request->abort_ns != WL_NONE)
        request->abort_ns = request->arrival_ns + abort_after_ns;
    return 0;
}

int wl_next(struct wl_source *source, struct wl_request *request, struct err *err)
{
    if (source->pass_ended)
        return 0;
    if (source->max_requests != 0 && source->count == source->max_requests)
        return finish_pass(source, !source->complete && is_cut(source), err);
    struct wl_draft *draft = NULL;
    int rc = source->ops->next(source, &draft, err);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return finish_pass(source, false, err);
    if (scale_times(source, draft, err) != 0)
        return -1;
    draft->request.index = source->count;
    if (!source->complete)
        summary_add(source, &draft->request, draft->has_arrival);
    source->count++;
    *request = draft->request;
    return 1;
}

bool wl_can_rewind(const struct wl_source *source)
{
    return source->can_rewind;
}

int wl_rewind(struct wl_source *source, struct err *err)
{
    if (source->ops->rewind(source, err) != 0)
        return -1;
    source->count = 0;
    source->skipped = 0;
    source->pass_ended = false;
    if (!source->complete) {
        source->summary = (struct wl_summary){ 0 };
        XXH3_64bits_reset(source->checksum->state);
    }
    return 0;
}

const char *wl_name(const struct wl_source *source)
{
    return source->name;
}

const char *wl_format_name(const struct wl_source *source)
{
    return source->format_name;
}

const struct wl_summary *wl_summary(const struct wl_source *source)
{
    return &source->summary;
}

bool wl_summary_complete(const struct wl_source *source)
{
    return source->complete;
}
