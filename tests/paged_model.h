/* The published rules of vLLM v1's block manager with plain lists, and fork and copy-on-write after the
 * PagedAttention paper: slow, obvious, and written without a look at the policies. Everything is searched by
 * loops; nothing is indexed. Small pools only. */
#ifndef PAGESIM_PAGED_MODEL_H
#define PAGESIM_PAGED_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/kv_policy.h"
#include "tests/eviction_reference.h"

enum { MODEL_BLOCKS_MAX = 128, MODEL_TABLE_MAX = 128, MODEL_SEQS = 12 };

struct paged_model {
    /* set by the caller */
    uint32_t block_tokens, usable_blocks; /* blocks 1 .. usable_blocks */
    uint32_t watermark_blocks, window_tokens;
    bool caches, unkeyed_to_head;
    bool ordered; /* keyed blocks are evicted as `order` says, after all others are taken; object i is block i + 1 */
    struct reference order;
    const struct kv_request *request; /* of the call under way, for the order */
    bool (*expected)(const void *context, uint64_t key); /* whether somebody waits for the key; NULL: nobody */
    const void *expected_context;
    uint64_t (*next_use)(void *context, uint64_t key); /* of an order that must know the future, else NULL; gets NULL */
    /* state */
    uint32_t queue[MODEL_BLOCKS_MAX], queue_length; /* free blocks, head first */
    uint32_t refs[MODEL_BLOCKS_MAX];
    bool keyed[MODEL_BLOCKS_MAX];
    uint64_t key[MODEL_BLOCKS_MAX], keyed_at[MODEL_BLOCKS_MAX];
    uint64_t clock;
    uint32_t table[MODEL_SEQS][MODEL_TABLE_MAX], table_length[MODEL_SEQS];
    uint32_t seen[MODEL_SEQS]; /* leading entries whose keys were given, to these blocks or others before */
    /* what the last call did, in order */
    uint32_t evicted[MODEL_BLOCKS_MAX], evicted_count;
    uint32_t copied_from[MODEL_BLOCKS_MAX], copied_to[MODEL_BLOCKS_MAX], copied_count;
};

struct model_hit {
    uint32_t blocks, ids[MODEL_TABLE_MAX]; /* 0: null */
};

struct model_ask {
    uint32_t seqs[3], count;
    uint64_t computed, filled, slots, keyed;
    const uint64_t *keys[3];
    uint64_t whole, whole_blocks_max;
    bool something_runs;
    struct model_hit hit;
};

enum model_status { MODEL_OK, MODEL_NO_SPACE, MODEL_NEVER };

void model_start(struct paged_model *m);
struct model_hit model_lookup(const struct paged_model *m, const uint64_t *keys, uint64_t tokens);
/* *asked: blocks that the refused or granted demand takes out of the queue. */
enum model_status model_admit(struct paged_model *m, const struct model_ask *ask, uint64_t *asked);
enum model_status model_extend(struct paged_model *m, const struct model_ask *ask, uint64_t *asked);
/* The next uses of these keys have changed. */
void model_foreseen(struct paged_model *m, const uint64_t *keys, uint64_t count);
void model_fork(struct paged_model *m, uint32_t parent, uint32_t child, uint64_t filled);
void model_trim(struct paged_model *m, uint32_t seq, uint64_t first_token);
void model_release(struct paged_model *m, uint32_t seq);

#endif
