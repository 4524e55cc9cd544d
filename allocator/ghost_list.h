/* Keys of content that was evicted, the oldest forgotten first; at most a fixed number. An order that
 * meets one again knows that it let it go too early. Its memory is visited at every miss and eviction, at random, which the
 * index of blocks does in one cache line for a key that is not there. */
#ifndef PAGESIM_GHOST_LIST_H
#define PAGESIM_GHOST_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/block_index.h"
#include "allocator/object_lists.h"

struct ghost_list {
    struct keyed_block *ghosts; /* [capacity + 1], numbers from 1 on; keys are spread, see ghost_list.c */
    struct block_index index;
    struct object_lists age;    /* one list: ghosts by number - 1, the oldest first */
    uint32_t capacity, count;
    uint32_t used; /* ghosts ever used; those given up form a chain at `unused`, by `place` */
    uint32_t unused;
};

/* capacity 0 remembers nothing. false: out of memory. */
bool ghost_list_init(struct ghost_list *list, uint32_t capacity);
void ghost_list_release(struct ghost_list *list); /* a zeroed struct is fine */
/* The key becomes the newest; it may be there already. Full: the oldest goes. Returns the key's slot, 1 .. capacity, its
 * own as long as it is there; 0: the capacity is 0. */
uint32_t ghost_list_add(struct ghost_list *list, uint64_t key);
uint32_t ghost_list_find(const struct ghost_list *list, uint64_t key); /* its slot; 0: not there */
/* Starts loading what a call with this key will look at. */
void ghost_list_prefetch(const struct ghost_list *list, uint64_t key);
bool ghost_list_has(const struct ghost_list *list, uint64_t key);
bool ghost_list_remove(struct ghost_list *list, uint64_t key); /* whether it was there */
void ghost_list_drop_oldest(struct ghost_list *list);          /* count > 0 */

#endif
