/* Mooncake's traces and what derives from them: one object a line, `timestamp` in milliseconds,
 * `input_length`, `output_length`, `hash_ids` of the prompt. An id stands for a block and all
 * blocks before it; the last, partial block may have one or not. */
#include "workloads/wl_format.h"

enum { TIMESTAMP, INPUT, OUTPUT, HASH_IDS, FINAL_IDS, SESSION, DELAY, FIELDS };

static const char *const fields[FIELDS] = {
    "timestamp", "input_length", "output_length", "hash_ids",
    "final_hash_ids", "session_id", "delay",
};

enum { MS_NS = 1000000, MOONCAKE_BLOCK_TOKENS = 512 };

static bool recognise(const char *line)
{
    return wl_json_mentions(line, "input_length") && wl_json_mentions(line, "output_length") &&
           wl_json_mentions(line, "timestamp") && !wl_json_mentions(line, "chat_id");
}

static int read_field(struct wl_json *json, int field, struct wl_draft *draft)
{
    switch (field) {
    case TIMESTAMP:
        draft->has_arrival = true;
        draft->arrival_at = json->at;
        return wl_json_time(json, MS_NS, &draft->request.arrival_ns);
    case INPUT:
        return wl_json_tokens(json, &draft->request.prompt_tokens);
    case OUTPUT:
        return wl_json_tokens(json, &draft->request.output_tokens);
    case HASH_IDS:
        return wl_json_ids(json, &draft->hash_ids);
    case FINAL_IDS:
        draft->has_final_ids = true;
        return wl_json_ids(json, &draft->final_hash_ids);
    case SESSION:
        return wl_json_name(json, &draft->text, &draft->session_at);
    default:
        /* Such rows hold the new tokens only and wait for the turn before: something else. */
        return wl_line_error(json->line, json->at, "delay", "found a turn that waits for the one "
                             "before, expected whole prompts with a timestamp");
    }
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
    if (field == WL_JSON_ERROR || wl_json_require(&json, INPUT, "a count of tokens") != 0 ||
        wl_json_require(&json, OUTPUT, "a count of tokens") != 0 ||
        wl_json_require(&json, TIMESTAMP, "a time") != 0)
        return -1;
    if (!wl_json_has(&json, HASH_IDS)) {
        if (draft->has_final_ids)
            return wl_json_require(&json, HASH_IDS, "the ids of the prompt");
        return 0;
    }
    uint32_t given = parse->options->trace_block_tokens;
    draft->request.trace_block_tokens = given != 0 ? given : MOONCAKE_BLOCK_TOKENS;
    if (wl_draft_check_hashes(draft, line, json.value_at[HASH_IDS], json.value_at[FINAL_IDS]) != 0)
        return -1;
    return wl_draft_hash_content(draft) == 0 ? 0 : wl_line_out_of_memory(line);
}

const struct wl_format wl_format_mooncake_jsonl = {
    .name = "mooncake_jsonl",
    .summary = "Mooncake's JSONL: timestamp (ms), input_length, output_length, hash_ids",
    .arrival_field = "timestamp",
    .recognise = recognise,
    .parse = parse_line,
};
