#include "tests/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check_u64_at(uint64_t actual, uint64_t expected, const char *what, const char *file, int line)
{
    if (actual == expected) return;
    print_error("%s: %" PRIu64 ", expected %" PRIu64 "\n", what, actual, expected);
    _fail(file, line);
}

void check_i64_at(int64_t actual, int64_t expected, const char *what, const char *file, int line)
{
    if (actual == expected) return;
    print_error("%s: %" PRId64 ", expected %" PRId64 "\n", what, actual, expected);
    _fail(file, line);
}

void check_f64_at(double actual, double expected, double tolerance, const char *what,
                  const char *file, int line)
{
    /* Written so that nan fails. */
    if (fabs(actual - expected) <= tolerance) return;
    print_error("%s: %.17g, expected %.17g within %g\n", what, actual, expected, tolerance);
    _fail(file, line);
}

void check_str_at(const char *actual, const char *expected, const char *what, const char *file,
                  int line)
{
    bool equal = actual && expected ? strcmp(actual, expected) == 0 : actual == expected;
    if (equal) return;
    print_error("%s:\n  found    '%s'\n  expected '%s'\n", what, actual ? actual : "(null)",
                expected ? expected : "(null)");
    _fail(file, line);
}

void check_has_at(const char *text, const char *part, const char *what, const char *file, int line)
{
    if (text && part && strstr(text, part)) return;
    print_error("%s:\n'%s'\nshould hold '%s'\n", what, text ? text : "(null)",
                part ? part : "(null)");
    _fail(file, line);
}

const char *check_traces(const char *path)
{
    static char full[4096];
    const char *root = getenv("PAGESIM_TRACES");
    if (!root || !*root) return NULL;
    int n = snprintf(full, sizeof full, "%s/%s", root, path);
    assert_true(n > 0 && (size_t)n < sizeof full);
    return full;
}
