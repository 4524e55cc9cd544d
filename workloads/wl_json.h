/* A strict scanner for one JSON object a line, made for traces: no tree, no allocation, integers
 * exact to 64 bits. Numbers with leading zeros, trailing commas, NaN, control characters in strings
 * and repeated keys are errors; unknown keys are checked and skipped. */
#ifndef PAGESIM_WL_JSON_H
#define PAGESIM_WL_JSON_H

#include <stdbool.h>

#include "workloads/wl_array.h"
#include "workloads/wl_line.h"

enum { WL_JSON_FIELDS_MAX = 32, WL_JSON_UNKNOWN_MAX = 64, WL_JSON_DEPTH_MAX = 64 };

enum { WL_JSON_END = -1, WL_JSON_ERROR = -2 }; /* beside the fields' indices, from 0 */

struct wl_json {
    struct wl_line *line;
    const char *at;
    const char *const *names; /* the known keys */
    size_t names_count;
    int field;                /* the key whose value comes next */
    bool first;
    uint32_t seen;            /* one bit a known key */
    const char *value_at[WL_JSON_FIELDS_MAX]; /* where each value began */
    struct { const char *text; size_t length; } unknown[WL_JSON_UNKNOWN_MAX];
    size_t unknown_count;
};

/* names must live as long as the scanner; at most WL_JSON_FIELDS_MAX. */
int wl_json_begin(struct wl_json *json, struct wl_line *line, const char *const *names,
                  size_t names_count);
/* The index of the next known key, its value to be read next; WL_JSON_END behind the object, when
 * nothing follows it on the line; WL_JSON_ERROR, reported. */
int wl_json_field(struct wl_json *json);
/* 0, or -1 (reported) when a known key was not there. */
int wl_json_require(const struct wl_json *json, int field, const char *expected);

static inline bool wl_json_has(const struct wl_json *json, int field)
{
    return (json->seen >> field & 1) != 0;
}

/* Values. Each returns 0, or -1 reported. */
int wl_json_u64(struct wl_json *json, uint64_t max, const char *expected, uint64_t *value);
int wl_json_tokens(struct wl_json *json, uint64_t *value); /* a count up to WL_TOKENS_MAX */
int wl_json_i64(struct wl_json *json, int64_t *value);
/* A time in units of `unit_ns`, a fraction allowed, as whole nanoseconds up to WL_TIME_NS_MAX. */
int wl_json_time(struct wl_json *json, uint64_t unit_ns, uint64_t *value);
/* A string, or an integer taken as text; null leaves *at alone. *at = its offset in text. */
int wl_json_name(struct wl_json *json, struct wl_text *text, size_t *at);
int wl_json_ids(struct wl_json *json, struct wl_ids *ids);          /* [1, 2, ...] */
int wl_json_token_ids(struct wl_json *json, struct wl_spans *spans); /* the same, as runs */
int wl_json_ranges(struct wl_json *json, struct wl_spans *spans);   /* [[first, count], ...] */
/* Checks and skips any value. */
int wl_json_skip(struct wl_json *json);

/* Whether the text has "key": somewhere; good enough to recognise a format. */
bool wl_json_mentions(const char *text, const char *key);

#endif
