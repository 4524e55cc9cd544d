/* Streams of ids as text: numbers of every length, read in large pieces and at the end of the file. */
#include "tests/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/id_file.h"

static char path[] = "/tmp/pagesim-ids-XXXXXX";

static void write_text(const char *text)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

/* What the file says, at most 64 ids; the last call's answer in *last. */
static size_t read_text(uint64_t ids[64], int64_t *last, struct err *err)
{
    struct id_file *file;
    size_t n = 0;
    assert_int_equal(id_file_open(path, ID_FORMAT_TEXT, &file, err), 0);
    while ((*last = id_file_next(file, ids + n, 64 - n, err)) > 0) n += (size_t)*last;
    id_file_close(file);
    return n;
}

/* 1, 12, 123, ...: shorter and longer than the eight digits that are read at once, with both kinds of line ends. */
static void text__numbers_of_every_length__read_exactly(void **state)
{
    (void)state;
    static const char digits[] = "12345678901234567890";
    char text[1000] = "";
    uint64_t ids[64];
    int64_t last;
    struct err err = {0};
    for (int round = 0; round < 2; round++) {
        for (int n = 1; n <= 19; n++) {
            sprintf(text + strlen(text), "%.*s%s", n, digits, round ? "\r\n" : "\n");
        }
    }
    strcat(text, "18446744073709551615\n0\n00000000000000000000009\n99999999\n100000000");
    write_text(text);
    check_u64_eq(read_text(ids, &last, &err), 2 * 19 + 5);
    check_u64_eq((uint64_t)last, 0);
    for (size_t i = 0; i < 2 * 19; i++) {
        char number[24];
        snprintf(number, sizeof number, "%.*s", (int)(i % 19 + 1), digits);
        check_u64_eq(ids[i], strtoull(number, NULL, 10));
    }
    const uint64_t rest[] = {UINT64_MAX, 0, 9, 99999999, 100000000};
    for (size_t i = 0; i < 5; i++) check_u64_eq(ids[2 * 19 + i], rest[i]);
}

static void text__no_number__the_line_is_named(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "x", "1x", "12345678x", "1234567:", "1234567/", "-1", " 1", "1 ", "18446744073709551616",
                                      "12345678\x80", "\262"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[100];
        uint64_t ids[64];
        int64_t last;
        struct err err = {0};
        snprintf(text, sizeof text, "7\n8\n%s\n1234567890123456\n", bad[i]);
        write_text(text);
        read_text(ids, &last, &err);
        assert_true(last < 0);
        assert_non_null(strstr(err.text, ":3: found '"));
    }
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd) ? -1 : 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text__numbers_of_every_length__read_exactly),
        cmocka_unit_test(text__no_number__the_line_is_named),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file) != 0;
}
