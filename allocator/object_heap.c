#include "allocator/object_heap.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

struct heap_entry {
    uint64_t major, minor;
    uint32_t object;
};

bool object_heap_init(struct object_heap *heap, uint32_t objects)
{
    *heap = (struct object_heap){.objects = objects};
    heap->entries = malloc((size_t)objects * sizeof *heap->entries);
    heap->place_of = calloc(objects, sizeof *heap->place_of);
    if (heap->entries != NULL && heap->place_of != NULL)
        return true;
    object_heap_release(heap);
    return false;
}

void object_heap_release(struct object_heap *heap)
{
    free(heap->entries);
    free(heap->place_of);
    *heap = (struct object_heap){0};
}

bool object_heap_has(const struct object_heap *heap, uint32_t object)
{
    return heap->place_of[object] != 0;
}

static bool before(const struct heap_entry *a, const struct heap_entry *b)
{
    return a->major != b->major ? a->major < b->major : a->minor < b->minor;
}

static void put(struct object_heap *heap, uint32_t at, const struct heap_entry *entry)
{
    heap->entries[at] = *entry;
    heap->place_of[entry->object] = at + 1;
}

/* Moves the hole at `at` up until the entry may stand in it. */
static void sift_up(struct object_heap *heap, uint32_t at, const struct heap_entry *entry)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / 4;

        if (!before(entry, &heap->entries[parent]))
            break;
        put(heap, at, &heap->entries[parent]);
        at = parent;
    }
    put(heap, at, entry);
}

static uint32_t least_child(const struct object_heap *heap, uint32_t at)
{
    uint64_t first = 4 * (uint64_t)at + 1, end = first + 4;
    uint32_t least;

    if (first >= heap->count)
        return heap->count;
    least = (uint32_t)first;
    for (uint64_t child = first + 1; child < end && child < heap->count; child++)
        if (before(&heap->entries[child], &heap->entries[least]))
            least = (uint32_t)child;
    return least;
}

static void sift_down(struct object_heap *heap, uint32_t at, const struct heap_entry *entry)
{
    uint32_t child;

    while ((child = least_child(heap, at)) < heap->count && before(&heap->entries[child], entry)) {
        put(heap, at, &heap->entries[child]);
        at = child;
    }
    put(heap, at, entry);
}

void object_heap_push(struct object_heap *heap, uint32_t object, uint64_t major, uint64_t minor)
{
    struct heap_entry entry = {major, minor, object};

    assert(object < heap->objects && heap->place_of[object] == 0);
    sift_up(heap, heap->count++, &entry);
}

void object_heap_remove(struct object_heap *heap, uint32_t object)
{
    uint32_t at = heap->place_of[object] - 1;
    struct heap_entry last;

    assert(object < heap->objects && heap->place_of[object] != 0);
    heap->place_of[object] = 0;
    last = heap->entries[--heap->count];
    if (at == heap->count)
        return;
    if (at > 0 && before(&last, &heap->entries[(at - 1) / 4]))
        sift_up(heap, at, &last);
    else
        sift_down(heap, at, &last);
}

uint32_t object_heap_top(const struct object_heap *heap)
{
    assert(heap->count > 0);
    return heap->entries[0].object;
}

uint64_t object_heap_top_major(const struct object_heap *heap)
{
    assert(heap->count > 0);
    return heap->entries[0].major;
}

bool object_heap_sound(const struct object_heap *heap)
{
    uint32_t inside = 0;

    for (uint32_t i = 0; i < heap->count; i++) {
        if (heap->entries[i].object >= heap->objects || heap->place_of[heap->entries[i].object] != i + 1)
            return false;
        if (i > 0 && before(&heap->entries[i], &heap->entries[(i - 1) / 4]))
            return false;
    }
    for (uint32_t object = 0; object < heap->objects; object++)
        inside += heap->place_of[object] != 0;
    return inside == heap->count;
}
