/* What every test includes: the four headers that cmocka wants first, cmocka, and a few checks that say
 * more than its own. Test programs run with the repository's root as working directory.
 *
 *   check_u64_eq(actual, expected)   decimal in the message; cmocka's assert_int_equal compares as
 *   check_i64_eq(actual, expected)   unsigned long and prints hex
 *   check_f64_near(actual, expected, tolerance)   compares doubles as doubles; cmocka's
 *                                    assert_float_equal compares floats. Tolerance is absolute, inclusive;
 *                                    nan is near nothing
 *   check_str_eq(actual, expected)   NULL equals only NULL
 *   check_str_has(text, part)        shows both texts when `part` is missing
 *   check_traces(path)               full name of a trace below $PAGESIM_TRACES, or NULL when that is unset:
 *                                    then the test calls skip(). Valid until the next call */
#ifndef PAGESIM_CHECK_H
#define PAGESIM_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define check_u64_eq(actual, expected) check_u64_at((actual), (expected), #actual, __FILE__, __LINE__)
#define check_i64_eq(actual, expected) check_i64_at((actual), (expected), #actual, __FILE__, __LINE__)
#define check_f64_near(actual, expected, tolerance)                                                \
    check_f64_at((actual), (expected), (tolerance), #actual, __FILE__, __LINE__)
#define check_str_eq(actual, expected) check_str_at((actual), (expected), #actual, __FILE__, __LINE__)
#define check_str_has(text, part) check_has_at((text), (part), #text, __FILE__, __LINE__)

void check_u64_at(uint64_t actual, uint64_t expected, const char *what, const char *file, int line);
void check_i64_at(int64_t actual, int64_t expected, const char *what, const char *file, int line);
void check_f64_at(double actual, double expected, double tolerance, const char *what,
                  const char *file, int line);
void check_str_at(const char *actual, const char *expected, const char *what, const char *file,
                  int line);
void check_has_at(const char *text, const char *part, const char *what, const char *file, int line);
const char *check_traces(const char *path);

#endif
