/* Mean and nearest-rank quantiles of non-negative integers.
 *
 * Up to QUANTILES_EXACT values are kept and the answers are exact. Beyond that they are counted in
 * log-linear buckets of relative width below 1/1024, so a quantile is within 0.1 % of the exact one;
 * the mean stays exact. Memory is bounded either way. */
#ifndef PAGESIM_QUANTILES_H
#define PAGESIM_QUANTILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUANTILES_EXACT 1000000u

struct quantiles {
    uint64_t count;
    unsigned __int128 sum;
    uint64_t *values;  /* exact mode: count values; NULL in histogram mode */
    size_t capacity;
    bool sorted;
    uint64_t *buckets; /* histogram mode, else NULL */
};

void quantiles_init(struct quantiles *q);
void quantiles_release(struct quantiles *q);
/* -1 when memory is out. */
int quantiles_add(struct quantiles *q, uint64_t value);
bool quantiles_exact(const struct quantiles *q);
/* Smallest value v such that at least percent % of the values are <= v; 1..100; count > 0. */
uint64_t quantiles_at(struct quantiles *q, unsigned percent);
double quantiles_mean(const struct quantiles *q); /* count > 0 */

#endif
