/* pagesim sweep: lines of cells that share a simulation are those of cells alone. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOAD "--trace", "gen:requests=60,arrivals=poisson:20,prompt=64,output=30,sessions=5", "--pool-tokens", "1600"

/* The block size plays no part in what these policies do, but their lines name it. */
static void sweep__block_sizes_that_do_not_matter__the_lines_of_single_cells(void **state)
{
    (void)state;
    static const char *const policies[] = {"ideal", "static", "jemalloc"}, *const sizes[] = {"8", "16", "64"};
    struct cli_result all, one;
    CLI(&all, "sweep", LOAD, "--policy", "ideal,static,jemalloc", "--block-size", "8,16,64");
    assert_int_equal(all.status, 0);
    const char *line = all.out;
    for (size_t i = 0; i < 9; i++) {
        CLI(&one, "sweep", LOAD, "--policy", policies[i / 3], "--block-size", sizes[i % 3]);
        assert_int_equal(one.status, 0);
        assert_true(one.out_bytes > 0);
        assert_memory_equal(line, one.out, one.out_bytes);
        line += one.out_bytes;
        cli_release(&one);
    }
    assert_ptr_equal(line, all.out + all.out_bytes);
    cli_release(&all);
}

/* A pool of so many blocks is another pool for each of their sizes. */
static void sweep__pool_in_blocks__each_size_its_own(void **state)
{
    (void)state;
    struct cli_result r;
    CLI(&r, "sweep", "--trace", "gen:requests=60,arrivals=poisson:20,prompt=64,output=30", "--policy", "ideal",
        "--block-size", "8,64", "--num-gpu-blocks-override", "20");
    assert_int_equal(r.status, 0);
    check_str_has(r.out, "\"pool_slots\": 160");
    check_str_has(r.out, "\"pool_slots\": 1280");
    cli_release(&r);
}

/* What an earlier sweep has done is taken over, whichever cells of a group it was. */
static void sweep__taken_up_again__the_same_file(void **state)
{
    (void)state;
    char *dir = cli_temp_dir();
    struct cli_result r;
    CLI(&r, "sweep", LOAD, "--policy", "ideal,dynamic", "--block-size", "8,16,64");
    assert_int_equal(r.status, 0);
    const char *first = r.out, *second = strchr(first, '\n') + 1, *third = strchr(second, '\n') + 1;
    const char *const parts[][2] = {{first, second}, {second, third}, {first, third}, {third, strchr(third, '\n') + 1}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        struct cli_result again;
        cli_write(dir, "out.jsonl.partial", parts[i][0], (size_t)(parts[i][1] - parts[i][0]));
        CLI(&again, "sweep", LOAD, "--policy", "ideal,dynamic", "--block-size", "8,16,64", "--output",
            cli_path(dir, "out.jsonl"));
        assert_int_equal(again.status, 0);
        char *written = cli_read(cli_path(dir, "out.jsonl"));
        assert_non_null(written);
        assert_string_equal(written, r.out);
        free(written);
        cli_release(&again);
    }
    cli_release(&r);
    cli_temp_remove(dir);
}

/* A device is written directly: no name beside it, and the reason of the failure in the message. */
static void sweep__output_full__says_so_and_leaves_nothing(void **state)
{
    (void)state;
    struct cli_result r;
    CLI(&r, "sweep", LOAD, "--output", "/dev/full");
    assert_int_equal(r.status, 1);
    check_str_eq(r.err, "pagesim: /dev/full: No space left on device\n");
    assert_int_not_equal(access("/dev/full.partial", F_OK), 0);
    cli_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sweep__block_sizes_that_do_not_matter__the_lines_of_single_cells),
        cmocka_unit_test(sweep__pool_in_blocks__each_size_its_own),
        cmocka_unit_test(sweep__taken_up_again__the_same_file),
        cmocka_unit_test(sweep__output_full__says_so_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
