/* Step-time models against the measured steps that the linear one was fitted to, and one row by hand. */
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/step_time.h"

#define STEPS_CSV "tests/golden/h200-step-time/step.csv"

static struct step_time linear(const char *shape, const char *dtypes)
{
    struct step_time model = {.kind = STEP_TIME_UNIT};
    struct err err = {0};
    if (step_time_linear_init(&model, shape, dtypes, &err)) fail_msg("%s", err.text);
    return model;
}

static void unit__any_work__lasts_the_step(void **state)
{
    (void)state;
    const struct step_time model = {.kind = STEP_TIME_UNIT, .step_ns = 1000000};
    const struct step_work nothing = {0}, much = {.prefill_tokens = 2048, .prefill_pairs = 5000000};
    check_u64_eq(step_time_ns(&model, &nothing), 1000000);
    check_u64_eq(step_time_ns(&model, &much), 1000000);
}

/* Llama-3-8B in 16 bits, 64 decodes at 2,048 tokens of context, all of which yield a token.
 * Parameters of a layer: 4096*(32 + 2*8)*128 + 32*128*4096 + 3*4096*14336 = 25,165,824 + 16,777,216 + 176,160,768
 *   = 218,103,808; of 32 layers 6,979,321,856. Head: 128,256*4096 = 525,336,576.
 * Layers: 32 * 35.085 us                                                   = 1,122.72 us
 * Weights: (6,979,321,856*2 + 525,336,576*2) / 4,247,895                     = 3,533.3540 us
 * Compute: 64*(2*6,979,321,856)/630,679,915 + 64*2*525,336,576/7e8           = 1,416.4922 + 96.0615, less
 * KV: 64*2048 * 32*8*2*128*2 bytes / 4,375,488 = 131,072*131,072/4,375,488   = 3,926.3893 us
 * Sum 8,582.4633 us. */
static void linear__64_decodes_at_2048__by_hand(void **state)
{
    (void)state;
    struct step_time model = linear("8b", "bf16-bf16");
    const struct step_work work = {.decode_seqs = 64, .decode_context_tokens = 64 * 2048, .logit_seqs = 64};
    double layers = 32 * 35.085;
    double weights = (6979321856.0 * 2 + 525336576.0 * 2) / 4247895;
    double kv = 131072.0 * 131072.0 / 4375488;
    check_f64_near(layers + weights + kv, 8582.4633, 0.0001);
    check_f64_near((double)step_time_ns(&model, &work), (layers + weights + kv) * 1000, 1);
}

/* A prefill of 2,048 tokens is bound by arithmetic: 2048*2*6,979,321,856/630,679,915 = 45,327.8 us and
 * 2*525,336,576/7e8 = 1.5 us against 3,533 us of weights. Pairs: 2048*2049/2 = 2,098,176, each 4*128*32*32 operations:
 * 2,098,176*524,288/581,712,636 = 1,891.1 us. */
static void linear__prefill_of_2048__by_hand(void **state)
{
    (void)state;
    struct step_time model = linear("8b", "bf16-bf16");
    const struct step_work work = {.prefill_tokens = 2048, .prefill_pairs = 2098176, .logit_seqs = 1};
    double compute = 2048 * 2 * 6979321856.0 / 630679915 + 2 * 525336576.0 / 7e8;
    double attention = 2098176.0 * 524288 / 581712636;
    check_f64_near((double)step_time_ns(&model, &work), (32 * 35.085 + compute + attention) * 1000, 1);
}

static void linear__not_measured__is_refused(void **state)
{
    (void)state;
    struct step_time model;
    struct err err = {0};
    assert_int_equal(step_time_linear_init(&model, "70b/8", "fp8-bf16", &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    check_str_has(err.text, "found shape '70b/8' with data types 'fp8-bf16'");
}

/* Absurd work neither wraps nor becomes 0. */
static void linear__absurd_work__stays_in_range(void **state)
{
    (void)state;
    struct step_time model = linear("8b", "fp8-fp8");
    const struct step_work work = {.prefill_tokens = UINT64_MAX,
                                   .prefill_pairs = ~(unsigned __int128)0};
    check_u64_eq(step_time_ns(&model, &work), (uint64_t)1 << 62);
}

/* --- all measured steps ---------------------------------------------------------------------- */

enum kind { DECODE, PREFILL, MIXED, KINDS };

/* What the description of the measurements states, in percent: median and p95 of |model / measured - 1|. */
static const struct stated {
    const char *shape, *weights, *kv;
    double median[KINDS], p95[KINDS];
} stated[] = {
    {"8b", "bf16", "bf16", {2.2, 2.5, 2.4}, {8.3, 12.5, 9.1}},
    {"8b", "fp8", "bf16", {2.8, 4.4, 1.3}, {9.4, 12.2, 10.3}},
    {"8b", "fp8", "fp8", {3.1, 2.7, 2.2}, {9.9, 11.4, 10.5}},
    {"70b/8", "bf16", "bf16", {1.7, 1.4, 6.3}, {5.3, 7.3, 10.2}},
    {"70b/8", "fp8", "fp8", {1.8, 2.4, 7.0}, {5.7, 6.3, 10.2}},
};

/* The prefill kernels of the fit are cuDNN's; eager launches are no part of the model. */
static int kind_of(const char *text)
{
    if (strcmp(text, "decode") == 0) return DECODE;
    if (strcmp(text, "prefill cudnn") == 0) return PREFILL;
    return strcmp(text, "mixed cudnn") == 0 ? MIXED : -1;
}

static struct step_work work_of(int kind, uint64_t batch, uint64_t context, uint64_t prefill)
{
    struct step_work work = {0};
    if (kind != PREFILL) {
        work.decode_seqs = batch;
        work.decode_context_tokens = batch * context;
    }
    uint64_t prefills = kind == PREFILL ? batch : kind == MIXED ? 1 : 0;
    work.prefill_tokens = prefills * prefill;
    work.prefill_pairs = (unsigned __int128)prefills * prefill * (prefill + 1) / 2;
    work.logit_seqs = work.decode_seqs + prefills;
    return work;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between the two nearest ranks, as the description has it. */
static double quantile(const double *sorted, size_t n, double share)
{
    double at = share * (double)(n - 1);
    size_t low = (size_t)at;
    if (low + 1 == n) return sorted[low];
    return sorted[low] + (at - (double)low) * (sorted[low + 1] - sorted[low]);
}

static size_t read_errors(const struct stated *s, int kind, double *errors, size_t max)
{
    char line[200], shape[16], weights[8], kv[8], name[24];
    unsigned block, batch, context, prefill;
    double us;
    size_t n = 0;
    char dtypes[20];
    snprintf(dtypes, sizeof dtypes, "%s-%s", s->weights, s->kv);
    struct step_time model = linear(s->shape, dtypes);
    FILE *in = fopen(STEPS_CSV, "r");
    assert_non_null(in);
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, "%15[^,],%7[^,],%7[^,],%u,%23[^,],%u,%u,%u,%lf", shape, weights, kv, &block, name,
                   &batch, &context, &prefill, &us) != 9 ||
            strcmp(shape, s->shape) != 0 || strcmp(weights, s->weights) != 0 || strcmp(kv, s->kv) != 0 ||
            kind_of(name) != kind) {
            continue;
        }
        assert_true(n < max);
        struct step_work work = work_of(kind, batch, context, prefill);
        errors[n++] = fabs((double)step_time_ns(&model, &work) / 1000 / us - 1) * 100;
    }
    fclose(in);
    qsort(errors, n, sizeof *errors, compare);
    return n;
}

static void linear__measured_steps__errors_as_stated(void **state)
{
    static const size_t rows[KINDS] = {26, 7, 6};
    (void)state;
    for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            double errors[64];
            size_t n = read_errors(&stated[i], kind, errors, 64);
            check_u64_eq(n, rows[kind]);
            /* Stated to one decimal. */
            check_f64_near(quantile(errors, n, 0.5), stated[i].median[kind], 0.051);
            check_f64_near(quantile(errors, n, 0.95), stated[i].p95[kind], 0.051);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unit__any_work__lasts_the_step),
        cmocka_unit_test(linear__64_decodes_at_2048__by_hand),
        cmocka_unit_test(linear__prefill_of_2048__by_hand),
        cmocka_unit_test(linear__not_measured__is_refused),
        cmocka_unit_test(linear__absurd_work__stays_in_range),
        cmocka_unit_test(linear__measured_steps__errors_as_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
