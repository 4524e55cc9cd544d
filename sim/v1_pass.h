/* The two halves of vLLM v1's scheduling pass, for the schedulers that are made of them. */
#ifndef PAGESIM_V1_PASS_H
#define PAGESIM_V1_PASS_H

#include "sim/engine_core.h"

/* Gives running requests their tokens; returns what is left of the budget. */
uint64_t v1_schedule_running(struct engine *engine, uint64_t budget);

/* Says whether the head of the queue may be admitted now, as far as this scheduler adds to what the policy says. On
 * KV_NO_SPACE it has booked the refusal; *promise units are kept back for the request if it is admitted. */
typedef enum kv_status (*v1_gate)(struct engine *engine, struct sim_request *request,
                                  const struct engine_hit *hit, uint64_t *promise);

/* Admits from the head of the queue while budget and memory last. gate may be NULL. */
void v1_schedule_waiting(struct engine *engine, uint64_t budget, v1_gate gate);

#endif
