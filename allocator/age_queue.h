/* Objects 0 .. objects-1 by when they were stamped, the oldest first. Most enter as they are stamped, as the newest: a list. One
 * that enters later stands where its stamp says: a heap, O(log n) a call. */
#ifndef PAGESIM_AGE_QUEUE_H
#define PAGESIM_AGE_QUEUE_H

#include "allocator/object_heap.h"
#include "allocator/object_lists.h"

struct age_queue {
    struct object_lists list; /* one */
    struct object_heap late;  /* by stamp */
    uint64_t *stamps;         /* [objects], kept outside too */
    uint64_t clock;
    uint32_t count; /* objects inside */
};

static inline bool age_queue_init(struct age_queue *queue, uint32_t objects) /* false: out of memory */
{
    bool made = object_lists_init(&queue->list, objects, 1);

    made = object_heap_init(&queue->late, objects) && made;
    queue->stamps = calloc(objects, sizeof *queue->stamps);
    queue->clock = queue->count = 0;
    return made && queue->stamps != NULL;
}

/* After a failed init too; a zeroed struct is fine. */
static inline void age_queue_release(struct age_queue *queue)
{
    object_lists_release(&queue->list);
    object_heap_release(&queue->late);
    free(queue->stamps);
}

/* Of an object outside: from now on it is the newest. */
static inline void age_queue_stamp(struct age_queue *queue, uint32_t object)
{
    queue->stamps[object] = ++queue->clock;
}

/* The object, outside, is stamped and enters. */
static inline void age_queue_push(struct age_queue *queue, uint32_t object)
{
    age_queue_stamp(queue, object);
    object_lists_push(&queue->list, 0, object);
    queue->count++;
}

/* The object, outside, enters by the stamp it has. */
static inline void age_queue_put_back(struct age_queue *queue, uint32_t object)
{
    object_heap_push(&queue->late, object, queue->stamps[object], 0);
    queue->count++;
}

static inline bool age_queue_has(const struct age_queue *queue, uint32_t object)
{
    return object_lists_has(&queue->list, object) || object_heap_has(&queue->late, object);
}

static inline void age_queue_remove(struct age_queue *queue, uint32_t object)
{
    if (object_lists_has(&queue->list, object))
        object_lists_remove(&queue->list, object);
    else
        object_heap_remove(&queue->late, object);
    queue->count--;
}

/* count > 0. */
static inline uint32_t age_queue_oldest(const struct age_queue *queue)
{
    uint32_t listed = object_lists_oldest(&queue->list, 0);

    if (queue->late.count > 0 &&
        (listed == KV_OBJECT_NONE || object_heap_top_major(&queue->late) < queue->stamps[listed]))
        return object_heap_top(&queue->late);
    return listed;
}

static inline bool age_queue_sound(const struct age_queue *queue) /* O(objects) */
{
    uint32_t listed;

    return object_heap_sound(&queue->late) && object_lists_sound(&queue->list, 0, &listed) &&
           listed + queue->late.count == queue->count;
}

#endif
