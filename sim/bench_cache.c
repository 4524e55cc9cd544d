/* The cache studies over bare streams of ids, reading included. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/bench.h"
#include "sim/cache_study.h"
#include "workloads/wl_dist.h"

enum { REFERENCES = 10000000, IDS = 1000000, CAPACITY = 100000 };

static void write_id(FILE *out, enum id_format format, uint64_t id, uint32_t time)
{
    unsigned char record[24] = {0}; /* time, id, size, next access */
    if (format == ID_FORMAT_TEXT) {
        fprintf(out, "%llu\n", (unsigned long long)id);
        return;
    }
    size_t at = format == ID_FORMAT_ORACLE_GENERAL ? 4 : 0;
    for (size_t b = 0; b < 8; b++) record[at + b] = (unsigned char)(id >> 8 * b);
    if (at > 0) memcpy(record, &time, sizeof time);
    fwrite(record, 1, at > 0 ? sizeof record : 8, out);
}

/* Zipf 0.9; which ids are popular has nothing to do with their numbers. */
static bool write_stream(FILE *out, enum id_format format)
{
    struct wl_zipf zipf;
    struct wl_rng rng;
    if (wl_zipf_init(&zipf, IDS, 0.9)) return false;
    wl_rng_init(&rng, 1, 1);
    for (uint32_t i = 0; i < REFERENCES; i++) {
        uint64_t id = wl_zipf_draw(&zipf, &rng) * 7919 % IDS;
        write_id(out, format, id, i);
    }
    wl_zipf_release(&zipf);
    return fflush(out) == 0;
}

static double timed_study(const char *path, enum id_format format)
{
    struct cache_order orders[] = {{.ops = kv_eviction_find("lru")}};
    uint64_t capacities[] = {CAPACITY};
    struct cache_study study = {.capacities = capacities, .capacity_count = 1, .orders = orders, .order_count = 1,
                                .stream = true};
    struct err err = {0};
    double begin = bench_seconds();
    if (cache_study_ids(&study, path, format, &err)) return -1;
    return REFERENCES / (bench_seconds() - begin) * 1e-6;
}

/* Million references a second through an LRU cache of 10^5: 10^7, Zipf 0.9 over 10^6 ids. */
static double stream(unsigned long format)
{
    char path[] = "/tmp/pagesim-bench-XXXXXX";
    int fd = mkstemp(path), quiet = open("/dev/null", O_WRONLY);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    double rate = -1;
    /* The study prints its table; here only its time matters. */
    if (out && quiet >= 0 && dup2(quiet, STDOUT_FILENO) >= 0 && write_stream(out, (enum id_format)format)) {
        rate = timed_study(path, (enum id_format)format);
    }
    if (out) fclose(out);
    unlink(path);
    return rate;
}

const struct bench_case bench_cache_cases[] = {
    {"cache --stream, lru, u64", "M references/s", stream, ID_FORMAT_U64, false},
    {"cache --stream, lru, text", "M references/s", stream, ID_FORMAT_TEXT, false},
    {"cache --stream, lru, oracleGeneral", "M references/s", stream, ID_FORMAT_ORACLE_GENERAL, false},
};
const size_t bench_cache_count = sizeof bench_cache_cases / sizeof bench_cache_cases[0];
