/* Which turn of its conversation a request is: the category by which eviction orders tell requests apart, the same in
 * `cache` and in `run`. Requests of one session count up in the order of the trace. Without a session a request comes after
 * its parent, which is named by its id. Without either it is a first turn. */
#ifndef PAGESIM_TURNS_H
#define PAGESIM_TURNS_H

#include "sim/id_index.h"
#include "workloads/wl_request.h"

/* Grows with the sessions, or with the requests that have an id and none. Names are told apart by 64-bit hashes. */
struct turns {
    struct id_index names;
    uint32_t *turns; /* [names.count] so far */
    uint64_t room;
};

bool turns_init(struct turns *turns); /* false: out of memory */
void turns_release(struct turns *turns); /* a zeroed struct is fine */
/* Counts the trace's next request; *category: its turn from 0 on, the last category for all later ones. False: out of memory. */
bool turns_next(struct turns *turns, const struct wl_request *request, uint32_t *category);

#endif
