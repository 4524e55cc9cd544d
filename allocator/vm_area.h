/* Zeroed memory straight from the kernel, for arrays sized by the worst case: an untouched page costs
 * nothing, so a table for the longest possible sequence is free until a sequence gets that long. */
#ifndef PAGESIM_VM_AREA_H
#define PAGESIM_VM_AREA_H

#include <stddef.h>
#include <stdint.h>

/* count * item_bytes zeroed bytes; NULL when they overflow or the kernel refuses. */
void *vm_area_map(uint64_t count, uint64_t item_bytes);
/* The same count and item_bytes as at the map; NULL is fine. */
void vm_area_unmap(void *area, uint64_t count, uint64_t item_bytes);

#endif
