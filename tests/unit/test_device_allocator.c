/* The rules, case by case, with the arithmetic beside them. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/device/device_allocator.h"

#define KIB 1024ull
#define MIB DEV_MIB
#define GIB (1024 * MIB)

static struct dev_allocator *make(const char *setting, uint64_t cap_bytes)
{
    struct dev_config config;
    struct dev_allocator *a = NULL;
    char why[128];
    dev_config_init(&config);
    assert_true(dev_settings_parse(&config.settings, setting, why, sizeof why));
    config.cap_bytes = cap_bytes;
    assert_int_equal(dev_allocator_create(&config, &a), DEV_OK);
    return a;
}

static struct dev_allocation take(struct dev_allocator *a, uint64_t bytes)
{
    struct dev_allocation block = {0};
    assert_int_equal(dev_allocate(a, bytes, &block), DEV_OK);
    assert_null(dev_check(a));
    return block;
}

static void give(struct dev_allocator *a, struct dev_allocation block)
{
    assert_int_equal(dev_free(a, block.address), DEV_OK);
    assert_null(dev_check(a));
}

static void refuse(struct dev_allocator *a, uint64_t bytes)
{
    struct dev_allocation block = {7, 7};
    assert_int_equal(dev_allocate(a, bytes, &block), DEV_OUT_OF_MEMORY);
    check_u64_eq(block.address, 7); /* not written */
    assert_null(dev_check(a));
}

static void allocate__sizes__rounding_and_segment(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, block, reserved;
    } cases[] = {
        {1, 512, 2 * MIB},
        {100, 512, 2 * MIB},
        {512, 512, 2 * MIB},
        {513, 1024, 2 * MIB},
        {1 * MIB, 1 * MIB, 2 * MIB},                     /* exactly 1 MiB is small */
        {1 * MIB + 1, 1 * MIB + 512, 20 * MIB},
        {10 * MIB - 512, 10 * MIB - 512, 20 * MIB},      /* below 10 MiB: 20 MiB segment, split */
        {10 * MIB, 10 * MIB, 10 * MIB},
        {10 * MIB + 512 * KIB, 10 * MIB + 512 * KIB, 12 * MIB}, /* 1.5 MiB remain: split */
        {11 * MIB, 12 * MIB, 12 * MIB},                  /* exactly 1 MiB remains: not split */
        {11 * MIB - 512, 11 * MIB - 512, 12 * MIB},      /* 512 bytes more: split */
        {1 * GIB + 1, 1 * GIB + 512, 1 * GIB + 2 * MIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dev_allocator *a = make("", DEV_NONE);
        check_u64_eq(take(a, cases[i].bytes).bytes, cases[i].block);
        check_u64_eq(dev_stats(a)->reserved_bytes.now, cases[i].reserved);
        check_u64_eq(dev_stats(a)->requested_bytes.now, cases[i].bytes);
        dev_allocator_destroy(a);
    }
}

/* Between 1024 and 2048 with four divisions: 1280, 1536, 1792. */
static void allocate__power2_divisions__next_of_equal_steps(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, block;
    } cases[] = {
        {1200, 1536},             /* not above 512 * 4: multiples of 512 */
        {2048, 2048},
        {2049, 2560},             /* 2048 to 4096 in steps of 512 */
        {4097, 5120},             /* 4096 to 8192 in steps of 1024 */
        {600 * KIB, 640 * KIB},   /* 512 to 1024 KiB in steps of 128 */
        {640 * KIB, 640 * KIB},
        {1024 * KIB, 1024 * KIB}, /* a power of two stays */
    };
    struct dev_allocator *a = make("roundup_power2_divisions:4", DEV_NONE);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_u64_eq(take(a, cases[i].bytes).bytes, cases[i].block);
    dev_allocator_destroy(a);
}

static void allocate__equal_holes__lowest_address(void **state)
{
    (void)state;
    struct dev_allocator *a = make("", DEV_NONE);
    struct dev_allocation blocks[6];
    for (int i = 0; i < 6; i++)
        blocks[i] = take(a, 100 * KIB);
    give(a, blocks[3]);
    give(a, blocks[1]);
    check_u64_eq(take(a, 100 * KIB).address, blocks[1].address);
    check_u64_eq(take(a, 100 * KIB).address, blocks[3].address);
    dev_allocator_destroy(a);
}

static void free__between_free_neighbours__one_block(void **state)
{
    (void)state;
    struct dev_allocator *a = make("", DEV_NONE);
    struct dev_allocation x = take(a, 2 * MIB), y = take(a, 3 * MIB), z = take(a, 4 * MIB);
    give(a, x);
    give(a, z); /* joins the rest of the 20 MiB segment */
    check_u64_eq(dev_stats(a)->inactive_splits.now, 2);
    give(a, y);
    check_u64_eq(dev_stats(a)->inactive_splits.now, 0); /* the segment is whole again */
    check_u64_eq(dev_stats(a)->reserved_bytes.now, 20 * MIB);
    dev_allocator_destroy(a);
}

/* 8 GiB allowed: four segments of 2 GiB, each half used. 4 GiB are free, and 2 GiB cannot be had. */
static void allocate__half_of_every_segment_live__out_of_memory_though_free(void **state)
{
    (void)state;
    struct dev_allocator *a = make("", 8 * GIB);
    struct dev_allocation blocks[8];
    for (int i = 0; i < 4; i++)
        blocks[i] = take(a, 2 * GIB);
    for (int i = 0; i < 4; i++)
        give(a, blocks[i]);
    for (int i = 0; i < 8; i++)
        blocks[i] = take(a, 1 * GIB);
    for (int i = 0; i < 8; i += 2)
        give(a, blocks[i]);
    check_u64_eq(dev_stats(a)->inactive_split_bytes.now, 4 * GIB);
    refuse(a, 2 * GIB);
    const struct dev_oom *oom = dev_last_oom(a);
    char message[1024];
    check_u64_eq(oom->unallocated_bytes, 4 * GIB);
    check_u64_eq(dev_stats(a)->retries, 1);
    check_u64_eq(dev_stats(a)->ooms, 1);
    dev_oom_message(oom, message, sizeof message);
    check_str_has(message, "Tried to allocate 2.00 GiB.");
    check_str_has(message, "8.00 GiB allowed; Of the allocated memory 4.00 GiB is allocated by PyTorch, and 4.00 GiB is reserved");
    dev_allocator_destroy(a);
}

/* The same with expandable segments: the free pages are unmapped and mapped elsewhere. Seven blocks of 1 GiB take 359 pages of 20 MiB,
 * 7180 MiB, so the eighth needs 12 MiB more than 8 GiB to be allowed. */
static void allocate__expandable__free_pages_move(void **state)
{
    (void)state;
    struct dev_allocator *a = make("expandable_segments:True", 8 * GIB + 12 * MIB);
    struct dev_allocation blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = take(a, 1 * GIB);
    for (int i = 0; i < 8; i += 2)
        give(a, blocks[i]);
    take(a, 2 * GIB);
    check_u64_eq(dev_stats(a)->ooms, 0);
    check_u64_eq(dev_stats(a)->retries, 1);
    dev_allocator_destroy(a);
}

static void allocate__refused__cache_is_emptied(void **state)
{
    (void)state;
    struct dev_allocator *a = make("", 100 * MIB);
    give(a, take(a, 40 * MIB));
    give(a, take(a, 512));
    refuse(a, 200 * MIB);
    check_u64_eq(dev_stats(a)->reserved_bytes.now, 0);
    size_t count;
    const struct dev_event *events = dev_events(a, &count);
    check_u64_eq(count, 2); /* the large segment first */
    check_u64_eq(events[0].bytes, 40 * MIB);
    check_u64_eq(events[1].bytes, 2 * MIB);
    dev_allocator_destroy(a);
}

static void pools__private__never_lend(void **state)
{
    (void)state;
    struct dev_allocator *a = make("", DEV_NONE);
    uint32_t pool;
    assert_int_equal(dev_pool_create(a, &pool), DEV_OK);
    give(a, take(a, 30 * MIB));
    assert_int_equal(dev_pool_begin(a, pool), DEV_OK);
    struct dev_allocation inside = take(a, 30 * MIB);
    check_u64_eq(dev_stats(a)->segments.now, 2); /* the free 30 MiB outside were not taken */
    assert_int_equal(dev_pool_end(a, pool), DEV_OK);
    give(a, inside);
    assert_int_equal(dev_empty_cache(a), DEV_OK);
    check_u64_eq(dev_stats(a)->segments.now, 1); /* the pool keeps its own */
    assert_int_equal(dev_pool_release(a, pool), DEV_OK);
    check_u64_eq(dev_stats(a)->segments.now, 0);
    dev_allocator_destroy(a);
}

static void pools__wrong_use__status_and_no_change(void **state)
{
    (void)state;
    struct dev_allocator *a = make("", DEV_NONE);
    uint32_t pool;
    assert_int_equal(dev_pool_begin(a, 1), DEV_UNKNOWN_POOL);
    assert_int_equal(dev_pool_begin(a, 0), DEV_UNKNOWN_POOL);
    assert_int_equal(dev_pool_create(a, &pool), DEV_OK);
    assert_int_equal(dev_pool_end(a, pool), DEV_POOL_NOT_OPEN);
    assert_int_equal(dev_pool_begin(a, pool), DEV_OK);
    assert_int_equal(dev_pool_begin(a, pool), DEV_POOL_OPEN);
    assert_int_equal(dev_pool_release(a, pool), DEV_POOL_OPEN);
    assert_int_equal(dev_pool_end(a, pool), DEV_OK);
    assert_int_equal(dev_pool_release(a, pool), DEV_OK);
    assert_int_equal(dev_pool_release(a, pool), DEV_UNKNOWN_POOL);
    assert_int_equal(dev_pool_begin(a, UINT32_MAX), DEV_UNKNOWN_POOL);
    dev_allocator_destroy(a);
}

static void allocate__absurd_sizes__refused_or_out_of_memory(void **state)
{
    (void)state;
    struct dev_allocator *a = make("", DEV_NONE);
    struct dev_allocation block;
    assert_int_equal(dev_allocate(a, 0, &block), DEV_BAD_SIZE);
    assert_int_equal(dev_allocate(a, DEV_BYTES_MAX + 1, &block), DEV_BAD_SIZE);
    assert_int_equal(dev_allocate(a, UINT64_MAX, &block), DEV_BAD_SIZE);
    check_u64_eq(dev_stats(a)->ooms, 0);
    refuse(a, DEV_BYTES_MAX);
    refuse(a, DEV_BYTES_MAX - 1);
    check_u64_eq(dev_last_oom(a)->tried_bytes, DEV_BYTES_MAX);
    dev_allocator_destroy(a);
}

static void allocate__device_of_2_48_bytes__addresses_and_sums_hold(void **state)
{
    (void)state;
    struct dev_config config;
    struct dev_allocator *a;
    dev_config_init(&config);
    config.machine.total_bytes = config.machine.free_bytes = DEV_BYTES_MAX;
    config.machine.top_address = DEV_BYTES_MAX;
    assert_int_equal(dev_allocator_create(&config, &a), DEV_OK);
    take(a, DEV_BYTES_MAX / 2);
    take(a, DEV_BYTES_MAX / 4);
    refuse(a, DEV_BYTES_MAX / 2);
    dev_allocator_destroy(a);
    config.settings.expandable_segments = true;
    assert_int_equal(dev_allocator_create(&config, &a), DEV_OK);
    take(a, DEV_BYTES_MAX / 4 - 64 * MIB);
    take(a, 1);
    dev_allocator_destroy(a);
    config.machine.total_bytes++;
    assert_int_equal(dev_allocator_create(&config, &a), DEV_BAD_SIZE);
}

static void free__twice_or_never_allocated__unknown_address(void **state)
{
    (void)state;
    struct dev_allocator *a = make("", DEV_NONE);
    struct dev_allocation block = take(a, 1000);
    assert_int_equal(dev_free(a, block.address + 512), DEV_UNKNOWN_ADDRESS);
    assert_int_equal(dev_free(a, 0), DEV_UNKNOWN_ADDRESS);
    give(a, block);
    assert_int_equal(dev_free(a, block.address), DEV_UNKNOWN_ADDRESS);
    assert_int_equal(dev_free(a, UINT64_MAX), DEV_UNKNOWN_ADDRESS);
    assert_null(dev_check(a));
    dev_allocator_destroy(a);
}

/* With m = 64 MiB: no split of large blocks, no small request into them, and at most 20 MiB wasted by a large one. */
static void max_split__large_blocks__kept_whole(void **state)
{
    (void)state;
    struct dev_allocator *a = make("max_split_size_mb:64", DEV_NONE);
    struct dev_allocation large = take(a, 100 * MIB);
    give(a, large);
    check_u64_eq(take(a, 30 * MIB).bytes, 30 * MIB); /* not from the 100 MiB */
    check_u64_eq(dev_stats(a)->segments.now, 2);
    struct dev_allocation again = take(a, 80 * MIB + 512); /* 100 < 80 + 20 MiB: taken whole */
    check_u64_eq(again.address, large.address);
    check_u64_eq(again.bytes, 100 * MIB);
    give(a, again);
    take(a, 80 * MIB); /* 20 MiB larger: not taken */
    check_u64_eq(dev_stats(a)->segments.now, 3);
    check_u64_eq(dev_stats(a)->oversize_segments.now, 2);
    check_u64_eq(dev_stats(a)->oversize_allocations.now, 1);
    dev_allocator_destroy(a);
}

/* Whole pages of 2 MiB, and the last one is never handed out: with 11 free 10 can be had. */
static void device__last_page__never_given(void **state)
{
    (void)state;
    struct dev_config config;
    struct dev_allocator *a;
    dev_config_init(&config);
    config.machine.total_bytes = 64 * MIB;
    config.machine.free_bytes = 22 * MIB + 1;
    assert_int_equal(dev_allocator_create(&config, &a), DEV_OK);
    refuse(a, 22 * MIB);
    struct dev_allocation block = take(a, 20 * MIB);
    check_u64_eq(dev_device_free_bytes(a), 2 * MIB + 1);
    refuse(a, 1);
    give(a, block);
    uint64_t address;
    assert_int_equal(dev_empty_cache(a), DEV_OK);
    assert_int_equal(dev_foreign_allocate(a, 20 * MIB + 1, &address), DEV_OUT_OF_MEMORY);
    assert_int_equal(dev_foreign_allocate(a, 19 * MIB, &address), DEV_OK);
    check_u64_eq(dev_device_free_bytes(a), 2 * MIB + 1); /* 19 MiB take 10 pages */
    dev_allocator_destroy(a);
}

/* Top down in multiples of 32 MiB; the rest of a region serves small segments; a fresh process's two old holes come first. */
static void driver__segments__regions_from_the_top(void **state)
{
    (void)state;
    struct dev_allocator *a = make("", DEV_NONE);
    uint64_t top = dev_machine_h200.top_address;
    check_u64_eq(take(a, 200 * MIB).address, top - 224 * MIB);
    check_u64_eq(take(a, 200 * MIB).address, top - 448 * MIB);
    check_u64_eq(take(a, 1).address, top - 448 * MIB + 200 * MIB); /* behind the youngest region's block */
    check_u64_eq(take(a, 24 * MIB).address, top - 24 * MIB);       /* the older region has exactly that left */
    check_u64_eq(take(a, 24 * MIB).address, top + 488 * MIB);      /* only the old hole fits */
    dev_allocator_destroy(a);
    a = make("", DEV_NONE);
    check_u64_eq(take(a, 1).address, top + 414 * MIB);
    dev_allocator_destroy(a);
}

struct visit {
    size_t segments, blocks, limit;
    uint64_t last;
};

static bool count_segment(void *context, const struct dev_segment_info *segment)
{
    struct visit *v = context;
    assert_true(v->segments == 0 || segment->address > v->last);
    v->last = segment->address;
    v->segments++;
    v->blocks += segment->block_count;
    return v->segments < v->limit;
}

static void walk__segments__in_address_order_until_told(void **state)
{
    (void)state;
    struct dev_allocator *a = make("", DEV_NONE);
    for (int i = 0; i < 5; i++)
        take(a, 40 * MIB + (uint64_t)i * 512);
    struct visit all = {.limit = 100}, two = {.limit = 2};
    assert_int_equal(dev_walk(a, count_segment, &all), DEV_OK);
    check_u64_eq(all.segments, 5);
    check_u64_eq(all.blocks, 9); /* 40 MiB fill their segment, the others leave 2 MiB less 512 i */
    assert_int_equal(dev_walk(a, count_segment, &two), DEV_OK);
    check_u64_eq(two.segments, 2);
    dev_allocator_destroy(a);
}

static void restore__segment_with_live_blocks__freed_like_any(void **state)
{
    (void)state;
    struct dev_allocator *a = make("", DEV_NONE);
    const struct dev_restored_block blocks[] = {{4 * MIB, 4 * MIB, true}, {6 * MIB, 0, false}, {10 * MIB, 9 * MIB, true}};
    struct dev_restored segment = {.address = 0, .block_count = 3, .blocks = blocks};
    uint64_t address, other;
    assert_int_equal(dev_restore(a, &segment, &address), DEV_OK);
    assert_null(dev_check(a));
    check_u64_eq(dev_stats(a)->requested_bytes.now, 13 * MIB);
    check_u64_eq(dev_stats(a)->inactive_split_bytes.now, 6 * MIB);
    check_u64_eq(take(a, 5 * MIB).address, address + 4 * MIB);
    segment.address = 10 * MIB; /* inside the first one */
    assert_int_equal(dev_restore(a, &segment, &other), DEV_BAD_SIZE);
    assert_int_equal(dev_free(a, address + 10 * MIB), DEV_OK);
    assert_int_equal(dev_free(a, address), DEV_OK);
    assert_null(dev_check(a));
    dev_allocator_destroy(a);
}

static void restore__expandable__grows_from_where_it_was(void **state)
{
    (void)state;
    struct dev_allocator *a = make("expandable_segments:True", DEV_NONE);
    const struct dev_restored_block blocks[] = {{15 * MIB, 15 * MIB, true}, {5 * MIB, 0, false}};
    struct dev_restored segment = {.address = 1000 * MIB, .expandable = true, .block_count = 2, .blocks = blocks};
    uint64_t first, second;
    assert_int_equal(dev_restore(a, &segment, &first), DEV_OK);
    segment.address += 20 * MIB; /* would touch the first stretch */
    assert_int_equal(dev_restore(a, &segment, &second), DEV_BAD_SIZE);
    segment.address += 20 * MIB;
    assert_int_equal(dev_restore(a, &segment, &second), DEV_OK);
    check_u64_eq(second - first, 40 * MIB);
    assert_null(dev_check(a));
    /* 25 MiB: the 5 free ones and the 20 of the gap behind them. */
    check_u64_eq(take(a, 25 * MIB).address, first + 15 * MIB);
    dev_allocator_destroy(a);
}

static void size_text__limits__as_pytorch_prints(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 bytes"},           {1024, "1024 bytes"},        {1025, "1.00 KiB"},          {1 * MIB, "1024.00 KiB"},
        {1 * MIB + 1, "1.00 MiB"}, {1 * GIB, "1024.00 MiB"},   {150109880320, "139.80 GiB"}, {DEV_BYTES_MAX, "262144.00 GiB"},
    };
    char text[32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_str_eq(dev_size_text(cases[i].bytes, text, sizeof text), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocate__sizes__rounding_and_segment),
        cmocka_unit_test(allocate__power2_divisions__next_of_equal_steps),
        cmocka_unit_test(allocate__equal_holes__lowest_address),
        cmocka_unit_test(free__between_free_neighbours__one_block),
        cmocka_unit_test(allocate__half_of_every_segment_live__out_of_memory_though_free),
        cmocka_unit_test(allocate__expandable__free_pages_move),
        cmocka_unit_test(allocate__refused__cache_is_emptied),
        cmocka_unit_test(pools__private__never_lend),
        cmocka_unit_test(pools__wrong_use__status_and_no_change),
        cmocka_unit_test(allocate__absurd_sizes__refused_or_out_of_memory),
        cmocka_unit_test(allocate__device_of_2_48_bytes__addresses_and_sums_hold),
        cmocka_unit_test(free__twice_or_never_allocated__unknown_address),
        cmocka_unit_test(max_split__large_blocks__kept_whole),
        cmocka_unit_test(device__last_page__never_given),
        cmocka_unit_test(driver__segments__regions_from_the_top),
        cmocka_unit_test(walk__segments__in_address_order_until_told),
        cmocka_unit_test(restore__segment_with_live_blocks__freed_like_any),
        cmocka_unit_test(restore__expandable__grows_from_where_it_was),
        cmocka_unit_test(size_text__limits__as_pytorch_prints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
