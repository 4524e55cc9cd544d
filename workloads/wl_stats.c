#include "workloads/wl_stats.h"

#include <math.h>
#include <stdlib.h>

#include "workloads/wl_array.h"

const uint32_t wl_stats_block_tokens[WL_STATS_BLOCKS] = { 1, 8, 16, 32, 64, 128, 256, 512 };

/* 0 stands for the largest request of the trace. */
static const uint64_t reserves[WL_STATS_RESERVES] = { 0, 2048, 4096, 8192, 16384, 32768, 131072 };

/* --- one request ----------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t tokens, uint64_t unit)
{
    return (tokens + unit - 1) / unit * unit;
}

/* Smallest power of two at or above; 0 for 0. */
static uint64_t power_of_two(uint64_t tokens)
{
    uint64_t power = 1;
    while (power < tokens)
        power *= 2;
    return tokens == 0 ? 0 : power;
}

static double ratio(uint64_t allocated, uint64_t used)
{
    return allocated == 0 ? 0 : (double)(allocated - used) / (double)allocated;
}

/* Sum of round_up(k, unit) over k = 1 .. tokens: whole blocks first, then the part of one. */
static wl_u128 sum_rounded(uint64_t tokens, uint64_t unit)
{
    wl_u128 whole = tokens / unit;
    wl_u128 part = tokens % unit;
    return ((wl_u128)unit * unit * (whole * (whole + 1) / 2)) + part * (whole + 1) * unit;
}

/* --- sums over the trace --------------------------------------------------------------------- */

struct lengths {
    struct wl_ids input, output, total;
};

static void add_paged(struct wl_stats_paged *paged, uint32_t block, uint64_t input, uint64_t output)
{
    uint64_t total = input + output;
    uint64_t allocated = round_up(total, block);
    uint64_t written = input + (output > 0 ? output - 1 : 0);
    paged->at_completion.allocated += allocated;
    paged->at_completion.used += total;
    paged->at_completion.mean_request_ratio += ratio(allocated, total);
    paged->exact_fit_requests += allocated == total;
    paged->kv_written.allocated += round_up(written, block);
    paged->kv_written.used += written;
    paged->step_average.allocated += sum_rounded(total, block) - sum_rounded(input, block);
    paged->step_average.used += sum_rounded(total, 1) - sum_rounded(input, 1);
}

static void add_static(struct wl_stats_static *reserved, uint64_t input, uint64_t output)
{
    uint64_t total = input + output;
    if (total > reserved->reserve_tokens)
        return;
    reserved->accepted++;
    reserved->accepted_with_output += output > 0;
    reserved->at_completion.allocated += reserved->reserve_tokens;
    reserved->at_completion.used += total;
    reserved->at_completion.mean_request_ratio += ratio(reserved->reserve_tokens, total);
    reserved->step_average.allocated += (wl_u128)reserved->reserve_tokens * output;
    reserved->step_average.used += sum_rounded(total, 1) - sum_rounded(input, 1);
}

static void add_request(struct wl_stats *stats, uint64_t input, uint64_t output)
{
    uint64_t total = input + output;
    for (size_t i = 0; i < WL_STATS_BLOCKS; i++)
        add_paged(&stats->paged[i], wl_stats_block_tokens[i], input, output);
    for (size_t i = 0; i < WL_STATS_RESERVES; i++)
        add_static(&stats->reserved[i], input, output);
    uint64_t power = power_of_two(total);
    stats->pow2_total.allocated += power;
    stats->pow2_total.used += total;
    stats->pow2_total.mean_request_ratio += ratio(power, total);
    stats->pow2_output.allocated += input + power_of_two(output);
    stats->pow2_output.used += total;
}

/* Sums of ratios become means. */
static void finish_means(struct wl_stats *stats)
{
    double n = (double)stats->requests;
    for (size_t i = 0; i < WL_STATS_BLOCKS; i++)
        stats->paged[i].at_completion.mean_request_ratio /= n;
    for (size_t i = 0; i < WL_STATS_RESERVES; i++)
        if (stats->reserved[i].accepted > 0)
            stats->reserved[i].at_completion.mean_request_ratio /= (double)stats->reserved[i].accepted;
    stats->pow2_total.mean_request_ratio /= n;
}

/* --- quantiles ------------------------------------------------------------------------------- */

static int compare_u64(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* sorted[ceil(percent / 100 * n) - 1] */
static uint64_t nearest_rank(const struct wl_ids *sorted, uint64_t percent)
{
    uint64_t rank = (percent * sorted->count + 99) / 100;
    return sorted->items[rank > 0 ? rank - 1 : 0];
}

/* Sorts the lengths. The deviation is summed in ascending order, so that its last digit does not
 * depend on the order of the requests. */
static void find_quantiles(struct wl_ids *lengths, struct wl_quantiles *quantiles)
{
    size_t n = lengths->count;
    qsort(lengths->items, n, sizeof lengths->items[0], compare_u64);
    for (size_t i = 0; i < n; i++)
        quantiles->sum += lengths->items[i];
    quantiles->mean = (double)quantiles->sum / (double)n;
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        double deviation = (double)lengths->items[i] - quantiles->mean;
        squares += deviation * deviation;
    }
    quantiles->stdev = sqrt(squares / (double)n);
    quantiles->min = lengths->items[0];
    quantiles->p50 = nearest_rank(lengths, 50);
    quantiles->p90 = nearest_rank(lengths, 90);
    quantiles->p99 = nearest_rank(lengths, 99);
    quantiles->max = lengths->items[n - 1];
}

/* --- reading --------------------------------------------------------------------------------- */

/* Mean and squares of the gaps by Welford's update. */
struct gaps {
    uint64_t last_ns, count;
    double mean, squares;
};

static void add_gap(struct gaps *gaps, uint64_t arrival_ns, bool first)
{
    if (!first) {
        double gap = (double)(arrival_ns - gaps->last_ns);
        gaps->count++;
        double deviation = gap - gaps->mean;
        gaps->mean += deviation / (double)gaps->count;
        gaps->squares += deviation * (gap - gaps->mean);
    }
    gaps->last_ns = arrival_ns;
}

static int read_lengths(struct wl_source *source, struct wl_stats *stats, struct lengths *lengths,
                        struct err *err)
{
    struct wl_request request;
    struct gaps gaps = { 0 };
    int rc;
    while ((rc = wl_next(source, &request, err)) == 1) {
        uint64_t total = request.prompt_tokens + request.output_tokens;
        if (wl_ids_add(&lengths->input, request.prompt_tokens) != 0 ||
            wl_ids_add(&lengths->output, request.output_tokens) != 0 ||
            wl_ids_add(&lengths->total, total) != 0)
            return err_set(err, ERR_FAILED, "%s: out of memory", wl_name(source));
        add_gap(&gaps, request.arrival_ns, stats->requests == 0);
        stats->requests++;
    }
    bool has_spread = gaps.count > 0 && gaps.mean > 0;
    stats->interarrival_cv = has_spread ? sqrt(gaps.squares / (double)gaps.count) / gaps.mean : NAN;
    return rc;
}

static void compute(struct wl_stats *stats, struct lengths *lengths, uint64_t total_max)
{
    for (size_t i = 0; i < WL_STATS_RESERVES; i++) {
        stats->reserved[i].is_trace_max = reserves[i] == 0;
        stats->reserved[i].reserve_tokens = reserves[i] == 0 ? total_max : reserves[i];
    }
    for (size_t i = 0; i < stats->requests; i++)
        add_request(stats, lengths->input.items[i], lengths->output.items[i]);
    finish_means(stats);
    find_quantiles(&lengths->input, &stats->input);
    find_quantiles(&lengths->output, &stats->output);
    find_quantiles(&lengths->total, &stats->total);
}

int wl_stats_read(struct wl_source *source, struct wl_stats *stats, struct err *err)
{
    *stats = (struct wl_stats){ 0 };
    struct lengths lengths = { 0 };
    int rc = read_lengths(source, stats, &lengths, err);
    if (rc == 0) {
        uint64_t total_max = 0;
        for (size_t i = 0; i < lengths.total.count; i++)
            if (lengths.total.items[i] > total_max)
                total_max = lengths.total.items[i];
        compute(stats, &lengths, total_max);
    }
    free(lengths.input.items);
    free(lengths.output.items);
    free(lengths.total.items);
    return rc;
}
