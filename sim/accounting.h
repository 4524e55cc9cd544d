/* Where every byte of the pool is, at any instant and on average (docs/metrics.md defines the states).
 *
 * The policy reports physical facts: bytes held, cached, free. What a held byte is for — live, dead,
 * reserved, internal — follows from how far each request is filled and how long it will become, which
 * only the simulator knows. So the meaning is the same for every policy, and no policy can hide or
 * invent fragmentation. Integers only; sums of byte-nanoseconds are 128 bits wide. */
#ifndef PAGESIM_ACCOUNTING_H
#define PAGESIM_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/kv_policy.h"

typedef unsigned __int128 u128;

enum state {
    STATE_LIVE,
    STATE_DEAD,
    STATE_RESERVED,
    STATE_INTERNAL,
    STATE_ROUNDING,
    STATE_CACHED,
    STATE_CACHED_PINNED,
    STATE_STRANDED,
    STATE_FREE,
    STATE_OVERHEAD,
    STATE_COUNT,
};
extern const char *const state_names[STATE_COUNT];

/* One request's part of the sums, kept by its owner. All zero: holds nothing. */
struct account {
    uint64_t reserved_tokens, internal_tokens, dead_tokens;
};

/* Everything that is integrated over time besides the states. */
struct levels {
    uint64_t state_bytes[STATE_COUNT];
    uint64_t referenced_bytes;    /* held, were nothing shared */
    uint64_t held_bytes;
    uint64_t one_obtainable_bytes; /* what a single allocation could obtain */
    uint64_t running_seqs;
    bool head_refused_though_free; /* the head of the queue was refused with E >= ask */
};

struct integrals {
    u128 time; /* nanoseconds, or requests when runs take no time */
    u128 state_byte_time[STATE_COUNT];
    u128 referenced_byte_time, held_byte_time, one_obtainable_byte_time, running_time,
        head_refused_time;
};

/* The first demand refused in a pass and still unmet at its end. */
struct probe {
    bool present;
    struct kv_demand demand;
    uint64_t ask_units;
    uint64_t headroom_units; /* kept back by the scheduler from what is obtainable */
};

struct accounting {
    struct kv_policy *policy;
    uint64_t pool_bytes, bytes_per_token, window_tokens;
    uint64_t reserved_tokens, internal_tokens, dead_tokens; /* sums over accounts */
    uint64_t lent_bytes; /* of the held ones: to the device's activations (sim/edge.h); a part of overhead */
    struct levels now;
    uint64_t time; /* up to which the integrals go */
    bool saturated;
    bool layout_changed; /* units were taken or given back since one_obtainable_bytes was asked for */
    uint64_t window_begin, window_end; /* only time inside counts */
    struct integrals whole, saturated_time;
    uint64_t running_seqs_max;
    /* Told each stretch of constant levels, before clipping to the window; may be NULL. */
    void (*stretch)(void *context, const struct levels *levels, uint64_t begin, uint64_t end);
    void *stretch_context;
    /* Dead tokens in all when sequences share blocks under a sliding window: the sum over accounts counts a
     * shared one several times, and one that another sequence still reads as well. NULL: no window. */
    uint64_t (*count_dead)(void *context);
    void *count_dead_context;
};

void accounting_init(struct accounting *a, struct kv_policy *policy,
                     const struct kv_geometry *geometry);

/* Renews one request's part after anything about it changed. seqs are its sequences that exist, the
 * first filled_count of them filled to filled_tokens, the rest empty; computed_tokens is where its next
 * query starts (for the sliding window); final_tokens as in docs/metrics.md. */
void accounting_update(struct accounting *a, struct account *account, const kv_seq *seqs,
                       uint32_t seq_count, uint32_t filled_count, uint64_t filled_tokens,
                       uint64_t computed_tokens, uint64_t final_tokens);
/* The same for a request of which only this has changed: each of its sequences, all filled to filled_tokens and sharing
 * nothing that is not full, has got so many empty slots more. */
void accounting_add_slots(struct accounting *a, struct account *account, uint32_t seq_count, uint64_t filled_tokens,
                          uint64_t slots_each, uint64_t final_tokens);
/* Units were taken or given back. */
static inline void accounting_touch(struct accounting *a)
{
    a->layout_changed = true;
}

/* The request gave everything back. */
void accounting_close(struct accounting *a, struct account *account);

/* The levels from now on, after a pass (with its probe) or after a step's end (probe NULL).
 * Asserts that the states add up to the pool. */
void accounting_set(struct accounting *a, uint64_t running_seqs, bool saturated,
                    const struct probe *probe);
/* Integrates the present levels up to time; time never goes back. */
void accounting_advance(struct accounting *a, uint64_t time);

/* Bytes of the running requests by use, for the proof sum of a refusal. */
struct running_use {
    uint64_t live_bytes, reserved_bytes, internal_bytes; /* internal: with rounding and dead */
};
struct running_use accounting_running_use(const struct accounting *a);

#endif
