#include "workloads/wl_rng.h"

#include <math.h>

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void wl_rng_init(struct wl_rng *rng, uint64_t seed, uint64_t stream)
{
    uint64_t state = seed;
    state = splitmix(&state) ^ stream * 0xd1342543de82ef95u;
    for (int i = 0; i < 4; i++)
        rng->state[i] = splitmix(&state);
}

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

uint64_t wl_rng_u64(struct wl_rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

double wl_rng_unit(struct wl_rng *rng)
{
    return (double)(wl_rng_u64(rng) >> 11) * 0x1p-53;
}

double wl_rng_unit_positive(struct wl_rng *rng)
{
    return (double)((wl_rng_u64(rng) >> 11) + 1) * 0x1p-53;
}

uint64_t wl_rng_below(struct wl_rng *rng, uint64_t bound)
{
    /* The high half of a product is uniform once the low halves that would come up once too often
     * are thrown away. */
    uint64_t reject_below = (0 - bound) % bound;
    for (;;) {
        unsigned __int128 product = (unsigned __int128)wl_rng_u64(rng) * bound;
        if ((uint64_t)product >= reject_below)
            return (uint64_t)(product >> 64);
    }
}

double wl_rng_normal(struct wl_rng *rng)
{
    /* Polar method; the second deviate is dropped so that a draw has no hidden state. */
    for (;;) {
        double x = 2 * wl_rng_unit(rng) - 1;
        double y = 2 * wl_rng_unit(rng) - 1;
        double r2 = x * x + y * y;
        if (r2 < 1 && r2 > 0)
            return x * sqrt(-2 * log(r2) / r2);
    }
}

double wl_rng_exponential(struct wl_rng *rng)
{
    return -log(wl_rng_unit_positive(rng));
}

/* Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 2000; below
 * shape 1 by their boost with U^(1/shape). */
double wl_rng_gamma(struct wl_rng *rng, double shape)
{
    if (shape < 1) {
        double boost = exp(log(wl_rng_unit_positive(rng)) / shape);
        return wl_rng_gamma(rng, shape + 1) * boost;
    }
    double d = shape - 1.0 / 3;
    double c = 1 / sqrt(9 * d);
    for (;;) {
        double x = wl_rng_normal(rng);
        double v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(wl_rng_unit_positive(rng)) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v;
    }
}
