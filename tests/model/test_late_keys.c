/* Orders marked KV_EVICTION_LATE_KEYS let the engine give keys late: every order in random runs that are short of memory, once
 * visiting every request at every step and once skipping, must tell the same events, evictions with block and key included, and
 * the same figures. */
#include "tests/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/eviction.h"
#include "sim/engine_core.h"
#include "tests/model/engine_random.h"

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

/* What a run tells, events first; counts its preemptions and evictions. free() it. */
static char *told(const struct engine_case *c, bool plain, uint64_t *preemptions, uint64_t *evictions)
{
    static struct engine_run run;
    static struct engine_case copy;
    char *text = NULL;
    size_t bytes = 0;
    copy = *c;
    copy.config.plain_loop = plain;
    copy.config.hooks.event = on_event;
    events = open_memstream(&text, &bytes);
    assert_non_null(events);
    engine_case_run(&copy, &run);
    char *figures = engine_run_json(&run);
    fputs(figures, events);
    *preemptions += run.stats->preemptions;
    *evictions += run.stats->evictions;
    free(figures);
    engine_run_release(&run);
    assert_int_equal(fclose(events), 0);
    return text;
}

static void fail_at_difference(const char *order, uint64_t seed, const char *plain, const char *skipping)
{
    size_t same = 0, line = 0;
    while (plain[same] == skipping[same] && plain[same] != '\0') {
        if (plain[same++] == '\n') line = same;
    }
    fail_msg("%s, seed %llu: visiting every request: %.*s, skipping: %.*s", order, (unsigned long long)seed,
             (int)strcspn(plain + line, "\n"), plain + line, (int)strcspn(skipping + line, "\n"), skipping + line);
}

static void keys_late__random_runs__same_events(void **state)
{
    const struct kv_eviction_ops *order = *state;
    static struct engine_random rc;
    char options[80];
    uint64_t preemptions = 0, evictions = 0;
    snprintf(options, sizeof options, "evict=%s", order->name);
    const struct engine_variant v = {"prefix", options};
    for (uint64_t seed = 0; seed < 4 * ENGINE_RANDOM_RUNS; seed++) {
        short_of_memory(seed, &v, &rc);
        char *plain = told(&rc.c, true, &preemptions, &evictions);
        char *skipping = told(&rc.c, false, &preemptions, &evictions);
        if (strcmp(plain, skipping) != 0) fail_at_difference(order->name, seed, plain, skipping);
        free(plain);
        free(skipping);
    }
    /* Else the runs show nothing. */
    assert_true(preemptions > ENGINE_RANDOM_RUNS && evictions > 20 * ENGINE_RANDOM_RUNS);
}

int main(void)
{
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
