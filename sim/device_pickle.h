/* Python pickles, protocols 0 to 5, of plain data: dicts, lists, tuples, numbers, strings, True, False and None.
 *
 * A pickle is a program. This reader runs only the part of it that builds data; whatever would import, call or
 * construct something is refused with its offset. No length, count or depth in the file is believed: memory is at most a
 * small multiple of the bytes read. References make the result a graph, possibly with cycles, so those who walk it must
 * count their steps. */
#ifndef PAGESIM_DEVICE_PICKLE_H
#define PAGESIM_DEVICE_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workloads/err.h"

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_HUGE, /* an integer beyond 64 bits */
    PICKLE_FLOAT,
    PICKLE_TEXT, /* str or bytes */
    PICKLE_LIST, /* list or tuple */
    PICKLE_DICT,
};

struct pickle_value {
    enum pickle_kind kind;
    uint32_t count;    /* items of a list, entries of a dict */
    uint32_t capacity;
    uint64_t offset;   /* in the file */
    union {
        int64_t number;     /* INT; BOOL: 0 or 1 */
        double real;
        struct {
            const char *bytes; /* into the pickle, not terminated */
            size_t length;
        } text;
        struct pickle_value **items; /* LIST; DICT: key, value, key, value, ... */
    };
};

struct pickle; /* owns all values */

/* bytes must outlive the pickle. 0 and *root, or -1 with err (byte offset, without a file's name). */
int pickle_parse(const void *bytes, size_t count, struct pickle **pickle, const struct pickle_value **root, struct err *err);
void pickle_destroy(struct pickle *pickle); /* NULL is fine */

/* The value under a text key, the last one if there are several; NULL if there is none or the value is no dict. */
const struct pickle_value *pickle_get(const struct pickle_value *dict, const char *key);
bool pickle_text_is(const struct pickle_value *value, const char *text);
const char *pickle_kind_name(enum pickle_kind kind);

#endif
