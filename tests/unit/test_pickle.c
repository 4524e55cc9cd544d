/* Pickles as hostile input. Bytes are written out opcode by opcode; values as Python's pickle documentation defines them. */
#include "tests/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/device_pickle.h"
#include "sim/device_snapshot.h"

#define BYTES(text) (text), sizeof(text) - 1

struct fixture {
    struct pickle *pickle;
    const struct pickle_value *root;
};

static const struct pickle_value *parse(struct fixture *f, const char *bytes, size_t count)
{
    struct err err = {0};
    int status = pickle_parse(bytes, count, &f->pickle, &f->root, &err);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
    return f->root;
}

static void refused(const char *bytes, size_t count, const char *message)
{
    struct err err = {0};
    struct pickle *pickle;
    const struct pickle_value *root;
    /* In a block of its own size, so that a sanitizer sees a read beyond it. */
    char *copy = malloc(count > 0 ? count : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, count);
    assert_int_equal(pickle_parse(copy, count, &pickle, &root, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    check_str_eq(err.text, message);
    free(copy);
}

static void integers__all_opcodes__exact(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
        int64_t number;
    } cases[] = {
        {BYTES("K\xff."), 255},
        {BYTES("M\xff\xff."), 65535},
        {BYTES("J\xfe\xff\xff\xff."), -2},
        {BYTES("\x8a\x00."), 0},
        {BYTES("\x8a\x01\x80."), -128},
        {BYTES("\x8a\x02\x80\x00."), 128},
        {BYTES("\x8a\x06\x00\x00\x00\xdd\x7d\x7f."), 0x7f7ddd000000},
        {BYTES("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), INT64_MAX},
        {BYTES("\x8a\x0a\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00."), 1},
        {BYTES("\x8b\x01\x00\x00\x00\x07."), 7},
        {BYTES("I42\n."), 42},
        {BYTES("L-42L\n."), -42},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f;
        const struct pickle_value *value = parse(&f, cases[i].bytes, cases[i].count);
        assert_int_equal(value->kind, PICKLE_INT);
        check_i64_eq(value->number, cases[i].number);
        pickle_destroy(f.pickle);
    }
}

static void integers__beyond_64_bits__huge(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(parse(&f, BYTES("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00."))->kind, PICKLE_HUGE);
    pickle_destroy(f.pickle);
    assert_int_equal(parse(&f, BYTES("I99999999999999999999\n."))->kind, PICKLE_HUGE);
    pickle_destroy(f.pickle);
}

/* {'a': [1, (2, 3)], 'b': None, 'a': 1.5}: the later 'a' wins. */
static void dict__nested__built(void **state)
{
    (void)state;
    struct fixture f;
    const struct pickle_value *dict =
        parse(&f, BYTES("\x80\x04}(\x8c\x01" "a](K\x01K\x02K\x03\x86" "e\x8c\x01" "bN\x8c\x01" "aG\x3f\xf8\0\0\0\0\0\0u."));
    assert_int_equal(dict->kind, PICKLE_DICT);
    check_u64_eq(dict->count, 3);
    check_f64_near(pickle_get(dict, "a")->real, 1.5, 0.0);
    assert_int_equal(pickle_get(dict, "b")->kind, PICKLE_NONE);
    assert_null(pickle_get(dict, "c"));
    const struct pickle_value *list = dict->items[1];
    check_u64_eq(list->count, 2);
    check_i64_eq(list->items[1]->items[1]->number, 3);
    pickle_destroy(f.pickle);
}

static void memo__stored_and_fetched__same_value(void **state)
{
    (void)state;
    struct fixture f;
    const struct pickle_value *list = parse(&f, BYTES("](\x8c\x02xy\x94h\0j\0\0\0\0e."));
    check_u64_eq(list->count, 3);
    assert_ptr_equal(list->items[0], list->items[1]);
    assert_ptr_equal(list->items[0], list->items[2]);
    pickle_destroy(f.pickle);
}

/* l = []; l.append(l): a cycle is data like any other. */
static void list__inside_itself__built(void **state)
{
    (void)state;
    struct fixture f;
    const struct pickle_value *list = parse(&f, BYTES("]\x94h\0a."));
    assert_ptr_equal(list->items[0], list);
    pickle_destroy(f.pickle);
}

static void opcodes__that_import_or_call__refused_with_offset(void **state)
{
    (void)state;
    refused(BYTES("\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02ls\x85R."), "offset 14: refused opcode STACK_GLOBAL: only plain data is read");
    refused(BYTES("cos\nsystem\n(S'ls'\ntR."), "offset 0: refused opcode GLOBAL: only plain data is read");
    refused(BYTES("K\x01R."), "offset 2: refused opcode REDUCE: only plain data is read");
    refused(BYTES("}}b."), "offset 2: refused opcode BUILD: only plain data is read");
    refused(BYTES("(ios\nsystem\n."), "offset 1: refused opcode INST: only plain data is read");
    refused(BYTES("(o."), "offset 1: refused opcode OBJ: only plain data is read");
    refused(BYTES("))\x81."), "offset 2: refused opcode NEWOBJ: only plain data is read");
    refused(BYTES("Px\n."), "offset 0: refused opcode PERSID: only plain data is read");
    refused(BYTES("\x82\x01."), "offset 0: refused opcode EXT1: only plain data is read");
    refused(BYTES("\x8f."), "offset 0: refused opcode EMPTY_SET: only plain data is read");
    refused(BYTES("\x96\0\0\0\0\0\0\0\0."), "offset 0: refused opcode BYTEARRAY8: only plain data is read");
    refused(BYTES("\xff."), "offset 0: unknown opcode 0xff");
}

static void bytes__missing_or_too_many__refused(void **state)
{
    (void)state;
    refused(BYTES(""), "offset 0: the pickle ends without STOP");
    refused(BYTES("N"), "offset 1: the pickle ends without STOP");
    refused(BYTES("."), "offset 0: the stack is empty");
    refused(BYTES("NN."), "offset 2: more than one value at the end");
    refused(BYTES("J\x01\x02"), "offset 0: the pickle ends inside it");
    refused(BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), "offset 0: the pickle ends inside it");
    refused(BYTES("X\xff\xff\xff\x7f."), "offset 0: the pickle ends inside it");
    refused(BYTES("\x8b\xff\xff\xff\xff."), "offset 0: the pickle ends inside it");
    refused(BYTES("I42"), "offset 0: the pickle ends inside it");
    refused(BYTES("\x80\x06N."), "offset 0: a protocol above 5");
}

static void stack__wrong_use__refused(void **state)
{
    (void)state;
    refused(BYTES("a."), "offset 0: the stack is empty");
    refused(BYTES("NNa."), "offset 2: expected a list on the stack");
    refused(BYTES("]NNs."), "offset 3: expected a dict on the stack");
    refused(BYTES("e."), "offset 0: no mark on the stack");
    refused(BYTES("(e."), "offset 1: the stack is empty");
    refused(BYTES("}(NNNu."), "offset 5: a key without a value");
    refused(BYTES("(Nd."), "offset 2: a key without a value");
    refused(BYTES("(\x85."), "offset 1: the stack is empty");
    refused(BYTES("h\x05."), "offset 0: a memo index that was never stored");
    refused(BYTES("N\x94r\xff\xff\xff\xff."), "offset 2: a memo index beyond the size of the file");
    refused(BYTES("(0."), "offset 1: the stack is empty");
}

/* A million nested lists, and a million marks: depth is not recursion. */
static void depth__a_million__no_recursion(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    char *bytes = malloc(2 * DEPTH + 2);
    struct fixture f;
    assert_non_null(bytes);
    memset(bytes, ']', DEPTH);
    memset(bytes + DEPTH, 'a', DEPTH);
    bytes[2 * DEPTH - 1] = '.';
    assert_int_equal(parse(&f, bytes, 2 * DEPTH)->kind, PICKLE_LIST);
    pickle_destroy(f.pickle);
    memset(bytes, '(', DEPTH);
    bytes[DEPTH] = '.';
    struct err err = {0};
    assert_int_equal(pickle_parse(bytes, DEPTH + 1, &f.pickle, &f.root, &err), -1);
    free(bytes);
}

static void snapshot_refused(const char *bytes, size_t count, const char *part)
{
    struct err err = {0};
    struct device_snapshot s;
    assert_int_equal(device_snapshot_parse(bytes, count, "x.pickle", 0, &s, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    check_str_has(err.text, "x.pickle: ");
    check_str_has(err.text, part);
}

#define SEGMENT "(\x8c\x07" "address\x8a\x04\0\0\x20\0\x8c\x0atotal_size"

static void snapshot__wrong_shapes__offset_and_field(void **state)
{
    (void)state;
    snapshot_refused(BYTES("]."), "offset 0: snapshot: found a list, expected a dict");
    snapshot_refused(BYTES("}."), "segments: found nothing, expected a list of segments");
    snapshot_refused(BYTES("}\x8c\x08segments}s."), "offset 11: segments: found a dict, expected a list of segments");
    snapshot_refused(BYTES("}\x8c\x08segments](Nes."), "segments: found None, expected a dict");
    snapshot_refused(BYTES("}\x8c\x08segments](}es."), "address: found nothing, expected an integer");
    snapshot_refused(BYTES("}\x8c\x08segments](}" SEGMENT "K\0ues."), "total_size: found 0, expected 1 to");
    snapshot_refused(BYTES("}\x8c\x08segments](}" SEGMENT "J\xff\xff\xff\xff" "ues."), "total_size: found -1, expected 1 to");
    snapshot_refused(BYTES("}\x8c\x08segments](}" SEGMENT "\x8a\x09\0\0\0\0\0\0\0\x80\0ues."),
                     "total_size: found an integer beyond 64 bits, expected an integer");
    snapshot_refused(BYTES("}(\x8c\x08segments]\x8c\x0d" "device_tracesK\x01u."), "device_traces: found an integer, expected a list for each device");
    snapshot_refused(BYTES("}(\x8c\x08segments]\x8c\x0d" "device_traces](](}eeu."), "action: found nothing, expected the name of an action");
}

/* Ten lists of ten references each, nested, would be 10^9 events: the walk stops when it has looked at more than there are bytes. */
static void snapshot__references_without_end__stopped(void **state)
{
    (void)state;
    char bytes[4096];
    size_t n = 0;
    struct err err = {0};
    struct device_snapshot s;
    /* One event, stored under 0, and a trace that refers to it a thousand times. */
    static const char begin[] = "}(\x8c\x08segments]\x8c\x0d" "device_traces](](}(\x8c\x06" "action\x8c\x05" "alloc\x8c\x04" "addrK\x01\x8c\x04sizeK\x01u\x94";
    memcpy(bytes, begin, sizeof begin - 1);
    n = sizeof begin - 1;
    for (int i = 0; i < 1000; i++) {
        bytes[n++] = 'h';
        bytes[n++] = '\0';
    }
    memcpy(bytes + n, "eeu.", 4);
    assert_int_equal(device_snapshot_parse(bytes, n + 4, "x.pickle", 0, &s, &err), -1);
    check_str_has(err.text, "values refer to each other more often than the file is long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers__all_opcodes__exact),
        cmocka_unit_test(integers__beyond_64_bits__huge),
        cmocka_unit_test(dict__nested__built),
        cmocka_unit_test(memo__stored_and_fetched__same_value),
        cmocka_unit_test(list__inside_itself__built),
        cmocka_unit_test(opcodes__that_import_or_call__refused_with_offset),
        cmocka_unit_test(bytes__missing_or_too_many__refused),
        cmocka_unit_test(stack__wrong_use__refused),
        cmocka_unit_test(depth__a_million__no_recursion),
        cmocka_unit_test(snapshot__wrong_shapes__offset_and_field),
        cmocka_unit_test(snapshot__references_without_end__stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
