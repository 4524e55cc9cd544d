/* From an engine's books to the result: every figure of docs/metrics.md is worked out here, once. */
#ifndef PAGESIM_REPORT_H
#define PAGESIM_REPORT_H

#include <stdio.h>

#include "sim/engine.h"
#include "sim/optset.h"
#include "sim/result.h"

/* Name of the trace, rule set and so on: what every report line says it was made with. */
void report_provenance(struct result *result, const struct optset *set,
                       const struct options *options, const char *trace,
                       const struct wl_summary *summary);
/* All figures, in the order of docs/metrics.md. */
void report_figures(struct result *result, struct engine *engine, const struct options *options,
                    const struct wl_summary *summary);
/* The effective options as `options.NAME`. */
void report_options(struct result *result, const struct optset *set);

/* Behind the name of what the result is of: " (clairvoyant)", " (clairvoyant heuristic)", or "" without knowledge of the future. */
const char *report_knowledge(const struct result *result);
/* The balance sheet for people: where the pool's bytes were on average, and what was refused. */
void report_table(const struct result *result, FILE *out);

#endif
