/* Random numbers: xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
 * ACM TOMS 2021), seeded through splitmix64 as its authors advise. Every purpose draws from a
 * stream of its own, so that a new draw for one does not shift the others. */
#ifndef PAGESIM_WL_RNG_H
#define PAGESIM_WL_RNG_H

#include <stdint.h>

enum wl_stream_id {
    WL_STREAM_ARRIVALS = 1,
    WL_STREAM_PROMPT,
    WL_STREAM_OUTPUT,
    WL_STREAM_CONTENT,  /* which prefix, which session */
    WL_STREAM_TURNS,    /* whether and how a conversation goes on */
    WL_STREAM_THINK,
    WL_STREAM_SAMPLES,
    WL_STREAM_MAX_TOKENS,
    WL_STREAM_ABORTS,
};

struct wl_rng {
    uint64_t state[4];
};

void wl_rng_init(struct wl_rng *rng, uint64_t seed, uint64_t stream);
uint64_t wl_rng_u64(struct wl_rng *rng);
/* In [0, 1), a multiple of 2^-53. */
double wl_rng_unit(struct wl_rng *rng);
/* In (0, 1]: safe to take the logarithm of. */
double wl_rng_unit_positive(struct wl_rng *rng);
/* 0 .. bound-1, each exactly as likely; bound > 0. */
uint64_t wl_rng_below(struct wl_rng *rng, uint64_t bound);
double wl_rng_normal(struct wl_rng *rng);      /* mean 0, variance 1 */
double wl_rng_exponential(struct wl_rng *rng); /* mean 1 */
double wl_rng_gamma(struct wl_rng *rng, double shape); /* scale 1; shape > 0 */

#endif
