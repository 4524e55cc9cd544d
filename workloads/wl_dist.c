#include "workloads/wl_dist.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/wl_array.h"
#include "workloads/wl_source.h"
#include "workloads/wl_stream.h"

int wl_parse_double(const char *name, const char *text, double low, double high, double *value,
                    struct err *err)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    /* strtod also takes "nan", "inf" and hexadecimal; a number begins with a digit here. */
    const char *digits = *text == '-' ? text + 1 : text;
    bool plain = (*digits >= '0' && *digits <= '9') && strpbrk(text, "xX") == NULL;
    if (!plain || *end != '\0' || !(*value >= low && *value <= high))
        return err_set(err, ERR_USAGE, "%s: found '%s', expected a number from %g to %g", name,
                       text, low, high);
    return 0;
}

/* --- parsing ------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    enum wl_dist_kind kind;
    int parameters;
} kinds[] = {
    { "fixed", WL_DIST_FIXED, 1 },         { "uniform", WL_DIST_UNIFORM, 2 },
    { "lognormal", WL_DIST_LOGNORMAL, 2 }, { "gamma", WL_DIST_GAMMA, 2 },
    { "exponential", WL_DIST_EXPONENTIAL, 1 },
};

static const double parameter_max = 1e12;

static int unknown(const char *name, const char *text, struct err *err)
{
    return err_set(err, ERR_USAGE, "%s: found '%s', expected a number, fixed:N, uniform:LOW:HIGH, "
                   "lognormal:MU:SIGMA, gamma:SHAPE:SCALE, exponential:MEAN, "
                   "lognormals:WEIGHT:MU:SIGMA/..., empirical:FILE, prompts-of:TRACE or "
                   "outputs-of:TRACE, each with @LOW..HIGH or without", name, text);
}

/* Reads `count` numbers separated by ':'; cuts the text up. */
static int parse_numbers(const char *name, char *text, double low, double *values, int count,
                         struct err *err)
{
    for (int i = 0; i < count; i++) {
        char *colon = strchr(text, ':');
        if ((colon == NULL) != (i == count - 1))
            return err_set(err, ERR_USAGE, "%s: found '%s', expected %d numbers separated by ':'",
                           name, text, count - i);
        if (colon != NULL)
            *colon = '\0';
        if (wl_parse_double(name, text, low, parameter_max, &values[i], err) != 0)
            return -1;
        text = colon != NULL ? colon + 1 : text;
    }
    return 0;
}

static int parse_mixture(struct wl_dist *dist, const char *name, char *text, struct err *err)
{
    double weight_sum = 0;
    dist->kind = WL_DIST_LOGNORMALS;
    for (char *part = text; part != NULL;) {
        char *slash = strchr(part, '/');
        if (slash != NULL)
            *slash++ = '\0';
        if (dist->components_count == WL_DIST_COMPONENTS_MAX)
            return err_set(err, ERR_USAGE, "%s: found more than %d components, expected fewer", name,
                           WL_DIST_COMPONENTS_MAX);
        double values[3];
        if (parse_numbers(name, part, -100, values, 3, err) != 0)
            return -1;
        if (values[0] <= 0 || values[2] < 0)
            return err_set(err, ERR_USAGE, "%s: found weight %g and sigma %g, expected a weight "
                           "above 0 and a sigma of 0 or more", name, values[0], values[2]);
        weight_sum += values[0];
        dist->components[dist->components_count++] =
            (struct wl_component){ weight_sum, values[1], values[2] };
        part = slash;
    }
    return 0;
}

static int add_value(struct wl_dist *dist, size_t *capacity, double value)
{
    void *values = dist->values;
    int rc = wl_array_reserve(&values, capacity, sizeof *dist->values, dist->values_count + 1);
    dist->values = values;
    if (rc == 0)
        dist->values[dist->values_count++] = value;
    return rc;
}

static int add_values_of_line(struct wl_dist *dist, size_t *capacity, struct wl_line *line)
{
    char *saved = NULL;
    for (char *word = strtok_r(line->text, " \t,", &saved); word != NULL;
         word = strtok_r(NULL, " \t,", &saved)) {
        double value;
        struct err ignored = { 0 };
        if (wl_parse_double("", word, 0, parameter_max, &value, &ignored) != 0)
            return wl_line_unexpected(line, word, NULL, "a number, 0 or more");
        if (add_value(dist, capacity, value) != 0)
            return wl_line_out_of_memory(line);
    }
    return 0;
}

static int read_values(struct wl_dist *dist, const char *path, struct err *err)
{
    struct wl_stream *stream;
    if (wl_stream_open(path, &stream, err) != 0)
        return -1;
    struct wl_line line;
    size_t capacity = 0;
    int rc;
    while ((rc = wl_stream_line(stream, &line, err)) == 1) {
        line.err = err;
        if (add_values_of_line(dist, &capacity, &line) != 0) {
            rc = -1;
            break;
        }
    }
    wl_stream_close(stream);
    if (rc == 0 && dist->values_count == 0)
        return err_set(err, ERR_INPUT, "%s: found no number, expected at least one", path);
    return rc;
}

static int read_lengths(struct wl_dist *dist, const char *path, bool outputs, struct err *err)
{
    const struct wl_options options = { .arrival_speedup_ratio = 1, .sort = true };
    if (strncmp(path, "gen:", 4) == 0 || strncmp(path, "preset:", 7) == 0)
        return err_set(err, ERR_USAGE, "%s: found a generator, expected a trace file", path);
    struct wl_source *source;
    if (wl_open(path, &options, 0, &source, err) != 0)
        return -1;
    struct wl_request request;
    size_t capacity = 0;
    int rc;
    while ((rc = wl_next(source, &request, err)) == 1) {
        uint64_t tokens = outputs ? request.output_tokens : request.prompt_tokens;
        if (add_value(dist, &capacity, (double)tokens) != 0) {
            rc = err_set(err, ERR_FAILED, "%s: out of memory", path);
            break;
        }
    }
    wl_close(source);
    return rc;
}

/* Takes "@LOW..HIGH" off the end of the text. */
static int parse_clip(struct wl_dist *dist, const char *name, char *text, struct err *err)
{
    dist->low = 0;
    dist->high = (double)WL_TOKENS_MAX;
    char *at = strrchr(text, '@');
    if (at == NULL)
        return 0;
    char *dots = strstr(at, "..");
    if (dots == NULL)
        return 0; /* a file name may hold '@' */
    *at = '\0';
    *dots = '\0';
    if (wl_parse_double(name, at + 1, 0, dist->high, &dist->low, err) != 0 ||
        wl_parse_double(name, dots + 2, dist->low, dist->high, &dist->high, err) != 0)
        return -1;
    return 0;
}

static int parse_simple(struct wl_dist *dist, const char *name, const char *word, char *rest,
                        struct err *err)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(word, kinds[i].word) != 0)
            continue;
        double values[2] = { 0, 0 };
        double low = kinds[i].kind == WL_DIST_LOGNORMAL ? -100 : 0;
        if (parse_numbers(name, rest, low, values, kinds[i].parameters, err) != 0)
            return -1;
        dist->kind = kinds[i].kind;
        dist->a = values[0];
        dist->b = values[1];
        if (dist->kind == WL_DIST_UNIFORM && dist->b < dist->a)
            return err_set(err, ERR_USAGE, "%s: found %g to %g, expected the lower one first", name,
                           dist->a, dist->b);
        if ((dist->kind == WL_DIST_GAMMA && dist->a <= 0) || dist->b < 0)
            return err_set(err, ERR_USAGE, "%s: found %g and %g, expected a shape above 0 and a "
                           "spread of 0 or more", name, dist->a, dist->b);
        return 0;
    }
    return 1;
}

static int parse_cut(struct wl_dist *dist, const char *name, const char *whole, char *text,
                     struct err *err)
{
    if (parse_clip(dist, name, text, err) != 0)
        return -1;
    if (text[0] >= '0' && text[0] <= '9') {
        dist->kind = WL_DIST_FIXED;
        return wl_parse_double(name, text, 0, parameter_max, &dist->a, err);
    }
    char *rest = strchr(text, ':');
    if (rest == NULL)
        return unknown(name, whole, err);
    *rest++ = '\0';
    if (strcmp(text, "lognormals") == 0)
        return parse_mixture(dist, name, rest, err);
    dist->kind = WL_DIST_EMPIRICAL;
    if (strcmp(text, "empirical") == 0)
        return read_values(dist, rest, err);
    if (strcmp(text, "prompts-of") == 0 || strcmp(text, "outputs-of") == 0)
        return read_lengths(dist, rest, text[0] == 'o', err);
    int rc = parse_simple(dist, name, text, rest, err);
    return rc > 0 ? unknown(name, whole, err) : rc;
}

int wl_dist_parse(struct wl_dist *dist, const char *name, const char *text, struct err *err)
{
    *dist = (struct wl_dist){ 0 };
    char *copy = strdup(text);
    if (copy == NULL)
        return err_set(err, ERR_FAILED, "%s: out of memory", name);
    int rc = parse_cut(dist, name, text, copy, err);
    free(copy);
    if (rc != 0)
        wl_dist_release(dist);
    return rc;
}

void wl_dist_release(struct wl_dist *dist)
{
    free(dist->values);
    *dist = (struct wl_dist){ 0 };
}

/* --- drawing ------------------------------------------------------------------------------- */

static double draw_mixture(const struct wl_dist *dist, struct wl_rng *rng)
{
    size_t last = dist->components_count - 1;
    double at = wl_rng_unit(rng) * dist->components[last].weight_to_here;
    size_t i = 0;
    while (i < last && at >= dist->components[i].weight_to_here)
        i++;
    return exp(dist->components[i].mu + dist->components[i].sigma * wl_rng_normal(rng));
}

static double draw_raw(const struct wl_dist *dist, struct wl_rng *rng)
{
    switch (dist->kind) {
    case WL_DIST_FIXED:
        return dist->a;
    case WL_DIST_UNIFORM:
        return dist->a + (dist->b - dist->a) * wl_rng_unit(rng);
    case WL_DIST_LOGNORMAL:
        return exp(dist->a + dist->b * wl_rng_normal(rng));
    case WL_DIST_GAMMA:
        return dist->b * wl_rng_gamma(rng, dist->a);
    case WL_DIST_EXPONENTIAL:
        return dist->a * wl_rng_exponential(rng);
    case WL_DIST_LOGNORMALS:
        return draw_mixture(dist, rng);
    case WL_DIST_EMPIRICAL:
        break;
    }
    return dist->values[wl_rng_below(rng, dist->values_count)];
}

double wl_dist_draw(const struct wl_dist *dist, struct wl_rng *rng)
{
    double value = draw_raw(dist, rng);
    if (value < dist->low)
        return dist->low;
    return value > dist->high ? dist->high : value;
}

uint64_t wl_dist_draw_count(const struct wl_dist *dist, struct wl_rng *rng)
{
    /* Whole numbers LOW..HIGH are equally likely only if each has an interval of the same length. */
    if (dist->kind == WL_DIST_UNIFORM) {
        uint64_t low = (uint64_t)ceil(dist->a), high = (uint64_t)floor(dist->b);
        double value = (double)(high >= low ? low + wl_rng_below(rng, high - low + 1) : low);
        value = value < dist->low ? dist->low : value > dist->high ? dist->high : value;
        return (uint64_t)value;
    }
    return (uint64_t)(wl_dist_draw(dist, rng) + 0.5);
}

/* --- Zipf ---------------------------------------------------------------------------------- */

int wl_zipf_init(struct wl_zipf *zipf, size_t count, double exponent)
{
    zipf->count = count;
    zipf->sum = malloc(count * sizeof *zipf->sum);
    if (zipf->sum == NULL)
        return -1;
    double sum = 0;
    for (size_t rank = 0; rank < count; rank++) {
        sum += pow((double)(rank + 1), -exponent);
        zipf->sum[rank] = sum;
    }
    return 0;
}

void wl_zipf_release(struct wl_zipf *zipf)
{
    free(zipf->sum);
    zipf->sum = NULL;
    zipf->count = 0;
}

/* The first rank whose cumulative weight exceeds a uniform draw. */
size_t wl_zipf_draw(const struct wl_zipf *zipf, struct wl_rng *rng)
{
    double at = wl_rng_unit(rng) * zipf->sum[zipf->count - 1];
    size_t low = 0, high = zipf->count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zipf->sum[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
