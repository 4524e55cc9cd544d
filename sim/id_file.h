/* A file that is a plain stream of object ids, without requests or tokens: what general cache
 * simulators read. Read in large pieces; standard input and pipes work. Object sizes and times are
 * not used: every object has size 1. */
#ifndef PAGESIM_ID_FILE_H
#define PAGESIM_ID_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "workloads/err.h"

enum id_format {
    ID_FORMAT_U64,            /* 8 bytes an id, little-endian */
    ID_FORMAT_TEXT,           /* one decimal number a line */
    ID_FORMAT_ORACLE_GENERAL, /* libCacheSim's 24-byte records, id in bytes 4..11, little-endian */
};

struct id_file;

/* "u64", "text", "oracleGeneral"; -1 with err for other names. */
int id_format_parse(const char *name, enum id_format *format, struct err *err);
const char *id_format_name(enum id_format format);
/* path "-" is standard input. 0, or -1 with err. */
int id_file_open(const char *path, enum id_format format, struct id_file **file, struct err *err);
/* Writes up to `room` ids, room > 0. Returns how many, 0 at the end, -1 with err (a record cut short, a line
 * that is no number, a failed read). */
int64_t id_file_next(struct id_file *file, uint64_t *ids, size_t room, struct err *err);
void id_file_close(struct id_file *file); /* NULL is fine */

#endif
