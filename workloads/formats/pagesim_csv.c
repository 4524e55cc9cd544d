/* pagesim's own CSV: the JSONL's names as columns, without the arrays. An empty field is an absent
 * one. */
#include "workloads/wl_format.h"
#include "workloads/wl_number.h"

enum {
    ID, ARRIVAL_NS, ARRIVAL, PROMPT, OUTPUT, MAX_TOKENS, SAMPLES, SESSION, PARENT, ABORT, PRIORITY,
    FIELDS
};

static const char *const fields[FIELDS] = {
    "id", "arrival_ns", "arrival", "prompt_tokens", "output_tokens", "max_tokens", "n", "session",
    "parent", "abort_ns", "priority",
};

static bool recognise(const char *line)
{
    return wl_csv_mentions(line, "prompt_tokens") || wl_csv_mentions(line, "output_tokens") ||
           wl_csv_mentions(line, "arrival_ns");
}

static int read_header(struct wl_line *line, struct wl_parse *parse)
{
    if (wl_csv_header(line, fields, FIELDS, 1u << PROMPT | 1u << OUTPUT, &parse->columns) != 0)
        return -1;
    bool arrival = false, arrival_ns = false;
    for (size_t i = 0; i < parse->columns.count; i++) {
        arrival = arrival || parse->columns.field[i] == ARRIVAL;
        arrival_ns = arrival_ns || parse->columns.field[i] == ARRIVAL_NS;
    }
    if (arrival && arrival_ns)
        return wl_line_error(line, NULL, "arrival", "found beside arrival_ns, expected one of the "
                             "two");
    return 0;
}

static int read_name(const struct wl_line *line, const struct wl_csv_row *row, size_t i,
                     struct wl_draft *draft, size_t *at)
{
    *at = draft->text.count;
    if (wl_text_append(&draft->text, row->at[i], row->length[i]) != 0 ||
        wl_text_append(&draft->text, "", 1) != 0)
        return wl_line_out_of_memory(line);
    return 0;
}

static int read_samples(const struct wl_line *line, const struct wl_csv_row *row, size_t i,
                        struct wl_draft *draft)
{
    const char *expected = "a count of samples, 1 to 65536";
    uint64_t samples = 0;
    if (wl_csv_u64(line, row, i, "n", WL_SAMPLES_MAX, expected, &samples) != 0)
        return -1;
    if (samples == 0)
        return wl_line_unexpected(line, row->at[i], "n", expected);
    draft->request.samples = (uint32_t)samples;
    return 0;
}

static int read_priority(const struct wl_line *line, const struct wl_csv_row *row, size_t i,
                         struct wl_draft *draft)
{
    const char *end;
    if (wl_number_i64(row->at[i], &end, &draft->request.priority) != WL_NUMBER_OK ||
        end != row->at[i] + row->length[i])
        return wl_line_unexpected(line, row->at[i], "priority", "an integer");
    return 0;
}

static int read_arrival(const struct wl_line *line, const struct wl_csv_row *row, size_t i,
                        uint64_t unit_ns, const char *name, struct wl_draft *draft)
{
    draft->has_arrival = true;
    draft->arrival_at = row->at[i];
    if (unit_ns > 1)
        return wl_csv_time(line, row, i, name, unit_ns, &draft->request.arrival_ns);
    return wl_csv_u64(line, row, i, name, WL_TIME_NS_MAX, "a time in whole nanoseconds up to 2^62",
                      &draft->request.arrival_ns);
}

static int read_field(const struct wl_line *line, const struct wl_csv_row *row, size_t i, int field,
                      const struct wl_options *options, struct wl_draft *draft)
{
    struct wl_request *request = &draft->request;
    switch (field) {
    case ID:
        return read_name(line, row, i, draft, &draft->id_at);
    case SESSION:
        return read_name(line, row, i, draft, &draft->session_at);
    case PARENT:
        return read_name(line, row, i, draft, &draft->parent_at);
    case ARRIVAL_NS:
        return read_arrival(line, row, i, 1, fields[field], draft);
    case ARRIVAL:
        return read_arrival(line, row, i, options->time_unit_ns, fields[field], draft);
    case PROMPT:
        return wl_csv_tokens(line, row, i, fields[field], &request->prompt_tokens);
    case OUTPUT:
        return wl_csv_tokens(line, row, i, fields[field], &request->output_tokens);
    case MAX_TOKENS:
        return wl_csv_tokens(line, row, i, fields[field], &request->max_tokens);
    case SAMPLES:
        return read_samples(line, row, i, draft);
    case ABORT:
        return wl_csv_u64(line, row, i, fields[field], WL_TIME_NS_MAX,
                          "a time in whole nanoseconds up to 2^62", &request->abort_ns);
    default:
        return read_priority(line, row, i, draft);
    }
}

static int parse_line(struct wl_line *line, const struct wl_parse *parse, struct wl_draft *draft)
{
    struct wl_csv_row row;
    if (wl_csv_split(line, &parse->columns, &row) != 0)
        return -1;
    for (size_t i = 0; i < row.count; i++) {
        int field = parse->columns.field[i];
        bool absent = row.length[i] == 0 && field != PROMPT && field != OUTPUT;
        if (field == WL_CSV_UNKNOWN || absent)
            continue;
        if (read_field(line, &row, i, field, parse->options, draft) != 0)
            return -1;
    }
    return 0;
}

const struct wl_format wl_format_pagesim_csv = {
    .name = "pagesim_csv",
    .summary = "pagesim's own CSV: arrival_ns, prompt_tokens, output_tokens and more, no content",
    .arrival_field = "arrival_ns",
    .recognise = recognise,
    .header = read_header,
    .parse = parse_line,
};
