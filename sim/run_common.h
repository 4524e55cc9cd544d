/* What `run` and `sweep` share: the conditions of --fail-if and the warnings that go with results. */
#ifndef PAGESIM_RUN_COMMON_H
#define PAGESIM_RUN_COMMON_H

#include "sim/optset.h"
#include "sim/result.h"

/* Checks the form of all conditions, before anything is run. */
int run_check_conditions(const struct opt_list *conditions, struct err *err);
/* COMMAND_DONE, COMMAND_CONDITION_HELD after saying on stderr which held (and for what), or -1. */
int run_judge(const struct opt_list *conditions, const struct result *result, const char *what,
              struct err *err);
/* Says loudly on stderr what was left out of the trace. */
void run_warn(const struct result *result);

/* Says on stderr what a pasted command had that is left out, and what the plan of the model takes for granted. */
void run_warn_plan(const struct optset *set);

#endif
