/* pagesim plan, and simulations that take their pool from it, as users run them. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/cli_run.h"

static struct cli_result r;

static json_t *object(void)
{
    check_str_eq(r.err, "");
    check_i64_eq(r.status, 0);
    json_t *o = json_loads(r.out, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(o);
    cli_release(&r);
    return o;
}

static uint64_t count(const json_t *o, const char *key)
{
    if (!json_is_integer(json_object_get(o, key))) fail_msg("%s is no integer", key);
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

static void json__promised_keys__are_there(void **state)
{
    (void)state;
    static const char *const KEYS[] = {
        "bytes_per_token", "bytes_per_block", "available_kv_bytes",     "num_blocks", "usable_blocks", "kv_tokens",
        "max_concurrency", "required_bytes",  "longest_request_tokens", "verdict"};
    CLI(&r, "plan", "--json", "--num-layers", "32", "--num-kv-heads", "8", "--head-dim", "128", "--kv-cache-dtype",
        "bf16", "--tensor-parallel-size", "2", "--block-size", "16", "--max-model-len", "40000",
        "--kv-cache-memory-bytes", "3.76GiB");
    json_t *o = object();
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) assert_non_null(json_object_get(o, KEYS[i]));
    check_u64_eq(count(o, "bytes_per_token"), 65536);
    check_u64_eq(count(o, "bytes_per_block"), 1048576);
    check_u64_eq(count(o, "available_kv_bytes"), 4037269258); /* 3.76 GiB to the nearest byte */
    check_u64_eq(count(o, "num_blocks"), 3850);
    check_u64_eq(count(o, "usable_blocks"), 3849);
    check_u64_eq(count(o, "required_bytes"), 40000ull * 65536);
    check_f64_near(json_real_value(json_object_get(o, "max_concurrency")), 3850 * 16 / 40000.0, 1e-9);
    check_str_eq(json_string_value(json_object_get(o, "verdict")), "starts");
    json_decref(o);
}

static void json__no_pool__nulls(void **state)
{
    (void)state;
    CLI(&r, "plan", "--json", "--num-layers", "80", "--num-kv-heads", "8", "--head-dim", "128", "--max-model-len",
        "16000");
    json_t *o = object();
    check_u64_eq(count(o, "required_bytes"), 5242880000);
    static const char *const NULLS[] = {
        "available_kv_bytes",     "num_blocks", "usable_blocks", "kv_tokens", "max_concurrency",
        "longest_request_tokens", "verdict",    "memory"};
    for (size_t i = 0; i < sizeof NULLS / sizeof NULLS[0]; i++)
        assert_true(json_is_null(json_object_get(o, NULLS[i])));
    json_decref(o);
}

static void table__guesses__are_called_guesses(void **state)
{
    (void)state;
    CLI(&r, "plan", "llama-3-8b", "--gpu", "h100-sxm");
    check_i64_eq(r.status, 0);
    check_str_has(r.out, "a guess: set --activation-memory");
    check_str_has(r.out, "default, measured on an H200: set --non-torch-memory");
    check_str_has(r.out, "(the engine's default)");
    check_str_has(r.out, "verdict: starts");
    cli_release(&r);
}

static void config__file_and_folder__read(void **state)
{
    (void)state;
    static const char TEXT[] =
        "{\"model_type\":\"qwen3\",\"num_hidden_layers\":36,\"num_key_value_heads\":8,\"hidden_size\":2560,"
        "\"intermediate_size\":9728,\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\"}";
    char *dir = cli_temp_dir();
    const char *file = cli_write(dir, "config.json", TEXT, sizeof TEXT - 1);
    CLI(&r, "plan", "--json", dir);
    json_t *a = object();
    CLI(&r, "plan", "--json", "--model", file);
    json_t *b = object();
    check_u64_eq(count(a, "bytes_per_token"), 36 * 8 * 128 * 2 * 2);
    check_u64_eq(count(b, "parameters"), 4022468096); /* Qwen3-4B on the hub */
    json_decref(a);
    json_decref(b);
    file = cli_write(dir, "config.json", "{\"num_hidden_layers\":\"x\"}", 25);
    CLI(&r, "plan", file);
    check_i64_eq(r.status, 3);
    check_str_has(r.err, "num_hidden_layers: found \"x\", expected a count");
    check_str_eq(r.out, "");
    cli_release(&r);
    cli_temp_remove(dir);
}

static void command__pasted__plan_and_findings(void **state)
{
    (void)state;
    CLI(&r, "plan", "--gpu", "a100-80gb", "--command",
        "vllm serve meta-llama/Meta-Llama-3-70B --quantization fp8 --kv-cache-dtype fp8 --gpu-memory-utilization 0.95 --enable-sleep-mode --odd 1");
    check_i64_eq(r.status, 0);
    check_str_has(r.out, "[type-needs-gpu]");
    check_str_has(r.out, "[sleep-mode]");
    check_str_has(r.out, "NOT KNOWN, left out of the plan: --odd 1");
    cli_release(&r);
    CLI(&r, "plan", "--json", "--gpu", "a100-80gb", "--command", "vllm serve llama-3-8b --odd 1");
    json_t *o = object();
    check_str_eq(json_string_value(json_array_get(json_object_get(json_object_get(o, "command"), "unknown"), 0)),
                 "--odd 1");
    assert_true(json_is_array(json_object_get(o, "findings")));
    json_decref(o);
}

static void list__json__models_gpus_engines(void **state)
{
    (void)state;
    CLI(&r, "plan", "--list", "--json");
    json_t *o = object();
    assert_true(json_array_size(json_object_get(o, "models")) >= 20);
    assert_true(json_array_size(json_object_get(o, "gpus")) >= 11);
    assert_true(json_array_size(json_object_get(o, "engines")) >= 3);
    json_decref(o);
}

/* 1,000 blocks of 16 hold 16,000 tokens, less than Llama-3.1-8B's 131,072: `auto` starts with that many, the model's own
 * length is refused. Where the pool holds more the model's length stays. */
static void command__automatic_length__is_what_fits(void **state)
{
    (void)state;
    CLI(&r, "plan", "--json", "--num-gpu-blocks-override", "1000", "--command",
        "vllm serve meta-llama/Llama-3.1-8B --max-model-len -1 --block-size 16");
    check_i64_eq(r.status, 0);
    check_str_has(r.out, "\"verdict\": \"starts\"");
    check_str_has(r.out, "\"max_model_len\": 16000");
    cli_release(&r);
    CLI(&r, "plan", "--json", "--num-gpu-blocks-override", "1000", "--command",
        "vllm serve meta-llama/Llama-3.1-8B --block-size 16");
    check_str_has(r.out, "\"verdict\": \"refuses: 131072 > 16000");
    cli_release(&r);
    CLI(&r, "plan", "--json", "--num-gpu-blocks-override", "10000", "--command",
        "vllm serve meta-llama/Llama-3.1-8B --max-model-len auto --block-size 16");
    check_str_has(r.out, "\"max_model_len\": 131072");
    cli_release(&r);
}

static void bad__usage__one_line(void **state)
{
    (void)state;
    CLI(&r, "plan");
    check_i64_eq(r.status, 2);
    check_str_has(r.err, "nothing to plan");
    cli_release(&r);
    CLI(&r, "plan", "a", "b");
    check_i64_eq(r.status, 2);
    cli_release(&r);
    CLI(&r, "plan", "llama-3-8b", "--num-requests", "3", "--max-model-len", "auto");
    check_i64_eq(r.status, 2);
    cli_release(&r);
    CLI(&r, "plan", "--list");
    check_i64_eq(r.status, 0);
    check_str_has(r.out, "gpt-oss-120b");
    check_str_has(r.out, "rtx-4090");
    check_str_has(r.out, "tensorrt-llm");
    cli_release(&r);
}

/* The pool of a run is the plan's, to the byte. */
static void run__model_and_gpu__pool_of_the_plan(void **state)
{
    (void)state;
    CLI(&r, "plan", "--json", "llama-3-8b", "--gpu", "l4", "--kv-cache-dtype", "fp8");
    json_t *plan = object();
    CLI(&r, "run", "--json", "--trace", "gen:requests=20", "--model", "llama-3-8b", "--gpu", "l4", "--kv-cache-dtype",
        "fp8");
    json_t *run = object();
    check_u64_eq(count(run, "pool_bytes"), count(plan, "available_kv_bytes"));
    check_u64_eq(count(run, "num_blocks"), count(plan, "num_blocks"));
    json_t *options = json_object_get(run, "options");
    assert_null(json_object_get(options, "kv-bytes-per-token"));
    check_str_eq(json_string_value(json_object_get(options, "model")), "llama-3-8b");
    json_decref(plan);
    json_decref(run);
}

static void run__command__policy_and_unknown_flags(void **state)
{
    (void)state;
    CLI(&r, "run", "--trace", "gen:requests=20", "--gpu", "h100-sxm", "--command",
        "vllm serve llama-3-8b --no-enable-prefix-caching --odd 1");
    check_i64_eq(r.status, 0);
    check_str_has(r.err, "--command: not known, left out: --odd 1");
    check_str_has(r.out, "policy dynamic");
    cli_release(&r);
}

/* Mistral-7B slides in every layer; what the window passed is given back. Gemma 3's kinds are mixed. */
static void run__windows__the_models(void **state)
{
    (void)state;
    CLI(&r, "run", "--trace", "gen:requests=3,prompt-tokens=9000,output-tokens=10", "--model", "mistral-7b", "--gpu",
        "h100-sxm", "--json", "--policy", "dynamic");
    json_t *with = object();
    CLI(&r, "run", "--trace", "gen:requests=3,prompt-tokens=9000,output-tokens=10", "--model", "mistral-7b", "--gpu",
        "h100-sxm", "--json", "--policy", "dynamic", "--sliding-window", "0");
    json_t *without = object();
    assert_true(count(with, "num_blocks") == count(without, "num_blocks"));
    assert_true(json_number_value(json_object_get(with, "kv_usage")) <
                json_number_value(json_object_get(without, "kv_usage")));
    json_decref(with);
    json_decref(without);
    CLI(&r, "run", "--trace", "gen:requests=3", "--model", "gemma-3-27b", "--gpu", "h100-sxm");
    check_i64_eq(r.status, 0);
    check_str_has(r.err, "every attention layer is counted in full");
    cli_release(&r);
}

/* Graphs are inside the budget since 0.21. */
static void run__older_rules__older_plan(void **state)
{
    (void)state;
    CLI(&r, "plan", "--json", "llama-3-8b", "--gpu", "l4", "--engine", "vllm-0.20");
    json_t *plan = object();
    CLI(&r, "run", "--json", "--trace", "gen:requests=3", "--model", "llama-3-8b", "--gpu", "l4", "--rules",
        "2026-04");
    json_t *run = object();
    check_u64_eq(count(run, "pool_bytes"), count(plan, "available_kv_bytes"));
    json_decref(plan);
    json_decref(run);
}

static void run__server_refuses__error(void **state)
{
    (void)state;
    CLI(&r, "run", "--trace", "gen:requests=20", "--model", "llama-3-70b", "--gpu", "h100-sxm");
    check_i64_eq(r.status, 2);
    check_str_has(r.err, "the server refuses: no memory for the cache");
    cli_release(&r);
}

static void sweep__gpus_and_types__a_pool_each(void **state)
{
    (void)state;
    CLI(&r, "sweep", "--trace", "gen:requests=20", "--model", "llama-3-8b", "--gpu", "h100-sxm,l4",
        "--kv-cache-dtype", "bf16,fp8");
    check_i64_eq(r.status, 0);
    uint64_t slots[4] = {0};
    char *at = r.out;
    for (int i = 0; i < 4; i++) {
        json_t *o = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
        assert_non_null(o);
        slots[i] = count(o, "pool_slots");
        json_decref(o);
        at = strchr(at, '\n') + 1;
    }
    /* FP8 halves a token; what is below one token may add one slot. */
    for (int gpu = 0; gpu < 2; gpu++)
        assert_true(slots[2 + gpu] == 2 * slots[gpu] || slots[2 + gpu] == 2 * slots[gpu] + 1);
    assert_true(slots[0] > slots[1]);
    cli_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json__promised_keys__are_there),
        cmocka_unit_test(json__no_pool__nulls),
        cmocka_unit_test(table__guesses__are_called_guesses),
        cmocka_unit_test(config__file_and_folder__read),
        cmocka_unit_test(command__pasted__plan_and_findings),
        cmocka_unit_test(list__json__models_gpus_engines),
        cmocka_unit_test(command__automatic_length__is_what_fits),
        cmocka_unit_test(bad__usage__one_line),
        cmocka_unit_test(run__model_and_gpu__pool_of_the_plan),
        cmocka_unit_test(run__command__policy_and_unknown_flags),
        cmocka_unit_test(run__windows__the_models),
        cmocka_unit_test(run__older_rules__older_plan),
        cmocka_unit_test(run__server_refuses__error),
        cmocka_unit_test(sweep__gpus_and_types__a_pool_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
