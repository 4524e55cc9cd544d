#include "allocator/seat_queue.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { REMOVED_AHEAD = 12 };

static uint32_t words_for(uint32_t bits)
{
    return (uint32_t)(((uint64_t)bits + 63) / 64);
}

bool seat_queue_init(struct seat_queue *queue, uint32_t objects)
{
    uint64_t seats = 2 * (uint64_t)objects;
    bool made;

    assert(objects > 0 && objects < UINT32_C(1) << 31);
    *queue = (struct seat_queue){.objects = objects, .seats = (uint32_t)seats};
    queue->members = calloc(queue->seats, sizeof *queue->members);
    queue->seat_of = calloc(objects, sizeof *queue->seat_of);
    made = queue->members != NULL && queue->seat_of != NULL;
    for (uint32_t level = 0, bits = queue->seats; made && level < SEAT_LEVELS; level++) {
        queue->shown_bits[level] = bits;
        bits = words_for(bits);
        queue->shown[level] = calloc(bits, sizeof *queue->shown[level]);
        made = queue->shown[level] != NULL;
    }
    if (!made)
        seat_queue_release(queue);
    return made;
}

void seat_queue_release(struct seat_queue *queue)
{
    free(queue->members);
    free(queue->seat_of);
    for (uint32_t level = 0; level < SEAT_LEVELS; level++)
        free(queue->shown[level]);
    *queue = (struct seat_queue){0};
}

static bool is_shown(const struct seat_queue *queue, uint32_t seat)
{
    return (queue->shown[0][seat / 64] >> seat % 64 & 1) != 0;
}

static void set_shown(struct seat_queue *queue, uint32_t seat)
{
    for (uint32_t level = 0; level < SEAT_LEVELS; level++, seat /= 64) {
        uint64_t *word = &queue->shown[level][seat / 64];
        bool was_empty = *word == 0;

        *word |= UINT64_C(1) << seat % 64;
        if (!was_empty)
            break;
    }
}

static void clear_shown(struct seat_queue *queue, uint32_t seat)
{
    for (uint32_t level = 0; level < SEAT_LEVELS; level++, seat /= 64) {
        uint64_t *word = &queue->shown[level][seat / 64];

        *word &= ~(UINT64_C(1) << seat % 64);
        if (*word != 0)
            break;
    }
}

uint32_t seat_queue_next(const struct seat_queue *queue, uint32_t seat)
{
    uint32_t level = 0;
    uint64_t word = 0;

    for (;; level++) { /* up, until a word has something at or after the place */
        if (level == SEAT_LEVELS || seat >= queue->shown_bits[level])
            return SEAT_NONE;
        word = queue->shown[level][seat / 64] & UINT64_MAX << seat % 64;
        if (word != 0)
            break;
        seat = seat / 64 + 1;
    }
    seat = seat / 64 * 64 + (uint32_t)__builtin_ctzll(word);
    while (level-- > 0) /* down, always to the first */
        seat = seat * 64 + (uint32_t)__builtin_ctzll(queue->shown[level][seat]);
    return seat;
}

/* Members move to the lowest seats, in their order. */
static void close_up(struct seat_queue *queue)
{
    uint32_t to = 0, cursor = SEAT_NONE;

    for (uint32_t from = 0; from < queue->next_seat; from++) {
        uint32_t member = queue->members[from];

        if (from == queue->cursor)
            cursor = to;
        if (member == 0)
            continue;
        if (from != to) {
            if (is_shown(queue, from)) {
                clear_shown(queue, from);
                set_shown(queue, to);
            }
            queue->members[from] = 0;
            queue->members[to] = member;
            queue->seat_of[member - 1] = to + 1;
        }
        to++;
    }
    queue->cursor = cursor != SEAT_NONE ? cursor : to;
    queue->next_seat = to;
}

void seat_queue_push(struct seat_queue *queue, uint32_t object)
{
    assert(object < queue->objects && queue->seat_of[object] == 0);
    if (queue->next_seat == queue->seats)
        close_up(queue);
    queue->members[queue->next_seat] = object + 1;
    queue->seat_of[object] = queue->next_seat + 1;
    set_shown(queue, queue->next_seat++);
    queue->count++;
}

void seat_queue_remove(struct seat_queue *queue, uint32_t object)
{
    uint32_t seat = queue->seat_of[object] - 1, ahead = seat_queue_ahead(queue, seat, REMOVED_AHEAD);

    assert(object < queue->objects && queue->seat_of[object] != 0);
    if (ahead != SEAT_NONE) /* most are removed in order */
        __builtin_prefetch(&queue->seat_of[ahead], 1);
    if (is_shown(queue, seat))
        clear_shown(queue, seat);
    queue->members[seat] = 0;
    queue->seat_of[object] = 0;
    queue->count--;
    while (queue->next_seat > 0 && queue->members[queue->next_seat - 1] == 0)
        queue->next_seat--;
}

void seat_queue_hide(struct seat_queue *queue, uint32_t object)
{
    uint32_t seat = queue->seat_of[object] - 1;

    assert(queue->seat_of[object] != 0 && is_shown(queue, seat));
    clear_shown(queue, seat);
}

void seat_queue_show(struct seat_queue *queue, uint32_t object)
{
    uint32_t seat = queue->seat_of[object] - 1;

    assert(queue->seat_of[object] != 0 && !is_shown(queue, seat));
    set_shown(queue, seat);
}

bool seat_queue_sound(const struct seat_queue *queue, uint32_t *shown)
{
    uint32_t members = 0;

    *shown = 0;
    for (uint32_t seat = 0; seat < queue->seats; seat++) {
        uint32_t member = queue->members[seat];

        if (member == 0 && is_shown(queue, seat))
            return false;
        if (member == 0)
            continue;
        if (member > queue->objects || queue->seat_of[member - 1] != seat + 1 || seat >= queue->next_seat)
            return false;
        members++;
        *shown += is_shown(queue, seat);
    }
    for (uint32_t level = 0; level + 1 < SEAT_LEVELS; level++)
        for (uint32_t word = 0; word < queue->shown_bits[level + 1]; word++)
            if ((queue->shown[level][word] != 0) != ((queue->shown[level + 1][word / 64] >> word % 64 & 1) != 0))
                return false;
    return members == queue->count;
}
