/* The table for people: a balance sheet whose lines add up to the pool. */
#include <inttypes.h>
#include <string.h>

#include "sim/accounting.h"
#include "sim/edge_report.h"
#include "sim/refusals.h"
#include "sim/report.h"

#define GIB 1073741824.0

static double number_of(const struct result *r, const char *key, double otherwise)
{
    const struct result_entry *entry = result_find(r, key);
    double value;
    return entry && result_number(entry, &value) ? value : otherwise;
}

static uint64_t count_of(const struct result *r, const char *key)
{
    const struct result_entry *entry = result_find(r, key);
    return entry && entry->kind == RESULT_U64 ? entry->u64 : 0;
}

static const char *text_of(const struct result *r, const char *key)
{
    const struct result_entry *entry = result_find(r, key);
    return entry && entry->kind == RESULT_TEXT ? entry->text : "-";
}

/* 1,234,567 */
static const char *grouped(uint64_t value, char *buffer, size_t bytes)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
    size_t out = 0;
    for (int i = 0; i < length && out + 2 < bytes; i++) {
        if (i > 0 && (length - i) % 3 == 0) buffer[out++] = ',';
        buffer[out++] = digits[i];
    }
    buffer[out] = '\0';
    return buffer;
}

/* A figure that explains the state on whose line it stands. */
static const struct {
    enum state state;
    const char *figure;
} beside[] = {
    {STATE_LIVE, "utilization"},
    {STATE_RESERVED, "reservation_waste"},
    {STATE_INTERNAL, "internal_fragmentation"},
    {STATE_CACHED, "hit_rate_tokens"},
    {STATE_FREE, "external_fragmentation"},
};

static void state_line(const struct result *r, enum state state, uint64_t slots, FILE *out)
{
    char key[48], number[32];
    snprintf(key, sizeof key, "states.%s", state_names[state]);
    double share = number_of(r, key, 0);
    if (share == 0) return;
    fprintf(out, "  %-18s %16s slots  %6.2f %%", state_names[state],
            grouped((uint64_t)(share * (double)slots + 0.5), number, sizeof number), share * 100);
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        double figure = beside[i].state == state ? number_of(r, beside[i].figure, -1) : -1;
        if (figure >= 0) fprintf(out, "  %s %.4f", beside[i].figure, figure);
    }
    fputc('\n', out);
}

static void balance_sheet(const struct result *r, FILE *out)
{
    char blocks[32], slots[32];
    uint64_t pool_slots = count_of(r, "pool_slots");
    grouped(count_of(r, "num_blocks"), blocks, sizeof blocks);
    grouped(pool_slots, slots, sizeof slots);
    fprintf(out, "pool, time-weighted  %16s slots  100.00 %%  = %s blocks of %" PRIu64 "\n", slots, blocks,
            count_of(r, "block_size_tokens"));
    const struct result_entry *states = result_find(r, "states");
    if (states && states->kind == RESULT_NULL) {
        fprintf(out, "  (no time passed)\n");
        return;
    }
    for (int s = 0; s < STATE_COUNT; s++) state_line(r, (enum state)s, pool_slots, out);
    fprintf(out, "  kv_usage %.4f, running %.2f (max %" PRIu64 ")\n", number_of(r, "kv_usage", 0),
            number_of(r, "running.mean", 0), count_of(r, "running.max"));
}

static void list_counts(const struct result *r, const char *object, const char *const *names,
                        int count, FILE *out)
{
    const char *separator = "";
    for (int i = 0; i < count; i++) {
        char key[80];
        snprintf(key, sizeof key, "refusals.%s.%s", object, names[i]);
        uint64_t value = count_of(r, key);
        if (value == 0) continue;
        fprintf(out, "%s%s %" PRIu64, separator, names[i], value);
        separator = ", ";
    }
    fputc('\n', out);
}

static void refusal_lines(const struct result *r, FILE *out)
{
    uint64_t episodes = count_of(r, "refusals.episodes"), slots = count_of(r, "refusals.slots");
    fprintf(out, "refusals             %" PRIu64 " episodes of %" PRIu64 " requests", episodes,
            count_of(r, "refusals.requests"));
    if (slots > 0) fprintf(out, "; %" PRIu64 " waits for max-num-seqs", slots);
    fputc('\n', out);
    if (episodes == 0) return;
    fprintf(out, "  by class           ");
    list_counts(r, "by_class", class_names, CLASS_COUNT, out);
    fprintf(out, "  by cause           ");
    list_counts(r, "by_cause", cause_names, CAUSE_COUNT, out);
    fprintf(out, "  head refused though enough was free: %.2f %% of the time\n",
            100 * number_of(r, "head_refused_though_free.time", 0));
}

static void latency_line(const struct result *r, const char *object, const char *label, FILE *out)
{
    char key[40];
    snprintf(key, sizeof key, "%s.count", object);
    if (count_of(r, key) == 0) return;
    fprintf(out, "%-20s", label);
    static const char *const parts[] = {"mean", "p50", "p90", "p99"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(key, sizeof key, "%s.%s", object, parts[i]);
        fprintf(out, "  %s %.3f s", parts[i], number_of(r, key, 0) / 1e9);
    }
    fputc('\n', out);
}

static void request_lines(const struct result *r, FILE *out)
{
    static const char *const ends[] = {"finished", "rejected", "unservable", "aborted",
                                       "length_capped"};
    fprintf(out, "requests             %" PRIu64, count_of(r, "requests"));
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        uint64_t value = count_of(r, ends[i]);
        if (value > 0) fprintf(out, ", %s %" PRIu64, ends[i], value);
    }
    fputc('\n', out);
    const char *example = text_of(r, "unservable_example");
    if (strcmp(example, "-") != 0) fprintf(out, "  %s\n", example);
    fprintf(out, "steps                %" PRIu64 " in %.3f s simulated, %.3f s of them short of memory\n",
            count_of(r, "steps"), number_of(r, "simulated_ns", 0) / 1e9,
            number_of(r, "saturated_ns", 0) / 1e9);
    fprintf(out, "preemptions          %" PRIu64 ", evictions %" PRIu64 "\n",
            count_of(r, "preemptions"), count_of(r, "evictions"));
}

static bool is_true(const struct result *r, const char *key)
{
    const struct result_entry *entry = result_find(r, key);
    return entry && entry->kind == RESULT_BOOL && entry->yes;
}

static void hit_lines(const struct result *r, FILE *out)
{
    const char *note = text_of(r, "hit_rate_note");
    double rate = number_of(r, "hit_rate_tokens", -1);
    if (rate >= 0) {
        fprintf(out, "prefix cache         hits %.4f of prompt tokens, %.4f of full blocks", rate,
                number_of(r, "hit_rate_blocks", 0));
        if (strcmp(note, "-") != 0) fprintf(out, " (%s)", note);
        fprintf(out, "\n  shared tokens lost to granularity %" PRIu64 ", last token %" PRIu64
                     ", eviction %" PRIu64 "\n",
                count_of(r, "lost_sharing.to_granularity"),
                count_of(r, "lost_sharing.to_last_token"),
                count_of(r, "lost_sharing.to_eviction"));
        if (is_true(r, "evicts_orphans"))
            fprintf(out, "  blocks may be evicted before what continues them, which cannot hit until they are back\n");
    } else if (strcmp(note, "policy does not cache") != 0) {
        fprintf(out, "prefix cache         %s\n", note);
    }
}

const char *report_knowledge(const struct result *r)
{
    if (is_true(r, "clairvoyant_heuristic")) return " (clairvoyant heuristic)";
    return is_true(r, "clairvoyant") ? " (clairvoyant)" : "";
}

static void host_lines(const struct result *r, FILE *out)
{
    if (!result_find(r, "host_tier.capacity_blocks")) return;
    char blocks[32], in[32], back[32];
    fprintf(out, "host tier            %s blocks, hits %.4f of prompt tokens, device %.4f\n",
            grouped(count_of(r, "host_tier.capacity_blocks"), blocks, sizeof blocks),
            number_of(r, "host_tier.hit_rate_tokens", 0), number_of(r, "host_tier.device_hit_rate_tokens", 0));
    fprintf(out, "  copied to the device %s blocks (%.1f GiB), to the host %s (%.1f GiB); dropped %s; %.3f s added to steps\n",
            grouped(count_of(r, "host_tier.fetched_blocks"), in, sizeof in),
            number_of(r, "host_tier.to_device_bytes", 0) / GIB,
            grouped(count_of(r, "host_tier.offloaded_blocks"), back, sizeof back),
            number_of(r, "host_tier.to_host_bytes", 0) / GIB,
            grouped(count_of(r, "host_tier.evicted_blocks"), blocks, sizeof blocks),
            number_of(r, "host_tier.transfer_ns", 0) / 1e9);
}

void report_table(const struct result *r, FILE *out)
{
    const struct result_entry *note = result_find(r, "step_time_note");
    bool noted = note && note->kind == RESULT_TEXT;
    fprintf(out, "policy %s%s, rules %s, scheduler %s, step time %s%s%s%s\n", text_of(r, "policy"),
            report_knowledge(r), text_of(r, "rules"),
            text_of(r, "scheduler"), text_of(r, "step_time"), noted ? " (" : "", noted ? note->text : "",
            noted ? ")" : "");
    fprintf(out, "trace %s, checksum %s\n\n", text_of(r, "trace"), text_of(r, "trace_checksum"));
    balance_sheet(r, out);
    fputc('\n', out);
    request_lines(r, out);
    refusal_lines(r, out);
    report_device_lines(r, out);
    hit_lines(r, out);
    host_lines(r, out);
    latency_line(r, "ttft_ns", "time to first token", out);
    latency_line(r, "tpot_ns", "time per token", out);
    latency_line(r, "e2e_ns", "end to end", out);
    double rate = number_of(r, "output_tokens_per_s", -1);
    if (rate >= 0) fprintf(out, "output               %.1f tokens/s\n", rate);
}
