/* Parking: sequences that only decode are not visited at every step.
 *
 * While nothing happens to a decoding request, a step does the same to it every time: one token of each
 * of its sequences, no new block, no key, no end. Such requests are *parked*. Each stands in a calendar under the
 * step at which something happens next (it crosses a block boundary, a block gets its key, it finishes):
 * in the list of that step when it is near, as with blocks of up to 64 tokens it always is, else in a heap. A pass
 * visits the requests that are due and does for all others together what the plain loop does one by one. One that only
 * takes a block or gives a key stays parked; one that finishes or is refused leaves. So a step costs O(blocks allocated + sequences finished + 1), and every decision, figure and episode is the
 * plain loop's (tests/model/test_event_loop.c).
 *
 * The parked requests are always the first ones of the running list, so that the order in which a pass looks
 * at them (due ones in order, then the others) is the order of the list. */
#ifndef PAGESIM_ENGINE_PARK_H
#define PAGESIM_ENGINE_PARK_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct sim_request;

struct park_entry {
    uint64_t step;  /* decode step at which it is due */
    uint64_t order; /* place in the running list: the number of its admission */
    struct sim_request *request;
};

/* Parked requests that are due in the same step, in the order of the running list. */
struct park_list {
    struct sim_request *head, *tail;
};
#define PARK_NEAR 64u /* steps that have a list of their own; a power of two */

struct park {
    bool on;              /* the configuration allows it */
    struct park_list near[PARK_NEAR]; /* by step modulo PARK_NEAR */
    uint64_t step;        /* decode steps so far */
    struct park_entry *heap; /* 4-ary, by (step, order) */
    uint32_t count, capacity;
    uint64_t requests;       /* parked */
    uint64_t width;          /* sequences of all parked requests */
    uint64_t context_tokens; /* sum over them of computed tokens, as of `step` */
    bool in_step;            /* the present pass's tokens are booked; cleared at the step's end */
    struct sim_request *first_active; /* of the running list: the first that is not parked, or NULL */
};

/* Whether requests may be parked at all; sizes the heap. -1: out of memory. */
int park_init(struct engine *engine);
void park_release(struct park *park);

/* Serves the requests that are due in this pass, in the order of the running list, up to one that finishes in this step or
 * that the pool refuses a block: that one is returned, off the parked ones, and not served yet; its visit ends with
 * park_end_step. NULL: none is left. */
struct sim_request *park_next_due(struct engine *engine);
/* Takes a request off the parked ones, if it is one of them, its counters up to date: before it is preempted or ended. */
void park_leave(struct engine *engine, struct sim_request *request);
/* The parked request behind this one in the running list (NULL: the first), or NULL. Visited ones are left out. */
struct sim_request *park_next(const struct engine *engine, const struct sim_request *request);
/* Brings the counters of a parked request up to date in place, for those who look at them; in a step `filled` includes its
 * token. */
void park_show(struct engine *engine, struct sim_request *request);
/* Those of all parked requests. O(parked). */
void park_show_filled(struct engine *engine);

/* When the running requests have been served: books one token for each parked sequence. Once a pass. */
void park_book(struct engine *engine);
/* Sequences of parked requests before this place in the running list whose tokens of the present pass are not booked
 * yet. O(parked). */
uint64_t park_width_before(const struct engine *engine, uint64_t order);
/* End of a step: everybody has its token; visited requests and those that have come to decode are parked. */
void park_end_step(struct engine *engine);

/* The running list lost a member, or got one at its end. */
void park_list_changed(struct engine *engine, struct sim_request *request, bool added);

#endif
