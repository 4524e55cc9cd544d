/* Pasted commands: words as a shell makes them, flags to options, nothing lost in silence. */
#include <string.h>

#include "sim/serving_command.h"
#include "tests/check.h"

static struct serving_notes notes;

/* The set that a command makes; command: FOR_PLAN or FOR_RUN. */
static struct optset *read_for(uint32_t command, const char *text)
{
    struct err err = {0};
    struct optset *set = optset_create(command, false);
    assert_non_null(set);
    int status = optset_put(set, "command", text, &err) || serving_command_read(set, &notes, &err);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
    return set;
}

static const char *refused(const char *text)
{
    static struct err err;
    err = (struct err){0};
    struct optset *set = optset_create(FOR_PLAN, false);
    assert_int_equal(optset_put(set, "command", text, &err), 0);
    assert_int_equal(serving_command_read(set, &notes, &err), -1);
    optset_destroy(set);
    return err.text;
}

static void split__as_a_shell__words(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int count;
        const char *words; /* joined by | */
    } CASES[] = {
        {"", 0, ""},
        {"  a\tb\n", 2, "a|b"},
        {"a 'b c' \"d e\"", 3, "a|b c|d e"},
        {"--x='{\"a\": 1}'", 1, "--x={\"a\": 1}"},
        {"a \\\n  b", 2, "a|b"},
        {"a\\ b", 1, "a b"},
        {"'' x", 2, "|x"},
        {"\"a\\\"b\"", 1, "a\"b"},
        {"a b | tee log", 2, "a|b"},
        {"a & b", 1, "a"},
        {"a # comment", 1, "a"},
        {"a'b'c", 1, "abc"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char out[64], joined[64] = "";
        struct err err = {0};
        int count = serving_command_split(CASES[i].text, out, &err);
        const char *at = out;
        for (int w = 0; w < count; w++, at += strlen(at) + 1) {
            if (w) strcat(joined, "|");
            strcat(joined, at);
        }
        check_i64_eq(count, CASES[i].count);
        check_str_eq(joined, CASES[i].words);
    }
    char out[8];
    struct err err = {0};
    assert_int_equal(serving_command_split("a 'b", out, &err), -1);
    check_str_has(err.text, "left open");
}

static void check_host_cache(uint32_t command, const char *text, const char *expected)
{
    struct optset *set = read_for(command, text);
    bool known = option_find(command, "host-cache") != NULL;
    check_str_eq(known ? optset_text(set, "host-cache") : NULL, expected);
    optset_destroy(set);
}

/* vLLM: 64 GiB for all ranks; 4 of tensor parallelism and 2 stages have 8 GiB each, wherever the flags stand. Half a
 * GiB is 536870912 bytes. SGLang: decimal gigabytes, for each rank. `plan` sizes the device alone. */
static void host_cache__total_or_for_each_rank__bytes_of_a_device(void **state)
{
    (void)state;
    check_host_cache(FOR_RUN, "vllm serve m --kv-offloading-size 64 --kv-offloading-backend native", "68719476736");
    check_host_cache(FOR_RUN, "vllm serve m --kv-offloading-size 64 -tp 4 -pp 2", "8589934592");
    check_host_cache(FOR_RUN, "vllm serve m -tp 4 --kv_offloading_size=.5", "134217728");
    check_host_cache(FOR_RUN, "vllm serve m -tp 4", "0");
    check_host_cache(FOR_RUN, "python -m sglang.launch_server --model-path m --tp 4 --hicache-size 100", "100GB");
    check_host_cache(FOR_PLAN, "vllm serve m --kv-offloading-size 64", NULL);
    struct err err = {0};
    struct optset *set = optset_create(FOR_RUN, false);
    assert_int_equal(optset_put(set, "command", "vllm serve m --kv-offloading-size much", &err), 0);
    assert_int_equal(serving_command_read(set, &notes, &err), -1);
    check_str_has(err.text, "--kv-offloading-size: found 'much', expected GiB");
    optset_destroy(set);
}

static void vllm__flags__become_options(void **state)
{
    (void)state;
    struct optset *set =
        read_for(FOR_PLAN, "vllm serve meta-llama/Meta-Llama-3-70B --quantization fp8 --kv_cache_dtype=fp8 -tp 4 \\\n"
                           " --gpu-memory-utilization 0.95 --block-size 32 --enable-sleep-mode --swap-space 8 "
                           "--max-model-len 32k --no-enable-prefix-caching --port 8000 --frobnicate 3 --bare --last");
    check_str_eq(optset_text(set, "model"), "meta-llama/Meta-Llama-3-70B");
    check_str_eq(optset_text(set, "quantization"), "fp8");
    check_str_eq(optset_text(set, "kv-cache-dtype"), "fp8");
    check_str_eq(optset_text(set, "tensor-parallel-size"), "4");
    check_str_eq(optset_text(set, "gpu-memory-utilization"), "0.95");
    check_str_eq(optset_text(set, "block-size"), "32");
    check_str_eq(optset_text(set, "swap-space"), "8GiB");
    check_str_eq(optset_text(set, "max-model-len"), "32k");
    check_str_eq(optset_text(set, "enable-prefix-caching"), "no");
    assert_true(optset_given(set, "enable-sleep-mode"));
    assert_false(optset_given(set, "engine"));
    check_u64_eq(notes.neutral_count, 1);
    check_str_eq(notes.neutral[0], "--port 8000");
    check_u64_eq(notes.unknown_count, 3);
    check_str_eq(notes.unknown[0], "--frobnicate 3");
    check_str_eq(notes.unknown[1], "--bare");
    check_str_eq(notes.unknown[2], "--last");
    optset_destroy(set);
}

/* `run` has policies instead of a switch. */
static void vllm__caching__is_a_policy_in_run(void **state)
{
    (void)state;
    struct optset *set = read_for(FOR_RUN, "vllm serve m --no-enable-prefix-caching --max-num-seqs 64");
    check_str_eq(optset_text(set, "policy"), "dynamic");
    check_str_eq(optset_text(set, "max-num-seqs"), "64");
    optset_destroy(set);
}

static void wrapped__python_docker_variables__found(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "python3 -m vllm.entrypoints.openai.api_server --model m --tensor-parallel-size 2",
        "VLLM_LOGGING_LEVEL=DEBUG CUDA_VISIBLE_DEVICES=0,1 /opt/venv/bin/vllm serve m --tensor-parallel-size=2",
        "docker run --gpus all -p 8000:8000 vllm/vllm-openai:latest --model m --tensor-parallel-size 2",
        "docker run --gpus all vllm/vllm-openai:v0.11 vllm serve m --tensor-parallel-size 2",
        "vllm serve --model m --tensor_parallel_size 2",
        "--model m --tensor-parallel-size 2",
    };
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        struct optset *set = read_for(FOR_PLAN, TEXTS[i]);
        check_str_eq(optset_text(set, "model"), "m");
        check_str_eq(optset_text(set, "tensor-parallel-size"), "2");
        optset_destroy(set);
    }
    struct optset *set = read_for(FOR_PLAN, "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 vllm serve m");
    check_str_eq(optset_text(set, "cuda-graph-budget"), "outside");
    optset_destroy(set);
}

static void sglang_and_tensorrt__own_names(void **state)
{
    (void)state;
    struct optset *set = read_for(
        FOR_PLAN,
        "python -m sglang.launch_server --model-path m --tp 8 --mem-fraction-static 0.85 --page-size 64 "
        "--context-length 65536 --chunked-prefill-size 4096 --max-running-requests 32 --disable-radix-cache");
    check_str_eq(optset_text(set, "engine"), "sglang");
    check_str_eq(optset_text(set, "tensor-parallel-size"), "8");
    check_str_eq(optset_text(set, "gpu-memory-utilization"), "0.85");
    check_str_eq(optset_text(set, "block-size"), "64");
    check_str_eq(optset_text(set, "max-model-len"), "65536");
    check_str_eq(optset_text(set, "enable-prefix-caching"), "no");
    optset_destroy(set);
    set = read_for(
        FOR_PLAN,
        "trtllm-serve m --tp_size 2 --kv_cache_free_gpu_memory_fraction 0.8 --max_batch_size 16 --max_seq_len 4096");
    check_str_eq(optset_text(set, "engine"), "tensorrt-llm");
    check_str_eq(optset_text(set, "gpu-memory-utilization"), "0.8");
    check_str_eq(optset_text(set, "max-num-seqs"), "16");
    optset_destroy(set);
}

static void values__auto_and_given__are_left(void **state)
{
    (void)state;
    struct err err = {0};
    struct optset *set = optset_create(FOR_PLAN, false);
    assert_int_equal(optset_put(set, "block-size", "64", &err), 0);
    assert_int_equal(optset_put(set, "command",
                                "vllm serve m --block-size 32 --max-model-len auto --max-num-batched-tokens -1",
                                &err),
                     0);
    assert_int_equal(serving_command_read(set, &notes, &err), 0);
    check_str_eq(optset_text(set, "block-size"), "64"); /* the command line wins */
    assert_false(optset_given(set, "max-model-len"));
    assert_true(optset_given(set, "fit-max-model-len")); /* vLLM lowers the model's length to what fits */
    check_u64_eq(notes.neutral_count, 1);
    optset_destroy(set);
    /* a simulation's length is the trace's */
    set = read_for(FOR_RUN, "vllm serve m --max-model-len -1");
    assert_false(optset_given(set, "max-model-len"));
    check_u64_eq(notes.neutral_count, 1);
    optset_destroy(set);
}

static void values__as_python_reads_them(void **state)
{
    (void)state;
    struct optset *set = read_for(FOR_PLAN, "vllm serve m -tp=2 --gpu-memory-utilization .9 --enable-prefix-caching False "
                                            "--enable-sleep-mode true --enforce-eager=false --trust-remote-code x");
    check_str_eq(optset_text(set, "tensor-parallel-size"), "2");
    check_str_eq(optset_text(set, "gpu-memory-utilization"), "0.9");
    check_str_eq(optset_text(set, "enable-prefix-caching"), "no");
    assert_true(optset_given(set, "enable-sleep-mode"));
    assert_false(optset_given(set, "enforce-eager"));
    check_u64_eq(notes.unknown_count, 1);
    check_str_eq(notes.unknown[0], "x");
    check_u64_eq(notes.neutral_count, 2);
    check_str_eq(notes.neutral[0], "--enforce-eager false");
    optset_destroy(set);
}

static void bad__says_what(void **state)
{
    (void)state;
    check_str_has(refused(" "), "--command: found nothing");
    check_str_has(refused("nginx -g x"), "--command: found no server in it");
    check_str_has(refused("vllm serve m --block-size"), "--block-size: needs a value");
    check_str_has(refused("vllm serve m --block-size 'x"), "left open");
    check_str_has(refused("vllm serve m --block-size many"), "--block-size: found 'many'");
}

static void notes__many_flags__counted(void **state)
{
    (void)state;
    char text[4096] = "vllm serve m";
    for (int i = 0; i < 100; i++) strcat(text, " --flag-x");
    struct optset *set = read_for(FOR_PLAN, text);
    check_u64_eq(notes.unknown_count, 100);
    optset_destroy(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split__as_a_shell__words),
        cmocka_unit_test(vllm__flags__become_options),
        cmocka_unit_test(host_cache__total_or_for_each_rank__bytes_of_a_device),
        cmocka_unit_test(vllm__caching__is_a_policy_in_run),
        cmocka_unit_test(wrapped__python_docker_variables__found),
        cmocka_unit_test(sglang_and_tensorrt__own_names),
        cmocka_unit_test(values__auto_and_given__are_left),
        cmocka_unit_test(values__as_python_reads_them),
        cmocka_unit_test(bad__says_what),
        cmocka_unit_test(notes__many_flags__counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
