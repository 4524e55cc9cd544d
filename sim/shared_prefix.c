#include "sim/shared_prefix.h"
#include "sim/numbers.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A node is a run of consecutive tokens. When a node is split, the *lower* part keeps the number, so that a place told by
 * its distance from a node's end stays where it is. */
struct node {
    uint64_t space, first, count;
    uint32_t parent;
    uint32_t children; /* nodes below it */
    struct shared_cursor *cursors; /* that stand in it */
};

struct shared_prefix {
    struct node *nodes; /* 0 is the root, of no tokens */
    uint32_t node_count, node_capacity;
    uint32_t *children; /* node by its parent and first token, open addressing; 0 marks a free place */
    uint32_t children_mask;
};

static uint64_t child_hash(uint32_t parent, uint64_t space, uint64_t first)
{
    uint64_t h = (first ^ (space * 0x9e3779b97f4a7c15u)) + ((uint64_t)parent << 32 | parent);
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

/* Where the child of `parent` that starts with this token is named, or the free place where it belongs. */
static uint32_t *find_child(const struct shared_prefix *t, uint32_t parent, uint64_t space, uint64_t first)
{
    uint32_t i = (uint32_t)child_hash(parent, space, first) & t->children_mask;
    for (; t->children[i] != 0; i = (i + 1) & t->children_mask) {
        const struct node *n = &t->nodes[t->children[i]];
        if (n->parent == parent && n->space == space && n->first == first) break;
    }
    return &t->children[i];
}

static int resize_children(struct shared_prefix *t, uint32_t places)
{
    uint32_t *children = calloc(places, sizeof *children);
    if (!children) return -1;
    free(t->children);
    t->children = children;
    t->children_mask = places - 1;
    for (uint32_t id = 1; id < t->node_count; id++) {
        const struct node *n = &t->nodes[id];
        *find_child(t, n->parent, n->space, n->first) = id;
    }
    return 0;
}

struct shared_prefix *shared_prefix_create(void)
{
    struct shared_prefix *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->node_capacity = 64;
    t->nodes = calloc(t->node_capacity, sizeof *t->nodes);
    t->node_count = 1;
    if (!t->nodes || resize_children(t, 128)) {
        shared_prefix_destroy(t);
        return NULL;
    }
    return t;
}

void shared_prefix_destroy(struct shared_prefix *t)
{
    if (!t) return;
    free(t->nodes);
    free(t->children);
    free(t);
}

/* Makes room for two more nodes, so that a step of insertion cannot fail half-way. */
static int reserve(struct shared_prefix *t)
{
    if (t->node_count > UINT32_MAX / 2 - 4) return -1;
    if (t->node_count + 2 > t->node_capacity) {
        uint32_t capacity = t->node_capacity * 2;
        struct node *nodes = realloc(t->nodes, capacity * sizeof *nodes);
        if (!nodes) return -1;
        t->nodes = nodes;
        t->node_capacity = capacity;
    }
    if ((uint64_t)(t->node_count + 2) * 10 > ((uint64_t)t->children_mask + 1) * 7) {
        return resize_children(t, (t->children_mask + 1) * 2);
    }
    return 0;
}

static uint32_t add_node(struct shared_prefix *t, uint32_t parent, uint64_t space, uint64_t first,
                         uint64_t count)
{
    uint32_t id = t->node_count++;
    t->nodes[id] = (struct node){.space = space, .first = first, .count = count, .parent = parent};
    *find_child(t, parent, space, first) = id;
    t->nodes[parent].children++;
    return id;
}

static void link_cursor(struct shared_prefix *t, struct shared_cursor *cursor, uint32_t node, uint64_t left)
{
    struct node *n = &t->nodes[node];
    cursor->node = node;
    cursor->left = left;
    cursor->prev = NULL;
    cursor->next = n->cursors;
    if (n->cursors) n->cursors->prev = cursor;
    n->cursors = cursor;
}

static void unlink_cursor(struct shared_prefix *t, struct shared_cursor *cursor)
{
    if (cursor->prev) cursor->prev->next = cursor->next;
    else t->nodes[cursor->node].cursors = cursor->next;
    if (cursor->next) cursor->next->prev = cursor->prev;
}

static void move_cursor(struct shared_prefix *t, struct shared_cursor *cursor, uint32_t node, uint64_t left)
{
    unlink_cursor(t, cursor);
    link_cursor(t, cursor, node, left);
}

/* Cuts the node after `keep` tokens. */
static void split(struct shared_prefix *t, uint32_t lower, uint64_t keep)
{
    struct node *n = &t->nodes[lower];
    uint32_t *named = find_child(t, n->parent, n->space, n->first);
    uint32_t upper = t->node_count++;
    t->nodes[upper] = (struct node){.space = n->space,
                                    .first = n->first,
                                    .count = keep,
                                    .parent = n->parent,
                                    .children = 1};
    *named = upper;
    n->first += keep;
    n->count -= keep;
    n->parent = upper;
    *find_child(t, upper, n->space, n->first) = lower;
    for (struct shared_cursor *c = n->cursors, *next; c; c = next) {
        next = c->next;
        if (c->left >= n->count) move_cursor(t, c, upper, c->left - n->count);
    }
}

/* Where a search ended. */
struct place {
    uint32_t node;
    uint64_t in_node; /* tokens of the node */
    uint64_t tokens;  /* found in all */
};

static struct place walk(const struct shared_prefix *t, const struct wl_span *spans, size_t span_count,
                         uint64_t max_tokens)
{
    const struct node *node = &t->nodes[0];
    struct place at = {0};
    for (size_t s = 0; s < span_count; s++) {
        uint64_t in_span = 0;
        while (in_span < spans[s].count) {
            if (at.tokens >= max_tokens) return at;
            uint64_t next = spans[s].first + in_span;
            if (at.in_node == node->count) {
                uint32_t child = *find_child(t, at.node, spans[s].space, next);
                if (child == 0) return at;
                at.node = child;
                at.in_node = 0;
                node = &t->nodes[child];
            } else if (node->space != spans[s].space || node->first + at.in_node != next) {
                return at;
            }
            uint64_t run = min_u64(node->count - at.in_node, spans[s].count - in_span);
            at.in_node += run;
            in_span += run;
            at.tokens += run;
        }
    }
    return at;
}

/* Whether some cursor on the way there has gone on. */
static bool wake_one(struct shared_prefix *t, const struct place *end, const struct shared_waker *waker)
{
    uint64_t beyond = t->nodes[end->node].count - end->in_node; /* tokens of the node that were not reached */
    for (uint32_t id = end->node;; id = t->nodes[id].parent, beyond = 0) {
        for (struct shared_cursor *c = t->nodes[id].cursors; c; c = c->next) {
            if (c->left >= beyond && waker->wake(waker->context, c)) return true;
        }
        if (id == 0) return false;
    }
}

uint64_t shared_prefix_match(struct shared_prefix *t, const struct wl_span *spans, size_t span_count,
                             uint64_t max_tokens, const struct shared_waker *waker)
{
    struct place at;
    do {
        at = walk(t, spans, span_count, max_tokens);
    } while (waker && at.tokens < max_tokens && wake_one(t, &at, waker));
    return min_u64(at.tokens, max_tokens);
}

void shared_cursor_begin(struct shared_prefix *t, struct shared_cursor *cursor, void *owner)
{
    *cursor = (struct shared_cursor){.owner = owner};
    link_cursor(t, cursor, 0, 0);
}

void shared_cursor_end(struct shared_prefix *t, struct shared_cursor *cursor)
{
    unlink_cursor(t, cursor);
}

/* The cursor stands inside a node whose next token is another one: cuts the node there. */
static void cut_at_cursor(struct shared_prefix *t, struct shared_cursor *cursor)
{
    split(t, cursor->node, t->nodes[cursor->node].count - cursor->left);
}

/* Inserts at most `count` tokens that start with (space, first) behind the cursor, at least one; returns how
 * many. What is there already is walked over; a leaf of this sequence alone grows in place. */
static uint64_t insert_run(struct shared_prefix *t, struct shared_cursor *cursor, uint64_t space,
                           uint64_t first, uint64_t count)
{
    struct node *at = &t->nodes[cursor->node];
    if (cursor->left > 0) {
        if (at->space == space && at->first + at->count - cursor->left == first) {
            count = min_u64(count, cursor->left);
            cursor->left -= count;
            return count;
        }
        cut_at_cursor(t, cursor);
        at = &t->nodes[cursor->node];
    }
    bool alone = cursor->node != 0 && at->children == 0 && at->cursors == cursor && !cursor->next;
    if (alone && at->space == space && at->first + at->count == first) {
        at->count += count;
        return count;
    }
    uint32_t child = *find_child(t, cursor->node, space, first);
    if (child == 0) {
        move_cursor(t, cursor, add_node(t, cursor->node, space, first, count), 0);
        return count;
    }
    count = min_u64(count, t->nodes[child].count);
    move_cursor(t, cursor, child, t->nodes[child].count - count);
    return count;
}

int shared_cursor_advance(struct shared_prefix *t, struct shared_cursor *cursor,
                          const struct wl_span *spans, size_t span_count, uint64_t upto_tokens)
{
    while (cursor->tokens < upto_tokens) {
        assert(cursor->span < span_count);
        const struct wl_span *span = &spans[cursor->span];
        uint64_t want =
            min_u64(span->count - cursor->span_tokens, upto_tokens - cursor->tokens);
        if (reserve(t)) return -1;
        uint64_t done =
            insert_run(t, cursor, span->space, span->first + cursor->span_tokens, want);
        cursor->tokens += done;
        cursor->span_tokens += done;
        if (cursor->span_tokens == span->count) {
            cursor->span++;
            cursor->span_tokens = 0;
        }
    }
    return 0;
}
