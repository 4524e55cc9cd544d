/* Random small runs: every policy, reservation, placement, scheduler and step-time model, requests with and without content,
 * samples, aborts. One seed gives one case, on every machine. */
#ifndef TESTS_MODEL_ENGINE_RANDOM_H
#define TESTS_MODEL_ENGINE_RANDOM_H

#include "tests/engine_case.h"

/* Runs of each variant in a test; fewer under sanitizers. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ENGINE_RANDOM_RUNS 12
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ENGINE_RANDOM_RUNS 12
#endif
#endif
#ifndef ENGINE_RANDOM_RUNS
#define ENGINE_RANDOM_RUNS 120
#endif

extern const struct engine_variant {
    const char *policy, *options;
} engine_variants[];
enum { ENGINE_VARIANTS = 26 };

#define ENGINE_RANDOM_SPANS 4
struct engine_random {
    struct engine_case c;
    struct wl_span spans[ENGINE_CASE_REQUESTS][ENGINE_RANDOM_SPANS];
};

/* A host tier of random size, order and link, where the policy caches and there is no window. */
void engine_random_host(uint64_t *state, struct engine_config *config);

/* Random cases have this scheduler from now on; NULL: any. */
void engine_random_force(const struct scheduler *scheduler);

/* At most 14 requests, a pool of 20 to 600 slots. */
void engine_random_case(uint64_t seed, const struct engine_variant *variant, struct engine_random *random);

uint64_t engine_random_between(uint64_t *state, uint64_t low, uint64_t high);
bool engine_random_chance(uint64_t *state, unsigned percent);
/* Streams of tokens that requests share up to a point, then a tail that is nobody else's. */
void engine_random_content(uint64_t *state, struct wl_request *request, struct wl_span *spans);

#endif
