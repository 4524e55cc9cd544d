/* `pagesim cache --stream --ids`: a stream of object ids, without requests or tokens. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/cache_report.h"
#include "sim/cache_study.h"
#include "sim/result.h"

/* References that go through index and caches together: numbers stay in the first-level cache. */
#define ID_BATCH 1024

struct id_study {
    struct id_index index;
    struct block_cache *caches; /* capacity_count a order; those of infinite capacity stay zeroed */
    struct cache_stream *results;
    uint64_t references;
};

static size_t cache_count(const struct cache_study *study)
{
    return study->order_count * study->capacity_count;
}

static bool is_infinite(const struct cache_study *study, size_t i)
{
    return study->capacities[i % study->capacity_count] == CACHE_INFINITE;
}

static void id_study_release(struct id_study *ids, const struct cache_study *study)
{
    for (size_t i = 0; ids->caches != NULL && i < cache_count(study); i++)
        block_cache_release(&ids->caches[i]);
    free(ids->caches);
    free(ids->results);
    if (ids->index.places != NULL)
        id_index_release(&ids->index);
}

static int id_study_init(struct id_study *ids, const struct cache_study *study, struct err *err)
{
    *ids = (struct id_study){.caches = calloc(cache_count(study), sizeof *ids->caches),
                             .results = calloc(cache_count(study), sizeof *ids->results)};
    if (!id_index_init(&ids->index) || ids->caches == NULL || ids->results == NULL)
        return err_set(err, ERR_FAILED, "out of memory");
    for (size_t i = 0; i < cache_count(study); i++)
        if (!is_infinite(study, i) &&
            block_cache_init(&ids->caches[i], study->orders[i / study->capacity_count].ops,
                             study->orders[i / study->capacity_count].values,
                             (uint32_t)study->capacities[i % study->capacity_count], err) != 0)
            return -1;
    return 0;
}

static int id_study_batch(struct id_study *ids, const struct cache_study *study, const uint64_t *batch,
                          size_t n, struct err *err)
{
    uint32_t numbers[ID_BATCH];
    uint32_t known = ids->index.count;

    switch (id_index_number(&ids->index, batch, n, numbers)) {
    case ID_INDEX_OK:
        break;
    case ID_INDEX_NO_MEMORY:
        return err_set(err, ERR_FAILED, "out of memory for the index of ids");
    case ID_INDEX_FULL:
        return err_set(err, ERR_FAILED, "more than %" PRIu32 " different ids", ID_INDEX_MAX - 1);
    }
    for (size_t i = 0; i < cache_count(study); i++) {
        if (is_infinite(study, i)) {
            ids->results[i].hits += n - (ids->index.count - known);
            continue;
        }
        if (block_cache_reserve(&ids->caches[i], ids->index.count, err) != 0)
            return -1;
        ids->results[i].hits += block_cache_access(&ids->caches[i], numbers, n);
    }
    ids->references += n;
    return 0;
}

static int id_study_read(struct id_study *ids, const struct cache_study *study, struct id_file *file,
                         struct err *err)
{
    uint64_t batch[ID_BATCH];
    int64_t n;

    while ((n = id_file_next(file, batch, ID_BATCH, err)) > 0)
        if (id_study_batch(ids, study, batch, (size_t)n, err) != 0)
            return -1;
    return (int)n;
}

/* What the caches counted, once the file is read. */
static void id_study_finish(struct id_study *ids, const struct cache_study *study)
{
    for (size_t i = 0; i < cache_count(study); i++) {
        struct cache_stream *result = &ids->results[i];
        const struct block_cache *cache = &ids->caches[i];

        result->lookups = ids->references;
        result->evicted_blocks = cache->evicted_blocks;
        result->resident_blocks_at_end = is_infinite(study, i) ? ids->index.count : cache->order->count;
    }
}

static struct cache_config id_config(const struct cache_study *study, size_t i)
{
    return (struct cache_config){.evict = study->orders[i / study->capacity_count].ops,
                                 .capacity_blocks = study->capacities[i % study->capacity_count]};
}

static int id_study_json(const struct id_study *ids, const struct cache_study *study, const char *path,
                         const char *format, struct err *err)
{
    printf("{\"ids\": ");
    result_write_string(path, stdout);
    printf(", \"format\": \"%s\", \"references\": %" PRIu64 ", \"unique_ids\": %" PRIu32 "\n", format,
           ids->references, ids->index.count);
    for (size_t i = 0; i < cache_count(study); i++) {
        struct cache_config config = id_config(study, i);
        bool first = i % study->capacity_count == 0;
        bool last = i % study->capacity_count == study->capacity_count - 1;

        if (first)
            printf(" ,\"block_stream_%s\": [\n", config.evict->name);
        printf("%s", first ? "  " : " ,");
        if (cache_json_stream(stdout, &config, &ids->results[i], err) != 0)
            return -1;
        if (last)
            printf(" ]\n");
    }
    printf("}\n");
    return 0;
}

static void id_study_table(const struct id_study *ids, const struct cache_study *study, const char *path)
{
    printf("%s: %" PRIu64 " references, %" PRIu32 " different ids\n", path, ids->references,
           ids->index.count);
    cache_table_stream_head();
    for (size_t i = 0; i < cache_count(study); i++) {
        struct cache_config config = id_config(study, i);

        cache_table_stream(&config, &ids->results[i]);
    }
}

int cache_study_ids(const struct cache_study *study, const char *path, enum id_format format,
                    struct err *err)
{
    struct id_file *file;
    struct id_study ids;
    int status;

    if (id_file_open(path, format, &file, err) != 0)
        return -1;
    status = id_study_init(&ids, study, err);
    if (status == 0)
        status = id_study_read(&ids, study, file, err);
    if (status == 0) {
        id_study_finish(&ids, study);
        if (study->json)
            status = id_study_json(&ids, study, path, id_format_name(format), err);
        else
            id_study_table(&ids, study, path);
    }
    id_study_release(&ids, study);
    id_file_close(file);
    return status;
}
