/* The traces of the golden vLLM cases: id, arrival (a step number), output_length, and the prompt as
 * token ids, as ranges, or as hash ids with input_length. The arrival is given out as it is: step s
 * is s "nanoseconds", which the caller scales by the length of a step. */
#include "workloads/wl_format.h"

enum {
    ID, ARRIVAL, OUTPUT_LENGTH, PROMPT, RANGES, HASH_IDS, INPUT_LENGTH, OUTPUT, OUTPUT_RANGES, FIELDS
};

static const char *const fields[FIELDS] = {
    "id", "arrival", "output_length", "prompt", "ranges", "hash_ids", "input_length", "output",
    "output_ranges",
};

static bool recognise(const char *line)
{
    return wl_json_mentions(line, "arrival") && wl_json_mentions(line, "output_length");
}

static int read_field(struct wl_json *json, int field, struct wl_draft *draft)
{
    struct wl_request *request = &draft->request;
    switch (field) {
    case ID:
        return wl_json_name(json, &draft->text, &draft->id_at);
    case ARRIVAL:
        draft->has_arrival = true;
        draft->arrival_at = json->at;
        return wl_json_u64(json, WL_TIME_NS_MAX, "a step number", &request->arrival_ns);
    case OUTPUT_LENGTH:
        return wl_json_tokens(json, &request->output_tokens);
    case INPUT_LENGTH:
        return wl_json_tokens(json, &request->prompt_tokens);
    case PROMPT:
        return wl_json_token_ids(json, &draft->prompt);
    case RANGES:
        return wl_json_ranges(json, &draft->prompt);
    case HASH_IDS:
        return wl_json_ids(json, &draft->hash_ids);
    case OUTPUT:
        return wl_json_token_ids(json, &draft->output);
    default:
        return wl_json_ranges(json, &draft->output);
    }
}

static int check_content(const struct wl_json *json, const struct wl_parse *parse,
                         struct wl_draft *draft)
{
    struct wl_line *line = json->line;
    int forms = wl_json_has(json, PROMPT) + wl_json_has(json, RANGES) + wl_json_has(json, HASH_IDS);
    if (forms != 1 || (wl_json_has(json, OUTPUT) && wl_json_has(json, OUTPUT_RANGES)))
        return wl_line_error(line, NULL, "prompt", "found %d forms of the prompt, expected one of "
                             "prompt, ranges, hash_ids and at most one of the output", forms);
    if (wl_json_has(json, HASH_IDS)) {
        if (wl_json_require(json, INPUT_LENGTH, "a count of tokens") != 0)
            return -1;
        draft->request.trace_block_tokens = parse->options->trace_block_tokens;
        if (draft->request.trace_block_tokens == 0)
            return wl_line_error(line, json->value_at[HASH_IDS], "hash_ids", "found ids of unknown "
                                 "size, expected --trace-block-size");
        if (draft->output.count > 0)
            return wl_line_error(line, json->value_at[HASH_IDS], "hash_ids", "found beside token "
                                 "ids of the output, expected one kind of content");
        if (wl_draft_check_hashes(draft, line, json->value_at[HASH_IDS], NULL) != 0)
            return -1;
        return wl_draft_hash_content(draft) == 0 ? 0 : wl_line_out_of_memory(line);
    }
    draft->request.has_content = true;
    draft->request.prompt_tokens = wl_spans_tokens(&draft->prompt);
    if (draft->request.prompt_tokens == WL_NONE)
        return wl_line_error(line, NULL, "ranges", "found more than 2^32 tokens, expected fewer");
    if (wl_spans_tokens(&draft->output) > draft->request.output_tokens)
        return wl_line_error(line, NULL, "output", "found more tokens than output_length says, "
                             "expected at most as many");
    return 0;
}

static int parse_line(struct wl_line *line, const struct wl_parse *parse, struct wl_draft *draft)
{
    struct wl_json json;
    if (wl_json_begin(&json, line, fields, FIELDS) != 0)
        return -1;
    int field;
    while ((field = wl_json_field(&json)) >= 0)
        if (read_field(&json, field, draft) != 0)
            return -1;
    if (field == WL_JSON_ERROR || wl_json_require(&json, ARRIVAL, "a step number") != 0 ||
        wl_json_require(&json, OUTPUT_LENGTH, "a count of tokens") != 0)
        return -1;
    return check_content(&json, parse, draft);
}

const struct wl_format wl_format_vllm_case_jsonl = {
    .name = "vllm_case_jsonl",
    .summary = "golden vLLM cases: arrival (step), output_length, prompt | ranges | hash_ids",
    .arrival_field = "arrival",
    .recognise = recognise,
    .parse = parse_line,
};
