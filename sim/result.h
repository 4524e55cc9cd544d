/* What a run found, as a flat list of dotted keys. One list feeds the table for people, the JSON object, a
 * sweep's line, and --fail-if; docs/metrics.md defines every key. */
#ifndef PAGESIM_RESULT_H
#define PAGESIM_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum result_kind { RESULT_NULL, RESULT_U64, RESULT_F64, RESULT_TEXT, RESULT_BOOL };

struct result_entry {
    char *key;
    enum result_kind kind;
    union {
        uint64_t u64;
        double f64;
        char *text;
        bool yes;
    };
};

struct result {
    struct result_entry *entries;
    size_t count, capacity;
    bool out_of_memory; /* an entry was lost */
};

void result_init(struct result *result);
void result_release(struct result *result);

/* Keys of one object must follow each other: "a.x", "a.y", then "b". */
void result_null(struct result *result, const char *key);
void result_u64(struct result *result, const char *key, uint64_t value);
/* nan and infinity become null. */
void result_f64(struct result *result, const char *key, double value);
void result_text(struct result *result, const char *key, const char *value); /* NULL: null */
void result_bool(struct result *result, const char *key, bool value);
/* numerator / denominator, or null when the denominator is 0. */
void result_ratio(struct result *result, const char *key, unsigned __int128 numerator,
                  unsigned __int128 denominator);

/* NULL when there is no such key. */
const struct result_entry *result_find(const struct result *result, const char *key);
/* The number of an entry; false when it is not a number. */
bool result_number(const struct result_entry *entry, double *value);

/* One object, nested at the dots, two spaces of indent, a line feed at the end. */
void result_write_json(const struct result *result, FILE *out);
/* One line: a flat object whose keys keep their dots. */
void result_write_line(const struct result *result, FILE *out);

/* The shortest decimal text that reads back as the same double. Always the same for the same value. */
void result_format_f64(double value, char *buffer, size_t bytes);
/* A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void result_write_string(const char *text, FILE *out);

#endif
