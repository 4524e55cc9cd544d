#include "allocator/block_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocator/vm_area.h"

/* Rows start on a cache line, and the distance between them is an odd number of lines: with a power of two
 * the first entries of all rows would compete for the same few sets of the processor's cache. */
enum { LINE_BLOCKS = 64 / sizeof(kv_block) };

static uint64_t stride_for(uint64_t row_blocks)
{
    uint64_t lines = row_blocks / LINE_BLOCKS + 1;
    return (lines | 1) * LINE_BLOCKS;
}

bool block_table_init(struct block_table *table, const struct kv_geometry *geometry,
                      uint32_t block_tokens, char *why, size_t why_bytes)
{
    *table = (struct block_table){ .max_seqs = geometry->max_seqs };
    uint64_t tokens = geometry->max_seq_tokens;
    if (geometry->lookahead_tokens < UINT64_MAX - tokens)
        tokens += geometry->lookahead_tokens;
    uint64_t row_blocks = kv_blocks_for_tokens(tokens, block_tokens);
    if (row_blocks < UINT32_MAX) {
        table->row_blocks_max = row_blocks;
        table->stride_blocks = stride_for(row_blocks);
        table->rows = vm_area_map(geometry->max_seqs, table->stride_blocks * sizeof *table->rows);
        table->seqs = calloc(geometry->max_seqs, sizeof *table->seqs);
    }
    if (table->rows != NULL && table->seqs != NULL)
        return true;
    block_table_release(table);
    snprintf(why, why_bytes,
             "block tables of %" PRIu32 " sequences of %" PRIu64 " blocks: expected fewer or shorter "
             "sequences than memory has addresses for", geometry->max_seqs, row_blocks);
    return false;
}

void block_table_release(struct block_table *table)
{
    vm_area_unmap(table->rows, table->max_seqs, table->stride_blocks * sizeof *table->rows);
    free(table->seqs);
    table->rows = NULL;
    table->seqs = NULL;
}

uint32_t block_count_for_pool(const struct kv_geometry *geometry, uint32_t block_tokens,
                              uint32_t reserved_blocks, char *why, size_t why_bytes)
{
    if (geometry->bytes_per_token > UINT64_MAX / block_tokens) {
        snprintf(why, why_bytes, "block of %" PRIu32 " tokens of %" PRIu64 " bytes: expected less than "
                 "2^64 bytes", block_tokens, geometry->bytes_per_token);
        return 0;
    }
    uint64_t block_bytes = geometry->bytes_per_token * block_tokens;
    uint64_t blocks = geometry->pool_bytes / block_bytes;
    if (blocks <= reserved_blocks) {
        snprintf(why, why_bytes, "pool of %" PRIu64 " bytes: expected at least one block of %" PRIu64
                 " bytes%s", geometry->pool_bytes, block_bytes,
                 reserved_blocks > 0 ? " besides the null block" : "");
        return 0;
    }
    if (blocks >= UINT32_MAX) {
        snprintf(why, why_bytes, "pool of %" PRIu64 " blocks: expected fewer than %" PRIu32, blocks,
                 UINT32_MAX);
        return 0;
    }
    return (uint32_t)blocks;
}
