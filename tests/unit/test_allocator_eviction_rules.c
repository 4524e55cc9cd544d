/* Every eviction order against its slow reference, on random scripts; a failure prints the shortest script found. */
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/eviction_reference.h"

#define STEPS 700

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state % below);
}

/* What may be done with `object` next, so that a script stays one whatever is left out of it. */
struct step {
    uint32_t object, choice, other;
    uint64_t key, next;
};

struct pair {
    struct kv_eviction *order;
    struct reference reference;
    uint64_t now_ns;
};

/* Values of an order's options; NULL ends them and stands for a default. */
struct setting {
    const char *order;
    const char *texts[4];
};
static const struct setting *setting; /* of the test under way */

static bool begin_pair(struct pair *pair, const struct kv_eviction_ops *ops, uint32_t objects)
{
    struct kv_value values[KV_OPTIONS_MAX] = {{0}};
    const char *texts[KV_OPTIONS_MAX] = {NULL};
    char why[200];

    memcpy(texts, setting->texts, sizeof setting->texts);
    assert_true(kv_options_parse(ops->options, texts, values, why, sizeof why));
    pair->now_ns = 0;
    pair->order = kv_eviction_create(ops, objects, values);
    return pair->order != NULL && reference_init(&pair->reference, ops->name, objects, values);
}

/* Time goes on, and somebody waits for the other object or no longer. */
static void pass_time(struct pair *pair, const struct step *step)
{
    const struct kv_eviction_ops *ops = pair->order->ops;

    pair->now_ns += step->choice % 4;
    if (ops->clock != NULL) {
        ops->clock(pair->order, pair->now_ns);
        reference_clock(&pair->reference, pair->now_ns);
    }
    if (ops->expect != NULL && step->choice % 3 == 0 && pair->reference.where[step->other] != REFERENCE_ABSENT) {
        ops->expect(pair->order, step->other, step->next % 2 == 0);
        reference_expect(&pair->reference, step->other, step->next % 2 == 0);
    }
}

static bool same_pins(const struct pair *pair)
{
    const struct kv_eviction_ops *ops = pair->order->ops;

    if (pair->order->pinned != reference_pinned(&pair->reference))
        return false;
    if (ops->clock == NULL)
        return true;
    for (uint32_t i = 0; i < pair->reference.objects; i++)
        if (pair->reference.where[i] == REFERENCE_INSIDE && ops->is_pinned(pair->order, i) != pair->reference.pinned[i])
            return false;
    return ops->next_unpin(pair->order) == reference_next_unpin(&pair->reference);
}

/* Both evict; whether they agree. */
static bool evict_both(struct pair *pair)
{
    const struct kv_eviction_ops *ops = pair->order->ops;
    uint32_t announced = KV_OBJECT_NONE, victim, expected;

    if (pair->order->count == pair->order->pinned)
        return true; /* not allowed */
    if (ops->next_victim != NULL)
        announced = ops->next_victim(pair->order);
    victim = ops->evict(pair->order);
    expected = reference_evict(&pair->reference);
    return victim == expected && (announced == KV_OBJECT_NONE || announced == victim);
}

static void begin_both(struct pair *pair, const struct step *step)
{
    struct kv_kind kind = {.category = step->choice % 3, .priority = (int64_t)(step->choice % 7) - 3};

    if (pair->order->ops->begin != NULL)
        pair->order->ops->begin(pair->order, kind);
    reference_begin(&pair->reference, kind);
}

static bool fill_both(struct pair *pair, const struct step *step)
{
    const struct kv_eviction_ops *ops = pair->order->ops;
    bool other_in_use = pair->reference.where[step->other] == REFERENCE_IN_USE;
    struct kv_content content = {step->key, other_in_use ? step->other : KV_OBJECT_NONE, step->choice % 5};

    begin_both(pair, step);
    if (ops->miss != NULL)
        ops->miss(pair->order, step->key);
    reference_miss(&pair->reference, step->key);
    if (step->choice % 3 != 0 && pair->order->count > 0 && !evict_both(pair))
        return false;
    if (ops->insert != NULL)
        ops->insert(pair->order, step->object, &content);
    reference_insert(&pair->reference, step->object, &content);
    return true;
}

static void give_both(struct pair *pair, const struct step *step, bool touch)
{
    const struct kv_eviction_ops *ops = pair->order->ops;

    begin_both(pair, step);
    if (ops->foresee != NULL)
        ops->foresee(pair->order, step->object, step->next);
    if (ops->foresee != NULL)
        reference_foresee(&pair->reference, step->object, step->next);
    (touch ? ops->touch : ops->give)(pair->order, step->object);
    (touch ? reference_touch : reference_give)(&pair->reference, step->object);
}

static bool step_both(struct pair *pair, const struct step *step)
{
    switch (pair->reference.where[step->object]) {
    case REFERENCE_ABSENT:
        return fill_both(pair, step);
    case REFERENCE_IN_USE:
        begin_both(pair, step);
        if (step->choice % 5 == 0 && pair->order->ops->share != NULL) {
            pair->order->ops->share(pair->order, step->object);
            reference_share(&pair->reference, step->object);
            return true;
        }
        give_both(pair, step, false);
        return true;
    case REFERENCE_INSIDE:
        if (step->choice % 4 == 0)
            return evict_both(pair);
        if (step->choice % 4 == 1) {
            begin_both(pair, step);
            pair->order->ops->take(pair->order, step->object);
            reference_take(&pair->reference, step->object);
        } else {
            give_both(pair, step, true);
        }
        return true;
    }
    return false;
}

/* The step at which the two differ, or count. */
static size_t run(const struct kv_eviction_ops *ops, uint32_t objects, const struct step *steps, size_t count)
{
    static struct pair pair;
    size_t i = 0;

    assert_true(begin_pair(&pair, ops, objects));
    for (; i < count; i++) {
        pass_time(&pair, &steps[i]);
        if (!step_both(&pair, &steps[i]) || !same_pins(&pair) || ops->check(pair.order) != NULL)
            break;
    }
    ops->destroy(pair.order);
    return i;
}

static size_t without(const struct step *steps, size_t count, size_t at, size_t length, struct step *out)
{
    memcpy(out, steps, at * sizeof *out);
    memcpy(out + at, steps + at + length, (count - at - length) * sizeof *out);
    return count - length;
}

static void report_shortest(const struct kv_eviction_ops *ops, uint32_t objects, struct step *steps, size_t count)
{
    static struct step shorter[STEPS];

    for (size_t length = count / 2; length > 0; length /= 2)
        for (size_t at = 0; at + length <= count;) {
            size_t rest = without(steps, count, at, length, shorter), end = run(ops, objects, shorter, rest);

            if (end == rest) {
                at += length;
                continue;
            }
            count = end + 1;
            memcpy(steps, shorter, count * sizeof *steps);
        }
    print_error("%s, %u objects, %zu steps:\n", ops->name, objects, count);
    for (size_t i = 0; i < count; i++)
        print_error("  object %u choice %u other %u key %u next %u\n", steps[i].object, steps[i].choice, steps[i].other,
                    (unsigned)steps[i].key, (unsigned)steps[i].next);
    fail();
}

static void order__random_scripts__as_the_reference(void **fixture)
{
    const struct kv_eviction_ops *ops;
    static struct step steps[STEPS];

    setting = *fixture;
    ops = kv_eviction_find(setting->order);
    assert_non_null(ops);
    for (int round = 0; round < 400; round++) {
        uint32_t objects = round % 20 == 0 ? 1 + draw(3) : 1 + draw(REFERENCE_OBJECTS_MAX - 1);
        uint32_t keys = 1 + draw(3 * objects);
        size_t end;

        for (size_t i = 0; i < STEPS; i++)
            steps[i] = (struct step){draw(objects), draw(60), draw(objects), draw(keys), draw(200)};
        end = run(ops, objects, steps, STEPS);
        if (end < STEPS)
            report_shortest(ops, objects, steps, end + 1);
    }
}

/* The textbook use: a stream of keys through a full cache, where queues turn over many times. */
static void order__random_stream__as_the_reference(void **fixture)
{
    const struct kv_eviction_ops *ops;
    static struct pair pair;
    static uint32_t place_of[512];
    const uint32_t objects = 50;
    uint32_t used = 0;

    setting = *fixture;
    ops = kv_eviction_find(setting->order);
    assert_true(begin_pair(&pair, ops, objects));
    memset(place_of, 0xff, sizeof place_of);
    for (int i = 0; i < 30000; i++) {
        uint32_t key = draw(2) ? draw(40) : draw(200), place = place_of[key];
        struct step step = {place, draw(60), 0, key, draw(100000)};

        if (place == UINT32_MAX) {
            struct kv_content content = {key, KV_OBJECT_NONE, 0};

            begin_both(&pair, &step);
            if (ops->miss != NULL)
                ops->miss(pair.order, key);
            reference_miss(&pair.reference, key);
            step.object = used;
            pass_time(&pair, &step);
            if (used == objects) {
                step.object = ops->evict(pair.order);
                check_u64_eq(step.object, reference_evict(&pair.reference));
                place_of[pair.reference.content[step.object].key] = UINT32_MAX;
            } else {
                used++;
            }
            if (ops->insert != NULL)
                ops->insert(pair.order, step.object, &content);
            reference_insert(&pair.reference, step.object, &content);
            place_of[key] = step.object;
        }
        give_both(&pair, &step, place != UINT32_MAX);
    }
    check_str_eq(ops->check(pair.order), NULL);
    ops->destroy(pair.order);
}

/* 10 objects, 100,000 victims: each is drawn 10,000 times but for chance; 500 are more than five deviations. */
static void random__many_victims__each_as_often(void **fixture)
{
    const struct kv_eviction_ops *ops = kv_eviction_find("random");
    struct kv_eviction *order = kv_eviction_create(ops, 10, NULL);
    uint32_t times[10] = {0};

    (void)fixture;
    for (uint32_t i = 0; i < 10; i++)
        ops->give(order, i);
    for (int i = 0; i < 100000; i++) {
        uint32_t victim = ops->evict(order);

        times[victim]++;
        ops->give(order, victim);
    }
    for (uint32_t i = 0; i < 10; i++)
        assert_in_range(times[i], 9500, 10500);
    ops->destroy(order);
}

/* Beside the defaults of every order. ttl's are too long for short scripts, so it has these alone. */
static const struct setting others[] = {
    {"ttl", {"60", "55", "0"}}, {"ttl", {"9", "100", "2"}},     {"s3fifo", {"37"}},      {"2q", {"40", "80"}},
    {"2q", {"3", "10"}},        {"slru", {"20"}},               {"wa", {"distribution"}}, {"wa", {"lru"}},
    {"random", {"77"}},
};
enum { OTHERS = sizeof others / sizeof others[0], SETTINGS_MAX = 32 + OTHERS };

static void add(struct CMUnitTest *tests, size_t *count, const struct setting *of)
{
    static const char *const kinds[] = {"scripts", "stream"};
    static char names[2 * SETTINGS_MAX][100];
    CMUnitTestFunction const functions[] = {order__random_scripts__as_the_reference, order__random_stream__as_the_reference};

    for (size_t i = 0; i < 2; i++, ++*count) {
        char *name = names[*count];
        int used = snprintf(name, sizeof names[0], "%s", of->order);

        assert_true(*count < 2 * SETTINGS_MAX);
        for (size_t k = 0; of->texts[k] != NULL; k++)
            used += snprintf(name + used, sizeof names[0] - (size_t)used, " %s", of->texts[k]);
        (void)snprintf(name + used, sizeof names[0] - (size_t)used, "__random_%s__as_the_reference", kinds[i]);
        tests[*count] = (struct CMUnitTest){name, functions[i], NULL, NULL, (void *)(uintptr_t)of};
    }
}

int main(void)
{
    static struct setting defaults[32];
    static struct CMUnitTest tests[2 * SETTINGS_MAX + 1];
    size_t count = 0;

    for (size_t i = 0; i < kv_eviction_count() && i < 32; i++) {
        defaults[i].order = kv_eviction_at(i)->name;
        if (strcmp(defaults[i].order, "ttl") != 0)
            add(tests, &count, &defaults[i]);
    }
    for (size_t i = 0; i < OTHERS; i++)
        add(tests, &count, &others[i]);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(random__many_victims__each_as_often);
    return _cmocka_run_group_tests("eviction rules", tests, count, NULL, NULL) != 0;
}
