/* Stack distances: how many different objects were used since the last use of an object, itself included. O(log n) a
 * use, by a tree of counts over the order of use, which is closed up when it is full. */
#ifndef PAGESIM_STACK_DISTANCE_H
#define PAGESIM_STACK_DISTANCE_H

#include <stdbool.h>
#include <stdint.h>

struct stack_distance {
    uint32_t *sums;      /* Fenwick tree over slots: 1 where an object's last use is */
    uint32_t *slot_of;   /* object → slot + 1; 0: never used */
    uint32_t *object_at; /* slot → object + 1; 0: none */
    uint32_t slots, next_slot, objects, used;
};

/* Objects are numbers below objects < 2^31. false: out of memory. */
bool stack_distance_init(struct stack_distance *stack, uint32_t objects);
void stack_distance_release(struct stack_distance *stack);
/* UINT32_MAX: never used. */
uint32_t stack_distance_of(const struct stack_distance *stack, uint32_t object);
void stack_distance_use(struct stack_distance *stack, uint32_t object);

#endif
