/* The pool unit by unit at one moment: who holds it, and what its slots are used for. For pictures.
 *
 * Units are blocks, or token slots under a contiguous policy. The states of all units add up to those of the accounting
 * (but for `stranded`, which is a matter of a demand, not of a place: here it is free). */
#ifndef PAGESIM_MEMORY_MAP_H
#define PAGESIM_MEMORY_MAP_H

#include "sim/engine_core.h"

enum unit_kind { UNIT_FREE, UNIT_CACHED, UNIT_HELD, UNIT_OVERHEAD, UNIT_PINNED, UNIT_KINDS };
extern const char *const unit_kind_names[UNIT_KINDS];

struct map_unit {
    uint8_t kind;     /* enum unit_kind */
    uint32_t holders; /* sequences that hold it */
    uint64_t index;   /* of the first of its requests in the running order; if held */
    /* Slots by state, as docs/metrics.md defines them. */
    uint32_t live, dead, reserved, internal, rounding;
};

struct memory_map {
    uint64_t count;          /* units of the pool, the null block included */
    uint64_t first_number;   /* what the policy calls units[0]: block 0 or 1, or slot 0 */
    uint32_t unit_tokens;    /* slots of a unit */
    struct map_unit *units;  /* [count] */
    uint8_t *marks;          /* of each slot: enum mark of accounting_check.h, or MARK_ROUNDING; 0: nobody holds it */
    kv_block *queue;         /* blocks: the free queue, next to be taken first */
    uint64_t queue_count;
};

/* Beside those of accounting_check.h: added by the allocator behind what was asked. */
#define MARK_ROUNDING 16

/* Pools of more token slots are refused. */
#define MEMORY_MAP_SLOTS_MAX ((uint64_t)1 << 27)

/* Room for the engine's pool. -1 with err. Release it in either case. */
int memory_map_init(struct memory_map *map, const struct engine *engine, struct err *err);
void memory_map_release(struct memory_map *map);
/* Fills in the present state: between steps, or after a scheduling pass. O(slots of the pool). */
void memory_map_take(struct memory_map *map, struct engine *engine);

#endif
