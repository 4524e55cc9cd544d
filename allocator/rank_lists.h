/* Objects 0 .. objects-1 by rank, least first, among equals the one that came first: a list for each rank that somebody
 * has, and a heap of these ranks. O(1) a call as long as the ranks stay, O(log ranks) when one comes or goes. */
#ifndef PAGESIM_RANK_LISTS_H
#define PAGESIM_RANK_LISTS_H

#include "allocator/object_heap.h"
#include "allocator/object_lists.h"

struct rank_lists {
    struct object_lists lists;  /* number l: the objects of rank ranks[l].rank */
    uint32_t *list_of;          /* [objects] of objects inside */
    struct rank {
        uint64_t rank;
        uint32_t chain; /* the next list of the same bucket, or of the unused ones: its number + 1, 0: none */
    } *ranks;
    uint32_t *buckets;          /* rank → first list of its chain, + 1; 0: none */
    struct object_heap heap;    /* of lists that are not empty */
    uint32_t used, unused;      /* lists ever used; those given up form a chain at `unused`, + 1 */
    uint32_t last;              /* where the last object was pushed: most have the rank of the one before */
    unsigned shift;             /* 64 - log2(buckets) */
    uint32_t count;             /* objects inside */
};

bool rank_lists_init(struct rank_lists *ranks, uint32_t objects); /* false: out of memory */
void rank_lists_release(struct rank_lists *ranks);                /* a zeroed struct is fine */
/* The object, outside, becomes the newest of its rank. */
void rank_lists_push(struct rank_lists *ranks, uint32_t object, uint64_t rank);
void rank_lists_remove(struct rank_lists *ranks, uint32_t object);
/* The object that came first of those of least rank, and that rank; count > 0. */
uint32_t rank_lists_first(const struct rank_lists *ranks);
uint64_t rank_lists_least(const struct rank_lists *ranks);
bool rank_lists_sound(const struct rank_lists *ranks); /* O(objects) */

#endif
