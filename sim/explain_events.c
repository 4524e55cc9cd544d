/* What happened, in sentences that say why. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/explain.h"

/* What a reader looks for first; events of one rank are told in their order. 0: not told by itself. */
static const uint8_t rank[EVENT_KIND_COUNT] = {
    [EVENT_DEVICE_OOM] = 9, [EVENT_UNSERVABLE] = 9, [EVENT_REJECT] = 9, [EVENT_PREEMPT] = 8, [EVENT_SWAP_OUT] = 8,
    [EVENT_REFUSE] = 7,     [EVENT_EVICT] = 6,      [EVENT_COPY] = 6,   [EVENT_ABORT] = 5,   [EVENT_FORK] = 5,
    [EVENT_ADMIT] = 4,      [EVENT_SWAP_IN] = 4,    [EVENT_FINISH] = 3, [EVENT_GROW] = 2,    [EVENT_ARRIVE] = 1,
    [EVENT_FIRST_TOKEN] = 1, [EVENT_FETCH] = 4, [EVENT_OFFLOAD] = 6,
};

static uint64_t detail_of(const struct engine *e, enum event_kind kind, const struct sim_request *r)
{
    switch (kind) {
    case EVENT_UNSERVABLE: return e->demand_units;
    case EVENT_REJECT: return e->config.max_model_len;
    case EVENT_FINISH: return r->output_tokens;
    default: return 0;
    }
}

void explain_events_add(struct explain_events *v, const struct engine *e, enum event_kind kind, const struct sim_request *r,
                        uint64_t a, uint64_t b)
{
    if (v->count == v->capacity) {
        size_t capacity = v->capacity ? v->capacity * 2 : 64;
        struct explain_event *grown = realloc(v->items, capacity * sizeof *grown);
        if (!grown) {
            v->out_of_memory = true;
            return;
        }
        v->items = grown;
        v->capacity = capacity;
    }
    struct kv_facts facts;
    kv_get_facts(e->policy, &facts);
    struct explain_event *event = &v->items[v->count++];
    *event = (struct explain_event){
        .kind = kind,
        .index = r ? r->index : UINT64_MAX,
        .a = a,
        .b = b,
        .runs = r && r->state == REQUEST_RUNNING,
        .free_units = (facts.free_bytes + facts.cached_bytes) / e->policy->unit_bytes,
        .usable_units = e->policy->usable_units,
        .detail = detail_of(e, kind, r),
    };
    char buffer[24];
    if (r) snprintf(event->name, sizeof event->name, "%s", sim_request_name(r, buffer, sizeof buffer));
}

/* --- order ------------------------------------------------------------------------------------- */

size_t explain_sentences(const struct explain_events *v)
{
    size_t count = 0;
    for (size_t i = 0; i < v->count; i++) count += rank[v->items[i].kind] > 0;
    return count;
}

static const struct explain_event *nth(const struct explain_events *v, size_t n)
{
    for (int r = 9; r > 0; r--) {
        for (size_t i = 0; i < v->count; i++) {
            if (rank[v->items[i].kind] == r && n-- == 0) return &v->items[i];
        }
    }
    return NULL;
}

/* --- words --------------------------------------------------------------------------------------- */

static const char *units(const struct engine *e, uint64_t n)
{
    bool slots = e->policy->ops->table == NULL;
    return slots ? n == 1 ? "slot" : "slots" : n == 1 ? "block" : "blocks";
}

/* Evictions and copies happen inside a call for a request, which is told after them. */
static const struct explain_event *asker(const struct explain_events *v, const struct explain_event *event)
{
    for (const struct explain_event *x = event + 1; x < v->items + v->count; x++) {
        if (x->kind == EVENT_ADMIT || x->kind == EVENT_GROW || x->kind == EVENT_SWAP_IN) return x;
    }
    return NULL;
}

/* The last demand refused before. */
static const struct explain_event *refusal_before(const struct explain_events *v, const struct explain_event *event)
{
    for (const struct explain_event *x = event; x-- > v->items;) {
        if (x->kind == EVENT_REFUSE) return x;
    }
    return NULL;
}

static void say_need(const struct engine *e, const struct explain_event *refused, char *out, size_t bytes)
{
    uint64_t ask = refused->a, free_units = refused->free_units, all = refused->usable_units;
    if (refused->b == free_units)
        snprintf(out, bytes, "needed %" PRIu64 " %s, %" PRIu64 " of %" PRIu64 " were free", ask, units(e, ask), free_units, all);
    else
        snprintf(out, bytes, "needed %" PRIu64 " %s; %" PRIu64 " of %" PRIu64 " free, %" PRIu64 " obtainable", ask, units(e, ask), free_units, all,
                 refused->b);
}

static void say_preempt(const struct explain_events *v, const struct engine *e, const struct explain_event *x, char *text)
{
    const struct explain_event *refused = refusal_before(v, x);
    char need[160];
    if (!refused) {
        snprintf(text, EXPLAIN_SENTENCE_BYTES, "request %s preempted", x->name);
        return;
    }
    say_need(e, refused, need, sizeof need);
    if (refused->index == x->index)
        snprintf(text, EXPLAIN_SENTENCE_BYTES, "request %s preempted: it %s, and it came last", x->name, need);
    else
        snprintf(text, EXPLAIN_SENTENCE_BYTES, "request %s preempted: request %s %s", x->name, refused->name, need);
}

static void say_refusal(const struct engine *e, const struct explain_event *x, char *text)
{
    char need[160];
    say_need(e, x, need, sizeof need);
    snprintf(text, EXPLAIN_SENTENCE_BYTES, "request %s %s: it %s", x->name, x->runs ? "could not grow" : "had to wait", need);
}

static void say_admit(const struct engine *e, const struct explain_event *x, char *text)
{
    int n = snprintf(text, EXPLAIN_SENTENCE_BYTES, "request %s admitted: %" PRIu64 " new %s", x->name, x->b, units(e, x->b));
    if (x->a > 0)
        snprintf(text + n, EXPLAIN_SENTENCE_BYTES - (size_t)n, ", after %" PRIu64 " tokens found in the cache", x->a);
}

static void say_unservable(const struct engine *e, const struct explain_event *x, char *text)
{
    if (x->detail == 0)
        snprintf(text, EXPLAIN_SENTENCE_BYTES, "request %s can never be served", x->name);
    else
        snprintf(text, EXPLAIN_SENTENCE_BYTES, "request %s can never be served: it needs %" PRIu64 " of %" PRIu64 " %s%s", x->name,
                 x->detail, x->usable_units, units(e, x->usable_units), x->a ? ", and it runs alone" : "");
}

void explain_sentence(const struct explain_events *v, const struct engine *e, size_t i, char *text)
{
    const struct explain_event *x = nth(v, i), *by = asker(v, x);
    const size_t bytes = EXPLAIN_SENTENCE_BYTES;
    char whom[64] = "";
    if (by) snprintf(whom, sizeof whom, " for request %s", by->name);
    switch (x->kind) {
    case EVENT_ARRIVE: snprintf(text, bytes, "request %s arrived: %" PRIu64 " prompt tokens", x->name, x->a); break;
    case EVENT_REJECT:
        snprintf(text, bytes, "request %s rejected: its prompt is empty, or has max_model_len = %" PRIu64 " tokens or more", x->name, x->detail);
        break;
    case EVENT_UNSERVABLE: say_unservable(e, x, text); break;
    case EVENT_ADMIT: say_admit(e, x, text); break;
    case EVENT_GROW:
        snprintf(text, bytes, "request %s grew to %" PRIu64 " tokens: %" PRIu64 " new %s", x->name, x->a, x->b, units(e, x->b));
        break;
    case EVENT_REFUSE: say_refusal(e, x, text); break;
    case EVENT_PREEMPT: say_preempt(v, e, x, text); break;
    case EVENT_SWAP_OUT: snprintf(text, bytes, "request %s swapped out: %" PRIu64 " %s moved to the host", x->name, x->a, units(e, x->a)); break;
    case EVENT_SWAP_IN: snprintf(text, bytes, "request %s swapped in: %" PRIu64 " %s came back", x->name, x->a, units(e, x->a)); break;
    case EVENT_FORK:
        snprintf(text, bytes, "request %s forked: %" PRIu64 " more %s its prompt", x->name, x->a, x->a == 1 ? "sequence has" : "sequences have");
        break;
    case EVENT_EVICT:
        snprintf(text, bytes, "block %" PRIu64 " evicted%s: its content %s", x->a, whom, e->host ? "stays on the host" : "is forgotten");
        break;
    case EVENT_FETCH: snprintf(text, bytes, "request %s: %" PRIu64 " %s fetched from the host", x->name, x->a, units(e, x->a)); break;
    case EVENT_OFFLOAD: snprintf(text, bytes, "%" PRIu64 " %s copied to the host", x->a, units(e, x->a)); break;
    case EVENT_COPY: snprintf(text, bytes, "block %" PRIu64 " copied to %" PRIu64 "%s: others hold it too", x->a, x->b, whom); break;
    case EVENT_FINISH:
        snprintf(text, bytes, "request %s finished with %" PRIu64 " output token%s", x->name, x->detail, x->detail == 1 ? "" : "s");
        break;
    case EVENT_ABORT: snprintf(text, bytes, "request %s aborted: its client left", x->name); break;
    case EVENT_DEVICE_OOM:
        snprintf(text, bytes, "the device is out of memory: %" PRIu64 " bytes asked, %" PRIu64 " free", x->a, x->b);
        break;
    case EVENT_FIRST_TOKEN: snprintf(text, bytes, "request %s has its first token", x->name); break;
    case EVENT_KIND_COUNT: *text = '\0'; break;
    }
}
