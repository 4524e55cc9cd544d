/* Options of policies and of eviction orders: tables from which command line, help and manual pages come. */
#ifndef PAGESIM_KV_OPTION_H
#define PAGESIM_KV_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One option. Shared ones (say `reserve`) are one object that several tables point to, so that name, default and help
 * exist once. */
struct kv_option {
    const char *name;         /* as on the command line, without dashes */
    const char *choices;      /* "max|pow2|...": the value is one of these; NULL: a count */
    const char *default_text; /* in the same spelling as a user's value */
    uint64_t count_min, count_max; /* range when choices == NULL */
    const char *help;         /* one line */
};

/* The parsed value of options[i] stands at the same index i. */
struct kv_value {
    uint64_t count; /* a count, or the index of the chosen word in choices */
};

#define KV_OPTIONS_MAX 16 /* of a policy together with the eviction order that it uses */

/* How many there are; options is NULL-terminated or NULL. */
size_t kv_options_count(const struct kv_option *const *options);

/* Reads texts into values. texts[i] is parallel to options; NULL means the default, for one or for all. False, and one
 * line in why (what was found, what was expected), for a bad value. */
bool kv_options_parse(const struct kv_option *const *options, const char *const *texts, struct kv_value *values,
                      char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif

#endif
