#include "sim/edge_draws.h"

#include <math.h>
#include <string.h>

#include "sim/sizes.h"

static const struct {
    const char *name;
    enum edge_spread_kind kind;
    int values;
} spreads[] = {
    {"fixed", EDGE_FIXED, 1},
    {"uniform", EDGE_UNIFORM, 2},
    {"triangular", EDGE_TRIANGULAR, 3},
    {"lognormal", EDGE_LOGNORMAL, 2},
};

#define VALUE_MAX 1e15 /* bytes, a petabyte; as a factor beyond all reason too */

static bool read_value(const char *text, bool bytes, double *value)
{
    uint64_t whole;
    if (!bytes) return size_parse_ratio(text, value) == SIZE_OK && *value <= VALUE_MAX;
    if (size_parse_bytes(text, &whole) != SIZE_OK) return false;
    *value = (double)whole;
    return *value <= VALUE_MAX;
}

static bool in_order(const struct edge_spread *s)
{
    switch (s->kind) {
    case EDGE_FIXED: return true;
    case EDGE_UNIFORM: return s->a <= s->b;
    case EDGE_TRIANGULAR: return s->a <= s->b && s->b <= s->c;
    case EDGE_LOGNORMAL: return s->a > 0 && s->b <= 10;
    }
    return false;
}

/* The values behind the name, split at colons. */
static bool read_values(struct edge_spread *s, char *rest, int count, bool bytes)
{
    double *values[] = {&s->a, &s->b, &s->c};
    for (int i = 0; i < count; i++) {
        char *text = strsep(&rest, ":");
        bool is_sigma = s->kind == EDGE_LOGNORMAL && i == 1;
        if (!text || !read_value(text, bytes && !is_sigma, values[i])) return false;
    }
    return rest == NULL && in_order(s);
}

int edge_spread_parse(struct edge_spread *s, const char *text, bool bytes, struct err *err)
{
    char copy[120], *rest = copy;
    if (strlen(text) < sizeof copy) {
        strcpy(copy, text);
        const char *name = strsep(&rest, ":");
        for (size_t i = 0; i < sizeof spreads / sizeof spreads[0]; i++) {
            *s = (struct edge_spread){.kind = spreads[i].kind};
            if (strcmp(name, spreads[i].name) == 0 && read_values(s, rest, spreads[i].values, bytes)) return 0;
        }
    }
    return err_set(err, ERR_USAGE,
                   "found '%.60s', expected fixed:X, uniform:LOW:HIGH, triangular:LOW:MODE:HIGH or lognormal:MEDIAN:SIGMA, with %s", text,
                   bytes ? "sizes" : "ratios");
}

static double triangular(const struct edge_spread *s, double u)
{
    double width = s->c - s->a;
    if (width <= 0) return s->a;
    double split = (s->b - s->a) / width;
    if (u < split) return s->a + sqrt(u * width * (s->b - s->a));
    return s->c - sqrt((1 - u) * width * (s->c - s->b));
}

double edge_spread_draw(const struct edge_spread *s, struct wl_rng *rng)
{
    switch (s->kind) {
    case EDGE_FIXED: return s->a;
    case EDGE_UNIFORM: return s->a + (s->b - s->a) * wl_rng_unit(rng);
    case EDGE_TRIANGULAR: return triangular(s, wl_rng_unit(rng));
    case EDGE_LOGNORMAL: return s->a * exp(s->b * wl_rng_normal(rng));
    }
    return 0;
}

/* Whole bytes, upwards; saturates. */
static uint64_t whole(double bytes)
{
    if (bytes <= 0) return 0;
    return bytes >= 0x1p62 ? (uint64_t)1 << 62 : (uint64_t)ceil(bytes);
}

void wilson_interval(uint64_t k, uint64_t n, double *low, double *high)
{
    const double z = 1.959963984540054;
    double count = (double)n, p = (double)k / count, zz = z * z / count;
    double middle = p + zz / 2, half = z * sqrt(p * (1 - p) / count + zz / (4 * count));
    *low = k == 0 ? 0 : (middle - half) / (1 + zz);
    *high = k == n ? 1 : (middle + half) / (1 + zz);
}

void edge_draw(struct edge_chance *chance, const struct edge_draws *d)
{
    unsigned __int128 lent = 0;
    *chance = (struct edge_chance){.draws = d->draws};
    for (uint64_t i = 0; i < d->draws; i++) {
        struct wl_rng rng;
        wl_rng_init(&rng, d->seed, i);
        unsigned __int128 demand = whole(edge_spread_draw(&d->activation, &rng) * (double)d->peak_bytes);
        demand += whole(edge_spread_draw(&d->late, &rng));
        demand += whole(edge_spread_draw(&d->residue, &rng));
        demand += d->fixed_bytes;
        if (demand <= d->room_bytes) continue;
        chance->ooms++;
        unsigned __int128 over = demand - d->room_bytes;
        if (over > d->pool_bytes) chance->elastic_ooms++;
        lent += over > d->pool_bytes ? d->pool_bytes : over;
    }
    if (d->draws == 0) return;
    chance->probability = (double)chance->ooms / (double)d->draws;
    chance->lent_mean_bytes = (double)lent / (double)d->draws;
    wilson_interval(chance->ooms, d->draws, &chance->low, &chance->high);
}
