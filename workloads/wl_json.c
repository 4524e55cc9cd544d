#include "workloads/wl_json.h"

#include <string.h>

#include "workloads/wl_number.h"

static inline void skip_space(struct wl_json *json)
{
    while (*json->at == ' ' || *json->at == '\t' || *json->at == '\r' || *json->at == '\n')
        json->at++;
}

static const char *field_name(const struct wl_json *json)
{
    return json->field >= 0 ? json->names[json->field] : NULL;
}

static int unexpected(const struct wl_json *json, const char *at, const char *expected)
{
    return wl_line_unexpected(json->line, at, field_name(json), expected);
}

int wl_json_begin(struct wl_json *json, struct wl_line *line, const char *const *names,
                  size_t names_count)
{
    json->line = line;
    json->at = line->text;
    json->names = names;
    json->names_count = names_count;
    json->field = -1;
    json->first = true;
    json->seen = 0;
    json->unknown_count = 0;
    skip_space(json);
    if (*json->at != '{')
        return unexpected(json, json->at, "an object '{'");
    json->at++;
    return 0;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Moves behind a string. *begin, *end: what stands between the quotes. */
static int scan_string(struct wl_json *json, const char **begin, const char **end)
{
    if (*json->at != '"')
        return unexpected(json, json->at, "a string");
    const char *at = json->at + 1;
    *begin = at;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20)
            return unexpected(json, at, "the closing quote of a string");
        if (*at != '\\')
            continue;
        at++;
        if (*at == 'u') {
            for (int i = 0; i < 4; i++, at++)
                if (!is_hex(at[1]))
                    return unexpected(json, at + 1, "a hexadecimal digit");
        } else if (*at == '\0' || strchr("\"\\/bfnrt", *at) == NULL) {
            return unexpected(json, at, "an escape");
        }
    }
    *end = at;
    json->at = at + 1;
    return 0;
}

static uint32_t hex4(const char *at)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t c = (uint32_t)(unsigned char)at[i];
        uint32_t digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        value = value << 4 | digit;
    }
    return value;
}

static size_t put_utf8(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint32_t lead[4] = { 0, 0xc0, 0xe0, 0xf0 };
    out[0] = (char)(lead[more] | code >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3f));
    return more + 1;
}

/* One escape, `at` behind the backslash. Returns the bytes it took, 0 when a surrogate stands
 * alone or the character is NUL, which names cannot hold. */
static size_t decode_escape(const char *at, const char *end, char out[4], size_t *count)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (*at != 'u') {
        out[0] = to[strchr(from, *at) - from];
        *count = 1;
        return 1;
    }
    uint32_t code = hex4(at + 1);
    size_t taken = 5;
    if (code >= 0xd800 && code < 0xdc00 && end - at >= 11 && at[5] == '\\' && at[6] == 'u') {
        uint32_t low = hex4(at + 7);
        if (low < 0xdc00 || low > 0xdfff)
            return 0;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        taken = 11;
    } else if (code == 0 || (code >= 0xd800 && code <= 0xdfff)) {
        return 0;
    }
    *count = put_utf8(code, out);
    return taken;
}

/* Appends the string with its escapes resolved and a '\0'. */
static int append_string(struct wl_json *json, const char *at, const char *end,
                         struct wl_text *text)
{
    while (at < end) {
        const char *plain = at;
        while (at < end && *at != '\\')
            at++;
        if (wl_text_append(text, plain, (size_t)(at - plain)) != 0)
            return wl_line_out_of_memory(json->line);
        if (at == end)
            break;
        char bytes[4];
        size_t count = 0;
        size_t taken = decode_escape(at + 1, end, bytes, &count);
        if (taken == 0)
            return unexpected(json, at, "a character");
        if (wl_text_append(text, bytes, count) != 0)
            return wl_line_out_of_memory(json->line);
        at += 1 + taken;
    }
    return wl_text_append(text, "", 1) == 0 ? 0 : wl_line_out_of_memory(json->line);
}

static int find_field(const struct wl_json *json, const char *key, size_t length)
{
    for (size_t i = 0; i < json->names_count; i++)
        if (strncmp(json->names[i], key, length) == 0 && json->names[i][length] == '\0')
            return (int)i;
    return -1;
}

static int repeated(const struct wl_json *json, const char *key, size_t length)
{
    int shown = length < 100 ? (int)length : 100;
    return wl_line_error(json->line, key, NULL, "found key '%.*s' again, expected each key once",
                         shown, key);
}

/* Keys are compared as written: one that uses escapes is an unknown key. */
static int remember_unknown(struct wl_json *json, const char *key, size_t length)
{
    for (size_t i = 0; i < json->unknown_count; i++)
        if (json->unknown[i].length == length && memcmp(json->unknown[i].text, key, length) == 0)
            return repeated(json, key, length);
    if (json->unknown_count == WL_JSON_UNKNOWN_MAX)
        return wl_line_error(json->line, key, NULL, "found more than %d unknown keys, expected a "
                             "request", WL_JSON_UNKNOWN_MAX);
    json->unknown[json->unknown_count].text = key;
    json->unknown[json->unknown_count++].length = length;
    return 0;
}

/* Moves to the next key's value. 1: *key is the key; 0: the object has ended; -1. */
static int next_key(struct wl_json *json, const char **key, size_t *length)
{
    json->field = -1;
    skip_space(json);
    if (*json->at == '}') {
        json->at++;
        return 0;
    }
    if (!json->first) {
        if (*json->at != ',')
            return unexpected(json, json->at, "',' or '}'");
        json->at++;
        skip_space(json);
    }
    json->first = false;
    if (*json->at != '"')
        return unexpected(json, json->at, "a key in quotes");
    const char *end = NULL;
    if (scan_string(json, key, &end) != 0)
        return -1;
    *length = (size_t)(end - *key);
    skip_space(json);
    if (*json->at != ':')
        return unexpected(json, json->at, "':'");
    json->at++;
    skip_space(json);
    return 1;
}

int wl_json_field(struct wl_json *json)
{
    for (;;) {
        const char *key = NULL;
        size_t length = 0;
        int rc = next_key(json, &key, &length);
        if (rc < 0)
            return WL_JSON_ERROR;
        if (rc == 0) {
            skip_space(json);
            if (json->at != json->line->text + json->line->length)
                return unexpected(json, json->at, "the end of the line"), WL_JSON_ERROR;
            return WL_JSON_END;
        }
        int field = find_field(json, key, length);
        if (field >= 0) {
            if (wl_json_has(json, field))
                return repeated(json, key, length), WL_JSON_ERROR;
            json->seen |= (uint32_t)1 << field;
            json->value_at[field] = json->at;
            json->field = field;
            return field;
        }
        if (remember_unknown(json, key, length) != 0 || wl_json_skip(json) != 0)
            return WL_JSON_ERROR;
    }
}

int wl_json_require(const struct wl_json *json, int field, const char *expected)
{
    if (wl_json_has(json, field))
        return 0;
    return wl_line_error(json->line, NULL, json->names[field], "found no such key, expected %s",
                         expected);
}

static inline bool ends_value(char c)
{
    return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\0' || c == '\t' || c == '\r';
}

int wl_json_u64(struct wl_json *json, uint64_t max, const char *expected, uint64_t *value)
{
    const char *end;
    enum wl_number rc = wl_number_u64(json->at, &end, value);
    if (rc != WL_NUMBER_OK || !ends_value(*end) || *value > max)
        return unexpected(json, json->at, expected);
    json->at = end;
    return 0;
}

int wl_json_tokens(struct wl_json *json, uint64_t *value)
{
    return wl_json_u64(json, WL_TOKENS_MAX, "a count of tokens up to 2^32", value);
}

int wl_json_i64(struct wl_json *json, int64_t *value)
{
    const char *end;
    enum wl_number rc = wl_number_i64(json->at, &end, value);
    if (rc != WL_NUMBER_OK || !ends_value(*end))
        return unexpected(json, json->at, "an integer");
    json->at = end;
    return 0;
}

int wl_json_time(struct wl_json *json, uint64_t unit_ns, uint64_t *value)
{
    const char *end;
    enum wl_number rc = wl_number_scaled(json->at, &end, unit_ns, WL_TIME_NS_MAX, value);
    if (rc != WL_NUMBER_OK || !ends_value(*end))
        return unexpected(json, json->at, "a time, 0 or later");
    json->at = end;
    return 0;
}

static bool take_word(struct wl_json *json, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(json->at, word, length) != 0 || !ends_value(json->at[length]))
        return false;
    json->at += length;
    return true;
}

int wl_json_name(struct wl_json *json, struct wl_text *text, size_t *at)
{
    if (take_word(json, "null"))
        return 0;
    size_t start = text->count;
    if (*json->at == '"') {
        const char *begin, *end;
        if (scan_string(json, &begin, &end) != 0 || append_string(json, begin, end, text) != 0)
            return -1;
    } else {
        int64_t number = 0;
        const char *begin = json->at;
        if (*begin != '-' && !(*begin >= '0' && *begin <= '9'))
            return unexpected(json, begin, "a string");
        if (wl_json_i64(json, &number) != 0)
            return -1;
        if (wl_text_append(text, begin, (size_t)(json->at - begin)) != 0 ||
            wl_text_append(text, "", 1) != 0)
            return wl_line_out_of_memory(json->line);
    }
    *at = start;
    return 0;
}

static int begin_array(struct wl_json *json)
{
    if (*json->at != '[')
        return unexpected(json, json->at, "an array '['");
    json->at++;
    skip_space(json);
    return 0;
}

/* After an element: 1 when another one follows, 0 behind the closing bracket. */
static int array_goes_on(struct wl_json *json)
{
    skip_space(json);
    if (*json->at == ']') {
        json->at++;
        return 0;
    }
    if (*json->at != ',')
        return unexpected(json, json->at, "',' or ']'");
    json->at++;
    skip_space(json);
    return 1;
}

static inline bool is_digit(char c)
{
    return (unsigned)(unsigned char)c - '0' <= 9;
}

/* The hot path of traces with content: one integer of an array, from `at` on. Returns its end, or NULL,
 * reported. Up to 19 digits cannot overflow; whatever else is left to the careful reader, which also
 * makes the messages. */
static inline const char *scan_integer(struct wl_json *json, const char *at, uint64_t max,
                                       const char *expected, uint64_t *value)
{
    const char *start = at;
    uint64_t sum = (uint64_t)(unsigned char)*at - '0';
    if (sum <= 9) {
        unsigned digit;
        for (at++; (digit = (unsigned)(unsigned char)*at - '0') <= 9; at++)
            sum = sum * 10 + digit;
    }
    bool plain = at > start && at - start <= 19 && (*start != '0' || at - start == 1);
    if (plain && (*at == ',' || *at == ']') && sum <= max) {
        *value = sum;
        return at;
    }
    json->at = start;
    return wl_json_u64(json, max, expected, value) == 0 ? json->at : NULL;
}

/* Behind an element: where the next one begins, with a short cut for `,7` and `, 7`; or NULL when
 * there is none: then *rc and json->at are as after array_goes_on. */
static inline const char *scan_comma(struct wl_json *json, const char *at, int *rc)
{
    if (at[0] == ',' && is_digit(at[1]))
        return at + 1;
    if (at[0] == ',' && at[1] == ' ' && is_digit(at[2]))
        return at + 2;
    json->at = at;
    *rc = array_goes_on(json);
    return *rc > 0 ? json->at : NULL;
}

int wl_json_ids(struct wl_json *json, struct wl_ids *ids)
{
    if (begin_array(json) != 0)
        return -1;
    if (*json->at == ']') {
        json->at++;
        return 0;
    }
    int rc = 0;
    for (const char *at = json->at; at != NULL; at = scan_comma(json, at, &rc)) {
        uint64_t id;
        at = scan_integer(json, at, UINT64_MAX, "an id, an integer below 2^64", &id);
        if (at == NULL)
            return -1;
        if (wl_ids_add(ids, id) != 0)
            return wl_line_out_of_memory(json->line);
    }
    return rc;
}

int wl_json_token_ids(struct wl_json *json, struct wl_spans *spans)
{
    if (begin_array(json) != 0)
        return -1;
    if (*json->at == ']') {
        json->at++;
        return 0;
    }
    int rc = 0;
    for (const char *at = json->at; at != NULL; at = scan_comma(json, at, &rc)) {
        uint64_t token;
        at = scan_integer(json, at, INT64_MAX, "a token id, an integer below 2^63", &token);
        if (at == NULL)
            return -1;
        if (wl_spans_add(spans, 0, token, 1) != 0)
            return wl_line_out_of_memory(json->line);
    }
    return rc;
}

/* One [first, count]. */
static int read_range(struct wl_json *json, struct wl_spans *spans)
{
    uint64_t first = 0, count = 0;
    if (begin_array(json) != 0 ||
        wl_json_u64(json, INT64_MAX, "a token id, an integer below 2^63", &first) != 0)
        return -1;
    int rc = array_goes_on(json);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return unexpected(json, json->at - 1, "two numbers [first, count]");
    if (wl_json_u64(json, WL_TOKENS_MAX, "a count of tokens up to 2^32", &count) != 0)
        return -1;
    rc = array_goes_on(json);
    if (rc < 0)
        return -1;
    if (rc > 0)
        return unexpected(json, json->at, "']' after [first, count");
    if (wl_spans_add(spans, 0, first, count) != 0)
        return wl_line_out_of_memory(json->line);
    return 0;
}

int wl_json_ranges(struct wl_json *json, struct wl_spans *spans)
{
    if (begin_array(json) != 0)
        return -1;
    if (*json->at == ']') {
        json->at++;
        return 0;
    }
    int rc = 1;
    while (rc > 0)
        rc = read_range(json, spans) != 0 ? -1 : array_goes_on(json);
    return rc;
}

static int skip_scalar(struct wl_json *json)
{
    if (*json->at == '"') {
        const char *begin, *end;
        return scan_string(json, &begin, &end);
    }
    if (take_word(json, "null") || take_word(json, "true") || take_word(json, "false"))
        return 0;
    const char *start = json->at;
    uint64_t ignored = 0;
    const char *end;
    /* Only the grammar matters here: any size is fine. */
    enum wl_number rc = wl_number_scaled(start + (*start == '-'), &end, 1, UINT64_MAX, &ignored);
    if (rc == WL_NUMBER_NONE || !ends_value(*end))
        return unexpected(json, start, "a value");
    json->at = end;
    return 0;
}

/* Nested arrays and objects, without recursion: one bit a level says which kind it is. */
int wl_json_skip(struct wl_json *json)
{
    uint64_t objects = 0;
    unsigned depth = 0;
    bool opened = false; /* just behind an opening bracket: it may close at once */
    for (;;) {
        skip_space(json);
        bool in_object = depth > 0 && (objects >> (depth - 1) & 1) != 0;
        if (opened && *json->at == (in_object ? '}' : ']')) {
            json->at++;
            depth--;
        } else {
            if (in_object) {
                const char *key, *end;
                if (scan_string(json, &key, &end) != 0)
                    return -1;
                skip_space(json);
                if (*json->at != ':')
                    return unexpected(json, json->at, "':'");
                json->at++;
                skip_space(json);
            }
            if (*json->at == '{' || *json->at == '[') {
                if (depth == WL_JSON_DEPTH_MAX)
                    return unexpected(json, json->at, "at most 64 nested brackets");
                uint64_t bit = (uint64_t)1 << depth;
                objects = *json->at == '{' ? objects | bit : objects & ~bit;
                depth++;
                json->at++;
                opened = true;
                continue;
            }
            if (skip_scalar(json) != 0)
                return -1;
        }
        /* Behind a value: close what ends here, or go on to the next element. */
        opened = false;
        for (;;) {
            if (depth == 0)
                return 0;
            skip_space(json);
            in_object = (objects >> (depth - 1) & 1) != 0;
            if (*json->at == ',') {
                json->at++;
                break;
            }
            if (*json->at != (in_object ? '}' : ']'))
                return unexpected(json, json->at, in_object ? "',' or '}'" : "',' or ']'");
            json->at++;
            depth--;
        }
    }
}

bool wl_json_mentions(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = strstr(text, key); at != NULL; at = strstr(at + 1, key)) {
        if (at == text || at[-1] != '"' || at[length] != '"')
            continue;
        const char *after = at + length + 1;
        while (*after == ' ' || *after == '\t')
            after++;
        if (*after == ':')
            return true;
    }
    return false;
}
