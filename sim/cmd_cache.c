/* `pagesim cache`: hit rates of a trace's content by capacity and eviction order, without an engine. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cache_report.h"
#include "sim/cache_sim.h"
#include "sim/command.h"
#include "sim/id_file.h"
#include "sim/result.h"
#include "sim/sizes.h"

/* References that go through index and caches together: numbers stay in the first-level cache. */
#define ID_BATCH 1024

/* What the options ask for: the product of these lists. */
struct study {
    uint64_t *capacities; /* CACHE_INFINITE for inf */
    size_t capacity_count;
    const struct kv_eviction_ops **orders;
    size_t order_count;
    enum cache_release releases[2];
    size_t release_count;
    enum cache_blocks blocks[2];
    size_t blocks_count;
    bool json;
};

/* --- options ----------------------------------------------------------------------------------- */

static int parse_capacity(const char *text, uint64_t *capacity, struct err *err)
{
    if (strcmp(text, "inf") == 0) {
        *capacity = CACHE_INFINITE;
        return 0;
    }
    if (size_parse_count(text, capacity) == SIZE_OK && *capacity > 0 && *capacity <= CACHE_CAPACITY_MAX)
        return 0;
    return err_set(err, ERR_USAGE, "--capacity: found '%.40s', expected blocks (1 to %" PRIu32 ") or inf",
                   text, CACHE_CAPACITY_MAX);
}

static int parse_order(const char *text, const struct kv_eviction_ops **order, struct err *err)
{
    char known[512] = "";
    size_t used = 0;

    *order = kv_eviction_find(text);
    if (*order != NULL)
        return 0;
    for (size_t i = 0; i < kv_eviction_count() && used < sizeof known; i++) {
        int n = snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "",
                         kv_eviction_at(i)->name);

        used += n > 0 ? (size_t)n : 0;
    }
    return err_set(err, ERR_USAGE, "--evict: found '%.40s', expected one of %s", text, known);
}

/* Reads up to two different words into values[]: the index of each among the two choices. */
static int parse_words(const char *option, const struct opt_list *list, const char *const choices[2],
                       size_t values[2], size_t *count, struct err *err)
{
    *count = 0;
    for (size_t i = 0; i < list->count; i++) {
        size_t value = strcmp(list->items[i], choices[1]) == 0 ? 1 : 0;

        if (strcmp(list->items[i], choices[value]) != 0)
            return err_set(err, ERR_USAGE, "--%s: found '%.40s', expected %s or %s", option,
                           list->items[i], choices[0], choices[1]);
        if (*count == 2 || (*count == 1 && values[0] == value))
            return err_set(err, ERR_USAGE, "--%s: found '%s' twice", option, list->items[i]);
        values[(*count)++] = value;
    }
    return 0;
}

static int study_parse(struct study *study, const struct options *options, struct err *err)
{
    static const char *const release_words[2] = {"leaf-first", "root-first"};
    static const char *const block_words[2] = {"all", "full"};
    size_t releases[2], blocks[2];

    *study = (struct study){.json = options->json};
    study->capacities = calloc(options->capacity.count + 1, sizeof *study->capacities);
    study->orders = calloc(options->evict.count + 1, sizeof *study->orders);
    if (study->capacities == NULL || study->orders == NULL)
        return err_set(err, ERR_FAILED, "out of memory");
    for (size_t i = 0; i < options->capacity.count; i++)
        if (parse_capacity(options->capacity.items[i], &study->capacities[study->capacity_count++],
                           err) != 0)
            return -1;
    for (size_t i = 0; i < options->evict.count; i++)
        if (parse_order(options->evict.items[i], &study->orders[study->order_count++], err) != 0)
            return -1;
    if (parse_words("release-order", &options->release_order, release_words, releases,
                    &study->release_count, err) != 0 ||
        parse_words("blocks", &options->cache_blocks, block_words, blocks, &study->blocks_count,
                    err) != 0)
        return -1;
    for (size_t i = 0; i < study->release_count; i++)
        study->releases[i] = releases[i] == 0 ? CACHE_LEAF_FIRST : CACHE_ROOT_FIRST;
    for (size_t i = 0; i < study->blocks_count; i++)
        study->blocks[i] = blocks[i] == 0 ? CACHE_ALL_BLOCKS : CACHE_FULL_BLOCKS;
    return 0;
}

static void study_release(struct study *study)
{
    free(study->capacities);
    free(study->orders);
}

/* --- output ------------------------------------------------------------------------------------ */

static const char *capacity_text(uint64_t capacity, char text[24])
{
    if (capacity == CACHE_INFINITE)
        return "inf";
    (void)snprintf(text, 24, "%" PRIu64, capacity);
    return text;
}

static void print_ratio(uint64_t part, uint64_t whole)
{
    if (whole > 0)
        printf("  %8.4f", (double)part / (double)whole);
    else
        printf("  %8s", "-");
}

static void table_prefix_head(void)
{
    printf("%10s  %-8s  %-10s  %-6s  %12s  %8s  %14s  %8s  %12s  %8s\n", "capacity", "evict",
           "release", "blocks", "hit blocks", "ratio", "hit tokens", "ratio", "evicted", "rejected");
}

static void table_infinite(const struct cache_infinite *result)
{
    printf("%10s  %-8s  %-10s  %-6s  %12" PRIu64, "inf", "-", "-", "all", result->hit_blocks);
    print_ratio(result->hit_blocks, result->lookup_blocks);
    printf("  %14" PRIu64, result->hit_tokens);
    print_ratio(result->hit_tokens, result->input_tokens);
    printf("  %12d  %8d\n", 0, 0);
    printf("%10s  %-8s  %-10s  %-6s  %12" PRIu64, "inf", "-", "-", "full", result->hit_full_blocks);
    print_ratio(result->hit_full_blocks, result->lookup_full_blocks);
    printf("  %14" PRIu64, result->hit_tokens_full_blocks);
    print_ratio(result->hit_tokens_full_blocks, result->input_tokens);
    printf("  %12d  %8d\n", 0, 0);
}

static void table_prefix(const struct cache_config *config, const struct cache_prefix *result)
{
    char text[24];

    printf("%10s  %-8s  %-10s  %-6s  %12" PRIu64, capacity_text(config->capacity_blocks, text),
           config->evict->name, config->release == CACHE_LEAF_FIRST ? "leaf-first" : "root-first",
           config->blocks == CACHE_ALL_BLOCKS ? "all" : "full", result->hit_blocks);
    print_ratio(result->hit_blocks, result->lookup_blocks);
    printf("  %14" PRIu64, result->hit_tokens);
    print_ratio(result->hit_tokens, result->input_tokens);
    printf("  %12" PRIu64 "  %8" PRIu64 "\n", result->evicted_blocks, result->rejected_requests);
}

static void table_stream_head(void)
{
    printf("%10s  %-8s  %14s  %14s  %9s  %14s\n", "capacity", "evict", "references", "hits",
           "hit ratio", "evicted");
}

static void table_stream(const struct cache_config *config, const struct cache_stream *result)
{
    char text[24];

    printf("%10s  %-8s  %14" PRIu64 "  %14" PRIu64 " ", capacity_text(config->capacity_blocks, text),
           config->evict->name, result->lookups, result->hits);
    print_ratio(result->hits, result->lookups);
    printf("  %14" PRIu64 "\n", result->evicted_blocks);
}

/* --- a trace ----------------------------------------------------------------------------------- */

static int study_prefix(const struct study *study, const struct cache_trace *trace,
                        const struct kv_eviction_ops *order, struct err *err)
{
    const char *separator = "  ";

    if (study->json)
        printf(" ,\"prefix_%s\": [\n", order->name);
    for (size_t c = 0; c < study->capacity_count; c++)
        for (size_t r = 0; r < study->release_count; r++)
            for (size_t b = 0; b < study->blocks_count; b++) {
                struct cache_config config = {order, study->capacities[c], study->releases[r],
                                              study->blocks[b]};
                struct cache_prefix result;

                if (config.capacity_blocks == CACHE_INFINITE)
                    continue; /* the object `infinite` says it all */
                if (cache_run_prefix(trace, &config, &result, NULL, err) != 0)
                    return -1;
                if (!study->json) {
                    table_prefix(&config, &result);
                    continue;
                }
                printf("%s", separator);
                if (cache_json_prefix(stdout, &config, &result, err) != 0)
                    return -1;
                separator = " ,";
            }
    if (study->json)
        printf(" ]\n");
    return 0;
}

static int study_stream(const struct study *study, const struct cache_trace *trace,
                        const struct kv_eviction_ops *order, bool with_infinite, struct err *err)
{
    const char *separator = "  ";

    if (study->json)
        printf(" ,\"block_stream_%s\": [\n", order->name);
    for (size_t c = 0; c < study->capacity_count; c++) {
        struct cache_config config = {.evict = order, .capacity_blocks = study->capacities[c]};
        struct cache_stream result;

        if (config.capacity_blocks == CACHE_INFINITE && !with_infinite)
            continue;
        if (cache_run_stream(trace, &config, &result, err) != 0)
            return -1;
        if (!study->json) {
            table_stream(&config, &result);
            continue;
        }
        printf("%s", separator);
        if (cache_json_stream(stdout, &config, &result, err) != 0)
            return -1;
        separator = " ,";
    }
    if (study->json)
        printf(" ]\n");
    return 0;
}

static int study_json(const struct study *study, const struct cache_trace *trace, bool stream_only,
                      const struct wl_source *source, struct err *err)
{
    struct cache_infinite infinite;

    printf("{\"trace\": ");
    result_write_string(wl_name(source), stdout);
    printf(", \"trace_checksum\": \"%016" PRIx64 "\"", wl_summary(source)->checksum);
    printf(", \"block_size_tokens\": %" PRIu32 ", \"requests\": %" PRIu64
           ", \"max_blocks_per_request\": %" PRIu64 ", \"lower_bound\": %s\n",
           trace->block_tokens, trace->request_count, trace->request_blocks_max,
           trace->lower_bound ? "true" : "false");
    if (!stream_only) {
        cache_run_infinite(trace, &infinite, NULL);
        printf(" ,\"infinite\": ");
        if (cache_json_infinite(stdout, &infinite, err) != 0)
            return -1;
        for (size_t i = 0; i < study->order_count; i++)
            if (study_prefix(study, trace, study->orders[i], err) != 0)
                return -1;
    }
    for (size_t i = 0; i < study->order_count; i++)
        if (study_stream(study, trace, study->orders[i], stream_only, err) != 0)
            return -1;
    printf("}\n");
    return 0;
}

static int study_table(const struct study *study, const struct cache_trace *trace, bool stream_only,
                       const struct wl_source *source, struct err *err)
{
    struct cache_infinite infinite;

    printf("%s: %" PRIu64 " requests, %" PRIu64 " blocks of %" PRIu32 " tokens, %" PRIu32
           " different, at most %" PRIu64 " a request\n",
           wl_name(source), trace->request_count, trace->block_count, trace->block_tokens,
           trace->unique_blocks, trace->request_blocks_max);
    if (trace->lower_bound)
        printf("the trace knows its content in coarser pieces than these blocks: hit ratios are lower bounds\n");
    if (stream_only) {
        table_stream_head();
    } else {
        table_prefix_head();
    }
    for (size_t i = 0; i < study->order_count; i++)
        if ((stream_only ? study_stream(study, trace, study->orders[i], true, err)
                         : study_prefix(study, trace, study->orders[i], err)) != 0)
            return -1;
    for (size_t c = 0; c < study->capacity_count && !stream_only; c++)
        if (study->capacities[c] == CACHE_INFINITE) {
            cache_run_infinite(trace, &infinite, NULL);
            table_infinite(&infinite);
            break;
        }
    return 0;
}

static int run_trace(const struct study *study, const struct options *options, bool block_size_given,
                     struct err *err)
{
    struct wl_options wl;
    struct wl_source *source;
    struct cache_trace trace = {0};
    int status;

    if (options_need_trace(options, err) != 0)
        return -1;
    options_wl(options, &wl);
    if (wl_open(options->trace, &wl, options->seed, &source, err) != 0)
        return -1;
    status = cache_trace_read(&trace, source, block_size_given ? (uint32_t)options->block_tokens : 0,
                              err);
    if (status == 0)
        status = (study->json ? study_json : study_table)(study, &trace, options->stream, source, err);
    if (status == 0 && wl_summary(source)->cut)
        fprintf(stderr, "warning: --max-requests cut the trace after %" PRIu64 " requests\n",
                trace.request_count);
    cache_trace_release(&trace);
    wl_close(source);
    return status;
}

/* --- a stream of ids --------------------------------------------------------------------------- */

/* One pass, all caches side by side, so that pipes work; nothing but index and caches is kept. */
struct id_study {
    struct id_index index;
    struct block_cache *caches; /* capacity_count a order; those of infinite capacity stay zeroed */
    struct cache_stream *results;
    uint64_t references;
};

static size_t cache_count(const struct study *study)
{
    return study->order_count * study->capacity_count;
}

static bool is_infinite(const struct study *study, size_t i)
{
    return study->capacities[i % study->capacity_count] == CACHE_INFINITE;
}

static void id_study_release(struct id_study *ids, const struct study *study)
{
    for (size_t i = 0; ids->caches != NULL && i < cache_count(study); i++)
        block_cache_release(&ids->caches[i]);
    free(ids->caches);
    free(ids->results);
    if (ids->index.places != NULL)
        id_index_release(&ids->index);
}

static int id_study_init(struct id_study *ids, const struct study *study, struct err *err)
{
    *ids = (struct id_study){.caches = calloc(cache_count(study), sizeof *ids->caches),
                             .results = calloc(cache_count(study), sizeof *ids->results)};
    if (!id_index_init(&ids->index) || ids->caches == NULL || ids->results == NULL)
        return err_set(err, ERR_FAILED, "out of memory");
    for (size_t i = 0; i < cache_count(study); i++)
        if (!is_infinite(study, i) &&
            block_cache_init(&ids->caches[i], study->orders[i / study->capacity_count],
                             (uint32_t)study->capacities[i % study->capacity_count], err) != 0)
            return -1;
    return 0;
}

static int id_study_batch(struct id_study *ids, const struct study *study, const uint64_t *batch,
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

static int id_study_read(struct id_study *ids, const struct study *study, struct id_file *file,
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
static void id_study_finish(struct id_study *ids, const struct study *study)
{
    for (size_t i = 0; i < cache_count(study); i++) {
        struct cache_stream *result = &ids->results[i];
        const struct block_cache *cache = &ids->caches[i];

        result->lookups = ids->references;
        result->evicted_blocks = cache->evicted_blocks;
        result->resident_blocks_at_end = is_infinite(study, i) ? ids->index.count : cache->order->count;
    }
}

static struct cache_config id_config(const struct study *study, size_t i)
{
    return (struct cache_config){.evict = study->orders[i / study->capacity_count],
                                 .capacity_blocks = study->capacities[i % study->capacity_count]};
}

static int id_study_json(const struct id_study *ids, const struct study *study, const char *path,
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

static void id_study_table(const struct id_study *ids, const struct study *study, const char *path)
{
    printf("%s: %" PRIu64 " references, %" PRIu32 " different ids\n", path, ids->references,
           ids->index.count);
    table_stream_head();
    for (size_t i = 0; i < cache_count(study); i++) {
        struct cache_config config = id_config(study, i);

        table_stream(&config, &ids->results[i]);
    }
}

static int run_ids(const struct study *study, const struct options *options, struct err *err)
{
    const char *format_name = options->format != NULL ? options->format : "u64";
    enum id_format format;
    struct id_file *file;
    struct id_study ids;
    int status;

    if (options->trace != NULL)
        return err_set(err, ERR_USAGE, "found --ids and a trace, expected one of them");
    if (id_format_parse(format_name, &format, err) != 0) {
        err_prefix(err, "--format");
        return -1;
    }
    if (id_file_open(options->ids, format, &file, err) != 0)
        return -1;
    status = id_study_init(&ids, study, err);
    if (status == 0)
        status = id_study_read(&ids, study, file, err);
    if (status == 0) {
        id_study_finish(&ids, study);
        if (study->json)
            status = id_study_json(&ids, study, options->ids, format_name, err);
        else
            id_study_table(&ids, study, options->ids);
    }
    id_study_release(&ids, study);
    id_file_close(file);
    return status;
}

/* --- the command ------------------------------------------------------------------------------- */

static int cache_run(const struct optset *set, int argc, char **argv, struct err *err)
{
    struct options options;
    struct study study = {0};
    int status;

    (void)argc;
    (void)argv;
    if (options_resolve(set, &options, err) != 0)
        return -1;
    status = study_parse(&study, &options, err);
    if (status == 0)
        status = options.ids != NULL
                     ? run_ids(&study, &options, err)
                     : run_trace(&study, &options, optset_given(set, "block-size"), err);
    study_release(&study);
    return status;
}

extern const struct command command_cache;
const struct command command_cache = {
    .name = "cache",
    .summary = "hit rates of a trace's content by capacity and eviction order, without an engine",
    .usage = "[OPTION...] [TRACE]",
    .notes = "Requests run one after another and take no time. Only leading blocks that are\n"
             "all cached hit. --capacity, --evict, --release-order and --blocks take comma\n"
             "lists; each combination is one line, or one JSON object.\n"
             "\n"
             "Without --block-size blocks are the trace's own ids, or 16 tokens where it says\n"
             "its content token by token. With it, blocks of that size are cut out of the\n"
             "content; where ids are coarser, the hit ratio is a lower bound and says so.\n"
             "\n"
             "--ids FILE reads a bare stream of object ids instead of a trace, by --stream's\n"
             "rule; --format u64 (8 bytes an id, little-endian), text (a number a line) or\n"
             "oracleGeneral (24-byte records).\n",
    .options = FOR_CACHE,
    .arguments = COMMAND_ARGS_TRACE,
    .run = cache_run,
};
