#include "sim/device_picture.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/device_replay.h"
#include "sim/device_spans.h"

/* A block that has looked the same since `begin`. */
struct tile {
    uint64_t address;
    uint64_t bytes;
    size_t begin;
    bool allocated, small, expandable, private;
};

struct frame {
    struct tile *tiles;
    size_t count, capacity;
    bool failed;
};

/* Where a stretch of addresses begins on the axis. */
struct place {
    uint64_t address;
    uint64_t bytes;
    uint64_t at;
};

struct picture {
    const struct device_replay *replay;
    struct place *places; /* in address order */
    size_t place_count;
    struct frame now, next;
    FILE *out;
};

static bool same_tile(const struct tile *a, const struct tile *b)
{
    return a->address == b->address && a->bytes == b->bytes && a->allocated == b->allocated && a->private == b->private;
}

static bool add_tiles(void *context, const struct dev_segment_info *segment)
{
    struct frame *f = context;
    if (f->capacity - f->count < segment->block_count) {
        size_t capacity = 2 * (f->count + segment->block_count);
        struct tile *tiles = realloc(f->tiles, capacity * sizeof *tiles);
        if (!tiles) {
            f->failed = true;
            return false;
        }
        f->tiles = tiles;
        f->capacity = capacity;
    }
    for (size_t i = 0; i < segment->block_count; i++)
        f->tiles[f->count++] = (struct tile){
            .address = segment->blocks[i].address,
            .bytes = segment->blocks[i].bytes,
            .allocated = segment->blocks[i].state == DEV_ALLOCATED,
            .small = segment->small,
            .expandable = segment->expandable,
            .private = segment->pool != DEV_DEFAULT_POOL,
        };
    return true;
}

/* The place on the axis of an address that was a segment. */
static uint64_t place_of(const struct picture *p, uint64_t address)
{
    size_t low = 0, high = p->place_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (p->places[middle].address <= address)
            low = middle;
        else
            high = middle;
    }
    return p->places[low].at + (address - p->places[low].address);
}

static void print_tile(const struct picture *p, const struct tile *t, size_t end)
{
    const char *state = t->allocated ? (t->private ? "private_live" : "live") : t->private ? "private_free" : "free";
    double low = (double)place_of(p, t->address) / 0x1p20;
    fprintf(p->out, "%zu,%zu,%.4f,%.4f,%s,%s,%d,%" PRId64 "\n", t->begin, end, low, low + (double)t->bytes / 0x1p20, state,
            t->small ? "small" : "large", t->expandable, device_replay_relative(p->replay, t->address));
}

/* Both frames are in address order: tiles of `now` that are not in `next` have ended, the others keep their beginning. */
static void turn_page(struct picture *p, size_t at)
{
    size_t k = 0;
    for (size_t i = 0; i < p->next.count; i++)
        p->next.tiles[i].begin = at;
    for (size_t i = 0; i < p->now.count; i++) {
        const struct tile *old = &p->now.tiles[i];
        while (k < p->next.count && p->next.tiles[k].address < old->address)
            k++;
        if (k < p->next.count && same_tile(old, &p->next.tiles[k]))
            p->next.tiles[k].begin = old->begin;
        else
            print_tile(p, old, at);
    }
    struct frame old = p->now;
    p->now = p->next;
    p->next = old;
    p->next.count = 0;
}

static int look(struct picture *p, size_t at, struct err *err)
{
    if (dev_walk(p->replay->allocator, add_tiles, &p->next) != DEV_OK || p->next.failed)
        return err_set(err, ERR_FAILED, "out of memory");
    turn_page(p, at);
    return 0;
}

static bool is_moment(const struct device_ops *ops, size_t i)
{
    return i % (ops->count / DEVICE_PICTURE_COLUMNS + 1) == 0 || i + 1 == ops->count;
}

static int draw(struct picture *p, struct device_replay *r, struct err *err)
{
    for (size_t i = 0; i < r->ops->count; i++) {
        struct device_outcome outcome;
        if (device_replay_step(r, i, &outcome, err) != 0 || (is_moment(r->ops, i) && look(p, i, err) != 0))
            return -1;
    }
    for (size_t i = 0; i < p->now.count; i++)
        print_tile(p, &p->now.tiles[i], r->ops->count);
    return 0;
}

/* ---- first pass: the axis ---- */

struct union_walk {
    struct device_spans *spans;
    bool failed;
};

static bool add_segment(void *context, const struct dev_segment_info *segment)
{
    struct union_walk *walk = context;
    /* Those that overlap become one; only that they join matters here, so all are called expandable. */
    struct device_span span = {.expandable = true};
    struct device_span *there = device_spans_find(walk->spans, segment->address);
    if (there && there->node.address + there->node.bytes >= segment->address + segment->bytes)
        return true;
    span.node.address = segment->address;
    span.node.bytes = segment->bytes;
    walk->failed = !device_spans_add(walk->spans, &span);
    return !walk->failed;
}

static int find_places(struct picture *p, struct device_replay *r, struct device_spans *spans, struct err *err)
{
    struct union_walk walk = {.spans = spans};
    for (size_t i = 0; i < r->ops->count; i++) {
        struct device_outcome outcome;
        if (device_replay_step(r, i, &outcome, err) != 0)
            return -1;
        if (is_moment(r->ops, i) && (dev_walk(r->allocator, add_segment, &walk) != DEV_OK || walk.failed))
            return err_set(err, ERR_FAILED, "out of memory");
    }
    p->places = calloc(spans->tree.count + 1, sizeof *p->places);
    if (!p->places)
        return err_set(err, ERR_FAILED, "out of memory");
    uint64_t at = 0;
    for (const struct device_span *span = device_spans_first(spans); span; span = device_spans_next(span)) {
        p->places[p->place_count++] = (struct place){span->node.address, span->node.bytes, at};
        at += span->node.bytes;
    }
    return 0;
}

typedef int pass(struct picture *p, struct device_replay *r, struct device_spans *spans, struct err *err);

static int draw_pass(struct picture *p, struct device_replay *r, struct device_spans *spans, struct err *err)
{
    (void)spans;
    p->replay = r;
    fputs("begin_op,end_op,low_mib,high_mib,state,pool,expandable,address_bytes\n", p->out);
    return draw(p, r, err);
}

int device_picture_write(const struct device_ops *ops, const struct device_case *c, const char *setting, FILE *out, struct err *err)
{
    static pass *const passes[] = {find_places, draw_pass};
    struct dev_config config;
    struct device_spans spans;
    struct picture p = {.out = out};
    int status = device_case_config(c, setting, &config, err);
    device_spans_init(&spans);
    for (int i = 0; status == 0 && i < 2; i++) {
        struct device_replay r;
        status = device_replay_init(&r, ops, &config, err);
        if (status != 0)
            break;
        status = passes[i](&p, &r, &spans, err);
        device_replay_release(&r);
    }
    device_spans_release(&spans);
    free(p.places);
    free(p.now.tiles);
    free(p.next.tiles);
    if (status == 0 && ferror(out))
        status = err_set(err, ERR_FAILED, "cannot write the picture");
    return status;
}
