/* A plug-in for pagesim: an allocation policy in one file.
 *
 * `bump` gives a request everything at admission, prompt and declared output, in one contiguous region behind the last
 * one; memory comes back only when the last of all requests has ended. What people wrote before they had an
 * allocator, and a lower bound to compare with. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <pagesim/plugin.h>

/* Every policy's own struct begins with the public one. */
struct bump {
    struct kv_policy base;
    struct kv_geometry geometry;
    uint64_t top;   /* slots below it were given out since the pool was empty */
    uint64_t *sizes; /* [max_seqs], slots of a sequence, 0: it has none */
    uint64_t held;  /* their sum */
};

static const struct kv_policy_ops bump_ops;

static struct kv_policy *bump_create(const struct kv_geometry *geometry, const struct kv_value *values,
                                     const struct kv_observer *observer, char *why, size_t why_bytes)
{
    (void)values, (void)observer;
    struct bump *b = calloc(1, sizeof *b);
    uint64_t *sizes = calloc(geometry->max_seqs, sizeof *sizes);
    uint64_t slots = geometry->pool_bytes / geometry->bytes_per_token;
    if (!b || !sizes || slots == 0) {
        snprintf(why, why_bytes, slots ? "out of memory" : "the pool is smaller than one slot");
        free(b);
        free(sizes);
        return NULL;
    }
    b->base = (struct kv_policy){.ops = &bump_ops, .unit_bytes = geometry->bytes_per_token, .total_units = slots,
                                 .usable_units = slots};
    b->geometry = *geometry;
    b->sizes = sizes;
    return &b->base;
}

static void bump_destroy(struct kv_policy *policy)
{
    struct bump *b = (struct bump *)policy;
    free(b->sizes);
    free(b);
}

/* Slots of each sequence: all that it may ever have. */
static uint64_t region(const struct bump *b, const struct kv_request *request)
{
    uint64_t most = b->geometry.max_seq_tokens;
    return request->max_tokens > most - request->prompt_tokens ? most : request->prompt_tokens + request->max_tokens;
}

static enum kv_status bump_admit(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken)
{
    struct bump *b = (struct bump *)policy;
    uint64_t each = region(b, ask->request), all = each * ask->seq_count;
    taken->ask_units = all;
    taken->need_units = ask->request->final_tokens < each ? ask->request->final_tokens * ask->seq_count : all;
    if (all > policy->usable_units) return KV_NEVER_FITS;
    if (all > policy->usable_units - b->top) return KV_NO_SPACE;
    for (uint32_t k = 0; k < ask->seq_count; k++) b->sizes[ask->seqs[k].index] = each;
    b->top += all;
    b->held += all;
    return KV_OK;
}

/* Everything was given at admission. */
static enum kv_status bump_extend(struct kv_policy *policy, const struct kv_ask *ask, struct kv_taken *taken)
{
    (void)policy, (void)ask, (void)taken;
    return KV_OK;
}

/* The children got their regions at admission. */
static void bump_fork(struct kv_policy *policy, kv_seq parent, const kv_seq *children, uint32_t count,
                      uint64_t filled_tokens)
{
    (void)policy, (void)parent, (void)children, (void)count, (void)filled_tokens;
}

static void bump_release(struct kv_policy *policy, const kv_seq *seqs, uint32_t count)
{
    struct bump *b = (struct bump *)policy;
    for (uint32_t k = 0; k < count; k++) {
        b->held -= b->sizes[seqs[k].index];
        b->sizes[seqs[k].index] = 0;
    }
    if (b->held == 0) b->top = 0; /* the bump */
}

static void bump_facts(const struct kv_policy *policy, struct kv_facts *facts)
{
    const struct bump *b = (const struct bump *)policy;
    uint64_t unit = policy->unit_bytes;
    *facts = (struct kv_facts){
        .held_bytes = b->held * unit,
        .referenced_bytes = b->held * unit,
        .free_bytes = (policy->usable_units - b->held) * unit,
        .overhead_bytes = b->geometry.pool_bytes - policy->usable_units * unit,
    };
}

static void bump_seq_facts(const struct kv_policy *policy, kv_seq seq, struct kv_seq_facts *facts)
{
    const struct bump *b = (const struct bump *)policy;
    *facts = (struct kv_seq_facts){.end_token = b->sizes[seq.index], .tail_holders = b->sizes[seq.index] > 0};
}

static uint64_t bump_obtainable(struct kv_policy *policy, const struct kv_demand *demand)
{
    uint64_t room = policy->usable_units - ((struct bump *)policy)->top;
    return room - room % (demand->pieces ? demand->pieces : 1);
}

/* The longest free run: behind the top. */
static uint64_t bump_largest_run(struct kv_policy *policy, uint32_t pieces)
{
    (void)pieces;
    return policy->usable_units - ((struct bump *)policy)->top;
}

static uint64_t bump_units_for(const struct kv_policy *policy, const struct kv_request *request, uint64_t tokens,
                               bool forked)
{
    (void)tokens, (void)forked;
    return region((const struct bump *)policy, request) * request->samples;
}

static uint64_t bump_largest_piece(const struct kv_policy *policy)
{
    return policy->usable_units;
}

static const struct kv_policy_ops bump_ops = {
    .abi_version = KV_ABI_VERSION,
    .flags = KV_CONTIGUOUS | KV_RESERVES,
    .name = "bump",
    .summary = "regions one behind the other; memory comes back when the last request has ended",
    .source = "an example",
    .description = "Gives a request prompt and max_tokens of each sample at admission, behind the last region. Nothing is "
                   "reused until the pool is empty, so nearly all that is free is out of reach: external "
                   "fragmentation at its worst. O(1) a call.",
    .create = bump_create,
    .destroy = bump_destroy,
    .admit = bump_admit,
    .extend = bump_extend,
    .fork = bump_fork,
    .release = bump_release,
    .facts = bump_facts,
    .seq_facts = bump_seq_facts,
    .obtainable = bump_obtainable,
    .largest_run = bump_largest_run,
    .units_for = bump_units_for,
    .largest_piece = bump_largest_piece,
};

static const struct kv_policy_ops *const policies[] = {&bump_ops, NULL};

const struct pagesim_plugin pagesim_plugin = {PAGESIM_PLUGIN_HEADER, .policies = policies};
