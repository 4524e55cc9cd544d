/* A plan, for people and for programs. */
#ifndef PAGESIM_PLAN_REPORT_H
#define PAGESIM_PLAN_REPORT_H

#include <stdio.h>

#include "sim/plan.h"

struct plan_findings;
struct serving_notes;

/* NULL for parts that are not there. plan_json returns -1 with err when memory is short. */
struct plan_report {
    const struct plan_input *input;
    const struct plan *plan;
    const struct plan_serve *serve;          /* NULL: not asked */
    const struct plan_findings *findings;
    const struct serving_notes *notes;       /* what a pasted command had beside known flags; NULL: none was pasted */
};
void plan_print(const struct plan_report *report, FILE *out);
int plan_json(const struct plan_report *report, FILE *out, struct err *err);
/* The built-in models and GPUs, and the engines. */
void plan_print_list(FILE *out);
int plan_json_list(FILE *out, struct err *err);

/* "1.50 GiB". */
const char *plan_bytes_text(uint64_t bytes, char *out, size_t out_bytes);
const char *plan_origin_text(enum plan_origin origin);
const char *mixer_kind_text(enum mixer_kind kind);

#endif
