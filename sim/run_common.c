#include "sim/run_common.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/command.h"
#include "sim/condition.h"
#include "sim/plan.h"
#include "sim/serving_command.h"

int run_check_conditions(const struct opt_list *conditions, struct err *err)
{
    for (size_t i = 0; i < conditions->count; i++) {
        if (condition_check(conditions->items[i], err) == 0) continue;
        err_prefix(err, "--fail-if");
        return -1;
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
        if (condition_holds(conditions->items[i], result, &holds, null_key, err)) {
            err_prefix(err, "--fail-if");
            return -1;
        }
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

static void warn_shape(const struct plan_input *in)
{
    const struct model_shape *s = &in->shape;
    if (s->note[0]) fprintf(stderr, "pagesim: %s: %s\n", s->name, s->note);
    for (uint32_t m = 0; m < s->mixer_count; m++) {
        if (s->mixers[m].kind == MIXER_FULL || (s->mixer_count == 1 && s->mixers[m].kind == MIXER_SLIDING)) continue;
        fprintf(stderr, "pagesim: %s: every attention layer is counted in full, states are left out; 'pagesim plan' has windows and states\n",
                s->name);
        return;
    }
}

void run_warn_plan(const struct optset *set)
{
    struct err err = {0};
    struct options options;
    struct plan_input in;
    struct optset *cell = optset_cell(set, 0);
    struct serving_notes *notes = malloc(sizeof *notes);
    if (cell && notes && optset_given(cell, "command") && serving_command_read(cell, notes, &err) == 0)
        for (uint32_t i = 0; i < notes->unknown_count && i < SERVING_NOTES_MAX; i++)
            fprintf(stderr, "pagesim: --command: not known, left out: %s\n", notes->unknown[i]);
    /* What fails here fails in the run, which says so. */
    if (cell && options_resolve(cell, &options, &err) == 0 && plan_input_read(&in, cell, &options, &err) == 0 && in.has_shape) warn_shape(&in);
    free(notes);
    optset_destroy(cell);
}
