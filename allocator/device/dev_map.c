#include <stdlib.h>

#include "allocator/device/dev_internal.h"

#define SLOTS_MIN 64

/* Addresses are multiples of 512; the multiplier spreads what is left over the high bits. */
static size_t home_of(const struct dev_map *map, uint64_t address)
{
    return (size_t)(((address >> 9) * 0x9e3779b97f4a7c15ull) >> 20) & (map->slot_count - 1);
}

bool dev_map_reserve(struct dev_map *map, size_t more)
{
    if ((map->used + more) * 2 <= map->slot_count)
        return true;
    struct dev_map grown = {.slot_count = map->slot_count ? map->slot_count : SLOTS_MIN};
    while ((map->used + more) * 2 > grown.slot_count)
        grown.slot_count *= 2;
    grown.slots = calloc(grown.slot_count, sizeof *grown.slots);
    if (!grown.slots)
        return false;
    for (size_t i = 0; i < map->slot_count; i++)
        if (map->slots[i])
            dev_map_add(&grown, map->slots[i]);
    free(map->slots);
    *map = grown;
    return true;
}

void dev_map_add(struct dev_map *map, struct dev_block *block)
{
    assert(map->used < map->slot_count);
    size_t at = home_of(map, block->node.address);
    while (map->slots[at])
        at = (at + 1) & (map->slot_count - 1);
    map->slots[at] = block;
    map->used++;
}

/* Moves later entries up, so that no tombstones are needed. */
static void close_gap(struct dev_map *map, size_t gap)
{
    size_t mask = map->slot_count - 1;
    for (size_t at = (gap + 1) & mask; map->slots[at]; at = (at + 1) & mask) {
        size_t home = home_of(map, map->slots[at]->node.address);
        if (((at - home) & mask) < ((at - gap) & mask))
            continue; /* it would come before its home */
        map->slots[gap] = map->slots[at];
        gap = at;
    }
    map->slots[gap] = NULL;
}

struct dev_block *dev_map_take(struct dev_map *map, uint64_t address)
{
    if (map->slot_count == 0)
        return NULL;
    size_t at = home_of(map, address);
    while (map->slots[at] && map->slots[at]->node.address != address)
        at = (at + 1) & (map->slot_count - 1);
    struct dev_block *block = map->slots[at];
    if (!block)
        return NULL;
    close_gap(map, at);
    map->used--;
    return block;
}
