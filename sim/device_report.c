#include "sim/device_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Tried for every failure, the cheapest change first. */
static const char *const REMEDIES[] = {
    "expandable_segments:True",
    "max_split_size_mb:128",
    "max_split_size_mb:512",
    "garbage_collection_threshold:0.8",
    "roundup_power2_divisions:4",
    "max_split_size_mb:128,garbage_collection_threshold:0.8",
    "expandable_segments:True,garbage_collection_threshold:0.8",
};
#define REMEDY_COUNT (sizeof REMEDIES / sizeof REMEDIES[0])

/* One line of the comparison. */
struct trial {
    const char *setting;
    struct device_summary summary;
};

static const char *shown(const char *setting)
{
    return setting[0] ? setting : "default";
}

static char *mib(uint64_t bytes, char text[32])
{
    /* Whole MiB and hundredths, without rounding in floating point. */
    uint64_t hundredths = (uint64_t)(((unsigned __int128)bytes * 100 + DEV_MIB / 2) / DEV_MIB);
    snprintf(text, 32, "%" PRIu64 ".%02" PRIu64, hundredths / 100, hundredths % 100);
    return text;
}

static void print_state(FILE *out, const char *name, uint64_t peak, uint64_t last)
{
    char a[32], b[32];
    fprintf(out, "  %-34s %12s %12s\n", name, mib(peak, a), mib(last, b));
}

static void print_states(FILE *out, const struct device_summary *s)
{
    const struct device_states *p = &s->peak, *l = &s->last;
    fprintf(out, "%-36s %12s %12s\n", "MiB", "at the peak", "at the end");
    print_state(out, "requested", p->requested_bytes, l->requested_bytes);
    print_state(out, "rounding", p->rounding_bytes, l->rounding_bytes);
    print_state(out, "free in private pools", p->private_bytes, l->private_bytes);
    print_state(out, "free, pinned by live blocks", p->pinned_bytes, l->pinned_bytes);
    print_state(out, "free, a release gives it back", p->cached_bytes, l->cached_bytes);
    print_state(out, "reserved", device_states_reserved(p), device_states_reserved(l));
}

/* Free bytes that no release gives back, out of all free bytes. */
static uint64_t per_mille(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (uint64_t)(((unsigned __int128)part * 1000 + whole / 2) / whole);
}

static uint64_t fragmentation_per_mille(const struct device_states *s)
{
    return per_mille(s->pinned_bytes, s->private_bytes + s->pinned_bytes + s->cached_bytes);
}

static void print_totals(FILE *out, const struct device_ops *ops, const struct device_summary *s)
{
    const struct dev_stats *t = &s->stats;
    char a[32], b[32];
    uint64_t peak = fragmentation_per_mille(&s->peak), last = fragmentation_per_mille(&s->last);
    fprintf(out, "  %-34s     %4" PRIu64 ".%" PRIu64 " %%     %4" PRIu64 ".%" PRIu64 " %%\n", "pinned share of what is free", peak / 10,
            peak % 10, last / 10, last % 10);
    fprintf(out, "\nsegments            %" PRIu64 " at most, %" PRIu64 " at the end\n", t->segments.peak, t->segments.now);
    fprintf(out, "calls to the driver %" PRIu64 " to get memory, %" PRIu64 " to give it back\n", t->device_allocs, t->device_frees);
    fprintf(out, "peak allocated      %s MiB; peak inactive split %s MiB\n", mib(t->allocated_bytes.peak, a),
            mib(t->inactive_split_bytes.peak, b));
    fprintf(out, "retries             %" PRIu64 " (cache emptied, then asked again)\n", t->retries);
    fprintf(out, "out of memory       %" PRIu64 " of %zu operations\n", t->ooms, ops->count);
}

static void print_holes(FILE *out, const struct device_oom *oom)
{
    char a[32], b[32], c[32];
    for (unsigned k = DEVICE_HOLE_CLASSES; k-- > 0;)
        if (oom->holes[k].count > 0)
            fprintf(out, "      %6" PRIu64 " hole%s of %s to %s MiB: %s MiB\n", oom->holes[k].count, oom->holes[k].count == 1 ? " " : "s",
                    mib(1ull << k, a), mib(2ull << k, b), mib(oom->holes[k].bytes, c));
}

static void print_pins(FILE *out, const struct device_oom *oom)
{
    char a[32], b[32], c[32];
    for (size_t i = 0; i < oom->pin_count; i++) {
        const struct device_pin *pin = &oom->pins[i];
        fprintf(out, "      segment %" PRId64 " of %s MiB: %s MiB free, pinned by id %" PRIu64 "%s%s (%s MiB)", pin->address,
                mib(pin->segment_bytes, a), mib(pin->free_bytes, b), pin->holder_id, pin->holder_tag[0] ? " " : "", pin->holder_tag,
                mib(pin->holder_bytes, c));
        if (pin->live_blocks > 1)
            fprintf(out, " and %" PRIu64 " more", pin->live_blocks - 1);
        fputc('\n', out);
    }
    if (oom->pinned_segments > oom->pin_count)
        fprintf(out, "      and %zu more segments\n", oom->pinned_segments - oom->pin_count);
}

static const char *verdict_text(enum device_verdict verdict)
{
    switch (verdict) {
    case DEVICE_SHORTAGE:
        return "shortage: all that is free together would not do";
    case DEVICE_FRAGMENTED:
        return "fragmentation: enough is free in this pool, but in pieces";
    case DEVICE_OTHER_POOL:
        return "wrong pool: enough is free, but other pools own it";
    }
    return "";
}

static void print_sum_line(FILE *out, const char *sign, uint64_t bytes, const char *what)
{
    char a[32];
    fprintf(out, "    %s %12s MiB %s\n", sign, mib(bytes, a), what);
}

/* limit = room + what is held, in one column that adds up. */
static void print_proof(FILE *out, const struct device_ops *ops, const struct device_oom *oom)
{
    const struct device_states *s = &oom->states;
    char a[32], b[32];
    fprintf(out, "\n  line %" PRIu64 ": id %" PRIu64 " asked for %s MiB; the driver was asked for %s MiB\n", ops->items[oom->op].line,
            ops->ids[ops->items[oom->op].slot], mib(oom->requested_bytes, a), mib(oom->numbers.tried_bytes, b));
    fprintf(out, "    %s\n", verdict_text(device_oom_verdict(oom)));
    print_sum_line(out, " ", oom->limit_bytes, oom->numbers.allowed_bytes == DEV_NONE ? "the device could give" : "allowed");
    print_sum_line(out, "-", s->requested_bytes, "requested by live blocks");
    print_sum_line(out, "-", s->rounding_bytes, "rounding");
    print_sum_line(out, "-", s->private_bytes, "free in private pools");
    print_sum_line(out, "-", s->pinned_bytes, "free, pinned by live blocks");
    print_sum_line(out, "-", s->cached_bytes, "free, but given back too late");
    print_sum_line(out, "=", oom->room_bytes, "left");
    if (oom->numbers.tried_bytes > oom->room_bytes)
        print_sum_line(out, " ", oom->numbers.tried_bytes - oom->room_bytes, "short");
    fprintf(out, "    free in the %s pool: %s MiB, the largest hole %s MiB\n", oom->numbers.small ? "small" : "large",
            mib(oom->own_pool_bytes, a), mib(oom->largest_hole_bytes, b));
    print_holes(out, oom);
    print_pins(out, oom);
}

/* ---- remedies ---- */

static bool same_setting(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static void print_remedies(FILE *out, const struct trial *trials, size_t trial_count, size_t op)
{
    const char *separator = "    would not have failed with ";
    for (size_t i = 1; i < trial_count; i++) {
        if (device_summary_failed(&trials[i].summary, op))
            continue;
        fprintf(out, "%s%s", separator, shown(trials[i].setting));
        separator = " | ";
    }
    fprintf(out, "%s\n", separator[0] == ' ' && separator[1] == '|' ? "" : "    would have failed with every setting that was tried");
}

static void print_table(FILE *out, const struct trial *trials, size_t trial_count)
{
    fprintf(out, "%13s %13s %13s %13s %8s %6s %8s  %s\n", "peak reserved", "peak alloc.", "end reserved", "end pinned", "retries", "OOMs",
            "driver", "setting");
    fprintf(out, "%13s %13s %13s %13s %8s %6s %8s\n", "MiB", "MiB", "MiB", "MiB", "", "", "calls");
    for (size_t i = 0; i < trial_count; i++) {
        const struct device_summary *s = &trials[i].summary;
        char a[32], b[32], c[32], d[32];
        fprintf(out, "%13s %13s %13s %13s %8" PRIu64 " %6" PRIu64 " %8" PRIu64 "  %s\n", mib(s->stats.reserved_bytes.peak, a),
                mib(s->stats.allocated_bytes.peak, b), mib(s->stats.reserved_bytes.now, c), mib(s->last.pinned_bytes, d), s->stats.retries,
                s->stats.ooms, s->stats.device_allocs + s->stats.device_frees, shown(trials[i].setting));
    }
}

static void print_one(FILE *out, const struct device_report *report, const struct trial *trials, size_t trial_count)
{
    const struct device_summary *s = &trials[0].summary;
    fprintf(out, "%s%s%s, %s\n\n", report->c->name, report->c->name[0] ? ": " : "", report->ops->file, shown(trials[0].setting));
    print_states(out, s);
    print_totals(out, report->ops, s);
    for (size_t i = 0; i < s->ooms_kept; i++) {
        print_proof(out, report->ops, &s->ooms[i]);
        print_remedies(out, trials, trial_count, s->ooms[i].op);
    }
    if (s->stats.ooms > s->ooms_kept)
        fprintf(out, "\n  and %" PRIu64 " more\n", s->stats.ooms - s->ooms_kept);
    if (trial_count > 1) {
        fprintf(out, "\nthe whole file under each setting\n");
        print_table(out, trials, trial_count);
    }
}

/* Failures of the first setting, and which of the others had them too. */
static void print_avoided(FILE *out, const struct device_report *report, const struct trial *trials, size_t trial_count)
{
    const struct device_summary *first = &trials[0].summary;
    for (size_t i = 0; i < first->stats.ooms && i < report->ooms_max; i++) {
        size_t op = first->oom_ops[i];
        fprintf(out, "%sline %" PRIu64 " fails with %s\n", i == 0 ? "\n" : "", report->ops->items[op].line, shown(trials[0].setting));
        print_remedies(out, trials, trial_count, op);
    }
}

/* ---- JSON ---- */

static json_t *states_json(const struct device_states *s)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "requested_bytes", (json_int_t)s->requested_bytes, "rounding_bytes",
                     (json_int_t)s->rounding_bytes, "private_bytes", (json_int_t)s->private_bytes, "pinned_bytes",
                     (json_int_t)s->pinned_bytes, "cached_bytes", (json_int_t)s->cached_bytes, "reserved_bytes",
                     (json_int_t)device_states_reserved(s));
}

static json_t *remedies_json(const struct trial *trials, size_t trial_count, size_t op)
{
    json_t *list = json_array();
    for (size_t i = 1; i < trial_count; i++)
        if (!device_summary_failed(&trials[i].summary, op))
            json_array_append_new(list, json_string(shown(trials[i].setting)));
    return list;
}

static json_t *oom_json(const struct device_report *report, const struct trial *trials, size_t trial_count, const struct device_oom *oom)
{
    static const char *const verdicts[] = {"shortage", "fragmentation", "other_pool"};
    const struct device_op *op = &report->ops->items[oom->op];
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:o,s:o}", "line", (json_int_t)op->line, "id",
                     (json_int_t)report->ops->ids[op->slot], "requested_bytes", (json_int_t)oom->requested_bytes, "tried_bytes",
                     (json_int_t)oom->numbers.tried_bytes, "limit_bytes", (json_int_t)oom->limit_bytes, "room_bytes",
                     (json_int_t)oom->room_bytes, "own_pool_free_bytes", (json_int_t)oom->own_pool_bytes, "largest_hole_bytes",
                     (json_int_t)oom->largest_hole_bytes, "pinned_segments", (json_int_t)oom->pinned_segments, "verdict",
                     verdicts[device_oom_verdict(oom)], "states", states_json(&oom->states), "avoided_by",
                     remedies_json(trials, trial_count, oom->op));
}

static json_t *trial_json(const struct device_report *report, const struct trial *trials, size_t trial_count, size_t i)
{
    const struct device_summary *s = &trials[i].summary;
    json_t *ooms = json_array();
    for (size_t k = 0; i == 0 && k < s->ooms_kept; k++)
        json_array_append_new(ooms, oom_json(report, trials, trial_count, &s->ooms[k]));
    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o}", "setting", trials[i].setting, "allocated_bytes_peak",
                     (json_int_t)s->stats.allocated_bytes.peak, "reserved_bytes_peak", (json_int_t)s->stats.reserved_bytes.peak,
                     "segments_peak", (json_int_t)s->stats.segments.peak, "retries", (json_int_t)s->stats.retries, "ooms",
                     (json_int_t)s->stats.ooms, "device_allocs", (json_int_t)s->stats.device_allocs, "device_frees",
                     (json_int_t)s->stats.device_frees, "at_peak", states_json(&s->peak), "at_end", states_json(&s->last), "oom_list",
                     ooms);
}

/* compared: how many trials are results of their own; the rest only says what would have helped. */
static int write_json(const struct device_report *report, const struct trial *trials, size_t trial_count, size_t compared, FILE *out,
                      struct err *err)
{
    json_t *list = json_array();
    for (size_t i = 0; i < compared; i++)
        json_array_append_new(list, trial_json(report, trials, trial_count, i));
    json_t *root = json_pack("{s:s,s:s,s:I,s:o}", "case", report->c->name, "file", report->ops->file, "operations",
                             (json_int_t)report->ops->count, "settings", list);
    int status = root && json_dumpf(root, out, JSON_COMPACT) == 0 && fputc('\n', out) != EOF ? 0 : -1;
    json_decref(root);
    return status == 0 ? 0 : err_set(err, ERR_FAILED, "cannot write the summary");
}

/* ---- all of it ---- */

static int run_trial(const struct device_report *report, struct trial *trial, const char *setting, size_t ooms_max, struct err *err)
{
    struct dev_config config;
    trial->setting = setting;
    if (device_case_config(report->c, setting, &config, err) != 0)
        return -1;
    return device_summary_run(report->ops, &config, ooms_max, &trial->summary, err);
}

static int write_trials(const struct device_report *report, const struct trial *trials, size_t trial_count, FILE *out, struct err *err)
{
    bool table = report->setting_count > 1;
    if (report->json)
        return write_json(report, trials, trial_count, table ? trial_count : 1, out, err);
    if (!table) {
        print_one(out, report, trials, trial_count);
        return 0;
    }
    print_table(out, trials, trial_count);
    print_avoided(out, report, trials, trial_count);
    return 0;
}

int device_report_write(const struct device_report *report, FILE *out, struct err *err)
{
    struct trial *trials = calloc(report->setting_count + REMEDY_COUNT, sizeof *trials);
    size_t n = 0;
    int status = 0;
    if (!trials)
        return err_set(err, ERR_FAILED, "out of memory");
    for (size_t i = 0; status == 0 && i < report->setting_count; i++)
        status = run_trial(report, &trials[n++], report->settings[i], i == 0 ? report->ooms_max : 0, err);
    /* A single setting that failed is held against the remedies. */
    if (status == 0 && report->setting_count == 1 && trials[0].summary.stats.ooms > 0)
        for (size_t i = 0; status == 0 && i < REMEDY_COUNT; i++)
            if (!same_setting(REMEDIES[i], report->settings[0]))
                status = run_trial(report, &trials[n++], REMEDIES[i], 0, err);
    if (status == 0)
        status = write_trials(report, trials, n, out, err);
    for (size_t i = 0; i < n; i++)
        device_summary_release(&trials[i].summary);
    free(trials);
    return status;
}
