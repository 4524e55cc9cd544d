/* Keys of content that was evicted, the oldest forgotten first; at most a fixed number. An order that
 * meets one again knows that it let it go too early. Its memory is visited at every miss and eviction: on a cache of
 * 500,000 objects orders with ghosts take about three times as long as lru. */
#ifndef PAGESIM_GHOST_LIST_H
#define PAGESIM_GHOST_LIST_H

#include <stdbool.h>
#include <stdint.h>

struct ghost_list {
    struct ghost *ghosts; /* [capacity + 1]; 0 is the head of the ring: next is the oldest */
    uint32_t *buckets;    /* first ghost of a chain, or 0 */
    uint32_t capacity, count;
    uint32_t used; /* ghosts ever used; those given up form a chain at `unused` */
    uint32_t unused;
    unsigned shift; /* 64 - log2(buckets) */
};

/* capacity 0 remembers nothing. false: out of memory. */
bool ghost_list_init(struct ghost_list *list, uint32_t capacity);
void ghost_list_release(struct ghost_list *list); /* a zeroed struct is fine */
/* The key becomes the newest; it may be there already. Full: the oldest goes. Returns the key's slot, 1 .. capacity, its
 * own as long as it is there; 0: the capacity is 0. */
uint32_t ghost_list_add(struct ghost_list *list, uint64_t key);
uint32_t ghost_list_find(const struct ghost_list *list, uint64_t key); /* its slot; 0: not there */
bool ghost_list_has(const struct ghost_list *list, uint64_t key);
bool ghost_list_remove(struct ghost_list *list, uint64_t key); /* whether it was there */
void ghost_list_drop_oldest(struct ghost_list *list);          /* count > 0 */

#endif
