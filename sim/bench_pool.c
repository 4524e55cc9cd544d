/* The allocators through the policy table: blocks given and taken, look-ups, evictions. */
#include <stdlib.h>
#include <string.h>

#include "allocator/kv_policy.h"
#include "sim/bench.h"

enum { BLOCK_TOKENS = 16, CHAIN = 64 };

static struct kv_policy *make(const char *name, uint64_t blocks, uint32_t seqs)
{
    const struct kv_policy_ops *ops = kv_registry_find(name);
    struct kv_geometry geometry = {.pool_bytes = (blocks + 1) * BLOCK_TOKENS,
                                   .bytes_per_token = 1,
                                   .block_tokens = BLOCK_TOKENS,
                                   .max_seqs = seqs,
                                   .max_seq_tokens = CHAIN * BLOCK_TOKENS + BLOCK_TOKENS};
    const char *texts[KV_OPTIONS_MAX] = {NULL};
    struct kv_value values[KV_OPTIONS_MAX];
    char why[200];
    if (!kv_policy_values(ops, texts, values, why, sizeof why)) return NULL;
    return ops->create(&geometry, values, NULL, why, sizeof why);
}

static enum kv_status admit(struct kv_policy *policy, uint32_t seq, uint64_t blocks,
                            const uint64_t *keys)
{
    const kv_seq seqs[1] = {{seq}};
    const uint64_t tokens = blocks * BLOCK_TOKENS;
    struct kv_request request = {.prompt_tokens = tokens,
                                 .max_tokens = 1,
                                 .output_tokens = 1,
                                 .final_tokens = tokens,
                                 .samples = 1};
    struct kv_ask ask = {.request = &request,
                         .seqs = seqs,
                         .seq_count = 1,
                         .filled_tokens = tokens,
                         .slots_tokens = tokens,
                         .keyed_tokens = keys ? tokens : 0,
                         .keys = &keys};
    struct kv_taken taken;
    return kv_admit(policy, &ask, &taken);
}

static void release(struct kv_policy *policy, uint32_t seq)
{
    const kv_seq seqs[1] = {{seq}};
    kv_release(policy, seqs, 1);
}

/* Million blocks allocated and freed again a second, `a` a call, in a pool of 10^6: 10,000 sequences come and go in a
 * scattered order, so that the free blocks do not lie in a row. */
static double alloc_free(unsigned long a)
{
    enum { SEQS = 10000, ROUNDS = 40 };
    struct kv_policy *policy = make("dynamic", 1000000, SEQS);
    if (!policy) return -1;
    for (uint32_t s = 0; s < SEQS; s++) admit(policy, s, a, NULL);
    double begin = bench_seconds();
    for (uint32_t i = 0; i < SEQS * ROUNDS; i++) {
        uint32_t s = (uint32_t)((uint64_t)i * 7919 % SEQS);
        release(policy, s);
        admit(policy, s, a, NULL);
    }
    double seconds = bench_seconds() - begin;
    kv_destroy(policy);
    return (double)SEQS * ROUNDS * (double)a / seconds * 1e-6;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The chain of a conversation's number. */
static void chain_keys(uint64_t number, uint64_t *keys)
{
    for (uint64_t i = 0; i < CHAIN; i++) keys[i] = mix(number * CHAIN + i + 1);
}

static struct kv_policy *filled_pool(uint64_t blocks)
{
    struct kv_policy *policy = make("prefix", blocks, 1);
    uint64_t keys[CHAIN];
    for (uint64_t c = 0; policy && c < blocks / CHAIN; c++) {
        chain_keys(c, keys);
        admit(policy, 0, CHAIN, keys);
        release(policy, 0);
    }
    return policy;
}

/* Million blocks found a second: chains of 64 that are all there, in a scattered order. */
static double hits(unsigned long blocks)
{
    enum { LOOKUPS = 100000 };
    struct kv_policy *policy = filled_pool(blocks);
    uint64_t found = 0, chains = blocks / CHAIN, (*keys)[CHAIN] = malloc(chains * sizeof *keys);
    if (!policy || !keys) return -1;
    for (uint64_t c = 0; c < chains; c++) chain_keys(c, keys[c]);
    double begin = bench_seconds();
    for (uint64_t i = 0; i < LOOKUPS; i++) {
        struct kv_hit hit;
        kv_lookup(policy, keys[i * 7919 % chains], CHAIN * BLOCK_TOKENS + 1, &hit);
        found += hit.blocks;
    }
    double seconds = bench_seconds() - begin;
    return (double)found / seconds * 1e-6;
}

/* Million look-ups a second of chains whose first block is not there. */
static double misses(unsigned long blocks)
{
    enum { LOOKUPS = 2000000 };
    struct kv_policy *policy = filled_pool(blocks);
    uint64_t keys[CHAIN];
    if (!policy) return -1;
    chain_keys(1u << 30, keys);
    double begin = bench_seconds();
    for (uint64_t i = 0; i < LOOKUPS; i++) {
        struct kv_hit hit;
        keys[0] = mix(i + (1ull << 40));
        kv_lookup(policy, keys, CHAIN * BLOCK_TOKENS + 1, &hit);
    }
    return LOOKUPS / (bench_seconds() - begin) * 1e-6;
}

/* Million blocks a second that are evicted, handed out, keyed and freed, 64 a call. */
static double evictions(unsigned long blocks)
{
    enum { CALLS = 60000 };
    struct kv_policy *policy = filled_pool(blocks);
    uint64_t keys[CHAIN];
    if (!policy) return -1;
    double begin = bench_seconds();
    for (uint64_t i = 0; i < CALLS; i++) {
        chain_keys(i + (1u << 30), keys);
        admit(policy, 0, CHAIN, keys);
        release(policy, 0);
    }
    return (double)CALLS * CHAIN / (bench_seconds() - begin) * 1e-6;
}

const struct bench_case bench_pool_cases[] = {
    {"dynamic: allocate and free, 16 blocks a call, pool 10^6", "M blocks/s", alloc_free, 16, false},
    {"dynamic: allocate and free, 64 blocks a call, pool 10^6", "M blocks/s", alloc_free, 64, false},
    {"prefix: look-up hits, chains of 64, pool 10^4", "M blocks/s", hits, 10000, false},
    {"prefix: look-up hits, chains of 64, pool 10^5", "M blocks/s", hits, 100000, false},
    {"prefix: look-up hits, chains of 64, pool 10^6", "M blocks/s", hits, 1000000, false},
    {"prefix: look-up misses, pool 10^4", "M look-ups/s", misses, 10000, false},
    {"prefix: look-up misses, pool 10^5", "M look-ups/s", misses, 100000, false},
    {"prefix: look-up misses, pool 10^6", "M look-ups/s", misses, 1000000, false},
    {"prefix: evict, allocate, key, free, pool 10^4", "M blocks/s", evictions, 10000, false},
    {"prefix: evict, allocate, key, free, pool 10^5", "M blocks/s", evictions, 100000, false},
    {"prefix: evict, allocate, key, free, pool 10^6", "M blocks/s", evictions, 1000000, false},
};
const size_t bench_pool_count = sizeof bench_pool_cases / sizeof bench_pool_cases[0];
