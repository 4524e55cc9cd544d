/* Recorded cases (tests/golden/vllm-v1): a folder with config.json and trace.jsonl[.gz], replayed step by
 * step, and the step lines in the schema of its expected.jsonl. */
#ifndef PAGESIM_REPLAY_H
#define PAGESIM_REPLAY_H

#include <stdbool.h>
#include <stdio.h>

#include "sim/engine.h"
#include "sim/optset.h"

struct replay {
    struct optset *set; /* the case's configuration as ordinary options */
    uint64_t max_steps;
    bool counters;      /* detail "counters" instead of "full" */
};

/* Reads DIR/config.json into options, the trace's path among them, and adds the output options that the user
 * gave. -1 with err; release it in any case. */
int replay_open(struct replay *replay, const char *directory, const struct optset *user,
                struct err *err);
void replay_release(struct replay *replay);

/* Writes one line a step and a summary at the end. */
struct step_writer {
    FILE *out;
    bool counters;
    bool clock_steps; /* the number of a step is its time (cases: idle steps are left out) */
    const char *rules;
    struct engine *engine; /* set by step_writer_begin */
    uint64_t digest;
};
void step_writer_begin(struct step_writer *writer, struct engine *engine);
void step_writer_step(void *writer, const struct step_view *view); /* a step hook */
void step_writer_end(struct step_writer *writer);

#endif
