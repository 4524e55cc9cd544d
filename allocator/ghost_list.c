#include "allocator/ghost_list.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

/* Keys may be hashes or small numbers, and the index takes both ends of a key as they are. One to one. */
static uint64_t spread(uint64_t key)
{
    key *= UINT64_C(0x9E3779B97F4A7C15);
    return key ^ key >> 32;
}

bool ghost_list_init(struct ghost_list *list, uint32_t capacity)
{
    assert(capacity < UINT32_C(1) << 31);
    *list = (struct ghost_list){.capacity = capacity};
    if (capacity == 0)
        return true;
    list->ghosts = calloc((size_t)capacity + 1, sizeof *list->ghosts);
    if (list->ghosts != NULL && object_lists_init(&list->age, capacity, 1) &&
        block_index_init(&list->index, list->ghosts, capacity))
        return true;
    ghost_list_release(list);
    return false;
}

void ghost_list_release(struct ghost_list *list)
{
    if (list->index.buckets != NULL)
        block_index_release(&list->index);
    object_lists_release(&list->age);
    free(list->ghosts);
    *list = (struct ghost_list){0};
}

uint32_t ghost_list_find(const struct ghost_list *list, uint64_t key)
{
    kv_block ghost = list->count > 0 ? block_index_find(&list->index, spread(key)) : KV_BLOCK_NONE;

    return ghost != KV_BLOCK_NONE ? ghost : 0;
}

void ghost_list_prefetch(const struct ghost_list *list, uint64_t key)
{
    if (list->capacity > 0)
        block_index_prefetch_bucket(&list->index, spread(key));
}

bool ghost_list_has(const struct ghost_list *list, uint64_t key)
{
    return ghost_list_find(list, key) != 0;
}

static void forget(struct ghost_list *list, uint32_t ghost)
{
    block_index_remove(&list->index, ghost);
    object_lists_remove(&list->age, ghost - 1);
    list->ghosts[ghost].place = list->unused;
    list->unused = ghost;
    list->count--;
}

bool ghost_list_remove(struct ghost_list *list, uint64_t key)
{
    uint32_t ghost = ghost_list_find(list, key);

    if (ghost != 0)
        forget(list, ghost);
    return ghost != 0;
}

void ghost_list_drop_oldest(struct ghost_list *list)
{
    uint32_t oldest;

    assert(list->count > 0);
    forget(list, object_lists_oldest(&list->age, 0) + 1);
    oldest = object_lists_oldest(&list->age, 0);
    if (oldest != KV_OBJECT_NONE) /* most likely the next to be dropped */
        block_index_prefetch_bucket(&list->index, list->ghosts[oldest + 1].key);
}

uint32_t ghost_list_add(struct ghost_list *list, uint64_t key)
{
    uint32_t ghost;

    if (list->capacity == 0)
        return 0;
    if (!ghost_list_remove(list, key) && list->count == list->capacity)
        ghost_list_drop_oldest(list);
    ghost = list->unused;
    if (ghost != 0)
        list->unused = list->ghosts[ghost].place;
    else
        ghost = ++list->used;
    block_index_add(&list->index, ghost, spread(key));
    object_lists_push(&list->age, 0, ghost - 1);
    list->count++;
    return ghost;
}
