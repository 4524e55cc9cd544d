/* Serial runs: every request is admitted, filled to its end and released before the next one comes. No
 * time passes; "time" in the books counts requests, so that averages weight by requests. */
#include "sim/accounting_check.h"
#include "sim/engine_core.h"

static void count_served(struct engine *e, const struct sim_request *r, uint64_t hit_blocks,
                         uint64_t hit_tokens)
{
    uint64_t block = e->policy->block_tokens;
    e->stats.serial.accepted++;
    e->stats.serial.queried_full_blocks += block ? r->prompt_tokens / block : 0;
    e->stats.serial.hit_blocks += hit_blocks;
    e->stats.serial.hit_tokens += hit_tokens;
    e->stats.serial.input_tokens += r->prompt_tokens;
    if (hit_blocks == 0) e->stats.serial.zero_hit_requests++;
}

/* The request waits for the next pin to end; false: there is none. */
static bool end_a_pin(struct engine *e)
{
    if (!engine_waits_for_pins(e)) return false;
    engine_tell_time(e, e->policy->ops->next_unpin(e->policy));
    return true;
}

/* Samples part ways after the prompt. Returns false when there is no room for them. */
static bool fork_and_fill(struct engine *e, struct sim_request *r)
{
    r->computed = r->prompt_tokens;
    engine_fork(e, r);
    uint64_t rest = r->kv.final_tokens - r->prompt_tokens;
    while (rest > 0 && !engine_extend(e, r, rest)) {
        if (!end_a_pin(e)) return false;
    }
    return true;
}

static void tell_hits(struct engine *e, int64_t hit_blocks)
{
    hit_digest_add(&e->serial_hits, hit_blocks);
}

static bool serve(struct engine *e, struct sim_request *r)
{
    struct engine_hit hit;
    enum kv_status status;
    uint64_t end = r->kv.samples > 1 ? r->prompt_tokens : r->kv.final_tokens;
    uint64_t allocated_before = e->stats.units_allocated;
    do {
        engine_lookup(e, r, &hit);
        if (e->out_of_memory) return false;
        status = engine_admit(e, r, &hit, end - hit.tokens, end - hit.tokens);
    } while (status == KV_NO_SPACE && end_a_pin(e));
    uint64_t hit_blocks = hit.device.blocks + hit.host_blocks;
    bool served = status == KV_OK;
    if (served && r->kv.samples > 1) served = fork_and_fill(e, r);
    if (!served) {
        e->stats.serial.rejected++;
        tell_hits(e, -1);
        engine_unservable(e, r, r->state == REQUEST_RUNNING); /* running: its samples outgrew the pool */
        return true;
    }
    tell_hits(e, (int64_t)hit_blocks);
    count_served(e, r, hit_blocks, hit.tokens);
    e->stats.serial.allocated_blocks += e->stats.units_allocated - allocated_before;
    return true;
}

static void end_request(struct engine *e, struct sim_request *r)
{
    e->stats.finished++;
    engine_event(e, EVENT_FINISH, r, 0, 0);
    engine_drop(e, r);
}

int engine_run_serial(struct engine *e, struct wl_source *source)
{
    struct wl_request from;
    int more;
    hit_digest_begin(&e->serial_hits);
    while ((more = wl_next(source, &from, e->err)) == 1) {
        /* Requests that are not served take no time: they weigh nothing in averages. */
        engine_move_clock(e, from.index);
        e->accounting.time = from.index;
        struct sim_request *r = engine_arrive(e, &from);
        if (e->out_of_memory) return err_set(e->err, ERR_FAILED, "out of memory");
        if (!r) {
            tell_hits(e, -1);
            continue;
        }
        engine_tell_time(e, from.arrival_ns);
        r->in_window = e->now >= e->accounting.window_begin && e->now < e->accounting.window_end;
        r->state = REQUEST_WAITING;
        engine_queue_insert(e, e->waiting.tail, r);
        e->scheduled_count = 0;
        e->block_log_count = e->evict_log_count = 0;
        e->probe.present = false;
        if (!serve(e, r)) break;
        if (e->running.head == NULL) continue; /* unservable */
        accounting_set(&e->accounting, e->running_seqs, false, NULL);
        accounting_check(e, NULL);
        if (e->config.hooks.look) e->config.hooks.look(e->config.hooks.look_context, e, LOOK_PASS);
        engine_host_end_pass(e);
        engine_move_clock(e, e->now + 1);
        accounting_advance(&e->accounting, e->now);
        end_request(e, r);
        if (e->stats.stopped) break;
    }
    accounting_set(&e->accounting, 0, false, NULL);
    return more < 0 ? -1 : 0;
}
