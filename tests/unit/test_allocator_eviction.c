/* Eviction orders: what holds for every one of them, and the exact order of those that have a plain twin. */
#include "tests/check.h"

#include <stdbool.h>
#include <string.h>

#include "allocator/eviction.h"

#define OBJECTS 50

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state % below);
}

/* Every object, by what its owner may do with it. */
enum where { ABSENT, IN_USE, EVICTABLE };

struct owner {
    struct kv_eviction *order;
    enum where where[OBJECTS];
    uint32_t evictable;
    /* The plain twin of lru: objects in the order they were given, oldest first. */
    uint32_t given[OBJECTS];
};

static void drop(struct owner *owner, uint32_t object)
{
    for (uint32_t i = 0; i < owner->evictable; i++)
        if (owner->given[i] == object) {
            memmove(&owner->given[i], &owner->given[i + 1], (owner->evictable - i - 1) * sizeof owner->given[0]);
            owner->evictable--;
            return;
        }
    fail_msg("object %u was not evictable", object);
}

/* The next step that the contract allows for the object. Returns a victim, or OBJECTS. */
static uint32_t step(struct owner *owner, uint32_t object)
{
    const struct kv_eviction_ops *ops = owner->order->ops;
    uint32_t victim = OBJECTS;

    switch (owner->where[object]) {
    case ABSENT:
        if (ops->insert != NULL)
            ops->insert(owner->order, object, &(struct kv_content){draw(100), KV_OBJECT_NONE, draw(10)});
        owner->where[object] = IN_USE;
        break;
    case IN_USE:
        ops->give(owner->order, object);
        owner->where[object] = EVICTABLE;
        owner->given[owner->evictable++] = object;
        break;
    case EVICTABLE:
        if (draw(3) == 0) {
            if (owner->order->count == owner->order->pinned) {
                ops->clock(owner->order, ops->next_unpin(owner->order));
                assert_true(owner->order->count > owner->order->pinned);
            }
            uint32_t announced = ops->next_victim != NULL ? ops->next_victim(owner->order) : OBJECTS;

            victim = ops->evict(owner->order);
            if (announced != OBJECTS)
                check_u64_eq(victim, announced);
            break;
        }
        drop(owner, object);
        if (draw(2)) {
            ops->take(owner->order, object);
            owner->where[object] = IN_USE;
        } else {
            ops->touch(owner->order, object);
            owner->given[owner->evictable++] = object;
        }
    }
    return victim;
}

static void run_steps(const struct kv_eviction_ops *ops, bool oldest_first)
{
    struct owner owner = {.order = kv_eviction_create(ops, OBJECTS, NULL)};

    assert_non_null(owner.order);
    for (int i = 0; i < 20000; i++) {
        uint32_t victim = step(&owner, draw(OBJECTS));

        if (victim != OBJECTS) {
            assert_true(victim < OBJECTS && owner.where[victim] == EVICTABLE);
            if (oldest_first)
                check_u64_eq(victim, owner.given[0]);
            drop(&owner, victim);
            owner.where[victim] = ABSENT;
        }
        check_u64_eq(owner.order->count, owner.evictable);
        if (ops->check != NULL)
            check_str_eq(ops->check(owner.order), NULL);
    }
    ops->destroy(owner.order);
}

static void every_order__random_steps__evicts_what_is_evictable(void **fixture)
{
    (void)fixture;
    assert_true(kv_eviction_count() > 0);
    for (size_t i = 0; i < kv_eviction_count(); i++)
        run_steps(kv_eviction_at(i), false);
}

static void lru__random_steps__evicts_what_was_given_first(void **fixture)
{
    (void)fixture;
    run_steps(kv_eviction_find("lru"), true);
}

static void registry__names__found_in_order(void **fixture)
{
    (void)fixture;
    for (size_t i = 0; i < kv_eviction_count(); i++) {
        assert_ptr_equal(kv_eviction_find(kv_eviction_at(i)->name), kv_eviction_at(i));
        if (i > 0)
            assert_true(strcmp(kv_eviction_at(i - 1)->name, kv_eviction_at(i)->name) < 0);
        kv_eviction_at(i)->destroy(NULL);
    }
    assert_null(kv_eviction_find("LRU"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order__random_steps__evicts_what_is_evictable),
        cmocka_unit_test(lru__random_steps__evicts_what_was_given_first),
        cmocka_unit_test(registry__names__found_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
