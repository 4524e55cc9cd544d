/* Inside of the edge. */
#ifndef PAGESIM_EDGE_INTERNAL_H
#define PAGESIM_EDGE_INTERNAL_H

#include "allocator/device/device_allocator.h"
#include "sim/edge.h"
#include "sim/engine_core.h"

#define EDGE_PARTS 4u /* tensors of a step's activations */

struct edge {
    struct edge_config config;
    struct edge_bytes bytes;    /* budget: kept; caching: read from the allocator */
    struct edge_totals totals;
    uint64_t buffer_bytes;      /* of the buffers that are there */
    uint32_t buffers_taken;     /* bit i: buffers[i] is there */
    struct episode episode;
    bool counted;
    const struct sim_request *blamed;

    /* caching */
    struct dev_allocator *device;
    uint64_t part_address[EDGE_PARTS];
    bool part_taken[EDGE_PARTS];

    /* elastic */
    uint32_t first_seq, seq_count, seqs_lent; /* sequences of the policy that stand for what is lent */
    struct kv_request lender;
};

/* A failed demand of the device. */
struct edge_shortage {
    uint64_t ask_bytes, free_bytes, idle_bytes;
};

/* edge_device.c: the caching allocator. */
/* 0, -1 with err, 1: what must be there at start does not fit. */
int edge_device_create(struct edge *edge, uint64_t pool_bytes, struct err *err);
void edge_device_facts(struct edge *edge);
bool edge_device_take_buffer(struct edge *edge, const struct edge_buffer *buffer, struct edge_shortage *shortage);
bool edge_device_take_step(struct edge *edge, uint64_t tokens, uint64_t seqs, struct edge_shortage *shortage);
void edge_device_give_step(struct edge *edge);

/* edge_lend.c: the elastic boundary. False when the pool has not as much free. */
bool edge_lend(struct engine *engine, uint64_t bytes);
void edge_give_back(struct engine *engine);

#endif
