#include "allocator/kv_check.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The wrapper has a table of its own in each object, because which optional functions are there depends on
 * the policy inside. */
struct kv_checker {
    struct kv_policy base;
    struct kv_policy_ops ops;
    struct kv_policy *inner;
    struct kv_geometry geometry;
    uint64_t walk_every;
    uint64_t calls;
    kv_check_handler handler;
    void *context;
    struct kv_seq_facts *before; /* [max_seqs] of the sequences of the call under way */
    uint32_t *holders;           /* [usable_units + 1], of policies with block tables; else NULL */
};

static void stop_with_message(void *context, uint64_t call_number, const char *call,
                              const char *policy_name, const char *what)
{
    (void)context;
    fprintf(stderr, "pagesim: policy %s: call %llu (%s): %s\n", policy_name, (unsigned long long)call_number, call,
            what);
    abort();
}

static struct kv_checker *as_checker(const struct kv_policy *policy)
{
    return (struct kv_checker *)policy;
}

static void violation(const struct kv_checker *c, const char *call, const char *what)
{
    c->handler(c->context, c->calls, call, c->base.ops->name, what);
}

static void check_sums(const struct kv_checker *c, const char *call)
{
    struct kv_facts f;
    c->inner->ops->facts(c->inner, &f);
    uint64_t parts[] = { f.held_bytes, f.cached_bytes, f.pinned_bytes, f.free_bytes, f.overhead_bytes };
    uint64_t left = c->geometry.pool_bytes;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i] > left) {
            violation(c, call, "the facts add up to more than the pool");
            return;
        }
        left -= parts[i];
    }
    if (left != 0)
        violation(c, call, "the facts add up to less than the pool");
    if (f.rounding_bytes > f.held_bytes)
        violation(c, call, "more rounding than held");
    /* A sequence holds at least its own units, so what nobody shares cannot exceed what all refer to. */
    if (f.referenced_bytes < f.held_bytes)
        violation(c, call, "sequences refer to fewer bytes than are held");
}

/* Adds a sequence's table to the counts of holders. Block 0 stands for nothing: blocks are numbered from 1. */
static uint64_t count_table(const struct kv_checker *c, uint32_t seq, const char *call)
{
    uint32_t entries;
    uint64_t held = 0;
    const kv_block *table = c->inner->ops->table(c->inner, (kv_seq){ seq }, &entries);
    for (uint32_t i = 0; i < entries; i++) {
        if (table[i] == 0)
            continue;
        if (table[i] > c->inner->usable_units) {
            violation(c, call, "a table has a block that does not exist");
            return held;
        }
        c->holders[table[i]]++;
        held++;
    }
    return held;
}

/* All tables from first principles: what they hold is what the facts say, and nothing of it is in the free queue. */
static void check_tables(const struct kv_checker *c, const char *call)
{
    const struct kv_policy *inner = c->inner;
    uint64_t entries = 0, distinct = 0, units = inner->usable_units + 1;
    struct kv_facts f;
    memset(c->holders, 0, units * sizeof *c->holders);
    for (uint32_t s = 0; s < c->geometry.max_seqs; s++)
        entries += count_table(c, s, call);
    for (uint64_t b = 0; b < units; b++)
        distinct += c->holders[b] > 0;
    inner->ops->facts(inner, &f);
    if (distinct * inner->unit_bytes != f.held_bytes)
        violation(c, call, "the blocks in the tables are not those that the facts call held: one is missing, or given out twice");
    if (entries * inner->unit_bytes != f.referenced_bytes)
        violation(c, call, "the tables have not as many entries as the facts say");
}

static void end_call(const struct kv_checker *c, const char *call)
{
    check_sums(c, call);
    if (c->calls % c->walk_every != 0)
        return;
    const char *wrong = c->inner->ops->check != NULL ? c->inner->ops->check(c->inner) : NULL;
    if (wrong != NULL)
        violation(c, call, wrong);
    if (c->holders != NULL)
        check_tables(c, call);
}

static void begin_call(struct kv_checker *c, const kv_seq *seqs, uint32_t count, const char *call)
{
    c->calls++;
    if (count > c->geometry.max_seqs)
        violation(c, call, "more sequences than exist");
    for (uint32_t k = 0; k < count; k++)
        if (seqs[k].index >= c->geometry.max_seqs)
            violation(c, call, "a sequence's index is out of range");
}

/* --- calls that can be refused ------------------------------------------------------------- */

static bool same_facts(const struct kv_facts *a, const struct kv_facts *b)
{
    return memcmp(a, b, sizeof *a) == 0; /* eight-byte members only: no padding */
}

static bool same_seq_facts(const struct kv_seq_facts *a, const struct kv_seq_facts *b)
{
    return a->first_token == b->first_token && a->end_token == b->end_token &&
           a->tail_holders == b->tail_holders;
}

static void remember_seqs(struct kv_checker *c, const struct kv_ask *ask)
{
    for (uint32_t k = 0; k < ask->seq_count; k++)
        c->inner->ops->seq_facts(c->inner, ask->seqs[k], &c->before[k]);
}

static void check_unchanged(const struct kv_checker *c, const struct kv_ask *ask,
                            const struct kv_facts *before, const char *call)
{
    struct kv_facts after;
    c->inner->ops->facts(c->inner, &after);
    if (!same_facts(before, &after))
        violation(c, call, "a refused call changed the facts");
    for (uint32_t k = 0; k < ask->seq_count; k++) {
        struct kv_seq_facts seq_after;
        c->inner->ops->seq_facts(c->inner, ask->seqs[k], &seq_after);
        if (!same_seq_facts(&c->before[k], &seq_after))
            violation(c, call, "a refused call changed a sequence");
    }
}

static void check_granted(const struct kv_checker *c, const struct kv_ask *ask, const char *call)
{
    uint32_t filled = strcmp(call, "admit") == 0 ? 1 : ask->seq_count;
    for (uint32_t k = 0; k < filled; k++) {
        struct kv_seq_facts f;
        c->inner->ops->seq_facts(c->inner, ask->seqs[k], &f);
        if (f.end_token < ask->slots_tokens)
            violation(c, call, "a granted call left a sequence short of slots");
    }
}

typedef enum kv_status (*ask_function)(struct kv_policy *, const struct kv_ask *, struct kv_taken *);

static enum kv_status checked_ask(struct kv_checker *c, ask_function function, const struct kv_ask *ask,
                                  struct kv_taken *taken, const char *call)
{
    struct kv_facts before;
    begin_call(c, ask->seqs, ask->seq_count, call);
    if (ask->slots_tokens > c->geometry.max_seq_tokens)
        violation(c, call, "more slots asked than a sequence may have");
    c->inner->ops->facts(c->inner, &before);
    remember_seqs(c, ask);
    bool admission = strcmp(call, "admit") == 0;
    const struct kv_demand demand = { .kind = admission ? KV_ADMISSION : KV_GROWTH, .something_runs = ask->something_runs,
                                      .pieces = admission ? ask->seq_count : 1 };
    uint64_t obtainable = c->inner->ops->table != NULL ? c->inner->ops->obtainable(c->inner, &demand) : 0;
    enum kv_status status = function(c->inner, ask, taken);
    if (status == KV_OK)
        check_granted(c, ask, call);
    else
        check_unchanged(c, ask, &before, call);
    /* Asking a general-purpose allocator may leave traces in it, so only policies with blocks are held to their word. */
    bool exact = c->inner->ops->table != NULL;
    if (exact && status == KV_OK && taken->ask_units > obtainable)
        violation(c, call, "more was granted than it had called obtainable");
    if (exact && status == KV_NO_SPACE && taken->ask_units <= obtainable)
        violation(c, call, "what it calls obtainable was refused");
    if (taken->need_units > taken->ask_units)
        violation(c, call, "a part of the ask exceeds the ask");
    end_call(c, call);
    return status;
}

static enum kv_status check_admit(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken)
{
    struct kv_checker *c = as_checker(policy);
    return checked_ask(c, c->inner->ops->admit, ask, taken, "admit");
}

static enum kv_status check_extend(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken)
{
    struct kv_checker *c = as_checker(policy);
    enum kv_status status = checked_ask(c, c->inner->ops->extend, ask, taken, "extend");
    if (status == KV_NEVER_FITS)
        violation(c, "extend", "growth was answered with never fits");
    return status;
}

/* --- calls that cannot --------------------------------------------------------------------- */

static void check_lookup(struct kv_policy *policy, const uint64_t *keys, uint64_t tokens, struct kv_hit *hit)
{
    struct kv_checker *c = as_checker(policy);
    begin_call(c, NULL, 0, "lookup");
    c->inner->ops->lookup(c->inner, keys, tokens, hit);
    if (hit->tokens >= tokens)
        violation(c, "lookup", "a hit leaves no token to compute");
    if (hit->first_block > hit->blocks || hit->free_blocks > hit->blocks - hit->first_block)
        violation(c, "lookup", "the parts of a hit exceed it");
    end_call(c, "lookup");
}

static void check_fork(struct kv_policy *policy, kv_seq parent, const kv_seq *children, uint32_t count,
                       uint64_t filled_tokens)
{
    struct kv_checker *c = as_checker(policy);
    begin_call(c, children, count, "fork");
    if (parent.index >= c->geometry.max_seqs)
        violation(c, "fork", "a sequence's index is out of range");
    c->inner->ops->fork(c->inner, parent, children, count, filled_tokens);
    for (uint32_t k = 0; k < count; k++) {
        struct kv_seq_facts f;
        c->inner->ops->seq_facts(c->inner, children[k], &f);
        if (f.end_token < filled_tokens)
            violation(c, "fork", "a child lacks slots for its tokens");
    }
    end_call(c, "fork");
}

static void check_trim(struct kv_policy *policy, kv_seq seq, uint64_t first_token)
{
    struct kv_checker *c = as_checker(policy);
    begin_call(c, &seq, 1, "trim");
    c->inner->ops->trim(c->inner, seq, first_token);
    end_call(c, "trim");
}

static void check_release(struct kv_policy *policy, const kv_seq *seqs, uint32_t count)
{
    struct kv_checker *c = as_checker(policy);
    begin_call(c, seqs, count, "release");
    c->inner->ops->release(c->inner, seqs, count);
    for (uint32_t k = 0; k < count; k++) {
        struct kv_seq_facts f;
        c->inner->ops->seq_facts(c->inner, seqs[k], &f);
        if (f.end_token != 0)
            violation(c, "release", "a released sequence still has slots");
    }
    end_call(c, "release");
}

/* --- questions ----------------------------------------------------------------------------- */

static void check_facts(const struct kv_policy *policy, struct kv_facts *facts)
{
    as_checker(policy)->inner->ops->facts(as_checker(policy)->inner, facts);
}

static void check_seq_facts(const struct kv_policy *policy, kv_seq seq, struct kv_seq_facts *facts)
{
    as_checker(policy)->inner->ops->seq_facts(as_checker(policy)->inner, seq, facts);
}

static uint64_t check_obtainable(struct kv_policy *policy, const struct kv_demand *demand)
{
    struct kv_checker *c = as_checker(policy);
    uint64_t units = c->inner->ops->obtainable(c->inner, demand);
    if (units > c->inner->usable_units)
        violation(c, "obtainable", "more than the pool is obtainable");
    return units;
}

static uint64_t check_largest_run(struct kv_policy *policy, uint32_t pieces)
{
    return as_checker(policy)->inner->ops->largest_run(as_checker(policy)->inner, pieces);
}

static uint64_t check_units_for(const struct kv_policy *policy, const struct kv_request *request,
                                uint64_t tokens, bool forked)
{
    return as_checker(policy)->inner->ops->units_for(as_checker(policy)->inner, request, tokens, forked);
}

static uint64_t check_largest_piece(const struct kv_policy *policy)
{
    return as_checker(policy)->inner->ops->largest_piece(as_checker(policy)->inner);
}

static const kv_block *check_table(const struct kv_policy *policy, kv_seq seq, uint32_t *count)
{
    return as_checker(policy)->inner->ops->table(as_checker(policy)->inner, seq, count);
}

static uint64_t check_free_queue(const struct kv_policy *policy, kv_block *out, uint64_t cap)
{
    return as_checker(policy)->inner->ops->free_queue(as_checker(policy)->inner, out, cap);
}

static void check_cache_facts(const struct kv_policy *policy, struct kv_cache_facts *facts)
{
    as_checker(policy)->inner->ops->cache_facts(as_checker(policy)->inner, facts);
}

static bool check_clock(struct kv_policy *policy, uint64_t now_ns)
{
    struct kv_checker *c = as_checker(policy);
    struct kv_facts before, after;
    begin_call(c, NULL, 0, "clock");
    c->inner->ops->facts(c->inner, &before);
    bool ended = c->inner->ops->clock(c->inner, now_ns);
    c->inner->ops->facts(c->inner, &after);
    if (before.held_bytes != after.held_bytes || before.pinned_bytes < after.pinned_bytes)
        violation(c, "clock", "time alone changed what is held, or pinned more");
    if (ended != (before.pinned_bytes != after.pinned_bytes))
        violation(c, "clock", "whether a pin has ended is not what the facts say");
    if (c->inner->ops->next_unpin(c->inner) <= now_ns)
        violation(c, "clock", "a pin has outlived its time");
    end_call(c, "clock");
    return ended;
}

static uint64_t check_next_unpin(const struct kv_policy *policy)
{
    const struct kv_checker *c = as_checker(policy);
    struct kv_facts facts;
    uint64_t next = c->inner->ops->next_unpin(c->inner);
    c->inner->ops->facts(c->inner, &facts);
    if ((next != UINT64_MAX) != (facts.pinned_bytes > 0))
        violation(c, "next_unpin", "it does not agree with the pinned bytes");
    return next;
}

static void check_expect(struct kv_policy *policy, uint64_t key, bool expected)
{
    struct kv_checker *c = as_checker(policy);
    begin_call(c, NULL, 0, "expect");
    c->inner->ops->expect(c->inner, key, expected);
    end_call(c, "expect");
}

static bool check_pinned(const struct kv_policy *policy, kv_block block)
{
    return as_checker(policy)->inner->ops->pinned(as_checker(policy)->inner, block);
}

static bool check_keyed(const struct kv_policy *policy, kv_block block, uint64_t *key)
{
    return as_checker(policy)->inner->ops->keyed(as_checker(policy)->inner, block, key);
}

static void check_region(const struct kv_policy *policy, kv_seq seq, struct kv_region *region)
{
    as_checker(policy)->inner->ops->region(as_checker(policy)->inner, seq, region);
}

static const char *check_walk(const struct kv_policy *policy)
{
    return as_checker(policy)->inner->ops->check(as_checker(policy)->inner);
}

static void check_foreseen(struct kv_policy *policy, const uint64_t *keys, uint64_t count)
{
    struct kv_checker *c = as_checker(policy);
    begin_call(c, NULL, 0, "foreseen");
    c->inner->ops->foreseen(c->inner, keys, count);
    end_call(c, "foreseen");
}

static void check_destroy(struct kv_policy *policy)
{
    struct kv_checker *c = as_checker(policy);
    kv_destroy(c->inner);
    free(c->before);
    free(c->holders);
    free(c);
}

/* Optional entries stay NULL where the policy inside has none, so that callers see the same policy. */
static struct kv_policy_ops wrapper_table(const struct kv_policy_ops *inner)
{
    struct kv_policy_ops ops = *inner;
    ops.create = NULL; /* made by kv_check_wrap alone */
    ops.destroy = check_destroy;
    ops.lookup = inner->lookup != NULL ? check_lookup : NULL;
    ops.admit = check_admit;
    ops.extend = check_extend;
    ops.fork = check_fork;
    ops.trim = inner->trim != NULL ? check_trim : NULL;
    ops.release = check_release;
    ops.facts = check_facts;
    ops.seq_facts = check_seq_facts;
    ops.obtainable = check_obtainable;
    ops.largest_run = inner->largest_run != NULL ? check_largest_run : NULL;
    ops.units_for = check_units_for;
    ops.largest_piece = check_largest_piece;
    ops.table = inner->table != NULL ? check_table : NULL;
    ops.free_queue = inner->free_queue != NULL ? check_free_queue : NULL;
    ops.cache_facts = inner->cache_facts != NULL ? check_cache_facts : NULL;
    ops.check = inner->check != NULL ? check_walk : NULL;
    ops.foreseen = inner->foreseen != NULL ? check_foreseen : NULL;
    ops.clock = inner->clock != NULL ? check_clock : NULL;
    ops.next_unpin = inner->next_unpin != NULL ? check_next_unpin : NULL;
    ops.expect = inner->expect != NULL ? check_expect : NULL;
    ops.pinned = inner->pinned != NULL ? check_pinned : NULL;
    ops.keyed = inner->keyed != NULL ? check_keyed : NULL;
    ops.region = inner->region != NULL ? check_region : NULL;
    return ops;
}

struct kv_policy *kv_check_wrap(struct kv_policy *inner, const struct kv_geometry *geometry,
                                uint64_t walk_every, kv_check_handler handler, void *context)
{
    assert(walk_every >= 1);
    struct kv_checker *c = calloc(1, sizeof *c);
    struct kv_seq_facts *before = calloc(geometry->max_seqs, sizeof *before);
    uint32_t *holders = inner->ops->table != NULL ? calloc(inner->usable_units + 1, sizeof *holders) : NULL;
    if (c == NULL || before == NULL || (holders == NULL && inner->ops->table != NULL)) {
        free(c);
        free(before);
        free(holders);
        return NULL;
    }
    c->base = *inner;
    c->ops = wrapper_table(inner->ops);
    c->base.ops = &c->ops;
    c->inner = inner;
    c->geometry = *geometry;
    c->walk_every = walk_every;
    c->handler = handler != NULL ? handler : stop_with_message;
    c->context = context;
    c->before = before;
    c->holders = holders;
    return &c->base;
}
