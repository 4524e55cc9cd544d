/* Content studies: how many blocks of a trace hit a cache of content keys, without an engine.
 * Requests run strictly one after another and take no time; each is completely resident while it
 * runs. The counts are exact integers; the words of the results are those of the JSON output. */
#ifndef PAGESIM_CACHE_SIM_H
#define PAGESIM_CACHE_SIM_H

#include "allocator/eviction.h"
#include "allocator/host_tier.h"
#include "sim/cache_trace.h"
#include "sim/digest.h"

#define CACHE_CAPACITY_MAX (ID_INDEX_MAX - 1) /* blocks; more cannot be told apart anyway */
#define CACHE_INFINITE UINT64_MAX

/* In which order a request's blocks are given back when it ends. */
enum cache_release {
    CACHE_LEAF_FIRST, /* last block first: tails are evicted before their prefix, as vLLM does */
    CACHE_ROOT_FIRST, /* first block first */
};

enum cache_blocks {
    CACHE_ALL_BLOCKS,  /* every id of the trace, the last partial block's too */
    CACHE_FULL_BLOCKS, /* the first prompt_tokens / block_tokens ids */
};

/* A hit run is the number of leading blocks of a request that are all cached before it; blocks after
 * the first miss never count. */
struct cache_infinite {
    uint64_t requests;
    uint64_t lookup_blocks, hit_blocks;
    uint64_t lookup_full_blocks, hit_full_blocks;
    uint64_t input_tokens, hit_tokens;
    uint64_t hit_tokens_full_blocks;
    uint64_t fully_hit_requests, zero_hit_requests;
    uint64_t unique_blocks;
    /* Means of the requests' own ratios, over those that have the denominator; NAN when none has. */
    double mean_request_hit_ratio_blocks;
    double mean_request_hit_ratio_tokens;
    double mean_request_hit_ratio_full_blocks;
    char per_request_hits_sha256[HIT_DIGEST_HEX_BYTES];
};

struct cache_prefix {
    uint64_t requests, rejected_requests; /* accepted; and those larger than the cache */
    uint64_t lookup_blocks, hit_blocks;
    uint64_t input_tokens, hit_tokens;
    uint64_t inserted_blocks, evicted_blocks;
    uint64_t fully_hit_requests, zero_hit_requests;
    uint64_t resident_blocks_at_end;
    char per_request_hits_sha256[HIT_DIGEST_HEX_BYTES];

    /* With a host tier; all 0 without one. Hits are those of both levels, inserted blocks those that were fetched too. */
    uint64_t host_hit_blocks; /* of hit_blocks: those that the device did not have */
    uint64_t fetched_blocks, offloaded_blocks, already_there_blocks, host_evicted_blocks; /* as in host_tier.h */
    uint64_t host_resident_blocks_at_end;
};

struct cache_stream {
    uint64_t lookups, hits;
    uint64_t evicted_blocks, resident_blocks_at_end;
};

struct cache_config {
    const struct kv_eviction_ops *evict;
    uint64_t capacity_blocks; /* > 0; CACHE_INFINITE: nothing is ever evicted */
    enum cache_release release;
    enum cache_blocks blocks;
    const struct kv_value *evict_values; /* of the order's options; NULL: the defaults */
    /* A host tier under it (cache_run_prefix alone; not under a clairvoyant order). Hit runs go on over blocks that either
     * level has; those of the host are fetched, then what the device evicts for the request goes to the host. */
    uint64_t host_capacity_blocks;          /* 0: none; CACHE_INFINITE: nothing is ever lost */
    const struct kv_eviction_ops *host_evict; /* one that host_tier_allows */
    const struct kv_value *host_evict_values; /* as above */
};

/* A clairvoyant order (opt) is told the future of the trace, at 4 bytes a reference more. All cached blocks of a
 * request count as hits for it, not only the leading ones: where content forms chains that is the same, and else
 * it stays a bound on what any order can hit, as long as no request names a block twice. */

/* Orders that know time or waiting requests are for cache_run_prefix alone. Time is the arrival of the request; where pins
 * leave it no room, it waits until enough of them have ended, and so do all after it. Waiting are the requests of the trace that
 * come next and fit. */
static inline bool cache_needs_requests(const struct kv_eviction_ops *order)
{
    return order->clock != NULL || order->expect != NULL;
}

/* Nothing is ever evicted. hits, where not NULL, gets request_count hit runs. */
void cache_run_infinite(const struct cache_trace *trace, struct cache_infinite *result,
                        int64_t *hits);
/* A cache of prefixes. A request of more blocks than the capacity is rejected (hit run -1) and
 * touches nothing. Returns 0, or -1 with err when out of memory. */
int cache_run_prefix(const struct cache_trace *trace, const struct cache_config *config,
                     struct cache_prefix *result, int64_t *hits, struct err *err);
/* The textbook rule: all blocks of the trace as one stream of accesses to objects of size 1, no
 * prefixes; a miss inserts, then one object goes if there are too many. release and blocks of the
 * config do not matter. */
int cache_run_stream(const struct cache_trace *trace, const struct cache_config *config,
                     struct cache_stream *result, struct err *err);

/* --- one cache, fed bit by bit (cache_run_stream over a stream too long to keep) ------------------ */

struct block_cache {
    struct kv_eviction *order; /* over places */
    uint32_t *place_of;        /* number → place, or UINT32_MAX when not cached */
    uint64_t number_room;      /* numbers that place_of has room for */
    uint32_t *number_of;       /* place → number */
    uint32_t places;           /* places there are */
    uint32_t used_places;      /* places ever used; those given up are in the free list */
    uint32_t free_place;       /* head of the free list through number_of, or UINT32_MAX */
    uint64_t evicted_blocks;
    struct host_tier *host;    /* of numbers; NULL: none */
    uint32_t *to_host;         /* [places] numbers evicted for the present request, in order */
    uint64_t to_host_count;
    uint64_t now_ns;           /* as the order was told; beyond WL_TIME_NS_MAX: a request waits for pins that end later than that */
    uint32_t *waiting;         /* by number: waiting requests that have it; NULL: the order does not care */
};

/* 0, or -1 with err; then *cache is released. places > 0. */
int block_cache_init(struct block_cache *cache, const struct kv_eviction_ops *ops, const struct kv_value *values,
                     uint32_t places, struct err *err);
void block_cache_release(struct block_cache *cache); /* a zeroed struct is fine */
/* Room for the numbers below `numbers`. */
int block_cache_reserve(struct block_cache *cache, uint64_t numbers, struct err *err);
/* n accesses by the textbook rule; returns how many hit. Room for the numbers was made before. Not for
 * clairvoyant orders. */
uint64_t block_cache_access(struct block_cache *cache, const uint32_t *numbers, size_t n);

#endif
