/* The tree against a sorted array, and the room of subtrees against a walk. */
#include "tests/check.h"

#include <stdbool.h>
#include <stdlib.h>

#include "allocator/device/dev_tree.h"

#define NODES 300
#define STEPS 20000

struct fixture {
    struct dev_tree tree;
    struct dev_node nodes[NODES];
    bool in[NODES];
};

static uint64_t random_state = 42;

static uint64_t random_u64(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

static bool before(const struct fixture *f, const struct dev_node *a, const struct dev_node *b)
{
    if (f->tree.order == DEV_BY_SIZE && a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->address < b->address;
}

/* The node that is first in order among those that qualify; the last one with `last`. */
static const struct dev_node *search(const struct fixture *f, uint64_t bytes_min, uint64_t room_min, bool last)
{
    const struct dev_node *best = NULL;
    for (size_t i = 0; i < NODES; i++) {
        const struct dev_node *node = &f->nodes[i];
        if (!f->in[i] || node->bytes < bytes_min || node->room < room_min)
            continue;
        if (!best || before(f, node, best) != last)
            best = node;
    }
    return best;
}

static void check_walk(const struct fixture *f)
{
    size_t n = 0;
    const struct dev_node *last = NULL;
    for (const struct dev_node *node = dev_tree_first(&f->tree); node; node = dev_tree_next(node)) {
        assert_true(!last || before(f, last, node));
        assert_ptr_equal(last ? dev_tree_prev(node) : NULL, last);
        last = node;
        n++;
    }
    check_u64_eq(n, f->tree.count);
    assert_ptr_equal(dev_tree_last(&f->tree), last);
}

static void change_one(struct fixture *f)
{
    size_t i = random_u64() % NODES;
    struct dev_node *node = &f->nodes[i];
    if (f->in[i] && random_u64() % 3 == 0) {
        dev_tree_set_room(node, random_u64() % 50);
    } else if (f->in[i]) {
        dev_tree_remove(&f->tree, node);
        f->in[i] = false;
    } else {
        node->bytes = random_u64() % 40; /* many equals */
        node->address = i;
        node->room = random_u64() % 50;
        dev_tree_insert(&f->tree, node);
        f->in[i] = true;
    }
}

static void check_order(enum dev_order order)
{
    static struct fixture f;
    f = (struct fixture){.tree.order = order};
    for (size_t step = 0; step < STEPS; step++) {
        change_one(&f);
        uint64_t key = random_u64() % 52;
        assert_ptr_equal(dev_tree_first_with_room(&f.tree, key), search(&f, 0, key, false));
        assert_ptr_equal(dev_tree_last_with_room(&f.tree, key), search(&f, 0, key, true));
        if (order == DEV_BY_SIZE)
            assert_ptr_equal(dev_tree_at_least(&f.tree, key), search(&f, key, 0, false));
        if (step % 500 == 0)
            check_walk(&f);
    }
}

static void tree_by_size__random_changes__same_as_a_search(void **state)
{
    (void)state;
    check_order(DEV_BY_SIZE);
}

static void tree_by_address__random_changes__same_as_a_search(void **state)
{
    (void)state;
    check_order(DEV_BY_ADDRESS);
}

static void below__between_nodes__last_that_starts_lower(void **state)
{
    (void)state;
    struct dev_tree tree = {.order = DEV_BY_ADDRESS};
    struct dev_node a = {.address = 10}, b = {.address = 20};
    assert_null(dev_tree_below(&tree, 5));
    dev_tree_insert(&tree, &b);
    dev_tree_insert(&tree, &a);
    assert_null(dev_tree_below(&tree, 10));
    assert_ptr_equal(dev_tree_below(&tree, 11), &a);
    assert_ptr_equal(dev_tree_below(&tree, 20), &a);
    assert_ptr_equal(dev_tree_below(&tree, UINT64_MAX), &b);
}

static void insert__ascending__height_stays_logarithmic(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    struct dev_tree tree = {.order = DEV_BY_ADDRESS};
    struct dev_node *nodes = calloc(N, sizeof *nodes);
    assert_non_null(nodes);
    for (size_t i = 0; i < N; i++) {
        nodes[i].address = i;
        dev_tree_insert(&tree, &nodes[i]);
    }
    /* An AVL tree of 2^16 nodes is at most 1.44 * log2(2^16 + 2) = 23 high. */
    assert_true(tree.root->height <= 23);
    for (size_t i = 0; i < N; i += 2)
        dev_tree_remove(&tree, &nodes[i]);
    assert_true(tree.root->height <= 22);
    free(nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree_by_size__random_changes__same_as_a_search),
        cmocka_unit_test(tree_by_address__random_changes__same_as_a_search),
        cmocka_unit_test(below__between_nodes__last_that_starts_lower),
        cmocka_unit_test(insert__ascending__height_stays_logarithmic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
