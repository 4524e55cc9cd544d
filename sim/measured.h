/* A deployment's own metrics: what a serving engine or a benchmark client said (docs/compare.md). */
#ifndef PAGESIM_MEASURED_H
#define PAGESIM_MEASURED_H

#include <stdbool.h>
#include <stddef.h>

#include "workloads/err.h"

struct measured_sample {
    char *name;
    char *labels; /* between the braces, or "" */
    double value; /* may be nan or infinite */
    bool matched; /* has a counterpart */
};

struct measured {
    struct measured_sample *samples;
    size_t count, capacity;
    size_t left_out; /* entries of a JSON object that are no numbers */
};

/* Reads a file: a flat JSON object, or lines NAME{LABELS} VALUE [TIMESTAMP] as a Prometheus endpoint prints them, NAME,VALUE or NAME =
 * VALUE; '#' begins a comment. "-": standard input. *measured is zero before. -1 with err (file:line). */
int measured_read(struct measured *measured, const char *path, struct err *err);
/* Takes what counters and histograms had in an earlier dump off: names that end in _total, _sum, _count or _bucket. -1 with err when one
 * has fallen, as after a restart of the server. */
int measured_subtract(struct measured *measured, const struct measured *earlier, const char *path, struct err *err);
void measured_release(struct measured *measured);

/* The text of one label, without quotes. false: there is none, or it does not fit. */
bool measured_label(const struct measured_sample *sample, const char *label, char *out, size_t bytes);

#endif
