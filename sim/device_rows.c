#include "sim/device_rows.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Text that grows; the first failure to get memory stays and the rest is dropped. */
struct text {
    char *at;
    size_t count, capacity;
    bool failed;
};

static bool text_room(struct text *t, size_t more)
{
    if (t->capacity - t->count >= more)
        return true;
    size_t capacity = 2 * (t->capacity + more);
    char *moved = t->failed ? NULL : realloc(t->at, capacity);
    if (!moved) {
        t->failed = true;
        return false;
    }
    t->at = moved;
    t->capacity = capacity;
    return true;
}

static void put_bytes(struct text *t, const char *bytes, size_t count)
{
    if (!text_room(t, count))
        return;
    memcpy(t->at + t->count, bytes, count);
    t->count += count;
}

/* inline, so that the length of a constant is one too. */
static inline void put(struct text *t, const char *text)
{
    put_bytes(t, text, strlen(text));
}

/* printf is ten times as slow, and a row has twenty numbers. */
static void put_u64(struct text *t, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    while (value >= 100) {
        unsigned pair = (unsigned)(value % 100);
        value /= 100;
        digits[--at] = (char)('0' + pair % 10);
        digits[--at] = (char)('0' + pair / 10);
    }
    if (value >= 10) {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    }
    digits[--at] = (char)('0' + value);
    put_bytes(t, digits + at, sizeof digits - at);
}

static void put_i64(struct text *t, int64_t value)
{
    if (value < 0)
        put(t, "-");
    put_u64(t, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_field(struct text *t, const char *key, uint64_t value)
{
    put(t, key);
    put_u64(t, value);
}

static void put_pair(struct text *t, const char *key, uint64_t first, uint64_t second)
{
    put_field(t, key, first);
    put_field(t, ",", second);
    put(t, "]");
}

/* A JSON string; the input is UTF-8 that a strict reader let through. */
static void put_string(struct text *t, const char *text)
{
    put(t, "\"");
    for (; *text; text++) {
        char escaped[8] = {*text, '\0'};
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", c);
        else if (c < 0x20)
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
        put(t, escaped);
    }
    put(t, "\"");
}

static void put_size_field(struct text *t, const char *key, uint64_t bytes)
{
    char size[32];
    put(t, key);
    put(t, dev_size_text(bytes, size, sizeof size));
    put(t, "\"");
}

static void put_oom(struct text *t, const struct dev_oom *oom, bool first)
{
    put_size_field(t, ",\"oom\":{\"tried\":\"", oom->tried_bytes);
    put_size_field(t, ",\"capacity\":\"", oom->capacity_bytes);
    put_size_field(t, ",\"free\":\"", oom->free_bytes);
    if (oom->allowed_bytes != DEV_NONE)
        put_size_field(t, ",\"allowed\":\"", oom->allowed_bytes);
    put_size_field(t, ",\"allocated\":\"", oom->allocated_bytes);
    if (oom->private_bytes > 0)
        put_size_field(t, ",\"private\":\"", oom->private_bytes);
    put_size_field(t, ",\"unallocated\":\"", oom->unallocated_bytes);
    put(t, "}");
    if (first) {
        char message[1024];
        dev_oom_message(oom, message, sizeof message);
        put(t, ",\"msg\":");
        put_string(t, message);
    }
}

static void put_events(struct text *t, const struct device_replay *r)
{
    size_t count;
    const struct dev_event *events = dev_events(r->allocator, &count);
    for (size_t i = 0; i < count; i++) {
        put(t, i == 0 ? ",\"ev\":[[\"" : ",[\"");
        put(t, dev_event_name(events[i].kind));
        put(t, "\",");
        put_i64(t, device_replay_relative(r, events[i].address));
        put_field(t, ",", events[i].bytes);
        put(t, i + 1 == count ? "]]" : "]");
    }
}

static void put_counters(struct text *t, const struct dev_stats *s)
{
    put_field(t, ",\"alloc\":", s->allocated_bytes.now);
    put_field(t, ",\"resv\":", s->reserved_bytes.now);
    put_field(t, ",\"active\":", s->allocated_bytes.now);
    put_field(t, ",\"isplit\":", s->inactive_split_bytes.now);
    put_field(t, ",\"req\":", s->requested_bytes.now);
    put_field(t, ",\"n\":[", s->allocations.now);
    put_field(t, ",", s->allocations.now);
    put_field(t, ",", s->inactive_splits.now);
    put_pair(t, "],\"seg\":[", s->segments_small.now, s->segments_large.now);
    put_field(t, ",\"rsmall\":", s->reserved_small_bytes.now);
    put_field(t, ",\"asmall\":", s->allocated_small_bytes.now);
    put_field(t, ",\"retries\":", s->retries);
    put_field(t, ",\"ooms\":", s->ooms);
    put_pair(t, ",\"dev\":[", s->device_allocs, s->device_frees);
    put_pair(t, ",\"over\":[", s->oversize_allocations.now, s->oversize_segments.now);
    put_field(t, ",\"syncs\":", s->syncs);
}

struct layout {
    struct text *text;
    const struct device_replay *replay;
    bool first;
};

static bool put_segment(void *context, const struct dev_segment_info *segment)
{
    struct layout *layout = context;
    struct text *t = layout->text;
    put(t, layout->first ? "[" : ",[");
    layout->first = false;
    put_i64(t, device_replay_relative(layout->replay, segment->address));
    put_field(t, ",", segment->bytes);
    put(t, segment->small ? ",\"small\"," : ",\"large\",");
    put_pair(t, "[", 0, segment->pool);
    put(t, segment->expandable ? ",true,[" : ",false,[");
    for (size_t i = 0; i < segment->block_count; i++) {
        put_field(t, i == 0 ? "[" : ",[", segment->blocks[i].bytes);
        put(t, segment->blocks[i].state == DEV_ALLOCATED ? ",\"active_allocated\"]" : ",\"inactive\"]");
    }
    put(t, "]]");
    return true;
}

static int put_layout(struct text *t, const struct device_replay *r, struct err *err)
{
    struct layout layout = {t, r, true};
    put(t, ",\"layout\":[");
    if (dev_walk(r->allocator, put_segment, &layout) != DEV_OK)
        return err_set(err, ERR_FAILED, "out of memory");
    put(t, "]");
    return 0;
}

struct row_style {
    uint64_t counters_every;
    bool device_free; /* device-limit cases tell the device's free bytes */
};

static int put_row(struct text *t, const struct device_replay *r, size_t i, const struct device_outcome *outcome,
                   const struct row_style *style, struct err *err)
{
    const struct dev_stats *stats = dev_stats(r->allocator);
    size_t events = 0;
    put_field(t, "{\"i\":", i);
    if (outcome->result == DEVICE_MARKED) {
        put(t, ",\"mark\":");
        put_string(t, r->ops->texts + r->ops->items[i].text);
        if (put_layout(t, r, err) != 0)
            return -1;
        put(t, "}\n");
        return 0;
    }
    if (outcome->result == DEVICE_ALLOCATED) {
        put(t, ",\"addr\":");
        put_i64(t, device_replay_relative(r, outcome->block.address));
        put_field(t, ",\"size\":", outcome->block.bytes);
    } else if (outcome->result == DEVICE_OOM) {
        put_oom(t, dev_last_oom(r->allocator), stats->ooms == 1 && style->counters_every == 1);
    } else if (outcome->result == DEVICE_NOOP) {
        put(t, ",\"noop\":1");
    } else if (outcome->result == DEVICE_FOREIGN) {
        put_field(t, ",\"device_rc\":", (uint64_t)outcome->rc);
    }
    if (style->device_free)
        put_field(t, ",\"dev_free\":", dev_device_free_bytes(r->allocator));
    if (outcome->result != DEVICE_NOOP) {
        dev_events(r->allocator, &events);
        put_events(t, r);
    }
    if ((i + 1) % style->counters_every == 0 || events > 0 || outcome->result == DEVICE_OOM)
        put_counters(t, stats);
    put(t, "}\n");
    return 0;
}

/* The fraction to give set_per_process_memory_fraction so that PyTorch gets this cap: int(fraction * total) == cap. */
static void put_fraction(struct text *t, uint64_t cap_bytes, uint64_t total_bytes)
{
    char number[40];
    double fraction = (double)cap_bytes / (double)total_bytes;
    while ((uint64_t)(fraction * (double)total_bytes) < cap_bytes)
        fraction = nextafter(fraction, INFINITY);
    int digits = 1;
    do
        snprintf(number, sizeof number, "%.*g", digits, fraction);
    while (strtod(number, NULL) != fraction && digits++ < 17);
    put(t, ",\"fraction\":");
    put(t, number);
}

static void put_header(struct text *t, const struct device_case *c, const char *variant, const char *setting,
                       const struct dev_config *config, const struct dev_stats *stats)
{
    put(t, "{\"header\":{\"case\":");
    put_string(t, c->name);
    put(t, ",\"variant\":");
    put_string(t, variant);
    put(t, ",\"setting\":");
    put_string(t, setting);
    /* What the rules were measured on. */
    put(t, ",\"torch\":\"2.11.0+cu130\",\"cuda\":\"13.0\",\"device\":\"NVIDIA H200\"");
    put_field(t, ",\"device_total\":", config->machine.total_bytes);
    put_field(t, ",\"total_global_mem\":", config->machine.total_bytes);
    put_field(t, ",\"free_after_context\":", config->machine.free_bytes);
    if (config->cap_bytes == DEV_NONE) {
        put(t, ",\"cap_bytes\":null");
    } else {
        put_field(t, ",\"cap_bytes\":", config->cap_bytes);
        put_fraction(t, config->cap_bytes, config->machine.total_bytes);
    }
    if (c->device_free_bytes != DEV_NONE) {
        put_field(t, ",\"ballast\":", config->ballast_bytes);
        put_field(t, ",\"ballast_rc\":0,\"device_free_at_start\":", config->machine.free_bytes - config->ballast_bytes);
    }
    put_field(t, ",\"allocated_at_start\":0,\"peak\":{\"allocated_bytes\":", stats->allocated_bytes.peak);
    put_field(t, ",\"reserved_bytes\":", stats->reserved_bytes.peak);
    put_field(t, ",\"active_bytes\":", stats->allocated_bytes.peak);
    put_field(t, ",\"inactive_split_bytes\":", stats->inactive_split_bytes.peak);
    put_field(t, ",\"segment\":", stats->segments.peak);
    put(t, "},\"driver\":\"580.159.04\",\"simulated_by\":\"pagesim " PAGESIM_VERSION "\"}}\n");
}

#define FLUSH_BYTES ((size_t)1 << 18)

static int flush(struct text *t, FILE *out, struct err *err)
{
    if (t->failed)
        return err_set(err, ERR_FAILED, "out of memory");
    if (t->count > 0 && fwrite(t->at, 1, t->count, out) != t->count)
        return err_set(err, ERR_FAILED, "cannot write the rows");
    t->count = 0;
    return 0;
}

/* The second pass: rows as they come. */
static int stream_rows(struct text *t, FILE *out, struct device_replay *r, const struct row_style *style, struct err *err)
{
    for (size_t i = 0; i < r->ops->count; i++) {
        struct device_outcome outcome;
        if (device_replay_step(r, i, &outcome, err) != 0 || put_row(t, r, i, &outcome, style, err) != 0)
            return -1;
        if ((t->count >= FLUSH_BYTES || t->failed) && flush(t, out, err) != 0)
            return -1;
    }
    return flush(t, out, err);
}

/* The first pass: is every operation in order, and what were the peaks? It costs less than keeping the rows would. */
static int find_peaks(const struct device_ops *ops, const struct dev_config *config, struct dev_stats *stats, struct err *err)
{
    struct device_replay r;
    struct device_outcome outcome;
    if (device_replay_init(&r, ops, config, err) != 0)
        return -1;
    int status = 0;
    for (size_t i = 0; status == 0 && i < ops->count; i++)
        status = device_replay_step(&r, i, &outcome, err);
    *stats = *dev_stats(r.allocator);
    device_replay_release(&r);
    return status;
}

int device_rows_write(const struct device_rows *rows, const struct device_ops *ops, const struct device_case *c,
                      const char *variant, const char *setting, struct err *err)
{
    struct dev_config config;
    struct dev_stats stats;
    struct device_replay r;
    struct text t = {0};
    struct row_style style = {.counters_every = rows->counters_every, .device_free = c->device_free_bytes != DEV_NONE};
    if (style.counters_every == 0)
        style.counters_every = strncmp(c->name, "long_", 5) == 0 ? 16 : 1;
    if (device_case_config(c, setting, &config, err) != 0 || find_peaks(ops, &config, &stats, err) != 0 ||
        device_replay_init(&r, ops, &config, err) != 0)
        return -1;
    put_header(&t, c, variant, setting, &config, &stats);
    int status = stream_rows(&t, rows->out, &r, &style, err);
    device_replay_release(&r);
    free(t.at);
    return status;
}
