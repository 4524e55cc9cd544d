#include "allocator/device/dev_slab.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A chunk begins with the pointer to the next one; the things follow at this distance. */
#define CHUNK_HEAD_BYTES 16
#define CHUNK_THINGS_MIN 64

void dev_slab_init(struct dev_slab *slab, size_t thing_bytes)
{
    assert(thing_bytes >= sizeof(void *) && thing_bytes % sizeof(void *) == 0);
    *slab = (struct dev_slab){.thing_bytes = thing_bytes};
}

void dev_slab_release(struct dev_slab *slab)
{
    while (slab->chunks) {
        void *next;
        memcpy(&next, slab->chunks, sizeof next);
        free(slab->chunks);
        slab->chunks = next;
    }
    slab->list = NULL;
    slab->spare = 0;
}

bool dev_slab_reserve(struct dev_slab *slab, size_t count)
{
    if (slab->spare >= count)
        return true;
    size_t missing = count - slab->spare;
    size_t things = missing > CHUNK_THINGS_MIN ? missing : CHUNK_THINGS_MIN;
    if (things > (SIZE_MAX - CHUNK_HEAD_BYTES) / slab->thing_bytes)
        return false;
    char *chunk = malloc(CHUNK_HEAD_BYTES + things * slab->thing_bytes);
    if (!chunk)
        return false;
    memcpy(chunk, &slab->chunks, sizeof slab->chunks);
    slab->chunks = chunk;
    /* From the back, so that things are handed out in address order. */
    for (size_t i = things; i-- > 0;)
        dev_slab_give(slab, chunk + CHUNK_HEAD_BYTES + i * slab->thing_bytes);
    return true;
}

void *dev_slab_take(struct dev_slab *slab)
{
    assert(slab->spare > 0);
    void *thing = slab->list;
    memcpy(&slab->list, thing, sizeof slab->list);
    slab->spare--;
    memset(thing, 0, slab->thing_bytes);
    return thing;
}

void dev_slab_give(struct dev_slab *slab, void *thing)
{
    memcpy(thing, &slab->list, sizeof slab->list);
    slab->list = thing;
    slab->spare++;
}
