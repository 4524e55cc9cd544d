#include "sim/stack_distance.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool stack_distance_init(struct stack_distance *stack, uint32_t objects)
{
    assert(objects < UINT32_C(1) << 31);
    *stack = (struct stack_distance){.slots = 2 * objects > 64 ? 2 * objects : 64, .objects = objects};
    stack->sums = calloc((size_t)stack->slots + 1, sizeof *stack->sums);
    stack->object_at = calloc(stack->slots, sizeof *stack->object_at);
    stack->slot_of = calloc((size_t)objects + 1, sizeof *stack->slot_of);
    if (stack->sums != NULL && stack->object_at != NULL && stack->slot_of != NULL)
        return true;
    stack_distance_release(stack);
    return false;
}

void stack_distance_release(struct stack_distance *stack)
{
    free(stack->sums);
    free(stack->object_at);
    free(stack->slot_of);
    *stack = (struct stack_distance){0};
}

static void add(struct stack_distance *stack, uint32_t slot, uint32_t change)
{
    for (uint64_t i = (uint64_t)slot + 1; i <= stack->slots; i += i & -i)
        stack->sums[i] += change; /* modulo 2^32: UINT32_MAX takes one away */
}

static uint32_t sum_before(const struct stack_distance *stack, uint32_t slot)
{
    uint32_t sum = 0;

    for (uint32_t i = slot; i > 0; i -= i & -i)
        sum += stack->sums[i];
    return sum;
}

uint32_t stack_distance_of(const struct stack_distance *stack, uint32_t object)
{
    assert(object < stack->objects);
    if (stack->slot_of[object] == 0)
        return UINT32_MAX;
    return stack->used - sum_before(stack, stack->slot_of[object] - 1);
}

/* Last uses move to the lowest slots, in their order; the tree is made anew. */
static void close_up(struct stack_distance *stack)
{
    uint32_t to = 0;

    for (uint32_t from = 0; from < stack->slots; from++) {
        uint32_t object = stack->object_at[from];

        if (object == 0)
            continue;
        stack->object_at[from] = 0;
        stack->object_at[to] = object;
        stack->slot_of[object - 1] = ++to;
    }
    stack->next_slot = to;
    memset(stack->sums, 0, ((size_t)stack->slots + 1) * sizeof *stack->sums);
    for (uint64_t i = 1; i <= stack->slots; i++) {
        uint64_t parent = i + (i & -i);

        stack->sums[i] += i <= to;
        if (parent <= stack->slots)
            stack->sums[parent] += stack->sums[i];
    }
}

void stack_distance_use(struct stack_distance *stack, uint32_t object)
{
    assert(object < stack->objects);
    if (stack->next_slot == stack->slots)
        close_up(stack);
    if (stack->slot_of[object] != 0) {
        add(stack, stack->slot_of[object] - 1, UINT32_MAX);
        stack->object_at[stack->slot_of[object] - 1] = 0;
    } else {
        stack->used++;
    }
    stack->object_at[stack->next_slot] = object + 1;
    add(stack, stack->next_slot, 1);
    stack->slot_of[object] = ++stack->next_slot;
}
