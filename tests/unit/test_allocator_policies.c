/* Policies on cases that are computed by hand; expected values come from the papers, from the published
 * rules of vLLM v1, and from arithmetic written beside them. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/kv_policy.h"
#include "tests/policy_case.h"

static struct kv_geometry make_geometry(uint64_t slots, uint32_t block_tokens, uint64_t max_seq_tokens)
{
    return (struct kv_geometry){
        .pool_bytes = slots * 1024,
        .bytes_per_token = 1024,
        .block_tokens = block_tokens,
        .max_seqs = 64,
        .max_seq_tokens = max_seq_tokens,
    };
}

static uint64_t obtainable(struct kv_policy *policy, enum kv_demand_kind kind, bool something_runs)
{
    struct kv_demand demand = { .kind = kind, .something_runs = something_runs, .pieces = 1 };
    return kv_obtainable(policy, &demand);
}

static void check_table(struct kv_policy *policy, uint32_t seq, const kv_block *expected, uint32_t count)
{
    uint32_t blocks;
    const kv_block *table = policy->ops->table(policy, (kv_seq){ seq }, &blocks);
    check_u64_eq(blocks, count);
    for (uint32_t i = 0; i < count; i++)
        check_u64_eq(table[i], expected[i]);
}

static uint32_t tail_holders(const struct kv_policy *policy, uint32_t seq)
{
    struct kv_seq_facts facts;
    kv_get_seq_facts(policy, (kv_seq){ seq }, &facts);
    return facts.tail_holders;
}

/* --- static -------------------------------------------------------------------------------- */

static void static__buddy_15728_slots__eighth_of_2048_refused_with_1392_free(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(15728, 16, 2048);
    struct kv_policy *p = policy_case_make("static", &g, "placement=buddy", NULL);
    struct kv_request r = policy_case_request(161, 338, 1);
    struct kv_taken taken;
    for (uint32_t k = 0; k < 7; k++)
        assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ k }, 161, NULL, &taken), KV_OK);
    assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ 7 }, 161, NULL, &taken), KV_NO_SPACE);
    check_u64_eq(taken.ask_units, 2048);
    check_u64_eq(taken.need_units, 161 + 338 - 1);
    check_u64_eq(policy_case_free_bytes(p), 1392 * 1024); /* 15,728 - 7 * 2048 */
    check_u64_eq(obtainable(p, KV_ADMISSION, true), 1024); /* 1392 = 1024 + 256 + 64 + 32 + 16 */
    check_u64_eq(kv_largest_run(p, 1), 1392); /* and these chunks lie side by side at the end */
    check_u64_eq(p->ops->largest_piece(p), 8192);
    kv_destroy(p);
}

static void static__buddy_1025_slots__rounded_to_2048(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(15728, 16, 4096);
    struct kv_policy *p = policy_case_make("static", &g, "placement=buddy reserve=oracle", NULL);
    struct kv_request r = policy_case_request(1000, 26, 1); /* 1000 + 26 - 1 = 1025 */
    struct kv_facts facts;
    struct kv_taken taken;
    assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ 0 }, 1000, NULL, &taken), KV_OK);
    check_u64_eq(taken.ask_units, 1025);
    kv_get_facts(p, &facts);
    check_u64_eq(facts.held_bytes, 2048 * 1024);
    check_u64_eq(facts.rounding_bytes, 1023 * 1024);
    check_u64_eq(kv_units_for(p, &r, 1025, false), 2048);
    assert_true(p->clairvoyant);
    kv_destroy(p);
}

static void static__buddy_rounds_beyond_the_arena__never_fits(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(15728, 16, 15728);
    struct kv_request r = policy_case_request(8193, 1, 1); /* fits 15,728, but not as 16,384 */
    struct kv_policy *p = policy_case_make("static", &g, "placement=buddy reserve=oracle", NULL);
    assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ 0 }, 8193, NULL, NULL), KV_NEVER_FITS);
    kv_destroy(p);
    p = policy_case_make("static", &g, "placement=first-fit reserve=oracle", NULL);
    assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ 0 }, 8193, NULL, NULL), KV_OK);
    kv_destroy(p);
}

static void static__hole_too_small__refused_though_twice_as_much_is_free(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(400, 16, 100);
    struct kv_policy *p = policy_case_make("static", &g, "reserve=max", NULL);
    struct kv_request r = policy_case_request(10, 5, 1), two = policy_case_request(10, 5, 2);
    for (uint32_t k = 0; k < 4; k++)
        assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ k }, 10, NULL, NULL), KV_OK);
    kv_release(p, (kv_seq[]){ { 1 }, { 3 } }, 2); /* [100,200) and [300,400) */
    check_u64_eq(kv_largest_run(p, 1), 100);
    check_u64_eq(kv_largest_run(p, 2), 200);
    check_u64_eq(kv_largest_run(p, 3), 150); /* 50 50 | 50 (50): three pieces of 50 */
    assert_int_equal(policy_case_admit(p, &two, (kv_seq[]){ { 1 }, { 3 } }, 10, NULL, NULL), KV_OK);
    struct kv_request three = policy_case_request(10, 5, 3);
    kv_release(p, (kv_seq[]){ { 1 }, { 3 } }, 2);
    assert_int_equal(policy_case_admit(p, &three, (kv_seq[]){ { 1 }, { 3 }, { 4 } }, 10, NULL, NULL),
                     KV_NO_SPACE);
    check_u64_eq(policy_case_free_bytes(p), 200 * 1024);
    kv_destroy(p);
}

static void static_paged__three_samples__three_reservations(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(160, 16, 100);
    struct kv_policy *p = policy_case_make("static-paged", &g, "reserve=oracle", NULL);
    struct kv_request r = policy_case_request(10, 24, 3); /* 33 slots: 3 blocks each */
    struct kv_taken taken;
    kv_seq seqs[] = { { 0 }, { 1 }, { 2 } };
    assert_int_equal(policy_case_admit(p, &r, seqs, 10, NULL, &taken), KV_OK);
    check_u64_eq(taken.ask_units, 9);
    check_u64_eq(taken.need_units, 9);
    check_u64_eq(obtainable(p, KV_ADMISSION, true), 1); /* 10 blocks, no null block */
    kv_fork(p, seqs[0], seqs + 1, 2, 10);
    kv_release(p, seqs, 3);
    check_u64_eq(obtainable(p, KV_ADMISSION, true), 10);
    kv_destroy(p);
}

/* --- jemalloc ------------------------------------------------------------------------------ */

static void jemalloc__100_pages__class_of_112_and_a_page_of_padding(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(1024, 16, 1024); /* 1 MiB = 256 pages */
    struct kv_policy *p = policy_case_make("jemalloc", &g, "reserve=oracle", NULL);
    struct kv_request r = policy_case_request(390, 11, 1); /* 400 slots = 100 pages */
    struct kv_facts facts;
    assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ 0 }, 390, NULL, NULL), KV_OK);
    kv_get_facts(p, &facts);
    /* Size classes are four to a doubling: 80, 96, 112, 128 pages; large regions get one page more. */
    check_u64_eq(facts.held_bytes, 113 * 4096);
    check_u64_eq(facts.rounding_bytes, 13 * 4096);
    check_u64_eq(facts.free_bytes, (256 - 113) * 4096);
    check_u64_eq(kv_largest_run(p, 1), 143 * 4);
    check_u64_eq(obtainable(p, KV_ADMISSION, true), 128 * 4); /* 129 of 143 pages; 161 would be next */
    kv_destroy(p);
}

static void jemalloc__two_arenas__do_not_meet(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(1024, 16, 1024);
    struct kv_policy *a = policy_case_make("jemalloc", &g, "reserve=oracle", NULL);
    struct kv_policy *b = policy_case_make("jemalloc", &g, "reserve=oracle", NULL);
    struct kv_request r = policy_case_request(390, 11, 1);
    assert_int_equal(policy_case_admit(a, &r, &(kv_seq){ 0 }, 390, NULL, NULL), KV_OK);
    check_u64_eq(policy_case_free_bytes(b), 256 * 4096);
    kv_destroy(a);
    assert_int_equal(policy_case_admit(b, &r, &(kv_seq){ 0 }, 390, NULL, NULL), KV_OK);
    check_u64_eq(policy_case_free_bytes(b), 143 * 4096);
    kv_destroy(b);
}

/* --- dynamic ------------------------------------------------------------------------------- */

static void dynamic__block_full_and_none_free__one_more_token_refused(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(32, 16, 64); /* the null block and one other */
    struct kv_policy *p = policy_case_make("dynamic", &g, NULL, NULL);
    struct kv_request r = policy_case_request(16, 8, 1);
    struct kv_taken taken;
    kv_seq seq = { 0 };
    assert_int_equal(policy_case_admit(p, &r, &seq, 16, NULL, &taken), KV_OK);
    check_u64_eq(taken.new_blocks, 1);
    assert_int_equal(policy_case_extend(p, &r, &seq, 1, 16, 17, &taken), KV_NO_SPACE);
    check_u64_eq(taken.ask_units, 1);
    check_u64_eq(taken.need_units, 1);
    kv_destroy(p);
}

static void dynamic__15_tokens_in_the_block__one_more_succeeds(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(32, 16, 64);
    struct kv_policy *p = policy_case_make("dynamic", &g, NULL, NULL);
    struct kv_request r = policy_case_request(15, 8, 1);
    struct kv_taken taken;
    kv_seq seq = { 0 };
    assert_int_equal(policy_case_admit(p, &r, &seq, 15, NULL, NULL), KV_OK);
    assert_int_equal(policy_case_extend(p, &r, &seq, 1, 15, 16, &taken), KV_OK);
    check_u64_eq(taken.ask_units, 0);
    kv_destroy(p);
}

static void dynamic__watermark__holds_for_admission_while_something_runs(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(160, 16, 160); /* 10 blocks, 9 usable */
    g.watermark = 0.25; /* floor(2.5) = 2 */
    struct kv_policy *p = policy_case_make("dynamic", &g, NULL, NULL);
    check_u64_eq(obtainable(p, KV_ADMISSION, false), 9);
    check_u64_eq(obtainable(p, KV_ADMISSION, true), 7);
    check_u64_eq(obtainable(p, KV_GROWTH, true), 9);
    struct kv_request r = policy_case_request(128, 1, 1); /* 8 blocks */
    struct kv_taken taken;
    kv_seq seq = { 0 };
    struct kv_ask ask = { .request = &r, .seqs = &seq, .seq_count = 1, .something_runs = true,
                          .filled_tokens = 128, .slots_tokens = 128 };
    assert_int_equal(kv_admit(p, &ask, &taken), KV_NO_SPACE);
    ask.something_runs = false;
    assert_int_equal(kv_admit(p, &ask, &taken), KV_OK);
    kv_destroy(p);
    g.rules = KV_RULES_2026_04; /* which have no watermark */
    p = policy_case_make("dynamic", &g, NULL, NULL);
    check_u64_eq(obtainable(p, KV_ADMISSION, true), 9);
    kv_destroy(p);
}

static void dynamic__first_chunk_fits_whole_prompt_does_not__refused_with_the_whole_ask(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(160, 16, 160); /* 9 usable blocks */
    struct kv_policy *p = policy_case_make("dynamic", &g, NULL, NULL);
    struct kv_request r = policy_case_request(80, 1, 1); /* 5 blocks */
    struct kv_taken taken;
    kv_seq seqs[] = { { 0 }, { 1 } };
    assert_int_equal(policy_case_admit(p, &r, &seqs[0], 80, NULL, NULL), KV_OK);
    struct kv_ask ask = { .request = &r, .seqs = &seqs[1], .seq_count = 1, .something_runs = true,
                          .filled_tokens = 32, .slots_tokens = 32, .whole_tokens = 80 };
    assert_int_equal(kv_admit(p, &ask, &taken), KV_NO_SPACE); /* 5 > 4 free */
    check_u64_eq(taken.ask_units, 5);
    ask.whole_blocks_max = 4; /* as a sliding window limits it */
    assert_int_equal(kv_admit(p, &ask, &taken), KV_OK);
    check_u64_eq(taken.ask_units, 2);
    kv_destroy(p);
}

static void dynamic__demand_larger_than_the_pool__never_fits(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(160, 16, 320);
    struct kv_policy *p = policy_case_make("dynamic", &g, NULL, NULL);
    struct kv_request r = policy_case_request(145, 1, 1); /* 10 of 9 blocks */
    struct kv_taken taken;
    assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ 0 }, 145, NULL, &taken), KV_NEVER_FITS);
    check_u64_eq(taken.ask_units, 10);
    kv_destroy(p);
}

/* --- fork and copy-on-write ---------------------------------------------------------------- */

struct copies {
    kv_block from[8], to[8];
    size_t count;
};

static void note_copy(void *context, kv_block from, kv_block to)
{
    struct copies *c = context;
    c->from[c->count] = from;
    c->to[c->count++] = to;
}

/* PagedAttention, Figure 8: two samples of a prompt of 7 tokens, blocks of 4. Our blocks are 1, 2 where the
 * figure has 7, 1; the copy goes to 3 as in the figure. */
static void dynamic__figure_8__first_writer_copies_second_writes_in_place(void **state)
{
    (void)state;
    struct copies copies = { .count = 0 };
    struct kv_observer observer = { .context = &copies, .copied = note_copy };
    struct kv_geometry g = make_geometry(40, 4, 40);
    struct kv_policy *p = policy_case_make("dynamic", &g, NULL, &observer);
    struct kv_request r = policy_case_request(7, 4, 2);
    struct kv_taken taken;
    kv_seq seqs[] = { { 0 }, { 1 } };
    assert_int_equal(policy_case_admit(p, &r, seqs, 7, NULL, &taken), KV_OK);
    check_u64_eq(taken.ask_units, 2);
    kv_fork(p, seqs[0], &seqs[1], 1, 7);
    check_table(p, 0, (kv_block[]){ 1, 2 }, 2);
    check_table(p, 1, (kv_block[]){ 1, 2 }, 2);
    check_u64_eq(tail_holders(p, 0), 2);
    struct kv_facts facts;
    kv_get_facts(p, &facts);
    check_u64_eq(facts.held_bytes, 2 * 4096);
    check_u64_eq(facts.referenced_bytes, 4 * 4096);

    assert_int_equal(policy_case_extend(p, &r, seqs, 2, 7, 8, &taken), KV_OK);
    check_u64_eq(taken.ask_units, 1); /* two holders, one copy */
    check_u64_eq(taken.need_units, 1);
    check_table(p, 0, (kv_block[]){ 1, 3 }, 2);
    check_table(p, 1, (kv_block[]){ 1, 2 }, 2);
    check_u64_eq(copies.count, 1);
    check_u64_eq(copies.from[0], 2);
    check_u64_eq(copies.to[0], 3);
    check_u64_eq(tail_holders(p, 0), 1);
    check_u64_eq(tail_holders(p, 1), 1);
    kv_destroy(p);
}

static void dynamic__copy_without_a_free_block__group_refused_unchanged(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(12, 4, 40); /* two usable blocks */
    struct kv_policy *p = policy_case_make("dynamic", &g, NULL, NULL);
    struct kv_request r = policy_case_request(7, 4, 2);
    struct kv_taken taken;
    kv_seq seqs[] = { { 0 }, { 1 } };
    assert_int_equal(policy_case_admit(p, &r, seqs, 7, NULL, NULL), KV_OK);
    kv_fork(p, seqs[0], &seqs[1], 1, 7);
    assert_int_equal(policy_case_extend(p, &r, seqs, 2, 7, 8, &taken), KV_NO_SPACE);
    check_u64_eq(taken.ask_units, 1);
    check_u64_eq(tail_holders(p, 0), 2);
    kv_release(p, &seqs[1], 1);
    assert_int_equal(policy_case_extend(p, &r, seqs, 1, 7, 8, &taken), KV_OK); /* alone: in place */
    check_u64_eq(taken.ask_units, 0);
    kv_destroy(p);
}

/* PagedAttention, Figure 9: beam search with k = 4. Blocks of 4 here, numbered one higher than the figure's,
 * because 0 is the null block. The beams' tables are, in the figure's numbers,
 *     a: 0 1 2 5    b: 0 1 3 6    c: 0 1 3 7    d: 0 4 8
 * The next candidates all come from b and c: a and d die, so 2, 4, 5 and 8 are free, and four new blocks, 9 to
 * 12, are taken, one for each candidate. */
static void dynamic__figure_9__dead_beams_free_2_4_5_8_and_9_to_12_are_taken(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(4 * 14, 4, 40); /* blocks 1 .. 13 */
    struct kv_policy *p = policy_case_make("dynamic", &g, NULL, NULL);
    struct kv_request r = policy_case_request(4, 20, 4);
    kv_seq a = { 0 }, b = { 1 }, c = { 2 }, d = { 3 };
    assert_int_equal(policy_case_admit(p, &r, (kv_seq[]){ a, b, c, d }, 4, NULL, NULL), KV_OK); /* 0 */
    kv_fork(p, a, &d, 1, 4);
    assert_int_equal(policy_case_extend(p, &r, &a, 1, 4, 8, NULL), KV_OK); /* a takes 1 */
    kv_fork(p, a, &b, 1, 8);
    assert_int_equal(policy_case_extend(p, &r, &a, 1, 8, 12, NULL), KV_OK); /* a takes 2 */
    assert_int_equal(policy_case_extend(p, &r, &b, 1, 8, 12, NULL), KV_OK); /* b takes 3 */
    kv_fork(p, b, &c, 1, 12);
    assert_int_equal(policy_case_extend(p, &r, &d, 1, 4, 8, NULL), KV_OK);   /* d takes 4 */
    assert_int_equal(policy_case_extend(p, &r, &a, 1, 12, 16, NULL), KV_OK); /* 5 */
    assert_int_equal(policy_case_extend(p, &r, &b, 1, 12, 16, NULL), KV_OK); /* 6 */
    assert_int_equal(policy_case_extend(p, &r, &c, 1, 12, 16, NULL), KV_OK); /* 7 */
    assert_int_equal(policy_case_extend(p, &r, &d, 1, 8, 12, NULL), KV_OK);  /* 8 */
    check_table(p, 0, (kv_block[]){ 1, 2, 3, 6 }, 4);
    check_table(p, 1, (kv_block[]){ 1, 2, 4, 7 }, 4);
    check_table(p, 2, (kv_block[]){ 1, 2, 4, 8 }, 4);
    check_table(p, 3, (kv_block[]){ 1, 5, 9 }, 3);

    kv_release(p, (kv_seq[]){ a, d }, 2); /* the candidates come from b and c alone */
    kv_block queue[16];
    uint64_t length = p->ops->free_queue(p, queue, 16);
    check_u64_eq(length, 4 + 4);
    static const kv_block freed[] = { 6, 3, 9, 5 }; /* ours are one higher: the figure's 5, 2, 8, 4 */
    for (size_t i = 0; i < 4; i++)
        check_u64_eq(queue[4 + i], freed[i]);
    kv_fork(p, b, &a, 1, 16);
    kv_fork(p, c, &d, 1, 16);
    assert_int_equal(policy_case_extend(p, &r, (kv_seq[]){ a, b, c, d }, 4, 16, 17, NULL), KV_OK);
    check_table(p, 0, (kv_block[]){ 1, 2, 4, 7, 10 }, 5);
    check_table(p, 1, (kv_block[]){ 1, 2, 4, 7, 11 }, 5);
    check_table(p, 2, (kv_block[]){ 1, 2, 4, 8, 12 }, 5);
    check_table(p, 3, (kv_block[]){ 1, 2, 4, 8, 13 }, 5);
    kv_destroy(p);
}

static void dynamic__units_for_forked__prompt_blocks_once(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(400, 4, 40);
    struct kv_policy *p = policy_case_make("dynamic", &g, NULL, NULL);
    struct kv_request r = policy_case_request(7, 8, 3);
    check_u64_eq(kv_units_for(p, &r, 7, false), 2);
    check_u64_eq(kv_units_for(p, &r, 7, true), 2);
    check_u64_eq(kv_units_for(p, &r, 8, true), 1 + 3 * 1); /* one full prompt block, three copies */
    check_u64_eq(kv_units_for(p, &r, 9, true), 1 + 3 * 2);
    kv_destroy(p);
}

/* --- prefix -------------------------------------------------------------------------------- */

static void prefix__fully_cached_prompt__last_block_is_computed_again(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(160, 16, 160);
    struct kv_policy *p = policy_case_make("prefix", &g, NULL, NULL);
    struct kv_request r = policy_case_request(48, 1, 1);
    const uint64_t keys[] = { 11, 12, 13 };
    struct kv_hit hit;
    kv_seq seq = { 0 };
    assert_int_equal(policy_case_admit(p, &r, &seq, 48, keys, NULL), KV_OK);
    kv_lookup(p, keys, 48, &hit);
    check_u64_eq(hit.tokens, 32); /* floor(47 / 16) blocks */
    check_u64_eq(hit.free_blocks, 0);
    kv_release(p, &seq, 1);
    kv_lookup(p, keys, 49, &hit);
    check_u64_eq(hit.tokens, 48);
    check_u64_eq(hit.free_blocks, 3);
    struct kv_facts facts;
    kv_get_facts(p, &facts);
    check_u64_eq(facts.cached_bytes, 3 * 16 * 1024);
    struct kv_cache_facts cache;
    kv_get_cache_facts(p, &cache);
    check_u64_eq(cache.keyed_blocks, 3);
    check_u64_eq(cache.distinct_keys, 3);
    kv_destroy(p);
}

static void prefix__hit_of_free_blocks__they_count_in_the_ask(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(64, 16, 160); /* 3 usable blocks */
    struct kv_policy *p = policy_case_make("prefix", &g, NULL, NULL);
    struct kv_request r = policy_case_request(33, 16, 1);
    const uint64_t keys[] = { 11, 12, 13 }, *chain = keys;
    struct kv_taken taken;
    struct kv_hit hit;
    kv_seq seqs[] = { { 0 }, { 1 } };
    assert_int_equal(policy_case_admit(p, &r, &seqs[0], 33, keys, NULL), KV_OK);
    kv_release(p, seqs, 1);
    kv_lookup(p, keys, 33, &hit);
    check_u64_eq(hit.blocks, 2);
    struct kv_ask ask = { .request = &r, .seqs = &seqs[1], .seq_count = 1, .computed_tokens = 32,
                          .filled_tokens = 33, .slots_tokens = 33, .keyed_tokens = 33, .keys = &chain,
                          .hit = &hit };
    assert_int_equal(kv_admit(p, &ask, &taken), KV_OK);
    check_u64_eq(taken.ask_units, 3); /* two cached ones and a new one */
    check_u64_eq(taken.new_blocks, 1);
    check_table(p, 1, (kv_block[]){ 1, 2, 3 }, 3);
    kv_destroy(p);
}

static void prefix__window_of_33__run_of_two_blocks_from_the_right_decides(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(320, 16, 320);
    g.window_tokens = 33; /* ceil(32 / 16) = 2 blocks must be there */
    struct kv_policy *p = policy_case_make("prefix", &g, NULL, NULL);
    struct kv_request r = policy_case_request(80, 1, 1);
    const uint64_t keys[] = { 11, 12, 13, 14, 15 }, *chain = keys;
    struct kv_taken taken;
    struct kv_hit hit;
    kv_seq seqs[] = { { 0 }, { 1 } };
    assert_int_equal(policy_case_admit(p, &r, &seqs[0], 80, keys, NULL), KV_OK);
    kv_lookup(p, keys, 81, &hit);
    check_u64_eq(hit.blocks, 5);
    check_u64_eq(hit.first_block, 3);
    struct kv_ask ask = { .request = &r, .seqs = &seqs[1], .seq_count = 1, .computed_tokens = 80,
                          .filled_tokens = 81, .slots_tokens = 81, .keyed_tokens = 81, .keys = &chain,
                          .hit = &hit };
    assert_int_equal(kv_admit(p, &ask, &taken), KV_OK);
    check_table(p, 1, (kv_block[]){ 0, 0, 0, 4, 5, 6 }, 6); /* floor((80 - 33 + 1) / 16) = 3 null blocks */
    struct kv_seq_facts facts;
    kv_get_seq_facts(p, seqs[1], &facts);
    check_u64_eq(facts.first_token, 48);
    kv_trim(p, seqs[1], 64); /* block 3 goes */
    check_table(p, 1, (kv_block[]){ 0, 0, 0, 0, 5, 6 }, 6);
    kv_destroy(p);
}

/* --- ideal, options, bad geometry ---------------------------------------------------------- */

static void ideal__blocks_of_one_token__whole_pool_usable(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(100, 16, 100);
    struct kv_policy *p = policy_case_make("ideal", &g, NULL, NULL);
    check_u64_eq(p->block_tokens, 1);
    check_u64_eq(p->usable_units, 100);
    struct kv_request r = policy_case_request(17, 2, 1);
    assert_int_equal(policy_case_admit(p, &r, &(kv_seq){ 0 }, 17, NULL, NULL), KV_OK);
    check_u64_eq(policy_case_free_bytes(p), 83 * 1024);
    kv_destroy(p);
}

static void create__pool_too_small__says_what_it_found_and_expected(void **state)
{
    (void)state;
    struct kv_geometry g = { .pool_bytes = 4096, .bytes_per_token = 131072, .block_tokens = 16,
                             .max_seqs = 4, .max_seq_tokens = 100 };
    check_str_eq(policy_case_refusal("dynamic", &g, NULL),
                 "pool of 4096 bytes: expected at least one block of 2097152 bytes besides the null block");
    check_str_eq(policy_case_refusal("static-paged", &g, NULL),
                 "pool of 4096 bytes: expected at least one block of 2097152 bytes");
    check_str_eq(policy_case_refusal("static", &g, NULL),
                 "pool of 4096 bytes: expected at least one token slot of 131072 bytes");
    for (size_t i = 0; i < kv_registry_count(); i++)
        assert_non_null(policy_case_refusal(kv_registry_at(i)->name, &g, NULL));
    g.pool_bytes = 2097152; /* one block, which would be the null block */
    assert_non_null(policy_case_refusal("prefix", &g, NULL));
    assert_null(policy_case_refusal("static-paged", &g, NULL));
}

static void create__too_many_blocks__refused(void **state)
{
    (void)state;
    struct kv_geometry g = { .pool_bytes = UINT64_C(1) << 40, .bytes_per_token = 1, .block_tokens = 1,
                             .max_seqs = 4, .max_seq_tokens = 100 };
    check_str_eq(policy_case_refusal("dynamic", &g, NULL),
                 "pool of 1099511627776 blocks: expected fewer than 4294967295");
    g.bytes_per_token = UINT64_MAX / 2;
    g.pool_bytes = UINT64_MAX;
    g.block_tokens = 16;
    assert_non_null(policy_case_refusal("prefix", &g, NULL));
}

static void options__bad_values__one_line_each(void **state)
{
    (void)state;
    struct kv_geometry g = make_geometry(1024, 16, 100);
    check_str_eq(policy_case_refusal("static", &g, "placement=next-fit"),
                 "placement: found 'next-fit', expected one of first-fit|best-fit|worst-fit|buddy");
    check_str_eq(policy_case_refusal("static", &g, "reserve=pow"),
                 "reserve: found 'pow', expected one of max|pow2|pow2-total|oracle|declared");
    check_str_eq(policy_case_refusal("static", &g, "oracle-slack=-1"),
                 "oracle-slack: found '-1', expected a count from 0 to 4294967295");
    assert_non_null(policy_case_refusal("static", &g, "oracle-slack=99999999999999999999"));
    assert_null(policy_case_refusal("static", &g, "reserve=pow2-total oracle-slack=1"));
    assert_null(kv_registry_find("nosuch"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(static__buddy_15728_slots__eighth_of_2048_refused_with_1392_free),
        cmocka_unit_test(static__buddy_1025_slots__rounded_to_2048),
        cmocka_unit_test(static__buddy_rounds_beyond_the_arena__never_fits),
        cmocka_unit_test(static__hole_too_small__refused_though_twice_as_much_is_free),
        cmocka_unit_test(static_paged__three_samples__three_reservations),
        cmocka_unit_test(jemalloc__100_pages__class_of_112_and_a_page_of_padding),
        cmocka_unit_test(jemalloc__two_arenas__do_not_meet),
        cmocka_unit_test(dynamic__block_full_and_none_free__one_more_token_refused),
        cmocka_unit_test(dynamic__15_tokens_in_the_block__one_more_succeeds),
        cmocka_unit_test(dynamic__watermark__holds_for_admission_while_something_runs),
        cmocka_unit_test(dynamic__first_chunk_fits_whole_prompt_does_not__refused_with_the_whole_ask),
        cmocka_unit_test(dynamic__demand_larger_than_the_pool__never_fits),
        cmocka_unit_test(dynamic__figure_8__first_writer_copies_second_writes_in_place),
        cmocka_unit_test(dynamic__copy_without_a_free_block__group_refused_unchanged),
        cmocka_unit_test(dynamic__figure_9__dead_beams_free_2_4_5_8_and_9_to_12_are_taken),
        cmocka_unit_test(dynamic__units_for_forked__prompt_blocks_once),
        cmocka_unit_test(prefix__fully_cached_prompt__last_block_is_computed_again),
        cmocka_unit_test(prefix__hit_of_free_blocks__they_count_in_the_ask),
        cmocka_unit_test(prefix__window_of_33__run_of_two_blocks_from_the_right_decides),
        cmocka_unit_test(ideal__blocks_of_one_token__whole_pool_usable),
        cmocka_unit_test(create__pool_too_small__says_what_it_found_and_expected),
        cmocka_unit_test(create__too_many_blocks__refused),
        cmocka_unit_test(options__bad_values__one_line_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
