/* Schedulers that break the contract, each in one way: chosen by -DBROKEN=... For the tests of the checks. */
#include <stddef.h>

#include <pagesim/plugin.h>

enum {
    TWICE = 1, OVER_BUDGET, TOO_MANY, NO_TOKENS, AS_RUNNING, ENDED, NO_LOOK_UP, OLD_LOOK_UP, ADMITTED_OUT, BACK_AT_ONCE, SERVABLE, ENDLESS,
    NO_PLACE, A_PLACE, LOST_NEXT, CUT_PROMPT, NOBODY, OUTSIDE, LAZY, IN_VAIN,
};

static struct engine *last; /* for OUTSIDE */

static uint64_t budget(struct engine *e)
{
    struct scheduler_now now;
    scheduler_get_now(e, &now);
    return now.budget_tokens;
}

/* Tokens for a request in this step. */
static uint64_t share(struct engine *e, struct sim_request *r, uint64_t left)
{
    struct scheduler_request facts;
    scheduler_get_request(e, r, &facts);
    return left < budget(e) / facts.width ? left : budget(e) / facts.width;
}

static enum scheduler_answer extend(struct engine *e, struct sim_request *r)
{
    struct scheduler_request facts;
    scheduler_get_request(e, r, &facts);
    uint64_t tokens = share(e, r, facts.left_tokens);
    if (BROKEN == TOO_MANY) tokens = facts.left_tokens + 1;
    if (BROKEN == NO_TOKENS) tokens = 0;
    enum scheduler_answer answer = scheduler_extend(e, r, tokens);
    while (BROKEN == ENDLESS && answer == SCHEDULER_REFUSED) answer = scheduler_extend(e, r, tokens);
    if (BROKEN == TWICE) scheduler_extend(e, r, 1);
    return answer;
}

static void serve(struct engine *e)
{
    for (struct sim_request *r = scheduler_first_running(e); r && budget(e) > 0; r = scheduler_next_running(e, r)) {
        enum scheduler_answer answer = SCHEDULER_REFUSED;
        if (BROKEN != AS_RUNNING && BROKEN != BACK_AT_ONCE && BROKEN != IN_VAIN) answer = extend(e, r);
        while (answer == SCHEDULER_REFUSED) {
            struct sim_request *victim = scheduler_last_running(e);
            if (scheduler_preempt(e, victim) == SCHEDULER_ENDED) return;
            if (BROKEN == AS_RUNNING) scheduler_extend(e, victim, 1);
            if (BROKEN == BACK_AT_ONCE) scheduler_look_up(e, victim);
            if (victim == r) return;
            answer = extend(e, r);
        }
        if (answer != SCHEDULER_OK) return;
    }
}

static bool has_place(struct engine *e, struct sim_request *r)
{
    struct scheduler_limits limits;
    struct scheduler_now now;
    struct scheduler_request facts;
    scheduler_get_limits(e, &limits);
    scheduler_get_now(e, &now);
    scheduler_get_request(e, r, &facts);
    bool has = now.running_seqs + facts.samples <= limits.max_num_seqs;
    if (has == (BROKEN == A_PLACE)) scheduler_wait_for_slot(e, r);
    return has || BROKEN == NO_PLACE;
}

static void admit(struct engine *e)
{
    struct sim_request *r = scheduler_first_waiting(e), *next;
    for (; r && budget(e) > 0 && has_place(e, r); r = next) {
        next = scheduler_next_waiting(e, r);
        if (BROKEN == SERVABLE) scheduler_unservable(e, r, 1);
        uint64_t left = BROKEN == NO_LOOK_UP ? 1 : scheduler_look_up(e, r);
        uint64_t tokens = BROKEN == OVER_BUDGET ? left : share(e, r, left);
        if (BROKEN == CUT_PROMPT || BROKEN == IN_VAIN) tokens = 1;
        if (BROKEN == OLD_LOOK_UP && scheduler_first_running(e)) scheduler_extend(e, scheduler_first_running(e), 1);
        enum scheduler_answer answer = scheduler_admit(e, r, tokens);
        if (answer == SCHEDULER_ENDED && BROKEN == ENDED) scheduler_units(e, r, 1, false);
        if (answer == SCHEDULER_REFUSED) return;
        if (BROKEN == ADMITTED_OUT) scheduler_preempt(e, r);
        if (BROKEN == LOST_NEXT) next = scheduler_next_waiting(e, r);
    }
}

static void pass(struct engine *e, void *state)
{
    struct scheduler_now now;
    (void)state;
    last = e;
    if (BROKEN == LAZY) return;
    if (BROKEN == NOBODY) scheduler_admit(e, NULL, 1);
    if (BROKEN != OLD_LOOK_UP) serve(e);
    scheduler_get_now(e, &now);
    if (now.preempted == 0) admit(e);
}

static void *create(void)
{
    static int state;
    return &state;
}

static void destroy(void *state)
{
    (void)state;
    if (BROKEN == OUTSIDE) scheduler_first_running(last);
}

#ifndef TABLE
#define TABLE .destroy = destroy
#endif
static const struct scheduler_ops broken = {
    .name = "broken", .summary = "a fault", .source = "a test", .create = create, .pass = pass, TABLE,
};
static const struct scheduler_ops *const schedulers[] = {&broken, NULL};

#ifdef OLD_ABI
const struct pagesim_plugin pagesim_plugin = {.plugin_abi = PAGESIM_PLUGIN_ABI, .policy_abi = KV_ABI_VERSION, .eviction_abi = KV_EVICTION_ABI_VERSION,
                                              .scheduler_abi = 99, .schedulers = schedulers};
#else
const struct pagesim_plugin pagesim_plugin = {PAGESIM_PLUGIN_HEADER, .schedulers = schedulers};
#endif
