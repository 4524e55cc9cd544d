/* What a plug-in exports: allocation policies, eviction orders and schedulers in a shared object.
 *
 *     const struct pagesim_plugin pagesim_plugin = {
 *         PAGESIM_PLUGIN_HEADER,
 *         .policies = my_policies,     // NULL-terminated, or left out
 *     };
 *
 * `pagesim run --plugin ./mine.so --policy mine` loads it; it stays loaded until the program ends. Everything that
 * the tables point to must live as long. Names must differ from those that are built in. */
#ifndef PAGESIM_PLUGIN_H
#define PAGESIM_PLUGIN_H

#include "allocator/eviction.h"
#include "allocator/kv_policy.h"
#include "sim/scheduler.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PAGESIM_PLUGIN_ABI 1u

struct pagesim_plugin {
    /* PAGESIM_PLUGIN_HEADER: the versions that the plug-in was built for. */
    uint32_t plugin_abi, policy_abi, eviction_abi, scheduler_abi;
    const struct kv_policy_ops *const *policies;    /* kv_policy.h */
    const struct kv_eviction_ops *const *evictions; /* eviction.h */
    const struct scheduler_ops *const *schedulers;  /* scheduler.h */
};

#define PAGESIM_PLUGIN_HEADER                                                                      \
    .plugin_abi = PAGESIM_PLUGIN_ABI, .policy_abi = KV_ABI_VERSION, .eviction_abi = KV_EVICTION_ABI_VERSION, \
    .scheduler_abi = PAGESIM_SCHEDULER_ABI

extern const struct pagesim_plugin pagesim_plugin;

#ifdef __cplusplus
}
#endif

#endif
