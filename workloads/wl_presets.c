#include "workloads/wl_presets.h"

#include <string.h>

static const struct wl_preset presets[] = {
    { "azure-conv", "s", "s", "requests=1" },
};

size_t wl_preset_count(void)
{
    return sizeof presets / sizeof presets[0];
}

const struct wl_preset *wl_preset_at(size_t i)
{
    return &presets[i];
}

const struct wl_preset *wl_preset_find(const char *name, struct err *err)
{
    for (size_t i = 0; i < wl_preset_count(); i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    char names[256] = "";
    for (size_t i = 0; i < wl_preset_count(); i++) {
        strncat(names, i > 0 ? ", " : "", sizeof names - strlen(names) - 1);
        strncat(names, presets[i].name, sizeof names - strlen(names) - 1);
    }
    err_set(err, ERR_USAGE, "preset: found '%s', expected one of %s", name, names);
    return NULL;
}
