/* The edge on PyTorch's caching allocator: everything that the framework holds is allocated there, in the order in which a
 * server does it; other libraries take theirs from the driver.
 *
 * A step's activations are four tensors that live at once: half of the bytes by token (the wide part of the feed-forward),
 * a quarter each for attention and for the residual stream (with the base), and the logits. They are freed at the step's end;
 * their segments stay with the allocator. */
#include <string.h>

#include "sim/edge_internal.h"
#include "sim/numbers.h"

static bool allocate(struct edge *edge, uint64_t bytes, uint64_t *kept)
{
    struct dev_allocation got;
    *kept = 0;
    if (bytes == 0) return true;
    if (bytes > DEV_BYTES_MAX || dev_allocate(edge->device, bytes, &got) != DEV_OK) return false;
    *kept = got.bytes;
    return true;
}

/* Graphs live in a private pool of their own. */
static bool allocate_graphs(struct edge *edge, uint64_t bytes)
{
    uint32_t pool;
    if (bytes == 0) return true;
    return dev_pool_create(edge->device, &pool) == DEV_OK && dev_pool_begin(edge->device, pool) == DEV_OK &&
           allocate(edge, bytes, &edge->bytes.graphs) && dev_pool_end(edge->device, pool) == DEV_OK;
}

static int configure(const struct edge *edge, struct dev_config *config, struct err *err)
{
    const struct edge_config *c = &edge->config;
    char why[200];
    dev_config_init(config);
    config->machine.total_bytes = c->device_bytes;
    config->machine.free_bytes = above(c->device_bytes, c->context_bytes);
    if (!c->alloc_conf || dev_settings_parse(&config->settings, c->alloc_conf, why, sizeof why)) return 0;
    return err_set(err, ERR_USAGE, "--device-alloc-conf: %s", why);
}

int edge_device_create(struct edge *edge, uint64_t pool_bytes, struct err *err)
{
    const struct edge_config *c = &edge->config;
    struct dev_config config;
    if (configure(edge, &config, err)) return -1;
    if (c->context_bytes > c->device_bytes) return 1;
    if (dev_allocator_create(&config, &edge->device) != DEV_OK) {
        edge->device = NULL;
        return err_set(err, ERR_FAILED, "out of memory");
    }
    struct edge_bytes *b = &edge->bytes;
    if (!allocate(edge, c->weights_bytes, &b->weights) || !allocate(edge, c->residue_bytes, &b->residue) ||
        !allocate(edge, pool_bytes, &b->pool) || !allocate_graphs(edge, c->graph_bytes)) {
        return 1;
    }
    edge_device_facts(edge);
    return 0;
}

void edge_device_facts(struct edge *edge)
{
    struct edge_bytes *b = &edge->bytes;
    const struct dev_stats *stats = dev_stats(edge->device);
    b->context = edge->config.context_bytes;
    b->free = dev_device_free_bytes(edge->device);
    b->cached = stats->reserved_bytes.now - stats->allocated_bytes.now;
}

bool edge_walk_segments(const struct edge *edge, bool (*visit)(void *context, const struct dev_segment_info *segment), void *context)
{
    return !edge->device || dev_walk(edge->device, visit, context) == DEV_OK;
}

static void fill_shortage(const struct edge *edge, uint64_t ask_bytes, struct edge_shortage *shortage)
{
    const struct dev_stats *stats = dev_stats(edge->device);
    *shortage = (struct edge_shortage){
        .ask_bytes = ask_bytes,
        .free_bytes = dev_device_free_bytes(edge->device),
        .idle_bytes = stats->reserved_bytes.now - stats->allocated_bytes.now,
    };
}

bool edge_device_take_buffer(struct edge *edge, const struct edge_buffer *b, struct edge_shortage *shortage)
{
    uint64_t kept = 0, address, free_before = dev_device_free_bytes(edge->device);
    bool got = b->framework ? allocate(edge, b->bytes, &kept)
                            : dev_foreign_allocate(edge->device, b->bytes, &address) == DEV_OK;
    if (!got) {
        fill_shortage(edge, b->bytes, shortage);
        return false;
    }
    if (!b->framework) kept = free_before - dev_device_free_bytes(edge->device);
    edge->bytes.buffers += kept;
    return true;
}

static void split(const struct edge_config *c, uint64_t tokens, uint64_t seqs, uint64_t parts[EDGE_PARTS])
{
    uint64_t by_token = tokens * c->per_token_bytes;
    parts[0] = by_token / 2;
    parts[1] = by_token / 4;
    parts[2] = by_token - parts[0] - parts[1] + c->base_bytes;
    parts[3] = seqs * c->per_seq_bytes;
}

bool edge_device_take_step(struct edge *edge, uint64_t tokens, uint64_t seqs, struct edge_shortage *shortage)
{
    uint64_t parts[EDGE_PARTS];
    if (edge_activation_bytes(&edge->config, tokens, seqs) > DEV_BYTES_MAX) {
        fill_shortage(edge, DEV_BYTES_MAX, shortage);
        return false;
    }
    split(&edge->config, tokens, seqs, parts);
    for (uint32_t i = 0; i < EDGE_PARTS; i++) {
        struct dev_allocation got;
        if (parts[i] == 0) continue;
        if (dev_allocate(edge->device, parts[i], &got) != DEV_OK) {
            fill_shortage(edge, parts[i], shortage);
            edge_device_give_step(edge);
            return false;
        }
        edge->part_taken[i] = true;
        edge->part_address[i] = got.address;
        edge->bytes.activations += got.bytes;
    }
    return true;
}

void edge_device_give_step(struct edge *edge)
{
    for (uint32_t i = 0; i < EDGE_PARTS; i++) {
        if (edge->part_taken[i]) dev_free(edge->device, edge->part_address[i]);
        edge->part_taken[i] = false;
    }
    edge->bytes.activations = 0;
    edge_device_facts(edge);
}
