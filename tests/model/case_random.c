#include "tests/model/case_random.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- chance ------------------------------------------------------------------------------ */

/* splitmix64 (Steele, Lea, Flood 2014): any seed is a good one. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Both ends included. The tiny bias of the remainder does not matter here. */
static uint32_t between(uint64_t *state, uint32_t low, uint32_t high)
{
    assert(low <= high);
    return low + (uint32_t)(draw(state) % ((uint64_t)high - low + 1));
}

static bool chance(uint64_t *state, uint32_t percent)
{
    return between(state, 1, 100) <= percent;
}

/* --- random cases ------------------------------------------------------------------------ */

enum {
    NUM_STREAMS = 3,        /* token sequences that prompts and outputs may share */
    STREAM_STRIDE = 100000, /* token p of stream s is s * STREAM_STRIDE + p */
    LETTERS_FIRST = 900000, /* two tokens of which tails are made, equal by chance */
    UNIQUE_FIRST = 1000000,
};

static uint32_t random_model_len(uint64_t *state, uint32_t pool_tokens)
{
    if (chance(state, 60))
        return pool_tokens + 1; /* any request fits when it is alone, if barely */
    if (chance(state, 50))
        return between(state, 2, pool_tokens + 1);
    return between(state, pool_tokens + 1, 2 * pool_tokens + 2);
}

static uint32_t random_budget(uint64_t *state, const struct v1_config *g)
{
    uint32_t budget = 512;
    if (chance(state, 40))
        budget = between(state, 1, 2 * g->block_tokens + 2);
    else if (chance(state, 60))
        budget = between(state, 4, 64);
    if (!g->enable_chunked_prefill && budget < g->max_model_len)
        budget = g->max_model_len;
    return budget;
}

static void random_config(uint64_t *state, struct v1_config *g)
{
    g->rules = chance(state, 60) ? V1_RULES_2026_08 : V1_RULES_2026_04;
    g->block_tokens = between(state, 1, 8);
    g->num_blocks = between(state, 2, 24);
    g->enable_prefix_caching = chance(state, 70);
    g->enable_chunked_prefill = chance(state, 75);
    g->reserve_full_prompt = chance(state, 55);
    g->detail_full = chance(state, 90);
    g->max_num_seqs = chance(state, 30) ? between(state, 1, 3) : 16;
    g->max_model_len = random_model_len(state, (g->num_blocks - 1) * g->block_tokens);
    g->max_num_batched_tokens = random_budget(state, g);
    if (chance(state, 30))
        g->sliding_window = between(state, 2, 4 * g->block_tokens + 2);
    if (chance(state, 25))
        g->long_prefill_token_threshold = between(state, 1, 12);
    if (chance(state, 30))
        g->num_lookahead_tokens = between(state, 1, 2 * g->block_tokens);
    if (g->rules == V1_RULES_2026_08 && chance(state, 30))
        g->watermark = between(state, 1, 32) / 64.0;
    g->max_steps = chance(state, 90) ? 300 : between(state, 1, 30);
}

/* The first tokens come from a stream, the others are unique or of two letters. */
static uint64_t *random_tokens(uint64_t *state, uint32_t stream, uint32_t first, uint32_t num_shared,
                               uint32_t n, uint64_t *next_unique)
{
    bool unique = chance(state, 50);
    uint64_t *tokens = v1_resize(NULL, n, sizeof *tokens);
    for (uint32_t i = 0; i < n; i++) {
        if (i < num_shared)
            tokens[i] = (uint64_t)stream * STREAM_STRIDE + first + i;
        else
            tokens[i] = unique ? (*next_unique)++ : LETTERS_FIRST + between(state, 0, 1);
    }
    return tokens;
}

static uint32_t random_prompt_tokens(uint64_t *state, const struct v1_config *g)
{
    uint32_t pool_tokens = (g->num_blocks - 1) * g->block_tokens;
    uint32_t most = pool_tokens < g->max_model_len ? pool_tokens : g->max_model_len;
    if (chance(state, 6))
        return between(state, 0, g->max_model_len + 1); /* perhaps refused */
    if (chance(state, 25))
        return g->block_tokens * between(state, 1, 3); /* exactly at a block's end */
    return between(state, 1, chance(state, 60) ? 1 + most / 3 : most);
}

static void random_request(uint64_t *state, const struct v1_config *g, struct v1_request *r,
                           uint64_t *next_unique)
{
    uint32_t stream = between(state, 0, NUM_STREAMS - 1);
    r->prompt_tokens = random_prompt_tokens(state, g);
    uint32_t num_shared = chance(state, 40) ? r->prompt_tokens : between(state, 0, r->prompt_tokens);
    r->prompt = random_tokens(state, stream, 0, num_shared, r->prompt_tokens, next_unique);
    r->output_tokens = between(state, 1, chance(state, 60) ? 2 * g->block_tokens + 2 : 40);
    if (chance(state, 40))
        return;
    /* After a prompt that is all stream the output goes on with it, as the next turn of a chat. */
    uint32_t num_continued = num_shared == r->prompt_tokens ? r->output_tokens : 0;
    r->output = random_tokens(state, stream, r->prompt_tokens, num_continued, r->output_tokens, next_unique);
}

struct v1_case v1_case_random(uint64_t seed)
{
    uint64_t state = seed;
    struct v1_case c = {0};
    random_config(&state, &c.config);
    c.num_requests = between(&state, 1, 12);
    c.requests = v1_resize(NULL, c.num_requests, sizeof *c.requests);
    bool sorted = chance(&state, 85);
    uint32_t gap_max = chance(&state, 40) ? 1 : between(&state, 0, 12);
    uint64_t arrival = chance(&state, 80) ? 0 : between(&state, 1, 9);
    uint64_t next_unique = UNIQUE_FIRST;
    for (uint32_t i = 0; i < c.num_requests; i++) {
        struct v1_request *r = &c.requests[i];
        *r = (struct v1_request){0};
        if (asprintf(&r->id, "r%u", (unsigned)i) < 0)
            abort();
        r->arrival = sorted ? arrival : between(&state, 0, 20);
        arrival += between(&state, 0, gap_max);
        random_request(&state, &c.config, r, &next_unique);
    }
    assert(v1_case_valid(&c));
    return c;
}

/* --- shrinking --------------------------------------------------------------------------- */

/* Every number that shrinks: those of the configuration, then those of each request. */
enum number {
    MAX_STEPS,
    NUM_BLOCKS,
    BLOCK_TOKENS,
    MAX_NUM_SEQS,
    MAX_NUM_BATCHED_TOKENS,
    MAX_MODEL_LEN,
    SLIDING_WINDOW,
    LONG_PREFILL_TOKEN_THRESHOLD,
    NUM_LOOKAHEAD_TOKENS,
    NUM_CONFIG_NUMBERS,
    ARRIVAL = NUM_CONFIG_NUMBERS,
    PROMPT_HEAD, /* shortened by its first tokens */
    PROMPT_TAIL,
    OUTPUT,
    NUM_NUMBERS,
};

static uint32_t *config_number(struct v1_config *g, enum number which)
{
    switch (which) {
    case NUM_BLOCKS: return &g->num_blocks;
    case BLOCK_TOKENS: return &g->block_tokens;
    case MAX_NUM_SEQS: return &g->max_num_seqs;
    case MAX_NUM_BATCHED_TOKENS: return &g->max_num_batched_tokens;
    case MAX_MODEL_LEN: return &g->max_model_len;
    case SLIDING_WINDOW: return &g->sliding_window;
    case LONG_PREFILL_TOKEN_THRESHOLD: return &g->long_prefill_token_threshold;
    case NUM_LOOKAHEAD_TOKENS: return &g->num_lookahead_tokens;
    default: abort();
    }
}

static uint64_t get_number(struct v1_case *c, enum number which, uint32_t request)
{
    switch (which) {
    case MAX_STEPS: return c->config.max_steps;
    case ARRIVAL: return c->requests[request].arrival;
    case PROMPT_HEAD:
    case PROMPT_TAIL: return c->requests[request].prompt_tokens;
    case OUTPUT: return c->requests[request].output_tokens;
    default: return *config_number(&c->config, which);
    }
}

/* value is below the present one. */
static void set_number(struct v1_case *c, enum number which, uint32_t request, uint64_t value)
{
    struct v1_request *r = &c->requests[request];
    switch (which) {
    case MAX_STEPS: c->config.max_steps = value; break;
    case ARRIVAL: r->arrival = value; break;
    case PROMPT_HEAD:
        memmove(r->prompt, r->prompt + (r->prompt_tokens - value), value * sizeof *r->prompt);
        r->prompt_tokens = (uint32_t)value;
        break;
    case PROMPT_TAIL: r->prompt_tokens = (uint32_t)value; break;
    case OUTPUT: r->output_tokens = (uint32_t)value; break;
    default: *config_number(&c->config, which) = (uint32_t)value; break;
    }
}

/* Where a number may not go; the case's validity forbids the rest. */
static uint64_t number_min(enum number which)
{
    switch (which) {
    case NUM_BLOCKS: return 2;
    case SLIDING_WINDOW:
    case LONG_PREFILL_TOKEN_THRESHOLD:
    case NUM_LOOKAHEAD_TOKENS:
    case ARRIVAL:
    case PROMPT_HEAD:
    case PROMPT_TAIL: return 0;
    default: return 1;
    }
}

struct shrinker {
    struct v1_case best; /* the smallest that fails so far */
    v1_case_fails *fails;
    void *context;
};

/* Takes the candidate if it still fails; releases it or the former best. */
static bool keep_if_failing(struct shrinker *s, struct v1_case candidate)
{
    if (!v1_case_valid(&candidate) || !s->fails(&candidate, s->context)) {
        v1_case_release(&candidate);
        return false;
    }
    v1_case_release(&s->best);
    s->best = candidate;
    return true;
}

static bool shrink_requests(struct shrinker *s)
{
    bool smaller = false;
    for (uint32_t i = s->best.num_requests; i-- > 0;) {
        struct v1_case candidate = v1_case_copy(&s->best);
        v1_request_release(&candidate.requests[i]);
        candidate.num_requests--;
        memmove(candidate.requests + i, candidate.requests + i + 1,
                (candidate.num_requests - i) * sizeof *candidate.requests);
        smaller |= keep_if_failing(s, candidate);
    }
    return smaller;
}

/* Tries the least value, then halves the way to it, then takes single steps. */
static bool shrink_number(struct shrinker *s, enum number which, uint32_t request)
{
    bool smaller = false;
    uint64_t min = number_min(which);
    uint64_t step = UINT64_MAX;
    for (uint64_t now; (now = get_number(&s->best, which, request)) > min && step > 0;) {
        step = step < now - min ? step : now - min;
        struct v1_case candidate = v1_case_copy(&s->best);
        set_number(&candidate, which, request, now - step);
        if (keep_if_failing(s, candidate))
            smaller = true;
        else
            step /= 2;
    }
    return smaller;
}

static bool shrink_numbers(struct shrinker *s)
{
    bool smaller = false;
    for (int which = 0; which < NUM_CONFIG_NUMBERS; which++)
        smaller |= shrink_number(s, (enum number)which, 0);
    for (uint32_t i = 0; i < s->best.num_requests; i++)
        for (int which = NUM_CONFIG_NUMBERS; which < NUM_NUMBERS; which++)
            smaller |= shrink_number(s, (enum number)which, i);
    return smaller;
}

/* The k-th number of the case, counted over the configuration and all requests. */
static enum number number_at(uint32_t k, uint32_t *request)
{
    uint32_t num_config = NUM_CONFIG_NUMBERS;
    uint32_t per_request = NUM_NUMBERS - num_config;
    *request = k < num_config ? 0 : (k - num_config) / per_request;
    return (enum number)(k < num_config ? k : num_config + (k - num_config) % per_request);
}

/* Makes number k smaller; false if there is no room below it. */
static bool lower_number(struct v1_case *c, uint32_t k, uint64_t step)
{
    uint32_t request;
    enum number which = number_at(k, &request);
    uint64_t now = get_number(c, which, request);
    if (now < number_min(which) + step)
        return false;
    set_number(c, which, request, now - step);
    return true;
}

/* A smaller pool often needs a shorter prompt with it, and a shared prefix gets shorter in two
 * requests or in none. Tries two numbers at once: one step of the first, some of the second. */
static bool shrink_pairs(struct shrinker *s)
{
    enum { SECOND_STEP_MAX = 8 };
    uint32_t n = NUM_CONFIG_NUMBERS + s->best.num_requests * (NUM_NUMBERS - NUM_CONFIG_NUMBERS);
    for (uint32_t first = 0; first < n; first++) {
        for (uint32_t second = 0; second < n; second++) {
            for (uint64_t step = 1; second != first && step <= SECOND_STEP_MAX; step++) {
                struct v1_case candidate = v1_case_copy(&s->best);
                if (lower_number(&candidate, first, 1) && lower_number(&candidate, second, step)) {
                    if (keep_if_failing(s, candidate))
                        return true;
                } else {
                    v1_case_release(&candidate);
                    break;
                }
            }
        }
    }
    return false;
}

enum { NUM_SWITCHES = 5 };

/* False if it is switched to its plain setting already. */
static bool make_plain(struct v1_config *g, int which)
{
    bool *const to_true[] = {&g->enable_chunked_prefill, &g->detail_full};
    bool *const to_false[] = {&g->enable_prefix_caching, &g->reserve_full_prompt};
    bool changed;
    if (which < 2) {
        changed = !*to_true[which];
        *to_true[which] = true;
    } else if (which < 4) {
        changed = *to_false[which - 2];
        *to_false[which - 2] = false;
    } else {
        changed = g->watermark > 0;
        g->watermark = 0;
    }
    return changed;
}

/* Towards a case with nothing special switched on. */
static bool shrink_switches(struct shrinker *s)
{
    bool smaller = false;
    for (int which = 0; which < NUM_SWITCHES; which++) {
        struct v1_case candidate = v1_case_copy(&s->best);
        if (make_plain(&candidate.config, which))
            smaller |= keep_if_failing(s, candidate);
        else
            v1_case_release(&candidate);
    }
    return smaller;
}

static bool shrink_outputs(struct shrinker *s)
{
    bool smaller = false;
    for (uint32_t i = 0; i < s->best.num_requests; i++) {
        if (s->best.requests[i].output == NULL)
            continue;
        struct v1_case candidate = v1_case_copy(&s->best);
        free(candidate.requests[i].output);
        candidate.requests[i].output = NULL;
        smaller |= keep_if_failing(s, candidate);
    }
    return smaller;
}

struct v1_case v1_case_shrink(const struct v1_case *c, v1_case_fails *fails, void *context)
{
    assert(fails(c, context));
    struct shrinker s = {.best = v1_case_copy(c), .fails = fails, .context = context};
    bool smaller = true;
    while (smaller) { /* every kept change makes the case smaller, so this ends */
        smaller = shrink_requests(&s);
        smaller |= shrink_switches(&s);
        smaller |= shrink_outputs(&s);
        smaller |= shrink_numbers(&s);
        if (!smaller) /* the dearest way last */
            smaller = shrink_pairs(&s);
    }
    return s.best;
}
