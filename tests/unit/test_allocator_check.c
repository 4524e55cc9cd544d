/* The check wrapper must stop a faulty policy at the first wrong call. Each fault is planted in a copy of
 * dynamic's table. */
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

#include "allocator/kv_check.h"
#include "allocator/kv_policy.h"
#include "allocator/paged.h"
#include "tests/policy_case.h"

struct report {
    uint64_t count, call_number; /* of the first */
    char call[16], what[120];
};

static void note(void *context, uint64_t call_number, const char *call, const char *policy_name,
                 const char *what)
{
    struct report *r = context;
    check_str_eq(policy_name, "dynamic");
    if (r->count++ > 0)
        return;
    r->call_number = call_number;
    snprintf(r->call, sizeof r->call, "%s", call);
    snprintf(r->what, sizeof r->what, "%s", what);
}

static const struct kv_geometry geometry = {
    .pool_bytes = 10 * 16 * 100, .bytes_per_token = 100, .block_tokens = 16, .max_seqs = 4,
    .max_seq_tokens = 320,
};

/* A checked dynamic policy with the given table. */
static struct kv_policy *make_faulty(const struct kv_policy_ops *ops, struct report *report)
{
    char why[200];
    const struct kv_value values[KV_OPTIONS_MAX] = { { 0 } };
    struct kv_policy *p = kv_registry_find("dynamic")->create(&geometry, values, NULL, why, sizeof why);
    assert_non_null(p);
    p->ops = ops;
    *report = (struct report){ 0 };
    struct kv_policy *checked = kv_check_wrap(p, &geometry, 1, note, report);
    assert_non_null(checked);
    return checked;
}

static void admit_one(struct kv_policy *p, uint32_t seq, uint64_t tokens)
{
    struct kv_request r = policy_case_request(tokens, 1, 1);
    (void)policy_case_admit(p, &r, &(kv_seq){ seq }, tokens, NULL, NULL);
}

static void facts_one_block_short(const struct kv_policy *policy, struct kv_facts *facts)
{
    paged_facts(policy, facts);
    facts->free_bytes -= facts->held_bytes > 0 ? policy->unit_bytes : 0;
}

static void check__facts_that_do_not_add_up__stopped_at_once(void **state)
{
    (void)state;
    struct kv_policy_ops ops = *kv_registry_find("dynamic");
    struct report report;
    ops.facts = facts_one_block_short;
    struct kv_policy *p = make_faulty(&ops, &report);
    kv_release(p, &(kv_seq){ 0 }, 1);
    check_u64_eq(report.count, 0);
    admit_one(p, 0, 20);
    check_str_eq(report.call, "admit");
    check_str_eq(report.what, "the facts add up to less than the pool");
    check_u64_eq(report.call_number, 2);
    kv_destroy(p);
}

/* Takes the blocks and says no all the same. */
static enum kv_status admit_and_refuse(struct kv_policy *policy, const struct kv_ask *ask,
                                       struct kv_taken *taken)
{
    paged_admit(policy, ask, taken);
    return KV_NO_SPACE;
}

static void check__refusal_that_took_blocks__stopped_at_once(void **state)
{
    (void)state;
    struct kv_policy_ops ops = *kv_registry_find("dynamic");
    struct report report;
    ops.admit = admit_and_refuse;
    struct kv_policy *p = make_faulty(&ops, &report);
    admit_one(p, 0, 20);
    check_str_eq(report.what, "a refused call changed the facts");
    kv_destroy(p);
}

/* Forgets the last block of each table when giving back. */
static void release_all_but_one(struct kv_policy *policy, const kv_seq *seqs, uint32_t count)
{
    struct paged *p = (struct paged *)policy;
    for (uint32_t k = 0; k < count; k++) {
        struct block_seq *s = block_table_seq(&p->table, seqs[k]);
        s->blocks -= s->blocks > 0;
    }
    paged_release(policy, seqs, count);
}

static void check__lost_block__found_by_the_walk(void **state)
{
    (void)state;
    struct kv_policy_ops ops = *kv_registry_find("dynamic");
    struct report report;
    ops.release = release_all_but_one;
    struct kv_policy *p = make_faulty(&ops, &report);
    admit_one(p, 0, 40);
    check_u64_eq(report.count, 0);
    kv_release(p, &(kv_seq){ 0 }, 1);
    check_str_eq(report.call, "release");
    check_str_eq(report.what, "paged: referenced bytes differ from the tables");
    kv_destroy(p);
}

static enum kv_status admit_too_little(struct kv_policy *policy, const struct kv_ask *ask,
                                       struct kv_taken *taken)
{
    struct kv_ask less = *ask;
    less.filled_tokens = less.slots_tokens = ask->slots_tokens - 16;
    return paged_admit(policy, &less, taken);
}

static void check__granted_too_few_slots__stopped_at_once(void **state)
{
    (void)state;
    struct kv_policy_ops ops = *kv_registry_find("dynamic");
    struct report report;
    ops.admit = admit_too_little;
    struct kv_policy *p = make_faulty(&ops, &report);
    admit_one(p, 0, 40);
    check_str_eq(report.what, "a granted call left a sequence short of slots");
    kv_destroy(p);
}

static void check__sound_policy__silent(void **state)
{
    (void)state;
    struct report report;
    struct kv_policy *p = make_faulty(kv_registry_find("dynamic"), &report);
    for (uint32_t k = 0; k < 4; k++)
        admit_one(p, k, 100); /* 9 blocks: the second is refused */
    kv_release(p, (kv_seq[]){ { 0 }, { 1 }, { 2 }, { 3 } }, 4);
    check_u64_eq(report.count, 0);
    assert_null(p->ops->lookup);
    assert_non_null(p->ops->trim);
    kv_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check__facts_that_do_not_add_up__stopped_at_once),
        cmocka_unit_test(check__refusal_that_took_blocks__stopped_at_once),
        cmocka_unit_test(check__lost_block__found_by_the_walk),
        cmocka_unit_test(check__granted_too_few_slots__stopped_at_once),
        cmocka_unit_test(check__sound_policy__silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
