#include "workloads/wl_format.h"

#include <stdio.h>
#include <string.h>

#define X(name) extern const struct wl_format wl_format_##name;
#include "formats.inc"
#undef X

static const struct wl_format *const formats[] = {
#define X(name) &wl_format_##name,
#include "formats.inc"
#undef X
};

size_t wl_format_count(void)
{
    return sizeof formats / sizeof formats[0];
}

const struct wl_format *wl_format_at(size_t i)
{
    return formats[i];
}

const struct wl_format *wl_format_find(const char *name)
{
    for (size_t i = 0; i < wl_format_count(); i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

const struct wl_format *wl_format_recognise(const char *first_line)
{
    for (size_t i = 0; i < wl_format_count(); i++)
        if (formats[i]->recognise(first_line))
            return formats[i];
    return NULL;
}

void wl_format_names(char *out, size_t out_bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < wl_format_count() && used < out_bytes; i++) {
        int wrote = snprintf(out + used, out_bytes - used, "%s%s", i > 0 ? ", " : "",
                             formats[i]->name);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}
