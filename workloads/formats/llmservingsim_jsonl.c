/* LLMServingSim's flat JSONL: input_toks, output_toks, arrival_time_ns, and where present the token
 * ids of prompt and output. The form with sub_requests depends on when requests complete and is
 * refused. */
#include "workloads/wl_format.h"

enum { INPUT, OUTPUT, ARRIVAL, INPUT_IDS, OUTPUT_IDS, SUB_REQUESTS, FIELDS };

static const char *const fields[FIELDS] = {
    "input_toks", "output_toks", "arrival_time_ns", "input_tok_ids", "output_tok_ids", "sub_requests",
};

static bool recognise(const char *line)
{
    return wl_json_mentions(line, "input_toks") && wl_json_mentions(line, "output_toks");
}

static int read_field(struct wl_json *json, int field, struct wl_draft *draft)
{
    switch (field) {
    case INPUT:
        return wl_json_tokens(json, &draft->request.prompt_tokens);
    case OUTPUT:
        return wl_json_tokens(json, &draft->request.output_tokens);
    case ARRIVAL:
        draft->has_arrival = true;
        draft->arrival_at = json->at;
        return wl_json_u64(json, WL_TIME_NS_MAX, "a time in whole nanoseconds up to 2^62",
                           &draft->request.arrival_ns);
    case INPUT_IDS:
        draft->request.has_content = true;
        return wl_json_token_ids(json, &draft->prompt);
    case OUTPUT_IDS:
        return wl_json_token_ids(json, &draft->output);
    default:
        return wl_line_error(json->line, json->at, "sub_requests", "found a chain of dependent "
                             "requests, expected the flat form");
    }
}

static int check_count(const struct wl_json *json, int field, const struct wl_spans *spans,
                       uint64_t tokens)
{
    uint64_t found = wl_spans_tokens(spans);
    if (!wl_json_has(json, field) || found == tokens)
        return 0;
    return wl_line_error(json->line, json->value_at[field], fields[field], "found %llu token ids, "
                         "expected %llu", (unsigned long long)found, (unsigned long long)tokens);
}

static int parse_line(struct wl_line *line, const struct wl_parse *parse, struct wl_draft *draft)
{
    (void)parse;
    struct wl_json json;
    if (wl_json_begin(&json, line, fields, FIELDS) != 0)
        return -1;
    int field;
    while ((field = wl_json_field(&json)) >= 0)
        if (read_field(&json, field, draft) != 0)
            return -1;
    if (field == WL_JSON_ERROR || wl_json_require(&json, INPUT, "a count of tokens") != 0 ||
        wl_json_require(&json, OUTPUT, "a count of tokens") != 0 ||
        check_count(&json, INPUT_IDS, &draft->prompt, draft->request.prompt_tokens) != 0 ||
        check_count(&json, OUTPUT_IDS, &draft->output, draft->request.output_tokens) != 0)
        return -1;
    if (wl_json_has(&json, OUTPUT_IDS))
        return wl_json_require(&json, INPUT_IDS, "the prompt's ids beside the output's");
    return 0;
}

const struct wl_format wl_format_llmservingsim_jsonl = {
    .name = "llmservingsim_jsonl",
    .summary = "LLMServingSim's flat JSONL: input_toks, output_toks, arrival_time_ns, token ids",
    .arrival_field = "arrival_time_ns",
    .recognise = recognise,
    .parse = parse_line,
};
