/* Pictures of the pool: the lines of --memory-map, thinned to what a page can hold, and checked. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "sim/memory_map.h"
#include "sim/page_digest.h"
#include "workloads/wl_stream.h"

struct map_digest {
    struct wl_stream *stream;
    struct wl_line line;
    uint64_t frames, bytes; /* of the file */
    uint64_t cells;         /* of a frame, as the header says */
};

/* 1: a line, parsed if it is wanted, else *value is NULL. 0: the end. -1 with err. */
static int next(struct map_digest *d, bool wanted, json_t **value, struct err *err)
{
    json_error_t trouble;
    int got = wl_stream_line(d->stream, &d->line, err);
    *value = NULL;
    if (got <= 0 || !wanted) return got;
    d->line.err = err;
    *value = json_loadb(d->line.text, d->line.length, JSON_REJECT_DUPLICATES, &trouble);
    if (json_is_object(*value)) return 1;
    json_decref(*value);
    *value = NULL;
    return wl_line_error(&d->line, NULL, NULL, "found no JSON object, expected a line of --memory-map");
}

static uint64_t count_in(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) && json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
}

static int bad(struct map_digest *d, const char *field, const char *expected)
{
    return wl_line_error(&d->line, NULL, field, "expected %s", expected);
}

static int check_header(struct map_digest *d, const json_t *header)
{
    if (count_in(header, "memory_map") != 1) return bad(d, "memory_map", "1, as the first line has it");
    uint64_t units = count_in(header, "units"), per_cell = count_in(header, "units_per_cell");
    if (units == 0) return 0; /* a run without a step */
    if (per_cell == 0 || per_cell > units) return bad(d, "units_per_cell", "a count up to units");
    d->cells = units / per_cell + (units % per_cell != 0);
    return 0;
}

static bool all_counts(const json_t *list, size_t from)
{
    for (size_t i = from; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    }
    return true;
}

/* [how many alike, kind, ...]: they must make up the pool. */
static int check_cells(struct map_digest *d, const json_t *cells)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);
        size_t count = json_array_size(cell);
        if ((count != 2 && count != 9) || !all_counts(cell, 0)) return bad(d, "cells", "lists of 2 or 9 counts");
        uint64_t run = (uint64_t)json_integer_value(json_array_get(cell, 0)), kind = (uint64_t)json_integer_value(json_array_get(cell, 1));
        if (kind >= UNIT_KINDS || (kind == UNIT_HELD) != (count == 9) || run > d->cells - sum) return bad(d, "cells", "kinds 0 to 3, and as many cells as the pool has");
        sum += run;
    }
    return sum == d->cells ? 0 : bad(d, "cells", "as many cells as the pool has");
}

static int check_running(struct map_digest *d, const json_t *running)
{
    if (!json_is_array(running)) return bad(d, "running", "a list");
    for (size_t i = 0; i < json_array_size(running); i++) {
        const json_t *r = json_array_get(running, i), *place = json_array_get(r, 4);
        bool counts = json_is_integer(json_array_get(r, 0)) && json_is_integer(json_array_get(r, 2)) && json_is_integer(json_array_get(r, 3));
        if (json_array_size(r) != 5 || !counts || !json_is_string(json_array_get(r, 1)) || !json_is_array(place) || !all_counts(place, 0))
            return bad(d, "running", "lists of number, id, tokens, tokens at the end and a block table");
    }
    return 0;
}

/* Optional: bytes by purpose, and segments whose blocks make them up. */
static int check_device(struct map_digest *d, const json_t *device)
{
    const json_t *bytes = json_object_get(device, "bytes"), *segments = json_object_get(device, "segments"), *value;
    const char *key;
    if (!device) return 0;
    if (!json_is_object(bytes) || !json_is_array(segments)) return bad(d, "device", "bytes and segments");
    json_object_foreach((json_t *)bytes, key, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) < 0) return bad(d, "device", "counts of bytes");
    }
    for (size_t i = 0; i < json_array_size(segments); i++) {
        const json_t *segment = json_array_get(segments, i), *whole = json_array_get(segment, 0);
        json_int_t left = json_is_integer(whole) ? json_integer_value(whole) : -1;
        for (size_t b = 1; left >= 0 && b < json_array_size(segment); b++) {
            const json_t *block = json_array_get(segment, b);
            bool sound = json_array_size(block) == 2 && all_counts(block, 0) && json_integer_value(json_array_get(block, 0)) <= left;
            left = sound ? left - json_integer_value(json_array_get(block, 0)) : -1;
        }
        if (left != 0) return bad(d, "device", "segments with blocks that make them up");
    }
    return 0;
}

static int check_frame(struct map_digest *d, const json_t *frame)
{
    if (!json_is_integer(json_object_get(frame, "step")) || !json_is_integer(json_object_get(frame, "time_ns")) ||
        !json_is_integer(json_object_get(frame, "waiting")) || !json_is_object(json_object_get(frame, "states")))
        return bad(d, NULL, "step, time_ns, waiting and states");
    if (check_device(d, json_object_get(frame, "device"))) return -1;
    if (!json_is_array(json_object_get(frame, "cells"))) return bad(d, "cells", "a list");
    return check_cells(d, json_object_get(frame, "cells")) || check_running(d, json_object_get(frame, "running")) ? -1 : 0;
}

static int measure(struct map_digest *d, struct err *err)
{
    int got;
    while ((got = wl_stream_line(d->stream, &d->line, err)) > 0) {
        d->frames++;
        d->bytes += d->line.length;
    }
    if (got < 0) return -1;
    if (d->frames == 0) return err_set(err, ERR_INPUT, "%s: found an empty file, expected lines of --memory-map", wl_stream_name(d->stream));
    d->frames--; /* the header */
    return wl_stream_rewind(d->stream, err);
}

static int write_object(const json_t *value, FILE *json, struct err *err)
{
    if (json_dumpf(value, json, JSON_COMPACT) == 0) return 0;
    return err_set(err, ERR_FAILED, "out of memory");
}

static int write_frames(struct map_digest *d, uint64_t every, FILE *json, struct err *err)
{
    json_t *frame = NULL;
    int got, status = 0;
    const char *comma = "";
    fprintf(json, ",\"count\":%" PRIu64 ",\"every\":%" PRIu64 ",\"frames\":[", d->frames, every);
    for (uint64_t i = 0; status == 0 && (got = next(d, i % every == 0, &frame, err)) != 0; i++) {
        if (got < 0) return -1;
        if (!frame) continue;
        status = check_frame(d, frame);
        if (status == 0) {
            fputs(comma, json);
            comma = ",\n";
            status = write_object(frame, json, err);
        }
        json_decref(frame);
    }
    fputc(']', json);
    return status;
}

/* Bytes for the pictures of all runs. */
#define MAP_BYTES ((size_t)4400000)

static int digest(struct map_digest *d, size_t runs, FILE *json, struct err *err)
{
    json_t *header = NULL;
    if (measure(d, err)) return -1;
    uint64_t every = d->bytes / (MAP_BYTES / runs) + 1;
    if (next(d, true, &header, err) < 0) return -1;
    int status = check_header(d, header);
    fputs("{\"header\":", json);
    if (status == 0) status = write_object(header, json, err);
    if (status == 0) status = write_frames(d, every, json, err);
    fputc('}', json);
    json_decref(header);
    return status;
}

int digest_map(const char *path, size_t runs, FILE *json, struct err *err)
{
    struct map_digest d = {0};
    if (wl_stream_open(path, &d.stream, err)) return -1;
    int status = wl_stream_can_rewind(d.stream) ? digest(&d, runs, json, err)
                                                : err_set(err, ERR_INPUT, "%s: can be read only once, expected a file", path);
    wl_stream_close(d.stream);
    return status;
}
