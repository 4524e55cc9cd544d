#include "sim/future.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* Three words of 32 bits, so that none is lost to alignment. */
struct future_reference {
    uint32_t key_low, key_high;
    uint32_t when; /* request << 1 | COMPUTED; or, in a key's first reference, SKIP | how many of the key's references are passed */
};

#define COMPUTED UINT32_C(1)
#define SKIP (UINT32_C(1) << 31)

enum { PART_REFERENCES_LOG2 = 2 }; /* on average in a part of those whose keys have the same top bits */

static uint64_t key_of(const struct future_reference *reference)
{
    return (uint64_t)reference->key_high << 32 | reference->key_low;
}

static uint32_t top_of(const struct future *future, uint64_t key)
{
    return (uint32_t)(key >> future->top_shift);
}

void future_release(struct future *future)
{
    free(future->references);
    free(future->starts);
    free(future->passed);
    *future = (struct future){ 0 };
}

static int make_room(struct future *future, uint64_t more, struct err *err)
{
    uint64_t room = future->room > 0 ? future->room : 4096;
    struct future_reference *grown;

    if (future->requests == FUTURE_REQUESTS_MAX || more > FUTURE_REFERENCES_MAX - future->count)
        return err_set(err, ERR_FAILED,
                       "clairvoyant eviction: found more than %" PRIu64 " requests or %" PRIu64
                       " blocks of their prompts, expected fewer",
                       (uint64_t)FUTURE_REQUESTS_MAX, (uint64_t)FUTURE_REFERENCES_MAX);
    while (room < future->count + more)
        room *= 2;
    if (room == future->room)
        return 0;
    grown = realloc(future->references, (size_t)room * sizeof *grown);
    if (grown == NULL)
        return err_set(err, ERR_FAILED, "clairvoyant eviction: out of memory for %" PRIu64 " blocks of prompts", room);
    future->references = grown;
    future->room = room;
    return 0;
}

int future_add(struct future *future, const uint64_t *keys, uint64_t sought, uint64_t count, struct err *err)
{
    assert(future->starts == NULL);
    if (make_room(future, count, err) != 0)
        return -1;
    for (uint64_t i = 0; i < count; i++)
        future->references[future->count++] = (struct future_reference){
            .key_low = (uint32_t)keys[i],
            .key_high = (uint32_t)(keys[i] >> 32),
            .when = (uint32_t)future->requests << 1 | (i < sought ? 0 : COMPUTED),
        };
    future->requests++;
    return 0;
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* One pass of a radix sort: by one digit of the key, what is equal in it stays in its order. */
static void sort_by_digit(const struct future_reference *from, struct future_reference *to, uint64_t count, unsigned shift)
{
    uint32_t begins[DIGITS + 1] = { 0 };

    for (uint64_t i = 0; i < count; i++)
        begins[(key_of(&from[i]) >> shift) % DIGITS + 1]++;
    for (uint32_t digit = 1; digit < DIGITS; digit++)
        begins[digit] += begins[digit - 1];
    for (uint64_t i = 0; i < count; i++)
        to[begins[(key_of(&from[i]) >> shift) % DIGITS]++] = from[i];
}

/* By key, and as they were added, which is by request, where keys are equal. False: out of memory. */
static bool sort(struct future *future)
{
    struct future_reference *other = malloc((size_t)(future->count + 1) * sizeof *other);

    if (other == NULL)
        return false;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        struct future_reference *from = future->references;

        sort_by_digit(from, other, future->count, shift);
        future->references = other;
        other = from;
    }
    free(other);
    return true;
}

int future_seal(struct future *future, struct err *err)
{
    unsigned part_bits = 1;

    while (part_bits < 31 && future->count >> (part_bits + PART_REFERENCES_LOG2) > 0)
        part_bits++;
    future->parts = UINT32_C(1) << part_bits;
    future->top_shift = 64 - part_bits;
    future->starts = calloc((size_t)future->parts + 1, sizeof *future->starts);
    future->passed = calloc((size_t)(future->requests / 64 + 1), sizeof *future->passed);
    if (future->starts == NULL || future->passed == NULL || !sort(future))
        return err_set(err, ERR_FAILED, "clairvoyant eviction: out of memory for %" PRIu64 " blocks of prompts", future->count);
    for (uint64_t i = 0; i < future->count; i++)
        future->starts[top_of(future, key_of(&future->references[i])) + 1]++;
    for (uint32_t top = 0; top < future->parts; top++)
        future->starts[top + 1] += future->starts[top];
    return 0;
}

void future_pass(struct future *future, uint64_t request)
{
    assert(request < future->requests);
    future->passed[request / 64] |= UINT64_C(1) << request % 64;
}

static bool is_passed(const struct future *future, uint32_t when)
{
    uint32_t request = when >> 1;

    return (future->passed[request / 64] >> request % 64 & 1) != 0;
}

/* The key's first reference, or where it would stand. */
static uint32_t find_key(const struct future *future, uint64_t key)
{
    uint32_t top = top_of(future, key), low = future->starts[top], high = future->starts[top + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (key_of(&future->references[middle]) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t future_next_use(struct future *future, uint64_t key)
{
    struct future_reference *first;
    const struct future_reference *end, *at;
    uint32_t found = find_key(future, key);

    if (found == future->count || key_of(&future->references[found]) != key)
        return FUTURE_NEVER;
    at = first = &future->references[found];
    end = future->references + future->count;
    if ((first->when & SKIP) != 0)
        at += first->when & ~SKIP;
    while (at < end && key_of(at) == key && is_passed(future, at->when))
        at++;
    if (at > first)
        first->when = SKIP | (uint32_t)(at - first);
    if (at == end || key_of(at) != key || (at->when & COMPUTED) != 0)
        return FUTURE_NEVER;
    return at->when >> 1;
}
