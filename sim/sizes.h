/* Numbers as people write them: counts, bytes, times and shares. Everything is exact: a value that is
 * not a whole number of base units, or exceeds 64 bits, is refused and never rounded; but see size_parse_bytes_near. */
#ifndef PAGESIM_SIZES_H
#define PAGESIM_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum size_status {
    SIZE_OK,
    SIZE_MALFORMED, /* not a number with a unit that is known here */
    SIZE_TOO_LARGE, /* does not fit 64 bits */
    SIZE_NOT_WHOLE, /* '0.3k' is 300, '0.0003k' is not a whole number */
};

/* Values are written only on SIZE_OK. A sign, blanks and hexadecimal are malformed everywhere. */

/* '4096', '16k' = 16,000, '16K' = 16,384, '1.5M': a lower-case letter is decimal and an upper-case one
 * binary, as vLLM's options read them. Letters k m g t p. */
enum size_status size_parse_count(const char *text, uint64_t *count);
/* The same, and 'kB', 'KB', 'MB' ... decimal, 'KiB', 'MiB' ... binary, 'B'. */
enum size_status size_parse_bytes(const char *text, uint64_t *bytes);
/* The same, but a part of a byte behind 'KB', 'GiB' ... goes to the nearest byte: engines print 17.06 GiB, which is
 * no whole number of bytes. */
enum size_status size_parse_bytes_near(const char *text, uint64_t *bytes);
/* '5' and '5ns', '10us', '5ms', '300s', '2min', '1h'. */
enum size_status size_parse_time(const char *text, uint64_t *time_ns);
/* Whether a unit stands behind the number. */
bool size_has_unit(const char *text);
/* '0.25' in millionths: 250,000. No unit. */
enum size_status size_parse_millionths(const char *text, uint64_t *millionths);
/* '12.5%' in millionths: 125,000. */
enum size_status size_parse_percent(const char *text, uint64_t *millionths);
/* A plain or exponent number, not negative: '0.01', '1e-3'. */
enum size_status size_parse_ratio(const char *text, double *ratio);
/* The shortest of up to 17 digits that reads back as the same double. */
void size_format_ratio(double ratio, char *out, size_t out_bytes);

#endif
