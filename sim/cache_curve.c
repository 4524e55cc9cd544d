#include "sim/cache_curve.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/stack_distance.h"

#define PARTS 16    /* of a sample, for its error */
#define SAMPLES 4   /* of a miniature simulation */
#define EXACT_REFERENCES_MAX (UINT64_C(1) << 26)     /* one pass over so many takes half a minute */
#define SIMULATED_REFERENCES_MAX (UINT64_C(1) << 23) /* for each capacity */
#define SAMPLE_REFERENCES 4e6

const char *curve_method_name(enum curve_method method)
{
    static const char *const names[] = {"exact", "simulated", "shards", "mini"};

    return names[method];
}

/* A request's blocks that count. */
struct view {
    const uint32_t *blocks;
    uint64_t n, prompt_tokens;
};

static struct view view_of(const struct cache_trace *trace, const struct curve_config *config, uint64_t r)
{
    uint64_t begin = r > 0 ? trace->requests[r - 1].end_block : 0;
    const struct cache_request *request = &trace->requests[r];
    struct view view = {trace->blocks + begin, request->end_block - begin, request->prompt_tokens};
    uint64_t full = view.prompt_tokens / trace->block_tokens;

    if (!config->stream && config->blocks == CACHE_FULL_BLOCKS && full < view.n)
        view.n = full;
    return view;
}

static uint64_t largest_request(const struct cache_trace *trace, const struct curve_config *config)
{
    uint64_t most = 0;

    for (uint64_t r = 0; !config->stream && r < trace->request_count; r++) {
        uint64_t n = view_of(trace, config, r).n;

        most = n > most ? n : most;
    }
    return most;
}

/* --- samples of blocks -------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t z)
{
    z += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* The upper 32 bits choose, the lower ones tell the parts of a sample apart. */
static uint64_t hash_of(uint32_t block, uint64_t seed)
{
    return mixed(block ^ seed << 32);
}

static bool is_chosen(uint64_t hash, double rate)
{
    return (double)(hash >> 32) < rate * 4294967296.0;
}

/* --- by stack distances --------------------------------------------------------------------------------- */

struct pass {
    const struct curve_config *config;
    const uint64_t *capacities;
    size_t count;
    double rate;
    uint64_t *hits;      /* [count][PARTS], of distances that fit this capacity and no lower one */
    uint64_t *hit_tokens; /* the same, parts together */
    uint64_t lookups[PARTS];
    uint64_t tokens, all_lookups;
    struct stack_distance stack;
};

/* The lowest capacity with room for the distance, or count. */
static size_t fitting(const struct pass *pass, uint32_t distance)
{
    double needed = (double)distance / pass->rate;
    size_t low = 0, high = pass->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((double)pass->capacities[middle] >= needed)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void look_up(struct pass *pass, const struct view *view, uint32_t block_tokens)
{
    uint32_t farthest = 0;

    for (uint64_t i = 0; i < view->n; i++) {
        uint64_t hash = hash_of(view->blocks[i], 0), begin = i * block_tokens, end = begin + block_tokens;
        uint32_t distance;
        size_t at;

        if (!is_chosen(hash, pass->rate))
            continue;
        pass->lookups[hash % PARTS]++;
        if (farthest == UINT32_MAX)
            continue;
        distance = stack_distance_of(&pass->stack, view->blocks[i]);
        farthest = distance > farthest ? distance : farthest;
        if (farthest == UINT32_MAX || (at = fitting(pass, farthest)) == pass->count)
            continue;
        pass->hits[at * PARTS + hash % PARTS]++;
        if (begin < view->prompt_tokens)
            pass->hit_tokens[at] += (end < view->prompt_tokens ? end : view->prompt_tokens) - begin;
    }
}

static void use(struct pass *pass, const struct view *view)
{
    for (uint64_t i = 0; i < view->n; i++) {
        uint32_t block = view->blocks[pass->config->release == CACHE_LEAF_FIRST ? view->n - 1 - i : i];

        if (is_chosen(hash_of(block, 0), pass->rate))
            stack_distance_use(&pass->stack, block);
    }
}

static void run_pass(struct pass *pass, const struct cache_trace *trace)
{
    for (uint64_t i = 0; pass->config->stream && i < trace->block_count; i++) {
        struct view one = {&trace->blocks[i], 1, 0};

        look_up(pass, &one, trace->block_tokens);
        use(pass, &one);
    }
    pass->all_lookups = pass->config->stream ? trace->block_count : 0;
    for (uint64_t r = 0; !pass->config->stream && r < trace->request_count; r++) {
        struct view view = view_of(trace, pass->config, r);

        look_up(pass, &view, trace->block_tokens);
        use(pass, &view);
        pass->all_lookups += view.n;
        pass->tokens += view.prompt_tokens;
    }
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : (double)NAN;
}

static double between_0_and_1(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x; /* NAN stays */
}

/* Standard error of the mean of n values. */
static double standard_error(const double *values, size_t n)
{
    double mean = 0, squares = 0;

    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return sqrt(squares / (double)(n * (n - 1)));
}

/* hits[]: those of each part at this capacity. A sample with more references than expected has hot blocks too many,
 * which hit everywhere: the surplus is taken off, a lack added (SHARDS-adj). */
static void fill_sampled(const struct pass *pass, const uint64_t *hits, struct curve_point *point)
{
    double expected = (double)pass->all_lookups * pass->rate / PARTS, ratios[PARTS], sum = 0;

    for (size_t part = 0; part < PARTS; part++) {
        ratios[part] = share((double)hits[part] + expected - (double)pass->lookups[part], expected);
        sum += ratios[part] / PARTS;
    }
    point->method = CURVE_SHARDS;
    point->hit_ratio = between_0_and_1(sum);
    point->error = standard_error(ratios, PARTS);
}

static void fill_points(const struct pass *pass, struct curve_point *points)
{
    uint64_t hits[PARTS] = {0}, tokens = 0, all;

    for (size_t c = 0; c < pass->count; c++) {
        struct curve_point *point = &points[c];

        all = 0;
        for (size_t part = 0; part < PARTS; part++) {
            hits[part] += pass->hits[c * PARTS + part];
            all += hits[part];
        }
        tokens += pass->hit_tokens[c];
        *point = (struct curve_point){.capacity_blocks = pass->capacities[c], .token_hit_ratio = (double)NAN};
        if (pass->rate < 1) {
            fill_sampled(pass, hits, point);
            continue;
        }
        point->method = CURVE_EXACT;
        point->lookup_blocks = pass->all_lookups;
        point->hit_blocks = all;
        point->hit_ratio = share((double)all, (double)pass->all_lookups);
        if (!pass->config->stream)
            point->token_hit_ratio = share((double)tokens, (double)pass->tokens);
    }
}

static int one_pass(const struct cache_trace *trace, const struct curve_config *config, double rate,
                    const uint64_t *capacities, size_t count, struct curve_point *points, struct err *err)
{
    struct pass pass = {.config = config, .capacities = capacities, .count = count, .rate = rate};
    int status = 0;

    pass.hits = calloc(count * PARTS, sizeof *pass.hits);
    pass.hit_tokens = calloc(count, sizeof *pass.hit_tokens);
    if (pass.hits == NULL || pass.hit_tokens == NULL || !stack_distance_init(&pass.stack, trace->unique_blocks)) {
        status = err_set(err, ERR_FAILED, "out of memory for stack distances");
    } else {
        run_pass(&pass, trace);
        fill_points(&pass, points);
        stack_distance_release(&pass.stack);
    }
    free(pass.hits);
    free(pass.hit_tokens);
    return status;
}

/* --- by simulation ------------------------------------------------------------------------------------------ */

static int simulate(const struct cache_trace *trace, const struct curve_config *config, uint64_t capacity,
                    struct curve_point *point, struct err *err)
{
    struct cache_config one = {.evict = config->evict, .capacity_blocks = capacity, .release = config->release,
                               .blocks = config->blocks, .evict_values = config->evict_values};

    *point = (struct curve_point){.capacity_blocks = capacity, .method = CURVE_SIMULATED, .token_hit_ratio = (double)NAN};
    if (config->stream) {
        struct cache_stream result;

        if (cache_run_stream(trace, &one, &result, err) != 0)
            return -1;
        point->lookup_blocks = result.lookups;
        point->hit_blocks = result.hits;
    } else {
        struct cache_prefix result;

        if (cache_run_prefix(trace, &one, &result, NULL, err) != 0)
            return -1;
        point->lookup_blocks = result.lookup_blocks;
        point->hit_blocks = result.hit_blocks;
        point->token_hit_ratio = share((double)result.hit_tokens, (double)result.input_tokens);
    }
    point->hit_ratio = share((double)point->hit_blocks, (double)point->lookup_blocks);
    return 0;
}

/* The chosen blocks of the trace as a trace, numbered anew; a block stands for block_tokens tokens. */
static int make_miniature(const struct cache_trace *trace, const struct curve_config *config, double rate,
                          uint64_t seed, struct cache_trace *mini, struct err *err)
{
    uint64_t *ids = malloc((size_t)(trace->request_blocks_max + 1) * sizeof *ids);
    int status = cache_trace_init(mini, trace->block_tokens, err);

    if (ids == NULL && status == 0)
        status = err_set(err, ERR_FAILED, "out of memory for a miniature trace");
    for (uint64_t r = 0; status == 0 && r < trace->request_count; r++) {
        struct view view = view_of(trace, config, r);
        uint64_t n = 0;

        for (uint64_t i = 0; i < view.n; i++)
            if (is_chosen(hash_of(view.blocks[i], seed), rate))
                ids[n++] = view.blocks[i];
        status = cache_trace_add(mini, n * trace->block_tokens, ids, n, err);
        if (status == 0) {
            mini->requests[r].kind = trace->requests[r].kind;
            mini->requests[r].arrival_ns = trace->requests[r].arrival_ns;
        }
    }
    free(ids);
    return status;
}

static uint64_t all_lookups(const struct cache_trace *trace, const struct curve_config *config)
{
    uint64_t sum = 0;

    for (uint64_t r = 0; r < trace->request_count; r++)
        sum += view_of(trace, config, r).n;
    return sum;
}

static int mini_point(const struct cache_trace *trace, const struct cache_trace minis[SAMPLES],
                      const struct curve_config *config, double rate, uint64_t capacity, struct curve_point *point,
                      struct err *err)
{
    uint64_t scaled = (uint64_t)((double)capacity * rate + 0.5);
    double ratios[SAMPLES], sum = 0, expected = (double)all_lookups(trace, config) * rate;

    for (size_t s = 0; s < SAMPLES; s++)
        if (scaled == 0 || (!config->stream && scaled < minis[s].request_blocks_max))
            return simulate(trace, config, capacity, point, err); /* a sample would reject requests */
    for (size_t s = 0; s < SAMPLES; s++) {
        struct curve_point one;

        if (simulate(&minis[s], config, scaled, &one, err) != 0)
            return -1;
        ratios[s] = share((double)one.hit_blocks + expected - (double)one.lookup_blocks, expected);
        sum += ratios[s] / SAMPLES;
    }
    *point = (struct curve_point){.capacity_blocks = capacity, .method = CURVE_MINI, .hit_ratio = between_0_and_1(sum),
                                  .token_hit_ratio = (double)NAN, .error = standard_error(ratios, SAMPLES)};
    return 0;
}

/* Whether a request names a block twice: then what it takes depends on more than distances. -1: out of memory. */
static int names_twice(const struct cache_trace *trace)
{
    uint64_t *last = calloc((size_t)trace->unique_blocks + 1, sizeof *last);
    uint64_t at = 0;
    int twice = last == NULL ? -1 : 0;

    for (uint64_t r = 0; twice == 0 && r < trace->request_count; r++)
        for (; twice == 0 && at < trace->requests[r].end_block; at++) {
            twice = last[trace->blocks[at]] == r + 1;
            last[trace->blocks[at]] = r + 1;
        }
    free(last);
    return twice;
}

/* The samples are few, and all may lack a block that nearly every request has: their spread does not tell. So the error
 * contains how far the same samples are off for lru, whose truth takes one pass. The capacities are at least the largest
 * request. */
static int widen_errors(const struct cache_trace *trace, const struct cache_trace minis[SAMPLES],
                        const struct curve_config *config, double rate, const uint64_t *capacities, size_t count,
                        struct curve_point *points, struct err *err)
{
    struct curve_config lru = *config;
    struct curve_point *truth = calloc(count + 1, sizeof *truth);
    int status = 0;

    lru.evict = kv_eviction_find("lru");
    lru.evict_values = NULL;
    status = truth != NULL ? one_pass(trace, &lru, 1, capacities, count, truth, err)
                           : err_set(err, ERR_FAILED, "out of memory for %zu points", count);
    for (size_t c = 0; status == 0 && c < count; c++) {
        struct curve_point mini;

        if (points[c].method != CURVE_MINI)
            continue;
        status = mini_point(trace, minis, &lru, rate, capacities[c], &mini, err);
        if (status == 0)
            points[c].error = hypot(points[c].error, mini.hit_ratio - truth[c].hit_ratio);
    }
    free(truth);
    return status;
}

/* small: how many capacities are below the largest request. */
static int miniatures(const struct cache_trace *trace, const struct curve_config *config, double rate,
                      const uint64_t *capacities, size_t count, size_t small, struct curve_point *points,
                      struct err *err)
{
    struct cache_trace minis[SAMPLES] = {0};
    int status = 0;

    for (uint64_t s = 0; status == 0 && s < SAMPLES; s++)
        status = make_miniature(trace, config, rate, s + 1, &minis[s], err);
    for (size_t c = 0; status == 0 && c < count; c++)
        status = mini_point(trace, minis, config, rate, capacities[c], &points[c], err);
    if (status == 0 && small < count && trace->block_count <= EXACT_REFERENCES_MAX) {
        int twice = config->stream ? 0 : names_twice(trace);

        if (twice < 0)
            status = err_set(err, ERR_FAILED, "out of memory");
        else if (twice == 0)
            status = widen_errors(trace, minis, config, rate, capacities + small, count - small, points + small, err);
    }
    for (size_t s = 0; s < SAMPLES; s++)
        cache_trace_release(&minis[s]);
    return status;
}

/* --- which way ------------------------------------------------------------------------------------------------- */

static double sample_rate(const struct cache_trace *trace, const struct curve_config *config, bool stack)
{
    uint64_t most = stack ? EXACT_REFERENCES_MAX : SIMULATED_REFERENCES_MAX;

    if (config->sample_rate > 0)
        return config->sample_rate;
    return trace->block_count <= most ? 1 : SAMPLE_REFERENCES / (double)trace->block_count;
}

/* small: how many capacities are below the largest request. */
static int fill(const struct cache_trace *trace, const struct curve_config *config, const uint64_t *capacities,
                size_t count, size_t small, struct curve_point *points, struct err *err)
{
    bool stack = (config->evict->flags & KV_EVICTION_STACK) != 0;
    int twice = stack && !config->stream ? names_twice(trace) : 0;
    double rate;

    if (twice < 0)
        return err_set(err, ERR_FAILED, "out of memory");
    stack = stack && twice == 0;
    rate = sample_rate(trace, config, stack);
    if (!stack && rate < 1)
        return miniatures(trace, config, rate, capacities, count, small, points, err);
    for (size_t c = 0; c < (stack ? small : count); c++)
        if (simulate(trace, config, capacities[c], &points[c], err) != 0)
            return -1;
    if (!stack || small == count)
        return 0;
    return one_pass(trace, config, rate, capacities + small, count - small, points + small, err);
}

int cache_curve(const struct cache_trace *trace, const struct curve_config *config, const uint64_t *capacities,
                size_t count, struct curve_point *points, struct err *err)
{
    uint64_t largest = largest_request(trace, config);
    size_t small = 0;

    while (small < count && capacities[small] < largest)
        small++;
    if (fill(trace, config, capacities, count, small, points, err) != 0)
        return -1;
    for (size_t c = 0; c < small; c++)
        points[c].apart = true;
    return 0;
}

/* --- capacities -------------------------------------------------------------------------------------------------- */

size_t curve_knee(const struct curve_point *points, size_t count)
{
    double most = 0, farthest = -1;
    size_t knee = 0;

    for (size_t i = 0; i < count; i++)
        most = !points[i].apart && points[i].hit_ratio > most ? points[i].hit_ratio : most;
    for (size_t i = 0; i < count && most > 0; i++) {
        double above = points[i].hit_ratio / most -
                       (double)points[i].capacity_blocks / (double)points[count - 1].capacity_blocks;

        if (!points[i].apart && above > farthest) {
            farthest = above;
            knee = i;
        }
    }
    return knee;
}

static int by_capacity(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

uint64_t *curve_capacities(const struct cache_trace *trace, size_t *count)
{
    /* In 1/1000: 2^(k/4). */
    static const uint64_t steps[4] = {1000, 1189, 1414, 1682};
    uint64_t all = trace->unique_blocks > 0 ? trace->unique_blocks : 1;
    uint64_t *capacities = malloc((4 * 32 + 2) * sizeof *capacities);
    size_t n = 0, kept = 0;

    if (capacities == NULL)
        return NULL;
    for (uint64_t power = 1; power < all; power *= 2)
        for (size_t k = 0; k < 4; k++)
            if (power * steps[k] / 1000 < all)
                capacities[n++] = power * steps[k] / 1000;
    capacities[n++] = all;
    if (trace->request_blocks_max > 0 && trace->request_blocks_max < all)
        capacities[n++] = trace->request_blocks_max;
    qsort(capacities, n, sizeof *capacities, by_capacity);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || capacities[i] != capacities[kept - 1])
            capacities[kept++] = capacities[i];
    *count = kept;
    return capacities;
}
