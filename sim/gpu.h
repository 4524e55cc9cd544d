/* Built-in GPUs: figures of the makers' data sheets. */
#ifndef PAGESIM_GPU_H
#define PAGESIM_GPU_H

#include <stddef.h>
#include <stdint.h>

struct gpu {
    const char *name;    /* "h100-sxm" */
    const char *aliases; /* "|h100|...|" */
    /* What a server sees as the total: what CUDA reports for the card, a little below the nominal size. The source says
     * whose figure it is. */
    uint64_t memory_bytes;
    uint64_t bandwidth_bytes_per_s;
    /* Dense matrix products, no sparsity; 0: no such units. */
    uint64_t flops_16, flops_8, flops_4; /* FLOP/s in BF16 or FP16, FP8, FP4 */
    uint64_t ops_int8;                   /* integer operations/s */
    uint32_t capability;                 /* compute capability x 10: 90 */
    const char *source;
};

size_t gpu_count(void);
const struct gpu *gpu_at(size_t i);
/* By name or alias, in any case. NULL: none. */
const struct gpu *gpu_find(const char *name);

#endif
