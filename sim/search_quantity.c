/* What can be searched for. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/search.h"

/* A pool of more tokens than this is not tried, unless the search starts near there: 2 TiB at 128 KiB a token. */
#define POOL_TOKENS_MAX ((uint64_t)1 << 24)
#define MIB ((uint64_t)1 << 20)

static int pool_blocks(const struct options *o, uint64_t *value, struct err *err)
{
    uint64_t bytes;
    if (options_pool_bytes(o, &bytes, err)) return -1;
    *value = bytes / o->kv_bytes_per_token / o->block_tokens;
    return 0;
}

static int pool_tokens(const struct options *o, uint64_t *value, struct err *err)
{
    uint64_t bytes;
    if (options_pool_bytes(o, &bytes, err)) return -1;
    *value = bytes / o->kv_bytes_per_token;
    return 0;
}

static int pool_mib(const struct options *o, uint64_t *value, struct err *err)
{
    uint64_t bytes;
    if (options_pool_bytes(o, &bytes, err)) return -1;
    *value = bytes / MIB;
    return 0;
}

static int rate(const struct options *o, uint64_t *value, struct err *err)
{
    (void)err;
    *value = (uint64_t)(o->arrival_speedup_ratio * 1000 + 0.5);
    return 0;
}

static int utilization(const struct options *o, uint64_t *value, struct err *err)
{
    if (!o->gpu && o->gpu_memory_bytes == OPT_UNSET) return err_set(err, ERR_USAGE, "--find: found utilization without a device, expected --gpu or --gpu-memory");
    *value = o->gpu_memory_utilization < 0 ? 90 : (uint64_t)(o->gpu_memory_utilization * 100 + 0.5);
    return 0;
}

#define FIELD(name, field)                                                             \
    static int name(const struct options *o, uint64_t *value, struct err *err)         \
    {                                                                                  \
        (void)err;                                                                     \
        *value = o->field;                                                             \
        return 0;                                                                      \
    }
FIELD(block_size, block_tokens)
FIELD(max_num_seqs, max_num_seqs)
FIELD(max_num_batched_tokens, max_num_batched_tokens)

static void whole(uint64_t value, char *out, size_t bytes)
{
    snprintf(out, bytes, "%" PRIu64, value);
}

static void mib(uint64_t value, char *out, size_t bytes)
{
    snprintf(out, bytes, "%" PRIu64 "MiB", value);
}

static void thousandths(uint64_t value, char *out, size_t bytes)
{
    snprintf(out, bytes, "%" PRIu64 ".%03" PRIu64, value / 1000, value % 1000);
}

static void hundredths(uint64_t value, char *out, size_t bytes)
{
    snprintf(out, bytes, "%" PRIu64 ".%02" PRIu64, value / 100, value % 100);
}

static const struct search_quantity quantities[] = {
    {"pool", "num-gpu-blocks-override", "blocks", 1, POOL_TOKENS_MAX, pool_blocks, whole},
    {"pool-tokens", "pool-tokens", "tokens", 1, POOL_TOKENS_MAX, pool_tokens, whole},
    {"pool-bytes", "kv-cache-memory-bytes", "MiB", 1, (uint64_t)1 << 22, pool_mib, mib},
    {"rate", "arrival-speedup-ratio", "thousandths of the recorded rate", 1, 1000000000, rate, thousandths},
    {"utilization", "gpu-memory-utilization", "hundredths", 1, 100, utilization, hundredths},
    {"block-size", "block-size", "tokens", 1, 1048576, block_size, whole},
    {"max-num-seqs", "max-num-seqs", "sequences", 1, 16777216, max_num_seqs, whole},
    {"max-num-batched-tokens", "max-num-batched-tokens", "tokens", 1, (uint64_t)1 << 40,
     max_num_batched_tokens, whole},
};

const struct search_quantity *search_quantities(size_t *count)
{
    *count = sizeof quantities / sizeof quantities[0];
    return quantities;
}

const struct search_quantity *search_parse(const char *text, bool *smallest, struct err *err)
{
    char known[256] = "";
    const char *name = text + strcspn(text, " ");
    *smallest = strncmp(text, "min ", 4) == 0;
    name += strspn(name, " ");
    for (size_t i = 0; i < sizeof quantities / sizeof quantities[0]; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", quantities[i].name);
        bool directed = *smallest || strncmp(text, "max ", 4) == 0;
        if (directed && strcmp(name, quantities[i].name) == 0) return &quantities[i];
    }
    err_set(err, ERR_USAGE, "--find: found '%.100s', expected min or max and one of %s", text, known);
    return NULL;
}
