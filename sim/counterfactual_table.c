/* The explanation of a refusal for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/counterfactual.h"

static const struct result_entry *entry_of(const struct result *r, const char *prefix, const char *name)
{
    char key[160];
    snprintf(key, sizeof key, "explain.%s%s", prefix, name);
    return result_find(r, key);
}

static const char *text_of(const struct result *r, const char *prefix, const char *name)
{
    const struct result_entry *e = entry_of(r, prefix, name);
    return e && e->kind == RESULT_TEXT ? e->text : "";
}

static double number_of(const struct result *r, const char *prefix, const char *name)
{
    double value;
    const struct result_entry *e = entry_of(r, prefix, name);
    return e && result_number(e, &value) ? value : 0;
}

static uint64_t count_of(const struct result *r, const char *prefix, const char *name)
{
    const struct result_entry *e = entry_of(r, prefix, name);
    return e && e->kind == RESULT_U64 ? e->u64 : 0;
}

static bool is_true(const struct result *r, const char *prefix, const char *name)
{
    const struct result_entry *e = entry_of(r, prefix, name);
    return e && e->kind == RESULT_BOOL && e->yes;
}

static void refusal_lines(const struct result *r, FILE *out)
{
    static const char p[] = "refusal.";
    uint64_t begin = count_of(r, p, "start_ns"), end = count_of(r, p, "end_ns");
    fprintf(out, "refusal %" PRIu64 " explained: %s of request %" PRIu64 " at %.6f s for %.6f s, %s, mainly %s\n",
            count_of(r, p, "number"), text_of(r, p, "kind"), count_of(r, p, "request_line"), (double)begin / 1e9,
            (double)(end - begin) / 1e9, text_of(r, p, "class"), text_of(r, p, "primary"));
    fprintf(out, "  asked %" PRIu64 " units, obtainable %" PRIu64 ", free or evictable %" PRIu64 ", missing %" PRIu64
            " =", count_of(r, p, "ask_units"), count_of(r, p, "a_units"), count_of(r, p, "e_units"),
            count_of(r, p, "shortfall_units"));
    uint64_t unit = count_of(r, p, "unit_bytes");
    const char *plus = "";
    for (int c = 0; c < CAUSE_COUNT; c++) {
        uint64_t bytes = count_of(r, "refusal.cause_bytes.", cause_names[c]);
        if (bytes == 0 || unit == 0) continue;
        fprintf(out, "%s %s %.6g", plus, cause_names[c], (double)bytes / (double)unit);
        plus = " +";
    }
    fputs("\n\n", out);
}

static void local_lines(const struct result *r, FILE *out)
{
    fputs("changed at that moment      the same ask is\n", out);
    for (int c = 0; c < LOCAL_COUNT; c++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "local.%s.", local_change_names[c]);
        fprintf(out, "  %-25s %-15s %s\n", local_change_names[c], text_of(r, prefix, "verdict"),
                text_of(r, prefix, "why"));
    }
    fputc('\n', out);
}

/* The prefix `global.NAME.` of an entry that begins one, or false. */
static bool begins_global(const struct result_entry *entry, char *prefix, size_t bytes)
{
    static const char start[] = "explain.global.", end[] = ".option";
    size_t length = strlen(entry->key);
    if (strncmp(entry->key, start, sizeof start - 1) != 0 || length < sizeof end) return false;
    if (strcmp(entry->key + length - (sizeof end - 1), end) != 0) return false;
    snprintf(prefix, bytes, "%.*s.", (int)(length - (sizeof end - 1) - strlen("explain.")),
             entry->key + strlen("explain."));
    return true;
}

static void global_line(const struct result *r, const char *prefix, FILE *out)
{
    char setting[96];
    snprintf(setting, sizeof setting, "--%s %s", text_of(r, prefix, "option"), text_of(r, prefix, "value"));
    const char *error = text_of(r, prefix, "error");
    if (error[0] != '\0') {
        fprintf(out, "  %-38s does not run: %s\n", setting, error);
        return;
    }
    const char *fate = is_true(r, prefix, "request_unservable") ? "unservable"
                       : is_true(r, prefix, "still_refused")    ? "still refused"
                                                                : "not refused";
    char refusals[48];
    snprintf(refusals, sizeof refusals, "%" PRIu64 " (%+.0f)", count_of(r, prefix, "episodes"),
             number_of(r, prefix, "episodes_change"));
    fprintf(out, "  %-38s %-14s %-14s %12" PRIu64 " %12" PRIu64 "%s\n", setting, fate, refusals,
            count_of(r, prefix, "despite_free"), count_of(r, prefix, "preemptions"),
            is_true(r, prefix, "clairvoyant") ? "  (clairvoyant)" : "");
}

void counterfactual_table(const struct result *r, FILE *out)
{
    fputc('\n', out);
    if (!is_true(r, "", "found")) {
        fputs("refusal explained    there was no such refusal\n", out);
        return;
    }
    refusal_lines(r, out);
    local_lines(r, out);
    fputs("another setting, whole run               this request    refusals     despite_free  preemptions\n", out);
    for (size_t i = 0; i < r->count; i++) {
        char prefix[120];
        if (begins_global(&r->entries[i], prefix, sizeof prefix)) global_line(r, prefix, out);
    }
    const char *cheapest = text_of(r, "", "cheapest");
    fprintf(out, "\ncheapest that helps  %s\n", cheapest[0] ? cheapest : "none of these");
}
