/* A plug-in for pagesim: two schedulers in one file. Both serve what runs as vLLM v1 does: first come, first served, chunked
 * prefill, the last admitted is preempted. They differ in who is admitted next: `in-order` takes the head of the waiting queue, and
 * decides what the built-in v1 decides; `shortest-first` the request with the fewest tokens left to compute. */
#include <stddef.h>

#include <pagesim/plugin.h>

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Whom others displace: the last admitted, or with priorities the least important, then the latest. */
static struct sim_request *least_important(struct engine *e, bool by_priority)
{
    struct sim_request *victim = scheduler_last_running(e), *r = victim;
    struct scheduler_request a, b;
    if (!by_priority) return victim;
    scheduler_get_request(e, victim, &a);
    while ((r = scheduler_previous_running(e, r)) != NULL) {
        scheduler_get_request(e, r, &b);
        bool later = b.arrival_ns > a.arrival_ns || (b.arrival_ns == a.arrival_ns && b.number > a.number);
        if (b.priority < a.priority || (b.priority == a.priority && !later)) continue;
        victim = r;
        a = b;
    }
    return victim;
}

/* SCHEDULER_REFUSED: r itself was preempted. */
static enum scheduler_answer extend(struct engine *e, struct sim_request *r, uint64_t tokens, bool by_priority)
{
    enum scheduler_answer answer;
    while ((answer = scheduler_extend(e, r, tokens)) == SCHEDULER_REFUSED) {
        struct sim_request *victim = least_important(e, by_priority);
        if (scheduler_preempt(e, victim) == SCHEDULER_ENDED) return SCHEDULER_ENDED;
        if (victim == r) break;
    }
    return answer;
}

/* Whether others may be admitted: nobody was preempted, and nobody waits for pins to end. */
static bool serve_running(struct engine *e, const struct scheduler_limits *limits)
{
    uint64_t threshold = limits->long_prefill_token_threshold;
    enum scheduler_answer answer = SCHEDULER_OK;
    struct scheduler_request facts;
    struct scheduler_now now;
    for (struct sim_request *r = scheduler_first_running(e); r; r = scheduler_next_running(e, r)) {
        scheduler_get_now(e, &now);
        scheduler_get_request(e, r, &facts);
        uint64_t tokens = smaller(facts.left_tokens, now.budget_tokens / facts.width);
        if (threshold > 0) tokens = smaller(tokens, threshold);
        if (tokens > 0 && (answer = extend(e, r, tokens, limits->by_priority)) != SCHEDULER_OK) break;
    }
    scheduler_get_now(e, &now);
    return now.preempted == 0 && answer != SCHEDULER_WAIT;
}

static struct sim_request *head(struct engine *e)
{
    return scheduler_first_waiting(e);
}

/* The first of equals. */
static struct sim_request *shortest(struct engine *e)
{
    struct sim_request *best = NULL;
    uint64_t fewest = UINT64_MAX;
    for (struct sim_request *r = scheduler_first_waiting(e); r; r = scheduler_next_waiting(e, r)) {
        struct scheduler_request facts;
        scheduler_get_request(e, r, &facts);
        uint64_t tokens = facts.left_tokens - scheduler_cached_tokens(e, r);
        if (tokens >= fewest) continue;
        fewest = tokens;
        best = r;
    }
    return best;
}

static void pass(struct engine *e, struct sim_request *(*next)(struct engine *))
{
    struct scheduler_limits limits;
    struct scheduler_request facts;
    struct scheduler_now now;
    struct sim_request *r;
    scheduler_get_limits(e, &limits);
    if (!serve_running(e, &limits)) return;
    while (scheduler_get_now(e, &now), now.budget_tokens > 0 && (r = next(e)) != NULL) {
        scheduler_get_request(e, r, &facts);
        if (now.running_seqs + facts.samples > limits.max_num_seqs) {
            scheduler_wait_for_slot(e, r);
            break;
        }
        uint64_t tokens = scheduler_look_up(e, r), threshold = limits.long_prefill_token_threshold;
        if (threshold > 0) tokens = smaller(tokens, threshold);
        if (tokens > now.budget_tokens && !limits.chunked_prefill) break;
        if (scheduler_admit(e, r, smaller(tokens, now.budget_tokens)) == SCHEDULER_REFUSED) break;
    }
}

static void pass_in_order(struct engine *e, void *state)
{
    (void)state;
    pass(e, head);
}

static void pass_shortest_first(struct engine *e, void *state)
{
    (void)state;
    pass(e, shortest);
}

static const struct scheduler_ops in_order = {
    .name = "in-order",
    .summary = "an example of a plug-in: what v1 does",
    .source = "the vLLM v1 scheduler, 2026-08-06",
    .pass = pass_in_order,
};

static const struct scheduler_ops shortest_first = {
    .name = "shortest-first",
    .summary = "an example of a plug-in: v1, but whoever has the fewest tokens to compute is admitted first",
    .source = "shortest job first, by prompts, as output lengths are not known",
    .description = "Running requests are served as by v1. Of the waiting ones the one with the fewest tokens left to compute, "
                   "cached ones not counted, is admitted first; long prompts can wait for ever.",
    .pass = pass_shortest_first,
};

static const struct scheduler_ops *const schedulers[] = {&in_order, &shortest_first, NULL};

const struct pagesim_plugin pagesim_plugin = {PAGESIM_PLUGIN_HEADER, .schedulers = schedulers};
