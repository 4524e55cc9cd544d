/* What the files of the plan share. */
#ifndef PAGESIM_PLAN_INTERNAL_H
#define PAGESIM_PLAN_INTERNAL_H

#include "sim/plan.h"

typedef unsigned __int128 u128;

struct model_part plan_part(const struct plan_input *input, uint32_t stage);
/* Groups, block bytes and slope of a stage (plan_groups.c). A group of all attention layers has mixer MODEL_MIXERS_MAX. */
void plan_groups(struct plan_stage *stage, const struct plan_input *input, const struct model_part *part);
/* Tokens of each pool, where full and sliding layers have one each. Call it once kv_tokens are known. */
void plan_pool_tokens(struct plan *plan, const struct plan_input *input);

#endif
