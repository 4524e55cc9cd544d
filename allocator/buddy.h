/* A binary buddy system over [0, space_units): the space is cut greedily into maximal aligned powers of
 * two (15,728 = 8192 + 4096 + 2048 + 1024 + 256 + 64 + 32 + 16); a request gets the lowest chunk of the
 * smallest order that is large enough, split down, and freed chunks join their buddies. The set of free
 * chunks follows from what is free alone. Not thread-safe. */
#ifndef PAGESIM_BUDDY_H
#define PAGESIM_BUDDY_H

#include <stdbool.h>
#include <stdint.h>

enum { BUDDY_ORDERS = 48 };

struct buddy_level; /* the free chunks of one order */

struct buddy {
    uint64_t space_units;
    uint64_t free_units;
    unsigned order_count; /* chunks have orders 0 .. order_count - 1 */
    struct buddy_level *levels;
};

/* False when memory is out or the space is 2^BUDDY_ORDERS units or more; space_units > 0. */
bool buddy_init(struct buddy *buddy, uint64_t space_units);
void buddy_release(struct buddy *buddy);

/* Takes a chunk of 2^order units. False, and nothing changed, when there is none. */
bool buddy_take(struct buddy *buddy, unsigned order, uint64_t *start);
void buddy_give(struct buddy *buddy, uint64_t start, unsigned order);

/* How many chunks of 2^order units could be taken now. O(orders). */
uint64_t buddy_count(const struct buddy *buddy, unsigned order);
/* The same in an empty space. */
uint64_t buddy_count_empty(const struct buddy *buddy, unsigned order);
/* Free chunks of exactly this order, not counting larger ones that could be split. */
uint64_t buddy_free_chunks(const struct buddy *buddy, unsigned order);

/* NULL when sound, else what is wrong. O(space_units). */
const char *buddy_check(const struct buddy *buddy);

#endif
