#include "sim/device_ops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "allocator/device/device_allocator.h"
#include "sim/id_index.h"
#include "workloads/wl_json.h"
#include "workloads/wl_stream.h"

enum { OP, ID, BYTES, TAG, POOL, NAME, ADDRESS, KIND, BLOCKS, IDS, TIME_US, FIELDS };

static const char *const fields[FIELDS] = {"op",   "id",      "bytes", "tag",    "pool", "name",
                                           "address", "kind", "blocks", "ids", "time_us"};

/* What each operation cannot do without; the rest is optional. */
static const struct {
    const char *name;
    uint32_t needs;
} KINDS[DEVICE_OP_KINDS] = {
    [DEVICE_OP_ALLOC] = {"alloc", 1u << ID | 1u << BYTES},
    [DEVICE_OP_FREE] = {"free", 1u << ID},
    [DEVICE_OP_EMPTY_CACHE] = {"empty_cache", 0},
    [DEVICE_OP_POOL_BEGIN] = {"pool_begin", 1u << POOL},
    [DEVICE_OP_POOL_END] = {"pool_end", 1u << POOL},
    [DEVICE_OP_POOL_RELEASE] = {"pool_release", 1u << POOL},
    [DEVICE_OP_DEVICE_ALLOC] = {"device_alloc", 1u << ID | 1u << BYTES},
    [DEVICE_OP_MARK] = {"mark", 1u << NAME},
    [DEVICE_OP_SEGMENT] = {"segment", 1u << ADDRESS | 1u << KIND | 1u << BLOCKS | 1u << IDS},
};

static const char *const EXPECTED[FIELDS] = {
    [ID] = "an id, an integer below 2^64",
    [BYTES] = "a size of 1 to 281474976710656 bytes (2^48)",
    [POOL] = "the name of a pool",
    [NAME] = "a name",
    [ADDRESS] = "an address relative to the first segment",
    [KIND] = "large, small, expandable_large or expandable_small",
    [BLOCKS] = "the bytes of each block",
    [IDS] = "the id of each block, 0 for a free one",
};

struct reader {
    struct device_ops *ops;
    struct id_index ids;
    struct id_index pools;
    struct wl_text word;      /* of the line */
    struct wl_ids line_bytes; /* blocks of a segment */
    struct wl_ids line_ids;
};

const char *device_op_name(enum device_op_kind kind)
{
    return KINDS[kind].name;
}

void device_ops_release(struct device_ops *ops)
{
    free(ops->file);
    free(ops->items);
    free(ops->ids);
    free(ops->pools);
    free(ops->blocks);
    free(ops->texts);
    *ops = (struct device_ops){0};
}

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_FAILED, "out of memory");
}

/* Room for one more item of an array that doubles. */
static int grow(void *items, size_t *capacity, size_t item_bytes, size_t needed, struct err *err)
{
    void *moved;
    memcpy(&moved, items, sizeof moved);
    if (wl_array_reserve(&moved, capacity, item_bytes, needed) != 0)
        return out_of_memory(err);
    memcpy(items, &moved, sizeof moved);
    return 0;
}

static int keep_text(struct device_ops *ops, const char *text, size_t *at, struct err *err)
{
    size_t bytes = strlen(text) + 1;
    if (ops->text_count > 0 && bytes == 1) {
        *at = 0;
        return 0;
    }
    if (grow(&ops->texts, &ops->text_capacity, 1, ops->text_count + bytes, err) != 0)
        return -1;
    *at = ops->text_count;
    memcpy(ops->texts + ops->text_count, text, bytes);
    ops->text_count += bytes;
    return 0;
}

static int id_slot(struct reader *r, uint64_t id, uint32_t *slot, struct err *err)
{
    struct device_ops *ops = r->ops;
    if (id_index_number(&r->ids, &id, 1, slot) != ID_INDEX_OK)
        return out_of_memory(err);
    if (*slot < ops->id_count)
        return 0;
    if (grow(&ops->ids, &ops->id_capacity, sizeof *ops->ids, ops->id_count + 1, err) != 0)
        return -1;
    ops->ids[ops->id_count++] = id;
    return 0;
}

static int pool_slot(struct reader *r, const char *name, uint32_t *slot, struct err *err)
{
    struct device_ops *ops = r->ops;
    for (uint64_t salt = 0;; salt++) {
        uint64_t key = XXH3_64bits_withSeed(name, strlen(name), salt);
        if (id_index_number(&r->pools, &key, 1, slot) != ID_INDEX_OK)
            return out_of_memory(err);
        if (*slot >= ops->pool_count)
            break;
        if (strcmp(ops->texts + ops->pools[*slot], name) == 0)
            return 0;
        /* two names with one hash: look elsewhere */
    }
    if (grow(&ops->pools, &ops->pool_capacity, sizeof *ops->pools, ops->pool_count + 1, err) != 0)
        return -1;
    return keep_text(ops, name, &ops->pools[ops->pool_count++], err);
}

/* Reads a string or integer into r->word, from its beginning. */
static int read_word(struct reader *r, struct wl_json *json, const char **word)
{
    size_t at = 0;
    r->word.count = 0;
    if (wl_text_append(&r->word, "", 1) != 0)
        return wl_line_out_of_memory(json->line);
    if (wl_json_name(json, &r->word, &at) != 0)
        return -1;
    *word = r->word.items + at;
    return 0;
}

static int read_kind(struct reader *r, struct wl_json *json, struct device_op *op)
{
    const char *word, *at = json->at;
    if (read_word(r, json, &word) != 0)
        return -1;
    for (uint8_t kind = 0; kind < DEVICE_OP_KINDS; kind++)
        if (strcmp(KINDS[kind].name, word) == 0) {
            op->kind = kind;
            return 0;
        }
    return wl_line_unexpected(json->line, at, "op",
                              "alloc, free, empty_cache, pool_begin, pool_end, pool_release, device_alloc, mark or segment");
}

static int read_segment_kind(struct reader *r, struct wl_json *json, struct device_op *op)
{
    const char *word, *at = json->at;
    if (read_word(r, json, &word) != 0)
        return -1;
    op->expandable = strncmp(word, "expandable_", 11) == 0;
    word += op->expandable ? 11 : 0;
    op->small = strcmp(word, "small") == 0;
    if (!op->small && strcmp(word, "large") != 0)
        return wl_line_unexpected(json->line, at, "kind", EXPECTED[KIND]);
    return 0;
}

static int read_field(struct reader *r, struct wl_json *json, int field, struct device_op *op, uint64_t *id)
{
    const char *word, *at = json->at;
    switch (field) {
    case OP:
        return read_kind(r, json, op);
    case ID:
        return wl_json_u64(json, UINT64_MAX, EXPECTED[ID], id);
    case BYTES:
        if (wl_json_u64(json, DEV_BYTES_MAX, EXPECTED[BYTES], &op->bytes) != 0)
            return -1;
        return op->bytes > 0 ? 0 : wl_line_unexpected(json->line, at, "bytes", EXPECTED[BYTES]);
    case TAG:
    case NAME:
        if (read_word(r, json, &word) != 0)
            return -1;
        return keep_text(r->ops, word, &op->text, json->line->err);
    case POOL:
        if (read_word(r, json, &word) != 0)
            return -1;
        return pool_slot(r, word, &op->slot, json->line->err);
    case ADDRESS:
        return wl_json_i64(json, &op->address);
    case KIND:
        return read_segment_kind(r, json, op);
    case BLOCKS:
        return wl_json_ids(json, &r->line_bytes);
    case IDS:
        return wl_json_ids(json, &r->line_ids);
    default:
        return wl_json_u64(json, UINT64_MAX, "a time in microseconds", &op->time_us);
    }
}

static int keep_blocks(struct reader *r, const struct wl_line *line, struct device_op *op)
{
    struct device_ops *ops = r->ops;
    if (r->line_bytes.count == 0 || r->line_bytes.count != r->line_ids.count)
        return wl_line_error(line, NULL, "ids", "found %zu blocks and %zu ids, expected one id a block, and a block",
                             r->line_bytes.count, r->line_ids.count);
    op->block_first = ops->block_count;
    op->block_count = r->line_bytes.count;
    if (grow(&ops->blocks, &ops->block_capacity, sizeof *ops->blocks, ops->block_count + op->block_count, line->err) != 0)
        return -1;
    for (size_t i = 0; i < op->block_count; i++) {
        struct device_op_block *block = &ops->blocks[ops->block_count++];
        block->bytes = r->line_bytes.items[i];
        block->slot = UINT32_MAX;
        if (block->bytes == 0 || block->bytes > DEV_BYTES_MAX || block->bytes % 512 != 0)
            return wl_line_error(line, NULL, "blocks", "found %llu, expected multiples of 512 up to 2^48",
                                 (unsigned long long)block->bytes);
        if (r->line_ids.items[i] != 0 && id_slot(r, r->line_ids.items[i], &block->slot, line->err) != 0)
            return -1;
    }
    return 0;
}

static int read_line(struct reader *r, struct wl_line *line, struct device_op *op)
{
    struct wl_json json;
    int field;
    uint64_t id = 0;
    *op = (struct device_op){.kind = DEVICE_OP_KINDS, .line = line->number};
    r->line_bytes.count = r->line_ids.count = 0;
    if (wl_json_begin(&json, line, fields, FIELDS) != 0)
        return -1;
    while ((field = wl_json_field(&json)) >= 0)
        if (read_field(r, &json, field, op, &id) != 0)
            return -1;
    if (field == WL_JSON_ERROR || wl_json_require(&json, OP, "the name of an operation") != 0)
        return -1;
    if (op->kind == DEVICE_OP_KINDS)
        return wl_line_error(line, NULL, "op", "found null, expected the name of an operation");
    uint32_t needs = KINDS[op->kind].needs;
    for (int i = 0; i < FIELDS; i++)
        if ((needs >> i & 1) != 0 && wl_json_require(&json, i, EXPECTED[i]) != 0)
            return -1;
    if ((needs >> ID & 1) != 0)
        return id_slot(r, id, &op->slot, line->err);
    if ((needs >> POOL & 1) != 0 && op->slot == 0)
        return wl_line_error(line, json.value_at[POOL], "pool", "found '', expected the name of a pool");
    return op->kind == DEVICE_OP_SEGMENT ? keep_blocks(r, line, op) : 0;
}

static bool is_blank(const struct wl_line *line)
{
    return line->text[strspn(line->text, " \t")] == '\0' && strlen(line->text) == line->length;
}

static int read_lines(struct reader *r, struct wl_stream *stream, struct err *err)
{
    struct device_ops *ops = r->ops;
    struct wl_line line = {.err = err};
    int got;
    while ((got = wl_stream_line(stream, &line, err)) == 1) {
        if (is_blank(&line))
            continue;
        if (ops->count >= UINT32_MAX)
            return wl_line_error(&line, NULL, NULL, "more than 2^32 operations");
        if (grow(&ops->items, &ops->capacity, sizeof *ops->items, ops->count + 1, err) != 0 ||
            read_line(r, &line, &ops->items[ops->count]) != 0)
            return -1;
        ops->count++;
    }
    return got;
}

static int reader_run(struct reader *r, struct wl_stream *stream, struct err *err)
{
    uint32_t slot;
    size_t at;
    r->ops->file = strdup(wl_stream_name(stream));
    if (!r->ops->file || !id_index_init(&r->ids) || !id_index_init(&r->pools))
        return out_of_memory(err);
    if (keep_text(r->ops, "", &at, err) != 0 || pool_slot(r, "", &slot, err) != 0)
        return -1;
    return read_lines(r, stream, err);
}

int device_ops_read(const char *path, struct device_ops *ops, struct err *err)
{
    struct reader r = {.ops = ops};
    struct wl_stream *stream;
    *ops = (struct device_ops){0};
    if (wl_stream_open(path, &stream, err) != 0)
        return -1;
    int status = reader_run(&r, stream, err);
    wl_stream_close(stream);
    id_index_release(&r.ids);
    id_index_release(&r.pools);
    free(r.word.items);
    free(r.line_bytes.items);
    free(r.line_ids.items);
    if (status != 0)
        device_ops_release(ops);
    return status;
}
