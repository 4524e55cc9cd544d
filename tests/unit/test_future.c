/* The future of a trace against a scan of all its requests. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "sim/future.h"

enum { REQUESTS = 60, BLOCKS = 12 };

static uint64_t state;

static uint64_t draw(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % n;
}

/* Every prompt's keys, as chains: equal keys have equal keys before them. */
struct script {
    uint64_t keys[REQUESTS][BLOCKS];
    uint64_t counts[REQUESTS];
    uint64_t sought[REQUESTS]; /* of the keys, the first ones */
    bool passed[REQUESTS];
    uint64_t requests;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
}

static void draw_script(struct script *script, bool few_tops)
{
    memset(script, 0, sizeof *script);
    script->requests = draw(REQUESTS + 1);
    for (uint64_t r = 0; r < script->requests; r++) {
        uint64_t key = 1;

        script->counts[r] = draw(BLOCKS + 1);
        script->sought[r] = draw(2) == 0 ? script->counts[r] : draw(script->counts[r] + 1);
        for (uint64_t i = 0; i < script->counts[r]; i++) {
            key = mix(key * 3 + draw(2));
            script->keys[r][i] = few_tops ? key >> 20 : key; /* all in one part */
        }
    }
}

static uint64_t by_scan(const struct script *script, uint64_t key)
{
    for (uint64_t r = 0; r < script->requests; r++)
        for (uint64_t i = 0; !script->passed[r] && i < script->counts[r]; i++)
            if (script->keys[r][i] == key)
                return i < script->sought[r] ? r : FUTURE_NEVER;
    return FUTURE_NEVER;
}

static void check_all(const struct script *script, struct future *future)
{
    for (uint64_t r = 0; r < script->requests; r++)
        for (uint64_t i = 0; i < script->counts[r]; i++)
            check_u64_eq(future_next_use(future, script->keys[r][i]), by_scan(script, script->keys[r][i]));
    check_u64_eq(future_next_use(future, draw(1u << 30)), FUTURE_NEVER);
    check_u64_eq(future_next_use(future, UINT64_MAX), FUTURE_NEVER);
}

/* Requests are passed mostly in order, as queues do, and sometimes from anywhere; one may be passed again. */
static void future__random_traces__as_by_scan(void **fixture)
{
    (void)fixture;
    for (state = 1; state < 400; state++) {
        uint64_t seed = state;
        static struct script script;
        struct future future = { 0 };
        struct err err = { 0 };
        uint64_t front = 0;

        draw_script(&script, seed % 4 == 0);
        for (uint64_t r = 0; r < script.requests; r++)
            check_i64_eq(future_add(&future, script.keys[r], script.sought[r], script.counts[r], &err), 0);
        check_i64_eq(future_seal(&future, &err), 0);
        check_all(&script, &future);
        for (uint64_t n = 0; script.requests > 0 && n < script.requests; n++) {
            uint64_t r = draw(5) > 0 ? front++ % script.requests : draw(script.requests);

            script.passed[r] = true;
            future_pass(&future, r);
            if (draw(4) == 0)
                check_all(&script, &future);
        }
        check_all(&script, &future);
        future_release(&future);
        state = seed;
    }
}

/* A of blocks 7 8, B of 7, C of 7 8: B fills its prompt with block 7, so it computes it anyway. Until B is passed, keeping 7
 * saves nothing; 8 is looked for by C. */
static void future__last_block_is_computed_anyway__no_use_before_it_is_passed(void **fixture)
{
    const uint64_t chain[] = { 7, 8 };
    struct future future = { 0 };
    struct err err = { 0 };

    (void)fixture;
    check_i64_eq(future_add(&future, chain, 2, 2, &err), 0);
    check_i64_eq(future_add(&future, chain, 0, 1, &err), 0);
    check_i64_eq(future_add(&future, chain, 2, 2, &err), 0);
    check_i64_eq(future_seal(&future, &err), 0);
    check_u64_eq(future_next_use(&future, 7), 0);
    future_pass(&future, 0);
    check_u64_eq(future_next_use(&future, 7), FUTURE_NEVER);
    check_u64_eq(future_next_use(&future, 8), 2);
    future_pass(&future, 1);
    check_u64_eq(future_next_use(&future, 7), 2);
    future_pass(&future, 2);
    check_u64_eq(future_next_use(&future, 7), FUTURE_NEVER);
    future_release(&future);
}

static void future__more_than_fits__clear_error(void **fixture)
{
    struct future future = { .requests = FUTURE_REQUESTS_MAX };
    struct err err = { 0 };

    (void)fixture;
    check_i64_eq(future_add(&future, NULL, 0, 0, &err), -1);
    check_str_eq(err.text, "clairvoyant eviction: found more than 1073741824 requests or 4294967295 blocks of their prompts, expected fewer");
    future = (struct future){ .count = FUTURE_REFERENCES_MAX };
    check_i64_eq(future_add(&future, (const uint64_t[]){ 1 }, 1, 1, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(future__random_traces__as_by_scan),
        cmocka_unit_test(future__last_block_is_computed_anyway__no_use_before_it_is_passed),
        cmocka_unit_test(future__more_than_fits__clear_error),
    };
    return cmocka_run_group_tests_name("the future of a trace", tests, NULL, NULL);
}
