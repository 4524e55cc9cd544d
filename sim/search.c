#include "sim/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Checks on each side of an answer, in quarters of it. */
#define CHECKS_EACH_SIDE 3u

const char *const search_outcome_names[] = {
    [SEARCH_FOUND] = "found",
    [SEARCH_EVERYWHERE] = "holds everywhere",
    [SEARCH_NOWHERE] = "holds nowhere",
    [SEARCH_CUT] = "too few runs",
};

/* --- probes ----------------------------------------------------------------------------------- */

static struct search_probe *probe_at(struct search *s, uint64_t value, struct err *err)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->probes[i]->value == value) return s->probes[i];
    }
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? s->capacity * 2 : 64;
        struct search_probe **grown = realloc(s->probes, capacity * sizeof(*grown));
        if (!grown) {
            err_set(err, ERR_FAILED, "out of memory");
            return NULL;
        }
        s->probes = grown;
        s->capacity = capacity;
    }
    struct search_probe *probe = calloc(1, sizeof *probe);
    if (!probe) {
        err_set(err, ERR_FAILED, "out of memory");
        return NULL;
    }
    probe->value = value;
    s->probes[s->count++] = probe;
    return probe;
}

/* Runs what is not done of these values. */
static int run_all(struct search *s, const uint64_t *values, size_t count, struct err *err)
{
    struct search_probe **batch = calloc(count ? count : 1, sizeof(*batch));
    size_t in_batch = 0;
    int status = batch ? 0 : err_set(err, ERR_FAILED, "out of memory");
    for (size_t i = 0; status == 0 && i < count; i++) {
        struct search_probe *probe = probe_at(s, values[i], err);
        if (!probe) status = -1;
        else if (!probe->done) batch[in_batch++] = probe;
    }
    if (status == 0 && in_batch > 0) status = search_runner_run(s->runner, batch, in_batch, err);
    free(batch);
    return status;
}

/* The probe of the first value; if it has to be run, the others run beside it. Only the first counts. */
static struct search_probe *ask(struct search *s, const uint64_t *values, size_t count, struct err *err)
{
    struct search_probe *wanted = probe_at(s, values[0], err);
    if (!wanted || (!wanted->done && run_all(s, values, count, err))) return NULL;
    if (wanted->err.kind != ERR_NONE) {
        *err = wanted->err;
        return NULL;
    }
    if (!wanted->used) s->runs += s->replications;
    wanted->used = true;
    return wanted;
}

static bool may_run(const struct search *s)
{
    return s->runs + s->replications <= s->runs_max;
}

/* --- where to look next ------------------------------------------------------------------------- */

/* The direction in which the condition is expected to hold: a search for the smallest expects it above. */
static bool towards_larger(const struct search *s, bool holding)
{
    return s->smallest == holding;
}

static uint64_t doubled(const struct search *s, uint64_t value)
{
    return value > s->max / 2 ? s->max : value * 2;
}

static uint64_t halved(const struct search *s, uint64_t value)
{
    return value / 2 < s->min ? s->min : value / 2;
}

/* The next value of the bracket; the same when the range ends. */
static uint64_t further(const struct search *s, uint64_t value, bool larger)
{
    return larger ? doubled(s, value) : halved(s, value);
}

#define AHEAD_MAX 16u

/* Asks for the value after `from`, and for those that would come after it as long as threads are idle. */
static struct search_probe *ask_further(struct search *s, uint64_t from, bool larger, struct err *err)
{
    uint64_t values[AHEAD_MAX];
    size_t count = 0;
    do {
        uint64_t next = further(s, from, larger);
        if (count > 0 && next == from) break;
        values[count++] = from = next;
    } while (count < s->threads && count < AHEAD_MAX);
    return ask(s, values, count, err);
}

/* Asks for the middle, and ahead for the middles of the halves and so on, the likelier first. */
static struct search_probe *ask_middle(struct search *s, uint64_t low, uint64_t high, struct err *err)
{
    struct range {
        uint64_t low, high;
    } queue[2 * AHEAD_MAX + 2] = {{low, high}};
    uint64_t values[AHEAD_MAX];
    size_t count = 0, end = 1;
    for (size_t i = 0; i < end && count < AHEAD_MAX && (count == 0 || count < s->threads); i++) {
        uint64_t middle = queue[i].low + (queue[i].high - queue[i].low) / 2;
        if (middle == queue[i].low) continue;
        values[count++] = middle;
        queue[end++] = (struct range){queue[i].low, middle};
        queue[end++] = (struct range){middle, queue[i].high};
    }
    return ask(s, values, count, err);
}

/* --- the search --------------------------------------------------------------------------------- */

/* From the start away from its own answer, until the answer changes or the range ends. 1: *good holds and *bad does not.
 * 0: the outcome is known. */
static int bracket(struct search *s, uint64_t start, const struct search_probe **good, const struct search_probe **bad, struct err *err)
{
    const struct search_probe *at = ask(s, &start, 1, err);
    if (!at) return -1;
    /* Options that cannot run as they were given are a mistake, not an answer. */
    if (at->trouble[0]) return err_set(err, ERR_USAGE, "%s", at->trouble);
    if (strcmp(s->quantity->name, "rate") == 0 && isnan(at->requests_per_s))
        return err_set(err, ERR_INPUT, "--find: found a trace whose requests all arrive at once, expected one that has a rate");
    bool holding = at->holds, larger = towards_larger(s, !holding);
    *(holding ? good : bad) = at;
    for (;;) {
        s->last = at->value;
        if (further(s, at->value, larger) == at->value) {
            s->outcome = holding ? SEARCH_EVERYWHERE : SEARCH_NOWHERE;
            return 0;
        }
        if (!may_run(s)) {
            s->outcome = SEARCH_CUT;
            return 0;
        }
        at = ask_further(s, at->value, larger, err);
        if (!at) return -1;
        *(at->holds ? good : bad) = at;
        if (at->holds != holding) return 1;
    }
}

/* Down to neighbours. 1: done, 0: --find-runs ended before, -1 with err. */
static int bisect(struct search *s, const struct search_probe **good, const struct search_probe **bad, struct err *err)
{
    for (;;) {
        uint64_t a = (*good)->value, b = (*bad)->value;
        uint64_t low = a < b ? a : b, high = a < b ? b : a;
        if (high - low <= 1) return 1;
        if (!may_run(s)) return 0;
        const struct search_probe *middle = ask_middle(s, low, high, err);
        if (!middle) return -1;
        *(middle->holds ? good : bad) = middle;
    }
}

static void add_value(const struct search *s, uint64_t *values, size_t *count, uint64_t value)
{
    if (value < s->min || value > s->max) return;
    for (size_t i = 0; i < *count; i++) {
        if (values[i] == value) return;
    }
    values[(*count)++] = value;
}

/* Bisection takes for granted that the condition changes once. Looks around the answer whether it does. */
static int check_around(struct search *s, uint64_t answer, struct err *err)
{
    uint64_t values[2 * CHECKS_EACH_SIDE + 2];
    size_t count = 0;
    if (answer > 1) add_value(s, values, &count, answer - 2 + (s->smallest ? 0 : 1));
    add_value(s, values, &count, answer + 1 + (s->smallest ? 0 : 1));
    for (uint64_t i = 1; i <= CHECKS_EACH_SIDE; i++) {
        uint64_t part = answer / 4 * i + answer % 4 * i / 4;
        if (part > 0 && part < answer) add_value(s, values, &count, answer - part);
        uint64_t step = answer > 3 ? answer / 4 * i : i;
        add_value(s, values, &count, answer + step);
    }
    /* All at once; then each is asked for, in order, as far as --find-runs goes. */
    if (s->runs + count * s->replications <= s->runs_max && run_all(s, values, count, err)) return -1;
    for (size_t i = 0; i < count && may_run(s); i++) {
        if (!ask(s, &values[i], 1, err)) return -1;
    }
    return 0;
}

/* Whether a lies beyond b in the direction in which the condition is expected to hold. */
static bool beyond(const struct search *s, const struct search_probe *a, const struct search_probe *b)
{
    return towards_larger(s, true) ? a->value > b->value : a->value < b->value;
}

/* Where the condition fails again beyond the answer: the place from which on it holds at all that was tried. */
static int find_safe(struct search *s, struct err *err)
{
    const struct search_probe *bad = s->answer, *good = NULL;
    for (size_t i = 0; i < s->count; i++) {
        const struct search_probe *p = s->probes[i];
        if (p->used && !p->holds && beyond(s, p, bad)) bad = p;
    }
    if (bad == s->answer) return 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct search_probe *p = s->probes[i];
        if (p->used && p->holds && beyond(s, p, bad) && (!good || beyond(s, good, p))) good = p;
    }
    if (!good) return 0;
    int status = bisect(s, &good, &bad, err);
    if (status <= 0) return status;
    s->safe = good;
    s->safe_fails_at = bad->value;
    return 0;
}

int search_find(struct search *s, uint64_t start, struct err *err)
{
    const struct search_probe *good = NULL, *bad = NULL;
    int status = bracket(s, start, &good, &bad, err);
    if (status == 1) {
        status = bisect(s, &good, &bad, err);
        s->outcome = status == 1 ? SEARCH_FOUND : SEARCH_CUT;
    }
    if (status < 0) return -1;
    s->answer = good;
    s->has_fails_at = bad != NULL;
    if (bad) s->fails_at = bad->value;
    if (s->outcome != SEARCH_FOUND) return 0;
    return check_around(s, good->value, err) || find_safe(s, err) ? -1 : 0;
}

bool search_expected(const struct search *s, const struct search_probe *p)
{
    if (!s->answer) return !p->holds;
    bool inside = s->smallest ? p->value >= s->answer->value : p->value <= s->answer->value;
    return p->holds == inside;
}
