#include "workloads/wl_array.h"

#include <stdlib.h>
#include <string.h>

int wl_array_reserve(void **items, size_t *capacity, size_t item_bytes, size_t needed)
{
    if (needed <= *capacity)
        return 0;
    size_t grown = *capacity < 64 ? 64 : *capacity;
    while (grown < needed) {
        if (grown > SIZE_MAX / 2 / item_bytes)
            return -1;
        grown *= 2;
    }
    void *moved = realloc(*items, grown * item_bytes);
    if (moved == NULL)
        return -1;
    *items = moved;
    *capacity = grown;
    return 0;
}

int wl_text_append(struct wl_text *text, const void *bytes, size_t count)
{
    if (count > SIZE_MAX / 2 - text->count)
        return -1;
    void *items = text->items;
    int rc = wl_array_reserve(&items, &text->capacity, 1, text->count + count);
    text->items = items;
    if (rc != 0)
        return -1;
    if (count > 0)
        memcpy(text->items + text->count, bytes, count);
    text->count += count;
    return 0;
}

int wl_spans_add(struct wl_spans *spans, uint64_t space, uint64_t first, uint64_t count)
{
    if (count == 0)
        return 0;
    if (spans->count > 0) {
        struct wl_span *last = &spans->items[spans->count - 1];
        if (last->space == space && last->first + last->count == first) {
            last->count += count;
            return 0;
        }
    }
    void *items = spans->items;
    int rc = wl_array_reserve(&items, &spans->capacity, sizeof *spans->items, spans->count + 1);
    spans->items = items;
    if (rc != 0)
        return -1;
    spans->items[spans->count++] = (struct wl_span){ space, first, count };
    return 0;
}

int wl_ids_grow(struct wl_ids *ids)
{
    void *items = ids->items;
    int rc = wl_array_reserve(&items, &ids->capacity, sizeof *ids->items, ids->count + 1);
    ids->items = items;
    return rc;
}
