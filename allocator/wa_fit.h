/* What the order `wa` has learnt of a category of requests so far. */
#ifndef PAGESIM_WA_FIT_H
#define PAGESIM_WA_FIT_H

#include "allocator/eviction.h"

struct wa_fit {
    double share; /* of the category's uses, those that were followed by another one; 0: none was yet */
    double rate;  /* of the exponential distribution of the time between the two, in uses of any block: 1 / mean */
};

/* order: one of kv_eviction_wa_ops. category < KV_EVICTION_CATEGORIES. */
struct wa_fit wa_fit(const struct kv_eviction *order, uint32_t category);

#endif
