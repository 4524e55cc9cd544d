/* `pagesim device` as users run it. */
#include "tests/check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/cli_run.h"

#define CASES "tests/golden/torch-caching-allocator/"
#define SNAPSHOTS "tests/golden/torch-snapshots/"

static char *dir;

static int make_dir(void **state)
{
    (void)state;
    dir = cli_temp_dir();
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    cli_temp_remove(dir);
    return 0;
}

static char *gunzip(const char *path)
{
    enum { MAX = 4 << 20 };
    char *text = malloc(MAX);
    gzFile file = gzopen(path, "rb");
    assert_non_null(text);
    assert_non_null(file);
    int bytes = gzread(file, text, MAX - 1);
    gzclose(file);
    assert_true(bytes > 0 && bytes < MAX - 1);
    text[bytes] = '\0';
    return text;
}

/* The rows behind the header, whose strings of origin differ. */
static const char *rows(const char *text)
{
    const char *end = strchr(text, '\n');
    assert_non_null(end);
    return end + 1;
}

static void replay__recorded_case__rows_as_recorded(void **state)
{
    (void)state;
    struct cli_result r;
    /* A case without failures: no row has a number that cannot be reproduced. */
    char *expected = gunzip(CASES "basic_rounding/expected-pow2_4.jsonl.gz");
    CLI(&r, "device", "replay", CASES "basic_rounding/ops.jsonl.gz", "--config", CASES "basic_rounding/config.json", "--variant", "pow2_4");
    check_str_eq(r.err, "");
    assert_int_equal(r.status, 0);
    check_str_eq(rows(r.out), rows(expected));
    check_str_has(r.out, "{\"header\":{\"case\":\"basic_rounding\",\"variant\":\"pow2_4\",\"setting\":\"roundup_power2_divisions:4\"");
    cli_release(&r);
    free(expected);
}

static void replay__standard_input_and_setting__same_rows(void **state)
{
    (void)state;
    struct cli_result r, file;
    char *ops = gunzip(CASES "basic_rounding/ops.jsonl.gz");
    struct cli_input input = {.stdin_bytes = ops, .stdin_count = strlen(ops)};
    cli_run(&r, &input, (const char *const[]){"device", "replay", "-", "--cap", "2GiB", "--setting", "expandable_segments:True", NULL});
    check_str_eq(r.err, "");
    assert_int_equal(r.status, 0);
    CLI(&file, "device", "replay", CASES "basic_rounding/ops.jsonl.gz", "--config", CASES "basic_rounding/config.json", "--variant",
        "expandable");
    check_str_eq(rows(r.out), rows(file.out));
    cli_release(&r);
    cli_release(&file);
    free(ops);
}

static void replay__bad_line__one_message_and_status_3(void **state)
{
    (void)state;
    static const struct {
        const char *ops, *message;
    } cases[] = {
        {"{\"op\":\"alloc\",\"id\":1}", ":1: bytes: found no such key, expected a size"},
        {"{\"op\":\"alloc\",\"id\":1,\"bytes\":0}", ":1:30: bytes: found '0', expected a size"},
        {"{\"op\":\"alloc\",\"id\":1,\"bytes\":281474976710657}", ":1:30: bytes: found '281474976710657', expected a size"},
        {"{\"op\":\"alloc\",\"id\":1,\"bytes\":-1}", ":1:30: bytes: found '-1', expected a size"},
        {"{\"op\":\"alloc\",\"id\":1,\"bytes\":1.5}", ":1:30: bytes: found '1.5', expected a size"},
        {"{\"op\":\"alloc\",\"id\":\"a\",\"bytes\":1}", ":1:20: id: found '\"a\"', expected an id"},
        {"{\"op\":\"malloc\",\"id\":1,\"bytes\":1}", ":1:7: op: found '\"malloc\"', expected alloc, free"},
        {"{\"op\":\"free\",\"id\":7}", ":1: id: found 7, which was never allocated"},
        {"{\"op\":\"alloc\",\"id\":1,\"bytes\":1}\n{\"op\":\"free\",\"id\":1}\n{\"op\":\"free\",\"id\":1}",
         ":3: id: found 1, which was freed at line 2"},
        {"{\"op\":\"alloc\",\"id\":1,\"bytes\":1}\n{\"op\":\"alloc\",\"id\":1,\"bytes\":1}", ":2: id: found 1, which is in use since line 1"},
        /* 2^48 bytes do not fit: the first free of what failed is nothing, the second one a mistake. */
        {"{\"op\":\"alloc\",\"id\":1,\"bytes\":281474976710656}\n{\"op\":\"free\",\"id\":1}\n{\"op\":\"free\",\"id\":1}",
         ":3: id: found 1, which was freed at line 2"},
        {"{\"op\":\"device_alloc\",\"id\":1,\"bytes\":1}\n{\"op\":\"free\",\"id\":1}", ":2: id: found 1, which a device_alloc took for good at line 1"},
        {"{\"op\":\"pool_end\",\"pool\":\"g\"}", ":1: pool: found 'g', which was never begun or is released"},
        {"{\"op\":\"pool_begin\",\"pool\":\"g\"}\n{\"op\":\"pool_release\",\"pool\":\"g\"}", ":2: pool: found 'g', which is open"},
        {"{\"op\":\"pool_begin\",\"pool\":\"g\"}\n{\"op\":\"pool_begin\",\"pool\":\"g\"}", ":2: pool: found 'g', which is open"},
        {"{\"op\":\"pool_begin\",\"pool\":\"g\"}\n{\"op\":\"pool_end\",\"pool\":\"g\"}\n{\"op\":\"pool_end\",\"pool\":\"g\"}",
         ":3: pool: found 'g', which is not open"},
        {"{\"op\":\"alloc\",\"id\":1,\"bytes\":1", ":1:31: found the end of the line"},
        {"{\"op\":\"empty_cache\"}\n{\"op\":\"segment\",\"address\":0,\"kind\":\"large\",\"blocks\":[2097152],\"ids\":[1]}",
         ":2: op: found a segment, expected segments before all else"},
        {"{\"op\":\"segment\",\"address\":0,\"kind\":\"large\",\"blocks\":[512],\"ids\":[1]}", ":1: blocks: found a segment that overlaps"},
        {"{\"op\":\"segment\",\"address\":0,\"kind\":\"huge\",\"blocks\":[512],\"ids\":[1]}", ":1:36: kind: found '\"huge\"', expected large"},
        {"{\"op\":\"segment\",\"address\":0,\"kind\":\"large\",\"blocks\":[512],\"ids\":[]}", ":1: ids: found 1 blocks and 0 ids"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_result r;
        struct cli_input input = {.stdin_bytes = cases[i].ops, .stdin_count = strlen(cases[i].ops)};
        cli_run(&r, &input, (const char *const[]){"device", "replay", "-", NULL});
        check_str_has(r.err, cases[i].message);
        check_str_has(r.err, "pagesim: standard input");
        check_str_eq(r.out, "");
        assert_int_equal(r.status, 3);
        cli_release(&r);
    }
}

static void replay__bad_usage__status_2(void **state)
{
    (void)state;
    static const struct {
        const char *option, *value, *message;
    } cases[] = {
        {"--setting", "expandable_segment:True", "setting 'expandable_segment:True': unknown key 'expandable_segment'"},
        {"--setting", "max_split_size_mb:20", "expected more than 20"},
        {"--variant", "nonsense", "--variant: found 'nonsense', expected default"},
        {"--cap", "many", "--cap: found 'many'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_result r;
        CLI(&r, "device", "replay", CASES "basic_rounding/ops.jsonl.gz", cases[i].option, cases[i].value);
        check_str_has(r.err, cases[i].message);
        assert_int_equal(r.status, 2);
        cli_release(&r);
    }
}

static void replay__bad_config__place_and_status_3(void **state)
{
    (void)state;
    static const struct {
        const char *config, *message;
    } cases[] = {
        {"{\"cap_bytes\": -1}", "cap_bytes: expected null or a size"},
        {"{\"cap_bytes\": \"2GiB\"}", "cap_bytes: expected null or a size"},
        {"{\"name\": 1}", "name: expected a string"},
        {"{\"variants\": []}", "variants: expected an object"},
        {"{\"variants\": {\"a\": 1}}", "variants: a: expected a setting"},
        {"{\"device_total\": 5, \"free_after_context\": 6}", "free_after_context: more than device_total"},
        {"{\n\"cap_bytes\" 1}", "config.json:2:"},
        {"[]", "expected an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_result r;
        const char *config = cli_write(dir, "config.json", cases[i].config, strlen(cases[i].config));
        CLI(&r, "device", "replay", CASES "basic_rounding/ops.jsonl.gz", "--config", config);
        check_str_has(r.err, cases[i].message);
        assert_int_equal(r.status, 3);
        cli_release(&r);
    }
}

/* At line 69 of the ladder 2048 MiB are allowed, 108 live, 1692 free in pieces of 188, so 248 are left and 300 are needed. */
static void summary__fragmented__proof_adds_up_and_names_the_pins(void **state)
{
    (void)state;
    struct cli_result r;
    CLI(&r, "device", "replay", CASES "oom_ladder/ops.jsonl.gz", "--config", CASES "oom_ladder/config.json", "--variant", "default", "--summary");
    assert_int_equal(r.status, 0);
    check_str_has(r.out, "line 69: id 38 asked for 300.00 MiB");
    check_str_has(r.out, "fragmentation: enough is free in this pool, but in pieces");
    check_str_has(r.out, "      2048.00 MiB allowed\n");
    check_str_has(r.out, "-       108.00 MiB requested by live blocks\n");
    check_str_has(r.out, "-      1692.00 MiB free, pinned by live blocks\n");
    check_str_has(r.out, "=       248.00 MiB left\n");
    check_str_has(r.out, "         52.00 MiB short\n");
    check_str_has(r.out, "9 holes of 128.00 to 256.00 MiB: 1692.00 MiB");
    check_str_has(r.out, "188.00 MiB free, pinned by id 36 pin (12.00 MiB)");
    check_str_has(r.out, "would not have failed with expandable_segments:True");
    check_str_has(r.out, "out of memory       4 of 101 operations");
    cli_release(&r);
}

static uint64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

/* The README counts 16 failures of this case by default; the recordings of the expandable variant have none. */
static void compare__settings__table_and_json(void **state)
{
    (void)state;
    struct cli_result r;
#define COMPARE "device", "replay", CASES "long_cat_small/ops.jsonl.gz", "--config", CASES "long_cat_small/config.json", "--setting", \
                "default", "--setting", "expandable_segments:True", "--setting", "max_split_size_mb:128,garbage_collection_threshold:0.8"
    CLI(&r, COMPARE, "--json");
    assert_int_equal(r.status, 0);
    json_t *root = json_loads(r.out, 0, NULL);
    assert_non_null(root);
    json_t *settings = json_object_get(root, "settings");
    check_u64_eq(json_array_size(settings), 3);
    check_u64_eq(number(json_array_get(settings, 0), "ooms"), 16);
    check_u64_eq(number(json_array_get(settings, 1), "ooms"), 0);
    const json_t *oom = json_array_get(json_object_get(json_array_get(settings, 0), "oom_list"), 0);
    check_u64_eq(number(oom, "line"), 12399);
    check_str_eq(json_string_value(json_array_get(json_object_get(oom, "avoided_by"), 0)), "expandable_segments:True");
    const json_t *states = json_object_get(oom, "states");
    check_u64_eq(number(oom, "limit_bytes"), number(oom, "room_bytes") + number(states, "reserved_bytes"));
    check_u64_eq(number(states, "reserved_bytes"), number(states, "requested_bytes") + number(states, "rounding_bytes") +
                                                       number(states, "private_bytes") + number(states, "pinned_bytes") +
                                                       number(states, "cached_bytes"));
    json_decref(root);
    cli_release(&r);
    CLI(&r, COMPARE);
    check_str_has(r.out, "peak reserved");
    check_str_has(r.out, "max_split_size_mb:128,garbage_collection_threshold:0.8\n");
    check_str_has(r.out, "line 12399 fails with default\n    would not have failed with expandable_segments:True\n");
    cli_release(&r);
}

static void import__snapshot__operations_that_replay(void **state)
{
    (void)state;
    struct cli_result r;
    const char *ops = cli_path(dir, "ops.jsonl");
    CLI(&r, "device", "import", SNAPSHOTS "oom_ladder.default.pickle", "--output", ops);
    check_str_has(r.err, "47 allocations, 42 frees, 4 out of memory, 0 segments at the start");
    check_str_eq(r.out, "");
    assert_int_equal(r.status, 0);
    cli_release(&r);
    CLI(&r, "device", "replay", ops, "--cap", "2GiB", "--json");
    assert_int_equal(r.status, 0);
    json_t *root = json_loads(r.out, 0, NULL);
    check_u64_eq(number(json_array_get(json_object_get(root, "settings"), 0), "ooms"), 4);
    json_decref(root);
    cli_release(&r);
    CLI(&r, "device", "import", "--summary", SNAPSHOTS "oom_ladder.default.pickle");
    check_str_has(r.out, "1 segments, 178 events, setting ''");
    check_str_has(r.out, "out of memory                                   4");
    cli_release(&r);
}

static void import__hostile_pickle__refused_with_offset(void **state)
{
    (void)state;
    struct cli_result r;
    static const char bytes[] = "cos\nsystem\n(S'touch /tmp/pagesim-was-here'\ntR.";
    const char *path = cli_write(dir, "evil.pickle", bytes, sizeof bytes - 1);
    CLI(&r, "device", "import", path);
    check_str_has(r.err, "evil.pickle: offset 0: refused opcode GLOBAL: only plain data is read");
    check_str_eq(r.out, "");
    assert_int_equal(r.status, 3);
    cli_release(&r);
}

static void replay__snapshot_and_picture__written_whole_or_not_at_all(void **state)
{
    (void)state;
    struct cli_result r;
    const char *snapshot = cli_path(dir, "s.pickle"), *picture = cli_path(dir, "p.csv"), *rows_file = cli_path(dir, "r.jsonl");
    CLI(&r, "device", "replay", CASES "oom_ladder/ops.jsonl.gz", "--config", CASES "oom_ladder/config.json", "--variant", "expandable",
        "--snapshot", snapshot, "--picture", picture, "--output", rows_file);
    check_str_eq(r.err, "");
    assert_int_equal(r.status, 0);
    cli_release(&r);
    char *csv = cli_read(picture);
    check_str_has(csv, "begin_op,end_op,low_mib,high_mib,state,pool,expandable,address_bytes\n0,9,0.0000,200.0000,live,large,1,0\n");
    free(csv);
    CLI(&r, "device", "import", snapshot);
    check_str_has(r.err, "47 allocations, 44 frees, 2 out of memory, 0 segments at the start");
    cli_release(&r);
    check_u64_eq(cli_count_entries(dir), 3);
    static const char bad[] = "{\"op\":\"free\",\"id\":1}\n";
    const char *ops = cli_write(dir, "bad.jsonl", bad, sizeof bad - 1);
    CLI(&r, "device", "replay", ops, "--snapshot", cli_path(dir, "s2.pickle"), "--output", cli_path(dir, "r2.jsonl"));
    assert_int_equal(r.status, 3);
    check_u64_eq(cli_count_entries(dir), 4);
    cli_release(&r);
}

static void picture__drawn__svg(void **state)
{
    (void)state;
    struct cli_result r;
    const char *picture = cli_path(dir, "p.csv");
    char command[1024];
    CLI(&r, "device", "replay", CASES "oom_ladder/ops.jsonl.gz", "--config", CASES "oom_ladder/config.json", "--variant", "default",
        "--picture", picture, "--output", "/dev/null");
    assert_int_equal(r.status, 0);
    cli_release(&r);
    if (system("gnuplot --version >/dev/null 2>&1") != 0)
        skip();
    snprintf(command, sizeof command, "gnuplot -d -c scripts/plot/device_memory.gp %s %s svg 'memory'", picture, cli_path(dir, "p.svg"));
    assert_int_equal(system(command), 0);
    char *svg = cli_read(cli_path(dir, "p.svg"));
    check_str_has(svg, "</svg>");
    check_str_has(svg, "handed out");
    free(svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replay__recorded_case__rows_as_recorded),
        cmocka_unit_test(replay__standard_input_and_setting__same_rows),
        cmocka_unit_test(replay__bad_line__one_message_and_status_3),
        cmocka_unit_test(replay__bad_usage__status_2),
        cmocka_unit_test_setup_teardown(replay__bad_config__place_and_status_3, make_dir, remove_dir),
        cmocka_unit_test(summary__fragmented__proof_adds_up_and_names_the_pins),
        cmocka_unit_test(compare__settings__table_and_json),
        cmocka_unit_test_setup_teardown(import__snapshot__operations_that_replay, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(import__hostile_pickle__refused_with_offset, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(replay__snapshot_and_picture__written_whole_or_not_at_all, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(picture__drawn__svg, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
