/* A second level of a prefix cache in host memory: which content keys it holds, in an eviction order of its own. It keeps
 * books only; what a copy costs is its owner's business.
 *
 * The tier is inclusive, as SGLang's HiCache with write_back (mem_cache/hiradix_cache.py): a block that the device evicts is
 * copied to the host, and the host's copy stays when the block is fetched again, so that its next eviction copies
 * nothing. vLLM's offloading connector (v1/kv_offload) keeps its copies too, and makes them as soon as a block is full. TensorRT-LLM
 * exchanges the two blocks instead: its tier is exclusive, a little more fits, and every eviction copies.
 *
 * All that an evicted block leaves behind is its key: orders marked KV_EVICTION_STRUCTURE or KV_EVICTION_CLAIRVOYANT cannot
 * work here, nor those that want to know the time or who waits. A fetch is a hit in the order; so is the eviction by the device of a block that is there already, which
 * says that it was of use until now. Owners hand over the last block of a chain first, at fetches too, so that the
 * tail goes before its prefix here as well.
 *
 * create makes everything; no later call allocates or fails. Not thread-safe. */
#ifndef PAGESIM_HOST_TIER_H
#define PAGESIM_HOST_TIER_H

#include "allocator/block_index.h"
#include "allocator/eviction.h"

struct host_tier {
    uint32_t capacity;       /* blocks */
    uint32_t used_blocks;    /* with content now; places 1 .. used_blocks, as none is ever given up for good */
    /* Since the start, in blocks. offloaded + already_there: evictions of the device. */
    uint64_t offloaded;      /* copied to the host */
    uint64_t already_there;  /* evicted by the device while the host had them: not copied */
    uint64_t fetched;        /* copied to the device */
    uint64_t evicted;        /* dropped to make room */
    struct keyed_block *places; /* [capacity + 1]; the order's object i is place i + 1 */
    struct block_index index;
    struct kv_eviction *order;
};

enum { HOST_TIER_BLOCKS_MAX = BLOCK_INDEX_BLOCKS_MAX };

/* Whether the order can work on keys alone. */
bool host_tier_allows(const struct kv_eviction_ops *order);
/* An empty tier of 0 < capacity <= HOST_TIER_BLOCKS_MAX blocks, with an allowed order; values: of its options,
 * NULL: the defaults. NULL: out of memory. */
struct host_tier *host_tier_create(uint32_t capacity, const struct kv_eviction_ops *order, const struct kv_value *values);
void host_tier_destroy(struct host_tier *tier); /* NULL is fine */

/* Changes nothing. */
bool host_tier_has(const struct host_tier *tier, uint64_t key);
/* How many leading keys of n it has. Changes nothing. */
uint64_t host_tier_leading(const struct host_tier *tier, const uint64_t *keys, uint64_t n);
/* The block of this key, which is there, is copied to the device. */
void host_tier_fetch(struct host_tier *tier, uint64_t key);
/* The device has evicted this key. Makes room if it has to. */
void host_tier_offload(struct host_tier *tier, uint64_t key);
/* n of them, in this order. */
void host_tier_offload_all(struct host_tier *tier, const uint64_t *keys, uint64_t n);

/* NULL when sound, else what is wrong. O(capacity). */
const char *host_tier_check(const struct host_tier *tier);

#endif
