#include "sim/run_common.h"

#include <stdio.h>

#include "sim/command.h"
#include "sim/condition.h"

int run_check_conditions(const struct opt_list *conditions, struct err *err)
{
    for (size_t i = 0; i < conditions->count; i++) {
        if (condition_check(conditions->items[i], err)) return -1;
    }
    return 0;
}

int run_judge(const struct opt_list *conditions, const struct result *result, const char *what,
              struct err *err)
{
    int status = COMMAND_DONE;
    for (size_t i = 0; i < conditions->count; i++) {
        bool holds;
        char null_key[CONDITION_KEY_BYTES];
        if (condition_holds(conditions->items[i], result, &holds, null_key, err)) return -1;
        if (null_key[0] != '\0') {
            fprintf(stderr, "pagesim: condition could not be judged%s, %s is null: %s\n", what, null_key,
                    conditions->items[i]);
        }
        if (!holds) continue;
        fprintf(stderr, "pagesim: condition holds%s: %s\n", what, conditions->items[i]);
        status = COMMAND_CONDITION_HELD;
    }
    return status;
}

static uint64_t count_of(const struct result *result, const char *key)
{
    const struct result_entry *entry = result_find(result, key);
    return entry && entry->kind == RESULT_U64 ? entry->u64 : 0;
}

void run_warn(const struct result *result)
{
    const struct result_entry *cut = result_find(result, "trace_cut");
    if (cut && cut->kind == RESULT_BOOL && cut->yes) {
        fprintf(stderr,
                "pagesim: trace cut: only the first %llu requests were simulated (--max-requests)\n",
                (unsigned long long)count_of(result, "requests"));
    }
    if (count_of(result, "trace_skipped") > 0) {
        fprintf(stderr, "pagesim: %llu bad lines were skipped (--skip-bad)\n",
                (unsigned long long)count_of(result, "trace_skipped"));
    }
}
