/* Arrivals out of order: the whole trace is read first, then given out by (arrival, place). */
#include "workloads/wl_source_impl.h"

#include <stdlib.h>

#include "workloads/wl_codec.h"

struct place {
    uint64_t arrival_ns;
    size_t at; /* of its bytes; grows with the place in the file, so it makes the sort stable */
};

struct sort_source {
    struct wl_source source;
    struct wl_source *inner; /* NULL once it is read */
    struct wl_text bytes;
    struct place *places;
    size_t count, capacity, next;
    uint64_t skipped;
    struct wl_draft draft;
};

static int compare_places(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    if (a->arrival_ns != b->arrival_ns)
        return a->arrival_ns < b->arrival_ns ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static int keep(struct sort_source *sort, const struct wl_draft *draft)
{
    void *places = sort->places;
    int rc = wl_array_reserve(&places, &sort->capacity, sizeof *sort->places, sort->count + 1);
    sort->places = places;
    if (rc != 0)
        return -1;
    sort->places[sort->count].arrival_ns = draft->request.arrival_ns;
    sort->places[sort->count].at = sort->bytes.count;
    if (wl_encode(draft, &sort->bytes) != 0)
        return -1;
    sort->count++;
    return 0;
}

static int read_all(struct sort_source *sort, struct err *err)
{
    for (;;) {
        struct wl_draft *draft;
        int rc = sort->inner->ops->next(sort->inner, &draft, err);
        if (rc < 0)
            return -1;
        if (rc == 0)
            break;
        if (keep(sort, draft) != 0)
            return err_set(err, ERR_FAILED, "%s: out of memory while sorting", sort->source.name);
    }
    sort->skipped = sort->inner->skipped;
    wl_close(sort->inner);
    sort->inner = NULL;
    if (sort->count > 0)
        qsort(sort->places, sort->count, sizeof *sort->places, compare_places);
    return 0;
}

static int sort_next(struct wl_source *source, struct wl_draft **draft, struct err *err)
{
    struct sort_source *sort = (struct sort_source *)source;
    if (sort->inner != NULL && read_all(sort, err) != 0)
        return -1;
    source->skipped = sort->skipped;
    if (sort->next == sort->count)
        return 0;
    const char *at = sort->bytes.items + sort->places[sort->next++].at;
    if (wl_decode(&at, &sort->draft) != 0)
        return err_set(err, ERR_FAILED, "%s: out of memory", source->name);
    wl_draft_finish(&sort->draft);
    *draft = &sort->draft;
    return 1;
}

static int sort_rewind(struct wl_source *source, struct err *err)
{
    (void)err;
    ((struct sort_source *)source)->next = 0;
    return 0;
}

static void sort_release(struct wl_source *source)
{
    struct sort_source *sort = (struct sort_source *)source;
    wl_close(sort->inner);
    wl_draft_release(&sort->draft);
    free(sort->bytes.items);
    free(sort->places);
}

static const struct wl_source_ops sort_ops = { sort_next, sort_rewind, sort_release };

int wl_sort_open(struct wl_source *inner, const struct wl_options *options,
                 struct wl_source **out, struct err *err)
{
    struct sort_source *sort = calloc(1, sizeof *sort);
    if (sort == NULL) {
        wl_close(inner);
        return err_set(err, ERR_FAILED, "out of memory");
    }
    sort->inner = inner;
    if (wl_source_init(&sort->source, &sort_ops, inner->name, inner->format_name, options, err) != 0) {
        wl_close(&sort->source);
        return -1;
    }
    sort->source.can_rewind = true; /* from memory, even when it came from a pipe */
    *out = &sort->source;
    return 0;
}
