#include "sim/options.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sim/optset_internal.h"
#include "sim/plan.h"
#include "sim/sizes.h"

/* --- the table ----------------------------------------------------------------------------- */

#define POLICY_OPTIONS_MAX 128

/* Only RATIO rows have ranges of doubles, the others would lose exactness. */
#define RANGE_COUNT(lo, hi) .min = (lo), .max = (hi)
#define RANGE_SIZE(lo, hi) .min = (lo), .max = (hi)
#define RANGE_TIME(lo, hi) .min = (lo), .max = (hi)
#define RANGE_RATIO(lo, hi) .ratio_min = (lo), .ratio_max = (hi)
#define RANGE_EXTENT(lo, hi) .min = (lo), .max = (hi)
#define RANGE_WORD(lo, hi) .min = (lo), .max = (hi)
#define RANGE_DECLARED(lo, hi) .min = (lo), .max = (hi)
#define RANGE_TEXT(lo, hi) .min = (lo), .max = (hi)
#define RANGE_PATH(lo, hi) .min = (lo), .max = (hi)
#define RANGE_TRACE_NAME(lo, hi) .min = (lo), .max = (hi)
#define RANGE_FLAG(lo, hi) .min = (lo), .max = (hi)
#define RANGE_BOOL(lo, hi) .min = (lo), .max = (hi)
#define RANGE_LIST(lo, hi) .min = (lo), .max = (hi)

static const struct option_spec BUILT_IN[] = {
#define X(kind_, field_, name_, default_, min_, max_, choices_, unit_, commands_, section_, help_) \
    {.name = name_,                                                                                \
     .kind = OPT_##kind_,                                                                          \
     .default_text = default_,                                                                     \
     RANGE_##kind_(min_, max_),                                                                    \
     .choices = choices_,                                                                          \
     .unit = unit_,                                                                                \
     .commands = commands_,                                                                        \
     .section = section_,                                                                          \
     .help = help_,                                                                                \
     .offset = offsetof(struct options, field_)},
#include "sim/options.def"
#undef X
};
#define BUILT_INS (sizeof BUILT_IN / sizeof BUILT_IN[0])

static struct option_spec table[BUILT_INS + POLICY_OPTIONS_MAX];
static size_t table_count;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static bool table_has(const struct kv_option *option)
{
    for (size_t i = BUILT_INS; i < table_count; i++)
        if (strcmp(table[i].name, option->name) == 0) return true;
    return false;
}

static void table_add(const struct kv_option *option, bool of_order)
{
    assert(table_count < sizeof table / sizeof table[0]);
    table[table_count++] = (struct option_spec){
        .name = option->name,
        .kind = option->choices ? OPT_WORD : OPT_COUNT,
        .default_text = option->default_text,
        .min = option->count_min,
        .max = option->count_max,
        .choices = option->choices,
        .unit = option->choices ? "WORD" : "COUNT",
        .commands = of_order ? FOR_SIM | FOR_CACHE : FOR_SIM,
        .section = OPT_POLICY,
        .help = option->help,
        .policy_option = option,
        .of_order = of_order,
    };
}

static void table_add_all(const struct kv_option *const *options, bool of_order)
{
    for (; options && *options; options++)
        if (!table_has(*options)) table_add(*options, of_order);
}

static void table_build(void)
{
    memcpy(table, BUILT_IN, sizeof BUILT_IN);
    table_count = BUILT_INS;
    for (size_t p = 0; p < kv_registry_count(); p++) table_add_all(kv_registry_at(p)->options, false);
    for (size_t p = 0; p < kv_eviction_count(); p++) table_add_all(kv_eviction_at(p)->options, true);
}

bool option_is_built_in(const char *name)
{
    for (size_t i = 0; i < BUILT_INS; i++)
        if (strcmp(BUILT_IN[i].name, name) == 0) return true;
    return false;
}

static bool list_has(const struct kv_option *const *options, const char *name)
{
    for (; options && *options; options++)
        if (strcmp((*options)->name, name) == 0) return true;
    return false;
}

static bool chooses_order(const struct kv_policy_ops *ops)
{
    for (size_t i = 0; ops->options && ops->options[i]; i++)
        if (ops->options[i]->choices == kv_eviction_choices) return true;
    return false;
}

bool option_applies(const struct option_spec *spec, const struct kv_policy_ops *ops, const char *order)
{
    if (!spec->policy_option) return true;
    if (!spec->of_order) return ops && list_has(ops->options, spec->name);
    if (ops && !chooses_order(ops)) return false;
    if (!order) return true;
    const struct kv_eviction_ops *eviction = kv_eviction_find(order);
    return eviction && list_has(eviction->options, spec->name);
}

size_t option_count(void)
{
    pthread_once(&table_once, table_build);
    return table_count;
}

const struct option_spec *option_at(size_t i)
{
    assert(i < option_count());
    return &table[i];
}

const struct option_spec *option_find(uint32_t command, const char *name)
{
    for (size_t i = 0; i < option_count(); i++)
        if ((table[i].commands & command) && strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

#define NAME_BYTES 48

/* Levenshtein distance; names longer than NAME_BYTES are far from everything. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t n = strlen(b);
    if (strlen(a) >= NAME_BYTES || n >= NAME_BYTES) return SIZE_MAX;
    size_t row[NAME_BYTES];
    for (size_t j = 0; j <= n; j++) row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[n];
}

const char *option_nearest(uint32_t command, const char *name)
{
    /* A third of the letters may be wrong: beyond that the answer is a guess. */
    size_t best = strlen(name) / 3 + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < option_count(); i++) {
        if (!(table[i].commands & command)) continue;
        size_t distance = edit_distance(name, table[i].name);
        if (distance < best) {
            best = distance;
            nearest = table[i].name;
        }
    }
    return nearest;
}

const char *option_section_title(enum option_section section)
{
    static const char *const titles[OPT_SECTIONS] = {
        [OPT_TRACE] = "Trace",         [OPT_GENERATOR] = "Generator",
        [OPT_MODEL] = "Model and device",
        [OPT_MEMORY] = "Memory",       [OPT_POLICY] = "Allocation policy",
        [OPT_SCHEDULER] = "Scheduler", [OPT_STEP_TIME] = "Step time",
        [OPT_CACHE] = "Cache",         [OPT_DEVICE] = "Device",
        [OPT_MEASURE] = "Measurement", [OPT_CHECKS] = "Checks",
        [OPT_COMPARISON] = "Comparison",
        [OPT_OUTPUT] = "Input and output",
    };
    assert(section < OPT_SECTIONS);
    return titles[section];
}

/* --- values ---------------------------------------------------------------------------------- */

#define FOUND "found '%.100s', expected "

static int expected(struct err *err, const char *text, const char *what)
{
    return err_set(err, ERR_USAGE, FOUND "%s", text, what);
}

static int number_parse(const struct option_spec *spec, const char *text, uint64_t *value,
                        struct err *err)
{
    enum size_status status = spec->kind == OPT_COUNT  ? size_parse_count(text, value)
                              : spec->kind == OPT_SIZE ? size_parse_bytes_near(text, value)
                                                       : size_parse_time(text, value);
    if (status == SIZE_OK && *value >= spec->min && *value <= spec->max) return 0;
    bool part = status == SIZE_NOT_WHOLE;
    const char *noun = spec->kind == OPT_COUNT  ? (part ? "a whole count" : "a count")
                       : spec->kind == OPT_SIZE ? (part ? "whole bytes" : "bytes (16GiB, 80GB, 16k)")
                       : part                   ? "whole nanoseconds"
                                                : "a time (300s, 5ms, 10us; plain: ns)";
    if (spec->max >= UINT64_MAX - 1)
        return err_set(err, ERR_USAGE, FOUND "%s, at least %" PRIu64, text, noun, spec->min);
    return err_set(err, ERR_USAGE, FOUND "%s from %" PRIu64 " to %" PRIu64, text, noun, spec->min,
                   spec->max);
}

static int ratio_parse(const struct option_spec *spec, const char *text, double *value,
                       struct err *err)
{
    if (size_parse_ratio(text, value) == SIZE_OK && *value >= spec->ratio_min &&
        *value <= spec->ratio_max)
        return 0;
    return err_set(err, ERR_USAGE, FOUND "a number from %g to %g", text, spec->ratio_min,
                   spec->ratio_max);
}

static int extent_parse(const char *text, struct opt_extent *extent, struct err *err)
{
    *extent = (struct opt_extent){.kind = OPT_EXTENT_SHARE};
    if (size_parse_percent(text, &extent->share_millionths) == SIZE_OK &&
        extent->share_millionths <= 1000000)
        return 0;
    extent->kind = OPT_EXTENT_TIME;
    /* A plain number could be meant as either. */
    if (size_has_unit(text) && size_parse_time(text, &extent->time_ns) == SIZE_OK &&
        extent->time_ns <= WL_TIME_NS_MAX)
        return 0;
    return expected(err, text, "a share of the requests (10%) or a time with its unit (300s)");
}

static int word_parse(const struct option_spec *spec, const char *text, uint32_t *index,
                      struct err *err)
{
    size_t length = strlen(text);
    uint32_t i = 0;
    for (const char *word = spec->choices; word; i++) {
        size_t word_length = strcspn(word, "|");
        if (word_length == length && memcmp(word, text, length) == 0) {
            *index = i;
            return 0;
        }
        word = word[word_length] ? word + word_length + 1 : NULL;
    }
    return err_set(err, ERR_USAGE, FOUND "one of %s", text, spec->choices);
}

static int declared_parse(const char *text, struct opt_declared *declared, struct err *err)
{
    static const struct {
        const char *word;
        enum opt_declared_kind kind;
    } words[] = {{"max", OPT_DECLARED_MAX},
                 {"exact", OPT_DECLARED_EXACT},
                 {"column", OPT_DECLARED_COLUMN}};
    *declared = (struct opt_declared){.kind = OPT_DECLARED_MAX};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i].word) != 0) continue;
        declared->kind = words[i].kind;
        return 0;
    }
    declared->kind = OPT_DECLARED_FACTOR;
    uint64_t *factor = &declared->factor_millionths;
    /* From one millionth to a million times. */
    if (strncmp(text, "factor:", 7) == 0 && size_parse_millionths(text + 7, factor) == SIZE_OK &&
        *factor > 0 && *factor <= (uint64_t)1000000 * 1000000)
        return 0;
    return expected(err, text, "max, exact, column or factor:X with X up to 1000000");
}

static int bool_parse(const char *text, bool *value, struct err *err)
{
    static const char *const words[] = {"yes", "no", "true", "false", "on", "off", "1", "0"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i]) != 0) continue;
        *value = i % 2 == 0;
        return 0;
    }
    return expected(err, text, "yes or no");
}

int option_parse(const struct option_spec *spec, const char *text, void *field, struct err *err)
{
    switch (spec->kind) {
    case OPT_COUNT:
    case OPT_SIZE:
    case OPT_TIME: return number_parse(spec, text, field, err);
    case OPT_RATIO: return ratio_parse(spec, text, field, err);
    case OPT_EXTENT: return extent_parse(text, field, err);
    case OPT_WORD: return word_parse(spec, text, field, err);
    case OPT_DECLARED: return declared_parse(text, field, err);
    case OPT_FLAG:
    case OPT_BOOL: return bool_parse(text, field, err);
    case OPT_TEXT:
    case OPT_PATH:
    case OPT_TRACE_NAME:
    case OPT_LIST:
        if (!*text) return expected(err, text, spec->unit);
        memcpy(field, &text, sizeof text);
        return 0;
    }
    assert(false);
    return -1;
}

bool option_is_number(const struct option_spec *spec)
{
    return spec->kind == OPT_COUNT || spec->kind == OPT_SIZE || spec->kind == OPT_TIME ||
           spec->kind == OPT_RATIO;
}

bool option_canonical(const struct option_spec *spec, const char *text, char *out, size_t out_bytes)
{
    union option_field field;
    int n;
    if (option_parse(spec, text, &field, NULL) != 0) return false;
    switch (spec->kind) {
    case OPT_COUNT:
    case OPT_SIZE:
    case OPT_TIME: n = snprintf(out, out_bytes, "%" PRIu64, field.number); break;
    case OPT_RATIO:
        size_format_ratio(field.ratio, out, out_bytes);
        n = (int)strlen(out);
        break;
    case OPT_FLAG:
    case OPT_BOOL: n = snprintf(out, out_bytes, "%s", field.truth ? "yes" : "no"); break;
    default: n = snprintf(out, out_bytes, "%s", text); break;
    }
    return n >= 0 && (size_t)n < out_bytes;
}

/* --- the typed set ----------------------------------------------------------------------------- */

static void field_unset(const struct option_spec *spec, void *field)
{
    static const uint64_t number = OPT_UNSET;
    static const double ratio = OPT_RATIO_UNSET;
    static const uint32_t word = OPT_WORD_UNSET;
    switch (spec->kind) {
    case OPT_COUNT:
    case OPT_SIZE:
    case OPT_TIME: memcpy(field, &number, sizeof number); break;
    case OPT_RATIO: memcpy(field, &ratio, sizeof ratio); break;
    case OPT_WORD: memcpy(field, &word, sizeof word); break;
    case OPT_EXTENT:
    case OPT_DECLARED:
    case OPT_TEXT:
    case OPT_PATH:
    case OPT_TRACE_NAME:
    case OPT_FLAG:
    case OPT_BOOL:
    case OPT_LIST: break; /* all zero, as resolve starts with */
    }
}

static int field_resolve(const struct optset *set, const struct option_spec *spec, void *field,
                         struct err *err)
{
    field_unset(spec, field);
    if (!(spec->commands & optset_command(set))) return 0;
    struct opt_list values = optset_values(set, spec);
    if (spec->kind == OPT_LIST) {
        *(struct opt_list *)field = values;
        return 0;
    }
    if (values.count == 0) return 0;
    assert(values.count == 1);
    if (option_parse(spec, values.items[0], field, err) == 0) return 0;
    optset_blame(set, spec, err);
    return -1;
}

/* Values go through kv_options_parse in their canonical spelling, so that a policy's table need not
 * know suffixes. */
static int values_resolve(const struct optset *set, const char *kind, const char *name,
                          const struct kv_option *const *list, struct kv_value *values, struct err *err)
{
    char canonical[KV_OPTIONS_MAX][64], why[256];
    const char *texts[KV_OPTIONS_MAX] = {NULL};
    for (size_t i = 0; i < kv_options_count(list); i++) {
        const struct option_spec *spec = option_find(optset_command(set), list[i]->name);
        assert(spec && i < KV_OPTIONS_MAX);
        if (!optset_given(set, spec->name)) continue;
        const char *text = optset_text(set, spec->name);
        if (option_canonical(spec, text, canonical[i], sizeof canonical[i])) texts[i] = canonical[i];
    }
    if (kv_options_parse(list, texts, values, why, sizeof why)) return 0;
    return err_set(err, ERR_USAGE, "--%s %s: %s", kind, name, why);
}

int options_order_values(const struct optset *set, const struct kv_eviction_ops *order, struct kv_value *values,
                         struct err *err)
{
    return values_resolve(set, "evict", order->name, order->options, values, err);
}

static int policy_resolve(const struct optset *set, struct options *options, struct err *err)
{
    const struct kv_policy_ops *ops = kv_registry_find(options->policy);
    assert(ops); /* optset_finish looked */
    options->policy_ops = ops;
    size_t own = kv_options_count(ops->options);
    if (values_resolve(set, "policy", ops->name, ops->options, options->policy_values, err) != 0) return -1;
    const struct kv_eviction_ops *order = kv_eviction_of(ops->options, options->policy_values);
    if (!order) return 0;
    if (own + kv_options_count(order->options) > KV_OPTIONS_MAX)
        return err_set(err, ERR_USAGE, "--policy %s: more options than %d together with those of --evict %s", ops->name,
                       KV_OPTIONS_MAX, order->name);
    return options_order_values(set, order, options->policy_values + own, err);
}

int options_resolve(const struct optset *set, struct options *options, struct err *err)
{
    *options = (struct options){0};
    for (size_t i = 0; i < BUILT_INS; i++)
        if (field_resolve(set, option_at(i), (char *)options + BUILT_IN[i].offset, err) != 0)
            return -1;
    if (options->policy && policy_resolve(set, options, err) != 0) return -1;
    return optset_command(set) & FOR_SIM ? plan_into_options(set, options, err) : 0;
}

int options_need_trace(const struct options *options, struct err *err)
{
    if (options->trace) return 0;
    return err_set(err, ERR_USAGE,
                   "no trace given: name a file, or a built-in one such as --trace "
                   "preset:azure-conv");
}

void options_wl(const struct options *options, struct wl_options *wl)
{
    static const uint64_t unit_ns[] = {1, 1000, 1000000, 1000000000};
    assert(options->time_unit <= OPT_UNIT_S);
    *wl = (struct wl_options){
        .format = options->format,
        .trace_block_tokens = (uint32_t)options->trace_block_tokens,
        .time_unit_ns = unit_ns[options->time_unit],
        .arrival_speedup_ratio = options->arrival_speedup_ratio,
        .max_requests = options->max_requests,
        .sort = options->sort,
        .skip_bad = options->skip_bad,
    };
}

int options_pool_bytes(const struct options *options, uint64_t *pool_bytes, struct err *err)
{
    const unsigned __int128 token_bytes = options->kv_bytes_per_token;
    const unsigned __int128 block_bytes = token_bytes * options->block_tokens;
    /* Fields are at most 2^62, 2^40 and 2^32, block_bytes at most 2^60: nothing passes 2^128. */
    unsigned __int128 bytes = options->kv_cache_memory_bytes;
    const char *name = "--kv-cache-memory-bytes";
    if (options->pool_tokens != OPT_UNSET) {
        name = "--pool-tokens";
        bytes = token_bytes * options->pool_tokens;
    } else if (options->num_gpu_blocks != OPT_UNSET) {
        name = "--num-gpu-blocks-override";
        bytes = block_bytes * options->num_gpu_blocks;
    }
    if (bytes > (uint64_t)1 << 62)
        return err_set(err, ERR_USAGE, "%s: a pool of more than 2^62 bytes", name);
    /* Contiguous and token-exact policies have no blocks of that size. */
    bool has_blocks = !options->policy_ops || !(options->policy_ops->flags & (KV_CONTIGUOUS | KV_TOKEN_UNITS));
    if (has_blocks && bytes < block_bytes)
        return err_set(err, ERR_USAGE,
                       "%s: a pool of %" PRIu64 " bytes is smaller than one block of %" PRIu64
                       " tokens, %" PRIu64 " bytes",
                       name, (uint64_t)bytes, options->block_tokens, (uint64_t)block_bytes);
    *pool_bytes = (uint64_t)bytes;
    return 0;
}
