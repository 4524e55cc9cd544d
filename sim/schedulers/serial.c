/* Requests strictly one after another, each in zero time: for studies of the cache alone. Arrival times,
 * token budgets and limits on sequences play no part (engine_serial.c). */
#include "sim/engine_core.h"

const struct scheduler scheduler_serial = {
    .name = "serial",
    .summary = "one request at a time, in zero time: for cache studies",
    .source = "the paged pool of the published hit rates (tests/golden/hit-rates)",
    .description = "Requests run strictly one after another and take no time: each is admitted, has its full length, and "
                   "ends. For hit rates and memory of single requests.",
    .serial = true,
    .default_watermark = 0,
};
