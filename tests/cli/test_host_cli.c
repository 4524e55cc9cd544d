/* The host tier as its users ask for it: `run --host-cache`. */
#include "tests/check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli_run.h"

/* Three conversations in turn, eight times, 64 tokens each in blocks of 16; a pool of 8 blocks and the null block holds two
 * of them. Nothing else runs meanwhile. */
static const char *write_trace(const char *dir)
{
    char text[8192] = "";
    for (int i = 0; i < 24; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 "{\"arrival\": 1%02d00000000, \"prompt_tokens\": 64, \"output_tokens\": 1, \"hash_ids\": [%d, %d, %d, %d]}\n",
                 i, i % 3 * 10, i % 3 * 10 + 1, i % 3 * 10 + 2, i % 3 * 10 + 3);
    }
    return cli_write(dir, "t.jsonl", text, strlen(text));
}

#define RUN(result, trace, ...)                                                                                        \
    CLI(result, "run", "--trace", trace, "--trace-block-size", "16", "--num-gpu-blocks-override", "9", __VA_ARGS__)

static json_t *printed(const struct cli_result *result)
{
    json_error_t error;
    if (result->status != 0) fail_msg("status %d: %s", result->status, result->err);
    json_t *object = json_loads(result->out, JSON_REJECT_DUPLICATES, &error);
    if (!object) fail_msg("line %d: %s in %s", error.line, error.text, result->out);
    return object;
}

static uint64_t host_count(const json_t *result, const char *key)
{
    const json_t *value = json_object_get(json_object_get(result, "host_tier"), key);
    if (!json_is_integer(value)) fail_msg("no count host_tier.%s", key);
    return (uint64_t)json_integer_value(value);
}

static void host_cache_0__any_form__same_bytes_as_without(void **state)
{
    static const char *const forms[][3] = {{NULL}, {"--json"}, {"--scheduler", "serial", "--json"}};
    char *dir = cli_temp_dir();
    const char *trace = write_trace(dir);
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct cli_result with, without;
        const char *const *f = forms[i];
        RUN(&without, trace, f[0], f[0] ? f[1] : NULL, f[0] && f[1] ? f[2] : NULL);
        RUN(&with, trace, "--host-cache", "0", f[0], f[0] ? f[1] : NULL, f[0] && f[1] ? f[2] : NULL);
        assert_int_equal(without.status, 0);
        check_str_eq(with.out, without.out);
        assert_null(strstr(with.out, "host_tier"));
        cli_release(&with);
        cli_release(&without);
    }
    cli_temp_remove(dir);
}

/* Of each request but the first three, three blocks hit (a token is left to compute): none on the device, as the two
 * conversations between have pushed all four out. So 21 requests fetch 3 blocks each, 63, and 48 of 64 tokens hit:
 * 1008 of 1536. Evictions: 24 requests of 4 new blocks, 96, fill 8 free ones first; 88. The first 12 of them, all there
 * is, are copied to the host, the rest is there already. A block has 16 * 131072 bytes. */
static void json__three_conversations_in_turn__every_figure(void **state)
{
    char *dir = cli_temp_dir();
    const char *trace = write_trace(dir);
    struct cli_result result;
    (void)state;
    RUN(&result, trace, "--host-cache", "64MiB", "--json");
    json_t *r = printed(&result);
    check_u64_eq(host_count(r, "capacity_blocks"), 32);
    check_u64_eq(host_count(r, "hit_tokens"), 21 * 48);
    check_u64_eq(host_count(r, "fetched_blocks"), 63);
    check_u64_eq(host_count(r, "offloaded_blocks"), 12);
    check_u64_eq(host_count(r, "already_there_blocks"), 88 - 12);
    check_u64_eq(host_count(r, "evicted_blocks"), 0);
    check_u64_eq(host_count(r, "resident_blocks_at_end"), 12);
    check_u64_eq(host_count(r, "to_device_bytes"), 63 * 2097152);
    check_u64_eq(host_count(r, "to_host_bytes"), 12 * 2097152);
    /* 21 fetches of three blocks, 6291456 / 55 + 16000; 3 steps with copies to the host, of 4 blocks. */
    check_u64_eq(host_count(r, "transfer_ns"), 21 * (114390 + 16000) + 3 * (152520 + 16000));
    check_f64_near(json_real_value(json_object_get(json_object_get(r, "host_tier"), "hit_rate_tokens")), 1008.0 / 1536, 1e-12);
    check_f64_near(json_number_value(json_object_get(json_object_get(r, "host_tier"), "device_hit_rate_tokens")), 0, 1e-12);
    check_f64_near(json_real_value(json_object_get(r, "hit_rate_tokens")), 1008.0 / 1536, 1e-12);
    check_f64_near(json_number_value(json_object_get(r, "engine_hit_rate")), 0, 1e-12);
    json_decref(r);
    cli_release(&result);
    RUN(&result, trace, "--host-cache", "64MiB");
    check_str_has(result.out, "host tier            32 blocks, hits 0.6562 of prompt tokens, device 0.0000\n");
    check_str_has(result.out, "copied to the device 63 blocks (0.1 GiB), to the host 12 (0.0 GiB); dropped 0;");
    cli_release(&result);
    cli_temp_remove(dir);
}

static void events__fetches_and_offloads__a_line_each(void **state)
{
    char *dir = cli_temp_dir();
    const char *trace = write_trace(dir), *events = cli_path(dir, "events.csv");
    struct cli_result result;
    (void)state;
    RUN(&result, trace, "--host-cache", "64MiB", "--events", events);
    assert_int_equal(result.status, 0);
    char *text = cli_read(events);
    size_t fetches = 0, offloads = 0;
    for (const char *at = text; (at = strstr(at, ",fetch,")) != NULL; at++) fetches++;
    for (const char *at = text; (at = strstr(at, ",offload,")) != NULL; at++) offloads++;
    check_u64_eq(fetches, 21);
    check_u64_eq(offloads, 3);
    free(text);
    cli_release(&result);
    cli_temp_remove(dir);
}

/* A sweep's axis, and a condition on the tier's figures: the smallest pool that needs no copies from the host. Of each
 * conversation the last block may go, as it is computed again in any case: with 11 usable blocks the third conversation
 * pushes out the last block of the first, the first, come back, that of the second, and so on. With 10 a second one goes. */
static void host_cache__sweep_and_find__as_any_option(void **state)
{
    char *dir = cli_temp_dir();
    const char *trace = write_trace(dir);
    struct cli_result result;
    (void)state;
    CLI(&result, "sweep", "--trace", trace, "--trace-block-size", "16", "--num-gpu-blocks-override", "9", "--host-cache", "0,8MiB,64MiB",
        "--threads", "1");
    assert_int_equal(result.status, 0);
    check_str_has(result.out, "\"host_tier.capacity_blocks\": 4");
    check_str_has(result.out, "\"host_tier.capacity_blocks\": 32");
    cli_release(&result);
    CLI(&result, "run", "--trace", trace, "--trace-block-size", "16", "--host-cache", "64MiB", "--find", "min pool", "--such-that",
        "host_tier.fetched_blocks == 0", "--threads", "1");
    assert_int_equal(result.status, 0);
    check_str_has(result.out, "--num-gpu-blocks-override 12 ");
    cli_release(&result);
    cli_temp_remove(dir);
}

static void options__wrong__one_line_and_status_2(void **state)
{
    static const struct {
        const char *arguments[4], *what;
    } cases[] = {
        {{"--policy", "dynamic"}, "--host-cache: policy dynamic keeps no content that could be offloaded"},
        {{"--policy", "static"}, "--host-cache: policy static keeps no content"},
        {{"--sliding-window", "32"}, "--host-cache: found it with a sliding window"},
        {{"--host-evict", "wa"}, "--host-evict: found 'wa', which knows more of requests"},
        {{"--host-evict", "opt"}, "--host-evict: found 'opt', which knows the future"},
        {{"--host-evict", "best"}, "--host-evict: found 'best', expected one of"},
        {{"--host-cache", "1MiB"}, "--host-cache: found 1048576 bytes, expected at least a block of 2097152"},
        {{"--host-cache", "some"}, "--host-cache: found 'some'"},
        {{"--host-transfer", "later"}, "--host-transfer: found 'later'"},
        {{"--host-bandwidth", "0"}, "--host-bandwidth: found '0'"},
    };
    char *dir = cli_temp_dir();
    const char *trace = write_trace(dir);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const *a = cases[i].arguments;
        struct cli_result result;
        if (strcmp(a[0], "--host-cache") == 0) RUN(&result, trace, a[0], a[1]);
        else RUN(&result, trace, "--host-cache", "64MiB", a[0], a[1]);
        assert_int_equal(result.status, 2);
        check_str_eq(result.out, "");
        check_str_has(result.err, cases[i].what);
        assert_ptr_equal(strchr(result.err, '\n'), result.err + result.err_bytes - 1);
        cli_release(&result);
    }
    cli_temp_remove(dir);
}

/* 64 GiB for two ranks, each of which has half of a token's 131072 bytes. */
static void command__kv_offloading_size__a_ranks_share(void **state)
{
    char *dir = cli_temp_dir();
    const char *trace = write_trace(dir);
    struct cli_result result;
    (void)state;
    RUN(&result, trace, "--command", "vllm serve meta-llama/Llama-3.1-8B -tp 2 --kv-offloading-size 64", "--json");
    json_t *r = printed(&result);
    check_u64_eq(host_count(r, "capacity_blocks"), (UINT64_C(32) << 30) / (16 * 65536));
    json_decref(r);
    cli_release(&result);
    cli_temp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_cache_0__any_form__same_bytes_as_without),
        cmocka_unit_test(json__three_conversations_in_turn__every_figure),
        cmocka_unit_test(events__fetches_and_offloads__a_line_each),
        cmocka_unit_test(host_cache__sweep_and_find__as_any_option),
        cmocka_unit_test(options__wrong__one_line_and_status_2),
        cmocka_unit_test(command__kv_offloading_size__a_ranks_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
