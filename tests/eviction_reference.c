#include "tests/eviction_reference.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* What differs between the rules; NULL: nothing happens. */
struct reference_rule {
    const char *name;
    void (*miss)(struct reference *r, uint64_t key);
    void (*insert)(struct reference *r, uint32_t object);
    void (*hit)(struct reference *r, uint32_t object); /* before it leaves the order */
    void (*give)(struct reference *r, uint32_t object);
    uint32_t (*evict)(struct reference *r);
    bool touch_is_nothing; /* else a touch is a take and a give */
};

/* --- lists, oldest first -------------------------------------------------------------------------- */

static uint32_t index_of(const struct reference_list *list, uint64_t item)
{
    uint32_t i = 0;

    while (i < list->count && list->items[i] != item)
        i++;
    return i;
}

static bool has(const struct reference_list *list, uint64_t item)
{
    return index_of(list, item) < list->count;
}

static bool drop(struct reference_list *list, uint64_t item)
{
    uint32_t i = index_of(list, item);

    if (i == list->count)
        return false;
    memmove(&list->items[i], &list->items[i + 1], (list->count - i - 1) * sizeof list->items[0]);
    list->count--;
    return true;
}

static void append(struct reference_list *list, uint64_t item)
{
    list->items[list->count++] = item;
}

static void remember(struct reference_list *ghost, uint64_t key, uint32_t most)
{
    drop(ghost, key);
    append(ghost, key);
    if (ghost->count > most)
        drop(ghost, ghost->items[0]);
}

/* The oldest of the list that is not in use, or KV_OBJECT_NONE. */
static uint32_t oldest(const struct reference *r, const struct reference_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (r->where[list->items[i]] == REFERENCE_INSIDE)
            return (uint32_t)list->items[i];
    return KV_OBJECT_NONE;
}

/* The evictable object that comes before all others. */
static uint32_t first_by(const struct reference *r, bool (*before)(const struct reference *, uint32_t, uint32_t))
{
    uint32_t best = KV_OBJECT_NONE;

    for (uint32_t i = 0; i < r->objects; i++)
        if (r->where[i] == REFERENCE_INSIDE && (best == KV_OBJECT_NONE || before(r, i, best)))
            best = i;
    return best;
}

static void keep_newest(struct reference_list *list, uint32_t object)
{
    drop(list, object);
    append(list, object);
}

/* An option that is a share of the objects, of which there is at least one. */
static uint32_t percent_of(const struct reference *r, size_t option)
{
    uint32_t share = (uint32_t)(r->objects * r->values[option].count / 100);

    return share > 0 ? share : 1;
}

/* --- by one scan --------------------------------------------------------------------------------- */

static bool older(const struct reference *r, uint32_t x, uint32_t y)
{
    return r->given[x] < r->given[y];
}

static uint32_t lru_evict(struct reference *r)
{
    return first_by(r, older);
}

static bool fewer_uses(const struct reference *r, uint32_t x, uint32_t y)
{
    return r->uses[x] != r->uses[y] ? r->uses[x] < r->uses[y] : older(r, x, y);
}

static uint32_t lfu_evict(struct reference *r)
{
    return first_by(r, fewer_uses);
}

static int64_t most_urgent(const struct reference *r, uint32_t object)
{
    int64_t most = INT64_MAX;

    for (uint32_t i = 0; i < r->priority_count[object]; i++)
        most = r->priorities[object][i] < most ? r->priorities[object][i] : most;
    return most;
}

static bool less_urgent(const struct reference *r, uint32_t x, uint32_t y)
{
    int64_t of_x = most_urgent(r, x), of_y = most_urgent(r, y);

    return of_x != of_y ? of_x > of_y : older(r, x, y);
}

static uint32_t priority_evict(struct reference *r)
{
    return first_by(r, less_urgent);
}

/* ttl: values[0] = time, [1] = per cent, [2] = priority. An object is to be pinned when a use since its filling, or since its last
 * pin ended, was urgent enough. */
static bool is_urgent(const struct reference *r, uint32_t object)
{
    return r->priority_count[object] > 0 && most_urgent(r, object) <= (int64_t)r->values[2].count;
}

static uint32_t first_pin(const struct reference *r)
{
    uint32_t first = KV_OBJECT_NONE;

    for (uint32_t i = 0; i < r->objects; i++)
        if (r->where[i] == REFERENCE_INSIDE && r->pinned[i] &&
            (first == KV_OBJECT_NONE || r->ends_ns[i] < r->ends_ns[first] ||
             (r->ends_ns[i] == r->ends_ns[first] && older(r, i, first))))
            first = i;
    return first;
}

static void end_pin(struct reference *r, uint32_t object)
{
    r->pinned[object] = false;
    r->priority_count[object] = 0;
}

static void ttl_give(struct reference *r, uint32_t object)
{
    r->pinned[object] = is_urgent(r, object) && r->values[0].count > 0;
    r->ends_ns[object] = r->now_ns + r->values[0].count;
    if (reference_pinned(r) * 100 > r->objects * r->values[1].count)
        end_pin(r, first_pin(r));
}

static bool not_pinned_or_older(const struct reference *r, uint32_t x, uint32_t y)
{
    return r->pinned[x] != r->pinned[y] ? r->pinned[y] : older(r, x, y);
}

static uint32_t ttl_evict(struct reference *r)
{
    return first_by(r, not_pinned_or_older);
}

static bool not_expected_or_older(const struct reference *r, uint32_t x, uint32_t y)
{
    return r->expected[x] != r->expected[y] ? r->expected[y] : older(r, x, y);
}

static uint32_t queue_aware_evict(struct reference *r)
{
    return first_by(r, not_expected_or_older);
}

static bool fewer_or_later(const struct reference *r, uint32_t x, uint32_t y)
{
    if (r->uses[x] == r->uses[y] && r->content[x].depth != r->content[y].depth)
        return r->content[x].depth > r->content[y].depth;
    return fewer_uses(r, x, y);
}

static uint32_t length_evict(struct reference *r)
{
    return first_by(r, fewer_or_later);
}

static bool needed_later(const struct reference *r, uint32_t x, uint32_t y)
{
    if (r->next[x] != r->next[y])
        return r->next[x] > r->next[y];
    if (r->content[x].depth != r->content[y].depth)
        return r->content[x].depth > r->content[y].depth;
    return x < y;
}

static uint32_t opt_evict(struct reference *r)
{
    return first_by(r, needed_later);
}

/* gdsf keeps its ranks in `next`. */
static void gdsf_give(struct reference *r, uint32_t object)
{
    r->next[object] = r->aged + r->uses[object];
}

static bool lower_rank(const struct reference *r, uint32_t x, uint32_t y)
{
    return r->next[x] != r->next[y] ? r->next[x] < r->next[y] : older(r, x, y);
}

static uint32_t gdsf_evict(struct reference *r)
{
    uint32_t victim = first_by(r, lower_rank);

    r->aged = r->next[victim];
    return victim;
}

static bool is_continued(const struct reference *r, uint32_t object)
{
    for (uint32_t i = 0; i < r->objects; i++)
        if (r->where[i] != REFERENCE_ABSENT && r->parent_serial[i] == r->serial[object])
            return true;
    return false;
}

static bool leaf_or_older(const struct reference *r, uint32_t x, uint32_t y)
{
    bool x_continued = is_continued(r, x), y_continued = is_continued(r, y);

    return x_continued != y_continued ? y_continued : older(r, x, y);
}

static uint32_t leaf_evict(struct reference *r)
{
    return first_by(r, leaf_or_older);
}

/* --- queues ---------------------------------------------------------------------------------------- */

static void queue_give(struct reference *r, uint32_t object)
{
    if (!has(&r->a, object))
        append(&r->a, object);
}

static uint32_t fifo_evict(struct reference *r)
{
    uint32_t victim = oldest(r, &r->a);

    drop(&r->a, victim);
    return victim;
}

static void unmark(struct reference *r, uint32_t object)
{
    r->mark[object] = false;
}

static void set_mark(struct reference *r, uint32_t object)
{
    r->mark[object] = true;
}

static uint32_t sieve_evict(struct reference *r)
{
    for (;;) {
        uint32_t object;

        if (r->hand >= r->a.count)
            r->hand = 0;
        object = (uint32_t)r->a.items[r->hand];
        if (r->where[object] == REFERENCE_INSIDE && !r->mark[object]) {
            drop(&r->a, object);
            if (r->hand >= r->a.count)
                r->hand = 0;
            return object;
        }
        if (r->where[object] == REFERENCE_INSIDE)
            r->mark[object] = false;
        r->hand++;
    }
}

/* s3fifo: a = S, b = M; uses - 1 are the hits. */
static uint32_t s3_small_target(const struct reference *r)
{
    return percent_of(r, 0);
}

static void s3_insert(struct reference *r, uint32_t object)
{
    r->mark[object] = drop(&r->ghost_a, r->content[object].key);
}

static void s3_hit(struct reference *r, uint32_t object)
{
    if (r->uses[object] > 4)
        r->uses[object] = 4;
}

static void s3_give(struct reference *r, uint32_t object)
{
    if (!has(&r->a, object) && !has(&r->b, object))
        append(r->mark[object] ? &r->b : &r->a, object);
}

static uint32_t s3_evict_main(struct reference *r)
{
    uint32_t object;

    while ((object = oldest(r, &r->b)) != KV_OBJECT_NONE) {
        drop(&r->b, object);
        if (r->uses[object] == 1)
            break;
        r->uses[object]--;
        append(&r->b, object);
    }
    return object;
}

static uint32_t s3_evict(struct reference *r)
{
    for (;;) {
        uint32_t object = oldest(r, &r->a), main_target = r->objects - s3_small_target(r);

        if (object == KV_OBJECT_NONE || (r->a.count < s3_small_target(r) && oldest(r, &r->b) != KV_OBJECT_NONE))
            return s3_evict_main(r);
        drop(&r->a, object);
        if (r->uses[object] - 1 <= 1) { /* not accessed more than once */
            remember(&r->ghost_a, r->content[object].key, main_target);
            return object;
        }
        r->uses[object] = 1;
        append(&r->b, object);
        if (r->b.count > main_target)
            return s3_evict_main(r);
    }
}

/* 2q: a = A1in, b = Am with what is in use, ghost_a = A1out, ghost_b = found there at the miss. */
static uint32_t out_keys(const struct reference *r)
{
    return percent_of(r, 1);
}

static void two_miss(struct reference *r, uint64_t key)
{
    if (drop(&r->ghost_a, key))
        remember(&r->ghost_b, key, out_keys(r));
}

static void two_insert(struct reference *r, uint32_t object)
{
    r->mark[object] = drop(&r->ghost_b, r->content[object].key) || drop(&r->ghost_a, r->content[object].key);
}

static void two_give(struct reference *r, uint32_t object)
{
    if (r->mark[object])
        keep_newest(&r->b, object);
    else
        queue_give(r, object);
}

static uint32_t two_evict(struct reference *r)
{
    uint32_t in = oldest(r, &r->a), often = oldest(r, &r->b), in_most = percent_of(r, 0);

    if (often != KV_OBJECT_NONE && (in == KV_OBJECT_NONE || r->a.count <= in_most)) {
        drop(&r->b, often);
        return often;
    }
    drop(&r->a, in);
    remember(&r->ghost_a, r->content[in].key, out_keys(r));
    return in;
}

/* --- two lists by use ------------------------------------------------------------------------------- */

/* slru: a = probationary, b = protected, both without what is in use. */
static void slru_hit(struct reference *r, uint32_t object)
{
    drop(&r->a, object);
    drop(&r->b, object);
    r->mark[object] = true;
}

static void slru_give(struct reference *r, uint32_t object)
{
    uint32_t most = percent_of(r, 0);

    append(r->mark[object] ? &r->b : &r->a, object);
    if (r->b.count > most) {
        uint32_t demoted = (uint32_t)r->b.items[0];

        drop(&r->b, demoted);
        append(&r->a, demoted);
        r->mark[demoted] = false;
    }
}

static uint32_t slru_evict(struct reference *r)
{
    uint32_t victim = (uint32_t)(r->a.count > 0 ? r->a.items[0] : r->b.items[0]);

    drop(&r->a, victim);
    drop(&r->b, victim);
    return victim;
}

/* arc: a, b = T1, T2 with what is in use at the end, ghost_a, ghost_b = B1, B2. missed: 0, 1, 2. */
static void arc_miss(struct reference *r, uint64_t key)
{
    double b1 = r->ghost_a.count, b2 = r->ghost_b.count;

    r->missed = has(&r->ghost_a, key) ? 1 : has(&r->ghost_b, key) ? 2 : 0;
    if (r->missed == 1)
        r->target = fmin(r->objects, r->target + fmax(b2 / b1, 1));
    if (r->missed == 2)
        r->target = fmax(0, r->target - fmax(b1 / b2, 1));
}

static void arc_insert(struct reference *r, uint32_t object)
{
    bool known = drop(&r->ghost_a, r->content[object].key) || drop(&r->ghost_b, r->content[object].key);

    append(known ? &r->b : &r->a, object);
    r->missed = 0;
}

static void arc_hit(struct reference *r, uint32_t object)
{
    drop(&r->a, object);
    keep_newest(&r->b, object);
}

static void arc_give(struct reference *r, uint32_t object)
{
    keep_newest(has(&r->a, object) ? &r->a : &r->b, object);
}

static uint32_t arc_replace(struct reference *r)
{
    bool from_t1 = r->a.count >= 1 && ((r->missed == 2 && r->a.count >= r->target) || r->a.count > r->target);
    struct reference_list *list;
    uint32_t victim;

    if (oldest(r, from_t1 ? &r->a : &r->b) == KV_OBJECT_NONE)
        from_t1 = !from_t1;
    list = from_t1 ? &r->a : &r->b;
    victim = oldest(r, list);
    drop(list, victim);
    remember(from_t1 ? &r->ghost_a : &r->ghost_b, r->content[victim].key, r->objects + 1);
    return victim;
}

static uint32_t arc_evict(struct reference *r)
{
    uint32_t l1 = r->a.count + r->ghost_a.count, l2 = r->b.count + r->ghost_b.count;

    if (r->missed == 0 && l1 >= r->objects) {
        uint32_t victim = oldest(r, &r->a);

        if (r->ghost_a.count == 0 && victim != KV_OBJECT_NONE) {
            drop(&r->a, victim);
            return victim;
        }
        if (r->ghost_a.count > 0)
            drop(&r->ghost_a, r->ghost_a.items[0]);
    } else if (r->missed == 0 && l1 + l2 >= 2 * r->objects && r->ghost_b.count > 0) {
        drop(&r->ghost_b, r->ghost_b.items[0]);
    }
    return arc_replace(r);
}

/* --- wa ---------------------------------------------------------------------------------------------- */

static void wa_reuse(struct reference *r, uint32_t category, uint64_t used)
{
    r->cat_reuses[category] += 1;
    r->cat_time[category] += (double)(r->clock + 1 - used);
}

static void wa_hit(struct reference *r, uint32_t object)
{
    wa_reuse(r, r->category_of[object], r->given[object]);
}

/* ghost_a: keys of victims; ghost_b, at the same index: time of the last use and its category. */
static void wa_forget(struct reference *r, uint32_t at)
{
    for (uint32_t i = at; i + 1 < r->ghost_a.count; i++) {
        r->ghost_a.items[i] = r->ghost_a.items[i + 1];
        r->ghost_b.items[i] = r->ghost_b.items[i + 1];
    }
    r->ghost_a.count--;
    r->ghost_b.count--;
}

static void wa_miss(struct reference *r, uint64_t key)
{
    uint32_t at = index_of(&r->ghost_a, key);

    if (at == r->ghost_a.count)
        return;
    wa_reuse(r, (uint32_t)(r->ghost_b.items[at] % KV_EVICTION_CATEGORIES), r->ghost_b.items[at] / KV_EVICTION_CATEGORIES);
    wa_forget(r, at);
}

static void wa_remember(struct reference *r, uint32_t object)
{
    uint32_t at = index_of(&r->ghost_a, r->content[object].key);

    if (at < r->ghost_a.count)
        wa_forget(r, at);
    append(&r->ghost_a, r->content[object].key);
    append(&r->ghost_b, r->given[object] * KV_EVICTION_CATEGORIES + r->category_of[object]);
    if (r->ghost_a.count > r->objects)
        wa_forget(r, 0);
}

static void wa_give(struct reference *r, uint32_t object)
{
    uint32_t c = r->category_of[object];

    r->cat_uses[c] += 1;
    if (r->cat_uses[c] >= 8.0 * r->objects) {
        r->cat_uses[c] /= 2;
        r->cat_reuses[c] /= 2;
        r->cat_time[c] /= 2;
    }
}

static double wa_probability(const struct reference *r, uint32_t object)
{
    uint32_t c = r->category_of[object];
    double age = (double)(r->clock - r->given[object]), rate;

    if (r->values[0].count == 2) /* lru */
        return -age;
    if (!(r->cat_reuses[c] > 0))
        return 0;
    rate = r->cat_reuses[c] / r->cat_time[c];
    if (r->values[0].count == 1) /* distribution: at any later time */
        return r->cat_reuses[c] / r->cat_uses[c] * exp(-rate * age);
    return r->cat_reuses[c] / r->cat_uses[c] * (exp(-rate * age) - exp(-rate * (age + r->life)));
}

/* Every object is compared: within a category the oldest is the least probable, or as improbable and first. */
static bool less_probable(const struct reference *r, uint32_t x, uint32_t y)
{
    double px, py;

    if (r->category_of[x] == r->category_of[y])
        return older(r, x, y);
    px = wa_probability(r, x);
    py = wa_probability(r, y);
    if (px < py || px > py)
        return px < py;
    if (r->content[x].depth != r->content[y].depth)
        return r->content[x].depth > r->content[y].depth;
    return r->category_of[x] < r->category_of[y];
}

static uint32_t wa_evict(struct reference *r)
{
    uint32_t victim = KV_OBJECT_NONE;

    for (uint32_t c = 0; c < KV_EVICTION_CATEGORIES; c++) {
        uint32_t head = KV_OBJECT_NONE;

        for (uint32_t i = 0; i < r->objects; i++)
            if (r->where[i] == REFERENCE_INSIDE && r->category_of[i] == c &&
                (head == KV_OBJECT_NONE || older(r, i, head)))
                head = i;
        if (head != KV_OBJECT_NONE && (victim == KV_OBJECT_NONE || less_probable(r, head, victim)))
            victim = head;
    }
    r->life += ((double)(r->clock - r->given[victim]) - r->life) / 64;
    wa_remember(r, victim);
    return victim;
}

/* --- random ------------------------------------------------------------------------------------------ */

/* A bag: the last takes the place of one that leaves. */
static void random_leave(struct reference *r, uint32_t object)
{
    r->a.items[index_of(&r->a, object)] = r->a.items[r->a.count - 1];
    r->a.count--;
}

static void random_give(struct reference *r, uint32_t object)
{
    append(&r->a, object);
}

/* splitmix64 (Vigna 2015): the n-th number from its start; the upper half of it as a fraction of the bag. */
static uint32_t random_evict(struct reference *r)
{
    uint64_t x = r->values[0].count + ++r->draws * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t victim;

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    x = (x ^ (x >> 31)) / (UINT64_C(1) << 32);
    victim = (uint32_t)r->a.items[x * r->a.count / (UINT64_C(1) << 32)];
    random_leave(r, victim);
    return victim;
}

/* --- the contract ------------------------------------------------------------------------------------ */

static const struct reference_rule rules[] = {
    {"lru", NULL, NULL, NULL, NULL, lru_evict, false},
    {"lfu", NULL, NULL, NULL, NULL, lfu_evict, false},
    {"priority", NULL, NULL, NULL, NULL, priority_evict, false},
    {"ttl", NULL, NULL, NULL, ttl_give, ttl_evict, false},
    {"queue-aware", NULL, NULL, NULL, NULL, queue_aware_evict, false},
    {"length-aware", NULL, NULL, NULL, NULL, length_evict, false},
    {"opt", NULL, NULL, NULL, NULL, opt_evict, false},
    {"gdsf", NULL, NULL, NULL, gdsf_give, gdsf_evict, false},
    {"leaf-lru", NULL, NULL, NULL, NULL, leaf_evict, false},
    {"fifo", NULL, NULL, NULL, queue_give, fifo_evict, false},
    {"sieve", NULL, unmark, set_mark, queue_give, sieve_evict, false},
    {"s3fifo", NULL, s3_insert, s3_hit, s3_give, s3_evict, false},
    {"2q", two_miss, two_insert, NULL, two_give, two_evict, false},
    {"slru", NULL, unmark, slru_hit, slru_give, slru_evict, false},
    {"arc", arc_miss, arc_insert, arc_hit, arc_give, arc_evict, false},
    {"wa", wa_miss, NULL, wa_hit, wa_give, wa_evict, false},
    {"random", NULL, NULL, random_leave, random_give, random_evict, true},
};

bool reference_init(struct reference *r, const char *name, uint32_t objects, const struct kv_value *values)
{
    memset(r, 0, sizeof *r);
    r->objects = objects;
    r->life = objects;
    memcpy(r->values, values, kv_options_count(kv_eviction_find(name)->options) * sizeof r->values[0]);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].name, name) == 0)
            r->rule = &rules[i];
    return r->rule != NULL;
}

void reference_begin(struct reference *r, struct kv_kind kind)
{
    r->category = kind.category;
    r->priority = kind.priority;
}

/* The request under way uses the object: by now, the last that does. */
void reference_share(struct reference *r, uint32_t object)
{
    r->category_of[object] = r->category;
    if (r->priority_count[object] < REFERENCE_USES_MAX)
        r->priorities[object][r->priority_count[object]++] = r->priority;
}

uint32_t reference_pinned(const struct reference *r)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < r->objects; i++)
        count += r->where[i] == REFERENCE_INSIDE && r->pinned[i];
    return count;
}

uint64_t reference_next_unpin(const struct reference *r)
{
    uint32_t first = first_pin(r);

    return first == KV_OBJECT_NONE ? UINT64_MAX : r->ends_ns[first];
}

void reference_clock(struct reference *r, uint64_t now_ns)
{
    r->now_ns = now_ns;
    for (uint32_t i = 0; i < r->objects; i++)
        if (r->where[i] == REFERENCE_INSIDE && r->pinned[i] && r->ends_ns[i] <= now_ns)
            end_pin(r, i);
}

void reference_expect(struct reference *r, uint32_t object, bool expected)
{
    r->expected[object] = expected;
}

void reference_miss(struct reference *r, uint64_t key)
{
    if (r->rule->miss != NULL)
        r->rule->miss(r, key);
}

void reference_insert(struct reference *r, uint32_t object, const struct kv_content *content)
{
    r->where[object] = REFERENCE_IN_USE;
    r->content[object] = *content;
    r->serial[object] = ++r->serials;
    r->parent_serial[object] = content->parent != KV_OBJECT_NONE ? r->serial[content->parent] : 0;
    r->uses[object] = 1;
    r->priority_count[object] = 0;
    r->expected[object] = false;
    reference_share(r, object);
    r->next[object] = UINT64_MAX;
    if (r->rule->insert != NULL)
        r->rule->insert(r, object);
}

void reference_foresee(struct reference *r, uint32_t object, uint64_t next)
{
    r->next[object] = next;
}

void reference_give(struct reference *r, uint32_t object)
{
    r->where[object] = REFERENCE_INSIDE;
    r->given[object] = ++r->clock;
    if (r->rule->give != NULL)
        r->rule->give(r, object);
}

void reference_take(struct reference *r, uint32_t object)
{
    r->uses[object]++;
    if (r->rule->hit != NULL)
        r->rule->hit(r, object);
    reference_share(r, object);
    r->where[object] = REFERENCE_IN_USE;
}

void reference_touch(struct reference *r, uint32_t object)
{
    if (r->rule->touch_is_nothing)
        return;
    reference_take(r, object);
    reference_give(r, object);
}

uint32_t reference_evict(struct reference *r)
{
    uint32_t victim = r->rule->evict(r);

    r->where[victim] = REFERENCE_ABSENT;
    r->serial[victim] = ++r->serials; /* nobody continues it any more */
    return victim;
}
