/* vLLM v1: running requests first, in the order of their admission, then the head of the waiting queue.
 * Chunked prefill, preemption by recomputation of the last admitted request. The rules are those of
 * vLLM's v1 scheduler at 2026-08-06 and 2026-04-02 (tests/golden/vllm-v1). */
#include "sim/v1_pass.h"

static void pass(struct engine *e)
{
    uint64_t budget = v1_schedule_running(e, e->config.max_num_batched_tokens);
    if (e->preempted.count == 0) v1_schedule_waiting(e, budget, NULL);
}

const struct scheduler scheduler_v1 = {
    .name = "v1",
    .summary = "vLLM v1: running first, chunked prefill, recompute preemption",
    .source = "vLLM v1 scheduler, 2026-08-06 (rules 2026-08) and 2026-04-02 (rules 2026-04)",
    .description = "A pass serves running requests first, in the order of admission, each with the tokens that it lacks, "
                   "within --max-num-batched-tokens; prompts may be cut into chunks. When one cannot get a block the "
                   "last admitted is preempted: its memory is freed, it goes to the head of the queue and is computed "
                   "again. If nothing was preempted, waiting requests are admitted in order while budget, sequences and "
                   "memory last.",
    .default_watermark = 0,
    .skips = true,
    .pass = pass,
};
