#include "sim/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void result_init(struct result *r)
{
    memset(r, 0, sizeof *r);
}

void result_release(struct result *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->entries[i].kind == RESULT_TEXT) free(r->entries[i].text);
        free(r->entries[i].key);
    }
    free(r->entries);
    result_init(r);
}

static struct result_entry *add(struct result *r, const char *key)
{
    static struct result_entry lost;
    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? r->capacity * 2 : 128;
        struct result_entry *grown = realloc(r->entries, capacity * sizeof *grown);
        if (!grown) {
            r->out_of_memory = true;
            return &lost;
        }
        r->entries = grown;
        r->capacity = capacity;
    }
    struct result_entry *entry = &r->entries[r->count];
    memset(entry, 0, sizeof *entry);
    entry->key = strdup(key);
    if (!entry->key) {
        r->out_of_memory = true;
        return &lost;
    }
    r->count++;
    return entry;
}

void result_null(struct result *r, const char *key)
{
    add(r, key)->kind = RESULT_NULL;
}

void result_u64(struct result *r, const char *key, uint64_t value)
{
    struct result_entry *entry = add(r, key);
    entry->kind = RESULT_U64;
    entry->u64 = value;
}

void result_f64(struct result *r, const char *key, double value)
{
    struct result_entry *entry = add(r, key);
    entry->kind = isfinite(value) ? RESULT_F64 : RESULT_NULL;
    entry->f64 = value;
}

void result_text(struct result *r, const char *key, const char *value)
{
    struct result_entry *entry = add(r, key);
    char *copy = value ? strdup(value) : NULL;
    entry->kind = copy ? RESULT_TEXT : RESULT_NULL;
    entry->text = copy;
    if (value && !copy) r->out_of_memory = true;
}

void result_bool(struct result *r, const char *key, bool value)
{
    struct result_entry *entry = add(r, key);
    entry->kind = RESULT_BOOL;
    entry->yes = value;
}

void result_ratio(struct result *r, const char *key, unsigned __int128 numerator,
                  unsigned __int128 denominator)
{
    if (denominator == 0) result_null(r, key);
    else result_f64(r, key, (double)numerator / (double)denominator);
}

const struct result_entry *result_find(const struct result *r, const char *key)
{
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->entries[i].key, key) == 0) return &r->entries[i];
    }
    return NULL;
}

bool result_number(const struct result_entry *entry, double *value)
{
    if (entry->kind == RESULT_U64) *value = (double)entry->u64;
    else if (entry->kind == RESULT_F64) *value = entry->f64;
    else if (entry->kind == RESULT_BOOL) *value = entry->yes;
    else return false;
    return true;
}

void result_format_f64(double value, char *buffer, size_t bytes)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buffer, bytes, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value) break;
    }
    if (!strpbrk(buffer, ".e")) {
        size_t length = strlen(buffer);
        if (length + 3 <= bytes) memcpy(buffer + length, ".0", 3);
    }
}

/* Length of the well-formed UTF-8 sequence at text, or 0. */
static size_t utf8_length(const unsigned char *text)
{
    unsigned char c = text[0];
    size_t length = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3
                    : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
    }
    if (length == 3 && ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] >= 0xa0))) return 0;
    if (length == 4 && ((c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] >= 0x90))) return 0;
    return length;
}

void result_write_string(const char *text, FILE *out)
{
    const unsigned char *p = (const unsigned char *)text;
    fputc('"', out);
    while (*p) {
        size_t length = utf8_length(p);
        if (length == 0) {
            fputs("\\ufffd", out);
            p++;
        } else if (*p == '"' || *p == '\\') {
            fprintf(out, "\\%c", *p++);
        } else if (*p < 0x20 || *p == 0x7f) {
            fprintf(out, "\\u%04x", *p++);
        } else {
            fwrite(p, 1, length, out);
            p += length;
        }
    }
    fputc('"', out);
}

static void write_value(const struct result_entry *entry, FILE *out)
{
    char buffer[40];
    switch (entry->kind) {
    case RESULT_NULL: fputs("null", out); break;
    case RESULT_U64: fprintf(out, "%llu", (unsigned long long)entry->u64); break;
    case RESULT_F64:
        result_format_f64(entry->f64, buffer, sizeof buffer);
        fputs(buffer, out);
        break;
    case RESULT_TEXT: result_write_string(entry->text, out); break;
    case RESULT_BOOL: fputs(entry->yes ? "true" : "false", out); break;
    }
}

/* Bytes of the objects' path that both keys share, up to and including its last dot. */
static size_t shared_path(const char *a, const char *b)
{
    size_t shared = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++) {
        if (a[i] == '.') shared = i + 1;
    }
    return shared;
}

static size_t dots_in(const char *key, size_t bytes)
{
    size_t dots = 0;
    for (size_t i = 0; i < bytes; i++) dots += key[i] == '.';
    return dots;
}

static void indent(size_t depth, FILE *out)
{
    fputc('\n', out);
    for (size_t i = 0; i < depth; i++) fputs("  ", out);
}

void result_write_json(const struct result *r, FILE *out)
{
    const char *last = "";
    size_t depth = 0; /* open objects below the outermost */
    fputc('{', out);
    for (size_t i = 0; i < r->count; i++) {
        const char *key = r->entries[i].key;
        size_t shared = shared_path(last, key), keep = dots_in(key, shared);
        for (; depth > keep; depth--) {
            indent(depth, out);
            fputc('}', out);
        }
        if (i > 0) fputc(',', out);
        for (const char *name = key + shared;;) {
            indent(depth + 1, out);
            const char *dot = strchr(name, '.');
            fprintf(out, "\"%.*s\": ", dot ? (int)(dot - name) : (int)strlen(name), name);
            if (!dot) break;
            fputc('{', out);
            depth++;
            name = dot + 1;
        }
        write_value(&r->entries[i], out);
        last = key;
    }
    for (; depth > 0; depth--) {
        indent(depth, out);
        fputc('}', out);
    }
    fputs("\n}\n", out);
}

void result_write_line(const struct result *r, FILE *out)
{
    for (size_t i = 0; i < r->count; i++) {
        fputs(i == 0 ? "{" : ", ", out);
        result_write_string(r->entries[i].key, out);
        fputs(": ", out);
        write_value(&r->entries[i], out);
    }
    fputs("}\n", out);
}
