/* The block pool of the slow reference: free queue, reference counts, content keys. Arrays and
 * linear searches. Content is compared token by token, so there is no hash to collide. */
#ifndef TESTS_MODEL_V1_POOL_H
#define TESTS_MODEL_V1_POOL_H

#include "tests/model/v1_case.h"

/* Keys form a tree whose nodes are blocks of tokens and whose paths are token prefixes: equal key
 * numbers mean equal prefixes. Node 0 is the empty prefix and no block's key. */
struct v1_key_node {
    uint32_t first_child, next_sibling; /* 0 = none */
    uint64_t *tokens;                   /* block_tokens of them */
};

struct v1_block {
    uint32_t holders;  /* tables that hold it; 0 = in the free queue */
    uint32_t key;      /* 0 = none */
    uint64_t keyed_at; /* the how-many-th key ever given */
};

struct v1_pool {
    uint32_t num_blocks; /* with block 0, the null block */
    uint32_t block_tokens;
    bool keyless_to_head; /* where freed blocks without a key go */
    struct v1_key_node *nodes;
    uint32_t num_nodes;
    struct v1_block *blocks;   /* by id */
    struct v1_list free_queue; /* head first */
    uint64_t num_keys_given;
    uint64_t num_popped;
    struct v1_list evictions; /* popped blocks that had a key, in order, since last cleared */
};

void v1_list_insert(struct v1_list *list, uint32_t at, uint32_t value);
uint32_t v1_list_remove_at(struct v1_list *list, uint32_t at);
void v1_list_remove(struct v1_list *list, uint32_t value); /* it must be there */

void v1_pool_init(struct v1_pool *p, const struct v1_config *c);
void v1_pool_release(struct v1_pool *p);

/* The key of a full block with these tokens after the prefix `parent`. */
uint32_t v1_pool_key(struct v1_pool *p, uint32_t parent, const uint64_t *tokens);

/* The block that got the key first among those that still have it; 0 if none has. */
uint32_t v1_pool_find(const struct v1_pool *p, uint32_t key);

/* Gives the block its key unless it has one. */
void v1_pool_give_key(struct v1_pool *p, uint32_t id, uint32_t key);

/* Takes the head of the free queue, which must not be empty. */
uint32_t v1_pool_pop(struct v1_pool *p);

/* One more holder for a block, whether it is in use or free. */
void v1_pool_touch(struct v1_pool *p, uint32_t id);

/* One holder less for each block, in this order; no null blocks. */
void v1_pool_give_up(struct v1_pool *p, const struct v1_list *visited);

/* Blocks that carry a key, in use or free, duplicates counted each. */
uint32_t v1_pool_cached(const struct v1_pool *p);

#endif
