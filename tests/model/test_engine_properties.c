/* What must hold for every run, whatever the policy: random small traces under every policy, reservation,
 * placement, scheduler and step-time model, with the policy and the states walked at every call. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_core.h"
#include "tests/engine_case.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RUNS_EACH 12
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RUNS_EACH 12
#endif
#endif
#ifndef RUNS_EACH
#define RUNS_EACH 120
#endif

/* --- chance -------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t between(uint64_t *state, uint64_t low, uint64_t high)
{
    return low + draw(state) % (high - low + 1);
}

static bool chance(uint64_t *state, unsigned percent)
{
    return between(state, 1, 100) <= percent;
}

/* --- random cases -------------------------------------------------------------------------- */

static const struct variant {
    const char *policy, *options;
} variants[] = {
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
    {"ideal", NULL},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

#define SPANS_EACH 4
struct random_case {
    struct engine_case c;
    struct wl_span spans[ENGINE_CASE_REQUESTS][SPANS_EACH];
};

static void random_content(uint64_t *state, struct wl_request *r, struct wl_span *spans)
{
    /* Streams of tokens that requests share up to a point, then a tail that is nobody else's. */
    uint64_t shared = chance(state, 40) ? r->prompt_tokens : between(state, 0, r->prompt_tokens);
    uint64_t stream = 1000000 * between(state, 1, 3), at = 0;
    r->has_content = true;
    r->prompt = spans;
    if (shared > 0) spans[at++] = (struct wl_span){.space = 0, .first = stream, .count = shared};
    if (shared < r->prompt_tokens) {
        spans[at++] = (struct wl_span){
            .space = 0, .first = 50000000 + draw(state) % 1000000000, .count = r->prompt_tokens - shared};
    }
    r->prompt_spans = at;
    if (chance(state, 50) || r->output_tokens == 0) return;
    r->output = spans + at;
    r->output_spans = 1;
    spans[at] = (struct wl_span){.space = 0, .first = stream + shared, .count = between(state, 1, r->output_tokens)};
}

static void random_request(uint64_t *state, struct random_case *rc, uint64_t *arrival, bool content)
{
    struct engine_case *c = &rc->c;
    uint64_t longest = c->config.max_model_len + (chance(state, 5) ? 3 : 0);
    uint64_t prompt = chance(state, 3) ? 0 : between(state, 1, chance(state, 60) ? 1 + longest / 3 : longest);
    uint64_t output = chance(state, 5) ? 0 : between(state, 1, chance(state, 70) ? 12 : longest);
    struct wl_request *r = engine_case_add(c, *arrival, prompt, output);
    *arrival += chance(state, 50) ? 0 : between(state, 0, 20 * c->config.step_time.step_ns);
    if (chance(state, 25)) r->samples = (uint32_t)between(state, 2, 5);
    if (chance(state, 15)) r->abort_ns = r->arrival_ns + between(state, 0, 40 * c->config.step_time.step_ns);
    if (chance(state, 30)) r->max_tokens = between(state, 1, 30);
    if (content && prompt > 0) random_content(state, r, rc->spans[c->count - 1]);
}

static void random_case(uint64_t seed, const struct variant *v, struct random_case *rc)
{
    uint64_t state = seed;
    bool jemalloc = strcmp(v->policy, "jemalloc") == 0;
    uint64_t slots = chance(&state, 20) ? between(&state, 20, 40) : between(&state, 60, 600);
    uint64_t token_bytes = jemalloc ? 512 : between(&state, 1, 3);
    engine_case_init(&rc->c, v->policy, v->options, slots * token_bytes + between(&state, 0, 2));
    struct engine_config *g = &rc->c.config;
    g->geometry.bytes_per_token = token_bytes;
    g->geometry.block_tokens = (uint32_t)between(&state, 1, 9);
    g->geometry.rules = chance(&state, 70) ? KV_RULES_2026_08 : KV_RULES_2026_04;
    if (g->geometry.rules == KV_RULES_2026_08 && chance(&state, 30)) {
        g->geometry.watermark = (double)between(&state, 1, 30) / 64;
    }
    g->max_model_len = chance(&state, 50) ? between(&state, 2, slots) : between(&state, 2, slots / 4 + 2);
    if (chance(&state, 30)) g->geometry.lookahead_tokens = between(&state, 1, 10);
    if (chance(&state, 30)) g->geometry.window_tokens = between(&state, 1, 30);
    if (chance(&state, 20)) g->long_prefill_token_threshold = between(&state, 1, 12);
    g->chunked_prefill = chance(&state, 80);
    g->whole_prompt_admission = chance(&state, 60);
    g->max_num_batched_tokens = chance(&state, 50) ? between(&state, 1, 40) : 2048;
    if (chance(&state, 50)) g->scheduler = scheduler_at(between(&state, 0, scheduler_count() - 1));
    bool whole = !g->chunked_prefill || g->scheduler->whole_prompts;
    if (whole && g->max_num_batched_tokens < g->max_model_len) {
        g->max_num_batched_tokens = g->max_model_len;
    }
    g->max_num_seqs = chance(&state, 30) ? between(&state, 1, 4) : 64;
    g->declared_output = (enum declared_output)between(&state, 0, 3);
    g->declared_factor_millionths = between(&state, 1, 3000000);
    g->cache_output = chance(&state, 70) ? CACHE_OUTPUT_KEYED : CACHE_OUTPUT_UNKEYED;
    g->step_time.step_ns = between(&state, 1, 1000);
    if (chance(&state, 30)) {
        struct err err = {0};
        assert_int_equal(step_time_linear_init(&g->step_time, "8b", "bf16-bf16", &err), 0);
        g->step_time.step_ns = 4000000; /* scales arrivals and aborts above */
    }
    g->max_steps = 100000;
    uint64_t arrival = chance(&state, 50) ? 0 : between(&state, 1, 1000), count = between(&state, 1, 14);
    bool content = chance(&state, 70);
    for (uint64_t i = 0; i < count; i++) random_request(&state, rc, &arrival, content);
    if (chance(&state, 25)) {
        uint64_t span = g->scheduler->serial ? count : arrival + 1;
        g->window_begin = between(&state, 0, span);
        g->window_end = g->window_begin + between(&state, 0, span);
    }
}

/* --- properties ---------------------------------------------------------------------------- */

static const char *described(uint64_t seed, const struct variant *v)
{
    static char text[120];
    snprintf(text, sizeof text, "seed %llu, %s %s", (unsigned long long)seed, v->policy,
             v->options ? v->options : "");
    return text;
}

#define REQUIRE(holds)                                                                            \
    do {                                                                                          \
        if (!(holds)) fail_msg("%s: does not hold: %s", described(seed, v), #holds);              \
    } while (0)

static void check_episodes(uint64_t seed, const struct variant *v, const struct engine_run *run)
{
    const struct refusal_totals *t = &run->stats->refusals;
    uint64_t by_class = 0, by_cause = 0;
    for (int c = 0; c < CLASS_COUNT; c++) by_class += t->by_class[c];
    for (int c = 0; c < CAUSE_COUNT; c++) by_cause += t->by_cause[c];
    REQUIRE(t->by_kind[0] + t->by_kind[1] == t->episodes);
    REQUIRE(by_class == t->episodes);
    REQUIRE(by_cause == t->episodes);
    REQUIRE(t->requests <= t->episodes);
    REQUIRE(t->episodes <= run->episode_count);
    REQUIRE(run->episode_count <= ENGINE_CASE_EPISODES);
    for (size_t i = 0; i < run->episode_count; i++) {
        const struct episode *e = &run->episodes[i];
        uint64_t parts = 0, time = 0;
        for (int c = 0; c < CAUSE_COUNT; c++) parts += (uint64_t)e->proof.parts_bytes[c];
        for (int c = 0; c < CLASS_COUNT; c++) time += e->time_in_class[c];
        REQUIRE(parts == e->proof.shortfall_units * e->facts.unit_bytes);
        REQUIRE(e->facts.ask_units > e->facts.a_units);
        REQUIRE(e->proof.shortfall_units == e->facts.ask_units - e->facts.a_units);
        REQUIRE(e->facts.need_units <= e->facts.ask_units);
        REQUIRE(e->attempts > 0 && e->last_attempt <= run->episode_end[i] && e->begin <= e->last_attempt);
        REQUIRE(e->class >= e->proof.class);
        REQUIRE(time <= run->episode_end[i] - e->begin);
        REQUIRE((uint64_t)run->accounting->whole.time == 0 || run->engine->config.window_end != UINT64_MAX ||
                time == run->episode_end[i] - e->begin);
    }
}

static void check_integrals(uint64_t seed, const struct variant *v, const struct integrals *in,
                            uint64_t pool_bytes)
{
    u128 sum = 0;
    for (int s = 0; s < STATE_COUNT; s++) sum += in->state_byte_time[s];
    REQUIRE(sum == in->time * pool_bytes);
    REQUIRE(in->held_byte_time <= in->referenced_byte_time);
}

static void check_end(uint64_t seed, const struct variant *v, const struct engine_run *run)
{
    const struct engine_stats *s = run->stats;
    const struct engine *e = run->engine;
    struct kv_facts facts;
    kv_get_facts(e->policy, &facts);
    REQUIRE(!s->stalled && !s->max_steps_reached);
    REQUIRE(s->requests == s->finished + s->rejected + s->unservable + s->aborted);
    REQUIRE(s->outgrew_pool <= s->unservable);
    REQUIRE(facts.held_bytes == 0 && facts.referenced_bytes == 0);
    REQUIRE(e->running_seqs == 0 && e->free_seq_count == e->config.geometry.max_seqs);
    REQUIRE(e->accounting.reserved_tokens + e->accounting.internal_tokens + e->accounting.dead_tokens == 0);
    REQUIRE(s->hits <= s->queries && s->admitted_hit_tokens <= s->admitted_tokens);
    REQUIRE(s->ttft_ns.count <= s->requests && s->e2e_ns.count <= s->finished);
    const uint64_t *bytes = e->accounting.now.state_bytes;
    REQUIRE(bytes[STATE_LIVE] + bytes[STATE_DEAD] + bytes[STATE_RESERVED] + bytes[STATE_INTERNAL] +
            bytes[STATE_ROUNDING] + bytes[STATE_STRANDED] == 0);
    check_integrals(seed, v, &e->accounting.whole, e->config.geometry.pool_bytes);
    check_integrals(seed, v, &e->accounting.saturated_time, e->config.geometry.pool_bytes);
}

static void run__random_traces__sums_hold_and_it_ends(void **state)
{
    const struct variant *v = *state;
    static struct random_case rc;
    static struct engine_run run;
    for (uint64_t i = 0; i < RUNS_EACH; i++) {
        uint64_t seed = i * VARIANTS + (uint64_t)(v - variants);
        random_case(seed, v, &rc);
        engine_case_run(&rc.c, &run);
        REQUIRE(run.stats->requests == rc.c.count);
        check_end(seed, v, &run);
        check_episodes(seed, v, &run);
        engine_run_release(&run);
    }
}

/* Field by field: structs have padding. */
static bool same_episode(const struct episode *a, const struct episode *b)
{
    const struct refusal_facts *f = &a->facts, *g = &b->facts;
    return a->request_index == b->request_index && a->begin == b->begin &&
           a->last_attempt == b->last_attempt && a->attempts == b->attempts && a->class == b->class &&
           f->demand.kind == g->demand.kind && f->demand.something_runs == g->demand.something_runs &&
           f->ask_units == g->ask_units && f->need_units == g->need_units &&
           f->first_part_units == g->first_part_units && f->e_units == g->e_units &&
           f->r_units == g->r_units && f->a_units == g->a_units &&
           f->use.live_bytes == g->use.live_bytes && f->use.reserved_bytes == g->use.reserved_bytes &&
           f->use.internal_bytes == g->use.internal_bytes && a->proof.primary == b->proof.primary &&
           memcmp(a->proof.parts_bytes, b->proof.parts_bytes, sizeof a->proof.parts_bytes) == 0 &&
           memcmp(a->time_in_class, b->time_in_class, sizeof a->time_in_class) == 0;
}

/* Once by the plain loop and once skipping, the latter checked at every call: neither may change anything,
 * episodes included. */
static void run__twice__same_bytes(void **state)
{
    const struct variant *v = *state;
    static struct random_case rc;
    static struct engine_run run;
    for (uint64_t i = 0; i < RUNS_EACH; i++) {
        uint64_t seed = 77000 + i;
        char *texts[2];
        static struct engine_run first;
        for (size_t k = 0; k < 2; k++) {
            random_case(seed, v, &rc);
            rc.c.config.check_every = k;
            rc.c.config.plain_loop = k == 0;
            engine_case_run(&rc.c, &run);
            texts[k] = engine_run_json(&run);
            if (k == 0) memcpy(&first, &run, sizeof run);
            engine_run_release(&run);
        }
        if (strcmp(texts[0], texts[1]) != 0) fail_msg("%s: two results", described(seed, v));
        REQUIRE(first.episode_count == run.episode_count);
        for (size_t k = 0; k < run.episode_count; k++) {
            REQUIRE(first.episode_end[k] == run.episode_end[k]);
            REQUIRE(same_episode(&first.episodes[k], &run.episodes[k]));
        }
        free(texts[0]);
        free(texts[1]);
    }
}

/* --- a pool that is never short ------------------------------------------------------------- */

static void huge_case(uint64_t seed, const struct variant *v, struct random_case *rc)
{
    uint64_t state = seed;
    engine_case_init(&rc->c, v->policy, v->options, 64u << 20);
    rc->c.config.geometry.bytes_per_token = 512;
    rc->c.config.check_every = 0;
    rc->c.config.max_model_len = 200;
    uint64_t arrival = 0;
    for (uint64_t i = 0; i < 40; i++) {
        struct wl_request *r = engine_case_add(&rc->c, arrival, between(&state, 1, 150), between(&state, 1, 40));
        arrival += between(&state, 0, 5000);
        if (chance(&state, 20)) r->samples = 3;
    }
}

/* Then memory plays no part: no refusals, and every policy has the same latencies. */
static void run__pool_is_huge__no_refusals_and_equal_latency(void **state)
{
    (void)state;
    static struct random_case rc;
    static struct engine_run run;
    for (uint64_t seed = 0; seed < 5; seed++) {
        uint64_t expected[4] = {0};
        for (size_t i = 0; i < VARIANTS; i++) {
            const struct variant *v = &variants[i];
            huge_case(seed, v, &rc);
            engine_case_run(&rc.c, &run);
            struct engine_stats *s = run.stats;
            uint64_t found[4] = {(uint64_t)s->ttft_ns.sum, (uint64_t)s->tpot_ns.sum,
                                 (uint64_t)s->e2e_ns.sum, quantiles_at(&s->e2e_ns, 99)};
            if (i == 0) memcpy(expected, found, sizeof found);
            REQUIRE(memcmp(expected, found, sizeof found) == 0);
            REQUIRE(run.episode_count == 0 && s->preemptions == 0 && s->finished == 40);
            REQUIRE(run.accounting->saturated_time.time == 0);
            engine_run_release(&run);
        }
    }
}

/* --- lost sharing --------------------------------------------------------------------------- */

/* Token t of the prompt, and of the output behind it, as (space, number). */
static bool token_at(const struct wl_request *r, uint64_t t, uint64_t *space, uint64_t *number)
{
    const struct wl_span *parts[] = {r->prompt, r->output};
    const size_t counts[] = {r->prompt_spans, r->output_spans};
    for (size_t p = 0; p < 2; p++) {
        for (size_t i = 0; i < counts[p]; i++) {
            if (t < parts[p][i].count) {
                *space = parts[p][i].space;
                *number = parts[p][i].first + t;
                return true;
            }
            t -= parts[p][i].count;
        }
    }
    return false;
}

/* Tokens of r's prompt that begin like the first `filled` known tokens of an earlier request. */
static uint64_t common_tokens(const struct wl_request *r, const struct wl_request *earlier, uint64_t filled)
{
    uint64_t t = 0, space, number, other_space, other_number;
    for (; t < r->prompt_tokens && t < filled; t++) {
        if (!token_at(r, t, &space, &number) || !token_at(earlier, t, &other_space, &other_number)) break;
        if (space != other_space || number != other_number) break;
    }
    return t;
}

static uint64_t infinite_hits(const struct engine_case *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < c->count; i++) {
        uint64_t best = 0;
        for (size_t k = 0; k < i; k++) {
            const struct wl_request *earlier = &c->requests[k];
            bool unkeyed = c->config.cache_output == CACHE_OUTPUT_UNKEYED;
            uint64_t outputs = unkeyed || earlier->output_tokens == 0 ? 0 : earlier->output_tokens - 1;
            uint64_t common = common_tokens(&c->requests[i], earlier, earlier->prompt_tokens + outputs);
            if (common > best) best = common;
        }
        sum += best;
    }
    return sum;
}

/* Requests one after another, none cut: what a cache of unlimited size would have hit is the longest common
 * prefix with anything that came before. Hits and the three losses add up to that. */
static void lost_sharing__serial_runs__adds_up_to_the_infinite_cache(void **state)
{
    (void)state;
    static struct random_case rc;
    static struct engine_run run;
    for (uint64_t seed = 0; seed < 20 * RUNS_EACH; seed++) {
        uint64_t s = seed;
        const struct variant *v = &variants[seed % 8 == 0 ? VARIANTS - 1 : VARIANTS - 2];
        engine_case_init(&rc.c, v->policy, v->options, between(&s, 120, 400));
        rc.c.config.scheduler = scheduler_find("serial");
        rc.c.config.geometry.block_tokens = (uint32_t)between(&s, 1, 7);
        rc.c.config.max_model_len = 90;
        rc.c.config.cache_output = chance(&s, 50) ? CACHE_OUTPUT_KEYED : CACHE_OUTPUT_UNKEYED;
        for (uint64_t i = between(&s, 2, 20); i > 0; i--) {
            struct wl_request *r = engine_case_add(&rc.c, 0, between(&s, 1, 50), between(&s, 0, 30));
            random_content(&s, r, rc.spans[rc.c.count - 1]);
        }
        engine_case_run(&rc.c, &run);
        const struct engine_stats *t = run.stats;
        REQUIRE(t->finished == rc.c.count);
        uint64_t lost = t->lost_to_granularity + t->lost_to_last_token + t->lost_to_eviction;
        check_u64_eq(t->admitted_hit_tokens + lost, infinite_hits(&rc.c));
        engine_run_release(&run);
    }
}

/* --- the tests ------------------------------------------------------------------------------ */

static struct CMUnitTest named(const char *what, CMUnitTestFunction function, const struct variant *v)
{
    char *name = NULL;
    if (asprintf(&name, "%s %s: %s", v->policy, v->options ? v->options : "", what) < 0) abort();
    return (struct CMUnitTest){.name = name, .test_func = function, .initial_state = (void *)(uintptr_t)v};
}

int main(void)
{
    static struct CMUnitTest tests[2 * VARIANTS + 2] = { /* static: the names stay reachable */
        cmocka_unit_test(run__pool_is_huge__no_refusals_and_equal_latency),
        cmocka_unit_test(lost_sharing__serial_runs__adds_up_to_the_infinite_cache),
    };
    size_t n = 2;
    for (size_t i = 0; i < VARIANTS; i++) {
        tests[n++] = named("random traces: sums hold and it ends", run__random_traces__sums_hold_and_it_ends,
                           &variants[i]);
        tests[n++] = named("plain loop and skipping: the same bytes", run__twice__same_bytes, &variants[i]);
    }
    return _cmocka_run_group_tests("test_engine_properties", tests, n, NULL, NULL) != 0;
}
