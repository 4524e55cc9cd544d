#include "workloads/wl_number.h"

#include <stdbool.h>
#include <stddef.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Fewer digits than this are below 2^64 whatever they are. */
enum { DIGITS_ALWAYS_FIT = 20 };

/* Whether digits without a leading zero are below 2^64. */
static bool fits(const char *text)
{
    uint64_t sum = 0;
    for (; is_digit(*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    return true;
}

enum wl_number wl_number_u64(const char *text, const char **end, uint64_t *value)
{
    *end = text;
    if (!is_digit(*text) || (*text == '0' && is_digit(text[1])))
        return WL_NUMBER_NONE;
    const char *first = text;
    uint64_t sum = 0;
    for (; is_digit(*text); text++)
        sum = sum * 10 + (uint64_t)(*text - '0');
    *end = text;
    *value = sum;
    return text - first < DIGITS_ALWAYS_FIT || fits(first) ? WL_NUMBER_OK : WL_NUMBER_TOO_LARGE;
}

enum wl_number wl_number_i64(const char *text, const char **end, int64_t *value)
{
    bool negative = *text == '-';
    uint64_t magnitude = 0;
    enum wl_number rc = wl_number_u64(text + negative, end, &magnitude);
    if (rc != WL_NUMBER_OK)
        return rc;
    if (magnitude > (uint64_t)INT64_MAX)
        return WL_NUMBER_TOO_LARGE;
    *value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return WL_NUMBER_OK;
}

/* A decimal number as mantissa * 10^exponent. */
struct decimal {
    uint64_t mantissa;
    int64_t exponent;
    int digits;
};

enum { MANTISSA_DIGITS_MAX = 19, EXPONENT_MAX = 10000 };

static const char *take_digits(const char *text, struct decimal *number, bool fraction)
{
    for (; is_digit(*text); text++) {
        if (number->digits == MANTISSA_DIGITS_MAX) {
            if (!fraction)
                number->exponent++;
            continue;
        }
        number->mantissa = number->mantissa * 10 + (uint64_t)(*text - '0');
        if (number->mantissa != 0)
            number->digits++;
        if (fraction)
            number->exponent--;
    }
    return text;
}

/* Returns the end of the exponent, or NULL when it is malformed. */
static const char *take_exponent(const char *text, struct decimal *number)
{
    if (*text != 'e' && *text != 'E')
        return text;
    text++;
    bool negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    if (!is_digit(*text))
        return NULL;
    int64_t exponent = 0;
    for (; is_digit(*text); text++)
        if (exponent < EXPONENT_MAX)
            exponent = exponent * 10 + (*text - '0');
    number->exponent += negative ? -exponent : exponent;
    return text;
}

static enum wl_number scale(struct decimal number, uint64_t unit, uint64_t max, uint64_t *value)
{
    unsigned __int128 product = (unsigned __int128)number.mantissa * unit;
    for (; number.exponent > 0 && product != 0; number.exponent--) {
        if (product > max)
            return WL_NUMBER_TOO_LARGE;
        product *= 10;
    }
    bool half = false;
    for (; number.exponent < 0 && (product != 0 || half); number.exponent++) {
        half = product % 10 >= 5;
        product /= 10;
    }
    product += half;
    if (product > max)
        return WL_NUMBER_TOO_LARGE;
    *value = (uint64_t)product;
    return WL_NUMBER_OK;
}

enum wl_number wl_number_scaled(const char *text, const char **end, uint64_t unit, uint64_t max,
                                uint64_t *value)
{
    *end = text;
    if (!is_digit(*text) || (*text == '0' && is_digit(text[1])))
        return WL_NUMBER_NONE;
    struct decimal number = { 0, 0, 0 };
    text = take_digits(text, &number, false);
    if (*text == '.') {
        if (!is_digit(text[1]))
            return WL_NUMBER_NONE;
        text = take_digits(text + 1, &number, true);
    }
    text = take_exponent(text, &number);
    if (text == NULL)
        return WL_NUMBER_NONE;
    *end = text;
    return scale(number, unit, max, value);
}
