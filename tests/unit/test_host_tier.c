/* The host tier: against a list of keys in the reference orders, on random operations; and its orders' limits. */
#include "tests/check.h"

#include <stdbool.h>
#include <string.h>

#include "allocator/host_tier.h"
#include "tests/eviction_reference.h"

#define KEYS 60
#define CAPACITY_MAX 40

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* Keys that share buckets, tags, both or neither. */
static uint64_t key_of(uint64_t number)
{
    return number % 5 << 56 | number % 3 << 20 | number;
}

/* The tier as a list of keys, searched from one end to the other. */
struct slow_tier {
    struct reference order;
    uint64_t keys[CAPACITY_MAX];
    uint32_t capacity, count;
    uint64_t offloaded, already_there, fetched, evicted;
};

static uint32_t slow_find(const struct slow_tier *slow, uint64_t key)
{
    uint32_t i = 0;
    while (i < slow->count && slow->keys[i] != key)
        i++;
    return i;
}

static void slow_offload(struct slow_tier *slow, uint64_t key)
{
    uint32_t place = slow_find(slow, key);
    if (place < slow->count) {
        slow->already_there++;
        reference_touch(&slow->order, place);
        return;
    }
    reference_miss(&slow->order, key);
    if (slow->count < slow->capacity) {
        place = slow->count++;
    } else {
        place = reference_evict(&slow->order);
        slow->evicted++;
    }
    slow->keys[place] = key;
    reference_insert(&slow->order, place, &(struct kv_content){ .key = key, .parent = KV_OBJECT_NONE });
    reference_give(&slow->order, place);
    slow->offloaded++;
}

static void compare(const struct host_tier *tier, const struct slow_tier *slow)
{
    uint64_t keys[KEYS], expected = 0;
    for (uint64_t i = 0; i < KEYS; i++) {
        keys[i] = key_of(draw(KEYS));
        assert_int_equal(host_tier_has(tier, key_of(i)), slow_find(slow, key_of(i)) < slow->count);
    }
    while (expected < KEYS && slow_find(slow, keys[expected]) < slow->count)
        expected++;
    check_u64_eq(host_tier_leading(tier, keys, KEYS), expected);
    check_u64_eq(tier->used_blocks, slow->count);
    check_u64_eq(tier->offloaded, slow->offloaded);
    check_u64_eq(tier->already_there, slow->already_there);
    check_u64_eq(tier->fetched, slow->fetched);
    check_u64_eq(tier->evicted, slow->evicted);
    check_str_eq(host_tier_check(tier), NULL);
}

/* A tier of no values has the defaults. */
static const struct kv_value *defaults_of(const struct kv_eviction_ops *ops)
{
    static struct kv_value values[KV_OPTIONS_MAX];
    char why[200];
    assert_true(kv_options_parse(ops->options, NULL, values, why, sizeof why));
    return values;
}

static void run_operations(const struct kv_eviction_ops *ops, uint32_t capacity)
{
    struct slow_tier slow = { .capacity = capacity };
    struct host_tier *tier = host_tier_create(capacity, ops, NULL);
    assert_non_null(tier);
    assert_true(reference_init(&slow.order, ops->name, capacity, defaults_of(ops)));
    for (int i = 0; i < 600; i++) {
        uint64_t key = key_of(draw(KEYS));
        uint32_t place = slow_find(&slow, key);
        if (draw(3) == 0 && place < slow.count) {
            reference_touch(&slow.order, place);
            slow.fetched++;
            host_tier_fetch(tier, key);
        } else {
            slow_offload(&slow, key);
            host_tier_offload(tier, key);
        }
        compare(tier, &slow);
    }
    uint64_t keys[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) {
        keys[i] = key_of(draw(KEYS));
        slow_offload(&slow, keys[i]);
    }
    host_tier_offload_all(tier, keys, KEYS);
    compare(tier, &slow);
    host_tier_destroy(tier);
}

/* Orders that draw have no twin: what holds for any order must hold. */
static void run_unknown_order(const struct kv_eviction_ops *ops, uint32_t capacity)
{
    struct host_tier *tier = host_tier_create(capacity, ops, NULL);
    assert_non_null(tier);
    for (int i = 0; i < 600; i++) {
        uint64_t key = key_of(draw(KEYS)), before = tier->offloaded + tier->already_there;
        bool there = host_tier_has(tier, key);
        host_tier_offload(tier, key);
        assert_true(host_tier_has(tier, key));
        check_u64_eq(tier->offloaded + tier->already_there, before + 1);
        assert_true(!there || tier->already_there > 0);
        check_str_eq(host_tier_check(tier), NULL);
    }
    host_tier_destroy(tier);
}

static void every_allowed_order__random_operations__as_a_list_of_keys(void **fixture)
{
    uint32_t compared = 0;
    (void)fixture;
    for (size_t i = 0; i < kv_eviction_count(); i++) {
        static struct reference probe;
        const struct kv_eviction_ops *ops = kv_eviction_at(i);
        if (!host_tier_allows(ops))
            continue;
        bool twin = reference_init(&probe, ops->name, 1, defaults_of(ops));
        for (uint32_t capacity = 1; capacity <= CAPACITY_MAX; capacity += 1 + capacity / 3)
            (twin ? run_operations : run_unknown_order)(ops, capacity);
        compared += twin;
    }
    check_u64_eq(compared, 10); /* all allowed ones */
}

/* A block evicted by the device, its place in a prompt and its request forgotten, is a key. */
static void orders__that_need_more_than_keys__not_allowed(void **fixture)
{
    static const char *const needy[] = { "leaf-lru", "length-aware", "priority", "wa", "opt" };
    static const char *const fine[] = { "lru", "fifo", "lfu", "2q", "slru", "arc", "s3fifo", "sieve", "gdsf", "random" };
    (void)fixture;
    for (size_t i = 0; i < sizeof needy / sizeof needy[0]; i++)
        assert_false(host_tier_allows(kv_eviction_find(needy[i])));
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
        assert_true(host_tier_allows(kv_eviction_find(fine[i])));
}

/* lru, 3 blocks. Offload 3 2 1 (a chain, tail first), fetch 2 and 1 for a request that shares them: 3 is the oldest. The
 * device evicts them again, 2 then 1: nothing is copied. 4 comes: 3 goes. */
static void lru__fetched_blocks_stay__their_next_eviction_copies_nothing(void **fixture)
{
    struct host_tier *tier = host_tier_create(3, kv_eviction_find("lru"), NULL);
    (void)fixture;
    assert_non_null(tier);
    for (uint64_t key = 3; key > 0; key--)
        host_tier_offload(tier, key);
    check_u64_eq(host_tier_leading(tier, (uint64_t[]){ 1, 2, 3, 4 }, 4), 3);
    host_tier_fetch(tier, 2);
    host_tier_fetch(tier, 1);
    host_tier_offload(tier, 2);
    host_tier_offload(tier, 1);
    check_u64_eq(tier->offloaded, 3);
    check_u64_eq(tier->already_there, 2);
    host_tier_offload(tier, 4);
    assert_false(host_tier_has(tier, 3));
    assert_true(host_tier_has(tier, 1) && host_tier_has(tier, 2) && host_tier_has(tier, 4));
    check_u64_eq(tier->evicted, 1);
    host_tier_destroy(tier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allowed_order__random_operations__as_a_list_of_keys),
        cmocka_unit_test(orders__that_need_more_than_keys__not_allowed),
        cmocka_unit_test(lru__fetched_blocks_stay__their_next_eviction_copies_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
