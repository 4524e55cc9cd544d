#include "sim/turns.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "allocator/eviction.h"

bool turns_init(struct turns *turns)
{
    *turns = (struct turns){ 0 };
    return id_index_init(&turns->names);
}

void turns_release(struct turns *turns)
{
    if (turns->names.places != NULL)
        id_index_release(&turns->names);
    free(turns->turns);
    *turns = (struct turns){ 0 };
}

/* The turns so far under this name; NULL: out of memory. */
static uint32_t *turns_of(struct turns *turns, const char *name)
{
    uint64_t hash = XXH3_64bits(name, strlen(name));
    uint32_t known = turns->names.count, number;

    if (id_index_number(&turns->names, &hash, 1, &number) != ID_INDEX_OK)
        return NULL;
    if (number >= turns->room) {
        uint64_t room = turns->room > 0 ? 2 * turns->room : 1024;
        uint32_t *grown = realloc(turns->turns, (size_t)room * sizeof *grown);

        if (grown == NULL)
            return NULL;
        turns->turns = grown;
        turns->room = room;
    }
    if (number >= known)
        turns->turns[number] = 0;
    return &turns->turns[number];
}

bool turns_next(struct turns *turns, const struct wl_request *request, uint32_t *category)
{
    const char *name = request->session != NULL ? request->session : request->id;
    const char *parent = request->session == NULL ? request->parent : NULL;
    uint32_t before = 0, *count;

    *category = 0;
    if (name == NULL)
        return true;
    if (parent != NULL) {
        if ((count = turns_of(turns, parent)) == NULL)
            return false;
        before = *count;
    }
    if ((count = turns_of(turns, name)) == NULL)
        return false;
    if (request->session != NULL)
        before = *count;
    *category = before < KV_EVICTION_CATEGORIES ? before : KV_EVICTION_CATEGORIES - 1;
    *count = before < UINT32_MAX ? before + 1 : before;
    return true;
}
