/* Every entry of planner.json through the ordinary path: options, plan_input_read, plan_compute. What an entry says is turned
 * into options; nothing is computed here but conversions of units and what the tolerances say. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/plan.h"
#include "tests/check.h"

#define GIB 1073741824.0

struct fixture {
    struct optset *set;
    struct options options;
    struct plan_input input;
    struct plan plan;
    const struct plan_stage *stage;
};

static json_t *cases;

static double get(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static bool has(const json_t *o, const char *key)
{
    return json_object_get(o, key) != NULL;
}

static void put(struct fixture *f, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put(struct fixture *f, const char *name, const char *format, ...)
{
    char text[512];
    struct err err = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int status = optset_put(f->set, name, text, &err);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
}

static void put_bytes(struct fixture *f, const char *name, double bytes)
{
    put(f, name, "%.0f", bytes);
}

static void begin(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->set = optset_create(FOR_PLAN, false);
    assert_non_null(f->set);
}

static void compute(struct fixture *f)
{
    struct err err = {0};
    int status = optset_finish(f->set, &err) || options_resolve(f->set, &f->options, &err) ||
                 plan_input_read(&f->input, f->set, &f->options, &err);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
    plan_compute(&f->plan, &f->input);
    f->stage = &f->plan.stages[f->plan.binding];
}

static void end(struct fixture *f)
{
    optset_destroy(f->set);
}

/* An entry's engine under the name that the option has; engines that only name a fork keep vLLM's rules. */
static void put_engine(struct fixture *f, const json_t *entry)
{
    const char *engine = json_string_value(json_object_get(entry, "engine"));
    if (engine) put(f, "engine", "%s", engine);
}

static void put_model(struct fixture *f, const json_t *model)
{
    if (has(model, "layers")) put_bytes(f, "num-layers", get(model, "layers"));
    if (has(model, "kv_heads")) put_bytes(f, "num-kv-heads", get(model, "kv_heads"));
    if (has(model, "head_dim")) put_bytes(f, "head-dim", get(model, "head_dim"));
    if (has(model, "head_dim_k")) put_bytes(f, "head-dim", get(model, "head_dim_k"));
    if (has(model, "head_dim_v")) put_bytes(f, "head-dim-v", get(model, "head_dim_v"));
    if (has(model, "kv_dtype")) put(f, "kv-cache-dtype", "%s", json_string_value(json_object_get(model, "kv_dtype")));
    if (has(model, "tp")) put_bytes(f, "tensor-parallel-size", get(model, "tp"));
    if (has(model, "sequence_split")) put_bytes(f, "decode-context-parallel-size", get(model, "sequence_split"));
}

static void put_common(struct fixture *f, const json_t *entry)
{
    put_engine(f, entry);
    put_model(f, json_object_get(entry, "model"));
    if (has(entry, "block_size_tokens")) put_bytes(f, "block-size", get(entry, "block_size_tokens"));
}

/* --- expectations ------------------------------------------------------------------------------ */

static double tolerance(const json_t *entry, const char *key)
{
    return get(json_object_get(entry, "tolerance"), key);
}

static void check_blocks(const struct fixture *f, const json_t *entry, const json_t *expected)
{
    double off = tolerance(entry, "num_blocks"), block = get(entry, "block_size_tokens");
    if (has(expected, "num_blocks")) check_f64_near((double)f->plan.num_blocks, get(expected, "num_blocks"), off);
    if (has(expected, "kv_tokens"))
        check_f64_near((double)f->plan.kv_tokens, get(expected, "kv_tokens"), off * block);
    if (has(expected, "usable_blocks"))
        check_f64_near((double)f->plan.usable_blocks, get(expected, "usable_blocks"), off);
    if (has(expected, "usable_kv_tokens"))
        check_f64_near((double)f->plan.usable_kv_tokens, get(expected, "usable_kv_tokens"), off * block);
    if (has(expected, "host_blocks")) check_f64_near((double)f->plan.host_blocks, get(expected, "host_blocks"), 0);
    json_t *concurrency = json_object_get(expected, "max_concurrency");
    if (json_is_object(concurrency))
        check_f64_near(f->plan.max_concurrency, get(concurrency, "value"), tolerance(entry, "max_concurrency"));
}

/* "refuse: 29000 > 23648"; the right side within the tolerance of the blocks. */
static void check_verdict(const struct fixture *f, const json_t *entry, const json_t *expected)
{
    const char *verdict = json_string_value(json_object_get(expected, "verdict"));
    if (!verdict) return;
    unsigned long long want_l, want_r, got_l, got_r;
    assert_int_equal(strncmp(f->plan.verdict, "refuses:", 8), 0);
    if (sscanf(verdict, "refuse: %llu > %llu", &want_l, &want_r) != 2) return;
    assert_int_equal(sscanf(f->plan.verdict, "refuses: %llu > %llu", &got_l, &got_r), 2);
    check_u64_eq(got_l, want_l);
    check_f64_near((double)got_r, (double)want_r, tolerance(entry, "num_blocks") * get(entry, "block_size_tokens"));
}

static void request_length(struct fixture *f, const json_t *expected)
{
    json_t *concurrency = json_object_get(expected, "max_concurrency");
    const char *verdict = json_string_value(json_object_get(expected, "verdict"));
    unsigned long long length;
    if (json_is_object(concurrency)) put_bytes(f, "max-model-len", get(concurrency, "request_tokens"));
    else if (verdict && sscanf(verdict, "refuse: %llu", &length) == 1) put(f, "max-model-len", "%llu", length);
}

/* --- the types ----------------------------------------------------------------------------------- */

static void capacity(const json_t *entry)
{
    struct fixture f;
    json_t *expected = json_object_get(entry, "expected");
    begin(&f);
    put_common(&f, entry);
    put_bytes(&f, "kv-cache-memory-bytes", get(entry, "available_kv_bytes"));
    request_length(&f, expected);
    compute(&f);
    check_f64_near((double)f.stage->block_bytes, get(entry, "block_bytes_per_rank"), 0);
    check_blocks(&f, entry, expected);
    check_verdict(&f, entry, expected);
    assert_int_equal(f.input.engine->blocks_up,
                     strcmp(json_string_value(json_object_get(entry, "rounding")), "ceil") == 0);
    end(&f);
}

static void derived_pools(const json_t *entry, const json_t *given)
{
    struct fixture f;
    json_t *expected = json_object_get(entry, "expected"), *model = json_object_get(entry, "model");
    bool sliding = has(given, "sliding_ratio");
    begin(&f);
    if (sliding) {
        put_engine(&f, entry);
        put(&f, "layer-groups", "sliding:%.0f:heads=%.0f:key-dim=%.0f:value-dim=%.0f:window=128",
            get(model, "layers"), get(model, "kv_heads"), get(model, "head_dim_k"), get(model, "head_dim_v"));
        put_bytes(&f, "tensor-parallel-size", get(model, "tp"));
        put_bytes(&f, "block-size", get(entry, "block_size_tokens"));
        put(&f, "swa-full-tokens-ratio", "%.6f", get(given, "sliding_ratio"));
        put_bytes(&f, "pool-tokens", get(given, "full_tokens"));
    } else {
        put_common(&f, entry);
        put_bytes(&f, "pool-tokens", get(given, "kv_tokens"));
    }
    compute(&f);
    double off = tolerance(entry, "gib");
    if (sliding) check_f64_near((double)f.stage->groups[0].pool_tokens, get(expected, "sliding_tokens"), 0);
    check_f64_near((double)f.plan.key_bytes / GIB, get(expected, "k_bytes_gib"), off);
    check_f64_near((double)f.plan.value_bytes / GIB, get(expected, "v_bytes_gib"), off);
    end(&f);
}

static void derived(const json_t *entry)
{
    struct fixture f;
    json_t *expected = json_object_get(entry, "expected"), *given = json_object_get(entry, "given");
    if (!has(given, "num_blocks")) {
        derived_pools(entry, given);
        return;
    }
    begin(&f);
    put_common(&f, entry);
    put_bytes(&f, "num-gpu-blocks-override", get(given, "num_blocks"));
    if (has(given, "swap_space_bytes")) put_bytes(&f, "swap-space", get(given, "swap_space_bytes"));
    request_length(&f, expected);
    compute(&f);
    check_f64_near((double)f.stage->block_bytes, get(entry, "block_bytes_per_rank"), 0);
    check_blocks(&f, entry, expected);
    check_verdict(&f, entry, expected);
    end(&f);
}

/* Two plans: the bytes, then the suggestion within the rounding of what was available (0.005 GiB each way). */
static void requirement(const json_t *entry)
{
    struct fixture f;
    json_t *expected = json_object_get(entry, "expected"), *model = json_object_get(entry, "model");
    bool groups = has(model, "full_layers");
    begin(&f);
    if (groups) {
        put(&f, "layer-groups", "full:%.0f,sliding:%.0f:window=%.0f", get(model, "full_layers"),
            get(model, "sliding_layers"), get(model, "sliding_window"));
        put_bytes(&f, "num-kv-heads", get(model, "kv_heads"));
        put_bytes(&f, "head-dim", get(model, "head_dim"));
        put(&f, "kv-cache-dtype", "%s", json_string_value(json_object_get(model, "kv_dtype")));
        put_bytes(&f, "num-requests", get(entry, "num_requests"));
    } else {
        put_common(&f, entry);
    }
    if (has(expected, "block_size_tokens_inferred"))
        put_bytes(&f, "block-size", get(expected, "block_size_tokens_inferred"));
    put_bytes(&f, "max-model-len", get(entry, "request_tokens"));
    if (has(expected, "available_gib")) put_bytes(&f, "kv-cache-memory-bytes", get(expected, "available_gib") * GIB);
    compute(&f);
    if (has(expected, "required_bytes"))
        check_f64_near((double)f.plan.required_bytes, get(expected, "required_bytes"), 0);
    if (has(expected, "required_gib"))
        check_f64_near((double)f.plan.required_bytes / GIB, get(expected, "required_gib"),
                       tolerance(entry, "required_gib"));
    if (has(expected, "longest_request_tokens")) {
        double rounding = 0.005 * GIB / (double)f.stage->token_bytes, block = (double)f.input.block_tokens;
        check_f64_near((double)f.plan.longest_request_tokens, get(expected, "longest_request_tokens"),
                       rounding + block);
        check_u64_eq(f.plan.longest_request_tokens % f.input.block_tokens, 0);
    }
    if (groups) {
        struct plan_serve serve;
        plan_serve(&serve, &f.input);
        check_f64_near((double)serve.lower_bytes / GIB, get(expected, "lower_bound_gib"), tolerance(entry, "gib"));
        check_f64_near((double)serve.upper_bytes / GIB, get(expected, "all_full_gib"), tolerance(entry, "gib"));
    }
    check_verdict(&f, entry, expected);
    end(&f);
}

static void put_deduction(struct fixture *f, const json_t *deductions, const char *key, const char *option)
{
    if (has(deductions, key)) put_bytes(f, option, get(deductions, key) * GIB);
}

static void budget(const json_t *entry)
{
    struct fixture f;
    json_t *expected = json_object_get(entry, "expected"), *deductions = json_object_get(entry, "deductions_gib");
    begin(&f);
    put_engine(&f, entry);
    put_bytes(&f, "gpu-memory", get(entry, "gpu_total_bytes"));
    put(&f, "gpu-memory-utilization", "%.6f", get(entry, "utilization"));
    put_deduction(&f, deductions, "weights", "weights-memory");
    put_deduction(&f, deductions, "non_torch", "non-torch-memory");
    put_deduction(&f, deductions, "activation_peak", "activation-memory");
    put_deduction(&f, deductions, "peak_torch_including_weights", "activation-memory");
    if (has(entry, "graph_reserve_gib")) put_bytes(&f, "cuda-graph-memory", get(entry, "graph_reserve_gib") * GIB);
    compute(&f);
    if (has(expected, "available_kv_gib"))
        check_f64_near((double)f.stage->available_bytes / GIB, get(expected, "available_kv_gib"),
                       tolerance(entry, "available_kv_gib"));
    if (has(expected, "requested_gib"))
        check_f64_near((double)f.stage->requested_bytes / GIB, get(expected, "requested_gib"),
                       tolerance(entry, "requested_gib"));
    if (has(expected, "utilization_with_graph_reserve"))
        check_f64_near(f.plan.utilization_with_graphs, get(expected, "utilization_with_graph_reserve"),
                       tolerance(entry, "utilization"));
    end(&f);
}

static void hybrid_align(const json_t *entry)
{
    struct fixture f;
    json_t *expected = json_object_get(entry, "expected"), *model = json_object_get(entry, "model");
    bool keys = has(model, "key_bytes_per_token_per_layer");
    begin(&f);
    put_engine(&f, entry);
    put(&f, "layer-groups", "full:1:%s=%.0f,recurrent:3:state=%.0f:conv=%.0f", keys ? "key-bytes" : "token-bytes",
        get(model, keys ? "key_bytes_per_token_per_layer" : "attention_bytes_per_token_per_layer"),
        get(model, "recurrent_state_bytes_per_layer"), get(model, "conv_state_bytes_per_layer"));
    if (has(entry, "alignment_tokens")) put_bytes(&f, "block-alignment", get(entry, "alignment_tokens"));
    compute(&f);
    const struct plan_group *full = &f.stage->groups[0], *state = &f.stage->groups[1];
    check_f64_near((double)full->block_tokens, get(expected, "attention_block_tokens"), 0);
    if (has(expected, "recurrent_page_padding_percent"))
        check_f64_near(100.0 * (double)state->padding_bytes / (double)state->state_bytes,
                       get(expected, "recurrent_page_padding_percent"), 0.005);
    if (has(expected, "wasted_fraction")) {
        check_f64_near((double)(full->block_tokens * full->token_bytes), get(expected, "attention_page_bytes"), 0);
        check_f64_near((double)state->page_bytes, get(expected, "recurrent_page_bytes_padded"), 0);
        check_f64_near((double)state->state_bytes, get(expected, "recurrent_bytes_used"), 0);
        check_f64_near((double)state->padding_bytes / (double)state->page_bytes, get(expected, "wasted_fraction"),
                       0.00005);
    }
    end(&f);
}

static void hybrid_capacity(const json_t *entry)
{
    struct fixture f;
    json_t *expected = json_object_get(entry, "expected"), *group;
    size_t i;
    begin(&f);
    put_engine(&f, entry);
    json_array_foreach (json_object_get(json_object_get(entry, "model"), "groups"), i, group) {
        bool full = has(group, "block_tokens");
        put(&f, "layer-groups", "%s:%.0f:%s=%.0f", json_string_value(json_object_get(group, "kind")),
            get(group, "layers"), full ? "block" : "blocks",
            get(group, full ? "block_tokens" : "blocks_per_request"));
    }
    put_bytes(&f, "num-gpu-blocks-override", get(json_object_get(entry, "given"), "num_blocks"));
    put_bytes(&f, "max-model-len", get(entry, "request_tokens"));
    compute(&f);
    check_f64_near((double)f.plan.blocks_per_request, get(expected, "blocks_per_request"), 0);
    check_f64_near(f.plan.max_concurrency, get(expected, "max_concurrency"), tolerance(entry, "max_concurrency"));
    check_f64_near((double)f.plan.tokens_by_concurrency, get(expected, "kv_tokens_by_concurrency"), 0);
    check_f64_near((double)f.plan.tokens_by_division, get(expected, "kv_tokens_by_old_division"), 0);
    end(&f);
}

static void admission_reserve(const json_t *entry)
{
    struct fixture f;
    begin(&f);
    put_engine(&f, entry);
    put(&f, "layer-groups", "full:1,sliding:1:window=%.0f", get(entry, "sliding_window"));
    put(&f, "num-kv-heads", "1");
    put(&f, "head-dim", "64");
    put_bytes(&f, "block-size", get(entry, "block_size_tokens"));
    put_bytes(&f, "max-num-batched-tokens", get(entry, "max_tokens_in_flight") / 2);
    put(&f, "async-scheduling", "yes");
    compute(&f);
    check_f64_near((double)f.stage->groups[1].reserve_blocks,
                   get(json_object_get(entry, "expected"), "reserve_blocks_per_group"), 0);
    end(&f);
}

static void page_equalize(const json_t *entry)
{
    struct fixture f;
    json_t *model = json_object_get(entry, "model"), *group;
    double want = get(json_object_get(entry, "expected"), "block_bytes_per_layer_per_k_or_v");
    size_t i;
    begin(&f);
    put_engine(&f, entry);
    put(&f, "kv-cache-dtype", "%s", json_string_value(json_object_get(model, "kv_dtype")));
    put(&f, "block-size", "16");
    json_array_foreach (json_object_get(model, "groups"), i, group) {
        const char *kind = json_string_value(json_object_get(group, "kind"));
        put(&f, "layer-groups", "%s:1:heads=%.0f:dim=%.0f%s", kind, get(group, "kv_heads"), get(group, "head_dim"),
            strcmp(kind, "sliding") == 0 ? ":window=1024" : "");
    }
    compute(&f);
    for (uint32_t g = 0; g < f.stage->group_count; g++) {
        json_t *one = json_array_get(json_object_get(model, "groups"), g);
        check_f64_near((double)f.stage->groups[g].block_tokens, get(one, "block_tokens"), 0);
        check_f64_near((double)f.stage->groups[g].page_bytes / 2, want, 0);
        check_u64_eq(f.stage->groups[g].padding_bytes, 0);
    }
    end(&f);
}

static void page_override(const json_t *entry)
{
    struct fixture f;
    json_t *given = json_object_get(entry, "given");
    begin(&f);
    put_engine(&f, entry);
    put_bytes(&f, "block-size", get(entry, "block_size_tokens"));
    put_bytes(&f, "num-gpu-blocks-override", get(given, "num_blocks"));
    put_bytes(&f, "page-bytes", get(given, "planned_page_bytes"));
    put_bytes(&f, "kernel-page-bytes", get(given, "kernel_page_bytes"));
    compute(&f);
    check_f64_near((double)f.plan.num_blocks, get(json_object_get(entry, "expected"), "num_blocks"), 0);
    end(&f);
}

static void run_entry(void **state)
{
    static const struct {
        const char *type;
        void (*run)(const json_t *entry);
    } TYPES[] = {
        {"capacity", capacity},
        {"derived", derived},
        {"requirement", requirement},
        {"budget", budget},
        {"hybrid_align", hybrid_align},
        {"hybrid_capacity", hybrid_capacity},
        {"admission_reserve", admission_reserve},
        {"page_equalize", page_equalize},
        {"page_override", page_override},
    };
    const json_t *entry = *state;
    const char *type = json_string_value(json_object_get(entry, "type"));
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (strcmp(TYPES[i].type, type) != 0) continue;
        TYPES[i].run(entry);
        return;
    }
    fail_msg("unknown type %s", type);
}

int main(void)
{
    cases = json_load_file("tests/golden/planner/planner.json", JSON_REJECT_DUPLICATES, NULL);
    size_t count = json_array_size(cases);
    struct CMUnitTest *tests = calloc(count + 1, sizeof *tests);
    if (!tests || count < 40) {
        fprintf(stderr, "planner.json: %zu entries, expected at least 40\n", count);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        json_t *entry = json_array_get(cases, i);
        tests[i] = (struct CMUnitTest){
            .name = json_string_value(json_object_get(entry, "id")), .test_func = run_entry, .initial_state = entry};
    }
    int failed = _cmocka_run_group_tests("planner.json", tests, count, NULL, NULL);
    free(tests);
    json_decref(cases);
    return failed != 0;
}
