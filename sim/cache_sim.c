#include "sim/cache_sim.h"
#include "sim/numbers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_NONE UINT32_MAX
#define PLACE_COMING (UINT32_MAX - 1) /* not there yet: fetched from the host for the request that runs */
/* In number_of: the place is used by the request that runs. Numbers stay below 2^31. */
#define IN_USE (UINT32_C(1) << 31)
#define FETCH_AHEAD 16 /* accesses; fetching the order's nodes too gained under 5 % */

/* --- one cache --------------------------------------------------------------------------------- */

int block_cache_init(struct block_cache *cache, const struct kv_eviction_ops *ops, const struct kv_value *values,
                     uint32_t places, struct err *err)
{
    assert(places > 0 && places < IN_USE);
    *cache = (struct block_cache){.places = places, .free_place = PLACE_NONE};
    cache->order = kv_eviction_create(ops, places, values);
    cache->number_of = malloc((size_t)places * sizeof *cache->number_of);
    if (cache->order == NULL || cache->number_of == NULL) {
        block_cache_release(cache);
        return err_set(err, ERR_FAILED, "out of memory for a cache of %" PRIu32 " blocks", places);
    }
    return 0;
}

void block_cache_release(struct block_cache *cache)
{
    if (cache->order != NULL)
        cache->order->ops->destroy(cache->order);
    free(cache->number_of);
    free(cache->place_of);
    host_tier_destroy(cache->host);
    free(cache->to_host);
    free(cache->waiting);
    *cache = (struct block_cache){0};
}

int block_cache_reserve(struct block_cache *cache, uint64_t numbers, struct err *err)
{
    uint64_t room = cache->number_room > 0 ? cache->number_room : 1024;
    uint32_t *place_of;

    if (numbers <= cache->number_room)
        return 0;
    while (room < numbers)
        room *= 2;
    place_of = realloc(cache->place_of, (size_t)room * sizeof *place_of);
    if (place_of == NULL)
        return err_set(err, ERR_FAILED, "out of memory for %" PRIu64 " different blocks", numbers);
    static_assert(PLACE_NONE == UINT32_MAX, "memset below");
    memset(place_of + cache->number_room, 0xff,
           (size_t)(room - cache->number_room) * sizeof *place_of);
    cache->place_of = place_of;
    cache->number_room = room;
    return 0;
}

static void evict_one(struct block_cache *cache)
{
    uint32_t place = cache->order->ops->evict(cache->order);
    uint32_t number = cache->number_of[place];

    assert(place < cache->used_places && number < IN_USE);
    if (cache->order->ops->next_victim != NULL && cache->order->count > cache->order->pinned)
        __builtin_prefetch(&cache->number_of[cache->order->ops->next_victim(cache->order)], 1);
    cache->place_of[number] = PLACE_NONE;
    cache->number_of[place] = cache->free_place;
    cache->free_place = place;
    cache->evicted_blocks++;
    if (cache->host != NULL)
        cache->to_host[cache->to_host_count++] = number;
}

/* A free place for the number; there is one. `mark` is IN_USE or 0; parent and depth as in struct kv_content. */
static uint32_t insert(struct block_cache *cache, uint32_t number, uint32_t mark, uint32_t parent, uint32_t depth)
{
    uint32_t place = cache->free_place;

    if (place != PLACE_NONE) {
        cache->free_place = cache->number_of[place];
    } else {
        assert(cache->used_places < cache->places);
        place = cache->used_places++;
    }
    cache->number_of[place] = number | mark;
    cache->place_of[number] = place;
    if (cache->order->ops->insert != NULL) {
        struct kv_content content = {number, parent, depth};

        cache->order->ops->insert(cache->order, place, &content);
    }
    if (cache->waiting != NULL && cache->waiting[number] > 0)
        cache->order->ops->expect(cache->order, place, true);
    return place;
}

static void announce_miss(struct block_cache *cache, uint32_t number)
{
    if (cache->order->ops->miss != NULL)
        cache->order->ops->miss(cache->order, number);
}

uint64_t block_cache_access(struct block_cache *cache, const uint32_t *numbers, size_t n)
{
    const struct kv_eviction_ops *ops = cache->order->ops;
    struct kv_eviction *order = cache->order;
    uint64_t hits = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t place = cache->place_of[numbers[i]];

        if (i + FETCH_AHEAD < n)
            __builtin_prefetch(&cache->place_of[numbers[i + FETCH_AHEAD]], 1);
        if (place != PLACE_NONE) {
            ops->touch(order, place);
            hits++;
            continue;
        }
        announce_miss(cache, numbers[i]);
        if (order->count == cache->places)
            evict_one(cache);
        ops->give(order, insert(cache, numbers[i], 0, KV_OBJECT_NONE, 0));
    }
    return hits;
}

/* The same for an order that must be told when each is accessed next. */
static uint64_t access_foreseen(struct block_cache *cache, const uint32_t *numbers, const uint32_t *next, uint64_t n)
{
    const struct kv_eviction_ops *ops = cache->order->ops;
    uint64_t hits = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t place = cache->place_of[numbers[i]];
        bool hit = place != PLACE_NONE;

        if (!hit && cache->order->count == cache->places)
            evict_one(cache);
        if (!hit)
            place = insert(cache, numbers[i], 0, KV_OBJECT_NONE, 0);
        ops->foresee(cache->order, place, next[i] == UINT32_MAX ? UINT64_MAX : next[i]);
        (hit ? ops->touch : ops->give)(cache->order, place);
        hits += hit;
    }
    return hits;
}

/* --- the future ----------------------------------------------------------------------------------- */

/* How many blocks of a request count; more than the capacity: it is rejected. */
static uint64_t counted_blocks(const struct cache_view *view, const struct cache_config *config)
{
    return config->blocks == CACHE_FULL_BLOCKS ? min_u64(view->n, view->full) : view->n;
}

/* For every block reference the step at which the block is referred to next, UINT32_MAX: never. A step is a reference
 * (config NULL) or an accepted request. The caller frees it. NULL with err. */
static uint32_t *foresee(const struct cache_trace *trace, const struct cache_config *config, struct err *err)
{
    uint64_t steps = config != NULL ? trace->request_count : trace->block_count;
    uint32_t *next = NULL, *upcoming = NULL;

    if (steps >= UINT32_MAX) {
        err_set(err, ERR_FAILED, "clairvoyant eviction: found %" PRIu64 " steps, expected fewer than 2^32", steps);
        return NULL;
    }
    next = malloc((size_t)(trace->block_count + 1) * sizeof *next);
    upcoming = malloc(((size_t)trace->unique_blocks + 1) * sizeof *upcoming);
    if (next == NULL || upcoming == NULL) {
        err_set(err, ERR_FAILED, "out of memory for the future of %" PRIu64 " block references", trace->block_count);
        free(next);
        next = NULL;
    } else {
        memset(upcoming, 0xff, ((size_t)trace->unique_blocks + 1) * sizeof *upcoming);
    }
    for (uint64_t i = trace->block_count; next != NULL && config == NULL && i-- > 0;) {
        next[i] = upcoming[trace->blocks[i]];
        upcoming[trace->blocks[i]] = (uint32_t)i;
    }
    for (uint64_t r = trace->request_count; next != NULL && config != NULL && r-- > 0;) {
        struct cache_view view = cache_view_of(trace, r);
        uint64_t n = counted_blocks(&view, config);

        if (n > config->capacity_blocks)
            continue;
        for (uint64_t b = 0; b < n; b++)
            next[view.blocks - trace->blocks + (ptrdiff_t)b] = upcoming[view.blocks[b]];
        for (uint64_t b = 0; b < n; b++)
            upcoming[view.blocks[b]] = (uint32_t)r;
    }
    free(upcoming);
    return next;
}

static bool is_clairvoyant(const struct cache_config *config)
{
    return (config->evict->flags & KV_EVICTION_CLAIRVOYANT) != 0;
}

/* Places for a capacity: never more than the trace has different blocks. */
static uint32_t places_for(const struct cache_trace *trace, uint64_t capacity_blocks)
{
    uint64_t places = min_u64(capacity_blocks, trace->unique_blocks);

    return places > 0 ? (uint32_t)places : 1;
}

static int init_host(struct block_cache *cache, const struct cache_trace *trace, const struct cache_config *config,
                     struct err *err)
{
    uint32_t places = places_for(trace, config->host_capacity_blocks);

    assert(!is_clairvoyant(config));
    cache->host = host_tier_create(places, config->host_evict, config->host_evict_values);
    cache->to_host = malloc((size_t)cache->places * sizeof *cache->to_host);
    if (cache->host != NULL && cache->to_host != NULL)
        return 0;
    return err_set(err, ERR_FAILED, "out of memory for a host tier of %" PRIu32 " blocks", places);
}

static int init_waiting(struct block_cache *cache, const struct cache_trace *trace, struct err *err)
{
    if (cache->order->queue_requests == 0)
        return 0;
    cache->waiting = calloc((size_t)trace->unique_blocks + 1, sizeof *cache->waiting);
    return cache->waiting != NULL ? 0 : err_set(err, ERR_FAILED, "out of memory for the blocks of waiting requests");
}

static int init_for_trace(struct block_cache *cache, const struct cache_trace *trace,
                          const struct cache_config *config, struct err *err)
{
    assert(config->capacity_blocks > 0);
    if (block_cache_init(cache, config->evict, config->evict_values, places_for(trace, config->capacity_blocks), err) != 0)
        return -1;
    if (block_cache_reserve(cache, trace->unique_blocks, err) == 0 && init_waiting(cache, trace, err) == 0 &&
        (config->host_capacity_blocks == 0 || init_host(cache, trace, config, err) == 0))
        return 0;
    block_cache_release(cache);
    return -1;
}

int cache_run_stream(const struct cache_trace *trace, const struct cache_config *config,
                     struct cache_stream *result, struct err *err)
{
    struct block_cache cache;
    uint32_t *next = NULL;

    assert(config->host_capacity_blocks == 0);
    if (is_clairvoyant(config) && (next = foresee(trace, NULL, err)) == NULL)
        return -1;
    if (init_for_trace(&cache, trace, config, err) != 0) {
        free(next);
        return -1;
    }
    *result = (struct cache_stream){.lookups = trace->block_count};
    if (next != NULL)
        result->hits = access_foreseen(&cache, trace->blocks, next, trace->block_count);
    else
        result->hits = block_cache_access(&cache, trace->blocks, (size_t)trace->block_count);
    free(next);
    result->evicted_blocks = cache.evicted_blocks;
    result->resident_blocks_at_end = cache.order->count;
    block_cache_release(&cache);
    return 0;
}

/* --- prefixes ---------------------------------------------------------------------------------- */

static uint64_t hit_run(const struct block_cache *cache, const uint32_t *blocks, uint64_t n)
{
    uint64_t run = 0;

    while (run < n && (cache->place_of[blocks[run]] != PLACE_NONE ||
                       (cache->host != NULL && host_tier_has(cache->host, blocks[run]))))
        run++;
    return run;
}

static uint64_t cached_blocks(const struct block_cache *cache, const uint32_t *blocks, uint64_t n)
{
    uint64_t cached = 0;

    for (uint64_t i = 0; i < n; i++)
        cached += cache->place_of[blocks[i]] != PLACE_NONE;
    return cached;
}

/* Takes the cached ones of the blocks into use; returns how many others there are. */
static uint64_t take_cached(struct block_cache *cache, const uint32_t *blocks, uint64_t n)
{
    uint64_t missing = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t place = cache->place_of[blocks[i]];

        if (place == PLACE_NONE) {
            announce_miss(cache, blocks[i]);
            missing++;
        } else if (!(cache->number_of[place] & IN_USE)) { /* else: an id twice in a request */
            cache->order->ops->take(cache->order, place);
            cache->number_of[place] |= IN_USE;
        }
    }
    return missing;
}

/* Fetches the blocks of a hit run that only the host has, the last one first. */
static void fetch_from_host(struct block_cache *cache, const uint32_t *blocks, uint64_t run, struct cache_prefix *result)
{
    while (run-- > 0) {
        uint32_t *place = &cache->place_of[blocks[run]];

        result->host_hit_blocks += *place >= PLACE_COMING;
        if (*place != PLACE_NONE)
            continue;
        host_tier_fetch(cache->host, blocks[run]);
        *place = PLACE_COMING;
    }
}

static void offload_to_host(struct block_cache *cache)
{
    for (uint64_t i = 0; i < cache->to_host_count; i++)
        host_tier_offload(cache->host, cache->to_host[i]);
    cache->to_host_count = 0;
}

static uint64_t insert_missing(struct block_cache *cache, const uint32_t *blocks, uint64_t n)
{
    uint64_t inserted = 0;

    for (uint64_t i = 0; i < n; i++)
        if (cache->place_of[blocks[i]] >= PLACE_COMING) {
            insert(cache, blocks[i], IN_USE, i > 0 ? cache->place_of[blocks[i - 1]] : KV_OBJECT_NONE,
                   (uint32_t)min_u64(i, UINT32_MAX - 1));
            inserted++;
        }
    return inserted;
}

static void give_back(struct block_cache *cache, uint32_t number)
{
    uint32_t place = cache->place_of[number];

    if (cache->number_of[place] & IN_USE) {
        cache->number_of[place] &= ~IN_USE;
        cache->order->ops->give(cache->order, place);
    } else { /* an id twice in a request: its last place in the order counts */
        cache->order->ops->touch(cache->order, place);
    }
}

static void tell_future(struct block_cache *cache, const uint32_t *blocks, const uint32_t *next, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        cache->order->ops->foresee(cache->order, cache->place_of[blocks[i]],
                                   next[i] == UINT32_MAX ? UINT64_MAX : next[i]);
}

static void tell_time(struct block_cache *cache, uint64_t now_ns)
{
    if (now_ns <= cache->now_ns)
        return;
    cache->now_ns = now_ns;
    cache->order->ops->clock(cache->order, now_ns);
}

/* A request of n <= capacity blocks, from look-up to release; next: its blocks' future, or NULL. Returns its hit run. */
static uint64_t run_request(struct block_cache *cache, const uint32_t *blocks, uint64_t n, const uint32_t *next,
                            const struct cache_config *config, struct cache_prefix *result)
{
    uint64_t run = next != NULL ? cached_blocks(cache, blocks, n) : hit_run(cache, blocks, n);
    uint64_t missing = take_cached(cache, blocks, n);

    if (cache->host != NULL)
        fetch_from_host(cache, blocks, run, result);
    while (cache->order->count > 0 && cache->order->count > config->capacity_blocks - n) {
        if (cache->order->count == cache->order->pinned)
            tell_time(cache, cache->order->ops->next_unpin(cache->order));
        if (cache->now_ns > WL_TIME_NS_MAX)
            return 0;
        evict_one(cache);
    }
    if (cache->host != NULL)
        offload_to_host(cache);
    if (missing > 0)
        result->inserted_blocks += insert_missing(cache, blocks, n);
    if (next != NULL)
        tell_future(cache, blocks, next, n);
    for (uint64_t i = 0; i < n; i++)
        give_back(cache, blocks[config->release == CACHE_LEAF_FIRST ? n - 1 - i : i]);
    return run;
}

static void count_host(const struct host_tier *host, struct cache_prefix *result)
{
    result->fetched_blocks = host->fetched;
    result->offloaded_blocks = host->offloaded;
    result->already_there_blocks = host->already_there;
    result->host_evicted_blocks = host->evicted;
    result->host_resident_blocks_at_end = host->used_blocks;
}

/* The request begins or ceases to wait. */
static void set_waiting(struct block_cache *cache, const struct cache_trace *trace, uint64_t request,
                        const struct cache_config *config, bool waits)
{
    struct cache_view view = cache_view_of(trace, request);
    uint64_t n = counted_blocks(&view, config);

    for (uint64_t i = 0; i < n && n <= config->capacity_blocks; i++) {
        uint32_t *waiting = &cache->waiting[view.blocks[i]], place = cache->place_of[view.blocks[i]];
        bool before = *waiting > 0;

        *waiting = waits ? *waiting + 1 : *waiting - 1;
        if (place != PLACE_NONE && before != (*waiting > 0))
            cache->order->ops->expect(cache->order, place, *waiting > 0);
    }
}

/* While request i runs, as many requests wait, itself included, as the order wants to know of; *end: the first that does not. */
static void move_queue(struct block_cache *cache, const struct cache_trace *trace, uint64_t i,
                       const struct cache_config *config, uint64_t *end)
{
    if (i < *end)
        set_waiting(cache, trace, i, config, false);
    for (*end = *end > i ? *end : i + 1; *end < trace->request_count && *end - i < cache->order->queue_requests; ++*end)
        set_waiting(cache, trace, *end, config, true);
}

static void count_request(struct cache_prefix *result, const struct cache_view *view, uint64_t n, uint64_t run,
                          uint32_t block_tokens)
{
    result->requests++;
    result->lookup_blocks += n;
    result->hit_blocks += run;
    result->input_tokens += view->prompt_tokens;
    result->hit_tokens += min_u64(run * block_tokens, view->prompt_tokens);
    result->fully_hit_requests += n > 0 && run == n;
    result->zero_hit_requests += run == 0;
}

static int run_requests(const struct cache_trace *trace, const struct cache_config *config, struct block_cache *cache,
                        const uint32_t *next, struct cache_prefix *result, int64_t *hits, struct err *err)
{
    struct hit_digest digest;
    uint64_t queue_end = 0; /* requests before it, and behind the present one, wait */

    hit_digest_begin(&digest);
    for (uint64_t i = 0; i < trace->request_count; i++) {
        struct cache_view view = cache_view_of(trace, i);
        uint64_t n = counted_blocks(&view, config);
        int64_t run = -1;

        if (cache->waiting != NULL)
            move_queue(cache, trace, i, config, &queue_end);
        if (config->evict->clock != NULL)
            tell_time(cache, trace->requests[i].arrival_ns);
        if (n <= config->capacity_blocks) {
            if (config->evict->begin != NULL)
                config->evict->begin(cache->order, trace->requests[i].kind);
            run = (int64_t)run_request(cache, view.blocks, n,
                                       next != NULL ? next + (view.blocks - trace->blocks) : NULL, config, result);
            count_request(result, &view, n, (uint64_t)run, trace->block_tokens);
        } else {
            result->rejected_requests++;
        }
        if (cache->now_ns > WL_TIME_NS_MAX)
            return err_set(err, ERR_FAILED, "request %" PRIu64 " waits for pins that end after 2^62 ns", i);
        hit_digest_add(&digest, run);
        if (hits != NULL)
            hits[i] = run;
    }
    hit_digest_hex(&digest, result->per_request_hits_sha256);
    return 0;
}

int cache_run_prefix(const struct cache_trace *trace, const struct cache_config *config,
                     struct cache_prefix *result, int64_t *hits, struct err *err)
{
    struct block_cache cache;
    uint32_t *next = NULL;
    int status;

    if (is_clairvoyant(config) && (next = foresee(trace, config, err)) == NULL)
        return -1;
    if (init_for_trace(&cache, trace, config, err) != 0) {
        free(next);
        return -1;
    }
    *result = (struct cache_prefix){0};
    status = run_requests(trace, config, &cache, next, result, hits, err);
    if (cache.host != NULL)
        count_host(cache.host, result);
    result->evicted_blocks = cache.evicted_blocks;
    result->resident_blocks_at_end = cache.order->count;
    block_cache_release(&cache);
    free(next);
    return status;
}
