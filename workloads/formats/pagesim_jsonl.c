/* pagesim's own format: one object a line; docs/traces.md lists the keys. */
#include "workloads/wl_format.h"

enum {
    ID, ARRIVAL_NS, ARRIVAL, PROMPT, OUTPUT, MAX_TOKENS, SAMPLES, HASH_IDS, FINAL_IDS, TOKEN_IDS,
    OUTPUT_IDS, RANGES, OUTPUT_RANGES, SESSION, PARENT, ABORT, PRIORITY, FIELDS
};

static const char *const fields[FIELDS] = {
    "id", "arrival_ns", "arrival", "prompt_tokens", "output_tokens", "max_tokens", "n", "hash_ids",
    "final_hash_ids", "token_ids", "output_token_ids", "ranges", "output_ranges", "session",
    "parent", "abort_ns", "priority",
};

static bool recognise(const char *line)
{
    /* One of its own names is enough: what is missing is then said by name. */
    return wl_json_mentions(line, "prompt_tokens") || wl_json_mentions(line, "output_tokens") ||
           wl_json_mentions(line, "arrival_ns");
}

static int read_content(struct wl_json *json, int field, struct wl_draft *draft)
{
    switch (field) {
    case HASH_IDS:
        return wl_json_ids(json, &draft->hash_ids);
    case FINAL_IDS:
        draft->has_final_ids = true;
        return wl_json_ids(json, &draft->final_hash_ids);
    case TOKEN_IDS:
        return wl_json_token_ids(json, &draft->prompt);
    case OUTPUT_IDS:
        return wl_json_token_ids(json, &draft->output);
    case RANGES:
        return wl_json_ranges(json, &draft->prompt);
    default:
        return wl_json_ranges(json, &draft->output);
    }
}

static int read_arrival(struct wl_json *json, int field, const struct wl_options *options,
                        struct wl_draft *draft)
{
    if (draft->has_arrival)
        return wl_line_error(json->line, json->at, json->names[field], "found a second arrival, "
                             "expected arrival or arrival_ns");
    draft->has_arrival = true;
    draft->arrival_at = json->at;
    uint64_t unit_ns = options->time_unit_ns != 0 ? options->time_unit_ns : 1;
    if (field == ARRIVAL)
        return wl_json_time(json, unit_ns, &draft->request.arrival_ns);
    return wl_json_u64(json, WL_TIME_NS_MAX, "a time in whole nanoseconds up to 2^62",
                       &draft->request.arrival_ns);
}

static int read_samples(struct wl_json *json, struct wl_draft *draft)
{
    uint64_t samples = 0;
    const char *at = json->at;
    if (wl_json_u64(json, WL_SAMPLES_MAX, "a count of samples, 1 to 65536", &samples) != 0)
        return -1;
    if (samples == 0)
        return wl_line_unexpected(json->line, at, "n", "a count of samples, 1 to 65536");
    draft->request.samples = (uint32_t)samples;
    return 0;
}

static int read_field(struct wl_json *json, int field, const struct wl_options *options,
                      struct wl_draft *draft)
{
    struct wl_request *request = &draft->request;
    switch (field) {
    case ID:
        return wl_json_name(json, &draft->text, &draft->id_at);
    case SESSION:
        return wl_json_name(json, &draft->text, &draft->session_at);
    case PARENT:
        return wl_json_name(json, &draft->text, &draft->parent_at);
    case ARRIVAL_NS:
    case ARRIVAL:
        return read_arrival(json, field, options, draft);
    case PROMPT:
        return wl_json_tokens(json, &request->prompt_tokens);
    case OUTPUT:
        return wl_json_tokens(json, &request->output_tokens);
    case MAX_TOKENS:
        return wl_json_tokens(json, &request->max_tokens);
    case SAMPLES:
        return read_samples(json, draft);
    case ABORT:
        return wl_json_u64(json, WL_TIME_NS_MAX, "a time in whole nanoseconds up to 2^62",
                           &request->abort_ns);
    case PRIORITY:
        return wl_json_i64(json, &request->priority);
    default:
        return read_content(json, field, draft);
    }
}

/* At most one of several ways to say the same. */
static int check_one_of(const struct wl_json *json, int one, int other)
{
    if (!wl_json_has(json, one) || !wl_json_has(json, other))
        return 0;
    return wl_line_error(json->line, json->value_at[other], json->names[other], "found beside %s, "
                         "expected one of the two", json->names[one]);
}

static int check_hashes(const struct wl_json *json, const struct wl_parse *parse,
                        struct wl_draft *draft)
{
    if (check_one_of(json, HASH_IDS, TOKEN_IDS) != 0 || check_one_of(json, HASH_IDS, RANGES) != 0 ||
        check_one_of(json, HASH_IDS, OUTPUT_IDS) != 0 ||
        check_one_of(json, HASH_IDS, OUTPUT_RANGES) != 0)
        return -1;
    if (parse->options->trace_block_tokens == 0)
        return wl_line_error(json->line, json->value_at[HASH_IDS], "hash_ids", "found ids of "
                             "unknown size, expected --trace-block-size");
    draft->request.trace_block_tokens = parse->options->trace_block_tokens;
    if (wl_draft_check_hashes(draft, json->line, json->value_at[HASH_IDS],
                              json->value_at[FINAL_IDS]) != 0)
        return -1;
    return wl_draft_hash_content(draft) == 0 ? 0 : wl_line_out_of_memory(json->line);
}

static int check_tokens(const struct wl_json *json, struct wl_draft *draft)
{
    int prompt = wl_json_has(json, TOKEN_IDS) ? TOKEN_IDS : RANGES;
    int output = wl_json_has(json, OUTPUT_IDS) ? OUTPUT_IDS : OUTPUT_RANGES;
    if (check_one_of(json, TOKEN_IDS, RANGES) != 0 ||
        check_one_of(json, OUTPUT_IDS, OUTPUT_RANGES) != 0)
        return -1;
    if (!wl_json_has(json, prompt)) {
        if (!wl_json_has(json, output))
            return 0;
        return wl_line_error(json->line, json->value_at[output], json->names[output], "found the "
                             "output's content alone, expected the prompt's too");
    }
    uint64_t prompt_tokens = wl_spans_tokens(&draft->prompt);
    if (prompt_tokens != draft->request.prompt_tokens)
        return wl_line_error(json->line, json->value_at[prompt], json->names[prompt], "found %lld "
                             "tokens, expected %llu as prompt_tokens says", (long long)prompt_tokens,
                             (unsigned long long)draft->request.prompt_tokens);
    uint64_t output_tokens = wl_spans_tokens(&draft->output);
    if (output_tokens > draft->request.output_tokens)
        return wl_line_error(json->line, json->value_at[output], json->names[output], "found %lld "
                             "tokens, expected at most %llu as output_tokens says",
                             (long long)output_tokens,
                             (unsigned long long)draft->request.output_tokens);
    draft->request.has_content = true;
    return 0;
}

static int parse_line(struct wl_line *line, const struct wl_parse *parse, struct wl_draft *draft)
{
    struct wl_json json;
    if (wl_json_begin(&json, line, fields, FIELDS) != 0)
        return -1;
    int field;
    while ((field = wl_json_field(&json)) >= 0)
        if (read_field(&json, field, parse->options, draft) != 0)
            return -1;
    if (field == WL_JSON_ERROR || wl_json_require(&json, PROMPT, "a count of tokens") != 0 ||
        wl_json_require(&json, OUTPUT, "a count of tokens") != 0)
        return -1;
    if (wl_json_has(&json, HASH_IDS))
        return check_hashes(&json, parse, draft);
    if (draft->has_final_ids)
        return wl_json_require(&json, HASH_IDS, "the ids of the prompt");
    return check_tokens(&json, draft);
}

const struct wl_format wl_format_pagesim_jsonl = {
    .name = "pagesim_jsonl",
    .summary = "pagesim's own JSONL: arrival_ns, prompt_tokens, output_tokens and more",
    .arrival_field = "arrival_ns",
    .recognise = recognise,
    .parse = parse_line,
};
