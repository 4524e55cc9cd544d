#include "sim/gpu.h"

#include <string.h>
#include <strings.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define GIGA ((uint64_t)1000000000)
#define TERA ((uint64_t)1000000000000)

/* Rates without sparsity. The 40- and 30-series tensor rates are those with 32-bit accumulation, as inference libraries use
 * them. Totals in MiB are what nvidia-smi and CUDA report for the card. */
static const struct gpu GPUS[] = {
    {"h100-sxm", "|h100|h100-sxm5|h100-80gb|h100-sxm-80gb|h100-80gb-hbm3|", 81079 * MIB, 3350 * GIGA, 989400 * GIGA, 1978900 * GIGA, 0,
     1978900 * GIGA, 90, "NVIDIA H100 data sheet, SXM5; total as CUDA reports it (79.18 GiB)"},
    {"h100-pcie", "|h100-pcie-80gb|", 81079 * MIB, 2000 * GIGA, 756 * TERA, 1513 * TERA, 0, 1513 * TERA, 90,
     "NVIDIA H100 data sheet, PCIe; total as for SXM"},
    {"h200", "|h200-sxm|h200-141gb|", 150109880320, 4800 * GIGA, 989400 * GIGA, 1978900 * GIGA, 0, 1978900 * GIGA, 90,
     "NVIDIA H200 data sheet; total measured (cudaMemGetInfo)"},
    {"a100-80gb", "|a100|a100-sxm-80gb|a100-80gb-sxm|a100-sxm4-80gb|", 81037 * MIB, 2039 * GIGA, 312 * TERA, 0, 0, 624 * TERA, 80,
     "NVIDIA A100 data sheet, SXM4 80 GB; total as CUDA reports it (79.14 GiB)"},
    {"a100-40gb", "|a100-sxm-40gb|a100-40gb-sxm|a100-sxm4-40gb|", 40326 * MIB, 1555 * GIGA, 312 * TERA, 0, 0, 624 * TERA, 80,
     "NVIDIA A100 data sheet, 40 GB; total as CUDA reports it (39.38 GiB)"},
    {"l4", "|l4-24gb|", 22563 * MIB, 300 * GIGA, 121 * TERA, 242 * TERA, 0, 242 * TERA, 89,
     "NVIDIA L4 data sheet, rates halved (it gives them with sparsity); total as CUDA reports it (22.03 GiB)"},
    {"l40s", "|l40s-48gb|", 45469 * MIB, 864 * GIGA, 362050 * GIGA, 733 * TERA, 0, 733 * TERA, 89,
     "NVIDIA L40S data sheet; total as CUDA reports it (44.4 GiB)"},
    {"a10", "|a10-24gb|", 22515 * MIB, 600 * GIGA, 125 * TERA, 0, 0, 250 * TERA, 86,
     "NVIDIA A10 data sheet; total as CUDA reports it (21.99 GiB)"},
    {"rtx-3090", "|3090|rtx3090|geforce-rtx-3090|", 24146 * MIB, 936 * GIGA, 71 * TERA, 0, 0, 284 * TERA, 86,
     "NVIDIA Ampere GA102 white paper, appendix A; total as CUDA reports it (23.58 GiB)"},
    {"rtx-4090", "|4090|rtx4090|geforce-rtx-4090|", 24080 * MIB, 1008 * GIGA, 165200 * GIGA, 330300 * GIGA, 0, 660600 * GIGA, 89,
     "NVIDIA Ada white paper, appendix A; total as CUDA reports it (23.52 GiB)"},
    {"t4", "|t4-16gb|tesla-t4|", 14914 * MIB, 320 * GIGA, 65 * TERA, 0, 0, 130 * TERA, 75,
     "NVIDIA T4 data sheet; total as CUDA reports it (14.56 GiB)"},
};

size_t gpu_count(void)
{
    return sizeof GPUS / sizeof GPUS[0];
}

const struct gpu *gpu_at(size_t i)
{
    return &GPUS[i];
}

const struct gpu *gpu_find(const char *name)
{
    size_t bytes = strlen(name);
    if (bytes == 0 || name[0] == '|') return NULL;
    for (size_t i = 0; i < gpu_count(); i++) {
        if (strcasecmp(GPUS[i].name, name) == 0) return &GPUS[i];
        for (const char *at = GPUS[i].aliases; (at = strcasestr(at, name)) != NULL; at++)
            if (at[-1] == '|' && at[bytes] == '|') return &GPUS[i];
    }
    return NULL;
}
