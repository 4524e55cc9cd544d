/* The pool of an engine, filled anew. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/counterfactual.h"
#include "sim/engine_core.h"
#include "sim/numbers.h"

struct kv_policy *policy_anew(const struct engine *e, uint64_t pool_bytes, char *why, size_t why_bytes)
{
    struct kv_geometry geometry = e->config.geometry;
    geometry.pool_bytes = pool_bytes;
    snprintf(why, why_bytes, "out of memory");
    struct kv_policy *p = e->config.policy->create(&geometry, e->config.policy_values, NULL, why, why_bytes);
    if (p) why[0] = '\0';
    return p;
}

/* Ids are below 2^32, so neither kind of key can be taken for the other. */
void refill_keys(uint64_t *keys, uint32_t count, const kv_block *ids, uint32_t known, uint64_t owner)
{
    for (uint32_t i = 0; i < count; i++) {
        bool has_id = i < known && ids[i] != 0;
        keys[i] = has_id ? ids[i] : (uint64_t)1 << 63 | owner << 32 | i;
    }
}

/* The sequences of one request: content keys, one row for each. */
struct rows {
    uint64_t *keys;
    const uint64_t **chains;
    uint32_t blocks;
};

static bool rows_make(struct rows *rows, const struct engine *e, const struct sim_request *r, uint64_t tokens)
{
    *rows = (struct rows){0};
    const struct kv_policy *live = e->policy;
    if (!live->ops->table || live->block_tokens == 0) return true;
    rows->blocks = (uint32_t)(tokens / live->block_tokens) + 1;
    rows->keys = malloc((size_t)r->kv.samples * rows->blocks * sizeof *rows->keys);
    rows->chains = malloc(r->kv.samples * sizeof *rows->chains);
    if (!rows->keys || !rows->chains) return false;
    for (uint32_t s = 0; s < r->kv.samples; s++) {
        uint32_t count;
        const kv_block *table = live->ops->table(live, r->seqs[s], &count);
        uint64_t *row = rows->keys + (size_t)s * rows->blocks;
        refill_keys(row, rows->blocks, table, count, r->seqs[s].index);
        rows->chains[s] = row;
    }
    return true;
}

static void rows_free(struct rows *rows)
{
    free(rows->keys);
    free(rows->chains);
}

/* The longest part of the sequence that the refilled pool holds already. Under a sliding window a look-up is for the
 * blocks before one point, and the point up to which blocks are shared has to be found. */
static void find_shared(struct kv_policy *p, const struct engine *e, const struct rows *rows, uint64_t tokens,
                        uint64_t first_token, struct kv_hit *hit)
{
    uint64_t block = p->block_tokens;
    memset(hit, 0, sizeof *hit);
    if (!e->caches || !rows->chains) return;
    if (e->config.geometry.window_tokens == 0) {
        kv_lookup(p, rows->chains[0], tokens, hit);
        return;
    }
    for (uint64_t b = (tokens - 1) / block; b > first_token / block; b--) {
        kv_lookup(p, rows->chains[0], b * block + 1, hit);
        if (hit->tokens == b * block) return;
    }
    memset(hit, 0, sizeof *hit);
}

/* Admits the request's first sequence with `tokens` tokens, sharing what it shares in the engine's pool. */
static bool refill_prompt(struct kv_policy *p, const struct engine *e, const struct sim_request *r,
                          const struct rows *rows, uint64_t tokens, uint64_t first_token, struct kv_ask *ask)
{
    struct kv_hit hit;
    struct kv_taken taken;
    uint64_t window = e->config.geometry.window_tokens, computed = 0;
    bool caches = e->caches && rows->chains;
    find_shared(p, e, rows, tokens, first_token, &hit);
    /* Blocks that have left the window are not even asked for. */
    if (window > 0 && first_token > 0 && hit.blocks == 0) computed = min_u64(first_token + window - 1, tokens - 1);
    *ask = (struct kv_ask){
        .request = &r->kv,
        .seqs = r->seqs,
        .seq_count = r->kv.samples,
        .computed_tokens = hit.tokens + computed,
        .filled_tokens = tokens,
        .slots_tokens = tokens,
        .keyed_tokens = caches ? tokens : 0,
        .keys = rows->chains,
        .hit = hit.blocks > 0 ? &hit : NULL,
    };
    bool granted = kv_admit(p, ask, &taken) == KV_OK;
    ask->hit = NULL;
    return granted;
}

/* Grows the request to `tokens`; under a sliding window a block at a time, so that no more is held on the way than
 * in the engine's pool. */
static bool refill_growth(struct kv_policy *p, const struct engine *e, const struct sim_request *r,
                          struct kv_ask *ask, uint64_t tokens, uint64_t first_token)
{
    struct kv_taken taken;
    bool window = e->config.geometry.window_tokens > 0 && p->ops->trim;
    uint64_t at = ask->filled_tokens, step = window ? p->block_tokens : tokens;
    ask->seq_count = r->forked ? r->kv.samples : 1;
    while (at < tokens) {
        for (uint32_t s = 0; window && s < ask->seq_count; s++) kv_trim(p, r->seqs[s], min_u64(first_token, at));
        ask->computed_tokens = at;
        at = min_u64(tokens, at + step);
        ask->filled_tokens = ask->slots_tokens = at;
        if (ask->keyed_tokens > 0) ask->keyed_tokens = at;
        if (kv_extend(p, ask, &taken) != KV_OK) return false;
    }
    for (uint32_t s = 0; window && s < ask->seq_count; s++) kv_trim(p, r->seqs[s], first_token);
    return true;
}

static bool refill_request(struct kv_policy *p, const struct engine *e, const struct sim_request *r)
{
    struct kv_seq_facts facts;
    struct kv_ask ask;
    struct rows rows;
    kv_get_seq_facts(e->policy, r->seqs[0], &facts);
    bool reserves = (p->ops->flags & KV_RESERVES) != 0;
    uint64_t end = reserves ? 1 : facts.end_token;
    uint64_t begin = r->forked && !reserves ? r->prompt_tokens : end; /* a fork is from the whole prompt */
    bool done = rows_make(&rows, e, r, end) && refill_prompt(p, e, r, &rows, begin, facts.first_token, &ask);
    if (done && r->forked && !reserves) {
        kv_fork(p, r->seqs[0], r->seqs + 1, r->kv.samples - 1, r->prompt_tokens);
    }
    /* Tables end with whole blocks. One that only its prompt fills is still shared to the end. */
    bool grows = !reserves && (!r->forked || r->written_since_fork);
    done = done && (!grows || refill_growth(p, e, r, &ask, end, facts.first_token));
    rows_free(&rows);
    return done;
}

struct placed {
    const struct sim_request *request;
    uint64_t slots, order;
};

/* The largest regions first, so that they lie as tight as they can. */
static int by_size(const void *pa, const void *pb)
{
    const struct placed *a = pa, *b = pb;
    if (a->slots != b->slots) return a->slots < b->slots ? 1 : -1;
    return a->order < b->order ? -1 : 1;
}

static struct placed *list_running(const struct engine *e)
{
    struct placed *list = malloc((e->running.count + 1) * sizeof *list);
    uint64_t count = 0;
    for (const struct sim_request *r = e->running.head; list && r; r = r->next) {
        struct kv_seq_facts facts;
        kv_get_seq_facts(e->policy, r->seqs[0], &facts);
        list[count] = (struct placed){.request = r, .slots = facts.end_token, .order = count};
        count++;
    }
    bool contiguous = (e->policy->ops->flags & KV_CONTIGUOUS) != 0;
    if (list && contiguous) qsort(list, (size_t)count, sizeof *list, by_size);
    return list;
}

/* Which blocks are shared under a sliding window depends on when each was: that is not always found again. */
static bool holds_more(const struct engine *e, const struct kv_policy *p)
{
    struct kv_facts live, refilled;
    kv_get_facts(e->policy, &live);
    kv_get_facts(p, &refilled);
    return refilled.held_bytes > live.held_bytes;
}

struct kv_policy *policy_refilled(struct engine *e, uint64_t pool_bytes, char *why, size_t why_bytes)
{
    struct kv_policy *p = policy_anew(e, pool_bytes, why, why_bytes);
    struct placed *list = p ? list_running(e) : NULL;
    bool done = list != NULL;
    for (uint64_t i = 0; done && i < e->running.count; i++) {
        done = refill_request(p, e, list[i].request);
        if (!done) snprintf(why, why_bytes, "the running requests cannot be placed anew");
    }
    free(list);
    if (done && !holds_more(e, p)) return p;
    if (done) snprintf(why, why_bytes, "the running requests' sharing cannot be made anew");
    kv_destroy(p);
    return NULL;
}
