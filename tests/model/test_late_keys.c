/* Every eviction order in random runs that are short of memory, with forks, preemptions and aborts. Orders marked
 * KV_EVICTION_LATE_KEYS let the engine give keys late: a run that visits every request at every step and one that skips, with the
 * policy walked at every call, must tell the same events, evictions with block and key included, and the same figures; and nothing
 * may be left or lost at the end. A failure prints the fewest requests that still fail. */
#include "tests/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/eviction.h"
#include "sim/engine_core.h"
#include "tests/model/engine_random.h"
#include "tests/plugin_env.h"

static FILE *events;

static void on_event(void *context, uint64_t time_ns, enum event_kind kind, const struct sim_request *request, uint64_t a,
                     uint64_t b)
{
    (void)context;
    fprintf(events, "%" PRIu64 " %d %" PRIi64 " %" PRIx64 " %" PRIx64 "\n", time_ns, (int)kind,
            request ? (int64_t)sim_request_index(request) : -1, a, b);
}

/* Small pools, so that there are evictions and preemptions; whatever keeps requests from being skipped is off. */
static void short_of_memory(uint64_t seed, const struct engine_variant *v, struct engine_random *rc)
{
    uint64_t state = ~seed;
    engine_random_case(seed, v, rc);
    struct engine_config *c = &rc->c.config;
    c->geometry.window_tokens = 0;
    c->geometry.block_tokens = (uint32_t)engine_random_between(&state, 3, 6);
    c->geometry.pool_bytes = c->geometry.bytes_per_token * engine_random_between(&state, 40, 160);
    c->scheduler = scheduler_find("v1");
    c->max_num_seqs = 12;
    if (c->max_num_batched_tokens < 60) c->max_num_batched_tokens = 60;
    c->max_model_len = 60;
    c->cache_output = CACHE_OUTPUT_KEYED;
    c->window_begin = 0;
    c->window_end = UINT64_MAX;
    c->check_every = 0;
    if (c->host.capacity_bytes > 0) engine_random_host(&state, c);
    for (size_t i = 0; i < rc->c.count; i++) {
        struct wl_request *r = &rc->c.requests[i];
        if (engine_random_chance(&state, 70)) r->output_tokens = engine_random_between(&state, 5, 40);
        if (r->samples > 3) r->samples = 3;
        if (engine_random_chance(&state, 60)) r->output_spans = 0; /* nobody else's */
        r->priority = (int64_t)engine_random_between(&state, 0, 2);
    }
}

struct counts {
    uint64_t preemptions, evictions, aborts;
};

/* NULL, or what is not as it should be when all requests have ended. */
static const char *left_over(const struct engine_run *run, size_t requests)
{
    const struct engine_stats *s = run->stats;
    const struct engine *e = run->engine;
    struct kv_facts facts;
    struct kv_cache_facts cache;
    kv_get_facts(e->policy, &facts);
    kv_get_cache_facts(e->policy, &cache);
    if (s->stalled || s->max_steps_reached) return "the run does not end";
    if (s->requests != requests || requests != s->finished + s->rejected + s->unservable + s->aborted) return "a request is lost";
    if (facts.held_bytes > 0 || facts.referenced_bytes > 0) return "memory is held by nobody";
    if (facts.cached_bytes + facts.pinned_bytes != cache.keyed_blocks * e->policy->unit_bytes) return "a block with a key is not cached";
    const struct integrals *whole = &run->accounting->whole;
    u128 bytes = 0;
    for (int state = 0; state < STATE_COUNT; state++) bytes += whole->state_byte_time[state];
    if (bytes != whole->time * e->config.geometry.pool_bytes) return "the states are not the pool";
    if (e->running_seqs > 0 || e->free_seq_count != e->config.geometry.max_seqs) return "a sequence is lost";
    return kv_check_walk(e->policy);
}

/* What a run tells, events first. free() it. */
static char *told(const struct engine_case *c, bool plain, struct counts *counts)
{
    static struct engine_run run;
    static struct engine_case copy;
    char *text = NULL;
    size_t bytes = 0;
    copy = *c;
    copy.config.plain_loop = plain;
    copy.config.check_every = !plain;
    copy.config.hooks.event = on_event;
    events = open_memstream(&text, &bytes);
    assert_non_null(events);
    engine_case_run(&copy, &run);
    char *figures = engine_run_json(&run);
    fputs(figures, events);
    const char *wrong = left_over(&run, c->count);
    if (wrong) fprintf(events, "%s: %s\n", plain ? "at the end" : "at the end, skipping", wrong);
    counts->preemptions += run.stats->preemptions;
    counts->evictions += run.stats->evictions;
    counts->aborts += run.stats->aborted;
    free(figures);
    engine_run_release(&run);
    assert_int_equal(fclose(events), 0);
    return text;
}

/* Whether both runs agree and nothing is wrong; if not, *where, when wanted, gets the first lines that differ. */
static bool sound(const struct engine_case *c, struct counts *counts, char *where, size_t where_bytes)
{
    char *plain = told(c, true, counts), *skipping = told(c, false, counts);
    bool same = strcmp(plain, skipping) == 0;
    size_t at = 0, line = 0;
    while (!same && plain[at] == skipping[at]) {
        if (plain[at++] == '\n') line = at;
    }
    if (!same && where)
        snprintf(where, where_bytes, "%.*s; skipping: %.*s", (int)strcspn(plain + line, "\n"), plain + line,
                 (int)strcspn(skipping + line, "\n"), skipping + line);
    free(plain);
    free(skipping);
    return same;
}

/* Leaves out one request after another as long as the case still fails, and shows what remains. */
static void fail_with_fewest(const char *order, uint64_t seed, struct engine_case *c)
{
    static struct engine_case shorter;
    struct counts ignored = {0};
    char where[300] = "";
    for (size_t i = c->count; i-- > 0;) {
        shorter = *c;
        memmove(&shorter.requests[i], &shorter.requests[i + 1], (c->count - i - 1) * sizeof shorter.requests[0]);
        shorter.count--;
        if (shorter.count > 0 && !sound(&shorter, &ignored, NULL, 0)) *c = shorter;
    }
    sound(c, &ignored, where, sizeof where);
    for (size_t i = 0; i < c->count; i++) {
        const struct wl_request *r = &c->requests[i];
        print_error("  at %llu: prompt %llu output %llu samples %u priority %lld abort at %lld, %zu + %zu spans\n",
                    (unsigned long long)r->arrival_ns, (unsigned long long)r->prompt_tokens, (unsigned long long)r->output_tokens,
                    r->samples, (long long)r->priority, (long long)r->abort_ns, r->prompt_spans, r->output_spans);
    }
    fail_msg("%s, seed %llu: %s", order, (unsigned long long)seed, where);
}

static void keys_late__random_runs__same_events(void **state)
{
    const struct kv_eviction_ops *order = *state;
    static struct engine_random rc;
    char options[80];
    struct counts counts = {0};
    snprintf(options, sizeof options, "evict=%s", order->name);
    const struct engine_variant v = {"prefix", options};
    for (uint64_t seed = 0; seed < ENGINE_RANDOM_RUNS; seed++) {
        short_of_memory(seed, &v, &rc);
        if (!sound(&rc.c, &counts, NULL, 0)) fail_with_fewest(order->name, seed, &rc.c);
    }
    /* Else the runs show nothing. */
    assert_true(counts.preemptions > ENGINE_RANDOM_RUNS / 2 && counts.evictions > 10 * ENGINE_RANDOM_RUNS);
    assert_true(counts.aborts > ENGINE_RANDOM_RUNS / 10);
}

int main(void)
{
    plugin_env_add();
    static struct CMUnitTest tests[64];
    size_t n = 0;
    for (; n < kv_eviction_count(); n++) {
        assert_true(n < sizeof tests / sizeof tests[0]);
        tests[n] = (struct CMUnitTest){.name = kv_eviction_at(n)->name,
                                       .test_func = keys_late__random_runs__same_events,
                                       .initial_state = (void *)(uintptr_t)kv_eviction_at(n)};
    }
    return _cmocka_run_group_tests("keys_late__random_runs__same_events", tests, n, NULL, NULL) != 0;
}
