/* Results as text: nested JSON, flat lines, numbers, strings. */
#include "tests/check.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/result.h"

static int setup(void **state)
{
    static struct result result;
    result_init(&result);
    *state = &result;
    return 0;
}

static int teardown(void **state)
{
    result_release(*state);
    return 0;
}

static char *written(const struct result *r, void (*write)(const struct result *, FILE *))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    write(r, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void check_written(const struct result *r, void (*write)(const struct result *, FILE *),
                          const char *expected)
{
    char *text = written(r, write);
    check_str_eq(text, expected);
    free(text);
}

static void json__dotted_keys__become_objects(void **state)
{
    struct result *r = *state;
    result_u64(r, "steps", 7);
    result_f64(r, "ttft_ns.mean", 2.5);
    result_u64(r, "ttft_ns.p50", 2);
    result_u64(r, "refusals.episodes", 1);
    result_u64(r, "refusals.by_kind.admission", 1);
    result_u64(r, "refusals.by_kind.growth", 0);
    result_u64(r, "refusals.by_class.capacity", 1);
    result_null(r, "states");
    result_bool(r, "trace_cut", false);
    check_written(r, result_write_json,
                  "{\n  \"steps\": 7,\n  \"ttft_ns\": {\n    \"mean\": 2.5,\n    \"p50\": 2\n  },\n"
                  "  \"refusals\": {\n    \"episodes\": 1,\n    \"by_kind\": {\n      \"admission\": 1,\n"
                  "      \"growth\": 0\n    },\n    \"by_class\": {\n      \"capacity\": 1\n    }\n  },\n"
                  "  \"states\": null,\n  \"trace_cut\": false\n}\n");
    check_written(r, result_write_line,
                  "{\"steps\": 7, \"ttft_ns.mean\": 2.5, \"ttft_ns.p50\": 2, \"refusals.episodes\": 1, "
                  "\"refusals.by_kind.admission\": 1, \"refusals.by_kind.growth\": 0, "
                  "\"refusals.by_class.capacity\": 1, \"states\": null, \"trace_cut\": false}\n");
}

/* Keys that only begin alike are different objects. */
static void json__keys_with_a_common_beginning__are_not_nested(void **state)
{
    struct result *r = *state;
    result_u64(r, "a.b", 1);
    result_u64(r, "ab.c", 2);
    result_u64(r, "ab.cd", 3);
    check_written(r, result_write_json,
                  "{\n  \"a\": {\n    \"b\": 1\n  },\n  \"ab\": {\n    \"c\": 2,\n    \"cd\": 3\n  }\n}\n");
}

static void json__last_key_is_deep__all_objects_close(void **state)
{
    struct result *r = *state;
    result_u64(r, "a.b.c.d", 1);
    char *text = written(r, result_write_json);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    int value = 0;
    assert_int_equal(json_unpack(root, "{s{s{s{si}}}}", "a", "b", "c", "d", &value), 0);
    assert_int_equal(value, 1);
    json_decref(root);
    free(text);
}

static void numbers__not_finite_or_over_zero__are_null(void **state)
{
    struct result *r = *state;
    double value = -1;
    result_f64(r, "nan", NAN);
    result_f64(r, "infinity", -INFINITY);
    result_ratio(r, "over_zero", 5, 0);
    result_ratio(r, "zero", 0, 5);
    result_text(r, "text", NULL);
    check_written(r, result_write_line,
                  "{\"nan\": null, \"infinity\": null, \"over_zero\": null, \"zero\": 0.0, \"text\": null}\n");
    assert_false(result_number(result_find(r, "over_zero"), &value));
    assert_true(result_number(result_find(r, "zero"), &value));
    check_f64_near(value, 0, 0);
    assert_null(result_find(r, "absent"));
}

/* Sums of byte-nanoseconds outgrow 64 bits: 2^100 / 2^102 = 0.25. */
static void ratio__wider_than_64_bits__is_right(void **state)
{
    double value;
    unsigned __int128 one = 1;
    result_ratio(*state, "r", one << 100, one << 102);
    assert_true(result_number(result_find(*state, "r"), &value));
    check_f64_near(value, 0.25, 0);
}

static void format_f64__any__reads_back_and_is_a_double(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.1, "0.1"}, {1, "1.0"}, {-3, "-3.0"}, {1e300, "1e+300"}, {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"}, {123456789012345680.0, "1.2345678901234568e+17"},
    };
    (void)state;
    char text[40];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        result_format_f64(cases[i].value, text, sizeof text);
        check_str_eq(text, cases[i].text);
        check_f64_near(strtod(text, NULL), cases[i].value, 0);
    }
}

static void string__quotes_controls_and_bad_utf8__are_escaped(void **state)
{
    struct result *r = *state;
    result_text(r, "t", "a\"b\\c\n\x7f \xc3\xa9 \xff \xc0\xaf \xed\xa0\x80 \xe2\x82");
    char *text = written(r, result_write_line);
    check_str_eq(text, "{\"t\": \"a\\\"b\\\\c\\u000a\\u007f \xc3\xa9 \\ufffd \\ufffd\\ufffd "
                       "\\ufffd\\ufffd\\ufffd \\ufffd\\ufffd\"}\n");
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    json_decref(root);
    free(text);
}

static void result__more_entries_than_the_first_room__all_are_there(void **state)
{
    struct result *r = *state;
    char key[20];
    for (uint64_t i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "k%03u", (unsigned)i);
        result_u64(r, key, i);
    }
    check_u64_eq(r->count, 1000);
    check_u64_eq(result_find(r, "k777")->u64, 777);
    assert_false(r->out_of_memory);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(json__dotted_keys__become_objects),
        CASE(json__keys_with_a_common_beginning__are_not_nested),
        CASE(json__last_key_is_deep__all_objects_close),
        CASE(numbers__not_finite_or_over_zero__are_null),
        CASE(ratio__wider_than_64_bits__is_right),
        CASE(format_f64__any__reads_back_and_is_a_double),
        CASE(string__quotes_controls_and_bad_utf8__are_escaped),
        CASE(result__more_entries_than_the_first_room__all_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
