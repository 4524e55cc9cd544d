/* A run as Chrome trace events, for ui.perfetto.dev and chrome://tracing.
 *
 * The format: "Trace Event Format" (Google, 2016), JSON object form. Times are microseconds with three decimals, so that
 * nanoseconds are exact. Process 1 has a track for each request, with a span for each phase (queued, prefill, decode, preempted,
 * swapped) and instants; process 2 the steps; process 3 counters: bytes by state, running sequences. */
#ifndef PAGESIM_PERFETTO_H
#define PAGESIM_PERFETTO_H

#include "sim/engine.h"
#include "sim/outfile.h"

struct perfetto {
    struct outfile *file;
    FILE *out; /* NULL: not wanted */
    struct perfetto_request {
        uint8_t phase;     /* enum phase; 0: no span is open */
        uint64_t lost;     /* tokens to be computed again after a preemption */
    } *requests;           /* by number of the request */
    uint64_t request_count;
    uint64_t last_ns;
    uint64_t step_ns;  /* when the last step began */
    bool stepped;
    struct levels levels;  /* as last written */
    bool any, levels_written, out_of_memory;
};

/* -1 with err. */
int perfetto_open(struct perfetto *p, const char *path, struct err *err);
/* What the hooks of the engine tell. */
void perfetto_event(struct perfetto *p, uint64_t time_ns, enum event_kind kind, const struct sim_request *request,
                    uint64_t a, uint64_t b);
void perfetto_step(struct perfetto *p, const struct step_view *view);
void perfetto_stretch(struct perfetto *p, const struct levels *levels, uint64_t begin, uint64_t end);
/* Ends what is open; the file appears under its name. -1 with err, and no file. */
int perfetto_commit(struct perfetto *p, struct err *err);
void perfetto_abandon(struct perfetto *p);

#endif
