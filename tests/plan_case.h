/* A plan from options, for tests. */
#ifndef PAGESIM_PLAN_CASE_H
#define PAGESIM_PLAN_CASE_H

#include "sim/plan.h"
#include "sim/plan_finding.h"

struct plan_case {
    struct optset *set;
    struct options options;
    struct plan_input input;
    struct plan plan;
    const struct plan_stage *stage; /* the binding one */
    struct plan_trace trace; /* of --trace */
    struct plan_findings findings;
};

/* text: "--gpu h100-sxm --model llama-3-8b ...", no quotes. Fails the test when it is refused. */
void plan_case_make(struct plan_case *c, const char *text);
/* The message of a text that is refused. Valid until the next call. */
const char *plan_case_refused(const char *text);
void plan_case_release(struct plan_case *c);
bool plan_case_finds(const struct plan_case *c, const char *id);

#endif
