/* Random scripts of operations on the paging policies, behind the check wrapper with a walk at each call,
 * against tests/paged_model.c: same answers, asks, tables, free queue, evictions and copies after every
 * operation. A script is plain data whose operations make sense in any state, so a failing one is shrunk by
 * leaving operations out, and printed. */
#include "tests/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/eviction.h"
#include "allocator/kv_check.h"
#include "allocator/kv_policy.h"
#include "tests/paged_model.h"

enum { GROUPS = 4, GROUP_SEQS = 3, OPS = 70, KEYS_MAX = MODEL_TABLE_MAX };

/* --- scripts ------------------------------------------------------------------------------- */

enum op_kind { OP_ADMIT, OP_EXTEND, OP_RELEASE, OP_FORK, OP_BEAM, OP_TRIM, OP_KINDS };
static const char *const op_names[] = { "admit", "extend", "release", "fork", "beam", "trim" };

struct op {
    enum op_kind kind;
    uint32_t group;
    uint32_t prompt_tokens, samples, content, whole; /* admit */
    uint32_t tokens, lookahead;                      /* admit, extend: how many more at most */
    uint32_t pick;                                   /* beam: who dies and who is forked */
    bool something_runs;
};

struct setting {
    const char *policy;
    uint32_t block_tokens, blocks, window_tokens;
    double watermark;
    enum kv_rules rules;
    const char *evict; /* NULL: the default */
};

static const struct setting settings[] = {
    { "dynamic", 4, 24, 0, 0, KV_RULES_2026_08, NULL },
    { "dynamic", 1, 40, 0, 0.1, KV_RULES_2026_08, NULL },
    { "dynamic", 4, 20, 7, 0, KV_RULES_2026_08, NULL },
    { "prefix", 4, 24, 0, 0, KV_RULES_2026_08, NULL },
    { "prefix", 4, 24, 0, 0, KV_RULES_2026_04, NULL },
    { "prefix", 1, 50, 0, 0.05, KV_RULES_2026_08, NULL },
    { "prefix", 4, 20, 9, 0.1, KV_RULES_2026_08, NULL },
    { "prefix", 2, 30, 1, 0, KV_RULES_2026_04, NULL },
    { "prefix", 3, 30, 8, 0, KV_RULES_2026_04, NULL },
    { "ideal", 16, 60, 0, 0, KV_RULES_2026_08, NULL },
    { "ideal", 16, 60, 6, 0, KV_RULES_2026_04, NULL },
};

/* For every eviction order that has a reference. */
static const struct setting order_settings[] = {
    { "prefix", 4, 24, 0, 0, KV_RULES_2026_08, NULL },
    { "prefix", 2, 40, 0, 0, KV_RULES_2026_04, NULL },
    { "prefix", 3, 30, 8, 0.1, KV_RULES_2026_08, NULL },
    { "ideal", 16, 50, 0, 0, KV_RULES_2026_08, NULL },
};

enum { MAX_SEQ_TOKENS = 60 };

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

static struct op draw_op(void)
{
    static const enum op_kind kinds[] = { OP_ADMIT, OP_ADMIT, OP_ADMIT, OP_EXTEND, OP_EXTEND, OP_EXTEND,
                                          OP_RELEASE, OP_FORK, OP_FORK, OP_BEAM, OP_TRIM, OP_TRIM };
    return (struct op){
        .kind = kinds[draw(sizeof kinds / sizeof kinds[0])],
        .group = draw(GROUPS),
        .prompt_tokens = 1 + draw(32),
        .samples = draw(2) == 0 ? 1 : 1 + draw(GROUP_SEQS),
        .content = draw(4),
        .whole = draw(3),
        .tokens = 1 + draw(draw(3) == 0 ? 12 : 2),
        .lookahead = draw(4) == 0 ? draw(6) : 0,
        .pick = draw(1000),
        .something_runs = draw(2) == 0,
    };
}

/* --- one run ------------------------------------------------------------------------------- */

/* A request: sequences group * GROUP_SEQS onwards. */
struct group {
    bool admitted, forked;
    struct kv_request request;
    uint64_t filled_tokens;
    uint64_t keys[GROUP_SEQS][KEYS_MAX];
};

enum { AWAITED_MAX = 16 };

struct run {
    struct kv_policy *policy;
    struct paged_model model;
    struct group groups[GROUPS];
    uint64_t serial; /* of admissions: makes outputs unique */
    uint32_t evicted[MODEL_BLOCKS_MAX], evicted_count;
    uint32_t copied_from[MODEL_BLOCKS_MAX], copied_to[MODEL_BLOCKS_MAX], copied_count;
    uint64_t now_ns;
    uint64_t awaited[AWAITED_MAX]; /* keys that waiting requests will look for */
    uint32_t awaited_count;
    char wrong[200]; /* "" while all is well */
};

static void complain(struct run *run, const char *what, uint64_t found, uint64_t expected)
{
    if (run->wrong[0] == '\0')
        snprintf(run->wrong, sizeof run->wrong, "%s: found %" PRIu64 ", expected %" PRIu64, what, found,
                 expected);
}

static void same(struct run *run, const char *what, uint64_t found, uint64_t expected)
{
    if (found != expected)
        complain(run, what, found, expected);
}

static void on_violation(void *context, uint64_t call_number, const char *call, const char *policy_name,
                         const char *what)
{
    struct run *run = context;
    (void)policy_name;
    if (run->wrong[0] == '\0')
        snprintf(run->wrong, sizeof run->wrong, "check: call %" PRIu64 " (%s): %s", call_number, call, what);
}

static void on_evicted(void *context, kv_block block, uint64_t key)
{
    struct run *run = context;
    (void)key;
    run->evicted[run->evicted_count++] = block;
}

static uint32_t awaited_index(const struct run *run, uint64_t key)
{
    uint32_t i = 0;
    while (i < run->awaited_count && run->awaited[i] != key)
        i++;
    return i;
}

static bool is_awaited(const void *context, uint64_t key)
{
    const struct run *run = context;
    return awaited_index(run, key) < run->awaited_count;
}

static bool on_expected(void *context, uint64_t key)
{
    return is_awaited(context, key);
}

static void on_copied(void *context, kv_block from, kv_block to)
{
    struct run *run = context;
    run->copied_from[run->copied_count] = from;
    run->copied_to[run->copied_count++] = to;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) + UINT64_C(0x632be59bd9b4e019);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 27;
}

/* Keys chain over blocks. The first 12 tokens of contents 0, 1 and of 2, 3 agree; outputs agree with nothing. */
static void make_keys(struct group *g, uint32_t block_tokens, uint32_t content, uint64_t serial)
{
    for (uint64_t k = 0; k < GROUP_SEQS; k++) {
        uint64_t chain = 1;
        for (uint64_t i = 0; i < KEYS_MAX; i++) {
            uint64_t end = (i + 1) * block_tokens;
            uint64_t own = end <= 12 ? content / 2 : end <= g->request.prompt_tokens ? 10 + content
                                                   : 1000 + serial * GROUP_SEQS + k;
            chain = g->keys[k][i] = mix(chain, own);
        }
    }
}

static bool same_hit(struct run *run, const struct kv_hit *hit, const struct model_hit *expected)
{
    same(run, "hit blocks", hit->blocks, expected->blocks);
    for (uint32_t i = 0; run->wrong[0] == '\0' && i < hit->blocks; i++)
        same(run, "hit block", hit->ids[i], expected->ids[i]);
    return run->wrong[0] == '\0';
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void run_admit(struct run *run, struct group *g, const struct op *op)
{
    uint32_t first = op->group * GROUP_SEQS, block_tokens = run->policy->block_tokens;
    struct kv_hit hit = { 0 };
    struct model_ask expected = { .seqs = { first }, .count = 1 };
    *g = (struct group){ .request = { .prompt_tokens = op->prompt_tokens, .max_tokens = 20,
                                      .output_tokens = 20, .final_tokens = op->prompt_tokens + 19,
                                      .samples = op->samples, .priority = op->pick % 3,
                                      .category = op->pick % 4 } };
    run->model.request = &g->request;
    make_keys(g, block_tokens, op->content, run->serial++);
    if (run->model.caches) {
        kv_lookup(run->policy, g->keys[0], op->prompt_tokens, &hit);
        expected.hit = model_lookup(&run->model, g->keys[0], op->prompt_tokens);
        if (!same_hit(run, &hit, &expected.hit))
            return;
    }
    uint64_t computed = hit.tokens;
    uint64_t filled = op->whole == 2 ? smaller(computed + op->tokens, op->prompt_tokens) : op->prompt_tokens;
    const uint64_t *chains[GROUP_SEQS] = { g->keys[0], g->keys[1], g->keys[2] };
    kv_seq seqs[GROUP_SEQS] = { { first }, { first + 1 }, { first + 2 } };
    struct kv_ask ask = {
        .request = &g->request, .seqs = seqs, .seq_count = op->samples,
        .something_runs = op->something_runs, .computed_tokens = computed, .filled_tokens = filled,
        .slots_tokens = smaller(filled + op->lookahead, MAX_SEQ_TOKENS),
        .keyed_tokens = run->model.caches ? filled : 0, .keys = chains,
        .hit = run->model.caches ? &hit : NULL,
        .whole_tokens = op->whole > 0 ? op->prompt_tokens : 0,
        .whole_blocks_max = run->model.window_tokens > 0 ? 6 : 0,
    };
    expected.computed = computed, expected.filled = filled, expected.slots = ask.slots_tokens;
    expected.keyed = ask.keyed_tokens, expected.keys[0] = g->keys[0];
    expected.whole = ask.whole_tokens, expected.whole_blocks_max = ask.whole_blocks_max;
    expected.something_runs = ask.something_runs;
    struct kv_taken taken;
    uint64_t asked;
    enum kv_status status = kv_admit(run->policy, &ask, &taken);
    same(run, "admit", status, (uint64_t)model_admit(&run->model, &expected, &asked));
    same(run, "admission's ask", taken.ask_units, asked);
    g->admitted = status == KV_OK;
    g->filled_tokens = filled;
    if (run->policy->foresees && op->pick % 2 == 0) { /* as when it was somebody's next use */
        uint64_t blocks = op->prompt_tokens / run->policy->block_tokens;
        run->policy->ops->foreseen(run->policy, g->keys[0], blocks);
        model_foreseen(&run->model, g->keys[0], blocks);
    }
}

static void run_extend(struct run *run, struct group *g, const struct op *op)
{
    uint32_t count = g->forked ? g->request.samples : 1, first = op->group * GROUP_SEQS;
    run->model.request = &g->request;
    /* A group forks when its prompt is there, and not before. */
    uint64_t limit = g->forked || g->request.samples == 1 ? g->request.final_tokens : g->request.prompt_tokens;
    uint64_t filled = smaller(smaller(g->filled_tokens + op->tokens, limit), MAX_SEQ_TOKENS);
    const uint64_t *chains[GROUP_SEQS] = { g->keys[0], g->keys[1], g->keys[2] };
    kv_seq seqs[GROUP_SEQS] = { { first }, { first + 1 }, { first + 2 } };
    struct kv_ask ask = {
        .request = &g->request, .seqs = seqs, .seq_count = count, .computed_tokens = g->filled_tokens,
        .filled_tokens = filled, .slots_tokens = smaller(filled + op->lookahead, MAX_SEQ_TOKENS),
        .keyed_tokens = run->model.caches ? filled : 0, .keys = chains,
    };
    struct model_ask expected = {
        .seqs = { first, first + 1, first + 2 }, .count = count, .computed = g->filled_tokens,
        .filled = filled, .slots = ask.slots_tokens, .keyed = ask.keyed_tokens,
        .keys = { g->keys[0], g->keys[1], g->keys[2] },
    };
    struct kv_taken taken;
    uint64_t asked;
    enum kv_status status = kv_extend(run->policy, &ask, &taken);
    same(run, "extend", status, (uint64_t)model_extend(&run->model, &expected, &asked));
    same(run, "growth's ask", taken.ask_units, asked);
    if (status == KV_OK)
        g->filled_tokens = filled;
}

static void run_release(struct run *run, struct group *g, uint32_t first)
{
    for (uint32_t k = 0; k < GROUP_SEQS; k++) {
        kv_release(run->policy, &(kv_seq){ first + k }, 1);
        model_release(&run->model, first + k);
    }
    g->admitted = false;
}

static void run_fork(struct run *run, struct group *g, uint32_t first)
{
    kv_seq children[] = { { first + 1 }, { first + 2 } };
    if (g->forked || g->request.samples == 1 || g->filled_tokens < g->request.prompt_tokens)
        return;
    kv_fork(run->policy, (kv_seq){ first }, children, g->request.samples - 1, g->filled_tokens);
    for (uint32_t k = 1; k < g->request.samples; k++)
        model_fork(&run->model, first, first + k, g->filled_tokens);
    g->forked = true;
}

/* One beam dies and another one is forked into its place; it has its parent's content from then on. */
static void run_beam(struct run *run, struct group *g, const struct op *op)
{
    uint32_t first = op->group * GROUP_SEQS, n = g->request.samples;
    uint32_t dies = op->pick % n, parent = op->pick / n % n;
    if (!g->forked || dies == parent)
        return;
    kv_release(run->policy, &(kv_seq){ first + dies }, 1);
    model_release(&run->model, first + dies);
    kv_fork(run->policy, (kv_seq){ first + parent }, &(kv_seq){ first + dies }, 1, g->filled_tokens);
    model_fork(&run->model, first + parent, first + dies, g->filled_tokens);
    uint64_t full = g->filled_tokens / run->policy->block_tokens;
    uint64_t chain = 1;
    for (uint64_t i = 0; i < KEYS_MAX; i++) {
        chain = i < full ? g->keys[parent][i] : mix(chain, g->keys[dies][i]);
        g->keys[dies][i] = chain;
    }
}

static void run_trim(struct run *run, const struct group *g, uint32_t first)
{
    uint64_t window = run->model.window_tokens;
    uint64_t first_token = g->filled_tokens + 1 > window ? g->filled_tokens + 1 - window : 0;
    uint32_t count = g->forked ? g->request.samples : 1;
    if (window == 0 || first_token == 0)
        return;
    for (uint32_t k = 0; k < count; k++) {
        kv_trim(run->policy, (kv_seq){ first + k }, first_token);
        model_trim(&run->model, first + k, first_token);
    }
}

/* Time goes on; somebody begins or ceases to wait for a block of some content. */
static void pass_time(struct run *run, const struct op *op)
{
    const struct kv_policy *policy = run->policy;
    const struct group *g = &run->groups[op->pick % GROUPS];
    uint64_t key = g->keys[op->pick % GROUP_SEQS][op->pick % KEYS_MAX];
    run->now_ns += op->tokens;
    if (policy->keeps_time) {
        bool ended = policy->ops->clock(run->policy, run->now_ns);
        uint32_t before = reference_pinned(&run->model.order);
        reference_clock(&run->model.order, run->now_ns);
        same(run, "pins ended", ended, before != reference_pinned(&run->model.order));
        same(run, "next unpin", policy->ops->next_unpin(policy), reference_next_unpin(&run->model.order));
    }
    if (policy->queue_requests == 0 || op->pick % 3 != 0)
        return;
    uint32_t at = awaited_index(run, key);
    bool begins = at == run->awaited_count;
    if (begins && at == AWAITED_MAX)
        return;
    if (begins)
        run->awaited[run->awaited_count++] = key;
    else
        run->awaited[at] = run->awaited[--run->awaited_count];
    policy->ops->expect(run->policy, key, begins);
    for (uint32_t b = 1; b <= run->model.usable_blocks; b++)
        if (run->model.keyed[b] && run->model.key[b] == key)
            reference_expect(&run->model.order, b - 1, begins);
}

static void run_op(struct run *run, const struct op *op)
{
    struct group *g = &run->groups[op->group];
    uint32_t first = op->group * GROUP_SEQS;
    pass_time(run, op);
    run->evicted_count = run->copied_count = 0;
    run->model.evicted_count = run->model.copied_count = 0;
    if (op->kind == OP_ADMIT && !g->admitted)
        run_admit(run, g, op);
    else if (!g->admitted)
        return;
    else if (op->kind == OP_EXTEND)
        run_extend(run, g, op);
    else if (op->kind == OP_RELEASE)
        run_release(run, g, first);
    else if (op->kind == OP_FORK)
        run_fork(run, g, first);
    else if (op->kind == OP_BEAM)
        run_beam(run, g, op);
    else if (op->kind == OP_TRIM)
        run_trim(run, g, first);
}

/* --- comparison ---------------------------------------------------------------------------- */

static void same_list(struct run *run, const char *what, const uint32_t *found, uint64_t found_count,
                      const uint32_t *expected, uint64_t expected_count)
{
    same(run, what, found_count, expected_count);
    for (uint64_t i = 0; run->wrong[0] == '\0' && i < expected_count; i++)
        same(run, what, found[i], expected[i]);
}

static void compare_facts(struct run *run)
{
    const struct paged_model *m = &run->model;
    struct kv_facts facts;
    uint64_t unit = run->policy->unit_bytes, cached = 0, named = 0;
    for (uint32_t i = 0; i < m->queue_length; i++)
        cached += m->keyed[m->queue[i]];
    for (uint32_t s = 0; s < MODEL_SEQS; s++)
        for (uint32_t i = 0; i < m->table_length[s]; i++)
            named += m->table[s][i] != 0;
    kv_get_facts(run->policy, &facts);
    same(run, "held bytes", facts.held_bytes, (m->usable_blocks - m->queue_length) * unit);
    uint64_t pinned = m->ordered ? reference_pinned(&m->order) : 0;
    same(run, "cached bytes", facts.cached_bytes, (cached - pinned) * unit);
    same(run, "pinned bytes", facts.pinned_bytes, pinned * unit);
    same(run, "free bytes", facts.free_bytes, (m->queue_length - cached) * unit);
    same(run, "referenced bytes", facts.referenced_bytes, named * unit);
    struct kv_demand growth = { .kind = KV_GROWTH, .pieces = 1 };
    struct kv_demand admission = { .kind = KV_ADMISSION, .something_runs = true, .pieces = 1 };
    uint64_t obtainable = m->queue_length - pinned, kept = smaller(obtainable, m->watermark_blocks);
    same(run, "obtainable for growth", kv_obtainable(run->policy, &growth), obtainable);
    same(run, "obtainable for admission", kv_obtainable(run->policy, &admission), obtainable - kept);
}

/* With an eviction order keyed blocks stand behind the others, by number. */
static uint32_t expected_queue(const struct paged_model *m, uint32_t *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->queue_length; i++)
        if (!m->ordered || !m->keyed[m->queue[i]])
            out[count++] = m->queue[i];
    for (uint32_t b = 1; m->ordered && b <= m->usable_blocks; b++)
        if (m->refs[b] == 0 && m->keyed[b])
            out[count++] = b;
    return count;
}

static void compare(struct run *run)
{
    const struct paged_model *m = &run->model;
    uint32_t list[MODEL_BLOCKS_MAX], expected[MODEL_BLOCKS_MAX], expected_count = expected_queue(m, expected);
    uint64_t length = run->policy->ops->free_queue(run->policy, list, MODEL_BLOCKS_MAX);
    same_list(run, "free queue", list, length, expected, expected_count);
    same_list(run, "evictions", run->evicted, run->evicted_count, m->evicted, m->evicted_count);
    same_list(run, "copies from", run->copied_from, run->copied_count, m->copied_from, m->copied_count);
    same_list(run, "copies to", run->copied_to, run->copied_count, m->copied_to, m->copied_count);
    for (uint32_t s = 0; s < MODEL_SEQS; s++) {
        uint32_t count;
        const kv_block *table = run->policy->ops->table(run->policy, (kv_seq){ s }, &count);
        same_list(run, "table", table, count, m->table[s], m->table_length[s]);
    }
    compare_facts(run);
}

/* Some keys are never looked for again. */
static uint64_t next_use(void *context, uint64_t key)
{
    (void)context;
    return key % 4 == 0 ? UINT64_MAX : key / 4 % 50;
}

static void start_run(struct run *run, const struct setting *setting)
{
    bool ideal = strcmp(setting->policy, "ideal") == 0;
    uint32_t block_tokens = ideal ? 1 : setting->block_tokens;
    struct kv_geometry g = {
        .pool_bytes = (uint64_t)setting->blocks * block_tokens * 10 + 3, .bytes_per_token = 10,
        .block_tokens = setting->block_tokens, .max_seqs = MODEL_SEQS, .max_seq_tokens = MAX_SEQ_TOKENS,
        .lookahead_tokens = 5, .window_tokens = setting->window_tokens, .watermark = setting->watermark,
        .rules = setting->rules,
    };
    struct kv_observer observer = { .context = run, .evicted = on_evicted, .copied = on_copied, .expected = on_expected,
                                    .next_use = next_use };
    const struct kv_policy_ops *ops = kv_registry_find(setting->policy);
    const char *texts[KV_OPTIONS_MAX] = { setting->evict }; /* the only option of `prefix` */
    struct kv_value values[KV_OPTIONS_MAX] = { { 0 } };
    char why[200];
    *run = (struct run){ .model = {
        .block_tokens = block_tokens, .usable_blocks = setting->blocks - !ideal,
        .watermark_blocks = (uint32_t)(setting->watermark * setting->blocks),
        .window_tokens = setting->window_tokens, .caches = strcmp(setting->policy, "dynamic") != 0,
        .unkeyed_to_head = setting->rules == KV_RULES_2026_08,
    } };
    model_start(&run->model);
    if (setting->evict != NULL) {
        static const char *const ttl[] = { "25", "60", "1" };
        const struct kv_eviction_ops *order = kv_eviction_find(setting->evict);
        bool pins = strcmp(setting->evict, "ttl") == 0;
        assert_true(kv_policy_values(ops, texts, values, why, sizeof why));
        assert_true(kv_options_parse(order->options, pins ? ttl : NULL, values + 1, why, sizeof why));
        run->model.ordered = true;
        run->model.expected = is_awaited;
        run->model.expected_context = run;
        assert_true(reference_init(&run->model.order, setting->evict, run->model.usable_blocks, values + 1));
        if ((order->flags & KV_EVICTION_CLAIRVOYANT) != 0)
            run->model.next_use = next_use;
    }
    struct kv_policy *inner = ops->create(&g, values, &observer, why, sizeof why);
    assert_non_null(inner);
    run->policy = kv_check_wrap(inner, &g, 1, on_violation, run);
    assert_non_null(run->policy);
}

/* The number of operations done when something went wrong, 0 when nothing did. */
static size_t run_script(const struct setting *setting, const struct op *ops, size_t count, char *wrong,
                         size_t wrong_bytes)
{
    static struct run run;
    size_t failed_at = 0;
    start_run(&run, setting);
    for (size_t i = 0; i < count && failed_at == 0; i++) {
        run_op(&run, &ops[i]);
        if (run.wrong[0] == '\0')
            compare(&run);
        if (run.wrong[0] != '\0')
            failed_at = i + 1;
    }
    snprintf(wrong, wrong_bytes, "%s", run.wrong);
    kv_destroy(run.policy);
    return failed_at;
}

/* Leaves out one operation after another as long as the script still fails. */
static size_t shrink(const struct setting *setting, struct op *ops, size_t count, char *wrong,
                     size_t wrong_bytes)
{
    for (size_t i = count; i-- > 0;) {
        struct op shorter[OPS];
        char found[200];
        memcpy(shorter, ops, i * sizeof *ops);
        memcpy(shorter + i, ops + i + 1, (count - i - 1) * sizeof *ops);
        size_t failed_at = run_script(setting, shorter, count - 1, found, sizeof found);
        if (failed_at == 0)
            continue;
        count = failed_at;
        i = i < count ? i : count;
        memcpy(ops, shorter, count * sizeof *ops);
        snprintf(wrong, wrong_bytes, "%s", found);
    }
    return count;
}

static void print_script(const struct op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        print_error("  %s group %u: prompt %u samples %u content %u whole %u tokens %u lookahead %u "
                    "pick %u runs %d\n", op_names[ops[i].kind], ops[i].group, ops[i].prompt_tokens,
                    ops[i].samples, ops[i].content, ops[i].whole, ops[i].tokens, ops[i].lookahead,
                    ops[i].pick, ops[i].something_runs);
}

static void scripts__random_operations__agree_with_the_model(void **state)
{
    const struct setting *setting = *state;
    struct op ops[OPS];
    char wrong[200];
    uint64_t seeds = setting->evict != NULL ? 70 : 250; /* there are many orders */
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        random_state = seed;
        for (size_t i = 0; i < OPS; i++)
            ops[i] = draw_op();
        size_t failed_at = run_script(setting, ops, OPS, wrong, sizeof wrong);
        if (failed_at == 0)
            continue;
        size_t count = shrink(setting, ops, failed_at, wrong, sizeof wrong);
        print_error("%s, seed %" PRIu64 ": %s, after\n", setting->policy, seed, wrong);
        print_script(ops, count);
        fail();
    }
}

enum { SETTINGS = sizeof settings / sizeof settings[0],
       ORDER_SETTINGS = sizeof order_settings / sizeof order_settings[0], TESTS_MAX = SETTINGS + 32 * ORDER_SETTINGS };

static struct setting all[TESTS_MAX];

/* lru is the queue itself. */
static size_t make_settings(void)
{
    size_t count = SETTINGS;
    memcpy(all, settings, sizeof settings);
    for (size_t i = 0; i < kv_eviction_count(); i++) {
        const struct kv_eviction_ops *order = kv_eviction_at(i);
        if (strcmp(order->name, "lru") == 0)
            continue;
        for (size_t k = 0; k < ORDER_SETTINGS; k++, count++) {
            assert_true(count < TESTS_MAX);
            all[count] = order_settings[k];
            all[count].evict = order->name;
        }
    }
    return count;
}

int main(void)
{
    static char names[TESTS_MAX][100];
    static struct CMUnitTest tests[TESTS_MAX];
    size_t count = make_settings();
    for (size_t i = 0; i < count; i++) {
        const struct setting *s = &all[i];
        snprintf(names[i], sizeof names[i], "scripts: %s%s%s, blocks of %u, window %u, watermark %.2f, rules %s",
                 s->policy, s->evict != NULL ? " " : "", s->evict != NULL ? s->evict : "", s->block_tokens,
                 s->window_tokens, s->watermark, s->rules == KV_RULES_2026_08 ? "2026-08" : "2026-04");
        tests[i] = (struct CMUnitTest){ .name = names[i],
                                        .test_func = scripts__random_operations__agree_with_the_model,
                                        .initial_state = (void *)(uintptr_t)s };
    }
    return _cmocka_run_group_tests("scripts", tests, count, NULL, NULL) != 0;
}
