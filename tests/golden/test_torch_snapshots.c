/* Real PyTorch snapshots: read, turned into operations, replayed, written again. Expected values are the same snapshots as JSON, the
 * scripts that ran while they were recorded, and the recordings of those scripts. */
#include "tests/check.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "sim/device_import.h"
#include "sim/device_ops.h"
#include "sim/device_replay.h"
#include "sim/device_snapshot.h"
#include "sim/device_snapshot_write.h"

#define SNAPSHOTS "tests/golden/torch-snapshots/"
#define RECORDINGS "tests/golden/torch-caching-allocator/"
#define TEXT_MAX (8u << 20)

struct recording {
    const char *name, *variant;
};

static const struct recording RECORDED[] = {
    {"activations_prefill", "default"},   {"basic_rounding", "default"}, {"max_len_reservation", "default"},
    {"max_len_reservation", "expandable"}, {"oom_ladder", "default"},    {"oom_ladder", "expandable"},
    {"split_rule", "split128"},            {"static_kv_realloc", "default"},
};
#define COUNT (sizeof RECORDED / sizeof RECORDED[0])

static char *path_of(const struct recording *r, const char *end)
{
    static char path[256];
    snprintf(path, sizeof path, SNAPSHOTS "%s.%s.%s", r->name, r->variant, end);
    return path;
}

static void read_snapshot(const struct recording *r, struct device_snapshot *s)
{
    struct err err = {0};
    int status = device_snapshot_read(path_of(r, "pickle"), 0, s, &err);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
}

static json_t *read_json(const struct recording *r)
{
    char *text = malloc(TEXT_MAX);
    gzFile file = gzopen(path_of(r, "json.gz"), "rb");
    assert_non_null(text);
    assert_non_null(file);
    int bytes = gzread(file, text, TEXT_MAX);
    gzclose(file);
    assert_true(bytes > 0 && (unsigned)bytes < TEXT_MAX);
    json_t *root = json_loadb(text, (size_t)bytes, 0, NULL);
    free(text);
    assert_non_null(root);
    return root;
}

static uint64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

static void check_events(const struct device_snapshot *s, const json_t *trace)
{
    check_u64_eq(s->event_count, json_array_size(trace));
    for (size_t i = 0; i < s->event_count; i++) {
        const json_t *event = json_array_get(trace, i);
        check_str_eq(snapshot_action_name(s->events[i].action), json_string_value(json_object_get(event, "action")));
        check_u64_eq(s->events[i].address, number(event, s->events[i].action == SNAPSHOT_OOM ? "device_free" : "addr"));
        check_u64_eq(s->events[i].bytes, number(event, "size"));
        check_u64_eq(s->events[i].time_us, number(event, "time_us"));
    }
}

static void check_segments(const struct device_snapshot *s, const json_t *segments)
{
    static const char *const states[] = {"active_allocated", "active_awaiting_free", "inactive"};
    check_u64_eq(s->segment_count, json_array_size(segments));
    for (size_t i = 0; i < s->segment_count; i++) {
        const json_t *segment = json_array_get(segments, i), *blocks = json_object_get(segment, "blocks");
        check_u64_eq(s->segments[i].address, number(segment, "address"));
        check_u64_eq(s->segments[i].bytes, number(segment, "total_size"));
        check_str_eq(s->segments[i].small ? "small" : "large", json_string_value(json_object_get(segment, "segment_type")));
        assert_int_equal(s->segments[i].expandable, json_is_true(json_object_get(segment, "is_expandable")));
        check_u64_eq(s->segments[i].block_count, json_array_size(blocks));
        for (size_t k = 0; k < s->segments[i].block_count; k++) {
            const struct snapshot_block *block = &s->blocks[s->segments[i].block_first + k];
            const json_t *expected = json_array_get(blocks, k);
            check_u64_eq(block->address, number(expected, "address"));
            check_u64_eq(block->bytes, number(expected, "size"));
            check_u64_eq(block->requested_bytes, number(expected, "requested_size"));
            check_str_eq(states[block->state], json_string_value(json_object_get(expected, "state")));
        }
    }
}

static void snapshot__read__same_as_its_json(void **state)
{
    const struct recording *r = *state;
    struct device_snapshot s;
    read_snapshot(r, &s);
    json_t *root = read_json(r), *snapshot = json_object_get(root, "snapshot");
    check_events(&s, json_array_get(json_object_get(snapshot, "device_traces"), 0));
    check_segments(&s, json_object_get(snapshot, "segments"));
    check_str_eq(s.setting, json_string_value(json_object_get(root, "setting")));
    json_decref(root);
    device_snapshot_release(&s);
}

/* ---- replaying ---- */

/* Writes the snapshot's operations to a file and reads them. */
static void import(const struct device_snapshot *s, struct device_ops *ops, struct device_import *result)
{
    char path[] = "/tmp/pagesim_snapshot_XXXXXX";
    struct err err = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *out = fdopen(fd, "w");
    assert_non_null(out);
    int status = device_import_write(s, out, result, &err);
    fclose(out);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
    status = device_ops_read(path, ops, &err);
    remove(path);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
}

static void read_case(const struct recording *r, struct device_case *c, struct dev_config *config)
{
    char path[256];
    struct err err = {0};
    snprintf(path, sizeof path, RECORDINGS "%s/config.json", r->name);
    assert_int_equal(device_case_read(path, c, &err), 0);
    assert_int_equal(device_case_config(c, device_case_setting(c, r->variant), config, &err), 0);
}

/* Allocations that failed or not, and frees: in the script (its ids renumbered as they come) and in the imported operations. */
struct step {
    bool frees, failed;
    uint64_t bytes; /* alloc that did not fail */
    size_t of;      /* free: the number of its allocation */
};

static size_t steps_of(struct device_replay *r, struct step *steps)
{
    size_t n = 0, allocs = 0, *number_of = calloc(r->ops->id_count + 1, sizeof *number_of);
    assert_non_null(number_of);
    for (size_t i = 0; i < r->ops->count; i++) {
        struct device_outcome outcome;
        struct err err = {0};
        const struct device_op *op = &r->ops->items[i];
        assert_int_equal(device_replay_step(r, i, &outcome, &err), 0);
        if (op->kind == DEVICE_OP_ALLOC) {
            bool failed = outcome.result == DEVICE_OOM;
            number_of[op->slot] = allocs++;
            steps[n++] = (struct step){.failed = failed, .bytes = failed ? 0 : op->bytes};
        } else if (op->kind == DEVICE_OP_FREE && outcome.result == DEVICE_DONE) {
            steps[n++] = (struct step){.frees = true, .of = number_of[op->slot]};
        }
    }
    free(number_of);
    return n;
}

static void snapshot__imported__allocations_and_frees_of_the_script(void **state)
{
    const struct recording *r = *state;
    struct device_snapshot s;
    struct device_import result;
    struct device_ops imported, script;
    struct device_case c;
    struct dev_config config;
    struct device_replay a, b;
    struct err err = {0};
    char path[256];
    read_snapshot(r, &s);
    import(&s, &imported, &result);
    read_case(r, &c, &config);
    snprintf(path, sizeof path, RECORDINGS "%s/ops.jsonl.gz", r->name);
    assert_int_equal(device_ops_read(path, &script, &err), 0);
    assert_int_equal(device_replay_init(&a, &imported, &config, &err), 0);
    assert_int_equal(device_replay_init(&b, &script, &config, &err), 0);
    struct step *actual = calloc(imported.count + 1, sizeof *actual), *expected = calloc(script.count + 1, sizeof *expected);
    assert_non_null(actual);
    assert_non_null(expected);
    size_t n = steps_of(&a, actual), expected_n = steps_of(&b, expected);
    check_u64_eq(n, expected_n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(actual[i].frees, expected[i].frees);
        assert_int_equal(actual[i].failed, expected[i].failed);
        check_u64_eq(actual[i].bytes, expected[i].bytes);
        check_u64_eq(actual[i].of, expected[i].of);
    }
    check_u64_eq(result.start_segments, 0);
    free(actual);
    free(expected);
    device_replay_release(&a);
    device_replay_release(&b);
    device_ops_release(&imported);
    device_ops_release(&script);
    device_case_release(&c);
    device_snapshot_release(&s);
}

/* Compares what a replay does with the history from event *at on. base: what recorded addresses are relative to. */
static void check_step(const struct device_replay *r, const struct device_op *op, const struct device_outcome *outcome,
                       const struct device_snapshot *s, size_t *at, uint64_t base)
{
    static const enum snapshot_action actions[] = {SNAPSHOT_SEGMENT_ALLOC, SNAPSHOT_SEGMENT_FREE, SNAPSHOT_SEGMENT_MAP,
                                                   SNAPSHOT_SEGMENT_UNMAP};
    size_t count;
    const struct dev_event *events = dev_events(r->allocator, &count);
    if (op->kind == DEVICE_OP_FREE) {
        check_i64_eq(device_replay_relative(r, outcome->freed_address), (int64_t)(s->events[*at].address - base));
        *at += 2; /* requested, completed */
        return;
    }
    for (size_t i = 0; i < count; i++, (*at)++) {
        check_str_eq(dev_event_name(events[i].kind), snapshot_action_name(s->events[*at].action));
        assert_int_equal(actions[events[i].kind], s->events[*at].action);
        check_i64_eq(device_replay_relative(r, events[i].address), (int64_t)(s->events[*at].address - base));
        check_u64_eq(events[i].bytes, s->events[*at].bytes);
    }
    if (op->kind != DEVICE_OP_ALLOC)
        return;
    const struct snapshot_event *event = &s->events[(*at)++];
    assert_int_equal(outcome->result == DEVICE_OOM, event->action == SNAPSHOT_OOM);
    if (outcome->result == DEVICE_ALLOCATED)
        check_i64_eq(device_replay_relative(r, outcome->block.address), (int64_t)(event->address - base));
    else
        check_u64_eq(dev_last_oom(r->allocator)->rounded_bytes, event->bytes);
}

static uint64_t base_of(const struct device_snapshot *s)
{
    size_t i = 0;
    while (s->events[i].action < SNAPSHOT_SEGMENT_ALLOC || s->events[i].action > SNAPSHOT_SEGMENT_UNMAP)
        i++;
    return s->events[i].address;
}

static void replay_and_check(const struct recording *r, const struct device_snapshot *s, const struct device_ops *ops, uint64_t base)
{
    struct device_case c;
    struct dev_config config;
    struct device_replay replay;
    struct err err = {0};
    size_t at = 0;
    read_case(r, &c, &config);
    assert_int_equal(device_replay_init(&replay, ops, &config, &err), 0);
    for (size_t i = 0; i < ops->count; i++) {
        struct device_outcome outcome;
        int status = device_replay_step(&replay, i, &outcome, &err);
        check_str_eq(err.text, "");
        assert_int_equal(status, 0);
        if (ops->items[i].kind != DEVICE_OP_SEGMENT)
            check_step(&replay, &ops->items[i], &outcome, s, &at, base);
    }
    check_u64_eq(at, s->event_count);
    device_replay_release(&replay);
    device_case_release(&c);
}

static void snapshot__imported_and_replayed__recorded_addresses(void **state)
{
    const struct recording *r = *state;
    struct device_snapshot s;
    struct device_import result;
    struct device_ops ops;
    read_snapshot(r, &s);
    import(&s, &ops, &result);
    replay_and_check(r, &s, &ops, base_of(&s));
    device_ops_release(&ops);
    device_snapshot_release(&s);
}

/* ---- a history that was switched on late ---- */

/* Removes events so that the history begins between two operations, somewhere in its middle. */
static void forget_first_half(struct device_snapshot *s)
{
    size_t from = s->event_count / 2;
    while (s->events[from - 1].action != SNAPSHOT_FREE_COMPLETED)
        from++;
    memmove(s->events, s->events + from, (s->event_count - from) * sizeof *s->events);
    s->event_count -= from;
}

/* Live blocks in address order, relative to the first: what must be the same wherever segments lie. */
struct live {
    uint64_t first, bytes, count, sum;
    bool any;
};

static bool add_live(void *context, const struct dev_segment_info *segment)
{
    struct live *live = context;
    for (size_t i = 0; i < segment->block_count; i++)
        if (segment->blocks[i].state == DEV_ALLOCATED) {
            live->count++;
            live->bytes += segment->blocks[i].bytes;
        }
    live->sum += segment->bytes;
    return true;
}

static void snapshot__history_from_the_middle__ends_with_the_same_bytes(void **state)
{
    const struct recording *r = *state;
    struct device_snapshot s;
    struct device_import result;
    struct device_ops ops;
    struct device_case c;
    struct dev_config config;
    struct device_replay replay;
    struct err err = {0};
    struct live live = {0}, expected = {0};
    read_snapshot(r, &s);
    forget_first_half(&s);
    import(&s, &ops, &result);
    assert_true(s.event_count > 0);
    read_case(r, &c, &config);
    assert_int_equal(device_replay_init(&replay, &ops, &config, &err), 0);
    uint64_t allocs = 0, ooms = 0, expected_ooms = 0;
    for (size_t i = 0; i < ops.count; i++) {
        struct device_outcome outcome;
        int status = device_replay_step(&replay, i, &outcome, &err);
        check_str_eq(err.text, "");
        assert_int_equal(status, 0);
        assert_null(dev_check(replay.allocator));
        allocs += ops.items[i].kind == DEVICE_OP_ALLOC;
        ooms += outcome.result == DEVICE_OOM;
    }
    uint64_t expected_allocs = 0;
    for (size_t i = 0; i < s.event_count; i++) {
        expected_allocs += s.events[i].action == SNAPSHOT_ALLOC || s.events[i].action == SNAPSHOT_OOM;
        expected_ooms += s.events[i].action == SNAPSHOT_OOM;
    }
    check_u64_eq(allocs, expected_allocs);
    check_u64_eq(ooms, expected_ooms);
    assert_int_equal(dev_walk(replay.allocator, add_live, &live), DEV_OK);
    for (size_t i = 0; i < s.segment_count; i++)
        expected.sum += s.segments[i].bytes;
    for (size_t i = 0; i < s.block_count; i++)
        if (s.blocks[i].state == SNAPSHOT_ACTIVE) {
            expected.count++;
            expected.bytes += s.blocks[i].bytes;
        }
    check_u64_eq(live.count, expected.count);
    check_u64_eq(live.bytes, expected.bytes);
    check_u64_eq(live.sum, expected.sum);
    device_replay_release(&replay);
    device_ops_release(&ops);
    device_case_release(&c);
    device_snapshot_release(&s);
}

/* ---- writing ---- */

static void write_snapshot(const struct device_ops *ops, const struct recording *r, char **bytes, size_t *count)
{
    struct device_case c;
    struct dev_config config;
    struct err err = {0};
    read_case(r, &c, &config);
    FILE *out = open_memstream(bytes, count);
    assert_non_null(out);
    int status = device_snapshot_write(ops, &c, device_case_setting(&c, r->variant), out, &err);
    fclose(out);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
    device_case_release(&c);
}

/* The written snapshot must be the recorded one but for where the process put its memory, and the device's free bytes. */
static void check_same(const struct device_snapshot *a, const struct device_snapshot *b)
{
    uint64_t base_a = base_of(a), base_b = base_of(b);
    check_u64_eq(a->event_count, b->event_count);
    for (size_t i = 0; i < a->event_count; i++) {
        assert_int_equal(a->events[i].action, b->events[i].action);
        check_u64_eq(a->events[i].bytes, b->events[i].bytes);
        if (a->events[i].action != SNAPSHOT_OOM)
            check_u64_eq(a->events[i].address - base_a, b->events[i].address - base_b);
    }
    check_u64_eq(a->segment_count, b->segment_count);
    check_u64_eq(a->block_count, b->block_count);
    for (size_t i = 0; i < a->segment_count; i++) {
        check_u64_eq(a->segments[i].address - base_a, b->segments[i].address - base_b);
        check_u64_eq(a->segments[i].bytes, b->segments[i].bytes);
        assert_int_equal(a->segments[i].small, b->segments[i].small);
        assert_int_equal(a->segments[i].expandable, b->segments[i].expandable);
    }
    for (size_t i = 0; i < a->block_count; i++) {
        check_u64_eq(a->blocks[i].address - base_a, b->blocks[i].address - base_b);
        check_u64_eq(a->blocks[i].bytes, b->blocks[i].bytes);
        check_u64_eq(a->blocks[i].requested_bytes, b->blocks[i].requested_bytes);
        assert_int_equal(a->blocks[i].state, b->blocks[i].state);
    }
    check_str_eq(a->setting, b->setting);
}

static void snapshot__written_and_read_again__same(void **state)
{
    const struct recording *r = *state;
    struct device_snapshot recorded, written;
    struct device_import result, again_result;
    struct device_ops ops, again;
    struct err err = {0};
    char *bytes;
    size_t count;
    read_snapshot(r, &recorded);
    import(&recorded, &ops, &result);
    write_snapshot(&ops, r, &bytes, &count);
    assert_int_equal(device_snapshot_parse(bytes, count, "written", 0, &written, &err), 0);
    check_same(&written, &recorded);
    import(&written, &again, &again_result);
    check_u64_eq(again.count, ops.count);
    for (size_t i = 0; i < ops.count; i++) {
        assert_int_equal(again.items[i].kind, ops.items[i].kind);
        check_u64_eq(again.items[i].slot, ops.items[i].slot);
        check_u64_eq(again.items[i].bytes, ops.items[i].bytes);
        check_u64_eq(again.items[i].time_us, ops.items[i].time_us);
    }
    free(bytes);
    device_ops_release(&ops);
    device_ops_release(&again);
    device_snapshot_release(&recorded);
    device_snapshot_release(&written);
}

/* ---- histories of all recorded scripts ---- */

/* Left out: what a snapshot cannot tell, namely allocations by others in the process (serving_*) and pools that are gone at the end. */
static const struct recording SCRIPTS[] = {
    {"activations_prefill", "split128_gc08"}, {"activations_prefill", "pow2_4"},   {"best_fit_ties", "gc08"},
    {"device_limit_ladder", "expandable"},    {"device_limit_ladder", "split128"}, {"device_limit_prefill", "split128"},
    {"dynamic_cache_cat", "default"},         {"expandable_pages", "expandable"},  {"gc_threshold", "split128_gc08"},
    {"gc_threshold", "gc08"},                 {"long_cat_small", "default"},       {"long_kv_growth", "gc08"},
    {"long_kv_growth", "expandable"},         {"long_static_kv", "split128"},      {"max_split_oversize", "split128_gc08"},
    {"max_split_oversize", "split128"},       {"oom_ladder", "split128"},          {"sleep_mode", "default"},
    {"small_pool", "expandable"},             {"split_rule", "default"},           {"weights_fp8_inplace", "gc08"},
    {"weights_fp8_late_free", "default"},     {"cuda_graph_pools", "default"},     {"cuda_graph_pools", "expandable"},
    {"cuda_graph_pools", "split128"},         {"cuda_graph_pools", "gc08"},
};
#define SCRIPT_COUNT (sizeof SCRIPTS / sizeof SCRIPTS[0])
#define POOLS_ALIVE 561 /* operations of cuda_graph_pools before the first pool is released */

static void history__of_a_script__imported_and_replayed__same_addresses(void **state)
{
    const struct recording *r = *state;
    struct device_ops script, imported;
    struct device_snapshot s;
    struct device_import result;
    struct err err = {0};
    char path[256], *bytes;
    size_t count;
    snprintf(path, sizeof path, RECORDINGS "%s/ops.jsonl.gz", r->name);
    assert_int_equal(device_ops_read(path, &script, &err), 0);
    if (strcmp(r->name, "cuda_graph_pools") == 0)
        script.count = POOLS_ALIVE;
    write_snapshot(&script, r, &bytes, &count);
    assert_int_equal(device_snapshot_parse(bytes, count, "written", 0, &s, &err), 0);
    free(bytes);
    import(&s, &imported, &result);
    replay_and_check(r, &s, &imported, base_of(&s));
    device_ops_release(&script);
    device_ops_release(&imported);
    device_snapshot_release(&s);
}

int main(void)
{
    static const struct {
        const char *name;
        CMUnitTestFunction run;
    } cases[] = {
        {"read, same as its JSON", snapshot__read__same_as_its_json},
        {"imported, allocations and frees of the script", snapshot__imported__allocations_and_frees_of_the_script},
        {"imported and replayed, recorded addresses", snapshot__imported_and_replayed__recorded_addresses},
        {"history from the middle, ends with the same bytes", snapshot__history_from_the_middle__ends_with_the_same_bytes},
        {"written and read again, same", snapshot__written_and_read_again__same},
    };
    enum { CASES = sizeof cases / sizeof cases[0] };
    static struct CMUnitTest tests[COUNT * CASES + SCRIPT_COUNT];
    static char names[COUNT * CASES + SCRIPT_COUNT][128];
    size_t n = 0;
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < CASES; k++, n++) {
            snprintf(names[n], sizeof names[n], "%s %s: %s", RECORDED[i].name, RECORDED[i].variant, cases[k].name);
            tests[n] = (struct CMUnitTest){.name = names[n], .test_func = cases[k].run, .initial_state = (void *)&RECORDED[i]};
        }
    for (size_t i = 0; i < SCRIPT_COUNT; i++, n++) {
        snprintf(names[n], sizeof names[n], "%s %s: simulated history, imported and replayed, same addresses", SCRIPTS[i].name,
                 SCRIPTS[i].variant);
        tests[n] = (struct CMUnitTest){.name = names[n], .test_func = history__of_a_script__imported_and_replayed__same_addresses,
                                       .initial_state = (void *)&SCRIPTS[i]};
    }
    return _cmocka_run_group_tests("torch snapshots", tests, n, NULL, NULL) != 0;
}
