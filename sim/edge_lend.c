/* The elastic boundary: blocks of the pool under activations, for one step. To the policy they are sequences that nobody
 * schedules; cached blocks are evicted for them as for any other, which is a part of the price. */
#include "sim/edge_internal.h"
#include "sim/numbers.h"

/* Tokens of one lending sequence, whole blocks where they fit. */
static uint64_t row_tokens(uint32_t block_tokens, uint64_t max_seq_tokens)
{
    uint64_t rest = max_seq_tokens % block_tokens;
    return max_seq_tokens > block_tokens ? max_seq_tokens - rest : max_seq_tokens;
}

static uint64_t row_blocks(uint32_t block_tokens, uint64_t max_seq_tokens)
{
    uint64_t blocks = row_tokens(block_tokens, max_seq_tokens) / block_tokens;
    return blocks > 0 ? blocks : 1;
}

uint32_t edge_extra_seqs(const struct edge_config *c, uint64_t max_tokens, uint64_t max_seqs, uint64_t pool_bytes,
                         uint64_t bytes_per_token, uint32_t block_tokens, uint64_t max_seq_tokens)
{
    if (!c->elastic || c->model == EDGE_NONE) return 0;
    u128 bytes = edge_activation_bytes(c, max_tokens, max_seqs);
    for (uint32_t i = 0; i < c->buffer_count; i++) bytes += c->buffers[i].bytes;
    if (bytes > pool_bytes) bytes = pool_bytes;
    u128 row = (u128)row_blocks(block_tokens, max_seq_tokens) * block_tokens * bytes_per_token;
    u128 rows = bytes / row + 1;
    return rows > EDGE_SEQS_MAX ? EDGE_SEQS_MAX : (uint32_t)rows;
}

static bool lend_row(struct engine *e, kv_seq seq, uint64_t tokens)
{
    struct edge *edge = e->edge;
    struct kv_taken taken;
    edge->lender = (struct kv_request){.prompt_tokens = tokens, .max_tokens = 1, .final_tokens = tokens, .samples = 1};
    struct kv_ask ask = {
        .request = &edge->lender,
        .seqs = &seq,
        .seq_count = 1,
        .filled_tokens = tokens,
        .slots_tokens = tokens,
    };
    return kv_admit(e->policy, &ask, &taken) == KV_OK;
}

bool edge_lend(struct engine *e, uint64_t bytes)
{
    struct edge *edge = e->edge;
    struct kv_policy *p = e->policy;
    uint64_t unit = p->unit_bytes, units = bytes / unit + (bytes % unit != 0), left = units;
    uint64_t row = row_blocks(p->block_tokens, e->config.max_model_len);
    uint64_t row_most = row_tokens(p->block_tokens, e->config.max_model_len);
    struct kv_facts facts;
    kv_get_facts(p, &facts);
    if (units > (facts.free_bytes + facts.cached_bytes) / unit) return false;
    while (left > 0) {
        uint64_t blocks = min_u64(left, row);
        kv_seq seq = {.index = edge->first_seq + edge->seqs_lent};
        if (edge->seqs_lent == edge->seq_count ||
            !lend_row(e, seq, min_u64(blocks * p->block_tokens, row_most))) {
            edge_give_back(e);
            return false;
        }
        edge->seqs_lent++;
        left -= blocks;
    }
    edge->bytes.lent = e->accounting.lent_bytes = units * unit;
    e->pool_version++;
    accounting_touch(&e->accounting);
    return true;
}

void edge_give_back(struct engine *e)
{
    struct edge *edge = e->edge;
    while (edge->seqs_lent > 0) {
        kv_seq seq = {.index = edge->first_seq + --edge->seqs_lent};
        kv_release(e->policy, &seq, 1);
    }
    edge->bytes.lent = e->accounting.lent_bytes = 0;
    e->pool_version++;
    accounting_touch(&e->accounting);
}
