/* A wrapper policy that verifies the policy inside it after every call: facts add up, a refused call
 * changed nothing, tables and facts agree with a walk (every walk_every-th call; 1 = each). */
#ifndef PAGESIM_KV_CHECK_H
#define PAGESIM_KV_CHECK_H

#include "allocator/kv_policy.h"

/* Called at the first violation with the call's number, its name, and what is wrong. The default prints
 * to stderr and aborts; tests replace it. */
typedef void (*kv_check_handler)(void *context, uint64_t call_number, const char *call,
                                 const char *policy_name, const char *what);

/* Takes ownership of inner (destroyed with the wrapper). walk_every >= 1. handler may be NULL.
 * Returns NULL when memory is out (inner is then still the caller's). */
struct kv_policy *kv_check_wrap(struct kv_policy *inner, const struct kv_geometry *geometry,
                                uint64_t walk_every, kv_check_handler handler, void *context);

#endif
