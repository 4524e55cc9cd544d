/* The one table of options, and the two forms that a set of options takes.
 *
 * sim/options.def holds a row an option; the options of the allocation policies (struct kv_option)
 * join it at start-up. From the table come the command line, the configuration file, the help
 * and the echo in the results, so that they cannot disagree.
 *
 *  - struct optset (sim/optset.h): texts as the user wrote them. In a sweep an option may hold a list.
 *  - struct options (below): single values, parsed and in range, ready for the engine.
 *
 * A value that the user did not give and that has no default is *unset*:
 *     COUNT, SIZE, TIME   OPT_UNSET
 *     RATIO               OPT_RATIO_UNSET (test with `< 0`)
 *     WORD                OPT_WORD_UNSET
 *     TEXT, PATH, TRACE   NULL
 *     LIST                count 0
 *     EXTENT              kind OPT_EXTENT_NONE
 *     FLAG                false
 */
#ifndef PAGESIM_OPTIONS_H
#define PAGESIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/eviction.h"
#include "allocator/kv_policy.h"
#include "workloads/err.h"
#include "workloads/wl_source.h"

#define OPT_UNSET UINT64_MAX
#define OPT_RATIO_UNSET (-1.0)
#define OPT_WORD_UNSET UINT32_MAX

/* Commands that an option belongs to. `trace` has a bit for each of its parts. */
enum option_commands {
    FOR_RUN = 1 << 0,
    FOR_SWEEP = 1 << 1,
    FOR_CACHE = 1 << 2,
    FOR_POLICIES = 1 << 3,
    FOR_TRACE_GEN = 1 << 4,
    FOR_TRACE_STATS = 1 << 5,
    FOR_TRACE_CONVERT = 1 << 6,
    FOR_TRACE_CHECK = 1 << 7,
    FOR_BENCH = 1 << 8,
    FOR_PLAN = 1 << 9,
    FOR_REPORT = 1 << 11,
    FOR_EDGE = 1 << 10,
    FOR_DEVICE_REPLAY = 1 << 16,
    FOR_DEVICE_IMPORT = 1 << 17,
    FOR_COMPARE = 1 << 18,
    FOR_EXPLAIN = 1 << 19,
    FOR_SIM = FOR_RUN | FOR_SWEEP | FOR_EDGE | FOR_COMPARE | FOR_EXPLAIN,
    FOR_MEMORY = FOR_SIM | FOR_PLAN, /* whatever sizes a pool */
    FOR_TRACE_READ = FOR_TRACE_STATS | FOR_TRACE_CONVERT | FOR_TRACE_CHECK,
    FOR_READ = FOR_SIM | FOR_CACHE | FOR_TRACE_READ | FOR_PLAN, /* whatever reads a trace */
    FOR_ALL = FOR_READ | FOR_POLICIES | FOR_TRACE_GEN | FOR_BENCH | FOR_REPORT,
};

/* Sections of the help, in this order. Options from OPT_CHECKS on never change a figure, so results do
 * not echo them, and they never hold lists for a sweep. */
enum option_section {
    OPT_TRACE,
    OPT_GENERATOR,
    OPT_MODEL,
    OPT_MEMORY,
    OPT_POLICY,
    OPT_SCHEDULER,
    OPT_STEP_TIME,
    OPT_CACHE,
    OPT_DEVICE,
    OPT_MEASURE,
    OPT_CHECKS,
    OPT_COMPARISON,
    OPT_OUTPUT,
    OPT_SECTIONS
};

enum option_kind {
    OPT_COUNT,  /* uint64_t; 4096, 16k (16,000), 16K (16,384), 1.5M, as vLLM reads them */
    OPT_SIZE,   /* uint64_t bytes; 80GiB, 80GB, 16k, 1.5GiB, 4096 */
    OPT_TIME,   /* uint64_t ns; 300s, 5ms, 10us, 1h, 2min, plain = ns */
    OPT_RATIO,  /* double; plain or exponent notation */
    OPT_EXTENT, /* struct opt_extent; '10%' of the requests or '300s' */
    OPT_WORD,   /* uint32_t index into choices */
    OPT_DECLARED, /* struct opt_declared; max, exact, column or factor:X */
    OPT_TEXT,   /* const char * */
    OPT_PATH,   /* const char *; never split at commas */
    OPT_TRACE_NAME, /* const char *; a file, -, preset:NAME or gen:key=value,... */
    OPT_FLAG,   /* bool, false unless given */
    OPT_BOOL,   /* bool with a default; --NAME, --no-NAME, --NAME=yes|no */
    OPT_LIST,   /* struct opt_list; items split at commas, and the option may be repeated. With max 1 items hold commas:
                   only repeating makes a list */
};

/* A part of a trace: of its requests or of its time. */
enum opt_extent_kind { OPT_EXTENT_NONE, OPT_EXTENT_SHARE, OPT_EXTENT_TIME };
struct opt_extent {
    enum opt_extent_kind kind;
    uint64_t share_millionths; /* of the requests, 0..1,000,000; exact */
    uint64_t time_ns;
};

/* What max_tokens a request is said to have declared (design: --declared-output). */
enum opt_declared_kind {
    OPT_DECLARED_MAX,
    OPT_DECLARED_EXACT,
    OPT_DECLARED_COLUMN,
    OPT_DECLARED_FACTOR
};
struct opt_declared {
    enum opt_declared_kind kind;
    uint64_t factor_millionths; /* for FACTOR: declared = output tokens * this / 10^6; exact */
};

struct opt_list {
    size_t count;
    const char *const *items;
};

/* Words, in the order of `choices` in options.def. --rules is enum kv_rules. */
enum opt_scheduling_policy { OPT_SCHEDULING_FCFS, OPT_SCHEDULING_PRIORITY };
enum opt_admission { OPT_ADMISSION_WHOLE_PROMPT, OPT_ADMISSION_FIRST_CHUNK };
enum opt_cache_output { OPT_CACHE_OUTPUT_KEYED, OPT_CACHE_OUTPUT_UNKEYED, OPT_CACHE_OUTPUT_TRACE };
enum opt_step_time { OPT_STEP_TIME_UNIT, OPT_STEP_TIME_LINEAR, OPT_STEP_TIME_ROOFLINE };
enum opt_host_transfer { OPT_HOST_TRANSFER_BLOCKING, OPT_HOST_TRANSFER_OVERLAPPED };
enum opt_step_shape { OPT_STEP_SHAPE_8B, OPT_STEP_SHAPE_70B_8 };
/* Type of the weights, then of the KV cache. */
enum opt_step_dtypes { OPT_STEP_BF16_BF16, OPT_STEP_FP8_BF16, OPT_STEP_FP8_FP8 };
enum opt_device_model { OPT_DEVICE_NONE, OPT_DEVICE_BUDGET, OPT_DEVICE_CACHING };
enum opt_device_boundary { OPT_BOUNDARY_FIXED, OPT_BOUNDARY_ELASTIC };
enum opt_on_device_oom { OPT_OOM_END, OPT_OOM_REJECT };
enum opt_graph_budget { OPT_GRAPHS_INSIDE, OPT_GRAPHS_OUTSIDE };
enum opt_release_order { OPT_RELEASE_LEAF_FIRST, OPT_RELEASE_ROOT_FIRST };
enum opt_cache_blocks { OPT_BLOCKS_ALL, OPT_BLOCKS_FULL };
enum opt_to { OPT_TO_JSONL, OPT_TO_CSV };
enum opt_time_unit { OPT_UNIT_NS, OPT_UNIT_US, OPT_UNIT_MS, OPT_UNIT_S };

/* C types of the kinds, for the struct below. */
#define OPT_C_COUNT uint64_t
#define OPT_C_SIZE uint64_t
#define OPT_C_TIME uint64_t
#define OPT_C_RATIO double
#define OPT_C_EXTENT struct opt_extent
#define OPT_C_WORD uint32_t
#define OPT_C_DECLARED struct opt_declared
#define OPT_C_TEXT const char *
#define OPT_C_PATH const char *
#define OPT_C_TRACE_NAME const char *
#define OPT_C_FLAG bool
#define OPT_C_BOOL bool
#define OPT_C_LIST struct opt_list

/* Typed values of one simulation. Texts and lists point into the optset they came from. Fields of options
 * that the command does not take are unset. */
struct options {
#define X(kind, field, name, deflt, min, max, choices, unit, commands, section, help)              \
    OPT_C_##kind field;
#include "sim/options.def"
#undef X
    /* The policy that --policy names, NULL for commands without one, and the values of its options, in the
     * order of its own table, then those of its eviction order. */
    const struct kv_policy_ops *policy_ops;
    struct kv_value policy_values[KV_OPTIONS_MAX];
};

/* A row of the table. */
struct option_spec {
    const char *name;         /* without dashes */
    enum option_kind kind;
    const char *default_text; /* as a user would write it; NULL: unset */
    uint64_t min, max;        /* COUNT, SIZE, TIME */
    double ratio_min, ratio_max;
    const char *choices;      /* "a|b|c" for WORD; else NULL */
    const char *unit;         /* what the help calls the value: TOKENS, BYTES, FILE ...; "" for flags */
    uint32_t commands;        /* enum option_commands, or-ed */
    enum option_section section;
    const char *help;
    size_t offset;                  /* of the field; unused when policy_option is set */
    const struct kv_option *policy_option; /* options of policies and of eviction orders; else NULL */
    bool of_order;                         /* of these: of eviction orders */
};

/* The whole table: options.def, then the policies' options in the order of the registry, then those of eviction orders, each
 * name once.
 * Built at the first call; call it once before threads start. */
size_t option_count(void);
const struct option_spec *option_at(size_t i);
/* NULL when the command (one bit of enum option_commands) has no such option. */
const struct option_spec *option_find(uint32_t command, const char *name);
/* Whether it is one of options.def. */
bool option_is_built_in(const char *name);
/* Whether a policy with this eviction order takes the option. ops NULL: of commands without policies. order NULL: any. */
bool option_applies(const struct option_spec *spec, const struct kv_policy_ops *ops, const char *order);
/* The name nearest to `name` by edit distance among the command's options, or NULL if none is near. */
const char *option_nearest(uint32_t command, const char *name);
const char *option_section_title(enum option_section section);

/* Reads one value into *field (of the kind's C type; TEXT, PATH, TRACE_NAME and LIST keep the pointer). Returns 0,
 * or -1 with err, whose text says what was found and expected, without the option's name. */
int option_parse(const struct option_spec *spec, const char *text, void *field, struct err *err);
/* The value in one spelling: numbers in base units without suffix, words as they are. Returns
 * false when it does not fit. `text` must be valid. */
bool option_canonical(const struct option_spec *spec, const char *text, char *out, size_t out_bytes);
/* Whether the canonical text is a JSON number. */
bool option_is_number(const struct option_spec *spec);

struct optset;
/* Checks every option of the set's command and fills *options; for simulations the bytes of a token and of the pool come from
 * the plan when a model or a device is described (plan_into_options). 0, or -1 with err. The set must hold single
 * values (optset_cell) and outlive *options. Without a trace `trace` is NULL: see options_need_trace. */
int options_resolve(const struct optset *set, struct options *options, struct err *err);
/* The values of an eviction order's options as the set has them, KV_OPTIONS_MAX of them at most. */
int options_order_values(const struct optset *set, const struct kv_eviction_ops *order, struct kv_value *values,
                         struct err *err);
/* -1 with a usage error that says how to get a trace, when there is none. */
int options_need_trace(const struct options *options, struct err *err);
/* How the options say the trace is to be read. */
void options_wl(const struct options *options, struct wl_options *wl);
/* Bytes of the pool from whichever of the three pool options is in force. -1 with err when it would pass 2^62,
 * or is smaller than one block. */
int options_pool_bytes(const struct options *options, uint64_t *pool_bytes, struct err *err);

#endif
