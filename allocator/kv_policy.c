#include "allocator/kv_policy.h"

#include <assert.h>

/* The thin calls that the rest of the program uses. The assertions are what every caller and every
 * policy promises; they are cheap enough to stay in release builds. */

static void assert_ask(const struct kv_ask *ask)
{
    assert(ask->request != NULL);
    assert(ask->seqs != NULL);
    assert(ask->seq_count > 0);
    assert(ask->computed_tokens <= ask->filled_tokens);
    assert(ask->filled_tokens <= ask->slots_tokens);
    assert(ask->keyed_tokens <= ask->filled_tokens);
}

void kv_destroy(struct kv_policy *policy)
{
    if (policy != NULL)
        policy->ops->destroy(policy);
}

void kv_lookup(struct kv_policy *policy, const uint64_t *keys, uint64_t tokens, struct kv_hit *hit)
{
    *hit = (struct kv_hit){ 0 };
    if (policy->ops->lookup == NULL || tokens == 0)
        return;
    policy->ops->lookup(policy, keys, tokens, hit);
    assert(hit->first_block <= hit->blocks);
    assert(hit->free_blocks <= hit->blocks);
    assert(hit->tokens < tokens);
}

enum kv_status kv_admit(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken)
{
    assert_ask(ask);
    assert(ask->seq_count == ask->request->samples);
    *taken = (struct kv_taken){ 0 };
    enum kv_status status = policy->ops->admit(policy, ask, taken);
    assert(taken->need_units <= taken->ask_units);
    return status;
}

enum kv_status kv_extend(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken)
{
    assert_ask(ask);
    *taken = (struct kv_taken){ 0 };
    enum kv_status status = policy->ops->extend(policy, ask, taken);
    assert(status != KV_NEVER_FITS);
    assert(taken->need_units <= taken->ask_units);
    return status;
}

void kv_fork(struct kv_policy *policy, kv_seq parent, const kv_seq *children, uint32_t count,
             uint64_t filled_tokens)
{
    if (count > 0)
        policy->ops->fork(policy, parent, children, count, filled_tokens);
}

void kv_trim(struct kv_policy *policy, kv_seq seq, uint64_t first_token)
{
    if (policy->ops->trim != NULL && first_token > 0)
        policy->ops->trim(policy, seq, first_token);
}

void kv_release(struct kv_policy *policy, const kv_seq *seqs, uint32_t count)
{
    if (count > 0)
        policy->ops->release(policy, seqs, count);
}

void kv_get_facts(const struct kv_policy *policy, struct kv_facts *facts)
{
    policy->ops->facts(policy, facts);
    assert(facts->rounding_bytes <= facts->held_bytes);
}

void kv_get_seq_facts(const struct kv_policy *policy, kv_seq seq, struct kv_seq_facts *facts)
{
    policy->ops->seq_facts(policy, seq, facts);
    assert(facts->first_token <= facts->end_token);
}

uint64_t kv_obtainable(struct kv_policy *policy, const struct kv_demand *demand)
{
    assert(demand->pieces > 0);
    return policy->ops->obtainable(policy, demand);
}

uint64_t kv_largest_run(struct kv_policy *policy, uint32_t pieces)
{
    assert(pieces > 0);
    if (policy->ops->largest_run != NULL)
        return policy->ops->largest_run(policy, pieces);
    struct kv_facts facts;
    kv_get_facts(policy, &facts);
    return (facts.free_bytes + facts.cached_bytes) / policy->unit_bytes;
}

uint64_t kv_units_for(const struct kv_policy *policy, const struct kv_request *request,
                      uint64_t tokens, bool forked)
{
    return policy->ops->units_for(policy, request, tokens, forked);
}

const char *kv_check_walk(const struct kv_policy *policy)
{
    return policy->ops->check != NULL ? policy->ops->check(policy) : NULL;
}

void kv_get_cache_facts(const struct kv_policy *policy, struct kv_cache_facts *facts)
{
    *facts = (struct kv_cache_facts){ 0 };
    if (policy->ops->cache_facts != NULL)
        policy->ops->cache_facts(policy, facts);
}
