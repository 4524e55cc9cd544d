#include "allocator/ghost_list.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

struct ghost {
    uint64_t key;
    uint32_t prev, next; /* ring by age */
    uint32_t chain;      /* next of the same bucket, or 0; of the unused ones likewise */
};

bool ghost_list_init(struct ghost_list *list, uint32_t capacity)
{
    unsigned bits = 1;

    assert(capacity < UINT32_C(1) << 31);
    while (bits < 31 && UINT32_C(1) << bits < capacity)
        bits++;
    *list = (struct ghost_list){.capacity = capacity, .shift = 64 - bits};
    list->ghosts = calloc((size_t)capacity + 1, sizeof *list->ghosts);
    list->buckets = calloc((size_t)1 << bits, sizeof *list->buckets);
    if (list->ghosts != NULL && list->buckets != NULL)
        return true;
    ghost_list_release(list);
    return false;
}

void ghost_list_release(struct ghost_list *list)
{
    free(list->ghosts);
    free(list->buckets);
    *list = (struct ghost_list){0};
}

/* Keys may be hashes or small numbers: multiplying by 2^64 / golden ratio spreads both. */
static uint32_t *bucket_of(const struct ghost_list *list, uint64_t key)
{
    return &list->buckets[key * UINT64_C(0x9E3779B97F4A7C15) >> list->shift];
}

uint32_t ghost_list_find(const struct ghost_list *list, uint64_t key)
{
    uint32_t at = *bucket_of(list, key);

    while (at != 0 && list->ghosts[at].key != key)
        at = list->ghosts[at].chain;
    return at;
}

bool ghost_list_has(const struct ghost_list *list, uint64_t key)
{
    return ghost_list_find(list, key) != 0;
}

static void forget(struct ghost_list *list, uint32_t at)
{
    struct ghost *ghost = &list->ghosts[at];
    uint32_t *link = bucket_of(list, ghost->key);

    while (*link != at)
        link = &list->ghosts[*link].chain;
    *link = ghost->chain;
    list->ghosts[ghost->prev].next = ghost->next;
    list->ghosts[ghost->next].prev = ghost->prev;
    ghost->chain = list->unused;
    list->unused = at;
    list->count--;
}

bool ghost_list_remove(struct ghost_list *list, uint64_t key)
{
    uint32_t at = ghost_list_find(list, key);

    if (at != 0)
        forget(list, at);
    return at != 0;
}

void ghost_list_drop_oldest(struct ghost_list *list)
{
    assert(list->count > 0);
    forget(list, list->ghosts[0].next);
}

uint32_t ghost_list_add(struct ghost_list *list, uint64_t key)
{
    uint32_t at, *bucket = bucket_of(list, key);

    if (list->capacity == 0)
        return 0;
    if (!ghost_list_remove(list, key) && list->count == list->capacity)
        ghost_list_drop_oldest(list);
    at = list->unused;
    if (at != 0)
        list->unused = list->ghosts[at].chain;
    else
        at = ++list->used;
    list->ghosts[at] = (struct ghost){.key = key, .prev = list->ghosts[0].prev, .chain = *bucket};
    *bucket = at;
    list->ghosts[list->ghosts[0].prev].next = at;
    list->ghosts[0].prev = at;
    list->count++;
    return at;
}
