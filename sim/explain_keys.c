#include <stdlib.h>
#include <string.h>

#include "sim/explain.h"

#define KEYS_MAX ((size_t)1 << 20)

struct explain_key {
    uint64_t key;
    uint32_t parent;
};

/* Where the key stands in the table, or where it would. */
static size_t place_of(const struct explain_keys *k, uint64_t key)
{
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (k->table_size - 1);
    while (k->table[at] != 0 && k->items[k->table[at]].key != key) at = (at + 1) & (k->table_size - 1);
    return at;
}

uint32_t explain_key_number(const struct explain_keys *k, uint64_t key)
{
    return k->table ? k->table[place_of(k, key)] : 0;
}

uint32_t explain_key_parent(const struct explain_keys *k, uint32_t number)
{
    return k->items[number].parent;
}

static bool grow(struct explain_keys *k)
{
    size_t capacity = k->capacity ? k->capacity * 2 : 256;
    struct explain_key *items = capacity <= KEYS_MAX ? realloc(k->items, (capacity + 1) * sizeof *items) : NULL;
    if (items) k->items = items;
    uint32_t *table = items ? calloc(2 * capacity, sizeof *table) : NULL;
    if (!table) {
        k->full = true;
        return false;
    }
    free(k->table);
    k->table = table;
    k->table_size = 2 * capacity;
    k->capacity = capacity;
    for (uint32_t i = 1; i <= k->count; i++) k->table[place_of(k, k->items[i].key)] = i;
    return true;
}

static uint32_t add(struct explain_keys *k, uint64_t key, uint32_t parent)
{
    if (k->count == k->capacity && !grow(k)) return 0;
    size_t at = place_of(k, key);
    if (k->table[at] != 0) return k->table[at];
    k->count++;
    k->items[k->count] = (struct explain_key){key, parent};
    k->table[at] = (uint32_t)k->count;
    return (uint32_t)k->count;
}

void explain_keys_add(struct explain_keys *k, const struct sim_request *r)
{
    for (uint32_t s = 0; r->keys && s < r->kv.samples; s++) {
        uint32_t parent = 0;
        for (uint64_t i = 0; i < r->key_blocks && !k->full; i++) parent = add(k, r->keys[s][i], parent);
    }
}

void explain_keys_release(struct explain_keys *k)
{
    free(k->items);
    free(k->table);
    memset(k, 0, sizeof *k);
}
