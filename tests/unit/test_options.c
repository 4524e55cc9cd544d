/* The option table, texts to values, lists to cells, and configuration files. */
#include "tests/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/command.h"
#include "sim/optset_internal.h"
#include "sim/outfile.h"
#include "sim/sizes.h"
#include "tests/cli_run.h"

/* --- numbers with units ------------------------------------------------------------------------ */

struct number_case {
    const char *text;
    enum size_status status;
    uint64_t value;
};

static void check_numbers(const struct number_case *cases, size_t count,
                          enum size_status (*parse)(const char *, uint64_t *))
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        enum size_status status = parse(cases[i].text, &value);
        if (status != cases[i].status) fail_msg("'%s': status %d", cases[i].text, status);
        if (status == SIZE_OK) check_u64_eq(value, cases[i].value);
    }
}
#define CHECK_NUMBERS(cases, parse) check_numbers((cases), sizeof(cases) / sizeof(cases)[0], (parse))

static void parse_bytes__units__are_exact(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"0", SIZE_OK, 0},
        {"4096", SIZE_OK, 4096},
        {"16k", SIZE_OK, 16000},
        {"16K", SIZE_OK, 16384}, /* as vLLM: upper case is binary */
        {"80GiB", SIZE_OK, 85899345920},       /* 80 * 2^30 */
        {"80GB", SIZE_OK, 80000000000},
        {"1.5GiB", SIZE_OK, 1610612736},       /* 3 * 2^29 */
        {"1.50000000000000000000000000GiB", SIZE_OK, 1610612736},
        {"0.0009765625KiB", SIZE_OK, 1},       /* 2^-10 * 2^10 */
        {"7B", SIZE_OK, 7},
        {"18446744073709551615", SIZE_OK, UINT64_MAX},
        {"18446744073709551616", SIZE_TOO_LARGE, 0},
        {"16384PiB", SIZE_TOO_LARGE, 0},       /* 2^14 * 2^50 = 2^64 */
        {"16383PiB", SIZE_OK, 16383 * ((uint64_t)1 << 50)},
        {"99999999999999999999999999999GiB", SIZE_TOO_LARGE, 0},
        {"0.3", SIZE_NOT_WHOLE, 0},
        {"0.0001k", SIZE_NOT_WHOLE, 0},
        {"0.3333333333333333333333333GiB", SIZE_NOT_WHOLE, 0},
        {"", SIZE_MALFORMED, 0},
        {"-1", SIZE_MALFORMED, 0},
        {"+1", SIZE_MALFORMED, 0},
        {" 1", SIZE_MALFORMED, 0},
        {"1 GiB", SIZE_MALFORMED, 0},
        {"1.", SIZE_MALFORMED, 0},
        {".5k", SIZE_MALFORMED, 0},
        {"1e3", SIZE_MALFORMED, 0},
        {"0x10", SIZE_MALFORMED, 0},
        {"1GIB", SIZE_MALFORMED, 0},
        {"1.2.3", SIZE_MALFORMED, 0},
        {"GiB", SIZE_MALFORMED, 0},
    };
    CHECK_NUMBERS(cases, size_parse_bytes);
}

static void parse_count__units__are_exact(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"25.6k", SIZE_OK, 25600},
        {"1M", SIZE_OK, 1048576},
        {"1m", SIZE_OK, 1000000},
        {"1GiB", SIZE_MALFORMED, 0}, /* tokens are not bytes */
        {"1s", SIZE_MALFORMED, 0},
    };
    CHECK_NUMBERS(cases, size_parse_count);
}

static void parse_time__units__are_exact(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"7", SIZE_OK, 7},
        {"7ns", SIZE_OK, 7},
        {"10us", SIZE_OK, 10000},
        {"5ms", SIZE_OK, 5000000},
        {"300s", SIZE_OK, 300000000000},
        {"1.5min", SIZE_OK, 90000000000},
        {"1h", SIZE_OK, 3600000000000},
        {"0.5ns", SIZE_NOT_WHOLE, 0},
        {"9999999h", SIZE_TOO_LARGE, 0}, /* 3.6e19 ns > 1.8e19 */
        {"1d", SIZE_MALFORMED, 0},
        {"1S", SIZE_MALFORMED, 0},
    };
    CHECK_NUMBERS(cases, size_parse_time);
}

static void parse_percent__shares__are_exact(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"10%", SIZE_OK, 100000},
        {"12.5%", SIZE_OK, 125000},
        {"100%", SIZE_OK, 1000000},
        {"0.0001%", SIZE_OK, 1},
        {"0.00001%", SIZE_NOT_WHOLE, 0},
        {"10", SIZE_MALFORMED, 0},
    };
    CHECK_NUMBERS(cases, size_parse_percent);
}

static void parse_ratio__not_a_plain_number__is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "nan", "inf", "-1", "0x1", "1e999", "1,5", "1e", " 1"};
    double ratio;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_not_equal(size_parse_ratio(bad[i], &ratio), SIZE_OK);
    assert_int_equal(size_parse_ratio("1e-3", &ratio), SIZE_OK);
    check_f64_near(ratio, 0.001, 0.0);
}

static void format_ratio__any__reads_back(void **state)
{
    (void)state;
    char text[32];
    size_format_ratio(0.1, text, sizeof text);
    check_str_eq(text, "0.1");
    size_format_ratio(1.0 / 3.0, text, sizeof text);
    check_f64_near(strtod(text, NULL), 1.0 / 3.0, 0.0);
}

/* --- the table --------------------------------------------------------------------------------- */

static void table__each_command__has_each_name_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < option_count(); i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(option_at(i)->name, option_at(j)->name) == 0 &&
                (option_at(i)->commands & option_at(j)->commands))
                fail_msg("--%s stands twice", option_at(i)->name);
}

static void table__each_default__is_valid(void **state)
{
    (void)state;
    for (size_t i = 0; i < option_count(); i++) {
        const struct option_spec *spec = option_at(i);
        char text[256];
        if (spec->default_text && !option_canonical(spec, spec->default_text, text, sizeof text))
            fail_msg("--%s: default '%s'", spec->name, spec->default_text);
    }
}

static void table__options_of_policies__are_one_object_each(void **state)
{
    (void)state;
    for (size_t p = 0; p < kv_registry_count(); p++)
        for (const struct kv_option *const *o = kv_registry_at(p)->options; o && *o; o++) {
            const struct option_spec *spec = option_find(FOR_RUN, (*o)->name);
            assert_non_null(spec);
            assert_ptr_equal(spec->policy_option, *o);
        }
}

/* The enumerations of options.h against the words of options.def. */
static void table__words__stand_in_the_order_of_their_enumeration(void **state)
{
    (void)state;
    static const struct {
        const char *name, *word;
        uint32_t value;
    } cases[] = {
        {"rules", "2026-08", KV_RULES_2026_08},
        {"rules", "2026-04", KV_RULES_2026_04},
        {"admission", "whole-prompt", OPT_ADMISSION_WHOLE_PROMPT},
        {"admission", "first-chunk", OPT_ADMISSION_FIRST_CHUNK},
        {"cache-output", "keyed", OPT_CACHE_OUTPUT_KEYED},
        {"cache-output", "unkeyed", OPT_CACHE_OUTPUT_UNKEYED},
        {"cache-output", "trace", OPT_CACHE_OUTPUT_TRACE},
        {"step-time", "unit", OPT_STEP_TIME_UNIT},
        {"step-time", "linear", OPT_STEP_TIME_LINEAR},
        {"step-time-shape", "8b", OPT_STEP_SHAPE_8B},
        {"step-time-shape", "70b/8", OPT_STEP_SHAPE_70B_8},
        {"step-time-dtypes", "bf16-bf16", OPT_STEP_BF16_BF16},
        {"step-time-dtypes", "fp8-bf16", OPT_STEP_FP8_BF16},
        {"step-time-dtypes", "fp8-fp8", OPT_STEP_FP8_FP8},
        {"time-unit", "ns", OPT_UNIT_NS},
        {"time-unit", "s", OPT_UNIT_S},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        union option_field field;
        struct err err = {0};
        const struct option_spec *spec = option_find(FOR_RUN, cases[i].name);
        assert_non_null(spec);
        assert_int_equal(spec->kind, OPT_WORD);
        assert_int_equal(option_parse(spec, cases[i].word, &field, &err), 0);
        check_u64_eq(field.word, cases[i].value);
    }
}

static void nearest__a_slip__is_found_and_a_guess_is_not(void **state)
{
    (void)state;
    check_str_eq(option_nearest(FOR_RUN, "blok-size"), "block-size");
    check_str_eq(option_nearest(FOR_RUN, "max-model-length"), "max-model-len");
    assert_null(option_nearest(FOR_RUN, "frobnicate"));
    assert_null(option_nearest(FOR_POLICIES, "block-size"));
}

/* --- texts to values ------------------------------------------------------------------------------ */

static struct optset *run_set(void)
{
    struct optset *set = optset_create(FOR_RUN, false);
    assert_non_null(set);
    return set;
}

/* Splits at blanks, as a shell would. */
static int parse(struct optset *set, const char *line, struct err *err)
{
    char copy[512], *argv[32];
    int argc = 0, rest = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
    if (optset_args(set, argc, argv, &rest, err) != 0) return -1;
    for (int i = 0; i < rest; i++)
        if (optset_put_trace(set, argv[i], err) != 0) return -1;
    return optset_finish(set, err);
}

static void resolve__nothing_given__has_the_documented_defaults(void **state)
{
    (void)state;
    struct optset *set = run_set();
    struct options options;
    struct err err = {0};
    assert_int_equal(options_resolve(set, &options, &err), 0);
    check_u64_eq(options.block_tokens, 16);
    check_u64_eq(options.max_num_seqs, 256);
    check_u64_eq(options.max_num_batched_tokens, 2048);
    check_u64_eq(options.max_model_len, OPT_UNSET);
    check_u64_eq(options.kv_bytes_per_token, 131072);
    check_u64_eq(options.kv_cache_memory_bytes, (uint64_t)16 << 30);
    check_u64_eq(options.pool_tokens, OPT_UNSET);
    check_u64_eq(options.step_ns, 1000000);
    check_u64_eq(options.seed, 1);
    check_u64_eq(options.step_time, OPT_STEP_TIME_LINEAR);
    check_u64_eq(options.rules, KV_RULES_2026_08);
    check_u64_eq(options.cache_output, OPT_CACHE_OUTPUT_KEYED);
    check_u64_eq(options.declared_output.kind, OPT_DECLARED_COLUMN);
    check_u64_eq(options.warmup.kind, OPT_EXTENT_NONE);
    assert_true(options.watermark < 0);
    assert_true(options.chunked_prefill);
    assert_null(options.trace);
    assert_false(options.json);
    assert_int_equal(options_need_trace(&options, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    check_str_has(err.text, "preset:azure-conv");
    optset_destroy(set);
}

static void resolve__everything_given__is_read(void **state)
{
    (void)state;
    struct optset *set = run_set();
    struct options options;
    struct err err = {0};
    static const char line[] =
        "--block_size=32 --max-model-len 1k --no-enable-chunked-prefill --watermark 0.01 --rules 2026-04 "
        "--warmup 12.5% --measure 300s --declared-output factor:1.5 --fail-if a>1 --fail-if b>2 "
        "--pool-tokens 1600 --arrival-speedup-ratio 2.5 --time-unit ms --json my,trace.csv";
    if (parse(set, line, &err) != 0) fail_msg("%s", err.text);
    assert_int_equal(options_resolve(set, &options, &err), 0);
    check_u64_eq(options.block_tokens, 32);
    check_u64_eq(options.max_model_len, 1000);
    assert_false(options.chunked_prefill);
    check_f64_near(options.watermark, 0.01, 0.0);
    check_u64_eq(options.rules, KV_RULES_2026_04);
    check_u64_eq(options.warmup.kind, OPT_EXTENT_SHARE);
    check_u64_eq(options.warmup.share_millionths, 125000);
    check_u64_eq(options.measure.kind, OPT_EXTENT_TIME);
    check_u64_eq(options.measure.time_ns, 300000000000);
    check_u64_eq(options.declared_output.kind, OPT_DECLARED_FACTOR);
    check_u64_eq(options.declared_output.factor_millionths, 1500000);
    check_u64_eq(options.fail_if.count, 2);
    check_str_eq(options.fail_if.items[1], "b>2");
    check_str_eq(options.trace, "my,trace.csv");
    assert_true(options.json);

    struct wl_options wl;
    options_wl(&options, &wl);
    check_u64_eq(wl.time_unit_ns, 1000000);
    check_f64_near(wl.arrival_speedup_ratio, 2.5, 0.0);

    /* 1,600 tokens of 131,072 bytes; the default size in bytes is not in force. */
    uint64_t pool_bytes;
    assert_int_equal(options_pool_bytes(&options, &pool_bytes, &err), 0);
    check_u64_eq(pool_bytes, (uint64_t)1600 * 131072);
    check_u64_eq(options.kv_cache_memory_bytes, OPT_UNSET);
    assert_null(optset_text(set, "kv-cache-memory-bytes"));
    optset_destroy(set);
}

static void resolve__options_of_the_policy__reach_its_table(void **state)
{
    (void)state;
    struct optset *set = run_set();
    struct options options;
    struct err err = {0};
    if (parse(set, "--policy static --reserve pow2", &err) != 0) fail_msg("%s", err.text);
    assert_int_equal(options_resolve(set, &options, &err), 0);
    check_str_eq(options.policy_ops->name, "static");
    for (size_t i = 0; options.policy_ops->options[i]; i++)
        if (strcmp(options.policy_ops->options[i]->name, "reserve") == 0)
            check_u64_eq(options.policy_values[i].count, 1); /* max|pow2|... */
    optset_destroy(set);
}

static void args__wrong__say_what_was_found_and_expected(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"--blok-size 3", "--blok-size: unknown option, did you mean --block-size?"},
        {"--frobnicate", "--frobnicate: unknown option"},
        {"-x", "-x: unknown option, options begin with two dashes"},
        {"--block-size 0", "--block-size: found '0', expected a count from 1 to 1048576"},
        {"--block-size -5", "--block-size: found '-5', expected a count from 1 to 1048576"},
        {"--block-size 1,16",
         "--block-size: found '1,16', expected a count from 1 to 1048576; lists are for 'pagesim sweep'"},
        {"--block-size=", "--block-size: found '', expected a count from 1 to 1048576"},
        {"--seed", "--seed: needs a value (SEED)"},
        {"--seed --json", "--seed: needs a value (SEED)"},
        {"--seed 1 --seed 1", "--seed: given twice"},
        {"--json --json", "--json: given twice"},
        {"--enable-chunked-prefill --no-enable-chunked-prefill",
         "--no-enable-chunked-prefill: given twice"},
        {"--seed 99999999999999999999",
         "--seed: found '99999999999999999999', expected a count, at least 0"},
        {"--max-requests 1.5", "--max-requests: found '1.5', expected a whole count, at least 0"},
        {"--json=yes", "--json: takes no value, found 'yes'"},
        {"--no-json", "--no-json: unknown option"},
        {"--watermark 1.5", "--watermark: found '1.5', expected a number from 0 to 1"},
        {"--warmup 300", "--warmup: found '300', expected a share of the requests (10%) or a time with its "
                         "unit (300s)"},
        {"--warmup 101%", "--warmup: found '101%', expected a share of the requests (10%) or a time with "
                          "its unit (300s)"},
        {"--rules 2025", "--rules: found '2025', expected one of 2026-08|2026-04"},
        {"--declared-output factor:0", "--declared-output: found 'factor:0', expected max, exact, column or "
                                       "factor:X with X up to 1000000"},
        {"--kv-cache-memory-bytes 8EiB",
         "--kv-cache-memory-bytes: found '8EiB', expected bytes (16GiB, 80GB, 16k) from 1 to "
         "4611686018427387904"},
        {"--kv-cache-memory-bytes 16384PiB",
         "--kv-cache-memory-bytes: found '16384PiB', expected bytes (16GiB, 80GB, 16k) from 1 to "
         "4611686018427387904"},
        {"--step-ns 0", "--step-ns: found '0', expected a time (300s, 5ms, 10us; plain: ns) from 1 to "
                        "1125899906842624"},
        {"--pool-tokens 5 --num-gpu-blocks-override 7",
         "--pool-tokens and --num-gpu-blocks-override both size the pool: give one"},
        {"--policy dynamic --reserve max", "--reserve: policy dynamic has no such option"},
        {"a.csv b.csv", "one trace expected, found two: 'a.csv' and 'b.csv'"},
        {"--ids x", "--ids: unknown option"}, /* of cache */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct optset *set = run_set();
        struct err err = {0};
        if (parse(set, cases[i].line, &err) != -1) fail_msg("'%s' was accepted", cases[i].line);
        check_str_eq(err.text, cases[i].text);
        assert_int_equal(err.kind, ERR_USAGE);
        optset_destroy(set);
    }
}

static void args__unknown_policy__lists_the_known(void **state)
{
    (void)state;
    struct optset *set = run_set();
    struct err err = {0};
    assert_int_equal(parse(set, "--policy slab", &err), -1);
    check_str_has(err.text, "--policy: found 'slab', expected one of ");
    check_str_has(err.text, "dynamic, ");
    optset_destroy(set);
}

static void pool_bytes__wrong_sizes__are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        /* 15 tokens of 131,072 bytes; a block has 16 */
        {"--pool-tokens 15", "--pool-tokens: a pool of 1966080 bytes is smaller than one block of 16 tokens, "
                             "2097152 bytes"},
        {"--kv-cache-memory-bytes 1", "--kv-cache-memory-bytes: a pool of 1 bytes is smaller than one block "
                                      "of 16 tokens, 2097152 bytes"},
        /* 2^32 - 2 blocks of 2^20 tokens of 2^40 bytes */
        {"--num-gpu-blocks-override 4294967294 --block-size 1048576 --kv-bytes-per-token 1TiB",
         "--num-gpu-blocks-override: a pool of more than 2^62 bytes"},
        {"--pool-tokens 1T --kv-bytes-per-token 1TiB", "--pool-tokens: a pool of more than 2^62 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct optset *set = run_set();
        struct options options;
        struct err err = {0};
        uint64_t pool_bytes = 7;
        if (parse(set, cases[i].line, &err) != 0) fail_msg("%s", err.text);
        assert_int_equal(options_resolve(set, &options, &err), 0);
        assert_int_equal(options_pool_bytes(&options, &pool_bytes, &err), -1);
        check_str_eq(err.text, cases[i].text);
        check_u64_eq(pool_bytes, 7);
        optset_destroy(set);
    }
}

static void echo__run__names_what_changes_figures(void **state)
{
    (void)state;
    struct optset *set = run_set();
    struct err err = {0};
    char text[OPTSET_ECHO_BYTES], all[8192] = "";
    const struct option_spec *spec;
    if (parse(set, "--policy dynamic --block-size 1K --watermark 0.010 --json --check t.csv", &err) != 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; optset_echo(set, &i, &spec, text, sizeof text);) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, " %s=%s;", spec->name, text);
    }
    check_str_has(all, " block-size=1024;");
    check_str_has(all, " watermark=0.01;");
    check_str_has(all, " kv-cache-memory-bytes=17179869184;");
    check_str_has(all, " step-ns=1000000;");
    check_str_has(all, " trace=t.csv;");
    assert_null(strstr(all, "json"));    /* does not change a figure */
    assert_null(strstr(all, "check"));
    assert_null(strstr(all, "reserve")); /* not an option of dynamic */
    assert_null(strstr(all, "max-model-len")); /* unset */
    optset_destroy(set);
}

/* --- lists to cells ------------------------------------------------------------------------------ */

static struct optset *sweep_set(const char *line)
{
    struct optset *set = optset_create(FOR_SWEEP, true);
    struct err err = {0};
    assert_non_null(set);
    if (parse(set, line, &err) != 0) fail_msg("%s", err.text);
    return set;
}

static void cells__lists__make_their_product_with_the_last_fastest(void **state)
{
    (void)state;
    struct optset *set = sweep_set("a.csv b.csv --block-size 1,16 --max-num-seqs 8,9,10 --fail-if x>1,y>2");
    check_u64_eq(optset_cells(set), 12);
    static const char *const traces[] = {"a.csv", "b.csv"}, *const blocks[] = {"1", "16"},
                             *const seqs[] = {"8", "9", "10"};
    for (uint64_t k = 0; k < 12; k++) {
        struct optset *cell = optset_cell(set, k);
        struct options options;
        struct err err = {0};
        assert_non_null(cell);
        check_str_eq(optset_text(cell, "trace"), traces[k / 6]);
        check_str_eq(optset_text(cell, "block-size"), blocks[k / 3 % 2]);
        check_str_eq(optset_text(cell, "max-num-seqs"), seqs[k % 3]);
        check_u64_eq(optset_cells(cell), 1);
        if (options_resolve(cell, &options, &err) != 0) fail_msg("%s", err.text);
        check_u64_eq(options.fail_if.count, 2);
        optset_destroy(cell);
    }
    optset_destroy(set);
}

/* dynamic has no reservation: 2 block sizes; static: 2 reservations x 2 block sizes. */
static void cells__options_of_policies__multiply_only_their_own(void **state)
{
    (void)state;
    struct optset *set = sweep_set("--policy dynamic,static --reserve max,pow2 --block-size 1,16");
    check_u64_eq(optset_cells(set), 2 + 4);
    for (uint64_t k = 0; k < 6; k++) {
        struct optset *cell = optset_cell(set, k);
        struct options options;
        struct err err = {0};
        if (options_resolve(cell, &options, &err) != 0) fail_msg("%s", err.text);
        check_str_eq(options.policy, k < 2 ? "dynamic" : "static");
        assert_int_equal(optset_given(cell, "reserve"), k >= 2);
        if (k >= 2) check_str_eq(optset_text(cell, "reserve"), k % 2 ? "pow2" : "max");
        optset_destroy(cell);
    }
    optset_destroy(set);
}

static void cells__generator__keeps_its_commas(void **state)
{
    (void)state;
    struct optset *set = sweep_set("--trace gen:rate=3,n=10 --seed 1,2");
    check_u64_eq(optset_cells(set), 2);
    struct optset *cell = optset_cell(set, 1);
    check_str_eq(optset_text(cell, "trace"), "gen:rate=3,n=10");
    check_str_eq(optset_text(cell, "seed"), "2");
    optset_destroy(cell);
    optset_destroy(set);
}

static void sweep__wrong_lists__are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"--block-size 1,,2", "--block-size: found '', expected a count from 1 to 1048576"},
        {"--block-size 1,16,0x", "--block-size: found '0x', expected a count from 1 to 1048576"},
        {"--block-size 1000,1k", "--block-size: '1k' stands twice in the list"},
        {"--threads 1,2", "--threads: found '1,2', expected a count from 1 to 1024"},
        {"--policy dynamic,prefix --reserve max", "--reserve: policy dynamic,prefix has no such option"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct optset *set = optset_create(FOR_SWEEP, true);
        struct err err = {0};
        assert_int_equal(parse(set, cases[i].line, &err), -1);
        check_str_eq(err.text, cases[i].text);
        optset_destroy(set);
    }
}

/* 101^3 = 1,030,301 */
static void sweep__too_many_cells__are_refused(void **state)
{
    (void)state;
    char list[1024] = "1";
    for (int i = 2; i <= 101; i++) snprintf(list + strlen(list), sizeof list - strlen(list), ",%d", i);
    struct optset *set = optset_create(FOR_SWEEP, true);
    struct err err = {0};
    assert_int_equal(optset_put(set, "seed", list, &err), 0);
    assert_int_equal(optset_put(set, "block-size", list, &err), 0);
    assert_int_equal(optset_put(set, "max-num-seqs", list, &err), 0);
    assert_int_equal(optset_finish(set, &err), -1);
    check_str_eq(err.text, "the lists make 1030301 cells, more than 1000000");
    optset_destroy(set);
}

/* --- configuration files --------------------------------------------------------------------------- */

static int config(struct optset *set, const char *text, struct err *err)
{
    return optset_config_text(set, text, strlen(text), "c.ini", err);
}

static void config__sections__hold_for_their_command(void **state)
{
    (void)state;
    struct optset *set = run_set();
    struct err err = {0};
    static const char text[] = "# all commands\r\n"
                               "block_size = 32   ; a comment\n"
                               "trace = gen:rate=1,n=2\n"
                               "fail-if = a > 1\n"
                               "[sweep]\n"
                               "threads = 2\n"
                               "max-num-seqs = 1,2\n"
                               "[run]\n"
                               "json = yes\n"
                               "fail-if = b > 2\n"
                               "[my favourites]\n"
                               "enable-chunked-prefill = no";
    assert_int_equal(optset_put(set, "seed", "5", &err), 0);
    if (config(set, text, &err) != 0) fail_msg("%s", err.text);
    struct options options;
    assert_int_equal(options_resolve(set, &options, &err), 0);
    check_u64_eq(options.block_tokens, 32);
    check_str_eq(options.trace, "gen:rate=1,n=2");
    check_u64_eq(options.max_num_seqs, 256);
    check_u64_eq(options.fail_if.count, 2);
    check_str_eq(options.fail_if.items[0], "a > 1");
    assert_true(options.json);
    assert_false(options.chunked_prefill);
    optset_destroy(set);
}

/* In another command's section a key must exist for that command, and its value is not looked at. A section that is
 * no command's holds for all, so there the key would be unknown. */
static void check_section(const struct command *command, const char *words)
{
    static const uint32_t others[] = {FOR_RUN, FOR_SWEEP, FOR_POLICIES};
    for (size_t i = 0; i < option_count(); i++)
        for (size_t j = 0; j < sizeof others / sizeof others[0]; j++) {
            const char *name = option_at(i)->name;
            if (!(option_at(i)->commands & command->options) || option_find(others[j], name)) continue;
            if (strcmp(name, "config") == 0) continue;
            char text[128];
            struct err err = {0};
            struct optset *set = optset_create(others[j], false);
            snprintf(text, sizeof text, "[%s]\n%s =\n", words, name);
            if (config(set, text, &err) != 0) fail_msg("[%s]: %s", words, err.text);
            optset_destroy(set);
            return;
        }
}

static void config__each_command__has_its_section(void **state)
{
    (void)state;
    for (size_t i = 0; i < command_count(); i++) {
        const struct command *command = command_at(i);
        check_section(command, command->name);
        for (const struct command *const *part = command->parts; part && *part; part++) {
            char words[64];
            snprintf(words, sizeof words, "%s %s", command->name, (*part)->name);
            check_section(*part, words);
        }
    }
}

static void config__command_line__wins(void **state)
{
    (void)state;
    struct optset *set = run_set();
    struct err err = {0};
    assert_int_equal(optset_put(set, "block-size", "8", &err), 0);
    assert_int_equal(config(set, "block-size = 32\nseed = 3\n", &err), 0);
    check_str_eq(optset_text(set, "block-size"), "8");
    check_str_eq(optset_text(set, "seed"), "3");
    optset_destroy(set);
}

static void config__wrong__names_file_and_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"\n\nblok-size = 3\n", "c.ini:3: blok-size: unknown option, did you mean block-size?"},
        {"block-size = 0\n", "c.ini:1: block-size: found '0', expected a count from 1 to 1048576"},
        {"seed = 1\n# x\nseed = 2\n", "c.ini:3: seed: given before at line 1"},
        {"seed = 1\n[run]\nseed = 1\n", "c.ini:3: seed: given before at line 1"},
        {"seed\n", "c.ini:1: found 'seed', expected NAME = VALUE"},
        {"= 3\n", "c.ini:1: : unknown option"},
        {"[run\n", "c.ini:1: found '[run', expected [SECTION]"},
        {"[", "c.ini:1: found '[', expected [SECTION]"},
        {"seed =\n", "c.ini:1: seed: found '', expected a count, at least 0"},
        {"[sweep]\njson = yes\n", "c.ini:2: json: unknown option"},
        {"config = other.ini\n", "c.ini:1: config: belongs on the command line"},
        {"json = maybe\n", "c.ini:1: json: found 'maybe', expected yes or no"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct optset *set = run_set();
        struct err err = {0};
        assert_int_equal(config(set, cases[i].text, &err), -1);
        check_str_eq(err.text, cases[i].error);
        assert_int_equal(err.kind, ERR_USAGE);
        optset_destroy(set);
    }
}

static void config__refused__leaves_the_set_alone(void **state)
{
    (void)state;
    struct optset *set = run_set();
    struct err err = {0};
    assert_int_equal(config(set, "block-size = 32\nseed = x\n", &err), -1);
    assert_false(optset_given(set, "block-size"));
    optset_destroy(set);
}

/* A line of any length is one line. */
static void config__long_value__is_read_whole(void **state)
{
    (void)state;
    char text[5000] = "trace = ";
    memset(text + strlen(text), 'x', 4000);
    struct optset *set = run_set();
    struct err err = {0};
    assert_int_equal(config(set, text, &err), 0);
    check_u64_eq(strlen(optset_text(set, "trace")), 4000);
    optset_destroy(set);
    memset(text, 'x', sizeof text);
    text[4096] = '\0';
    set = run_set();
    assert_int_equal(optset_put(set, "trace", text, &err), -1);
    check_str_eq(err.text, "--trace: longer than 4095 bytes");
    optset_destroy(set);
}

static void config__byte_zero__is_refused(void **state)
{
    (void)state;
    struct optset *set = run_set();
    struct err err = {0};
    assert_int_equal(optset_config_text(set, "seed = 1\0\n", 10, "c.ini", &err), -1);
    check_str_eq(err.text, "c.ini: a byte 0, expected text");
    optset_destroy(set);
}

/* --- output files ---------------------------------------------------------------------------------- */

static int folder_setup(void **state)
{
    *state = cli_temp_dir();
    return 0;
}

static int folder_teardown(void **state)
{
    cli_temp_remove(*state);
    return 0;
}

static void outfile__committed__appears_whole(void **state)
{
    const char *path = cli_write(*state, "out", "old", 3);
    struct err err = {0};
    struct outfile *file = outfile_open(path, &err);
    assert_non_null(file);
    fprintf(outfile_stream(file), "new");
    fflush(outfile_stream(file));
    char *before = cli_read(path);
    check_str_eq(before, "old");
    assert_int_equal(outfile_commit(file, &err), 0);
    char *after = cli_read(path);
    check_str_eq(after, "new");
    check_u64_eq(cli_count_entries(*state), 1);
    free(before);
    free(after);
}

static void outfile__abandoned__leaves_nothing(void **state)
{
    struct err err = {0};
    struct outfile *file = outfile_open(cli_path(*state, "out"), &err);
    assert_non_null(file);
    fprintf(outfile_stream(file), "half");
    outfile_abandon(file);
    check_u64_eq(cli_count_entries(*state), 0);
}

/* A child opens a file, writes half of it, and is ended. */
static void outfile__signal__leaves_nothing(void **state)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGABRT};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const char *path = cli_path(*state, "out");
        fflush(NULL);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            outfile_catch_signals();
            struct outfile *file = outfile_open(path, NULL);
            if (!file || fprintf(outfile_stream(file), "half") < 0) _exit(9);
            fflush(outfile_stream(file));
            raise(numbers[i]);
            _exit(8);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        check_i64_eq(WTERMSIG(status), numbers[i]);
        check_u64_eq(cli_count_entries(*state), 0);
    }
}

static void outfile__link__is_kept_and_its_file_replaced(void **state)
{
    struct err err = {0};
    cli_write(*state, "real", "old", 3);
    const char *link = cli_path(*state, "link");
    assert_int_equal(symlink("real", link), 0);
    struct outfile *file = outfile_open(link, &err);
    assert_non_null(file);
    fprintf(outfile_stream(file), "new");
    assert_int_equal(outfile_commit(file, &err), 0);
    char *text = cli_read(cli_path(*state, "real"));
    char target[8];
    check_str_eq(text, "new");
    check_i64_eq(readlink(link, target, sizeof target), 4);
    check_u64_eq(cli_count_entries(*state), 2);
    free(text);
}

static void outfile__folder_or_no_folder__is_refused_by_name(void **state)
{
    char expected[4200];
    struct err err = {0};
    assert_null(outfile_open(*state, &err));
    snprintf(expected, sizeof expected, "%s: is a directory, expected a file", (char *)*state);
    check_str_eq(err.text, expected);
    err = (struct err){0};
    const char *path = cli_path(*state, "none/out");
    assert_null(outfile_open(path, &err));
    snprintf(expected, sizeof expected, "%s: No such file or directory", path);
    check_str_eq(err.text, expected);
}

static void outfile__full_disk__is_a_failure(void **state)
{
    (void)state;
    struct err err = {0};
    struct outfile *file = outfile_open("/dev/full", &err);
    assert_non_null(file);
    fprintf(outfile_stream(file), "x");
    assert_int_equal(outfile_commit(file, &err), -1);
    check_str_eq(err.text, "/dev/full: No space left on device");
    assert_int_equal(err.kind, ERR_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_bytes__units__are_exact),
        cmocka_unit_test(parse_count__units__are_exact),
        cmocka_unit_test(parse_time__units__are_exact),
        cmocka_unit_test(parse_percent__shares__are_exact),
        cmocka_unit_test(parse_ratio__not_a_plain_number__is_refused),
        cmocka_unit_test(format_ratio__any__reads_back),
        cmocka_unit_test(table__each_command__has_each_name_once),
        cmocka_unit_test(table__each_default__is_valid),
        cmocka_unit_test(table__options_of_policies__are_one_object_each),
        cmocka_unit_test(table__words__stand_in_the_order_of_their_enumeration),
        cmocka_unit_test(nearest__a_slip__is_found_and_a_guess_is_not),
        cmocka_unit_test(resolve__nothing_given__has_the_documented_defaults),
        cmocka_unit_test(resolve__everything_given__is_read),
        cmocka_unit_test(resolve__options_of_the_policy__reach_its_table),
        cmocka_unit_test(args__wrong__say_what_was_found_and_expected),
        cmocka_unit_test(args__unknown_policy__lists_the_known),
        cmocka_unit_test(pool_bytes__wrong_sizes__are_refused),
        cmocka_unit_test(echo__run__names_what_changes_figures),
        cmocka_unit_test(cells__lists__make_their_product_with_the_last_fastest),
        cmocka_unit_test(cells__options_of_policies__multiply_only_their_own),
        cmocka_unit_test(cells__generator__keeps_its_commas),
        cmocka_unit_test(sweep__wrong_lists__are_refused),
        cmocka_unit_test(sweep__too_many_cells__are_refused),
        cmocka_unit_test(config__sections__hold_for_their_command),
        cmocka_unit_test(config__each_command__has_its_section),
        cmocka_unit_test(config__command_line__wins),
        cmocka_unit_test(config__wrong__names_file_and_line),
        cmocka_unit_test(config__refused__leaves_the_set_alone),
        cmocka_unit_test(config__long_value__is_read_whole),
        cmocka_unit_test(config__byte_zero__is_refused),
        cmocka_unit_test_setup_teardown(outfile__committed__appears_whole, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(outfile__abandoned__leaves_nothing, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(outfile__signal__leaves_nothing, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(outfile__link__is_kept_and_its_file_replaced, folder_setup,
                                        folder_teardown),
        cmocka_unit_test_setup_teardown(outfile__folder_or_no_folder__is_refused_by_name, folder_setup,
                                        folder_teardown),
        cmocka_unit_test(outfile__full_disk__is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
