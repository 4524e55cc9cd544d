/* The recordings of PyTorch's allocator: 26 cases, up to 7 settings each, 104 files. Every row is compared as text, cut by what the
 * recordings' README calls not reproducible: the device's free bytes and the process line of messages, free_after_context. */
#include "tests/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/device_rows.h"
#include "workloads/wl_stream.h"

#define FOLDER "tests/golden/torch-caching-allocator/"
#define RECORDINGS 104
#define CASES 26

/* What the README counts. */
#define OPERATIONS 374707
#define OOMS 1348

struct recording {
    char name[192];
    char folder[256];
    char variant[64];
};

static struct recording recordings[RECORDINGS + 1];
static size_t recording_count, case_count;
static uint64_t rows_seen, ooms_seen;

/* Cuts from the end of `begin` to the start of `end`, once. */
static void cut_between(char *text, const char *begin, const char *end)
{
    char *from = strstr(text, begin);
    char *to = from ? strstr(from + strlen(begin), end) : NULL;
    if (to)
        memmove(from + strlen(begin), to, strlen(to) + 1);
}

static void cut_unreproducible(char *row)
{
    if (strncmp(row, "{\"header\"", 9) == 0) {
        cut_between(row, "\"free_after_context\":", ",");
        cut_between(row, "\"driver\":\"580.159.04\"", "}}");
    }
    if (strstr(row, "\"oom\":")) {
        cut_between(row, "\"free\":\"", "\"");
        cut_between(row, " of which ", " memory in use. ");
    }
}

static void compare_row(char *actual, char *expected, const char *name, uint64_t line)
{
    cut_unreproducible(actual);
    cut_unreproducible(expected);
    if (strcmp(actual, expected) == 0)
        return;
    print_error("%s, line %llu\n  simulated %.2000s\n  recorded  %.2000s\n", name, (unsigned long long)line, actual, expected);
    fail();
}

static void compare_rows(char *actual, const char *path, const char *name)
{
    struct err err = {0};
    struct wl_stream *stream;
    struct wl_line line = {.err = &err};
    assert_int_equal(wl_stream_open(path, &stream, &err), 0);
    while (wl_stream_line(stream, &line, &err) == 1) {
        char *end = strchr(actual, '\n');
        assert_non_null(end);
        *end = '\0';
        rows_seen += line.number > 1;
        ooms_seen += strstr(line.text, "\"oom\":") != NULL;
        compare_row(actual, line.text, name, line.number);
        actual = end + 1;
    }
    check_str_eq(err.text, "");
    check_str_eq(actual, ""); /* no row too many */
    wl_stream_close(stream);
}

static void recorded_case__replayed__same_rows(void **state)
{
    const struct recording *r = *state;
    char path[512];
    struct err err = {0};
    struct device_case c;
    struct device_ops ops;
    char *text = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/config.json", r->folder);
    assert_int_equal(device_case_read(path, &c, &err), 0);
    snprintf(path, sizeof path, "%s/ops.jsonl.gz", r->folder);
    assert_int_equal(device_ops_read(path, &ops, &err), 0);
    struct device_rows rows = {.out = open_memstream(&text, &bytes)};
    assert_non_null(rows.out);
    int status = device_rows_write(&rows, &ops, &c, r->variant, device_case_setting(&c, r->variant), &err);
    fclose(rows.out);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
    snprintf(path, sizeof path, "%s/expected-%s.jsonl.gz", r->folder, r->variant);
    compare_rows(text, path, r->name);
    free(text);
    device_ops_release(&ops);
    device_case_release(&c);
}

/* Runs last: nothing was left out. */
static void recordings__all__are_as_many_as_the_readme_says(void **state)
{
    (void)state;
    check_u64_eq(case_count, CASES);
    check_u64_eq(recording_count, RECORDINGS);
    check_u64_eq(rows_seen, OPERATIONS);
    check_u64_eq(ooms_seen, OOMS);
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const struct recording *)x)->name, ((const struct recording *)y)->name);
}

static void find_in_case(const char *name)
{
    char folder[256];
    snprintf(folder, sizeof folder, FOLDER "%.100s", name);
    DIR *dir = opendir(folder);
    struct dirent *entry;
    if (!dir || name[0] == '.') {
        if (dir)
            closedir(dir);
        return;
    }
    case_count++;
    while ((entry = readdir(dir)) != NULL && recording_count <= RECORDINGS) {
        struct recording *r = &recordings[recording_count];
        char variant[64];
        if (sscanf(entry->d_name, "expected-%63[^.].jsonl.gz", variant) != 1)
            continue;
        snprintf(r->variant, sizeof r->variant, "%s", variant);
        snprintf(r->folder, sizeof r->folder, "%s", folder);
        snprintf(r->name, sizeof r->name, "%.60s %.60s: replayed, same rows", name, variant);
        recording_count++;
    }
    closedir(dir);
}

int main(void)
{
    static struct CMUnitTest tests[RECORDINGS + 2];
    DIR *dir = opendir(FOLDER);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL)
        find_in_case(entry->d_name);
    if (dir)
        closedir(dir);
    qsort(recordings, recording_count, sizeof recordings[0], by_name);
    for (size_t i = 0; i < recording_count; i++)
        tests[i] = (struct CMUnitTest){.name = recordings[i].name, .test_func = recorded_case__replayed__same_rows,
                                       .initial_state = &recordings[i]};
    tests[recording_count] = (struct CMUnitTest)cmocka_unit_test(recordings__all__are_as_many_as_the_readme_says);
    return _cmocka_run_group_tests("torch recordings", tests, recording_count + 1, NULL, NULL) != 0;
}
