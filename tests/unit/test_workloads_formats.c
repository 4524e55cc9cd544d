/* Trace formats, streams and their errors: small files written here, expected values by hand. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "workloads/wl_source.h"
#include "workloads/wl_stream.h"
#include "workloads/wl_write.h"

/* A file whose name is always the same in messages: the tests run in a folder of their own. */
static const char name[] = "t.trace";
static char folder[] = "/tmp/pagesim_formats_XXXXXX";
static char home[4096];

static int enter_folder(void **state)
{
    (void)state;
    return getcwd(home, sizeof home) == NULL || mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int leave_folder(void **state)
{
    (void)state;
    unlink(name);
    return chdir(home) != 0 || rmdir(folder) != 0;
}

static void write_bytes(const void *bytes, size_t count)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static const struct wl_options plain = { .arrival_speedup_ratio = 1 };

static struct wl_source *open_text(const char *text, const struct wl_options *options)
{
    write_bytes(text, strlen(text));
    struct wl_source *source = NULL;
    struct err err = { 0 };
    if (wl_open(name, options, 1, &source, &err) != 0)
        fail_msg("%s", err.text);
    return source;
}

static void next(struct wl_source *source, struct wl_request *request)
{
    struct err err = { 0 };
    int rc = wl_next(source, request, &err);
    if (rc != 1)
        fail_msg("rc %d: %s", rc, err.text);
}

static void at_end(struct wl_source *source)
{
    struct wl_request request;
    struct err err = { 0 };
    assert_int_equal(wl_next(source, &request, &err), 0);
}

static uint64_t checksum_of(const char *path, const struct wl_options *options)
{
    struct wl_source *source = NULL;
    struct wl_request request;
    struct err err = { 0 };
    int rc = wl_open(path, options, 1, &source, &err);
    while (rc == 0 && wl_next(source, &request, &err) == 1)
        ;
    if (err.kind != ERR_NONE)
        fail_msg("%s", err.text);
    uint64_t checksum = wl_summary(source)->checksum;
    wl_close(source);
    return checksum;
}

/* --- what is read ------------------------------------------------------------------------------- */

static void own_jsonl__every_key__is_read(void **state)
{
    (void)state;
    struct wl_source *source = open_text(
        "{\"id\": \"a\\u00e9\\\"\", \"arrival_ns\": 5, \"prompt_tokens\": 4, \"output_tokens\": 3, "
        "\"max_tokens\": 9, \"n\": 2, \"ranges\": [[10, 2], [12, 1], [20, 1]], "
        "\"output_ranges\": [[30, 1]], \"session\": \"s\", \"parent\": \"p\", \"abort_ns\": 70, "
        "\"priority\": -3, \"unknown\": [{\"a\": [1e3, null]}, true]}", &plain);
    struct wl_request r;
    next(source, &r);
    check_str_eq(r.id, "a\xc3\xa9\"");
    check_u64_eq(r.arrival_ns, 5);
    check_u64_eq(r.prompt_tokens, 4);
    check_u64_eq(r.output_tokens, 3);
    check_u64_eq(r.max_tokens, 9);
    check_u64_eq(r.samples, 2);
    check_str_eq(r.session, "s");
    check_str_eq(r.parent, "p");
    check_u64_eq(r.abort_ns, 70);
    check_i64_eq(r.priority, -3);
    assert_true(r.has_content);
    check_u64_eq(r.prompt_spans, 2); /* 10,11 and 12 are one run */
    check_u64_eq(r.prompt[0].first, 10);
    check_u64_eq(r.prompt[0].count, 3);
    check_u64_eq(r.prompt[1].first, 20);
    check_u64_eq(r.output_spans, 1);
    at_end(source);
    wl_close(source);
}

static void own_jsonl__absent_keys__have_defaults(void **state)
{
    (void)state;
    struct wl_source *source = open_text("{\"prompt_tokens\":4,\"output_tokens\":0}\n\n", &plain);
    struct wl_request r;
    next(source, &r);
    assert_null(r.id);
    check_u64_eq(r.max_tokens, WL_NONE);
    check_u64_eq(r.abort_ns, WL_NONE);
    check_u64_eq(r.samples, 1);
    assert_false(r.has_content);
    at_end(source);
    assert_false(wl_summary(source)->has_arrivals);
    check_u64_eq(wl_summary(source)->total_tokens_max, 5); /* L + max(O, 1) */
    wl_close(source);
}

/* Blocks of 4, prompt 6 (block 1 is half full), output 7: KV of 6 + 6 = 12 tokens = 3 full blocks.
 * With final ids the prompt is 5*4.. (4 tokens), 8*4.. (2); the output 8*4+2.. (2), 9*4.. (4). */
static void hash_ids__with_final_ids__cover_prompt_and_output(void **state)
{
    (void)state;
    const struct wl_options four = { .arrival_speedup_ratio = 1, .trace_block_tokens = 4 };
    struct wl_source *source = open_text(
        "{\"prompt_tokens\": 6, \"output_tokens\": 7, \"hash_ids\": [5, 7], "
        "\"final_hash_ids\": [5, 8, 9]}", &four);
    struct wl_request r;
    next(source, &r);
    check_u64_eq(r.prompt_spans, 2);
    check_u64_eq(r.prompt[0].first, 20);
    check_u64_eq(r.prompt[0].count, 4);
    check_u64_eq(r.prompt[1].first, 32);
    check_u64_eq(r.prompt[1].count, 2);
    check_u64_eq(r.output_spans, 1); /* 34..39: ids 8 and 9 follow each other */
    check_u64_eq(r.output[0].first, 34);
    check_u64_eq(r.output[0].count, 6);
    check_u64_eq(r.final_hash_count, 3);
    check_u64_eq(r.trace_block_tokens, 4);
    wl_close(source);
}

/* Id h >= 2^63 / k has no room for its tokens in space 0 and is a space of its own. */
static void hash_ids__of_64_bits__are_spaces(void **state)
{
    (void)state;
    struct wl_source *source = open_text("{\"timestamp\": 0, \"input_length\": 513, "
        "\"output_length\": 1, \"hash_ids\": [18446744073709551615, 18014398509481983]}", &plain);
    struct wl_request r;
    next(source, &r);
    check_u64_eq(r.prompt_spans, 2);
    check_u64_eq(r.prompt[0].space, UINT64_MAX);
    check_u64_eq(r.prompt[0].first, 0);
    check_u64_eq(r.prompt[1].space, 0); /* 2^63 / 512 = 18014398509481984: the last one inside */
    check_u64_eq(r.prompt[1].first, UINT64_C(18014398509481983) * 512);
    check_u64_eq(r.prompt[1].count, 1);
    wl_close(source);
}

static void mooncake__floor_count__tail_is_unique(void **state)
{
    (void)state;
    struct wl_source *source = open_text(
        "{\"timestamp\": 1.5, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [3]}\n"
        "{\"timestamp\": 2, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [3]}", &plain);
    struct wl_request r;
    next(source, &r);
    check_u64_eq(r.arrival_ns, 1500000);
    check_u64_eq(r.prompt[0].first, 3 * 512);
    check_u64_eq(r.prompt[0].count, 512);
    check_u64_eq(r.prompt[1].space, WL_SPACE_UNIQUE);
    check_u64_eq(r.prompt[1].count, 88);
    uint64_t first = r.prompt[1].first;
    next(source, &r);
    assert_true(r.prompt[1].first != first);
    wl_close(source);
}

/* 2023-11-16 18:15:46.6805900 + 4.3145790 s; CR LF, no end of line after the last row. */
static void azure__calendar_stamps__count_from_the_first(void **state)
{
    (void)state;
    struct wl_source *source = open_text("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        "2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109\r\n"
        "2023-11-17 00:00:00,1,2", &plain);
    struct wl_request r;
    next(source, &r);
    check_u64_eq(r.arrival_ns, 0);
    check_u64_eq(r.prompt_tokens, 374);
    check_u64_eq(r.output_tokens, 44);
    next(source, &r);
    check_u64_eq(r.arrival_ns, UINT64_C(4314579000));
    next(source, &r);
    /* 5 h 44 min 13.31941 s are left of the day. */
    check_u64_eq(r.arrival_ns, (5 * 3600 + 44 * 60 + 13) * UINT64_C(1000000000) + 319410000);
    at_end(source);
    wl_close(source);
}

static void vidur__fractions__are_cut(void **state)
{
    (void)state;
    struct wl_source *source = open_text(
        "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n7564.0,192.0,7756.0,39.4\n",
        &plain);
    struct wl_request r;
    next(source, &r);
    check_u64_eq(r.prompt_tokens, 7564);
    check_u64_eq(r.output_tokens, 192);
    at_end(source);
    assert_false(wl_summary(source)->has_arrivals);
    wl_close(source);
}

static void own_csv__any_order_and_quotes__is_read(void **state)
{
    (void)state;
    const struct wl_options ms = { .arrival_speedup_ratio = 2, .time_unit_ns = 1000000 };
    struct wl_source *source = open_text("id,output_tokens,extra,arrival,prompt_tokens,abort_ns\n"
        "\"a,\"\"b\"\"\",4,,3.5,9,9000000\n,5,,4,8,\n", &ms);
    struct wl_request r;
    next(source, &r);
    check_str_eq(r.id, "a,\"b\"");
    check_u64_eq(r.arrival_ns, 1750000);
    check_u64_eq(r.abort_ns, 1750000 + 5500000); /* patience is not sped up */
    next(source, &r);
    assert_null(r.id);
    check_u64_eq(r.prompt_tokens, 8);
    wl_close(source);
}

static void sort__arrivals_out_of_order__is_stable(void **state)
{
    (void)state;
    const struct wl_options sorted = { .arrival_speedup_ratio = 1, .sort = true };
    struct wl_source *source = open_text("arrival_ns,prompt_tokens,output_tokens\n"
        "9,1,1\n3,2,1\n9,3,1\n3,4,1\n", &sorted);
    static const uint64_t expected[4] = { 2, 4, 1, 3 };
    for (uint64_t i = 0; i < 4; i++) {
        struct wl_request r;
        next(source, &r);
        check_u64_eq(r.prompt_tokens, expected[i]);
        check_u64_eq(r.index, i);
    }
    at_end(source);
    wl_close(source);
}

static void max_requests__tells_whether_it_cut(void **state)
{
    (void)state;
    for (uint64_t max = 2; max <= 3; max++) {
        const struct wl_options cut = { .arrival_speedup_ratio = 1, .max_requests = max };
        struct wl_source *source = open_text("prompt_tokens,output_tokens\n1,1\n2,1\n3,1\n", &cut);
        struct wl_request r;
        for (uint64_t i = 0; i < max; i++)
            next(source, &r);
        at_end(source);
        check_u64_eq(wl_summary(source)->requests, max);
        assert_int_equal(wl_summary(source)->cut, max == 2);
        wl_close(source);
    }
}

static void skip_bad__counts_bad_lines(void **state)
{
    (void)state;
    const struct wl_options skipping = { .arrival_speedup_ratio = 1, .skip_bad = true };
    struct wl_source *source = open_text("prompt_tokens,output_tokens\n1,1\nx,1\n3\n4,1\n",
                                         &skipping);
    struct wl_request r;
    next(source, &r);
    next(source, &r);
    check_u64_eq(r.prompt_tokens, 4);
    check_u64_eq(r.index, 1);
    at_end(source);
    check_u64_eq(wl_summary(source)->skipped, 2);
    wl_close(source);
}

/* --- the same requests in other clothes ------------------------------------------------------- */

static const char content[] =
    "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"arrival_ns\": 7, \"token_ids\": [1, 2, 9], "
    "\"output_token_ids\": [4], \"session\": \"x\\ty\"}\n"
    "{\"prompt_tokens\": 0, \"output_tokens\": 2, \"arrival_ns\": 8, \"n\": 3, \"ranges\": []}\n";

static void checksum__gzip_zstd_and_crlf__is_the_same(void **state)
{
    (void)state;
    write_bytes(content, strlen(content));
    uint64_t expected = checksum_of(name, &plain);
    gzFile gz = gzopen(name, "wb");
    assert_non_null(gz);
    assert_int_equal(gzwrite(gz, content, (unsigned)strlen(content)), strlen(content));
    assert_int_equal(gzclose(gz), Z_OK);
    check_u64_eq(checksum_of(name, &plain), expected);
    char packed[1024];
    size_t half = strlen(content) / 2; /* two frames, cut inside a line */
    size_t count = ZSTD_compress(packed, sizeof packed, content, half, 3);
    count += ZSTD_compress(packed + count, sizeof packed - count, content + half,
                           strlen(content) - half, 3);
    write_bytes(packed, count);
    check_u64_eq(checksum_of(name, &plain), expected);
    char crlf[1024];
    size_t n = 0;
    for (const char *at = content; *at != '\0'; at++) {
        if (*at == '\n')
            crlf[n++] = '\r';
        crlf[n++] = *at;
    }
    write_bytes(crlf, n - 2); /* and no end after the last line */
    check_u64_eq(checksum_of(name, &plain), expected);
}

static void checksum__any_field_changes__changes(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{\"prompt_tokens\": 3, \"output_tokens\": 2}",
        "{\"prompt_tokens\": 2, \"output_tokens\": 3}",
        "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"id\": \"a\"}",
        "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"session\": \"a\"}",
        "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"parent\": \"a\"}",
        "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"arrival_ns\": 1}",
        "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"abort_ns\": 1}",
        "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"max_tokens\": 1}",
        "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"n\": 2}",
        "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"priority\": 1}",
        "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"token_ids\": [1,2,3]}",
        "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"token_ids\": [1,2,4]}",
        "{\"prompt_tokens\": 3, \"output_tokens\": 2, \"ranges\": [[1,3]], \"output_ranges\": [[9,1]]}",
    };
    enum { LINES = sizeof lines / sizeof lines[0] };
    uint64_t sums[LINES];
    for (size_t i = 0; i < LINES; i++) {
        write_bytes(lines[i], strlen(lines[i]));
        sums[i] = checksum_of(name, &plain);
        for (size_t before = 0; before < i; before++)
            assert_true(sums[before] != sums[i]);
    }
}

static void write__both_formats__read_back_the_same(void **state)
{
    (void)state;
    static const char lengths[] = "arrival_ns,prompt_tokens,output_tokens,id,n,priority,max_tokens,"
        "abort_ns,session\n1,2,3,\"a,\"\"\",2,-4,5,6,s\n2,9,9,,,,,,\n";
    for (int format = WL_WRITE_JSONL; format <= WL_WRITE_CSV; format++) {
        struct wl_source *source = open_text(format == WL_WRITE_CSV ? lengths : content, &plain);
        char *text = NULL;
        size_t count = 0;
        FILE *out = open_memstream(&text, &count);
        struct err err = { 0 };
        assert_int_equal(wl_write(source, (enum wl_write_format)format, out, &err), 0);
        fclose(out);
        uint64_t expected = wl_summary(source)->checksum;
        wl_close(source);
        write_bytes(text, count);
        free(text);
        check_u64_eq(checksum_of(name, &plain), expected);
    }
}

static void trace_in_memory__reads_as_the_file(void **state)
{
    (void)state;
    struct wl_source *source = open_text(content, &plain);
    struct wl_trace *trace = NULL;
    struct err err = { 0 };
    assert_int_equal(wl_trace_load(source, &trace, &err), 0);
    wl_close(source);
    struct wl_source *one = wl_trace_open(trace), *two = wl_trace_open(trace);
    struct wl_request r;
    next(one, &r);
    next(two, &r);
    check_u64_eq(r.prompt_spans, 2);
    check_u64_eq(r.prompt[1].first, 9);
    check_str_eq(r.session, "x\ty");
    next(one, &r);
    check_u64_eq(r.samples, 3);
    assert_true(r.has_content);
    at_end(one);
    assert_int_equal(wl_rewind(one, &err), 0);
    next(one, &r);
    check_u64_eq(r.arrival_ns, 7);
    wl_close(one);
    wl_close(two);
    wl_trace_destroy(trace);
}

static void rewind__file_changed_underneath__is_refused(void **state)
{
    (void)state;
    struct wl_source *source = open_text("prompt_tokens,output_tokens\n1,1\n", &plain);
    struct wl_request r;
    struct err err = { 0 };
    next(source, &r);
    assert_int_equal(wl_rewind(source, &err), 0);
    next(source, &r);
    at_end(source);
    write_bytes("prompt_tokens,output_tokens\n1,1\n2,2\n", 36);
    assert_int_equal(wl_rewind(source, &err), -1);
    check_str_eq(err.text, "t.trace: has changed since it was opened");
    wl_close(source);
}

/* --- what is refused, with the exact line ----------------------------------------------------- */

static const char own[] = "{\"prompt_tokens\": 1, \"output_tokens\": 1";

struct refusal {
    const char *text;    /* behind own[] when it begins with ',' */
    const char *message;
};

static const struct refusal refusals[] = {
    { "", "t.trace: found an empty file, expected a trace" },
    { "\n  \n", "t.trace: found an empty file, expected a trace" },
    { "prompt_tokens,output_tokens\n", "t.trace: found no request, expected at least one" },
    { "what is this\n", "t.trace:1: found 'what is this', expected the first line of a known format "
      "(--format azure_csv, llmservingsim_jsonl, mooncake_jsonl, pagesim_csv, pagesim_jsonl, "
      "vidur_csv, vllm_case_jsonl)" },
    { "{\"timestamp\": 0, \"input_length\": -7, \"output_length\": 1}",
      "t.trace:1:34: input_length: found '-7', expected a count of tokens up to 2^32" },
    { "{\"timestamp\": 0, \"input_length\": 4294967297, \"output_length\": 1}",
      "t.trace:1:34: input_length: found '4294967297', expected a count of tokens up to 2^32" },
    { "{\"timestamp\": 0, \"input_length\": 12.0, \"output_length\": 1}",
      "t.trace:1:34: input_length: found '12.0', expected a count of tokens up to 2^32" },
    { "{\"timestamp\": 0, \"input_length\": 012, \"output_length\": 1}",
      "t.trace:1:34: input_length: found '012', expected a count of tokens up to 2^32" },
    { "{\"timestamp\": NaN, \"input_length\": 1, \"output_length\": 1}",
      "t.trace:1:15: timestamp: found 'NaN', expected a time, 0 or later" },
    { "{\"timestamp\": 1e300, \"input_length\": 1, \"output_length\": 1}",
      "t.trace:1:15: timestamp: found '1e300', expected a time, 0 or later" },
    { "{\"timestamp\": 5, \"input_length\": 1, \"output_length\": 1}\n"
      "{\"timestamp\": 4, \"input_length\": 1, \"output_length\": 1}",
      "t.trace:2:15: timestamp: found an arrival before that of the request before it, expected none "
      "earlier (--sort accepts any order)" },
    { "{\"timestamp\": 5, \"input_length\": 513, \"output_length\": 1, \"hash_ids\": [1, 2, 3]}",
      "t.trace:1:71: hash_ids: found 3 ids, expected 2 for 513 tokens at 512 tokens an id (see "
      "--trace-block-size)" },
    { "{\"timestamp\": 5, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": [1,]}",
      "t.trace:1:72: hash_ids: found ']', expected an id, an integer below 2^64" },
    { "{\"timestamp\": 5, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": [18446744073709551616]}",
      "t.trace:1:70: hash_ids: found '18446744073709551616', expected an id, an integer below 2^64" },
    { "{\"timestamp\": 5, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": [1",
      "t.trace:1:71: hash_ids: found the end of the line, expected ',' or ']'" },
    { ", \"prompt_tokens\": 2}", "t.trace:1:43: found key 'prompt_tokens' again, expected each key once" },
    { ", \"x\": 2, \"x\": 3}", "t.trace:1:51: found key 'x' again, expected each key once" },
    { ", \"x\": 02}", "t.trace:1:47: found '02', expected a value" },
    { ", }", "t.trace:1:42: found '}', expected a key in quotes" },
    { "} x", "t.trace:1:42: found 'x', expected the end of the line" },
    { ", \"hash_ids\": [1]}", "t.trace:1:54: hash_ids: found ids of unknown size, expected "
      "--trace-block-size" },
    { ", \"ranges\": [[5, 2]]}", "t.trace:1:52: ranges: found 2 tokens, expected 1 as prompt_tokens says" },
    { ", \"n\": 0}", "t.trace:1:47: n: found '0', expected a count of samples, 1 to 65536" },
    { ", \"x\": \"\x1b[2J\"}", "t.trace:1:48: found '?', expected the closing quote of a string" },
    { "prompt_tokens,tokens_out\n1,2\n", "t.trace:1: output_tokens: found no such column, expected one" },
    { "{\"arrival_ns\":5,\"prompt_tokens\":3}\n",
      "t.trace:1: output_tokens: found no such key, expected a count of tokens" },
    { "tokens_in,tokens_out\n1,2\n", "t.trace:1: found 'tokens_in,tokens_out', expected the "
      "first line of a known format (--format azure_csv, llmservingsim_jsonl, mooncake_jsonl, "
      "pagesim_csv, pagesim_jsonl, vidur_csv, vllm_case_jsonl)" },
    { "TIMESTAMP,ContextTokens,OutputTokens\n", "t.trace:1: GeneratedTokens: found no such column, "
      "expected one" },
    { "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374\n",
      "t.trace:2: found 2 fields, expected 3 as in the header" },
    { "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:15:46.6805900,374,4\n",
      "t.trace:2:1: TIMESTAMP: found '2023-13-16', expected a time YYYY-MM-DD HH:MM:SS.fffffff" },
    { "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,-3,4\n",
      "t.trace:2:29: ContextTokens: found '-3', expected a count of tokens up to 2^32" },
    { "prompt_tokens,output_tokens,prompt_tokens\n", "t.trace:1:29: found column 'prompt_tokens' "
      "again, expected each column once" },
    { "arrival_ns,prompt_tokens,output_tokens\n1,1,1\n,1,1\n", "t.trace:3: arrival_ns: found no "
      "arrival, expected one as in the requests before" },
};

static void refused__one_clear_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        char text[1024];
        const char *more = refusals[i].text;
        bool behind_own = more[0] == ',' || more[0] == '}';
        snprintf(text, sizeof text, "%s%s", behind_own ? own : "", more);
        write_bytes(text, strlen(text));
        struct wl_source *source = NULL;
        struct wl_request request;
        struct err err = { 0 };
        if (wl_open(name, &plain, 1, &source, &err) == 0)
            while (wl_next(source, &request, &err) == 1)
                ;
        wl_close(source);
        check_str_eq(err.text, refusals[i].message);
        assert_int_equal(err.kind, ERR_INPUT);
    }
}

static void check_refused_file(const char *path, const char *message)
{
    struct wl_source *source = NULL;
    struct wl_request request;
    struct err err = { 0 };
    if (wl_open(path, &plain, 1, &source, &err) == 0)
        while (wl_next(source, &request, &err) == 1)
            ;
    wl_close(source);
    check_str_eq(err.text, message);
    assert_int_equal(err.kind, ERR_INPUT);
}

static void nul_byte__is_refused(void **state)
{
    (void)state;
    static const char text[] = "prompt_tokens,output_tokens\n1\0,1\n";
    write_bytes(text, sizeof text - 1);
    check_refused_file(name, "t.trace:2:1: prompt_tokens: found '1', expected a count of tokens up "
                       "to 2^32");
}

static void compressed__truncated_or_corrupt__is_refused(void **state)
{
    (void)state;
    char packed[1024];
    size_t count = ZSTD_compress(packed, sizeof packed, content, strlen(content), 3);
    write_bytes(packed, count - 3);
    check_refused_file(name, "t.trace: found the end of the file inside zstd data, expected more: it "
                       "is truncated");
    packed[5] ^= 0x7f;
    packed[6] ^= 0x7f;
    write_bytes(packed, count);
    struct err err = { 0 };
    struct wl_source *source = NULL;
    assert_int_equal(wl_open(name, &plain, 1, &source, &err), -1);
    check_str_has(err.text, "t.trace: found corrupt zstd data (");
    gzFile gz = gzopen(name, "wb");
    gzwrite(gz, content, (unsigned)strlen(content));
    gzclose(gz);
    FILE *file = fopen(name, "rb");
    count = fread(packed, 1, sizeof packed, file);
    fclose(file);
    write_bytes(packed, count - 6);
    check_refused_file(name, "t.trace: found the end of the file inside gzip data, expected more: it "
                       "is truncated");
    packed[count - 7] ^= 1; /* the check sum of the data */
    write_bytes(packed, count);
    check_refused_file(name, "t.trace: found corrupt gzip data (incorrect data check), expected a "
                       "whole gzip file");
}

static void directory_or_missing__is_refused(void **state)
{
    (void)state;
    check_refused_file("/tmp", "/tmp: found a directory, expected a file");
    check_refused_file("no/such", "no/such: cannot open: No such file or directory");
}

/* 65 MiB of blanks behind a header; what would be 10 GB differs only in how much is never read. */
static void line__longer_than_64_mib__is_refused(void **state)
{
    (void)state;
    size_t count = WL_LINE_BYTES_MAX + (1 << 20);
    char *bytes = malloc(count);
    assert_non_null(bytes);
    memset(bytes, ' ', count);
    static const char head[] = "prompt_tokens,output_tokens\n";
    memcpy(bytes, head, sizeof head - 1);
    write_bytes(bytes, count);
    free(bytes);
    check_refused_file(name, "t.trace:2: found a line longer than 64 MiB, expected one request a line");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_jsonl__every_key__is_read),
        cmocka_unit_test(own_jsonl__absent_keys__have_defaults),
        cmocka_unit_test(hash_ids__with_final_ids__cover_prompt_and_output),
        cmocka_unit_test(hash_ids__of_64_bits__are_spaces),
        cmocka_unit_test(mooncake__floor_count__tail_is_unique),
        cmocka_unit_test(azure__calendar_stamps__count_from_the_first),
        cmocka_unit_test(vidur__fractions__are_cut),
        cmocka_unit_test(own_csv__any_order_and_quotes__is_read),
        cmocka_unit_test(sort__arrivals_out_of_order__is_stable),
        cmocka_unit_test(max_requests__tells_whether_it_cut),
        cmocka_unit_test(skip_bad__counts_bad_lines),
        cmocka_unit_test(checksum__gzip_zstd_and_crlf__is_the_same),
        cmocka_unit_test(checksum__any_field_changes__changes),
        cmocka_unit_test(write__both_formats__read_back_the_same),
        cmocka_unit_test(trace_in_memory__reads_as_the_file),
        cmocka_unit_test(rewind__file_changed_underneath__is_refused),
        cmocka_unit_test(refused__one_clear_line),
        cmocka_unit_test(nul_byte__is_refused),
        cmocka_unit_test(compressed__truncated_or_corrupt__is_refused),
        cmocka_unit_test(directory_or_missing__is_refused),
        cmocka_unit_test(line__longer_than_64_mib__is_refused),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder) != 0;
}
