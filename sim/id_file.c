#include "sim/id_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Small enough to stay in the second-level cache between read() and use. */
#define BUFFER_BYTES ((size_t)256 << 10)

struct id_file {
    const char *path;
    enum id_format format;
    int descriptor;
    bool ended;
    uint64_t line;      /* of the next id, from 1; text only */
    uint64_t offset;    /* of buffer[0] in the file */
    size_t begin, end;  /* unread part of the buffer */
    unsigned char buffer[BUFFER_BYTES];
};

static const char *const format_names[] = {
    [ID_FORMAT_U64] = "u64",
    [ID_FORMAT_TEXT] = "text",
    [ID_FORMAT_ORACLE_GENERAL] = "oracleGeneral",
};

int id_format_parse(const char *name, enum id_format *format, struct err *err)
{
    for (size_t i = 0; i < sizeof format_names / sizeof format_names[0]; i++)
        if (strcmp(name, format_names[i]) == 0) {
            *format = (enum id_format)i;
            return 0;
        }
    return err_set(err, ERR_USAGE, "found '%.100s', expected u64, text or oracleGeneral", name);
}

const char *id_format_name(enum id_format format)
{
    return format_names[format];
}

static bool ends_with(const char *text, const char *end)
{
    size_t text_bytes = strlen(text), end_bytes = strlen(end);

    return text_bytes >= end_bytes && strcmp(text + text_bytes - end_bytes, end) == 0;
}

int id_file_open(const char *path, enum id_format format, struct id_file **file, struct err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int descriptor;

    if (ends_with(path, ".zst") || ends_with(path, ".gz"))
        return err_set(err, ERR_USAGE, "%s: id streams are read uncompressed, expected a pipe into --ids -",
                       path);
    descriptor = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
    *file = malloc(sizeof **file);
    if (*file == NULL) {
        if (!is_stdin)
            (void)close(descriptor);
        return err_set(err, ERR_FAILED, "out of memory");
    }
    (*file)->path = is_stdin ? "standard input" : path;
    (*file)->format = format;
    (*file)->descriptor = descriptor;
    (*file)->ended = false;
    (*file)->line = 1;
    (*file)->offset = 0;
    (*file)->begin = (*file)->end = 0;
    return 0;
}

void id_file_close(struct id_file *file)
{
    if (file == NULL)
        return;
    if (file->descriptor != STDIN_FILENO)
        (void)close(file->descriptor);
    free(file);
}

/* Moves the unread rest to the front and reads on. Returns 0 also at the end. */
static int refill(struct id_file *file, struct err *err)
{
    ssize_t got;

    memmove(file->buffer, file->buffer + file->begin, file->end - file->begin);
    file->offset += file->begin;
    file->end -= file->begin;
    file->begin = 0;
    assert(file->end < BUFFER_BYTES);
    do
        got = read(file->descriptor, file->buffer + file->end, BUFFER_BYTES - file->end);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_set(err, ERR_INPUT, "%s: %s", file->path, strerror(errno));
    file->ended = got == 0;
    file->end += (size_t)got;
    return 0;
}

static uint64_t little_endian(const unsigned char *bytes)
{
    uint64_t value;

    memcpy(&value, bytes, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static int64_t next_records(struct id_file *file, uint64_t *ids, size_t room, size_t record_bytes,
                            size_t id_offset, struct err *err)
{
    size_t n;

    while (file->end - file->begin < record_bytes && !file->ended)
        if (refill(file, err) != 0)
            return -1;
    n = (file->end - file->begin) / record_bytes;
    n = n < room ? n : room;
    for (size_t i = 0; i < n; i++)
        ids[i] = little_endian(file->buffer + file->begin + i * record_bytes + id_offset);
    file->begin += n * record_bytes;
    if (n == 0 && file->end > file->begin)
        return err_set(err, ERR_INPUT,
                       "%s: byte %" PRIu64 ": found %zu bytes at the end, expected records of %zu",
                       file->path, file->offset + file->begin, file->end - file->begin, record_bytes);
    return (int64_t)n;
}

static int bad_line(const struct id_file *file, const unsigned char *text, size_t bytes,
                    struct err *err)
{
    int shown = bytes < 40 ? (int)bytes : 40;

    return err_set(err, ERR_INPUT, "%s:%" PRIu64 ": found '%.*s', expected a number below 2^64",
                   file->path, file->line, shown, (const char *)text);
}

/* The number that up to eight leading digits make, and how many they are: all bytes at once, no loop to end. */
static uint64_t leading_digits(const unsigned char *text, unsigned *digits)
{
    const uint64_t each_byte = UINT64_C(0x0101010101010101);
    uint64_t v = little_endian(text);
    uint64_t others = ((v + (0x7f - '9') * each_byte) | (v - '0' * each_byte) | v) & 0x80 * each_byte;

    *digits = others != 0 ? (unsigned)__builtin_ctzll(others) / 8 : 8;
    if (*digits == 0)
        return 0;
    v = (v << 8 * (8 - *digits)) & 0x0f * each_byte; /* leading zeros */
    v = v * (10 << 8 | 1) >> 8; /* each pair of digits ... */
    v = (v & UINT64_C(0x00ff00ff00ff00ff)) * (100 << 16 | 1) >> 16; /* ... of pairs ... */
    return (v & UINT64_C(0x0000ffff0000ffff)) * (UINT64_C(10000) << 32 | 1) >> 32; /* ... and of fours */
}

enum { SHORT_LINE_BYTES = 16 };

/* Most lines are at most 15 digits and a newline: their length and id. 0: look at it byte by byte. At least
 * SHORT_LINE_BYTES can be read. */
static size_t short_line(const unsigned char *text, uint64_t *id)
{
    static const uint64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    unsigned digits, more = 0;

    *id = leading_digits(text, &digits);
    if (digits == 8) {
        uint64_t rest = leading_digits(text + 8, &more);

        if (more == 8)
            return 0;
        *id = *id * powers[more] + rest;
        digits += more;
    }
    return digits > 0 && text[digits] == '\n' ? digits + 1 : 0;
}

static bool parse_line(const unsigned char *text, size_t bytes, uint64_t *id)
{
    uint64_t value = 0;

    if (bytes > 0 && text[bytes - 1] == '\r')
        bytes--;
    if (bytes == 0)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        unsigned digit = (unsigned)text[i] - '0';

        if (digit > 9 || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value))
            return false;
    }
    *id = value;
    return true;
}

static int64_t next_lines(struct id_file *file, uint64_t *ids, size_t room, struct err *err)
{
    size_t n = 0;

    while (n < room) {
        const unsigned char *text = file->buffer + file->begin;
        size_t left = file->end - file->begin;
        size_t quick = left >= SHORT_LINE_BYTES ? short_line(text, &ids[n]) : 0;

        if (quick > 0) {
            n++;
            file->line++;
            file->begin += quick;
            continue;
        }
        const unsigned char *newline = left > 0 ? memchr(text, '\n', left) : NULL;
        size_t bytes = newline != NULL ? (size_t)(newline - text) : left;

        if (newline == NULL && !file->ended) {
            if (n > 0)
                break;
            if (left == BUFFER_BYTES)
                return bad_line(file, text, bytes, err);
            if (refill(file, err) != 0)
                return -1;
            continue;
        }
        if (newline == NULL && left == 0)
            break;
        if (!parse_line(text, bytes, &ids[n]))
            return bad_line(file, text, bytes, err);
        n++;
        file->line++;
        file->begin += bytes + (newline != NULL);
    }
    return (int64_t)n;
}

int64_t id_file_next(struct id_file *file, uint64_t *ids, size_t room, struct err *err)
{
    assert(room > 0);
    switch (file->format) {
    case ID_FORMAT_U64:
        return next_records(file, ids, room, 8, 0, err);
    case ID_FORMAT_ORACLE_GENERAL:
        return next_records(file, ids, room, 24, 4, err);
    case ID_FORMAT_TEXT:
        return next_lines(file, ids, room, err);
    }
    return err_set(err, ERR_USAGE, "unknown id format");
}
