/* Reading traces and whole simulations. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/bench.h"
#include "sim/replay.h"
#include "sim/simulation.h"
#include "sim/sweep.h"

/* A run that is set up from words; negative when that fails. */
struct timed_run {
    double seconds;
    uint64_t steps, requests;
};

static bool timed(struct timed_run *out, const struct optset *set, bool replay)
{
    struct err err = {0};
    struct options o;
    struct wl_options how;
    struct wl_source *file = NULL, *source = NULL;
    struct wl_trace *trace = NULL;
    struct trace_facts facts;
    struct result result;
    struct simulation_extras extras = {.replay_stalls = replay};
    if (options_resolve(set, &o, &err)) return false;
    options_wl(&o, &how);
    result_init(&result);
    bool ok = wl_open(o.trace, &how, o.seed, &file, &err) == 0 &&
              wl_trace_load(file, &trace, &err) == 0 && (source = wl_trace_open(trace)) != NULL &&
              trace_facts_read(&facts, source, &o, &err) == 0;
    double begin = bench_seconds();
    ok = ok && simulation_run(&result, set, &o, source, &facts, &extras, &err) == 0;
    out->seconds = bench_seconds() - begin;
    const struct result_entry *steps = ok ? result_find(&result, "steps") : NULL;
    const struct result_entry *requests = ok ? result_find(&result, "requests") : NULL;
    out->steps = steps ? steps->u64 : 0;
    out->requests = requests ? requests->u64 : 0;
    result_release(&result);
    wl_close(source);
    wl_trace_destroy(trace);
    wl_close(file);
    return ok;
}

static struct optset *words(const char *const *pairs)
{
    struct err err = {0};
    struct optset *set = optset_create(FOR_RUN, false);
    for (; set && *pairs; pairs += 2) {
        if (optset_put(set, pairs[0], pairs[1], &err)) return NULL;
    }
    return set && optset_finish(set, &err) == 0 ? set : NULL;
}

static bool timed_words(struct timed_run *out, const char *const *pairs)
{
    struct optset *set = words(pairs);
    bool ok = set && timed(out, set, false);
    optset_destroy(set);
    return ok;
}

double bench_run_seconds(const char *const *pairs)
{
    struct timed_run run;
    return timed_words(&run, pairs) ? run.seconds : -1;
}

/* Steps a second, skipping against visiting, of 256 long decodes at once. */
static double skip_ratio_decodes(unsigned long a)
{
    (void)a;
#define DECODES "trace", "gen:requests=256,arrivals=none,prompt=64,output=6000", "num-gpu-blocks-override", "200000", \
                "step-time", "unit"
    struct timed_run skipping, plain;
    const char *const with[] = {DECODES, NULL}, *const without[] = {DECODES, "plain-loop", "yes", NULL};
    if (!timed_words(&skipping, with) || !timed_words(&plain, without)) return -1;
    return plain.seconds / skipping.seconds;
}

#define CHAT "trace", "preset:shared-chat", "num-gpu-blocks-override", "100000", "step-time", "unit", "step-ns", \
             "30000000"

/* Thousand requests a second of 100,000 chats with shared prefixes. */
static double chat(unsigned long a)
{
    (void)a;
    struct timed_run run;
    const char *const pairs[] = {CHAT, NULL};
    return timed_words(&run, pairs) ? (double)run.requests / run.seconds * 1e-3 : -1;
}

static double skip_ratio_chat(unsigned long a)
{
    (void)a;
    struct timed_run skipping, plain;
    const char *const with[] = {CHAT, "max-requests", "20000", NULL};
    const char *const without[] = {CHAT, "max-requests", "20000", "plain-loop", "yes", NULL};
    if (!timed_words(&skipping, with) || !timed_words(&plain, without)) return -1;
    return plain.seconds / skipping.seconds;
}

/* Nanoseconds a request of short generated ones, so that growth with their number shows. */
static double per_request(unsigned long requests)
{
    char trace[200];
    struct timed_run run = {0};
    snprintf(trace, sizeof trace,
             "gen:requests=%lu,arrivals=poisson:100,prompt=lognormal:4.5:0.8@1..1000,output=lognormal:3:0.8@1..300",
             requests);
    struct err err = {0};
    const char *const pairs[] = {"trace", trace, "num-gpu-blocks-override", "20000", "step-time", "unit", NULL};
    struct optset *set = words(pairs);
    struct options o;
    struct wl_options how;
    struct wl_source *source = NULL;
    struct trace_facts facts;
    struct result result;
    result_init(&result);
    /* Streaming, as the command does it: memory must not grow. */
    double begin = bench_seconds();
    bool ok = set && options_resolve(set, &o, &err) == 0;
    if (ok) options_wl(&o, &how);
    ok = ok && wl_open(o.trace, &how, o.seed, &source, &err) == 0 &&
         trace_facts_read(&facts, source, &o, &err) == 0 &&
         simulation_run(&result, set, &o, source, &facts, NULL, &err) == 0;
    run.seconds = bench_seconds() - begin;
    wl_close(source);
    result_release(&result);
    optset_destroy(set);
    return ok ? run.seconds * 1e9 / (double)requests : -1;
}

/* Milliseconds of a public trace, reading included; only where PAGESIM_TRACES names the folder. */
static double public_trace(unsigned long which)
{
    static const struct {
        const char *file, *blocks;
    } traces[] = {{"azure/AzureLLMInferenceTrace_conv.csv", "4000"},
                  {"mooncake/conversation_trace.jsonl.zst", "40000"},
                  {"mooncake/conversation_trace.jsonl.zst", "1000000"}};
    const char *folder = getenv("PAGESIM_TRACES");
    char path[4096];
    if (!folder) return -1;
    snprintf(path, sizeof path, "%s/%s", folder, traces[which].file);
    const char *const pairs[] = {"trace", path, "num-gpu-blocks-override", traces[which].blocks,
                                 "step-time", "unit", "step-ns", "30ms", NULL};
    struct timed_run run;
    double begin = bench_seconds();
    if (access(path, R_OK) || !timed_words(&run, pairs)) return -1;
    return (bench_seconds() - begin) * 1e3;
}

/* Milliseconds of the loop of a large recorded case: trace read beforehand, step lines off. */
static double recorded_case(unsigned long which)
{
    static const char *const names[] = {"40-large-chat-cached", "41-large-chat-uncached",
                                        "42-large-mixed-tight"};
    char path[200];
    struct err err = {0};
    struct replay replay;
    struct timed_run run;
    snprintf(path, sizeof path, "tests/golden/vllm-v1/%s", names[which]);
    if (access(path, R_OK)) return -1;
    struct optset *user = words((const char *const[]){NULL});
    bool ok = user && replay_open(&replay, path, user, &err) == 0 && timed(&run, replay.set, true);
    return ok ? run.seconds * 1e3 : -1;
}

/* Megabytes a second of 50 MB of JSONL with this many hash ids a line: long prompts, of which most is new, or short
 * ones in which no two ids follow each other. */
static double read_jsonl(unsigned long ids)
{
    char path[] = "/tmp/pagesim-bench-XXXXXX";
    int fd = mkstemp(path);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!out) return -1;
    uint64_t id = 0, arrival = 0, bytes = 0;
    while (bytes < 50000000) {
        arrival += 137;
        bytes += (uint64_t)fprintf(out, "{\"timestamp\": %llu, \"input_length\": %lu, \"output_length\": 300, \"hash_ids\": [",
                                   (unsigned long long)arrival, ids * 512);
        for (unsigned long i = 0; i < ids; i++) {
            uint64_t shown = ids > 100 ? id : id * 7 % 1000000;
            id++;
            bytes += (uint64_t)fprintf(out, "%s%llu", i ? ", " : "", (unsigned long long)shown);
        }
        bytes += (uint64_t)fprintf(out, "]}\n");
    }
    fclose(out);
    struct wl_source *source = NULL;
    struct wl_request request;
    struct err err = {0};
    struct wl_options how = {.arrival_speedup_ratio = 1};
    int more = wl_open(path, &how, 1, &source, &err) ? -1 : 1;
    double begin = bench_seconds();
    while (more == 1) more = wl_next(source, &request, &err);
    double seconds = bench_seconds() - begin;
    wl_close(source);
    unlink(path);
    return more < 0 ? -1 : (double)bytes / seconds * 1e-6;
}

/* Seconds of a sweep over block sizes on so many threads; negative when it fails. */
static double timed_sweep(const char *const *pairs, unsigned threads)
{
    struct err err = {0};
    struct optset *set = optset_create(FOR_SWEEP, true);
    for (; set && *pairs; pairs += 2) {
        if (optset_put(set, pairs[0], pairs[1], &err)) return -1;
    }
    struct sweep *sweep = set && optset_finish(set, &err) == 0 ? sweep_create(set, &err) : NULL;
    double begin = bench_seconds();
    if (!sweep || sweep_run(sweep, threads, NULL, NULL, &err)) return -1;
    double seconds = bench_seconds() - begin;
    sweep_destroy(sweep);
    optset_destroy(set);
    return seconds;
}

static unsigned all_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (unsigned)cores : 1;
}

/* Seconds on one thread / seconds on all cores, of a sweep. */
static double sweep_scaling(unsigned long a)
{
    (void)a;
    const char *const pairs[] = {"trace", "preset:shared-chat", "max-requests", "10000", "block-size", "8,16,32,64",
                                 "pool-tokens", "400000", NULL};
    double one = timed_sweep(pairs, 1), all = timed_sweep(pairs, all_cores());
    return one < 0 || all < 0 ? -1 : one / all;
}

/* Seconds of the block sizes from this one to 512, of 100,000 chats, on all cores. */
static double sweep_chat(unsigned long from)
{
    char sizes[60] = "";
    for (unsigned long size = from; size <= 512; size *= 2) {
        size_t used = strlen(sizes);
        snprintf(sizes + used, sizeof sizes - used, "%s%lu", used ? "," : "", size);
    }
    const char *const pairs[] = {"trace", "preset:shared-chat", "pool-tokens", "1600000", "step-time", "unit",
                                 "step-ns", "30000000", "block-size", sizes, NULL};
    return timed_sweep(pairs, all_cores());
}

const struct bench_case bench_run_cases[] = {
    {"read JSONL, 1,000 hash ids a line", "MB/s", read_jsonl, 1000, false},
    {"read JSONL, 25 hash ids a line", "MB/s", read_jsonl, 25, false},
    {"Azure conversation, prefix, 4,000 blocks of 16", "ms", public_trace, 0, false},
    {"Mooncake conversation, prefix, 40,000 blocks of 16", "ms", public_trace, 1, false},
    {"Mooncake conversation, prefix, 10^6 blocks of 16", "ms", public_trace, 2, false},
    {"100,000 chats, prefix, 100,000 blocks of 16", "k requests/s", chat, 0, false},
    {"skipping / plain loop: 256 long decodes", "times", skip_ratio_decodes, 0, false},
    {"skipping / plain loop: 20,000 chats", "times", skip_ratio_chat, 0, false},
    {"recorded case 40", "ms", recorded_case, 0, false},
    {"recorded case 41", "ms", recorded_case, 1, false},
    {"recorded case 42", "ms", recorded_case, 2, false},
    {"a short request, of 10^3", "ns", per_request, 1000, false},
    {"a short request, of 10^5", "ns", per_request, 100000, false},
    {"a short request, of 10^6", "ns", per_request, 1000000, true},
    {"a short request, of 10^7", "ns", per_request, 10000000, true},
    {"sweep: one thread / all cores", "times", sweep_scaling, 0, false},
    {"sweep: 100,000 chats, block sizes 8 to 512, all cores", "s", sweep_chat, 8, true},
    {"sweep: 100,000 chats, block sizes 1 to 512, all cores", "s", sweep_chat, 1, true},
};
const size_t bench_run_count = sizeof bench_run_cases / sizeof bench_run_cases[0];
