/* `pagesim run --find 'min pool' --such-that CONDITION`: the smallest or largest value of a setting at which a condition holds
 * (docs/compare.md). */
#ifndef PAGESIM_SEARCH_H
#define PAGESIM_SEARCH_H

#include <stdio.h>

#include "sim/optset.h"
#include "sim/result.h"

/* A setting that can be searched, as whole numbers of some unit. */
struct search_quantity {
    const char *name;   /* "pool" */
    const char *option; /* "num-gpu-blocks-override" */
    const char *unit;   /* "blocks" */
    uint64_t min, max;
    /* The value that the options have now, in the unit; within min and max. -1 with err. */
    int (*start)(const struct options *o, uint64_t *value, struct err *err);
    /* The option's text for a value. */
    void (*text)(uint64_t value, char *out, size_t bytes);
};
#define SEARCH_TEXT_BYTES 32

const struct search_quantity *search_quantities(size_t *count);

/* "min pool", "max rate": the quantity, and whether the smallest is asked for. NULL with err (ERR_USAGE). */
const struct search_quantity *search_parse(const char *text, bool *smallest, struct err *err);

/* What a value of the setting led to, in all replications. */
struct search_probe {
    uint64_t value;
    bool done, used;      /* simulated; and on the way of the search, or one of its checks */
    bool holds;           /* in every replication */
    size_t held;          /* replications in which it held */
    double requests_per_s; /* of the first replication's arrivals; nan: all at once */
    char trouble[256];    /* why it could not run: it then does not hold; or "" */
    struct err err;       /* a failure of another kind: the search ends there */
    struct optset **sets; /* one for each replication, as the results */
    struct result *results;
};

/* Runs the probes that are not done, several at once. -1 with err when memory is out or the trace cannot be read. */
struct search_runner;
struct search_runner *search_runner_create(const struct optset *set, const struct options *o, const struct search_quantity *q,
                                           struct err *err);
int search_runner_run(struct search_runner *runner, struct search_probe *const *probes, size_t count, struct err *err);
void search_probe_release(struct search_runner *runner, struct search_probe *probe);
void search_runner_destroy(struct search_runner *runner); /* after its probes; NULL is fine */

enum search_outcome {
    SEARCH_FOUND,      /* holds at `answer`, does not at the value before it */
    SEARCH_EVERYWHERE, /* holds up to the end of the range, which is `answer` */
    SEARCH_NOWHERE,    /* does not hold from the start to the end of the range */
    SEARCH_CUT,        /* --find-runs was not enough: holds at `answer` and not at `fails_at`, if those are known */
};
extern const char *const search_outcome_names[];

/* The search itself. Probes are in the order of their making. */
struct search {
    const struct search_quantity *quantity;
    bool smallest;
    uint64_t min, max; /* of the values */
    const char *condition;
    uint64_t replications;
    uint64_t runs, runs_max; /* simulations of used probes */
    unsigned threads;        /* how many probes are worth running at once */
    struct search_runner *runner;
    struct search_probe **probes;
    size_t count, capacity;

    enum search_outcome outcome;
    const struct search_probe *answer; /* or NULL */
    bool has_fails_at;
    uint64_t fails_at;
    uint64_t last; /* where a search that found nothing ended */
    const struct search_probe *safe; /* of a condition that fails again beyond the answer: from here on it holds at all that was tried; or NULL */
    uint64_t safe_fails_at;          /* the value before it */
};

/* Brackets from `start`, bisects, then probes around the answer. The probes that are used, and with them the outcome, do not
 * depend on the number of threads; others are run ahead on idle cores. -1 with err. */
int search_find(struct search *search, uint64_t start, struct err *err);
/* Whether the probe is as the answer makes one expect: holds from there on in one direction, not in the other. */
bool search_expected(const struct search *search, const struct search_probe *probe);

void search_print_table(const struct search *search, FILE *out);
int search_print_json(const struct search *search, FILE *out, struct err *err);

/* All of it, for the set of `run`. A status of the command, or -1 with err. */
int search_command(const struct optset *set, struct err *err);

#endif
