/* The answer in plain words: what a person would say who had read all the tables. */
#include <inttypes.h>
#include <string.h>

#include "sim/accounting.h"
#include "sim/page_internal.h"
#include "sim/refusals.h"

/* More results than this are compared, not told one by one. */
#define TOLD_MAX 4

static const char *const state_words[STATE_COUNT] = {
    [STATE_LIVE] = "held tokens that running requests would still read",
    [STATE_DEAD] = "held tokens that nobody would read again",
    [STATE_RESERVED] = "was taken, still empty, and would be filled later",
    [STATE_INTERNAL] = "was taken and never filled",
    [STATE_ROUNDING] = "was added by the allocator’s rounding",
    [STATE_CACHED] = "held cached tokens that nobody was using",
    [STATE_CACHED_PINNED] = "held cached tokens that were pinned",
    [STATE_STRANDED] = "was free, but not for the request that waited for it",
    [STATE_FREE] = "was free",
    [STATE_OVERHEAD] = "was the allocator’s own",
};

const char *page_cause_words(int cause)
{
    static const char *const words[CAUSE_COUNT] = {
        [CAUSE_CONTIGUITY] = "free, in holes that are too small",
        [CAUSE_REQUEST_ROUNDING] = "the ask would fit, rounded or aligned it does not",
        [CAUSE_STRANDED_PAGE] = "free units inside pages that another owner pins",
        [CAUSE_IDLE_MAPPED] = "mapped to idle slots, or kept by the framework’s allocator",
        [CAUSE_GROUP_MISMATCH] = "free, in another group’s pool",
        [CAUSE_WATERMARK] = "kept back for running requests to grow",
        [CAUSE_OVER_RESERVATION] = "more was asked for than would ever be filled",
        [CAUSE_GRANULARITY] = "all was asked for at once, and a first part would have fitted",
        [CAUSE_PINNED] = "cached, and pinned",
        [CAUSE_POOL_BOUNDARY] = "free on the device, outside the pool",
        [CAUSE_CAPACITY] = "held tokens of running requests",
        [CAUSE_RESERVATION] = "reserved by running requests, and still empty",
        [CAUSE_INTERNAL] = "taken by running requests, and never filled",
    };
    return words[cause];
}

static void say_states(const struct result *r, FILE *out)
{
    fputs("<p class=\"lead\">Of <strong>", out);
    html_bytes(page_count(r, "pool_bytes"), out);
    fputs("</strong>, <strong>", out);
    html_percent(page_state(r, STATE_LIVE), out);
    fprintf(out, "</strong> %s, on average over time.", state_words[STATE_LIVE]);
    const char *before = " ";
    for (int s = STATE_LIVE + 1; s < STATE_COUNT; s++) {
        double share = page_state(r, s);
        if (share <= 0) continue;
        fputs(before, out);
        html_percent(share, out);
        fprintf(out, " %s", state_words[s]);
        before = "; ";
    }
    fputs(".</p>\n", out);
}

static void say_class(const struct result *r, int class, const char *words, const char **before, FILE *out)
{
    char key[64];
    snprintf(key, sizeof key, "refusals.by_class.%s", class_names[class]);
    uint64_t episodes = page_count(r, key);
    if (episodes == 0) return;
    fprintf(out, "%s<strong>", *before);
    html_count(episodes, out);
    fprintf(out, "</strong> %s", words);
    *before = ", ";
}

static void say_cause(const struct result *r, FILE *out)
{
    int commonest = 0;
    uint64_t most = 0;
    for (int c = 0; c < CAUSE_COUNT; c++) {
        char key[64];
        snprintf(key, sizeof key, "refusals.by_cause.%s", cause_names[c]);
        uint64_t episodes = page_count(r, key);
        if (episodes > most) {
            most = episodes;
            commonest = c;
        }
    }
    if (most == 0) return;
    fprintf(out, " What most often stood in the way is <em>%s</em> (%s), in ", cause_names[commonest], page_cause_words(commonest));
    html_count(most, out);
    fputs(most == 1 ? " episode." : " episodes.", out);
}

static void say_refusals(const struct result *r, FILE *out)
{
    uint64_t episodes = page_count(r, "refusals.episodes"), requests = page_count(r, "refusals.requests");
    if (episodes == 0) {
        fputs("<p>No request was refused memory.</p>\n", out);
        return;
    }
    fputs("<p><strong>", out);
    html_count(requests, out);
    fputs(requests == 1 ? " request was refused memory</strong>, in " : " requests were refused memory</strong>, in ", out);
    html_count(episodes, out);
    fputs(episodes == 1 ? " episode: " : " episodes: ", out);
    const char *before = "";
    say_class(r, CLASS_DESPITE_FREE, "although enough memory was free", &before, out);
    say_class(r, CLASS_DESPITE_UNUSED, "because bytes that held nothing stood in the way", &before, out);
    say_class(r, CLASS_CAPACITY, "because the memory was really used up", &before, out);
    fputc('.', out);
    say_cause(r, out);
    fputs("</p>\n", out);
}

static void say_requests(const struct result *r, FILE *out)
{
    static const struct { const char *key, *one, *many; } ends[] = {
        {"rejected", "was rejected at arrival", "were rejected at arrival"},
        {"unservable", "can never be served by this pool", "can never be served by this pool"},
        {"aborted", "left before the end", "left before the end"},
        {"length_capped", "had its output cut", "had their output cut"},
    };
    fputs("<p>", out);
    html_count(page_count(r, "finished"), out);
    fputs(" of ", out);
    html_count(page_count(r, "requests"), out);
    fputs(" requests finished", out);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        uint64_t value = page_count(r, ends[i].key);
        if (value == 0) continue;
        fputs("; ", out);
        html_count(value, out);
        fprintf(out, " %s", value == 1 ? ends[i].one : ends[i].many);
        const char *example = i == 1 ? page_text(r, "unservable_example") : NULL;
        if (!example) continue;
        fputs(" (", out);
        html_text(example, out);
        fputc(')', out);
    }
    uint64_t preemptions = page_count(r, "preemptions");
    if (preemptions > 0) {
        fputs(preemptions == 1 ? ". Once" : ". ", out);
        if (preemptions > 1) html_count(preemptions, out);
        fputs(preemptions == 1 ? "" : " times", out);
        fputs(" a running request had to give all its memory back to let another grow", out);
    }
    fputs(".</p>\n", out);
}

static void say_speed(const struct result *r, FILE *out)
{
    double rate = page_number(r, "output_tokens_per_s", -1), hits = page_number(r, "hit_rate_tokens", -1);
    bool timed = page_count(r, "ttft_ns.count") > 0;
    if (!timed && rate < 0 && hits < 0) return;
    fputs("<p>", out);
    if (timed) {
        fputs("Half of the requests had their first token within ", out);
        html_seconds(page_number(r, "ttft_ns.p50", 0), out);
        fputs(", 99 % within ", out);
        html_seconds(page_number(r, "ttft_ns.p99", 0), out);
        fputs(". ", out);
    }
    if (rate >= 0) fprintf(out, "The server delivered %.0f output tokens a second. ", rate);
    if (hits >= 0) {
        html_percent(hits, out);
        fputs(" of the prompt tokens were found in the cache", out);
        double host = page_number(r, "host_tier.hit_rate_tokens", -1);
        if (host >= 0) {
            fputs(", ", out);
            html_percent(host, out);
            fputs(" on the host alone", out);
        }
        const char *note = page_text(r, "hit_rate_note");
        if (note) {
            fputs(" (", out);
            html_text(note, out);
            fputc(')', out);
        }
        fputc('.', out);
    }
    fputs("</p>\n", out);
}

static void say_cautions(const struct result *r, FILE *out)
{
    if (page_number(r, "clairvoyant_heuristic", 0) > 0)
        fputs("<p class=\"note\">A clairvoyant heuristic: the eviction order knows when each block is looked for next, as no server does. What it evicts "
              "decides what runs when, so it is no bound.</p>\n", out);
    else if (page_number(r, "clairvoyant", 0) > 0)
        fputs("<p class=\"note\">This policy knows every output length beforehand, as no server does: a bound, not a competitor.</p>\n", out);
    if (page_number(r, "trace_cut", 0) > 0)
        fputs("<p class=\"note\">The trace was cut: only its first requests were simulated (<code>--max-requests</code>).</p>\n", out);
    uint64_t skipped = page_count(r, "trace_skipped");
    if (skipped > 0) fprintf(out, "<p class=\"note\">%" PRIu64 " bad lines of the trace were left out (<code>--skip-bad</code>).</p>\n", skipped);
}

static void tell(const struct result *r, FILE *out)
{
    if (page_has_states(r)) say_states(r, out);
    else fputs("<p class=\"lead\">No time passed, so there are no shares of the pool.</p>\n", out);
    say_refusals(r, out);
    say_requests(r, out);
    say_speed(r, out);
    say_cautions(r, out);
}

/* --- several results --------------------------------------------------------------------------- */

enum shown_as { AS_PERCENT, AS_COUNT, AS_SECONDS, AS_RATE };

static void show(double value, enum shown_as as, FILE *out)
{
    switch (as) {
    case AS_PERCENT: html_percent(value, out); break;
    case AS_COUNT: html_count(page_whole(value), out); break;
    case AS_SECONDS: html_seconds(value, out); break;
    case AS_RATE: fprintf(out, "%.0f", value); break;
    }
}

/* The results that a comparison is about have the figure, and no knowledge of the future. */
static bool competes(const struct result *r, const char *key)
{
    return page_number(r, key, -1) >= 0 && page_number(r, "clairvoyant", 0) <= 0;
}

static void say_end(const struct page *page, const char *key, size_t row, double value, enum shown_as as, FILE *out)
{
    size_t equals = 0;
    for (size_t i = 0; i < page->rows.count; i++) {
        const struct result *r = page->rows.rows[i].result;
        if (i != row && competes(r, key)) equals += page_number(r, key, -1) == value;
    }
    fputs("<strong>", out);
    html_text(page->labels[row], out);
    fputs("</strong>", out);
    if (equals > 0) fprintf(out, " and %zu other%s", equals, equals == 1 ? "" : "s");
    fputs(" (", out);
    show(value, as, out);
    fputc(')', out);
}

/* Largest and smallest of a figure over the results that have it; policies that know the future are bounds. */
static void compare(const struct page *page, const char *key, const char *most, const char *least, enum shown_as as, FILE *out)
{
    size_t high = 0, low = 0;
    double high_value = -1, low_value = -1;
    for (size_t i = 0; i < page->rows.count; i++) {
        const struct result *r = page->rows.rows[i].result;
        double value = page_number(r, key, -1);
        if (!competes(r, key)) continue;
        if (high_value < 0 || value > high_value) high = i, high_value = value;
        if (low_value < 0 || value < low_value) low = i, low_value = value;
    }
    if (high_value < 0 || high_value <= low_value) return;
    fprintf(out, "<li>%s: ", most);
    say_end(page, key, high, high_value, as, out);
    fprintf(out, "; %s: ", least);
    say_end(page, key, low, low_value, as, out);
    fputs(".</li>\n", out);
}

static void compare_all(const struct page *page, FILE *out)
{
    size_t bounds = 0;
    for (size_t i = 0; i < page->rows.count; i++) bounds += page_number(page->rows.rows[i].result, "clairvoyant", 0) > 0;
    fputs("<p class=\"lead\">", out);
    html_count(page->rows.count, out);
    fputs(" results beside each other", out);
    if (bounds > 0) {
        fprintf(out, "; %zu of them %s a policy that knows the future, and %s left out of what follows", bounds,
                bounds == 1 ? "is of" : "are of", bounds == 1 ? "is" : "are");
    }
    fputs(".</p>\n<ul>\n", out);
    compare(page, "utilization", "Most of the pool held tokens under", "least under", AS_PERCENT, out);
    compare(page, "refusals.by_class.despite_free", "Most refusals although enough was free", "fewest", AS_COUNT, out);
    compare(page, "refusals.by_class.despite_unused", "Most refusals because of bytes that held nothing", "fewest", AS_COUNT, out);
    compare(page, "preemptions", "Most preemptions", "fewest", AS_COUNT, out);
    compare(page, "hit_rate_tokens", "Most prompt tokens found in the cache", "fewest", AS_PERCENT, out);
    compare(page, "ttft_ns.p99", "Longest wait for a first token, 99 % of requests within", "shortest", AS_SECONDS, out);
    compare(page, "output_tokens_per_s", "Most output tokens a second", "fewest", AS_RATE, out);
    fputs("</ul>\n", out);
}

void page_words(const struct page *page, FILE *out)
{
    fputs("<section id=\"answer\" aria-labelledby=\"answer-title\"><h2 id=\"answer-title\">The answer</h2>\n", out);
    if (page->rows.count > 1) compare_all(page, out);
    for (size_t i = 0; i < page->rows.count && page->rows.count <= TOLD_MAX; i++) {
        if (page->rows.count > 1) {
            fputs("<h3>", out);
            html_text(page->labels[i], out);
            fputs("</h3>\n", out);
        }
        tell(page->rows.rows[i].result, out);
    }
    fputs("</section>\n", out);
}
