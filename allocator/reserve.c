#include "allocator/reserve.h"

#include <assert.h>

const struct kv_option reserve_option = {
    .name = "reserve",
    .choices = "max|pow2|pow2-total|oracle|declared",
    .default_text = "max",
    .help = "slots reserved at admission: max_model_len, prompt + power of two >= output, power of "
            "two >= both, the true length, or prompt + declared max_tokens",
};

const struct kv_option oracle_slack_option = {
    .name = "oracle-slack",
    .default_text = "0",
    .count_max = UINT32_MAX,
    .help = "tokens that --reserve oracle adds to the final length (1 gives the paper's L + O)",
};

void reserve_init(struct reserve *reserve, const struct kv_geometry *geometry,
                  struct kv_value kind, struct kv_value slack)
{
    assert(kind.count <= RESERVE_DECLARED);
    *reserve = (struct reserve){
        .kind = (enum reserve_kind)kind.count,
        .slack_tokens = slack.count,
        .max_seq_tokens = geometry->max_seq_tokens,
        .lookahead_tokens = geometry->lookahead_tokens,
    };
}

bool reserve_is_clairvoyant(const struct reserve *reserve)
{
    return reserve->kind == RESERVE_POW2 || reserve->kind == RESERVE_POW2_TOTAL ||
           reserve->kind == RESERVE_ORACLE;
}

unsigned reserve_log2_ceil(uint64_t n)
{
    assert(n > 0 && n <= UINT64_C(1) << 63);
    return n == 1 ? 0 : 64 - (unsigned)__builtin_clzll(n - 1);
}

uint64_t reserve_pow2_ceil(uint64_t n)
{
    return UINT64_C(1) << reserve_log2_ceil(n);
}

/* a + b, at most limit, whatever their size. */
static uint64_t sum_capped(uint64_t a, uint64_t b, uint64_t limit)
{
    return a >= limit || b >= limit - a ? limit : a + b;
}

static uint64_t pow2_capped(uint64_t n, uint64_t limit)
{
    return n >= limit ? limit : n == 0 ? 0 : reserve_pow2_ceil(n);
}

static uint64_t reserve_base(const struct reserve *reserve, const struct kv_request *request)
{
    uint64_t limit = reserve->max_seq_tokens;
    switch (reserve->kind) {
    case RESERVE_MAX:
        return limit;
    case RESERVE_POW2:
        return sum_capped(request->prompt_tokens, pow2_capped(request->output_tokens, limit), limit);
    case RESERVE_POW2_TOTAL:
        return pow2_capped(sum_capped(request->prompt_tokens, request->output_tokens, limit), limit);
    case RESERVE_ORACLE:
        return sum_capped(request->final_tokens, reserve->slack_tokens, limit);
    case RESERVE_DECLARED:
        return sum_capped(request->prompt_tokens, request->max_tokens, limit);
    }
    return limit;
}

uint64_t reserve_tokens(const struct reserve *reserve, const struct kv_request *request)
{
    uint64_t tokens = sum_capped(reserve_base(reserve, request), reserve->lookahead_tokens,
                                 reserve->max_seq_tokens);
    return tokens > 0 ? tokens : 1;
}

void reserve_fill_taken(const struct kv_ask *ask, uint64_t reserved_tokens, uint32_t unit_tokens,
                        struct kv_taken *taken)
{
    uint64_t each = kv_blocks_for_tokens(reserved_tokens, unit_tokens);
    uint64_t need = kv_blocks_for_tokens(ask->request->final_tokens, unit_tokens);
    taken->ask_units = ask->seq_count * each;
    taken->need_units = ask->seq_count * (need < each ? need : each);
}
