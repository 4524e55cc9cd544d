/* Eviction orders once more, as plain lists that are scanned: what the fast ones are compared with. Written from the
 * papers' rules and the contract in allocator/eviction.h, not from the fast files. */
#ifndef PAGESIM_EVICTION_REFERENCE_H
#define PAGESIM_EVICTION_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/eviction.h"

#define REFERENCE_OBJECTS_MAX 64
#define REFERENCE_USES_MAX 4096 /* remembered of an object */

enum reference_where { REFERENCE_ABSENT, REFERENCE_IN_USE, REFERENCE_INSIDE };

struct reference_list {
    uint64_t items[256];
    uint32_t count;
};

struct reference {
    const struct reference_rule *rule;
    uint32_t objects;
    enum reference_where where[REFERENCE_OBJECTS_MAX];
    struct kv_content content[REFERENCE_OBJECTS_MAX];
    uint64_t serial[REFERENCE_OBJECTS_MAX], parent_serial[REFERENCE_OBJECTS_MAX]; /* of contents */
    uint64_t given[REFERENCE_OBJECTS_MAX]; /* when */
    uint64_t uses[REFERENCE_OBJECTS_MAX], next[REFERENCE_OBJECTS_MAX];
    bool mark[REFERENCE_OBJECTS_MAX]; /* visited, of Am, protected, of T2 */
    uint32_t category_of[REFERENCE_OBJECTS_MAX];
    int64_t priorities[REFERENCE_OBJECTS_MAX][REFERENCE_USES_MAX]; /* of all that used it, from the filling on */
    uint32_t priority_count[REFERENCE_OBJECTS_MAX];
    bool pinned[REFERENCE_OBJECTS_MAX], expected[REFERENCE_OBJECTS_MAX];
    uint64_t ends_ns[REFERENCE_OBJECTS_MAX], now_ns;
    struct kv_value values[KV_OPTIONS_MAX]; /* of the order's options */
    uint64_t clock, serials, aged, draws;
    uint32_t category, hand, missed;
    int64_t priority;
    struct reference_list a, b;           /* lists of objects */
    struct reference_list ghost_a, ghost_b; /* lists of keys */
    double target, life;
    double cat_uses[KV_EVICTION_CATEGORIES], cat_reuses[KV_EVICTION_CATEGORIES], cat_time[KV_EVICTION_CATEGORIES];
};

/* false: there is no reference for the order, a plug-in's. */
bool reference_init(struct reference *reference, const char *name, uint32_t objects, const struct kv_value *values);
void reference_begin(struct reference *reference, struct kv_kind kind);
void reference_miss(struct reference *reference, uint64_t key);
void reference_insert(struct reference *reference, uint32_t object, const struct kv_content *content);
void reference_foresee(struct reference *reference, uint32_t object, uint64_t next);
void reference_give(struct reference *reference, uint32_t object);
void reference_take(struct reference *reference, uint32_t object);
void reference_share(struct reference *reference, uint32_t object);
void reference_touch(struct reference *reference, uint32_t object);
void reference_clock(struct reference *reference, uint64_t now_ns);
uint32_t reference_pinned(const struct reference *reference);      /* how many inside are */
uint64_t reference_next_unpin(const struct reference *reference);
void reference_expect(struct reference *reference, uint32_t object, bool expected);
uint32_t reference_evict(struct reference *reference);

#endif
