/* What an order that must know the future may ask in `run`: when does somebody next look for this block?
 *
 * The requests of the whole trace, in its order, with the keys of their full blocks that others can have too: those of the prompt, and of
 * the output as far as it is known. A request is *ahead* until
 * it is passed: when it is admitted for the first time, or when it ends without that (its client left, it can never be
 * served). The next use of a key is the first request ahead, in the order of the trace, that has it, if that request looks for it. If it
 * computes the block anyway, which is so for its output and for its prompt's last block when the prompt fills it (a token is always
 * left to compute), then the block comes back whether it was kept or not: it has no next use.
 *
 * About 13 bytes a reference, as much again for a moment while they are read, and a bit a request. Not thread-safe. */
#ifndef PAGESIM_FUTURE_H
#define PAGESIM_FUTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/err.h"

#define FUTURE_NEVER UINT64_MAX
#define FUTURE_REQUESTS_MAX (UINT32_C(1) << 30)
#define FUTURE_REFERENCES_MAX UINT32_MAX

struct future_reference;

struct future {
    struct future_reference *references; /* by key, then by request */
    uint64_t count, room, requests;
    uint32_t *starts; /* [parts + 1] first reference whose key has these top bits */
    uint32_t parts;
    unsigned top_shift; /* 64 - log2(parts) */
    uint64_t *passed; /* bit by request */
};

/* A zeroed struct is an empty future. Releasing it is fine. */
void future_release(struct future *future);
/* The trace's next request: `count` keys, none twice. It looks for the first `sought` of them; the others it computes. -1 with err when there are more requests or references than the limits, or memory is out. */
int future_add(struct future *future, const uint64_t *keys, uint64_t sought, uint64_t count, struct err *err);
/* All have been added; from here on the future can be asked. -1 with err when memory is out. */
int future_seal(struct future *future, struct err *err);
/* Request number `request` is not ahead any more. */
void future_pass(struct future *future, uint64_t request);
/* The number of the request, or FUTURE_NEVER. O(log references), and amortised over the requests passed. */
uint64_t future_next_use(struct future *future, uint64_t key);

#endif
