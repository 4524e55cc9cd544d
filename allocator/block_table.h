/* The block tables of all sequences, and what a block policy remembers of each. One area of
 * [max_seqs][stride] block numbers: a row has room for the longest sequence, and only touched pages of
 * it cost memory. Entry 0 means the null block: a position whose block was given back. */
#ifndef PAGESIM_BLOCK_TABLE_H
#define PAGESIM_BLOCK_TABLE_H

#include "allocator/kv_policy.h"

#define KV_BLOCK_NULL 0u

struct block_seq {
    uint32_t blocks;        /* entries of the row, null ones included */
    uint32_t null_blocks;   /* leading entries that are null (sliding window) */
    uint32_t keyed_blocks;  /* entries before it have had their chance to get a key */
    uint64_t filled_tokens; /* as the last admit, extend or fork said */
};

struct block_table {
    kv_block *rows;
    struct block_seq *seqs;
    uint64_t stride_blocks;  /* from one row to the next */
    uint64_t row_blocks_max; /* usable entries of a row */
    uint32_t max_seqs;
};

/* False and one line in why when the area is larger than memory can be. */
bool block_table_init(struct block_table *table, const struct kv_geometry *geometry,
                      uint32_t block_tokens, char *why, size_t why_bytes);
void block_table_release(struct block_table *table);

static inline kv_block *block_table_row(const struct block_table *table, kv_seq seq)
{
    return table->rows + (size_t)seq.index * table->stride_blocks;
}

static inline struct block_seq *block_table_seq(const struct block_table *table, kv_seq seq)
{
    return &table->seqs[seq.index];
}

/* num_blocks for a pool, checked: at least one block besides the null block (reserved_blocks is 0 or 1),
 * and few enough for 32-bit numbers. 0 and one line in why otherwise. */
uint32_t block_count_for_pool(const struct kv_geometry *geometry, uint32_t block_tokens,
                              uint32_t reserved_blocks, char *why, size_t why_bytes);

#endif
