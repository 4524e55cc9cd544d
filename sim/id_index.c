#include "sim/id_index.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BATCH 64 /* look-ups whose places are fetched together; more gains nothing */
#define FIRST_PLACES_LOG2 12u

struct id_place {
    uint64_t id;
    uint32_t number_plus_1; /* 0: empty, so that fresh zero pages are an empty table */
    uint32_t unused;
};
static_assert(sizeof(struct id_place) == 16, "four places a cache line, none straddles two");

/* mmap, not calloc: a place never straddles two lines, and with huge pages a random look-up in a
 * large table does not miss the TLB each time. */
static struct id_place *places_create(uint64_t count)
{
    size_t bytes = (size_t)count * sizeof(struct id_place);
    void *places = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (places == MAP_FAILED)
        return NULL;
    (void)madvise(places, bytes, MADV_HUGEPAGE); /* a wish, not a need */
    return places;
}

static void places_destroy(struct id_place *places, uint64_t count)
{
    if (places != NULL)
        (void)munmap(places, (size_t)count * sizeof *places);
}

bool id_index_init(struct id_index *index)
{
    *index = (struct id_index){
        .place_count = UINT64_C(1) << FIRST_PLACES_LOG2,
        .shift = 64 - FIRST_PLACES_LOG2,
    };
    index->places = places_create(index->place_count);
    return index->places != NULL;
}

void id_index_release(struct id_index *index)
{
    places_destroy(index->places, index->place_count);
    *index = (struct id_index){0};
}

/* Fibonacci hashing of the folded id: the top bits depend on every bit. */
static inline uint64_t home_of(const struct id_index *index, uint64_t id)
{
    return ((id ^ id >> 32) * UINT64_C(0x9E3779B97F4A7C15)) >> index->shift;
}

/* The place that holds the id, or the empty one where it belongs. */
static inline struct id_place *find(const struct id_index *index, uint64_t id, uint64_t home)
{
    uint64_t mask = index->place_count - 1;

    for (uint64_t i = home;; i = (i + 1) & mask) {
        struct id_place *place = &index->places[i];

        if (place->number_plus_1 == 0 || place->id == id)
            return place;
    }
}

static bool grow(struct id_index *index)
{
    struct id_index bigger = *index;

    bigger.place_count *= 2;
    bigger.shift--;
    bigger.places = places_create(bigger.place_count);
    if (bigger.places == NULL)
        return false;
    for (uint64_t i = 0; i < index->place_count; i++)
        if (index->places[i].number_plus_1 != 0) {
            uint64_t id = index->places[i].id;

            *find(&bigger, id, home_of(&bigger, id)) = index->places[i];
        }
    places_destroy(index->places, index->place_count);
    *index = bigger;
    return true;
}

static enum id_index_status number_batch(struct id_index *index, const uint64_t *ids, size_t n,
                                         uint32_t *numbers)
{
    uint64_t homes[BATCH];

    while (index->count + n > index->place_count / 2)
        if (!grow(index))
            return ID_INDEX_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        homes[i] = home_of(index, ids[i]);
        __builtin_prefetch(&index->places[homes[i]], 0);
    }
    for (size_t i = 0; i < n; i++) {
        struct id_place *place = find(index, ids[i], homes[i]);

        if (place->number_plus_1 == 0)
            *place = (struct id_place){.id = ids[i], .number_plus_1 = ++index->count};
        numbers[i] = place->number_plus_1 - 1;
    }
    return ID_INDEX_OK;
}

enum id_index_status id_index_number(struct id_index *index, const uint64_t *ids, size_t n,
                                     uint32_t *numbers)
{
    while (n > 0) {
        size_t batch = n < BATCH ? n : BATCH;
        enum id_index_status status;

        if (index->count > ID_INDEX_MAX - BATCH)
            return ID_INDEX_FULL;
        status = number_batch(index, ids, batch, numbers);
        if (status != ID_INDEX_OK)
            return status;
        ids += batch;
        numbers += batch;
        n -= batch;
    }
    return ID_INDEX_OK;
}

bool id_index_find(const struct id_index *index, uint64_t id, uint32_t *number)
{
    const struct id_place *place = find(index, id, home_of(index, id));

    if (place->number_plus_1 == 0)
        return false;
    *number = place->number_plus_1 - 1;
    return true;
}

bool id_index_unique(struct id_index *index, uint32_t *number)
{
    if (index->count > ID_INDEX_MAX - BATCH)
        return false;
    *number = index->count++;
    return true;
}
