/* Azure's LLM inference traces: TIMESTAMP,ContextTokens,GeneratedTokens with a calendar stamp to
 * 100 ns (2023) or 1 us and a zone of +00:00 (2024). */
#include "workloads/wl_format.h"

enum { TIMESTAMP, CONTEXT, GENERATED, FIELDS };

static const char *const fields[FIELDS] = { "TIMESTAMP", "ContextTokens", "GeneratedTokens" };

enum { NS_DIGITS = 9, DAY_S = 86400 };

static bool recognise(const char *line)
{
    return wl_csv_mentions(line, "TIMESTAMP") && wl_csv_mentions(line, "ContextTokens");
}

static int read_header(struct wl_line *line, struct wl_parse *parse)
{
    return wl_csv_header(line, fields, FIELDS, (1u << FIELDS) - 1, &parse->columns);
}

/* `count` digits, then `after` (0: none). Returns whether they are there; moves *at behind. */
static bool take(const char **at, int count, char after, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *value = *value * 10 + (uint32_t)(**at - '0');
    }
    if (after == '\0')
        return true;
    if (**at != after)
        return false;
    (*at)++;
    return true;
}

/* Days from 1970-01-01 in the Gregorian calendar, years from 1970 on. March counts as the first
 * month, so that the leap day is the last day of its year. */
static uint64_t days_since_1970(uint32_t year, uint32_t month, uint32_t day)
{
    uint64_t y = month > 2 ? year : year - 1;
    uint64_t months = (month + 9) % 12;
    uint64_t days_before_month = (153 * months + 2) / 5;
    return 365 * y + y / 4 - y / 100 + y / 400 + days_before_month + day - 1 - 719468;
}

static bool read_fraction(const char **at, uint64_t *ns)
{
    *ns = 0;
    if (**at != '.')
        return true;
    (*at)++;
    int digits = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++, digits++) {
        if (digits == NS_DIGITS)
            return false;
        *ns = *ns * 10 + (uint64_t)(**at - '0');
    }
    for (int i = digits; i < NS_DIGITS; i++)
        *ns *= 10;
    return digits > 0;
}

static bool read_zone(const char **at)
{
    static const char zone[] = "+00:00";
    if (**at != '+')
        return true;
    for (const char *z = zone; *z != '\0'; z++, (*at)++)
        if (**at != *z)
            return false;
    return true;
}

static bool read_stamp(const char *at, const char *end, uint64_t *ns)
{
    uint32_t year, month, day, hour, minute, second;
    uint64_t fraction_ns;
    if (!take(&at, 4, '-', &year) || !take(&at, 2, '-', &month) || !take(&at, 2, ' ', &day) ||
        !take(&at, 2, ':', &hour) || !take(&at, 2, ':', &minute) || !take(&at, 2, '\0', &second) ||
        !read_fraction(&at, &fraction_ns) || !read_zone(&at) || at != end)
        return false;
    if (year < 1970 || year > 2100 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 ||
        minute > 59 || second > 60)
        return false;
    uint64_t seconds = days_since_1970(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second;
    *ns = seconds * 1000000000 + fraction_ns;
    return true;
}

static int parse_line(struct wl_line *line, const struct wl_parse *parse, struct wl_draft *draft)
{
    struct wl_csv_row row;
    if (wl_csv_split(line, &parse->columns, &row) != 0)
        return -1;
    draft->has_arrival = true;
    draft->is_calendar = true;
    for (size_t i = 0; i < row.count; i++) {
        int rc = 0;
        switch (parse->columns.field[i]) {
        case TIMESTAMP:
            draft->arrival_at = row.at[i];
            if (!read_stamp(row.at[i], row.at[i] + row.length[i], &draft->request.arrival_ns))
                rc = wl_line_unexpected(line, row.at[i], fields[TIMESTAMP],
                                        "a time YYYY-MM-DD HH:MM:SS.fffffff");
            break;
        case CONTEXT:
            rc = wl_csv_tokens(line, &row, i, fields[CONTEXT], &draft->request.prompt_tokens);
            break;
        case GENERATED:
            rc = wl_csv_tokens(line, &row, i, fields[GENERATED], &draft->request.output_tokens);
            break;
        default:
            break;
        }
        if (rc != 0)
            return -1;
    }
    return 0;
}

const struct wl_format wl_format_azure_csv = {
    .name = "azure_csv",
    .summary = "Azure LLM inference traces: TIMESTAMP,ContextTokens,GeneratedTokens",
    .arrival_field = "TIMESTAMP",
    .recognise = recognise,
    .header = read_header,
    .parse = parse_line,
};
