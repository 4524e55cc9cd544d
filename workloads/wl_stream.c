#include "workloads/wl_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

enum { RAW_BYTES = 128 << 10, LINES_BYTES_INITIAL = 256 << 10 };

enum coding { CODING_PLAIN, CODING_GZIP, CODING_ZSTD };

struct wl_stream {
    char *name;
    int fd;
    bool is_stdin, can_rewind;
    struct stat opened; /* the file as it was, to notice that it changed */
    enum coding coding;
    bool raw_ended;     /* read() has returned 0 */
    bool inside_frame;  /* compressed data that have begun and not ended */
    z_stream gzip;
    ZSTD_DStream *zstd;
    unsigned char *raw; /* bytes as they stand in the file */
    size_t raw_at, raw_end;
    char *lines;        /* bytes after decompression: [at, end) is not yet handed out */
    size_t at, end, capacity;
    size_t line_start, line_end; /* the line handed out last */
    bool line_had_lf, line_had_cr;
    bool ended;
    uint64_t line_number, bytes;
};

static int read_raw(struct wl_stream *stream, void *buffer, size_t room, size_t *count,
                    struct err *err)
{
    ssize_t got;
    do
        got = read(stream->fd, buffer, room);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_set(err, ERR_FAILED, "%s: cannot read: %s", stream->name, strerror(errno));
    stream->raw_ended = got == 0;
    *count = (size_t)got;
    return 0;
}

static int fill_raw(struct wl_stream *stream, struct err *err)
{
    stream->raw_at = 0;
    stream->raw_end = 0;
    return read_raw(stream, stream->raw, RAW_BYTES, &stream->raw_end, err);
}

/* What the first bytes say. A pipe may give them one by one, so read until there are four. */
static int recognise_coding(struct wl_stream *stream, struct err *err)
{
    stream->raw_at = 0;
    stream->raw_end = 0;
    while (stream->raw_end < 4 && !stream->raw_ended) {
        size_t count = 0;
        if (read_raw(stream, stream->raw + stream->raw_end, RAW_BYTES - stream->raw_end, &count,
                     err) != 0)
            return -1;
        stream->raw_end += count;
    }
    static const unsigned char gzip_magic[2] = { 0x1f, 0x8b };
    static const unsigned char zstd_magic[4] = { 0x28, 0xb5, 0x2f, 0xfd };
    if (stream->raw_end >= 2 && memcmp(stream->raw, gzip_magic, 2) == 0)
        stream->coding = CODING_GZIP;
    else if (stream->raw_end >= 4 && memcmp(stream->raw, zstd_magic, 4) == 0)
        stream->coding = CODING_ZSTD;
    else
        stream->coding = CODING_PLAIN;
    return 0;
}

static int init_decoder(struct wl_stream *stream, struct err *err)
{
    stream->inside_frame = false;
    if (stream->coding == CODING_ZSTD) {
        if (stream->zstd == NULL)
            stream->zstd = ZSTD_createDStream();
        if (stream->zstd == NULL || ZSTD_isError(ZSTD_initDStream(stream->zstd)))
            return err_set(err, ERR_FAILED, "%s: out of memory", stream->name);
    } else if (stream->coding == CODING_GZIP) {
        inflateEnd(&stream->gzip);
        memset(&stream->gzip, 0, sizeof stream->gzip);
        if (inflateInit2(&stream->gzip, 15 + 16) != Z_OK) /* + 16: a gzip header is required */
            return err_set(err, ERR_FAILED, "%s: out of memory", stream->name);
    }
    return 0;
}

static int corrupt(struct wl_stream *stream, const char *coding, const char *why, struct err *err)
{
    return err_set(err, ERR_INPUT, "%s: found corrupt %s data (%s), expected a whole %s file",
                   stream->name, coding, why, coding);
}

static int truncated(struct wl_stream *stream, const char *coding, struct err *err)
{
    return err_set(err, ERR_INPUT, "%s: found the end of the file inside %s data, expected more: "
                   "it is truncated", stream->name, coding);
}

static int decode_plain(struct wl_stream *stream, char *out, size_t room, size_t *count,
                        struct err *err)
{
    size_t left = stream->raw_end - stream->raw_at;
    if (left == 0)
        return read_raw(stream, out, room, count, err);
    *count = left < room ? left : room;
    memcpy(out, stream->raw + stream->raw_at, *count);
    stream->raw_at += *count;
    return 0;
}

static int decode_zstd(struct wl_stream *stream, char *out, size_t room, size_t *count,
                       struct err *err)
{
    ZSTD_outBuffer output = { out, room, 0 };
    while (output.pos == 0) {
        if (stream->raw_at == stream->raw_end) {
            if (!stream->raw_ended && fill_raw(stream, err) != 0)
                return -1;
            if (stream->raw_at == stream->raw_end)
                return stream->inside_frame ? truncated(stream, "zstd", err) : 0;
        }
        ZSTD_inBuffer input = { stream->raw, stream->raw_end, stream->raw_at };
        size_t rc = ZSTD_decompressStream(stream->zstd, &output, &input);
        if (ZSTD_isError(rc))
            return corrupt(stream, "zstd", ZSTD_getErrorName(rc), err);
        stream->raw_at = input.pos;
        stream->inside_frame = rc != 0;
        *count = output.pos;
    }
    return 0;
}

/* One inflate step over what is in the raw buffer. A file may consist of several members. */
static int inflate_some(struct wl_stream *stream, struct err *err)
{
    z_stream *gzip = &stream->gzip;
    gzip->next_in = stream->raw + stream->raw_at;
    gzip->avail_in = (uInt)(stream->raw_end - stream->raw_at);
    stream->inside_frame = true;
    int rc = inflate(gzip, Z_NO_FLUSH);
    stream->raw_at = stream->raw_end - gzip->avail_in;
    if (rc == Z_STREAM_END) {
        stream->inside_frame = false;
        return inflateReset(gzip) == Z_OK ? 0 : corrupt(stream, "gzip", "reset", err);
    }
    if (rc == Z_MEM_ERROR)
        return err_set(err, ERR_FAILED, "%s: out of memory", stream->name);
    if (rc != Z_OK && rc != Z_BUF_ERROR)
        return corrupt(stream, "gzip", gzip->msg != NULL ? gzip->msg : "inflate", err);
    return 0;
}

static int decode_gzip(struct wl_stream *stream, char *out, size_t room, size_t *count,
                       struct err *err)
{
    uInt room_now = room > ((size_t)1 << 30) ? (uInt)1 << 30 : (uInt)room;
    stream->gzip.next_out = (Bytef *)out;
    stream->gzip.avail_out = room_now;
    while (stream->gzip.avail_out == room_now) {
        if (stream->raw_at == stream->raw_end) {
            if (!stream->raw_ended && fill_raw(stream, err) != 0)
                return -1;
            if (stream->raw_at == stream->raw_end)
                return stream->inside_frame ? truncated(stream, "gzip", err) : 0;
        }
        if (inflate_some(stream, err) != 0)
            return -1;
        *count = room_now - stream->gzip.avail_out;
    }
    return 0;
}

/* Up to `room` bytes after decompression; *count 0 at the end. */
static int decode(struct wl_stream *stream, char *out, size_t room, size_t *count, struct err *err)
{
    *count = 0;
    switch (stream->coding) {
    case CODING_GZIP:
        return decode_gzip(stream, out, room, count, err);
    case CODING_ZSTD:
        return decode_zstd(stream, out, room, count, err);
    case CODING_PLAIN:
        break;
    }
    return decode_plain(stream, out, room, count, err);
}

/* Makes room behind `end`: by moving what is left to the front, or by growing. One byte is kept for
 * the '\0' behind a last line without end. */
static int make_room(struct wl_stream *stream, struct err *err)
{
    if (stream->at > 0) {
        memmove(stream->lines, stream->lines + stream->at, stream->end - stream->at);
        stream->end -= stream->at;
        stream->at = 0;
    }
    if (stream->end + 1 < stream->capacity)
        return 0;
    if (stream->end > WL_LINE_BYTES_MAX)
        return err_set(err, ERR_INPUT, "%s:%llu: found a line longer than %zu MiB, expected one "
                       "request a line", stream->name,
                       (unsigned long long)stream->line_number + 1, WL_LINE_BYTES_MAX >> 20);
    size_t grown = stream->capacity * 2;
    if (grown > WL_LINE_BYTES_MAX + 2)
        grown = WL_LINE_BYTES_MAX + 2;
    char *moved = realloc(stream->lines, grown);
    if (moved == NULL)
        return err_set(err, ERR_FAILED, "%s: out of memory", stream->name);
    stream->lines = moved;
    stream->capacity = grown;
    return 0;
}

static void hand_out(struct wl_stream *stream, size_t line_end, bool had_lf, struct wl_line *line)
{
    stream->line_start = stream->at;
    stream->line_end = line_end;
    stream->line_had_lf = had_lf;
    stream->at = line_end + had_lf;
    stream->bytes += stream->at - stream->line_start;
    stream->line_number++;
    line->file = stream->name;
    line->number = stream->line_number;
    line->text = stream->lines + stream->line_start;
    line->length = line_end - stream->line_start;
    stream->line_had_cr = had_lf && line->length > 0 && line->text[line->length - 1] == '\r';
    line->length -= stream->line_had_cr;
    line->text[line->length] = '\0';
}

int wl_stream_line(struct wl_stream *stream, struct wl_line *line, struct err *err)
{
    size_t scanned = stream->at;
    for (;;) {
        char *lf = memchr(stream->lines + scanned, '\n', stream->end - scanned);
        if (lf != NULL) {
            hand_out(stream, (size_t)(lf - stream->lines), true, line);
            return 1;
        }
        if (stream->ended) {
            if (stream->at == stream->end)
                return 0;
            hand_out(stream, stream->end, false, line);
            return 1;
        }
        size_t unscanned = stream->end - stream->at;
        if (make_room(stream, err) != 0)
            return -1;
        scanned = stream->at + unscanned;
        size_t count = 0;
        if (decode(stream, stream->lines + stream->end, stream->capacity - 1 - stream->end, &count,
                   err) != 0)
            return -1;
        stream->ended = count == 0;
        stream->end += count;
    }
}

void wl_stream_unread(struct wl_stream *stream)
{
    /* A '\0' stands where the line ended; put back what was there. */
    size_t end = stream->line_end;
    if (stream->line_had_lf) {
        if (stream->line_had_cr)
            stream->lines[end - 1] = '\r';
        stream->lines[end] = '\n';
    }
    stream->bytes -= stream->at - stream->line_start;
    stream->at = stream->line_start;
    stream->line_number--;
}

static int start(struct wl_stream *stream, struct err *err)
{
    stream->at = 0;
    stream->end = 0;
    stream->ended = false;
    stream->raw_ended = false;
    stream->line_number = 0;
    stream->bytes = 0;
    if (recognise_coding(stream, err) != 0)
        return -1;
    return init_decoder(stream, err);
}

static int open_file(struct wl_stream *stream, const char *path, struct err *err)
{
    if (stream->is_stdin)
        stream->fd = STDIN_FILENO;
    else
        stream->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (stream->fd < 0)
        return err_set(err, ERR_INPUT, "%s: cannot open: %s", path, strerror(errno));
    if (fstat(stream->fd, &stream->opened) != 0)
        return err_set(err, ERR_FAILED, "%s: cannot stat: %s", path, strerror(errno));
    if (S_ISDIR(stream->opened.st_mode))
        return err_set(err, ERR_INPUT, "%s: found a directory, expected a file", stream->name);
    stream->can_rewind = !stream->is_stdin && S_ISREG(stream->opened.st_mode);
    return 0;
}

int wl_stream_open(const char *path, struct wl_stream **out, struct err *err)
{
    *out = NULL;
    struct wl_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return err_set(err, ERR_FAILED, "%s: out of memory", path);
    stream->fd = -1;
    stream->is_stdin = strcmp(path, "-") == 0;
    stream->name = strdup(stream->is_stdin ? "standard input" : path);
    stream->raw = malloc(RAW_BYTES);
    stream->lines = malloc(LINES_BYTES_INITIAL);
    stream->capacity = LINES_BYTES_INITIAL;
    int rc = -1;
    if (stream->name == NULL || stream->raw == NULL || stream->lines == NULL)
        err_set(err, ERR_FAILED, "%s: out of memory", path);
    else if (open_file(stream, path, err) == 0)
        rc = start(stream, err);
    if (rc != 0) {
        wl_stream_close(stream);
        return -1;
    }
    *out = stream;
    return 0;
}

bool wl_stream_can_rewind(const struct wl_stream *stream)
{
    return stream->can_rewind;
}

int wl_stream_rewind(struct wl_stream *stream, struct err *err)
{
    if (!stream->can_rewind)
        return err_set(err, ERR_INPUT, "%s: cannot be read a second time, expected a regular file",
                       stream->name);
    struct stat now;
    if (fstat(stream->fd, &now) != 0 || lseek(stream->fd, 0, SEEK_SET) != 0)
        return err_set(err, ERR_FAILED, "%s: cannot read again: %s", stream->name, strerror(errno));
    const struct stat *then = &stream->opened;
    if (now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != then->st_mtim.tv_nsec)
        return err_set(err, ERR_INPUT, "%s: has changed since it was opened", stream->name);
    return start(stream, err);
}

void wl_stream_close(struct wl_stream *stream)
{
    if (stream == NULL)
        return;
    if (stream->fd >= 0 && !stream->is_stdin)
        close(stream->fd);
    inflateEnd(&stream->gzip);
    ZSTD_freeDStream(stream->zstd);
    free(stream->raw);
    free(stream->lines);
    free(stream->name);
    free(stream);
}

const char *wl_stream_name(const struct wl_stream *stream)
{
    return stream->name;
}

uint64_t wl_stream_bytes(const struct wl_stream *stream)
{
    return stream->bytes;
}
