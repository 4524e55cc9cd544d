/* `pagesim cache --curve`: miss-ratio curves as CSV or JSON. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cache_study.h"
#include "sim/gnuplot.h"
#include "sim/outfile.h"
#include "sim/result.h"

static int by_capacity(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The finite capacities asked for, ascending, or those of a curve. The caller frees them. */
static uint64_t *wanted_capacities(const struct cache_study *study, const struct cache_trace *trace, size_t *count)
{
    uint64_t *capacities = calloc(study->capacity_count + 1, sizeof *capacities);

    *count = 0;
    if (capacities == NULL)
        return NULL;
    for (size_t i = 0; i < study->capacity_count; i++)
        if (study->capacities[i] != CACHE_INFINITE)
            capacities[(*count)++] = study->capacities[i];
    if (*count > 0) {
        qsort(capacities, *count, sizeof *capacities, by_capacity);
        return capacities;
    }
    free(capacities);
    return curve_capacities(trace, count);
}

static void put_number(FILE *out, const char *before, double value, const char *none)
{
    char text[32];

    result_format_f64(value, text, sizeof text);
    fprintf(out, "%s%s", before, isnan(value) ? none : text);
}

/* Says what varies: lru, lru(root-first), lru(full), lru(root-first+full). No spaces: the figure's lists have words. */
static void series_name(const struct cache_study *study, const struct curve_config *config, char *name, size_t bytes)
{
    bool release = !study->stream && study->release_count > 1 && config->release == CACHE_ROOT_FIRST;
    bool full = !study->stream && study->blocks_count > 1 && config->blocks == CACHE_FULL_BLOCKS;

    (void)snprintf(name, bytes, "%s%s%s%s%s%s", config->evict->name, release || full ? "(" : "",
                   release ? "root-first" : "", release && full ? "+" : "", full ? "full" : "",
                   release || full ? ")" : "");
}

/* Whether the point of curve_knee is one: something hits, on the curve proper. */
static bool has_knee(const struct curve_point *point)
{
    return !point->apart && point->hit_ratio > 0;
}

static void print_csv(FILE *out, const char *series, const struct curve_point *points, size_t count, size_t knee)
{
    for (size_t i = 0; i < count; i++) {
        const struct curve_point *point = &points[i];

        fprintf(out, "%s,%" PRIu64 ",%s", series, point->capacity_blocks, curve_method_name(point->method));
        put_number(out, ",", point->hit_ratio, "");
        put_number(out, ",", 1 - point->hit_ratio, "");
        put_number(out, ",", point->token_hit_ratio, "");
        put_number(out, ",", point->error, "");
        fprintf(out, ",%d,%d\n", i == knee && has_knee(point), point->apart);
    }
}

static void print_json(const struct cache_study *study, const struct curve_config *config,
                       const struct curve_point *points, size_t count, size_t knee, bool first)
{
    printf(" %s{\"evict\": \"%s\"", first ? " " : ",", config->evict->name);
    if (!study->stream)
        printf(", \"release_order\": \"%s\", \"cacheable_blocks\": \"%s\"",
               config->release == CACHE_LEAF_FIRST ? "leaf_first" : "root_first",
               config->blocks == CACHE_ALL_BLOCKS ? "all" : "full");
    if (!has_knee(&points[knee]))
        printf(", \"knee_capacity_blocks\": null");
    else
        printf(", \"knee_capacity_blocks\": %" PRIu64, points[knee].capacity_blocks);
    printf(", \"points\": [\n");
    for (size_t i = 0; i < count; i++) {
        const struct curve_point *point = &points[i];
        bool counted = point->method == CURVE_EXACT || point->method == CURVE_SIMULATED;

        printf("  %s{\"capacity_blocks\": %" PRIu64 ", \"method\": \"%s\"", i > 0 ? "," : " ", point->capacity_blocks,
               curve_method_name(point->method));
        if (counted)
            printf(", \"lookup_blocks\": %" PRIu64 ", \"hit_blocks\": %" PRIu64, point->lookup_blocks, point->hit_blocks);
        put_number(stdout, ", \"hit_ratio_blocks\": ", point->hit_ratio, "null");
        put_number(stdout, ", \"hit_ratio_tokens\": ", point->token_hit_ratio, "null");
        put_number(stdout, ", \"error\": ", point->error, "null");
        printf(", \"below_largest_request\": %s", point->apart ? "true" : "false");
        printf("}\n");
    }
    printf("  ]}\n");
}

struct curves {
    const struct cache_study *study;
    const struct cache_trace *trace;
    FILE *csv; /* of the figure, or NULL */
    uint64_t *capacities;
    struct curve_point *points;
    size_t count;
    bool first;
};

static int one_curve(struct curves *curves, const struct curve_config *config, struct err *err)
{
    char series[80];
    size_t knee;

    if (cache_curve(curves->trace, config, curves->capacities, curves->count, curves->points, err) != 0)
        return -1;
    knee = curve_knee(curves->points, curves->count);
    series_name(curves->study, config, series, sizeof series);
    if (curves->csv != NULL)
        print_csv(curves->csv, series, curves->points, curves->count, knee);
    if (!curves->study->curve)
        return 0;
    if (curves->study->json)
        print_json(curves->study, config, curves->points, curves->count, knee, curves->first);
    else
        print_csv(stdout, series, curves->points, curves->count, knee);
    curves->first = false;
    return 0;
}

static int all_curves(struct curves *curves, struct err *err)
{
    const struct cache_study *study = curves->study;

    for (size_t i = 0; i < study->order_count; i++)
        for (size_t r = 0; r < (study->stream ? 1 : study->release_count); r++)
            for (size_t b = 0; b < (study->stream ? 1 : study->blocks_count); b++) {
                struct curve_config config = {study->orders[i].ops, study->releases[r], study->blocks[b], study->stream,
                                              study->sample_rate, study->orders[i].values};

                if (one_curve(curves, &config, err) != 0)
                    return -1;
            }
    return 0;
}

static const char csv_head[] =
    "series,capacity_blocks,method,hit_ratio_blocks,miss_ratio_blocks,hit_ratio_tokens,error,knee,apart\n";

/* On stdout, and as CSV to the stream csv unless it is NULL. */
static int make_curves(const struct cache_study *study, const struct cache_trace *trace, const char *name, FILE *csv,
                       struct err *err)
{
    struct curves curves = {.study = study, .trace = trace, .csv = csv, .first = true};
    int status;

    curves.capacities = wanted_capacities(study, trace, &curves.count);
    curves.points = curves.capacities != NULL ? calloc(curves.count, sizeof *curves.points) : NULL;
    if (curves.points == NULL) {
        free(curves.capacities);
        return err_set(err, ERR_FAILED, "out of memory");
    }
    if (csv != NULL)
        fputs(csv_head, csv);
    if (study->curve && study->json) {
        printf("{\"trace\": ");
        result_write_string(name, stdout);
        printf(", \"references\": %" PRIu64 ", \"unique_blocks\": %" PRIu32 ", \"max_blocks_per_request\": %" PRIu64
               ", \"curves\": [\n", trace->block_count, trace->unique_blocks, trace->request_blocks_max);
    } else if (study->curve) {
        fputs(csv_head, stdout);
    }
    status = all_curves(&curves, err);
    if (study->curve && study->json)
        printf(" ]}\n");
    free(curves.capacities);
    free(curves.points);
    return status;
}

int cache_study_curve(const struct cache_study *study, const struct cache_trace *trace, const char *name,
                      struct err *err)
{
    char scripts[PATH_MAX], csv[PATH_MAX + 16], stem[PATH_MAX + 16];
    struct outfile *file;

    if (study->plot == NULL)
        return make_curves(study, trace, name, NULL, err);
    if (strlen(study->plot) >= PATH_MAX)
        return err_set(err, ERR_USAGE, "--plot: name too long");
    (void)snprintf(csv, sizeof csv, "%s/miss_ratio.csv", study->plot);
    (void)snprintf(stem, sizeof stem, "%s/miss_ratio", study->plot);
    if (gnuplot_scripts(scripts, sizeof scripts, err) != 0 || (file = outfile_open(csv, err)) == NULL)
        return -1;
    if (make_curves(study, trace, name, outfile_stream(file), err) != 0) {
        outfile_abandon(file);
        return -1;
    }
    if (outfile_commit(file, err) != 0)
        return -1;
    return gnuplot_draw(scripts, "miss_ratio", csv, name, stem, err);
}

/* A bare stream is kept whole, 4 bytes a reference: the curve is drawn after it is known. */
int cache_study_curve_ids(const struct cache_study *study, const char *path, enum id_format format, struct err *err)
{
    struct cache_trace trace;
    struct id_file *file;
    uint64_t batch[4096];
    int64_t n = 0;
    int status;

    if (id_file_open(path, format, &file, err) != 0)
        return -1;
    status = cache_trace_init(&trace, 1, err);
    while (status == 0 && (n = id_file_next(file, batch, sizeof batch / sizeof batch[0], err)) > 0)
        status = cache_trace_add(&trace, 0, batch, (uint64_t)n, err);
    if (status == 0 && n == 0) {
        struct cache_study stream = *study;

        stream.stream = true;
        status = cache_study_curve(&stream, &trace, path, err);
    } else {
        status = -1;
    }
    cache_trace_release(&trace);
    id_file_close(file);
    return status;
}
