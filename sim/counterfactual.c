#include "sim/counterfactual.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_core.h"
#include "sim/sizes.h"

int counterfactual_parse(const char *text, uint64_t *number, struct err *err)
{
    *number = strcmp(text, "first") == 0;
    if (*number == 1 || strcmp(text, "worst") == 0) return 0;
    char *end = NULL;
    if (text[0] >= '1' && text[0] <= '9' && strlen(text) < 19) *number = strtoull(text, &end, 10);
    if (end && *end == '\0') return 0;
    return err_set(err, ERR_USAGE,
                   "--explain-refusal: found '%.40s', expected first, worst or a number from 1 on", text);
}

/* --- keys ---------------------------------------------------------------------------------- */

struct keys {
    struct result *result;
    char prefix[96];
};

static const char *key_of(const struct keys *keys, const char *name, char *buffer, size_t bytes)
{
    snprintf(buffer, bytes, "explain.%s%s", keys->prefix, name);
    return buffer;
}
#define KEY_BYTES 160

static void put_u64(const struct keys *keys, const char *name, uint64_t value)
{
    char key[KEY_BYTES];
    result_u64(keys->result, key_of(keys, name, key, sizeof key), value);
}

static void put_text(const struct keys *keys, const char *name, const char *value)
{
    char key[KEY_BYTES];
    result_text(keys->result, key_of(keys, name, key, sizeof key), value);
}

static void put_bool(const struct keys *keys, const char *name, bool value)
{
    char key[KEY_BYTES];
    result_bool(keys->result, key_of(keys, name, key, sizeof key), value);
}

static uint64_t count_in(const struct result *r, const char *key)
{
    const struct result_entry *entry = result_find(r, key);
    return entry && entry->kind == RESULT_U64 ? entry->u64 : 0;
}

static void put_episode(struct result *result, const struct refusal_watch *w)
{
    struct keys keys = {.result = result, .prefix = "refusal."};
    const struct episode *e = &w->episode;
    const struct refusal_facts *f = &e->facts;
    put_u64(&keys, "number", e->number);
    put_u64(&keys, "request_line", e->request_index + 1);
    put_text(&keys, "kind", demand_kind_names[refusal_kind(f)]);
    put_u64(&keys, "start_ns", e->begin);
    put_u64(&keys, "end_ns", w->end);
    put_u64(&keys, "attempts", e->attempts);
    put_text(&keys, "class", class_names[e->class]);
    put_text(&keys, "primary", cause_names[e->proof.primary]);
    put_u64(&keys, "unit_bytes", f->unit_bytes);
    put_u64(&keys, "ask_units", f->ask_units);
    put_u64(&keys, "need_units", f->need_units);
    put_u64(&keys, "e_units", f->e_units);
    put_u64(&keys, "r_units", f->r_units);
    put_u64(&keys, "a_units", f->a_units);
    put_u64(&keys, "shortfall_units", e->proof.shortfall_units);
    snprintf(keys.prefix, sizeof keys.prefix, "refusal.cause_bytes.");
    for (int c = 0; c < CAUSE_COUNT; c++) put_u64(&keys, cause_names[c], (uint64_t)e->proof.parts_bytes[c]);
}

/* --- local ----------------------------------------------------------------------------------- */

static int run_engine(struct engine_config *config, struct wl_source *source, struct engine **engine,
                      struct err *err)
{
    if (wl_rewind(source, err)) return -1;
    *engine = engine_create(config, err);
    if (!*engine) return -1;
    if (engine_run(*engine, source, err) == 0) return 0;
    engine_destroy(*engine);
    return -1;
}

/* The device's demand is not the policy's to grant: what would help is a boundary further in, by as many free bytes of the pool. */
static void settle_device(struct local_trials *trials, const struct episode *e)
{
    uint64_t missing = e->proof.shortfall_units, pool_free = e->facts.boundary_units;
    uint64_t moved = trials->boundary_bytes > 0 ? trials->boundary_bytes : missing;
    for (int c = 0; c < LOCAL_COUNT; c++) {
        trials->trials[c].verdict = VERDICT_NOT_APPLICABLE;
        snprintf(trials->trials[c].why, sizeof trials->trials[c].why, "the device's demand, not the pool's");
    }
    struct local_trial *boundary = &trials->trials[LOCAL_BOUNDARY];
    trials->moved_bytes = moved;
    boundary->verdict = moved >= missing && moved <= pool_free ? VERDICT_GRANTED : VERDICT_REFUSED;
    snprintf(boundary->why, sizeof boundary->why,
             "%" PRIu64 " bytes moved out of the pool, which has %" PRIu64 " free; %" PRIu64 " missing", moved, pool_free,
             missing);
}

static int run_local(const struct explained_run *run, const struct engine_config *base, struct local_trials *trials,
                     struct err *err)
{
    struct engine_config config = *base;
    config.hooks = (struct engine_hooks){.refused = local_trials_refused, .refused_context = trials};
    while (local_trials_open(trials)) {
        struct engine *engine;
        trials->reached = false;
        if (run_engine(&config, run->source, &engine, err)) return -1;
        engine_destroy(engine);
        if (trials->out_of_memory) return err_set(err, ERR_FAILED, "out of memory");
        if (!trials->reached) {
            return err_set(err, ERR_FAILED, "--explain-refusal: refusal %" PRIu64 " was not met again",
                           trials->episode);
        }
    }
    return 0;
}

static void put_local(struct result *result, const struct local_trials *trials)
{
    for (int c = 0; c < LOCAL_COUNT; c++) {
        struct keys keys = {.result = result};
        snprintf(keys.prefix, sizeof keys.prefix, "local.%.40s.", local_change_names[c]);
        put_text(&keys, "verdict", verdict_names[trials->trials[c].verdict]);
        put_text(&keys, "why", trials->trials[c].why);
        if (c == LOCAL_BOUNDARY) put_u64(&keys, "moved_bytes", trials->moved_bytes);
    }
}

/* --- global ---------------------------------------------------------------------------------- */

/* What became of the run under a variant. */
struct outcome {
    bool ran, helps;
    bool clairvoyant; /* or `ideal`: a bound, nothing that a server could be set to */
    struct err err; /* why it did not run */
    struct refusal_watch watch;
    struct engine_stats stats; /* its quantiles are released */
};

static int run_variant(const struct explained_run *run, const struct variant *v, uint64_t pool_bytes,
                       struct outcome *out, struct err *err)
{
    struct options options;
    struct engine_config config;
    struct engine *engine;
    *out = (struct outcome){.watch = {.request = run->watch->episode.request_index}};
    struct optset *set = variant_set(run->set, v, pool_bytes, &out->err);
    if (!set || options_resolve(set, &options, &out->err) ||
        simulation_configure(&config, set, &options, run->facts, &out->err)) {
        optset_destroy(set);
        return out->err.kind == ERR_FAILED ? err_set(err, ERR_FAILED, "%s", out->err.text) : 0;
    }
    config.watch = &out->watch;
    int status = run_engine(&config, run->source, &engine, &out->err);
    optset_destroy(set);
    if (status) return out->err.kind == ERR_USAGE ? 0 : err_set(err, out->err.kind, "%s", out->err.text);
    out->ran = true;
    out->stats = *engine_stats(engine);
    out->helps = out->watch.request_episodes == 0 && !out->watch.request_unservable;
    /* Foreseeing is the run's own, with every change to it. */
    out->clairvoyant = engine_policy(engine)->clairvoyant && !engine_policy(engine)->foresees;
    engine_destroy(engine);
    return 0;
}

static void put_outcome(struct result *result, const struct variant *v, const struct outcome *out)
{
    struct keys keys = {.result = result};
    char key[KEY_BYTES];
    snprintf(keys.prefix, sizeof keys.prefix, "global.%.60s.", v->name);
    put_text(&keys, "option", v->option);
    put_text(&keys, "value", v->value);
    put_text(&keys, "error", out->ran ? NULL : out->err.text);
    if (!out->ran) return;
    const struct engine_stats *s = &out->stats;
    double change = (double)s->refusals.episodes - (double)count_in(result, "refusals.episodes");
    put_bool(&keys, "clairvoyant", out->clairvoyant);
    put_bool(&keys, "still_refused", out->watch.request_episodes > 0);
    put_bool(&keys, "request_unservable", out->watch.request_unservable);
    put_u64(&keys, "request_episodes", out->watch.request_episodes);
    put_u64(&keys, "request_refused_ns", out->watch.request_time);
    put_u64(&keys, "episodes", s->refusals.episodes);
    result_f64(result, key_of(&keys, "episodes_change", key, sizeof key), change);
    put_u64(&keys, "despite_free", s->refusals.by_class[CLASS_DESPITE_FREE]);
    put_u64(&keys, "requests", s->refusals.requests);
    put_u64(&keys, "preemptions", s->preemptions);
    put_u64(&keys, "unservable", s->unservable);
}

/* The settings in turn; cheapest gets the name of the first that helps, unless it has one. */
static int run_global(struct result *result, const struct explained_run *run, const struct engine_config *base,
                      char *cheapest, size_t cheapest_bytes, struct err *err)
{
    struct variant variants[VARIANTS_MAX];
    uint64_t pool_bytes = base->geometry.pool_bytes;
    size_t count = variants_list(variants, run->options, base, pool_bytes, count_in(result, "running.max"));
    for (size_t i = 0; i < count; i++) {
        struct outcome out;
        if (run_variant(run, &variants[i], pool_bytes, &out, err)) return -1;
        put_outcome(result, &variants[i], &out);
        if (out.helps && !out.clairvoyant && cheapest[0] == '\0') {
            snprintf(cheapest, cheapest_bytes, "global.%.60s", variants[i].name);
        }
    }
    return 0;
}

int counterfactual_run(struct result *result, const struct explained_run *run, struct err *err)
{
    struct keys keys = {.result = result};
    const struct refusal_watch *w = run->watch;
    put_bool(&keys, "found", w->seen);
    if (!w->seen) return 0;
    struct engine_config base;
    if (simulation_configure(&base, run->set, run->options, run->facts, err)) return -1;
    struct local_trials trials = {.episode = w->episode.number, .boundary_bytes = run->boundary_bytes};
    char cheapest[80] = "";
    put_episode(result, w);
    if (w->episode.facts.device) settle_device(&trials, &w->episode);
    if (run_local(run, &base, &trials, err)) return -1;
    put_local(result, &trials);
    for (int c = 0; c < LOCAL_COUNT && cheapest[0] == '\0'; c++) {
        if (trials.trials[c].verdict != VERDICT_GRANTED) continue;
        snprintf(cheapest, sizeof cheapest, "local.%.40s", local_change_names[c]);
    }
    if (run_global(result, run, &base, cheapest, sizeof cheapest, err)) return -1;
    put_text(&keys, "cheapest", cheapest[0] ? cheapest : NULL);
    return result->out_of_memory ? err_set(err, ERR_FAILED, "out of memory") : 0;
}
