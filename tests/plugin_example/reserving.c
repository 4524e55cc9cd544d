/* A plug-in for tests: a scheduler with state, that keeps memory back. It decides what the built-in `reserve` decides: a request starts only
 * when all that it may ever need is obtainable beside what the running ones may still need. */
#include <stdlib.h>

#include <pagesim/plugin.h>

/* What running requests were admitted with, by their number. */
struct promises {
    uint64_t *units;
    size_t room;
};

static void *create(void)
{
    return calloc(1, sizeof(struct promises));
}

static void destroy(void *state)
{
    struct promises *p = state;
    free(p->units);
    free(p);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void promise(struct promises *p, uint64_t number, uint64_t units)
{
    if (number >= p->room) {
        size_t room = (size_t)number * 2 + 64;
        uint64_t *grown = realloc(p->units, room * sizeof *grown);
        if (!grown) abort();
        p->units = grown;
        p->room = room;
    }
    p->units[number] = units;
}

static uint64_t still_promised(struct engine *e, const struct promises *p)
{
    struct scheduler_request facts;
    uint64_t sum = 0;
    for (struct sim_request *r = scheduler_first_running(e); r; r = scheduler_next_running(e, r)) {
        scheduler_get_request(e, r, &facts);
        if (p->units[facts.number] > facts.taken_units) sum += p->units[facts.number] - facts.taken_units;
    }
    return sum;
}

/* Nothing is ever refused, but under look-ahead and sharing, which the promise does not foresee. */
static bool serve_running(struct engine *e, const struct scheduler_limits *limits)
{
    struct scheduler_request facts;
    struct scheduler_now now;
    for (struct sim_request *r = scheduler_first_running(e); r; r = scheduler_next_running(e, r)) {
        scheduler_get_now(e, &now);
        scheduler_get_request(e, r, &facts);
        uint64_t tokens = smaller(facts.left_tokens, now.budget_tokens / facts.width), threshold = limits->long_prefill_token_threshold;
        if (threshold > 0) tokens = smaller(tokens, threshold);
        enum scheduler_answer answer = tokens > 0 ? scheduler_extend(e, r, tokens) : SCHEDULER_OK;
        while (answer == SCHEDULER_REFUSED) {
            struct sim_request *victim = scheduler_last_running(e);
            if (scheduler_preempt(e, victim) == SCHEDULER_ENDED) answer = SCHEDULER_ENDED;
            else if (victim == r) break;
            else answer = scheduler_extend(e, r, tokens);
        }
        if (answer == SCHEDULER_WAIT) return false;
        if (answer != SCHEDULER_OK) break;
    }
    scheduler_get_now(e, &now);
    return now.preempted == 0;
}

/* False: nobody behind it is admitted. */
static bool admit(struct engine *e, struct promises *p, const struct scheduler_limits *limits, struct sim_request *r)
{
    struct scheduler_request facts;
    struct scheduler_now now;
    scheduler_get_now(e, &now);
    scheduler_get_request(e, r, &facts);
    if (now.running_seqs + facts.samples > limits->max_num_seqs) {
        scheduler_wait_for_slot(e, r);
        return false;
    }
    uint64_t tokens = scheduler_look_up(e, r), units = 0;
    if (limits->long_prefill_token_threshold > 0) tokens = smaller(tokens, limits->long_prefill_token_threshold);
    if (tokens > now.budget_tokens && !limits->chunked_prefill) return false;
    if (!limits->policy_reserves) {
        /* The last token is never written. */
        uint64_t most = smaller(facts.prompt_tokens + facts.max_tokens - 1 + limits->lookahead_tokens, limits->max_model_len);
        uint64_t in_all = scheduler_units_in_all(e, r, most, true);
        if (in_all > limits->pool_units) {
            scheduler_unservable(e, r, in_all);
            return true;
        }
        units = scheduler_units(e, r, most, true);
        if (scheduler_hold_back(e, r, units, still_promised(e, p))) return false;
    }
    enum scheduler_answer answer = scheduler_admit(e, r, smaller(tokens, now.budget_tokens));
    if (answer == SCHEDULER_OK) promise(p, facts.number, units);
    return answer != SCHEDULER_REFUSED;
}

static void pass(struct engine *e, void *state)
{
    struct scheduler_limits limits;
    struct scheduler_now now;
    struct sim_request *r;
    scheduler_get_limits(e, &limits);
    if (!serve_running(e, &limits)) return;
    while (scheduler_get_now(e, &now), now.budget_tokens > 0 && (r = scheduler_first_waiting(e)) != NULL)
        if (!admit(e, state, &limits, r)) break;
}

static const struct scheduler_ops reserving = {
    .name = "reserving",
    .summary = "an example of a plug-in: what reserve does",
    .source = "the built-in reserve",
    .create = create,
    .destroy = destroy,
    .pass = pass,
};
static const struct scheduler_ops *const schedulers[] = {&reserving, NULL};

const struct pagesim_plugin pagesim_plugin = {PAGESIM_PLUGIN_HEADER, .schedulers = schedulers};
