/* The host tier's options, for `run` and `cache`. */
#ifndef PAGESIM_HOST_OPTIONS_H
#define PAGESIM_HOST_OPTIONS_H

#include "sim/engine.h"
#include "sim/optset.h"

/* The eviction order of that name; -1 with err (ERR_USAGE, which names the option). */
int eviction_order_find(const char *option, const char *name, const struct kv_eviction_ops **order, struct err *err);
/* The same for --host-evict: one that works on keys alone. */
int host_order_find(const char *name, const struct kv_eviction_ops **order, struct err *err);
/* The host tier and the link of a run. -1 with err (ERR_USAGE). */
int host_from_options(struct host_config *config, const struct optset *set, const struct options *options,
                      struct err *err);

#endif
