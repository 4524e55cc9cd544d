/* PYTORCH_CUDA_ALLOC_CONF as text. */
#include "tests/check.h"

#include <string.h>

#include "allocator/device/device_allocator.h"

static struct dev_settings parse(const char *text)
{
    struct dev_settings settings;
    char why[256] = "";
    bool ok = dev_settings_parse(&settings, text, why, sizeof why);
    check_str_eq(why, "");
    assert_true(ok);
    return settings;
}

static void parse__empty__everything_off(void **state)
{
    (void)state;
    struct dev_settings s = parse("");
    assert_false(s.expandable_segments);
    check_u64_eq(s.max_split_bytes, DEV_NONE);
    check_f64_near(s.gc_threshold, 0.0, 0.0);
    for (int i = 0; i < DEV_ROUNDUP_CLASSES; i++)
        check_u64_eq(s.roundup_divisions[i], 0);
}

static void parse__several_keys__all_taken(void **state)
{
    (void)state;
    struct dev_settings s = parse("expandable_segments:True, max_split_size_mb:128 ,garbage_collection_threshold:0.8,");
    assert_true(s.expandable_segments);
    check_u64_eq(s.max_split_bytes, 134217728); /* 128 * 2^20 */
    check_f64_near(s.gc_threshold, 0.8, 0.0);
}

static void parse__roundup_number__holds_for_all_sizes(void **state)
{
    (void)state;
    struct dev_settings s = parse("roundup_power2_divisions:4");
    for (int i = 0; i < DEV_ROUNDUP_CLASSES; i++)
        check_u64_eq(s.roundup_divisions[i], 4);
}

/* The example of PyTorch's documentation: 1 up to 256 MiB, 2 from 256 to 512, 4 from 512 to 1024, 8 above. */
static void parse__roundup_list__classes_by_size(void **state)
{
    (void)state;
    struct dev_settings s = parse("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
    static const uint32_t expected[DEV_ROUNDUP_CLASSES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8};
    for (int i = 0; i < DEV_ROUNDUP_CLASSES; i++)
        check_u64_eq(s.roundup_divisions[i], expected[i]);
}

static void parse__keys_of_no_effect__accepted(void **state)
{
    (void)state;
    parse("backend:native,pinned_use_cuda_host_register:True,pinned_num_register_threads:8,release_lock_on_cudamalloc:False");
}

static void parse__mistakes__say_what_is_wrong_and_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"expandable_segment:True", "unknown key 'expandable_segment'"},
        {"expandable_segments:yes", "found 'yes', expected True or False"},
        {"expandable_segments", "expected ':'"},
        {"max_split_size_mb:20", "found 20, expected more than 20"},
        {"max_split_size_mb:-1", "found '-1', expected a count"},
        {"max_split_size_mb:99999999999999", "expected a count"},
        {"max_split_size_mb:", "expected a word"},
        {"garbage_collection_threshold:1", "expected a share between 0 and 1"},
        {"garbage_collection_threshold:0", "expected a share between 0 and 1"},
        {"garbage_collection_threshold:nan", "expected a share between 0 and 1"},
        {"garbage_collection_threshold:0.5.5", "expected a share between 0 and 1"},
        {"roundup_power2_divisions:3", "found 3, expected a power of two"},
        {"roundup_power2_divisions:[256:1", "expected ']'"},
        {"roundup_power2_divisions:[255:1]", "found '255', expected a power of two in MiB or >"},
        {"expandable_segments:True;max_split_size_mb:64", "found 'True;max_split_size_mb'"},
        {"expandable_segments:True max_split_size_mb:64", "expected ','"},
        {"backend:cudaMallocAsync", "only native is modelled"},
        {":", "expected a word"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dev_settings s = {.max_split_bytes = 7};
        char why[256] = "";
        assert_false(dev_settings_parse(&s, cases[i].text, why, sizeof why));
        check_str_has(why, cases[i].part);
        check_u64_eq(s.max_split_bytes, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse__empty__everything_off),
        cmocka_unit_test(parse__several_keys__all_taken),
        cmocka_unit_test(parse__roundup_number__holds_for_all_sizes),
        cmocka_unit_test(parse__roundup_list__classes_by_size),
        cmocka_unit_test(parse__keys_of_no_effect__accepted),
        cmocka_unit_test(parse__mistakes__say_what_is_wrong_and_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
