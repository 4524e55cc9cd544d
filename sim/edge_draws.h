/* How likely the device is out of memory, when what lies outside the budget is not known exactly. Draws of three amounts, each
 * with its own spread; draw i depends on the seed and i alone, so that every setting is tried with the same luck. */
#ifndef PAGESIM_EDGE_DRAWS_H
#define PAGESIM_EDGE_DRAWS_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/err.h"
#include "workloads/wl_rng.h"

enum edge_spread_kind { EDGE_FIXED, EDGE_UNIFORM, EDGE_TRIANGULAR, EDGE_LOGNORMAL };
struct edge_spread {
    enum edge_spread_kind kind;
    double a, b, c; /* value; low, high; low, mode, high; median, sigma */
};
/* 'fixed:X', 'uniform:A:B', 'triangular:LOW:MODE:HIGH', 'lognormal:MEDIAN:SIGMA'; sizes such as 200MiB when `bytes`. -1 with a
 * text that says what was found and expected. */
int edge_spread_parse(struct edge_spread *spread, const char *text, bool bytes, struct err *err);
double edge_spread_draw(const struct edge_spread *spread, struct wl_rng *rng);

struct edge_draws {
    uint64_t draws, seed;
    struct edge_spread activation; /* factor on the peak of a step's activations */
    struct edge_spread late, residue; /* bytes beyond those that the configuration names */
    uint64_t peak_bytes;           /* of a step's activations */
    uint64_t fixed_bytes;          /* late buffers that are named */
    uint64_t room_bytes;           /* on the device outside the pool */
    uint64_t pool_bytes;
};

struct edge_chance {
    uint64_t draws, ooms;
    double probability, low, high; /* Wilson's interval, 95 % */
    uint64_t elastic_ooms;         /* more than room and pool together */
    double lent_mean_bytes;        /* what an elastic boundary would take from the pool at the peak */
};
void edge_draw(struct edge_chance *chance, const struct edge_draws *draws);

/* Wilson's score interval for k of n at 95 %: E. B. Wilson, Probable Inference, JASA 22 (1927). n > 0. */
void wilson_interval(uint64_t k, uint64_t n, double *low, double *high);

#endif
