/* The conversations of kv-cache-tester (callanjfox/kv-cache-tester, traces/): a tar, plain or compressed, of JSON files, each of
 * them one coding agent's conversation with its requests, those of subagents inside. Lengths alone are read: every
 * conversation has a clock and content ids of its own, and how they lie on one time line is the user's to say. */
#include "workloads/wl_source_impl.h"

#include <archive.h>
#include <archive_entry.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A larger file is no conversation but a mistake (or an attack). */
#define FILE_BYTES_MAX ((int64_t)64 << 20)
#define DEPTH_MAX 16 /* subagents of subagents */

struct level {
    json_t *requests; /* borrowed from the document */
    size_t next;
};

struct archive_source {
    struct wl_source source;
    struct archive *archive;
    char entry_name[256];
    json_t *document;               /* the conversation that is being read, or NULL */
    struct level levels[DEPTH_MAX]; /* where in it: the requests, and those inside */
    size_t depth;
    uint64_t parsed;
    struct wl_draft draft;
};

static int bad(const struct archive_source *a, struct err *err, const char *what)
{
    return err_set(err, ERR_INPUT, "%s: %s: request %llu: %s", a->source.name, a->entry_name,
                   (unsigned long long)a->parsed, what);
}

static int reopen(struct archive_source *a, struct err *err)
{
    archive_read_free(a->archive);
    a->archive = archive_read_new();
    if (a->archive == NULL)
        return err_set(err, ERR_FAILED, "%s: out of memory", a->source.name);
    archive_read_support_filter_gzip(a->archive);
    archive_read_support_filter_zstd(a->archive);
    archive_read_support_format_tar(a->archive);
    if (archive_read_open_filename(a->archive, a->source.name, 1 << 20) != ARCHIVE_OK)
        return err_set(err, ERR_INPUT, "%s: %s", a->source.name, archive_error_string(a->archive));
    return 0;
}

static int parse_entry(struct archive_source *a, char *bytes, size_t count, struct err *err)
{
    json_error_t where;
    a->document = json_loadb(bytes, count, JSON_REJECT_DUPLICATES, &where);
    if (a->document == NULL)
        return err_set(err, ERR_INPUT, "%s: %s:%d:%d: %s", a->source.name, a->entry_name, where.line,
                       where.column, where.text);
    json_t *requests = json_object_get(a->document, "requests");
    if (!json_is_array(requests))
        return err_set(err, ERR_INPUT, "%s: %s: requests: found none, expected an array", a->source.name,
                       a->entry_name);
    a->depth = 1;
    a->levels[0] = (struct level){ .requests = requests };
    return 0;
}

static int read_entry(struct archive_source *a, struct archive_entry *entry, struct err *err)
{
    int64_t count = archive_entry_size(entry);
    if (count < 0 || count > FILE_BYTES_MAX)
        return err_set(err, ERR_INPUT, "%s: %s: found a file of %lld bytes, expected at most %lld",
                       a->source.name, a->entry_name, (long long)count, (long long)FILE_BYTES_MAX);
    char *bytes = malloc((size_t)count + 1);
    if (bytes == NULL)
        return err_set(err, ERR_FAILED, "%s: out of memory", a->source.name);
    la_ssize_t got = archive_read_data(a->archive, bytes, (size_t)count);
    int rc = got == (la_ssize_t)count
                 ? parse_entry(a, bytes, (size_t)count, err)
                 : err_set(err, ERR_INPUT, "%s: %s: found the end of the file, expected more: it is truncated",
                           a->source.name, a->entry_name);
    free(bytes);
    return rc;
}

/* The next JSON file of the archive. 1, 0 at the end, -1. */
static int next_document(struct archive_source *a, struct err *err)
{
    struct archive_entry *entry;
    json_decref(a->document);
    a->document = NULL;
    for (;;) {
        int rc = archive_read_next_header(a->archive, &entry);
        if (rc == ARCHIVE_EOF)
            return 0;
        if (rc != ARCHIVE_OK)
            return err_set(err, ERR_INPUT, "%s: %s", a->source.name, archive_error_string(a->archive));
        const char *name = archive_entry_pathname(entry);
        if (archive_entry_filetype(entry) != AE_IFREG || name == NULL)
            continue;
        snprintf(a->entry_name, sizeof a->entry_name, "%.255s", name);
        return read_entry(a, entry, err) != 0 ? -1 : 1;
    }
}

static int read_count(const struct archive_source *a, const json_t *request, const char *key,
                      uint64_t *count, struct err *err)
{
    const json_t *value = json_object_get(request, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > WL_TOKENS_MAX) {
        char what[80];
        snprintf(what, sizeof what, "%s: expected a count of tokens up to 2^32", key);
        return bad(a, err, what);
    }
    *count = (uint64_t)json_integer_value(value);
    return 0;
}

/* One step through the nested requests. 1: *request is one. 0: the conversation is over. -1. */
static int next_request(struct archive_source *a, json_t **request, struct err *err)
{
    while (a->depth > 0) {
        struct level *level = &a->levels[a->depth - 1];
        json_t *item = json_array_get(level->requests, level->next++);
        if (item == NULL) {
            a->depth--;
            continue;
        }
        json_t *inside = json_object_get(item, "requests");
        if (inside == NULL) {
            *request = item;
            return 1;
        }
        if (!json_is_array(inside) || a->depth == DEPTH_MAX)
            return bad(a, err, "requests: expected an array, nested at most 16 deep");
        a->levels[a->depth++] = (struct level){ .requests = inside };
    }
    return 0;
}

static int archive_next(struct wl_source *source, struct wl_draft **draft, struct err *err)
{
    struct archive_source *a = (struct archive_source *)source;
    json_t *request = NULL;
    int rc;
    while ((rc = a->document != NULL ? next_request(a, &request, err) : 0) == 0)
        if ((rc = next_document(a, err)) != 1)
            return rc;
    if (rc < 0)
        return -1;
    wl_draft_clear(&a->draft);
    a->draft.serial = a->parsed;
    if (read_count(a, request, "in", &a->draft.request.prompt_tokens, err) != 0 ||
        read_count(a, request, "out", &a->draft.request.output_tokens, err) != 0)
        return -1;
    a->parsed++;
    wl_draft_finish(&a->draft);
    *draft = &a->draft;
    return 1;
}

static int archive_rewind(struct wl_source *source, struct err *err)
{
    struct archive_source *a = (struct archive_source *)source;
    json_decref(a->document);
    a->document = NULL;
    a->depth = 0;
    a->parsed = 0;
    return reopen(a, err);
}

static void archive_release(struct wl_source *source)
{
    struct archive_source *a = (struct archive_source *)source;
    json_decref(a->document);
    archive_read_free(a->archive);
    wl_draft_release(&a->draft);
}

static const struct wl_source_ops archive_ops = { archive_next, archive_rewind, archive_release };

bool wl_is_archive(const char *path)
{
    static const char *const endings[] = { ".tar", ".tar.gz", ".tgz", ".tar.zst" };
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(path + length - ending, endings[i]) == 0)
            return true;
    }
    return false;
}

int wl_archive_open(const char *path, const struct wl_options *options, struct wl_source **source,
                    struct err *err)
{
    struct archive_source *a = calloc(1, sizeof *a);
    if (a == NULL)
        return err_set(err, ERR_FAILED, "%s: out of memory", path);
    a->source.can_rewind = true;
    if (wl_source_init(&a->source, &archive_ops, path, "kv_cache_tester_tar", options, err) != 0 ||
        reopen(a, err) != 0) {
        wl_close(&a->source);
        return -1;
    }
    *source = &a->source;
    return 0;
}
