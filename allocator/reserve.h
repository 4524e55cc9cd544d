/* How many token slots a policy that takes everything at admission reserves for one sequence.
 * Shared by static, static-paged and jemalloc, so that their options exist once. */
#ifndef PAGESIM_RESERVE_H
#define PAGESIM_RESERVE_H

#include "allocator/kv_policy.h"

/* In the order of the words of reserve_option.choices. L = prompt, O = output tokens. */
enum reserve_kind {
    RESERVE_MAX,        /* max_seq_tokens */
    RESERVE_POW2,       /* L + the smallest power of two >= O; clairvoyant */
    RESERVE_POW2_TOTAL, /* the smallest power of two >= L + O; clairvoyant */
    RESERVE_ORACLE,     /* final KV tokens + slack; clairvoyant */
    RESERVE_DECLARED,   /* L + max_tokens, what Orca and TGI reserve */
};

extern const struct kv_option reserve_option;      /* --reserve */
extern const struct kv_option oracle_slack_option; /* --oracle-slack */

struct reserve {
    enum reserve_kind kind;
    uint64_t slack_tokens; /* RESERVE_ORACLE only */
    uint64_t max_seq_tokens;
    uint64_t lookahead_tokens; /* on top of every reservation, still at most max_seq_tokens */
};

/* values: of reserve_option and oracle_slack_option. */
void reserve_init(struct reserve *reserve, const struct kv_geometry *geometry,
                  struct kv_value kind, struct kv_value slack);
bool reserve_is_clairvoyant(const struct reserve *reserve);
/* Slots of one sequence's reservation, 1 .. max_seq_tokens. The true lengths in the request are read
 * by clairvoyant kinds alone. */
uint64_t reserve_tokens(const struct reserve *reserve, const struct kv_request *request);

/* What the admission of ask->seq_count such reservations asks for, in units of unit_tokens slots. */
void reserve_fill_taken(const struct kv_ask *ask, uint64_t reserved_tokens, uint32_t unit_tokens,
                        struct kv_taken *taken);

/* Smallest power of two >= n, for 1 <= n <= 2^63; and its exponent. */
uint64_t reserve_pow2_ceil(uint64_t n);
unsigned reserve_log2_ceil(uint64_t n);

#endif
