/* pagesim plan: the memory plan of a server. */
#include <stdlib.h>
#include <string.h>

#include "sim/command.h"
#include "sim/plan_finding.h"
#include "sim/plan_report.h"
#include "sim/serving_command.h"

struct work {
    struct options options;
    struct plan_input input;
    struct plan plan;
    struct plan_serve serve;
    struct plan_findings findings;
    struct plan_trace trace;
    struct serving_notes notes;
};

/* The model may stand without --model; the set is ours to complete. */
static int with_model(struct optset *set, int argc, char **argv, struct err *err)
{
    if (argc > 1) return err_set(err, ERR_USAGE, "found '%.60s', expected one model", argv[1]);
    if (argc == 0) return 0;
    if (strcmp(argv[0], "-") != 0 && !optset_given(set, "model")) return optset_put(set, "model", argv[0], err);
    return err_set(err, ERR_USAGE, "found '%.60s', expected one model", argv[0]);
}

static int need_something(const struct plan_input *in, struct err *err)
{
    bool pool = in->pool_blocks != PLAN_UNKNOWN || in->pool_bytes != PLAN_UNKNOWN || in->pool_tokens != PLAN_UNKNOWN;
    if (in->has_shape || in->gpu_memory != PLAN_UNKNOWN || pool) return 0;
    return err_set(
        err, ERR_USAGE,
        "nothing to plan: give a model (--model, or --num-layers --num-kv-heads --head-dim), a device (--gpu), or --command");
}

static int plan_work(struct work *w, struct optset *set, struct err *err)
{
    if (options_resolve(set, &w->options, err) != 0) return -1;
    if (w->options.plan_list) {
        if (w->options.json) return plan_json_list(stdout, err) == 0 ? COMMAND_DONE : -1;
        plan_print_list(stdout);
        return COMMAND_DONE;
    }
    if (plan_input_read(&w->input, set, &w->options, err) != 0 || need_something(&w->input, err) != 0) return -1;
    bool pasted = optset_given(set, "command");
    if (pasted && serving_command_read(set, &w->notes, err) != 0) return -1;
    plan_compute(&w->plan, &w->input);
    if (plan_trace_read(&w->trace, &w->options, w->input.block_tokens, w->input.max_model_len, err) != 0) return -1;
    plan_find(&w->findings, &w->plan, &w->input, &w->trace);
    bool asked = w->input.serve_requests != PLAN_UNKNOWN;
    if (asked && w->input.serve_tokens == PLAN_UNKNOWN)
        return err_set(err, ERR_USAGE, "--num-requests: needs --request-tokens or --max-model-len beside it");
    if (asked) plan_serve(&w->serve, &w->input);
    const struct plan_report report = {&w->input, &w->plan, asked ? &w->serve : NULL, &w->findings,
                                       pasted ? &w->notes : NULL};
    if (w->options.json) return plan_json(&report, stdout, err) == 0 ? COMMAND_DONE : -1;
    plan_print(&report, stdout);
    return COMMAND_DONE;
}

static int plan_run(const struct optset *given, int argc, char **argv, struct err *err)
{
    struct optset *set = optset_cell(given, 0);
    struct work *w = calloc(1, sizeof *w);
    int status = set && w ? with_model(set, argc, argv, err) : err_set(err, ERR_FAILED, "out of memory");
    if (status == 0) status = plan_work(w, set, err);
    free(w);
    optset_destroy(set);
    return status;
}

const struct command command_plan = {
    .name = "plan",
    .summary = "the memory plan: bytes by purpose, blocks, concurrency, or why it would not start",
    .usage = "[OPTION...] [MODEL]",
    .notes = "MODEL is a built-in model, a Hugging Face config.json, or the folder that holds\n"
             "one. All bytes are of one rank. Figures that are guesses say so, and have an\n"
             "option. A --trace serves the findings. docs/plan.md explains the rules.\n"
             "\n"
             "  pagesim plan llama-3-8b --gpu h100-sxm --max-model-len 32k\n"
             "  pagesim plan --gpu h100-sxm --command 'vllm serve meta-llama/Meta-Llama-3-70B\n"
             "      --quantization fp8 --tensor-parallel-size 2'",
    .options = FOR_PLAN,
    .arguments = COMMAND_ARGS_OWN,
    .run = plan_run,
};
