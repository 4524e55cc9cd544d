/* Conditions on a result: 'internal_fragmentation > 0.2 && preemptions == 0' (--fail-if, --such-that). */
#ifndef PAGESIM_CONDITION_H
#define PAGESIM_CONDITION_H

#include <stdbool.h>

#include "sim/result.h"
#include "workloads/err.h"

/* Comparisons KEY OP NUMBER joined by && and || (&& binds closer), with parentheses. OP: < <= > >= == !=. A key that is
 * null in the result makes its comparison false. -1 with err (ERR_USAGE, without the option's name) when the text is malformed or
 * names a key that results do not have; else *holds is set, and null_key is the name of a figure that was null, or "". */
#define CONDITION_KEY_BYTES 128
int condition_holds(const char *text, const struct result *result, bool *holds,
                    char null_key[CONDITION_KEY_BYTES], struct err *err);

/* Checks the form alone, before anything is run. */
int condition_check(const char *text, struct err *err);
/* The same, and tells every key in order; a key that stands twice is told twice. on_key may be NULL. */
typedef void (*condition_key_sink)(void *context, const char *key);
int condition_keys(const char *text, condition_key_sink on_key, void *context, struct err *err);

#endif
