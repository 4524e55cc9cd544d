/* The order `opt` in `run`: one request at a time it hits as many blocks as any other, whatever the lengths; and what the engine
 * tells it of the future is what lies ahead. */
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

#include "allocator/eviction.h"
#include "sim/content.h"
#include "sim/engine_core.h"
#include "tests/engine_case.h"
#include "tests/model/engine_random.h"

enum { REQUESTS = 120, SPANS = 4, ROUNDS = 40 };

static struct wl_span spans[REQUESTS][SPANS];

/* Prompts that begin as one of a few streams do and part from it somewhere, or follow an earlier request with its output,
 * as conversations do. Half of them fill their last block. */
static void draw_request(uint64_t *state, struct engine_case *c, uint32_t block_tokens)
{
    size_t i = c->count;
    const struct wl_request *before = i > 0 && engine_random_chance(state, 50) ? &c->requests[engine_random_between(state, 0, i - 1)] : NULL;
    uint64_t shared = engine_random_between(state, 0, 12 * block_tokens), own = engine_random_between(state, 0, 3 * block_tokens);
    uint64_t output = engine_random_between(state, 1, 2 * block_tokens);
    struct wl_span *s = spans[i];
    size_t n = 0;
    if (before && before->prompt_spans == 1) { /* a stream that goes on where its request ended */
        shared = before->prompt[0].count + before->output_tokens;
        s[n++] = (struct wl_span){.space = 0, .first = before->prompt[0].first, .count = shared};
    } else if (shared > 0) {
        s[n++] = (struct wl_span){.space = 0, .first = 1000000 * engine_random_between(state, 1, 6), .count = shared};
    }
    bool alone = engine_random_chance(state, 50) && shared > 0;
    if (!alone && engine_random_chance(state, 50)) own += block_tokens - (shared + own) % block_tokens;
    if (!alone && own == 0) own = 1;
    if (!alone) s[n++] = (struct wl_span){.space = 0, .first = 1000000000 + 1000 * i, .count = own};
    uint64_t prompt = alone ? shared : shared + own;
    if (prompt + output > 40 * block_tokens) return;
    struct wl_request *r = engine_case_add(c, 0, prompt, output);
    r->has_content = true;
    r->prompt = s;
    r->prompt_spans = n;
    if (n > 1 || engine_random_chance(state, 30)) return;
    s[n] = (struct wl_span){.space = 0, .first = s[0].first + s[0].count, .count = output}; /* others may have it already */
    r->output = s + n;
    r->output_spans = 1;
}

static uint64_t largest_blocks(const struct engine_case *c, uint32_t block_tokens)
{
    uint64_t most = 1;
    for (size_t i = 0; i < c->count; i++) {
        uint64_t blocks = (c->requests[i].prompt_tokens + c->requests[i].output_tokens) / block_tokens + 1;
        if (blocks > most) most = blocks;
    }
    return most;
}

static uint64_t hits_of(uint64_t seed, const char *order, uint64_t *rejected)
{
    static struct engine_case c;
    static struct engine_run run;
    char options[64];
    uint64_t state = seed;
    uint32_t block_tokens = (uint32_t)engine_random_between(&state, 1, 6);
    snprintf(options, sizeof options, "evict=%s", order);
    engine_case_init(&c, "prefix", options, 1u << 20);
    for (size_t i = 0; i < REQUESTS; i++) draw_request(&state, &c, block_tokens);
    c.config.scheduler = scheduler_find("serial");
    c.config.geometry.block_tokens = block_tokens;
    c.config.max_model_len = 1000;
    c.config.check_every = 0;
    uint64_t blocks = 1 + largest_blocks(&c, block_tokens) + engine_random_between(&state, 0, 60);
    c.config.geometry.pool_bytes = blocks * block_tokens;
    engine_case_run(&c, &run);
    uint64_t hits = run.stats->serial.hit_blocks;
    *rejected = run.stats->serial.rejected;
    engine_run_release(&run);
    return hits;
}

static void opt__serial_runs__no_order_above(void **fixture)
{
    (void)fixture;
    uint64_t hits = 0, above_lru = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        uint64_t rejected, opt = hits_of(seed, "opt", &rejected);
        check_u64_eq(rejected, 0);
        hits += opt;
        for (size_t i = 0; i < kv_eviction_count(); i++) {
            const char *name = kv_eviction_at(i)->name;
            uint64_t other = hits_of(seed, name, &rejected);
            if (other > opt) fail_msg("seed %llu: %s hits %llu blocks, opt %llu", (unsigned long long)seed, name,
                                      (unsigned long long)other, (unsigned long long)opt);
            above_lru += strcmp(name, "lru") == 0 && opt > other;
        }
    }
    assert_true(hits > 1000 && above_lru > ROUNDS / 2); /* something was at stake */
}

/* --- traces ------------------------------------------------------------------------------------------------- */

static uint64_t hits_of_trace(struct wl_source *source, const char *order, uint32_t block_tokens, uint64_t pool_blocks)
{
    static struct engine_case c;
    struct err err = {0};
    char options[64];
    snprintf(options, sizeof options, "evict=%s", order);
    engine_case_init(&c, "prefix", options, (1 + pool_blocks) * block_tokens);
    c.config.scheduler = scheduler_find("serial");
    c.config.geometry.block_tokens = block_tokens;
    c.config.max_model_len = 1u << 20;
    c.config.check_every = 0;
    struct engine *engine = engine_create(&c.config, &err);
    if (!engine || wl_rewind(source, &err) || engine_run(engine, source, &err)) fail_msg("%s", err.text);
    uint64_t hits = engine_stats(engine)->serial.hit_blocks;
    assert_true(engine_stats(engine)->serial.accepted > 0);
    engine_destroy(engine);
    return hits;
}

static void no_order_above(const char *path, uint32_t trace_block_tokens, uint32_t block_tokens, const uint64_t *pools, size_t count)
{
    struct wl_options how = {.arrival_speedup_ratio = 1, .trace_block_tokens = trace_block_tokens};
    struct wl_source *source;
    struct err err = {0};
    if (wl_open(path, &how, 1, &source, &err)) fail_msg("%s", err.text);
    for (size_t p = 0; p < count; p++) {
        uint64_t opt = hits_of_trace(source, "opt", block_tokens, pools[p]);
        for (size_t i = 0; i < kv_eviction_count(); i++) {
            const char *name = kv_eviction_at(i)->name;
            uint64_t other = hits_of_trace(source, name, block_tokens, pools[p]);
            if (other > opt) fail_msg("%s, %llu blocks: %s hits %llu, opt %llu", path, (unsigned long long)pools[p], name,
                                      (unsigned long long)other, (unsigned long long)opt);
        }
    }
    wl_close(source);
}

/* Chats whose later prompts repeat what was put out, of any length. */
static void opt__serial_generated_chats__no_order_above(void **fixture)
{
    (void)fixture;
    no_order_above("gen:requests=1500,arrivals=poisson:4,continue=0.4/0.8,content=tokens,prompt-tokens=uniform:1:400,"
                   "turn-tokens=uniform:1:200,output-tokens=uniform:1:100,prefix-tokens=100,prefix-groups=5", 0, 16,
                   (const uint64_t[]){500, 1500, 4000}, 3);
}

static void opt__serial_public_traces__no_order_above(void **fixture)
{
    (void)fixture;
    if (check_traces("x") == NULL) skip();
    no_order_above(check_traces("mooncake/mooncake_arxiv_trace.slice.head.jsonl"), 0, 512, (const uint64_t[]){300, 600, 1200}, 3);
    no_order_above(check_traces("mooncake/conversation_trace.jsonl.zst"), 0, 512, (const uint64_t[]){5000}, 1);
}

/* --- what lies ahead ----------------------------------------------------------------------------------------- */

static struct ahead {
    const struct engine_case *c;
    bool passed[ENGINE_CASE_REQUESTS];
    size_t asked, found;
} told; /* the run's hooks have another context */

static void on_event(void *context, uint64_t time_ns, enum event_kind kind, const struct sim_request *r, uint64_t a, uint64_t b)
{
    (void)context, (void)time_ns, (void)a, (void)b;
    if (kind == EVENT_ADMIT || kind == EVENT_ABORT || kind == EVENT_UNSERVABLE || kind == EVENT_REJECT) told.passed[r->index] = true;
}

static bool turned_away(const struct engine_config *c, const struct wl_request *r)
{
    bool samples = c->scheduler->serial ? r->samples > SAMPLES_MAX
                                        : r->samples > c->max_num_seqs || r->samples > c->max_num_batched_tokens;
    return r->prompt_tokens == 0 || r->prompt_tokens >= c->max_model_len || samples;
}

/* The full blocks of the request that others can have: of the prompt, then of the known output that is written and keyed. */
static uint64_t known_keys(const struct engine_config *c, uint32_t block_tokens, const struct wl_request *r, uint64_t limit, uint64_t *keys)
{
    struct wl_span known[ENGINE_RANDOM_SPANS + 1];
    size_t n = r->prompt_spans;
    uint64_t left = limit > r->prompt_tokens ? limit - r->prompt_tokens : 0;
    memcpy(known, r->prompt, n * sizeof *known);
    if (c->cache_output == CACHE_OUTPUT_KEYED && r->output_spans > 0 && left > 0) {
        known[n] = r->output[0];
        if (known[n].count > left) known[n].count = left;
        n++;
    }
    return content_keys(known, n, block_tokens, keys, 800);
}

/* All that the request will have in the pool, but the last token put out. */
static uint64_t final_tokens(const struct engine *e, const struct wl_request *r)
{
    struct sim_request cut = {0};
    engine_set_lengths(e, &cut, r);
    return cut.kv.final_tokens;
}

/* The first request ahead that has the key, by a walk over all of them. */
static uint64_t next_by_scan(const struct ahead *ahead, const struct engine *e, uint64_t key)
{
    uint32_t block_tokens = e->policy->block_tokens;
    for (size_t i = 0; i < ahead->c->count; i++) {
        const struct wl_request *r = &ahead->c->requests[i];
        uint64_t keys[800];
        if (ahead->passed[i] || !r->has_content || turned_away(&ahead->c->config, r)) continue;
        uint64_t count = known_keys(&e->config, block_tokens, r, final_tokens(e, r), keys);
        for (uint64_t b = 0; b < count; b++)
            if (keys[b] == key) return (b + 1) * block_tokens < r->prompt_tokens ? i : UINT64_MAX;
    }
    return UINT64_MAX;
}

static void on_look(void *context, struct engine *e, enum look_kind kind)
{
    struct ahead *ahead = context;
    (void)kind;
    for (size_t i = 0; i < ahead->c->count; i++) {
        const struct wl_request *r = &ahead->c->requests[i];
        uint64_t keys[800];
        if (!r->has_content || turned_away(&e->config, r)) continue;
        uint64_t count = known_keys(&e->config, e->policy->block_tokens, r, final_tokens(e, r), keys);
        for (uint64_t b = 0; b < count; b++) {
            uint64_t next = engine_next_use(e, keys[b]);
            check_u64_eq(next, next_by_scan(ahead, e, keys[b]));
            ahead->asked++;
            ahead->found += next != UINT64_MAX;
        }
    }
}

/* Of random runs under every scheduler, with clients that leave, requests that never fit and samples: at every step. */
static void opt__random_runs__knows_what_lies_ahead(void **fixture)
{
    static const struct engine_variant opt = {"prefix", "evict=opt"};
    static struct engine_random rc;
    static struct engine_run run;
    size_t asked = 0, found = 0;
    (void)fixture;
    for (uint64_t seed = 1; seed <= 2 * ENGINE_RANDOM_RUNS; seed++) {
        told = (struct ahead){.c = &rc.c};
        engine_random_case(seed, &opt, &rc);
        rc.c.config.hooks.event = on_event;
        rc.c.config.hooks.look = on_look;
        rc.c.config.hooks.look_context = &told;
        engine_case_run(&rc.c, &run);
        engine_run_release(&run);
        asked += told.asked;
        found += told.found;
    }
    assert_true(found > 1000 && found < asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opt__serial_runs__no_order_above),
        cmocka_unit_test(opt__serial_generated_chats__no_order_above),
        cmocka_unit_test(opt__serial_public_traces__no_order_above),
        cmocka_unit_test(opt__random_runs__knows_what_lies_ahead),
    };
    return cmocka_run_group_tests_name("opt in run", tests, NULL, NULL);
}
