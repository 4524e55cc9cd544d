#include "sim/device_snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/device_pickle.h"

#define FILE_BYTES_MAX ((size_t)1 << 34)
#define ADDRESS_MAX ((int64_t)1 << 60) /* sums of two stay below 2^63 */

struct reader {
    struct device_snapshot *snapshot;
    uint64_t device;
    size_t steps_left; /* references can make a small file a large graph: no more values are looked at than it has bytes */
    size_t segment_room, block_room, event_room;
    struct err *err;
};

static const char *const ACTIONS[SNAPSHOT_ACTIONS] = {
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom", "snapshot",
};

const char *snapshot_action_name(enum snapshot_action action)
{
    return ACTIONS[action];
}

void device_snapshot_release(struct device_snapshot *snapshot)
{
    free(snapshot->segments);
    free(snapshot->blocks);
    free(snapshot->events);
    free(snapshot->setting);
    *snapshot = (struct device_snapshot){0};
}

static int out_of_memory(struct reader *r)
{
    return err_set(r->err, ERR_FAILED, "out of memory");
}

/* "offset N: field: found an integer, expected ...". */
static int unexpected(struct reader *r, const struct pickle_value *at, const char *field, const struct pickle_value *found, const char *expected)
{
    return err_set(r->err, ERR_INPUT, "offset %" PRIu64 ": %s: found %s, expected %s", found ? found->offset : at->offset, field,
                   found ? pickle_kind_name(found->kind) : "nothing", expected);
}

/* Counts the work that a value makes. */
static int charge(struct reader *r, const struct pickle_value *value)
{
    size_t cost = 1 + (size_t)value->count;
    if (cost > r->steps_left)
        return err_set(r->err, ERR_INPUT, "offset %" PRIu64 ": values refer to each other more often than the file is long", value->offset);
    r->steps_left -= cost;
    return 0;
}

static const struct pickle_value *get_kind(struct reader *r, const struct pickle_value *dict, const char *field, enum pickle_kind kind,
                                           const char *expected)
{
    const struct pickle_value *value = pickle_get(dict, field);
    if (value && value->kind == kind)
        return charge(r, value) == 0 ? value : NULL;
    unexpected(r, dict, field, value, expected);
    return NULL;
}

static int get_number(struct reader *r, const struct pickle_value *dict, const char *field, int64_t min, int64_t max, uint64_t *number)
{
    const struct pickle_value *value = pickle_get(dict, field);
    if (!value || value->kind != PICKLE_INT)
        return unexpected(r, dict, field, value, "an integer");
    if (value->number < min || value->number > max)
        return err_set(r->err, ERR_INPUT, "offset %" PRIu64 ": %s: found %" PRId64 ", expected %" PRId64 " to %" PRId64, value->offset, field,
                       value->number, min, max);
    *number = (uint64_t)value->number;
    return 0;
}

/* A field that older versions lack. */
static int get_optional(struct reader *r, const struct pickle_value *dict, const char *field, uint64_t deflt, uint64_t *number)
{
    *number = deflt;
    return pickle_get(dict, field) ? get_number(r, dict, field, INT64_MIN, INT64_MAX, number) : 0;
}

static int is_dict(struct reader *r, const struct pickle_value *value, const char *what)
{
    if (value->kind != PICKLE_DICT)
        return unexpected(r, value, what, value, "a dict");
    return charge(r, value);
}

static int grow(struct reader *r, void *items, size_t *room, size_t count, size_t item_bytes)
{
    void *old, *moved;
    if (count < *room)
        return 0;
    size_t capacity = *room ? 2 * *room : 64;
    memcpy(&old, items, sizeof old);
    moved = realloc(old, capacity * item_bytes);
    if (!moved)
        return out_of_memory(r);
    memcpy(items, &moved, sizeof moved);
    *room = capacity;
    return 0;
}

/* ---- segments ---- */

static int read_block(struct reader *r, const struct pickle_value *value, uint64_t at)
{
    struct device_snapshot *s = r->snapshot;
    struct snapshot_block block = {.address = at};
    if (is_dict(r, value, "blocks") != 0 || get_number(r, value, "size", 1, ADDRESS_MAX, &block.bytes) != 0 ||
        get_optional(r, value, "requested_size", block.bytes, &block.requested_bytes) != 0 ||
        get_optional(r, value, "address", at, &block.address) != 0)
        return -1;
    if (block.address != at)
        return err_set(r->err, ERR_INPUT, "offset %" PRIu64 ": address: found %" PRIu64 ", expected %" PRIu64 ", where the block before it ends",
                       value->offset, block.address, at);
    const struct pickle_value *state = get_kind(r, value, "state", PICKLE_TEXT, "the state of a block");
    if (!state)
        return -1;
    block.state = pickle_text_is(state, "active_allocated")                                                       ? SNAPSHOT_ACTIVE
                  : pickle_text_is(state, "active_awaiting_free") || pickle_text_is(state, "active_pending_free") ? SNAPSHOT_AWAITING_FREE
                                                                                                                  : SNAPSHOT_INACTIVE;
    if (block.state == SNAPSHOT_INACTIVE && !pickle_text_is(state, "inactive"))
        return err_set(r->err, ERR_INPUT, "offset %" PRIu64 ": state: found '%.*s', expected active_allocated, active_awaiting_free or inactive",
                       state->offset, (int)(state->text.length < 40 ? state->text.length : 40), state->text.bytes);
    if (grow(r, &s->blocks, &r->block_room, s->block_count, sizeof *s->blocks) != 0)
        return -1;
    s->blocks[s->block_count++] = block;
    return 0;
}

static int read_blocks(struct reader *r, const struct pickle_value *value, struct snapshot_segment *segment)
{
    uint64_t at = segment->address;
    const struct pickle_value *blocks = get_kind(r, value, "blocks", PICKLE_LIST, "a list of blocks");
    if (!blocks)
        return -1;
    segment->block_first = r->snapshot->block_count;
    for (uint32_t i = 0; i < blocks->count; i++) {
        if (read_block(r, blocks->items[i], at) != 0)
            return -1;
        at += r->snapshot->blocks[r->snapshot->block_count - 1].bytes;
        if (at > segment->address + segment->bytes)
            break;
    }
    segment->block_count = r->snapshot->block_count - segment->block_first;
    if (at == segment->address + segment->bytes)
        return 0;
    return err_set(r->err, ERR_INPUT, "offset %" PRIu64 ": blocks: found %" PRIu64 " bytes, expected the segment's %" PRIu64, blocks->offset,
                   at - segment->address, segment->bytes);
}

static int read_pool_id(struct reader *r, const struct pickle_value *value, struct snapshot_segment *segment)
{
    const struct pickle_value *id = pickle_get(value, "segment_pool_id");
    if (!id)
        return 0;
    if (id->kind != PICKLE_LIST || id->count != 2 || id->items[0]->kind != PICKLE_INT || id->items[1]->kind != PICKLE_INT)
        return unexpected(r, value, "segment_pool_id", id, "a pair of integers");
    segment->pool[0] = (uint64_t)id->items[0]->number;
    segment->pool[1] = (uint64_t)id->items[1]->number;
    return 0;
}

static int read_segment(struct reader *r, const struct pickle_value *value)
{
    struct device_snapshot *s = r->snapshot;
    struct snapshot_segment segment = {0};
    uint64_t device;
    if (is_dict(r, value, "segments") != 0 || get_optional(r, value, "device", 0, &device) != 0)
        return -1;
    if (device != r->device)
        return 0;
    if (get_number(r, value, "address", 0, ADDRESS_MAX, &segment.address) != 0 ||
        get_number(r, value, "total_size", 1, ADDRESS_MAX, &segment.bytes) != 0 ||
        get_optional(r, value, "stream", 0, &segment.stream) != 0)
        return -1;
    const struct pickle_value *type = get_kind(r, value, "segment_type", PICKLE_TEXT, "large or small");
    if (!type)
        return -1;
    segment.small = pickle_text_is(type, "small");
    const struct pickle_value *expandable = pickle_get(value, "is_expandable");
    segment.expandable = expandable && expandable->kind == PICKLE_BOOL && expandable->number == 1;
    if (read_pool_id(r, value, &segment) != 0 || read_blocks(r, value, &segment) != 0 ||
        grow(r, &s->segments, &r->segment_room, s->segment_count, sizeof *s->segments) != 0)
        return -1;
    s->segments[s->segment_count++] = segment;
    return 0;
}

static int compare_segments(const void *x, const void *y)
{
    const struct snapshot_segment *a = x, *b = y;
    return (a->address > b->address) - (a->address < b->address);
}

static int read_segments(struct reader *r, const struct pickle_value *root)
{
    struct device_snapshot *s = r->snapshot;
    const struct pickle_value *segments = get_kind(r, root, "segments", PICKLE_LIST, "a list of segments");
    if (!segments)
        return -1;
    for (uint32_t i = 0; i < segments->count; i++)
        if (read_segment(r, segments->items[i]) != 0)
            return -1;
    if (s->segment_count > 0)
        qsort(s->segments, s->segment_count, sizeof *s->segments, compare_segments);
    for (size_t i = 1; i < s->segment_count; i++)
        if (s->segments[i - 1].address + s->segments[i - 1].bytes > s->segments[i].address)
            return err_set(r->err, ERR_INPUT, "segments: two overlap at address %" PRIu64, s->segments[i].address);
    return 0;
}

/* ---- events ---- */

static enum snapshot_action action_of(const struct pickle_value *value)
{
    for (int i = 0; i < SNAPSHOT_OTHER; i++)
        if (pickle_text_is(value, ACTIONS[i]))
            return (enum snapshot_action)i;
    return SNAPSHOT_OTHER;
}

static int read_event(struct reader *r, const struct pickle_value *value)
{
    struct device_snapshot *s = r->snapshot;
    struct snapshot_event event;
    if (is_dict(r, value, "device_traces") != 0)
        return -1;
    const struct pickle_value *action = get_kind(r, value, "action", PICKLE_TEXT, "the name of an action");
    if (!action)
        return -1;
    event.action = action_of(action);
    if (event.action == SNAPSHOT_OTHER)
        return 0;
    const char *address = event.action == SNAPSHOT_OOM ? "device_free" : "addr";
    if (get_number(r, value, address, 0, ADDRESS_MAX, &event.address) != 0 ||
        get_number(r, value, "size", 0, ADDRESS_MAX, &event.bytes) != 0 || get_optional(r, value, "stream", 0, &event.stream) != 0 ||
        get_optional(r, value, "time_us", 0, &event.time_us) != 0)
        return -1;
    if (grow(r, &s->events, &r->event_room, s->event_count, sizeof *s->events) != 0)
        return -1;
    s->events[s->event_count++] = event;
    return 0;
}

static int read_events(struct reader *r, const struct pickle_value *root)
{
    const struct pickle_value *traces = pickle_get(root, "device_traces");
    if (!traces)
        return 0; /* no history was recorded */
    if (traces->kind != PICKLE_LIST)
        return unexpected(r, root, "device_traces", traces, "a list for each device");
    if (charge(r, traces) != 0)
        return -1;
    for (uint32_t i = 0; i < traces->count; i++) {
        const struct pickle_value *trace = traces->items[i];
        if (trace->kind != PICKLE_LIST)
            return unexpected(r, traces, "device_traces", trace, "a list of events");
        r->snapshot->devices += trace->count > 0;
        if (i != r->device)
            continue;
        if (charge(r, trace) != 0)
            return -1;
        for (uint32_t k = 0; k < trace->count; k++)
            if (read_event(r, trace->items[k]) != 0)
                return -1;
    }
    return 0;
}

static int read_setting(struct reader *r, const struct pickle_value *root)
{
    const struct pickle_value *settings = pickle_get(root, "allocator_settings");
    const struct pickle_value *conf = pickle_get(settings, "PYTORCH_CUDA_ALLOC_CONF");
    if (!conf)
        conf = pickle_get(settings, "PYTORCH_ALLOC_CONF");
    bool said = conf && conf->kind == PICKLE_TEXT;
    r->snapshot->setting = said ? strndup(conf->text.bytes, conf->text.length) : strdup("");
    if (!r->snapshot->setting)
        return out_of_memory(r);
    for (char *p = r->snapshot->setting; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    return 0;
}

static int read_root(struct reader *r, const struct pickle_value *root)
{
    if (root->kind != PICKLE_DICT)
        return unexpected(r, root, "snapshot", root, "a dict");
    if (charge(r, root) != 0 || read_segments(r, root) != 0 || read_events(r, root) != 0)
        return -1;
    return read_setting(r, root);
}

int device_snapshot_parse(const void *bytes, size_t count, const char *name, uint64_t device, struct device_snapshot *snapshot, struct err *err)
{
    struct pickle *pickle;
    const struct pickle_value *root;
    *snapshot = (struct device_snapshot){0};
    if (pickle_parse(bytes, count, &pickle, &root, err) != 0) {
        err_prefix(err, "%.300s", name);
        return -1;
    }
    struct reader r = {.snapshot = snapshot, .device = device, .steps_left = count, .err = err};
    int status = read_root(&r, root);
    pickle_destroy(pickle);
    if (status != 0) {
        device_snapshot_release(snapshot);
        err_prefix(err, "%.300s", name);
    }
    return status;
}

static int read_file(FILE *file, const char *name, char **bytes, size_t *count, struct err *err)
{
    size_t room = 0;
    *bytes = NULL;
    *count = 0;
    for (;;) {
        if (*count == room) {
            room = room ? 2 * room : (size_t)1 << 16;
            char *moved = room <= FILE_BYTES_MAX ? realloc(*bytes, room) : NULL;
            if (!moved)
                return err_set(err, ERR_FAILED, "%.300s: out of memory", name);
            *bytes = moved;
        }
        size_t got = fread(*bytes + *count, 1, room - *count, file);
        *count += got;
        if (got == 0)
            break;
    }
    return ferror(file) ? err_set(err, ERR_FAILED, "%.300s: %s", name, strerror(errno)) : 0;
}

int device_snapshot_read(const char *path, uint64_t device, struct device_snapshot *snapshot, struct err *err)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    FILE *file = standard ? stdin : fopen(path, "rb");
    char *bytes;
    size_t count;
    if (!file)
        return err_set(err, ERR_INPUT, "%.300s: %s", name, strerror(errno));
    int status = read_file(file, name, &bytes, &count, err);
    if (!standard)
        fclose(file);
    if (status == 0)
        status = device_snapshot_parse(bytes, count, name, device, snapshot, err);
    free(bytes);
    return status;
}
