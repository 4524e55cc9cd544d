#include <inttypes.h>
#include <stdio.h>

#include "allocator/device/device_allocator.h"

const char *dev_event_name(enum dev_event_kind kind)
{
    static const char *const names[] = {"segment_alloc", "segment_free", "segment_map", "segment_unmap"};
    return names[kind];
}

char *dev_size_text(uint64_t bytes, char *text, size_t text_bytes)
{
    /* The limits are inclusive: 1 GiB prints as 1024.00 MiB. */
    if (bytes <= 1ull << 10)
        snprintf(text, text_bytes, "%" PRIu64 " bytes", bytes);
    else if (bytes <= 1ull << 20)
        snprintf(text, text_bytes, "%.2f KiB", (double)bytes / 0x1p10);
    else if (bytes <= 1ull << 30)
        snprintf(text, text_bytes, "%.2f MiB", (double)bytes / 0x1p20);
    else
        snprintf(text, text_bytes, "%.2f GiB", (double)bytes / 0x1p30);
    return text;
}

int dev_oom_message(const struct dev_oom *oom, char *text, size_t text_bytes)
{
    char tried[32], capacity[32], free_text[32], in_use[32], allowed[32] = "", allocated[32], private[32] = "", unallocated[32];
    dev_size_text(oom->tried_bytes, tried, sizeof tried);
    dev_size_text(oom->capacity_bytes, capacity, sizeof capacity);
    dev_size_text(oom->free_bytes, free_text, sizeof free_text);
    dev_size_text(oom->capacity_bytes - oom->free_bytes, in_use, sizeof in_use);
    dev_size_text(oom->allocated_bytes, allocated, sizeof allocated);
    dev_size_text(oom->unallocated_bytes, unallocated, sizeof unallocated);
    if (oom->allowed_bytes != DEV_NONE)
        dev_size_text(oom->allowed_bytes, allowed, sizeof allowed);
    if (oom->private_bytes > 0)
        dev_size_text(oom->private_bytes, private, sizeof private);
    return snprintf(text, text_bytes,
                    "CUDA out of memory. Tried to allocate %s. GPU 0 has a total capacity of %s of which %s is free. "
                    "Including non-PyTorch memory, this process has %s memory in use. %s%sOf the allocated memory %s is allocated "
                    "by PyTorch, %s%s%sand %s is reserved by PyTorch but unallocated. If reserved but unallocated memory is large "
                    "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
                    "Memory Management  "
                    "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)",
                    tried, capacity, free_text, in_use, allowed, allowed[0] ? " allowed; " : "", allocated,
                    private[0] ? "with " : "", private, private[0] ? " allocated in private pools (e.g., CUDA Graphs), " : "",
                    unallocated);
}
