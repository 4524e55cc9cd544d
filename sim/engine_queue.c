/* The waiting queue, and what policies are told of its head: the keys of the first requests' prompts, before they are
 * admitted. Requests count by what they will look up: the prompt, and after a preemption the output so far too. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_core.h"
#include "sim/numbers.h"

int queue_window_init(struct engine *e)
{
    /* Serial runs have no queue. */
    e->window.depth = e->config.scheduler->serial ? 0 : e->policy->queue_requests;
    return e->window.depth == 0 || id_index_init(&e->window.index) ? 0 : -1;
}

void queue_window_release(struct queue_window *w)
{
    if (w->index.places) id_index_release(&w->index);
    free(w->requests);
    free(w->numbers);
}

bool engine_queue_expects(const struct engine *e, uint64_t key)
{
    uint32_t number;
    return e->window.count > 0 && id_index_find(&e->window.index, key, &number) && e->window.requests[number] > 0;
}

/* --- keys and how many of the announced requests have them ----------------------------------- */

static bool make_room(struct queue_window *w, size_t blocks)
{
    if (blocks > w->numbers_room) {
        uint32_t *grown = realloc(w->numbers, blocks * sizeof *grown);
        if (!grown) return false;
        w->numbers = grown;
        w->numbers_room = blocks;
    }
    size_t wanted = w->index.count + blocks, room = w->room ? w->room : 1024;
    while (room < wanted) room *= 2;
    if (room > w->room) {
        uint32_t *grown = realloc(w->requests, room * sizeof *grown);
        if (!grown) return false;
        memset(grown + w->room, 0, (room - w->room) * sizeof *grown);
        w->requests = grown;
        w->room = room;
    }
    return true;
}

/* The numbers of the request's keys, in w->numbers. False: out of memory. */
static bool number_keys(struct engine *e, const struct sim_request *r)
{
    struct queue_window *w = &e->window;
    size_t n = (size_t)r->announced_blocks;
    bool done = make_room(w, n) && id_index_number(&w->index, r->keys[0], n, w->numbers) == ID_INDEX_OK;
    if (!done) e->out_of_memory = true;
    return done;
}

/* Keys that nobody has any more stay in the index until they are most of it. */
static void forget_old_keys(struct engine *e)
{
    struct queue_window *w = &e->window;
    if (w->index.count < 65536 || w->index.count / 4 < w->live) return;
    memset(w->requests, 0, w->room * sizeof *w->requests);
    id_index_release(&w->index);
    if (!id_index_init(&w->index)) {
        w->index = (struct id_index){0};
        w->depth = w->count = 0;
        e->out_of_memory = true;
        return;
    }
    struct sim_request *end = w->last ? w->last->next : e->waiting.head;
    for (struct sim_request *r = e->waiting.head; r != end; r = r->next) {
        if (!r->announced || !number_keys(e, r)) continue;
        for (uint64_t b = 0; b < r->announced_blocks; b++) w->requests[w->numbers[b]]++;
    }
}

static void announce(struct engine *e, struct sim_request *r)
{
    struct queue_window *w = &e->window;
    if (!engine_prepare_keys(e, r)) return;
    forget_old_keys(e);
    r->announced_blocks = min_u64((request_target(r) - 1) / e->policy->block_tokens, r->key_blocks);
    r->announced = true;
    w->count++;
    if (!number_keys(e, r)) {
        r->announced_blocks = 0;
        return;
    }
    for (uint64_t b = 0; b < r->announced_blocks; b++) {
        if (w->requests[w->numbers[b]]++ > 0) continue;
        w->live++;
        e->policy->ops->expect(e->policy, r->keys[0][b], true);
    }
}

static void withdraw(struct engine *e, struct sim_request *r)
{
    struct queue_window *w = &e->window;
    r->announced = false;
    w->count--;
    if (!number_keys(e, r)) return; /* all are known, so only the room for their numbers can be missing */
    for (uint64_t b = 0; b < r->announced_blocks; b++) {
        assert(w->requests[w->numbers[b]] > 0);
        if (--w->requests[w->numbers[b]] > 0) continue;
        w->live--;
        e->policy->ops->expect(e->policy, r->keys[0][b], false);
    }
}

/* --- the queue ------------------------------------------------------------------------------- */

void engine_queue_insert(struct engine *e, struct sim_request *after, struct sim_request *r)
{
    struct queue_window *w = &e->window;
    bool at_end = after == w->last; /* of the announced ones; both NULL: there are none */
    bool full = w->count == w->depth;
    request_list_insert_after(&e->waiting, after, r);
    if (w->depth == 0 || (at_end && full) || (after && !after->announced)) return;
    if (full) {
        struct sim_request *out = w->last;
        w->last = out->prev;
        withdraw(e, out);
    }
    announce(e, r);
    if (at_end) w->last = r;
}

void engine_queue_remove(struct engine *e, struct sim_request *r)
{
    struct queue_window *w = &e->window;
    struct sim_request *before = r->prev, *last = w->last;
    request_list_remove(&e->waiting, r);
    if (!r->announced) return;
    if (last == r) w->last = last = before;
    withdraw(e, r);
    struct sim_request *next = last ? last->next : e->waiting.head;
    if (!next || w->depth == 0) return;
    assert(!next->announced);
    announce(e, next);
    w->last = next;
}
