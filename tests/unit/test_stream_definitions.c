/* Streams of unit-size objects through lru, fifo, lfu, sieve, arc, 2q and s3fifo, against the definitions as they are published: caches
 * of keys in plain arrays, written from the papers' own pseudo-code without objects, places or gives. */
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

#include "sim/cache_sim.h"

enum { ROOM = 512, KEYS = 2000, ACCESSES = 20000 };

/* --- queues of keys ------------------------------------------------------------------------------- */

/* Newest at the end. */
struct keys {
    uint32_t at[ROOM];
    uint32_t count;
};

static uint32_t place_in(const struct keys *q, uint32_t key)
{
    uint32_t i = 0;
    while (i < q->count && q->at[i] != key) i++;
    return i;
}

static bool has(const struct keys *q, uint32_t key)
{
    return place_in(q, key) < q->count;
}

static void add(struct keys *q, uint32_t key)
{
    assert_true(q->count < ROOM);
    q->at[q->count++] = key;
}

static uint32_t take_at(struct keys *q, uint32_t i)
{
    uint32_t key = q->at[i];
    memmove(q->at + i, q->at + i + 1, (q->count - i - 1) * sizeof q->at[0]);
    q->count--;
    return key;
}

static uint32_t take_oldest(struct keys *q)
{
    return take_at(q, 0);
}

static void take(struct keys *q, uint32_t key)
{
    take_at(q, place_in(q, key));
}

/* What the definitions keep between accesses; each uses what it needs. */
struct definition {
    uint32_t size;            /* of the cache, in objects */
    struct keys a, b, c, d;
    uint32_t uses[KEYS];
    bool visited[KEYS];
    uint32_t hand;            /* of sieve: a key + 1, 0: none */
    double p;                 /* of ARC */
};

/* --- the definitions: an access, whether it hits ----------------------------------------------------- */

static bool lru(struct definition *d, uint32_t x)
{
    bool hit = has(&d->a, x);
    if (hit) take(&d->a, x);
    else if (d->a.count == d->size) take_oldest(&d->a);
    add(&d->a, x);
    return hit;
}

static bool fifo(struct definition *d, uint32_t x)
{
    if (has(&d->a, x)) return true;
    if (d->a.count == d->size) take_oldest(&d->a);
    add(&d->a, x);
    return false;
}

/* Fewest uses go, of these the one whose last use is the oldest: the array is in the order of the last use. */
static bool lfu(struct definition *d, uint32_t x)
{
    bool hit = has(&d->a, x);
    if (hit) {
        take(&d->a, x);
    } else {
        if (d->a.count == d->size) {
            uint32_t least = 0;
            for (uint32_t i = 1; i < d->a.count; i++) {
                if (d->uses[d->a.at[i]] < d->uses[d->a.at[least]]) least = i;
            }
            take_at(&d->a, least);
        }
        d->uses[x] = 0;
    }
    d->uses[x]++;
    add(&d->a, x);
    return hit;
}

/* SIEVE, NSDI'24, algorithm 1. New objects at the head, here the end of the array; the hand moves from the tail, here the start,
 * towards the head. */
static bool sieve(struct definition *d, uint32_t x)
{
    if (has(&d->a, x)) {
        d->visited[x] = true;
        return true;
    }
    if (d->a.count == d->size) {
        uint32_t o = d->hand > 0 ? place_in(&d->a, d->hand - 1) : 0;
        while (d->visited[d->a.at[o]]) {
            d->visited[d->a.at[o]] = false;
            o = o + 1 < d->a.count ? o + 1 : 0;
        }
        d->hand = o + 1 < d->a.count ? d->a.at[o + 1] + 1 : 0;
        take_at(&d->a, o);
    }
    d->visited[x] = false;
    add(&d->a, x);
    return false;
}

/* ARC, FAST'03, figure 4: T1, T2, B1, B2 are a, b, c, d. */
static void arc_replace(struct definition *d, bool x_in_b2)
{
    if (d->a.count > 0 && (d->a.count > d->p || (x_in_b2 && !(d->a.count < d->p) && !(d->a.count > d->p)))) add(&d->c, take_oldest(&d->a));
    else add(&d->d, take_oldest(&d->b));
}

static bool arc(struct definition *d, uint32_t x)
{
    double c = d->size, b1 = d->c.count, b2 = d->d.count;
    if (has(&d->a, x) || has(&d->b, x)) { /* case I */
        take(has(&d->a, x) ? &d->a : &d->b, x);
        add(&d->b, x);
        return true;
    }
    if (has(&d->c, x)) { /* case II */
        d->p += b1 >= b2 ? 1 : b2 / b1;
        if (d->p > c) d->p = c;
        arc_replace(d, false);
        take(&d->c, x);
        add(&d->b, x);
        return false;
    }
    if (has(&d->d, x)) { /* case III */
        d->p -= b2 >= b1 ? 1 : b1 / b2;
        if (d->p < 0) d->p = 0;
        arc_replace(d, true);
        take(&d->d, x);
        add(&d->b, x);
        return false;
    }
    uint32_t all = d->a.count + d->b.count + d->c.count + d->d.count; /* case IV */
    if (d->a.count + d->c.count == d->size) {
        if (d->a.count < d->size) {
            take_oldest(&d->c);
            arc_replace(d, false);
        } else {
            take_oldest(&d->a);
        }
    } else if (all >= d->size) {
        if (all == 2 * d->size) take_oldest(&d->d);
        arc_replace(d, false);
    }
    add(&d->a, x);
    return false;
}

/* 2Q, VLDB'94, full version: A1in, A1out and Am are a, b and c. */
static void reclaim(struct definition *d)
{
    if (d->a.count + d->c.count < d->size) return;
    if (d->a.count > d->size / 4) {
        add(&d->b, take_oldest(&d->a));
        if (d->b.count > d->size / 2) take_oldest(&d->b);
    } else {
        take_oldest(&d->c);
    }
}

static bool two_queue(struct definition *d, uint32_t x)
{
    if (has(&d->c, x)) {
        take(&d->c, x);
        add(&d->c, x);
        return true;
    }
    if (has(&d->a, x)) return true;
    if (has(&d->b, x)) {
        reclaim(d);
        if (has(&d->b, x)) take(&d->b, x); /* making room may have forgotten it */
        add(&d->c, x);
    } else {
        reclaim(d);
        add(&d->a, x);
    }
    return false;
}

/* S3-FIFO, SOSP'23, algorithm 1: S, M and G are a, b and c. libCacheSim reads it so that S gives up an object, or M if it is above its
 * nine tenths. */
static void s3_evict_main(struct definition *d)
{
    for (;;) {
        uint32_t t = take_oldest(&d->b);
        if (d->uses[t] == 0) return;
        d->uses[t]--;
        add(&d->b, t);
    }
}

static void s3_evict_small(struct definition *d)
{
    while (d->a.count > 0) {
        uint32_t t = take_oldest(&d->a);
        if (d->uses[t] < 2) {
            add(&d->c, t);
            if (d->c.count > d->size - d->size / 10) take_oldest(&d->c);
            return;
        }
        d->uses[t] = 0;
        add(&d->b, t);
    }
    s3_evict_main(d);
}

static bool s3fifo(struct definition *d, uint32_t x)
{
    if (has(&d->a, x) || has(&d->b, x)) {
        if (d->uses[x] < 3) d->uses[x]++;
        return true;
    }
    if (d->a.count + d->b.count == d->size) {
        if (d->a.count >= d->size / 10) s3_evict_small(d);
        else s3_evict_main(d);
    }
    bool known = has(&d->c, x);
    if (known) take(&d->c, x);
    d->uses[x] = 0;
    add(known ? &d->b : &d->a, x);
    return false;
}

/* --- streams ----------------------------------------------------------------------------------------- */

static uint64_t chance;

static uint32_t draw(uint32_t below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)(chance % below);
}

/* Popular keys, scans that come once, loops a little longer than the cache, a change of what is popular. */
static void make_stream(uint32_t *stream, uint32_t size)
{
    uint32_t scan = 0, loop = 0, base = 0;
    for (uint32_t i = 0; i < ACCESSES;) {
        uint32_t kind = draw(20), length = 1 + draw(size);
        if (draw(100) == 0) base = draw(500);
        for (; length > 0 && i < ACCESSES; length--, i++) {
            if (kind == 0) stream[i] = 1000 + scan++ % (KEYS - 1000);
            else if (kind == 1) stream[i] = 600 + loop++ % (size + size / 4 + 1);
            else stream[i] = (base + draw(1 + draw(1 + draw(3 * size)))) % 600;
        }
    }
}

static const struct {
    const char *order;
    bool (*access)(struct definition *, uint32_t);
    double within; /* share of accesses by which hits may differ; 0: every access as defined */
    const char *why;
} definitions[] = {
    {"lru", lru, 0, NULL},
    {"fifo", fifo, 0, NULL},
    {"lfu", lfu, 0, NULL},
    {"sieve", sieve, 0, NULL},
    {"arc", arc, 0, NULL},
    {"2q", two_queue, 0.002, "A1out forgets a key that comes back before room is made, not after"},
    {"s3fifo", s3fifo, 0.002, "when S gives an object to M, who evicts is decided anew"},
};

static void order__stream__as_published(void **state)
{
    size_t k = (size_t)*state;
    static const uint32_t sizes[] = {2, 7, 20, 50, 133};
    static uint32_t stream[ACCESSES];
    static struct definition d;
    struct err err = {0};
    for (uint32_t round = 0; round < 15; round++) {
        uint32_t size = sizes[round % 5];
        uint64_t hits = 0, defined = 0;
        struct block_cache cache = {0};
        if (definitions[k].within > 0 && size < 20) continue; /* a tenth or a quarter of few is a matter of rounding */
        chance = 88172645463325252u + round;
        make_stream(stream, size);
        memset(&d, 0, sizeof d);
        d.size = size;
        assert_int_equal(block_cache_init(&cache, kv_eviction_find(definitions[k].order), NULL, size, &err), 0);
        assert_int_equal(block_cache_reserve(&cache, KEYS, &err), 0);
        for (uint32_t i = 0; i < ACCESSES; i++) {
            bool hit = block_cache_access(&cache, &stream[i], 1) == 1, expected = definitions[k].access(&d, stream[i]);
            if (definitions[k].within <= 0 && hit != expected)
                fail_msg("%s, %u objects, round %u: access %u of key %u: found %d, published %d", definitions[k].order, size, round, i,
                         stream[i], hit, expected);
            hits += hit;
            defined += expected;
        }
        block_cache_release(&cache);
        assert_true(defined > ACCESSES / 20 && defined < ACCESSES); /* else the stream shows nothing */
        check_f64_near((double)hits / ACCESSES, (double)defined / ACCESSES, definitions[k].within);
    }
}

int main(void)
{
    enum { COUNT = sizeof definitions / sizeof definitions[0] };
    static struct CMUnitTest tests[COUNT];
    for (size_t k = 0; k < COUNT; k++)
        tests[k] = (struct CMUnitTest){.name = definitions[k].order, .test_func = order__stream__as_published,
                                       .initial_state = (void *)k};
    return _cmocka_run_group_tests("order__stream__as_published", tests, COUNT, NULL, NULL) != 0;
}
