#include "sim/device_replay.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ADDRESS_FAR ((int64_t)1 << 48)
#define DRIVER_OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */

static int bad(const struct device_replay *r, const struct device_op *op, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* An input error at an operation's line. */
static int bad(const struct device_replay *r, const struct device_op *op, struct err *err, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return err_set(err, ERR_INPUT, "%.300s:%" PRIu64 ": %s", r->ops->file, op->line, text);
}

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_FAILED, "out of memory");
}

int device_replay_init(struct device_replay *r, const struct device_ops *ops, const struct dev_config *config, struct err *err)
{
    *r = (struct device_replay){.ops = ops};
    enum dev_status status = dev_allocator_create(config, &r->allocator);
    if (status == DEV_BAD_SIZE)
        return err_set(err, ERR_USAGE, "the device's sizes do not fit together");
    if (status == DEV_OUT_OF_MEMORY)
        return err_set(err, ERR_USAGE, "the device has no room for the ballast that device_free_bytes needs");
    r->ids = calloc(ops->id_count + 1, sizeof *r->ids);
    r->pools = calloc(ops->pool_count + 1, sizeof *r->pools);
    if (status == DEV_OK && r->ids && r->pools)
        return 0;
    device_replay_release(r);
    return out_of_memory(err);
}

void device_replay_release(struct device_replay *r)
{
    dev_allocator_destroy(r->allocator);
    free(r->ids);
    free(r->pools);
    *r = (struct device_replay){0};
}

static uint64_t line_of(const struct device_replay *r, uint64_t op)
{
    return r->ops->items[op].line;
}

static int step_alloc(struct device_replay *r, size_t i, struct device_outcome *outcome, struct err *err)
{
    const struct device_op *op = &r->ops->items[i];
    struct device_id *id = &r->ids[op->slot];
    if (id->state == DEVICE_ID_LIVE || id->state == DEVICE_ID_FOREIGN)
        return bad(r, op, err, "id: found %" PRIu64 ", which is in use since line %" PRIu64, r->ops->ids[op->slot],
                   line_of(r, id->op));
    enum dev_status status;
    bool foreign = op->kind == DEVICE_OP_DEVICE_ALLOC;
    if (foreign)
        status = dev_foreign_allocate(r->allocator, op->bytes, &id->address);
    else
        status = dev_allocate(r->allocator, op->bytes, &outcome->block);
    if (status == DEV_NO_HOST_MEMORY)
        return out_of_memory(err);
    assert(status == DEV_OK || status == DEV_OUT_OF_MEMORY); /* sizes were checked when the file was read */
    id->op = i;
    id->bytes = op->bytes;
    id->state = status != DEV_OK ? DEVICE_ID_FAILED : foreign ? DEVICE_ID_FOREIGN : DEVICE_ID_LIVE;
    if (foreign) {
        outcome->result = DEVICE_FOREIGN;
        outcome->rc = status == DEV_OK ? 0 : DRIVER_OUT_OF_MEMORY;
        return 0;
    }
    outcome->result = status == DEV_OK ? DEVICE_ALLOCATED : DEVICE_OOM;
    id->address = outcome->block.address;
    return 0;
}

static int step_free(struct device_replay *r, size_t i, struct device_outcome *outcome, struct err *err)
{
    const struct device_op *op = &r->ops->items[i];
    struct device_id *id = &r->ids[op->slot];
    uint64_t name = r->ops->ids[op->slot];
    switch ((enum device_id_state)id->state) {
    case DEVICE_ID_NEW:
        return bad(r, op, err, "id: found %" PRIu64 ", which was never allocated", name);
    case DEVICE_ID_FREED:
        return bad(r, op, err, "id: found %" PRIu64 ", which was freed at line %" PRIu64, name, line_of(r, id->op));
    case DEVICE_ID_FOREIGN:
        return bad(r, op, err, "id: found %" PRIu64 ", which a device_alloc took for good at line %" PRIu64, name,
                   line_of(r, id->op));
    case DEVICE_ID_FAILED:
        outcome->result = DEVICE_NOOP;
        break;
    case DEVICE_ID_LIVE:
        if (dev_free(r->allocator, id->address) != DEV_OK)
            return err_set(err, ERR_FAILED, "the allocator does not know address %" PRIu64, id->address);
        outcome->freed_address = id->address;
        outcome->freed_bytes = id->bytes;
        break;
    }
    id->state = DEVICE_ID_FREED;
    id->op = i;
    return 0;
}

/* The pool of a name, made at its first use. */
static int find_pool(struct device_replay *r, uint32_t slot, uint32_t *pool, struct err *err)
{
    if (slot != 0 && r->pools[slot] == 0 && dev_pool_create(r->allocator, &r->pools[slot]) != DEV_OK)
        return out_of_memory(err);
    *pool = r->pools[slot];
    return 0;
}

static int step_pool(struct device_replay *r, const struct device_op *op, struct err *err)
{
    uint32_t *pool = &r->pools[op->slot];
    const char *name = r->ops->texts + r->ops->pools[op->slot];
    enum dev_status status = DEV_OK;
    if (op->kind == DEVICE_OP_POOL_BEGIN) {
        uint32_t number;
        if (find_pool(r, op->slot, &number, err) != 0)
            return -1;
        status = dev_pool_begin(r->allocator, number);
    } else if (op->kind == DEVICE_OP_POOL_END) {
        status = dev_pool_end(r->allocator, *pool);
    } else {
        status = dev_pool_release(r->allocator, *pool);
        if (status == DEV_OK)
            *pool = 0; /* the name may be used again, for another pool */
    }
    switch (status) {
    case DEV_OK:
        return 0;
    case DEV_UNKNOWN_POOL:
        return bad(r, op, err, "pool: found '%.100s', which was never begun or is released", name);
    case DEV_POOL_OPEN:
        return bad(r, op, err, "pool: found '%.100s', which is open", name);
    case DEV_POOL_NOT_OPEN:
        return bad(r, op, err, "pool: found '%.100s', which is not open", name);
    default:
        return out_of_memory(err);
    }
}

static int check_segment(const struct device_replay *r, const struct device_op *op, struct err *err)
{
    if (r->started)
        return bad(r, op, err, "op: found a segment, expected segments before all else");
    if (op->address < -ADDRESS_FAR || op->address > ADDRESS_FAR)
        return bad(r, op, err, "address: found %" PRId64 ", expected one within 2^48 of the first segment", op->address);
    return 0;
}

/* Ids of the blocks of a restored segment are live from now on. */
static int adopt_ids(struct device_replay *r, size_t i, uint64_t address, struct err *err)
{
    const struct device_op *op = &r->ops->items[i];
    const struct device_op_block *blocks = r->ops->blocks + op->block_first;
    for (size_t k = 0; k < op->block_count; k++) {
        if (blocks[k].slot != UINT32_MAX) {
            struct device_id *id = &r->ids[blocks[k].slot];
            if (id->state != DEVICE_ID_NEW)
                return bad(r, op, err, "ids: found %" PRIu64 ", which is in use since line %" PRIu64, r->ops->ids[blocks[k].slot],
                           line_of(r, id->op));
            *id = (struct device_id){.address = address, .bytes = blocks[k].bytes, .op = i, .state = DEVICE_ID_LIVE};
        }
        address += blocks[k].bytes;
    }
    return 0;
}

static int step_segment(struct device_replay *r, size_t i, struct err *err)
{
    const struct device_op *op = &r->ops->items[i];
    const struct device_op_block *blocks = r->ops->blocks + op->block_first;
    struct dev_restored segment = {.small = op->small, .expandable = op->expandable, .block_count = op->block_count};
    uint64_t address;
    if (check_segment(r, op, err) != 0 || find_pool(r, op->slot, &segment.pool, err) != 0)
        return -1;
    struct dev_restored_block *restored = calloc(op->block_count, sizeof *restored);
    if (!restored)
        return out_of_memory(err);
    for (size_t k = 0; k < op->block_count; k++)
        restored[k] = (struct dev_restored_block){blocks[k].bytes, blocks[k].bytes, blocks[k].slot != UINT32_MAX};
    segment.address = (uint64_t)(op->address + 2 * ADDRESS_FAR);
    segment.blocks = restored;
    enum dev_status status = dev_restore(r->allocator, &segment, &address);
    free(restored);
    if (status == DEV_NO_HOST_MEMORY)
        return out_of_memory(err);
    if (status == DEV_OUT_OF_MEMORY)
        return bad(r, op, err, "blocks: the device has no room for this segment");
    if (status != DEV_OK)
        return bad(r, op, err, "blocks: found a segment that overlaps another one, does not come in address order or is not made of "
                               "whole pages");
    if (!r->has_base)
        r->base_address = address - (uint64_t)op->address;
    r->has_base = true;
    return adopt_ids(r, i, address, err);
}

static void find_base(struct device_replay *r)
{
    size_t count;
    const struct dev_event *events = dev_events(r->allocator, &count);
    if (!r->has_base && count > 0) {
        r->base_address = events[0].address;
        r->has_base = true;
    }
}

int device_replay_step(struct device_replay *r, size_t i, struct device_outcome *outcome, struct err *err)
{
    const struct device_op *op = &r->ops->items[i];
    int status = 0;
    *outcome = (struct device_outcome){.result = DEVICE_DONE};
    r->started = r->started || op->kind != DEVICE_OP_SEGMENT;
    switch ((enum device_op_kind)op->kind) {
    case DEVICE_OP_ALLOC:
    case DEVICE_OP_DEVICE_ALLOC:
        status = step_alloc(r, i, outcome, err);
        break;
    case DEVICE_OP_FREE:
        return step_free(r, i, outcome, err);
    case DEVICE_OP_EMPTY_CACHE:
        if (dev_empty_cache(r->allocator) != DEV_OK)
            return out_of_memory(err);
        break;
    case DEVICE_OP_POOL_BEGIN:
    case DEVICE_OP_POOL_END:
    case DEVICE_OP_POOL_RELEASE:
        return step_pool(r, op, err);
    case DEVICE_OP_MARK:
        outcome->result = DEVICE_MARKED;
        return 0;
    case DEVICE_OP_SEGMENT:
        return step_segment(r, i, err);
    case DEVICE_OP_KINDS:
        assert(false);
        return -1;
    }
    find_base(r);
    return status;
}
