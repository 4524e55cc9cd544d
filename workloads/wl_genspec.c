#include "workloads/wl_genspec.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/wl_presets.h"
#include "workloads/wl_request.h"

/* The regions of token numbers are 2^32 long, and there are 2^31 of them (wl_generate.c). */
static const double regions_max = 1 << 30;

static int parse_count(const char *name, const char *text, double low, double high, uint64_t *value,
                       struct err *err)
{
    double number = 0;
    if (wl_parse_double(name, text, low, high, &number, err) != 0)
        return -1;
    *value = (uint64_t)number;
    if ((double)*value != number)
        return err_set(err, ERR_USAGE, "%s: found '%s', expected a whole number", name, text);
    return 0;
}

/* "word:NUMBER:NUMBER": the numbers behind a known word. 1: another word. */
static int parse_words(const char *name, const char *text, const char *word, double low,
                       double **values, int count, struct err *err)
{
    size_t length = strlen(word);
    if (strncmp(text, word, length) != 0 || text[length] != ':')
        return 1;
    char copy[128];
    if (strlen(text + length + 1) >= sizeof copy)
        return err_set(err, ERR_USAGE, "%s: found '%s', expected shorter numbers", name, text);
    strcpy(copy, text + length + 1);
    char *at = copy;
    for (int i = 0; i < count; i++) {
        char *colon = strchr(at, ':');
        if ((colon == NULL) != (i == count - 1))
            return err_set(err, ERR_USAGE, "%s: found '%s', expected %d numbers behind %s:", name,
                           text, count, word);
        if (colon != NULL)
            *colon = '\0';
        if (wl_parse_double(name, at, low, 1e9, values[i], err) != 0)
            return -1;
        at = colon != NULL ? colon + 1 : at;
    }
    return 0;
}

static int parse_arrivals(struct wl_genspec *spec, const char *name, const char *text,
                          struct err *err)
{
    static const struct {
        const char *word;
        enum wl_arrivals arrivals;
        int count;
    } kinds[] = {
        { "poisson", WL_ARRIVALS_POISSON, 1 },
        { "constant", WL_ARRIVALS_CONSTANT, 1 },
        { "gamma", WL_ARRIVALS_GAMMA, 2 },
        { "onoff", WL_ARRIVALS_ONOFF, 3 },
    };
    if (strcmp(text, "none") == 0) {
        spec->arrivals = WL_ARRIVALS_NONE;
        return 0;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        double *values[3] = { &spec->rate_per_s, &spec->cv, NULL };
        if (kinds[i].arrivals == WL_ARRIVALS_ONOFF) {
            values[1] = &spec->on_s;
            values[2] = &spec->off_s;
        }
        /* A rate below 10^-9 would leave the range of times after one request. */
        int rc = parse_words(name, text, kinds[i].word, 1e-9, values, kinds[i].count, err);
        if (rc > 0)
            continue;
        spec->arrivals = kinds[i].arrivals;
        return rc;
    }
    return err_set(err, ERR_USAGE, "%s: found '%s', expected poisson:RATE, gamma:RATE:CV, "
                   "onoff:RATE:ON_S:OFF_S, constant:RATE (per second) or none", name, text);
}

/* "V1/V2/...": a number for each turn. */
static int parse_by_turn(const char *name, const char *text, double low, double high, double values[WL_TURNS_MAX],
                         size_t *count, struct err *err)
{
    char copy[256];
    if (strlen(text) >= sizeof copy)
        return err_set(err, ERR_USAGE, "%s: found '%s', expected a shorter list", name, text);
    strcpy(copy, text);
    *count = 0;
    for (char *at = copy; at != NULL;) {
        char *slash = strchr(at, '/');
        if (slash != NULL)
            *slash++ = '\0';
        if (*count == WL_TURNS_MAX)
            return err_set(err, ERR_USAGE, "%s: found more than %d numbers, expected fewer", name,
                           WL_TURNS_MAX);
        if (wl_parse_double(name, at, low, high, &values[(*count)++], err) != 0)
            return -1;
        at = slash;
    }
    return 0;
}

static int parse_content(struct wl_genspec *spec, const char *name, const char *text,
                         struct err *err)
{
    uint64_t tokens = 0;
    if (strcmp(text, "none") == 0) {
        spec->content = WL_CONTENT_NONE;
    } else if (strcmp(text, "tokens") == 0) {
        spec->content = WL_CONTENT_TOKENS;
    } else if (strncmp(text, "ids:", 4) == 0) {
        spec->content = WL_CONTENT_IDS;
        if (parse_count(name, text + 4, 1, 1 << 20, &tokens, err) != 0)
            return -1;
        spec->id_tokens = (uint32_t)tokens;
    } else {
        return err_set(err, ERR_USAGE, "%s: found '%s', expected none, tokens or ids:TOKENS", name,
                       text);
    }
    return 0;
}

static int parse_choice(const char *name, const char *text, const char *no, const char *yes,
                        bool *value, struct err *err)
{
    if (strcmp(text, no) != 0 && strcmp(text, yes) != 0)
        return err_set(err, ERR_USAGE, "%s: found '%s', expected %s or %s", name, text, no, yes);
    *value = strcmp(text, yes) == 0;
    return 0;
}

enum key {
    PRESET, REQUESTS, ARRIVALS, TICK, PROMPT, OUTPUT, SAMPLES, MAX_TOKENS, ABORT_RATIO, ABORT_DELAY,
    PREFIX_GROUPS, PREFIX, PREFIX_ZIPF, PREFIX_MODE, SESSIONS, SESSION_ZIPF, CONTINUE, THINK, THINK_SCALE,
    TURN_PROMPT, HISTORY, BRANCH_RATIO, BRANCH_PROMPT, CONTEXT_MAX, OVERLONG, CONTENT, KEYS
};

static const struct wl_genspec_key keys[KEYS] = {
    [PRESET] = { "preset", NULL, "NAME", "start from this preset; what else is given wins over it" },
    [REQUESTS] = { "requests", "1000", "REQUESTS", "requests to generate" },
    [ARRIVALS] = { "arrivals", "poisson:1", "PROCESS",
                   "poisson:RATE, gamma:RATE:CV, onoff:RATE:ON_S:OFF_S, constant:RATE or none" },
    [TICK] = { "tick", "0", "SECONDS", "round arrivals down to a multiple of this" },
    [PROMPT] = { "prompt-tokens", "lognormal:6.6:1@1..32768", "LENGTHS",
                 "prompt tokens: a number, uniform:, lognormal:, gamma:, ... (docs/traces.md)" },
    [OUTPUT] = { "output-tokens", "lognormal:5:0.9@1..4096", "LENGTHS", "output tokens" },
    [SAMPLES] = { "n", "1", "LENGTHS", "samples of a request" },
    [MAX_TOKENS] = { "max-tokens", NULL, "LENGTHS", "declared output limit" },
    [ABORT_RATIO] = { "abort-ratio", "0", "RATIO", "share of requests whose client leaves" },
    [ABORT_DELAY] = { "abort-delay", "exponential:10", "SECONDS",
                      "distribution of the time after which it leaves" },
    [PREFIX_GROUPS] = { "prefix-groups", NULL, "GROUPS",
                        "number of different system prompts; 1 if only their length is given" },
    [PREFIX] = { "prefix-tokens", "0", "TOKENS", "tokens of a shared system prompt" },
    [PREFIX_ZIPF] = { "prefix-zipf", "0", "EXPONENT", "popularity of system prompts, 0: uniform" },
    [PREFIX_MODE] = { "prefix-mode", "add", "MODE", "add: before the prompt; within: part of it" },
    [SESSIONS] = { "sessions", "0", "SESSIONS",
                   "conversations; each request continues one of them at random" },
    [SESSION_ZIPF] = { "session-zipf", "0", "EXPONENT", "popularity of conversations, 0: uniform" },
    [CONTINUE] = { "continue", NULL, "P1/P2/...",
                   "chances that turn 1, 2, ... of an arriving conversation is not the last" },
    [THINK] = { "think", "lognormal:4:1", "SECONDS", "distribution of the time between turns" },
    [THINK_SCALE] = { "think-scale", NULL, "S1/S2/...",
                      "after turn 1, 2, ... that time is so many times as long (default: 1)" },
    [TURN_PROMPT] = { "turn-tokens", NULL, "LENGTHS",
                      "new tokens of later turns (default: as the first)" },
    [HISTORY] = { "history", "all", "WHAT", "later turns repeat: all, or the prompt only" },
    [BRANCH_RATIO] = { "branch-ratio", "0", "RATIO",
                       "share of later turns that keep only a part of the history's ids" },
    [BRANCH_PROMPT] = { "branch-tokens", NULL, "LENGTHS", "their new tokens" },
    [CONTEXT_MAX] = { "context-tokens-max", "0", "TOKENS",
                      "most tokens of prompt and output; a conversation starts afresh there" },
    [OVERLONG] = { "overlong", "cut", "HOW",
                   "first turns beyond that: cut, or redraw both lengths (means fall)" },
    [CONTENT] = { "content", NULL, "WHAT", "none, tokens or ids:TOKENS" },
};

size_t wl_genspec_key_count(void)
{
    return KEYS;
}

const struct wl_genspec_key *wl_genspec_key_at(size_t i)
{
    return &keys[i];
}

static int set_lengths(struct wl_genspec *spec, enum key key, const char *text, struct err *err)
{
    const char *name = keys[key].name;
    switch (key) {
    case PROMPT:
        return wl_dist_parse(&spec->prompt, name, text, err);
    case OUTPUT:
        return wl_dist_parse(&spec->output, name, text, err);
    case SAMPLES:
        return wl_dist_parse(&spec->samples, name, text, err);
    case MAX_TOKENS:
        spec->has_max_tokens = true;
        return wl_dist_parse(&spec->max_tokens, name, text, err);
    case ABORT_DELAY:
        return wl_dist_parse(&spec->abort_delay_s, name, text, err);
    case THINK:
        return wl_dist_parse(&spec->think_s, name, text, err);
    case TURN_PROMPT:
        spec->has_turn_prompt = true;
        return wl_dist_parse(&spec->turn_prompt, name, text, err);
    default:
        spec->has_branch_prompt = true;
        return wl_dist_parse(&spec->branch_prompt, name, text, err);
    }
}

static int set_key(struct wl_genspec *spec, enum key key, const char *text, struct err *err)
{
    const char *name = keys[key].name;
    switch (key) {
    case REQUESTS:
        return parse_count(name, text, 1, 1e12, &spec->requests, err);
    case ARRIVALS:
        return parse_arrivals(spec, name, text, err);
    case TICK:
        return wl_parse_double(name, text, 0, 1e6, &spec->tick_s, err);
    case ABORT_RATIO:
        return wl_parse_double(name, text, 0, 1, &spec->abort_ratio, err);
    case PREFIX_GROUPS:
        return parse_count(name, text, 1, 1 << 20, &spec->prefix_groups, err);
    case PREFIX:
        return parse_count(name, text, 0, 1 << 30, &spec->prefix_tokens, err);
    case PREFIX_ZIPF:
        return wl_parse_double(name, text, 0, 10, &spec->prefix_zipf, err);
    case PREFIX_MODE:
        return parse_choice(name, text, "add", "within", &spec->prefix_within, err);
    case SESSIONS:
        return parse_count(name, text, 0, 1 << 24, &spec->sessions, err);
    case SESSION_ZIPF:
        return wl_parse_double(name, text, 0, 10, &spec->session_zipf, err);
    case CONTINUE:
        /* At 1 a conversation would never end. */
        return parse_by_turn(name, text, 0, 0.9999, spec->continue_ratio, &spec->continue_count, err);
    case THINK_SCALE:
        return parse_by_turn(name, text, 1e-6, 1e6, spec->think_scale, &spec->think_scale_count, err);
    case HISTORY:
        return parse_choice(name, text, "all", "prompt", &spec->history_is_prompt, err);
    case BRANCH_RATIO:
        return wl_parse_double(name, text, 0, 1, &spec->branch_ratio, err);
    case CONTEXT_MAX:
        return parse_count(name, text, 0, (double)WL_TOKENS_MAX, &spec->context_tokens_max, err);
    case OVERLONG:
        return parse_choice(name, text, "cut", "redraw", &spec->redraw_overlong, err);
    case CONTENT:
        return parse_content(spec, name, text, err);
    default:
        return set_lengths(spec, key, text, err);
    }
}

static int find_key(const char *name)
{
    /* Short forms for typing. */
    if (strcmp(name, "prompt") == 0)
        return PROMPT;
    if (strcmp(name, "output") == 0)
        return OUTPUT;
    for (int key = 0; key < KEYS; key++)
        if (strcmp(keys[key].name, name) == 0)
            return key;
    return -1;
}

static int set_pair(struct wl_genspec *spec, char *pair, bool seen[KEYS], bool fill_in,
                    const char **preset, struct err *err)
{
    char *value = strchr(pair, '=');
    if (value == NULL)
        return err_set(err, ERR_USAGE, "gen: found '%s', expected key=value", pair);
    *value++ = '\0';
    int key = find_key(pair);
    if (key < 0)
        return err_set(err, ERR_USAGE, "gen: found key '%s', expected one of requests, arrivals, "
                       "prompt-tokens, output-tokens and others (see trace gen --help)", pair);
    if (seen[key] && fill_in)
        return 0;
    if (seen[key])
        return err_set(err, ERR_USAGE, "gen: found key '%s' again, expected it once", pair);
    seen[key] = true;
    if (key == PRESET) {
        *preset = value;
        return 0;
    }
    return set_key(spec, (enum key)key, value, err);
}

/* Cuts the text up. fill_in: keys that were seen before keep their values. */
static int set_pairs(struct wl_genspec *spec, char *text, bool seen[KEYS], bool fill_in,
                     const char **preset, struct err *err)
{
    char *saved = NULL;
    for (char *pair = strtok_r(text, ",", &saved); pair != NULL; pair = strtok_r(NULL, ",", &saved))
        if (set_pair(spec, pair, seen, fill_in, preset, err) != 0)
            return -1;
    return 0;
}

static int set_preset(struct wl_genspec *spec, const char *name, bool seen[KEYS], struct err *err)
{
    const struct wl_preset *preset = wl_preset_find(name, err);
    if (preset == NULL)
        return -1;
    char *copy = strdup(preset->spec);
    if (copy == NULL)
        return err_set(err, ERR_FAILED, "gen: out of memory");
    const char *none = NULL;
    int rc = set_pairs(spec, copy, seen, true, &none, err);
    free(copy);
    return rc;
}

/* What keys mean together. */
static int settle(struct wl_genspec *spec, struct err *err)
{
    if (spec->prefix_tokens > 0 && spec->prefix_groups == 0)
        spec->prefix_groups = 1;
    if (spec->prefix_tokens == 0)
        spec->prefix_groups = 0;
    bool shares = spec->prefix_groups > 0 || spec->sessions > 0 || spec->continue_count > 0;
    if (spec->content == WL_CONTENT_DEFAULT)
        spec->content = shares ? WL_CONTENT_TOKENS : WL_CONTENT_NONE;
    if (spec->arrivals == WL_ARRIVALS_ONOFF && spec->rate_per_s * spec->on_s < 1e-3)
        return err_set(err, ERR_USAGE, "arrivals: found %g requests in an on-period on average, "
                       "expected 0.001 or more", spec->rate_per_s * spec->on_s);
    if (spec->sessions > 0 && spec->continue_count > 0)
        return err_set(err, ERR_USAGE, "sessions: found beside continue, expected one of the two");
    if (spec->branch_ratio > 0 && spec->content == WL_CONTENT_TOKENS)
        return err_set(err, ERR_USAGE, "branch-ratio: found with token-exact content, expected "
                       "content=ids:TOKENS or none");
    if (spec->content == WL_CONTENT_TOKENS && (double)spec->requests > regions_max)
        return err_set(err, ERR_USAGE, "requests: found more than 2^30 with content, expected fewer");
    return 0;
}

int wl_genspec_parse(struct wl_genspec *spec, const char *text, struct err *err)
{
    *spec = (struct wl_genspec){ 0 };
    char *copy = strdup(text);
    if (copy == NULL)
        return err_set(err, ERR_FAILED, "gen: out of memory");
    bool seen[KEYS] = { false };
    const char *preset = NULL;
    int rc = set_pairs(spec, copy, seen, false, &preset, err);
    if (rc == 0 && preset != NULL)
        rc = set_preset(spec, preset, seen, err);
    free(copy);
    for (int key = 0; key < KEYS && rc == 0; key++)
        if (!seen[key] && keys[key].default_text != NULL)
            rc = set_key(spec, (enum key)key, keys[key].default_text, err);
    if (rc == 0)
        rc = settle(spec, err);
    if (rc != 0)
        wl_genspec_release(spec);
    return rc;
}

void wl_genspec_release(struct wl_genspec *spec)
{
    wl_dist_release(&spec->prompt);
    wl_dist_release(&spec->output);
    wl_dist_release(&spec->samples);
    wl_dist_release(&spec->max_tokens);
    wl_dist_release(&spec->abort_delay_s);
    wl_dist_release(&spec->think_s);
    wl_dist_release(&spec->turn_prompt);
    wl_dist_release(&spec->branch_prompt);
}
