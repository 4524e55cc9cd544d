/* A balanced tree (AVL) of nodes that live inside their owners' structs, so it never allocates and no call fails.
 *
 * Two orders: by (bytes, address), which is best fit with the lowest address among equals, and by address. Each node also carries
 * `room`, and the tree knows the largest room of every subtree: "the highest gap larger than this" and "the lowest range with
 * room" are one descent. All operations are O(log n); stepping to a neighbour is O(1) on average. */
#ifndef PAGESIM_DEV_TREE_H
#define PAGESIM_DEV_TREE_H

#include <stddef.h>
#include <stdint.h>

enum dev_order { DEV_BY_SIZE, DEV_BY_ADDRESS };

struct dev_node {
    struct dev_node *parent;
    struct dev_node *child[2];
    uint64_t bytes;
    uint64_t address;
    uint64_t room;     /* what dev_tree_*_with_room look at; the owner's meaning */
    uint64_t room_max; /* largest room in this subtree */
    int height;
};

struct dev_tree {
    struct dev_node *root;
    size_t count;
    enum dev_order order;
};

/* bytes, address and room must be set, and bytes and address stay as they are while the node is in the tree. No two nodes of a
 * tree have the same key. */
void dev_tree_insert(struct dev_tree *tree, struct dev_node *node);
void dev_tree_remove(struct dev_tree *tree, struct dev_node *node);
void dev_tree_set_room(struct dev_node *node, uint64_t room);

/* In key order; NULL at either end. */
struct dev_node *dev_tree_first(const struct dev_tree *tree);
struct dev_node *dev_tree_last(const struct dev_tree *tree);
struct dev_node *dev_tree_next(const struct dev_node *node);
struct dev_node *dev_tree_prev(const struct dev_node *node);

/* DEV_BY_SIZE: the smallest node of at least `bytes`, the lowest address among equals; NULL if there is none. */
struct dev_node *dev_tree_at_least(const struct dev_tree *tree, uint64_t bytes);
/* DEV_BY_ADDRESS: the last node that starts below `address`; NULL if there is none. */
struct dev_node *dev_tree_below(const struct dev_tree *tree, uint64_t address);
/* The first and the last node in key order whose room is at least `room`; NULL if there is none. */
struct dev_node *dev_tree_first_with_room(const struct dev_tree *tree, uint64_t room);
struct dev_node *dev_tree_last_with_room(const struct dev_tree *tree, uint64_t room);

#endif
