/* `run --memory-map FILE`: pictures of the pool at regular steps, one JSON object a line (docs/metrics.md). The first
 * line describes the pool, each other one is a frame.
 *
 * How long a run will be is not known at its start. So frames are taken at every step at first; when there are twice as
 * many as wanted, every second one is dropped, and the steps between them double. */
#ifndef PAGESIM_MAP_LOG_H
#define PAGESIM_MAP_LOG_H

#include "sim/memory_map.h"
#include "sim/outfile.h"

/* A larger pool is shown in cells of several units. */
#define MAP_CELLS_MAX 4096u

/* Segments of a frame's device beyond that are only counted. */
#define MAP_SEGMENTS_MAX 256u

struct map_frame {
    char *line;
    uint64_t step;
};

struct map_log {
    struct outfile *file; /* NULL: none is wanted */
    struct memory_map map;
    bool ready, failed;
    uint64_t wanted, stride; /* frames; steps from one to the next */
    struct map_frame *frames; /* [2 * wanted] */
    size_t count;
    uint64_t units_per_cell;
    char *header;
    struct err err; /* of what failed in a step */
};

/* Begins a file with up to about `frames` frames. -1 with err. */
int map_log_open(struct map_log *log, const char *path, uint64_t frames, struct err *err);
/* An engine hook `look`; context is the map_log. */
void map_log_look(void *context, struct engine *engine, enum look_kind kind);
/* The file appears under its name, or nothing does. */
int map_log_commit(struct map_log *log, struct err *err);
void map_log_abandon(struct map_log *log);

#endif
