/* The lines of a trace: a file or standard input, plain, gzip or zstd (told apart by their first
 * bytes), read as a stream. Memory: two buffers, and the longest line. Not thread-safe. */
#ifndef PAGESIM_WL_STREAM_H
#define PAGESIM_WL_STREAM_H

#include <stdbool.h>

#include "workloads/wl_line.h"

/* A longer line is no request but a mistake (or an attack), and is refused. */
#define WL_LINE_BYTES_MAX ((size_t)64 << 20)

struct wl_stream;

/* path "-" is standard input. Returns 0, or -1 with err. */
int wl_stream_open(const char *path, struct wl_stream **stream, struct err *err);
/* 1: *line is the next line, without LF or CR LF (a last line needs none), valid until the next
 * call. Its err is left alone. 0: the end. -1 with err. */
int wl_stream_line(struct wl_stream *stream, struct wl_line *line, struct err *err);
/* The line just read will be read again. The reader must not have changed it. */
void wl_stream_unread(struct wl_stream *stream);
bool wl_stream_can_rewind(const struct wl_stream *stream);
/* -1 with err also when the file is no longer the one that was opened. */
int wl_stream_rewind(struct wl_stream *stream, struct err *err);
void wl_stream_close(struct wl_stream *stream); /* NULL is fine */
const char *wl_stream_name(const struct wl_stream *stream);
/* Bytes after decompression that were handed out so far. */
uint64_t wl_stream_bytes(const struct wl_stream *stream);

#endif
