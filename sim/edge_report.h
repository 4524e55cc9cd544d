/* The device beside the pool, in a run's result and table. */
#ifndef PAGESIM_EDGE_REPORT_H
#define PAGESIM_EDGE_REPORT_H

#include "sim/engine.h"
#include "sim/result.h"

/* The keys device.*; none where the pool alone was simulated. */
void report_device(struct result *result, const struct engine *engine);
/* The same for people. */
void report_device_lines(const struct result *result, FILE *out);

#endif
