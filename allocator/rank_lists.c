#include "allocator/rank_lists.h"

/* At most as many ranks as objects, as nobody keeps an empty list. Memory is zeroed, and touched as ranks appear. */
bool rank_lists_init(struct rank_lists *ranks, uint32_t objects)
{
    unsigned bits = 1;
    bool made;

    while (bits < 31 && UINT32_C(1) << bits < objects)
        bits++;
    *ranks = (struct rank_lists){.shift = 64 - bits};
    ranks->list_of = calloc(objects, sizeof *ranks->list_of);
    ranks->ranks = calloc(objects, sizeof *ranks->ranks);
    ranks->buckets = calloc((size_t)1 << bits, sizeof *ranks->buckets);
    made = object_lists_reserve(&ranks->lists, objects, objects);
    made = object_heap_init(&ranks->heap, objects) && made;
    if (made && ranks->list_of != NULL && ranks->ranks != NULL && ranks->buckets != NULL)
        return true;
    rank_lists_release(ranks);
    return false;
}

void rank_lists_release(struct rank_lists *ranks)
{
    object_lists_release(&ranks->lists);
    object_heap_release(&ranks->heap);
    free(ranks->list_of);
    free(ranks->ranks);
    free(ranks->buckets);
    *ranks = (struct rank_lists){0};
}

static uint32_t *bucket_of(const struct rank_lists *ranks, uint64_t rank)
{
    return &ranks->buckets[rank * UINT64_C(0x9E3779B97F4A7C15) >> ranks->shift];
}

static uint32_t open_list(struct rank_lists *ranks, uint64_t rank)
{
    uint32_t *bucket = bucket_of(ranks, rank), list;

    if (ranks->unused > 0) {
        list = ranks->unused - 1;
        ranks->unused = ranks->ranks[list].chain;
    } else {
        list = ranks->used++;
    }
    ranks->ranks[list] = (struct rank){.rank = rank, .chain = *bucket};
    *bucket = list + 1;
    object_lists_open(&ranks->lists, list);
    object_heap_push(&ranks->heap, list, rank, 0);
    return list;
}

static void close_list(struct rank_lists *ranks, uint32_t list)
{
    uint32_t *link = bucket_of(ranks, ranks->ranks[list].rank);

    while (*link != list + 1)
        link = &ranks->ranks[*link - 1].chain;
    *link = ranks->ranks[list].chain;
    ranks->ranks[list].chain = ranks->unused;
    ranks->unused = list + 1;
    object_heap_remove(&ranks->heap, list);
}

static uint32_t list_of_rank(struct rank_lists *ranks, uint64_t rank)
{
    uint32_t link = *bucket_of(ranks, rank);

    while (link != 0 && ranks->ranks[link - 1].rank != rank)
        link = ranks->ranks[link - 1].chain;
    return link != 0 ? link - 1 : open_list(ranks, rank);
}

void rank_lists_push(struct rank_lists *ranks, uint32_t object, uint64_t rank)
{
    if (!object_heap_has(&ranks->heap, ranks->last) || ranks->ranks[ranks->last].rank != rank)
        ranks->last = list_of_rank(ranks, rank);
    object_lists_push(&ranks->lists, ranks->last, object);
    ranks->list_of[object] = ranks->last;
    ranks->count++;
}

void rank_lists_remove(struct rank_lists *ranks, uint32_t object)
{
    uint32_t list = ranks->list_of[object];

    object_lists_remove(&ranks->lists, object);
    ranks->count--;
    if (object_lists_oldest(&ranks->lists, list) == KV_OBJECT_NONE)
        close_list(ranks, list);
}

uint32_t rank_lists_first(const struct rank_lists *ranks)
{
    return object_lists_oldest(&ranks->lists, object_heap_top(&ranks->heap));
}

uint64_t rank_lists_least(const struct rank_lists *ranks)
{
    return object_heap_top_major(&ranks->heap);
}

bool rank_lists_sound(const struct rank_lists *ranks)
{
    uint32_t inside = 0;

    if (!object_heap_sound(&ranks->heap))
        return false;
    for (uint32_t list = 0; list < ranks->used; list++) {
        uint32_t count;

        if (!object_heap_has(&ranks->heap, list))
            continue;
        if (!object_lists_sound(&ranks->lists, list, &count) || count == 0)
            return false;
        for (uint32_t at = object_lists_oldest(&ranks->lists, list); at != KV_OBJECT_NONE;
             at = object_lists_newer(&ranks->lists, at))
            if (ranks->list_of[at] != list)
                return false;
        inside += count;
    }
    return inside == ranks->count;
}
