/* Any bytes as a config.json: refused with one printable line, or a shape whose every figure can be computed, on one rank and on
 * many, and planned. */
#include <stdlib.h>
#include <string.h>

#include "sim/plan.h"
#include "sim/plan_finding.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void require(bool truth)
{
    if (!truth) abort();
}

static void use_part(const struct model_shape *shape, const struct model_part *part)
{
    struct model_parameters p;
    uint32_t begin, end;
    model_stage(shape, part, &begin, &end);
    require(begin <= end && end <= shape->layers);
    model_parameters(shape, part, &p);
    require(model_parameters_active(&p) <= model_parameters_total(&p) + shape->layers);
    for (unsigned t = 0; t < ELEMENT_TYPES; t++) {
        require(model_token_bytes(shape, (enum element_type)t, part) < UINT64_MAX);
        require(model_weight_bytes(shape, (enum element_type)t, part) < UINT64_MAX);
    }
    require(model_state_bytes(shape, part) < UINT64_MAX);
    require(model_token_flops(shape, (uint64_t)1 << 33) >= 0);
}

static void use_plan(const struct model_shape *shape, const char *engine)
{
    struct plan_input *in = calloc(1, sizeof *in);
    struct plan *plan = malloc(sizeof *plan);
    struct plan_findings *findings = malloc(sizeof *findings);
    require(in && plan && findings);
    in->has_shape = true;
    in->shape = *shape;
    in->engine = plan_engine_find(engine);
    in->gpu = gpu_find("h100-sxm");
    in->gpu_memory = in->gpu->memory_bytes;
    in->utilization_billionths = in->engine->utilization_billionths;
    in->tp = in->dp = in->dcp = 1;
    in->pp = shape->layers > 1 ? 2 : 1;
    in->block_tokens = in->alignment_tokens = 16;
    in->max_model_len = shape->max_positions ? shape->max_positions : PLAN_UNKNOWN;
    in->max_num_seqs = 256;
    in->max_num_batched_tokens = in->tokens_in_flight = 2048;
    in->weights_memory.bytes = in->non_torch.bytes = in->activation.bytes = in->graphs.bytes = PLAN_UNKNOWN;
    in->pool_bytes = in->pool_blocks = in->pool_tokens = in->page_bytes = in->kernel_page_bytes = in->swap_bytes = PLAN_UNKNOWN;
    in->swa_ratio_millionths = 800000;
    in->serve_requests = 1000;
    in->serve_tokens = 100000000;
    plan_compute(plan, in);
    plan_find(findings, plan, in, NULL);
    struct plan_serve serve;
    plan_serve(&serve, in);
    for (uint32_t s = 0; s < plan->stage_count; s++) {
        const struct plan_stage *stage = &plan->stages[s];
        require(stage->pool_bytes == 0 || stage->pool_bytes <= stage->available_bytes + (in->engine->blocks_up ? stage->block_bytes : 0));
    }
    free(findings);
    free(plan);
    free(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct model_shape shape;
    struct err err = {0};
    if (model_shape_parse(&shape, (const char *)bytes, count, "f", &err) != 0) {
        require(err.kind != ERR_NONE && err.text[0] != '\0');
        for (const char *p = err.text; *p; p++) require(*p >= ' ' && *p <= '~');
        return 0;
    }
    use_part(&shape, &MODEL_WHOLE);
    use_part(&shape, &(struct model_part){.tp = 8, .pp = 1, .ep = 8});
    use_part(&shape, &(struct model_part){.tp = MODEL_RANKS_MAX, .pp = shape.layers, .pp_rank = shape.layers - 1});
    use_plan(&shape, "vllm");
    use_plan(&shape, "sglang");
    use_plan(&shape, "tensorrt-llm");
    return 0;
}
