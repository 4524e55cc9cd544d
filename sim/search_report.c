/* What a search found, and the command. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/compare.h"
#include "sim/condition.h"
#include "sim/run_common.h"
#include "sim/search.h"
#include "sim/trace_pool.h"
#include "sim/workers.h"

#define COLUMNS_MAX 6u

/* The figures that the condition names, each once. */
struct columns {
    char keys[COLUMNS_MAX][CONDITION_KEY_BYTES];
    size_t count;
};

static void add_column(void *context, const char *key)
{
    struct columns *c = context;
    for (size_t i = 0; i < c->count; i++) {
        if (strcmp(c->keys[i], key) == 0) return;
    }
    if (c->count < COLUMNS_MAX) snprintf(c->keys[c->count++], CONDITION_KEY_BYTES, "%s", key);
}

static int by_value(const void *pa, const void *pb)
{
    const struct search_probe *const *a = pa, *const *b = pb;
    return ((*a)->value > (*b)->value) - ((*a)->value < (*b)->value);
}

/* The probes that count, by value. */
static size_t used_probes(const struct search *s, const struct search_probe **out)
{
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->probes[i]->used) out[count++] = s->probes[i];
    }
    qsort(out, count, sizeof *out, by_value);
    return count;
}

static double figure(const struct search_probe *p, const char *key)
{
    double value = NAN;
    const struct result_entry *entry = p->results ? result_find(&p->results[0], key) : NULL;
    if (!entry || !result_number(entry, &value)) return NAN;
    return value;
}

static bool is_rate(const struct search *s)
{
    return strcmp(s->quantity->name, "rate") == 0;
}

/* --- table ------------------------------------------------------------------------------------ */

/* "1000 (16000 tokens, 1.95 GiB)", "2.250 (9.03 requests/s)" */
static void describe(const struct search *s, const struct search_probe *p, char *out, size_t bytes)
{
    char text[SEARCH_TEXT_BYTES], more[96] = "";
    s->quantity->text(p->value, text, sizeof text);
    double pool = figure(p, "pool_bytes"), slots = figure(p, "pool_slots");
    if (is_rate(s) && !isnan(p->requests_per_s)) snprintf(more, sizeof more, " (%.4g requests/s)", p->requests_per_s);
    else if (strncmp(s->quantity->name, "pool", 4) == 0 && !isnan(pool))
        snprintf(more, sizeof more, " (%.0f token slots, %.4g GiB)", slots, pool / (1024.0 * 1024 * 1024));
    snprintf(out, bytes, "--%s %s%s", s->quantity->option, text, more);
}

static void verdict_lines(const struct search *s, FILE *out)
{
    char text[SEARCH_TEXT_BYTES], answer[160] = "";
    if (s->answer) describe(s, s->answer, answer, sizeof answer);
    if (s->has_fails_at) s->quantity->text(s->fails_at, text, sizeof text);
    switch (s->outcome) {
    case SEARCH_FOUND:
        fprintf(out, "%s\nholds there, fails at %s (checked)\n", answer, text);
        break;
    case SEARCH_EVERYWHERE:
        fprintf(out, "%s\nholds there and at all that was tried: the end of the range\n", answer);
        break;
    case SEARCH_NOWHERE:
        s->quantity->text(s->last, text, sizeof text);
        fprintf(out, "no value found: the condition fails from the start to %s, the end of the range\n", text);
        break;
    case SEARCH_CUT:
        fprintf(out, "not finished: --find-runs %" PRIu64 " were not enough", s->runs_max);
        if (s->answer) fprintf(out, "; holds at %s", answer);
        if (s->has_fails_at) fprintf(out, "%s fails at %s", s->answer ? " and" : ";", text);
        fputc('\n', out);
        break;
    }
}

static void monotone_lines(const struct search *s, const struct search_probe **probes, size_t count, FILE *out)
{
    char text[SEARCH_TEXT_BYTES];
    for (int holds = 1; holds >= 0; holds--) {
        bool first = true;
        for (size_t i = 0; i < count; i++) {
            if (!s->answer || probes[i]->holds != (holds == 1) || search_expected(s, probes[i])) continue;
            s->quantity->text(probes[i]->value, text, sizeof text);
            fprintf(out, "%s %s", first ? (holds ? "not monotone: also holds at" : "not monotone: fails at") : ",", text);
            first = false;
        }
        if (!first) fputc('\n', out);
    }
    if (!s->safe) return;
    s->quantity->text(s->safe->value, text, sizeof text);
    fprintf(out, "from %s on it holds wherever it was tried", text);
    s->quantity->text(s->safe_fails_at, text, sizeof text);
    fprintf(out, ", fails at %s (checked)\n", text);
}

static void probe_line(const struct search *s, const struct search_probe *p, const struct columns *columns, FILE *out)
{
    char text[SEARCH_TEXT_BYTES], number[32];
    s->quantity->text(p->value, text, sizeof text);
    fprintf(out, "%16s  ", text);
    if (is_rate(s)) {
        compare_number("", p->requests_per_s, false, number, sizeof number);
        fprintf(out, "%12s  ", number);
    }
    if (s->replications > 1) fprintf(out, "%4zu of %-4" PRIu64 "  ", p->held, s->replications);
    else fprintf(out, "%-5s  ", p->holds ? "yes" : "no");
    if (p->trouble[0]) {
        fprintf(out, "could not run: %s\n", p->trouble);
        return;
    }
    for (size_t i = 0; i < columns->count; i++) {
        compare_number(columns->keys[i], figure(p, columns->keys[i]), false, number, sizeof number);
        fprintf(out, "%*s  ", (int)strlen(columns->keys[i]) > 11 ? (int)strlen(columns->keys[i]) : 11, number);
    }
    fprintf(out, "%s\n", p == s->answer ? "<" : "");
}

void search_print_table(const struct search *s, FILE *out)
{
    struct columns columns = {.count = 0};
    struct err ignored = {0};
    const struct search_probe **probes = calloc(s->count ? s->count : 1, sizeof *probes);
    size_t count = probes ? used_probes(s, probes) : 0;
    condition_keys(s->condition, add_column, &columns, &ignored);
    fprintf(out, "%s %s such that %s\n", s->smallest ? "smallest" : "largest", s->quantity->name, s->condition);
    verdict_lines(s, out);
    monotone_lines(s, probes, count, out);
    fprintf(out, "%" PRIu64 " run%s\n\n%16s  ", s->runs, s->runs == 1 ? "" : "s", s->quantity->name);
    if (is_rate(s)) fprintf(out, "%12s  ", "requests/s");
    fprintf(out, s->replications > 1 ? "%-12s  " : "%-5s  ", "holds");
    for (size_t i = 0; i < columns.count; i++) fprintf(out, "%11s  ", columns.keys[i]);
    fputc('\n', out);
    for (size_t i = 0; i < count; i++) probe_line(s, probes[i], &columns, out);
    if (s->replications > 1) fputs("figures of the first replication\n", out);
    free(probes);
}

/* --- JSON ------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void key_of(char *out, size_t bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out, bytes, format, arguments);
    va_end(arguments);
}

static void add_probe(struct result *r, const struct search *s, const struct search_probe *p, const struct columns *columns)
{
    char key[256], text[SEARCH_TEXT_BYTES];
    s->quantity->text(p->value, text, sizeof text);
    key_of(key, sizeof key, "probes.%" PRIu64 ".option_value", p->value);
    result_text(r, key, text);
    key_of(key, sizeof key, "probes.%" PRIu64 ".holds", p->value);
    result_bool(r, key, p->holds);
    key_of(key, sizeof key, "probes.%" PRIu64 ".held", p->value);
    result_u64(r, key, p->held);
    key_of(key, sizeof key, "probes.%" PRIu64 ".as_expected", p->value);
    result_bool(r, key, search_expected(s, p));
    key_of(key, sizeof key, "probes.%" PRIu64 ".requests_per_s", p->value);
    result_f64(r, key, p->requests_per_s);
    key_of(key, sizeof key, "probes.%" PRIu64 ".trouble", p->value);
    result_text(r, key, p->trouble[0] ? p->trouble : NULL);
    for (size_t i = 0; i < columns->count; i++) {
        key_of(key, sizeof key, "probes.%" PRIu64 ".figures.%s", p->value, columns->keys[i]);
        result_f64(r, key, figure(p, columns->keys[i]));
    }
}

static void add_result(struct result *r, const struct result *from)
{
    char key[256];
    for (size_t i = 0; i < from->count; i++) {
        const struct result_entry *e = &from->entries[i];
        key_of(key, sizeof key, "result.%.200s", e->key);
        switch (e->kind) {
        case RESULT_NULL: result_null(r, key); break;
        case RESULT_U64: result_u64(r, key, e->u64); break;
        case RESULT_F64: result_f64(r, key, e->f64); break;
        case RESULT_TEXT: result_text(r, key, e->text); break;
        case RESULT_BOOL: result_bool(r, key, e->yes); break;
        }
    }
}

static void add_answer(struct result *r, const struct search *s)
{
    char text[SEARCH_TEXT_BYTES] = "";
    result_text(r, "outcome", search_outcome_names[s->outcome]);
    if (s->answer) {
        s->quantity->text(s->answer->value, text, sizeof text);
        result_u64(r, "value", s->answer->value);
    } else {
        result_null(r, "value");
    }
    result_text(r, "unit", s->quantity->unit);
    result_text(r, "option", s->quantity->option);
    result_text(r, "option_value", s->answer ? text : NULL);
    result_f64(r, "requests_per_s", s->answer ? s->answer->requests_per_s : NAN);
    if (s->has_fails_at) result_u64(r, "fails_at", s->fails_at);
    else result_null(r, "fails_at");
    if (s->safe) result_u64(r, "safe_value", s->safe->value);
    else result_null(r, "safe_value");
    if (s->safe) result_u64(r, "safe_fails_at", s->safe_fails_at);
    else result_null(r, "safe_fails_at");
}

int search_print_json(const struct search *s, FILE *out, struct err *err)
{
    struct result r;
    struct columns columns = {.count = 0};
    const struct search_probe **probes = calloc(s->count ? s->count : 1, sizeof *probes);
    if (!probes || condition_keys(s->condition, add_column, &columns, err)) {
        free(probes);
        return err_set(err, ERR_FAILED, "out of memory");
    }
    size_t count = used_probes(s, probes), odd = 0;
    for (size_t i = 0; i < count; i++) odd += s->answer && !search_expected(s, probes[i]);
    result_init(&r);
    result_text(&r, "version", PAGESIM_VERSION);
    result_text(&r, "find", s->smallest ? "min" : "max");
    result_text(&r, "quantity", s->quantity->name);
    result_text(&r, "such_that", s->condition);
    add_answer(&r, s);
    result_u64(&r, "unexpected_probes", odd);
    result_u64(&r, "runs", s->runs);
    result_u64(&r, "replications", s->replications);
    for (size_t i = 0; i < count; i++) add_probe(&r, s, probes[i], &columns);
    if (s->answer) add_result(&r, &s->answer->results[0]);
    int status = r.out_of_memory ? err_set(err, ERR_FAILED, "out of memory") : 0;
    if (status == 0) result_write_json(&r, out);
    result_release(&r);
    free(probes);
    return status;
}

/* --- the command ------------------------------------------------------------------------------ */

/* What one run writes would be written by each of many. */
static int check_options(const struct optset *set, struct err *err)
{
    static const char *const single[] = {"timeline", "events", "oom-log", "memory-map", "record", "report", "explain-refusal", "case", "steps",
                                         "plot", "snapshot"};
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++) {
        if (!optset_given(set, single[i])) continue;
        return err_set(err, ERR_USAGE, "--%s: found --find, expected one run: use it with the value that was found", single[i]);
    }
    if (optset_given(set, "such-that")) return 0;
    return err_set(err, ERR_USAGE, "--find: expected --such-that CONDITION with it");
}

static int check_seeds(const struct options *o, struct err *err)
{
    if (o->replications == OPT_UNSET || o->replications == 1) return 0;
    if (!trace_is_drawn(o->trace))
        return err_set(err, ERR_USAGE, "--replications: found %" PRIu64 ", but %s is recorded: other seeds would replay the same requests",
                       o->replications, o->trace);
    if (o->seed > UINT64_MAX - 1 - o->replications) return err_set(err, ERR_USAGE, "--seed: expected room for %" PRIu64 " seeds", o->replications);
    return 0;
}

static int prepare(struct search *s, const struct optset *set, const struct options *o, uint64_t *start, struct err *err)
{
    if (check_options(set, err)) return -1;
    s->quantity = search_parse(o->find, &s->smallest, err);
    if (!s->quantity || check_seeds(o, err) || run_check_conditions(&o->fail_if, err)) return -1;
    if (condition_check(o->such_that, err)) {
        err_prefix(err, "--such-that");
        return -1;
    }
    if (s->quantity->start(o, start, err)) return -1;
    s->min = s->quantity->min;
    if (*start < s->min) *start = s->min;
    s->max = *start > s->quantity->max ? *start : s->quantity->max;
    s->condition = o->such_that;
    s->replications = o->replications == OPT_UNSET ? 1 : o->replications;
    s->runs_max = o->find_runs;
    s->threads = workers_threads(set);
    if (s->runs_max < s->replications)
        return err_set(err, ERR_USAGE, "--find-runs: found %" PRIu64 ", expected at least one run for each replication", s->runs_max);
    s->runner = search_runner_create(set, o, s->quantity, err);
    return s->runner ? 0 : -1;
}

static int show(const struct search *s, const struct options *o, struct err *err)
{
    run_warn(&s->probes[0]->results[0]);
    if (!o->json) search_print_table(s, stdout);
    else if (search_print_json(s, stdout, err)) return -1;
    return s->answer ? run_judge(&o->fail_if, &s->answer->results[0], " at the value found", err) : 0;
}

int search_command(const struct optset *set, struct err *err)
{
    struct search s = {0};
    struct options o;
    uint64_t start;
    if (options_resolve(set, &o, err) || options_need_trace(&o, err)) return -1;
    run_warn_plan(set);
    int status = prepare(&s, set, &o, &start, err);
    if (status == 0) status = search_find(&s, start, err);
    if (status == 0) status = show(&s, &o, err);
    for (size_t i = 0; i < s.count; i++) search_probe_release(s.runner, s.probes[i]);
    free(s.probes);
    search_runner_destroy(s.runner);
    return status;
}
