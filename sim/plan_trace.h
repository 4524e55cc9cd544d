/* What a trace says about a plan: how long its requests are and what they share. */
#ifndef PAGESIM_PLAN_TRACE_H
#define PAGESIM_PLAN_TRACE_H

#include "sim/options.h"

struct plan_trace {
    bool known;
    uint64_t requests;
    uint64_t longest_tokens; /* prompt and output of one request */
    uint64_t too_long;       /* requests longer than max_model_len, where that is known */
    bool has_content;
    uint64_t prompt_tokens;
    uint64_t shared_tokens;  /* of them, in whole blocks that an earlier request had, never the last token */
};

/* Reads the trace that the options name; without one trace->known stays false. max_model_len UINT64_MAX: unknown. Memory grows with
 * the distinct content. -1 with err. */
int plan_trace_read(struct plan_trace *trace, const struct options *options, uint64_t block_tokens, uint64_t max_model_len,
                    struct err *err);

#endif
