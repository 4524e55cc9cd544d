/* `pagesim cache`: hit rates of a trace's content by capacity and eviction order, without an engine. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cache_study.h"
#include "sim/command.h"
#include "sim/host_options.h"
#include "sim/plots.h"
#include "sim/sizes.h"

static int parse_capacity(const char *option, const char *text, uint64_t least, uint64_t *capacity, struct err *err)
{
    if (strcmp(text, "inf") == 0) {
        *capacity = CACHE_INFINITE;
        return 0;
    }
    if (size_parse_count(text, capacity) == SIZE_OK && *capacity >= least && *capacity <= CACHE_CAPACITY_MAX)
        return 0;
    return err_set(err, ERR_USAGE, "--%s: found '%.40s', expected blocks (%" PRIu64 " to %" PRIu32 ") or inf", option,
                   text, least, CACHE_CAPACITY_MAX);
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

static int parse_host(struct cache_study *study, const struct optset *set, const struct options *options,
                      struct err *err)
{
    for (size_t i = 0; i < options->host_capacity.count; i++) {
        uint64_t *capacity = &study->host_capacities[study->host_capacity_count++];

        if (parse_capacity("host-capacity", options->host_capacity.items[i], 0, capacity, err) != 0)
            return -1;
        study->host |= *capacity > 0;
    }
    for (size_t i = 0; i < options->host_evict_orders.count; i++) {
        struct cache_order *order = &study->host_orders[study->host_order_count++];

        if (host_order_find(options->host_evict_orders.items[i], &order->ops, err) != 0 ||
            options_order_values(set, order->ops, order->values, err) != 0)
            return -1;
    }
    if (!study->host)
        return 0;
    if (study->stream || study->curve || study->plot != NULL || options->ids != NULL)
        return err_set(err, ERR_USAGE, "found --host-capacity with --%s, expected one of them",
                       study->stream ? "stream" : study->curve ? "curve" : study->plot != NULL ? "plot" : "ids");
    for (size_t i = 0; i < study->order_count; i++)
        if ((study->orders[i].ops->flags & KV_EVICTION_CLAIRVOYANT) != 0)
            return err_set(err, ERR_USAGE, "--evict: found '%s' with --host-capacity, expected an order that does not "
                           "read ahead: it is a bound for one cache alone", study->orders[i].ops->name);
    return 0;
}

static int check_requests(const struct kv_eviction_ops *order, const struct options *options, struct err *err)
{
    if (!cache_needs_requests(order) || (!options->stream && options->ids == NULL))
        return 0;
    return err_set(err, ERR_USAGE, "--evict: found '%s', which looks at requests, expected a trace without --stream",
                   order->name);
}

static int study_parse(struct cache_study *study, const struct optset *set, const struct options *options,
                       struct err *err)
{
    static const char *const release_words[2] = {"leaf-first", "root-first"};
    static const char *const block_words[2] = {"all", "full"};
    size_t releases[2], blocks[2];

    *study = (struct cache_study){.stream = options->stream, .json = options->json, .curve = options->curve,
                                  .sample_rate = options->sample_rate, .plot = options->plot};
    study->capacities = calloc(options->capacity.count + 1, sizeof *study->capacities);
    study->orders = calloc(options->evict.count + 1, sizeof *study->orders);
    study->host_capacities = calloc(options->host_capacity.count + 1, sizeof *study->host_capacities);
    study->host_orders = calloc(options->host_evict_orders.count + 1, sizeof *study->host_orders);
    if (study->capacities == NULL || study->orders == NULL || study->host_capacities == NULL || study->host_orders == NULL)
        return err_set(err, ERR_FAILED, "out of memory");
    for (size_t i = 0; i < options->capacity.count; i++)
        if (parse_capacity("capacity", options->capacity.items[i], 1, &study->capacities[study->capacity_count++],
                           err) != 0)
            return -1;
    for (size_t i = 0; i < options->evict.count; i++) {
        struct cache_order *order = &study->orders[study->order_count++];

        if (eviction_order_find("evict", options->evict.items[i], &order->ops, err) != 0 ||
            check_requests(order->ops, options, err) != 0 ||
            options_order_values(set, order->ops, order->values, err) != 0)
            return -1;
    }
    if (parse_words("release-order", &options->release_order, release_words, releases,
                    &study->release_count, err) != 0 ||
        parse_words("blocks", &options->cache_blocks, block_words, blocks, &study->blocks_count,
                    err) != 0)
        return -1;
    for (size_t i = 0; i < study->release_count; i++)
        study->releases[i] = releases[i] == 0 ? CACHE_LEAF_FIRST : CACHE_ROOT_FIRST;
    for (size_t i = 0; i < study->blocks_count; i++)
        study->blocks[i] = blocks[i] == 0 ? CACHE_ALL_BLOCKS : CACHE_FULL_BLOCKS;
    return parse_host(study, set, options, err);
}

static void study_release(struct cache_study *study)
{
    free(study->capacities);
    free(study->orders);
    free(study->host_capacities);
    free(study->host_orders);
}

static int run_trace(const struct cache_study *study, const struct options *options, bool block_size_given,
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
        status = study->curve || study->plot != NULL ? cache_study_curve(study, &trace, wl_name(source), err)
                              : cache_study_trace(study, &trace, source, err);
    if (status == 0 && wl_summary(source)->cut)
        fprintf(stderr, "pagesim: trace cut: only the first %" PRIu64 " requests were read (--max-requests)\n",
                trace.request_count);
    cache_trace_release(&trace);
    wl_close(source);
    return status;
}

static int run_ids(const struct cache_study *study, const struct options *options, struct err *err)
{
    enum id_format format = ID_FORMAT_U64;

    if (options->trace != NULL)
        return err_set(err, ERR_USAGE, "found --ids and a trace, expected one of them");
    if (options->format != NULL && id_format_parse(options->format, &format, err) != 0) {
        err_prefix(err, "--format");
        return -1;
    }
    if (study->curve || study->plot != NULL)
        return cache_study_curve_ids(study, options->ids, format, err);
    for (size_t i = 0; i < study->order_count; i++)
        if ((study->orders[i].ops->flags & KV_EVICTION_CLAIRVOYANT) != 0)
            return err_set(err, ERR_USAGE, "--evict: found '%s', which reads ahead, expected a trace instead of --ids",
                           study->orders[i].ops->name);
    return cache_study_ids(study, options->ids, format, err);
}

static int cache_run(const struct optset *set, int argc, char **argv, struct err *err)
{
    struct options options;
    struct cache_study study = {0};
    int status;

    (void)argc;
    (void)argv;
    if (options_resolve(set, &options, err) != 0)
        return -1;
    status = study_parse(&study, set, &options, err);
    if (status == 0 && study.plot != NULL)
        status = plots_check(study.plot, err);
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
             "all cached hit. --capacity, --evict, --release-order, --blocks, --host-capacity\n"
             "and --host-evict take comma lists; each combination is one line, or one JSON\n"
             "object.\n"
             "\n"
             "--host-capacity puts a host tier below: what the cache evicts is offloaded, hits\n"
             "go on over blocks that the tier has, and these are fetched (docs/eviction.md).\n"
             "\n"
             "Without --block-size blocks are the trace's own ids, or 16 tokens where it says\n"
             "its content token by token. With it, blocks of that size are cut out of the\n"
             "content; where ids are coarser, the hit ratio is a lower bound and says so.\n"
             "\n"
             "--curve prints the hit ratio at many capacities as CSV (--json: JSON), one\n"
             "line a point, with the method (exact in one pass for lru, simulated, shards,\n"
             "mini), the standard error where blocks were sampled, and the knee of the working\n"
             "set marked. opt is a bound: it knows the trace, and all of its cached blocks\n"
             "count as hits. --plot DIR draws the curves instead, or with --curve prints and\n"
             "draws them.\n"
             "\n"
             "--ids FILE reads a bare stream of object ids instead of a trace, by --stream's\n"
             "rule; --format u64 (8 bytes an id, little-endian), text (a number a line) or\n"
             "oracleGeneral (24-byte records).\n",
    .options = FOR_CACHE,
    .arguments = COMMAND_ARGS_TRACE,
    .run = cache_run,
};
