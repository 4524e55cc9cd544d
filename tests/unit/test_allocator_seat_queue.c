/* seat_queue and object_heap on sizes where their levels matter; ghost_list against a plain list. */
#include "tests/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/ghost_list.h"
#include "allocator/object_heap.h"
#include "allocator/seat_queue.h"

enum { OBJECTS = 10000 };

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state % below);
}

/* The member of the oldest arrival that is shown; arrivals[i] is 0 for those that are none. */
static uint32_t first_shown(const uint64_t *arrivals, const bool *shown)
{
    uint32_t first = UINT32_MAX;

    for (uint32_t i = 0; i < OBJECTS; i++)
        if (arrivals[i] != 0 && shown[i] && (first == UINT32_MAX || arrivals[i] < arrivals[first]))
            first = i;
    return first;
}

static void check_first(const struct seat_queue *queue, const uint64_t *arrivals, const bool *shown)
{
    uint32_t seat = seat_queue_next(queue, 0), expected = first_shown(arrivals, shown), count;

    check_u64_eq(seat == SEAT_NONE ? UINT32_MAX : seat_queue_object(queue, seat), expected);
    assert_true(seat_queue_sound(queue, &count));
}

/* 400,000 steps: seats are closed up about 15 times. Phases with few shown members search far. */
static void seats__random_steps__the_oldest_shown(void **fixture)
{
    static uint64_t arrivals[OBJECTS];
    static bool shown[OBJECTS];
    struct seat_queue queue;

    (void)fixture;
    assert_true(seat_queue_init(&queue, OBJECTS));
    for (uint64_t step = 1; step <= 400000; step++) {
        uint32_t object = draw(OBJECTS);
        bool sparse = step / 50000 % 2 != 0;

        if (arrivals[object] == 0) {
            seat_queue_push(&queue, object);
            arrivals[object] = step;
            shown[object] = true;
        } else if (draw(3) == 0) {
            seat_queue_remove(&queue, object);
            arrivals[object] = 0;
        } else if (shown[object]) {
            seat_queue_hide(&queue, object);
            shown[object] = false;
        } else if (!sparse || draw(50) == 0) {
            seat_queue_show(&queue, object);
            shown[object] = true;
        }
        if (step % 2000 == 0)
            check_first(&queue, arrivals, shown);
    }
    seat_queue_release(&queue);
}

/* Only one of the seats 0 .. 9,999 is shown at a time: found from before it, not from after it. */
static void seats__one_shown__found_from_anywhere(void **fixture)
{
    static const uint32_t places[] = {0, 63, 64, 4095, 4096, 9999};
    struct seat_queue queue;

    (void)fixture;
    assert_true(seat_queue_init(&queue, OBJECTS));
    for (uint32_t i = 0; i < OBJECTS; i++) {
        seat_queue_push(&queue, i);
        seat_queue_hide(&queue, i);
    }
    check_u64_eq(seat_queue_next(&queue, 0), SEAT_NONE);
    for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
        seat_queue_show(&queue, places[p]);
        for (uint32_t from = 0; from < OBJECTS + 10; from++)
            check_u64_eq(seat_queue_next(&queue, from), from <= places[p] ? places[p] : SEAT_NONE);
        seat_queue_hide(&queue, places[p]);
    }
    seat_queue_release(&queue);
}

static void heap__random_steps__sound_and_sorted(void **fixture)
{
    struct object_heap heap;
    uint64_t before = 0;

    (void)fixture;
    assert_true(object_heap_init(&heap, OBJECTS));
    for (uint64_t step = 0; step < 100000; step++) {
        uint32_t object = draw(OBJECTS);

        if (object_heap_has(&heap, object))
            object_heap_remove(&heap, object);
        else
            object_heap_push(&heap, object, draw(1000), step);
        if (step % 5000 == 0)
            assert_true(object_heap_sound(&heap));
    }
    while (heap.count > 0) {
        assert_true(object_heap_top_major(&heap) >= before);
        before = object_heap_top_major(&heap);
        object_heap_remove(&heap, object_heap_top(&heap));
    }
    object_heap_release(&heap);
}

static void ghosts__random_steps__as_a_list(void **fixture)
{
    struct ghost_list ghosts;
    uint64_t list[21];
    uint32_t count = 0;

    (void)fixture;
    assert_true(ghost_list_init(&ghosts, 20));
    for (int step = 0; step < 50000; step++) {
        uint64_t key = draw(60);
        uint32_t at = 0, choice = draw(8);

        while (at < count && list[at] != key)
            at++;
        assert_int_equal(ghost_list_has(&ghosts, key), at < count);
        if (choice < 6) {
            ghost_list_add(&ghosts, key);
            if (at == count && count == 20)
                at = 0; /* the oldest goes */
        } else if (choice == 6) {
            assert_int_equal(ghost_list_remove(&ghosts, key), at < count);
        } else if (count > 0) {
            ghost_list_drop_oldest(&ghosts);
            at = 0;
        }
        if (at < count) {
            memmove(&list[at], &list[at + 1], (count - at - 1) * sizeof list[0]);
            count--;
        }
        if (choice < 6)
            list[count++] = key;
        check_u64_eq(ghosts.count, count);
    }
    ghost_list_release(&ghosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seats__random_steps__the_oldest_shown),
        cmocka_unit_test(seats__one_shown__found_from_anywhere),
        cmocka_unit_test(heap__random_steps__sound_and_sorted),
        cmocka_unit_test(ghosts__random_steps__as_a_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
