/* The roofline of a server, from the options that describe its model and device. */
#ifndef PAGESIM_ROOFLINE_PLAN_H
#define PAGESIM_ROOFLINE_PLAN_H

#include "sim/optset.h"
#include "sim/step_time.h"

/* Fills in model->roofline and its note. Needs --model and --gpu: -1 with err (ERR_USAGE) without them, or when the GPU has no rate
 * that the step needs. Pipeline stages follow each other: a step takes the time of all of them. */
int roofline_from_options(struct step_time *model, const struct optset *set, const struct options *options,
                          struct err *err);
/* The shape of one rank, from what a plan reads. */
struct plan_input;
void roofline_shape_of(struct roofline_shape *shape, const struct plan_input *input);

#endif
