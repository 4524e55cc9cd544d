/* The detail files of a run: --timeline, --events, --oom-log, which are CSV, each with a header; and --perfetto. */
#ifndef PAGESIM_RUN_LOGS_H
#define PAGESIM_RUN_LOGS_H

#include "sim/engine.h"
#include "sim/outfile.h"
#include "sim/perfetto.h"

/* More rows than this are refused: the interval is too short for the run. */
#define TIMELINE_ROWS_MAX 10000000u

/* Rows of a timeline that chooses its interval, at most: intervals grow to 1, 2, 10, 20, 100, ... µs as the run does. */
#define TIMELINE_CHOSEN_ROWS 32768u

struct timeline_row {
    uint64_t begin_ns, end_ns;
    u128 state_byte_time[STATE_COUNT];
    u128 running_time;
};

struct timeline {
    FILE *out;
    uint64_t interval_ns;
    struct timeline_row row; /* the present one */
    bool started;
    uint64_t rows;
    /* Kept until the end when the interval is chosen; else NULL. */
    struct timeline_row *kept;
    bool grow_by_5; /* else by 2 */
};

struct run_logs {
    struct outfile *timeline_file, *events_file, *oom_file;
    struct timeline timeline;
    FILE *events, *oom;
    uint64_t bytes_per_unit;
    bool too_many_rows;
    struct perfetto perfetto; /* --perfetto; opened after the others by perfetto_open */
};

/* Opens what has a path (NULL: not wanted) and writes the headers. timeline_interval_ns 0: chosen by the length of the run.
 * -1 with err. */
int run_logs_open(struct run_logs *logs, const char *timeline_path, uint64_t timeline_interval_ns,
                  const char *events_path, const char *oom_path, struct err *err);
/* Sets the hooks' functions that the open files need; context must be logs. */
void run_logs_hook(struct run_logs *logs, struct engine_hooks *hooks);
/* All files appear under their names, or (on -1) none does that was not there before. */
int run_logs_commit(struct run_logs *logs, struct err *err);
void run_logs_abandon(struct run_logs *logs);

#endif
