#include "sim/device_spans.h"

void device_spans_init(struct device_spans *spans)
{
    *spans = (struct device_spans){.tree.order = DEV_BY_ADDRESS};
    dev_slab_init(&spans->slab, sizeof(struct device_span));
}

void device_spans_release(struct device_spans *spans)
{
    dev_slab_release(&spans->slab);
    spans->tree.root = NULL;
}

static struct device_span *span_of(struct dev_node *node)
{
    return (struct device_span *)node;
}

static uint64_t end_of(const struct device_span *span)
{
    return span->node.address + span->node.bytes;
}

struct device_span *device_spans_first(const struct device_spans *spans)
{
    return span_of(dev_tree_first(&spans->tree));
}

struct device_span *device_spans_next(const struct device_span *span)
{
    return span_of(dev_tree_next(&span->node));
}

struct device_span *device_spans_find(const struct device_spans *spans, uint64_t address)
{
    struct device_span *span = span_of(dev_tree_below(&spans->tree, address + 1));
    return span && address < end_of(span) ? span : NULL;
}

static void insert(struct device_spans *spans, const struct device_span *like, uint64_t address, uint64_t bytes)
{
    struct device_span *span = dev_slab_take(&spans->slab);
    *span = *like;
    span->node = (struct dev_node){.address = address, .bytes = bytes, .room = bytes};
    dev_tree_insert(&spans->tree, &span->node);
    spans->bytes += bytes;
}

static void drop(struct device_spans *spans, struct device_span *span)
{
    dev_tree_remove(&spans->tree, &span->node);
    spans->bytes -= span->node.bytes;
    dev_slab_give(&spans->slab, span);
}

/* The first span that ends above an address. */
static struct device_span *first_above(const struct device_spans *spans, uint64_t address)
{
    struct dev_node *below = dev_tree_below(&spans->tree, address + 1);
    if (!below)
        return device_spans_first(spans);
    return end_of(span_of(below)) > address ? span_of(below) : span_of(dev_tree_next(below));
}

bool device_spans_remove(struct device_spans *spans, uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    if (!dev_slab_reserve(&spans->slab, 2)) /* only the first and the last one are cut; each gives its own place first */
        return false;
    struct device_span *span = first_above(spans, address);
    while (span && span->node.address < end) {
        struct device_span *next = device_spans_next(span);
        struct device_span old = *span;
        drop(spans, span);
        if (old.node.address < address)
            insert(spans, &old, old.node.address, address - old.node.address);
        if (end_of(&old) > end)
            insert(spans, &old, end, end_of(&old) - end);
        span = next;
    }
    return true;
}

static bool joins(const struct device_span *neighbour, const struct device_span *span)
{
    return neighbour && neighbour->expandable && span->expandable;
}

bool device_spans_add(struct device_spans *spans, const struct device_span *span)
{
    struct device_span joined = *span;
    uint64_t address = span->node.address, end = end_of(span);
    if (!device_spans_remove(spans, address, span->node.bytes) || !dev_slab_reserve(&spans->slab, 1))
        return false;
    struct device_span *before = span_of(dev_tree_below(&spans->tree, address));
    struct device_span *after = first_above(spans, address);
    if (joins(after, span) && after->node.address == end) {
        joined.pool = after->pool;
        joined.small = after->small;
        end = end_of(after);
        drop(spans, after);
    }
    if (joins(before, span) && end_of(before) == address) {
        joined.pool = before->pool;
        joined.small = before->small;
        address = before->node.address;
        drop(spans, before);
    }
    insert(spans, &joined, address, end - address);
    return true;
}
