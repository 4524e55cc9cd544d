/* The cache that never evicts: what any other can only fall short of. */
#include <math.h>

#include "sim/cache_sim.h"
#include "sim/numbers.h"

struct mean {
    double sum;
    uint64_t count;
};

static void mean_add(struct mean *mean, uint64_t part, uint64_t whole)
{
    if (whole == 0)
        return;
    mean->sum += (double)part / (double)whole;
    mean->count++;
}

static double mean_of(const struct mean *mean)
{
    return mean->count > 0 ? mean->sum / (double)mean->count : (double)NAN;
}

void cache_run_infinite(const struct cache_trace *trace, struct cache_infinite *result,
                        int64_t *hits)
{
    struct mean blocks = {0}, tokens = {0}, full_blocks = {0};
    struct hit_digest digest;
    uint32_t seen = 0; /* numbers are dense by first appearance: those below it were seen before */

    *result = (struct cache_infinite){.requests = trace->request_count,
                                      .unique_blocks = trace->unique_blocks};
    hit_digest_begin(&digest);
    for (uint64_t i = 0; i < trace->request_count; i++) {
        struct cache_view view = cache_view_of(trace, i);
        uint64_t run = 0, hit_tokens, hit_full;

        while (run < view.n && view.blocks[run] < seen)
            run++;
        for (uint64_t b = run; b < view.n; b++)
            seen = view.blocks[b] >= seen ? view.blocks[b] + 1 : seen;
        hit_tokens = min_u64(run * trace->block_tokens, view.prompt_tokens);
        hit_full = min_u64(run, view.full);
        result->lookup_blocks += view.n;
        result->hit_blocks += run;
        result->lookup_full_blocks += view.full;
        result->hit_full_blocks += hit_full;
        result->input_tokens += view.prompt_tokens;
        result->hit_tokens += hit_tokens;
        result->hit_tokens_full_blocks += hit_full * trace->block_tokens;
        result->fully_hit_requests += view.n > 0 && run == view.n;
        result->zero_hit_requests += run == 0;
        mean_add(&blocks, run, view.n);
        mean_add(&tokens, hit_tokens, view.prompt_tokens);
        mean_add(&full_blocks, hit_full, view.full);
        hit_digest_add(&digest, (int64_t)run);
        if (hits != NULL)
            hits[i] = (int64_t)run;
    }
    result->mean_request_hit_ratio_blocks = mean_of(&blocks);
    result->mean_request_hit_ratio_tokens = mean_of(&tokens);
    result->mean_request_hit_ratio_full_blocks = mean_of(&full_blocks);
    hit_digest_hex(&digest, result->per_request_hits_sha256);
}
