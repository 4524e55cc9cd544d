/* Findings: what in a plan is likely to hurt, each with its arithmetic and what to change. One table, one function each
 * (plan_finding.c). */
#ifndef PAGESIM_PLAN_FINDING_H
#define PAGESIM_PLAN_FINDING_H

#include <jansson.h>

#include "sim/plan.h"
#include "sim/plan_trace.h"

enum finding_severity {
    FINDING_ERROR,   /* will not start, or dies */
    FINDING_WARNING, /* costs memory, speed or hits */
    FINDING_NOTE,    /* good to know */
};

struct plan_finding {
    const char *id; /* "cache-16-bit" */
    enum finding_severity severity;
    char found[200], arithmetic[280], change[240];
};

#define PLAN_FINDINGS_MAX 24u
struct plan_findings {
    uint32_t count;
    struct plan_finding items[PLAN_FINDINGS_MAX]; /* errors first, then in table order */
};

/* Every finding that applies. trace may be NULL. */
void plan_find(struct plan_findings *findings, const struct plan *plan, const struct plan_input *input, const struct plan_trace *trace);
const char *finding_severity_text(enum finding_severity severity);
/* NULL when memory is short. */
json_t *plan_findings_json(const struct plan_findings *findings);

#endif
