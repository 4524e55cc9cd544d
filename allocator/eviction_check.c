#include "allocator/eviction.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The wrapper has a table of its own in each object, because which optional functions are there depends on the
 * order inside. Its flags are the other's, so that owners treat it alike. */
struct checked_order {
    struct kv_eviction base;
    struct kv_eviction_ops ops;
    struct kv_eviction *inner;
    uint32_t objects;
    uint64_t calls, now_ns;
    kv_eviction_handler handler;
    void *context;
    uint8_t *inside; /* [objects] */
};

static void stop_with_message(void *context, uint64_t call_number, const char *call, const char *order_name,
                              const char *what)
{
    (void)context;
    fprintf(stderr, "pagesim: eviction order %s: call %" PRIu64 " (%s): %s\n", order_name, call_number, call, what);
    abort();
}

static struct checked_order *as_checked(const struct kv_eviction *order)
{
    return (struct checked_order *)order;
}

static void violation(const struct checked_order *c, const char *call, const char *what)
{
    c->handler(c->context, c->calls, call, c->ops.name, what);
}

/* Whether the object may be used in a call that expects it inside, or outside. */
static bool begin(struct checked_order *c, uint32_t object, bool inside, const char *call)
{
    c->calls++;
    if (object >= c->objects)
        violation(c, call, "the owner named an object that does not exist");
    else if ((c->inside[object] != 0) != inside)
        violation(c, call, inside ? "the owner named an object that is in use" : "the owner named an object that is inside");
    else
        return true;
    return false;
}

static void end(struct checked_order *c, uint32_t count, const char *call)
{
    if (c->inner->count != count)
        violation(c, call, "the count of objects inside is wrong");
    if (c->inner->pinned > c->inner->count || (c->inner->pinned > 0 && c->ops.clock == NULL))
        violation(c, call, "more objects are pinned than can be");
    c->base.count = c->inner->count;
    c->base.pinned = c->inner->pinned;
}

static void check_begin(struct kv_eviction *order, struct kv_kind kind)
{
    as_checked(order)->inner->ops->begin(as_checked(order)->inner, kind);
}

static void check_miss(struct kv_eviction *order, uint64_t key)
{
    struct checked_order *c = as_checked(order);
    uint32_t count = c->base.count;
    c->calls++;
    c->inner->ops->miss(c->inner, key);
    end(c, count, "miss");
}

static void check_insert(struct kv_eviction *order, uint32_t object, const struct kv_content *content)
{
    struct checked_order *c = as_checked(order);
    uint32_t count = c->base.count;
    begin(c, object, false, "insert");
    c->inner->ops->insert(c->inner, object, content);
    end(c, count, "insert");
}

static void check_foresee(struct kv_eviction *order, uint32_t object, uint64_t next)
{
    as_checked(order)->inner->ops->foresee(as_checked(order)->inner, object, next);
}

static void check_give(struct kv_eviction *order, uint32_t object)
{
    struct checked_order *c = as_checked(order);
    uint32_t count = c->base.count;
    if (begin(c, object, false, "give"))
        c->inside[object] = 1;
    c->inner->ops->give(c->inner, object);
    end(c, count + 1, "give");
}

static void check_take(struct kv_eviction *order, uint32_t object)
{
    struct checked_order *c = as_checked(order);
    uint32_t count = c->base.count;
    if (begin(c, object, true, "take"))
        c->inside[object] = 0;
    c->inner->ops->take(c->inner, object);
    end(c, count - 1, "take");
}

static void check_share(struct kv_eviction *order, uint32_t object)
{
    struct checked_order *c = as_checked(order);
    uint32_t count = c->base.count;
    begin(c, object, false, "share");
    c->inner->ops->share(c->inner, object);
    end(c, count, "share");
}

static void check_touch(struct kv_eviction *order, uint32_t object)
{
    struct checked_order *c = as_checked(order);
    uint32_t count = c->base.count;
    begin(c, object, true, "touch");
    c->inner->ops->touch(c->inner, object);
    end(c, count, "touch");
}

static uint32_t check_evict(struct kv_eviction *order)
{
    struct checked_order *c = as_checked(order);
    uint32_t count = c->base.count;
    uint32_t pinned = c->base.pinned;
    c->calls++;
    if (count == pinned)
        violation(c, "evict", "the owner evicts where all are pinned");
    uint32_t foretold = c->inner->ops->next_victim != NULL ? c->inner->ops->next_victim(c->inner) : KV_OBJECT_NONE;
    uint32_t victim = c->inner->ops->evict(c->inner);
    if (victim >= c->objects)
        violation(c, "evict", "the victim does not exist");
    else if (!c->inside[victim])
        violation(c, "evict", "the victim is in use, or was evicted before");
    else
        c->inside[victim] = 0;
    if (foretold != KV_OBJECT_NONE && foretold != victim)
        violation(c, "evict", "next_victim had named another");
    if (c->inner->pinned != pinned)
        violation(c, "evict", "the victim was pinned");
    end(c, count - 1, "evict");
    return victim;
}

static uint32_t check_next_victim(const struct kv_eviction *order)
{
    const struct checked_order *c = as_checked(order);
    uint32_t victim = c->inner->ops->next_victim(c->inner);
    if (victim >= c->objects || !c->inside[victim])
        violation(c, "next_victim", "the victim is not inside");
    return victim;
}

static void check_clock(struct kv_eviction *order, uint64_t now_ns)
{
    struct checked_order *c = as_checked(order);
    uint32_t count = c->base.count;
    c->calls++;
    if (now_ns < c->now_ns)
        violation(c, "clock", "the owner's time runs backwards");
    c->now_ns = now_ns;
    c->inner->ops->clock(c->inner, now_ns);
    end(c, count, "clock");
    if (c->inner->pinned > 0 && c->inner->ops->next_unpin(c->inner) <= now_ns)
        violation(c, "clock", "a pin has outlived its time");
}

static uint64_t check_next_unpin(const struct kv_eviction *order)
{
    const struct checked_order *c = as_checked(order);
    uint64_t next = c->inner->ops->next_unpin(c->inner);
    if ((next != UINT64_MAX) != (c->inner->pinned > 0))
        violation(c, "next_unpin", "it does not agree with the count of pinned objects");
    return next;
}

static bool check_is_pinned(const struct kv_eviction *order, uint32_t object)
{
    const struct checked_order *c = as_checked(order);
    if (object >= c->objects || !c->inside[object])
        violation(c, "is_pinned", "the owner named an object that is not inside");
    return c->inner->ops->is_pinned(c->inner, object);
}

static void check_expect(struct kv_eviction *order, uint32_t object, bool expected)
{
    struct checked_order *c = as_checked(order);
    uint32_t count = c->base.count;
    c->calls++;
    if (object >= c->objects)
        violation(c, "expect", "the owner named an object that does not exist");
    c->inner->ops->expect(c->inner, object, expected);
    end(c, count, "expect");
}

static const char *check_check(const struct kv_eviction *order)
{
    return as_checked(order)->inner->ops->check(as_checked(order)->inner);
}

static void check_destroy(struct kv_eviction *order)
{
    struct checked_order *c = as_checked(order);
    if (c == NULL)
        return;
    c->inner->ops->destroy(c->inner);
    free(c->inside);
    free(c);
}

static struct kv_eviction_ops wrapper_table(const struct kv_eviction_ops *inner)
{
    struct kv_eviction_ops ops = *inner;
    ops.destroy = check_destroy;
    ops.begin = inner->begin != NULL ? check_begin : NULL;
    ops.miss = inner->miss != NULL ? check_miss : NULL;
    ops.insert = inner->insert != NULL ? check_insert : NULL;
    ops.foresee = inner->foresee != NULL ? check_foresee : NULL;
    ops.give = check_give;
    ops.take = check_take;
    ops.share = inner->share != NULL ? check_share : NULL;
    ops.touch = check_touch;
    ops.evict = check_evict;
    ops.next_victim = inner->next_victim != NULL ? check_next_victim : NULL;
    ops.clock = inner->clock != NULL ? check_clock : NULL;
    ops.next_unpin = inner->next_unpin != NULL ? check_next_unpin : NULL;
    ops.is_pinned = inner->is_pinned != NULL ? check_is_pinned : NULL;
    ops.expect = inner->expect != NULL ? check_expect : NULL;
    ops.soon = NULL; /* changes nothing */
    ops.check = inner->check != NULL ? check_check : NULL;
    return ops;
}

struct kv_eviction *kv_eviction_check_create(const struct kv_eviction_ops *ops, uint32_t objects,
                                             const struct kv_value *values, kv_eviction_handler handler,
                                             void *context)
{
    struct checked_order *c = calloc(1, sizeof *c);
    uint8_t *inside = calloc(objects, sizeof *inside);
    struct kv_eviction *inner = c != NULL && inside != NULL ? ops->create(objects, values) : NULL;
    if (inner == NULL) {
        free(c);
        free(inside);
        return NULL;
    }
    *c = (struct checked_order){ .ops = wrapper_table(ops), .inner = inner, .objects = objects, .inside = inside,
                                 .handler = handler != NULL ? handler : stop_with_message, .context = context };
    c->base.ops = &c->ops;
    c->base.queue_requests = inner->queue_requests;
    if (inner->queue_requests > 0 && ops->expect == NULL)
        violation(c, "create", "it wants to be told of waiting requests, and has no `expect`");
    if (inner->count != 0)
        violation(c, "create", "a new order is not empty");
    return &c->base;
}
