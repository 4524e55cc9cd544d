/* Ids of any 64-bit value → the numbers 0, 1, 2, ... in order of first appearance. Ids are never
 * removed, so numbers stay dense and index plain arrays. Open addressing, 16 bytes a place, at most
 * half full; look-ups go in batches that prefetch. Not thread-safe. */
#ifndef PAGESIM_ID_INDEX_H
#define PAGESIM_ID_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_INDEX_MAX ((uint32_t)1 << 31) /* most different ids */

struct id_place;

struct id_index {
    struct id_place *places;
    uint64_t place_count; /* a power of two */
    unsigned shift;       /* 64 - log2(place_count) */
    uint32_t count;       /* different ids so far */
};

enum id_index_status { ID_INDEX_OK, ID_INDEX_NO_MEMORY, ID_INDEX_FULL };

bool id_index_init(struct id_index *index); /* false: out of memory */
void id_index_release(struct id_index *index);
/* numbers[i] = the number of ids[i]; unknown ids get the next numbers, in order. A
 * number >= count before the call is new. On failure numbers[] is not to be used. */
enum id_index_status id_index_number(struct id_index *index, const uint64_t *ids, size_t n,
                                     uint32_t *numbers);
/* The number of an id, if it has one. */
bool id_index_find(const struct id_index *index, uint64_t id, uint32_t *number);
/* A number for content that nobody else has. false: no number is left. */
bool id_index_unique(struct id_index *index, uint32_t *number);

#endif
