/* Step lines in the schema of the recorded cases (tests/golden/vllm-v1/README.md). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "sim/engine_core.h"
#include "sim/replay.h"
#include "sim/result.h"

#define FOLD_START 0xcbf29ce484222325u
#define FOLD_PRIME 0x100000001b3u
#define FOLD_MARK 0xffffffffu

static uint64_t fold(uint64_t h, uint64_t word)
{
    return (h ^ (word & 0xffffffffu)) * FOLD_PRIME;
}

static uint64_t fold_blocks(uint64_t h, const kv_block *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) h = fold(h, blocks[i]);
    return h;
}

static uint64_t fold_requests(uint64_t h, struct sim_request *const *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) h = fold(h, requests[i]->index);
    return fold(h, FOLD_MARK);
}

static uint64_t step_digest(const struct step_view *v, uint64_t step)
{
    uint64_t h = fold(FOLD_START, step);
    for (size_t i = 0; i < v->scheduled_count; i++) {
        const struct scheduled *s = &v->scheduled[i];
        h = fold(h, s->request->index);
        h = fold(h, s->new_tokens);
        h = fold(h, s->computed_before);
        h = fold(h, s->hit_blocks);
        h = fold_blocks(h, v->block_log + s->hit_blocks_at, s->hit_blocks);
        h = fold(h, s->new_blocks);
        h = fold_blocks(h, v->block_log + s->new_blocks_at, s->new_blocks);
    }
    h = fold(h, FOLD_MARK);
    h = fold_requests(h, v->preempted, v->preempted_count);
    h = fold_requests(h, v->finished, v->finished_count);
    h = fold(fold_blocks(h, v->evicted, v->evicted_count), FOLD_MARK);
    return fold(h, v->free_units);
}

static void write_blocks(const char *key, const kv_block *blocks, size_t count, FILE *out)
{
    fprintf(out, "\"%s\":[", key);
    for (size_t i = 0; i < count; i++) fprintf(out, "%s%" PRIu32, i ? "," : "", blocks[i]);
    fputc(']', out);
}

static void write_name(const struct sim_request *r, FILE *out)
{
    char buffer[24];
    result_write_string(sim_request_name(r, buffer, sizeof buffer), out);
}

static void write_names(const char *key, struct sim_request *const *requests, size_t count,
                        FILE *out)
{
    fprintf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < count; i++) {
        if (i) fputc(',', out);
        write_name(requests[i], out);
    }
    fputc(']', out);
}

static void write_scheduled(const struct step_view *v, const struct scheduled *s, FILE *out)
{
    fputs("{\"id\":", out);
    write_name(s->request, out);
    fprintf(out, ",\"num_new_tokens\":%" PRIu64 ",\"num_computed_tokens\":%" PRIu64 ",", s->new_tokens,
            s->computed_before);
    if (s->admitted) {
        fprintf(out, "\"cached_tokens\":%" PRIu64 ",", s->hit_tokens);
        write_blocks("hit_blocks", v->block_log + s->hit_blocks_at, s->hit_blocks, out);
        fputc(',', out);
    }
    write_blocks("new_blocks", v->block_log + s->new_blocks_at, s->new_blocks, out);
    fprintf(out, ",\"preempted\":%s}", s->readmitted ? "true" : "false");
}

static void write_full(const struct step_view *v, FILE *out)
{
    fputs(",\"scheduled\":[", out);
    for (size_t i = 0; i < v->scheduled_count; i++) {
        if (i) fputc(',', out);
        write_scheduled(v, &v->scheduled[i], out);
    }
    fputc(']', out);
    write_names("preempted", v->preempted, v->preempted_count, out);
    write_names("finished", v->finished, v->finished_count, out);
    write_names("rejected", v->rejected, v->rejected_count, out);
    fputc(',', out);
    write_blocks("evictions", v->evicted, v->evicted_count, out);
}

static void write_counters(const struct step_view *v, FILE *out)
{
    size_t admitted = 0;
    for (size_t i = 0; i < v->scheduled_count; i++) admitted += v->scheduled[i].admitted;
    fprintf(out,
            ",\"num_scheduled\":%zu,\"num_admitted\":%zu,\"num_preempted\":%zu,\"num_finished\":%zu,"
            "\"num_evictions\":%zu",
            v->scheduled_count, admitted, v->preempted_count, v->finished_count, v->evicted_count);
}

/* Six decimals, rounded, without needless zeros. */
static void write_ratio(const char *key, double value, FILE *out)
{
    char text[40];
    result_format_f64(nearbyint(value * 1e6) / 1e6, text, sizeof text);
    fprintf(out, ",\"%s\":%s", key, text);
}

static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

void step_writer_begin(struct step_writer *w, struct engine *engine)
{
    w->engine = engine;
    w->digest = FOLD_START;
}

void step_writer_step(void *context, const struct step_view *v)
{
    struct step_writer *w = context;
    FILE *out = w->out;
    uint64_t usable = w->engine->policy->usable_units, tokens = 0;
    uint64_t step = w->clock_steps ? v->time_ns : v->step, digest = step_digest(v, step);
    struct kv_cache_facts cache;
    kv_get_cache_facts(w->engine->policy, &cache);
    for (size_t i = 0; i < v->scheduled_count; i++) {
        tokens += v->scheduled[i].new_tokens * v->scheduled[i].width;
    }
    fprintf(out, "{\"step\":%" PRIu64, step);
    if (w->counters) write_counters(v, out);
    else write_full(v, out);
    fprintf(out,
            ",\"scheduled_tokens\":%" PRIu64 ",\"running\":%" PRIu64 ",\"waiting\":%" PRIu64
            ",\"free_after_schedule\":%" PRIu64 ",\"free_blocks\":%" PRIu64 ",\"used_blocks\":%" PRIu64
            ",\"cached_blocks\":%" PRIu64,
            tokens, v->running, v->waiting, v->free_after_schedule_units, v->free_units,
            usable - v->free_units, cache.keyed_blocks);
    write_ratio("usage", 1 - ratio(v->free_units, usable), out);
    fprintf(out, ",\"queries\":%" PRIu64 ",\"hits\":%" PRIu64 ",\"digest\":\"%016" PRIx64 "\"}\n", v->queries,
            v->hits, digest);
    w->digest = fold(fold(w->digest, digest), digest >> 32);
}

static void write_free_queue(const struct step_writer *w)
{
    struct kv_policy *p = w->engine->policy;
    uint64_t length = p->ops->free_queue ? p->ops->free_queue(p, NULL, 0) : 0;
    kv_block *queue = w->counters || length == 0 ? NULL : malloc((size_t)length * sizeof *queue);
    if (!queue) {
        if (w->counters) fprintf(w->out, ",\"free_queue\":%" PRIu64, length);
        else fputs(",\"free_queue\":[]", w->out);
        return;
    }
    p->ops->free_queue(p, queue, length);
    fputc(',', w->out);
    write_blocks("free_queue", queue, (size_t)length, w->out);
    free(queue);
}

void step_writer_end(struct step_writer *w)
{
    const struct engine *e = w->engine;
    const struct engine_stats *s = &e->stats;
    FILE *out = w->out;
    fprintf(out,
            "{\"summary\":true,\"rules\":\"%s\",\"steps\":%" PRIu64 ",\"requests\":%" PRIu64
            ",\"unfinished\":%" PRIu64 ",\"stalled\":%s,\"max_steps_reached\":%s",
            w->rules, s->steps, s->requests, e->waiting.count + e->running.count,
            s->stalled ? "true" : "false", s->max_steps_reached ? "true" : "false");
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        {"preemptions", s->preemptions},
        {"evictions", s->evictions},
        {"finished", s->finished},
        {"rejected", s->rejected},
        {"lookups", s->lookups},
        {"queries", s->queries},
        {"hits", s->hits},
        {"preempted_lookups", s->preempted_lookups},
        {"preempted_queries", s->preempted_queries},
        {"preempted_hits", s->preempted_hits},
        {"admitted_tokens", s->admitted_tokens},
        {"admitted_hit_tokens", s->admitted_hit_tokens},
        {"readmitted_tokens", s->readmitted_tokens},
        {"readmitted_hit_tokens", s->readmitted_hit_tokens},
        {"scheduled_tokens", s->scheduled_tokens},
        {"peak_used_blocks", s->peak_held_units},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        fprintf(out, ",\"%s\":%" PRIu64, counts[i].key, counts[i].value);
    }
    write_ratio("hit_rate", ratio(s->hits, s->queries), out);
    write_ratio("admitted_hit_rate", ratio(s->admitted_hit_tokens, s->admitted_tokens), out);
    fprintf(out, ",\"blocks_allocated\":%" PRIu64, s->units_allocated);
    write_free_queue(w);
    fprintf(out, ",\"digest\":\"%016" PRIx64 "\"}\n", w->digest);
}
