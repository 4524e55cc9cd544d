#include "sim/sizes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t factor;
};

#define KIB ((uint64_t)1024)
#define KILO ((uint64_t)1000)

static const struct unit COUNT_UNITS[] = {
    {"", 1},
    {"k", KILO},
    {"m", KILO * KILO},
    {"g", KILO * KILO * KILO},
    {"t", KILO * KILO * KILO * KILO},
    {"p", KILO * KILO * KILO * KILO * KILO},
    {"K", KIB},
    {"M", KIB * KIB},
    {"G", KIB * KIB * KIB},
    {"T", KIB * KIB * KIB * KIB},
    {"P", KIB * KIB * KIB * KIB * KIB},
    {NULL, 0},
};

static const struct unit BYTE_UNITS[] = {
    {"B", 1},
    {"kB", KILO},
    {"KB", KILO},
    {"MB", KILO * KILO},
    {"GB", KILO * KILO * KILO},
    {"TB", KILO * KILO * KILO * KILO},
    {"PB", KILO * KILO * KILO * KILO * KILO},
    {"KiB", KIB},
    {"MiB", KIB * KIB},
    {"GiB", KIB * KIB * KIB},
    {"TiB", KIB * KIB * KIB * KIB},
    {"PiB", KIB * KIB * KIB * KIB * KIB},
    {NULL, 0},
};

static const struct unit TIME_UNITS[] = {
    {"", 1},
    {"ns", 1},
    {"us", 1000},
    {"ms", 1000000},
    {"s", 1000000000},
    {"min", 60 * (uint64_t)1000000000},
    {"h", 3600 * (uint64_t)1000000000},
    {NULL, 0},
};

static const struct unit MILLIONTHS[] = {{"", 1000000}, {NULL, 0}};
static const struct unit PERCENT[] = {{"%", 10000}, {NULL, 0}};

#define DIGITS "0123456789"

/* A decimal number: all digits as one integer, of which `decimals` stand behind the point. */
struct decimal {
    uint64_t digits;
    size_t decimals;
    const char *unit; /* what follows the number */
};

static bool digits_append(uint64_t *digits, const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (*digits > (UINT64_MAX - digit) / 10) return false;
        *digits = *digits * 10 + digit;
    }
    return true;
}

static enum size_status decimal_parse(const char *text, struct decimal *number)
{
    *number = (struct decimal){.unit = text};
    size_t whole = strspn(text, DIGITS);
    if (whole == 0) return SIZE_MALFORMED;
    number->unit = text + whole;
    const char *fraction = text + whole;
    size_t decimals = 0;
    if (*fraction == '.') {
        decimals = strspn(++fraction, DIGITS);
        if (decimals == 0) return SIZE_MALFORMED;
        number->unit = fraction + decimals;
    }
    /* Zeros at the end of a fraction say nothing, and must not make the number outgrow 64 bits. */
    while (decimals > 0 && fraction[decimals - 1] == '0') decimals--;
    if (!digits_append(&number->digits, text, whole)) return SIZE_TOO_LARGE;
    if (!digits_append(&number->digits, fraction, decimals)) return SIZE_NOT_WHOLE;
    number->decimals = decimals;
    return SIZE_OK;
}

static const struct unit *unit_find(const struct unit *units, const char *name)
{
    for (const struct unit *unit = units; units && unit->name; unit++)
        if (strcmp(unit->name, name) == 0) return unit;
    return NULL;
}

static enum size_status scaled_parse(const char *text, const struct unit *units,
                                     const struct unit *more_units, uint64_t *value)
{
    struct decimal number;
    enum size_status status = decimal_parse(text, &number);
    if (status == SIZE_MALFORMED) return status;
    const struct unit *unit = unit_find(units, number.unit);
    if (!unit) unit = unit_find(more_units, number.unit);
    if (!unit) return SIZE_MALFORMED;
    if (status != SIZE_OK) return status;

    /* At most 2^64 * 2^50: fits 128 bits. */
    unsigned __int128 product = (unsigned __int128)number.digits * unit->factor;
    for (; number.decimals > 0; number.decimals--) {
        if (product % 10 != 0) return SIZE_NOT_WHOLE;
        product /= 10;
    }
    if (product > UINT64_MAX) return SIZE_TOO_LARGE;
    *value = (uint64_t)product;
    return SIZE_OK;
}

enum size_status size_parse_count(const char *text, uint64_t *count)
{
    return scaled_parse(text, COUNT_UNITS, NULL, count);
}

enum size_status size_parse_bytes_near(const char *text, uint64_t *bytes)
{
    enum size_status status = size_parse_bytes(text, bytes);
    struct decimal number;
    if (status != SIZE_NOT_WHOLE || decimal_parse(text, &number) != SIZE_OK) return status;
    const struct unit *unit = unit_find(BYTE_UNITS, number.unit);
    if (!unit || unit->factor < KILO || number.decimals > 18) return status;
    unsigned __int128 scale = 1;
    for (size_t i = 0; i < number.decimals; i++) scale *= 10;
    /* Below 2^64 * 2^50 + 10^18. */
    unsigned __int128 nearest = ((unsigned __int128)number.digits * unit->factor + scale / 2) / scale;
    if (nearest > UINT64_MAX) return SIZE_TOO_LARGE;
    *bytes = (uint64_t)nearest;
    return SIZE_OK;
}

enum size_status size_parse_bytes(const char *text, uint64_t *bytes)
{
    return scaled_parse(text, COUNT_UNITS, BYTE_UNITS, bytes);
}

enum size_status size_parse_time(const char *text, uint64_t *time_ns)
{
    return scaled_parse(text, TIME_UNITS, NULL, time_ns);
}

bool size_has_unit(const char *text)
{
    return text[strspn(text, DIGITS ".")] != '\0';
}

enum size_status size_parse_millionths(const char *text, uint64_t *millionths)
{
    return scaled_parse(text, MILLIONTHS, NULL, millionths);
}

enum size_status size_parse_percent(const char *text, uint64_t *millionths)
{
    return scaled_parse(text, PERCENT, NULL, millionths);
}

enum size_status size_parse_ratio(const char *text, double *ratio)
{
    /* strtod alone would take blanks, signs, hexadecimal, inf and nan. */
    if (strspn(text, DIGITS) == 0 || text[strspn(text, DIGITS ".eE+-")] != '\0') return SIZE_MALFORMED;
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (*end != '\0') return SIZE_MALFORMED;
    if (!isfinite(value)) return SIZE_TOO_LARGE;
    *ratio = value;
    return SIZE_OK;
}

void size_format_ratio(double ratio, char *out, size_t out_bytes)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, out_bytes, "%.*g", digits, ratio);
        if (strtod(out, NULL) == ratio) return;
    }
}
