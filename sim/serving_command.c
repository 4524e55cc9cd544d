#include "sim/serving_command.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/sizes.h"

#define COMMAND_BYTES_MAX 65536u

enum engine_bit { VLLM = 1, SGLANG = 2, TRTLLM = 4, ANY = 7 };
enum flag_kind { VALUE, SWITCH };

/* A flag and the option that it becomes. option NULL: changes no memory. A SWITCH gives `value`. */
struct serving_flag {
    const char *flag;
    uint32_t engines;
    enum flag_kind kind;
    const char *option, *value;
    const char *suffix;                 /* unit that the engine leaves out */
    const char *sim_option, *sim_value; /* instead, for `run` and `sweep` */
};

/* vLLM's is the total over all ranks of tensor and pipeline parallelism, SGLang's is for each rank. */
#define HOST_TOTAL "--kv-offloading-size"

static const struct serving_flag FLAGS[] = {
    {"--model", VLLM | TRTLLM, VALUE, "model", NULL, NULL, NULL, NULL},
    {"--model-path", SGLANG, VALUE, "model", NULL, NULL, NULL, NULL},
    {"--model", SGLANG, VALUE, "model", NULL, NULL, NULL, NULL},
    {"--dtype", ANY, VALUE, "dtype", NULL, NULL, NULL, NULL},
    {"--quantization", VLLM | SGLANG, VALUE, "quantization", NULL, NULL, NULL, NULL},
    {"-q", VLLM, VALUE, "quantization", NULL, NULL, NULL, NULL},
    {"--kv-cache-dtype", ANY, VALUE, "kv-cache-dtype", NULL, NULL, NULL, NULL},
    {"--mamba-cache-dtype", VLLM, VALUE, "mamba-cache-dtype", NULL, NULL, NULL, NULL},
    {"--mamba-ssm-cache-dtype", VLLM, VALUE, "mamba-ssm-cache-dtype", NULL, NULL, NULL, NULL},
    {"--mamba-ssm-dtype", SGLANG, VALUE, "mamba-ssm-cache-dtype", NULL, NULL, NULL, NULL},
    {"--tensor-parallel-size", VLLM | SGLANG, VALUE, "tensor-parallel-size", NULL, NULL, NULL, NULL},
    {"-tp", VLLM, VALUE, "tensor-parallel-size", NULL, NULL, NULL, NULL},
    {"--tp-size", SGLANG | TRTLLM, VALUE, "tensor-parallel-size", NULL, NULL, NULL, NULL},
    {"--tp", SGLANG | TRTLLM, VALUE, "tensor-parallel-size", NULL, NULL, NULL, NULL},
    {"--pipeline-parallel-size", VLLM | SGLANG, VALUE, "pipeline-parallel-size", NULL, NULL, NULL, NULL},
    {"-pp", VLLM, VALUE, "pipeline-parallel-size", NULL, NULL, NULL, NULL},
    {"--pp-size", SGLANG | TRTLLM, VALUE, "pipeline-parallel-size", NULL, NULL, NULL, NULL},
    {"--pp", TRTLLM, VALUE, "pipeline-parallel-size", NULL, NULL, NULL, NULL},
    {"--data-parallel-size", VLLM | SGLANG, VALUE, "data-parallel-size", NULL, NULL, NULL, NULL},
    {"-dp", VLLM, VALUE, "data-parallel-size", NULL, NULL, NULL, NULL},
    {"--dp-size", SGLANG, VALUE, "data-parallel-size", NULL, NULL, NULL, NULL},
    {"--dp", SGLANG, VALUE, "data-parallel-size", NULL, NULL, NULL, NULL},
    {"--decode-context-parallel-size", VLLM, VALUE, "decode-context-parallel-size", NULL, NULL, NULL, NULL},
    {"-dcp", VLLM, VALUE, "decode-context-parallel-size", NULL, NULL, NULL, NULL},
    {"--enable-expert-parallel", VLLM, SWITCH, "enable-expert-parallel", "yes", NULL, NULL, NULL},
    {"--block-size", VLLM, VALUE, "block-size", NULL, NULL, NULL, NULL},
    {"--page-size", SGLANG, VALUE, "block-size", NULL, NULL, NULL, NULL},
    {"--gpu-memory-utilization", VLLM, VALUE, "gpu-memory-utilization", NULL, NULL, NULL, NULL},
    {"--mem-fraction-static", SGLANG, VALUE, "gpu-memory-utilization", NULL, NULL, NULL, NULL},
    {"--kv-cache-free-gpu-memory-fraction", TRTLLM, VALUE, "gpu-memory-utilization", NULL, NULL, NULL, NULL},
    {"--free-gpu-memory-fraction", TRTLLM, VALUE, "gpu-memory-utilization", NULL, NULL, NULL, NULL},
    {"--kv-cache-memory-bytes", VLLM, VALUE, "kv-cache-memory-bytes", NULL, NULL, NULL, NULL},
    {"--kv-cache-memory", VLLM, VALUE, "kv-cache-memory-bytes", NULL, NULL, NULL, NULL},
    {"--num-gpu-blocks-override", VLLM, VALUE, "num-gpu-blocks-override", NULL, NULL, NULL, NULL},
    {"--max-total-tokens", SGLANG, VALUE, "pool-tokens", NULL, NULL, NULL, NULL},
    {"--max-model-len", VLLM, VALUE, "max-model-len", NULL, NULL, NULL, NULL},
    {"--context-length", SGLANG, VALUE, "max-model-len", NULL, NULL, NULL, NULL},
    {"--max-seq-len", TRTLLM, VALUE, "max-model-len", NULL, NULL, NULL, NULL},
    {"--max-num-batched-tokens", VLLM, VALUE, "max-num-batched-tokens", NULL, NULL, NULL, NULL},
    {"--chunked-prefill-size", SGLANG, VALUE, "max-num-batched-tokens", NULL, NULL, NULL, NULL},
    {"--max-num-tokens", TRTLLM, VALUE, "max-num-batched-tokens", NULL, NULL, NULL, NULL},
    {"--max-num-seqs", VLLM, VALUE, "max-num-seqs", NULL, NULL, NULL, NULL},
    {"--max-running-requests", SGLANG, VALUE, "max-num-seqs", NULL, NULL, NULL, NULL},
    {"--max-batch-size", TRTLLM, VALUE, "max-num-seqs", NULL, NULL, NULL, NULL},
    {"--swa-full-tokens-ratio", SGLANG, VALUE, "swa-full-tokens-ratio", NULL, NULL, NULL, NULL},
    {"--swap-space", VLLM, VALUE, "swap-space", NULL, "GiB", NULL, NULL},
    {HOST_TOTAL, VLLM, VALUE, "host-cache", NULL, "GiB", NULL, NULL},
    {"--kv-offloading-backend", VLLM, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--hicache-size", SGLANG, VALUE, "host-cache", NULL, "GB", NULL, NULL},
    {"--cpu-offload-gb", VLLM | SGLANG, VALUE, "cpu-offload-memory", NULL, "GiB", NULL, NULL},
    {"--enforce-eager", VLLM, SWITCH, "enforce-eager", "yes", NULL, NULL, NULL},
    {"--disable-cuda-graph", SGLANG, SWITCH, "enforce-eager", "yes", NULL, NULL, NULL},
    {"--async-scheduling", VLLM, SWITCH, "async-scheduling", "yes", NULL, NULL, NULL},
    {"--enable-sleep-mode", VLLM, SWITCH, "enable-sleep-mode", "yes", NULL, NULL, NULL},
    {"--enable-memory-saver", SGLANG, SWITCH, "enable-sleep-mode", "yes", NULL, NULL, NULL},
    {"--enable-prefix-caching", VLLM, SWITCH, "enable-prefix-caching", "yes", NULL, "policy", "prefix"},
    {"--no-enable-prefix-caching", VLLM, SWITCH, "enable-prefix-caching", "no", NULL, "policy", "dynamic"},
    {"--disable-radix-cache", SGLANG, SWITCH, "enable-prefix-caching", "no", NULL, "policy", "dynamic"},
    {"--enable-chunked-prefill", VLLM | TRTLLM, SWITCH, "enable-chunked-prefill", "yes", NULL, NULL, NULL},
    {"--no-enable-chunked-prefill", VLLM, SWITCH, "enable-chunked-prefill", "no", NULL, NULL, NULL},
    {"--long-prefill-token-threshold", VLLM, VALUE, "long-prefill-token-threshold", NULL, NULL, NULL, NULL},
    {"--scheduling-policy", VLLM, VALUE, "scheduling-policy", NULL, NULL, NULL, NULL},
    {"--seed", VLLM, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--random-seed", SGLANG, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--host", ANY, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--port", ANY, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--api-key", ANY, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--served-model-name", ANY, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--tokenizer", ANY, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--tokenizer-path", SGLANG, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--tokenizer-mode", ANY, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--revision", ANY, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--download-dir", ANY, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--chat-template", ANY, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--tool-call-parser", ANY, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--reasoning-parser", ANY, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--uvicorn-log-level", VLLM, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--log-level", SGLANG | TRTLLM, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--generation-config", VLLM, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--distributed-executor-backend", VLLM, VALUE, NULL, NULL, NULL, NULL, NULL},
    {"--trust-remote-code", ANY, SWITCH, NULL, NULL, NULL, NULL, NULL},
    {"--enable-auto-tool-choice", VLLM, SWITCH, NULL, NULL, NULL, NULL, NULL},
    {"--disable-log-requests", VLLM, SWITCH, NULL, NULL, NULL, NULL, NULL},
    {"--no-enable-log-requests", VLLM, SWITCH, NULL, NULL, NULL, NULL, NULL},
    {"--disable-log-stats", VLLM, SWITCH, NULL, NULL, NULL, NULL, NULL},
    {"--enable-metrics", SGLANG, SWITCH, NULL, NULL, NULL, NULL, NULL},
};

/* --- words ------------------------------------------------------------------------------------------ */

/* One word from *at on; false at the command's end. */
static bool next_word(const char **at, char **out, bool *open)
{
    const char *p = *at;
    for (; *p == ' ' || *p == '\t' || *p == '\r' || *p == '\n' || (*p == '\\' && p[1] == '\n'); p++)
        if (*p == '\\') p++;
    *at = p;
    if (!*p || *p == ';' || *p == '|' || *p == '&' || *p == '#') return false;
    for (; *p && !strchr(" \t\r\n;|&", *p); p++) {
        if (*p == '\\' && p[1]) {
            if (*++p != '\n') *(*out)++ = *p;
        } else if (*p == '\'' || *p == '"') {
            char quote = *p++;
            for (; *p && *p != quote; p++) {
                if (quote == '"' && *p == '\\' && p[1] && strchr("\"\\$`\n", p[1])) p++;
                *(*out)++ = *p;
            }
            if (!*p) {
                *open = true;
                return false;
            }
        } else {
            *(*out)++ = *p;
        }
    }
    *(*out)++ = '\0';
    *at = p;
    return true;
}

int serving_command_split(const char *text, char *out, struct err *err)
{
    int words = 0;
    bool open = false;
    while (next_word(&text, &out, &open)) words++;
    if (open) return err_set(err, ERR_USAGE, "found a quote that is left open");
    return words;
}

/* --- notes -------------------------------------------------------------------------------------------- */

static void note(uint32_t *count, char list[][SERVING_NOTE_BYTES], const char *flag, const char *value)
{
    if (*count < SERVING_NOTES_MAX) {
        char *out = list[*count];
        snprintf(out, SERVING_NOTE_BYTES, "%.50s%s%.60s", flag, value ? " " : "", value ? value : "");
        for (; *out; out++)
            if ((unsigned char)*out < ' ' || (unsigned char)*out > '~') *out = '?';
    }
    ++*count;
}

static json_t *list_json(uint32_t count, const char list[][SERVING_NOTE_BYTES])
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < count && i < SERVING_NOTES_MAX; i++) json_array_append_new(array, json_string(list[i]));
    return array;
}

json_t *serving_notes_json(const struct serving_notes *n)
{
    return json_pack("{s:s, s:o, s:o, s:o}", "engine", n->engine, "read", list_json(n->read_count, n->read),
                     "no_effect_on_memory", list_json(n->neutral_count, n->neutral), "unknown",
                     list_json(n->unknown_count, n->unknown));
}

/* --- reading -------------------------------------------------------------------------------------------- */

struct reading {
    struct optset *set;
    struct serving_notes *notes;
    struct err *err;
    char **words;
    int count, at;
    uint32_t engine;
    bool has_model;
    const char *host_total; /* value of HOST_TOTAL, in words */
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The engine whose server word i starts, and where its own words begin; 0: none. */
static uint32_t starts_at(const struct reading *r, int i, int *begin)
{
    const char *word = r->words[i], *base = base_name(word);
    const char *next = i + 1 < r->count ? r->words[i + 1] : "";
    *begin = i + 1;
    if (strcmp(base, "vllm") == 0 || strcmp(base, "sglang") == 0) {
        bool bench = strcmp(next, "bench") == 0 && i + 2 < r->count;
        if (strcmp(next, "serve") != 0 && !bench) return 0;
        *begin = i + (bench ? 3 : 2);
        return base[0] == 'v' ? VLLM : SGLANG;
    }
    if (strcmp(base, "trtllm-serve") == 0) {
        *begin = i + (strcmp(next, "serve") == 0 ? 2 : 1);
        return TRTLLM;
    }
    if (strncmp(word, "vllm.entrypoints", 16) == 0 || strncmp(base, "vllm-openai", 11) == 0) {
        /* The image's entry point already is `vllm serve`; some repeat it. */
        return strcmp(next, "vllm") == 0 ? 0 : VLLM;
    }
    if (strcmp(word, "sglang.launch_server") == 0) return SGLANG;
    return 0;
}

static int find_server(struct reading *r)
{
    for (int i = 0; i < r->count; i++) {
        int begin;
        r->engine = starts_at(r, i, &begin);
        if (r->engine) return begin;
    }
    /* Bare flags are taken for vLLM's. */
    if (r->count > 0 && r->words[0][0] == '-') {
        r->engine = VLLM;
        return 0;
    }
    return err_set(
        r->err, ERR_USAGE,
        "found no server in it, expected 'vllm serve MODEL ...', 'python -m sglang.launch_server ...' or 'trtllm-serve MODEL ...'");
}

/* The option for this command, its value; NULL: this command has no such option. */
static const char *target(const struct reading *r, const struct serving_flag *flag, const char **value)
{
    bool sim = (optset_command(r->set) & FOR_SIM) != 0;
    if (sim && flag->sim_option) {
        *value = flag->sim_value;
        return flag->sim_option;
    }
    if (flag->kind == SWITCH) *value = flag->value;
    return flag->option && option_find(optset_command(r->set), flag->option) ? flag->option : NULL;
}

static int give(struct reading *r, const char *flag, const char *option, const char *value, const char *suffix)
{
    char with_suffix[64];
    /* Python reads '.9' as a number. */
    bool bare = value[0] == '.' && isdigit((unsigned char)value[1]);
    if ((suffix || bare) && strlen(value) < sizeof with_suffix - 8) {
        snprintf(with_suffix, sizeof with_suffix, "%s%s%s", bare ? "0" : "", value, suffix ? suffix : "");
        value = with_suffix;
    }
    if (r->notes) note(&r->notes->read_count, r->notes->read, flag, value);
    if (optset_given(r->set, option)) return 0;
    if (optset_put(r->set, option, value, r->err) == 0) return 0;
    if (strncmp(flag, "--", 2) != 0 || strcmp(flag + 2, option) != 0) err_prefix(r->err, "%.60s", flag);
    return -1;
}

static void unknown(struct reading *r, const char *flag, const char *value)
{
    if (r->notes) note(&r->notes->unknown_count, r->notes->unknown, flag, value);
}

/* Variables before the command. */
static int variable(struct reading *r, const char *word)
{
    static const char GRAPHS[] = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=";
    if (strncmp(word, GRAPHS, sizeof GRAPHS - 1) == 0)
        return give(r, "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "cuda-graph-budget",
                    word[sizeof GRAPHS - 1] == '0' ? "outside" : "inside", NULL);
    if (strncmp(word, "VLLM_", 5) == 0 || strncmp(word, "PYTORCH_", 8) == 0 || strncmp(word, "SGLANG_", 7) == 0 ||
        strncmp(word, "NCCL_", 5) == 0)
        unknown(r, word, NULL);
    else if (r->notes) note(&r->notes->neutral_count, r->notes->neutral, word, NULL);
    return 0;
}

static const struct serving_flag *flag_find(const struct reading *r, const char *name)
{
    for (size_t i = 0; i < sizeof FLAGS / sizeof FLAGS[0]; i++)
        if ((FLAGS[i].engines & r->engine) && strcmp(FLAGS[i].flag, name) == 0) return &FLAGS[i];
    return NULL;
}

/* Values that mean 'decide yourself'. */
static bool is_auto(const struct serving_flag *flag, const char *value)
{
    bool length = flag->option &&
                  (strcmp(flag->option, "max-model-len") == 0 || strcmp(flag->option, "max-num-batched-tokens") == 0);
    return length && (strcmp(value, "auto") == 0 || strcmp(value, "-1") == 0);
}

/* What a server that decides itself is told as; NULL: what a command does without the option. */
static const char *automatic(const struct reading *r, const struct serving_flag *flag, const char **chosen)
{
    static const char FITTED[] = "fit-max-model-len";
    bool fits = strcmp(flag->option, "max-model-len") == 0 && option_find(optset_command(r->set), FITTED);
    *chosen = "yes";
    return fits ? FITTED : NULL;
}

/* Whether the next word is a value and no flag; numbers may have a sign. */
static bool value_follows(const struct reading *r)
{
    if (r->at >= r->count) return false;
    const char *word = r->words[r->at];
    return word[0] != '-' || isdigit((unsigned char)word[1]);
}

static bool is_truth(const char *word, bool truth)
{
    static const char *const WORDS[2][3] = {{"false", "no", "0"}, {"true", "yes", "1"}};
    for (size_t i = 0; i < 3; i++)
        if (strcasecmp(word, WORDS[truth][i]) == 0) return true;
    return false;
}

/* A switch that is followed by true or false. With false it is the flag --no-NAME, if there is one; NULL: nothing is left of it. */
static const struct serving_flag *switch_value(struct reading *r, const struct serving_flag *flag, const char *value)
{
    char opposite[64];
    bool word = !value && r->at < r->count && strlen(r->words[r->at]) > 1;
    if (word) value = r->words[r->at];
    bool no = value && is_truth(value, false), yes = value && is_truth(value, true);
    if (word && (no || yes)) r->at++;
    if (!no) return flag;
    snprintf(opposite, sizeof opposite, "--no-%.50s", flag->flag + 2);
    return flag_find(r, opposite);
}

static uint64_t ranks(const struct reading *r, const char *option)
{
    uint64_t count;
    const char *text = option_find(optset_command(r->set), option) ? optset_text(r->set, option) : NULL;
    bool sound = text && size_parse_count(text, &count) == SIZE_OK && count > 0 && count <= UINT32_MAX;
    return sound ? count : 1; /* what is not is refused elsewhere */
}

/* A rank's share of HOST_TOTAL, once all flags have been read. */
static int give_host_share(struct reading *r)
{
    if (!r->host_total) return 0;
    char text[64];
    uint64_t bytes, share = ranks(r, "tensor-parallel-size") * ranks(r, "pipeline-parallel-size");
    snprintf(text, sizeof text, "%s%.40sGiB", r->host_total[0] == '.' ? "0" : "", r->host_total);
    if (size_parse_bytes_near(text, &bytes) != SIZE_OK)
        return err_set(r->err, ERR_USAGE, HOST_TOTAL ": found '%.40s', expected GiB", r->host_total);
    snprintf(text, sizeof text, "%" PRIu64, bytes / share);
    if (r->notes) note(&r->notes->read_count, r->notes->read, HOST_TOTAL, r->host_total);
    if (optset_given(r->set, "host-cache") || optset_put(r->set, "host-cache", text, r->err) == 0) return 0;
    err_prefix(r->err, HOST_TOTAL);
    return -1;
}

static int flag_word(struct reading *r, char *word)
{
    char *equals = strchr(word, '=');
    const char *value = NULL;
    if (equals) {
        *equals = '\0';
        value = equals + 1;
    }
    char name[64];
    snprintf(name, sizeof name, "%.60s", word);
    for (char *p = name; *p; p++)
        if (*p == '_') *p = '-';
    const struct serving_flag *flag = flag_find(r, name);
    bool takes = !flag || flag->kind == VALUE;
    if (takes && !value && value_follows(r)) value = r->words[r->at++];
    if (!flag) {
        unknown(r, name, value);
        return 0;
    }
    if (flag->kind == VALUE && !value) return err_set(r->err, ERR_USAGE, "%s: needs a value", name);
    if (flag->kind == SWITCH && !(flag = switch_value(r, flag, value))) {
        if (r->notes) note(&r->notes->neutral_count, r->notes->neutral, name, "false");
        return 0;
    }
    const char *chosen = value;
    const char *option = target(r, flag, &chosen);
    if (flag->kind == VALUE && is_auto(flag, value)) option = automatic(r, flag, &chosen);
    if (option && strcmp(flag->flag, HOST_TOTAL) == 0) {
        r->host_total = value;
        return 0;
    }
    if (option) return give(r, name, option, chosen, flag->suffix);
    if (r->notes) note(&r->notes->neutral_count, r->notes->neutral, name, flag->kind == VALUE ? value : NULL);
    return 0;
}

static int read_words(struct reading *r)
{
    int begin = find_server(r);
    if (begin < 0) return -1;
    for (r->at = 0; r->at < begin; r->at++) {
        const char *word = r->words[r->at];
        if (isupper((unsigned char)word[0]) && strchr(word, '=') && variable(r, word) != 0) return -1;
    }
    static const char *const NAMES[] = {[VLLM] = "vllm", [SGLANG] = "sglang", [TRTLLM] = "tensorrt-llm"};
    if (r->notes) r->notes->engine = NAMES[r->engine];
    if (!optset_given(r->set, "engine") && r->engine != VLLM &&
        optset_put(r->set, "engine", NAMES[r->engine], r->err) != 0)
        return -1;
    while (r->at < r->count) {
        char *word = r->words[r->at++];
        int status = 0;
        if (word[0] == '-' && word[1]) {
            status = flag_word(r, word);
        } else if (!r->has_model) {
            r->has_model = true;
            status = give(r, "MODEL", "model", word, NULL);
        } else {
            unknown(r, word, NULL);
        }
        if (status != 0) return -1;
    }
    return give_host_share(r);
}

static int read_text(struct reading *r, const char *text)
{
    if (strlen(text) > COMMAND_BYTES_MAX)
        return err_set(r->err, ERR_USAGE, "more than 64 KiB, expected a serving command");
    char *bytes = malloc(strlen(text) + 1);
    r->count = bytes ? serving_command_split(text, bytes, r->err) : err_set(r->err, ERR_FAILED, "out of memory");
    r->words = r->count > 0 ? calloc((size_t)r->count, sizeof *r->words) : NULL;
    int status = r->count < 0 ? -1 : 0;
    if (r->count == 0) status = err_set(r->err, ERR_USAGE, "found nothing, expected a serving command");
    if (r->count > 0 && !r->words) status = err_set(r->err, ERR_FAILED, "out of memory");
    char *at = bytes;
    for (int i = 0; status == 0 && i < r->count; i++, at += strlen(at) + 1) r->words[i] = at;
    if (status == 0) status = read_words(r);
    free(r->words);
    free(bytes);
    return status;
}

int serving_command_read(struct optset *set, struct serving_notes *notes, struct err *err)
{
    const char *text = optset_text(set, "command");
    if (notes) *notes = (struct serving_notes){.engine = "vllm"};
    if (!text) return 0;
    struct reading r = {.set = set, .notes = notes, .err = err};
    if (read_text(&r, text) == 0) return 0;
    err_prefix(err, "--command");
    return -1;
}
