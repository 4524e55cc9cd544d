/* block_index, block_ring and block_queue: the order of the free queue, and keys among duplicates. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/block_queue.h"
#include "allocator/block_ring.h"

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

static void check_queue(uint64_t length, const kv_block *queue, const kv_block *expected, uint64_t count)
{
    check_u64_eq(length, count);
    for (uint64_t i = 0; i < count; i++)
        check_u64_eq(queue[i], expected[i]);
}

/* --- ring ---------------------------------------------------------------------------------- */

static void ring__given_back__joins_the_tail_last_block_first(void **state)
{
    (void)state;
    struct block_ring ring;
    kv_block out[8], queue[8];
    assert_true(block_ring_init(&ring, 5));
    block_ring_take(&ring, out, 3); /* 1 2 3 */
    block_ring_give(&ring, out, 3);
    check_queue(block_ring_queue(&ring, queue, 8), queue, (kv_block[]){ 4, 5, 3, 2, 1 }, 5);
    block_ring_take(&ring, out, 4);
    check_queue(4, out, (kv_block[]){ 4, 5, 3, 2 }, 4);
    assert_null(block_ring_check(&ring));
    block_ring_release(&ring);
}

static void ring__shared_block__returns_with_its_last_holder(void **state)
{
    (void)state;
    struct block_ring ring;
    kv_block out[2];
    assert_true(block_ring_init(&ring, 2));
    block_ring_take(&ring, out, 2);
    ring.refs[out[0]] = 2;
    block_ring_give(&ring, out, 2);
    check_u64_eq(ring.free_blocks, 1);
    block_ring_give(&ring, out, 1);
    check_u64_eq(ring.free_blocks, 2);
    block_ring_release(&ring);
}

/* --- index --------------------------------------------------------------------------------- */

static void index__duplicates__the_first_that_still_has_the_key(void **state)
{
    (void)state;
    struct keyed_block blocks[5] = { 0 };
    struct block_index index;
    uint64_t keyed;
    assert_true(block_index_init(&index, blocks, 4));
    check_u64_eq(block_index_find(&index, 77), KV_BLOCK_NONE);
    block_index_add(&index, 3, 77);
    block_index_add(&index, 1, 77);
    block_index_add(&index, 4, 77);
    check_u64_eq(block_index_find(&index, 77), 3);
    block_index_remove(&index, 1); /* not the first: nothing to see */
    check_u64_eq(block_index_find(&index, 77), 3);
    block_index_remove(&index, 3);
    check_u64_eq(block_index_find(&index, 77), 4);
    block_index_add(&index, 3, 77); /* back, but now the last to have got it */
    check_u64_eq(block_index_find(&index, 77), 4);
    assert_null(block_index_check(&index, &keyed));
    check_u64_eq(keyed, 2);
    block_index_remove(&index, 4);
    block_index_remove(&index, 3);
    check_u64_eq(block_index_find(&index, 77), KV_BLOCK_NONE);
    block_index_release(&index);
}

static void index__keys_0_and_max__are_keys_like_others(void **state)
{
    (void)state;
    struct keyed_block blocks[3] = { 0 };
    struct block_index index;
    assert_true(block_index_init(&index, blocks, 2));
    block_index_add(&index, 1, 0);
    block_index_add(&index, 2, UINT64_MAX);
    check_u64_eq(block_index_find(&index, 0), 1);
    check_u64_eq(block_index_find(&index, UINT64_MAX), 2);
    check_u64_eq(block_index_find(&index, UINT64_MAX << 32), KV_BLOCK_NONE); /* low half like 0's */
    block_index_release(&index);
}

enum { BLOCKS = 40 };

/* Keys of few buckets and few tags: full buckets, more keys than fit in one, tags that are alike. */
static uint64_t colliding_key(void)
{
    return draw(3) << 56 | draw(4) << 40 | (30 + draw(3));
}

static void index__random_script__agrees_with_lists(void **state)
{
    (void)state;
    struct keyed_block blocks[BLOCKS + 1] = { 0 };
    uint64_t key_of[BLOCKS + 1] = { 0 }, when[BLOCKS + 1] = { 0 }; /* when == 0: no key */
    struct block_index index;
    random_state = 3;
    assert_true(block_index_init(&index, blocks, BLOCKS));
    for (uint64_t step = 1; step < 20000; step++) {
        kv_block block = (kv_block)(1 + draw(BLOCKS));
        if (when[block] != 0) {
            block_index_remove(&index, block);
            when[block] = 0;
        } else {
            key_of[block] = colliding_key();
            when[block] = step;
            block_index_add(&index, block, key_of[block]);
        }
        uint64_t key = colliding_key();
        kv_block expected = KV_BLOCK_NONE;
        for (kv_block b = 1; b <= BLOCKS; b++)
            if (when[b] != 0 && key_of[b] == key && (expected == KV_BLOCK_NONE || when[b] < when[expected]))
                expected = b;
        check_u64_eq(block_index_find(&index, key), expected);
        uint64_t keyed;
        if (step % 16 == 0)
            assert_null(block_index_check(&index, &keyed));
    }
    block_index_release(&index);
}

/* --- queue --------------------------------------------------------------------------------- */

struct evictions {
    kv_block blocks[8];
    size_t count;
};

static void note_eviction(void *context, kv_block block, uint64_t key)
{
    struct evictions *e = context;
    (void)key;
    e->blocks[e->count++] = block;
}

static void queue__rules_2026_08__unkeyed_to_the_head_keyed_to_the_tail(void **state)
{
    (void)state;
    struct block_queue queue;
    struct evictions evictions = { .count = 0 };
    struct kv_observer observer = { .context = &evictions, .evicted = note_eviction };
    kv_block out[8], list[8];
    assert_true(block_queue_init(&queue, 6, true, &observer));
    block_queue_take(&queue, out, 5); /* 1 2 3 4 5 */
    block_queue_set_key(&queue, 1, 101);
    block_queue_set_key(&queue, 2, 102);
    block_queue_give(&queue, out, 5); /* visited 5 4 3 (no key: head, 5 foremost) 2 1 (tail) */
    check_queue(block_queue_list(&queue, list, 8), list, (kv_block[]){ 5, 4, 3, 6, 2, 1 }, 6);
    check_u64_eq(queue.cached_blocks, 2);
    block_queue_take(&queue, out, 5);
    check_u64_eq(evictions.count, 1);
    check_u64_eq(queue.evicted_blocks, 1);
    check_u64_eq(evictions.blocks[0], 2);
    check_u64_eq(block_index_find(&queue.index, 101), 1);
    check_u64_eq(block_index_find(&queue.index, 102), KV_BLOCK_NONE);
    assert_null(block_queue_check(&queue));
    block_queue_release(&queue);
}

static void queue__rules_2026_04__all_to_the_tail(void **state)
{
    (void)state;
    struct block_queue queue;
    kv_block out[8], list[8];
    assert_true(block_queue_init(&queue, 6, false, NULL));
    block_queue_take(&queue, out, 3);
    block_queue_set_key(&queue, 1, 101);
    block_queue_give(&queue, out, 3);
    check_queue(block_queue_list(&queue, list, 8), list, (kv_block[]){ 4, 5, 6, 3, 2, 1 }, 6);
    assert_null(block_queue_check(&queue));
    block_queue_release(&queue);
}

static void queue__hit_in_the_middle__leaves_it_and_keeps_its_key(void **state)
{
    (void)state;
    struct block_queue queue;
    kv_block out[8], list[8], found[4];
    uint32_t unheld;
    assert_true(block_queue_init(&queue, 4, false, NULL));
    block_queue_take(&queue, out, 2);
    block_queue_set_key(&queue, 1, 101);
    block_queue_set_key(&queue, 2, 102);
    block_queue_give(&queue, out, 2); /* 3 4 2 1 */
    const uint64_t keys[] = { 101, 102, 103 };
    check_u64_eq(block_queue_find_chain(&queue, keys, 3, found, &unheld), 2);
    check_u64_eq(unheld, 2);
    block_queue_hold(&queue, 2);
    check_queue(block_queue_list(&queue, list, 8), list, (kv_block[]){ 3, 4, 1 }, 3);
    check_u64_eq(block_queue_find_chain(&queue, keys, 2, found, &unheld), 2);
    check_u64_eq(unheld, 1);
    check_u64_eq(queue.cached_blocks, 1);
    check_u64_eq(queue.keyed_blocks, 2);
    assert_null(block_queue_check(&queue));
    block_queue_release(&queue);
}

enum { QUEUED = 24 };

/* The free queue as a list: blocks are taken off its head, out of its middle, and come back at its tail. */
static void queue__random_script__agrees_with_a_list(void **state)
{
    (void)state;
    struct block_queue queue;
    kv_block model[QUEUED], list[QUEUED], held[QUEUED];
    uint32_t queued = QUEUED, holding = 0;
    random_state = 5;
    for (kv_block i = 0; i < QUEUED; i++)
        model[i] = i + 1;
    assert_true(block_queue_init(&queue, QUEUED, false, NULL));
    for (int step = 0; step < 20000; step++) {
        uint32_t at = (uint32_t)draw(QUEUED), take = (uint32_t)draw(4);
        if (at < queued && draw(2) == 0) {
            block_queue_hold(&queue, model[at]);
            held[holding++] = model[at];
            memmove(model + at, model + at + 1, (--queued - at) * sizeof *model);
        } else if (take <= queued && draw(3) == 0) {
            block_queue_take(&queue, held + holding, take);
            check_queue(take, held + holding, model, take);
            holding += take;
            memmove(model, model + take, (queued -= take) * sizeof *model);
        } else if (holding > 0) {
            at = (uint32_t)draw(holding);
            block_queue_give(&queue, &held[at], 1);
            model[queued++] = held[at];
            held[at] = held[--holding];
        }
        check_queue(block_queue_list(&queue, list, QUEUED), list, model, queued);
        assert_null(block_queue_check(&queue));
    }
    block_queue_release(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring__given_back__joins_the_tail_last_block_first),
        cmocka_unit_test(ring__shared_block__returns_with_its_last_holder),
        cmocka_unit_test(index__duplicates__the_first_that_still_has_the_key),
        cmocka_unit_test(index__keys_0_and_max__are_keys_like_others),
        cmocka_unit_test(index__random_script__agrees_with_lists),
        cmocka_unit_test(queue__rules_2026_08__unkeyed_to_the_head_keyed_to_the_tail),
        cmocka_unit_test(queue__rules_2026_04__all_to_the_tail),
        cmocka_unit_test(queue__hit_in_the_middle__leaves_it_and_keeps_its_key),
        cmocka_unit_test(queue__random_script__agrees_with_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
