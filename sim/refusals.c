#include "sim/refusals.h"
#include "sim/numbers.h"

#include <assert.h>
#include <string.h>

const char *const cause_names[CAUSE_COUNT] = {
    [CAUSE_CONTIGUITY] = "contiguity",
    [CAUSE_REQUEST_ROUNDING] = "request_rounding",
    [CAUSE_STRANDED_PAGE] = "stranded_page",
    [CAUSE_IDLE_MAPPED] = "idle_mapped",
    [CAUSE_GROUP_MISMATCH] = "group_mismatch",
    [CAUSE_WATERMARK] = "watermark",
    [CAUSE_OVER_RESERVATION] = "over_reservation",
    [CAUSE_GRANULARITY] = "granularity",
    [CAUSE_PINNED] = "pinned",
    [CAUSE_POOL_BOUNDARY] = "pool_boundary",
    [CAUSE_CAPACITY] = "capacity",
    [CAUSE_RESERVATION] = "reservation",
    [CAUSE_INTERNAL] = "internal",
};
const char *const class_names[CLASS_COUNT] = {
    [CLASS_CAPACITY] = "capacity",
    [CLASS_DESPITE_UNUSED] = "despite_unused",
    [CLASS_DESPITE_FREE] = "despite_free",
};
const char *const demand_kind_names[REFUSAL_KINDS] = {[KV_ADMISSION] = "admission", [KV_GROWTH] = "growth", "device"};

int refusal_kind(const struct refusal_facts *f)
{
    return f->device ? 2 : (int)f->demand.kind;
}

/* What each of the first ten causes withholds from the ask, in units. */
static void withheld(uint64_t units[CAUSE_COUNT], const struct refusal_facts *f)
{
    memset(units, 0, CAUSE_COUNT * sizeof units[0]);
    if (f->contiguous) {
        if (f->r_units < f->ask_units) units[CAUSE_CONTIGUITY] = above(f->e_units, f->r_units);
        units[CAUSE_REQUEST_ROUNDING] = above(f->r_units, f->a_units);
    } else if (f->demand.kind == KV_ADMISSION || f->headroom_units > 0) {
        units[CAUSE_WATERMARK] = above(f->e_units, f->a_units);
    }
    units[CAUSE_OVER_RESERVATION] = above(f->ask_units, f->need_units);
    if (f->first_part_units <= f->a_units) {
        units[CAUSE_GRANULARITY] = above(f->ask_units, f->first_part_units);
    }
    units[CAUSE_PINNED] = f->pinned_units;
    units[CAUSE_IDLE_MAPPED] = f->idle_units;
    units[CAUSE_POOL_BOUNDARY] = f->boundary_units;
}

/* The running requests' bytes by use, in the order of the last three causes; all capacity when there are none. */
static u128 weights(uint64_t weight[CAUSE_COUNT], const struct running_use *use)
{
    weight[CAUSE_CAPACITY] = use->live_bytes;
    weight[CAUSE_RESERVATION] = use->reserved_bytes;
    weight[CAUSE_INTERNAL] = use->internal_bytes;
    u128 total = (u128)use->live_bytes + use->reserved_bytes + use->internal_bytes;
    if (total > 0) return total;
    weight[CAUSE_CAPACITY] = 1;
    return 1;
}

/* a/b as a whole number of bytes, at most one too small; the factors may pass 64 bits together. */
static u128 share_bytes(u128 bytes, uint64_t weight, u128 total)
{
    return bytes / total * weight + bytes % total * weight / total;
}

/* Which part is largest, and whether capacity is half of it all: on parts times `total`, without rounding. */
static void judge(struct proof *proof, const struct refusal_facts *facts, const u128 scaled[CAUSE_COUNT],
                  u128 total)
{
    for (int c = 1; c < CAUSE_COUNT; c++) {
        if (scaled[c] > scaled[proof->primary]) proof->primary = (enum cause)c;
    }
    if (facts->e_units >= facts->ask_units) {
        proof->class = CLASS_DESPITE_FREE;
    } else if (2 * scaled[CAUSE_CAPACITY] >= proof->shortfall_units * total) {
        proof->class = CLASS_CAPACITY;
    } else {
        proof->class = CLASS_DESPITE_UNUSED;
    }
}

void proof_make(struct proof *proof, const struct refusal_facts *facts)
{
    assert(facts->ask_units > facts->a_units);
    memset(proof, 0, sizeof *proof);
    uint64_t rest = proof->shortfall_units = facts->ask_units - facts->a_units;
    uint64_t units[CAUSE_COUNT], weight[CAUSE_COUNT];
    u128 scaled[CAUSE_COUNT], total = weights(weight, &facts->use);
    withheld(units, facts);
    for (int c = 0; c < CAUSE_CAPACITY; c++) {
        uint64_t part = units[c] < rest ? units[c] : rest;
        scaled[c] = part * total;
        proof->parts_bytes[c] = (u128)part * facts->unit_bytes;
        rest -= part;
    }
    u128 rest_bytes = (u128)rest * facts->unit_bytes, left = rest_bytes;
    for (int c = CAUSE_COUNT - 1; c >= CAUSE_CAPACITY; c--) {
        scaled[c] = (u128)rest * weight[c];
        u128 part = c == CAUSE_CAPACITY ? left : share_bytes(rest_bytes, weight[c], total);
        proof->parts_bytes[c] = part;
        left -= part;
    }
    judge(proof, facts, scaled, total);
}

static bool in_window_at(const struct refusals *r, uint64_t time)
{
    return time >= r->window_begin && time < r->window_end;
}

static bool in_window(const struct refusals *r, const struct episode *episode)
{
    return in_window_at(r, episode->begin);
}

/* Books the time since the last attempt on what that attempt found. */
static void book_time(struct refusals *r, struct episode *episode, uint64_t time)
{
    uint64_t until = time < r->window_end ? time : r->window_end;
    uint64_t elapsed = above(until, episode->last_attempt);
    episode->time_in_class[episode->latest.class] += elapsed;
    episode->byte_time += (u128)episode->latest.shortfall_units * episode->facts.unit_bytes * elapsed;
    if (!in_window(r, episode)) return;
    for (int c = 0; c < CAUSE_COUNT; c++) {
        r->totals.byte_time_by_cause[c] +=
            episode->latest.parts_bytes[c] * elapsed;
    }
}

void refusals_attempt(struct refusals *r, struct episode *episode, bool *counted_request,
                      uint64_t request_index, const struct refusal_facts *facts, uint64_t time)
{
    struct proof proof;
    proof_make(&proof, facts);
    if (!episode->open) {
        memset(episode, 0, sizeof *episode);
        episode->open = true;
        episode->number = in_window_at(r, time) ? ++r->opened : 0;
        episode->request_index = request_index;
        episode->begin = episode->last_attempt = time;
        episode->facts = *facts;
        episode->proof = episode->latest = proof;
        episode->class = proof.class;
        if (in_window(r, episode) && !*counted_request) {
            *counted_request = true;
            r->totals.requests++;
        }
    }
    book_time(r, episode, time);
    episode->last_attempt = time;
    episode->latest = proof;
    episode->attempts++;
    if (proof.class > episode->class) episode->class = proof.class;
}

static bool is_worse(const struct episode *a, const struct episode *b)
{
    if (a->byte_time != b->byte_time) return a->byte_time > b->byte_time;
    if (a->proof.shortfall_units != b->proof.shortfall_units) {
        return a->proof.shortfall_units > b->proof.shortfall_units;
    }
    return a->number < b->number;
}

static void watch_closed(struct refusal_watch *w, const struct episode *episode, uint64_t end)
{
    if (episode->request_index == w->request) {
        w->request_episodes++;
        w->request_time += end - episode->begin;
    }
    bool wanted = w->number > 0 ? episode->number == w->number
                                : !w->seen || is_worse(episode, &w->episode);
    if (!wanted) return;
    w->seen = true;
    w->episode = *episode;
    w->end = end;
}

void refusals_close(struct refusals *r, struct episode *episode, uint64_t time)
{
    if (!episode->open) return;
    book_time(r, episode, time);
    episode->open = false;
    if (in_window(r, episode)) {
        struct refusal_totals *t = &r->totals;
        t->episodes++;
        t->by_kind[refusal_kind(&episode->facts)]++;
        t->by_class[episode->class]++;
        t->by_cause[episode->proof.primary]++;
        if (r->watch) watch_closed(r->watch, episode, time);
    }
    if (r->closed) r->closed(r->closed_context, episode, time);
}
