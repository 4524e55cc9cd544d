/* Refusals: demands for memory that were turned down, why, and for how long (docs/metrics.md).
 *
 * A demand is one request's wish for memory, at admission or for growth. A refusal is an *episode*: it
 * opens at the first refused attempt and closes when the demand is met or dropped, however many
 * attempts were made in between. The policy only says no; what the no means is worked out here. */
#ifndef PAGESIM_REFUSALS_H
#define PAGESIM_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/kv_policy.h"
#include "sim/accounting.h"

/* In the order in which each covers what it withholds; the last three share the rest. */
enum cause {
    CAUSE_CONTIGUITY,
    CAUSE_REQUEST_ROUNDING,
    CAUSE_STRANDED_PAGE,
    CAUSE_IDLE_MAPPED,
    CAUSE_GROUP_MISMATCH,
    CAUSE_WATERMARK,
    CAUSE_OVER_RESERVATION,
    CAUSE_GRANULARITY,
    CAUSE_PINNED,
    CAUSE_POOL_BOUNDARY,
    CAUSE_CAPACITY,
    CAUSE_RESERVATION,
    CAUSE_INTERNAL,
    CAUSE_COUNT,
};
extern const char *const cause_names[CAUSE_COUNT];

/* In rising order: an episode's class is the highest that it reached. */
enum refusal_class { CLASS_CAPACITY, CLASS_DESPITE_UNUSED, CLASS_DESPITE_FREE, CLASS_COUNT };
extern const char *const class_names[CLASS_COUNT];
#define REFUSAL_KINDS 3
extern const char *const demand_kind_names[REFUSAL_KINDS]; /* by enum kv_demand_kind, then `device` */

/* The facts at one refused attempt. Units are the policy's. */
struct refusal_facts {
    uint64_t unit_bytes;
    bool contiguous;
    bool device;             /* the device's demand, in bytes: activations or a library's buffer (sim/edge.h) */
    struct kv_demand demand;
    uint64_t ask_units;        /* > obtainable_units */
    uint64_t need_units;       /* of ask: will hold a token before the sequence ends */
    uint64_t first_part_units; /* the ask for the first chunk alone; == ask when nothing more was asked */
    uint64_t e_units;          /* unallocated plus evictable */
    uint64_t r_units;          /* longest free run by address */
    uint64_t headroom_units;   /* obtainable, but kept back by the scheduler */
    uint64_t a_units;          /* obtainable, headroom deducted */
    uint64_t pinned_units;
    uint64_t idle_units;     /* kept by the device's caching allocator */
    uint64_t boundary_units; /* on the other side of the pool's boundary, free */
    struct running_use use;
};

/* Which of demand_kind_names. */
int refusal_kind(const struct refusal_facts *facts);

/* Why one attempt failed: the parts sum to the shortfall, ask - obtainable. In bytes, since the last three divide
 * what may be a single block; class and primary are judged on the exact fractions. */
struct proof {
    uint64_t shortfall_units;
    u128 parts_bytes[CAUSE_COUNT];
    enum cause primary; /* the largest part; the first of equals */
    enum refusal_class class;
};
void proof_make(struct proof *proof, const struct refusal_facts *facts);

/* Most bytes a pool may hold that are still reported per cause as byte-time: 128 bits, so any. */
struct refusal_totals {
    uint64_t episodes, requests;
    uint64_t by_kind[REFUSAL_KINDS];
    uint64_t by_class[CLASS_COUNT];
    uint64_t by_cause[CAUSE_COUNT]; /* episodes by primary cause of their first attempt */
    u128 byte_time_by_cause[CAUSE_COUNT];
    uint64_t slots; /* episodes of the head waiting for a place among max_num_seqs */
};

struct episode {
    bool open;
    uint64_t number; /* in the order of opening, from 1; 0: opened outside the window */
    uint64_t request_index;
    uint64_t begin, last_attempt; /* times */
    uint64_t attempts;
    struct refusal_facts facts; /* at the first attempt */
    struct proof proof;         /* at the first attempt */
    struct proof latest;        /* at the last attempt */
    enum refusal_class class;
    uint64_t time_in_class[CLASS_COUNT];
    u128 byte_time; /* missing bytes times the time for which they were missing */
};

/* Keeps one episode of a run, and counts those of one request: for questions that are asked afterwards. */
struct refusal_watch {
    uint64_t number;  /* which episode is kept; 0: the worst, most byte_time, then shortfall, then the first */
    uint64_t request; /* whose episodes are counted; UINT64_MAX: nobody's */
    bool seen;        /* there was such an episode; it and its end follow */
    struct episode episode;
    uint64_t end;
    uint64_t request_episodes, request_time; /* number and total length */
    bool request_unservable;
};

struct refusals {
    struct refusal_totals totals;
    uint64_t window_begin, window_end; /* episodes that open inside count, up to the end */
    /* Told every episode when it closes; may be NULL. */
    void (*closed)(void *context, const struct episode *episode, uint64_t end);
    void *closed_context;
    uint64_t opened; /* episodes inside the window */
    struct refusal_watch *watch; /* the caller's, or NULL */
};

/* A refused attempt of the demand that owns `episode` (all zero before its first). *counted_request is
 * the owner's flag: whether the request already counts among those with a refusal. */
void refusals_attempt(struct refusals *r, struct episode *episode, bool *counted_request,
                      uint64_t request_index, const struct refusal_facts *facts, uint64_t time);
/* The demand was met or dropped; nothing happens when no episode is open. */
void refusals_close(struct refusals *r, struct episode *episode, uint64_t time);

#endif
