#include "tests/paged_model.h"

#include <string.h>

static uint64_t ceil_blocks(const struct paged_model *m, uint64_t tokens)
{
    uint64_t blocks = 0;
    while (blocks * m->block_tokens < tokens)
        blocks++;
    return blocks;
}

void model_start(struct paged_model *m)
{
    for (uint32_t b = 1; b <= m->usable_blocks; b++)
        m->queue[m->queue_length++] = b;
}

/* Blocks that can be had: in the queue and not pinned. */
static uint32_t obtainable(const struct paged_model *m)
{
    return m->queue_length - (m->ordered ? reference_pinned(&m->order) : 0);
}

static void begin_order(struct paged_model *m)
{
    struct kv_kind kind = { 0 };
    if (m->request != NULL)
        kind = (struct kv_kind){ .priority = m->request->priority, .category = m->request->category };
    if (m->ordered)
        reference_begin(&m->order, kind);
}

/* --- the free queue as a list -------------------------------------------------------------- */

static void queue_insert(struct paged_model *m, uint32_t position, uint32_t block)
{
    memmove(&m->queue[position + 1], &m->queue[position], (m->queue_length - position) * sizeof m->queue[0]);
    m->queue[position] = block;
    m->queue_length++;
}

static void queue_delete(struct paged_model *m, uint32_t block)
{
    for (uint32_t i = 0; i < m->queue_length; i++) {
        if (m->queue[i] == block) {
            memmove(&m->queue[i], &m->queue[i + 1], (m->queue_length - i - 1) * sizeof m->queue[0]);
            m->queue_length--;
            return;
        }
    }
}

static uint32_t next_block(struct paged_model *m)
{
    if (!m->ordered)
        return m->queue[0];
    for (uint32_t i = 0; i < m->queue_length; i++)
        if (!m->keyed[m->queue[i]])
            return m->queue[i];
    return reference_evict(&m->order) + 1;
}

static uint32_t pop(struct paged_model *m)
{
    uint32_t block = next_block(m);
    queue_delete(m, block);
    if (m->keyed[block])
        m->evicted[m->evicted_count++] = block;
    m->keyed[block] = false;
    m->refs[block] = 1;
    return block;
}

static uint32_t find(const struct paged_model *m, uint64_t key);

/* What a look-up finds is told its next use, or that it has none as somebody is about to compute it anew. */
static void tell_found(struct paged_model *m, uint64_t key, bool useful)
{
    uint32_t block = find(m, key);
    if (block == 0 || m->refs[block] > 0)
        return;
    reference_foresee(&m->order, block - 1, useful ? m->next_use(NULL, key) : UINT64_MAX);
    reference_touch(&m->order, block - 1);
}

void model_foreseen(struct paged_model *m, const uint64_t *keys, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        tell_found(m, keys[i], true);
}

static void give_up(struct paged_model *m, uint32_t seq, const uint64_t *keys, uint64_t tokens)
{
    for (uint32_t i = m->seen[seq]; m->next_use != NULL && i < tokens / m->block_tokens; i++)
        tell_found(m, keys[i], false);
}

/* A block that a look-up does not find has no use; it may be what the found one was given up for. */
static void give_ordered(struct paged_model *m, uint32_t block)
{
    bool found = find(m, m->key[block]) == block;
    if (m->next_use != NULL)
        reference_foresee(&m->order, block - 1, found ? m->next_use(NULL, m->key[block]) : UINT64_MAX);
    reference_give(&m->order, block - 1);
    if (m->next_use != NULL && !found)
        tell_found(m, m->key[block], true);
}

/* Entries [first, end) of a table lose a reference, from the last to the first. Null entries hold none. */
static void give(struct paged_model *m, uint32_t seq, uint32_t first, uint32_t end)
{
    uint32_t group = 0; /* how many of this call stand at the head */
    while (end > first) {
        uint32_t block = m->table[seq][--end];
        if (block == 0 || --m->refs[block] > 0)
            continue;
        if (m->ordered && m->keyed[block])
            give_ordered(m, block);
        if (m->caches && m->unkeyed_to_head && !m->keyed[block])
            queue_insert(m, group++, block);
        else
            queue_insert(m, m->queue_length, block);
    }
}

static void set_keys(struct paged_model *m, uint32_t seq, const uint64_t *keys, uint64_t tokens)
{
    for (uint32_t i = 0; m->caches && i < tokens / m->block_tokens; i++) {
        m->seen[seq] = i + 1 > m->seen[seq] ? i + 1 : m->seen[seq];
        uint32_t block = m->table[seq][i];
        if (block == 0 || m->keyed[block])
            continue;
        m->keyed[block] = true;
        m->key[block] = keys[i];
        m->keyed_at[block] = ++m->clock;
        if (m->ordered) {
            uint32_t parent = i > 0 ? m->table[seq][i - 1] : 0;
            struct kv_content content = { keys[i], parent > 0 ? parent - 1 : KV_OBJECT_NONE, i };
            reference_miss(&m->order, keys[i]);
            reference_insert(&m->order, block - 1, &content);
            reference_expect(&m->order, block - 1, m->expected != NULL && m->expected(m->expected_context, keys[i]));
        }
    }
}

/* --- look-up ------------------------------------------------------------------------------- */

/* The block that got the key first among those that still have it; 0: none. */
static uint32_t find(const struct paged_model *m, uint64_t key)
{
    uint32_t best = 0;
    for (uint32_t b = 1; b <= m->usable_blocks; b++)
        if (m->keyed[b] && m->key[b] == key && (best == 0 || m->keyed_at[b] < m->keyed_at[best]))
            best = b;
    return best;
}

struct model_hit model_lookup(const struct paged_model *m, const uint64_t *keys, uint64_t tokens)
{
    struct model_hit hit = { 0 };
    uint32_t count = (uint32_t)((tokens - 1) / m->block_tokens);
    while (hit.blocks < count && find(m, keys[hit.blocks]) != 0) {
        hit.ids[hit.blocks] = find(m, keys[hit.blocks]);
        hit.blocks++;
    }
    if (m->window_tokens == 0)
        return hit; /* with a window: the answer when no run is long enough */
    uint32_t need = (uint32_t)ceil_blocks(m, m->window_tokens - 1);
    need = need == 0 ? 1 : need;
    for (uint32_t end = count; end >= need; end--) {
        uint32_t have = 0;
        while (have < need && find(m, keys[end - 1 - have]) != 0)
            have++;
        if (have < need)
            continue;
        memset(&hit, 0, sizeof hit);
        hit.blocks = end;
        for (uint32_t i = end - need; i < end; i++)
            hit.ids[i] = find(m, keys[i]);
        return hit;
    }
    return hit;
}

/* --- allocation ---------------------------------------------------------------------------- */

static uint64_t leading_blocks(const struct paged_model *m, uint64_t computed)
{
    if (m->window_tokens == 0 || computed + 1 < m->window_tokens)
        return 0;
    return (computed + 1 - m->window_tokens) / m->block_tokens;
}

static uint64_t above(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

enum model_status model_admit(struct paged_model *m, const struct model_ask *ask, uint64_t *asked)
{
    uint32_t seq = ask->seqs[0], *table = m->table[seq];
    uint64_t lead = leading_blocks(m, ask->computed);
    uint64_t covered = ask->hit.blocks > lead ? ask->hit.blocks : lead;
    uint64_t whole = ceil_blocks(m, ask->whole), slots = ceil_blocks(m, ask->slots);
    uint64_t free_hits = 0, kept = ask->something_runs ? m->watermark_blocks : 0;
    m->evicted_count = m->copied_count = 0;
    for (uint32_t i = (uint32_t)lead; i < ask->hit.blocks; i++)
        free_hits += ask->hit.ids[i] != 0 && m->refs[ask->hit.ids[i]] == 0 &&
                     !(m->ordered && m->order.pinned[ask->hit.ids[i] - 1]);
    if (ask->whole_blocks_max > 0 && whole > ask->whole_blocks_max)
        whole = ask->whole_blocks_max;
    *asked = above(whole > slots ? whole : slots, lead);
    if (*asked > m->usable_blocks)
        return MODEL_NEVER;
    *asked = ask->whole > 0 ? above(whole, covered) + free_hits : 0;
    if (*asked > above(obtainable(m), kept))
        return MODEL_NO_SPACE;
    *asked = above(slots, covered) + free_hits;
    if (*asked > above(obtainable(m), kept))
        return MODEL_NO_SPACE;
    begin_order(m);
    for (uint32_t i = 0; i < covered; i++) {
        table[i] = i >= lead && i < ask->hit.blocks ? ask->hit.ids[i] : 0;
        if (table[i] == 0)
            continue;
        bool held = m->refs[table[i]]++ > 0;
        if (m->ordered)
            (held ? reference_share : reference_take)(&m->order, table[i] - 1);
        if (!held)
            queue_delete(m, table[i]);
    }
    m->table_length[seq] = m->seen[seq] = (uint32_t)covered;
    give_up(m, seq, ask->keys[0], ask->keyed);
    while (m->table_length[seq] < slots)
        table[m->table_length[seq]++] = pop(m);
    set_keys(m, seq, ask->keys[0], ask->keyed);
    return MODEL_OK;
}

/* Tries the whole call on a copy; a refusal drops the copy. */
enum model_status model_extend(struct paged_model *m, const struct model_ask *ask, uint64_t *asked)
{
    struct paged_model before = *m;
    uint32_t missing = 0;
    before.evicted_count = before.copied_count = m->evicted_count = m->copied_count = 0;
    *asked = 0;
    begin_order(m);
    for (uint32_t k = 0; k < ask->count; k++)
        give_up(m, ask->seqs[k], ask->keys[k], ask->keyed);
    for (uint32_t k = 0; k < ask->count; k++) {
        uint32_t seq = ask->seqs[k], *table = m->table[seq];
        /* Every written token's block; slots asked for ahead of the tokens are not written. */
        for (uint64_t token = ask->computed; token < ask->filled; token++) {
            uint64_t i = token / m->block_tokens;
            if (i >= m->table_length[seq] || m->refs[table[i]] == 1)
                continue;
            uint32_t from = table[i];
            m->refs[from]--;
            (*asked)++;
            if (obtainable(m) == 0) {
                missing++;
                continue;
            }
            table[i] = pop(m);
            m->copied_from[m->copied_count] = from;
            m->copied_to[m->copied_count++] = table[i];
        }
        while (m->table_length[seq] < ceil_blocks(m, ask->slots)) {
            (*asked)++;
            bool short_of = obtainable(m) == 0;
            missing += short_of;
            table[m->table_length[seq]++] = short_of ? 0 : pop(m);
        }
        if (missing == 0)
            set_keys(m, seq, ask->keys[k], ask->keyed);
    }
    if (missing == 0)
        return MODEL_OK;
    *m = before;
    return MODEL_NO_SPACE;
}

void model_fork(struct paged_model *m, uint32_t parent, uint32_t child, uint64_t filled)
{
    m->table_length[child] = (uint32_t)ceil_blocks(m, filled);
    m->seen[child] = m->seen[parent] < m->table_length[child] ? m->seen[parent] : m->table_length[child];
    for (uint32_t i = 0; i < m->table_length[child]; i++) {
        m->table[child][i] = m->table[parent][i];
        if (m->table[child][i] != 0)
            m->refs[m->table[child][i]]++;
    }
}

void model_trim(struct paged_model *m, uint32_t seq, uint64_t first_token)
{
    uint32_t lead = (uint32_t)(first_token / m->block_tokens);
    lead = lead < m->table_length[seq] ? lead : m->table_length[seq];
    give(m, seq, 0, lead);
    for (uint32_t i = 0; i < lead; i++)
        m->table[seq][i] = 0;
    m->seen[seq] = lead > m->seen[seq] ? lead : m->seen[seq];
}

void model_release(struct paged_model *m, uint32_t seq)
{
    give(m, seq, 0, m->table_length[seq]);
    m->table_length[seq] = m->seen[seq] = 0;
}
