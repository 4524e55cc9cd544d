/* Plug-ins that break the contract, each in one way: chosen by -DBROKEN=... For the tests of the checks. */
#include <stdio.h>
#include <stdlib.h>

#include <pagesim/plugin.h>

enum { FACTS_SHORT = 1, BLOCK_TWICE, REFUSAL_TAKES, KEEPS_A_BLOCK, OBTAINABLE_LIES };

/* Blocks of 16 from a stack, without sharing: simple, and sound but for the one fault. */
struct simple {
    struct kv_policy base;
    struct kv_geometry geometry;
    kv_block *stack, *tables;
    uint32_t *counts;
    uint64_t free, row;
};

static const struct kv_policy_ops simple_ops;

static struct kv_policy *simple_create(const struct kv_geometry *g, const struct kv_value *values, const struct kv_observer *observer,
                                       char *why, size_t why_bytes)
{
    (void)values, (void)observer;
    struct simple *s = calloc(1, sizeof *s);
    uint64_t block_bytes = g->bytes_per_token * g->block_tokens, blocks = g->pool_bytes / block_bytes;
    if (!s) exit(1);
    if (blocks < 2) {
        snprintf(why, why_bytes, "too small");
        return NULL;
    }
    s->geometry = *g;
    s->row = g->max_seq_tokens / g->block_tokens + 2;
    s->stack = calloc(blocks, sizeof *s->stack);
    s->tables = calloc(g->max_seqs * s->row, sizeof *s->tables);
    s->counts = calloc(g->max_seqs, sizeof *s->counts);
    for (kv_block b = 1; b < blocks; b++) s->stack[s->free++] = b;
    s->base = (struct kv_policy){.ops = &simple_ops, .unit_bytes = block_bytes, .total_units = blocks, .usable_units = blocks - 1,
                                 .block_tokens = g->block_tokens};
    return &s->base;
}

static void simple_destroy(struct kv_policy *policy)
{
    struct simple *s = (struct simple *)policy;
    free(s->stack);
    free(s->tables);
    free(s->counts);
    free(s);
}

static enum kv_status grow(struct simple *s, const struct kv_ask *ask, struct kv_taken *taken)
{
    uint32_t *count = &s->counts[ask->seqs[0].index];
    uint64_t want = kv_blocks_for_tokens(ask->slots_tokens > ask->whole_tokens ? ask->slots_tokens : ask->whole_tokens, s->base.block_tokens);
    uint64_t end = kv_blocks_for_tokens(ask->slots_tokens, s->base.block_tokens);
    taken->ask_units = taken->need_units = want > *count ? want - *count : 0;
    if (want > s->base.usable_units) return KV_NEVER_FITS;
    bool refused = taken->ask_units > s->free;
    if (refused && BROKEN != REFUSAL_TAKES) return KV_NO_SPACE;
    taken->ask_units = taken->need_units = end > *count ? end - *count : 0;
    kv_block *table = s->tables + ask->seqs[0].index * s->row;
    while (*count < end && s->free > 0) table[(*count)++] = s->stack[--s->free];
    if (BROKEN == BLOCK_TWICE && *count > 3) table[1] = table[0];
    return refused ? KV_NO_SPACE : KV_OK;
}

static enum kv_status simple_admit(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken)
{
    return grow((struct simple *)policy, ask, taken);
}

static enum kv_status simple_extend(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken)
{
    enum kv_status status = grow((struct simple *)policy, ask, taken);
    return status == KV_NEVER_FITS ? KV_NO_SPACE : status;
}

static void simple_fork(struct kv_policy *p, kv_seq parent, const kv_seq *children, uint32_t count, uint64_t tokens)
{
    (void)p, (void)parent, (void)children, (void)count, (void)tokens;
}

static void simple_release(struct kv_policy *policy, const kv_seq *seqs, uint32_t count)
{
    struct simple *s = (struct simple *)policy;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t *n = &s->counts[seqs[k].index];
        while (*n > (BROKEN == KEEPS_A_BLOCK)) s->stack[s->free++] = s->tables[seqs[k].index * s->row + --*n];
    }
}

static void simple_facts(const struct kv_policy *policy, struct kv_facts *f)
{
    const struct simple *s = (const struct simple *)policy;
    uint64_t held = policy->usable_units - s->free;
    *f = (struct kv_facts){.held_bytes = held * policy->unit_bytes, .referenced_bytes = held * policy->unit_bytes,
                           .free_bytes = s->free * policy->unit_bytes};
    f->overhead_bytes = s->geometry.pool_bytes - f->held_bytes - f->free_bytes;
    if (BROKEN == FACTS_SHORT && held > 2) f->free_bytes -= 1;
}

static void simple_seq_facts(const struct kv_policy *policy, kv_seq seq, struct kv_seq_facts *f)
{
    const struct simple *s = (const struct simple *)policy;
    *f = (struct kv_seq_facts){.end_token = (uint64_t)s->counts[seq.index] * policy->block_tokens, .tail_holders = 1};
}

static uint64_t simple_obtainable(struct kv_policy *policy, const struct kv_demand *demand)
{
    (void)demand;
    return BROKEN == OBTAINABLE_LIES ? 1 : ((struct simple *)policy)->free;
}

static uint64_t simple_units_for(const struct kv_policy *policy, const struct kv_request *r, uint64_t tokens, bool forked)
{
    (void)r, (void)forked;
    return kv_blocks_for_tokens(tokens, policy->block_tokens);
}

static uint64_t simple_largest_piece(const struct kv_policy *policy)
{
    return policy->usable_units;
}

static const kv_block *simple_table(const struct kv_policy *policy, kv_seq seq, uint32_t *count)
{
    const struct simple *s = (const struct simple *)policy;
    *count = s->counts[seq.index];
    return s->tables + seq.index * s->row;
}

static const struct kv_policy_ops simple_ops = {
    .abi_version = KV_ABI_VERSION, .name = "simple", .summary = "a stack of blocks", .source = "a test",
    .create = simple_create, .destroy = simple_destroy, .admit = simple_admit, .extend = simple_extend,
    .fork = simple_fork, .release = simple_release, .facts = simple_facts, .seq_facts = simple_seq_facts,
    .obtainable = simple_obtainable, .units_for = simple_units_for, .largest_piece = simple_largest_piece,
    .table = simple_table,
};
static const struct kv_policy_ops *const policies[] = {&simple_ops, NULL};

#ifdef OLD_ABI
const struct pagesim_plugin pagesim_plugin = {.plugin_abi = PAGESIM_PLUGIN_ABI, .policy_abi = 99, .eviction_abi = KV_EVICTION_ABI_VERSION, .policies = policies};
#else
const struct pagesim_plugin pagesim_plugin = {PAGESIM_PLUGIN_HEADER, .policies = policies};
#endif
