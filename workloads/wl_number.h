/* Numbers as traces write them, read exactly: no float on the way to an integer. */
#ifndef PAGESIM_WL_NUMBER_H
#define PAGESIM_WL_NUMBER_H

#include <stdint.h>

enum wl_number { WL_NUMBER_OK, WL_NUMBER_NONE, WL_NUMBER_TOO_LARGE };

/* Digits without sign or leading zero. *end is behind the last digit; the caller checks what
 * follows. Text must end in a byte that is no digit. */
enum wl_number wl_number_u64(const char *text, const char **end, uint64_t *value);
enum wl_number wl_number_i64(const char *text, const char **end, int64_t *value);
/* A non-negative decimal number in JSON's grammar (fraction and exponent allowed), multiplied by
 * `unit` and rounded to the nearest integer (halves up): 46.926808 ms with unit 1,000,000 is
 * exactly 46,926,808 ns. Digits beyond the 19th do not count. TOO_LARGE above `max`. */
enum wl_number wl_number_scaled(const char *text, const char **end, uint64_t unit, uint64_t max,
                                uint64_t *value);

#endif
