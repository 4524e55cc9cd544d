#include "sim/perfetto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_core.h"

enum { REQUESTS = 1, ENGINE = 2, POOL = 3 }; /* processes */
enum phase { PHASE_NONE, PHASE_QUEUED, PHASE_PREFILL, PHASE_DECODE, PHASE_PREEMPTED, PHASE_SWAPPED, PHASES };
static const char *const phase_names[PHASES] = {"", "queued", "prefill", "decode", "preempted", "swapped"};

/* --- pieces of JSON ---------------------------------------------------------------------------- */

static void print_string(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') fprintf(out, "\\%c", c);
        else if (c < 0x20) fprintf(out, "\\u%04x", c);
        else fputc(c, out);
    }
    fputc('"', out);
}

/* Begins an event, up to what stands behind its name. */
static void begin(struct perfetto *p, const char *name, char ph, uint64_t time_ns, int pid, uint64_t tid)
{
    fputs(p->any ? ",\n" : "\n", p->out);
    p->any = true;
    fprintf(p->out, "{\"name\": \"%s\", \"ph\": \"%c\", \"ts\": %" PRIu64 ".%03" PRIu64 ", \"pid\": %d, \"tid\": %" PRIu64, name, ph,
            time_ns / 1000, time_ns % 1000, pid, tid);
}

static void end(struct perfetto *p)
{
    fputc('}', p->out);
}

static void name_process(struct perfetto *p, int pid, const char *name)
{
    begin(p, "process_name", 'M', 0, pid, 0);
    fprintf(p->out, ", \"args\": {\"name\": \"%s\"}", name);
    end(p);
}

int perfetto_open(struct perfetto *p, const char *path, struct err *err)
{
    memset(p, 0, sizeof *p);
    p->file = outfile_open(path, err);
    if (!p->file) return -1;
    p->out = outfile_stream(p->file);
    fputs("{\"displayTimeUnit\": \"ms\", \"otherData\": {\"pagesim\": \"" PAGESIM_VERSION "\"}, \"traceEvents\": [", p->out);
    name_process(p, REQUESTS, "requests");
    name_process(p, ENGINE, "engine");
    name_process(p, POOL, "pool");
    begin(p, "thread_name", 'M', 0, ENGINE, 1);
    fputs(", \"args\": {\"name\": \"steps\"}", p->out);
    end(p);
    return 0;
}

/* --- requests ---------------------------------------------------------------------------------- */

static struct perfetto_request *request_of(struct perfetto *p, const struct sim_request *r)
{
    if (r->index >= p->request_count) {
        uint64_t count = r->index < 512 ? 1024 : r->index * 2;
        struct perfetto_request *grown = count < SIZE_MAX / sizeof *grown ? realloc(p->requests, count * sizeof *grown) : NULL;
        if (!grown) {
            p->out_of_memory = true;
            return NULL;
        }
        memset(grown + p->request_count, 0, (count - p->request_count) * sizeof *grown);
        p->requests = grown;
        p->request_count = count;
    }
    return &p->requests[r->index];
}

/* Tracks are numbered from 1. */
static void change_phase(struct perfetto *p, uint64_t index, enum phase phase, uint64_t time_ns)
{
    struct perfetto_request *q = &p->requests[index];
    if (q->phase != PHASE_NONE) {
        begin(p, phase_names[q->phase], 'E', time_ns, REQUESTS, index + 1);
        end(p);
    }
    if (phase != PHASE_NONE) {
        begin(p, phase_names[phase], 'B', time_ns, REQUESTS, index + 1);
        end(p);
    }
    q->phase = (uint8_t)phase;
}

/* Those that arrive during a step are told at its end. (Under the serial scheduler there are no steps, and time counts requests.) */
static uint64_t arrived_ns(const struct perfetto *p, const struct sim_request *r, uint64_t told_ns)
{
    bool in_step = p->stepped && r->arrival_ns >= p->step_ns && r->arrival_ns <= told_ns;
    return in_step ? r->arrival_ns : told_ns;
}

static void name_track(struct perfetto *p, const struct sim_request *r)
{
    char name[24];
    begin(p, "thread_name", 'M', 0, REQUESTS, r->index + 1);
    fputs(", \"args\": {\"name\": ", p->out);
    print_string(sim_request_name(r, name, sizeof name), p->out);
    fputs("}", p->out);
    end(p);
}

static void instant(struct perfetto *p, const struct sim_request *r, enum event_kind kind, uint64_t time_ns, uint64_t a,
                    uint64_t b)
{
    static const char *const keys[EVENT_KIND_COUNT][2] = {
        [EVENT_REFUSE] = {"ask_units", "obtainable_units"}, [EVENT_EVICT] = {"block", NULL}, [EVENT_COPY] = {"from_block", "to_block"},
        [EVENT_FORK] = {"children", NULL}, [EVENT_DEVICE_OOM] = {"ask_bytes", "free_bytes"}, [EVENT_PREEMPT] = {"lost_tokens", NULL},
        [EVENT_ADMIT] = {"hit_tokens", "new_units"}, [EVENT_FETCH] = {"blocks", NULL}, [EVENT_OFFLOAD] = {"blocks", NULL},
    };
    begin(p, event_names[kind], 'i', time_ns, r ? REQUESTS : ENGINE, r ? r->index + 1 : 1);
    fprintf(p->out, ", \"s\": \"t\", \"args\": {");
    if (keys[kind][0]) fprintf(p->out, "\"%s\": %" PRIu64, keys[kind][0], a);
    if (keys[kind][1]) fprintf(p->out, ", \"%s\": %" PRIu64, keys[kind][1], b);
    fputc('}', p->out);
    end(p);
}

void perfetto_event(struct perfetto *p, uint64_t time_ns, enum event_kind kind, const struct sim_request *r, uint64_t a,
                    uint64_t b)
{
    struct perfetto_request *q = r ? request_of(p, r) : NULL;
    p->last_ns = time_ns;
    if (r && !q) return;
    switch (kind) {
    case EVENT_ARRIVE:
        name_track(p, r);
        change_phase(p, r->index, PHASE_QUEUED, arrived_ns(p, r, time_ns));
        break;
    case EVENT_ADMIT:
        change_phase(p, r->index, PHASE_PREFILL, time_ns);
        instant(p, r, kind, time_ns, a, b);
        break;
    case EVENT_FIRST_TOKEN: change_phase(p, r->index, PHASE_DECODE, time_ns); break;
    case EVENT_PREEMPT:
        instant(p, r, kind, time_ns, a, b);
        q->lost = a;
        change_phase(p, r->index, PHASE_PREEMPTED, time_ns);
        break;
    case EVENT_SWAP_OUT: change_phase(p, r->index, PHASE_SWAPPED, time_ns); break;
    case EVENT_SWAP_IN: change_phase(p, r->index, PHASE_DECODE, time_ns); break;
    case EVENT_REJECT:
    case EVENT_UNSERVABLE:
    case EVENT_ABORT: instant(p, r, kind, time_ns, a, b); /* fall through */
    case EVENT_FINISH: change_phase(p, r->index, PHASE_NONE, time_ns); break;
    case EVENT_REFUSE:
    case EVENT_EVICT:
    case EVENT_COPY:
    case EVENT_FORK:
    case EVENT_FETCH:
    case EVENT_OFFLOAD:
    case EVENT_DEVICE_OOM: instant(p, r, kind, time_ns, a, b); break;
    case EVENT_GROW:
    case EVENT_KIND_COUNT: break;
    }
}

/* --- steps and counters ------------------------------------------------------------------------- */

void perfetto_step(struct perfetto *p, const struct step_view *v)
{
    uint64_t tokens = 0;
    p->step_ns = v->time_ns;
    p->stepped = true;
    for (size_t i = 0; i < v->scheduled_count; i++) {
        const struct scheduled *s = &v->scheduled[i];
        tokens += s->new_tokens * s->width;
        /* A request that comes back has no second first token: it decodes again once it has what it lost. */
        struct perfetto_request *q = request_of(p, s->request);
        if (q && q->phase == PHASE_PREFILL && q->lost > 0 && s->request->first_token_ns != 0 && s->request->outputs > 0 &&
            s->computed_before + s->new_tokens > q->lost)
            change_phase(p, s->request->index, PHASE_DECODE, v->time_ns + v->duration_ns);
    }
    begin(p, "step", 'X', v->time_ns, ENGINE, 1);
    fprintf(p->out,
            ", \"dur\": %" PRIu64 ".%03" PRIu64 ", \"args\": {\"step\": %" PRIu64 ", \"requests\": %zu, \"tokens\": %" PRIu64
            ", \"running\": %" PRIu64 ", \"waiting\": %" PRIu64 "}",
            v->duration_ns / 1000, v->duration_ns % 1000, v->step, v->scheduled_count, tokens, v->running, v->waiting);
    end(p);
}

static void counters(struct perfetto *p, const struct levels *levels, uint64_t time_ns)
{
    begin(p, "pool bytes", 'C', time_ns, POOL, 0);
    fputs(", \"args\": {", p->out);
    for (int s = 0; s < STATE_COUNT; s++)
        fprintf(p->out, "%s\"%s\": %" PRIu64, s ? ", " : "", state_names[s], levels->state_bytes[s]);
    fputc('}', p->out);
    end(p);
    begin(p, "running sequences", 'C', time_ns, POOL, 0);
    fprintf(p->out, ", \"args\": {\"running\": %" PRIu64 "}", levels->running_seqs);
    end(p);
}

static bool same_levels(const struct levels *a, const struct levels *b)
{
    return memcmp(a->state_bytes, b->state_bytes, sizeof a->state_bytes) == 0 && a->running_seqs == b->running_seqs;
}

void perfetto_stretch(struct perfetto *p, const struct levels *levels, uint64_t begin_ns, uint64_t end_ns)
{
    p->last_ns = end_ns;
    if (p->levels_written && same_levels(levels, &p->levels)) return;
    counters(p, levels, begin_ns);
    p->levels = *levels;
    p->levels_written = true;
}

/* --- the end ------------------------------------------------------------------------------------ */

int perfetto_commit(struct perfetto *p, struct err *err)
{
    if (!p->file) return 0;
    for (uint64_t i = 0; i < p->request_count; i++)
        if (p->requests[i].phase != PHASE_NONE) change_phase(p, i, PHASE_NONE, p->last_ns);
    fputs("\n]}\n", p->out);
    if (p->out_of_memory) {
        perfetto_abandon(p);
        return err_set(err, ERR_FAILED, "out of memory");
    }
    struct outfile *file = p->file;
    p->file = NULL;
    perfetto_abandon(p);
    return outfile_commit(file, err);
}

void perfetto_abandon(struct perfetto *p)
{
    outfile_abandon(p->file);
    free(p->requests);
    *p = (struct perfetto){0};
}
