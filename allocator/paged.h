/* Paging on demand: what `dynamic`, `prefix` and `ideal` have in common. A sequence's blocks are taken as its
 * tokens come, lie anywhere, are shared by reference counts, and are copied before a write when another
 * sequence holds them too. The rules are those of vLLM v1 (rule sets of kv_policy.h); copy-on-write and
 * fork are those of the PagedAttention paper, section 4.4.
 *
 * Without caching the free blocks are a ring, with caching a queue with keys in it. Under lru that queue doubles as the
 * eviction order, as in vLLM; other orders stand beside it, and there blocks without a key are always taken first. */
#ifndef PAGESIM_PAGED_H
#define PAGESIM_PAGED_H

#include "allocator/block_queue.h"
#include "allocator/block_ring.h"
#include "allocator/block_table.h"
#include "allocator/kv_policy.h"

struct paged_config {
    uint32_t block_tokens;
    bool caches;
    bool null_block; /* one block of the pool is set aside and never handed out */
    const struct kv_eviction_ops *evict; /* order of cached blocks; NULL: the free queue */
    const struct kv_value *evict_values; /* of its options */
};

struct paged {
    struct kv_policy base;
    bool caches;
    uint32_t watermark_blocks; /* kept back at admission only; running sequences may use them */
    uint64_t pool_bytes;
    uint64_t window_tokens;
    uint64_t referenced_blocks; /* sum over the sequences of the blocks in their tables */
    struct block_table table;
    struct block_ring ring;   /* without caching */
    struct block_queue queue; /* with caching */
    kv_block *hit_blocks;     /* [row_blocks_max] answer of the last look-up */
    bool *copies;             /* [max_seqs] which sequences of a call must copy; scratch */
    struct kv_observer observer;
};

/* NULL and one line in why on failure. The functions below are entries of a policy's table. */
struct kv_policy *paged_create(const struct kv_policy_ops *ops, const struct kv_geometry *geometry,
                               const struct paged_config *config, const struct kv_observer *observer,
                               char *why, size_t why_bytes);
void paged_destroy(struct kv_policy *policy);
enum kv_status paged_admit(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken);
enum kv_status paged_extend(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken);
void paged_fork(struct kv_policy *policy, kv_seq parent, const kv_seq *children, uint32_t count,
                uint64_t filled_tokens);
void paged_trim(struct kv_policy *policy, kv_seq seq, uint64_t first_token);
void paged_release(struct kv_policy *policy, const kv_seq *seqs, uint32_t count);

/* paged_facts.c */
void paged_facts(const struct kv_policy *policy, struct kv_facts *facts);
void paged_seq_facts(const struct kv_policy *policy, kv_seq seq, struct kv_seq_facts *facts);
uint64_t paged_obtainable(struct kv_policy *policy, const struct kv_demand *demand);
uint64_t paged_units_for(const struct kv_policy *policy, const struct kv_request *request,
                         uint64_t tokens, bool forked);
uint64_t paged_largest_piece(const struct kv_policy *policy);
const kv_block *paged_table(const struct kv_policy *policy, kv_seq seq, uint32_t *count);
uint64_t paged_free_queue(const struct kv_policy *policy, kv_block *out, uint64_t cap);
const char *paged_check(const struct kv_policy *policy);

/* With caching only. The options are those of an eviction order's choice; paged_cache_config reads their values. */
extern const struct kv_option *const paged_cache_options[];
struct paged_config paged_cache_config(uint32_t block_tokens, bool null_block, const struct kv_value *values);
bool paged_pinned(const struct kv_policy *policy, kv_block block);
bool paged_clock(struct kv_policy *policy, uint64_t now_ns);
uint64_t paged_next_unpin(const struct kv_policy *policy);
void paged_expect(struct kv_policy *policy, uint64_t key, bool expected);
void paged_lookup(struct kv_policy *policy, const uint64_t *keys, uint64_t tokens, struct kv_hit *hit);
void paged_foreseen(struct kv_policy *policy, const uint64_t *keys, uint64_t count);
void paged_cache_facts(const struct kv_policy *policy, struct kv_cache_facts *facts);
bool paged_keyed(const struct kv_policy *policy, kv_block block, uint64_t *key);

/* All of a table but its words, flags and create; with caching, its options too: `evict`. */
#define PAGED_CALLS                                                                                      \
    .destroy = paged_destroy, .admit = paged_admit, .extend = paged_extend, .fork = paged_fork,          \
    .trim = paged_trim, .release = paged_release, .facts = paged_facts, .seq_facts = paged_seq_facts,    \
    .obtainable = paged_obtainable, .units_for = paged_units_for, .largest_piece = paged_largest_piece,  \
    .table = paged_table, .free_queue = paged_free_queue, .check = paged_check
#define PAGED_CACHE_CALLS                                                                                      \
    PAGED_CALLS, .options = paged_cache_options, .lookup = paged_lookup, .cache_facts = paged_cache_facts,     \
    .foreseen = paged_foreseen, .pinned = paged_pinned, .clock = paged_clock, .next_unpin = paged_next_unpin,  \
    .expect = paged_expect, .keyed = paged_keyed

static inline uint32_t *paged_refs(const struct paged *p, kv_block block)
{
    return p->caches ? &p->queue.nodes[block].refs : &p->ring.refs[block];
}

/* Blocks that can be taken. */
static inline uint32_t paged_free_blocks(const struct paged *p)
{
    return p->caches ? block_queue_obtainable(&p->queue) : p->ring.free_blocks;
}

/* Leading blocks that no token from computed_tokens on attends to. */
static inline uint64_t paged_window_blocks(const struct paged *p, uint64_t computed_tokens)
{
    if (p->window_tokens == 0 || computed_tokens < p->window_tokens)
        return 0;
    return (computed_tokens - p->window_tokens + 1) / p->base.block_tokens;
}

#endif
