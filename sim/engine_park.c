#include "sim/engine_park.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/engine_core.h"
#include "sim/numbers.h"

#define NEVER UINT64_MAX

int park_init(struct engine *e)
{
    const struct engine_config *c = &e->config;
    struct park *p = &e->park;
    /* With blocks of one or two tokens something happens to everybody all the time; a sliding window moves
     * with every token; a growth may wait for pins to end; where more sequences may run than a step has tokens, not everybody gets one. Step
     * lines name every sequence of every step. */
    p->on = c->scheduler->skips && !c->plain_loop && !e->policy->keeps_time && !e->edge && !c->by_priority && !c->hooks.step && c->geometry.window_tokens == 0 &&
            (e->policy->block_tokens > 2 || (e->policy->ops->flags & KV_CONTIGUOUS && e->policy->ops->flags & KV_RESERVES)) &&
            c->max_num_seqs <= c->max_num_batched_tokens;
    if (!p->on) return 0;
    p->capacity = (uint32_t)c->max_num_seqs;
    p->heap = malloc(p->capacity * sizeof *p->heap);
    return p->heap ? 0 : -1;
}

void park_release(struct park *p)
{
    free(p->heap);
}

/* --- the heap ------------------------------------------------------------------------------- */

static bool before(const struct park_entry *a, const struct park_entry *b)
{
    return a->step != b->step ? a->step < b->step : a->order < b->order;
}

static void place(struct park *p, uint32_t i, struct park_entry entry)
{
    p->heap[i] = entry;
    entry.request->park_slot = i;
}

static void sift_up(struct park *p, uint32_t i, struct park_entry entry)
{
    while (i > 0 && before(&entry, &p->heap[(i - 1) / 4])) {
        place(p, i, p->heap[(i - 1) / 4]);
        i = (i - 1) / 4;
    }
    place(p, i, entry);
}

static void sift_down(struct park *p, uint32_t i, struct park_entry entry)
{
    for (;;) {
        uint32_t first = 4 * i + 1, end = first + 4 < p->count ? first + 4 : p->count, best = i;
        const struct park_entry *least = &entry;
        for (uint32_t child = first; child < end; child++) {
            if (!before(&p->heap[child], least)) continue;
            least = &p->heap[child];
            best = child;
        }
        if (best == i) break;
        place(p, i, p->heap[best]);
        i = best;
    }
    place(p, i, entry);
}

static void heap_add(struct park *p, struct park_entry entry)
{
    assert(p->count < p->capacity);
    sift_up(p, p->count++, entry);
}

static void heap_remove(struct park *p, uint32_t i)
{
    struct park_entry last = p->heap[--p->count];
    if (i == p->count) return;
    if (i > 0 && before(&last, &p->heap[(i - 1) / 4])) sift_up(p, i, last);
    else sift_down(p, i, last);
}

/* --- the calendar --------------------------------------------------------------------------- */

/* park_slot of a request that stands in a near list. */
#define IN_LIST UINT32_MAX

static struct park_list *list_of(struct park *p, uint64_t step)
{
    return &p->near[step & (PARK_NEAR - 1)];
}

/* Most come in order: the search starts at the end. */
static void list_add(struct park_list *list, struct sim_request *r)
{
    struct sim_request *after = list->tail;
    while (after && after->admission_number > r->admission_number) after = after->park_prev;
    r->park_prev = after;
    r->park_next = after ? after->park_next : list->head;
    if (r->park_next) r->park_next->park_prev = r;
    else list->tail = r;
    if (after) after->park_next = r;
    else list->head = r;
}

static void list_remove(struct park_list *list, struct sim_request *r)
{
    if (r->park_prev) r->park_prev->park_next = r->park_next;
    else list->head = r->park_next;
    if (r->park_next) r->park_next->park_prev = r->park_prev;
    else list->tail = r->park_prev;
}

static void calendar_add(struct park *p, struct sim_request *r, uint64_t step)
{
    r->park_due = step;
    if (step - p->step < PARK_NEAR) {
        r->park_slot = IN_LIST;
        list_add(list_of(p, step), r);
    } else {
        heap_add(p, (struct park_entry){.step = step, .order = r->admission_number, .request = r});
    }
}

static void calendar_remove(struct park *p, struct sim_request *r)
{
    if (r->park_slot == IN_LIST) list_remove(list_of(p, r->park_due), r);
    else heap_remove(p, r->park_slot);
}

/* The first request that is due now; NULL: none. */
static struct sim_request *calendar_due(struct park *p)
{
    struct sim_request *near = list_of(p, p->step)->head;
    struct sim_request *far = p->count > 0 && p->heap[0].step == p->step ? p->heap[0].request : NULL;
    if (!near || (far && far->admission_number < near->admission_number)) return far;
    return near;
}

/* --- one request ---------------------------------------------------------------------------- */

/* Steps from now at which something happens to a request that decodes: 0 in the very next one. `ahead`: as seen when it
 * has got so many tokens more. */
static uint64_t quiet_steps(const struct engine *e, const struct sim_request *r, uint64_t ahead)
{
    const struct engine_config *c = &e->config;
    uint64_t computed = r->computed + ahead, outputs = r->outputs + ahead;
    uint64_t quiet = r->output_tokens - outputs - 1; /* then it finishes */
    if (!(e->policy->ops->flags & KV_RESERVES)) {
        uint64_t empty = (r->account.reserved_tokens + r->account.internal_tokens) / r->kv.samples;
        uint64_t end = r->computed + empty; /* slots of each sequence: all its own, and all alike */
        uint64_t wanted = computed + c->geometry.lookahead_tokens; /* slots, before the next token */
        if (end < c->max_model_len) quiet = min_u64(quiet, above(end, wanted));
    }
    if (e->caches && c->cache_output != CACHE_OUTPUT_UNKEYED && !engine_keys_may_wait(e, r)) {
        uint64_t block = e->policy->block_tokens;
        quiet = min_u64(quiet, block - 1 - computed % block);
    }
    return quiet;
}

/* The next step computes one token of each of its sequences, which all have their own blocks. */
static bool decodes(const struct sim_request *r)
{
    return r->outputs > 0 && r->computed + 1 == r->prompt_tokens + r->outputs &&
           (r->kv.samples == 1 || (r->forked && r->written_since_fork));
}

/* Applies the steps that passed without a visit. */
static void sync(struct engine *e, struct sim_request *r)
{
    uint64_t steps = e->park.step - r->park_step;
    r->park_step = e->park.step;
    r->computed += steps;
    r->filled = r->computed;
    r->outputs += steps;
    r->account.reserved_tokens -= steps * r->kv.samples;
}

static void enter(struct engine *e, struct sim_request *r)
{
    struct park *p = &e->park;
    r->parked = true;
    r->park_step = p->step;
    p->width += r->kv.samples;
    p->context_tokens += r->kv.samples * r->computed;
    p->requests++;
    calendar_add(p, r, add_clamped(p->step, quiet_steps(e, r, 0)));
}

static void leave(struct engine *e, struct sim_request *r)
{
    struct park *p = &e->park;
    calendar_remove(p, r);
    p->requests--;
    sync(e, r);
    r->parked = false;
    p->width -= r->kv.samples;
    p->context_tokens -= r->kv.samples * r->computed;
}

void park_leave(struct engine *e, struct sim_request *r)
{
    r->due = false;
    if (r->parked) leave(e, r);
}

struct sim_request *park_next(const struct engine *e, const struct sim_request *r)
{
    struct sim_request *next = r ? r->next : e->running.head;
    while (next && next != e->park.first_active && !next->parked) next = next->next;
    return next == e->park.first_active ? NULL : next;
}

void park_show(struct engine *e, struct sim_request *r)
{
    sync(e, r);
    r->filled = r->computed + (e->park.in_step ? 1 : 0);
}

void park_show_filled(struct engine *e)
{
    for (struct sim_request *r = park_next(e, NULL); r; r = park_next(e, r)) park_show(e, r);
}

uint64_t park_width_before(const struct engine *e, uint64_t order)
{
    uint64_t width = 0;
    if (e->park.requests == 0 || e->park.in_step) return 0; /* booked already */
    for (struct sim_request *r = park_next(e, NULL); r && r->admission_number < order;
         r = park_next(e, r)) {
        width += r->kv.samples;
    }
    return width;
}

/* --- a pass --------------------------------------------------------------------------------- */

/* A new block or a key, and it goes on as before. */
static bool serve_in_place(struct engine *e, struct sim_request *r)
{
    struct park *p = &e->park;
    sync(e, r);
    if (r->outputs + 1 == r->output_tokens || !engine_grow_parked(e, r)) return false;
    calendar_remove(p, r);
    calendar_add(p, r, add_clamped(p->step + 1, quiet_steps(e, r, 1)));
    return true;
}

struct sim_request *park_next_due(struct engine *e)
{
    struct sim_request *r;
    while ((r = calendar_due(&e->park)) != NULL) {
        if (serve_in_place(e, r)) continue;
        leave(e, r);
        r->due = true;
        break;
    }
    return r;
}

void park_book(struct engine *e)
{
    struct park *p = &e->park;
    if (p->in_step) return;
    p->in_step = true;
    e->accounting.reserved_tokens -= p->width;
    e->stats.scheduled_tokens += p->width;
}

/* --- the end of a step ---------------------------------------------------------------------- */

void park_end_step(struct engine *e)
{
    struct park *p = &e->park;
    if (!p->on) return;
    p->in_step = false;
    p->step++;
    p->context_tokens += p->width;
    for (size_t i = 0; i < e->scheduled_count; i++) {
        struct sim_request *r = e->scheduled[i].request;
        if (r->due) enter(e, r); /* those that ended are no longer due */
        r->due = false;
    }
    for (; p->first_active && decodes(p->first_active); p->first_active = p->first_active->next) {
        enter(e, p->first_active);
    }
}

void park_list_changed(struct engine *e, struct sim_request *r, bool added)
{
    struct park *p = &e->park;
    if (!p->on) return;
    if (added) {
        if (!p->first_active) p->first_active = r;
    } else if (p->first_active == r) {
        p->first_active = r->next;
    }
}
