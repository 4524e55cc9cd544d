/* Distributions of lengths and delays, from a text:
 *
 *   fixed:N  uniform:LOW:HIGH  lognormal:MU:SIGMA  gamma:SHAPE:SCALE  exponential:MEAN
 *   lognormals:WEIGHT:MU:SIGMA/WEIGHT:MU:SIGMA/...   a mixture; weights need not add up to 1
 *   empirical:FILE      the numbers in a text file, each as likely
 *   prompts-of:TRACE    the prompt lengths of a trace;  outputs-of:TRACE  its output lengths
 *
 * MU and SIGMA are of the natural logarithm. A plain number N is fixed:N. Behind all of them may stand
 * @LOW..HIGH: values are clipped to that range. */
#ifndef PAGESIM_WL_DIST_H
#define PAGESIM_WL_DIST_H

#include "workloads/err.h"
#include "workloads/wl_rng.h"

#include <stddef.h>

enum wl_dist_kind {
    WL_DIST_FIXED, WL_DIST_UNIFORM, WL_DIST_LOGNORMAL, WL_DIST_GAMMA, WL_DIST_EXPONENTIAL,
    WL_DIST_LOGNORMALS, WL_DIST_EMPIRICAL,
};

enum { WL_DIST_COMPONENTS_MAX = 8 };

struct wl_component {
    double weight_to_here; /* sum of the weights up to and including this one */
    double mu, sigma;
};

struct wl_dist {
    enum wl_dist_kind kind;
    double a, b;           /* the parameters in the order of the text */
    double low, high;      /* clip */
    struct wl_component components[WL_DIST_COMPONENTS_MAX];
    size_t components_count;
    double *values;        /* empirical */
    size_t values_count;
};

/* `name` is for messages. 0, or -1 with err. */
int wl_dist_parse(struct wl_dist *dist, const char *name, const char *text, struct err *err);
void wl_dist_release(struct wl_dist *dist);
double wl_dist_draw(const struct wl_dist *dist, struct wl_rng *rng);
/* The draw as a count: rounded to nearest, 0 .. WL_TOKENS_MAX. */
uint64_t wl_dist_draw_count(const struct wl_dist *dist, struct wl_rng *rng);

/* One number; the whole text must be it. Returns 0, or -1 with err naming `name`. */
int wl_parse_double(const char *name, const char *text, double low, double high, double *value,
                    struct err *err);

/* Zipf: rank r of 0..count-1 with probability proportional to (r + 1)^-exponent. */
struct wl_zipf {
    double *sum; /* cumulative weights */
    size_t count;
};
int wl_zipf_init(struct wl_zipf *zipf, size_t count, double exponent); /* -1: out of memory */
void wl_zipf_release(struct wl_zipf *zipf);
size_t wl_zipf_draw(const struct wl_zipf *zipf, struct wl_rng *rng);

#endif
