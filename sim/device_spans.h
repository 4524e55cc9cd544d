/* Which addresses are segments: a set of spans that grows and shrinks, each with what is known of its segment. */
#ifndef PAGESIM_DEVICE_SPANS_H
#define PAGESIM_DEVICE_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/device/dev_slab.h"
#include "allocator/device/dev_tree.h"

struct device_span {
    struct dev_node node; /* address and bytes */
    uint32_t pool;        /* the caller's number */
    uint32_t live;        /* the caller's count of live blocks */
    bool small;
    bool expandable;
};

struct device_spans {
    struct dev_tree tree;
    struct dev_slab slab;
    uint64_t bytes; /* of all */
};

void device_spans_init(struct device_spans *spans);
void device_spans_release(struct device_spans *spans);
/* Adds a span over whatever of it is there already; an expandable one joins its neighbours of the same kind. Its pool and size
 * class are those of a neighbour it joins, else as given. False: out of memory. */
bool device_spans_add(struct device_spans *spans, const struct device_span *span);
/* Takes [address, address + bytes) out; what is cut keeps its ends. False: out of memory. */
bool device_spans_remove(struct device_spans *spans, uint64_t address, uint64_t bytes);
/* The span that holds an address, or NULL. */
struct device_span *device_spans_find(const struct device_spans *spans, uint64_t address);
struct device_span *device_spans_first(const struct device_spans *spans);
struct device_span *device_spans_next(const struct device_span *span);

#endif
