#include "allocator/device/dev_tree.h"

#include <assert.h>
#include <stdbool.h>

static int height_of(const struct dev_node *node)
{
    return node ? node->height : 0;
}

static uint64_t room_max_of(const struct dev_node *node)
{
    return node ? node->room_max : 0;
}

/* Recomputes what a node knows of its subtree. */
static void refresh(struct dev_node *node)
{
    int left = height_of(node->child[0]);
    int right = height_of(node->child[1]);
    node->height = 1 + (left > right ? left : right);
    uint64_t room = node->room;
    for (int side = 0; side < 2; side++) {
        uint64_t below = room_max_of(node->child[side]);
        room = below > room ? below : room;
    }
    node->room_max = room;
}

static bool comes_before(const struct dev_tree *tree, const struct dev_node *a, const struct dev_node *b)
{
    if (tree->order == DEV_BY_SIZE && a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->address < b->address;
}

/* Puts `child` (may be NULL) where `node` hangs. */
static void replace_in_parent(struct dev_tree *tree, const struct dev_node *node, struct dev_node *child)
{
    struct dev_node *parent = node->parent;
    if (!parent)
        tree->root = child;
    else
        parent->child[parent->child[1] == node] = child;
    if (child)
        child->parent = parent;
}

/* Lifts the child on `side` above the node and returns it. */
static struct dev_node *rotate(struct dev_tree *tree, struct dev_node *node, int side)
{
    struct dev_node *up = node->child[side];
    struct dev_node *moved = up->child[!side];
    replace_in_parent(tree, node, up);
    node->child[side] = moved;
    if (moved)
        moved->parent = node;
    up->child[!side] = node;
    node->parent = up;
    refresh(node);
    refresh(up);
    return up;
}

/* Restores balance and subtree knowledge from `node` up to the root. */
static void repair(struct dev_tree *tree, struct dev_node *node)
{
    while (node) {
        int height = node->height;
        uint64_t room_max = node->room_max;
        refresh(node);
        int lean = height_of(node->child[1]) - height_of(node->child[0]);
        if (lean > 1 || lean < -1) {
            int side = lean > 0;
            struct dev_node *heavy = node->child[side];
            if (height_of(heavy->child[!side]) > height_of(heavy->child[side]))
                rotate(tree, heavy, !side);
            node = rotate(tree, node, side);
        } else if (node->height == height && node->room_max == room_max) {
            return; /* nothing that an ancestor looks at has changed */
        }
        node = node->parent;
    }
}

void dev_tree_insert(struct dev_tree *tree, struct dev_node *node)
{
    struct dev_node *parent = NULL;
    struct dev_node **place = &tree->root;
    while (*place) {
        parent = *place;
        assert(parent != node);
        place = &parent->child[!comes_before(tree, node, parent)];
    }
    *place = node;
    node->parent = parent;
    node->child[0] = node->child[1] = NULL;
    node->height = 1;
    node->room_max = node->room;
    tree->count++;
    repair(tree, parent);
}

void dev_tree_remove(struct dev_tree *tree, struct dev_node *node)
{
    assert(tree->count > 0);
    struct dev_node *from; /* the lowest node whose subtree lost something */
    struct dev_node *heir = NULL;
    if (node->child[0] && node->child[1]) {
        heir = node->child[1];
        while (heir->child[0])
            heir = heir->child[0];
        from = heir->parent == node ? heir : heir->parent;
        if (heir->parent != node) {
            replace_in_parent(tree, heir, heir->child[1]);
            heir->child[1] = node->child[1];
            heir->child[1]->parent = heir;
        }
        replace_in_parent(tree, node, heir);
        heir->child[0] = node->child[0];
        heir->child[0]->parent = heir;
        /* What ancestors know of this place until repair gets here. */
        heir->height = node->height;
        heir->room_max = node->room_max;
    } else {
        from = node->parent;
        replace_in_parent(tree, node, node->child[node->child[0] == NULL]);
    }
    tree->count--;
    node->parent = node->child[0] = node->child[1] = NULL;
    repair(tree, from);
    if (heir)
        repair(tree, heir); /* its own room differs from the removed node's even where nothing below changed */
}

void dev_tree_set_room(struct dev_node *node, uint64_t room)
{
    node->room = room;
    for (; node; node = node->parent) {
        uint64_t before = node->room_max;
        refresh(node);
        if (node->room_max == before)
            return;
    }
}

static struct dev_node *outermost(struct dev_node *node, int side)
{
    while (node && node->child[side])
        node = node->child[side];
    return node;
}

static struct dev_node *step(const struct dev_node *node, int side)
{
    if (node->child[side])
        return outermost(node->child[side], !side);
    const struct dev_node *from = node;
    struct dev_node *up = node->parent;
    while (up && up->child[side] == from) {
        from = up;
        up = up->parent;
    }
    return up;
}

struct dev_node *dev_tree_first(const struct dev_tree *tree)
{
    return outermost(tree->root, 0);
}

struct dev_node *dev_tree_last(const struct dev_tree *tree)
{
    return outermost(tree->root, 1);
}

struct dev_node *dev_tree_next(const struct dev_node *node)
{
    return step(node, 1);
}

struct dev_node *dev_tree_prev(const struct dev_node *node)
{
    return step(node, 0);
}

struct dev_node *dev_tree_at_least(const struct dev_tree *tree, uint64_t bytes)
{
    assert(tree->order == DEV_BY_SIZE);
    struct dev_node *best = NULL;
    for (struct dev_node *node = tree->root; node;) {
        if (node->bytes >= bytes) {
            best = node;
            node = node->child[0];
        } else {
            node = node->child[1];
        }
    }
    return best;
}

struct dev_node *dev_tree_below(const struct dev_tree *tree, uint64_t address)
{
    assert(tree->order == DEV_BY_ADDRESS);
    struct dev_node *best = NULL;
    for (struct dev_node *node = tree->root; node;) {
        if (node->address < address) {
            best = node;
            node = node->child[1];
        } else {
            node = node->child[0];
        }
    }
    return best;
}

/* The outermost node towards `side` that has the room. */
static struct dev_node *with_room(const struct dev_tree *tree, uint64_t room, int side)
{
    struct dev_node *node = tree->root;
    if (!node || node->room_max < room)
        return NULL;
    for (;;) {
        struct dev_node *outer = node->child[side];
        if (outer && outer->room_max >= room)
            node = outer;
        else if (node->room >= room)
            return node;
        else
            node = node->child[!side]; /* it must be there: this subtree's largest room is enough */
    }
}

struct dev_node *dev_tree_first_with_room(const struct dev_tree *tree, uint64_t room)
{
    return with_room(tree, room, 0);
}

struct dev_node *dev_tree_last_with_room(const struct dev_tree *tree, uint64_t room)
{
    return with_room(tree, room, 1);
}
