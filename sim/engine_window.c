/* Sliding windows and sharing together. A sequence alone knows how many of its slots lie before its window; but
 * in a block that several hold, a slot is dead only when it lies before the windows of all of them, and then
 * once. So where blocks are shared, the tables are walked: O(table entries) a call, windows only. */
#include <assert.h>
#include <stdlib.h>

#include "sim/engine_core.h"

/* Adds what one holder says: slots of each block that lie before its window. */
static void note_table(struct engine *e, kv_seq seq, uint64_t dead_end)
{
    uint32_t count, size = e->policy->block_tokens;
    const kv_block *table = e->policy->ops->table(e->policy, seq, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t begin = (uint64_t)i * size;
        uint64_t dead = dead_end > begin ? dead_end - begin : 0;
        uint32_t *least = &e->dead_of_block[table[i]];
        if (dead > size) dead = size;
        if (dead < *least) *least = (uint32_t)dead;
    }
}

/* Takes each block's number once and leaves the array as it was. */
static uint64_t collect_table(struct engine *e, kv_seq seq)
{
    uint32_t count;
    uint64_t sum = 0;
    const kv_block *table = e->policy->ops->table(e->policy, seq, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *least = &e->dead_of_block[table[i]];
        if (table[i] != 0 && *least != UINT32_MAX) sum += *least;
        *least = UINT32_MAX;
    }
    return sum;
}

static uint64_t count_dead(void *context)
{
    struct engine *e = context;
    uint64_t window = e->config.geometry.window_tokens, sum = 0;
    for (const struct sim_request *r = e->running.head; r; r = r->next) {
        uint64_t dead_end = r->computed + 1 > window ? r->computed + 1 - window : 0;
        if (dead_end > r->filled) dead_end = r->filled;
        for (uint32_t s = 0; s < request_width(r); s++) note_table(e, r->seqs[s], dead_end);
    }
    for (const struct sim_request *r = e->running.head; r; r = r->next) {
        for (uint32_t s = 0; s < request_width(r); s++) sum += collect_table(e, r->seqs[s]);
    }
    return sum;
}

int engine_window_init(struct engine *e)
{
    if (e->config.geometry.window_tokens == 0 || !e->policy->ops->table) return 0;
    size_t blocks = (size_t)e->policy->total_units + 1;
    e->dead_of_block = malloc(blocks * sizeof *e->dead_of_block);
    if (!e->dead_of_block) return -1;
    for (size_t i = 0; i < blocks; i++) e->dead_of_block[i] = UINT32_MAX;
    e->accounting.count_dead = count_dead;
    e->accounting.count_dead_context = e;
    return 0;
}
