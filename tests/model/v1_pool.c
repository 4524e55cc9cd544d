#include "tests/model/v1_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void v1_list_insert(struct v1_list *list, uint32_t at, uint32_t value)
{
    v1_list_push(list, value);
    memmove(list->v + at + 1, list->v + at, (list->n - 1 - at) * sizeof *list->v);
    list->v[at] = value;
}

uint32_t v1_list_remove_at(struct v1_list *list, uint32_t at)
{
    assert(at < list->n);
    uint32_t value = list->v[at];
    list->n--;
    memmove(list->v + at, list->v + at + 1, (list->n - at) * sizeof *list->v);
    return value;
}

void v1_list_remove(struct v1_list *list, uint32_t value)
{
    uint32_t at = 0;
    while (at < list->n && list->v[at] != value)
        at++;
    v1_list_remove_at(list, at);
}

void v1_pool_init(struct v1_pool *p, const struct v1_config *c)
{
    *p = (struct v1_pool){
        .num_blocks = c->num_blocks,
        .block_tokens = c->block_tokens,
        .keyless_to_head = c->rules == V1_RULES_2026_08 && c->enable_prefix_caching,
        .nodes = v1_resize(NULL, 1, sizeof *p->nodes),
        .num_nodes = 1,
        .blocks = v1_resize(NULL, c->num_blocks, sizeof *p->blocks),
    };
    p->nodes[0] = (struct v1_key_node){0};
    memset(p->blocks, 0, c->num_blocks * sizeof *p->blocks);
    for (uint32_t b = 1; b < c->num_blocks; b++)
        v1_list_push(&p->free_queue, b);
}

void v1_pool_release(struct v1_pool *p)
{
    for (uint32_t k = 0; k < p->num_nodes; k++)
        free(p->nodes[k].tokens);
    free(p->nodes);
    free(p->blocks);
    v1_list_release(&p->free_queue);
    v1_list_release(&p->evictions);
}

uint32_t v1_pool_key(struct v1_pool *p, uint32_t parent, const uint64_t *tokens)
{
    size_t bytes = p->block_tokens * sizeof *tokens;
    for (uint32_t k = p->nodes[parent].first_child; k != 0; k = p->nodes[k].next_sibling)
        if (memcmp(p->nodes[k].tokens, tokens, bytes) == 0)
            return k;
    p->nodes = v1_grow(p->nodes, p->num_nodes, sizeof *p->nodes);
    uint32_t key = p->num_nodes++;
    p->nodes[key] = (struct v1_key_node){
        .next_sibling = p->nodes[parent].first_child,
        .tokens = v1_resize(NULL, p->block_tokens, sizeof *tokens),
    };
    memcpy(p->nodes[key].tokens, tokens, bytes);
    p->nodes[parent].first_child = key;
    return key;
}

uint32_t v1_pool_find(const struct v1_pool *p, uint32_t key)
{
    uint32_t found = 0;
    for (uint32_t b = 1; b < p->num_blocks; b++) {
        if (p->blocks[b].key != key)
            continue;
        if (found == 0 || p->blocks[b].keyed_at < p->blocks[found].keyed_at)
            found = b;
    }
    return found;
}

void v1_pool_give_key(struct v1_pool *p, uint32_t id, uint32_t key)
{
    assert(id != 0 && key != 0 && p->blocks[id].holders > 0);
    assert(p->blocks[id].key == 0 || p->blocks[id].key == key);
    if (p->blocks[id].key != 0)
        return;
    p->blocks[id].key = key;
    p->blocks[id].keyed_at = ++p->num_keys_given;
}

uint32_t v1_pool_pop(struct v1_pool *p)
{
    uint32_t id = v1_list_remove_at(&p->free_queue, 0);
    assert(p->blocks[id].holders == 0);
    if (p->blocks[id].key != 0)
        v1_list_push(&p->evictions, id);
    p->blocks[id].key = 0;
    p->blocks[id].holders = 1;
    p->num_popped++;
    return id;
}

void v1_pool_touch(struct v1_pool *p, uint32_t id)
{
    if (p->blocks[id].holders == 0)
        v1_list_remove(&p->free_queue, id);
    p->blocks[id].holders++;
}

void v1_pool_give_up(struct v1_pool *p, const struct v1_list *visited)
{
    uint32_t num_at_head = 0;
    for (uint32_t i = 0; i < visited->n; i++) {
        uint32_t id = visited->v[i];
        assert(id != 0 && p->blocks[id].holders > 0);
        p->blocks[id].holders--;
        if (p->blocks[id].holders > 0)
            continue;
        if (p->keyless_to_head && p->blocks[id].key == 0)
            v1_list_insert(&p->free_queue, num_at_head++, id);
        else
            v1_list_push(&p->free_queue, id);
    }
}

uint32_t v1_pool_cached(const struct v1_pool *p)
{
    uint32_t n = 0;
    for (uint32_t b = 1; b < p->num_blocks; b++)
        n += p->blocks[b].key != 0;
    return n;
}
