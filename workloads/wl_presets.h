/* Generators with parameters fitted to public traces, under a name. */
#ifndef PAGESIM_WL_PRESETS_H
#define PAGESIM_WL_PRESETS_H

#include <stddef.h>

#include "workloads/err.h"

struct wl_preset {
    const char *name;
    const char *summary; /* one line, lower case, no full stop */
    const char *source;  /* where its numbers come from */
    const char *spec;    /* what would follow "gen:" */
};

size_t wl_preset_count(void);
const struct wl_preset *wl_preset_at(size_t i);
/* NULL with err when there is none of that name. */
const struct wl_preset *wl_preset_find(const char *name, struct err *err);

#endif
