#include "tests/model/v1_reference.h"
#include "tests/model/v1_pool.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A request once it has arrived. */
struct sequence {
    uint64_t *tokens; /* prompt, then the output so far */
    uint32_t num_tokens;
    uint32_t num_outputs;
    uint32_t num_computed;
    struct v1_list keys;  /* of its full blocks, as far as they were asked for */
    struct v1_list table; /* block ids, 0 = null block */
    bool was_preempted;
};

struct model {
    const struct v1_config *config;
    const struct v1_case *input;
    struct v1_pool pool;
    struct sequence *sequences;
    struct v1_list running, waiting; /* request indices, head first */
    uint32_t *arrivals;              /* request indices by (arrival, line) */
    uint32_t num_added;              /* of arrivals */
    uint64_t next_fresh_token;
    struct v1_step *step; /* the line being made */
    struct v1_summary *summary;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t blocks_for_tokens(const struct model *m, uint64_t tokens)
{
    uint32_t block_tokens = m->config->block_tokens;
    return tokens / block_tokens + (tokens % block_tokens != 0);
}

/* --- keys -------------------------------------------------------------------------------- */

/* The key of the sequence's block i, all of whose tokens must be known. */
static uint32_t sequence_key(struct model *m, struct sequence *s, uint32_t i)
{
    while (s->keys.n <= i) {
        uint32_t parent = s->keys.n > 0 ? s->keys.v[s->keys.n - 1] : 0;
        size_t first = (size_t)s->keys.n * m->config->block_tokens;
        assert(first + m->config->block_tokens <= s->num_tokens);
        v1_list_push(&s->keys, v1_pool_key(&m->pool, parent, s->tokens + first));
    }
    return s->keys.v[i];
}

/* --- tables ---------------------------------------------------------------------------- */

/* Replaces the first n blocks of the table by null blocks, last one first. */
static void table_release_leading(struct model *m, struct sequence *s, uint32_t n)
{
    struct v1_list visited = {0};
    for (uint32_t i = n; i-- > 0;) {
        if (s->table.v[i] != 0)
            v1_list_push(&visited, s->table.v[i]);
        s->table.v[i] = 0;
    }
    v1_pool_give_up(&m->pool, &visited);
    v1_list_release(&visited);
}

static void table_release(struct model *m, struct sequence *s)
{
    table_release_leading(m, s, s->table.n);
    s->table.n = 0;
}

/* --- look-up ----------------------------------------------------------------------------- */

static void lookup_full(struct model *m, struct sequence *s, uint32_t num_blocks, struct v1_list *hits)
{
    for (uint32_t i = 0; i < num_blocks; i++) {
        uint32_t id = v1_pool_find(&m->pool, sequence_key(m, s, i));
        if (id == 0)
            return;
        v1_list_push(hits, id);
    }
}

/* Only the blocks that the window still reads have to be cached; null blocks stand for the others. */
static void lookup_window(struct model *m, struct sequence *s, uint32_t num_blocks, struct v1_list *hits)
{
    uint64_t need = blocks_for_tokens(m, m->config->sliding_window - 1);
    uint32_t run = 0;
    for (uint32_t i = num_blocks; i-- > 0;) {
        run = v1_pool_find(&m->pool, sequence_key(m, s, i)) != 0 ? run + 1 : 0;
        if (run < need)
            continue;
        for (uint32_t j = 0; j < i; j++)
            v1_list_push(hits, 0);
        for (uint32_t j = i; j < i + run; j++)
            v1_list_push(hits, v1_pool_find(&m->pool, sequence_key(m, s, j)));
        return;
    }
    lookup_full(m, s, num_blocks, hits);
}

static void lookup(struct model *m, struct sequence *s, struct v1_list *hits)
{
    if (!m->config->enable_prefix_caching)
        return;
    uint32_t num_blocks = (s->num_tokens - 1) / m->config->block_tokens;
    if (m->config->sliding_window > 0)
        lookup_window(m, s, num_blocks, hits);
    else
        lookup_full(m, s, num_blocks, hits);
}

static void count_lookup(struct model *m, const struct sequence *s, const struct v1_list *hits)
{
    if (!m->config->enable_prefix_caching)
        return;
    uint64_t hit_tokens = (uint64_t)hits->n * m->config->block_tokens;
    if (s->was_preempted) {
        m->summary->preempted_lookups++;
        m->summary->preempted_queries += s->num_tokens;
        m->summary->preempted_hits += hit_tokens;
        return;
    }
    m->summary->lookups++;
    m->summary->queries += s->num_tokens;
    m->summary->hits += hit_tokens;
    m->step->queries += s->num_tokens;
    m->step->hits += hit_tokens;
}

/* --- allocation -------------------------------------------------------------------------- */

/* Blocks wholly before the window of a sequence with this many computed tokens. */
static uint32_t blocks_before_window(const struct model *m, uint64_t computed)
{
    uint32_t window = m->config->sliding_window;
    if (window == 0 || computed + 1 <= window)
        return 0;
    return (uint32_t)((computed + 1 - window) / m->config->block_tokens);
}

/* Hit blocks that would have to leave the free queue. */
static uint64_t free_hits(const struct model *m, const struct v1_list *hits, uint32_t first)
{
    uint64_t n = 0;
    for (uint32_t i = first; i < hits->n; i++)
        n += hits->v[i] != 0 && m->pool.blocks[hits->v[i]].holders == 0;
    return n;
}

/* Blocks that have to stay free when a waiting request is admitted. */
static uint64_t watermark_blocks(const struct model *m)
{
    if (m->config->rules != V1_RULES_2026_08 || m->running.n == 0)
        return 0;
    return (uint64_t)floor(m->config->watermark * (double)m->config->num_blocks);
}

static void give_keys(struct model *m, struct sequence *s, uint64_t num_scheduled)
{
    if (!m->config->enable_prefix_caching)
        return;
    uint64_t full = min_u64(num_scheduled, s->num_tokens) / m->config->block_tokens;
    for (uint32_t i = 0; i < full; i++) {
        if (s->table.v[i] != 0)
            v1_pool_give_key(&m->pool, s->table.v[i], sequence_key(m, s, i));
    }
}

/* Slots for num_new tokens after the computed ones (hits included). False: no room; nothing has
 * changed then, except that blocks before the window are gone. */
static bool allocate(struct model *m, struct sequence *s, uint64_t computed, uint64_t num_new,
                     uint64_t lookahead, const struct v1_list *hits, uint64_t kept_free,
                     struct v1_list *new_blocks)
{
    uint32_t before_window = blocks_before_window(m, computed);
    table_release_leading(m, s, before_window < s->table.n ? before_window : s->table.n);

    uint64_t slots = min_u64(computed + num_new + lookahead, m->config->max_model_len);
    uint64_t have = (uint64_t)s->table.n + hits->n;
    assert(before_window <= have);
    uint64_t wanted = blocks_for_tokens(m, slots);
    uint64_t needed = wanted > have ? wanted - have : 0;
    if (needed + free_hits(m, hits, before_window) + kept_free > m->pool.free_queue.n)
        return false;

    for (uint32_t i = 0; i < hits->n; i++) {
        uint32_t id = i < before_window ? 0 : hits->v[i];
        if (id != 0)
            v1_pool_touch(&m->pool, id);
        v1_list_push(&s->table, id);
    }
    for (uint64_t i = 0; i < needed; i++) {
        v1_list_push(new_blocks, v1_pool_pop(&m->pool));
        v1_list_push(&s->table, new_blocks->v[i]);
    }
    give_keys(m, s, computed + num_new);
    return true;
}

/* --- scheduling -------------------------------------------------------------------------- */

static struct v1_scheduled *add_scheduled(struct model *m, uint32_t request)
{
    struct v1_step *step = m->step;
    step->scheduled = v1_grow(step->scheduled, step->num_scheduled, sizeof *step->scheduled);
    struct v1_scheduled *entry = &step->scheduled[step->num_scheduled++];
    *entry = (struct v1_scheduled){.request = request};
    return entry;
}

static uint64_t cut_long_prefill(const struct model *m, uint64_t tokens)
{
    uint32_t threshold = m->config->long_prefill_token_threshold;
    return threshold > 0 ? min_u64(tokens, threshold) : tokens;
}

static void preempt_last(struct model *m)
{
    uint32_t request = m->running.v[--m->running.n];
    struct sequence *s = &m->sequences[request];
    table_release(m, s);
    s->num_computed = 0;
    s->was_preempted = true;
    v1_list_insert(&m->waiting, 0, request);
    v1_list_push(&m->step->preempted, request);
    m->summary->preemptions++;
}

static void schedule_running(struct model *m, uint64_t *budget)
{
    const struct v1_list no_hits = {0};
    for (uint32_t i = 0; i<m->running.n && * budget> 0; i++) {
        uint32_t request = m->running.v[i];
        struct sequence *s = &m->sequences[request];
        uint64_t n = cut_long_prefill(m, s->num_tokens - s->num_computed);
        n = min_u64(n, *budget);
        n = min_u64(n, m->config->max_model_len - 1 - s->num_computed);
        assert(n > 0);

        struct v1_list new_blocks = {0};
        while (
            !allocate(m, s, s->num_computed, n, m->config->num_lookahead_tokens, &no_hits, 0, &new_blocks)) {
            bool itself = i == m->running.n - 1;
            preempt_last(m);
            if (itself)
                return;
        }
        struct v1_scheduled *entry = add_scheduled(m, request);
        entry->num_new_tokens = (uint32_t)n;
        entry->num_computed_tokens = s->num_computed;
        entry->new_blocks = new_blocks;
        *budget -= n;
    }
}

/* Whether all tokens of a waiting request would fit now, not only those of this step. */
static bool whole_prompt_fits(const struct model *m, const struct sequence *s, const struct v1_list *hits)
{
    const struct v1_config *c = m->config;
    uint64_t blocks = blocks_for_tokens(m, s->num_tokens);
    if (c->sliding_window > 0 && c->rules == V1_RULES_2026_08) {
        uint64_t held =
            min_u64((uint64_t)c->sliding_window - 1 + c->max_num_batched_tokens, c->max_model_len);
        blocks = min_u64(blocks, blocks_for_tokens(m, held) + 1);
    }
    uint64_t needed = blocks > hits->n ? blocks - hits->n : 0;
    uint32_t before_window = blocks_before_window(m, (uint64_t)hits->n * c->block_tokens);
    return needed + free_hits(m, hits, before_window) + watermark_blocks(m) <= m->pool.free_queue.n;
}

static void count_admission(struct model *m, const struct sequence *s, uint64_t hit_tokens)
{
    if (s->was_preempted) {
        m->summary->readmitted_tokens += s->num_tokens;
        m->summary->readmitted_hit_tokens += hit_tokens;
    } else {
        m->summary->admitted_tokens += s->num_tokens;
        m->summary->admitted_hit_tokens += hit_tokens;
    }
}

/* Tries to admit the head of the waiting queue. On success *hits belongs to the step's line. */
static bool admit_head(struct model *m, uint64_t *budget, struct v1_list *hits)
{
    const struct v1_config *c = m->config;
    uint32_t request = m->waiting.v[0];
    struct sequence *s = &m->sequences[request];
    lookup(m, s, hits);
    if (c->rules == V1_RULES_2026_04)
        count_lookup(m, s, hits);

    uint64_t hit_tokens = (uint64_t)hits->n * c->block_tokens;
    uint64_t n = cut_long_prefill(m, s->num_tokens - hit_tokens);
    if (!c->enable_chunked_prefill && n > *budget)
        return false;
    n = min_u64(n, *budget);
    if (c->reserve_full_prompt && !whole_prompt_fits(m, s, hits))
        return false;
    uint64_t lookahead = c->rules == V1_RULES_2026_08 ? c->num_lookahead_tokens : 0;
    struct v1_list new_blocks = {0};
    if (!allocate(m, s, hit_tokens, n, lookahead, hits, watermark_blocks(m), &new_blocks))
        return false;

    if (c->rules == V1_RULES_2026_08)
        count_lookup(m, s, hits);
    count_admission(m, s, hit_tokens);
    s->num_computed = (uint32_t)hit_tokens;
    v1_list_remove_at(&m->waiting, 0);
    v1_list_push(&m->running, request);
    *budget -= n;

    struct v1_scheduled *entry = add_scheduled(m, request);
    entry->num_new_tokens = (uint32_t)n;
    entry->num_computed_tokens = s->num_computed;
    entry->admission = true;
    entry->preempted = s->was_preempted;
    entry->hit_blocks = *hits;
    entry->new_blocks = new_blocks;
    return true;
}

static void schedule_waiting(struct model *m, uint64_t *budget)
{
    while (m->waiting.n > 0 && *budget > 0 && m->running.n < m->config->max_num_seqs) {
        struct v1_list hits = {0};
        if (!admit_head(m, budget, &hits)) {
            v1_list_release(&hits);
            return;
        }
    }
}

static void schedule(struct model *m)
{
    uint64_t budget = m->config->max_num_batched_tokens;
    schedule_running(m, &budget);
    if (m->step->preempted.n == 0)
        schedule_waiting(m, &budget);
}

/* --- a step ------------------------------------------------------------------------------ */

static void add_arrivals(struct model *m, uint64_t now)
{
    for (; m->num_added < m->input->num_requests; m->num_added++) {
        uint32_t request = m->arrivals[m->num_added];
        const struct v1_request *r = &m->input->requests[request];
        if (r->arrival > now)
            return;
        if (r->prompt_tokens == 0 || r->prompt_tokens >= m->config->max_model_len) {
            v1_list_push(&m->step->rejected, request);
            m->summary->rejected++;
            continue;
        }
        uint64_t most = min_u64((uint64_t)r->prompt_tokens + r->output_tokens, m->config->max_model_len);
        struct sequence *s = &m->sequences[request];
        s->tokens = v1_resize(NULL, most, sizeof *s->tokens);
        memcpy(s->tokens, r->prompt, r->prompt_tokens * sizeof *s->tokens);
        s->num_tokens = r->prompt_tokens;
        v1_list_push(&m->waiting, request);
    }
}

static void sequence_release(struct sequence *s)
{
    free(s->tokens);
    s->tokens = NULL;
    v1_list_release(&s->keys);
    v1_list_release(&s->table);
}

static void finish(struct model *m, uint32_t request)
{
    table_release(m, &m->sequences[request]);
    sequence_release(&m->sequences[request]);
    v1_list_remove(&m->running, request);
    v1_list_push(&m->step->finished, request);
    m->summary->finished++;
}

/* The scheduled tokens are computed; whoever has all of its tokens computed gets another one. */
static void execute(struct model *m)
{
    for (uint32_t i = 0; i < m->step->num_scheduled; i++) {
        const struct v1_scheduled *entry = &m->step->scheduled[i];
        const struct v1_request *r = &m->input->requests[entry->request];
        struct sequence *s = &m->sequences[entry->request];
        s->num_computed += entry->num_new_tokens;
        m->step->scheduled_tokens += entry->num_new_tokens;
        assert(s->num_computed <= s->num_tokens);
        if (s->num_computed < s->num_tokens)
            continue;
        uint64_t token = r->output != NULL ? r->output[s->num_outputs] : m->next_fresh_token++;
        s->tokens[s->num_tokens++] = token;
        s->num_outputs++;
        if (s->num_outputs == r->output_tokens || s->num_tokens == m->config->max_model_len)
            finish(m, entry->request);
    }
    m->summary->scheduled_tokens += m->step->scheduled_tokens;
}

/* --- digests ----------------------------------------------------------------------------- */

#define DIGEST_START UINT64_C(0xcbf29ce484222325)
#define DIGEST_FACTOR UINT64_C(0x100000001b3)
#define DIGEST_SEPARATOR UINT32_C(0xffffffff)

static void digest_word(uint64_t *digest, uint32_t word)
{
    *digest = (*digest ^ word) * DIGEST_FACTOR;
}

static void digest_list(uint64_t *digest, const struct v1_list *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        digest_word(digest, list->v[i]);
}

static uint64_t step_digest(const struct v1_step *step)
{
    uint64_t digest = DIGEST_START;
    digest_word(&digest, (uint32_t)step->step);
    for (uint32_t i = 0; i < step->num_scheduled; i++) {
        const struct v1_scheduled *entry = &step->scheduled[i];
        digest_word(&digest, entry->request);
        digest_word(&digest, entry->num_new_tokens);
        digest_word(&digest, entry->num_computed_tokens);
        digest_word(&digest, entry->hit_blocks.n);
        digest_list(&digest, &entry->hit_blocks);
        digest_word(&digest, entry->new_blocks.n);
        digest_list(&digest, &entry->new_blocks);
    }
    digest_word(&digest, DIGEST_SEPARATOR);
    digest_list(&digest, &step->preempted);
    digest_word(&digest, DIGEST_SEPARATOR);
    digest_list(&digest, &step->finished);
    digest_word(&digest, DIGEST_SEPARATOR);
    digest_list(&digest, &step->evictions);
    digest_word(&digest, DIGEST_SEPARATOR);
    digest_word(&digest, step->free_blocks);
    return digest;
}

/* --- the run ----------------------------------------------------------------------------- */

static uint32_t *arrival_order(const struct v1_case *c)
{
    uint32_t *order = v1_resize(NULL, c->num_requests, sizeof *order);
    for (uint32_t i = 0; i < c->num_requests; i++) {
        uint32_t at = i; /* insertion sort: equal arrivals stay in line order */
        for (; at > 0 && c->requests[order[at - 1]].arrival > c->requests[i].arrival; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}

static void model_init(struct model *m, const struct v1_case *c, struct v1_summary *summary)
{
    *m = (struct model){
        .config = &c->config,
        .input = c,
        .sequences = v1_resize(NULL, c->num_requests, sizeof *m->sequences),
        .arrivals = arrival_order(c),
        .next_fresh_token = V1_FRESH_TOKEN_FIRST,
        .summary = summary,
    };
    v1_pool_init(&m->pool, &c->config);
    memset(m->sequences, 0, c->num_requests * sizeof *m->sequences);
    summary->digest = DIGEST_START;
}

static void model_release(struct model *m)
{
    v1_pool_release(&m->pool);
    for (uint32_t i = 0; i < m->input->num_requests; i++)
        sequence_release(&m->sequences[i]);
    free(m->sequences);
    free(m->arrivals);
    v1_list_release(&m->running);
    v1_list_release(&m->waiting);
}

static void close_step(struct model *m)
{
    struct v1_step *step = m->step;
    step->running = m->running.n;
    step->waiting = m->waiting.n;
    step->free_blocks = m->pool.free_queue.n;
    step->cached_blocks = v1_pool_cached(&m->pool);
    step->evictions = m->pool.evictions; /* the line owns them now */
    m->pool.evictions = (struct v1_list){0};
    m->summary->evictions += step->evictions.n;
    step->digest = step_digest(step);
    digest_word(&m->summary->digest, (uint32_t)step->digest);
    digest_word(&m->summary->digest, (uint32_t)(step->digest >> 32));
}

static void run_step(struct model *m, uint64_t now, struct v1_step *step)
{
    *step = (struct v1_step){.step = now};
    m->step = step;
    add_arrivals(m, now);
    schedule(m);
    step->free_after_schedule = m->pool.free_queue.n;
    uint32_t used = m->config->num_blocks - 1 - step->free_after_schedule;
    if (used > m->summary->peak_used_blocks)
        m->summary->peak_used_blocks = used;
    execute(m);
    close_step(m);
}

/* Whether the run ends after this step; sets why. */
static bool is_over(const struct model *m, uint64_t num_steps)
{
    bool unfinished = m->running.n + m->waiting.n > 0;
    bool arrivals_left = m->num_added < m->input->num_requests;
    if (!unfinished && !arrivals_left)
        return true;
    if (!arrivals_left && m->step->num_scheduled == 0 && m->step->preempted.n == 0)
        m->summary->stalled = true;
    else if (num_steps == m->config->max_steps)
        m->summary->max_steps_reached = true;
    return m->summary->stalled || m->summary->max_steps_reached;
}

void v1_reference_run(const struct v1_case *c, struct v1_result *result)
{
    assert(v1_case_valid(c));
    *result = (struct v1_result){0};
    struct model m;
    model_init(&m, c, &result->summary);
    bool over = c->num_requests == 0;
    for (uint64_t now = 0; !over; now++) {
        if (m.running.n + m.waiting.n == 0) {
            uint64_t next_arrival = c->requests[m.arrivals[m.num_added]].arrival;
            if (next_arrival > now)
                now = next_arrival;
        }
        result->steps = v1_grow(result->steps, result->num_steps, sizeof *result->steps);
        run_step(&m, now, &result->steps[result->num_steps++]);
        over = is_over(&m, result->num_steps);
    }
    result->summary.unfinished = (uint64_t)m.running.n + m.waiting.n;
    result->summary.blocks_allocated = m.pool.num_popped;
    result->summary.free_queue = m.pool.free_queue;
    m.pool.free_queue = (struct v1_list){0};
    model_release(&m);
}

void v1_result_release(struct v1_result *result)
{
    for (size_t i = 0; i < result->num_steps; i++) {
        struct v1_step *step = &result->steps[i];
        for (uint32_t j = 0; j < step->num_scheduled; j++) {
            v1_list_release(&step->scheduled[j].hit_blocks);
            v1_list_release(&step->scheduled[j].new_blocks);
        }
        free(step->scheduled);
        v1_list_release(&step->preempted);
        v1_list_release(&step->finished);
        v1_list_release(&step->rejected);
        v1_list_release(&step->evictions);
    }
    free(result->steps);
    v1_list_release(&result->summary.free_queue);
    *result = (struct v1_result){0};
}
