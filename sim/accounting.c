#include "sim/accounting.h"
#include "sim/numbers.h"

#include <assert.h>
#include <string.h>

const char *const state_names[STATE_COUNT] = {
    [STATE_LIVE] = "live",
    [STATE_DEAD] = "dead",
    [STATE_RESERVED] = "reserved",
    [STATE_INTERNAL] = "internal",
    [STATE_ROUNDING] = "rounding",
    [STATE_CACHED] = "cached",
    [STATE_CACHED_PINNED] = "cached_pinned",
    [STATE_STRANDED] = "stranded",
    [STATE_FREE] = "free",
    [STATE_OVERHEAD] = "overhead",
};

void accounting_init(struct accounting *a, struct kv_policy *policy,
                     const struct kv_geometry *geometry)
{
    memset(a, 0, sizeof *a);
    a->policy = policy;
    a->pool_bytes = geometry->pool_bytes;
    a->bytes_per_token = geometry->bytes_per_token;
    a->window_tokens = geometry->window_tokens;
    a->window_end = UINT64_MAX;
    a->layout_changed = true;
    accounting_set(a, 0, false, NULL);
}

/* Empty slots of the granted range [.., end), filled to filled, of a sequence that ends at final. */
static void add_empty(struct account *sum, uint64_t filled, uint64_t end, uint64_t final)
{
    sum->reserved_tokens += above(min_u64(end, final), filled);
    sum->internal_tokens += above(end, filled > final ? filled : final);
}

/* After a fork several sequences hold one partial block. Its empty slots were added once for each of
 * them; they exist once. */
static void remove_shared_tail(struct account *sum, uint32_t holders, uint32_t block_tokens,
                               uint64_t filled, uint64_t final)
{
    if (holders < 2 || block_tokens == 0 || filled % block_tokens == 0) return;
    struct account tail = {0};
    add_empty(&tail, filled, filled - filled % block_tokens + block_tokens, final);
    sum->reserved_tokens -= (holders - 1) * tail.reserved_tokens;
    sum->internal_tokens -= (holders - 1) * tail.internal_tokens;
}

void accounting_update(struct accounting *a, struct account *account, const kv_seq *seqs,
                       uint32_t seq_count, uint32_t filled_count, uint64_t filled_tokens,
                       uint64_t computed_tokens, uint64_t final_tokens)
{
    struct account fresh = {0};
    struct kv_seq_facts facts = {0};
    /* Tokens before this one are read by no later query of the sequence. */
    uint64_t first_needed = a->window_tokens ? above(computed_tokens + 1, a->window_tokens) : 0;
    for (uint32_t s = 0; s < seq_count; s++) {
        kv_get_seq_facts(a->policy, seqs[s], &facts);
        uint64_t filled = s < filled_count ? filled_tokens : 0;
        add_empty(&fresh, filled, facts.end_token, final_tokens);
        fresh.dead_tokens += above(min_u64(first_needed, filled), facts.first_token);
        if (s == 0) {
            remove_shared_tail(&fresh, facts.tail_holders, a->policy->block_tokens, filled,
                               final_tokens);
        }
    }
    a->reserved_tokens += fresh.reserved_tokens - account->reserved_tokens;
    a->internal_tokens += fresh.internal_tokens - account->internal_tokens;
    a->dead_tokens += fresh.dead_tokens - account->dead_tokens;
    *account = fresh;
}

void accounting_add_slots(struct accounting *a, struct account *account, uint32_t seq_count, uint64_t filled_tokens,
                          uint64_t slots_each, uint64_t final_tokens)
{
    uint64_t end = filled_tokens + (account->reserved_tokens + account->internal_tokens) / seq_count;
    uint64_t reserved = min_u64(slots_each, above(final_tokens, end));
    uint64_t internal = slots_each - reserved;
    account->reserved_tokens += seq_count * reserved;
    account->internal_tokens += seq_count * internal;
    a->reserved_tokens += seq_count * reserved;
    a->internal_tokens += seq_count * internal;
}

void accounting_close(struct accounting *a, struct account *account)
{
    a->reserved_tokens -= account->reserved_tokens;
    a->internal_tokens -= account->internal_tokens;
    a->dead_tokens -= account->dead_tokens;
    memset(account, 0, sizeof *account);
}

static uint64_t all_dead_tokens(const struct accounting *a, const struct kv_facts *facts)
{
    bool shared = facts->referenced_bytes != facts->held_bytes;
    if (a->dead_tokens == 0 || !shared || !a->count_dead) return a->dead_tokens;
    return a->count_dead(a->count_dead_context);
}

static uint64_t stranded_bytes(const struct accounting *a, const struct probe *probe,
                               uint64_t free_bytes)
{
    if (!probe || !probe->present) return 0;
    uint64_t unit_bytes = a->policy->unit_bytes;
    if (free_bytes / unit_bytes < probe->ask_units) return 0; /* shortage, not fragmentation */
    uint64_t units = above(kv_obtainable(a->policy, &probe->demand), probe->headroom_units);
    return above(free_bytes, units * unit_bytes);
}

void accounting_set(struct accounting *a, uint64_t running_seqs, bool saturated,
                    const struct probe *probe)
{
    struct kv_facts facts;
    kv_get_facts(a->policy, &facts);
    uint64_t *bytes = a->now.state_bytes;
    bytes[STATE_RESERVED] = a->reserved_tokens * a->bytes_per_token;
    bytes[STATE_INTERNAL] = a->internal_tokens * a->bytes_per_token;
    bytes[STATE_DEAD] = all_dead_tokens(a, &facts) * a->bytes_per_token;
    bytes[STATE_ROUNDING] = facts.rounding_bytes;
    uint64_t not_live = bytes[STATE_RESERVED] + bytes[STATE_INTERNAL] + bytes[STATE_DEAD] +
                        bytes[STATE_ROUNDING];
    not_live += a->lent_bytes;
    assert(not_live <= facts.held_bytes);
    bytes[STATE_LIVE] = facts.held_bytes - not_live;
    bytes[STATE_CACHED] = facts.cached_bytes;
    bytes[STATE_CACHED_PINNED] = facts.pinned_bytes;
    bytes[STATE_STRANDED] = stranded_bytes(a, probe, facts.free_bytes);
    bytes[STATE_FREE] = facts.free_bytes - bytes[STATE_STRANDED];
    bytes[STATE_OVERHEAD] = facts.overhead_bytes + a->lent_bytes;
    uint64_t sum = 0;
    for (int s = 0; s < STATE_COUNT; s++) sum += bytes[s];
    assert(sum == a->pool_bytes);

    if (!(a->policy->ops->flags & KV_CONTIGUOUS)) {
        a->now.one_obtainable_bytes = facts.free_bytes;
    } else if (a->layout_changed) {
        struct kv_demand one = {.kind = KV_ADMISSION, .pieces = 1, .something_runs = false};
        a->now.one_obtainable_bytes = kv_obtainable(a->policy, &one) * a->policy->unit_bytes;
        a->layout_changed = false;
    }
    a->now.referenced_bytes = facts.referenced_bytes - a->lent_bytes;
    a->now.held_bytes = facts.held_bytes - a->lent_bytes;
    a->now.head_refused_though_free = false; /* until the caller says so */
    a->now.running_seqs = running_seqs;
    if (running_seqs > a->running_seqs_max) a->running_seqs_max = running_seqs;
    a->saturated = saturated;
}

static void integrate(struct integrals *sum, const struct levels *now, uint64_t duration)
{
    sum->time += duration;
    for (int s = 0; s < STATE_COUNT; s++) {
        sum->state_byte_time[s] += (u128)now->state_bytes[s] * duration;
    }
    sum->referenced_byte_time += (u128)now->referenced_bytes * duration;
    sum->held_byte_time += (u128)now->held_bytes * duration;
    sum->one_obtainable_byte_time += (u128)now->one_obtainable_bytes * duration;
    if (now->head_refused_though_free) sum->head_refused_time += duration;
    sum->running_time += (u128)now->running_seqs * duration;
}

void accounting_advance(struct accounting *a, uint64_t time)
{
    assert(time >= a->time);
    if (time == a->time) return;
    if (a->stretch) a->stretch(a->stretch_context, &a->now, a->time, time);
    uint64_t begin = a->time > a->window_begin ? a->time : a->window_begin;
    uint64_t end = min_u64(time, a->window_end);
    if (begin < end) {
        integrate(&a->whole, &a->now, end - begin);
        if (a->saturated) integrate(&a->saturated_time, &a->now, end - begin);
    }
    a->time = time;
}

struct running_use accounting_running_use(const struct accounting *a)
{
    struct kv_facts facts;
    kv_get_facts(a->policy, &facts);
    uint64_t reserved = a->reserved_tokens * a->bytes_per_token;
    uint64_t internal =
        (a->internal_tokens + all_dead_tokens(a, &facts)) * a->bytes_per_token + facts.rounding_bytes;
    return (struct running_use){
        .live_bytes = facts.held_bytes - reserved - internal - a->lent_bytes,
        .reserved_bytes = reserved,
        .internal_bytes = internal,
    };
}
