#include "sim/quantiles.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Values below 2^SUB_BITS have a bucket each; above, every power of two has 2^(SUB_BITS-1). */
#define SUB_BITS 11u
#define HALF ((size_t)1 << (SUB_BITS - 1))
#define BUCKETS (((size_t)64 - SUB_BITS + 2) * HALF)

static size_t bucket_of(uint64_t value)
{
    if (value < ((uint64_t)1 << SUB_BITS)) return (size_t)value;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - (SUB_BITS - 1);
    return (size_t)shift * HALF + (size_t)(value >> shift);
}

/* The middle of the bucket, so that the error is half its width at most. */
static uint64_t bucket_value(size_t bucket)
{
    if (bucket < 2 * HALF) return bucket;
    size_t shift = bucket / HALF - 1;
    uint64_t low = (uint64_t)(bucket - shift * HALF) << shift;
    return low + (((uint64_t)1 << shift) >> 1);
}

void quantiles_init(struct quantiles *q)
{
    memset(q, 0, sizeof *q);
}

void quantiles_release(struct quantiles *q)
{
    free(q->values);
    free(q->buckets);
    quantiles_init(q);
}

static int to_histogram(struct quantiles *q)
{
    q->buckets = calloc(BUCKETS, sizeof *q->buckets);
    if (!q->buckets) return -1;
    for (uint64_t i = 0; i < q->count; i++) q->buckets[bucket_of(q->values[i])]++;
    free(q->values);
    q->values = NULL;
    q->capacity = 0;
    return 0;
}

static int grow(struct quantiles *q)
{
    size_t capacity = q->capacity ? q->capacity * 2 : 256;
    if (capacity > QUANTILES_EXACT) capacity = QUANTILES_EXACT;
    uint64_t *values = realloc(q->values, capacity * sizeof *values);
    if (!values) return -1;
    q->values = values;
    q->capacity = capacity;
    return 0;
}

int quantiles_add(struct quantiles *q, uint64_t value)
{
    if (!q->buckets && q->count == QUANTILES_EXACT && to_histogram(q)) return -1;
    if (q->buckets) {
        q->buckets[bucket_of(value)]++;
    } else {
        if (q->count == q->capacity && grow(q)) return -1;
        q->values[q->count] = value;
        q->sorted = false;
    }
    q->count++;
    q->sum += value;
    return 0;
}

bool quantiles_exact(const struct quantiles *q)
{
    return q->buckets == NULL;
}

/* By bytes, the least significant first; bytes that are the same in all values, of which latencies have several, cost
 * nothing. False, nothing changed, when there is no memory for a second array. */
static bool sort_by_bytes(uint64_t *values, size_t count)
{
    size_t(*counts)[256] = calloc(8, sizeof *counts);
    uint64_t *other = malloc(count * sizeof *other), *from = values, *to = other;
    bool room = counts && other;
    for (size_t i = 0; room && i < count; i++) {
        for (unsigned b = 0; b < 8; b++) counts[b][values[i] >> 8 * b & 255]++;
    }
    for (unsigned b = 0; room && b < 8; b++) {
        size_t *at = counts[b], sum = 0;
        if (at[values[0] >> 8 * b & 255] == count) continue;
        for (unsigned v = 0; v < 256; v++) {
            size_t n = at[v];
            at[v] = sum;
            sum += n;
        }
        for (size_t i = 0; i < count; i++) to[at[from[i] >> 8 * b & 255]++] = from[i];
        uint64_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (room && from != values) memcpy(values, from, count * sizeof *values);
    free(other);
    free(counts);
    return room;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort(struct quantiles *q)
{
    size_t count = (size_t)q->count;
    if (q->sorted) return;
    if (!sort_by_bytes(q->values, count)) qsort(q->values, count, sizeof *q->values, compare_u64);
    q->sorted = true;
}

uint64_t quantiles_at(struct quantiles *q, unsigned percent)
{
    assert(q->count > 0 && percent > 0 && percent <= 100);
    uint64_t rank = (uint64_t)(((unsigned __int128)q->count * percent + 99) / 100);
    if (!q->buckets) {
        sort(q);
        return q->values[rank - 1];
    }
    uint64_t seen = 0;
    size_t bucket = 0;
    for (; bucket < BUCKETS; bucket++) {
        seen += q->buckets[bucket];
        if (seen >= rank) break;
    }
    return bucket_value(bucket);
}

double quantiles_mean(const struct quantiles *q)
{
    assert(q->count > 0);
    return (double)q->sum / (double)q->count;
}
