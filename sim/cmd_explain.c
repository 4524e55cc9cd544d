/* pagesim explain: a run in pictures. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "sim/command.h"
#include "sim/explain.h"

/* "7": with the scheduler's decisions; "7+": at its end. */
static int parse_at(const char *text, struct explain_goal *goal, struct err *err)
{
    char *end;
    errno = 0;
    unsigned long long step = strtoull(text, &end, 10);
    *goal = (struct explain_goal){.kind = GOAL_STEP, .number = step, .end = *end == '+'};
    if (isdigit((unsigned char)*text) && errno == 0 && end[goal->end] == '\0') return 0;
    return err_set(err, ERR_USAGE, "--at: found '%.60s', expected a step such as 7, or 7+ for its end", text);
}

static int explain(struct explain_walk *walk, const char *at, struct err *err)
{
    struct explain_goal goal;
    uint64_t instant;
    if (!at) return explain_interact(walk, err);
    if (parse_at(at, &goal, err)) return -1;
    int found = explain_walk_to(walk, &goal, &instant, err);
    if (found != 0) return found < 0 ? -1 : COMMAND_DONE;
    return err_set(err, ERR_USAGE, "--at: found %s, which the run does not come to", at);
}

static int run(const struct optset *set, int argc, char **argv, struct err *err)
{
    struct explain_walk walk;
    (void)argc;
    (void)argv;
    int status = explain_walk_open(&walk, set, err);
    if (status == 0) {
        explain_screen_init(&walk.screen);
        status = explain(&walk, optset_text(set, "at"), err);
    }
    explain_walk_release(&walk);
    return status;
}

const struct command command_explain = {
    .name = "explain",
    .summary = "step through a run: the pool block by block, tables, queue, chains",
    .usage = "[OPTION...] TRACE",
    .notes = "Keys: n next instant, p the one before, g STEP, f REQUEST its next event, r next\n"
             "refusal, e next eviction, x next preemption (R, E, X: before), 0 first, $ last,\n"
             "? help, q end. Each step is seen twice: with the scheduler's decisions, and at\n"
             "its end. When standard input is no terminal, commands are read as lines.\n"
             "NO_COLOR turns colours off.",
    .options = FOR_EXPLAIN,
    .arguments = COMMAND_ARGS_TRACE,
    .run = run,
};
