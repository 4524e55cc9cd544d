/* Arithmetic on counts that every part needs. */
#ifndef PAGESIM_NUMBERS_H
#define PAGESIM_NUMBERS_H

#include <stdint.h>

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t add_clamped(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* a - b, or 0 when b is larger. */
static inline uint64_t above(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

#endif
