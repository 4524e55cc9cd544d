#include "sim/device_snapshot_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/device_replay.h"

/* Texts that recur; each is written once and then referred to by its number. */
#define WORDS(X)                                                                                                                   \
    X(segments) X(device_traces) X(allocator_settings) X(external_annotations) X(action) X(addr) X(size) X(stream) X(time_us)      \
    X(compile_context) X(user_metadata) X(device_free) X(alloc) X(free_requested) X(free_completed) X(segment_alloc)               \
    X(segment_free) X(segment_map) X(segment_unmap) X(oom) X(device) X(address) X(total_size) X(allocated_size) X(active_size)     \
    X(requested_size) X(segment_type) X(segment_pool_id) X(is_expandable) X(frames) X(blocks) X(state) X(large) X(small)           \
    X(active_allocated) X(inactive)

#define X(word) WORD_##word,
enum word { WORDS(X) WORD_COUNT };
#undef X
#define X(word) #word,
static const char *const TEXTS[] = {WORDS(X)};
#undef X

#define BATCH 1000 /* as Python's own pickler cuts long lists */

struct writer {
    FILE *out;
    uint8_t memo[WORD_COUNT]; /* its number + 1; 0: not yet written */
    uint8_t memo_count;
    size_t in_batch;
    uint64_t time_us;
};

/* ---- opcodes ---- */

static void put_op(struct writer *w, int op)
{
    fputc(op, w->out);
}

static void put_little(struct writer *w, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++, value >>= 8)
        fputc((int)(value & 0xff), w->out);
}

static void put_text(struct writer *w, const char *text)
{
    size_t bytes = strlen(text);
    put_op(w, bytes < 256 ? 0x8c : 'X'); /* SHORT_BINUNICODE, BINUNICODE */
    put_little(w, bytes, bytes < 256 ? 1 : 4);
    fwrite(text, 1, bytes, w->out);
}

static void put_word(struct writer *w, enum word word)
{
    if (w->memo[word] > 0) {
        put_op(w, 'h'); /* BINGET */
        put_little(w, w->memo[word] - 1u, 1);
        return;
    }
    put_text(w, TEXTS[word]);
    put_op(w, 0x94); /* MEMOIZE */
    w->memo[word] = ++w->memo_count;
}

static void put_int(struct writer *w, int64_t value)
{
    if (value >= 0 && value < 256) {
        put_op(w, 'K'); /* BININT1 */
        put_little(w, (uint64_t)value, 1);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put_op(w, 'J'); /* BININT */
        put_little(w, (uint64_t)value, 4);
    } else {
        int bytes = 4; /* as few as Python would write, with a sign bit on top */
        while (bytes < 8 && value >> (8 * bytes - 1) != (value < 0 ? -1 : 0))
            bytes++;
        put_op(w, 0x8a); /* LONG1 */
        put_little(w, (uint64_t)bytes, 1);
        put_little(w, (uint64_t)value, bytes);
    }
}

static void put_bool(struct writer *w, bool value)
{
    put_op(w, value ? 0x88 : 0x89);
}

static void put_real(struct writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_op(w, 'G'); /* BINFLOAT, big-endian */
    for (int shift = 56; shift >= 0; shift -= 8)
        fputc((int)(bits >> shift & 0xff), w->out);
}

static void begin_dict(struct writer *w)
{
    put_op(w, '}');
    put_op(w, '(');
}

static void end_dict(struct writer *w)
{
    put_op(w, 'u'); /* SETITEMS */
}

static void begin_list(struct writer *w)
{
    put_op(w, ']');
    put_op(w, '(');
}

static void end_list(struct writer *w)
{
    put_op(w, 'e'); /* APPENDS */
}

static void put_int_field(struct writer *w, enum word key, uint64_t value)
{
    put_word(w, key);
    put_int(w, (int64_t)value);
}

/* ---- history ---- */

static void put_event(struct writer *w, enum word action, uint64_t address, uint64_t bytes)
{
    if (w->in_batch == BATCH) {
        put_op(w, 'e');
        put_op(w, '(');
        w->in_batch = 0;
    }
    w->in_batch++;
    begin_dict(w);
    put_word(w, WORD_action);
    put_word(w, action);
    put_int_field(w, action == WORD_oom ? WORD_device_free : WORD_addr, address);
    put_int_field(w, WORD_size, bytes);
    put_int_field(w, WORD_stream, 0);
    put_int_field(w, WORD_time_us, w->time_us);
    put_word(w, WORD_compile_context);
    put_text(w, "N/A");
    put_word(w, WORD_user_metadata);
    put_text(w, "");
    end_dict(w);
}

static void put_segment_events(struct writer *w, const struct device_replay *r)
{
    static const enum word words[] = {WORD_segment_alloc, WORD_segment_free, WORD_segment_map, WORD_segment_unmap};
    size_t count;
    const struct dev_event *events = dev_events(r->allocator, &count);
    for (size_t i = 0; i < count; i++)
        put_event(w, words[events[i].kind], events[i].address, events[i].bytes);
}

static void put_step(struct writer *w, const struct device_replay *r, size_t i, const struct device_outcome *outcome)
{
    const struct device_op *op = &r->ops->items[i];
    w->time_us = op->time_us > 0 ? op->time_us : i + 1;
    switch (outcome->result) {
    case DEVICE_ALLOCATED:
        put_segment_events(w, r);
        put_event(w, WORD_alloc, outcome->block.address, op->bytes);
        break;
    case DEVICE_OOM:
        put_segment_events(w, r);
        put_event(w, WORD_oom, dev_last_oom(r->allocator)->free_bytes, dev_last_oom(r->allocator)->rounded_bytes);
        break;
    case DEVICE_DONE:
        if (op->kind == DEVICE_OP_FREE) {
            put_event(w, WORD_free_requested, outcome->freed_address, outcome->freed_bytes);
            put_event(w, WORD_free_completed, outcome->freed_address, outcome->freed_bytes);
        } else if (op->kind != DEVICE_OP_SEGMENT) {
            put_segment_events(w, r);
        }
        break;
    default:
        break;
    }
}

static int put_history(struct writer *w, struct device_replay *r, struct err *err)
{
    put_word(w, WORD_device_traces);
    begin_list(w);
    begin_list(w);
    for (size_t i = 0; i < r->ops->count; i++) {
        struct device_outcome outcome;
        if (device_replay_step(r, i, &outcome, err) != 0)
            return -1;
        put_step(w, r, i, &outcome);
    }
    end_list(w);
    end_list(w);
    return 0;
}

/* ---- segments ---- */

static bool put_segment(void *context, const struct dev_segment_info *segment)
{
    struct writer *w = context;
    begin_dict(w);
    put_int_field(w, WORD_device, 0);
    put_int_field(w, WORD_address, segment->address);
    put_int_field(w, WORD_total_size, segment->bytes);
    put_int_field(w, WORD_allocated_size, segment->allocated_bytes);
    put_int_field(w, WORD_active_size, segment->allocated_bytes);
    put_int_field(w, WORD_requested_size, segment->requested_bytes);
    put_int_field(w, WORD_stream, 0);
    put_word(w, WORD_segment_type);
    put_word(w, segment->small ? WORD_small : WORD_large);
    put_word(w, WORD_segment_pool_id);
    put_int(w, 0);
    put_int(w, segment->pool);
    put_op(w, 0x86); /* TUPLE2 */
    put_word(w, WORD_is_expandable);
    put_bool(w, segment->expandable);
    put_word(w, WORD_frames);
    put_op(w, ']');
    put_word(w, WORD_blocks);
    begin_list(w);
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct dev_block_info *block = &segment->blocks[i];
        begin_dict(w);
        put_int_field(w, WORD_address, block->address);
        put_int_field(w, WORD_size, block->bytes);
        put_int_field(w, WORD_requested_size, block->requested_bytes);
        put_word(w, WORD_state);
        put_word(w, block->state == DEV_ALLOCATED ? WORD_active_allocated : WORD_inactive);
        put_word(w, WORD_frames);
        put_op(w, ']');
        end_dict(w);
    }
    end_list(w);
    end_dict(w);
    return true;
}

static int put_segments(struct writer *w, const struct device_replay *r, struct err *err)
{
    put_word(w, WORD_segments);
    begin_list(w);
    if (dev_walk(r->allocator, put_segment, w) != DEV_OK)
        return err_set(err, ERR_FAILED, "out of memory");
    end_list(w);
    return 0;
}

/* ---- settings ---- */

static void put_false(struct writer *w, const char *key)
{
    put_text(w, key);
    put_bool(w, false);
}

static void put_settings(struct writer *w, const struct dev_settings *s, const char *text)
{
    put_word(w, WORD_allocator_settings);
    begin_dict(w);
    put_text(w, "PYTORCH_CUDA_ALLOC_CONF");
    put_text(w, text);
    put_text(w, "max_split_size");
    put_int(w, s->max_split_bytes == DEV_NONE ? -1 : (int64_t)s->max_split_bytes);
    put_text(w, "garbage_collection_threshold");
    put_real(w, s->gc_threshold);
    put_text(w, "expandable_segments");
    put_bool(w, s->expandable_segments);
    put_text(w, "pinned_num_register_threads");
    put_int(w, 1);
    put_false(w, "release_lock_on_cudamalloc");
    put_false(w, "pinned_use_cuda_host_register");
    put_false(w, "graph_capture_record_stream_reuse");
    put_text(w, "roundup_power2_divisions");
    begin_dict(w);
    for (unsigned i = 0; i < DEV_ROUNDUP_CLASSES; i++) {
        char mib[16];
        snprintf(mib, sizeof mib, "%u", 1u << i);
        put_text(w, mib);
        put_int(w, s->roundup_divisions[i]);
    }
    end_dict(w);
    end_dict(w);
}

int device_snapshot_write(const struct device_ops *ops, const struct device_case *c, const char *setting, FILE *out, struct err *err)
{
    struct writer w = {.out = out};
    struct dev_config config;
    struct device_replay r;
    if (device_case_config(c, setting, &config, err) != 0 || device_replay_init(&r, ops, &config, err) != 0)
        return -1;
    put_op(&w, 0x80); /* PROTO */
    put_op(&w, 4);
    begin_dict(&w);
    int status = put_history(&w, &r, err);
    if (status == 0)
        status = put_segments(&w, &r, err);
    put_settings(&w, &config.settings, setting);
    put_word(&w, WORD_external_annotations);
    put_op(&w, ']');
    end_dict(&w);
    put_op(&w, '.');
    device_replay_release(&r);
    if (status == 0 && ferror(out))
        status = err_set(err, ERR_FAILED, "cannot write the snapshot");
    return status;
}
