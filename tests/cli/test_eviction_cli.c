/* Eviction orders that heed requests, as a user runs them. */
#include "tests/check.h"

#include <jansson.h>
#include <string.h>

#include "tests/cli_run.h"

/* Prompts of 33 tokens are two full blocks and one of a token, which gets no key. */
static const char returning[] =
    "{\"arrival_ns\": 0, \"prompt_tokens\": 33, \"output_tokens\": 1, \"priority\": 0, \"hash_ids\": [1, 2]}\n"
    "{\"arrival_ns\": 10000000, \"prompt_tokens\": 33, \"output_tokens\": 1, \"priority\": 5, \"hash_ids\": [3, 4]}\n"
    "{\"arrival_ns\": 20000000, \"prompt_tokens\": 33, \"output_tokens\": 1, \"priority\": 5, \"hash_ids\": [5, 6]}\n"
    "{\"arrival_ns\": 30000000, \"prompt_tokens\": 33, \"output_tokens\": 1, \"priority\": 0, \"hash_ids\": [1, 2]}\n";

/* The first two hold the block 1 together, the less urgent one gives it back last. */
static const char shared[] =
    "{\"arrival_ns\": 0, \"prompt_tokens\": 17, \"output_tokens\": 40, \"priority\": 9, \"hash_ids\": [1]}\n"
    "{\"arrival_ns\": 5000000, \"prompt_tokens\": 17, \"output_tokens\": 1, \"priority\": 0, \"hash_ids\": [1]}\n"
    "{\"arrival_ns\": 100000000, \"prompt_tokens\": 17, \"output_tokens\": 1, \"priority\": 5, \"hash_ids\": [2]}\n"
    "{\"arrival_ns\": 200000000, \"prompt_tokens\": 65, \"output_tokens\": 1, \"priority\": 5, \"hash_ids\": [10, 11, 12, 13]}\n"
    "{\"arrival_ns\": 300000000, \"prompt_tokens\": 17, \"output_tokens\": 1, \"priority\": 0, \"hash_ids\": [1]}\n";

static int64_t integer_of(const char *json, const char *key)
{
    json_t *object = json_loads(json, 0, NULL);
    int64_t value = object != NULL ? json_integer_value(json_object_get(object, key)) : -1;

    json_decref(object);
    return value;
}

/* In a pool of six blocks and the null block. */
static int64_t hit_tokens_of_run(const char *trace, const char *order)
{
    struct cli_result result;

    CLI(&result, "run", "--policy", "prefix", "--evict", order, "--block-size", "16", "--trace-block-size", "16",
        "--num-gpu-blocks-override", "7", "--step-time", "unit", "--step-ns", "1ms", "--json", "--trace", trace);
    if (result.status != 0)
        fail_msg("status %d: %s", result.status, result.err);
    int64_t tokens = integer_of(result.out, "prefix_hit_tokens");
    cli_release(&result);
    return tokens;
}

/* After two requests four of six blocks are cached. The third takes the two empty ones and one of those: under lru the
 * second of the first request, which then hits 1 block when it comes again; by priority one of the second's, so that it hits both. */
static void priority__urgent_request_returns__its_blocks_stayed(void **fixture)
{
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "t.jsonl", returning, sizeof returning - 1);

    (void)fixture;
    check_i64_eq(hit_tokens_of_run(path, "lru"), 16);
    check_i64_eq(hit_tokens_of_run(path, "priority"), 2 * 16);
    cli_temp_remove(dir);
}

/* The first runs to 56 tokens: three full blocks. With the third's they are four cached blocks, and the fourth request
 * needs five of six: the two empty ones and three of these. lru: all of the first request. By priority: its last two
 * (9), then the third's (5); block 1 has the 0 of the second, which held it meanwhile and hit its 16 tokens. */
static void priority__block_held_by_two__has_the_more_urgent(void **fixture)
{
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "t.jsonl", shared, sizeof shared - 1);

    (void)fixture;
    check_i64_eq(hit_tokens_of_run(path, "lru"), 16);
    check_i64_eq(hit_tokens_of_run(path, "priority"), 16 + 16);
    cli_temp_remove(dir);
}

/* Content alone, four blocks: the third request evicts both blocks of the first, or of the second. */
static void priority__cache_of_content__as_in_run(void **fixture)
{
    struct cli_result result;
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "t.jsonl", returning, sizeof returning - 1);
    const char *orders[] = {"lru", "priority"};
    const int64_t hits[] = {0, 2}, evicted[] = {4, 2};

    (void)fixture;
    for (size_t i = 0; i < 2; i++) {
        CLI(&result, "cache", "--json", "--evict", orders[i], "--capacity", "4", "--trace-block-size", "16", path);
        json_t *object = json_loads(result.out, 0, NULL);
        char key[32];
        (void)snprintf(key, sizeof key, "prefix_%s", orders[i]);
        json_t *row = json_array_get(json_object_get(object, key), 0);

        assert_non_null(row);
        check_i64_eq(json_integer_value(json_object_get(row, "hit_blocks")), hits[i]);
        check_i64_eq(json_integer_value(json_object_get(row, "evicted_blocks")), evicted[i]);
        json_decref(object);
        cli_release(&result);
    }
    cli_temp_remove(dir);
}

/* Prompts of 16 n + 1 tokens and one token of output: the pool of `run` needs one block more than the cache of `cache`, for the
 * token that gets no key. */
#define CONVERSATIONS "gen:requests=8000,arrivals=poisson:4,continue=0.3/0.9/0.9,content=tokens,turn-tokens=fixed:96," \
                      "prompt-tokens=fixed:193,output-tokens=fixed:1"

static int64_t hits_of_serial(const char *trace, const char *order, const char *pool_blocks)
{
    struct cli_result result;

    CLI(&result, "run", "--scheduler", "serial", "--policy", "prefix", "--evict", order, "--num-gpu-blocks-override", pool_blocks,
        "--block-size", "16", "--json", trace);
    if (result.status != 0)
        fail_msg("status %d: %s", result.status, result.err);
    json_t *object = json_loads(result.out, 0, NULL);
    int64_t hits = json_integer_value(json_object_get(json_object_get(object, "paged_pool"), "hit_blocks"));

    json_decref(object);
    cli_release(&result);
    return hits;
}

static int64_t hits_of_cache(const char *trace, const char *order, const char *capacity)
{
    struct cli_result result;
    char key[32];

    CLI(&result, "cache", "--evict", order, "--capacity", capacity, "--blocks", "full", "--block-size", "16", "--json", trace);
    if (result.status != 0)
        fail_msg("status %d: %s", result.status, result.err);
    (void)snprintf(key, sizeof key, "prefix_%s", order);
    json_t *object = json_loads(result.out, 0, NULL);
    json_t *row = json_array_get(json_object_get(object, key), 0);
    int64_t hits = row != NULL ? json_integer_value(json_object_get(row, "hit_blocks")) : -1;

    json_decref(object);
    cli_release(&result);
    return hits;
}

/* The pool has a null block too. lru and lfu learn nothing before an eviction and agree to the block. wa hears of misses
 * before the evictions in `cache` and after them in `run`: 1 % is allowed. That `run` knows the turns is seen by its being
 * above lru: with one category it is lru. */
static void wa__serial_run_of_conversations__as_in_cache(void **fixture)
{
    (void)fixture;
    check_i64_eq(hits_of_serial(CONVERSATIONS, "lru", "10002"), hits_of_cache(CONVERSATIONS, "lru", "10000"));
    check_i64_eq(hits_of_serial(CONVERSATIONS, "lfu", "10002"), hits_of_cache(CONVERSATIONS, "lfu", "10000"));
    int64_t run = hits_of_serial(CONVERSATIONS, "wa", "10002"), cache = hits_of_cache(CONVERSATIONS, "wa", "10000");
    assert_true(100 * run >= 99 * cache && 100 * run <= 101 * cache);
    assert_true(run > hits_of_cache(CONVERSATIONS, "lru", "10000") + 1000);
}

/* --- opt in run -------------------------------------------------------------------------------------------- */

static void opt__serial_run_of_conversations__the_bound_of_cache(void **fixture)
{
    static const char *const pools[][2] = {{"502", "500"}, {"3002", "3000"}, {"10002", "10000"}};

    (void)fixture;
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++)
        check_i64_eq(hits_of_serial(CONVERSATIONS, "opt", pools[i][0]), hits_of_cache(CONVERSATIONS, "opt", pools[i][1]));
}

/* A pipe cannot be read twice; the same requests from a file can. */
static void opt__trace_from_a_pipe__exit_2(void **fixture)
{
    struct cli_input input = {.stdin_bytes = returning, .stdin_count = sizeof returning - 1};
    const char *const argv[] = {"run", "--evict", "opt", "--trace-block-size", "16", "-", NULL};
    struct cli_result result;

    (void)fixture;
    cli_run(&result, &input, argv);
    check_i64_eq(result.status, 2);
    check_str_eq(result.err, "pagesim: -: found a trace that can be read only once, expected one that can be read twice "
                             "(a file, a generator): the eviction order must know what comes\n");
    check_str_eq(result.out, "");
    cli_release(&result);
}

static json_t *json_of_run(const char *trace, const char *order)
{
    struct cli_result result;

    CLI(&result, "run", "--evict", order, "--trace-block-size", "16", "--num-gpu-blocks-override", "7", "--json", trace);
    if (result.status != 0)
        fail_msg("status %d: %s", result.status, result.err);
    json_t *object = json_loads(result.out, 0, NULL);
    assert_non_null(object);
    json_object_del(object, "trace");
    json_object_del(json_object_get(object, "options"), "trace");
    cli_release(&result);
    return object;
}

static void opt__plain_and_compressed_trace__same_result_and_label(void **fixture)
{
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "t.jsonl", returning, sizeof returning - 1);
    char packed[4096];
    struct cli_result result;

    (void)fixture;
    cli_run(&result, &(struct cli_input){.program = "gzip"}, (const char *const[]){"-k", path, NULL});
    check_i64_eq(result.status, 0);
    cli_release(&result);
    (void)snprintf(packed, sizeof packed, "%s.gz", path);
    json_t *plain = json_of_run(path, "opt"), *compressed = json_of_run(packed, "opt"), *lru = json_of_run(path, "lru");
    assert_true(json_equal(plain, compressed));
    assert_true(json_is_true(json_object_get(plain, "clairvoyant")));
    assert_true(json_is_true(json_object_get(plain, "clairvoyant_heuristic")));
    assert_true(json_is_false(json_object_get(lru, "clairvoyant_heuristic")));
    json_decref(plain);
    json_decref(compressed);
    json_decref(lru);

    CLI(&result, "run", "--evict", "opt", "--trace-block-size", "16", path);
    assert_non_null(strstr(result.out, "policy prefix (clairvoyant heuristic), "));
    cli_release(&result);
    CLI(&result, "compare", "evict=lru", "evict=opt", "--trace-block-size", "16", path);
    assert_non_null(strstr(result.out, "A  evict=lru\nB  evict=opt (clairvoyant heuristic)\n"));
    cli_release(&result);
    CLI(&result, "explain", "--at", "0", "--evict", "opt", "--trace-block-size", "16", path);
    assert_non_null(strstr(result.out, "prefix (clairvoyant heuristic)"));
    cli_release(&result);
    cli_temp_remove(dir);
}

/* Threads share the trace, not what of it has passed. */
static void opt__sweep_with_threads__same_bytes(void **fixture)
{
    struct cli_result one, four;

    (void)fixture;
    CLI(&one, "sweep", "--evict", "lru,opt,wa", "--num-gpu-blocks-override", "200,400,800", "--threads", "1",
        "gen:requests=500,arrivals=poisson:20,continue=0.5/0.8,content=tokens");
    CLI(&four, "sweep", "--evict", "lru,opt,wa", "--num-gpu-blocks-override", "200,400,800", "--threads", "4",
        "gen:requests=500,arrivals=poisson:20,continue=0.5/0.8,content=tokens");
    check_i64_eq(one.status, 0);
    check_str_eq(four.out, one.out);
    cli_release(&one);
    cli_release(&four);
}

/* --- options of orders ---------------------------------------------------------------------------------- */

static void fails_with(const char *const arguments[], const char *expected)
{
    struct cli_result result;

    cli_run(&result, &(struct cli_input){0}, arguments);
    check_i64_eq(result.status, 2);
    check_str_has(result.err, expected);
    check_u64_eq(result.out_bytes, 0);
    cli_release(&result);
}
#define FAILS(expected, ...) fails_with((const char *const[]){__VA_ARGS__, NULL}, expected)

static void order_options__of_another_order__one_line(void **fixture)
{
    (void)fixture;
    FAILS("--ttl-ns: eviction order lru has no such option", "run", "--ttl-ns", "5", "preset:azure-conv");
    FAILS("--queue-depth: eviction order ttl has no such option", "run", "--evict", "ttl", "--queue-depth", "5", "preset:azure-conv");
    FAILS("--evict: policy static has no such option", "run", "--policy", "static", "--evict", "ttl", "preset:azure-conv");
    FAILS("--ttl-ns: policy static has no such option", "run", "--policy", "static", "--ttl-ns", "5", "preset:azure-conv");
    FAILS("--random-seed: eviction order lru has no such option", "cache", "--random-seed", "5", "preset:azure-conv");
    FAILS("--ttl-max-percent: found '101', expected a count from 0 to 100", "run", "--evict", "ttl", "--ttl-max-percent", "101",
          "preset:azure-conv");
    FAILS("--evict: found 'ttl', which looks at requests, expected a trace without --stream", "cache", "--evict", "ttl",
          "--stream", "preset:azure-conv");
}

/* Each cell has the options of its own order, and those of no other. */
static void order_options__sweep_over_orders__each_its_own(void **fixture)
{
    const char *const orders[] = {"lru", "ttl", "ttl", "queue-aware"};
    const json_int_t times[] = {0, 7, 8, 0};
    struct cli_result result;

    (void)fixture;
    CLI(&result, "sweep", "--trace", "gen:requests=20,prompt=64,output=30", "--pool-tokens", "1600", "--evict", "lru,ttl,queue-aware",
        "--ttl-ns", "7,8", "--queue-depth", "3");
    check_i64_eq(result.status, 0);
    const char *line = result.out;
    for (size_t i = 0; i < 4; i++) {
        json_error_t error;
        json_t *row = json_loads(line, JSON_DISABLE_EOF_CHECK, &error);

        assert_non_null(row);
        check_str_eq(json_string_value(json_object_get(row, "options.evict")), orders[i]);
        check_i64_eq(json_integer_value(json_object_get(row, "options.ttl-ns")), times[i]);
        assert_true((json_object_get(row, "options.queue-depth") != NULL) == (i == 3));
        json_decref(row);
        line = strchr(line, '\n') + 1;
    }
    assert_ptr_equal(line, result.out + result.out_bytes);
    cli_release(&result);
}

/* Six blocks of seven pinned until the end of time: the second request would wait for ever. */
static void ttl__pins_outlive_time__one_line(void **fixture)
{
    static const char trace[] = "{\"arrival_ns\":2,\"prompt_tokens\":96,\"output_tokens\":1,\"hash_ids\":[1,2,3,4,5,6]}\n"
                                "{\"arrival_ns\":3,\"prompt_tokens\":96,\"output_tokens\":1,\"hash_ids\":[11,12,13,14,15,16]}\n";
    const char *const commands[] = {"cache", "run"};
    const char *const expected[] = {"request 1 waits for pins that end after 2^62 ns", "simulated time passed 2^62 ns"};
    struct cli_result result;
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "t.jsonl", trace, sizeof trace - 1);

    (void)fixture;
    for (size_t i = 0; i < 2; i++) {
        CLI(&result, commands[i], path, "--trace-block-size", "16", "--block-size", "16", "--evict", "ttl", "--ttl-ns",
            "4611686018427387904", i == 0 ? "--capacity" : "--num-gpu-blocks-override", i == 0 ? "7" : "8");
        check_i64_eq(result.status, 1);
        check_str_has(result.err, expected[i]);
        cli_release(&result);
    }
    cli_temp_remove(dir);
}

/* A seed gives the same victims again, another one others. */
static void random__seed__says_the_victims(void **fixture)
{
    const char *const seeds[] = {"1", "1", "2"};
    struct cli_result results[3];

    (void)fixture;
    for (size_t i = 0; i < 3; i++)
        CLI(&results[i], "cache", "--evict", "random", "--random-seed", seeds[i], "--capacity", "3000", "preset:mooncake-conversation");
    check_i64_eq(results[0].status, 0);
    check_str_eq(results[0].out, results[1].out);
    assert_string_not_equal(results[0].out, results[2].out);
    for (size_t i = 0; i < 3; i++)
        cli_release(&results[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(priority__urgent_request_returns__its_blocks_stayed),
        cmocka_unit_test(priority__block_held_by_two__has_the_more_urgent),
        cmocka_unit_test(priority__cache_of_content__as_in_run),
        cmocka_unit_test(wa__serial_run_of_conversations__as_in_cache),
        cmocka_unit_test(opt__serial_run_of_conversations__the_bound_of_cache),
        cmocka_unit_test(opt__trace_from_a_pipe__exit_2),
        cmocka_unit_test(opt__plain_and_compressed_trace__same_result_and_label),
        cmocka_unit_test(opt__sweep_with_threads__same_bytes),
        cmocka_unit_test(order_options__of_another_order__one_line),
        cmocka_unit_test(order_options__sweep_over_orders__each_its_own),
        cmocka_unit_test(ttl__pins_outlive_time__one_line),
        cmocka_unit_test(random__seed__says_the_victims),
    };
    return cmocka_run_group_tests_name("eviction orders of the command line", tests, NULL, NULL);
}
