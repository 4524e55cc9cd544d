/* Replays for people: a balance sheet, the failures with their proofs, and settings beside each other. */
#ifndef PAGESIM_DEVICE_REPORT_H
#define PAGESIM_DEVICE_REPORT_H

#include <stdio.h>

#include "sim/device_summary.h"

struct device_report {
    const struct device_ops *ops;
    const struct device_case *c;
    const char *const *settings; /* what to compare; the first is what failures are told of */
    size_t setting_count;
    size_t ooms_max; /* failures shown in full */
    bool json;
};

/* One setting: its summary, its failures, and under which other settings each would not have happened. Several: a
 * table. 0, or -1 with err; nothing is written then. */
int device_report_write(const struct device_report *report, FILE *out, struct err *err);

#endif
