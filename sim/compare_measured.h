/* A simulated result beside a deployment's own metrics. */
#ifndef PAGESIM_COMPARE_MEASURED_H
#define PAGESIM_COMPARE_MEASURED_H

#include <stdio.h>

#include "sim/measured.h"
#include "sim/result.h"

struct measured_row {
    const char *name;   /* as measured; for a ratio of two the first */
    const char *part;   /* "mean", "p99", "rate" ..., or "" */
    const char *key;    /* of the result */
    double low, high;   /* measured, in the unit of the key; apart when only a bucket is known */
    double simulated;   /* nan: not in the result, or null */
    double difference;  /* simulated - measured; of a bucket, to its nearer end, 0 inside */
    const char *note;   /* or NULL */
};

/* Rows for all that has a counterpart, whose samples are marked as matched; release with free(). -1 with err. */
int measured_rows(struct measured *measured, const struct result *result, struct measured_row **rows, size_t *count, struct err *err);

void measured_print_table(const char *simulated, const char *path, const struct measured *measured, const struct measured_row *rows,
                          size_t count, FILE *out);
void measured_print_json(const char *simulated, const char *path, const struct measured *measured, const struct measured_row *rows,
                         size_t count, FILE *out);

#endif
