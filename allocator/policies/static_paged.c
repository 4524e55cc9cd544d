#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocator/block_ring.h"
#include "allocator/block_table.h"
#include "allocator/reserve.h"

/* The reservations of `static` in blocks that lie anywhere: no holes, the same over-reservation. Blocks are
 * numbered 1 .. num_blocks; none of them is set aside. Every sample has blocks of its own. */

extern const struct kv_policy_ops kv_policy_static_paged_ops;

struct static_paged {
    struct kv_policy base;
    uint64_t pool_bytes;
    struct reserve reserve;
    struct block_table table;
    struct block_ring ring;
};

static const struct kv_option *const static_paged_options[] = {
    &reserve_option, &oracle_slack_option, NULL,
};

static const struct static_paged *as_static_paged(const struct kv_policy *policy)
{
    return (const struct static_paged *)policy;
}

static void static_paged_destroy(struct kv_policy *policy)
{
    struct static_paged *p = (struct static_paged *)policy;
    if (p->ring.blocks > 0)
        block_ring_release(&p->ring);
    block_table_release(&p->table);
    free(p);
}

static struct kv_policy *static_paged_create(const struct kv_geometry *geometry,
                                             const struct kv_value *values,
                                             const struct kv_observer *observer, char *why,
                                             size_t why_bytes)
{
    (void)observer;
    uint32_t blocks = block_count_for_pool(geometry, geometry->block_tokens, 0, why, why_bytes);
    if (blocks == 0)
        return NULL;
    struct static_paged *p = calloc(1, sizeof *p);
    if (p == NULL) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    p->base = (struct kv_policy){
        .ops = &kv_policy_static_paged_ops,
        .unit_bytes = geometry->bytes_per_token * geometry->block_tokens,
        .total_units = blocks,
        .usable_units = blocks,
        .block_tokens = geometry->block_tokens,
    };
    p->pool_bytes = geometry->pool_bytes;
    reserve_init(&p->reserve, geometry, values[0], values[1]);
    p->base.clairvoyant = reserve_is_clairvoyant(&p->reserve);
    if (!block_table_init(&p->table, geometry, geometry->block_tokens, why, why_bytes)) {
        static_paged_destroy(&p->base);
        return NULL;
    }
    if (!block_ring_init(&p->ring, blocks)) {
        snprintf(why, why_bytes, "pool of %" PRIu32 " blocks: out of memory", blocks);
        static_paged_destroy(&p->base);
        return NULL;
    }
    return &p->base;
}

static enum kv_status static_paged_admit(struct kv_policy *policy, const struct kv_ask *ask,
                                         struct kv_taken *taken)
{
    struct static_paged *p = (struct static_paged *)policy;
    uint64_t slots = reserve_tokens(&p->reserve, ask->request);
    assert(ask->slots_tokens <= slots);
    reserve_fill_taken(ask, slots, policy->block_tokens, taken);
    if (taken->ask_units > policy->usable_units)
        return KV_NEVER_FITS;
    if (taken->ask_units > p->ring.free_blocks)
        return KV_NO_SPACE;
    uint32_t each = (uint32_t)kv_blocks_for_tokens(slots, policy->block_tokens);
    for (uint32_t k = 0; k < ask->seq_count; k++) {
        struct block_seq *s = block_table_seq(&p->table, ask->seqs[k]);
        assert(s->blocks == 0);
        block_ring_take(&p->ring, block_table_row(&p->table, ask->seqs[k]), each);
        s->blocks = each;
    }
    taken->new_blocks = each;
    return KV_OK;
}

static uint64_t reserved_slots(const struct kv_policy *policy, kv_seq seq)
{
    uint64_t blocks = block_table_seq(&as_static_paged(policy)->table, seq)->blocks;
    return blocks * policy->block_tokens;
}

static enum kv_status static_paged_extend(struct kv_policy *policy, const struct kv_ask *ask,
                                          struct kv_taken *taken)
{
    (void)taken;
    for (uint32_t k = 0; k < ask->seq_count; k++)
        assert(ask->slots_tokens <= reserved_slots(policy, ask->seqs[k]));
    return KV_OK;
}

static void static_paged_fork(struct kv_policy *policy, kv_seq parent, const kv_seq *children,
                              uint32_t count, uint64_t filled_tokens)
{
    assert(filled_tokens <= reserved_slots(policy, parent));
    for (uint32_t i = 0; i < count; i++)
        assert(filled_tokens <= reserved_slots(policy, children[i]));
}

static void static_paged_release(struct kv_policy *policy, const kv_seq *seqs, uint32_t count)
{
    struct static_paged *p = (struct static_paged *)policy;
    for (uint32_t k = 0; k < count; k++) {
        struct block_seq *s = block_table_seq(&p->table, seqs[k]);
        block_ring_give(&p->ring, block_table_row(&p->table, seqs[k]), s->blocks);
        *s = (struct block_seq){ 0 };
    }
}

static void static_paged_facts(const struct kv_policy *policy, struct kv_facts *facts)
{
    const struct static_paged *p = as_static_paged(policy);
    uint64_t held = policy->usable_units - p->ring.free_blocks;
    *facts = (struct kv_facts){
        .held_bytes = held * policy->unit_bytes,
        .free_bytes = p->ring.free_blocks * policy->unit_bytes,
        .overhead_bytes = p->pool_bytes - policy->total_units * policy->unit_bytes,
        .referenced_bytes = held * policy->unit_bytes,
    };
}

static void static_paged_seq_facts(const struct kv_policy *policy, kv_seq seq, struct kv_seq_facts *facts)
{
    *facts = (struct kv_seq_facts){ .end_token = reserved_slots(policy, seq), .tail_holders = 1 };
}

static uint64_t static_paged_obtainable(struct kv_policy *policy, const struct kv_demand *demand)
{
    (void)demand;
    return as_static_paged(policy)->ring.free_blocks;
}

static uint64_t static_paged_units_for(const struct kv_policy *policy, const struct kv_request *request,
                                       uint64_t tokens, bool forked)
{
    (void)tokens, (void)forked; /* everything is taken at admission */
    uint64_t slots = reserve_tokens(&as_static_paged(policy)->reserve, request);
    return request->samples * kv_blocks_for_tokens(slots, policy->block_tokens);
}

static uint64_t static_paged_largest_piece(const struct kv_policy *policy)
{
    return policy->usable_units;
}

static const kv_block *static_paged_table(const struct kv_policy *policy, kv_seq seq, uint32_t *count)
{
    const struct static_paged *p = as_static_paged(policy);
    *count = block_table_seq(&p->table, seq)->blocks;
    return block_table_row(&p->table, seq);
}

static uint64_t static_paged_free_queue(const struct kv_policy *policy, kv_block *out, uint64_t cap)
{
    return block_ring_queue(&as_static_paged(policy)->ring, out, cap);
}

static const char *static_paged_check(const struct kv_policy *policy)
{
    const struct static_paged *p = as_static_paged(policy);
    uint64_t held = 0;
    for (uint32_t k = 0; k < p->table.max_seqs; k++) {
        const kv_block *row = block_table_row(&p->table, (kv_seq){ k });
        uint32_t blocks = p->table.seqs[k].blocks;
        held += blocks;
        for (uint32_t i = 0; i < blocks; i++)
            if (row[i] == 0 || row[i] > policy->usable_units || p->ring.refs[row[i]] != 1)
                return "static-paged: a table names a block that is not held exactly once";
    }
    if (held + p->ring.free_blocks != policy->usable_units)
        return "static-paged: held and free blocks do not add up to the pool";
    return block_ring_check(&p->ring);
}

const struct kv_policy_ops kv_policy_static_paged_ops = {
    .abi_version = KV_ABI_VERSION,
    .flags = KV_RESERVES,
    .name = "static-paged",
    .summary = "the reservations of static, in blocks anywhere",
    .source = "TGI's block allocator; Sarathi's orca_block_space_manager",
    .description = "The reservations of static, but in blocks anywhere in the pool: no hole can be too small, what is "
                   "reserved still is. It shows how much of static's waste is contiguity and how much reservation. O(1) "
                   "a block.",
    .options = static_paged_options,
    .create = static_paged_create,
    .destroy = static_paged_destroy,
    .admit = static_paged_admit,
    .extend = static_paged_extend,
    .fork = static_paged_fork,
    .release = static_paged_release,
    .facts = static_paged_facts,
    .seq_facts = static_paged_seq_facts,
    .obtainable = static_paged_obtainable,
    .units_for = static_paged_units_for,
    .largest_piece = static_paged_largest_piece,
    .table = static_paged_table,
    .free_queue = static_paged_free_queue,
    .check = static_paged_check,
};
