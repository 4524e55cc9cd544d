/* Growing arrays of the readers: they double, are kept from line to line, and every growth is
 * checked. All return 0, or -1 when out of memory (then nothing changed). */
#ifndef PAGESIM_WL_ARRAY_H
#define PAGESIM_WL_ARRAY_H

#include "workloads/wl_request.h"

struct wl_ids {
    uint64_t *items;
    size_t count, capacity;
};

struct wl_spans {
    struct wl_span *items;
    size_t count, capacity;
};

struct wl_text {
    char *items;
    size_t count, capacity;
};

/* Makes room for `needed` items of `item_bytes`; *items may move. */
int wl_array_reserve(void **items, size_t *capacity, size_t item_bytes, size_t needed);
int wl_text_append(struct wl_text *text, const void *bytes, size_t count);
/* A run of tokens; joined with the last one where it goes on from there, so that equal content has
 * one form. count 0 adds nothing. */
int wl_spans_add(struct wl_spans *spans, uint64_t space, uint64_t first, uint64_t count);
int wl_ids_grow(struct wl_ids *ids);

static inline int wl_ids_add(struct wl_ids *ids, uint64_t id)
{
    if (ids->count == ids->capacity && wl_ids_grow(ids) != 0)
        return -1;
    ids->items[ids->count++] = id;
    return 0;
}

#endif
