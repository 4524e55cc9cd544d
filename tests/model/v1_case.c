#include "tests/model/v1_case.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

void *v1_resize(void *old, size_t count, size_t element_bytes)
{
    void *p = reallocarray(old, count > 0 ? count : 1, element_bytes);
    if (p == NULL)
        abort();
    return p;
}

void *v1_grow(void *old, size_t count, size_t element_bytes)
{
    bool full = (count & (count - 1)) == 0; /* the room is always the next power of two */
    return full ? v1_resize(old, 2 * count, element_bytes) : old;
}

void v1_list_push(struct v1_list *list, uint32_t value)
{
    if (list->n == list->capacity) {
        list->capacity = list->capacity > 0 ? 2 * list->capacity : 8;
        list->v = v1_resize(list->v, list->capacity, sizeof *list->v);
    }
    list->v[list->n++] = value;
}

void v1_list_release(struct v1_list *list)
{
    free(list->v);
    *list = (struct v1_list){0};
}

/* --- files ------------------------------------------------------------------------------- */

static char *path_of(const char *dir, const char *name, const char *suffix)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s%s", dir, name, suffix) < 0)
        abort();
    return path;
}

static char *read_whole(gzFile file)
{
    size_t used = 0;
    size_t capacity = 65536;
    char *text = v1_resize(NULL, capacity, 1);
    for (;;) {
        int got = gzread(file, text + used, (unsigned)(capacity - used - 1));
        if (got < 0) {
            free(text);
            return NULL;
        }
        if (got == 0)
            break;
        used += (size_t)got;
        if (used + 1 == capacity) {
            capacity *= 2;
            text = v1_resize(text, capacity, 1);
        }
    }
    text[used] = '\0';
    return text;
}

char *v1_read_text(const char *dir, const char *name)
{
    static const char *const suffixes[] = {"", ".gz"};
    for (size_t i = 0; i < 2; i++) {
        char *path = path_of(dir, name, suffixes[i]);
        gzFile file = gzopen(path, "rb"); /* reads plain files too */
        free(path);
        if (file == NULL)
            continue;
        char *text = read_whole(file);
        gzclose(file);
        return text;
    }
    return NULL;
}

char *v1_next_line(char **rest)
{
    while (**rest == '\n')
        ++*rest;
    if (**rest == '\0')
        return NULL;
    char *line = *rest;
    char *end = strchr(line, '\n');
    if (end != NULL) {
        *end = '\0';
        *rest = end + 1;
    } else {
        *rest = line + strlen(line);
    }
    return line;
}

/* --- loading ----------------------------------------------------------------------------- */

/* What the load functions share: where they are, and the first complaint. */
struct loader {
    struct v1_error *error;
    const char *file;
    size_t line;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void complain(struct loader *l, const char *format, ...)
{
    if (l->failed)
        return;
    l->failed = true;
    char what[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(l->error->text, sizeof l->error->text, "%s:%zu: %s", l->file, l->line, what);
}

static uint64_t as_count(struct loader *l, const json_t *value, const char *key, uint64_t max)
{
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || (uint64_t)number > max) {
        complain(l, "%s: expected a count of at most %" PRIu64, key, max);
        return 0;
    }
    return (uint64_t)number;
}

/* Absent and null mean the default. */
static uint32_t count_or(struct loader *l, const json_t *object, const char *key, uint32_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    if (value == NULL || json_is_null(value))
        return otherwise;
    return (uint32_t)as_count(l, value, key, UINT32_MAX);
}

static bool bool_or(struct loader *l, const json_t *object, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(object, key);
    if (value == NULL)
        return otherwise;
    if (!json_is_boolean(value))
        complain(l, "%s: expected true or false", key);
    return json_is_true(value);
}

/* 0 for the first name or an absent key, 1 for the second. */
static int choice(struct loader *l, const json_t *object, const char *key, const char *first,
                  const char *second)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (text == NULL || strcmp(text, first) == 0)
        return 0;
    if (strcmp(text, second) != 0)
        complain(l, "%s: found '%s', expected '%s' or '%s'", key, text, first, second);
    return 1;
}

static void load_config(struct loader *l, const json_t *o, struct v1_config *c, uint32_t *tokens_per_hash_id)
{
    c->rules = choice(l, o, "rules", "2026-08", "2026-04") == 0 ? V1_RULES_2026_08 : V1_RULES_2026_04;
    c->detail_full = choice(l, o, "detail", "full", "counters") == 0;
    c->num_blocks = count_or(l, o, "num_blocks", 0);
    c->block_tokens = count_or(l, o, "block_size", 0);
    c->enable_prefix_caching = bool_or(l, o, "enable_prefix_caching", true);
    c->enable_chunked_prefill = bool_or(l, o, "enable_chunked_prefill", true);
    c->reserve_full_prompt = bool_or(l, o, "reserve_full_prompt", true);
    c->max_num_seqs = count_or(l, o, "max_num_seqs", 256);
    c->max_num_batched_tokens = count_or(l, o, "max_num_batched_tokens", 2048);
    c->max_model_len = count_or(l, o, "max_model_len", 8192);
    c->sliding_window = count_or(l, o, "sliding_window", 0);
    c->long_prefill_token_threshold = count_or(l, o, "long_prefill_token_threshold", 0);
    c->num_lookahead_tokens = count_or(l, o, "num_lookahead_tokens", 0);
    c->watermark = json_number_value(json_object_get(o, "watermark"));
    c->max_steps = count_or(l, o, "max_steps", 1000000);
    *tokens_per_hash_id = count_or(l, o, "tokens_per_hash_id", c->block_tokens);
}

/* Appends the tokens first, first + 1, ..., first + count - 1. */
static void append_run(struct loader *l, uint64_t **tokens, uint32_t *n, uint64_t first, uint64_t count)
{
    if (count > UINT32_MAX - *n || first >= V1_FRESH_TOKEN_FIRST || count > V1_FRESH_TOKEN_FIRST - first) {
        complain(l, "more tokens or larger token ids than supported");
        return;
    }
    *tokens = v1_resize(*tokens, (size_t)*n + count, sizeof **tokens);
    for (uint64_t i = 0; i < count; i++)
        (*tokens)[(*n)++] = first + i;
}

static void load_tokens(struct loader *l, const json_t *array, const char *key, uint64_t **tokens,
                        uint32_t *n)
{
    size_t i;
    const json_t *value;
    if (!json_is_array(array))
        complain(l, "%s: expected an array", key);
    json_array_foreach(array, i, value) append_run(l, tokens, n, as_count(l, value, key, INT64_MAX), 1);
}

static void load_ranges(struct loader *l, const json_t *array, const char *key, uint64_t **tokens,
                        uint32_t *n)
{
    size_t i;
    const json_t *pair;
    if (!json_is_array(array))
        complain(l, "%s: expected an array", key);
    json_array_foreach(array, i, pair)
    {
        uint64_t first = as_count(l, json_array_get(pair, 0), key, INT64_MAX);
        uint64_t count = as_count(l, json_array_get(pair, 1), key, UINT32_MAX);
        append_run(l, tokens, n, first, count);
    }
}

static void load_hash_ids(struct loader *l, const json_t *o, uint32_t tokens_per_id, struct v1_request *r)
{
    uint64_t left = as_count(l, json_object_get(o, "input_length"), "input_length", UINT32_MAX);
    size_t i;
    const json_t *value;
    json_array_foreach(json_object_get(o, "hash_ids"), i, value)
    {
        uint64_t id = as_count(l, value, "hash_ids", INT64_MAX / UINT32_MAX);
        uint64_t count = left < tokens_per_id ? left : tokens_per_id;
        append_run(l, &r->prompt, &r->prompt_tokens, id * tokens_per_id, count);
        left -= count;
    }
    if (left > 0)
        complain(l, "hash_ids: %" PRIu64 " tokens of input_length without an id", left);
}

static void load_request(struct loader *l, const json_t *o, uint32_t tokens_per_id, struct v1_request *r)
{
    const char *id = json_string_value(json_object_get(o, "id"));
    if (id == NULL)
        complain(l, "id: expected a string");
    r->id = strdup(id != NULL ? id : "");
    if (r->id == NULL)
        abort();
    r->arrival = as_count(l, json_object_get(o, "arrival"), "arrival", UINT32_MAX);
    if (json_object_get(o, "prompt") != NULL)
        load_tokens(l, json_object_get(o, "prompt"), "prompt", &r->prompt, &r->prompt_tokens);
    else if (json_object_get(o, "ranges") != NULL)
        load_ranges(l, json_object_get(o, "ranges"), "ranges", &r->prompt, &r->prompt_tokens);
    else
        load_hash_ids(l, o, tokens_per_id, r);

    uint32_t given = 0;
    r->output_tokens =
        (uint32_t)as_count(l, json_object_get(o, "output_length"), "output_length", UINT32_MAX);
    if (json_object_get(o, "output") != NULL)
        load_tokens(l, json_object_get(o, "output"), "output", &r->output, &given);
    else if (json_object_get(o, "output_ranges") != NULL)
        load_ranges(l, json_object_get(o, "output_ranges"), "output_ranges", &r->output, &given);
    if (r->output != NULL && given != r->output_tokens)
        complain(l, "output: %" PRIu32 " tokens, but output_length is %" PRIu32, given, r->output_tokens);
}

static void load_trace(struct loader *l, const char *dir, uint32_t tokens_per_id, struct v1_case *c)
{
    char *text = v1_read_text(dir, "trace.jsonl");
    if (text == NULL) {
        complain(l, "cannot be read");
        return;
    }
    char *rest = text;
    for (char *line; !l->failed && (line = v1_next_line(&rest)) != NULL;) {
        l->line++;
        json_error_t json_error;
        json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, &json_error);
        if (o == NULL) {
            complain(l, "%s", json_error.text);
            break;
        }
        c->requests = v1_grow(c->requests, c->num_requests, sizeof *c->requests);
        struct v1_request *r = &c->requests[c->num_requests++];
        *r = (struct v1_request){0};
        load_request(l, o, tokens_per_id, r);
        json_decref(o);
    }
    free(text);
}

bool v1_case_load(const char *dir, struct v1_case *c, struct v1_error *error)
{
    *c = (struct v1_case){0};
    struct loader l = {.error = error, .file = "config.json"};
    uint32_t tokens_per_id = 0;
    char *text = v1_read_text(dir, "config.json");
    json_error_t json_error = {.text = "cannot be read"};
    json_t *o = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, &json_error) : NULL;
    free(text);
    if (o == NULL)
        complain(&l, "%s", json_error.text);
    else
        load_config(&l, o, &c->config, &tokens_per_id);
    json_decref(o);

    l.file = "trace.jsonl";
    if (!l.failed)
        load_trace(&l, dir, tokens_per_id, c);
    if (!l.failed && !v1_case_valid(c))
        complain(&l, "values outside what the rules cover");
    if (l.failed)
        v1_case_release(c);
    return !l.failed;
}

/* --- writing ----------------------------------------------------------------------------- */

static void set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        abort();
}

static void set_count(json_t *object, const char *key, uint64_t value)
{
    set(object, key, json_integer((json_int_t)value));
}

static json_t *config_json(const struct v1_config *c)
{
    json_t *o = json_object();
    set_count(o, "num_blocks", c->num_blocks);
    set_count(o, "block_size", c->block_tokens);
    set(o, "enable_prefix_caching", json_boolean(c->enable_prefix_caching));
    set(o, "enable_chunked_prefill", json_boolean(c->enable_chunked_prefill));
    set(o, "reserve_full_prompt", json_boolean(c->reserve_full_prompt));
    set_count(o, "max_num_seqs", c->max_num_seqs);
    set_count(o, "max_num_batched_tokens", c->max_num_batched_tokens);
    set_count(o, "max_model_len", c->max_model_len);
    set(o, "sliding_window", c->sliding_window > 0 ? json_integer(c->sliding_window) : json_null());
    set_count(o, "long_prefill_token_threshold", c->long_prefill_token_threshold);
    set_count(o, "num_lookahead_tokens", c->num_lookahead_tokens);
    set(o, "watermark", json_real(c->watermark));
    set_count(o, "max_steps", c->max_steps);
    set(o, "detail", json_string(c->detail_full ? "full" : "counters"));
    set(o, "rules", json_string(c->rules == V1_RULES_2026_08 ? "2026-08" : "2026-04"));
    return o;
}

static json_t *tokens_json(const uint64_t *tokens, uint32_t n)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++)
        if (json_array_append_new(array, json_integer((json_int_t)tokens[i])) != 0)
            abort();
    return array;
}

static json_t *request_json(const struct v1_request *r)
{
    json_t *o = json_object();
    set(o, "id", json_string(r->id));
    set_count(o, "arrival", r->arrival);
    set(o, "prompt", tokens_json(r->prompt, r->prompt_tokens));
    if (r->output != NULL)
        set(o, "output", tokens_json(r->output, r->output_tokens));
    set_count(o, "output_length", r->output_tokens);
    return o;
}

/* A failed write shows in ferror(out). */
static void dump_line(json_t *o, FILE *out)
{
    json_dumpf(o, out, JSON_COMPACT);
    fputc('\n', out);
    json_decref(o);
}

static void write_trace(const struct v1_case *c, FILE *out)
{
    for (uint32_t i = 0; i < c->num_requests; i++)
        dump_line(request_json(&c->requests[i]), out);
}

void v1_case_print(const struct v1_case *c, FILE *out)
{
    dump_line(config_json(&c->config), out);
    write_trace(c, out);
}

static bool close_file(FILE *file)
{
    bool written = ferror(file) == 0;
    return fclose(file) == 0 && written;
}

static FILE *open_in(const char *dir, const char *name)
{
    char *path = path_of(dir, name, "");
    FILE *file = fopen(path, "w");
    free(path);
    return file;
}

bool v1_case_write(const struct v1_case *c, const char *dir)
{
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return false;
    FILE *config = open_in(dir, "config.json");
    if (config == NULL)
        return false;
    dump_line(config_json(&c->config), config);
    if (!close_file(config))
        return false;
    FILE *trace = open_in(dir, "trace.jsonl");
    if (trace == NULL)
        return false;
    write_trace(c, trace);
    return close_file(trace);
}

/* --- the rest ---------------------------------------------------------------------------- */

bool v1_case_valid(const struct v1_case *c)
{
    const struct v1_config *g = &c->config;
    if (g->num_blocks < 2 || g->block_tokens == 0 || g->max_num_seqs == 0 || g->max_num_batched_tokens == 0 ||
        g->max_model_len == 0 || g->max_steps == 0)
        return false;
    if (!g->enable_chunked_prefill && g->max_num_batched_tokens < g->max_model_len)
        return false;
    if (g->sliding_window == 1 || !(g->watermark >= 0 && g->watermark <= 1))
        return false;
    for (uint32_t i = 0; i < c->num_requests; i++)
        if (c->requests[i].output_tokens == 0)
            return false;
    return true;
}

static uint64_t *copy_tokens(const uint64_t *tokens, uint32_t n)
{
    if (tokens == NULL)
        return NULL;
    uint64_t *copy = v1_resize(NULL, n, sizeof *copy);
    memcpy(copy, tokens, n * sizeof *copy);
    return copy;
}

struct v1_case v1_case_copy(const struct v1_case *c)
{
    struct v1_case copy = *c;
    copy.requests = v1_resize(NULL, c->num_requests, sizeof *copy.requests);
    for (uint32_t i = 0; i < c->num_requests; i++) {
        const struct v1_request *from = &c->requests[i];
        struct v1_request *to = &copy.requests[i];
        *to = *from;
        to->id = strdup(from->id);
        if (to->id == NULL)
            abort();
        to->prompt = copy_tokens(from->prompt, from->prompt_tokens);
        to->output = copy_tokens(from->output, from->output_tokens);
    }
    return copy;
}

void v1_request_release(struct v1_request *r)
{
    free(r->id);
    free(r->prompt);
    free(r->output);
    *r = (struct v1_request){0};
}

void v1_case_release(struct v1_case *c)
{
    for (uint32_t i = 0; i < c->num_requests; i++)
        v1_request_release(&c->requests[i]);
    free(c->requests);
    *c = (struct v1_case){0};
}
