/* A comparison as people and programs read it. */
#include <inttypes.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/compare.h"
#include "sim/report.h"

/* The table's rows when nobody says which; those that are 0 on both sides are left out. */
static const char *const usual[] = {
    "finished", "rejected", "unservable", "aborted", "simulated_ns", "output_tokens_per_s",
    "ttft_ns.mean", "ttft_ns.p50", "ttft_ns.p99", "tpot_ns.mean", "tpot_ns.p99", "e2e_ns.mean", "e2e_ns.p99",
    "running.mean", "preemptions", "swap_outs", "evictions",
    "hit_rate_tokens", "engine_hit_rate", "host_tier.hit_rate_tokens", "host_tier.to_device_bytes", "host_tier.to_host_bytes",
    "host_tier.transfer_ns", "utilization", "kv_usage",
    "internal_fragmentation", "reservation_waste", "external_fragmentation", "saving_by_sharing",
    "refusals.episodes", "refusals.by_class.despite_free", "refusals.by_class.despite_unused", "refusals.by_class.capacity",
};

/* --- numbers ---------------------------------------------------------------------------------- */

static bool in_nanoseconds(const char *key)
{
    const char *at = strstr(key, "_ns");
    return at && (at[3] == '\0' || at[3] == '.');
}

static bool is_count(const char *key)
{
    static const char *const heads[] = {"finished", "rejected", "unservable", "aborted", "requests", "preemptions", "swap_outs",
                                        "swap_ins", "evictions", "copies", "refusals.", "steps", "units_allocated", "scheduled_tokens"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        if (strncmp(key, heads[i], strlen(heads[i])) == 0) return true;
    }
    return false;
}

void compare_number(const char *key, double value, bool sign, char *out, size_t bytes)
{
    static const struct {
        double from, unit;
        const char *name;
    } units[] = {{1e9, 1e9, " s"}, {1e6, 1e6, " ms"}, {1e3, 1e3, " us"}, {0, 1, " ns"}};
    if (isnan(value)) {
        snprintf(out, bytes, "-");
        return;
    }
    const char *plus = sign && value > 0 ? "+" : "";
    if (in_nanoseconds(key) && value != 0) {
        size_t u = 0;
        while (fabs(value) < units[u].from) u++;
        snprintf(out, bytes, "%s%.4g%s", plus, value / units[u].unit, units[u].name);
    } else if (value == floor(value) && fabs(value) < 1e15) {
        snprintf(out, bytes, "%s%.0f", plus, value);
    } else if (is_count(key) && fabs(value) < 1e15) {
        snprintf(out, bytes, "%s%.1f", plus, value);
    } else {
        snprintf(out, bytes, "%s%.4g", plus, value);
    }
}

static void percent(double ratio, char *out, size_t bytes)
{
    if (isnan(ratio)) snprintf(out, bytes, "-");
    else snprintf(out, bytes, "%s%.2f %%", ratio > 0 ? "+" : "", ratio * 100);
}

/* "low .. high" */
static void interval(const char *key, double middle, double half, char *out, size_t bytes)
{
    char low[32], high[32];
    if (isnan(half)) {
        snprintf(out, bytes, "-");
        return;
    }
    compare_number(key, middle - half, true, low, sizeof low);
    compare_number(key, middle + half, true, high, sizeof high);
    snprintf(out, bytes, "%s .. %s", low, high);
}

/* --- table ------------------------------------------------------------------------------------ */

static bool asked_for_all(const struct compare_head *head)
{
    return head->keys->count == 1 && strcmp(head->keys->items[0], "all") == 0;
}

static const struct compare_metric *find(const struct compare_metric *metrics, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(metrics[i].key, key) == 0) return &metrics[i];
    }
    return NULL;
}

static void metric_line(const struct compare_group *group, const struct compare_metric *m, FILE *out)
{
    char a[32], b[32], difference[32], relative[32], between[80];
    compare_number(m->key, m->a, false, a, sizeof a);
    compare_number(m->key, m->b, false, b, sizeof b);
    compare_number(m->key, m->difference, true, difference, sizeof difference);
    percent(m->relative, relative, sizeof relative);
    interval(m->key, m->difference, m->half, between, sizeof between);
    fprintf(out, "%-30s %11s %11s %12s %10s  %-26s %s", m->key, a, b, difference, relative, between,
            compare_verdict_names[m->verdict]);
    if (m->pairs > 0 && m->pairs < group->count) fprintf(out, " (%zu of %zu pairs)", m->pairs, group->count);
    fputc('\n', out);
}

static int metric_lines(const struct compare_head *head, const struct compare_group *group,
                        const struct compare_metric *metrics, size_t count, FILE *out, struct err *err)
{
    const struct opt_list *keys = head->keys;
    for (size_t i = 0; asked_for_all(head) && i < count; i++) metric_line(group, &metrics[i], out);
    for (size_t i = 0; keys->count == 0 && i < sizeof usual / sizeof usual[0]; i++) {
        const struct compare_metric *m = find(metrics, count, usual[i]);
        if (m && m->pairs > 0 && (m->a != 0 || m->b != 0)) metric_line(group, m, out);
    }
    for (size_t i = 0; !asked_for_all(head) && i < keys->count; i++) {
        const struct compare_metric *m = find(metrics, count, keys->items[i]);
        if (!m) return err_set(err, ERR_USAGE, "--metrics: found '%.100s', expected keys of results that are numbers", keys->items[i]);
        metric_line(group, m, out);
    }
    return 0;
}

static void difference_line(const char *name, const struct compare_differences *d, FILE *out)
{
    char numbers[6][32], between[80];
    const double values[6] = {d->mean, (double)d->p5, (double)d->p25, (double)d->p50, (double)d->p75, (double)d->p95};
    if (d->count == 0) {
        fprintf(out, "%-8s %11s\n", name, "-");
        return;
    }
    for (int i = 0; i < 6; i++) compare_number("_ns", values[i], true, numbers[i], sizeof numbers[i]);
    interval("_ns", d->mean, d->half, between, sizeof between);
    fprintf(out, "%-8s %11s %11s %11s %11s %11s %11s %7.1f %% %6.1f %% %6.1f %%  %s\n", name, numbers[0], numbers[1], numbers[2],
            numbers[3], numbers[4], numbers[5], 100.0 * (double)d->b_lower / (double)d->count,
            100.0 * (double)d->same / (double)d->count, 100.0 * (double)d->b_higher / (double)d->count, between);
}

static void request_lines(const struct compare_head *head, const struct compare_requests *r, FILE *out)
{
    static const char *const columns[] = {"mean", "p5", "p25", "p50", "p75", "p95"};
    fprintf(out, "\nthe same request in both: %" PRIu64 " finished in both, %" PRIu64 " only in A, %" PRIu64 " only in B\n%-8s",
            r->both, r->only_a, r->only_b, "B - A");
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) fprintf(out, " %11s", columns[i]);
    fprintf(out, " %9s %8s %8s  %g %% interval of the mean\n", "B lower", "same", "B higher", head->confidence * 100);
    for (int t = 0; t < COMPARE_TIMES; t++) difference_line(compare_time_names[t], &r->times[t], out);
    const struct compare_differences *d = &r->times[COMPARE_E2E];
    if (head->drawn && d->groups > 0) fprintf(out, "intervals from the means of %zu replications\n", d->groups);
    else if (d->groups > 0) fprintf(out, "intervals from the means of %zu batches of this one run\n", d->groups);
    else if (d->count > 0)
        fprintf(out, "no interval: one run with too few requests, or whose differences hang together over more than a tenth of it\n");
}

static const char *text_of(const struct result *r, const char *key)
{
    const struct result_entry *entry = result_find(r, key);
    return entry && entry->kind == RESULT_TEXT ? entry->text : "-";
}

static double number_of(const struct result *r, const char *key)
{
    const struct result_entry *entry = result_find(r, key);
    double value = NAN;
    return entry && result_number(entry, &value) ? value : NAN;
}

static void head_lines(const struct compare_head *head, const struct compare_group *group, FILE *out)
{
    const struct result *first = group->pairs[0].a;
    fprintf(out, "A  %s%s\nB  %s%s\n", head->a, report_knowledge(first), head->b, report_knowledge(group->pairs[0].b));
    if (group->label[0]) fprintf(out, "%s\n", group->label);
    fprintf(out, "%s, %.0f requests", text_of(first, "trace"), number_of(first, "requests"));
    if (head->drawn) fprintf(out, ", %zu pair%s, seeds from %.0f on", group->count, group->count == 1 ? "" : "s", number_of(first, "seed"));
    fputs("\n\n", out);
}

int compare_print_table(const struct compare_head *head, const struct compare_group *group, FILE *out, struct err *err)
{
    struct compare_metric *metrics;
    size_t count;
    char title[48];
    int status = compare_metrics(group->pairs, group->count, head->confidence, &metrics, &count, err);
    if (status == 0) {
        head_lines(head, group, out);
        snprintf(title, sizeof title, "%g %% interval of B - A", head->confidence * 100);
        fprintf(out, "%-30s %11s %11s %12s %10s  %-26s %s\n", "", "A", "B", "B - A", "relative", title, "verdict");
        status = metric_lines(head, group, metrics, count, out, err);
    }
    if (status == 0 && group->count == 1) fputs("one pair: what is lower or higher is so for these requests, with no interval\n", out);
    if (status == 0 && group->requests) request_lines(head, group->requests, out);
    free(metrics);
    return status;
}

/* --- JSON ------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void key_of(char *out, size_t bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out, bytes, format, arguments);
    va_end(arguments);
}

static void add_metric(struct result *r, const struct compare_metric *m)
{
    const struct {
        const char *name;
        double value;
    } values[] = {{"a", m->a}, {"b", m->b}, {"difference", m->difference}, {"relative", m->relative},
                  {"low", m->difference - m->half}, {"high", m->difference + m->half},
                  {"a_half_width", m->half_a}, {"b_half_width", m->half_b}};
    char key[256];
    key_of(key, sizeof key, "metrics.%.160s.pairs", m->key);
    result_u64(r, key, m->pairs);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        key_of(key, sizeof key, "metrics.%.160s.%s", m->key, values[i].name);
        result_f64(r, key, values[i].value);
    }
    key_of(key, sizeof key, "metrics.%.160s.verdict", m->key);
    result_text(r, key, compare_verdict_names[m->verdict]);
}

static void add_differences(struct result *r, const char *name, const struct compare_differences *d)
{
    const struct {
        const char *name;
        double value;
    } values[] = {{"mean", d->mean}, {"low", d->mean - d->half}, {"high", d->mean + d->half},
                  {"p5", (double)d->p5}, {"p25", (double)d->p25}, {"p50", (double)d->p50}, {"p75", (double)d->p75},
                  {"p95", (double)d->p95}};
    const struct {
        const char *name;
        size_t value;
    } counts[] = {{"count", d->count}, {"means", d->groups}, {"b_lower", d->b_lower}, {"same", d->same}, {"b_higher", d->b_higher}};
    char key[256];
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        key_of(key, sizeof key, "requests.%s.%s", name, counts[i].name);
        result_u64(r, key, counts[i].value);
    }
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        key_of(key, sizeof key, "requests.%s.%s", name, values[i].name);
        result_f64(r, key, d->count > 0 ? values[i].value : NAN);
    }
}

static void add_requests(struct result *r, const struct compare_requests *requests)
{
    result_u64(r, "requests.both", requests->both);
    result_u64(r, "requests.only_a", requests->only_a);
    result_u64(r, "requests.only_b", requests->only_b);
    for (int t = 0; t < COMPARE_TIMES; t++) add_differences(r, compare_time_names[t], &requests->times[t]);
}

int compare_print_json(const struct compare_head *head, const struct compare_group *group, FILE *out, struct err *err)
{
    struct compare_metric *metrics;
    size_t count;
    struct result r;
    int status = compare_metrics(group->pairs, group->count, head->confidence, &metrics, &count, err);
    result_init(&r);
    if (status == 0) {
        const struct result *first = group->pairs[0].a;
        result_text(&r, "version", PAGESIM_VERSION);
        result_text(&r, "a", head->a);
        result_text(&r, "b", head->b);
        result_bool(&r, "a_clairvoyant", report_knowledge(first)[0] != '\0');
        result_bool(&r, "b_clairvoyant", report_knowledge(group->pairs[0].b)[0] != '\0');
        result_text(&r, "label", group->label);
        result_text(&r, "trace", text_of(first, "trace"));
        result_f64(&r, "confidence", head->confidence);
        result_u64(&r, "pairs", group->count);
        for (size_t i = 0; i < count; i++) add_metric(&r, &metrics[i]);
        if (group->requests) add_requests(&r, group->requests);
        if (r.out_of_memory) status = err_set(err, ERR_FAILED, "out of memory");
        else result_write_json(&r, out);
    }
    result_release(&r);
    free(metrics);
    return status;
}
