#include "tests/model/engine_random.h"

#include <assert.h>
#include <string.h>

#include "sim/engine_core.h"
#include "tests/check.h"

/* --- chance -------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t engine_random_between(uint64_t *state, uint64_t low, uint64_t high)
{
    return low + draw(state) % (high - low + 1);
}

bool engine_random_chance(uint64_t *state, unsigned percent)
{
    return engine_random_between(state, 1, 100) <= percent;
}

/* --- random cases -------------------------------------------------------------------------- */

const struct engine_variant engine_variants[] = {
    {"static", "reserve=max placement=first-fit"},
    {"static", "reserve=max placement=buddy"},
    {"static", "reserve=pow2 placement=best-fit"},
    {"static", "reserve=pow2-total placement=buddy"},
    {"static", "reserve=oracle placement=first-fit"},
    {"static", "reserve=oracle placement=best-fit"},
    {"static", "reserve=oracle placement=worst-fit"},
    {"static", "reserve=oracle placement=buddy oracle-slack=1"},
    {"static", "reserve=declared placement=worst-fit"},
    {"static", "reserve=declared placement=buddy"},
    {"static-paged", "reserve=max"},
    {"static-paged", "reserve=pow2"},
    {"static-paged", "reserve=pow2-total"},
    {"static-paged", "reserve=oracle"},
    {"static-paged", "reserve=declared"},
    {"jemalloc", "reserve=oracle"},
    {"jemalloc", "reserve=declared"},
    {"jemalloc", "reserve=max"},
    {"dynamic", NULL},
    {"prefix", NULL},
    {"prefix", "evict=opt"},
    {"prefix", "evict=wa"},
    {"prefix", "evict=ttl ttl-ns=15000 ttl-max-percent=70"},
    {"prefix", "evict=ttl ttl-ns=2000000000"},
    {"prefix", "evict=queue-aware queue-depth=3"},
    {"ideal", NULL},
};
static_assert(sizeof engine_variants / sizeof engine_variants[0] == ENGINE_VARIANTS, "as in the header");

void engine_random_content(uint64_t *state, struct wl_request *r, struct wl_span *spans)
{
    uint64_t shared = engine_random_chance(state, 40) ? r->prompt_tokens : engine_random_between(state, 0, r->prompt_tokens);
    uint64_t stream = 1000000 * engine_random_between(state, 1, 3), at = 0;
    r->has_content = true;
    r->prompt = spans;
    if (shared > 0) spans[at++] = (struct wl_span){.space = 0, .first = stream, .count = shared};
    if (shared < r->prompt_tokens) {
        spans[at++] = (struct wl_span){
            .space = 0, .first = 50000000 + draw(state) % 1000000000, .count = r->prompt_tokens - shared};
    }
    r->prompt_spans = at;
    if (engine_random_chance(state, 50) || r->output_tokens == 0) return;
    r->output = spans + at;
    r->output_spans = 1;
    spans[at] = (struct wl_span){.space = 0, .first = stream + shared, .count = engine_random_between(state, 1, r->output_tokens)};
}

void engine_random_host(uint64_t *state, struct engine_config *g)
{
    uint64_t block_bytes = g->geometry.bytes_per_token * g->geometry.block_tokens;
    if (!(g->policy->flags & KV_CACHES) || g->geometry.window_tokens > 0) return;
    if (g->policy->flags & KV_TOKEN_UNITS) block_bytes = g->geometry.bytes_per_token;
    do g->host.evict = kv_eviction_at(engine_random_between(state, 0, kv_eviction_count() - 1));
    while (!host_tier_allows(g->host.evict));
    char why[200];
    assert_true(kv_options_parse(g->host.evict->options, NULL, g->host.evict_values, why, sizeof why));
    g->host.capacity_bytes = block_bytes * engine_random_between(state, 1, engine_random_chance(state, 50) ? 20 : 400);
    g->host.link = (struct host_link){.bytes_per_s = engine_random_between(state, 0, 100000),
                                      .latency_ns = engine_random_between(state, 0, 20000),
                                      .overlapped = engine_random_chance(state, 50)};
}

static void random_request(uint64_t *state, struct engine_random *rc, uint64_t *arrival, bool content)
{
    struct engine_case *c = &rc->c;
    uint64_t longest = c->config.max_model_len + (engine_random_chance(state, 5) ? 3 : 0);
    uint64_t prompt = engine_random_chance(state, 3) ? 0 : engine_random_between(state, 1, engine_random_chance(state, 60) ? 1 + longest / 3 : longest);
    uint64_t output = engine_random_chance(state, 5) ? 0 : engine_random_between(state, 1, engine_random_chance(state, 70) ? 12 : longest);
    struct wl_request *r = engine_case_add(c, *arrival, prompt, output);
    *arrival += engine_random_chance(state, 50) ? 0 : engine_random_between(state, 0, 20 * c->config.step_time.step_ns);
    if (engine_random_chance(state, 25)) r->samples = (uint32_t)engine_random_between(state, 2, 5);
    if (engine_random_chance(state, 15)) r->abort_ns = r->arrival_ns + engine_random_between(state, 0, 40 * c->config.step_time.step_ns);
    if (engine_random_chance(state, 30)) r->priority = (int64_t)engine_random_between(state, 0, 2) - 1;
    if (engine_random_chance(state, 30)) r->max_tokens = engine_random_between(state, 1, 30);
    if (content && prompt > 0) engine_random_content(state, r, rc->spans[c->count - 1]);
}

static const struct scheduler *forced;

void engine_random_force(const struct scheduler *scheduler)
{
    forced = scheduler;
}

void engine_random_case(uint64_t seed, const struct engine_variant *v, struct engine_random *rc)
{
    uint64_t state = seed;
    bool jemalloc = strcmp(v->policy, "jemalloc") == 0;
    uint64_t slots = engine_random_chance(&state, 20) ? engine_random_between(&state, 20, 40) : engine_random_between(&state, 60, 600);
    uint64_t token_bytes = jemalloc ? 512 : engine_random_between(&state, 1, 3);
    engine_case_init(&rc->c, v->policy, v->options, slots * token_bytes + engine_random_between(&state, 0, 2));
    struct engine_config *g = &rc->c.config;
    g->geometry.bytes_per_token = token_bytes;
    g->geometry.block_tokens = (uint32_t)engine_random_between(&state, 1, 9);
    g->geometry.rules = engine_random_chance(&state, 70) ? KV_RULES_2026_08 : KV_RULES_2026_04;
    if (g->geometry.rules == KV_RULES_2026_08 && engine_random_chance(&state, 30)) {
        g->geometry.watermark = (double)engine_random_between(&state, 1, 30) / 64;
    }
    g->max_model_len = engine_random_chance(&state, 50) ? engine_random_between(&state, 2, slots) : engine_random_between(&state, 2, slots / 4 + 2);
    if (engine_random_chance(&state, 30)) g->geometry.lookahead_tokens = engine_random_between(&state, 1, 10);
    if (engine_random_chance(&state, 30)) g->geometry.window_tokens = engine_random_between(&state, 1, 30);
    if (engine_random_chance(&state, 20)) g->long_prefill_token_threshold = engine_random_between(&state, 1, 12);
    g->chunked_prefill = engine_random_chance(&state, 80);
    g->whole_prompt_admission = engine_random_chance(&state, 60);
    g->max_num_batched_tokens = engine_random_chance(&state, 50) ? engine_random_between(&state, 1, 40) : 2048;
    if (engine_random_chance(&state, 50)) g->scheduler = scheduler_at(engine_random_between(&state, 0, scheduler_count() - 1));
    if (forced) g->scheduler = forced;
    bool whole = !g->chunked_prefill || g->scheduler->whole_prompts;
    if (whole && g->max_num_batched_tokens < g->max_model_len) {
        g->max_num_batched_tokens = g->max_model_len;
    }
    g->max_num_seqs = engine_random_chance(&state, 30) ? engine_random_between(&state, 1, 4) : 64;
    g->declared_output = (enum declared_output)engine_random_between(&state, 0, 3);
    g->declared_factor_millionths = engine_random_between(&state, 1, 3000000);
    g->cache_output = engine_random_chance(&state, 70) ? CACHE_OUTPUT_KEYED : CACHE_OUTPUT_UNKEYED;
    g->step_time.step_ns = engine_random_between(&state, 1, 1000);
    if (engine_random_chance(&state, 30)) {
        struct err err = {0};
        assert_int_equal(step_time_linear_init(&g->step_time, "8b", "bf16-bf16", &err), 0);
        g->step_time.step_ns = 4000000; /* scales arrivals and aborts above */
    }
    g->max_steps = 100000;
    uint64_t arrival = engine_random_chance(&state, 50) ? 0 : engine_random_between(&state, 1, 1000), count = engine_random_between(&state, 1, 14);
    bool content = engine_random_chance(&state, 70);
    for (uint64_t i = 0; i < count; i++) random_request(&state, rc, &arrival, content);
    if (engine_random_chance(&state, 50)) engine_random_host(&state, g);
    if (engine_random_chance(&state, 25)) {
        uint64_t span = g->scheduler->serial ? count : arrival + 1;
        g->window_begin = engine_random_between(&state, 0, span);
        g->window_end = g->window_begin + engine_random_between(&state, 0, span);
    }
}
