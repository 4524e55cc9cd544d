/* Policies in tests: made by name behind the check wrapper (a walk at each call), and asked in one line.
 * A violation found by the wrapper fails the test. */
#ifndef PAGESIM_POLICY_CASE_H
#define PAGESIM_POLICY_CASE_H

#include "allocator/kv_policy.h"

/* options: "reserve=oracle placement=buddy" or NULL; options that the policy does not have are left out, so that
 * one text serves several policies. observer may be NULL. Fails the test when create does. */
struct kv_policy *policy_case_make(const char *name, const struct kv_geometry *geometry,
                                   const char *options, const struct kv_observer *observer);
/* The same without a wrapper, for tests that have their own. */
struct kv_policy *policy_case_bare(const char *name, const struct kv_geometry *geometry,
                                   const char *options, const struct kv_observer *observer);
/* What create answers for a geometry it must refuse; static storage. NULL when it did not refuse. */
const char *policy_case_refusal(const char *name, const struct kv_geometry *geometry, const char *options);

/* A request of n sequences that declares and has the same lengths. */
struct kv_request policy_case_request(uint64_t prompt_tokens, uint64_t output_tokens, uint32_t samples);

/* Asks for `filled` tokens where `computed` are there, all below filled keyed (keys may be NULL). */
enum kv_status policy_case_admit(struct kv_policy *policy, const struct kv_request *request,
                                 const kv_seq *seqs, uint64_t filled_tokens, const uint64_t *keys,
                                 struct kv_taken *taken);
enum kv_status policy_case_extend(struct kv_policy *policy, const struct kv_request *request,
                                  const kv_seq *seqs, uint32_t count, uint64_t computed_tokens,
                                  uint64_t filled_tokens, struct kv_taken *taken);

uint64_t policy_case_free_bytes(const struct kv_policy *policy); /* free and evictable */

#endif
