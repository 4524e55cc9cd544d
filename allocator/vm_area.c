#include "allocator/vm_area.h"

#include <assert.h>
#include <stdbool.h>
#include <sys/mman.h>

/* An address space of 47 bits is all that there is; a larger wish is a mistake in the caller's sizes. */
static const uint64_t AREA_BYTES_MAX = UINT64_C(1) << 46;

static bool area_bytes(uint64_t count, uint64_t item_bytes, size_t *bytes)
{
    assert(item_bytes > 0);
    if (count == 0 || count > AREA_BYTES_MAX / item_bytes)
        return false;
    *bytes = (size_t)(count * item_bytes);
    return true;
}

void *vm_area_map(uint64_t count, uint64_t item_bytes)
{
    size_t bytes;
    if (!area_bytes(count, item_bytes, &bytes))
        return NULL;
    void *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return area == MAP_FAILED ? NULL : area;
}

void *vm_area_map_dense(uint64_t count, uint64_t item_bytes)
{
    void *area = vm_area_map(count, item_bytes);
    if (area != NULL) /* only a wish: where the kernel has no huge pages, all goes as well, and slower */
        madvise(area, (size_t)(count * item_bytes), MADV_HUGEPAGE);
    return area;
}

void vm_area_unmap(void *area, uint64_t count, uint64_t item_bytes)
{
    size_t bytes;
    if (area != NULL && area_bytes(count, item_bytes, &bytes))
        munmap(area, bytes);
}
