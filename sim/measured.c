#include "sim/measured.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_MAX 1000000u
#define NAME_BYTES_MAX 200u
#define FILE_BYTES_MAX ((size_t)64 << 20)

void measured_release(struct measured *m)
{
    for (size_t i = 0; i < m->count; i++) {
        free(m->samples[i].name);
        free(m->samples[i].labels);
    }
    free(m->samples);
    *m = (struct measured){0};
}

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_FAILED, "out of memory");
}

static int add(struct measured *m, const char *name, size_t name_bytes, const char *labels, size_t label_bytes, double value,
               struct err *err)
{
    if (m->count == SAMPLES_MAX) return err_set(err, ERR_INPUT, "more than %u metrics", SAMPLES_MAX);
    if (m->count == m->capacity) {
        size_t capacity = m->capacity ? m->capacity * 2 : 256;
        struct measured_sample *grown = realloc(m->samples, capacity * sizeof *grown);
        if (!grown) return out_of_memory(err);
        m->samples = grown;
        m->capacity = capacity;
    }
    struct measured_sample *s = &m->samples[m->count];
    *s = (struct measured_sample){.name = strndup(name, name_bytes), .labels = strndup(labels, label_bytes), .value = value};
    m->count++;
    return s->name && s->labels ? 0 : out_of_memory(err);
}

/* --- lines ------------------------------------------------------------------------------------ */

static bool name_character(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_:.-/", c));
}

/* The closing brace of labels, which may hold braces and escaped quotes in their texts; or NULL. */
static const char *labels_end(const char *at)
{
    bool quoted = false;
    for (; *at; at++) {
        if (quoted && *at == '\\' && at[1]) at++;
        else if (*at == '"') quoted = !quoted;
        else if (*at == '}' && !quoted) return at;
    }
    return NULL;
}

static const char *blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* After the value there may be a time. */
static bool only_a_timestamp(const char *at)
{
    at = blanks(at);
    if (*at == '-') at++;
    at += strspn(at, "0123456789.eE+");
    return *blanks(at) == '\0';
}

static int read_line(struct measured *m, const char *line, struct err *err)
{
    const char *name = blanks(line), *at = name, *labels = "", *end;
    size_t label_bytes = 0;
    if (*name == '\0' || *name == '#') return 0;
    while (name_character(*at)) at++;
    size_t name_bytes = (size_t)(at - name);
    if (name_bytes == 0 || name_bytes > NAME_BYTES_MAX) return err_set(err, ERR_INPUT, "found '%.40s', expected the name of a metric", name);
    if (*at == '{') {
        labels = at + 1;
        end = labels_end(labels);
        if (!end) return err_set(err, ERR_INPUT, "%.60s: found labels without an end, expected '}'", name);
        label_bytes = (size_t)(end - labels);
        at = end + 1;
    }
    at = blanks(at);
    if (*at == '=' || *at == ',') at = blanks(at + 1);
    /* The head of a CSV file. */
    if (m->count == 0 && strncmp(name, "name", name_bytes) == 0 && strncmp(at, "value", 5) == 0) return 0;
    char *rest;
    double value = strtod(at, &rest);
    if (rest == at || !only_a_timestamp(rest)) return err_set(err, ERR_INPUT, "%.*s: found '%.40s', expected a number", (int)name_bytes, name, at);
    return add(m, name, name_bytes, labels, label_bytes, value, err);
}

static int read_lines(struct measured *m, FILE *file, const char *path, struct err *err)
{
    char *line = NULL;
    size_t capacity = 0, number = 0, total = 0;
    ssize_t length;
    int status = 0;
    while (status == 0 && (length = getline(&line, &capacity, file)) > 0) {
        number++;
        total += (size_t)length;
        if (total > FILE_BYTES_MAX) status = err_set(err, ERR_INPUT, "longer than 64 MiB, expected one dump of metrics");
        else if (strlen(line) != (size_t)length) status = err_set(err, ERR_INPUT, "found a byte 0, expected text");
        else status = read_line(m, line, err);
        if (status) err_prefix(err, "%s:%zu", path, number);
    }
    if (status == 0 && ferror(file)) status = err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
    free(line);
    return status;
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Names are printed; hostile ones must not reach a terminal. */
static bool printable(const char *name)
{
    for (; *name; name++) {
        if (*name < ' ' || *name > '~') return false;
    }
    return true;
}

static int read_object(struct measured *m, const char *path, json_t *object, int depth, struct err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        char key[NAME_BYTES_MAX];
        int n = snprintf(key, sizeof key, "%s%s%s", path, *path ? "." : "", name);
        if (n < 0 || (size_t)n >= sizeof key || depth > 8) return err_set(err, ERR_INPUT, "found a name that is too long or too deep, expected metrics");
        if (!printable(key)) return err_set(err, ERR_INPUT, "found a name of other characters than ASCII's, expected metrics");
        int status = 0;
        if (json_is_number(value)) status = add(m, key, (size_t)n, "", 0, json_number_value(value), err);
        else if (json_is_object(value)) status = read_object(m, key, value, depth + 1, err);
        else m->left_out++;
        if (status) return -1;
    }
    return 0;
}

static int read_json(struct measured *m, FILE *file, const char *path, struct err *err)
{
    json_error_t trouble;
    json_t *object = json_loadf(file, JSON_REJECT_DUPLICATES, &trouble);
    int status = 0;
    if (!object) status = err_set(err, ERR_INPUT, "%s:%d: %s", path, trouble.line, trouble.text);
    else if (read_object(m, "", object, 0, err)) {
        err_prefix(err, "%s", path);
        status = -1;
    }
    json_decref(object);
    return status;
}

int measured_read(struct measured *m, const char *path, struct err *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (!file) return err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
    int c;
    while ((c = getc(file)) != EOF && isspace(c)) continue;
    if (c != EOF) ungetc(c, file);
    int status = c == '{' ? read_json(m, file, path, err) : read_lines(m, file, path, err);
    if (status == 0 && m->count == 0) status = err_set(err, ERR_INPUT, "%s: found no metrics", path);
    if (file != stdin) fclose(file);
    return status;
}

/* --- differences ------------------------------------------------------------------------------ */

static bool counts(const char *name)
{
    static const char *const ends[] = {"_total", "_sum", "_count", "_bucket"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t bytes = strlen(ends[i]);
        if (length > bytes && strcmp(name + length - bytes, ends[i]) == 0) return true;
    }
    return false;
}

static int by_name(const void *pa, const void *pb)
{
    const struct measured_sample *const *a = pa, *const *b = pb;
    int order = strcmp((*a)->name, (*b)->name);
    return order ? order : strcmp((*a)->labels, (*b)->labels);
}

int measured_subtract(struct measured *m, const struct measured *earlier, const char *path, struct err *err)
{
    const struct measured_sample **sorted = calloc(earlier->count ? earlier->count : 1, sizeof *sorted);
    if (!sorted) return out_of_memory(err);
    for (size_t i = 0; i < earlier->count; i++) sorted[i] = &earlier->samples[i];
    qsort(sorted, earlier->count, sizeof *sorted, by_name);
    int status = 0;
    for (size_t i = 0; status == 0 && i < m->count; i++) {
        const struct measured_sample *key = &m->samples[i];
        const struct measured_sample **before = bsearch(&key, sorted, earlier->count, sizeof *sorted, by_name);
        if (!counts(key->name) || !before) continue;
        m->samples[i].value -= (*before)->value;
        if (m->samples[i].value < 0)
            status = err_set(err, ERR_INPUT, "%s: %.100s: found more than in the later dump, expected less: a restart lies between them", path, key->name);
    }
    free(sorted);
    return status;
}

bool measured_label(const struct measured_sample *s, const char *label, char *out, size_t bytes)
{
    size_t length = strlen(label), n = 0;
    const char *at = s->labels;
    while (*at) {
        at += strspn(at, ", \t");
        const char *name = at;
        at += strcspn(at, "=");
        bool wanted = (size_t)(at - name) == length && strncmp(name, label, length) == 0;
        if (at[0] != '=' || at[1] != '"') return false;
        for (at += 2, n = 0; *at && *at != '"'; at++) {
            if (*at == '\\' && at[1]) at++;
            if (n + 1 < bytes) out[n] = *at;
            n++;
        }
        if (*at == '"') at++;
        if (!wanted) continue;
        if (n >= bytes) return false;
        out[n] = '\0';
        return true;
    }
    return false;
}
