/* The contract between the simulator and an allocation policy.
 *
 * A policy manages the KV pool of one device: it hands units (blocks, slots or pages) to sequences,
 * takes them back, and reports physical facts. It knows slots, blocks, bytes, sequences and content
 * keys; it knows no traces or files, and time only where cached content is pinned for a while. What a refusal or an unused byte *means* is decided
 * outside (sim/accounting.h, sim/refusals.h), in one place for all policies.
 *
 * Words: a *token slot* is room for the keys and values of one token. A *unit* is what the policy
 * hands out: a block, or a slot for contiguous policies. A *sequence* is one stream of tokens; a
 * request with n samples has n sequences, which share the prompt (where the policy can share).
 *
 * Rules that hold for every policy, and that kv_check.h verifies after each call:
 *  - A refused call (anything but KV_OK) changes nothing that a fact, a table or a later call shows.
 *  - create() allocates everything; no call after it allocates memory or fails for want of it.
 *  - Nobody keeps a pointer that the caller passed beyond the call.
 *  - held + cached + pinned + free + overhead == pool_bytes at any time (struct kv_facts).
 *
 * Not thread-safe: one policy object belongs to one thread; different objects are independent. */
#ifndef PAGESIM_KV_POLICY_H
#define PAGESIM_KV_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/kv_option.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KV_ABI_VERSION 2u

/* A sequence, an index below kv_geometry.max_seqs. The caller chooses free indices, lowest first. */
typedef struct {
    uint32_t index;
} kv_seq;

/* A block's number. 0 is the null block where the rule set has one. */
typedef uint32_t kv_block;
#define KV_BLOCK_NONE UINT32_MAX

enum kv_status {
    KV_OK,         /* done */
    KV_NO_SPACE,   /* refused now; may succeed when others give memory back. Nothing changed. */
    KV_NEVER_FITS, /* admission only: exceeds even an empty pool. Nothing changed. */
};

/* Rule sets of vLLM v1, by date of the engine. They differ in where freed blocks without a key
 * join the free queue, in the watermark, in look-ahead at admission (golden/vllm-v1 README). */
enum kv_rules { KV_RULES_2026_08, KV_RULES_2026_04 };

/* What every policy is created for. All sizes are fixed for the policy's life. */
struct kv_geometry {
    uint64_t pool_bytes;       /* bytes given to the KV cache, > 0 */
    uint64_t bytes_per_token;  /* bytes of one token slot, > 0 */
    uint32_t block_tokens;     /* slots of a block, > 0; contiguous policies ignore it */
    uint32_t max_seqs;         /* sequences that can exist at once, > 0 */
    uint64_t max_seq_tokens;   /* max_model_len: most slots one sequence can have, > 0 */
    uint64_t lookahead_tokens; /* most slots asked beyond a sequence's tokens */
    uint64_t window_tokens;    /* sliding window W of the attention, 0 = full attention */
    double watermark;          /* share of num_blocks kept back at admission while something runs */
    enum kv_rules rules;
};

/* Told of things that happen inside a call, for logs and step lines. Every member may be NULL. */
struct kv_observer {
    void *context;
    /* A block that carried `key` was taken for other use and lost the key. */
    void (*evicted)(void *context, kv_block block, uint64_t key);
    /* Copy-on-write: the content of `from` was copied to `to`. */
    void (*copied)(void *context, kv_block from, kv_block to);
    /* A question, of policies with queue_requests: whether one of the first waiting requests will look for the key, which a
     * block carries from now on. NULL: no. */
    bool (*expected)(void *context, uint64_t key);
    /* A question, of policies that foresee: when will somebody look for this key next? The number of a request, UINT64_MAX:
     * nobody will. NULL: nobody will for any. */
    uint64_t (*next_use)(void *context, uint64_t key);
};

/* A request as a policy may see it. */
struct kv_request {
    uint64_t prompt_tokens;
    uint64_t max_tokens;    /* output limit that the client declared, >= 1 */
    uint64_t output_tokens; /* true output length: only policies marked KV_CLAIRVOYANT may look */
    uint64_t final_tokens;  /* true final KV tokens of one sequence: likewise */
    uint32_t samples;       /* n >= 1 */
    int64_t priority;       /* smaller is more urgent, 0 by default */
    uint32_t category;      /* of policies with tells_kinds: turn of its conversation, see struct kv_kind; else 0 */
};

/* Result of a prefix look-up: the leading blocks whose content the pool holds. */
struct kv_hit {
    uint64_t tokens;       /* hit tokens: blocks * block_tokens, or 0 */
    uint32_t blocks;       /* leading table entries that the hit covers (null ones included) */
    uint32_t free_blocks;  /* how many of the hit blocks nobody holds now and could be evicted */
    uint32_t first_block;  /* entries before it are null blocks (sliding window), else 0 */
    const kv_block *ids;   /* blocks entries, policy's own; valid until the next call of any kind */
};

/* One ask, by admission or growth. All sequences of a call have the same length; growth is all or
 * nothing for all of them together. */
struct kv_ask {
    const struct kv_request *request;
    const kv_seq *seqs;        /* seq_count sequences */
    uint32_t seq_count;        /* admission: == request->samples, of which only seqs[0] is filled
                                  until fork; growth: 1 before the fork, samples after it */
    bool something_runs;       /* admission: other sequences run, so the watermark applies */
    uint64_t computed_tokens;  /* tokens whose KV is there before this step, hits included */
    uint64_t filled_tokens;    /* computed plus scheduled now: slots that will hold a token */
    uint64_t slots_tokens;     /* slots wanted in all: filled plus look-ahead, at most max_seq_tokens;
                                  >= filled_tokens */
    uint64_t keyed_tokens;     /* blocks wholly below this get their key now; 0: none */
    const uint64_t *const *keys; /* seq_count chains; keys[s][i] is the content key of block i of
                                  sequence s, readable for all i < keyed_tokens / block_tokens.
                                  NULL for policies that do not cache */
    const struct kv_hit *hit;  /* admission: the look-up just made, or NULL */
    uint64_t whole_tokens;     /* admission: refuse unless this many tokens would fit now (the whole
                                  prompt); 0: no such check */
    uint64_t whole_blocks_max; /* at most this many blocks count for that check; 0: no limit */
};

/* What a call took or would have taken, filled in for every status. */
struct kv_taken {
    uint64_t ask_units;   /* what the demand takes out of unallocated and evictable units, hit blocks
                             that nobody holds included, unless pinned. For a refused whole-prompt check: that ask. */
    uint64_t need_units;  /* the units of ask that will hold a token before the sequence ends */
    uint32_t new_blocks;  /* blocks newly put at the end of the (single) sequence's table */
};

/* Physical facts about the pool, in bytes. They add up to kv_geometry.pool_bytes. */
struct kv_facts {
    uint64_t held_bytes;     /* in units that at least one sequence holds, each unit once */
    uint64_t rounding_bytes; /* of held: what the allocator added above what was asked */
    uint64_t cached_bytes;   /* nobody holds it, content known, can be evicted at will */
    uint64_t pinned_bytes;   /* the same, but may not be evicted now */
    uint64_t free_bytes;     /* unallocated, whether or not anybody could obtain it */
    uint64_t overhead_bytes; /* null block, remainder below one unit, metadata inside the pool */
    uint64_t referenced_bytes; /* what the same sequences would hold if nothing were shared */
};

/* What a caching policy holds. */
struct kv_cache_facts {
    uint64_t keyed_blocks;   /* carry a key now, held or not; duplicates count each */
    uint64_t distinct_keys;  /* different keys among them */
    uint64_t duplicate_keys; /* since the start: keys given while another block carried the same */
    uint64_t evicted_blocks; /* since the start: keys lost because a block was taken for other use; as often as an
                                observer was told */
    uint64_t generation;     /* changes whenever a key is added or lost, so that a look-up's answer can
                                be remembered */
};

/* Where one sequence's slots are. */
struct kv_seq_facts {
    uint64_t first_token;  /* slots before it were given back (sliding window), else 0 */
    uint64_t end_token;    /* one past the last slot that was asked for and granted */
    uint32_t tail_holders; /* sequences that hold the unit with this sequence's last filled token:
                              1 unless a partial block is shared after a fork */
};

/* Where one sequence's region is, in units from the start of the pool. */
struct kv_region {
    uint64_t first_unit;
    uint64_t asked_units; /* 0: it has none */
    uint64_t taken_units; /* asked, and what the allocator added behind it */
};

enum kv_demand_kind { KV_ADMISSION, KV_GROWTH };

struct kv_demand {
    enum kv_demand_kind kind;
    bool something_runs;
    uint32_t pieces; /* equal regions wanted at once (samples); 1 for growth. Policies whose units
                        fit anywhere ignore it */
};

enum kv_flags {
    KV_CACHES = 1 << 0,      /* keeps content for reuse: lookup is there, keys are wanted */
    KV_CONTIGUOUS = 1 << 1,  /* a sequence is one region of the address space */
    KV_RESERVES = 1 << 2,    /* takes everything at admission; growth never asks for more */
    KV_CLAIRVOYANT = 1 << 3, /* looks at true lengths that no server knows, in every configuration */
    KV_TOKEN_UNITS = 1 << 4, /* block size is always 1 token whatever block_tokens says */
};

struct kv_policy {
    const struct kv_policy_ops *ops;
    uint64_t unit_bytes;    /* bytes of one unit */
    uint64_t total_units;   /* units of the pool, null block included: num_blocks for block policies */
    uint64_t usable_units;  /* units that can be handed out */
    uint32_t block_tokens;  /* slots a block has in this policy; 0 for contiguous ones */
    bool clairvoyant;       /* flag or option value (reserve pow2, oracle, ...) makes it so */
    bool keys_may_wait;     /* KV_CACHES: of content that was never in the pool before, until a block is looked for or released, all
                               is the same whether it has got its key or will get it later */
    bool foresees;          /* asks the observer for next uses, which makes it clairvoyant: a heuristic, no bound, as what is evicted
                               decides what runs when. foreseen is there */
    bool tells_kinds;       /* an order of eviction tells requests apart by priority and category */
    bool keeps_time;        /* pins end with time: clock and next_unpin are there, and count */
    uint64_t queue_requests; /* of so many waiting requests, the first ones, it wants to be told the keys: expect is there */
};

/* Required unless marked optional. Callers use the kv_* functions below. */
struct kv_policy_ops {
    uint32_t abi_version;
    uint32_t flags; /* enum kv_flags */
    const char *name;
    const char *summary; /* one line */
    const char *source;  /* paper section or engine version whose rule it implements */
    const char *description; /* what it does step by step, costs, what it shows; a paragraph, or NULL */
    const struct kv_option *const *options; /* NULL-terminated; may be NULL */

    /* Makes a policy. values[] is parallel to options; where one of these chooses an eviction order (its choices are
     * kv_eviction_choices), the values of that order's own options follow behind all of them. On failure returns NULL and writes one line
     * (what was found, what was expected) to why[0..why_bytes). observer may be NULL; it is copied. */
    struct kv_policy *(*create)(const struct kv_geometry *geometry, const struct kv_value *values,
                                const struct kv_observer *observer, char *why, size_t why_bytes);
    void (*destroy)(struct kv_policy *policy);

    /* Optional (KV_CACHES). The longest usable cached prefix of a sequence of `tokens` tokens (prompt
     * plus output so far); at least one token is left to compute. keys[i] is block i's content key,
     * readable for i < (tokens - 1) / block_tokens. Changes nothing. */
    void (*lookup)(struct kv_policy *policy, const uint64_t *keys, uint64_t tokens,
                   struct kv_hit *hit);

    enum kv_status (*admit)(struct kv_policy *policy, const struct kv_ask *ask,
                            struct kv_taken *taken);
    /* KV_OK or KV_NO_SPACE. Copies a shared block before it is written (copy-on-write). */
    enum kv_status (*extend)(struct kv_policy *policy, const struct kv_ask *ask,
                             struct kv_taken *taken);
    /* The children get the parent's first filled_tokens tokens, shared or copied. Admission made room
     * for whatever a copy needs; extend pays for copy-on-write. Cannot be refused. */
    void (*fork)(struct kv_policy *policy, kv_seq parent, const kv_seq *children, uint32_t count,
                 uint64_t filled_tokens);
    /* Optional (sliding window). Gives back whole blocks before first_token of the sequence. */
    void (*trim)(struct kv_policy *policy, kv_seq seq, uint64_t first_token);
    /* Gives back everything the sequences hold (finish, abort, preemption); an empty one is fine. */
    void (*release)(struct kv_policy *policy, const kv_seq *seqs, uint32_t count);

    /* O(1) or O(log n). */
    void (*facts)(const struct kv_policy *policy, struct kv_facts *facts);
    void (*seq_facts)(const struct kv_policy *policy, kv_seq seq, struct kv_seq_facts *facts);
    /* Units of the largest ask of this kind that would succeed now. Changes nothing. */
    uint64_t (*obtainable)(struct kv_policy *policy, const struct kv_demand *demand);
    /* Optional (KV_CONTIGUOUS). Units of the largest ask that fits by address alone, without
     * rounding or alignment: the longest free run for one piece. */
    uint64_t (*largest_run)(struct kv_policy *policy, uint32_t pieces);
    /* Units that a request with `tokens` tokens in each sequence holds on its own in an empty pool;
     * forked: all samples hold them (sharing the prompt where the policy shares). */
    uint64_t (*units_for)(const struct kv_policy *policy, const struct kv_request *request,
                          uint64_t tokens, bool forked);
    /* Units of the largest single piece that an empty pool can give (buddy: its largest chunk). */
    uint64_t (*largest_piece)(const struct kv_policy *policy);

    /* Optional (blocks). The sequence's block table; *count entries, valid until the next call. */
    const kv_block *(*table)(const struct kv_policy *policy, kv_seq seq, uint32_t *count);
    /* Optional (blocks). The free queue in order, head first; writes at most cap, returns its length. */
    uint64_t (*free_queue)(const struct kv_policy *policy, kv_block *out, uint64_t cap);
    /* Optional (KV_CACHES). O(1). */
    void (*cache_facts)(const struct kv_policy *policy, struct kv_cache_facts *facts);
    /* Walks the whole structure and recomputes every fact. NULL when all is well, else one line about
     * the first contradiction (static or policy-owned storage). O(pool). */
    const char *(*check)(const struct kv_policy *policy);

    /* Optional (keeps_time). It is now_ns, never less than before: pins that end by then end. Returns whether one did. */
    bool (*clock)(struct kv_policy *policy, uint64_t now_ns);
    /* Optional (keeps_time). When the first pin of content that nobody holds ends, > the last clock; UINT64_MAX: there is none. */
    uint64_t (*next_unpin)(const struct kv_policy *policy);
    /* Optional (queue_requests). Whether, from now on, one of the first waiting requests will look for this key. */
    void (*expect)(struct kv_policy *policy, uint64_t key, bool expected);

    /* Optional (foresees). The next uses of these keys have changed. */
    void (*foreseen)(struct kv_policy *policy, const uint64_t *keys, uint64_t count);

    /* Optional, for pictures (KV_CACHES). Whether the block carries a key now; which, if key is not NULL. O(1). */
    bool (*keyed)(const struct kv_policy *policy, kv_block block, uint64_t *key);
    /* Optional, for pictures (keeps_time). Of a block with a key that nobody holds. O(1). */
    bool (*pinned)(const struct kv_policy *policy, kv_block block);
    /* Optional, for pictures (KV_CONTIGUOUS). */
    void (*region)(const struct kv_policy *policy, kv_seq seq, struct kv_region *region);
};

/* Every policy's own struct starts with a struct kv_policy. These forward to the table and verify
 * what holds for all policies. */
void kv_destroy(struct kv_policy *policy); /* NULL is fine */
void kv_lookup(struct kv_policy *policy, const uint64_t *keys, uint64_t tokens, struct kv_hit *hit);
enum kv_status kv_admit(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken);
enum kv_status kv_extend(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken);
void kv_fork(struct kv_policy *policy, kv_seq parent, const kv_seq *children, uint32_t count,
             uint64_t filled_tokens);
void kv_trim(struct kv_policy *policy, kv_seq seq, uint64_t first_token);
void kv_release(struct kv_policy *policy, const kv_seq *seqs, uint32_t count);
void kv_get_facts(const struct kv_policy *policy, struct kv_facts *facts);
void kv_get_seq_facts(const struct kv_policy *policy, kv_seq seq, struct kv_seq_facts *facts);
uint64_t kv_obtainable(struct kv_policy *policy, const struct kv_demand *demand);
/* R of a refusal: the longest free run for contiguous policies, else unallocated plus evictable. */
uint64_t kv_largest_run(struct kv_policy *policy, uint32_t pieces);
uint64_t kv_units_for(const struct kv_policy *policy, const struct kv_request *request,
                      uint64_t tokens, bool forked);
/* All zero for a policy that does not cache. */
void kv_get_cache_facts(const struct kv_policy *policy, struct kv_cache_facts *facts);
/* NULL when sound, else what is wrong. Policies without a check are taken at their word. */
const char *kv_check_walk(const struct kv_policy *policy);

/* Registry (kv_registry.c): the built-in policies, made by make from allocator/policies/NAME.c, in the order of the names, then those
 * of plug-ins. */
size_t kv_registry_count(void);
const struct kv_policy_ops *kv_registry_at(size_t i); /* i < count */
const struct kv_policy_ops *kv_registry_find(const char *name); /* NULL when unknown */

/* Adds a plug-in's, whose table and name are sound and new, before threads start. False when there are KV_REGISTRY_ADDED_MAX. */
#define KV_REGISTRY_ADDED_MAX 32
bool kv_registry_add(const struct kv_policy_ops *ops);
bool kv_registry_is_added(const struct kv_policy_ops *ops);

/* Reads the texts of a policy's options into values[KV_OPTIONS_MAX], and behind them the defaults of the chosen eviction
 * order's. texts[i] is parallel to ops->options; NULL means the default. Returns false and writes one line to why on a bad
 * value. */
bool kv_policy_values(const struct kv_policy_ops *ops, const char *const *texts, struct kv_value *values, char *why,
                      size_t why_bytes);

/* Smallest count with count * block_tokens >= tokens. */
static inline uint64_t kv_blocks_for_tokens(uint64_t tokens, uint32_t block_tokens)
{
    return tokens / block_tokens + (tokens % block_tokens != 0);
}

#ifdef __cplusplus
}
#endif

#endif
