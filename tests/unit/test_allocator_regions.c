/* The reserving policies on random admissions and releases, behind the check wrapper with a walk at each call,
 * against maps of single units: who is admitted, what is held, what could be obtained. A script's operations make sense in any
 * state, so a failing one is shrunk by leaving operations out, and printed. */
#include "tests/check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/kv_check.h"
#include "allocator/kv_policy.h"
#include "tests/policy_case.h"

enum { SEQS = 24, UNITS = 613, LONGEST = 130 };

/* jemalloc's smallest large class is 16 KiB: with slots of that size no region is in a slab. */
enum { SLOT_BYTES = 16384, SLOT_PAGES = 4 };

enum model_kind { FIRST, BEST, WORST, BUDDY, ANYWHERE, SIZE_CLASS };

static const struct setting {
    const char *policy, *options;
    enum model_kind kind;
    uint32_t block_tokens;
} settings[] = {
    { "static", "reserve=oracle placement=first-fit", FIRST, 1 },
    { "static", "reserve=oracle placement=best-fit", BEST, 1 },
    { "static", "reserve=oracle placement=worst-fit", WORST, 1 },
    { "static", "reserve=oracle placement=buddy", BUDDY, 1 },
    { "static-paged", "reserve=oracle", ANYWHERE, 7 },
    { "jemalloc", "reserve=oracle", SIZE_CLASS, 1 },
};

/* A map of the model's units (slots, blocks or pages), and what each sequence has of it. */
struct model {
    enum model_kind kind;
    uint32_t units, block_tokens;
    bool taken[UNITS * SLOT_PAGES];
    uint32_t start[SEQS], length[SEQS]; /* length 0: nothing */
};

/* Units that a region of `slots` occupies. */
static uint32_t units_of(const struct model *m, uint32_t slots)
{
    uint32_t units = slots;
    if (m->kind == BUDDY)
        for (units = 1; units < slots; units *= 2)
            ;
    if (m->kind == ANYWHERE)
        units = (slots + m->block_tokens - 1) / m->block_tokens;
    if (m->kind == SIZE_CLASS) {
        /* Four classes to a doubling, from 4 pages on, and a page of padding. */
        uint32_t step = 1, pages = slots * SLOT_PAGES;
        while (pages > 8 * step)
            step *= 2;
        units = (pages + step - 1) / step * step + 1;
    }
    return units;
}

static bool run_is_free(const struct model *m, uint32_t start, uint32_t length)
{
    for (uint32_t i = start; i < start + length; i++)
        if (i >= m->units || m->taken[i])
            return false;
    return true;
}

/* The free chunk of 2^k units at an aligned address is whole when no larger free chunk contains it. */
static bool chunk_is_whole(const struct model *m, uint32_t start, uint32_t length)
{
    uint32_t parent = start / (2 * length) * (2 * length);
    return run_is_free(m, start, length) && !run_is_free(m, parent, 2 * length);
}

/* The smallest whole chunk that is long enough, the lowest among equals. */
static uint32_t choose_chunk(const struct model *m, uint32_t length)
{
    for (uint32_t chunk = length; chunk <= m->units; chunk *= 2)
        for (uint32_t start = 0; start + chunk <= m->units; start += chunk)
            if (chunk_is_whole(m, start, chunk))
                return start;
    return UINT32_MAX;
}

static uint32_t choose_run(const struct model *m, uint32_t length)
{
    uint32_t best = UINT32_MAX, best_run = 0;
    for (uint32_t start = 0; start < m->units; start++) {
        uint32_t run = 0;
        if (start > 0 && !m->taken[start - 1])
            continue; /* not the start of a hole */
        while (start + run < m->units && !m->taken[start + run])
            run++;
        bool better = best == UINT32_MAX || (m->kind == BEST && run < best_run) ||
                      (m->kind == WORST && run > best_run);
        if (run >= length && better) {
            best = start;
            best_run = run;
        }
    }
    return best;
}

static uint32_t count_free(const struct model *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->units; i++)
        count += !m->taken[i];
    return count;
}

static void take(struct model *m, uint32_t seq, uint32_t start, uint32_t length)
{
    m->start[seq] = start;
    m->length[seq] = length;
    memset(m->taken + start, 1, length);
}

static void give(struct model *m, uint32_t seq)
{
    memset(m->taken + m->start[seq], 0, m->length[seq]);
    m->length[seq] = 0;
}

/* Blocks anywhere: only their number matters, so the model keeps them packed at the front. */
static void repack(struct model *m)
{
    uint32_t at = 0;
    memset(m->taken, 0, sizeof m->taken);
    for (uint32_t k = 0; k < SEQS; k++) {
        take(m, k, at, m->length[k]);
        at += m->length[k];
    }
}

static bool model_admit(struct model *m, const kv_seq *seqs, uint32_t count, uint32_t slots)
{
    struct model before = *m;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t length = units_of(m, slots);
        uint32_t start = m->kind == BUDDY ? choose_chunk(m, length) : choose_run(m, length);
        if (start == UINT32_MAX) {
            *m = before;
            return false;
        }
        take(m, seqs[k].index, start, length);
    }
    return true;
}

static bool fits_empty(const struct model *m, uint32_t count, uint32_t slots)
{
    struct model empty = { .kind = m->kind, .units = m->units, .block_tokens = m->block_tokens };
    return model_admit(&empty, (kv_seq[3]){ { 0 }, { 1 }, { 2 } }, count, slots);
}

/* The largest ask of so many equal regions that succeeds, by trying them all. */
static uint64_t model_obtainable(const struct model *m, uint32_t pieces, uint32_t slots_max)
{
    if (m->kind == ANYWHERE)
        return count_free(m);
    for (uint32_t slots = slots_max; slots > 0; slots--) {
        struct model copy = *m;
        kv_seq seqs[3] = { { 0 }, { 1 }, { 2 } };
        if (model_admit(&copy, seqs, pieces, slots))
            return (uint64_t)slots * pieces;
    }
    return 0;
}

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

enum { OPS = 400 };

/* Releases the three sequences if they hold something, else admits a request of so many. */
struct op {
    uint32_t first, slots, samples;
    uint32_t pieces; /* above 0: then compares what could be obtained */
};

static struct op draw_op(size_t i)
{
    return (struct op){ .first = draw(SEQS / 3) * 3, .slots = 1 + draw(LONGEST), .samples = 1 + draw(3),
                        .pieces = i % 8 == 0 ? 1 + draw(3) : 0 };
}

/* "" when all is well, else what is wrong. */
static char wrong[200];

static void same(const char *what, uint64_t found, uint64_t expected)
{
    if (found != expected && wrong[0] == '\0')
        snprintf(wrong, sizeof wrong, "%s: found %" PRIu64 ", expected %" PRIu64, what, found, expected);
}

static void on_violation(void *context, uint64_t call_number, const char *call, const char *policy_name, const char *what)
{
    (void)context;
    (void)policy_name;
    if (wrong[0] == '\0')
        snprintf(wrong, sizeof wrong, "check: call %" PRIu64 " (%s): %s", call_number, call, what);
}

static void compare(struct kv_policy *p, const struct model *m, uint64_t model_unit_bytes, uint32_t pieces)
{
    struct kv_facts facts;
    struct kv_demand demand = { .kind = KV_ADMISSION, .pieces = pieces };
    kv_get_facts(p, &facts);
    same("free bytes", facts.free_bytes, count_free(m) * model_unit_bytes);
    same("obtainable", kv_obtainable(p, &demand), model_obtainable(m, pieces, UNITS));
}

static void run_op(struct kv_policy *p, struct model *m, const struct op *op)
{
    kv_seq seqs[3] = { { op->first }, { op->first + 1 }, { op->first + 2 } };
    if (m->length[op->first] > 0) {
        for (uint32_t k = 0; k < 3; k++)
            give(m, op->first + k);
        kv_release(p, seqs, 3);
    } else {
        struct kv_request r = policy_case_request(op->slots, 1, op->samples);
        enum kv_status expected = model_admit(m, seqs, op->samples, op->slots) ? KV_OK
                                  : fits_empty(m, op->samples, op->slots) ? KV_NO_SPACE : KV_NEVER_FITS;
        same("admission", policy_case_admit(p, &r, seqs, op->slots, NULL, NULL), expected);
    }
    if (m->kind == ANYWHERE)
        repack(m);
}

/* The number of operations done when something went wrong, 0 when nothing did. */
static size_t run_script(const struct setting *s, const struct op *ops, size_t count)
{
    struct kv_geometry g = {
        .pool_bytes = (uint64_t)UNITS * SLOT_BYTES, .bytes_per_token = SLOT_BYTES,
        .block_tokens = s->block_tokens, .max_seqs = SEQS, .max_seq_tokens = UNITS,
    };
    static struct model m;
    struct kv_policy *inner = policy_case_bare(s->policy, &g, s->options, NULL);
    struct kv_policy *p = kv_check_wrap(inner, &g, 1, on_violation, NULL);
    uint64_t unit_bytes = (uint64_t)SLOT_BYTES * s->block_tokens;
    size_t done = 0;
    assert_non_null(p);
    m = (struct model){ .kind = s->kind, .units = UNITS / s->block_tokens, .block_tokens = s->block_tokens };
    if (s->kind == SIZE_CLASS) {
        m.units = UNITS * SLOT_PAGES;
        unit_bytes = 4096;
    }
    wrong[0] = '\0';
    for (; done < count && wrong[0] == '\0'; done++) {
        run_op(p, &m, &ops[done]);
        if (ops[done].pieces > 0)
            compare(p, &m, unit_bytes, ops[done].pieces);
    }
    kv_destroy(p);
    return wrong[0] != '\0' ? done : 0;
}

static void fail_with_shortest(const struct setting *s, struct op *ops, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        struct op shorter[OPS];
        memcpy(shorter, ops, i * sizeof *ops);
        memcpy(shorter + i, ops + i + 1, (count - i - 1) * sizeof *ops);
        size_t failed_at = run_script(s, shorter, count - 1);
        if (failed_at == 0)
            continue;
        count = failed_at;
        i = i < count ? i : count;
        memcpy(ops, shorter, count * sizeof *ops);
    }
    run_script(s, ops, count);
    print_error("%s %s: %s, after\n", s->policy, s->options, wrong);
    for (size_t i = 0; i < count; i++)
        print_error("  sequences %u: %u slots, %u samples, compared %u\n", ops[i].first, ops[i].slots, ops[i].samples, ops[i].pieces);
    fail();
}

static void regions__random_script__agrees_with_a_map(void **state)
{
    const struct setting *s = *state;
    struct op ops[OPS];
    random_state = 11;
    for (size_t i = 0; i < OPS; i++)
        ops[i] = draw_op(i);
    size_t failed_at = run_script(s, ops, OPS);
    if (failed_at > 0)
        fail_with_shortest(s, ops, failed_at);
}

/* --- several arenas at once ---------------------------------------------------------------- */

/* A sum over what an arena of its own reports; cmocka's checks may only be used on the main thread. */
static void *run_arena(void *context)
{
    uint64_t *sum = context;
    const struct kv_policy_ops *ops = kv_registry_find("jemalloc");
    struct kv_geometry g = { .pool_bytes = UINT64_C(1) << 26, .bytes_per_token = 4096, .block_tokens = 1,
                             .max_seqs = SEQS, .max_seq_tokens = 2000 };
    const struct kv_value values[KV_OPTIONS_MAX] = { { 3 }, { 0 } }; /* oracle */
    char why[200];
    for (int round = 0; round < 20; round++) {
        struct kv_policy *p = ops->create(&g, values, NULL, why, sizeof why);
        for (uint32_t i = 0; p != NULL && i < 4 * SEQS; i++) {
            struct kv_request r = policy_case_request(1 + (i * 37 + (uint32_t)round) % 1500, 1, 1);
            kv_seq seq = { i % SEQS };
            struct kv_facts facts;
            kv_release(p, &seq, 1);
            (void)policy_case_admit(p, &r, &seq, r.final_tokens, NULL, NULL);
            kv_get_facts(p, &facts);
            *sum += facts.held_bytes * (i + 1);
        }
        kv_destroy(p);
    }
    return NULL;
}

static void jemalloc__two_threads__each_reports_what_one_reports_alone(void **state)
{
    (void)state;
    uint64_t alone = 0, together[2] = { 0, 0 };
    pthread_t threads[2];
    run_arena(&alone);
    assert_true(alone > 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_arena, &together[i]), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    check_u64_eq(together[0], alone);
    check_u64_eq(together[1], alone);
}

enum { SETTINGS = sizeof settings / sizeof settings[0] };

int main(void)
{
    static char names[SETTINGS][80];
    struct CMUnitTest tests[SETTINGS + 1];
    for (size_t i = 0; i < SETTINGS; i++) {
        snprintf(names[i], sizeof names[i], "regions: %s %s agrees with a map", settings[i].policy,
                 settings[i].options);
        tests[i] = (struct CMUnitTest){ .name = names[i],
                                        .test_func = regions__random_script__agrees_with_a_map,
                                        .initial_state = (void *)(uintptr_t)&settings[i] };
    }
    tests[SETTINGS] = (struct CMUnitTest)cmocka_unit_test(
        jemalloc__two_threads__each_reports_what_one_reports_alone);
    return _cmocka_run_group_tests("regions", tests, SETTINGS + 1, NULL, NULL) != 0;
}
