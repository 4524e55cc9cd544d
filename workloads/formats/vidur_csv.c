/* The CSV of Vidur, Sarathi-Serve and vAttention: num_prefill_tokens,num_decode_tokens, with
 * arrived_at (seconds) in the replay form and without it in the length form. Some files write whole
 * numbers as 7564.0, so a fraction is cut off. */
#include "workloads/wl_format.h"
#include "workloads/wl_number.h"

enum { ARRIVED, PREFILL, DECODE, FIELDS };

static const char *const fields[FIELDS] = { "arrived_at", "num_prefill_tokens", "num_decode_tokens" };

enum { S_NS = 1000000000 };

static bool recognise(const char *line)
{
    return wl_csv_mentions(line, "num_prefill_tokens") && wl_csv_mentions(line, "num_decode_tokens");
}

static int read_header(struct wl_line *line, struct wl_parse *parse)
{
    return wl_csv_header(line, fields, FIELDS, 1u << PREFILL | 1u << DECODE, &parse->columns);
}

static int read_tokens(const struct wl_line *line, const struct wl_csv_row *row, size_t i,
                       const char *name, uint64_t *value)
{
    const char *end;
    const char *row_end = row->at[i] + row->length[i];
    enum wl_number rc = wl_number_u64(row->at[i], &end, value);
    if (rc == WL_NUMBER_OK && end < row_end && *end == '.')
        for (end++; end < row_end && *end >= '0' && *end <= '9'; end++)
            ;
    if (rc != WL_NUMBER_OK || end != row_end || *value > WL_TOKENS_MAX)
        return wl_line_unexpected(line, row->at[i], name, "a count of tokens up to 2^32");
    return 0;
}

static int parse_line(struct wl_line *line, const struct wl_parse *parse, struct wl_draft *draft)
{
    struct wl_csv_row row;
    if (wl_csv_split(line, &parse->columns, &row) != 0)
        return -1;
    for (size_t i = 0; i < row.count; i++) {
        int rc = 0;
        int field = parse->columns.field[i];
        if (field == ARRIVED) {
            draft->has_arrival = true;
            draft->arrival_at = row.at[i];
            rc = wl_csv_time(line, &row, i, fields[field], S_NS, &draft->request.arrival_ns);
        } else if (field == PREFILL) {
            rc = read_tokens(line, &row, i, fields[field], &draft->request.prompt_tokens);
        } else if (field == DECODE) {
            rc = read_tokens(line, &row, i, fields[field], &draft->request.output_tokens);
        }
        if (rc != 0)
            return -1;
    }
    return 0;
}

const struct wl_format wl_format_vidur_csv = {
    .name = "vidur_csv",
    .summary = "Vidur, Sarathi, vAttention: [arrived_at,]num_prefill_tokens,num_decode_tokens",
    .arrival_field = "arrived_at",
    .recognise = recognise,
    .header = read_header,
    .parse = parse_line,
};
