/* pagesim compare: two settings on the same requests, or two files of results. */
#include <string.h>

#include "sim/command.h"
#include "sim/compare.h"

static int check_arguments(const struct optset *set, int argc, char **argv, struct err *err)
{
    if (argc < 2) return err_set(err, ERR_USAGE, "found %d of the two sides, expected A B: POLICY,OPTION=VALUE,... or files of results", argc);
    bool a = compare_is_variant(argv[0]), b = compare_is_variant(argv[1]);
    if (a != b) {
        return err_set(err, ERR_USAGE, "found settings on one side and '%.200s' on the other, expected settings or results on both (a file may be given as ./FILE)",
                       argv[a ? 1 : 0]);
    }
    int most = a && !optset_given(set, "trace") ? 3 : 2;
    if (argc > most) return err_set(err, ERR_USAGE, "found '%.200s', expected nothing after the two sides%s", argv[most], most == 3 ? " and the trace" : "");
    if (!a && strcmp(argv[0], "-") == 0 && strcmp(argv[1], "-") == 0)
        return err_set(err, ERR_USAGE, "found '-' twice, expected a file: standard input can be read only once");
    return 0;
}

static int compare_settings(const struct optset *set, const char *trace, const char *const sides[2], struct compare_head *head,
                            struct err *err)
{
    struct optset *sets[2] = {NULL, NULL};
    int status = 0;
    for (int s = 0; status == 0 && s < 2; s++) {
        sets[s] = compare_variant(set, sides[s], err);
        if (!sets[s]) status = -1;
        else if (trace) status = optset_put_trace(sets[s], trace, err);
    }
    if (status == 0) status = compare_run(set, sets, head, err);
    optset_destroy(sets[0]);
    optset_destroy(sets[1]);
    return status;
}

static int run(const struct optset *set, int argc, char **argv, struct err *err)
{
    if (check_arguments(set, argc, argv, err)) return -1;
    const char *const sides[2] = {argv[0], argv[1]};
    struct compare_head head = {.a = argv[0], .b = argv[1]};
    if (!compare_is_variant(argv[0])) return compare_files(set, sides, &head, err);
    return compare_settings(set, argc > 2 ? argv[2] : NULL, sides, &head, err);
}

const struct command command_compare = {
    .name = "compare",
    .summary = "two policies or settings on the same requests, or two results: differences with confidence",
    .usage = "[OPTION...] A B [TRACE]",
    .notes = "A and B are settings, POLICY or POLICY,OPTION=VALUE,... (prefix,evict=lru), on\n"
             "top of the options that both have; or files of 'run --json' or 'sweep', whose\n"
             "results are paired where their options agree.",
    .options = FOR_COMPARE,
    .arguments = COMMAND_ARGS_OWN,
    .run = run,
};
