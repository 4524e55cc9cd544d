/* Zeroed memory straight from the kernel, for arrays sized by the worst case: an untouched page costs
 * nothing, so a table for the longest possible sequence is free until a sequence gets that long. */
#ifndef PAGESIM_VM_AREA_H
#define PAGESIM_VM_AREA_H

#include <stddef.h>
#include <stdint.h>

/* count * item_bytes zeroed bytes; NULL when they overflow or the kernel refuses. */
void *vm_area_map(uint64_t count, uint64_t item_bytes);
/* The same, for areas that are used all over and in no order: in huge pages where the kernel gives them, as a miss of the
 * processor's table of pages would cost more than the memory access. */
void *vm_area_map_dense(uint64_t count, uint64_t item_bytes);
/* The same count and item_bytes as at the map; NULL is fine. */
void vm_area_unmap(void *area, uint64_t count, uint64_t item_bytes);

#endif
