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

/* Adds the errors in percent of a model on the measured steps of one kind; NULL for kv: of either type. */
static size_t read_errors(const struct step_time *model, const char *of_shape, const char *of_weights,
                          const char *of_kv, int kind, double *errors, size_t n, size_t max)
{
    char line[200], shape[16], weights[8], kv[8], name[24];
    unsigned block, batch, context, prefill;
    double us;
    FILE *in = fopen(STEPS_CSV, "r");
    assert_non_null(in);
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, "%15[^,],%7[^,],%7[^,],%u,%23[^,],%u,%u,%u,%lf", shape, weights, kv, &block, name,
                   &batch, &context, &prefill, &us) != 9 ||
            strcmp(shape, of_shape) != 0 || strcmp(weights, of_weights) != 0 || strcmp(kv, of_kv) != 0 ||
            kind_of(name) != kind) {
            continue;
        }
        assert_true(n < max);
        struct step_work work = work_of(kind, batch, context, prefill);
        errors[n++] = fabs((double)step_time_ns(model, &work) / 1000 / us - 1) * 100;
    }
    fclose(in);
    return n;
}

static void linear__measured_steps__errors_as_stated(void **state)
{
    static const size_t rows[KINDS] = {26, 7, 6};
    (void)state;
    for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            double errors[64];
            char dtypes[20];
            snprintf(dtypes, sizeof dtypes, "%s-%s", stated[i].weights, stated[i].kv);
            struct step_time model = linear(stated[i].shape, dtypes);
            size_t n = read_errors(&model, stated[i].shape, stated[i].weights, stated[i].kv, kind, errors, 0, 64);
            check_u64_eq(n, rows[kind]);
            qsort(errors, n, sizeof *errors, compare);
            /* Stated to one decimal. */
            check_f64_near(quantile(errors, n, 0.5), stated[i].median[kind], 0.051);
            check_f64_near(quantile(errors, n, 0.95), stated[i].p95[kind], 0.051);
        }
    }
}

/* --- roofline ---------------------------------------------------------------------------------- */

/* Llama-3-8B on one GPU, and one eighth of Llama-3-70B: layers, hidden, MLP width, query and KV heads, vocabulary. */
static struct step_time roofline(bool one_eighth, bool fp8_weights, bool fp8_kv)
{
    double layers = one_eighth ? 80 : 32, hidden = one_eighth ? 8192 : 4096, mlp = one_eighth ? 3584 : 14336;
    double queries = one_eighth ? 8 : 32, heads = one_eighth ? 1 : 8, vocabulary = one_eighth ? 16032 : 128256;
    const struct roofline_shape shape = {
        .layers = layers,
        .hidden = hidden,
        .intermediate = mlp,
        .q_width = queries * 128,
        .kv_width = heads * 128,
        .dense_parameters = layers * (hidden * (queries + 2 * heads) * 128 + queries * 128 * hidden + 3 * hidden * mlp),
        .head_parameters = vocabulary * hidden,
        .weight_bytes = fp8_weights ? 1 : 2,
        .attended_width = layers * queries * 128,
        .kv_bytes = layers * heads * 256 * (fp8_kv ? 1 : 2),
        .fp8_compute = fp8_weights,
        .fp8_kv = fp8_kv,
    };
    const struct roofline_scale h200 = {1, 1, 1};
    struct step_time model = {.kind = STEP_TIME_ROOFLINE};
    roofline_init(&model.roofline, &shape, &h200);
    return model;
}

/* What the description of the fit states for the steps of both shapes together (`smooth`), in
 * percent: given to 0.01, of coefficients that are themselves rounded. */
static const struct {
    bool fp8_weights;
    size_t rows[KINDS];
    double median[KINDS], p95[KINDS], max[KINDS];
} SMOOTH[] = {
    {false, {52, 14, 12}, {1.83, 1.96, 5.16}, {5.83, 6.76, 9.11}, {8.49, 6.89, 10.09}},
    {true, {78, 21, 18}, {2.73, 1.65, 4.28}, {11.70, 5.70, 9.44}, {15.54, 6.55, 9.97}},
};

static void roofline__measured_steps__errors_as_stated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SMOOTH / sizeof SMOOTH[0]; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            double errors[100];
            size_t n = 0;
            for (int eighth = 0; eighth < 2; eighth++) {
                for (int fp8_kv = 0; fp8_kv < 2; fp8_kv++) {
                    struct step_time model = roofline(eighth, SMOOTH[i].fp8_weights, fp8_kv);
                    n = read_errors(&model, eighth ? "70b/8" : "8b", SMOOTH[i].fp8_weights ? "fp8" : "bf16",
                                    fp8_kv ? "fp8" : "bf16", kind, errors, n, 100);
                }
            }
            qsort(errors, n, sizeof *errors, compare);
            check_u64_eq(n, SMOOTH[i].rows[kind]);
            check_f64_near(quantile(errors, n, 0.5), SMOOTH[i].median[kind], 0.02);
            check_f64_near(quantile(errors, n, 0.95), SMOOTH[i].p95[kind], 0.02);
            check_f64_near(errors[n - 1], SMOOTH[i].max[kind], 0.02);
        }
    }
}

/* A layer of 8 experts of 1,000 parameters, 2 a token: one token reads 2/8 of them, two tokens 1 - (6/8)^2 = 7/16,
 * many all. */
static void roofline__experts__are_read_as_far_as_tokens_reach_them(void **state)
{
    (void)state;
    const struct roofline_shape shape = {
        .expert_parameters = 8000000000.0, .experts = 8, .experts_per_token = 2, .expert_weight_bytes = 2};
    const struct roofline_scale h200 = {1, 1, 1};
    struct roofline model;
    roofline_init(&model, &shape, &h200);
    model.token_us = 0; /* arithmetic apart */
    const double all_us = 16000000000.0 / 4247895;
    const struct step_work one = {.decode_seqs = 1}, two = {.decode_seqs = 2}, many = {.prefill_tokens = 1000000};
    check_f64_near(roofline_us(&model, &one), all_us / 4, 1e-6);
    check_f64_near(roofline_us(&model, &two), all_us * 7 / 16, 1e-6);
    check_f64_near(roofline_us(&model, &many), all_us, 1e-6);
}

/* Half the layers see 1,000 tokens: a context of 3,000 is read as 3,000 there and 1,000 here. */
static void roofline__sliding_layers__read_at_most_their_window(void **state)
{
    (void)state;
    const struct roofline_shape shape = {.kv_bytes = 1024, .window_kv_bytes = 1024, .window_tokens = 1000};
    const struct roofline_scale half = {0.5, 1, 1};
    struct roofline model;
    roofline_init(&model, &shape, &half);
    const struct step_work work = {.decode_seqs = 4, .decode_context_tokens = 12000};
    check_f64_near(roofline_us(&model, &work), (12000 + 4000) * 1024.0 / (4423416 * 0.5), 1e-6);
}

static void roofline__absurd_work__stays_in_range(void **state)
{
    (void)state;
    struct step_time model = roofline(true, true, true);
    const struct step_work much = {.decode_seqs = UINT64_MAX, .decode_context_tokens = UINT64_MAX,
                                   .prefill_tokens = UINT64_MAX, .prefill_pairs = ~(unsigned __int128)0,
                                   .logit_seqs = UINT64_MAX};
    const struct step_work nothing = {0};
    check_u64_eq(step_time_ns(&model, &much), (uint64_t)1 << 62);
    assert_true(step_time_ns(&model, &nothing) > 0);
    const struct roofline_shape empty = {0};
    const struct roofline_scale h200 = {1, 1, 1};
    roofline_init(&model.roofline, &empty, &h200);
    check_u64_eq(step_time_ns(&model, &nothing), 1);
}

/* --- host copies ---------------------------------------------------------------------------- */

#define HOST_COPY_CSV "tests/golden/h200-step-time/host_copy.csv"

static const struct host_link measured_link = {.bytes_per_s = 55000000000, .latency_ns = 16000};

/* The rule against the 32 measured rows. One copy: within 2 % from 16 MiB on, 1 to 31 % off below. 64 in a row are one
 * transfer to the rule, which says less than was measured: 5 to 6 % from 2 MiB each on, and far less where each is small,
 * because every call costs 7.5 us there (docs/eviction.md says so). */
static void host_copy__measured_copies__errors_as_stated(void **state)
{
    char line[200], direction[16];
    unsigned long long bytes;
    unsigned copies, rows = 0;
    double us;
    FILE *in = fopen(HOST_COPY_CSV, "r");
    (void)state;
    assert_non_null(in);
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, "%15[^,],%llu,%u,%lf", direction, &bytes, &copies, &us) != 4) continue;
        double ratio = (double)host_copy_ns(&measured_link, bytes * copies) / 1000 / us;
        double wrong = fabs(ratio - 1);
        if (copies == 1) assert_true(wrong < (bytes >= 16777216 ? 0.02 : 0.32));
        else if (bytes >= 2097152) assert_true(ratio > 0.93 && ratio < 1);
        else assert_true(ratio < 1); /* the call of each copy costs, too */
        rows++;
    }
    fclose(in);
    check_u64_eq(rows, 32);
}

/* 55 bytes a nanosecond. Blocking: 1000000 of computing + (5500000 / 55 = 100000) + 16000 + (55 / 55 = 1) + 16000.
 * Overlapped: the longest of 1000000, 116000 and 16001, or of 100000, 116000 and 16001. Nothing to copy: nothing added. */
static void host_link__both_ways__by_hand(void **state)
{
    const struct host_traffic traffic = {.to_device_bytes = 5500000, .to_host_bytes = 55}, none = {0};
    struct host_link link = measured_link;
    (void)state;
    check_u64_eq(host_link_step_ns(&link, 1000000, &traffic), 1000000 + 116000 + 16001);
    check_u64_eq(host_link_step_ns(&link, 1000000, &none), 1000000);
    link.overlapped = true;
    check_u64_eq(host_link_step_ns(&link, 1000000, &traffic), 1000000);
    check_u64_eq(host_link_step_ns(&link, 100000, &traffic), 116000);
    link.bytes_per_s = 0;
    check_u64_eq(host_link_step_ns(&link, 100000, &traffic), 100000);
}

static void host_link__absurd_traffic__stays_in_range(void **state)
{
    const uint64_t most = (uint64_t)1 << 62;
    const struct host_traffic traffic = {.to_device_bytes = UINT64_MAX, .to_host_bytes = UINT64_MAX};
    struct host_link link = {.bytes_per_s = 1, .latency_ns = UINT64_MAX};
    (void)state;
    check_u64_eq(host_copy_ns(&link, 1), most);
    check_u64_eq(host_link_step_ns(&link, most, &traffic), most);
    link.overlapped = true;
    check_u64_eq(host_link_step_ns(&link, 1, &traffic), most);
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
        cmocka_unit_test(roofline__measured_steps__errors_as_stated),
        cmocka_unit_test(roofline__experts__are_read_as_far_as_tokens_reach_them),
        cmocka_unit_test(roofline__sliding_layers__read_at_most_their_window),
        cmocka_unit_test(roofline__absurd_work__stays_in_range),
        cmocka_unit_test(host_copy__measured_copies__errors_as_stated),
        cmocka_unit_test(host_link__both_ways__by_hand),
        cmocka_unit_test(host_link__absurd_traffic__stays_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
