#include "workloads/wl_csv.h"

#include <string.h>

#include "workloads/wl_number.h"

bool wl_csv_mentions(const char *header, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = header;; at++) {
        if (strncmp(at, name, length) == 0 &&
            (at[length] == ',' || at[length] == '\0' || at[length] == '\r'))
            return true;
        at = strchr(at, ',');
        if (at == NULL)
            return false;
    }
}

/* A quoted field, `at` behind the opening quote. Moves the text over the doubled quotes. Returns
 * the end of the text; *after is behind the closing quote, NULL when there is none. */
static char *unquote(char *at, char **after)
{
    char *out = at;
    for (;; at++) {
        if (*at == '\0') {
            *after = NULL;
            return out;
        }
        if (*at == '"') {
            if (at[1] != '"') {
                *after = at + 1;
                return out;
            }
            at++;
        }
        *out++ = *at;
    }
}

static int cut(struct wl_line *line, struct wl_csv_row *row)
{
    char *at = line->text;
    char *end = line->text + line->length;
    row->count = 0;
    for (;;) {
        if (row->count == WL_CSV_COLUMNS_MAX)
            return wl_line_error(line, at, NULL, "found more than %d columns, expected a trace",
                                 WL_CSV_COLUMNS_MAX);
        char *start = at;
        char *after = NULL;
        if (*at == '"') {
            start++;
            char *text_end = unquote(start, &after);
            if (after == NULL || (after != end && *after != ','))
                return wl_line_unexpected(line, after == NULL ? end : after, NULL,
                                          "a closing quote and ','");
            row->length[row->count] = (size_t)(text_end - start);
        } else {
            after = memchr(at, ',', (size_t)(end - at));
            if (after == NULL)
                after = end;
            row->length[row->count] = (size_t)(after - start);
        }
        row->at[row->count++] = start;
        if (after == end)
            return 0;
        at = after + 1;
    }
}

static int map_column(struct wl_line *line, const struct wl_csv_row *row, size_t i,
                      const char *const *names, size_t names_count, struct wl_columns *columns)
{
    columns->field[i] = WL_CSV_UNKNOWN;
    for (size_t n = 0; n < names_count; n++) {
        if (strlen(names[n]) != row->length[i] || memcmp(names[n], row->at[i], row->length[i]) != 0)
            continue;
        for (size_t before = 0; before < i; before++)
            if (columns->field[before] == n)
                return wl_line_error(line, row->at[i], NULL, "found column '%s' again, expected "
                                     "each column once", names[n]);
        columns->field[i] = (uint8_t)n;
    }
    return 0;
}

int wl_csv_header(struct wl_line *line, const char *const *names, size_t names_count,
                  uint32_t required, struct wl_columns *columns)
{
    struct wl_csv_row row;
    if (cut(line, &row) != 0)
        return -1;
    columns->count = row.count;
    uint32_t seen = 0;
    for (size_t i = 0; i < row.count; i++) {
        if (map_column(line, &row, i, names, names_count, columns) != 0)
            return -1;
        if (columns->field[i] != WL_CSV_UNKNOWN)
            seen |= (uint32_t)1 << columns->field[i];
    }
    for (size_t n = 0; n < names_count; n++)
        if ((required >> n & 1) != 0 && (seen >> n & 1) == 0)
            return wl_line_error(line, NULL, names[n], "found no such column, expected one");
    return 0;
}

int wl_csv_split(struct wl_line *line, const struct wl_columns *columns, struct wl_csv_row *row)
{
    if (cut(line, row) != 0)
        return -1;
    if (row->count != columns->count)
        return wl_line_error(line, NULL, NULL, "found %zu fields, expected %zu as in the header",
                             row->count, columns->count);
    return 0;
}

int wl_csv_u64(const struct wl_line *line, const struct wl_csv_row *row, size_t i,
               const char *name, uint64_t max, const char *expected, uint64_t *value)
{
    const char *end;
    enum wl_number rc = wl_number_u64(row->at[i], &end, value);
    if (rc != WL_NUMBER_OK || end != row->at[i] + row->length[i] || *value > max)
        return wl_line_unexpected(line, row->at[i], name, expected);
    return 0;
}

int wl_csv_tokens(const struct wl_line *line, const struct wl_csv_row *row, size_t i,
                  const char *name, uint64_t *value)
{
    return wl_csv_u64(line, row, i, name, WL_TOKENS_MAX, "a count of tokens up to 2^32", value);
}

int wl_csv_time(const struct wl_line *line, const struct wl_csv_row *row, size_t i,
                const char *name, uint64_t unit_ns, uint64_t *value)
{
    const char *end;
    enum wl_number rc = wl_number_scaled(row->at[i], &end, unit_ns, WL_TIME_NS_MAX, value);
    if (rc != WL_NUMBER_OK || end != row->at[i] + row->length[i])
        return wl_line_unexpected(line, row->at[i], name, "a time, 0 or later");
    return 0;
}
