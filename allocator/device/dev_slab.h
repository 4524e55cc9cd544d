/* Things of one size, handed out from chunks and taken back to a list. Reserving is the only call that can fail, so an operation
 * reserves what it may need before it changes anything. */
#ifndef PAGESIM_DEV_SLAB_H
#define PAGESIM_DEV_SLAB_H

#include <stdbool.h>
#include <stddef.h>

struct dev_slab {
    size_t thing_bytes; /* at least sizeof(void *) */
    size_t spare;       /* on the list */
    void *list;
    void *chunks;
};

void dev_slab_init(struct dev_slab *slab, size_t thing_bytes);
void dev_slab_release(struct dev_slab *slab);
/* Makes sure that `count` things are spare. False when this process has no memory: nothing has changed then. */
bool dev_slab_reserve(struct dev_slab *slab, size_t count);
/* A zeroed thing. One must be spare. */
void *dev_slab_take(struct dev_slab *slab);
void dev_slab_give(struct dev_slab *slab, void *thing);

#endif
