/* Lists of objects 0 .. objects-1, an object in at most one of them, oldest first. One array of 8 bytes
 * an object; nothing is allocated after the start. */
#ifndef PAGESIM_OBJECT_LISTS_H
#define PAGESIM_OBJECT_LISTS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "allocator/eviction.h"

/* List l is a ring whose head is node objects + l. {0, 0} is a node outside: inside, that would be a ring
 * of two objects without a head, so zeroed memory is right for all objects. */
struct object_lists {
    struct object_node {
        uint32_t prev, next;
    } *nodes;
    uint32_t objects, lists;
};

/* Room for lists that are opened, empty, before they are used. False when memory is out. */
static inline bool object_lists_reserve(struct object_lists *lists, uint32_t objects, uint32_t count)
{
    *lists = (struct object_lists){.objects = objects, .lists = count};
    lists->nodes = calloc((size_t)objects + count, sizeof *lists->nodes);
    return lists->nodes != NULL;
}

static inline void object_lists_open(struct object_lists *lists, uint32_t list)
{
    uint32_t head = lists->objects + list;

    lists->nodes[head] = (struct object_node){head, head};
}

/* All of them open. */
/* So many hundredths of the objects, at least one: how orders size their queues. */
static inline uint32_t object_share(uint32_t objects, uint64_t percent)
{
    uint64_t share = (uint64_t)objects * percent / 100;

    return share > 0 ? (uint32_t)share : 1;
}

static inline bool object_lists_init(struct object_lists *lists, uint32_t objects, uint32_t count)
{
    bool made = object_lists_reserve(lists, objects, count);

    for (uint32_t l = 0; made && l < count; l++)
        object_lists_open(lists, l);
    return made;
}

static inline void object_lists_release(struct object_lists *lists)
{
    free(lists->nodes);
    lists->nodes = NULL;
}

static inline bool object_lists_has(const struct object_lists *lists, uint32_t object)
{
    return (lists->nodes[object].prev | lists->nodes[object].next) != 0;
}

static inline void object_lists_push(struct object_lists *lists, uint32_t list, uint32_t object)
{
    uint32_t head = lists->objects + list, newest = lists->nodes[head].prev;

    assert(object < lists->objects && !object_lists_has(lists, object));
    lists->nodes[object] = (struct object_node){newest, head};
    lists->nodes[newest].next = object;
    lists->nodes[head].prev = object;
}

static inline void object_lists_remove(struct object_lists *lists, uint32_t object)
{
    struct object_node node = lists->nodes[object];

    assert(object < lists->objects && object_lists_has(lists, object));
    lists->nodes[node.prev].next = node.next;
    lists->nodes[node.next].prev = node.prev;
    lists->nodes[object] = (struct object_node){0, 0};
}

/* KV_OBJECT_NONE when the list is empty. */
static inline uint32_t object_lists_oldest(const struct object_lists *lists, uint32_t list)
{
    uint32_t oldest = lists->nodes[lists->objects + list].next;

    return oldest < lists->objects ? oldest : KV_OBJECT_NONE;
}

/* The next newer one of the same list, or KV_OBJECT_NONE. */
static inline uint32_t object_lists_newer(const struct object_lists *lists, uint32_t object)
{
    uint32_t next = lists->nodes[object].next;

    return next < lists->objects ? next : KV_OBJECT_NONE;
}

/* The one that stands `by` places behind the oldest, or KV_OBJECT_NONE. Its links are asked for from memory: who calls this at
 * every eviction never waits for those of the next. */
static inline uint32_t object_lists_ahead(const struct object_lists *lists, uint32_t list, unsigned by)
{
    uint32_t at = object_lists_oldest(lists, list);

    while (by-- > 0 && at != KV_OBJECT_NONE)
        at = object_lists_newer(lists, at);
    if (at != KV_OBJECT_NONE)
        __builtin_prefetch(&lists->nodes[at], 1);
    return at;
}

/* Whether all links of the list agree; *count: its objects. Ends for any contents. */
static inline bool object_lists_sound(const struct object_lists *lists, uint32_t list, uint32_t *count)
{
    uint32_t head = lists->objects + list, before = head;

    *count = 0;
    for (uint32_t at = lists->nodes[head].next; at != head; before = at, at = lists->nodes[at].next)
        if (at >= lists->objects || lists->nodes[at].prev != before || ++*count > lists->objects)
            return false;
    return lists->nodes[head].prev == before;
}

#endif
