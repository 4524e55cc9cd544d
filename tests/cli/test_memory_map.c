/* run --memory-map: pictures of the pool whose slots add up to the accounting's states. */
#include "tests/check.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli_run.h"

#define TOKEN_BYTES 131072 /* the default of --kv-bytes-per-token */

static int setup(void **state)
{
    *state = cli_temp_dir();
    return 0;
}

static int teardown(void **state)
{
    cli_temp_remove(*state);
    return 0;
}

static json_t *parse(const char *line, size_t bytes)
{
    json_error_t trouble;
    json_t *value = json_loadb(line, bytes, 0, &trouble);
    if (!value) fail_msg("%.60s: %s", line, trouble.text);
    return value;
}

static uint64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

static uint64_t item(const json_t *list, size_t i)
{
    return (uint64_t)json_integer_value(json_array_get(list, i));
}

struct sums {
    uint64_t kinds[4]; /* cells: free, cached, held, overhead */
    uint64_t live, dead, reserved, internal, rounding; /* slots */
};

static struct sums add_up(const json_t *frame)
{
    struct sums sums = {0};
    size_t i;
    json_t *cell;
    json_array_foreach(json_object_get(frame, "cells"), i, cell) {
        uint64_t run = item(cell, 0);
        sums.kinds[item(cell, 1)] += run;
        sums.live += run * item(cell, 4);
        sums.dead += run * item(cell, 5);
        sums.reserved += run * item(cell, 6);
        sums.internal += run * item(cell, 7);
        sums.rounding += run * item(cell, 8);
    }
    return sums;
}

/* A small pool: a cell is a unit, so that kinds add up too. */
static void check_frame(const json_t *header, const json_t *frame)
{
    struct sums sums = add_up(frame);
    const json_t *states = json_object_get(frame, "states");
    uint64_t unit = number(header, "unit_bytes");
    check_u64_eq(sums.kinds[0] + sums.kinds[1] + sums.kinds[2] + sums.kinds[3], number(header, "units"));
    check_u64_eq(sums.live * TOKEN_BYTES, number(states, "live"));
    check_u64_eq(sums.dead * TOKEN_BYTES, number(states, "dead"));
    check_u64_eq(sums.reserved * TOKEN_BYTES, number(states, "reserved"));
    check_u64_eq(sums.internal * TOKEN_BYTES, number(states, "internal"));
    check_u64_eq(sums.rounding * TOKEN_BYTES, number(states, "rounding"));
    check_u64_eq(sums.kinds[1] * unit, number(states, "cached"));
    check_u64_eq(sums.kinds[0] * unit, number(states, "free") + number(states, "stranded"));
}

static size_t check_all(const char *text)
{
    const char *end = strchr(text, '\n');
    json_t *header = parse(text, (size_t)(end - text));
    size_t frames = 0;
    for (const char *line = end + 1; *line; line = end + 1, frames++) {
        end = strchr(line, '\n');
        json_t *frame = parse(line, (size_t)(end - line));
        check_frame(header, frame);
        json_decref(frame);
    }
    json_decref(header);
    return frames;
}

/* A trace with all that can happen to a slot: sharing, samples, preemption; 3,000 slots so that every policy is short. */
#define TRACE "gen:requests=120,arrivals=poisson:60,prompt-tokens=lognormal:4.6:0.8@1..600,output-tokens=lognormal:4:0.8@1..200,prefix-tokens=50,content=tokens"

static void map_of(const char *dir, const char *policy, const char *trace, const char *more, const char *value, const char *at_least)
{
    struct cli_result r;
    if (more) CLI(&r, "run", trace, "--policy", policy, "--pool-tokens", "3000", "--memory-map", cli_path(dir, "map.jsonl"), "--memory-map-frames", "40", more, value);
    else CLI(&r, "run", trace, "--policy", policy, "--pool-tokens", "3000", "--memory-map", cli_path(dir, "map.jsonl"), "--memory-map-frames", "40");
    check_i64_eq(r.status, 0);
    cli_release(&r);
    char *text = cli_read(cli_path(dir, "map.jsonl"));
    assert_non_null(text);
    size_t frames = check_all(text);
    assert_true(frames >= 20 && frames <= 80);
    if (at_least) assert_non_null(strstr(text, at_least));
    free(text);
}

static void memory_map__each_policy__adds_up_to_the_states(void **state)
{
    static const struct { const char *policy, *more, *value; } cases[] = {
        {"static", "--placement", "first-fit"}, {"static", "--placement", "buddy"}, {"static", "--reserve", "oracle"},
        {"static-paged", NULL, NULL}, {"dynamic", NULL, NULL}, {"dynamic", "--block-size", "1"}, {"prefix", NULL, NULL},
        {"prefix", "--block-size", "64"}, {"prefix", "--evict", "wa"}, {"prefix", "--sliding-window", "64"}, {"ideal", NULL, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) map_of(*state, cases[i].policy, TRACE, cases[i].more, cases[i].value, NULL);
}

static void memory_map__samples__shared_blocks_count_once(void **state)
{
    map_of(*state, "dynamic", TRACE ",n=3", NULL, NULL, "]");
    map_of(*state, "prefix", TRACE ",n=3", NULL, NULL, "]");
}

/* Where jemalloc puts regions is its own; that each slot has one owner, and the regions lie in the pool, is not. */
static void memory_map__jemalloc__regions_in_the_pool(void **state)
{
    struct cli_result r;
    CLI(&r, "run", TRACE, "--policy", "jemalloc", "--pool-tokens", "3000", "--memory-map", cli_path(*state, "map.jsonl"));
    check_i64_eq(r.status, 0);
    cli_release(&r);
    char *text = cli_read(cli_path(*state, "map.jsonl"));
    const char *end = strchr(text, '\n');
    for (const char *line = end + 1; *line; line = end + 1) {
        end = strchr(line, '\n');
        json_t *frame = parse(line, (size_t)(end - line));
        struct sums sums = add_up(frame);
        check_u64_eq(sums.live * TOKEN_BYTES, number(json_object_get(frame, "states"), "live"));
        check_u64_eq(sums.internal * TOKEN_BYTES, number(json_object_get(frame, "states"), "internal"));
        check_u64_eq(sums.kinds[0] + sums.kinds[2], 3000);
        json_decref(frame);
    }
    free(text);
}

/* Looking takes no part in the run. */
/* 24 GiB on the caching allocator: the purposes add up to the device, the segments are what the framework has of it, and
 * of their blocks those without use are `cached`. A device that is a plain budget has no segments. */
static void memory_map__device__purposes_and_segments_add_up(void **state)
{
    static const char *const models[] = {"caching", "budget"};
    for (size_t m = 0; m < 2; m++) {
        struct cli_result r;
        CLI(&r, "run", TRACE, "--gpu-memory", "24GiB", "--weights-memory", "16GiB", "--non-torch-memory", "700MiB", "--activation-memory", "1GiB",
            "--cuda-graph-memory", "200MiB", "--gpu-memory-utilization", "0.9", "--late-buffer", "600MiB@1s", "--device-model", models[m],
            "--memory-map", cli_path(*state, "map.jsonl"), "--memory-map-frames", "20");
        check_i64_eq(r.status, 0);
        cli_release(&r);
        char *text = cli_read(cli_path(*state, "map.jsonl"));
        uint64_t frames = 0, with_buffer = 0;
        for (char *line = strchr(text, '\n') + 1, *end; *line; line = end + 1, frames++) {
            end = strchr(line, '\n');
            json_t *frame = parse(line, (size_t)(end - line));
            const json_t *device = json_object_get(frame, "device"), *bytes = json_object_get(device, "bytes"), *value;
            const json_t *segments = json_object_get(device, "segments");
            const char *key;
            uint64_t all = 0, framework = 0, idle = 0;
            json_object_foreach((json_t *)bytes, key, value) all += (uint64_t)json_integer_value(value);
            check_u64_eq(all, (uint64_t)24 << 30);
            for (size_t s = 0; s < json_array_size(segments); s++) {
                const json_t *segment = json_array_get(segments, s);
                framework += item(segment, 0);
                for (size_t b = 1; b < json_array_size(segment); b++) {
                    const json_t *block = json_array_get(segment, b);
                    if (item(block, 1) == 0) idle += item(block, 0);
                }
            }
            check_u64_eq(idle, m == 0 ? number(bytes, "cached") : 0);
            check_u64_eq(framework, m == 0 ? number(bytes, "weights") + number(bytes, "graphs") + number(bytes, "pool") + idle : 0);
            with_buffer += number(bytes, "buffers") == (uint64_t)600 << 20;
            json_decref(frame);
        }
        assert_true(frames >= 10 && with_buffer > 0 && with_buffer < frames);
        free(text);
    }
}

static void memory_map__any__same_result(void **state)
{
    struct cli_result with, without;
    CLI(&with, "run", TRACE, "--policy", "prefix", "--pool-tokens", "3000", "--memory-map", cli_path(*state, "m"), "--json");
    CLI(&without, "run", TRACE, "--policy", "prefix", "--pool-tokens", "3000", "--json");
    check_str_eq(with.out, without.out);
    cli_release(&with);
    cli_release(&without);
}

/* Eight blocks of 16, a prompt of 40 tokens alone: three blocks, the last with 8 tokens, worked out by hand. One output
 * token only, which is never written: 40 slots are live, 8 never filled. Block 0 is the null block. */
static void memory_map__by_hand__blocks_of_one_request(void **state)
{
    static const char trace[] = "{\"id\":\"a\",\"arrival_ns\":0,\"prompt_tokens\":40,\"output_tokens\":3}\n";
    struct cli_result r;
    CLI(&r, "run", cli_write(*state, "t.jsonl", trace, sizeof trace - 1), "--policy", "prefix", "--num-gpu-blocks-override", "8", "--memory-map",
        cli_path(*state, "map.jsonl"), "--step-time", "unit");
    check_i64_eq(r.status, 0);
    cli_release(&r);
    char *text = cli_read(cli_path(*state, "map.jsonl"));
    assert_non_null(strstr(text, "\"units\":8,\"first_number\":0,\"unit_tokens\":16,\"unit_bytes\":2097152,\"units_per_cell\":1,\"contiguous\":false"));
    /* After step 0: 40 of the 42 tokens that will be written (the third output token never is). */
    assert_non_null(strstr(text, "\"running\":[[0,\"a\",40,42,[1,2,3]]],\"cells\":[[1,3],[2,2,0,1,16,0,0,0,0],[1,2,0,1,8,0,2,6,0],[4,0]]}"));
    /* After step 1 one more. */
    assert_non_null(strstr(text, "\"running\":[[0,\"a\",41,42,[1,2,3]]],\"cells\":[[1,3],[2,2,0,1,16,0,0,0,0],[1,2,0,1,9,0,1,6,0],[4,0]]}"));
    /* At the end it is gone, and its two full blocks stay cached. */
    assert_non_null(strstr(text, "\"running\":[],\"cells\":[[1,3],[2,1],[5,0]]}"));
    free(text);
}

static void memory_map__large_pool__cells_of_several_units(void **state)
{
    struct cli_result r;
    CLI(&r, "run", TRACE, "--policy", "static", "--pool-tokens", "10000", "--memory-map", cli_path(*state, "map.jsonl"), "--memory-map-frames", "8");
    check_i64_eq(r.status, 0);
    cli_release(&r);
    char *text = cli_read(cli_path(*state, "map.jsonl"));
    assert_non_null(strstr(text, "\"units_per_cell\":3")); /* 10,000 slots in at most 4,096 cells */
    size_t lines = 0;
    for (const char *p = text; *p; p++) lines += *p == '\n';
    assert_true(lines >= 9 && lines <= 17);
    const char *line = strchr(text, '\n') + 1;
    json_t *frame = parse(line, (size_t)(strchr(line, '\n') - line));
    struct sums sums = add_up(frame);
    check_u64_eq(sums.kinds[0] + sums.kinds[2], 3334);
    check_u64_eq(sums.live * TOKEN_BYTES, number(json_object_get(frame, "states"), "live"));
    json_decref(frame);
    free(text);
}

static void memory_map__cannot_be_written__is_said(void **state)
{
    struct cli_result r;
    (void)state;
    CLI(&r, "run", TRACE, "--memory-map", "/nowhere/at/all");
    check_i64_eq(r.status, 1);
    assert_non_null(strstr(r.err, "/nowhere/at/all"));
    cli_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        CASE(memory_map__each_policy__adds_up_to_the_states),
        CASE(memory_map__samples__shared_blocks_count_once),
        CASE(memory_map__jemalloc__regions_in_the_pool),
        CASE(memory_map__device__purposes_and_segments_add_up),
        CASE(memory_map__any__same_result),
        CASE(memory_map__by_hand__blocks_of_one_request),
        CASE(memory_map__large_pool__cells_of_several_units),
        CASE(memory_map__cannot_be_written__is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
