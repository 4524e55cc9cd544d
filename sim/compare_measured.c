/* Which metric of a server or of a benchmark client is which figure of a result. Names: vLLM's /metrics (docs/usage/metrics,
 * v0.5 to v0.32), SGLang's /metrics, and the JSON of `vllm bench serve --save-result`. */
#include "sim/compare_measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum how {
    SUM,       /* over all label sets: engines, ranks */
    MEAN,      /* of a share, likewise */
    SERVED,    /* sum, less what clients aborted */
    HISTOGRAM, /* NAME_sum, NAME_count, NAME_bucket */
    LABELS,    /* an info metric, whose labels are the values */
};

#define MOMENT "measured: the moment of the scrape; simulated: the mean over time"

static const struct counterpart {
    const char *name, *key;
    double factor; /* from the metric's unit to the key's */
    enum how how;
    const char *note;
} counterparts[] = {
    {"vllm:kv_cache_usage_perc", "kv_usage", 1, MEAN, MOMENT},
    {"vllm:gpu_cache_usage_perc", "kv_usage", 1, MEAN, MOMENT},
    {"sglang:token_usage", "kv_usage", 1, MEAN, MOMENT},
    {"vllm:num_requests_running", "running.mean", 1, SUM, MOMENT},
    {"sglang:num_running_reqs", "running.mean", 1, SUM, MOMENT},
    {"vllm:num_preemptions_total", "preemptions", 1, SUM, NULL},
    {"vllm:num_preemptions", "preemptions", 1, SUM, NULL},
    {"vllm:prefix_cache_queries_total", "prefix_query_tokens", 1, SUM, NULL},
    {"vllm:prefix_cache_hits_total", "prefix_hit_tokens", 1, SUM, NULL},
    {"vllm:prefix_cache_queries", "prefix_query_tokens", 1, SUM, NULL},
    {"vllm:prefix_cache_hits", "prefix_hit_tokens", 1, SUM, NULL},
    {"vllm:gpu_prefix_cache_queries_total", "prefix_query_tokens", 1, SUM, NULL},
    {"vllm:gpu_prefix_cache_hits_total", "prefix_hit_tokens", 1, SUM, NULL},
    {"vllm:external_prefix_cache_hits_total", "host_tier.hit_tokens", 1, SUM, NULL},
    {"vllm:external_prefix_cache_hits", "host_tier.hit_tokens", 1, SUM, NULL},
    {"vllm:gpu_prefix_cache_hit_rate", "engine_hit_rate", 1, MEAN, NULL},
    {"sglang:cache_hit_rate", "engine_hit_rate", 1, MEAN, MOMENT},
    {"vllm:time_to_first_token_seconds", "ttft_ns", 1e9, HISTOGRAM, NULL},
    {"sglang:time_to_first_token_seconds", "ttft_ns", 1e9, HISTOGRAM, NULL},
    {"vllm:request_time_per_output_token_seconds", "tpot_ns", 1e9, HISTOGRAM, NULL},
    {"vllm:e2e_request_latency_seconds", "e2e_ns", 1e9, HISTOGRAM, NULL},
    {"sglang:e2e_request_latency_seconds", "e2e_ns", 1e9, HISTOGRAM, NULL},
    {"vllm:request_success_total", "finished", 1, SERVED, NULL},
    {"vllm:cache_config_info", "num_gpu_blocks=num_blocks", 1, LABELS, NULL},
    {"vllm:cache_config_info", "block_size=block_size_tokens", 1, LABELS, NULL},
    {"completed", "finished", 1, SUM, NULL},
    {"duration", "simulated_ns", 1e9, SUM, NULL},
    {"output_throughput", "output_tokens_per_s", 1, SUM, NULL},
    {"mean_ttft_ms", "ttft_ns.mean", 1e6, SUM, NULL},
    {"median_ttft_ms", "ttft_ns.p50", 1e6, SUM, NULL},
    {"p50_ttft_ms", "ttft_ns.p50", 1e6, SUM, NULL},
    {"p90_ttft_ms", "ttft_ns.p90", 1e6, SUM, NULL},
    {"p99_ttft_ms", "ttft_ns.p99", 1e6, SUM, NULL},
    {"mean_tpot_ms", "tpot_ns.mean", 1e6, SUM, NULL},
    {"median_tpot_ms", "tpot_ns.p50", 1e6, SUM, NULL},
    {"p50_tpot_ms", "tpot_ns.p50", 1e6, SUM, NULL},
    {"p90_tpot_ms", "tpot_ns.p90", 1e6, SUM, NULL},
    {"p99_tpot_ms", "tpot_ns.p99", 1e6, SUM, NULL},
    {"mean_e2el_ms", "e2e_ns.mean", 1e6, SUM, NULL},
    {"median_e2el_ms", "e2e_ns.p50", 1e6, SUM, NULL},
    {"p50_e2el_ms", "e2e_ns.p50", 1e6, SUM, NULL},
    {"p90_e2el_ms", "e2e_ns.p90", 1e6, SUM, NULL},
    {"p99_e2el_ms", "e2e_ns.p99", 1e6, SUM, NULL},
};
#define COUNTERPARTS (sizeof counterparts / sizeof counterparts[0])

struct table {
    struct measured *measured;
    const struct result *result;
    struct measured_row *rows;
    size_t count, capacity;
    struct err *err;
};

/* --- rows ------------------------------------------------------------------------------------- */

static double simulated(const struct table *t, const char *key)
{
    double value = NAN;
    const struct result_entry *entry = result_find(t->result, key);
    return entry && result_number(entry, &value) ? value : NAN;
}

static int add_row(struct table *t, struct measured_row row)
{
    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? t->capacity * 2 : 32;
        struct measured_row *grown = realloc(t->rows, capacity * sizeof *grown);
        if (!grown) return err_set(t->err, ERR_FAILED, "out of memory");
        t->rows = grown;
        t->capacity = capacity;
    }
    row.simulated = simulated(t, row.key);
    bool above = row.simulated > row.high, below = row.simulated < row.low;
    row.difference = isnan(row.simulated) || isnan(row.high) ? NAN : above ? row.simulated - row.high : below ? row.simulated - row.low : 0;
    t->rows[t->count++] = row;
    return 0;
}

/* Sum, number of label sets; marks them. false: there are none. */
static bool add_up(struct table *t, const char *name, bool without_aborts, double *sum, size_t *sets)
{
    *sum = 0;
    *sets = 0;
    for (size_t i = 0; i < t->measured->count; i++) {
        struct measured_sample *s = &t->measured->samples[i];
        char reason[32];
        if (strcmp(s->name, name) != 0) continue;
        s->matched = true;
        if (without_aborts && measured_label(s, "finished_reason", reason, sizeof reason) && strcmp(reason, "abort") == 0) continue;
        *sum += s->value;
        ++*sets;
    }
    return *sets > 0;
}

/* vLLM counts the hits of the host tier apart from the device's. */
static const char *key_here(const struct table *t, const struct counterpart *c)
{
    static const char DEVICE[] = "host_tier.device_hit_tokens";
    return strcmp(c->key, "prefix_hit_tokens") == 0 && result_find(t->result, DEVICE) ? DEVICE : c->key;
}

static int plain_row(struct table *t, const struct counterpart *c)
{
    double sum;
    size_t sets;
    if (!add_up(t, c->name, c->how == SERVED, &sum, &sets)) return 0;
    double value = (c->how == MEAN ? sum / (double)sets : sum) * c->factor;
    return add_row(t, (struct measured_row){.name = c->name, .part = "", .key = key_here(t, c), .low = value, .high = value, .note = c->note});
}

static int label_rows(struct table *t, const struct counterpart *c)
{
    char label[64], text[64], *end;
    const char *key = strchr(c->key, '=') + 1;
    snprintf(label, sizeof label, "%.*s", (int)(key - 1 - c->key), c->key);
    for (size_t i = 0; i < t->measured->count; i++) {
        struct measured_sample *s = &t->measured->samples[i];
        if (strcmp(s->name, c->name) != 0) continue;
        s->matched = true;
        if (!measured_label(s, label, text, sizeof text)) return 0;
        double value = strtod(text, &end);
        if (end == text || *end) return 0;
        return add_row(t, (struct measured_row){.name = c->name, .part = key, .key = key, .low = value, .high = value});
    }
    return 0;
}

/* --- histograms ------------------------------------------------------------------------------- */

struct bucket {
    double le, count; /* cumulative */
};

static int by_bound(const void *pa, const void *pb)
{
    const struct bucket *a = pa, *b = pb;
    return (a->le > b->le) - (a->le < b->le);
}

#define BUCKETS_MAX 512u

/* The buckets of all label sets, added up by bound and sorted. -1 with err when there are too many. */
static int collect(struct table *t, const char *name, struct bucket *buckets, size_t *bucket_count)
{
    size_t count = 0;
    for (size_t i = 0; i < t->measured->count; i++) {
        struct measured_sample *s = &t->measured->samples[i];
        char text[64];
        if (strcmp(s->name, name) != 0) continue;
        s->matched = true;
        if (!measured_label(s, "le", text, sizeof text)) continue;
        double le = strtod(text, NULL);
        size_t k = 0;
        while (k < count && buckets[k].le != le) k++;
        if (k == BUCKETS_MAX) return err_set(t->err, ERR_INPUT, "%s: more than %u buckets", name, BUCKETS_MAX);
        if (k == count) buckets[count++] = (struct bucket){.le = le};
        buckets[k].count += s->value;
    }
    qsort(buckets, count, sizeof *buckets, by_bound);
    *bucket_count = count;
    return 0;
}

/* The bucket in which the nearest rank of a quantile lies. */
static bool quantile(const struct bucket *buckets, size_t count, double share, double *low, double *high)
{
    double total = count ? buckets[count - 1].count : 0;
    for (size_t i = 0; total > 0 && i < count; i++) {
        if (buckets[i].count < ceil(share * total - 1e-9)) continue;
        *low = i ? buckets[i - 1].le : 0;
        *high = buckets[i].le;
        return true;
    }
    return false;
}

static int histogram_rows(struct table *t, const struct counterpart *c)
{
    /* Keys of rows live as long as the program. */
    static const struct {
        const char *key, *mean, *p50, *p90, *p99;
    } keys[] = {{"ttft_ns", "ttft_ns.mean", "ttft_ns.p50", "ttft_ns.p90", "ttft_ns.p99"},
                {"tpot_ns", "tpot_ns.mean", "tpot_ns.p50", "tpot_ns.p90", "tpot_ns.p99"},
                {"e2e_ns", "e2e_ns.mean", "e2e_ns.p50", "e2e_ns.p90", "e2e_ns.p99"}};
    char name[128];
    double sum, number, low, high;
    size_t sets, k = 0;
    while (strcmp(keys[k].key, c->key) != 0) k++;
    snprintf(name, sizeof name, "%s_sum", c->name);
    bool has_sum = add_up(t, name, false, &sum, &sets);
    snprintf(name, sizeof name, "%s_count", c->name);
    if (add_up(t, name, false, &number, &sets) && has_sum && number > 0) {
        double mean = sum / number * c->factor;
        if (add_row(t, (struct measured_row){.name = c->name, .part = "mean", .key = keys[k].mean, .low = mean, .high = mean})) return -1;
    }
    snprintf(name, sizeof name, "%s_bucket", c->name);
    struct bucket buckets[BUCKETS_MAX];
    size_t count = 0;
    if (collect(t, name, buckets, &count)) return -1;
    const struct {
        const char *part, *key;
        double share;
    } ranks[] = {{"p50", keys[k].p50, 0.5}, {"p90", keys[k].p90, 0.9}, {"p99", keys[k].p99, 0.99}};
    int status = 0;
    for (size_t i = 0; status == 0 && i < 3; i++) {
        if (!quantile(buckets, count, ranks[i].share, &low, &high)) continue;
        status = add_row(t, (struct measured_row){.name = c->name, .part = ranks[i].part, .key = ranks[i].key, .low = low * c->factor,
                                                  .high = high * c->factor, .note = "measured: the bucket of the histogram"});
    }
    return status;
}

/* --- all -------------------------------------------------------------------------------------- */

/* Hits over queries, as the engine counts both. */
static int hit_rate_row(struct table *t)
{
    static const char *const names[][2] = {{"vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"},
                                           {"vllm:prefix_cache_hits", "vllm:prefix_cache_queries"},
                                           {"vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_queries_total"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        double hits, queries;
        size_t sets;
        if (!add_up(t, names[i][0], false, &hits, &sets) || !add_up(t, names[i][1], false, &queries, &sets) || !(queries > 0)) continue;
        return add_row(t, (struct measured_row){.name = names[i][0], .part = "rate", .key = "engine_hit_rate", .low = hits / queries,
                                                .high = hits / queries});
    }
    return 0;
}

/* Names that are keys of results stand for themselves. */
static int own_rows(struct table *t)
{
    for (size_t i = 0; i < t->measured->count; i++) {
        struct measured_sample *s = &t->measured->samples[i];
        const struct result_entry *entry = s->matched ? NULL : result_find(t->result, s->name);
        if (!entry || entry->kind == RESULT_TEXT) continue;
        s->matched = true;
        if (add_row(t, (struct measured_row){.name = s->name, .part = "", .key = entry->key, .low = s->value, .high = s->value})) return -1;
    }
    return 0;
}

int measured_rows(struct measured *measured, const struct result *result, struct measured_row **rows, size_t *count, struct err *err)
{
    struct table t = {.measured = measured, .result = result, .err = err};
    int status = 0;
    for (size_t i = 0; status == 0 && i < COUNTERPARTS; i++) {
        const struct counterpart *c = &counterparts[i];
        if (c->how == HISTOGRAM) status = histogram_rows(&t, c);
        else if (c->how == LABELS) status = label_rows(&t, c);
        else status = plain_row(&t, c);
    }
    if (status == 0) status = hit_rate_row(&t);
    if (status == 0) status = own_rows(&t);
    *rows = t.rows;
    *count = t.count;
    return status;
}
