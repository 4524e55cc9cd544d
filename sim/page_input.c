/* Reads results back: the nested object of `run --json`, or the flat lines of a sweep. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/page.h"

const char *const page_detail_options[DETAIL_COUNT] = {"timeline", "events", "oom-log", "memory-map"};
const char *const page_detail_files[DETAIL_COUNT] = {"timeline.csv", "events.csv", "oom-log.csv", "memory-map.jsonl"};

#define KEY_BYTES 128
#define KEY_DEPTH_MAX 8

void page_input_release(struct page_input *in)
{
    for (size_t i = 0; i < in->count; i++) {
        result_release(&in->results[i]);
        for (int d = 0; d < DETAIL_COUNT; d++) free(in->files[i].path[d]);
    }
    free(in->results);
    free(in->files);
    memset(in, 0, sizeof *in);
}

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_FAILED, "out of memory");
}

static int grow(struct page_input *in, struct err *err)
{
    size_t capacity = in->capacity ? in->capacity * 2 : 16;
    struct result *results = realloc(in->results, capacity * sizeof *results);
    if (results) in->results = results;
    struct page_files *files = results ? realloc(in->files, capacity * sizeof *files) : NULL;
    if (files) in->files = files;
    if (!files) return out_of_memory(err);
    in->capacity = capacity;
    return 0;
}

int page_input_add(struct page_input *in, struct result *result, struct err *err)
{
    if (in->count == PAGE_RUNS_MAX)
        return err_set(err, ERR_USAGE, "more than %u results, expected fewer in one report", PAGE_RUNS_MAX);
    if (in->count == in->capacity && grow(in, err)) return -1;
    in->results[in->count] = *result;
    memset(&in->files[in->count], 0, sizeof in->files[0]);
    in->count++;
    result_init(result);
    return 0;
}

int page_input_attach(struct page_input *in, size_t i, enum page_detail detail, const char *path, struct err *err)
{
    char *copy = strdup(path);
    if (!copy) return out_of_memory(err);
    free(in->files[i].path[detail]);
    in->files[i].path[detail] = copy;
    return 0;
}

static void add_value(struct result *r, const char *key, const json_t *value)
{
    if (json_is_integer(value) && json_integer_value(value) >= 0) result_u64(r, key, (uint64_t)json_integer_value(value));
    else if (json_is_number(value)) result_f64(r, key, json_number_value(value));
    else if (json_is_string(value)) result_text(r, key, json_string_value(value));
    else if (json_is_boolean(value)) result_bool(r, key, json_is_true(value));
    else result_null(r, key); /* lists are not figures */
}

/* Objects become dotted keys, as a sweep's line has them. -1: nested or named beyond what the program writes. */
static int flatten(struct result *r, const char *path, json_t *object, int depth)
{
    char key[KEY_BYTES];
    const char *name;
    json_t *value;
    if (depth == KEY_DEPTH_MAX) return -1;
    json_object_foreach(object, name, value) {
        int n = snprintf(key, sizeof key, "%s%s%s", path, *path ? "." : "", name);
        if (n < 0 || (size_t)n >= sizeof key) return -1;
        if (!json_is_object(value)) add_value(r, key, value);
        else if (flatten(r, key, value, depth + 1)) return -1;
    }
    return 0;
}

/* A page without these would say nothing. */
static int check(const struct result *r, const char *path, size_t number, struct err *err)
{
    static const char *const needed[] = {"policy", "pool_bytes", "requests", "refusals.episodes"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (result_find(r, needed[i])) continue;
        return err_set(err, ERR_INPUT, "%s: object %zu: found no '%s', expected a result of 'pagesim run --json' or 'sweep'",
                       path, number, needed[i]);
    }
    return 0;
}

static int add_object(struct page_input *in, json_t *object, const char *path, size_t number, struct err *err)
{
    struct result r;
    result_init(&r);
    int status = 0;
    if (!json_is_object(object))
        status = err_set(err, ERR_INPUT, "%s: object %zu: found a list, expected an object", path, number);
    else if (flatten(&r, "", object, 0))
        status = err_set(err, ERR_INPUT, "%s: object %zu: found keys too long or too deep, expected a result", path, number);
    else if (r.out_of_memory)
        status = out_of_memory(err);
    else if ((status = check(&r, path, number, err)) == 0)
        status = page_input_add(in, &r, err);
    result_release(&r);
    return status;
}

/* Blanks between objects; false at the end. */
static bool more(FILE *file)
{
    int c;
    while ((c = getc(file)) == ' ' || c == '\n' || c == '\r' || c == '\t') {}
    if (c != EOF) ungetc(c, file);
    return c != EOF;
}

/* Counts of 2^63 and more do not fit jansson's integers; here a close number will do. */
static json_t *load(FILE *file, json_error_t *trouble)
{
    const size_t flags = JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES;
    long at = ftell(file);
    json_t *object = json_loadf(file, flags, trouble);
    if (object || at < 0 || json_error_code(trouble) != json_error_numeric_overflow || fseek(file, at, SEEK_SET)) return object;
    return json_loadf(file, flags | JSON_DECODE_INT_AS_REAL, trouble);
}

static int read_file(struct page_input *in, const char *path, struct err *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (!file) return err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
    size_t number = 0;
    int status = 0;
    while (status == 0 && more(file)) {
        json_error_t trouble;
        json_t *object = load(file, &trouble);
        number++;
        if (!object) status = err_set(err, ERR_INPUT, "%s: object %zu: line %d of it: %s", path, number, trouble.line, trouble.text);
        else status = add_object(in, object, path, number, err);
        json_decref(object);
    }
    if (status == 0 && ferror(file)) status = err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
    if (status == 0 && number == 0) status = err_set(err, ERR_INPUT, "%s: found nothing, expected results", path);
    if (file != stdin) fclose(file);
    return status;
}

static char *join(const char *folder, const char *name, struct err *err)
{
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) >= 0) return path;
    out_of_memory(err);
    return NULL;
}

static int read_folder(struct page_input *in, const char *folder, struct err *err)
{
    struct stat facts;
    char *path = join(folder, PAGE_RESULT_FILE, err);
    int status = path ? read_file(in, path, err) : -1;
    free(path);
    for (int d = 0; status == 0 && d < DETAIL_COUNT; d++) {
        path = join(folder, page_detail_files[d], err);
        if (!path) status = -1;
        else if (stat(path, &facts) == 0) status = page_input_attach(in, in->count - 1, (enum page_detail)d, path, err);
        free(path);
    }
    return status;
}

int page_input_read(struct page_input *in, const char *path, struct err *err)
{
    struct stat facts;
    if (strcmp(path, "-") != 0 && stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) return read_folder(in, path, err);
    return read_file(in, path, err);
}
