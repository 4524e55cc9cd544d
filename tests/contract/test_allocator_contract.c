/* What every policy promises, asked of every registered policy in turn. The cases are made at run time from the
 * registry, so a new policy is tested by being there. Each policy is behind the check wrapper with a walk at
 * each call. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/eviction.h"
#include "allocator/kv_policy.h"
#include "tests/plugin_env.h"
#include "tests/policy_case.h"

enum { SEQS = 12, MAX_SEQ_TOKENS = 640, SLOTS = 4096 };

struct variant {
    const char *policy;
    const char *options;
};

/* What is not in the registry's defaults. A policy leaves out options that it does not have. Every other eviction
 * order joins the end. */
enum { TEXTS_FIXED = 6, TEXTS_MAX = TEXTS_FIXED + 32 };
static const char *option_texts[TEXTS_MAX] = {
    NULL,
    "reserve=oracle placement=best-fit",
    "reserve=oracle placement=worst-fit",
    "reserve=oracle placement=buddy",
    "reserve=pow2 placement=buddy",
    "reserve=declared",
};

static struct kv_geometry make_geometry(void)
{
    return (struct kv_geometry){
        .pool_bytes = (uint64_t)SLOTS * 1024 + 700, /* a remainder that no unit can use */
        .bytes_per_token = 1024,
        .block_tokens = 16,
        .max_seqs = SEQS,
        .max_seq_tokens = MAX_SEQ_TOKENS,
    };
}

static struct kv_policy *make(const struct variant *v)
{
    struct kv_geometry g = make_geometry();
    return policy_case_make(v->policy, &g, v->options, NULL);
}

static struct kv_facts facts_of(const struct kv_policy *p)
{
    struct kv_facts f;
    kv_get_facts(p, &f);
    return f;
}

static void check_facts_eq(const struct kv_facts *a, const struct kv_facts *b)
{
    check_u64_eq(a->held_bytes, b->held_bytes);
    check_u64_eq(a->rounding_bytes, b->rounding_bytes);
    check_u64_eq(a->cached_bytes, b->cached_bytes);
    check_u64_eq(a->free_bytes, b->free_bytes);
    check_u64_eq(a->overhead_bytes, b->overhead_bytes);
    check_u64_eq(a->referenced_bytes, b->referenced_bytes);
}

static uint64_t obtainable(struct kv_policy *p, uint32_t pieces)
{
    struct kv_demand demand = { .kind = KV_ADMISSION, .something_runs = true, .pieces = pieces };
    return kv_obtainable(p, &demand);
}

/* A request that asks for exactly `slots` of each sequence under every reservation that sees lengths. */
static struct kv_request request_of(uint64_t slots, uint32_t samples)
{
    struct kv_request r = policy_case_request(slots, 1, samples);
    return r;
}

/* --- cases --------------------------------------------------------------------------------- */

static void identity(const struct variant *v)
{
    const struct kv_policy_ops *ops = kv_registry_find(v->policy);
    check_u64_eq(ops->abi_version, KV_ABI_VERSION);
    assert_non_null(ops->summary);
    assert_non_null(ops->source);
    assert_int_equal((ops->flags & KV_CACHES) != 0, ops->lookup != NULL);
    assert_int_equal((ops->flags & KV_CACHES) != 0, ops->cache_facts != NULL);
    assert_int_equal((ops->flags & KV_CONTIGUOUS) != 0, ops->largest_run != NULL);
    struct kv_policy *p = make(v);
    assert_true(p->usable_units <= p->total_units);
    assert_true(p->total_units * p->unit_bytes <= make_geometry().pool_bytes);
    if ((ops->flags & KV_CLAIRVOYANT) != 0)
        assert_true(p->clairvoyant);
    kv_destroy(p);
}

static void empty_pool(const struct variant *v)
{
    struct kv_policy *p = make(v);
    struct kv_facts f = facts_of(p);
    check_u64_eq(f.held_bytes + f.cached_bytes + f.referenced_bytes, 0);
    assert_true(p->ops->largest_piece(p) <= p->usable_units);
    check_u64_eq(obtainable(p, 1), p->ops->largest_piece(p));
    for (uint32_t k = 0; k < SEQS; k++) {
        struct kv_seq_facts s;
        kv_get_seq_facts(p, (kv_seq){ k }, &s);
        check_u64_eq(s.end_token, 0);
        kv_release(p, &(kv_seq){ k }, 1); /* nothing held: fine */
    }
    kv_destroy(p);
}

static void release_gives_all_back(const struct variant *v)
{
    struct kv_policy *p = make(v);
    struct kv_facts before = facts_of(p);
    struct kv_request r = policy_case_request(100, 60, 1);
    for (uint32_t k = 0; k < 4; k++)
        assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ k }, 100, NULL, NULL), KV_OK);
    for (uint64_t tokens = 101; tokens <= r.final_tokens; tokens++)
        for (uint32_t k = 0; k < 4; k++)
            assert_int_equal(policy_case_extend(p, &r, &(kv_seq){ k }, 1, tokens - 1, tokens, NULL), KV_OK);
    assert_true(facts_of(p).held_bytes >= 4 * r.final_tokens * 1024);
    static const uint32_t order[] = { 2, 0, 3, 1 };
    for (size_t i = 0; i < 4; i++)
        kv_release(p, &(kv_seq){ order[i] }, 1);
    struct kv_facts after = facts_of(p);
    check_facts_eq(&after, &before);
    kv_destroy(p);
}

/* Fills the pool until an admission is refused; the wrapper compares facts before and after. */
static void refused_admit_changes_nothing(const struct variant *v)
{
    struct kv_policy *p = make(v);
    struct kv_request r = policy_case_request(500, 100, 1);
    struct kv_taken taken;
    uint32_t k = 0;
    enum kv_status status = KV_OK;
    while (status == KV_OK && k < SEQS)
        status = policy_case_admit(p, &r, &(kv_seq){ k++ }, 500, NULL, &taken);
    assert_int_equal(status, KV_NO_SPACE);
    uint64_t a = obtainable(p, 1);
    assert_true(taken.ask_units > a);
    assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ k - 1 }, 500, NULL, NULL), KV_NO_SPACE);
    check_u64_eq(obtainable(p, 1), a);
    /* What one gave back serves the next, as far as the policy says so; with all given back it must. */
    kv_release(p, &(kv_seq){ 0 }, 1);
    status = obtainable(p, 1) >= taken.ask_units ? KV_OK : KV_NO_SPACE;
    assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ k - 1 }, 500, NULL, NULL), status);
    for (uint32_t i = 0; i < k; i++)
        kv_release(p, &(kv_seq){ i }, 1);
    assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ 0 }, 500, NULL, NULL), KV_OK);
    kv_destroy(p);
}

static void refused_group_changes_nothing(const struct variant *v)
{
    struct kv_policy *p = make(v);
    if ((p->ops->flags & KV_RESERVES) == 0) { /* sharing policies take the prompt once */
        kv_destroy(p);
        return;
    }
    struct kv_request r = policy_case_request(500, 100, 1), group = policy_case_request(500, 100, 4);
    kv_seq seqs[] = { { 4 }, { 5 }, { 6 }, { 7 } };
    for (uint32_t k = 0; k < 4; k++)
        assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ k }, 500, NULL, NULL), KV_OK);
    struct kv_facts before = facts_of(p);
    assert_int_equal(policy_case_admit(p, &group, seqs, 500, NULL, NULL), KV_NO_SPACE);
    struct kv_facts after = facts_of(p);
    check_facts_eq(&after, &before);
    kv_destroy(p);
}

static void never_fits(const struct variant *v)
{
    struct kv_geometry g = make_geometry();
    g.max_seq_tokens = 2 * SLOTS;
    struct kv_policy *p = policy_case_make(v->policy, &g, v->options, NULL);
    struct kv_request r = request_of(SLOTS + 1, 1);
    struct kv_taken taken;
    assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ 0 }, SLOTS + 1, NULL, &taken), KV_NEVER_FITS);
    assert_true(taken.ask_units > p->ops->largest_piece(p));
    kv_destroy(p);
}

static void fork_then_release(const struct variant *v)
{
    static const uint32_t orders[][4] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 0, 3, 2 } };
    for (size_t o = 0; o < 3; o++) {
        struct kv_policy *p = make(v);
        struct kv_facts before = facts_of(p);
        struct kv_request r = policy_case_request(100, 30, 4);
        kv_seq seqs[] = { { 0 }, { 1 }, { 2 }, { 3 } };
        assert_int_equal(policy_case_admit(p, &r, seqs, 100, NULL, NULL), KV_OK);
        kv_fork(p, seqs[0], seqs + 1, 3, 100);
        for (uint64_t tokens = 101; tokens <= 120; tokens++)
            assert_int_equal(policy_case_extend(p, &r, seqs, 4, tokens - 1, tokens, NULL), KV_OK);
        struct kv_facts f = facts_of(p);
        assert_true(f.referenced_bytes >= 4 * 120 * 1024);
        assert_true(f.held_bytes <= f.referenced_bytes);
        for (size_t i = 0; i < 4; i++)
            kv_release(p, &(kv_seq){ orders[o][i] }, 1);
        struct kv_facts after = facts_of(p);
        check_facts_eq(&after, &before);
        kv_destroy(p);
    }
}

static void units_for_is_what_is_held(const struct variant *v)
{
    for (uint32_t samples = 1; samples <= 3; samples++) {
        struct kv_policy *p = make(v);
        struct kv_request r = policy_case_request(100, 30, samples);
        kv_seq seqs[] = { { 0 }, { 1 }, { 2 } };
        assert_int_equal(policy_case_admit(p, &r, seqs, 100, NULL, NULL), KV_OK);
        check_u64_eq(kv_units_for(p, &r, 100, false) * p->unit_bytes, facts_of(p).held_bytes);
        kv_fork(p, seqs[0], seqs + 1, samples - 1, 100);
        for (uint64_t tokens = 101; tokens <= 120; tokens++)
            assert_int_equal(policy_case_extend(p, &r, seqs, samples, tokens - 1, tokens, NULL), KV_OK);
        check_u64_eq(kv_units_for(p, &r, 120, true) * p->unit_bytes, facts_of(p).held_bytes);
        kv_destroy(p);
    }
}

/* --- obtainable is exact ------------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

/* A pool with holes: some sequences of random lengths, some of them released again. Sequences 0 .. 8. */
static void make_holes(struct kv_policy *p)
{
    struct kv_taken taken;
    for (uint32_t k = 0; k < 9; k++) {
        uint64_t slots = 1 + draw(MAX_SEQ_TOKENS);
        struct kv_request r = request_of(slots, 1);
        (void)policy_case_admit(p, &r, &(kv_seq){ k }, slots, NULL, &taken);
    }
    for (uint32_t k = 0; k < 9; k++)
        if (draw(2) == 0)
            kv_release(p, &(kv_seq){ k }, 1);
}

/* Whether `samples` sequences of `slots` could be admitted now; the pool is left as it was. */
static bool could_admit(struct kv_policy *p, uint64_t slots, uint32_t samples)
{
    struct kv_request r = request_of(slots, samples);
    kv_seq seqs[] = { { 9 }, { 10 }, { 11 } };
    if (policy_case_admit(p, &r, seqs, slots, NULL, NULL) != KV_OK)
        return false;
    kv_release(p, seqs, samples);
    return true;
}

/* Tries every length. The largest that succeeds, in the policy's units, must be obtainable()'s answer. */
static void check_obtainable(struct kv_policy *p, uint32_t samples, uint64_t max_tokens)
{
    uint64_t answer = obtainable(p, samples), largest = 0;
    uint32_t unit_tokens = p->block_tokens > 0 ? p->block_tokens : 1;
    uint32_t pieces = (p->ops->flags & KV_RESERVES) != 0 ? samples : 1;
    for (uint64_t tokens = max_tokens; tokens > 0 && largest == 0; tokens--)
        if (could_admit(p, tokens, samples))
            largest = pieces * kv_blocks_for_tokens(tokens, unit_tokens);
    uint64_t limit = pieces * kv_blocks_for_tokens(max_tokens, unit_tokens);
    if (largest == limit) /* nothing longer may be tried */
        assert_true(answer >= limit);
    else if (unit_tokens == 1)
        check_u64_eq(answer, largest);
    else /* blocks fit anywhere: all that is free, of which equal pieces may leave some */
        assert_true(answer >= largest && answer - largest < pieces);
}

static void obtainable_is_exact(const struct variant *v)
{
    struct kv_geometry g = make_geometry();
    g.max_seq_tokens = MAX_SEQ_TOKENS;
    g.pool_bytes = 1600 * 1024;
    /* --reserve max and declared ask for more than the request's length; obtainable speaks of the ask. */
    if (v->options == NULL || strstr(v->options, "oracle") == NULL)
        return;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        random_state = seed;
        struct kv_policy *p = policy_case_make(v->policy, &g, v->options, NULL);
        make_holes(p);
        for (uint32_t samples = 1; samples <= 3; samples++)
            check_obtainable(p, samples, MAX_SEQ_TOKENS);
        kv_destroy(p);
    }
}

/* Small regions: for jemalloc slabs, where a short region can be refused and a longer one granted. */
static void obtainable_is_exact_for_tiny_slots(const struct variant *v)
{
    struct kv_geometry g = make_geometry();
    g.bytes_per_token = 48;
    g.pool_bytes = 30 * 4096;
    if (v->options == NULL || strstr(v->options, "oracle") == NULL)
        return;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        random_state = seed;
        struct kv_policy *p = policy_case_make(v->policy, &g, v->options, NULL);
        make_holes(p);
        for (uint32_t samples = 1; samples <= 3; samples++)
            check_obtainable(p, samples, MAX_SEQ_TOKENS);
        kv_destroy(p);
    }
}

/* --- the grid ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    void (*run)(const struct variant *v);
} contract[] = {
    { "identity", identity },
    { "empty pool", empty_pool },
    { "release gives all back", release_gives_all_back },
    { "refused admit changes nothing", refused_admit_changes_nothing },
    { "refused group changes nothing", refused_group_changes_nothing },
    { "never fits", never_fits },
    { "fork then release in any order", fork_then_release },
    { "units_for is what is held", units_for_is_what_is_held },
    { "obtainable is exact", obtainable_is_exact },
    { "obtainable is exact for tiny slots", obtainable_is_exact_for_tiny_slots },
};

enum { CASES = sizeof contract / sizeof contract[0], TESTS_MAX = 16 * CASES * TEXTS_MAX };

struct test_state {
    struct variant variant;
    size_t contract;
    char name[120];
};

static void run_one(void **state)
{
    const struct test_state *t = *state;
    contract[t->contract].run(&t->variant);
}

/* Whether the policy has an option that the text sets: otherwise the variant repeats the defaults. */
static bool takes_options(const struct kv_policy_ops *ops, const char *text)
{
    bool has = text == NULL, lacks = false;
    for (size_t i = 0; text != NULL && ops->options != NULL && ops->options[i] != NULL; i++) {
        has = has || strstr(text, ops->options[i]->name) == text;
        lacks = lacks || strcmp(ops->options[i]->name, "placement") == 0;
    }
    return has && (text == NULL || lacks || strstr(text, "placement") == NULL ||
                   strstr(text, "best-fit") != NULL);
}

/* How many texts there are with `evict=NAME` for every order that can be chosen. */
static size_t add_orders(void)
{
    static char texts[32][40];
    size_t count = TEXTS_FIXED;
    for (size_t i = 0; i < kv_eviction_count() && count < TEXTS_MAX; i++) {
        const struct kv_eviction_ops *order = kv_eviction_at(i);
        if (strcmp(order->name, "lru") == 0)
            continue;
        snprintf(texts[count - TEXTS_FIXED], sizeof texts[0], "evict=%s", order->name);
        option_texts[count] = texts[count - TEXTS_FIXED];
        count++;
    }
    return count;
}

int main(void)
{
    plugin_env_add();
    static struct test_state states[TESTS_MAX];
    static struct CMUnitTest tests[TESTS_MAX];
    size_t count = 0, texts = add_orders();
    for (size_t i = 0; i < kv_registry_count(); i++) {
        const struct kv_policy_ops *ops = kv_registry_at(i);
        for (size_t o = 0; o < texts; o++) {
            if (!takes_options(ops, option_texts[o]))
                continue;
            for (size_t c = 0; c < CASES; c++, count++) {
                assert_true(count < TESTS_MAX);
                states[count].variant = (struct variant){ ops->name, option_texts[o] };
                states[count].contract = c;
                snprintf(states[count].name, sizeof states[count].name, "%s%s%s: %s", ops->name,
                         option_texts[o] != NULL ? " " : "", option_texts[o] != NULL ? option_texts[o] : "",
                         contract[c].name);
                tests[count] = (struct CMUnitTest){ .name = states[count].name, .test_func = run_one,
                                                    .initial_state = &states[count] };
            }
        }
    }
    return _cmocka_run_group_tests("contract", tests, count, NULL, NULL) != 0;
}
