/* Sizing rules of engines, by version. */
#include <string.h>
#include <strings.h>

#include "sim/plan.h"

#define SHARE(percent) ((uint64_t)(percent) * 10000000)

static const struct plan_engine PLAN_ENGINES[] = {
    {.name = "vllm",
     .aliases = "|vllm-v1|vllm-2026-08|vllm.rs|pegainfer|vllm-tpu|",
     .share = PLAN_OF_TOTAL,
     .utilization_billionths = SHARE(92),
     .block_tokens = 16,
     .null_block = true,
     .checks_free = true,
     .graphs_inside = true,
     .groups = true,
     .group_slack_percent = 50,
     .tokens_by_concurrency = true,
     .source = "vLLM 0.21 and later: gpu_worker.determine_available_memory, kv_cache_utils; graphs are estimated inside "
               "the budget since 0.21, tokens counted by concurrency since pull request 40694"},
    {.name = "vllm-0.20",
     .aliases = "|vllm-2026-04|vllm-0.11|vllm-0.10|",
     .share = PLAN_OF_TOTAL,
     .utilization_billionths = SHARE(90),
     .block_tokens = 16,
     .null_block = true,
     .checks_free = true,
     .groups = true,
     .group_slack_percent = 25,
     .source = "vLLM v1 before 0.21: graphs outside the budget, tokens counted by division"},
    {.name = "vllm-v0",
     .aliases = "|vllm-0.6|",
     .share = PLAN_OF_TOTAL,
     .utilization_billionths = SHARE(90),
     .block_tokens = 16,
     .source = "vLLM 0.2 to 0.8, engine v0: no null block, graphs outside, every layer in full"},
    {.name = "vllm-ascend",
     .aliases = "||",
     .share = PLAN_OF_TOTAL,
     .utilization_billionths = SHARE(90),
     .block_tokens = 128,
     .null_block = true,
     .checks_free = true,
     .groups = true,
     .group_slack_percent = 25,
     .align_to_keys = true,
     .source = "vLLM Ascend (vllm-project/vllm-ascend, report 7393): the block follows from the key half of the page and the recurrent state"},
    {.name = "sglang",
     .aliases = "||",
     .share = PLAN_OF_FREE_BEFORE,
     .utilization_billionths = SHARE(88),
     .block_tokens = 1,
     .null_block = false,
     .two_pools = true,
     .source = "SGLang: model_runner.profile_max_num_token, --mem-fraction-static; its default depends on the device, 0.88 stands here"},
    {.name = "tensorrt-llm",
     .aliases = "|trtllm|trt-llm|tensorrt|",
     .share = PLAN_OF_FREE_AFTER,
     .utilization_billionths = SHARE(90),
     .block_tokens = 32,
     .blocks_up = true,
     .graphs_inside = true,
     .source = "TensorRT-LLM: kv_cache_free_gpu_memory_fraction of what is free once the engine has run, blocks rounded up"},
};

size_t plan_engine_count(void)
{
    return sizeof PLAN_ENGINES / sizeof PLAN_ENGINES[0];
}

const struct plan_engine *plan_engine_at(size_t i)
{
    return &PLAN_ENGINES[i];
}

const struct plan_engine *plan_engine_find(const char *name)
{
    size_t bytes = strlen(name);
    if (bytes == 0 || name[0] == '|') return NULL;
    for (size_t i = 0; i < plan_engine_count(); i++) {
        if (strcasecmp(PLAN_ENGINES[i].name, name) == 0) return &PLAN_ENGINES[i];
        for (const char *at = PLAN_ENGINES[i].aliases; (at = strcasestr(at, name)) != NULL; at++)
            if (at[-1] == '|' && at[bytes] == '|') return &PLAN_ENGINES[i];
    }
    return NULL;
}
