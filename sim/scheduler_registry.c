#include <string.h>

#include "sim/engine_core.h"

#define X(name) extern const struct scheduler scheduler_##name;
#include "schedulers.inc"
#undef X

static const struct scheduler *const schedulers[] = {
#define X(name) &scheduler_##name,
#include "schedulers.inc"
#undef X
};

size_t scheduler_count(void)
{
    return sizeof schedulers / sizeof schedulers[0];
}

const struct scheduler *scheduler_at(size_t i)
{
    return schedulers[i];
}

const struct scheduler *scheduler_find(const char *name)
{
    for (size_t i = 0; i < scheduler_count(); i++) {
        if (strcmp(schedulers[i]->name, name) == 0) return schedulers[i];
    }
    return NULL;
}
