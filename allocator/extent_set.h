/* The free extents of an address range, found by address and by length in O(log n). Addresses and
 * lengths are in units of the caller's choice (token slots, pages). Adjacent extents never coexist,
 * so the set is a function of what is free alone, not of the order of the calls. Not thread-safe. */
#ifndef PAGESIM_EXTENT_SET_H
#define PAGESIM_EXTENT_SET_H

#include <stdbool.h>
#include <stdint.h>

enum extent_fit {
    EXTENT_FIRST_FIT, /* the lowest address */
    EXTENT_BEST_FIT,  /* the shortest that is long enough; the lowest address among equals */
    EXTENT_WORST_FIT, /* the longest; the lowest address among equals */
};

struct extent;

struct extent_set {
    struct extent *nodes; /* [node_count]; node 0 is nil */
    uint32_t node_count;
    uint32_t unused; /* head of the list of nodes in no tree */
    uint32_t root[2]; /* by address, by length */
    uint64_t space_units;
    uint64_t free_units;
};

/* One extent [0, space_units), room for max_taken extents taken at once. False when memory is out;
 * space_units > 0. */
bool extent_set_init(struct extent_set *set, uint64_t space_units, uint32_t max_taken);
void extent_set_release(struct extent_set *set);

/* Takes the low end of the extent that fit chooses. False, and nothing changed, when none is long
 * enough. units > 0. */
bool extent_set_take(struct extent_set *set, enum extent_fit fit, uint64_t units, uint64_t *start);
bool extent_set_is_free(const struct extent_set *set, uint64_t start, uint64_t units);
/* Takes exactly [start, start + units), which must be free. */
void extent_set_take_at(struct extent_set *set, uint64_t start, uint64_t units);
/* Gives back what was taken and joins it with its neighbours. */
void extent_set_give(struct extent_set *set, uint64_t start, uint64_t units);

/* The longest extent, 0 when nothing is free. O(1). */
uint64_t extent_set_longest(const struct extent_set *set);
/* The longest piece of which `pieces` fit at once. O(extents * log(longest)), O(1) for one piece. */
uint64_t extent_set_longest_piece(const struct extent_set *set, uint64_t pieces);
/* How many pieces of this length fit at once. O(extents). */
uint64_t extent_set_count_pieces(const struct extent_set *set, uint64_t piece_units);

/* NULL when sound, else what is wrong. */
const char *extent_set_check(const struct extent_set *set);

#endif
