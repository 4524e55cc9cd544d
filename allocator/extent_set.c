#include "allocator/extent_set.h"

#include <assert.h>
#include <stdlib.h>

/* Each extent is a node of two treaps: one ordered by address, one by (length, address). A treap needs
 * no rebalancing code beyond split and merge, and its priorities are a fixed function of the node's
 * number, so runs repeat exactly. Each subtree knows its longest extent, which makes first fit a
 * descent in the tree by address. */

enum { BY_ADDRESS, BY_LENGTH };
enum { NIL = 0 };

struct extent_links {
    uint32_t left, right;
};

struct extent {
    uint64_t start, units;
    uint64_t longest; /* in the subtree by address */
    struct extent_links links[2];
    uint32_t priority;
};

static uint32_t node_priority(uint32_t node)
{
    uint64_t mixed = (uint64_t)node * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)((mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 32);
}

/* Whether node a stands before (start, units) in the given order. */
static bool is_before(const struct extent *a, int order, uint64_t start, uint64_t units)
{
    if (order == BY_LENGTH && a->units != units)
        return a->units < units;
    return a->start < start;
}

static void update_longest(struct extent_set *set, uint32_t node)
{
    struct extent *e = &set->nodes[node];
    uint64_t left = set->nodes[e->links[BY_ADDRESS].left].longest;
    uint64_t right = set->nodes[e->links[BY_ADDRESS].right].longest;
    uint64_t below = left > right ? left : right;
    e->longest = e->units > below ? e->units : below;
}

static void split(struct extent_set *set, int order, uint32_t tree, uint64_t start, uint64_t units,
                  uint32_t *before, uint32_t *after)
{
    if (tree == NIL) {
        *before = *after = NIL;
        return;
    }
    struct extent_links *links = &set->nodes[tree].links[order];
    if (is_before(&set->nodes[tree], order, start, units)) {
        split(set, order, links->right, start, units, &links->right, after);
        *before = tree;
    } else {
        split(set, order, links->left, start, units, before, &links->left);
        *after = tree;
    }
    if (order == BY_ADDRESS)
        update_longest(set, tree);
}

static uint32_t merge(struct extent_set *set, int order, uint32_t left, uint32_t right)
{
    if (left == NIL || right == NIL)
        return left != NIL ? left : right;
    uint32_t top = left;
    if (set->nodes[left].priority >= set->nodes[right].priority) {
        struct extent_links *links = &set->nodes[left].links[order];
        links->right = merge(set, order, links->right, right);
    } else {
        struct extent_links *links = &set->nodes[right].links[order];
        links->left = merge(set, order, left, links->left);
        top = right;
    }
    if (order == BY_ADDRESS)
        update_longest(set, top);
    return top;
}

static void tree_insert(struct extent_set *set, int order, uint32_t node)
{
    struct extent *e = &set->nodes[node];
    uint32_t before, after;
    e->links[order] = (struct extent_links){ NIL, NIL };
    split(set, order, set->root[order], e->start, e->units, &before, &after);
    set->root[order] = merge(set, order, merge(set, order, before, node), after);
}

static uint32_t erase_below(struct extent_set *set, int order, uint32_t tree, uint32_t node)
{
    assert(tree != NIL);
    struct extent_links *links = &set->nodes[tree].links[order];
    if (tree == node)
        return merge(set, order, links->left, links->right);
    const struct extent *e = &set->nodes[node];
    if (is_before(&set->nodes[tree], order, e->start, e->units))
        links->right = erase_below(set, order, links->right, node);
    else
        links->left = erase_below(set, order, links->left, node);
    if (order == BY_ADDRESS)
        update_longest(set, tree);
    return tree;
}

static void insert_extent(struct extent_set *set, uint64_t start, uint64_t units)
{
    uint32_t node = set->unused;
    assert(node != NIL);
    struct extent *e = &set->nodes[node];
    set->unused = e->links[BY_ADDRESS].right;
    e->start = start;
    e->units = e->longest = units;
    tree_insert(set, BY_ADDRESS, node);
    tree_insert(set, BY_LENGTH, node);
    set->free_units += units;
}

static void erase_extent(struct extent_set *set, uint32_t node)
{
    struct extent *e = &set->nodes[node];
    for (int order = BY_ADDRESS; order <= BY_LENGTH; order++)
        set->root[order] = erase_below(set, order, set->root[order], node);
    set->free_units -= e->units;
    e->links[BY_ADDRESS].right = set->unused;
    set->unused = node;
}

bool extent_set_init(struct extent_set *set, uint64_t space_units, uint32_t max_taken)
{
    assert(space_units > 0);
    *set = (struct extent_set){ .space_units = space_units };
    if (max_taken > UINT32_MAX - 4)
        return false;
    /* n taken extents leave at most n + 1 holes; one more while a hole is cut in two. */
    set->node_count = max_taken + 3;
    set->nodes = calloc(set->node_count, sizeof *set->nodes);
    if (set->nodes == NULL)
        return false;
    for (uint32_t node = 1; node < set->node_count; node++) {
        set->nodes[node].priority = node_priority(node);
        set->nodes[node].links[BY_ADDRESS].right = node + 1 < set->node_count ? node + 1 : NIL;
    }
    set->unused = 1;
    insert_extent(set, 0, space_units);
    return true;
}

void extent_set_release(struct extent_set *set)
{
    free(set->nodes);
    set->nodes = NULL;
}

static uint32_t first_fit(const struct extent_set *set, uint64_t units)
{
    uint32_t node = set->root[BY_ADDRESS];
    while (node != NIL && set->nodes[node].longest >= units) {
        const struct extent *e = &set->nodes[node];
        if (set->nodes[e->links[BY_ADDRESS].left].longest >= units)
            node = e->links[BY_ADDRESS].left;
        else if (e->units >= units)
            return node;
        else
            node = e->links[BY_ADDRESS].right;
    }
    return NIL;
}

static uint32_t best_fit(const struct extent_set *set, uint64_t units)
{
    uint32_t best = NIL;
    for (uint32_t node = set->root[BY_LENGTH]; node != NIL;) {
        const struct extent *e = &set->nodes[node];
        if (e->units >= units) {
            best = node;
            node = e->links[BY_LENGTH].left;
        } else {
            node = e->links[BY_LENGTH].right;
        }
    }
    return best;
}

static uint32_t find_fit(const struct extent_set *set, enum extent_fit fit, uint64_t units)
{
    if (extent_set_longest(set) < units)
        return NIL;
    switch (fit) {
    case EXTENT_FIRST_FIT:
        return first_fit(set, units);
    case EXTENT_BEST_FIT:
        return best_fit(set, units);
    case EXTENT_WORST_FIT: /* the best fit for the longest length is the lowest of the longest */
        return best_fit(set, extent_set_longest(set));
    }
    return NIL;
}

bool extent_set_take(struct extent_set *set, enum extent_fit fit, uint64_t units, uint64_t *start)
{
    assert(units > 0);
    uint32_t node = find_fit(set, fit, units);
    if (node == NIL)
        return false;
    uint64_t whole_units = set->nodes[node].units;
    *start = set->nodes[node].start;
    erase_extent(set, node);
    if (whole_units > units)
        insert_extent(set, *start + units, whole_units - units);
    return true;
}

/* The extent with the largest start <= address, or NIL. */
static uint32_t extent_at_or_before(const struct extent_set *set, uint64_t address)
{
    uint32_t found = NIL;
    for (uint32_t node = set->root[BY_ADDRESS]; node != NIL;) {
        const struct extent *e = &set->nodes[node];
        if (e->start <= address) {
            found = node;
            node = e->links[BY_ADDRESS].right;
        } else {
            node = e->links[BY_ADDRESS].left;
        }
    }
    return found;
}

/* The extent that starts at this address exactly, or NIL. */
static uint32_t extent_at(const struct extent_set *set, uint64_t address)
{
    uint32_t node = extent_at_or_before(set, address);
    return node != NIL && set->nodes[node].start == address ? node : NIL;
}

bool extent_set_is_free(const struct extent_set *set, uint64_t start, uint64_t units)
{
    uint32_t node = extent_at_or_before(set, start);
    if (node == NIL)
        return false;
    const struct extent *e = &set->nodes[node];
    return start - e->start < e->units && units <= e->units - (start - e->start);
}

void extent_set_take_at(struct extent_set *set, uint64_t start, uint64_t units)
{
    assert(units > 0);
    assert(extent_set_is_free(set, start, units));
    uint32_t node = extent_at_or_before(set, start);
    uint64_t hole_start = set->nodes[node].start;
    uint64_t hole_end = hole_start + set->nodes[node].units;
    erase_extent(set, node);
    if (hole_start < start)
        insert_extent(set, hole_start, start - hole_start);
    if (start + units < hole_end)
        insert_extent(set, start + units, hole_end - start - units);
}

void extent_set_give(struct extent_set *set, uint64_t start, uint64_t units)
{
    uint64_t end = start + units;
    assert(units > 0 && end <= set->space_units);
    uint32_t before = extent_at_or_before(set, start);
    if (before != NIL) {
        uint64_t before_end = set->nodes[before].start + set->nodes[before].units;
        assert(before_end <= start);
        if (before_end == start) {
            start = set->nodes[before].start;
            erase_extent(set, before);
        }
    }
    uint32_t after = extent_at(set, end);
    if (after != NIL) {
        end += set->nodes[after].units;
        erase_extent(set, after);
    }
    insert_extent(set, start, end - start);
}

uint64_t extent_set_longest(const struct extent_set *set)
{
    return set->nodes[set->root[BY_ADDRESS]].longest; /* nil has none */
}

static uint64_t count_below(const struct extent_set *set, uint32_t tree, uint64_t piece_units)
{
    const struct extent *e = &set->nodes[tree];
    if (tree == NIL || e->longest < piece_units)
        return 0;
    return e->units / piece_units + count_below(set, e->links[BY_ADDRESS].left, piece_units) +
           count_below(set, e->links[BY_ADDRESS].right, piece_units);
}

uint64_t extent_set_count_pieces(const struct extent_set *set, uint64_t piece_units)
{
    assert(piece_units > 0);
    return count_below(set, set->root[BY_ADDRESS], piece_units);
}

uint64_t extent_set_longest_piece(const struct extent_set *set, uint64_t pieces)
{
    assert(pieces > 0);
    uint64_t fits = 0, too_long = extent_set_longest(set) + 1;
    if (pieces == 1)
        return too_long - 1;
    while (too_long - fits > 1) {
        uint64_t middle = fits + (too_long - fits) / 2;
        if (extent_set_count_pieces(set, middle) >= pieces)
            fits = middle;
        else
            too_long = middle;
    }
    return fits;
}

struct extent_walk {
    const struct extent_set *set;
    uint64_t count, units;
    const struct extent *last;
    const char *wrong;
};

static uint64_t walk_tree(struct extent_walk *walk, int order, uint32_t tree)
{
    if (tree == NIL || walk->wrong != NULL)
        return 0;
    const struct extent *e = &walk->set->nodes[tree];
    uint64_t longest = walk_tree(walk, order, e->links[order].left);
    if (walk->last != NULL && !is_before(walk->last, order, e->start, e->units))
        walk->wrong = "extent set: a tree is out of order";
    if (walk->last != NULL && order == BY_ADDRESS && walk->last->start + walk->last->units >= e->start)
        walk->wrong = "extent set: extents touch or overlap";
    if (e->units == 0 || e->start + e->units > walk->set->space_units)
        walk->wrong = "extent set: an extent is empty or outside the space";
    walk->last = e;
    walk->count++;
    walk->units += e->units;
    uint64_t right = walk_tree(walk, order, e->links[order].right);
    longest = right > longest ? right : longest;
    longest = e->units > longest ? e->units : longest;
    if (order == BY_ADDRESS && longest != e->longest && walk->wrong == NULL)
        walk->wrong = "extent set: a subtree's longest extent is wrong";
    return longest;
}

const char *extent_set_check(const struct extent_set *set)
{
    struct extent_walk walks[2] = { { .set = set }, { .set = set } };
    for (int order = BY_ADDRESS; order <= BY_LENGTH; order++) {
        walk_tree(&walks[order], order, set->root[order]);
        if (walks[order].wrong != NULL)
            return walks[order].wrong;
        if (walks[order].units != set->free_units)
            return "extent set: free units differ from the sum of the extents";
    }
    return walks[0].count == walks[1].count ? NULL : "extent set: the trees differ in size";
}
