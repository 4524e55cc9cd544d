#include "workloads/wl_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FOUND_BYTES_MAX = 40 };

/* The word at `at`, for quoting: up to the next separator, at least one byte. */
static size_t word_length(const char *at, const char *end)
{
    size_t length = 0;
    size_t room = (size_t)(end - at);
    while (length < room && length < FOUND_BYTES_MAX && strchr(",]}[{ \t\r", at[length]) == NULL)
        length++;
    return length > 0 ? length : (room > 0 ? 1 : 0);
}

int wl_line_error(const struct wl_line *line, const char *at, const char *field,
                  const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char column[32] = "";
    if (at != NULL)
        snprintf(column, sizeof column, ":%zu", (size_t)(at - line->text) + 1);
    return err_set(line->err, ERR_INPUT, "%s:%llu%s: %s%s%s", line->file,
                   (unsigned long long)line->number, column, field != NULL ? field : "",
                   field != NULL ? ": " : "", text);
}

int wl_line_unexpected(const struct wl_line *line, const char *at, const char *field,
                       const char *expected)
{
    const char *end = line->text + line->length;
    if (at == NULL || at > end)
        return wl_line_error(line, NULL, field, "found nothing, expected %s", expected);
    if (at == end)
        return wl_line_error(line, at, field, "found the end of the line, expected %s", expected);
    if (*at == '\0')
        return wl_line_error(line, at, field, "found a NUL byte, expected %s", expected);
    int length = (int)word_length(at, end);
    return wl_line_error(line, at, field, "found '%.*s', expected %s", length, at, expected);
}

int wl_line_out_of_memory(const struct wl_line *line)
{
    return err_set(line->err, ERR_FAILED, "%s:%llu: out of memory", line->file,
                   (unsigned long long)line->number);
}
