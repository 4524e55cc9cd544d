/* Operation files of `pagesim device`: one JSON object a line.
 *
 *   {"op":"alloc","id":7,"bytes":1048576,"tag":"kv"}      tag is optional; may fail
 *   {"op":"free","id":7}                                  nothing happens if that allocation had failed
 *   {"op":"empty_cache"}
 *   {"op":"pool_begin","pool":"graph"}  {"op":"pool_end","pool":"graph"}  {"op":"pool_release","pool":"graph"}
 *   {"op":"device_alloc","id":9,"bytes":4096,"tag":"nccl"}   by somebody else in the process, never freed
 *   {"op":"mark","name":"weights loaded"}                 the layout is recorded
 *   {"op":"segment","address":-2097152,"kind":"small","pool":"","blocks":[512,2096640],"ids":[3,0]}
 *                                                         there at the start: bytes of its blocks, the id of each, 0 for
 *                                                         a free one; kind large, small, expandable_large, expandable_small
 *
 * `time_us` may stand in any of them and says when.
 *
 * The whole file is read and checked line by line before anything is replayed; whether ids and pools are used in a
 * sensible order shows only in the replay. */
#ifndef PAGESIM_DEVICE_OPS_H
#define PAGESIM_DEVICE_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workloads/err.h"

enum device_op_kind {
    DEVICE_OP_ALLOC,
    DEVICE_OP_FREE,
    DEVICE_OP_EMPTY_CACHE,
    DEVICE_OP_POOL_BEGIN,
    DEVICE_OP_POOL_END,
    DEVICE_OP_POOL_RELEASE,
    DEVICE_OP_DEVICE_ALLOC,
    DEVICE_OP_MARK,
    DEVICE_OP_SEGMENT,
    DEVICE_OP_KINDS
};

/* Of a "segment". slot: UINT32_MAX when the block is free. */
struct device_op_block {
    uint64_t bytes;
    uint32_t slot;
};

struct device_op {
    uint8_t kind;        /* enum device_op_kind */
    bool small;          /* segment */
    bool expandable;     /* segment */
    uint32_t slot;       /* of the id: alloc, free, device_alloc; of the pool's name: pool_*, segment */
    uint64_t line;       /* in the file, from 1 */
    uint64_t bytes;      /* alloc, device_alloc */
    uint64_t time_us;    /* 0: unknown */
    size_t text;         /* tag or mark's name, an offset in texts; 0: "" */
    int64_t address;     /* segment */
    size_t block_first;  /* segment: in blocks */
    size_t block_count;
};

struct device_ops {
    char *file; /* as messages name it */
    struct device_op *items;
    size_t count, capacity;
    uint64_t *ids;       /* the id of each slot */
    size_t id_count, id_capacity;
    size_t *pools;       /* the name of each pool slot, an offset in texts; slot 0 is "", the default pool */
    size_t pool_count, pool_capacity;
    struct device_op_block *blocks;
    size_t block_count, block_capacity;
    char *texts;         /* texts[0] is '\0' */
    size_t text_count, text_capacity;
};

/* Reads a file, plain, gzip or zstd; "-" is standard input. 0, or -1 with err; then nothing is to be released. */
int device_ops_read(const char *path, struct device_ops *ops, struct err *err);
void device_ops_release(struct device_ops *ops);
const char *device_op_name(enum device_op_kind kind);

#endif
