/* `pagesim explain`: a run in pictures, instant by instant (docs/explain.md).
 *
 * An instant is a look at the engine (enum look_kind). Nothing of a run is kept but its options: to go anywhere, also
 * backwards, the run is simulated again from its start up to there, which gives the same instants each time. */
#ifndef PAGESIM_EXPLAIN_H
#define PAGESIM_EXPLAIN_H

#include <stdio.h>

#include "sim/engine_core.h"
#include "sim/memory_map.h"
#include "sim/optset.h"
#include "sim/replay.h"
#include "sim/simulation.h"

/* --- what happened since the instant before (explain_events.c) ------------------------------- */

#define EXPLAIN_NAME_BYTES 32

struct explain_event {
    enum event_kind kind;
    char name[EXPLAIN_NAME_BYTES]; /* of the request, or "" */
    uint64_t index;                /* of the request, or UINT64_MAX */
    uint64_t a, b;                 /* as engine.h says */
    bool runs;                     /* the request was running */
    uint64_t free_units, usable_units; /* of the pool at that moment: unallocated and evictable; in all */
    uint64_t detail; /* what more the sentence of this kind needs */
};

struct explain_events {
    struct explain_event *items;
    size_t count, capacity;
    bool out_of_memory;
};

void explain_events_add(struct explain_events *events, const struct engine *engine, enum event_kind kind,
                        const struct sim_request *request, uint64_t a, uint64_t b);
/* How many sentences there are to tell, and the i-th of them, most important first; text has EXPLAIN_SENTENCE_BYTES. */
size_t explain_sentences(const struct explain_events *events);
void explain_sentence(const struct explain_events *events, const struct engine *engine, size_t i, char *text);
#define EXPLAIN_SENTENCE_BYTES 400

/* --- content keys under short names (explain_keys.c) ------------------------------------------- */

/* Every key that a request admitted so far has had, and the key of the block before. */
struct explain_keys {
    struct explain_key *items; /* [count + 1], from number 1 on */
    uint32_t *table;           /* open addressing: numbers, 0 = empty */
    size_t count, capacity, table_size;
    bool full; /* too many, or memory is out: chains are not shown */
};

void explain_keys_add(struct explain_keys *keys, const struct sim_request *request);
/* The number of a key, 0 when it is not known. */
uint32_t explain_key_number(const struct explain_keys *keys, uint64_t key);
/* The number of the key before it in its chain; 0 for a first one. */
uint32_t explain_key_parent(const struct explain_keys *keys, uint32_t number);
void explain_keys_release(struct explain_keys *keys);

/* --- one instant, and its picture (explain_picture.c, explain_pool.c) -------------------------- */

struct explain_moment {
    uint64_t instant; /* from 0 */
    uint64_t instants; /* of the whole run; 0: not known */
    enum look_kind kind;
    const struct explain_events *events;
    const struct explain_keys *keys;
};

struct explain_screen {
    FILE *out;
    unsigned columns, rows; /* at least 40 and 10 */
    bool color, utf8;
    unsigned column; /* while drawing */
};

/* Draws the engine as it stands; the map is scratch that is kept from picture to picture. -1 with err. */
int explain_draw(struct explain_screen *screen, struct engine *engine, const struct explain_moment *moment,
                 struct memory_map *map, struct err *err);

/* For the parts of the picture. Text in the colour of a request, UINT64_MAX: of none. Never wider than the screen. */
void explain_put(struct explain_screen *screen, uint64_t request, const char *text);
void explain_putf(struct explain_screen *screen, const char *format, ...) __attribute__((format(printf, 2, 3)));
void explain_end_line(struct explain_screen *screen);
/* The letter that stands for a request: A to Z by its number in the trace. */
char explain_letter(uint64_t request);
/* Rows that the pool takes when it may take `rows`, and the pool; then the line that explains its signs. */
unsigned explain_pool_rows(const struct explain_screen *screen, const struct memory_map *map, unsigned rows);
void explain_pool(struct explain_screen *screen, const struct engine *engine, const struct memory_map *map, unsigned rows);

/* --- going through a run (explain_walk.c) ------------------------------------------------------ */

struct explain_walk {
    const struct optset *set;
    struct options options;
    struct wl_source *source;
    struct trace_facts facts;
    struct replay replay;
    bool used;         /* the source was read */
    uint64_t instants; /* 0: not counted yet */
    struct memory_map map;
    struct explain_screen screen;
};

enum explain_goal_kind {
    GOAL_INSTANT, /* that number */
    GOAL_STEP,    /* the first instant of that step, or with `end` its end */
    GOAL_EVENT,   /* one with an event of the mask */
    GOAL_REQUEST, /* one with an event of that request, or where it is drawn first */
};

struct explain_goal {
    enum explain_goal_kind kind;
    uint64_t number; /* instant or step */
    bool end;
    uint32_t events; /* bits of enum event_kind */
    const char *request;
    bool backwards;  /* the last one before `from`, else the first one behind it */
    uint64_t from;
};

/* Options and trace of `pagesim explain`. -1 with err; release it in any case. */
int explain_walk_open(struct explain_walk *walk, const struct optset *set, struct err *err);
void explain_walk_release(struct explain_walk *walk);
/* Runs to the goal and draws what is there. 1: drawn, *at is its number; 0: there is no such instant; -1 with err. */
int explain_walk_to(struct explain_walk *walk, const struct explain_goal *goal, uint64_t *at, struct err *err);
/* Runs to the end once and counts. */
int explain_walk_count(struct explain_walk *walk, struct err *err);

/* --- the user (explain_terminal.c) ------------------------------------------------------------- */

/* Size, colours and characters of standard output. */
void explain_screen_init(struct explain_screen *screen);
/* Reads keys from a terminal, or commands as lines from anything else, until q or the end. -1 with err. */
int explain_interact(struct explain_walk *walk, struct err *err);

#endif
