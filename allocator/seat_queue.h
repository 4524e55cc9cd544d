/* A first-in first-out queue of objects 0 .. objects-1 whose members can be hidden and keep their seat: a
 * cached block that is in use stands where it stood. Seats are numbered in the order of arrival; a bitmap
 * of 64-way words over the seats finds the first shown one at or after any seat in O(log64 n). Seats of
 * members that left are closed up when all seats are given out, O(1) a push on average. */
#ifndef PAGESIM_SEAT_QUEUE_H
#define PAGESIM_SEAT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#define SEAT_LEVELS 6 /* 64^6 > 2^32 seats */
#define SEAT_NONE UINT32_MAX

struct seat_queue {
    uint32_t *members; /* seat → object + 1; 0: nobody sits there */
    uint32_t *seat_of; /* object → seat + 1; 0: no member */
    uint64_t *shown[SEAT_LEVELS];     /* [0]: a bit a seat; [l + 1]: a bit a word of [l] */
    uint32_t shown_bits[SEAT_LEVELS];
    uint32_t objects, seats;
    uint32_t next_seat; /* one past the newest member's */
    uint32_t count; /* members, hidden ones too */
    uint32_t cursor; /* a seat of the owner's choice; moves along when seats are closed up */
};

bool seat_queue_init(struct seat_queue *queue, uint32_t objects); /* false: out of memory */
void seat_queue_release(struct seat_queue *queue);                /* a zeroed struct is fine */
/* The object, no member, takes the newest seat, shown. */
void seat_queue_push(struct seat_queue *queue, uint32_t object);
/* The member leaves. */
void seat_queue_remove(struct seat_queue *queue, uint32_t object);
void seat_queue_hide(struct seat_queue *queue, uint32_t object); /* shown before */
void seat_queue_show(struct seat_queue *queue, uint32_t object); /* hidden before */
/* The first shown seat at or after this one (any number is fine), or SEAT_NONE. */
uint32_t seat_queue_next(const struct seat_queue *queue, uint32_t seat);
bool seat_queue_sound(const struct seat_queue *queue, uint32_t *shown); /* O(objects) */

static inline bool seat_queue_has(const struct seat_queue *queue, uint32_t object)
{
    return queue->seat_of[object] != 0;
}

static inline uint32_t seat_queue_object(const struct seat_queue *queue, uint32_t seat)
{
    return queue->members[seat] - 1;
}

/* Who sits `by` seats farther, shown or not, or SEAT_NONE. */
static inline uint32_t seat_queue_ahead(const struct seat_queue *queue, uint32_t seat, uint32_t by)
{
    return (uint64_t)seat + by < queue->next_seat ? queue->members[seat + by] - 1 : SEAT_NONE;
}

#endif
