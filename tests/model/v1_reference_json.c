/* The reference's result as the lines of expected.jsonl. */
#include "tests/model/v1_reference.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Every json_t in here is made at once and owned by its parent. */
static void set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        abort();
}

static void set_count(json_t *object, const char *key, uint64_t value)
{
    set(object, key, json_integer((json_int_t)value));
}

static void set_bool(json_t *object, const char *key, bool value)
{
    set(object, key, json_boolean(value));
}

/* Rounded to 6 decimals, as the expected lines are. */
static void set_ratio(json_t *object, const char *key, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.6f", value);
    set(object, key, json_real(strtod(text, NULL)));
}

static void set_digest(json_t *object, uint64_t digest)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, digest);
    set(object, "digest", json_string(text));
}

static void append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        abort();
}

static void set_numbers(json_t *object, const char *key, const struct v1_list *list)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < list->n; i++)
        append(array, json_integer(list->v[i]));
    set(object, key, array);
}

static void set_ids(json_t *object, const char *key, const struct v1_case *c, const struct v1_list *requests)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < requests->n; i++)
        append(array, json_string(c->requests[requests->v[i]].id));
    set(object, key, array);
}

static json_t *scheduled_json(const struct v1_case *c, const struct v1_scheduled *entry)
{
    json_t *o = json_object();
    set(o, "id", json_string(c->requests[entry->request].id));
    set_count(o, "num_new_tokens", entry->num_new_tokens);
    set_count(o, "num_computed_tokens", entry->num_computed_tokens);
    if (entry->admission) {
        set_count(o, "cached_tokens", entry->num_computed_tokens);
        set_numbers(o, "hit_blocks", &entry->hit_blocks);
    }
    set_numbers(o, "new_blocks", &entry->new_blocks);
    set_bool(o, "preempted", entry->preempted);
    return o;
}

static void set_events(json_t *o, const struct v1_case *c, const struct v1_step *step)
{
    json_t *scheduled = json_array();
    for (uint32_t i = 0; i < step->num_scheduled; i++)
        append(scheduled, scheduled_json(c, &step->scheduled[i]));
    set(o, "scheduled", scheduled);
    set_ids(o, "preempted", c, &step->preempted);
    set_ids(o, "finished", c, &step->finished);
    set_ids(o, "rejected", c, &step->rejected);
    set_numbers(o, "evictions", &step->evictions);
}

static void set_event_counts(json_t *o, const struct v1_step *step)
{
    uint64_t admitted = 0;
    for (uint32_t i = 0; i < step->num_scheduled; i++)
        admitted += step->scheduled[i].admission;
    set_count(o, "num_scheduled", step->num_scheduled);
    set_count(o, "num_admitted", admitted);
    set_count(o, "num_preempted", step->preempted.n);
    set_count(o, "num_finished", step->finished.n);
    set_count(o, "num_evictions", step->evictions.n);
}

json_t *v1_step_json(const struct v1_case *c, const struct v1_step *step)
{
    uint32_t usable = c->config.num_blocks - 1;
    json_t *o = json_object();
    set_count(o, "step", step->step);
    if (c->config.detail_full)
        set_events(o, c, step);
    else
        set_event_counts(o, step);
    set_count(o, "scheduled_tokens", step->scheduled_tokens);
    set_count(o, "running", step->running);
    set_count(o, "waiting", step->waiting);
    set_count(o, "free_after_schedule", step->free_after_schedule);
    set_count(o, "free_blocks", step->free_blocks);
    set_count(o, "used_blocks", usable - step->free_blocks);
    set_count(o, "cached_blocks", step->cached_blocks);
    set_ratio(o, "usage", 1.0 - (double)step->free_blocks / (double)usable);
    set_count(o, "queries", step->queries);
    set_count(o, "hits", step->hits);
    set_digest(o, step->digest);
    return o;
}

static double ratio(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0.0;
}

json_t *v1_summary_json(const struct v1_case *c, const struct v1_result *result)
{
    const struct v1_summary *s = &result->summary;
    json_t *o = json_object();
    set_bool(o, "summary", true);
    set(o, "rules", json_string(c->config.rules == V1_RULES_2026_08 ? "2026-08" : "2026-04"));
    set_count(o, "steps", result->num_steps);
    set_count(o, "requests", c->num_requests);
    set_count(o, "unfinished", s->unfinished);
    set_bool(o, "stalled", s->stalled);
    set_bool(o, "max_steps_reached", s->max_steps_reached);
    set_count(o, "preemptions", s->preemptions);
    set_count(o, "evictions", s->evictions);
    set_count(o, "finished", s->finished);
    set_count(o, "rejected", s->rejected);
    set_count(o, "lookups", s->lookups);
    set_count(o, "queries", s->queries);
    set_count(o, "hits", s->hits);
    set_count(o, "preempted_lookups", s->preempted_lookups);
    set_count(o, "preempted_queries", s->preempted_queries);
    set_count(o, "preempted_hits", s->preempted_hits);
    set_count(o, "admitted_tokens", s->admitted_tokens);
    set_count(o, "admitted_hit_tokens", s->admitted_hit_tokens);
    set_count(o, "readmitted_tokens", s->readmitted_tokens);
    set_count(o, "readmitted_hit_tokens", s->readmitted_hit_tokens);
    set_count(o, "scheduled_tokens", s->scheduled_tokens);
    set_count(o, "peak_used_blocks", s->peak_used_blocks);
    set_ratio(o, "hit_rate", ratio(s->hits, s->queries));
    set_ratio(o, "admitted_hit_rate", ratio(s->admitted_hit_tokens, s->admitted_tokens));
    set_count(o, "blocks_allocated", s->blocks_allocated);
    if (c->config.detail_full)
        set_numbers(o, "free_queue", &s->free_queue);
    else
        set_count(o, "free_queue", s->free_queue.n);
    set_digest(o, s->digest);
    return o;
}

static char *field_text(const json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("nothing");
    if (text == NULL)
        abort();
    return text;
}

static char *difference(const char *key, const json_t *actual, const json_t *expected)
{
    char *found = field_text(actual);
    char *wanted = field_text(expected);
    char *text = NULL;
    if (asprintf(&text, "%s: found %s, expected %s", key, found, wanted) < 0)
        abort();
    free(found);
    free(wanted);
    return text;
}

bool v1_lines_equal(const json_t *actual, const json_t *expected, char **text)
{
    const char *key;
    json_t *value;
    *text = NULL;
    json_object_foreach((json_t *)expected, key, value)
    {
        const json_t *other = json_object_get(actual, key);
        if (!json_equal(value, other)) {
            *text = difference(key, other, value);
            return false;
        }
    }
    json_object_foreach((json_t *)actual, key, value)
    {
        if (json_object_get(expected, key) == NULL) {
            *text = difference(key, value, NULL);
            return false;
        }
    }
    return true;
}
