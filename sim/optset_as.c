/* One command's options for another. */
#include "sim/optset.h"

static int copy_option(struct optset *to, const struct optset *from, const struct option_spec *spec, struct err *err)
{
    struct opt_list values = optset_values(from, spec);
    for (size_t i = 0; i < values.count; i++) {
        int status = spec->kind == OPT_TRACE_NAME ? optset_put_trace(to, values.items[i], err)
                                                  : optset_put(to, spec->name, values.items[i], err);
        if (status) return -1;
    }
    return 0;
}

struct optset *optset_as(const struct optset *set, uint32_t command,
                         bool (*keep)(void *context, const struct option_spec *spec), void *context, struct err *err)
{
    struct optset *to = optset_create(command, false);
    if (!to) {
        err_set(err, ERR_FAILED, "out of memory");
        return NULL;
    }
    int status = 0;
    for (size_t i = 0; status == 0 && i < option_count(); i++) {
        const struct option_spec *spec = option_at(i);
        if (!(spec->commands & command) || option_find(optset_command(set), spec->name) != spec) continue;
        if (!optset_given(set, spec->name) || !optset_applies(set, spec)) continue;
        if (!keep || keep(context, spec)) status = copy_option(to, set, spec, err);
    }
    if (status == 0) return to;
    optset_destroy(to);
    return NULL;
}
