/* A plug-in for pagesim: an eviction order in one file. `mru` evicts what was given back last, a good rule for nothing but
 * loops that are a little too long for the cache. */
#include <stdlib.h>

#include <pagesim/plugin.h>

/* A doubly linked list with the latest at its end; place `objects` is the ends' sentinel. */
struct mru {
    struct kv_eviction base;
    uint32_t objects;
    uint32_t *next, *prev;
};

static const struct kv_eviction_ops mru_ops;

static void mru_destroy(struct kv_eviction *order)
{
    struct mru *m = (struct mru *)order;
    if (!m) return;
    free(m->next);
    free(m->prev);
    free(m);
}

static struct kv_eviction *mru_create(uint32_t objects, const struct kv_value *values)
{
    struct mru *m = calloc(1, sizeof *m);
    (void)values;
    if (!m) return NULL;
    *m = (struct mru){.base.ops = &mru_ops, .objects = objects};
    m->next = calloc((size_t)objects + 1, sizeof *m->next);
    m->prev = calloc((size_t)objects + 1, sizeof *m->prev);
    if (!m->next || !m->prev) {
        mru_destroy(&m->base);
        return NULL;
    }
    m->next[objects] = m->prev[objects] = objects;
    return &m->base;
}

static void mru_give(struct kv_eviction *order, uint32_t object)
{
    struct mru *m = (struct mru *)order;
    uint32_t last = m->prev[m->objects];
    m->next[last] = m->prev[m->objects] = object;
    m->prev[object] = last;
    m->next[object] = m->objects;
    m->base.count++;
}

static void mru_take(struct kv_eviction *order, uint32_t object)
{
    struct mru *m = (struct mru *)order;
    m->next[m->prev[object]] = m->next[object];
    m->prev[m->next[object]] = m->prev[object];
    m->base.count--;
}

static void mru_touch(struct kv_eviction *order, uint32_t object)
{
    mru_take(order, object);
    mru_give(order, object);
}

static uint32_t mru_evict(struct kv_eviction *order)
{
    uint32_t victim = ((struct mru *)order)->prev[((struct mru *)order)->objects];
    mru_take(order, victim);
    return victim;
}

static const struct kv_eviction_ops mru_ops = {
    .flags = KV_EVICTION_ORPHANS | KV_EVICTION_LATE_KEYS, /* it does not look at fillings */
    .name = "mru",
    .summary = "given back last",
    .source = "an example",
    .description = "Evicts what was given back last. O(1) a call.",
    .create = mru_create,
    .destroy = mru_destroy,
    .give = mru_give,
    .take = mru_take,
    .touch = mru_touch,
    .evict = mru_evict,
};

static const struct kv_eviction_ops *const evictions[] = {&mru_ops, NULL};

const struct pagesim_plugin pagesim_plugin = {PAGESIM_PLUGIN_HEADER, .evictions = evictions};
