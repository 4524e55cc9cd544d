/* What eviction orders are made of, on random calls against plain arrays: lists of ranks, the queue of ages, remembered keys. */
#include "tests/check.h"

#include <stdbool.h>
#include <stdint.h>

#include "allocator/age_queue.h"
#include "allocator/ghost_list.h"
#include "allocator/rank_lists.h"

enum { OBJECTS = 300, CALLS = 60000 };

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state % below);
}

/* An object of the plain twin; time 0: outside. */
struct plain {
    uint64_t rank, time;
};

static uint32_t first_of(const struct plain *plain)
{
    uint32_t first = OBJECTS;

    for (uint32_t i = 0; i < OBJECTS; i++) {
        if (plain[i].time == 0)
            continue;
        if (first == OBJECTS || plain[i].rank < plain[first].rank ||
            (plain[i].rank == plain[first].rank && plain[i].time < plain[first].time))
            first = i;
    }
    return first;
}

static void rank_lists__random_calls__as_an_array(void **fixture)
{
    static const uint64_t spans[] = {1, 3, 40, 100000, UINT32_MAX};

    (void)fixture;
    for (size_t s = 0; s < sizeof spans / sizeof spans[0]; s++) {
        struct rank_lists ranks;
        struct plain plain[OBJECTS] = {{0, 0}};
        uint32_t inside = 0;

        assert_true(rank_lists_init(&ranks, OBJECTS));
        for (uint64_t call = 1; call < CALLS; call++) {
            uint32_t object = inside > 0 && draw(8) == 0 ? rank_lists_first(&ranks) : draw(OBJECTS);

            if (plain[object].time > 0) {
                rank_lists_remove(&ranks, object);
                plain[object].time = 0;
                inside--;
            } else {
                /* Ranks near both ends, and neighbours that come in a row. */
                uint64_t rank = draw(2) ? draw((uint32_t)spans[s]) : UINT64_MAX - call / 7 % spans[s];

                rank_lists_push(&ranks, object, rank);
                plain[object] = (struct plain){rank, call};
                inside++;
            }
            check_u64_eq(ranks.count, inside);
            if (inside > 0 && call % 3 == 0) {
                uint32_t first = first_of(plain);

                check_u64_eq(rank_lists_first(&ranks), first);
                check_u64_eq(rank_lists_least(&ranks), plain[first].rank);
            }
            if (call % 997 == 0)
                assert_true(rank_lists_sound(&ranks));
        }
        rank_lists_release(&ranks);
    }
}

static void age_queue__random_calls__as_an_array(void **fixture)
{
    struct age_queue queue;
    struct plain plain[OBJECTS] = {{0, 0}}; /* the stamp is the rank */
    uint32_t inside = 0;

    (void)fixture;
    assert_true(age_queue_init(&queue, OBJECTS));
    for (uint64_t call = 1; call < CALLS; call++) {
        uint32_t object = inside > 0 && draw(4) == 0 ? age_queue_oldest(&queue) : draw(OBJECTS), kind = draw(4);

        assert_int_equal(age_queue_has(&queue, object), plain[object].time > 0);
        if (plain[object].time > 0) {
            age_queue_remove(&queue, object);
            plain[object].time = 0;
            inside--;
        } else if (kind == 0) {
            age_queue_stamp(&queue, object);
            plain[object].rank = call;
        } else {
            if (kind == 1 && plain[object].rank > 0) {
                age_queue_put_back(&queue, object);
            } else {
                age_queue_push(&queue, object);
                plain[object].rank = call;
            }
            plain[object].time = call;
            inside++;
        }
        check_u64_eq(queue.count, inside);
        if (inside > 0 && call % 3 == 0)
            check_u64_eq(age_queue_oldest(&queue), first_of(plain));
        if (call % 997 == 0)
            assert_true(age_queue_sound(&queue));
    }
    age_queue_release(&queue);
}

/* --- remembered keys ----------------------------------------------------------------------------------- */

enum { KEYS = 700 };

/* Small numbers, multiples of 2^40, and numbers as hashes make them. */
static uint64_t key_of(uint32_t i)
{
    if (i % 3 == 0)
        return i;
    return i % 3 == 1 ? (uint64_t)i << 40 : (i + 1) * UINT64_C(0xbf58476d1ce4e5b9) ^ UINT64_C(0x94d049bb133111eb);
}

static void ghost_list__random_calls__as_an_array(void **fixture)
{
    static const uint32_t capacities[] = {0, 1, 2, 50, 333};

    (void)fixture;
    for (size_t c = 0; c < sizeof capacities / sizeof capacities[0]; c++) {
        struct ghost_list list;
        uint64_t added[KEYS] = {0}; /* when; 0: not there */
        uint32_t slots[KEYS] = {0}, count = 0;

        assert_true(ghost_list_init(&list, capacities[c]));
        for (uint64_t call = 1; call < CALLS; call++) {
            uint32_t i = draw(KEYS), oldest = KEYS, kind = draw(10);

            for (uint32_t k = 0; k < KEYS; k++)
                if (added[k] > 0 && (oldest == KEYS || added[k] < added[oldest]))
                    oldest = k;
            assert_int_equal(ghost_list_has(&list, key_of(i)), added[i] > 0);
            check_u64_eq(ghost_list_find(&list, key_of(i)), added[i] > 0 ? slots[i] : 0);
            ghost_list_prefetch(&list, key_of(i));
            if (kind < 6) {
                bool full = added[i] == 0 && count == capacities[c];
                uint32_t slot = ghost_list_add(&list, key_of(i));

                assert_true(slot <= capacities[c] && (slot > 0) == (capacities[c] > 0));
                if (capacities[c] == 0)
                    continue;
                count += added[i] == 0 && !full;
                if (full)
                    added[oldest] = 0;
                added[i] = call;
                slots[i] = slot;
                for (uint32_t k = 0; k < KEYS; k++) /* nobody else has the slot */
                    assert_false(k != i && added[k] > 0 && slots[k] == slot);
            } else if (kind < 9) {
                assert_int_equal(ghost_list_remove(&list, key_of(i)), added[i] > 0);
                count -= added[i] > 0;
                added[i] = 0;
            } else if (count > 0) {
                ghost_list_drop_oldest(&list);
                added[oldest] = 0;
                count--;
            }
            check_u64_eq(list.count, count);
        }
        ghost_list_release(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_lists__random_calls__as_an_array),
        cmocka_unit_test(age_queue__random_calls__as_an_array),
        cmocka_unit_test(ghost_list__random_calls__as_an_array),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
