/* Figures from results made by hand: what the CSV files say, which figures and folders there are, and what is said when
 * something is missing. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/plots.h"
#include "tests/cli_run.h"

#define ROWS_MAX 8

struct fixture {
    char *dir;
    struct result rows[ROWS_MAX];
    size_t count;
    struct err err;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->dir = cli_temp_dir();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < f->count; i++) result_release(&f->rows[i]);
    cli_temp_remove(f->dir);
    free(f);
    return 0;
}

/* A row with every figure's keys but the hit rate. The shares are all `internal` and 1 - internal live. */
static struct result *add(struct fixture *f, const char *policy, uint64_t block_size, double internal)
{
    assert_true(f->count < ROWS_MAX);
    struct result *r = &f->rows[f->count++];
    result_init(r);
    result_text(r, "policy", policy);
    result_text(r, "trace", "folder/made.csv");
    result_u64(r, "requests", 10);
    result_u64(r, "finished", 10);
    result_u64(r, "unservable", 0);
    result_u64(r, "pool_bytes", (uint64_t)1 << 30);
    result_f64(r, "states.live", 1 - internal);
    result_f64(r, "states.internal", internal);
    result_f64(r, "internal_fragmentation", internal);
    result_f64(r, "reservation_waste", 0.0);
    result_null(r, "external_fragmentation");
    result_u64(r, "refusals.episodes", 3);
    result_u64(r, "refusals.by_class.capacity", 3);
    result_u64(r, "refusals.by_cause.capacity", 3);
    result_u64(r, "ttft_ns.p50", 1000000);
    result_u64(r, "options.block-size", block_size);
    return r;
}

static void draw(struct fixture *f)
{
    int status = plots_draw(f->dir, f->rows, f->count, &f->err);
    check_str_eq(f->err.text, "");
    assert_int_equal(status, 0);
}

static void check_file(const char *dir, const char *name, const char *expected)
{
    char *text = cli_read(cli_path(dir, name));
    assert_non_null(text);
    check_str_eq(text, expected);
    free(text);
}

static void check_missing(const char *dir, const char *name)
{
    assert_int_not_equal(access(cli_path(dir, name), F_OK), 0);
}

/* An SVG ends with its root's end tag; a PNG begins with the eight bytes of RFC 2083, 3.1 and ends with an empty IEND chunk,
 * whose check sum is AE 42 60 82. */
static void check_pictures(const char *dir, const char *figure)
{
    static const char end[] = "</svg>\n\n";
    char name[64], *text;
    snprintf(name, sizeof name, "%s.svg", figure);
    text = cli_read(cli_path(dir, name));
    assert_non_null(text);
    check_str_has(text, "<svg");
    assert_true(strlen(text) > sizeof end);
    check_str_eq(text + strlen(text) - (sizeof end - 1), end);
    free(text);

    char head[8], tail[12];
    snprintf(name, sizeof name, "%s.png", figure);
    FILE *png = fopen(cli_path(dir, name), "r");
    assert_non_null(png);
    check_u64_eq(fread(head, 1, sizeof head, png), 8);
    assert_memory_equal(head, "\x89PNG\r\n\x1a\n", 8);
    assert_int_equal(fseek(png, -12, SEEK_END), 0);
    check_u64_eq(fread(tail, 1, sizeof tail, png), 12);
    assert_memory_equal(tail, "\0\0\0\0IEND\xae\x42\x60\x82", 12);
    fclose(png);
}

static void draw__four_block_sizes__csv_has_the_rows_and_pictures_are_whole(void **state)
{
    struct fixture *f = *state;
    add(f, "dynamic", 512, 0.25);
    add(f, "dynamic", 1, 0.0);
    add(f, "dynamic", 4, 0.0625);
    add(f, "dynamic", 16, 0.125);
    draw(f);
    /* In order of block size; bars for the smallest, 16 and the largest; null is nothing. */
    check_file(f->dir, "fragmentation.csv",
               "series,block_size,flat,bar,internal_fragmentation,reservation_waste,"
               "external_fragmentation\n"
               "dynamic,1,0,1,0.0,0.0,\n"
               "dynamic,4,0,0,0.0625,0.0,\n"
               "dynamic,16,0,2,0.125,0.0,\n"
               "dynamic,512,0,3,0.25,0.0,\n");
    static const char *const figures[] = {"fragmentation", "states", "refusals", "latency"};
    for (size_t i = 0; i < 4; i++) check_pictures(f->dir, figures[i]);
    /* Four figures of three files each, and nothing else: no hit rate, no temporary file. */
    check_u64_eq(cli_count_entries(f->dir), 12);
}

static void draw__contiguous_policy__is_flat_with_one_bar(void **state)
{
    struct fixture *f = *state;
    add(f, "static", 1, 0.5);
    add(f, "static", 16, 0.5);
    add(f, "static-paged", 16, 0.5);
    draw(f);
    check_file(f->dir, "fragmentation.csv",
               "series,block_size,flat,bar,internal_fragmentation,reservation_waste,"
               "external_fragmentation\n"
               "static,1,1,1,0.5,0.0,\n"
               "static,16,1,0,0.5,0.0,\n"
               "static-paged,16,0,2,0.5,0.0,\n");
}

static void draw__contiguous_policy_whose_rows_differ__is_not_flat(void **state)
{
    struct fixture *f = *state; /* as under a pool given in blocks */
    add(f, "static", 1, 0.5);
    add(f, "static", 16, 0.25);
    draw(f);
    check_file(f->dir, "fragmentation.csv",
               "series,block_size,flat,bar,internal_fragmentation,reservation_waste,"
               "external_fragmentation\n"
               "static,1,0,1,0.5,0.0,\n"
               "static,16,0,2,0.25,0.0,\n");
}

static void draw__option_of_the_policy_differs__makes_series(void **state)
{
    struct fixture *f = *state;
    result_text(add(f, "static-paged", 16, 0.5), "options.reserve", "max");
    result_text(add(f, "static-paged", 16, 0.0), "options.reserve", "oracle");
    add(f, "dynamic", 16, 0.125);
    draw(f);
    check_file(f->dir, "fragmentation.csv",
               "series,block_size,flat,bar,internal_fragmentation,reservation_waste,"
               "external_fragmentation\n"
               "static-paged(max),16,0,1,0.5,0.0,\n"
               "static-paged(oracle),16,0,2,0.0,0.0,\n"
               "dynamic,16,0,3,0.125,0.0,\n");
}

static void draw__other_option_differs__makes_a_folder_each(void **state)
{
    struct fixture *f = *state;
    static const char *const traces[] = {"a/x y.csv", "b/x y.csv", "gen:requests=9"};
    for (size_t i = 0; i < 3; i++) {
        struct result *r = add(f, "dynamic", 16, 0.125);
        result_text(r, "options.trace", traces[i]);
        result_u64(r, "options.seed", 7);
    }
    draw(f);
    /* The second trace has the same name in another folder: numbered. */
    check_pictures(cli_path(f->dir, "trace=x_y.csv"), "fragmentation");
    check_pictures(cli_path(f->dir, "trace=x_y.csv-2"), "fragmentation");
    check_pictures(cli_path(f->dir, "trace=gen_requests=9"), "fragmentation");
    check_u64_eq(cli_count_entries(f->dir), 3);
}

static void draw__lower_bound__hit_rate_is_drawn_with_its_note(void **state)
{
    struct fixture *f = *state;
    static const char note[] = "lower bound: content ids are coarser than a block";
    struct result *r = add(f, "prefix", 16, 0.125);
    result_f64(r, "hit_rate_tokens", 0.375);
    result_text(r, "hit_rate_note", note);
    r = add(f, "prefix", 512, 0.125);
    result_f64(r, "hit_rate_tokens", 0.5);
    result_null(r, "hit_rate_note");
    r = add(f, "dynamic", 16, 0.125);
    result_null(r, "hit_rate_tokens");
    result_text(r, "hit_rate_note", "a note, \"quoted\"");
    draw(f);
    check_file(f->dir, "hit_rate.csv",
               "series,block_size,flat,bar,hit_rate_tokens,hit_rate_note\n"
               "prefix,16,0,1,0.375,lower bound: content ids are coarser than a block\n"
               "prefix,512,0,2,0.5,\n"
               "dynamic,16,0,3,,\"a note, \"\"quoted\"\"\"\n");
    check_pictures(f->dir, "hit_rate");
    char *svg = cli_read(cli_path(f->dir, "hit_rate.svg"));
    assert_non_null(svg);
    check_str_has(svg, "open: lower bound");
    free(svg);
}

static void draw__nothing_refused__refusals_are_drawn_all_the_same(void **state)
{
    struct fixture *f = *state;
    struct result *r = add(f, "dynamic", 16, 0.0);
    for (size_t i = 0; i < r->count; i++) {
        if (strncmp(r->entries[i].key, "refusals.", 9) == 0) r->entries[i].u64 = 0;
    }
    draw(f);
    check_pictures(f->dir, "refusals");
}

static void draw__no_rows__draws_nothing(void **state)
{
    struct fixture *f = *state;
    draw(f);
    check_u64_eq(cli_count_entries(f->dir), 0);
}

static void draw__twice__same_bytes(void **state)
{
    struct fixture *f = *state;
    add(f, "dynamic", 16, 0.125);
    draw(f);
    char *first = cli_read(cli_path(f->dir, "states.svg"));
    draw(f);
    char *second = cli_read(cli_path(f->dir, "states.svg"));
    assert_non_null(first);
    assert_non_null(second);
    check_str_eq(second, first);
    free(first);
    free(second);
}

static void timeline__two_rows__is_drawn(void **state)
{
    static const char csv[] =
        "time_ns,live_bytes,dead_bytes,reserved_bytes,internal_bytes,rounding_bytes,cached_bytes,"
        "cached_pinned_bytes,stranded_bytes,free_bytes,overhead_bytes,running\n"
        "0,1000,0,0,0,0,0,0,0,3000,0,1.000\n"
        "1000000000,2000,0,0,0,0,0,0,0,2000,0,2.000\n";
    struct fixture *f = *state;
    const char *path = cli_write(f->dir, "run.csv", csv, sizeof csv - 1);
    assert_int_equal(plots_timeline(f->dir, path, "a title_with 'quotes' and `marks`", &f->err), 0);
    check_pictures(f->dir, "timeline");
    check_u64_eq(cli_count_entries(f->dir), 3);
}

static void timeline__no_such_csv__says_so_and_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(plots_timeline(f->dir, cli_path(f->dir, "none.csv"), NULL, &f->err), -1);
    check_str_has(f->err.text, "timeline.gp");
    assert_null(strchr(f->err.text, '\n'));
    check_u64_eq(cli_count_entries(f->dir), 0);
}

/* Runs with another value of an environment variable, then puts the old one back. */
static int with_environment(struct fixture *f, const char *name, const char *value,
                            int (*call)(struct fixture *f))
{
    const char *now = getenv(name);
    char *old = now ? strdup(now) : NULL;
    assert_int_equal(setenv(name, value, 1), 0);
    int status = call(f);
    if (old) setenv(name, old, 1);
    else unsetenv(name);
    free(old);
    return status;
}

static int call_draw(struct fixture *f)
{
    return plots_draw(f->dir, f->rows, f->count, &f->err);
}

static int call_check(struct fixture *f)
{
    return plots_check(f->dir, &f->err);
}

static void draw__no_gnuplot__one_clear_line(void **state)
{
    struct fixture *f = *state;
    add(f, "dynamic", 16, 0.125);
    assert_int_equal(with_environment(f, "PATH", "", call_draw), -1);
    check_str_has(f->err.text, "gnuplot: not found in PATH");
    check_missing(f->dir, "fragmentation.svg");
    f->err = (struct err){0};
    assert_int_equal(with_environment(f, "PATH", "", call_check), -1);
    check_str_has(f->err.text, "gnuplot: not found in PATH");
}

static void check__scripts_elsewhere__says_where_it_looked(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(with_environment(f, "PAGESIM_DATADIR", "/nowhere", call_check), -1);
    check_str_has(f->err.text, "/nowhere/plot");
}

static void draw__folder_is_a_file__one_clear_line(void **state)
{
    struct fixture *f = *state;
    const char *file = cli_write(f->dir, "file", "x", 1);
    add(f, "dynamic", 16, 0.125);
    assert_int_equal(plots_draw(file, f->rows, f->count, &f->err), -1);
    check_str_has(f->err.text, "/file: is a file, expected a folder");
    f->err = (struct err){0};
    assert_int_equal(plots_check(cli_path(file, "below"), &f->err), -1);
    check_str_has(f->err.text, "/file/below: Not a directory");
}

static void check__folder_below_missing_ones__is_made(void **state)
{
    struct fixture *f = *state;
    const char *path = cli_path(f->dir, "a/b/c");
    assert_int_equal(plots_check(path, &f->err), 0);
    assert_int_equal(access(path, W_OK), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(draw__four_block_sizes__csv_has_the_rows_and_pictures_are_whole),
        CASE(draw__contiguous_policy__is_flat_with_one_bar),
        CASE(draw__contiguous_policy_whose_rows_differ__is_not_flat),
        CASE(draw__option_of_the_policy_differs__makes_series),
        CASE(draw__other_option_differs__makes_a_folder_each),
        CASE(draw__lower_bound__hit_rate_is_drawn_with_its_note),
        CASE(draw__nothing_refused__refusals_are_drawn_all_the_same),
        CASE(draw__no_rows__draws_nothing),
        CASE(draw__twice__same_bytes),
        CASE(timeline__two_rows__is_drawn),
        CASE(timeline__no_such_csv__says_so_and_leaves_nothing),
        CASE(draw__no_gnuplot__one_clear_line),
        CASE(check__scripts_elsewhere__says_where_it_looked),
        CASE(draw__folder_is_a_file__one_clear_line),
        CASE(check__folder_below_missing_ones__is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
