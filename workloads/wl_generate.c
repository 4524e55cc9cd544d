#include "workloads/wl_source_impl.h"
int wl_generator_open(const char *name, const char *spec, const struct wl_options *options,
                      uint64_t seed, struct wl_source **source, struct err *err)
{
    (void)spec; (void)options; (void)seed; (void)source;
    return err_set(err, ERR_USAGE, "%s: generators are not built yet", name);
}
