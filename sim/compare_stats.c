/* The arithmetic of a comparison. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/compare.h"
#include "sim/student_t.h"

const char *const compare_verdict_names[] = {
    [COMPARE_SAME] = "same",
    [COMPARE_LOWER] = "B lower",
    [COMPARE_HIGHER] = "B higher",
    [COMPARE_NOT_SHOWN] = "no difference shown",
    [COMPARE_UNKNOWN] = "not known",
};
const char *const compare_time_names[COMPARE_TIMES] = {[COMPARE_TTFT] = "ttft_ns", [COMPARE_E2E] = "e2e_ns"};

/* --- figures ---------------------------------------------------------------------------------- */

static bool number_in(const struct result *r, const char *key, double *value)
{
    const struct result_entry *entry = result_find(r, key);
    return entry && entry->kind != RESULT_BOOL && result_number(entry, value);
}

/* A figure, or a place for one; provenance and switches are not. */
static bool may_be_figure(const struct result_entry *entry)
{
    if (entry->kind == RESULT_TEXT || entry->kind == RESULT_BOOL) return false;
    return strncmp(entry->key, "options.", 8) != 0 && strcmp(entry->key, "seed") != 0;
}

static bool has_key(const struct compare_metric *metrics, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(metrics[i].key, key) == 0) return true;
    }
    return false;
}

static int add_keys(struct compare_metric **metrics, size_t *count, const struct result *r, struct err *err)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct result_entry *entry = &r->entries[i];
        if (!may_be_figure(entry) || has_key(*metrics, *count, entry->key)) continue;
        struct compare_metric *grown = realloc(*metrics, (*count + 1) * sizeof *grown);
        if (!grown) return err_set(err, ERR_FAILED, "out of memory");
        *metrics = grown;
        grown[(*count)++] = (struct compare_metric){.key = entry->key};
    }
    return 0;
}

static enum compare_verdict judge(const struct compare_metric *m, const double *differences)
{
    bool same = true;
    for (size_t i = 0; i < m->pairs; i++) same = same && differences[i] == 0;
    if (m->pairs == 0) return COMPARE_UNKNOWN;
    if (same) return COMPARE_SAME;
    double half = isnan(m->half) ? 0 : m->half;
    if (m->difference + half < 0) return COMPARE_LOWER;
    return m->difference - half > 0 ? COMPARE_HIGHER : COMPARE_NOT_SHOWN;
}

/* values: room for three columns of `count`. */
static void fill(struct compare_metric *m, const struct compare_pair *pairs, size_t count, double confidence, double *values)
{
    double *a = values, *b = values + count, *difference = values + 2 * count;
    for (size_t i = 0; i < count; i++) {
        size_t n = m->pairs;
        if (!number_in(pairs[i].a, m->key, &a[n]) || !number_in(pairs[i].b, m->key, &b[n])) continue;
        difference[n] = b[n] - a[n];
        m->pairs++;
    }
    m->a = m->b = m->difference = m->relative = m->half = m->half_a = m->half_b = NAN;
    if (m->pairs > 0) {
        m->a = mean_with_interval(a, m->pairs, confidence, &m->half_a);
        m->b = mean_with_interval(b, m->pairs, confidence, &m->half_b);
        m->difference = mean_with_interval(difference, m->pairs, confidence, &m->half);
        if (m->a != 0) m->relative = m->difference / fabs(m->a);
    }
    m->verdict = judge(m, difference);
}

static bool ever_a_number(const char *key, const struct compare_pair *pairs, size_t count)
{
    double ignored;
    for (size_t i = 0; i < count; i++) {
        if (number_in(pairs[i].a, key, &ignored) || number_in(pairs[i].b, key, &ignored)) return true;
    }
    return false;
}

int compare_metrics(const struct compare_pair *pairs, size_t count, double confidence, struct compare_metric **metrics,
                    size_t *metric_count, struct err *err)
{
    double *values = calloc(count, 3 * sizeof *values);
    int status = values ? 0 : err_set(err, ERR_FAILED, "out of memory");
    size_t found = 0, kept = 0;
    *metrics = NULL;
    for (size_t i = 0; status == 0 && i < count; i++) {
        status = add_keys(metrics, &found, pairs[i].a, err);
        if (status == 0) status = add_keys(metrics, &found, pairs[i].b, err);
    }
    for (size_t i = 0; status == 0 && i < found; i++) {
        if (!ever_a_number((*metrics)[i].key, pairs, count)) continue;
        (*metrics)[kept] = (*metrics)[i];
        fill(&(*metrics)[kept++], pairs, count, confidence, values);
    }
    *metric_count = kept;
    free(values);
    return status;
}

/* --- the same request in both ----------------------------------------------------------------- */

static double mean_of(const int64_t *values, size_t begin, size_t end)
{
    __int128 sum = 0;
    for (size_t i = begin; i < end; i++) sum += values[i];
    return (double)sum / (double)(end - begin);
}

/* Replications are independent of each other, so their means are. */
static void interval_of_replications(struct compare_differences *d, const int64_t *values, const size_t *starts,
                                     size_t replications, double confidence, double *means)
{
    size_t groups = 0;
    for (size_t r = 0; r < replications; r++) {
        if (starts[r + 1] > starts[r]) means[groups++] = mean_of(values, starts[r], starts[r + 1]);
    }
    if (groups < 2) return;
    d->mean = mean_with_interval(means, groups, confidence, &d->half);
    d->groups = groups;
}

#define BATCHES_MAX 20u
#define BATCH_REQUESTS_MIN 10u

/* Correlation of each mean with the next. */
static double lag_one(const double *means, size_t count)
{
    double mean = 0, products = 0, squares = 0;
    for (size_t i = 0; i < count; i++) mean += means[i] / (double)count;
    for (size_t i = 0; i < count; i++) {
        squares += (means[i] - mean) * (means[i] - mean);
        if (i > 0) products += (means[i] - mean) * (means[i - 1] - mean);
    }
    return squares > 0 ? products / squares : 0;
}

/* Requests that follow each other in one run share queues, so single differences are not independent. Means of long batches
 * nearly are; where neighbours among them still go together (one-sided test at 5 %: independent means have a correlation of about
 * N(0, 1/batches)), batches are made twice as long once, and then there is no interval. */
static void interval_of_batches(struct compare_differences *d, const int64_t *values, double confidence)
{
    for (size_t batches = BATCHES_MAX; batches >= BATCHES_MAX / 2; batches /= 2) {
        double means[BATCHES_MAX];
        if (d->count / batches < BATCH_REQUESTS_MIN) continue;
        for (size_t i = 0; i < batches; i++) {
            means[i] = mean_of(values, d->count * i / batches, d->count * (i + 1) / batches);
        }
        if (lag_one(means, batches) > 1.645 / sqrt((double)batches)) continue;
        mean_with_interval(means, batches, confidence, &d->half);
        d->groups = batches;
        return;
    }
}

static int ascending(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return (a > b) - (a < b);
}

/* count > 0. */
static int64_t rank(const int64_t *sorted, size_t count, unsigned percent)
{
    unsigned __int128 r = ((unsigned __int128)count * percent + 99) / 100;
    return sorted[r > 0 ? (size_t)r - 1 : 0];
}

int compare_differences(struct compare_differences *d, int64_t *values, const size_t *starts, size_t replications,
                        double confidence, struct err *err)
{
    *d = (struct compare_differences){.count = starts[replications], .mean = NAN, .half = NAN};
    if (d->count == 0) return 0;
    d->mean = mean_of(values, 0, d->count);
    if (replications > 1) {
        double *means = calloc(replications, sizeof *means);
        if (!means) return err_set(err, ERR_FAILED, "out of memory");
        interval_of_replications(d, values, starts, replications, confidence, means);
        free(means);
    } else {
        interval_of_batches(d, values, confidence);
    }
    for (size_t i = 0; i < d->count; i++) {
        if (values[i] < 0) d->b_lower++;
        else if (values[i] > 0) d->b_higher++;
        else d->same++;
    }
    qsort(values, d->count, sizeof *values, ascending);
    d->p5 = rank(values, d->count, 5);
    d->p25 = rank(values, d->count, 25);
    d->p50 = rank(values, d->count, 50);
    d->p75 = rank(values, d->count, 75);
    d->p95 = rank(values, d->count, 95);
    return 0;
}
