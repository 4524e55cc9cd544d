#include "workloads/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Trace text is quoted in messages; what reaches a terminal must not be able to steer it. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c > 0x7e)
            *text = '?';
    }
}

int err_set(struct err *err, enum err_kind kind, const char *format, ...)
{
    if (err == NULL || err->kind != ERR_NONE)
        return -1;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    make_printable(err->text);
    err->kind = kind;
    return -1;
}

void err_prefix(struct err *err, const char *format, ...)
{
    if (err == NULL || err->kind == ERR_NONE)
        return;
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    /* What does not fit is cut off at the end; where it happened matters most. */
    size_t used = strlen(text);
    const char *const parts[] = { ": ", err->text };
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(parts[i]);
        size_t room = sizeof text - 1 - used;
        length = length < room ? length : room;
        memcpy(text + used, parts[i], length);
        used += length;
    }
    text[used] = '\0';
    make_printable(text);
    memcpy(err->text, text, sizeof text);
}
