#include "allocator/paged.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocator/vm_area.h"

static uint64_t minus_or_zero(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t blocks_for(const struct paged *p, uint64_t tokens)
{
    return kv_blocks_for_tokens(tokens, p->base.block_tokens);
}

/* --- options ------------------------------------------------------------------------------- */

static const struct kv_option evict_option = {
    .name = "evict",
    .choices = kv_eviction_choices,
    .default_text = "lru",
    .help = "which cached block goes first: lru is vLLM's free queue",
};

const struct kv_option *const paged_cache_options[] = { &evict_option, NULL };

struct paged_config paged_cache_config(uint32_t block_tokens, bool null_block, const struct kv_value *values)
{
    return (struct paged_config){
        .block_tokens = block_tokens,
        .caches = true,
        .null_block = null_block,
        .evict = kv_eviction_choice(values[0].count),
        .evict_values = values + 1,
    };
}

/* --- creation ------------------------------------------------------------------------------ */

static bool make_pool(struct paged *p, const struct kv_geometry *geometry,
                      const struct paged_config *config, const struct kv_observer *observer, char *why,
                      size_t why_bytes)
{
    uint32_t usable = (uint32_t)p->base.usable_units;
    bool made;
    if (!p->caches) {
        made = block_ring_init(&p->ring, usable);
    } else if (usable > BLOCK_INDEX_BLOCKS_MAX) {
        snprintf(why, why_bytes, "pool of %" PRIu32 " blocks: expected at most %d with prefix caching",
                 usable, BLOCK_INDEX_BLOCKS_MAX);
        return false;
    } else {
        made = block_queue_init(&p->queue, usable, geometry->rules == KV_RULES_2026_08, observer);
        if (made && config->evict != NULL)
            made = block_queue_use_order(&p->queue, config->evict, config->evict_values);
        p->hit_blocks = vm_area_map(p->table.row_blocks_max, sizeof *p->hit_blocks);
        made = made && p->hit_blocks != NULL;
    }
    p->copies = calloc(geometry->max_seqs, sizeof *p->copies);
    if (made && p->copies != NULL)
        return true;
    snprintf(why, why_bytes, "pool of %" PRIu32 " blocks: out of memory", usable);
    return false;
}

struct kv_policy *paged_create(const struct kv_policy_ops *ops, const struct kv_geometry *geometry,
                               const struct paged_config *config, const struct kv_observer *observer,
                               char *why, size_t why_bytes)
{
    uint32_t blocks = block_count_for_pool(geometry, config->block_tokens, config->null_block, why,
                                           why_bytes);
    bool foresees = config->caches && config->evict != NULL && (config->evict->flags & KV_EVICTION_CLAIRVOYANT) != 0;
    if (blocks == 0)
        return NULL;
    struct paged *p = calloc(1, sizeof *p);
    if (p == NULL) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    p->base = (struct kv_policy){
        .ops = ops,
        .unit_bytes = geometry->bytes_per_token * config->block_tokens,
        .total_units = blocks,
        .usable_units = blocks - config->null_block,
        .block_tokens = config->block_tokens,
        .clairvoyant = (ops->flags & KV_CLAIRVOYANT) != 0 || foresees,
        .foresees = foresees,
        .keys_may_wait = config->caches && (config->evict == NULL || (config->evict->flags & KV_EVICTION_LATE_KEYS) != 0),
        .tells_kinds = config->caches && config->evict != NULL && config->evict->begin != NULL,
    };
    p->caches = config->caches;
    p->pool_bytes = geometry->pool_bytes;
    p->window_tokens = geometry->window_tokens;
    if (observer != NULL)
        p->observer = *observer;
    /* The rules of 2026-04 know no watermark. */
    if (geometry->rules == KV_RULES_2026_08 && geometry->watermark > 0)
        p->watermark_blocks = geometry->watermark >= 1 ? blocks
                                                       : (uint32_t)(geometry->watermark * blocks);
    if (!block_table_init(&p->table, geometry, config->block_tokens, why, why_bytes) ||
        !make_pool(p, geometry, config, observer, why, why_bytes)) {
        paged_destroy(&p->base);
        return NULL;
    }
    const struct kv_eviction *order = p->queue.order;
    p->base.keeps_time = order != NULL && order->ops->clock != NULL;
    p->base.queue_requests = order != NULL ? order->queue_requests : 0;
    return &p->base;
}

void paged_destroy(struct kv_policy *policy)
{
    struct paged *p = (struct paged *)policy;
    if (p == NULL)
        return;
    if (p->ring.blocks > 0)
        block_ring_release(&p->ring);
    if (p->queue.blocks > 0)
        block_queue_release(&p->queue);
    vm_area_unmap(p->hit_blocks, p->table.row_blocks_max, sizeof *p->hit_blocks);
    block_table_release(&p->table);
    free(p->copies);
    free(p);
}

/* --- the pool, whichever it is ------------------------------------------------------------- */

static void pool_take(struct paged *p, kv_block *out, uint32_t count)
{
    if (p->caches)
        block_queue_take(&p->queue, out, count);
    else
        block_ring_take(&p->ring, out, count);
}

static void pool_give(struct paged *p, const kv_block *blocks, uint32_t count)
{
    if (p->caches)
        block_queue_give(&p->queue, blocks, count);
    else
        block_ring_give(&p->ring, blocks, count);
}

static uint32_t first_unkeyed(const struct block_seq *s)
{
    return s->keyed_blocks > s->null_blocks ? s->keyed_blocks : s->null_blocks;
}

/* Gives keys to the blocks from seq->keyed_blocks on that are wholly below keyed_tokens. */
static void set_keys(struct paged *p, kv_seq seq, const uint64_t *keys, uint64_t keyed_tokens)
{
    struct block_seq *s = block_table_seq(&p->table, seq);
    const kv_block *row = block_table_row(&p->table, seq);
    uint64_t end = keyed_tokens / p->base.block_tokens;
    assert(end <= s->blocks);
    uint32_t i = first_unkeyed(s);
    if (i < end)
        block_queue_set_keys(&p->queue, row + i, keys + i, (uint32_t)end - i, i);
    if (s->keyed_blocks < end)
        s->keyed_blocks = (uint32_t)end;
}

/* What a sequence is about to compute and to key anew makes a cached copy superfluous: orders that know the future let it go
 * first. */
static void give_up_copies(struct paged *p, const uint64_t *keys, uint64_t from, uint64_t keyed_tokens)
{
    uint64_t end = keyed_tokens / p->base.block_tokens;
    if (from < end)
        block_queue_foresee(&p->queue, keys + from, end - from, false);
}

void paged_foreseen(struct kv_policy *policy, const uint64_t *keys, uint64_t count)
{
    struct paged *p = (struct paged *)policy;
    if (policy->foresees)
        block_queue_foresee(&p->queue, keys, count, true);
}

/* Orders that tell requests apart learn whose hits and keys follow. */
static void tell_kind(struct paged *p, const struct kv_request *request)
{
    struct kv_eviction *order = p->caches ? p->queue.order : NULL;
    if (order != NULL && order->ops->begin != NULL)
        order->ops->begin(order, (struct kv_kind){ .priority = request->priority, .category = request->category });
}

/* --- admission ----------------------------------------------------------------------------- */

/* What an admission would do to the table: [0, base) comes from the hit or is null, the rest is new. */
struct admission {
    uint64_t lead;      /* null blocks that the window puts at the front */
    uint64_t skip;      /* hit blocks before it are null */
    uint64_t hit;       /* entries that the hit covers */
    uint64_t base;      /* entries that need no new block */
    uint64_t end;       /* entries wanted for the slots of the ask */
    uint64_t whole_end; /* entries that the whole-prompt check counts, 0: no check */
    uint64_t free_hits; /* hit blocks that leave the free queue */
};

/* Counted anew: a remembered look-up knows the blocks, not who has held them since. */
static uint64_t count_free_hits(const struct paged *p, const struct kv_hit *hit, uint64_t skip)
{
    uint64_t count = 0;
    for (uint64_t i = skip; i < hit->blocks; i++)
        count += block_queue_is_obtainable(&p->queue, hit->ids[i]);
    return count;
}

static struct admission plan_admission(const struct paged *p, const struct kv_ask *ask)
{
    struct admission plan = { .lead = paged_window_blocks(p, ask->computed_tokens) };
    plan.skip = plan.lead;
    if (ask->hit != NULL && ask->hit->blocks > 0) {
        plan.hit = ask->hit->blocks;
        if (ask->hit->first_block > plan.skip)
            plan.skip = ask->hit->first_block;
        plan.free_hits = count_free_hits(p, ask->hit, plan.skip);
    }
    plan.base = plan.hit > plan.lead ? plan.hit : plan.lead;
    plan.end = blocks_for(p, ask->slots_tokens);
    if (ask->whole_tokens > 0) {
        plan.whole_end = blocks_for(p, ask->whole_tokens);
        if (ask->whole_blocks_max > 0)
            plan.whole_end = smaller(plan.whole_end, ask->whole_blocks_max);
    }
    return plan;
}

/* The ask when the table should reach `end`; need is a part of it. */
static void fill_taken(const struct paged *p, const struct kv_ask *ask, const struct admission *plan,
                       uint64_t end, struct kv_taken *taken)
{
    uint64_t fresh = minus_or_zero(end, plan->base);
    uint64_t need = minus_or_zero(blocks_for(p, ask->request->final_tokens), plan->base);
    taken->ask_units = fresh + plan->free_hits;
    taken->need_units = smaller(need, fresh) + plan->free_hits;
}

static void fill_table(struct paged *p, const struct kv_ask *ask, const struct admission *plan)
{
    kv_seq seq = ask->seqs[0];
    kv_block *row = block_table_row(&p->table, seq);
    struct block_seq *s = block_table_seq(&p->table, seq);
    uint32_t base = (uint32_t)plan->base, end = (uint32_t)plan->end;
    for (uint32_t i = 0; i < base; i++) {
        row[i] = KV_BLOCK_NULL;
        if (i >= plan->skip && i < plan->hit) {
            row[i] = ask->hit->ids[i];
            block_queue_hold(&p->queue, row[i]);
        }
    }
    if (end > base)
        pool_take(p, row + base, end - base);
    s->blocks = end > base ? end : base;
    s->null_blocks = (uint32_t)smaller(plan->skip, s->blocks);
    s->keyed_blocks = base;
    s->filled_tokens = ask->filled_tokens;
    p->referenced_blocks += s->blocks - s->null_blocks;
}

enum kv_status paged_admit(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken)
{
    struct paged *p = (struct paged *)policy;
    assert(block_table_seq(&p->table, ask->seqs[0])->blocks == 0);
    struct admission plan = plan_admission(p, ask);
    assert(plan.end <= p->table.row_blocks_max);

    /* Hits do not help here: they too are blocks of this pool, and distinct ones. */
    uint64_t widest = plan.whole_end > plan.end ? plan.whole_end : plan.end;
    if (minus_or_zero(widest, plan.lead) > policy->usable_units) {
        struct admission alone = { .base = plan.lead };
        fill_taken(p, ask, &alone, widest, taken);
        return KV_NEVER_FITS;
    }
    uint64_t kept_back = ask->something_runs ? p->watermark_blocks : 0;
    uint64_t obtainable = minus_or_zero(paged_free_blocks(p), kept_back);
    if (plan.whole_end > 0) {
        fill_taken(p, ask, &plan, plan.whole_end, taken);
        if (taken->ask_units > obtainable)
            return KV_NO_SPACE;
    }
    fill_taken(p, ask, &plan, plan.end, taken);
    if (taken->ask_units > obtainable)
        return KV_NO_SPACE;
    taken->new_blocks = (uint32_t)minus_or_zero(plan.end, plan.base);
    tell_kind(p, ask->request);
    if (policy->foresees && ask->keyed_tokens > 0)
        give_up_copies(p, ask->keys[0], plan.base, ask->keyed_tokens);
    fill_table(p, ask, &plan);
    if (p->caches && ask->keyed_tokens > 0)
        set_keys(p, ask->seqs[0], ask->keys[0], ask->keyed_tokens);
    return KV_OK;
}

/* --- growth -------------------------------------------------------------------------------- */

/* The only block that may be shared and written by this call is the one with the first token to be written:
 * a fork shares filled blocks, and full ones are never written again. */
static bool written_block(const struct paged *p, const struct kv_ask *ask, kv_seq seq, uint32_t *index)
{
    if (ask->filled_tokens == ask->computed_tokens)
        return false;
    *index = (uint32_t)(ask->computed_tokens / p->base.block_tokens);
    return *index < block_table_seq(&p->table, seq)->blocks;
}

/* Drops the references of those that must copy, in order, so that the last holder finds itself alone. */
static uint32_t begin_copies(struct paged *p, const struct kv_ask *ask)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < ask->seq_count; k++) {
        uint32_t i;
        p->copies[k] = false;
        if (!written_block(p, ask, ask->seqs[k], &i))
            continue;
        uint32_t *refs = paged_refs(p, block_table_row(&p->table, ask->seqs[k])[i]);
        if (*refs > 1) {
            (*refs)--;
            p->copies[k] = true;
            count++;
        }
    }
    return count;
}

static void undo_copies(struct paged *p, const struct kv_ask *ask)
{
    for (uint32_t k = 0; k < ask->seq_count; k++) {
        uint32_t i;
        if (p->copies[k] && written_block(p, ask, ask->seqs[k], &i))
            (*paged_refs(p, block_table_row(&p->table, ask->seqs[k])[i]))++;
    }
}

static void copy_block(struct paged *p, const struct kv_ask *ask, kv_seq seq)
{
    uint32_t i = 0;
    written_block(p, ask, seq, &i);
    kv_block *entry = &block_table_row(&p->table, seq)[i];
    kv_block from = *entry;
    pool_take(p, entry, 1);
    if (p->observer.copied != NULL)
        p->observer.copied(p->observer.context, from, *entry);
}

static void grow_sequence(struct paged *p, const struct kv_ask *ask, uint32_t k, uint64_t end)
{
    kv_seq seq = ask->seqs[k];
    struct block_seq *s = block_table_seq(&p->table, seq);
    if (p->copies[k])
        copy_block(p, ask, seq);
    if (end > s->blocks) {
        pool_take(p, block_table_row(&p->table, seq) + s->blocks, (uint32_t)end - s->blocks);
        p->referenced_blocks += end - s->blocks;
        s->blocks = (uint32_t)end;
    }
    s->filled_tokens = ask->filled_tokens;
    if (p->caches && ask->keyed_tokens > 0)
        set_keys(p, seq, ask->keys[k], ask->keyed_tokens);
}

enum kv_status paged_extend(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken)
{
    struct paged *p = (struct paged *)policy;
    uint64_t end = blocks_for(p, ask->slots_tokens);
    uint64_t final_end = blocks_for(p, ask->request->final_tokens);
    assert(end <= p->table.row_blocks_max);
    uint64_t copies = begin_copies(p, ask);
    taken->ask_units = taken->need_units = copies;
    for (uint32_t k = 0; k < ask->seq_count; k++) {
        uint64_t have = block_table_seq(&p->table, ask->seqs[k])->blocks;
        taken->ask_units += minus_or_zero(end, have);
        taken->need_units += minus_or_zero(smaller(end, final_end), have);
    }
    if (taken->ask_units > paged_free_blocks(p)) {
        undo_copies(p, ask);
        return KV_NO_SPACE;
    }
    taken->new_blocks = (uint32_t)minus_or_zero(end, block_table_seq(&p->table, ask->seqs[0])->blocks);
    tell_kind(p, ask->request);
    for (uint32_t k = 0; policy->foresees && k < ask->seq_count && ask->keyed_tokens > 0; k++)
        give_up_copies(p, ask->keys[k], first_unkeyed(block_table_seq(&p->table, ask->seqs[k])), ask->keyed_tokens);
    for (uint32_t k = 0; k < ask->seq_count; k++)
        grow_sequence(p, ask, k, end);
    return KV_OK;
}

/* --- sharing and giving back --------------------------------------------------------------- */

static void fork_child(struct paged *p, kv_seq parent, kv_seq child, uint32_t shared, uint64_t filled_tokens)
{
    const struct block_seq *from = block_table_seq(&p->table, parent);
    const kv_block *parent_row = block_table_row(&p->table, parent);
    kv_block *child_row = block_table_row(&p->table, child);
    struct block_seq *to = block_table_seq(&p->table, child);
    assert(to->blocks == 0);
    for (uint32_t i = 0; i < shared; i++) {
        child_row[i] = parent_row[i];
        if (i >= from->null_blocks)
            (*paged_refs(p, parent_row[i]))++;
    }
    *to = (struct block_seq){
        .blocks = shared,
        .null_blocks = (uint32_t)smaller(from->null_blocks, shared),
        .keyed_blocks = (uint32_t)smaller(from->keyed_blocks, shared),
        .filled_tokens = filled_tokens,
    };
    p->referenced_blocks += to->blocks - to->null_blocks;
}

/* Look-ahead blocks beyond the filled ones hold nothing and stay the parent's. */
void paged_fork(struct kv_policy *policy, kv_seq parent, const kv_seq *children, uint32_t count,
                uint64_t filled_tokens)
{
    struct paged *p = (struct paged *)policy;
    uint64_t shared = blocks_for(p, filled_tokens);
    assert(shared <= block_table_seq(&p->table, parent)->blocks);
    for (uint32_t i = 0; i < count; i++)
        fork_child(p, parent, children[i], (uint32_t)shared, filled_tokens);
}

void paged_trim(struct kv_policy *policy, kv_seq seq, uint64_t first_token)
{
    struct paged *p = (struct paged *)policy;
    struct block_seq *s = block_table_seq(&p->table, seq);
    kv_block *row = block_table_row(&p->table, seq);
    uint32_t end = (uint32_t)smaller(first_token / policy->block_tokens, s->blocks);
    if (end <= s->null_blocks)
        return;
    pool_give(p, row + s->null_blocks, end - s->null_blocks);
    p->referenced_blocks -= end - s->null_blocks;
    for (; s->null_blocks < end; s->null_blocks++)
        row[s->null_blocks] = KV_BLOCK_NULL;
}

void paged_release(struct kv_policy *policy, const kv_seq *seqs, uint32_t count)
{
    struct paged *p = (struct paged *)policy;
    for (uint32_t k = 0; k < count; k++) {
        struct block_seq *s = block_table_seq(&p->table, seqs[k]);
        /* From the last to the first, so that the tail of a prompt is evicted before its head. */
        pool_give(p, block_table_row(&p->table, seqs[k]) + s->null_blocks, s->blocks - s->null_blocks);
        p->referenced_blocks -= s->blocks - s->null_blocks;
        *s = (struct block_seq){ 0 };
    }
}
