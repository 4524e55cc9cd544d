#include "allocator/buddy.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "allocator/vm_area.h"

/* The free chunks of an order are bits, with summary bits above them (one for 64 below), so that the
 * lowest free chunk is a few word scans away however large the space is. */
enum { SUMMARIES_MAX = 10 }; /* enough for 2^BUDDY_ORDERS bits */

struct buddy_level {
    uint64_t count;                  /* free chunks of this order */
    uint64_t *words[SUMMARIES_MAX];  /* [0]: one bit a chunk; [i + 1]: one bit a word of [i] */
    uint64_t word_count[SUMMARIES_MAX];
    unsigned depth; /* used entries of words */
};

static bool level_init(struct buddy_level *level, uint64_t bits)
{
    do {
        uint64_t words = bits / 64 + 1;
        assert(level->depth < SUMMARIES_MAX);
        level->word_count[level->depth] = words;
        level->words[level->depth] = vm_area_map(words, sizeof(uint64_t));
        if (level->words[level->depth] == NULL)
            return false;
        level->depth++;
        bits = words;
    } while (bits > 1);
    return true;
}

static void level_release(struct buddy_level *level)
{
    for (unsigned i = 0; i < level->depth; i++)
        vm_area_unmap(level->words[i], level->word_count[i], sizeof(uint64_t));
}

static bool level_has(const struct buddy_level *level, uint64_t bit)
{
    return bit / 64 < level->word_count[0] && (level->words[0][bit / 64] >> bit % 64 & 1) != 0;
}

static void level_set(struct buddy_level *level, uint64_t bit)
{
    assert(!level_has(level, bit));
    level->count++;
    for (unsigned i = 0; i < level->depth; i++, bit /= 64)
        level->words[i][bit / 64] |= UINT64_C(1) << bit % 64;
}

static void level_unset(struct buddy_level *level, uint64_t bit)
{
    assert(level_has(level, bit));
    level->count--;
    for (unsigned i = 0; i < level->depth; i++, bit /= 64) {
        level->words[i][bit / 64] &= ~(UINT64_C(1) << bit % 64);
        if (level->words[i][bit / 64] != 0)
            return; /* the summaries above stay set */
    }
}

static uint64_t level_lowest(const struct buddy_level *level)
{
    assert(level->count > 0);
    uint64_t word = 0;
    for (unsigned i = level->depth; i-- > 0;)
        word = word * 64 + (uint64_t)__builtin_ctzll(level->words[i][word]);
    return word;
}

bool buddy_init(struct buddy *buddy, uint64_t space_units)
{
    assert(space_units > 0);
    *buddy = (struct buddy){ .space_units = space_units, .free_units = space_units };
    unsigned orders = 64 - (unsigned)__builtin_clzll(space_units);
    if (orders > BUDDY_ORDERS)
        return false;
    buddy->levels = calloc(orders, sizeof *buddy->levels);
    if (buddy->levels == NULL)
        return false;
    buddy->order_count = orders;
    for (unsigned order = 0; order < orders; order++) {
        if (!level_init(&buddy->levels[order], (space_units >> order) + 1)) {
            buddy_release(buddy);
            return false;
        }
    }
    uint64_t start = 0;
    for (unsigned order = orders; order-- > 0;) {
        if ((space_units >> order & 1) != 0) {
            level_set(&buddy->levels[order], start >> order);
            start += UINT64_C(1) << order;
        }
    }
    return true;
}

void buddy_release(struct buddy *buddy)
{
    for (unsigned order = 0; order < buddy->order_count; order++)
        level_release(&buddy->levels[order]);
    free(buddy->levels);
    buddy->levels = NULL;
    buddy->order_count = 0;
}

bool buddy_take(struct buddy *buddy, unsigned order, uint64_t *start)
{
    unsigned from = order;
    while (from < buddy->order_count && buddy->levels[from].count == 0)
        from++;
    if (from >= buddy->order_count)
        return false;
    uint64_t chunk = level_lowest(&buddy->levels[from]);
    level_unset(&buddy->levels[from], chunk);
    *start = chunk << from;
    while (from-- > order) /* keep the lower half, put the upper one back */
        level_set(&buddy->levels[from], (*start >> from) + 1);
    buddy->free_units -= UINT64_C(1) << order;
    return true;
}

void buddy_give(struct buddy *buddy, uint64_t start, unsigned order)
{
    assert(order < buddy->order_count);
    assert((start & ((UINT64_C(1) << order) - 1)) == 0);
    buddy->free_units += UINT64_C(1) << order;
    uint64_t chunk = start >> order;
    for (; order + 1 < buddy->order_count; order++, chunk /= 2) {
        if (!level_has(&buddy->levels[order], chunk ^ 1))
            break;
        level_unset(&buddy->levels[order], chunk ^ 1);
    }
    level_set(&buddy->levels[order], chunk);
}

uint64_t buddy_count(const struct buddy *buddy, unsigned order)
{
    uint64_t count = 0;
    for (unsigned from = order; from < buddy->order_count; from++)
        count += buddy->levels[from].count << (from - order);
    return count;
}

uint64_t buddy_count_empty(const struct buddy *buddy, unsigned order)
{
    return order < buddy->order_count ? buddy->space_units >> order : 0;
}

uint64_t buddy_free_chunks(const struct buddy *buddy, unsigned order)
{
    return order < buddy->order_count ? buddy->levels[order].count : 0;
}

static const char *check_level(const struct buddy *buddy, unsigned order, uint64_t *units)
{
    const struct buddy_level *level = &buddy->levels[order];
    uint64_t count = 0;
    for (uint64_t word = 0; word < level->word_count[0]; word++) {
        uint64_t bits = level->words[0][word];
        /* A chunk and its buddy, both free, should have joined (but not beyond the last order). */
        if ((bits & bits >> 1 & UINT64_C(0x5555555555555555)) != 0)
            return "buddy: two free buddies did not join";
        if (level->depth > 1 && ((level->words[1][word / 64] >> word % 64 & 1) != 0) != (bits != 0))
            return "buddy: a summary bit is wrong";
        count += (uint64_t)__builtin_popcountll(bits);
    }
    *units += count << order;
    return count == level->count ? NULL : "buddy: an order's count of free chunks is wrong";
}

const char *buddy_check(const struct buddy *buddy)
{
    uint64_t units = 0;
    for (unsigned order = 0; order < buddy->order_count; order++) {
        const char *wrong = check_level(buddy, order, &units);
        if (wrong != NULL)
            return wrong;
    }
    return units == buddy->free_units ? NULL : "buddy: free units differ from the sum of the chunks";
}
