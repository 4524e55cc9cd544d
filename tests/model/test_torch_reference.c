/* The allocator against the slow reference, on random scripts under every setting. After each operation everything that can be seen
 * must be equal: result, address, size, segment events, counters, the numbers of a failure, and from time to time the whole layout.
 * A script that fails is shortened before it is printed. PAGESIM_TORCH_SCRIPTS sets the scripts a setting (default 40), to run longer. */
#include "tests/check.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/device/device_allocator.h"
#include "tests/model/torch_reference.h"

#define MIB DEV_MIB
#define SCRIPT_OPS 400
#define IDS 96
#define POOLS 4
#define LAYOUT_EVERY 16

enum kind { ALLOC, FREE, EMPTY, BEGIN, END, RELEASE, FOREIGN };
static const char *const KINDS[] = {"alloc", "free", "empty_cache", "pool_begin", "pool_end", "pool_release", "device_alloc"};

struct script_op {
    enum kind kind;
    unsigned id; /* or pool */
    uint64_t bytes;
};

struct setting {
    const char *name; /* as PyTorch reads it */
    struct ref_config ref;
};

/* What the script has of ids and pools; operations that make no sense are passed over, so that any part of a script is a script. */
struct run {
    struct dev_allocator *a;
    struct ref_model *m;
    uint64_t addr[IDS];
    bool live[IDS];
    uint32_t pool[POOLS];
    int ref_pool[POOLS];
    bool open[POOLS];
    char why[256];
};

/* ---- random ---- */

static uint64_t random_state;

static uint64_t random_u64(void)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint64_t below(uint64_t n)
{
    return random_u64() % n;
}

/* Sizes where the rules change, and everything between. */
static uint64_t any_bytes(void)
{
    static const uint64_t edges[] = {1,        511,       512,      513,       1 * MIB,   2 * MIB,   10 * MIB, 12 * MIB,
                                     20 * MIB, 21 * MIB,  22 * MIB, 64 * MIB,  128 * MIB, 129 * MIB, 32 * MIB, 149 * MIB};
    switch (below(8)) {
    case 0:
        return edges[below(sizeof edges / sizeof edges[0])] + below(3) * 512;
    case 1:
        return edges[1 + below(sizeof edges / sizeof edges[0] - 1)] - 1 - below(512);
    case 2:
    case 3:
        return 1 + below(MIB);
    case 4:
        return 1 + below(10 * MIB);
    case 5:
        return (1 + below(24)) * 2 * MIB;
    case 6:
        return 1 + below(200 * MIB);
    default:
        return 1ull << below(28);
    }
}

static uint64_t random_bytes(void)
{
    uint64_t bytes = any_bytes();
    return bytes == 0 || bytes > DEV_BYTES_MAX ? 1 : bytes; /* below the smallest edge */
}

static void random_script(struct script_op *script, size_t count, bool pools)
{
    /* Phases that fill and phases that drain make pressure come and go. */
    unsigned fill = 60;
    for (size_t i = 0; i < count; i++) {
        struct script_op *op = &script[i];
        if (below(50) == 0)
            fill = 35 + (unsigned)below(50);
        uint64_t draw = below(1000);
        *op = (struct script_op){.kind = below(100) < fill ? ALLOC : FREE, .id = (unsigned)below(IDS)};
        if (draw < 6)
            op->kind = EMPTY;
        else if (draw < 8)
            op->kind = FOREIGN;
        else if (pools && draw < 60)
            op->kind = draw < 30 ? BEGIN : draw < 55 ? END : RELEASE;
        if (op->kind == BEGIN || op->kind == END || op->kind == RELEASE)
            op->id = (unsigned)below(POOLS);
        if (op->kind == ALLOC || op->kind == FOREIGN)
            op->bytes = random_bytes();
    }
}

/* ---- comparing ---- */

static bool differs(struct run *r, const char *what, uint64_t actual, uint64_t expected)
{
    if (actual == expected)
        return false;
    snprintf(r->why, sizeof r->why, "%s: %" PRIu64 ", the reference says %" PRIu64, what, actual, expected);
    return true;
}

static bool compare_events(struct run *r)
{
    size_t n, expected_n;
    const struct dev_event *events = dev_events(r->a, &n);
    const struct ref_event *expected = ref_events(r->m, &expected_n);
    if (differs(r, "number of events", n, expected_n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (differs(r, "kind of an event", (uint64_t)events[i].kind, (uint64_t)expected[i].kind) ||
            differs(r, "address of an event", events[i].address, expected[i].addr) ||
            differs(r, "bytes of an event", events[i].bytes, expected[i].bytes))
            return false;
    return true;
}

static bool compare_counters(struct run *r)
{
    uint64_t c[REF_COUNTERS];
    const struct dev_stats *s = dev_stats(r->a);
    ref_counters(r->m, c);
    const struct {
        const char *name;
        uint64_t actual, expected;
    } rows[] = {
        {"allocated", s->allocated_bytes.now, c[REF_ALLOCATED]},
        {"reserved", s->reserved_bytes.now, c[REF_RESERVED]},
        {"requested", s->requested_bytes.now, c[REF_REQUESTED]},
        {"inactive split", s->inactive_split_bytes.now, c[REF_INACTIVE_SPLIT]},
        {"allocations", s->allocations.now, c[REF_LIVE]},
        {"inactive splits", s->inactive_splits.now, c[REF_INACTIVE_SPLITS]},
        {"small segments", s->segments_small.now, c[REF_SMALL_SEGMENTS]},
        {"large segments", s->segments_large.now, c[REF_LARGE_SEGMENTS]},
        {"reserved small", s->reserved_small_bytes.now, c[REF_RESERVED_SMALL]},
        {"allocated small", s->allocated_small_bytes.now, c[REF_ALLOCATED_SMALL]},
        {"retries", s->retries, c[REF_RETRIES]},
        {"ooms", s->ooms, c[REF_OOMS]},
        {"device allocs", s->device_allocs, c[REF_DEVICE_ALLOCS]},
        {"device frees", s->device_frees, c[REF_DEVICE_FREES]},
        {"oversize allocations", s->oversize_allocations.now, c[REF_OVERSIZE_ALLOCATIONS]},
        {"oversize segments", s->oversize_segments.now, c[REF_OVERSIZE_SEGMENTS]},
        {"syncs", s->syncs, c[REF_SYNCS]},
        {"device free", dev_device_free_bytes(r->a), c[REF_DEVICE_FREE]},
        {"segments", s->segments.now, c[REF_SMALL_SEGMENTS] + c[REF_LARGE_SEGMENTS]},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (differs(r, rows[i].name, rows[i].actual, rows[i].expected))
            return false;
    return true;
}

static bool print_segment(void *context, const struct dev_segment_info *s)
{
    FILE *out = context;
    fprintf(out, "%" PRIu64 " %" PRIu64 " %s %u %d:", s->address, s->bytes, s->small ? "small" : "large", s->pool, s->expandable);
    for (size_t i = 0; i < s->block_count; i++)
        fprintf(out, " %" PRIu64 "%s", s->blocks[i].bytes, s->blocks[i].state == DEV_ALLOCATED ? "*" : "");
    fputc('\n', out);
    return true;
}

static bool compare_layout(struct run *r)
{
    char *text = NULL, *expected = ref_layout(r->m);
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    assert_int_equal(dev_walk(r->a, print_segment, out), DEV_OK);
    fclose(out);
    bool same = strcmp(text, expected) == 0;
    if (!same)
        snprintf(r->why, sizeof r->why, "the layouts differ");
    free(text);
    free(expected);
    return same;
}

/* The sums of the message: what the reference counts must give the same. */
static bool compare_oom(struct run *r)
{
    uint64_t c[REF_COUNTERS];
    const struct dev_oom *oom = dev_last_oom(r->a);
    ref_counters(r->m, c);
    return !differs(r, "allocated of the message", oom->allocated_bytes, c[REF_ALLOCATED] + c[REF_PRIVATE_FREE]) &&
           !differs(r, "private of the message", oom->private_bytes, c[REF_PRIVATE_FREE]) &&
           !differs(r, "unallocated of the message", oom->unallocated_bytes, c[REF_RESERVED] - c[REF_ALLOCATED] - c[REF_PRIVATE_FREE]) &&
           !differs(r, "free of the message", oom->free_bytes, c[REF_DEVICE_FREE]);
}

/* ---- running ---- */

static bool run_alloc(struct run *r, const struct script_op *op)
{
    struct dev_allocation got = {0};
    uint64_t addr = 0, size = 0;
    enum dev_status status = dev_allocate(r->a, op->bytes, &got);
    bool expected = ref_alloc(r->m, op->bytes, &addr, &size);
    if (differs(r, "success", status == DEV_OK, expected))
        return false;
    if (!expected)
        return compare_oom(r);
    r->live[op->id] = true;
    r->addr[op->id] = addr;
    return !differs(r, "address", got.address, addr) && !differs(r, "size", got.bytes, size);
}

static bool run_pool(struct run *r, const struct script_op *op)
{
    unsigned p = op->id;
    if (op->kind == BEGIN && !r->open[p]) {
        if (r->pool[p] == 0) {
            assert_int_equal(dev_pool_create(r->a, &r->pool[p]), DEV_OK);
            r->ref_pool[p] = ref_pool_create(r->m);
        }
        assert_int_equal(dev_pool_begin(r->a, r->pool[p]), DEV_OK);
        ref_pool_begin(r->m, r->ref_pool[p]);
        r->open[p] = true;
    } else if (op->kind == END && r->open[p]) {
        assert_int_equal(dev_pool_end(r->a, r->pool[p]), DEV_OK);
        ref_pool_end(r->m, r->ref_pool[p]);
        r->open[p] = false;
    } else if (op->kind == RELEASE && r->pool[p] != 0 && !r->open[p]) {
        assert_int_equal(dev_pool_release(r->a, r->pool[p]), DEV_OK);
        ref_pool_release(r->m, r->ref_pool[p]);
        r->pool[p] = 0;
    }
    return true;
}

static bool run_op(struct run *r, const struct script_op *op)
{
    uint64_t address;
    switch (op->kind) {
    case ALLOC:
        return r->live[op->id] || run_alloc(r, op);
    case FREE:
        if (!r->live[op->id])
            return true;
        assert_int_equal(dev_free(r->a, r->addr[op->id]), DEV_OK);
        ref_free(r->m, r->addr[op->id]);
        r->live[op->id] = false;
        return true;
    case EMPTY:
        assert_int_equal(dev_empty_cache(r->a), DEV_OK);
        ref_empty_cache(r->m);
        return true;
    case FOREIGN:
        return !differs(r, "device_alloc", dev_foreign_allocate(r->a, op->bytes, &address) == DEV_OK, ref_foreign(r->m, op->bytes));
    default:
        return run_pool(r, op);
    }
}

/* Number of the first operation that disagrees, `count` if none does. */
static size_t run_script(const struct setting *setting, const struct script_op *script, size_t count, char why[256])
{
    struct dev_config config;
    struct run r = {0};
    size_t i;
    dev_config_init(&config);
    assert_true(dev_settings_parse(&config.settings, setting->name, r.why, sizeof r.why));
    config.cap_bytes = setting->ref.cap;
    config.machine.total_bytes = setting->ref.total;
    config.machine.free_bytes = setting->ref.free;
    assert_int_equal(dev_allocator_create(&config, &r.a), DEV_OK);
    r.m = ref_create(&setting->ref);
    for (i = 0; i < count; i++) {
        const char *wrong = NULL;
        if (!run_op(&r, &script[i]) || !compare_events(&r) || !compare_counters(&r))
            break;
        if ((i % LAYOUT_EVERY == 0 || i + 1 == count) && !compare_layout(&r))
            break;
        if ((wrong = dev_check(r.a)) != NULL) {
            snprintf(r.why, sizeof r.why, "check: %s", wrong);
            break;
        }
    }
    memcpy(why, r.why, sizeof r.why);
    dev_allocator_destroy(r.a);
    ref_destroy(r.m);
    return i;
}

/* Leaves out ever smaller parts as long as what remains fails. Returns its length. */
static size_t shorten(const struct setting *setting, struct script_op *script, size_t count)
{
    char why[256];
    struct script_op *attempt = malloc((count + 1) * sizeof *attempt);
    assert_non_null(attempt);
    for (size_t part = count / 2; part > 0; part /= 2)
        for (size_t from = 0; from + part <= count;) {
            memcpy(attempt, script, from * sizeof *script);
            memcpy(attempt + from, script + from + part, (count - from - part) * sizeof *script);
            size_t stop = run_script(setting, attempt, count - part, why);
            if (stop < count - part) {
                count = stop + 1;
                memcpy(script, attempt, count * sizeof *script);
            } else {
                from += part;
            }
        }
    free(attempt);
    return count;
}

static void print_script(const struct setting *setting, const struct script_op *script, size_t count)
{
    char why[256];
    run_script(setting, script, count, why);
    print_error("setting '%s', cap %" PRIu64 ", free %" PRIu64 ": %s\n", setting->name, setting->ref.cap, setting->ref.free, why);
    for (size_t i = 0; i < count; i++)
        print_error("  %s %u %" PRIu64 "\n", KINDS[script[i].kind], script[i].id, script[i].bytes);
}

static void random_scripts__under_a_setting__agree_with_the_reference(void **state)
{
    const struct setting *setting = *state;
    static struct script_op script[SCRIPT_OPS];
    char why[256];
    const char *scripts = getenv("PAGESIM_TORCH_SCRIPTS");
    unsigned long count = scripts ? strtoul(scripts, NULL, 10) : 40;
    for (unsigned long seed = 1; seed <= count; seed++) {
        random_state = seed * 1000003;
        random_script(script, SCRIPT_OPS, seed % 2 == 0);
        size_t stop = run_script(setting, script, SCRIPT_OPS, why);
        if (stop == SCRIPT_OPS)
            continue;
        print_error("seed %lu, operation %zu: %s\n", seed, stop, why);
        print_script(setting, script, shorten(setting, script, stop + 1));
        fail();
    }
}

/* ---- settings ---- */

#define TOTAL (4096 * MIB)
#define DEVICE .total = TOTAL, .free = TOTAL - 300 * MIB, .top = 0x7f0000000000, .range = 0x302000000

static struct setting settings[] = {
    {"", {.max_split = REF_NONE, .cap = 1024 * MIB, DEVICE}},
    {"", {.max_split = REF_NONE, .cap = REF_NONE, .total = TOTAL, .free = 700 * MIB + 123456, .top = 0x7f0000000000, .range = 0x302000000}},
    {"expandable_segments:True", {.expandable = true, .max_split = REF_NONE, .cap = 700 * MIB, DEVICE}},
    {"expandable_segments:True",
     {.expandable = true, .max_split = REF_NONE, .cap = REF_NONE, .total = TOTAL, .free = 600 * MIB + 5, .top = 0x7f0000000000,
      .range = 0x302000000}},
    {"max_split_size_mb:21", {.max_split = 21 * MIB, .cap = 600 * MIB, DEVICE}},
    {"max_split_size_mb:64", {.max_split = 64 * MIB, .cap = 900 * MIB, DEVICE}},
    {"max_split_size_mb:128",
     {.max_split = 128 * MIB, .cap = REF_NONE, .total = TOTAL, .free = 900 * MIB, .top = 0x7f0000000000, .range = 0x302000000}},
    {"garbage_collection_threshold:0.8", {.max_split = REF_NONE, .gc = 0.8, .cap = 1000 * MIB + 7, DEVICE}},
    {"garbage_collection_threshold:0.3", {.max_split = REF_NONE, .gc = 0.3, .cap = 1500 * MIB, DEVICE}},
    {"roundup_power2_divisions:4", {.max_split = REF_NONE, .divisions = 4, .cap = 1024 * MIB, DEVICE}},
    {"roundup_power2_divisions:1", {.max_split = REF_NONE, .divisions = 1, .cap = 800 * MIB, DEVICE}},
    {"max_split_size_mb:64,garbage_collection_threshold:0.6", {.max_split = 64 * MIB, .gc = 0.6, .cap = 900 * MIB, DEVICE}},
    {"expandable_segments:True,max_split_size_mb:64,garbage_collection_threshold:0.6",
     {.expandable = true, .max_split = 64 * MIB, .gc = 0.6, .cap = 700 * MIB, DEVICE}},
    {"expandable_segments:True,roundup_power2_divisions:8,max_split_size_mb:21",
     {.expandable = true, .max_split = 21 * MIB, .divisions = 8, .cap = 500 * MIB, DEVICE}},
};
#define SETTINGS (sizeof settings / sizeof settings[0])

int main(void)
{
    static struct CMUnitTest tests[SETTINGS];
    static char names[SETTINGS][160];
    for (size_t i = 0; i < SETTINGS; i++) {
        snprintf(names[i], sizeof names[i], "%zu '%s': random scripts, agree with the reference", i, settings[i].name);
        tests[i] = (struct CMUnitTest){.name = names[i], .test_func = random_scripts__under_a_setting__agree_with_the_reference,
                                       .initial_state = &settings[i]};
    }
    return _cmocka_run_group_tests("torch reference", tests, SETTINGS, NULL, NULL) != 0;
}
