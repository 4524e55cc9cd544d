#include <assert.h>
#include <stdlib.h>

#include "allocator/paged.h"
#include "allocator/vm_area.h"

/* What a paging policy can be asked: facts, look-ups, tables, the walk. Nothing here changes it. */

void paged_facts(const struct kv_policy *policy, struct kv_facts *facts)
{
    const struct paged *p = (const struct paged *)policy;
    uint64_t unit = policy->unit_bytes;
    /* Of queue and ring, the one that is not there is all zero. */
    uint64_t cached = p->queue.cached_blocks, pinned = p->queue.order != NULL ? p->queue.order->pinned : 0;
    uint64_t queued = (uint64_t)p->queue.free_blocks + p->ring.free_blocks;
    *facts = (struct kv_facts){
        .held_bytes = (policy->usable_units - queued) * unit,
        .cached_bytes = (cached - pinned) * unit,
        .pinned_bytes = pinned * unit,
        .free_bytes = (queued - cached) * unit,
        .overhead_bytes = p->pool_bytes - policy->usable_units * unit,
        .referenced_bytes = p->referenced_blocks * unit,
    };
}

void paged_seq_facts(const struct kv_policy *policy, kv_seq seq, struct kv_seq_facts *facts)
{
    const struct paged *p = (const struct paged *)policy;
    const struct block_seq *s = block_table_seq(&p->table, seq);
    *facts = (struct kv_seq_facts){
        .first_token = (uint64_t)s->null_blocks * policy->block_tokens,
        .end_token = (uint64_t)s->blocks * policy->block_tokens,
        .tail_holders = 1,
    };
    if (s->filled_tokens == 0)
        return;
    uint64_t tail = (s->filled_tokens - 1) / policy->block_tokens;
    if (tail >= s->null_blocks && tail < s->blocks)
        facts->tail_holders = *paged_refs(p, block_table_row(&p->table, seq)[tail]);
}

uint64_t paged_obtainable(struct kv_policy *policy, const struct kv_demand *demand)
{
    const struct paged *p = (const struct paged *)policy;
    uint64_t free_blocks = paged_free_blocks(p);
    uint64_t kept_back = demand->kind == KV_ADMISSION && demand->something_runs ? p->watermark_blocks : 0;
    return free_blocks > kept_back ? free_blocks - kept_back : 0;
}

uint64_t paged_units_for(const struct kv_policy *policy, const struct kv_request *request,
                         uint64_t tokens, bool forked)
{
    const struct paged *p = (const struct paged *)policy;
    uint64_t end = kv_blocks_for_tokens(tokens, policy->block_tokens);
    /* The token before the last is the newest that was computed when the last one's slot is asked for. */
    uint64_t lead = tokens > 0 ? paged_window_blocks(p, tokens - 1) : 0;
    if (!forked || request->samples == 1 || tokens <= request->prompt_tokens)
        return end - lead;
    uint64_t full = request->prompt_tokens / policy->block_tokens;
    uint64_t shared = full > lead ? full - lead : 0;
    return shared + request->samples * (end - lead - shared);
}

uint64_t paged_largest_piece(const struct kv_policy *policy)
{
    return policy->usable_units;
}

const kv_block *paged_table(const struct kv_policy *policy, kv_seq seq, uint32_t *count)
{
    const struct paged *p = (const struct paged *)policy;
    *count = block_table_seq(&p->table, seq)->blocks;
    return block_table_row(&p->table, seq);
}

uint64_t paged_free_queue(const struct kv_policy *policy, kv_block *out, uint64_t cap)
{
    const struct paged *p = (const struct paged *)policy;
    return p->caches ? block_queue_list(&p->queue, out, cap) : block_ring_queue(&p->ring, out, cap);
}

void paged_cache_facts(const struct kv_policy *policy, struct kv_cache_facts *facts)
{
    const struct paged *p = (const struct paged *)policy;
    *facts = (struct kv_cache_facts){
        .keyed_blocks = p->queue.keyed_blocks,
        .distinct_keys = p->queue.distinct_keys,
        .duplicate_keys = p->queue.duplicate_keys,
        .evicted_blocks = p->queue.evicted_blocks,
        .generation = p->queue.generation,
    };
}

bool paged_keyed(const struct kv_policy *policy, kv_block block, uint64_t *key)
{
    const struct paged *p = (const struct paged *)policy;
    if (!p->caches || (p->queue.nodes[block].flags & BLOCK_KEYED) == 0)
        return false;
    if (key != NULL)
        *key = p->queue.nodes[block].key;
    return true;
}

/* --- look-up ------------------------------------------------------------------------------- */

/* With a window only the last need blocks before the end of a hit must be there: from the right, the first
 * run of that many decides. Without one, the hit is the run that starts at block 0. */
static void find_window_run(const struct paged *p, const uint64_t *keys, uint32_t count, struct kv_hit *hit)
{
    uint64_t need = kv_blocks_for_tokens(p->window_tokens - 1, p->base.block_tokens);
    uint64_t run = 0;
    for (uint32_t i = count; i-- > 0;) {
        p->hit_blocks[i] = block_index_find(&p->queue.index, keys[i]);
        run = p->hit_blocks[i] == KV_BLOCK_NONE ? 0 : run + 1;
        if (run > 0 && run >= need) { /* a window of one token still takes a block to end the scan */
            hit->first_block = i;
            break;
        }
    }
    hit->blocks = hit->first_block + (uint32_t)run;
    for (uint32_t i = 0; i < hit->first_block; i++)
        p->hit_blocks[i] = KV_BLOCK_NULL;
    for (uint32_t i = hit->first_block; i < hit->blocks; i++)
        hit->free_blocks += block_queue_is_obtainable(&p->queue, p->hit_blocks[i]);
}

void paged_lookup(struct kv_policy *policy, const uint64_t *keys, uint64_t tokens, struct kv_hit *hit)
{
    struct paged *p = (struct paged *)policy;
    uint64_t count = (tokens - 1) / policy->block_tokens;
    if (count > p->table.row_blocks_max)
        count = p->table.row_blocks_max;
    *hit = (struct kv_hit){ .ids = p->hit_blocks };
    if (p->window_tokens > 0)
        find_window_run(p, keys, (uint32_t)count, hit);
    else
        hit->blocks = block_queue_find_chain(&p->queue, keys, (uint32_t)count, p->hit_blocks,
                                             &hit->free_blocks);
    hit->tokens = (uint64_t)hit->blocks * policy->block_tokens;
}

/* --- time and waiting requests: of eviction orders that know them ---------------------------- */

bool paged_clock(struct kv_policy *policy, uint64_t now_ns)
{
    struct kv_eviction *order = ((struct paged *)policy)->queue.order;
    uint32_t before = order->pinned;
    order->ops->clock(order, now_ns);
    return order->pinned != before;
}

uint64_t paged_next_unpin(const struct kv_policy *policy)
{
    const struct kv_eviction *order = ((const struct paged *)policy)->queue.order;
    return order->ops->next_unpin(order);
}

bool paged_pinned(const struct kv_policy *policy, kv_block block)
{
    const struct paged *p = (const struct paged *)policy;
    return p->queue.nodes[block].refs == 0 && !block_queue_is_obtainable(&p->queue, block);
}

void paged_expect(struct kv_policy *policy, uint64_t key, bool expected)
{
    block_queue_expect(&((struct paged *)policy)->queue, key, expected);
}

/* --- the walk ------------------------------------------------------------------------------ */

/* Counts how often the tables name each block; the sum must be the reference count. */
static const char *count_references(const struct paged *p, uint32_t *named, uint64_t *referenced)
{
    for (uint32_t k = 0; k < p->table.max_seqs; k++) {
        kv_seq seq = { k };
        const struct block_seq *s = block_table_seq(&p->table, seq);
        const kv_block *row = block_table_row(&p->table, seq);
        if (s->null_blocks > s->blocks || s->keyed_blocks > s->blocks)
            return "paged: a sequence's counts contradict each other";
        for (uint32_t i = 0; i < s->blocks; i++) {
            if (row[i] > p->base.usable_units || (row[i] == KV_BLOCK_NULL) != (i < s->null_blocks))
                return "paged: a table names no block, or the null block in the wrong place";
            named[row[i]] += row[i] != KV_BLOCK_NULL;
        }
        *referenced += s->blocks - s->null_blocks;
    }
    return NULL;
}

static const char *check_references(const struct paged *p, uint32_t *named)
{
    uint64_t referenced = 0;
    const char *wrong = count_references(p, named, &referenced);
    if (wrong != NULL)
        return wrong;
    if (referenced != p->referenced_blocks)
        return "paged: referenced bytes differ from the tables";
    for (uint64_t block = 1; block <= p->base.usable_units; block++)
        if (named[block] != *paged_refs(p, (kv_block)block))
            return "paged: a reference count differs from the tables";
    return NULL;
}

const char *paged_check(const struct kv_policy *policy)
{
    const struct paged *p = (const struct paged *)policy;
    uint32_t *named = vm_area_map(policy->usable_units + 1, sizeof *named);
    if (named == NULL)
        return "paged: no memory for the check";
    const char *wrong = check_references(p, named);
    vm_area_unmap(named, policy->usable_units + 1, sizeof *named);
    if (wrong == NULL)
        wrong = p->caches ? block_queue_check(&p->queue) : block_ring_check(&p->ring);
    return wrong;
}
