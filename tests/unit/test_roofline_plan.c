/* From a model and a GPU to the roofline: shapes by hand, and what is measured and what is scaled. */
#include "tests/check.h"

#include <string.h>

#include "sim/optset.h"
#include "sim/plan.h"
#include "sim/roofline_plan.h"

/* Reads "name", "value", ..., NULL as options of `run`. */
static struct optset *read_options(struct options *options, struct plan_input *in, const char *const *pairs)
{
    struct err err = {0};
    struct optset *set = optset_create(FOR_RUN, false);
    assert_non_null(set);
    for (; *pairs; pairs += 2)
        if (optset_put(set, pairs[0], pairs[1], &err) != 0) fail_msg("%s", err.text);
    if (optset_finish(set, &err) != 0 || options_resolve(set, options, &err) != 0 ||
        plan_input_read(in, set, options, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return set;
}

static struct roofline_shape shape_of(const char *const *pairs)
{
    struct options options;
    struct roofline_shape shape;
    struct plan_input in;
    struct optset *set = read_options(&options, &in, pairs);
    roofline_shape_of(&shape, &in);
    optset_destroy(set);
    return shape;
}
#define SHAPE(...) shape_of((const char *const[]){__VA_ARGS__, NULL})

/* A layer of Llama-3-8B: 4096*(32 + 2*8)*128 + 32*128*4096 + 3*4096*14336 = 218,103,808 and two norms of 4,096;
 * 32 layers and a norm behind them: 6,979,321,856 + 65*4,096 = 6,979,588,096. */
static void shape__llama_3_8b__by_hand(void **state)
{
    (void)state;
    struct roofline_shape r = SHAPE("model", "llama-3-8b", "gpu", "h200");
    check_f64_near(r.layers, 32, 0);
    check_f64_near(r.hidden, 4096, 0);
    check_f64_near(r.intermediate, 14336, 0);
    check_f64_near(r.q_width, 32 * 128, 0);
    check_f64_near(r.kv_width, 8 * 128, 0);
    check_f64_near(r.dense_parameters, 6979321856.0 + 65 * 4096, 0);
    check_f64_near(r.expert_parameters, 0, 0);
    check_f64_near(r.head_parameters, 128256.0 * 4096, 0);
    check_f64_near(r.weight_bytes, 2, 0);
    check_f64_near(r.attended_width, 32 * 32 * 128, 0);
    check_f64_near(r.kv_bytes, 131072, 0);
    check_f64_near(r.window_kv_bytes, 0, 0);
    assert_false(r.fp8_kv);
}

/* One rank of eight of Llama-3-70B, as measured: 8 query heads, 1 KV head, MLP 28,672/8, head 128,256/8; norms stay whole. */
static void shape__eighth_of_70b_in_fp8__by_hand(void **state)
{
    (void)state;
    struct roofline_shape r = SHAPE("model", "llama-3-70b", "gpu", "h200", "tensor-parallel-size", "8", "quantization",
                                    "fp8", "kv-cache-dtype", "fp8");
    double layer = 8192.0 * (8 + 2) * 128 + 8 * 128 * 8192.0 + 3 * 8192.0 * 3584;
    check_f64_near(r.dense_parameters, 80 * layer + 161 * 8192.0, 0);
    check_f64_near(r.head_parameters, 16032 * 8192.0, 0);
    check_f64_near(r.weight_bytes, 1, 0);
    check_f64_near(r.kv_bytes, 80 * 256, 0);
    check_f64_near(r.q_width, 1024, 0);
    check_f64_near(r.kv_width, 128, 0);
    assert_true(r.fp8_kv);
}

/* Mixtral-8x7B: 8 experts of 3*4096*14336 in each of 32 layers, 2 a token; the width that a token passes is that of two. */
static void shape__mixtral__experts_by_hand(void **state)
{
    (void)state;
    struct roofline_shape r = SHAPE("model", "mixtral-8x7b", "gpu", "h200");
    check_f64_near(r.expert_parameters, 32 * 8 * 3 * 4096.0 * 14336, 0);
    check_f64_near(r.experts, 8, 0);
    check_f64_near(r.experts_per_token, 2, 0);
    check_f64_near(r.intermediate, 2 * 14336, 0);
}

/* Gemma-3-27B: 62 layers, of which every sixth is full: 10; 52 slide over 1,024. 16 KV heads of 128, keys and values in 16 bits. */
static void shape__gemma_3__windows_apart(void **state)
{
    (void)state;
    struct roofline_shape r = SHAPE("model", "gemma-3-27b", "gpu", "h200");
    check_f64_near(r.kv_bytes, 10 * 16 * 128 * 2 * 2, 0);
    check_f64_near(r.window_kv_bytes, 52 * 16 * 128 * 2 * 2, 0);
    check_f64_near(r.window_tokens, 1024, 0);
}

static struct step_time model_of(const char *const *pairs)
{
    struct options options;
    struct plan_input in;
    struct err err = {0};
    struct step_time model = {0};
    struct optset *set = read_options(&options, &in, pairs);
    if (roofline_from_options(&model, set, &options, &err) != 0) fail_msg("%s", err.text);
    optset_destroy(set);
    return model;
}
#define MODEL(...) model_of((const char *const[]){__VA_ARGS__, NULL})

/* A100: 2,039 of 4,800 GB/s and 312 of 989.4 TFLOP/s; no FP8 units, so FP8 weights are multiplied in 16 bits. */
static void gpu__a100__scales_by_its_data_sheet(void **state)
{
    (void)state;
    struct step_time h200 = MODEL("model", "llama-3-8b", "gpu", "h200");
    struct step_time a100 = MODEL("model", "llama-3-8b", "gpu", "a100-80gb");
    check_f64_near(a100.roofline.dense_us / h200.roofline.dense_us, 4800.0 / 2039, 1e-9);
    check_f64_near(a100.roofline.kv_token_us / h200.roofline.kv_token_us, 4800.0 / 2039, 1e-9);
    check_f64_near(a100.roofline.token_us / h200.roofline.token_us, 989.4 / 312, 1e-9);
    check_f64_near(a100.roofline.layers_us, h200.roofline.layers_us, 0);
    check_str_has(a100.note, "scaled, not measured");
    assert_null(strstr(h200.note, "scaled"));

    struct step_time fp8 = MODEL("model", "llama-3-8b", "gpu", "a100-80gb", "quantization", "fp8");
    check_f64_near(fp8.roofline.token_us, a100.roofline.token_us, 0);
    /* embeddings and head stay in 16 bits: (P + 2V)/(2P + 2V) of the bytes, P without norms' two bytes is near enough */
    check_f64_near(fp8.roofline.dense_us / a100.roofline.dense_us, (6979588096.0 + 2 * 525336576.0) / (2 * 6979588096.0 + 2 * 525336576.0), 1e-6);
}

static void gpu__missing__is_a_usage_error(void **state)
{
    (void)state;
    struct options options;
    struct plan_input in;
    struct err err = {0};
    struct step_time model;
    struct optset *set = read_options(&options, &in, (const char *const[]){"model", "llama-3-8b", NULL});
    assert_int_equal(roofline_from_options(&model, set, &options, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    check_str_has(err.text, "expected --gpu");
    optset_destroy(set);
    set = read_options(&options, &in, (const char *const[]){"num-layers", "32", "num-kv-heads", "8", "head-dim", "128", "gpu", "h200", "weights-memory", "16GiB", NULL});
    err = (struct err){0};
    assert_int_equal(roofline_from_options(&model, set, &options, &err), -1);
    check_str_has(err.text, "expected a model with its widths");
    optset_destroy(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape__llama_3_8b__by_hand),
        cmocka_unit_test(shape__eighth_of_70b_in_fp8__by_hand),
        cmocka_unit_test(shape__mixtral__experts_by_hand),
        cmocka_unit_test(shape__gemma_3__windows_apart),
        cmocka_unit_test(gpu__a100__scales_by_its_data_sheet),
        cmocka_unit_test(gpu__missing__is_a_usage_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
