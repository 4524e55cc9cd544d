/* Eviction orders in content studies: the bound, against brute force and against every order; which orders keep the
 * prefix of what they keep. Public traces below $PAGESIM_TRACES, else skipped. */
#include "tests/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cache_sim.h"
#include "tests/cli_run.h"
#include "tests/plugin_env.h"
#include "workloads/wl_source.h"

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void must(int status, const struct err *err)
{
    if (status != 0)
        fail_msg("%s", err->text);
}

static struct cache_prefix run_prefix(const struct cache_trace *trace, const char *order, uint64_t capacity,
                                      enum cache_release release)
{
    struct cache_config config = {.evict = kv_eviction_find(order), .capacity_blocks = capacity, .release = release};
    struct cache_prefix result;
    struct err err = {0};

    assert_non_null(config.evict);
    must(cache_run_prefix(trace, &config, &result, NULL, &err), &err);
    return result;
}

static struct cache_stream run_stream(const struct cache_trace *trace, const char *order, uint64_t capacity)
{
    struct cache_config config = {.evict = kv_eviction_find(order), .capacity_blocks = capacity};
    struct cache_stream result;
    struct err err = {0};

    must(cache_run_stream(trace, &config, &result, &err), &err);
    return result;
}

/* --- brute force ---------------------------------------------------------------------------------- */

enum { SMALL_IDS = 8, SMALL_REQUESTS = 9, SMALL_BLOCKS = 4 };

struct small {
    uint32_t ids[SMALL_REQUESTS][SMALL_BLOCKS];
    uint32_t n[SMALL_REQUESTS];
};

static struct cache_trace small_trace(const struct small *small)
{
    struct cache_trace trace;
    struct err err = {0};

    must(cache_trace_init(&trace, 1, &err), &err);
    for (size_t r = 0; r < SMALL_REQUESTS; r++) {
        uint64_t ids[SMALL_BLOCKS];

        for (uint32_t i = 0; i < small->n[r]; i++)
            ids[i] = small->ids[r][i];
        must(cache_trace_add(&trace, small->n[r], ids, small->n[r], &err), &err);
    }
    return trace;
}

/* The most hits of any way to keep at most `capacity` ids, tried one and all: best[set] is the most that can have
 * been hit when exactly that set is cached. A request must be cached whole; nothing else can come in. */
static int most_hits(const struct small *small, uint64_t capacity)
{
    static int best[1 << SMALL_IDS], then[1 << SMALL_IDS];
    int most = 0;

    for (unsigned set = 0; set < 1 << SMALL_IDS; set++)
        best[set] = set == 0 ? 0 : -1;
    for (size_t r = 0; r < SMALL_REQUESTS; r++) {
        unsigned wanted = 0;

        if (small->n[r] > capacity)
            continue;
        for (uint32_t i = 0; i < small->n[r]; i++)
            wanted |= 1u << small->ids[r][i];
        memset(then, 0xff, sizeof then);
        for (unsigned set = 0; set < 1 << SMALL_IDS; set++) {
            uint32_t run = 0;

            if (best[set] < 0)
                continue;
            while (run < small->n[r] && (set >> small->ids[r][run] & 1))
                run++;
            for (unsigned kept = 0; kept < 1 << SMALL_IDS; kept++)
                if ((kept & wanted) == wanted && (kept & ~(set | wanted)) == 0 &&
                    (uint64_t)__builtin_popcount(kept) <= capacity && best[set] + (int)run > then[kept])
                    then[kept] = best[set] + (int)run;
        }
        memcpy(best, then, sizeof best);
    }
    for (unsigned set = 0; set < 1 << SMALL_IDS; set++)
        most = best[set] > most ? best[set] : most;
    return most;
}

/* Paths from the root of a binary tree: the children of node i are 2i + 1 and 2i + 2. */
static void draw_chains(struct small *small)
{
    for (size_t r = 0; r < SMALL_REQUESTS; r++) {
        small->n[r] = 0;
        for (uint32_t node = 0; node < SMALL_IDS && draw(6) != 0; node = 2 * node + 1 + (uint32_t)draw(2))
            small->ids[r][small->n[r]++] = node;
    }
}

static void opt__chains__the_most_that_any_choice_hits(void **fixture)
{
    (void)fixture;
    for (int round = 0; round < 120; round++) {
        struct small small;
        struct cache_trace trace;
        uint64_t capacity = 1 + draw(6);

        draw_chains(&small);
        trace = small_trace(&small);
        check_u64_eq(run_prefix(&trace, "opt", capacity, CACHE_LEAF_FIRST).hit_blocks,
                     (uint64_t)most_hits(&small, capacity));
        check_u64_eq(run_prefix(&trace, "opt", capacity, CACHE_ROOT_FIRST).hit_blocks,
                     (uint64_t)most_hits(&small, capacity));
        cache_trace_release(&trace);
    }
}

static void opt__any_ids__never_below_what_any_choice_hits(void **fixture)
{
    (void)fixture;
    for (int round = 0; round < 120; round++) {
        struct small small;
        struct cache_trace trace;
        uint64_t capacity = 1 + draw(6);

        for (size_t r = 0; r < SMALL_REQUESTS; r++) {
            small.n[r] = (uint32_t)draw(SMALL_BLOCKS + 1);
            for (uint32_t i = 0, at = (uint32_t)draw(SMALL_IDS), by = 1 + 2 * (uint32_t)draw(4); i < small.n[r]; i++)
                small.ids[r][i] = (at + i * by) % SMALL_IDS; /* by is odd: none twice */
        }
        trace = small_trace(&small);
        assert_true(run_prefix(&trace, "opt", capacity, CACHE_LEAF_FIRST).hit_blocks >=
                    (uint64_t)most_hits(&small, capacity));
        cache_trace_release(&trace);
    }
}

/* One id a request is a stream of objects of size 1: there opt is Belady's. */
static void opt__stream__as_brute_force_belady(void **fixture)
{
    (void)fixture;
    for (int round = 0; round < 200; round++) {
        struct small small;
        struct cache_trace trace;
        uint64_t capacity = 1 + draw(4);

        for (size_t r = 0; r < SMALL_REQUESTS; r++) {
            small.n[r] = 1;
            small.ids[r][0] = (uint32_t)draw(6);
        }
        trace = small_trace(&small);
        check_u64_eq(run_stream(&trace, "opt", capacity).hits, (uint64_t)most_hits(&small, capacity));
        cache_trace_release(&trace);
    }
}

/* --- every order -------------------------------------------------------------------------------------- */

/* Requests of several kinds that are paths from the root of a random tree, or ids of anywhere. */
static struct cache_trace random_trace(bool chains)
{
    struct cache_trace trace;
    struct err err = {0};
    uint64_t branches = 1 + draw(4);

    must(cache_trace_init(&trace, 1, &err), &err);
    for (int r = 0; r < 150; r++) {
        uint64_t ids[16], n = draw(17), id = 0;

        for (uint64_t i = 0; i < n; i++) {
            id = id * 5 + 1 + draw(branches);
            ids[i] = chains ? id : i * 4 + draw(4);
        }
        must(cache_trace_add(&trace, n, ids, n, &err), &err);
        trace.requests[r].kind = (struct kv_kind){.category = (uint32_t)draw(4), .priority = (int64_t)draw(4) - 1};
    }
    return trace;
}

static void no_order_above_opt(const struct cache_trace *trace, uint64_t capacity, bool leaf_first_only)
{
    uint64_t bound = run_prefix(trace, "opt", capacity, CACHE_LEAF_FIRST).hit_blocks;
    uint64_t stream_bound = run_stream(trace, "opt", capacity).hits;
    struct cache_infinite infinite;

    cache_run_infinite(trace, &infinite, NULL);
    assert_true(bound <= infinite.hit_blocks || !leaf_first_only);
    for (size_t i = 0; i < kv_eviction_count(); i++) {
        const char *name = kv_eviction_at(i)->name;

        if (run_prefix(trace, name, capacity, CACHE_LEAF_FIRST).hit_blocks > bound ||
            (!leaf_first_only && run_prefix(trace, name, capacity, CACHE_ROOT_FIRST).hit_blocks > bound) ||
            (!cache_needs_requests(kv_eviction_at(i)) && run_stream(trace, name, capacity).hits > stream_bound))
            fail_msg("%s hits more than opt at %llu blocks", name, (unsigned long long)capacity);
    }
}

static void opt__random_traces__no_order_above(void **fixture)
{
    (void)fixture;
    for (int round = 0; round < 150; round++) {
        struct cache_trace trace = random_trace(round % 3 != 0);

        no_order_above_opt(&trace, 1 + draw(80), false);
        cache_trace_release(&trace);
    }
}

/* When no block is evicted before what continues it, what is cached of a prompt is its beginning, so what does not
 * hit is exactly what is filled. Orders marked KV_EVICTION_ORPHANS show the contrary on some trace. */
static void orders__chains__orphans_only_where_marked(void **fixture)
{
    bool orphans[32] = {false};

    (void)fixture;
    assert_true(kv_eviction_count() <= 32);
    for (int round = 0; round < 400; round++) {
        struct cache_trace trace = random_trace(true);
        uint64_t capacity = 17 + draw(60);

        for (size_t i = 0; i < kv_eviction_count(); i++) {
            struct cache_prefix result = run_prefix(&trace, kv_eviction_at(i)->name, capacity, CACHE_LEAF_FIRST);

            orphans[i] = orphans[i] || result.inserted_blocks + result.hit_blocks != result.lookup_blocks;
        }
        cache_trace_release(&trace);
    }
    for (size_t i = 0; i < kv_eviction_count(); i++)
        if (orphans[i] != ((kv_eviction_at(i)->flags & KV_EVICTION_ORPHANS) != 0))
            fail_msg("%s: orphans %s", kv_eviction_at(i)->name, orphans[i] ? "found, not marked" : "marked, not found");
}

/* --- time and waiting requests ----------------------------------------------------------------------------- */

enum { NAIVE_IDS = 64 };

/* A cache that does what queue-aware and ttl say, by scanning everything. */
struct naive {
    bool cached[NAIVE_IDS], held[NAIVE_IDS], urgent[NAIVE_IDS], pinned[NAIVE_IDS];
    uint64_t given[NAIVE_IDS], ends[NAIVE_IDS], gives, now, hits, evicted;
    uint64_t depth; /* of queue-aware; 0: ttl */
    uint64_t ttl, most;
};

static const uint32_t *blocks_of(const struct cache_trace *trace, uint64_t request, uint64_t *n)
{
    uint64_t begin = request > 0 ? trace->requests[request - 1].end_block : 0;

    *n = trace->requests[request].end_block - begin;
    return trace->blocks + begin;
}

static bool naive_awaited(const struct naive *c, const struct cache_trace *trace, uint64_t request, uint64_t capacity,
                          uint32_t id)
{
    for (uint64_t r = request; r < request + c->depth && r < trace->request_count; r++) {
        uint64_t n;
        const uint32_t *blocks = blocks_of(trace, r, &n);

        for (uint64_t i = 0; i < n && n <= capacity; i++)
            if (blocks[i] == id)
                return true;
    }
    return false;
}

static uint32_t naive_first_pin(const struct naive *c)
{
    uint32_t first = UINT32_MAX;

    for (uint32_t i = 0; i < NAIVE_IDS; i++)
        if (c->pinned[i] && !c->held[i] &&
            (first == UINT32_MAX || c->ends[i] < c->ends[first] || (c->ends[i] == c->ends[first] && c->given[i] < c->given[first])))
            first = i;
    return first;
}

static void naive_end_pins(struct naive *c, uint64_t now)
{
    c->now = now > c->now ? now : c->now;
    for (uint32_t i; (i = naive_first_pin(c)) != UINT32_MAX && c->ends[i] <= c->now;)
        c->pinned[i] = c->urgent[i] = false;
}

static void naive_evict(struct naive *c, const struct cache_trace *trace, uint64_t request, uint64_t capacity)
{
    uint32_t victim = UINT32_MAX;
    bool victim_awaited = false;

    for (uint32_t i = 0; i < NAIVE_IDS; i++) {
        bool awaited = naive_awaited(c, trace, request, capacity, i);

        if (!c->cached[i] || c->held[i] || c->pinned[i])
            continue;
        if (victim == UINT32_MAX || awaited < victim_awaited || (awaited == victim_awaited && c->given[i] < c->given[victim])) {
            victim = i;
            victim_awaited = awaited;
        }
    }
    if (victim == UINT32_MAX) { /* all are pinned: wait */
        naive_end_pins(c, c->ends[naive_first_pin(c)]);
        return;
    }
    c->cached[victim] = c->urgent[victim] = false;
    c->evicted++;
}

static uint64_t naive_unheld(const struct naive *c)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < NAIVE_IDS; i++)
        count += c->cached[i] && !c->held[i];
    return count;
}

static void naive_give(struct naive *c, uint32_t id)
{
    uint64_t pins = 0;

    c->held[id] = false;
    c->given[id] = ++c->gives;
    c->pinned[id] = c->urgent[id] && c->ttl > 0;
    c->ends[id] = c->now + c->ttl;
    for (uint32_t i = 0; i < NAIVE_IDS; i++)
        pins += c->pinned[i] && !c->held[i];
    if (pins > c->most) {
        id = naive_first_pin(c);
        c->pinned[id] = c->urgent[id] = false;
    }
}

static void naive_request(struct naive *c, const struct cache_trace *trace, uint64_t request, uint64_t capacity)
{
    uint64_t n, run = 0;
    const uint32_t *blocks = blocks_of(trace, request, &n);

    naive_end_pins(c, trace->requests[request].arrival_ns);
    if (n > capacity)
        return;
    while (run < n && c->cached[blocks[run]])
        run++;
    c->hits += run;
    for (uint64_t i = 0; i < n; i++)
        if (c->cached[blocks[i]]) {
            c->held[blocks[i]] = true;
            c->pinned[blocks[i]] = false;
        }
    while (naive_unheld(c) > capacity - n)
        naive_evict(c, trace, request, capacity);
    for (uint64_t i = 0; i < n; i++) {
        c->cached[blocks[i]] = c->held[blocks[i]] = true;
        c->urgent[blocks[i]] |= c->depth == 0 && trace->requests[request].kind.priority <= 0;
    }
    for (uint64_t i = n; i-- > 0;)
        naive_give(c, blocks[i]);
}

/* Requests of up to 8 different ids of 40; arrivals and priorities at random. */
static void random_requests(struct cache_trace *trace)
{
    struct err err = {0};
    uint64_t arrival = 0;

    must(cache_trace_init(trace, 16, &err), &err);
    for (int r = 0; r < 120; r++) {
        uint64_t ids[8], n = draw(9), first = draw(40), step = 1 + 2 * draw(3);

        for (uint64_t i = 0; i < n; i++)
            ids[i] = (first + i * step) % 40;
        must(cache_trace_add(trace, 16 * n, ids, n, &err), &err);
        trace->requests[r].arrival_ns = arrival += draw(4) == 0 ? draw(60) : draw(4);
        trace->requests[r].kind.priority = (int64_t)draw(3);
    }
}

static void compare_with_naive(const struct cache_trace *trace, const char *order, struct naive *c,
                               const struct kv_value *values, uint64_t capacity)
{
    struct cache_config config = {.evict = kv_eviction_find(order), .capacity_blocks = capacity, .evict_values = values};
    struct cache_prefix result;
    struct err err = {0};

    must(cache_run_prefix(trace, &config, &result, NULL, &err), &err);
    for (uint64_t r = 0; r < trace->request_count; r++)
        naive_request(c, trace, r, capacity);
    check_u64_eq(result.hit_blocks, c->hits);
    check_u64_eq(result.evicted_blocks, c->evicted);
}

static void queue_aware_and_ttl__random_traces__as_a_naive_cache(void **fixture)
{
    (void)fixture;
    for (int round = 0; round < 300; round++) {
        struct cache_trace trace;
        uint64_t capacity = 5 + draw(25), depth = 1 + draw(10), ttl = draw(40), percent = draw(101);
        /* The cache has a place for each different block at most, and the share is of its places. */
        struct naive queue = {.depth = depth, .most = UINT64_MAX}, pins = {.ttl = ttl};
        const struct kv_value of_queue[KV_OPTIONS_MAX] = {{depth}}, of_ttl[KV_OPTIONS_MAX] = {{ttl}, {percent}, {0}};

        random_requests(&trace);
        pins.most = (capacity < trace.unique_blocks ? capacity : trace.unique_blocks) * percent / 100;
        compare_with_naive(&trace, "queue-aware", &queue, of_queue, capacity);
        compare_with_naive(&trace, "ttl", &pins, of_ttl, capacity);
        cache_trace_release(&trace);
    }
}

/* --- categories ---------------------------------------------------------------------------------------- */

/* Chats come back after 60 requests, scans never: with the categories known, wa keeps the chats and lets the scans go;
 * lru, and wa where all requests look alike, keep neither. */
static void wa__two_known_categories__keeps_what_comes_back(void **fixture)
{
    struct cache_trace trace;
    struct err err = {0};
    uint64_t lru, known, unknown, scan = 1000000;

    (void)fixture;
    must(cache_trace_init(&trace, 1, &err), &err);
    for (uint64_t r = 0; r < 6000; r++) {
        bool chat = r % 2 == 0;
        uint64_t ids[8];

        for (uint64_t i = 0; i < 8; i++)
            ids[i] = chat ? r % 60 * 8 + i : scan++;
        must(cache_trace_add(&trace, 8, ids, 8, &err), &err);
        trace.requests[r].kind.category = chat;
    }
    /* 30 chats of 8 blocks are 240; they and the scans between two uses are 480. */
    known = run_prefix(&trace, "wa", 300, CACHE_LEAF_FIRST).hit_blocks;
    lru = run_prefix(&trace, "lru", 300, CACHE_LEAF_FIRST).hit_blocks;
    for (uint64_t r = 0; r < 6000; r++)
        trace.requests[r].kind.category = 0;
    unknown = run_prefix(&trace, "wa", 300, CACHE_LEAF_FIRST).hit_blocks;
    check_u64_eq(lru, 0);
    check_u64_eq(unknown, lru);
    assert_true(known > 20000); /* of 2,970 x 8 = 23,760 */
    cache_trace_release(&trace);
}

/* Conversations whose first turn is continued less often than later ones: the paper's order, wa above lru above lfu,
 * holds at every size; with one category wa is lru. */
static void wa__generated_conversations__above_lru_above_lfu(void **fixture)
{
    static const char spec[] = "gen:requests=8000,continue=0.3/0.9/0.9,content=tokens,turn-tokens=fixed:100,"
                               "prompt-tokens=fixed:200,output-tokens=fixed:50";
    static const uint64_t capacities[] = {3000, 6000, 10000, 20000};
    struct wl_options options = {.arrival_speedup_ratio = 1};
    struct wl_source *source;
    struct cache_trace trace;
    struct err err = {0};
    uint64_t lru[4];

    (void)fixture;
    must(wl_open(spec, &options, 1, &source, &err), &err);
    must(cache_trace_read(&trace, source, 16, &err), &err);
    for (size_t c = 0; c < 4; c++) {
        lru[c] = run_prefix(&trace, "lru", capacities[c], CACHE_LEAF_FIRST).hit_blocks;
        assert_true(run_prefix(&trace, "wa", capacities[c], CACHE_LEAF_FIRST).hit_blocks > lru[c]);
        assert_true(run_prefix(&trace, "lfu", capacities[c], CACHE_LEAF_FIRST).hit_blocks < lru[c]);
    }
    for (uint64_t r = 0; r < trace.request_count; r++)
        trace.requests[r].kind.category = 0;
    for (size_t c = 0; c < 4; c++)
        check_u64_eq(run_prefix(&trace, "wa", capacities[c], CACHE_LEAF_FIRST).hit_blocks, lru[c]);
    cache_trace_release(&trace);
    wl_close(source);
}

/* Turns of a session count up; without sessions a request follows its parent; else all are first. */
static void categories__sessions_and_parents__the_turn(void **fixture)
{
    static const char text[] =
        "{\"arrival_ns\": 0, \"prompt_tokens\": 1, \"output_tokens\": 1, \"session\": \"a\", \"token_ids\": [1]}\n"
        "{\"arrival_ns\": 1, \"prompt_tokens\": 1, \"output_tokens\": 1, \"session\": \"b\", \"token_ids\": [1]}\n"
        "{\"arrival_ns\": 2, \"prompt_tokens\": 1, \"output_tokens\": 1, \"session\": \"a\", \"token_ids\": [1]}\n"
        "{\"arrival_ns\": 3, \"prompt_tokens\": 1, \"output_tokens\": 1, \"session\": \"a\", \"token_ids\": [1]}\n"
        "{\"arrival_ns\": 4, \"prompt_tokens\": 1, \"output_tokens\": 1, \"id\": \"x\", \"token_ids\": [1]}\n"
        "{\"arrival_ns\": 5, \"prompt_tokens\": 1, \"output_tokens\": 1, \"id\": \"y\", \"parent\": \"x\", \"token_ids\": [1]}\n"
        "{\"arrival_ns\": 6, \"prompt_tokens\": 1, \"output_tokens\": 1, \"id\": \"z\", \"parent\": \"y\", \"token_ids\": [1]}\n"
        "{\"arrival_ns\": 7, \"prompt_tokens\": 1, \"output_tokens\": 1, \"token_ids\": [1]}\n";
    static const uint32_t expected[] = {0, 0, 1, 2, 0, 1, 2, 0};
    char *dir = cli_temp_dir();
    struct wl_options options = {.arrival_speedup_ratio = 1};
    struct wl_source *source;
    struct cache_trace trace;
    struct err err = {0};

    (void)fixture;
    must(wl_open(cli_write(dir, "t.jsonl", text, sizeof text - 1), &options, 1, &source, &err), &err);
    must(cache_trace_read(&trace, source, 1, &err), &err);
    check_u64_eq(trace.request_count, 8);
    for (size_t r = 0; r < 8; r++)
        check_u64_eq(trace.requests[r].kind.category, expected[r]);
    cache_trace_release(&trace);
    wl_close(source);
    cli_temp_remove(dir);
}

/* --- public traces --------------------------------------------------------------------------------------- */

static void opt__public_traces__no_order_above(void **fixture)
{
    static const struct {
        const char *path;
        uint32_t block_tokens;
        uint64_t capacities[3];
    } public[] = {
        {"mooncake/mooncake_arxiv_trace.slice.head.jsonl", 0, {100, 200, 400}},
        {"mooncake/conversation_trace.jsonl.zst", 0, {250, 2000, 20000}},
        {"mooncake/synthetic_trace.jsonl.zst", 0, {400, 5000, 20000}},
    };

    (void)fixture;
    if (check_traces("x") == NULL)
        skip();
    for (size_t t = 0; t < sizeof public / sizeof public[0]; t++) {
        struct wl_options options = {.trace_block_tokens = public[t].block_tokens, .arrival_speedup_ratio = 1};
        struct wl_source *source;
        struct cache_trace trace;
        struct err err = {0};

        must(wl_open(check_traces(public[t].path), &options, 1, &source, &err), &err);
        must(cache_trace_read(&trace, source, 0, &err), &err);
        for (size_t c = 0; c < 3; c++)
            no_order_above_opt(&trace, public[t].capacities[c], true);
        cache_trace_release(&trace);
        wl_close(source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opt__chains__the_most_that_any_choice_hits),
        cmocka_unit_test(opt__any_ids__never_below_what_any_choice_hits),
        cmocka_unit_test(opt__stream__as_brute_force_belady),
        cmocka_unit_test(opt__random_traces__no_order_above),
        cmocka_unit_test(orders__chains__orphans_only_where_marked),
        cmocka_unit_test(queue_aware_and_ttl__random_traces__as_a_naive_cache),
        cmocka_unit_test(wa__two_known_categories__keeps_what_comes_back),
        cmocka_unit_test(wa__generated_conversations__above_lru_above_lfu),
        cmocka_unit_test(categories__sessions_and_parents__the_turn),
        cmocka_unit_test(opt__public_traces__no_order_above),
    };

    plugin_env_add();
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
