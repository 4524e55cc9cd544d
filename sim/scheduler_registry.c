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

#define BUILT_INS (sizeof schedulers / sizeof schedulers[0])

/* Those of plug-ins. */
static struct scheduler added[SCHEDULERS_ADDED_MAX];
static size_t added_count;

size_t scheduler_count(void)
{
    return BUILT_INS + added_count;
}

bool scheduler_add(const struct scheduler_ops *ops)
{
    if (added_count == SCHEDULERS_ADDED_MAX) return false;
    added[added_count++] = (struct scheduler){
        .name = ops->name,
        .summary = ops->summary,
        .source = ops->source,
        .description = ops->description,
        .default_watermark = ops->default_watermark,
        .watermark_always = (ops->flags & SCHEDULER_WATERMARK_ALWAYS) != 0,
        .whole_prompts = (ops->flags & SCHEDULER_WHOLE_PROMPTS) != 0,
        .pass = scheduler_calls_pass,
        .plugin = ops,
    };
    return true;
}

const struct scheduler *scheduler_at(size_t i)
{
    return i < BUILT_INS ? schedulers[i] : &added[i - BUILT_INS];
}

const struct scheduler *scheduler_find(const char *name)
{
    for (size_t i = 0; i < scheduler_count(); i++) {
        if (strcmp(scheduler_at(i)->name, name) == 0) return scheduler_at(i);
    }
    return NULL;
}
