/* What must hold for every run, whatever the policy: random small traces under every policy, reservation,
 * placement, scheduler and step-time model, with the policy and the states walked at every call. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_core.h"
#include "sim/plugin.h"
#include "tests/model/engine_random.h"
#include "tests/plugin_env.h"

/* --- properties ---------------------------------------------------------------------------- */

static const char *described(uint64_t seed, const struct engine_variant *v)
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

static void check_episodes(uint64_t seed, const struct engine_variant *v, const struct engine_run *run)
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

static void check_integrals(uint64_t seed, const struct engine_variant *v, const struct integrals *in,
                            uint64_t pool_bytes)
{
    u128 sum = 0;
    for (int s = 0; s < STATE_COUNT; s++) sum += in->state_byte_time[s];
    REQUIRE(sum == in->time * pool_bytes);
    REQUIRE(in->held_byte_time <= in->referenced_byte_time);
}

static void check_end(uint64_t seed, const struct engine_variant *v, const struct engine_run *run)
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

static void check_sums_and_end(const struct engine_variant *v, uint64_t runs)
{
    static struct engine_random rc;
    static struct engine_run run;
    for (uint64_t i = 0; i < runs; i++) {
        uint64_t seed = i * ENGINE_VARIANTS + (uint64_t)(v - engine_variants);
        engine_random_case(seed, v, &rc);
        engine_case_run(&rc.c, &run);
        REQUIRE(run.stats->requests == rc.c.count);
        check_end(seed, v, &run);
        check_episodes(seed, v, &run);
        engine_run_release(&run);
    }
}

static void run__random_traces__sums_hold_and_it_ends(void **state)
{
    check_sums_and_end(*state, ENGINE_RANDOM_RUNS);
}

/* Of plug-ins: each of their schedulers, with fewer runs of each. */
#define PLUGIN_RUNS (ENGINE_RANDOM_RUNS / 3)

static void run__plug_in_scheduler__sums_hold_and_it_ends(void **state)
{
    for (size_t i = 0; i < scheduler_count(); i++) {
        if (!scheduler_at(i)->plugin) continue;
        engine_random_force(scheduler_at(i));
        check_sums_and_end(*state, PLUGIN_RUNS);
        engine_random_force(NULL);
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

/* The case of this seed with two settings: neither may change anything, episodes included. */
static void check_same(uint64_t seed, const struct engine_variant *v, void (*set)(struct engine_config *config, size_t setting))
{
    static struct engine_random rc;
    static struct engine_run run, first;
    char *texts[2];
    for (size_t k = 0; k < 2; k++) {
        engine_random_case(seed, v, &rc);
        set(&rc.c.config, k);
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

/* The skipping run is checked at every call. */
static void plain_or_skipping(struct engine_config *config, size_t setting)
{
    config->check_every = setting;
    config->plain_loop = setting == 0;
}

static void run__twice__same_bytes(void **state)
{
    for (uint64_t i = 0; i < ENGINE_RANDOM_RUNS; i++) check_same(77000 + i, *state, plain_or_skipping);
}

/* Plug-ins that are written to decide what a built-in scheduler decides. */
static const struct twin {
    const char *built_in, *plug_in;
    bool priorities; /* knows them */
} TWINS[] = {{"v1", "in-order", true}, {"reserve", "reserving", false}};
static const struct twin *twin;

static void built_in_or_plug_in(struct engine_config *config, size_t setting)
{
    config->scheduler = scheduler_find(setting == 0 ? twin->built_in : twin->plug_in);
    config->by_priority = twin->priorities && config->max_model_len % 3 == 0; /* some of them */
}

static void run__plug_in_like_a_built_in__same_bytes(void **state)
{
    for (twin = TWINS; twin < TWINS + sizeof TWINS / sizeof TWINS[0]; twin++) {
        if (!scheduler_find(twin->plug_in)) continue;
        engine_random_force(scheduler_find(twin->built_in));
        for (uint64_t i = 0; i < PLUGIN_RUNS; i++) check_same(99000 + i, *state, built_in_or_plug_in);
        engine_random_force(NULL);
    }
}

/* --- a pool that is never short ------------------------------------------------------------- */

static void huge_case(uint64_t seed, const struct engine_variant *v, struct engine_random *rc)
{
    uint64_t state = seed;
    engine_case_init(&rc->c, v->policy, v->options, 64u << 20);
    rc->c.config.geometry.bytes_per_token = 512;
    rc->c.config.check_every = 0;
    rc->c.config.max_model_len = 200;
    uint64_t arrival = 0;
    for (uint64_t i = 0; i < 40; i++) {
        struct wl_request *r = engine_case_add(&rc->c, arrival, engine_random_between(&state, 1, 150), engine_random_between(&state, 1, 40));
        arrival += engine_random_between(&state, 0, 5000);
        if (engine_random_chance(&state, 20)) r->samples = 3;
    }
}

/* Then memory plays no part: no refusals, and every policy has the same latencies. */
static void run__pool_is_huge__no_refusals_and_equal_latency(void **state)
{
    (void)state;
    static struct engine_random rc;
    static struct engine_run run;
    for (uint64_t seed = 0; seed < 5; seed++) {
        uint64_t expected[4] = {0};
        for (size_t i = 0; i < ENGINE_VARIANTS; i++) {
            const struct engine_variant *v = &engine_variants[i];
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
 * prefix with anything that came before. Hits, of the device and of the host, and the three losses add up to that. */
static void lost_sharing__serial_runs__adds_up_to_the_infinite_cache(void **state)
{
    (void)state;
    static struct engine_random rc;
    static struct engine_run run;
    for (uint64_t seed = 0; seed < 20 * ENGINE_RANDOM_RUNS; seed++) {
        uint64_t s = seed;
        const struct engine_variant *v = &engine_variants[seed % 8 == 0 ? ENGINE_VARIANTS - 1 : ENGINE_VARIANTS - 2];
        engine_case_init(&rc.c, v->policy, v->options, engine_random_between(&s, 120, 400));
        rc.c.config.scheduler = scheduler_find("serial");
        rc.c.config.geometry.block_tokens = (uint32_t)engine_random_between(&s, 1, 7);
        rc.c.config.max_model_len = 90;
        rc.c.config.cache_output = engine_random_chance(&s, 50) ? CACHE_OUTPUT_KEYED : CACHE_OUTPUT_UNKEYED;
        if (engine_random_chance(&s, 50)) engine_random_host(&s, &rc.c.config);
        for (uint64_t i = engine_random_between(&s, 2, 20); i > 0; i--) {
            struct wl_request *r = engine_case_add(&rc.c, 0, engine_random_between(&s, 1, 50), engine_random_between(&s, 0, 30));
            engine_random_content(&s, r, rc.spans[rc.c.count - 1]);
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

static struct CMUnitTest named(const char *what, CMUnitTestFunction function, const struct engine_variant *v)
{
    char *name = NULL;
    if (asprintf(&name, "%s %s: %s", v->policy, v->options ? v->options : "", what) < 0) abort();
    return (struct CMUnitTest){.name = name, .test_func = function, .initial_state = (void *)(uintptr_t)v};
}

/* Returns how many. */
static size_t add_plugin_schedulers(void)
{
    size_t before = scheduler_count();
    const char *paths = getenv("PAGESIM_TEST_PLUGINS");
    for (const struct pagesim_plugin *p; (p = plugin_env_next(&paths)) != NULL;)
        for (size_t i = 0; p->schedulers && p->schedulers[i]; i++)
            if (!scheduler_add(p->schedulers[i])) exit(1);
    return scheduler_count() - before;
}

int main(void)
{
    static struct CMUnitTest tests[4 * ENGINE_VARIANTS + 2] = { /* static: the names stay reachable */
        cmocka_unit_test(run__pool_is_huge__no_refusals_and_equal_latency),
        cmocka_unit_test(lost_sharing__serial_runs__adds_up_to_the_infinite_cache),
    };
    size_t n = 2, added = add_plugin_schedulers();
    for (size_t i = 0; i < ENGINE_VARIANTS; i++) {
        const struct engine_variant *v = &engine_variants[i];
        if (added > 0) {
            tests[n++] = named("plug-in schedulers: sums hold and it ends", run__plug_in_scheduler__sums_hold_and_it_ends, v);
            tests[n++] = named("plug-ins like built-in schedulers: the same bytes", run__plug_in_like_a_built_in__same_bytes, v);
            continue;
        }
        tests[n++] = named("random traces: sums hold and it ends", run__random_traces__sums_hold_and_it_ends, v);
        tests[n++] = named("plain loop and skipping: the same bytes", run__twice__same_bytes, v);
    }
    return _cmocka_run_group_tests("test_engine_properties", tests, n, NULL, NULL) != 0;
}
