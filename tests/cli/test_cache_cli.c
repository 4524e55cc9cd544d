/* `pagesim cache` as a user runs it. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli_run.h"
#include "tests/hit_rates.h"
#include "workloads/wl_stream.h"

/* The JSON object that a command must print. */
static json_t *printed(const struct cli_result *result)
{
    json_error_t error;
    json_t *object;

    if (result->status != 0)
        fail_msg("status %d: %s", result->status, result->err);
    object = json_loads(result->out, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL)
        fail_msg("line %d: %s in %s", error.line, error.text, result->out);
    return object;
}

/* Every part of the golden file that `cache` prints, in the golden file's order. */
static void same_as_golden(const json_t *found, const json_t *golden)
{
    static const char *const arrays[] = {"prefix_lru", "block_stream_lru"};

    check_i64_eq(json_integer_value(json_object_get(found, "block_size_tokens")),
                 json_integer_value(json_object_get(golden, "block_size_tokens")));
    hit_rates_same(json_object_get(found, "infinite"), json_object_get(golden, "infinite"), "infinite");
    for (size_t a = 0; a < 2; a++) {
        const json_t *rows = json_object_get(found, arrays[a]);
        const json_t *expected = json_object_get(golden, arrays[a]);

        check_u64_eq(json_array_size(rows), json_array_size(expected));
        for (size_t i = 0; i < json_array_size(expected); i++)
            hit_rates_same(json_array_get(rows, i), json_array_get(expected, i), arrays[a]);
    }
}

static void run_golden(const char *name, const char *capacities, const char *trace_block_size,
                       const char *trace)
{
    struct cli_result result;
    json_t *golden = hit_rates_load(name), *found;

    CLI(&result, "cache", "--json", "--capacity", capacities, "--evict", "lru", "--release-order",
        "leaf-first,root-first", "--blocks", "all,full", "--trace-block-size", trace_block_size, trace);
    found = printed(&result);
    same_as_golden(found, golden);
    json_decref(found);
    json_decref(golden);
    cli_release(&result);
}

/* --- traces --------------------------------------------------------------------------------------- */

static void json__walkthrough__every_figure(void **fixture)
{
    char *dir = cli_temp_dir();
    const char *path = cli_path(dir, "walkthrough.jsonl");
    json_t *golden = hit_rates_load("tiny-walkthrough"), *row;
    FILE *out = fopen(path, "w");
    size_t i;

    (void)fixture;
    assert_non_null(out);
    json_array_foreach(json_object_get(golden, "rows"), i, row) {
        char *ids = json_dumps(json_object_get(row, "hash_ids"), 0);

        fprintf(out, "{\"arrival_ns\": %zu, \"prompt_tokens\": %d, \"output_tokens\": 1, \"hash_ids\": %s}\n", i,
                (int)json_integer_value(json_object_get(row, "input_length")), ids);
        free(ids);
    }
    assert_int_equal(fclose(out), 0);
    run_golden("tiny-walkthrough", "5,6,8", "4", path);
    json_decref(golden);
    cli_temp_remove(dir);
}

static void json__mooncake_slice__every_figure(void **fixture)
{
    const char *trace = check_traces("mooncake/mooncake_arxiv_trace.slice.head.jsonl");

    (void)fixture;
    if (trace == NULL)
        skip();
    run_golden("mooncake-arxiv-slice-head", "100,150,200,300,400", "0", trace);
}

/* The token ids that the golden trace's block ids were made from, as pagesim's own JSONL. */
static void write_token_trace(const char *from, const char *to)
{
    struct wl_stream *stream;
    struct wl_line line;
    struct err err = {0};
    FILE *out = fopen(to, "w");
    int got;

    assert_non_null(out);
    if (wl_stream_open(from, &stream, &err) != 0)
        fail_msg("%s", err.text);
    while ((got = wl_stream_line(stream, &line, &err)) == 1) {
        json_t *row = json_loadb(line.text, line.length, 0, NULL);
        char *ids = json_dumps(json_object_get(row, "input_tok_ids"), 0);

        fprintf(out, "{\"arrival_ns\": %lld, \"prompt_tokens\": %lld, \"output_tokens\": 1, \"token_ids\": %s}\n",
                (long long)json_integer_value(json_object_get(row, "arrival_time_ns")),
                (long long)json_integer_value(json_object_get(row, "input_toks")), ids);
        free(ids);
        json_decref(row);
    }
    assert_int_equal(got, 0);
    assert_int_equal(fclose(out), 0);
    wl_stream_close(stream);
}

/* Blocks cut out of real token ids agree with ids that somebody else derived from them. */
static void json__token_ids__as_the_golden_block_ids(void **fixture)
{
    const char *trace = check_traces("llmservingsim/sharegpt-llama-3.1-8b-300-sps10.jsonl.zst");
    char *dir;

    (void)fixture;
    if (trace == NULL)
        skip();
    dir = cli_temp_dir();
    write_token_trace(trace, cli_path(dir, "tokens.jsonl"));
    run_golden("sharegpt-llmservingsim-300", "512,1024,2048,4096,8192,16384,32768", "0",
               cli_path(dir, "tokens.jsonl"));
    cli_temp_remove(dir);
}

/* Ids of 8 tokens in blocks of 4: two blocks an id, hits are a lower bound. Prompts of 16 and 12 tokens share the
 * first id: 2 of the second's 3 blocks hit. The first request, without content, hits nothing: 8 / 4 = 2 blocks. */
static const char ids_of_8[] =
    "{\"arrival_ns\": 0, \"prompt_tokens\": 8, \"output_tokens\": 1}\n"
    "{\"arrival_ns\": 1, \"prompt_tokens\": 16, \"output_tokens\": 1, \"hash_ids\": [1, 2]}\n"
    "{\"arrival_ns\": 2, \"prompt_tokens\": 12, \"output_tokens\": 1, \"hash_ids\": [1, 3]}\n";

static void check_counts(const char *block_size, uint64_t lookups, uint64_t hits, int lower_bound)
{
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "t.jsonl", ids_of_8, sizeof ids_of_8 - 1);
    struct cli_result result;
    json_t *found, *infinite;

    if (block_size != NULL)
        CLI(&result, "cache", "--json", "--trace-block-size", "8", "--block-size", block_size, path);
    else
        CLI(&result, "cache", "--json", "--trace-block-size", "8", path);
    found = printed(&result);
    infinite = json_object_get(found, "infinite");
    check_u64_eq((uint64_t)json_integer_value(json_object_get(infinite, "lookup_blocks")), lookups);
    check_u64_eq((uint64_t)json_integer_value(json_object_get(infinite, "hit_blocks")), hits);
    assert_int_equal(json_is_true(json_object_get(found, "lower_bound")), lower_bound);
    json_decref(found);
    cli_release(&result);
    cli_temp_remove(dir);
}

static void block_size__finer_same_or_coarser_than_ids__blocks_of_that_size(void **fixture)
{
    (void)fixture;
    check_counts("4", 2 + 4 + 3, 2, 1);
    check_counts(NULL, 1 + 2 + 2, 1, 0);
    check_counts("8", 1 + 2 + 2, 1, 0);
    /* 16: the first has no whole block; 16 tokens are one, 12 tokens a partial one of other content. */
    check_counts("16", 0 + 1 + 1, 0, 0);
}

static void table__two_capacities__a_line_each(void **fixture)
{
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "t.jsonl", ids_of_8, sizeof ids_of_8 - 1);
    struct cli_result result;

    (void)fixture;
    CLI(&result, "cache", "--trace-block-size", "8", "--capacity", "3,4", path);
    assert_int_equal(result.status, 0);
    check_str_has(result.out, "3 requests, 5 blocks of 8 tokens, 4 different, at most 2 a request\n");
    /* 1 of 5 blocks, 8 of 36 tokens. Capacity 3: request 2 needs 2 of 3 places, request 3 finds id 1 and evicts
     * the block of request 1. */
    check_str_has(result.out, "         3  lru           leaf-first  all                1    0.2000               8    "
                              "0.2222             1         0\n");
    check_str_has(result.out, "         4  lru           leaf-first  all                1    0.2000               8    "
                              "0.2222             0         0\n");
    cli_release(&result);
    cli_temp_remove(dir);
}

/* --- curves ------------------------------------------------------------------------------------- */

/* Ids 1 2, then 1 3, then 1 2 in whole blocks of 8. Largest request: 2. At 2: request 2 hits 1, request 3 hits 1; at
 * 3: request 3 hits both: 3 of 6. At 1 every request is rejected: nothing is looked up. */
static void curve__lru__csv_and_figure(void **fixture)
{
    static const char trace[] =
        "{\"arrival_ns\": 0, \"prompt_tokens\": 16, \"output_tokens\": 1, \"hash_ids\": [1, 2]}\n"
        "{\"arrival_ns\": 1, \"prompt_tokens\": 16, \"output_tokens\": 1, \"hash_ids\": [1, 3]}\n"
        "{\"arrival_ns\": 2, \"prompt_tokens\": 16, \"output_tokens\": 1, \"hash_ids\": [1, 2]}\n";
    char *dir = cli_temp_dir(), command[600], csv[300];
    const char *path = cli_write(dir, "t.jsonl", trace, sizeof trace - 1);
    struct cli_result result;

    (void)fixture;
    CLI(&result, "cache", "--curve", "--trace-block-size", "8", "--capacity", "1,2,3", path);
    assert_int_equal(result.status, 0);
    check_str_eq(result.out, "series,capacity_blocks,method,hit_ratio_blocks,miss_ratio_blocks,hit_ratio_tokens,error,"
                             "knee,apart\nlru,1,simulated,,,,0.0,0,1\n"
                             "lru,2,exact,0.3333333333333333,0.6666666666666667,0.3333333333333333,0.0,1,0\n"
                             "lru,3,exact,0.5,0.5,0.5,0.0,0,0\n");
    (void)snprintf(csv, sizeof csv, "%s", cli_write(dir, "curve.csv", result.out, strlen(result.out)));
    (void)snprintf(command, sizeof command, "gnuplot -d -c scripts/plot/miss_ratio.gp %s %s svg curve 2>&1", csv,
                   cli_path(dir, "c.svg"));
    assert_int_equal(system(command), 0);
    cli_release(&result);
    CLI(&result, "cache", "--curve", "--json", "--trace-block-size", "8", "--evict", "lru,opt", path);
    check_str_has(result.out, "\"evict\": \"opt\"");
    cli_release(&result);
    cli_temp_remove(dir);
}

/* The CSV beside the figure is what --curve prints, which it does as well when asked to; else stdout stays empty. */
static void plot__curves__drawn_beside_their_csv(void **fixture)
{
    static const char *const files[] = {"f/miss_ratio.svg", "f/miss_ratio.png", "f/miss_ratio.csv"};
    char *dir = cli_temp_dir(), figures[300];
    const char *path = cli_write(dir, "t.jsonl", ids_of_8, sizeof ids_of_8 - 1);
    struct cli_result curve, both, alone;

    (void)fixture;
    (void)snprintf(figures, sizeof figures, "%s", cli_path(dir, "f"));
    CLI(&curve, "cache", "--curve", "--evict", "lru,arc", "--trace-block-size", "8", path);
    CLI(&both, "cache", "--curve", "--plot", figures, "--evict", "lru,arc", "--trace-block-size", "8", path);
    CLI(&alone, "cache", "--plot", figures, "--evict", "lru,arc", "--trace-block-size", "8", path);
    check_i64_eq(both.status, 0);
    check_i64_eq(alone.status, 0);
    check_str_eq(both.out, curve.out);
    check_str_eq(alone.out, "");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *text = cli_read(cli_path(dir, files[i]));

        assert_non_null(text);
        assert_true(text[0] != '\0');
        if (i == 2)
            check_str_eq(text, curve.out);
        free(text);
    }
    check_u64_eq(cli_count_entries(figures), 3);
    cli_release(&curve);
    cli_release(&both);
    cli_release(&alone);
    cli_temp_remove(dir);
}

/* Nothing hits: the figure still has a range of miss ratios to show. */
static void plot__nothing_hits__drawn(void **fixture)
{
    char *dir = cli_temp_dir(), figures[300];
    struct cli_result result;

    (void)fixture;
    (void)snprintf(figures, sizeof figures, "%s", cli_path(dir, "f"));
    CLI(&result, "cache", "--plot", figures, "--format", "text", "--ids", cli_write(dir, "ids", "1\n2\n", 4));
    check_str_eq(result.err, "");
    check_i64_eq(result.status, 0);
    cli_release(&result);
    cli_temp_remove(dir);
}

/* opt reads ahead: a stream of ids that is read once cannot serve it. */
static void ids__opt__usage_error(void **fixture)
{
    struct cli_result result;

    (void)fixture;
    CLI(&result, "cache", "--stream", "--ids", "/dev/null", "--capacity", "3", "--evict", "opt");
    assert_int_equal(result.status, 2);
    check_str_has(result.err, "--evict: found 'opt', which reads ahead");
    cli_release(&result);
}

/* --- streams of ids --------------------------------------------------------------------------------- */

/* 1 2 3 1 2 4 1 in a cache of 3: misses 1 2 3, hits 1 2, 4 evicts 3, hit 1. 3 of 7 hit, 1 evicted. */
static const uint64_t stream[] = {1, 2, 3, 1, 2, 4, 1};
#define STREAM_COUNT (sizeof stream / sizeof stream[0])

static void check_stream(struct cli_result *result, size_t row, uint64_t hits, uint64_t evicted,
                         uint64_t resident)
{
    json_t *found = printed(result);
    const json_t *figures = json_array_get(json_object_get(found, "block_stream_lru"), row);

    check_u64_eq((uint64_t)json_integer_value(json_object_get(found, "references")), 7);
    check_u64_eq((uint64_t)json_integer_value(json_object_get(found, "unique_ids")), 4);
    check_u64_eq((uint64_t)json_integer_value(json_object_get(figures, "lookups")), 7);
    check_u64_eq((uint64_t)json_integer_value(json_object_get(figures, "hits")), hits);
    check_u64_eq((uint64_t)json_integer_value(json_object_get(figures, "evicted_blocks")), evicted);
    check_u64_eq((uint64_t)json_integer_value(json_object_get(figures, "resident_blocks_at_end")), resident);
    json_decref(found);
}

static void ids__each_format__same_hits(void **fixture)
{
    unsigned char u64[8 * STREAM_COUNT], records[24 * STREAM_COUNT];
    static const char text[] = "1\n2\n3\r\n1\n2\n4\n1";
    const struct {
        const char *format;
        const void *bytes;
        size_t count;
    } files[] = {{"u64", u64, sizeof u64}, {"oracleGeneral", records, sizeof records},
                 {"text", text, sizeof text - 1}};
    char *dir = cli_temp_dir();

    (void)fixture;
    memset(u64, 0, sizeof u64);
    memset(records, 0xee, sizeof records); /* times, sizes and next accesses do not matter */
    for (size_t i = 0; i < STREAM_COUNT; i++) {
        u64[8 * i] = (unsigned char)stream[i];
        memcpy(records + 24 * i + 4, u64 + 8 * i, 8);
    }
    for (size_t f = 0; f < 3; f++) {
        struct cli_result result;

        CLI(&result, "cache", "--stream", "--json", "--capacity", "3,inf", "--format", files[f].format, "--ids",
            cli_write(dir, "ids", files[f].bytes, files[f].count));
        check_stream(&result, 0, 3, 1, 3);
        check_stream(&result, 1, 3, 0, 4);
        cli_release(&result);
    }
    cli_temp_remove(dir);
}

static void ids__standard_input__same_hits(void **fixture)
{
    static const char text[] = "1\n2\n3\n1\n2\n4\n1\n";
    const struct cli_input input = {.stdin_bytes = text, .stdin_count = sizeof text - 1};
    const char *const argv[] = {"cache", "--stream", "--json", "--capacity", "3", "--format", "text",
                                "--ids", "-", NULL};
    struct cli_result result;

    (void)fixture;
    cli_run(&result, &input, argv);
    check_stream(&result, 0, 3, 1, 3);
    cli_release(&result);
}

/* Longer than one buffer of the reader, with lines and records across its end. */
static void ids__more_than_a_buffer__all_counted(void **fixture)
{
    const size_t count = 200000;
    char *text = malloc(count * 8), *dir = cli_temp_dir(), *end = text;
    struct cli_result result;
    json_t *found;

    (void)fixture;
    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        end += sprintf(end, "%zu\n", i % 12345);
    CLI(&result, "cache", "--stream", "--json", "--capacity", "12345", "--format", "text", "--ids",
        cli_write(dir, "ids", text, (size_t)(end - text)));
    found = printed(&result);
    check_u64_eq((uint64_t)json_integer_value(json_object_get(found, "references")), count);
    /* Everything fits: only first appearances miss. */
    check_u64_eq((uint64_t)json_integer_value(json_object_get(
                     json_array_get(json_object_get(found, "block_stream_lru"), 0), "hits")),
                 count - 12345);
    json_decref(found);
    cli_release(&result);
    cli_temp_remove(dir);
    free(text);
}

/* --- what is wrong ------------------------------------------------------------------------------------ */

/* One line on stderr that says `what`, nothing on stdout. */
static void refused(const struct cli_result *result, int status, const char *what)
{
    assert_int_equal(result->status, status);
    check_str_eq(result->out, "");
    check_str_has(result->err, what);
    assert_ptr_equal(strchr(result->err, '\n'), result->err + result->err_bytes - 1);
}

static void trace__no_content__says_so(void **fixture)
{
    static const char csv[] = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n";
    char *dir = cli_temp_dir();
    struct cli_result result;

    (void)fixture;
    CLI(&result, "cache", cli_write(dir, "azure.csv", csv, sizeof csv - 1));
    refused(&result, 3, "azure.csv: no content ids");
    cli_release(&result);
    cli_temp_remove(dir);
}

static void options__wrong__usage_error_that_says_what_is_right(void **fixture)
{
    static const struct {
        const char *option, *value, *what;
    } cases[] = {
        {"--capacity", "0", "--capacity: found '0', expected blocks (1 to 2147483647) or inf"},
        {"--capacity", "many", "--capacity: found 'many', expected blocks (1 to 2147483647) or inf"},
        {"--capacity", "3000000000", "found '3000000000', expected blocks"},
        {"--evict", "best", "--evict: found 'best', expected one of"},
        {"--release-order", "up", "--release-order: found 'up', expected leaf-first or root-first"},
        {"--blocks", "all,all", "--blocks: found 'all' twice"},
        {"--block-size", "0", "--block-size: "},
    };
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "t.jsonl", ids_of_8, sizeof ids_of_8 - 1);

    (void)fixture;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_result result;

        CLI(&result, "cache", cases[i].option, cases[i].value, path);
        refused(&result, 2, cases[i].what);
        cli_release(&result);
    }
    cli_temp_remove(dir);
}

/* --- a host tier ----------------------------------------------------------------------------------- */

/* Blocks 1 2, then 3, then 1 2 again, 8 tokens each, 2 on the device: 3 pushes 2 to the host, where the last request
 * finds it. Without a host it hits 1 alone. */
static const char pushed_out[] =
    "{\"arrival\": 0, \"input_length\": 16, \"output_length\": 1, \"hash_ids\": [1, 2]}\n"
    "{\"arrival\": 1, \"input_length\": 8, \"output_length\": 1, \"hash_ids\": [3]}\n"
    "{\"arrival\": 2, \"input_length\": 16, \"output_length\": 1, \"hash_ids\": [1, 2]}\n";

static void host__json__both_levels_apart_and_together(void **fixture)
{
    static const struct {
        const char *key;
        int values[2]; /* without a host, with one */
    } expected[] = {
        {"host_capacity_blocks", {0, 4}}, {"hit_blocks", {1, 2}},       {"device_hit_blocks", {1, 1}},
        {"host_hit_blocks", {0, 1}},      {"fetched_blocks", {0, 1}},   {"offloaded_blocks", {0, 2}},
        {"already_there_blocks", {0, 0}}, {"evicted_blocks", {2, 2}},   {"host_evicted_blocks", {0, 0}},
        {"hit_tokens", {8, 16}},          {"inserted_blocks", {4, 4}},  {"host_resident_blocks_at_end", {0, 2}},
    };
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "t.jsonl", pushed_out, sizeof pushed_out - 1);
    struct cli_result result;
    json_t *found, *rows;

    (void)fixture;
    CLI(&result, "cache", "--json", "--trace-block-size", "8", "--capacity", "2", "--host-capacity", "0,4",
        "--host-evict", "lru,fifo", path);
    found = printed(&result);
    rows = json_object_get(found, "prefix_lru");
    check_u64_eq(json_array_size(rows), 3); /* without a host its order does not matter */
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        for (size_t row = 0; row < 3; row++)
            check_i64_eq(json_integer_value(json_object_get(json_array_get(rows, row), expected[i].key)),
                         expected[i].values[row > 0]);
    assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "host_evict")));
    check_str_eq(json_string_value(json_object_get(json_array_get(rows, 2), "host_evict")), "fifo");
    check_f64_near(json_real_value(json_object_get(json_array_get(rows, 1), "host_hit_ratio_blocks")), 0.2, 1e-12);
    json_decref(found);
    cli_release(&result);
    cli_temp_remove(dir);
}

static void host__capacity_0__byte_for_byte_as_without(void **fixture)
{
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "t.jsonl", pushed_out, sizeof pushed_out - 1);
    static const char *const forms[] = {NULL, "--json"};
    struct cli_result with, without;

    (void)fixture;
    for (size_t i = 0; i < 2; i++) {
        CLI(&without, "cache", "--trace-block-size", "8", "--capacity", "2,inf", path, forms[i]);
        CLI(&with, "cache", "--host-capacity", "0", "--host-evict", "fifo", "--trace-block-size", "8", "--capacity",
            "2,inf", path, forms[i]);
        assert_int_equal(without.status, 0);
        check_str_eq(with.out, without.out);
        cli_release(&with);
        cli_release(&without);
    }
    CLI(&with, "cache", "--trace-block-size", "8", "--capacity", "2", "--host-capacity", "inf", path);
    assert_int_equal(with.status, 0);
    check_str_has(with.out, "         inf  lru                    1    0.2000             1             2             0\n");
    cli_release(&with);
    cli_temp_remove(dir);
}

/* A published trace: with room for everything on the host the hits are the infinite cache's, which is counted by other
 * code; less room never hits more, and what is copied and what is there already is what the device evicted. */
static void host__mooncake__up_to_the_infinite_cache(void **fixture)
{
    const char *trace = check_traces("mooncake/conversation_trace.jsonl.zst");
    struct cli_result result;
    json_t *found, *rows;
    json_int_t before = 0;

    (void)fixture;
    if (trace == NULL)
        skip();
    CLI(&result, "cache", "--json", "--capacity", "5000", "--host-capacity", "0,1000,5000,10000,30000,100000,inf", trace);
    found = printed(&result);
    rows = json_object_get(found, "prefix_lru");
    check_u64_eq(json_array_size(rows), 7);
    for (size_t i = 0; i < 7; i++) {
        const json_t *row = json_array_get(rows, i);
        json_int_t hits = json_integer_value(json_object_get(row, "hit_blocks"));

        assert_true(hits > before);
        before = hits;
        if (i > 0)
            check_i64_eq(json_integer_value(json_object_get(row, "offloaded_blocks")) +
                             json_integer_value(json_object_get(row, "already_there_blocks")),
                         json_integer_value(json_object_get(row, "evicted_blocks")));
    }
    check_i64_eq(before, json_integer_value(json_object_get(json_object_get(found, "infinite"), "hit_blocks")));
    json_decref(found);
    cli_release(&result);
}

static void host__wrong__usage_error(void **fixture)
{
    static const struct {
        const char *arguments[4], *what;
    } cases[] = {
        {{"--host-capacity", "some"}, "--host-capacity: found 'some', expected blocks (0 to 2147483647) or inf"},
        {{"--host-evict", "best"}, "--host-evict: found 'best', expected one of 2q, arc"},
        {{"--host-evict", "leaf-lru"}, "--host-evict: found 'leaf-lru', which knows more of requests"},
        {{"--host-evict", "opt"}, "--host-evict: found 'opt', which knows the future"},
        {{"--host-capacity", "4", "--evict", "opt"}, "--evict: found 'opt' with --host-capacity"},
        {{"--host-capacity", "4", "--curve"}, "found --host-capacity with --curve"},
        {{"--host-capacity", "4", "--stream"}, "found --host-capacity with --stream"},
        {{"--host-capacity", "4", "--plot", "x"}, "found --host-capacity with --plot"},
    };
    char *dir = cli_temp_dir();
    const char *path = cli_write(dir, "t.jsonl", pushed_out, sizeof pushed_out - 1);

    (void)fixture;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const *a = cases[i].arguments;
        struct cli_result result;

        CLI(&result, "cache", path, a[0], a[1], a[2], a[2] != NULL ? a[3] : NULL);
        refused(&result, 2, cases[i].what);
        cli_release(&result);
    }
    cli_temp_remove(dir);
}

static void ids__wrong__one_line(void **fixture)
{
    static const struct {
        const char *format, *bytes;
        int status;
        const char *what;
    } cases[] = {
        {"text", "1\n-2\n", 3, "ids:2: found '-2', expected a number below 2^64"},
        {"text", "1\n\n", 3, "ids:2: found '', expected a number below 2^64"},
        {"text", "18446744073709551616\n", 3, "ids:1: found '18446744073709551616'"},
        {"u64", "123456789", 3, "ids: byte 8: found 1 bytes at the end, expected records of 8"},
        {"oracleGeneral", "12345678", 3, "ids: byte 0: found 8 bytes at the end, expected records of 24"},
        {"parquet", "1\n", 2, "--format: found 'parquet', expected u64, text or oracleGeneral"},
    };
    char *dir = cli_temp_dir();
    struct cli_result result;

    (void)fixture;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CLI(&result, "cache", "--stream", "--capacity", "3", "--format", cases[i].format, "--ids",
            cli_write(dir, "ids", cases[i].bytes, strlen(cases[i].bytes)));
        refused(&result, cases[i].status, cases[i].what);
        cli_release(&result);
    }
    CLI(&result, "cache", "--stream", "--ids", dir);
    refused(&result, 3, "s a directory");
    cli_release(&result);
    CLI(&result, "cache", "--stream", "--ids", cli_path(dir, "absent"));
    refused(&result, 3, "absent: ");
    cli_release(&result);
    cli_temp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json__walkthrough__every_figure),
        cmocka_unit_test(json__mooncake_slice__every_figure),
        cmocka_unit_test(json__token_ids__as_the_golden_block_ids),
        cmocka_unit_test(block_size__finer_same_or_coarser_than_ids__blocks_of_that_size),
        cmocka_unit_test(table__two_capacities__a_line_each),
        cmocka_unit_test(curve__lru__csv_and_figure),
        cmocka_unit_test(plot__curves__drawn_beside_their_csv),
        cmocka_unit_test(plot__nothing_hits__drawn),
        cmocka_unit_test(ids__opt__usage_error),
        cmocka_unit_test(ids__each_format__same_hits),
        cmocka_unit_test(ids__standard_input__same_hits),
        cmocka_unit_test(ids__more_than_a_buffer__all_counted),
        cmocka_unit_test(trace__no_content__says_so),
        cmocka_unit_test(options__wrong__usage_error_that_says_what_is_right),
        cmocka_unit_test(host__json__both_levels_apart_and_together),
        cmocka_unit_test(host__capacity_0__byte_for_byte_as_without),
        cmocka_unit_test(host__mooncake__up_to_the_infinite_cache),
        cmocka_unit_test(host__wrong__usage_error),
        cmocka_unit_test(ids__wrong__one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
