/* Random small cases, and the smallest case that still fails.
 *
 *     struct v1_case c = v1_case_random(seed);
 *     if (fails(&c, NULL)) {
 *         struct v1_case small = v1_case_shrink(&c, fails, NULL);
 *         v1_case_print(&small, stderr);
 *     }
 *
 * One seed gives one case, on every machine. */
#ifndef TESTS_MODEL_CASE_RANDOM_H
#define TESTS_MODEL_CASE_RANDOM_H

#include "tests/model/v1_case.h"

/* A valid case: 1 to 12 requests, blocks of 1 to 8 tokens, at most 23 usable blocks, every option
 * at some time on, a few hundred steps at most. The watermark is a multiple of 1/64, so that its
 * product with num_blocks is exact in any arithmetic. The caller releases it. */
struct v1_case v1_case_random(uint64_t seed);

/* Whether the case shows the failure. Must answer the same for the same case. */
typedef bool v1_case_fails(const struct v1_case *c, void *context);

/* A valid case that fails and no longer does when any one request is removed or any one number, or
 * two of them at once, are made a step smaller. Calls fails() some hundreds to thousands of times.
 * c must fail; it is not changed. The caller releases the result. */
struct v1_case v1_case_shrink(const struct v1_case *c, v1_case_fails *fails, void *context);

#endif
