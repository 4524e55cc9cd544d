/* A tar of conversations as a trace: nested requests, and what is wrong with it in one line. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Packs one conversation into dir/name and runs `trace check` on it. */
static void check_tar(struct cli_result *r, const char *dir, const char *name, const char *options, const char *json)
{
    char tar[300];
    struct cli_result packed;
    struct cli_input with_tar = { .program = "tar" };
    cli_write(dir, "conversation.json", json, strlen(json));
    snprintf(tar, sizeof tar, "%s", cli_path(dir, name));
    cli_run(&packed, &with_tar, (const char *const[]){ options, tar, "-C", dir, "conversation.json", NULL });
    assert_int_equal(packed.status, 0);
    cli_release(&packed);
    CLI(r, "trace", "check", tar);
}

static void archive__nested_requests__all_are_read(void **state)
{
    (void)state;
    char *dir = cli_temp_dir();
    struct cli_result r;
    check_tar(&r, dir, "t.tar.gz", "-czf",
              "{\"id\":\"x\",\"requests\":[{\"in\":10,\"out\":3},"
              "{\"t\":1,\"requests\":[{\"in\":5,\"out\":0},{\"in\":7,\"out\":1}]},{\"in\":1,\"out\":1}]}");
    assert_int_equal(r.status, 0);
    check_str_has(r.out, "kv_cache_tester_tar, 4 requests");
    cli_release(&r);
    cli_temp_remove(dir);
}

static void archive__wrong_content__one_line(void **state)
{
    (void)state;
    static const struct { const char *json, *line; } cases[] = {
        { "{\"requests\":[{\"in\":1,\"out\":1},{\"in\":-4,\"out\":1}]}",
          "conversation.json: request 1: in: expected a count of tokens up to 2^32\n" },
        { "{\"requests\":[{\"in\":1}]}", "conversation.json: request 0: out: expected a count of tokens up to 2^32\n" },
        { "{\"id\":1}", "conversation.json: requests: found none, expected an array\n" },
        { "{\"id\":1", "conversation.json:1:7: '}' expected near end of file\n" },
    };
    char *dir = cli_temp_dir();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_result r;
        check_tar(&r, dir, "t.tar", "-cf", cases[i].json);
        assert_int_equal(r.status, 3);
        check_str_has(r.err, cases[i].line);
        check_u64_eq(r.out_bytes, 0);
        cli_release(&r);
    }
    cli_temp_remove(dir);
}

static void archive__no_tar__one_line(void **state)
{
    (void)state;
    char *dir = cli_temp_dir(), tar[300];
    snprintf(tar, sizeof tar, "%s", cli_write(dir, "t.tar", "hello\n", 6));
    struct cli_result r;
    CLI(&r, "trace", "check", tar);
    assert_int_equal(r.status, 3);
    check_str_has(r.err, "t.tar: Unrecognized archive format\n");
    cli_release(&r);
    cli_temp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(archive__nested_requests__all_are_read),
        cmocka_unit_test(archive__wrong_content__one_line),
        cmocka_unit_test(archive__no_tar__one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
