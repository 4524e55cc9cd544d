/* The host tier of a run: what the pool evicts is copied to host memory, what a look-up finds there is copied back.
 *
 * The policy knows nothing of it. Keys that it loses wait in a list until the next look-up, and in an admission until the
 * request's own blocks have been fetched, so that what it evicts cannot push these out. Fetched blocks are new blocks to
 * the policy; their tokens count as computed. */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/engine_core.h"
#include "sim/numbers.h"

/* The books of more would need gigabytes, and no host has so much memory: half a PiB in blocks of 2 MiB. */
enum { HOST_BLOCKS_MAX = 1 << 28 };

int engine_host_init(struct engine *e, struct err *err)
{
    const struct host_config *c = &e->config.host;
    if (c->capacity_bytes == 0) return 0;
    if (!e->caches) {
        return err_set(err, ERR_USAGE, "--host-cache: policy %s keeps no content that could be offloaded, expected one that caches",
                       e->policy->ops->name);
    }
    if (e->config.geometry.window_tokens > 0) {
        return err_set(err, ERR_USAGE, "--host-cache: found it with a sliding window, expected one of them");
    }
    uint64_t blocks = c->capacity_bytes / e->policy->unit_bytes;
    if (blocks == 0 || blocks > HOST_BLOCKS_MAX) {
        return err_set(err, ERR_USAGE, "--host-cache: found %" PRIu64 " bytes, expected at least a block of %" PRIu64
                       " and at most %d blocks", c->capacity_bytes, e->policy->unit_bytes, (int)HOST_BLOCKS_MAX);
    }
    e->host = host_tier_create((uint32_t)blocks, c->evict, c->evict_values);
    return e->host ? 0 : err_set(err, ERR_FAILED, "out of memory for a host tier of %" PRIu64 " blocks", blocks);
}

void engine_host_release(struct engine *e)
{
    host_tier_destroy(e->host);
    free(e->evicted_keys.items);
}

void engine_host_evicted(struct engine *e, uint64_t key)
{
    struct key_array *a = &e->evicted_keys;
    if (a->count == a->capacity) {
        uint64_t *grown = engine_grow_array(e, a->items, a->count, &a->capacity, sizeof *grown);
        if (!grown) return;
        a->items = grown;
    }
    a->items[a->count++] = key;
}

void engine_host_flush(struct engine *e)
{
    struct key_array *a = &e->evicted_keys;
    if (a->count == 0) return;
    const struct host_tier *tier = e->host;
    uint64_t offloaded = tier->offloaded, already_there = tier->already_there, evicted = tier->evicted;
    host_tier_offload_all(e->host, a->items, a->count);
    a->count = 0;
    offloaded = tier->offloaded - offloaded;
    e->step_offloaded_blocks += offloaded;
    e->traffic.to_host_bytes += offloaded * e->policy->unit_bytes;
    if (!engine_window_open(e)) return;
    e->stats.host.offloaded_blocks += offloaded;
    e->stats.host.already_there_blocks += tier->already_there - already_there;
    e->stats.host.evicted_blocks += tier->evicted - evicted;
}

void engine_host_end_pass(struct engine *e)
{
    if (!e->host) return;
    engine_host_flush(e);
    if (e->step_offloaded_blocks > 0) engine_event(e, EVENT_OFFLOAD, NULL, e->step_offloaded_blocks, 0);
    e->step_offloaded_blocks = 0;
}

void engine_host_look(struct engine *e, const struct sim_request *r, struct engine_hit *hit)
{
    if (!e->host) return;
    engine_host_flush(e);
    uint64_t block = e->policy->block_tokens, most = (request_target(r) - 1) / block; /* a token is left to compute */
    hit->host_blocks = host_tier_leading(e->host, r->keys[0] + hit->device.blocks, most - hit->device.blocks);
    hit->tokens += hit->host_blocks * block;
}

/* The last block first: the tail goes before its prefix. */
void engine_host_fetch(struct engine *e, const struct sim_request *r, const struct engine_hit *hit)
{
    if (hit->host_blocks == 0) return;
    for (uint64_t i = hit->host_blocks; i-- > 0;) host_tier_fetch(e->host, r->keys[0][hit->device.blocks + i]);
    e->traffic.to_device_bytes += hit->host_blocks * e->policy->unit_bytes;
    if (engine_window_open(e)) e->stats.host.fetched_blocks += hit->host_blocks;
    engine_event(e, EVENT_FETCH, r, hit->host_blocks, 0);
}
