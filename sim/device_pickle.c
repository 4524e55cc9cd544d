#include "sim/device_pickle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)1 << 16)

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, bytes;
};

struct pickle {
    struct arena_chunk *chunks;
};

/* The machine that a pickle runs on. */
struct machine {
    const uint8_t *bytes;
    size_t count, at;
    size_t op_at; /* of the opcode that is being run */
    struct pickle *pickle;
    struct pickle_value **stack; /* NULL entries are marks */
    size_t depth, stack_capacity;
    struct pickle_value **memo;
    size_t memo_count, memo_capacity; /* memo[0 .. count); NULL: never stored */
    struct err *err;
};

static int fail(struct machine *m, const char *what)
{
    return err_set(m->err, ERR_INPUT, "offset %zu: %s", m->op_at, what);
}

static int no_memory(struct machine *m)
{
    return err_set(m->err, ERR_FAILED, "out of memory");
}

/* ---- memory ---- */

static void *arena_take(struct pickle *pickle, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    struct arena_chunk *chunk = pickle->chunks;
    size_t head = (sizeof *chunk + 15) & ~(size_t)15;
    if (!chunk || chunk->bytes - chunk->used < bytes) {
        size_t room = bytes > ARENA_BYTES - head ? bytes : ARENA_BYTES - head;
        chunk = malloc(head + room);
        if (!chunk)
            return NULL;
        *chunk = (struct arena_chunk){.next = pickle->chunks, .bytes = room};
        pickle->chunks = chunk;
    }
    void *thing = (char *)chunk + head + chunk->used;
    chunk->used += bytes;
    return thing;
}

void pickle_destroy(struct pickle *pickle)
{
    if (!pickle)
        return;
    while (pickle->chunks) {
        struct arena_chunk *next = pickle->chunks->next;
        free(pickle->chunks);
        pickle->chunks = next;
    }
    free(pickle);
}

static struct pickle_value *new_value(struct machine *m, enum pickle_kind kind)
{
    struct pickle_value *value = arena_take(m->pickle, sizeof *value);
    if (!value) {
        no_memory(m);
        return NULL;
    }
    *value = (struct pickle_value){.kind = kind, .offset = m->op_at};
    return value;
}

/* Room for more items of a list or entries of a dict, of `width` pointers each. */
static int value_reserve(struct machine *m, struct pickle_value *value, size_t more, size_t width)
{
    size_t needed = value->count + more;
    if (needed > UINT32_MAX)
        return fail(m, "more than 2^32 items");
    if (needed <= value->capacity)
        return 0;
    size_t capacity = needed < 4 ? needed : needed + needed / 2;
    capacity = capacity > UINT32_MAX ? UINT32_MAX : capacity;
    struct pickle_value **items = arena_take(m->pickle, capacity * width * sizeof *items);
    if (!items)
        return no_memory(m);
    if (value->count > 0)
        memcpy(items, value->items, value->count * width * sizeof *items);
    value->items = items;
    value->capacity = (uint32_t)capacity;
    return 0;
}

/* ---- stack ---- */

static int push_entry(struct machine *m, struct pickle_value *value)
{
    if (m->depth == m->stack_capacity) {
        size_t capacity = m->stack_capacity ? 2 * m->stack_capacity : 64;
        struct pickle_value **stack = realloc(m->stack, capacity * sizeof(struct pickle_value *));
        if (!stack)
            return no_memory(m);
        m->stack = stack;
        m->stack_capacity = capacity;
    }
    m->stack[m->depth++] = value;
    return 0;
}

static int push(struct machine *m, struct pickle_value *value)
{
    return value ? push_entry(m, value) : -1;
}

static struct pickle_value *top(struct machine *m, enum pickle_kind kind)
{
    struct pickle_value *value = m->depth > 0 ? m->stack[m->depth - 1] : NULL;
    if (!value)
        fail(m, "the stack is empty");
    else if (value->kind != kind)
        fail(m, kind == PICKLE_LIST ? "expected a list on the stack" : "expected a dict on the stack");
    else
        return value;
    return NULL;
}

/* Entries above the last mark. */
static int above_mark(struct machine *m, size_t *first)
{
    size_t at = m->depth;
    while (at > 0 && m->stack[at - 1])
        at--;
    if (at == 0)
        return fail(m, "no mark on the stack");
    *first = at;
    return 0;
}

static int pop_checked(struct machine *m, size_t n)
{
    if (m->depth < n)
        return fail(m, "the stack is empty");
    for (size_t i = 0; i < n; i++)
        if (!m->stack[m->depth - 1 - i])
            return fail(m, "the stack is empty");
    return 0;
}

/* ---- reading ---- */

static int need(struct machine *m, uint64_t bytes)
{
    if (m->count - m->at >= bytes)
        return 0;
    return fail(m, "the pickle ends inside it");
}

static uint64_t little_endian(const uint8_t *bytes, size_t n)
{
    uint64_t value = 0;
    while (n-- > 0)
        value = value << 8 | bytes[n];
    return value;
}

static int read_count(struct machine *m, size_t width, uint64_t *value)
{
    if (need(m, width) != 0)
        return -1;
    *value = little_endian(m->bytes + m->at, width);
    m->at += width;
    return 0;
}

/* The rest of the line, for protocol 0. */
static int read_line(struct machine *m, const char **text, size_t *length)
{
    const uint8_t *start = m->bytes + m->at;
    const uint8_t *end = memchr(start, '\n', m->count - m->at);
    if (!end)
        return fail(m, "the pickle ends inside it");
    *text = (const char *)start;
    *length = (size_t)(end - start);
    m->at += *length + 1;
    return 0;
}

static int push_int(struct machine *m, int64_t number)
{
    struct pickle_value *value = new_value(m, PICKLE_INT);
    if (!value)
        return -1;
    value->number = number;
    return push(m, value);
}

static int push_constant(struct machine *m, enum pickle_kind kind, int64_t number)
{
    struct pickle_value *value = new_value(m, kind);
    if (!value)
        return -1;
    value->number = number;
    return push(m, value);
}

static int push_text(struct machine *m, size_t width)
{
    uint64_t length;
    if (read_count(m, width, &length) != 0 || need(m, length) != 0)
        return -1;
    struct pickle_value *value = new_value(m, PICKLE_TEXT);
    if (!value)
        return -1;
    value->text.bytes = (const char *)m->bytes + m->at;
    value->text.length = (size_t)length;
    m->at += (size_t)length;
    return push(m, value);
}

/* Protocol 0. Escapes are left as they are: the texts that matter here have none. */
static int push_text_line(struct machine *m, bool quoted)
{
    const char *text;
    size_t length;
    if (read_line(m, &text, &length) != 0)
        return -1;
    if (quoted && (length < 2 || (text[0] != '\'' && text[0] != '"') || text[length - 1] != text[0]))
        return fail(m, "expected a quoted text");
    struct pickle_value *value = new_value(m, PICKLE_TEXT);
    if (!value)
        return -1;
    value->text.bytes = text + quoted;
    value->text.length = length - 2 * (size_t)quoted;
    return push(m, value);
}

/* A two's complement number of any length. */
static int push_long(struct machine *m, size_t width)
{
    uint64_t length;
    if (read_count(m, width, &length) != 0 || need(m, length) != 0)
        return -1;
    const uint8_t *bytes = m->bytes + m->at;
    m->at += (size_t)length;
    while (length > 8 && (bytes[length - 1] == 0 || bytes[length - 1] == 0xff) &&
           (bytes[length - 1] & 0x80) == (bytes[length - 2] & 0x80))
        length--; /* sign bytes that say nothing new */
    if (length > 8)
        return push_constant(m, PICKLE_HUGE, 0);
    uint64_t value = little_endian(bytes, (size_t)length);
    if (length > 0 && length < 8 && (bytes[length - 1] & 0x80))
        value |= UINT64_MAX << (8 * length);
    return push_int(m, (int64_t)value);
}

static int push_decimal(struct machine *m)
{
    const char *text;
    size_t length;
    char digits[32];
    if (read_line(m, &text, &length) != 0)
        return -1;
    if (length == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1'))
        return push_constant(m, PICKLE_BOOL, text[1] - '0');
    if (length > 0 && text[length - 1] == 'L')
        length--;
    size_t sign = length > 0 && text[0] == '-';
    if (length == sign || strspn(text + sign, "0123456789") < length - sign)
        return fail(m, "expected an integer");
    if (length - sign > 18)
        return push_constant(m, PICKLE_HUGE, 0);
    memcpy(digits, text, length);
    digits[length] = '\0';
    return push_int(m, strtoll(digits, NULL, 10));
}

static int push_real(struct machine *m)
{
    if (need(m, 8) != 0)
        return -1;
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | m->bytes[m->at++];
    struct pickle_value *value = new_value(m, PICKLE_FLOAT);
    if (!value)
        return -1;
    memcpy(&value->real, &bits, sizeof value->real);
    return push(m, value);
}

static int push_real_line(struct machine *m)
{
    const char *text;
    size_t length;
    char digits[64], *end;
    if (read_line(m, &text, &length) != 0)
        return -1;
    if (length == 0 || length >= sizeof digits)
        return fail(m, "expected a number");
    memcpy(digits, text, length);
    digits[length] = '\0';
    struct pickle_value *value = new_value(m, PICKLE_FLOAT);
    if (!value)
        return -1;
    value->real = strtod(digits, &end);
    return *end == '\0' ? push(m, value) : fail(m, "expected a number");
}

/* ---- building ---- */

/* The n topmost entries become a list (tuples are lists here). */
static int gather(struct machine *m, size_t first, bool drop_mark)
{
    size_t n = m->depth - first;
    struct pickle_value *value = new_value(m, PICKLE_LIST);
    if (!value || value_reserve(m, value, n, 1) != 0)
        return -1;
    if (n > 0)
        memcpy(value->items, m->stack + first, n * sizeof(struct pickle_value *));
    value->count = (uint32_t)n;
    m->depth = first - drop_mark;
    return push(m, value);
}

static int append(struct machine *m, size_t first, bool drop_mark)
{
    size_t n = m->depth - first;
    m->depth = first - drop_mark;
    struct pickle_value *list = top(m, PICKLE_LIST);
    if (!list || value_reserve(m, list, n, 1) != 0)
        return -1;
    if (n > 0)
        memcpy(list->items + list->count, m->stack + first, n * sizeof(struct pickle_value *));
    list->count += (uint32_t)n;
    return 0;
}

static int set_items(struct machine *m, size_t first, bool drop_mark)
{
    size_t n = m->depth - first;
    if (n % 2 != 0)
        return fail(m, "a key without a value");
    m->depth = first - drop_mark;
    struct pickle_value *dict = top(m, PICKLE_DICT);
    if (!dict || value_reserve(m, dict, n / 2, 2) != 0)
        return -1;
    if (n > 0)
        memcpy(dict->items + 2 * (size_t)dict->count, m->stack + first, n * sizeof(struct pickle_value *));
    dict->count += (uint32_t)(n / 2);
    return 0;
}

static int build_dict(struct machine *m)
{
    size_t first = 0;
    if (above_mark(m, &first) != 0)
        return -1;
    size_t n = m->depth - first;
    struct pickle_value *dict = new_value(m, PICKLE_DICT);
    if (!dict || n % 2 != 0)
        return dict ? fail(m, "a key without a value") : -1;
    if (value_reserve(m, dict, n / 2, 2) != 0)
        return -1;
    if (n > 0)
        memcpy(dict->items, m->stack + first, n * sizeof(struct pickle_value *));
    dict->count = (uint32_t)(n / 2);
    m->depth = first - 1;
    return push(m, dict);
}

/* ---- memo ---- */

static int memo_put(struct machine *m, uint64_t index)
{
    if (pop_checked(m, 1) != 0)
        return -1;
    /* Each store takes a byte of the file at least, so honest indices are below its size. */
    if (index > m->count)
        return fail(m, "a memo index beyond the size of the file");
    if (index >= m->memo_capacity) {
        size_t capacity = (size_t)index + 1 < 64 ? 64 : 2 * ((size_t)index + 1);
        struct pickle_value **memo = realloc(m->memo, capacity * sizeof(struct pickle_value *));
        if (!memo)
            return no_memory(m);
        m->memo = memo;
        m->memo_capacity = capacity;
    }
    while (m->memo_count <= index)
        m->memo[m->memo_count++] = NULL;
    m->memo[index] = m->stack[m->depth - 1];
    return 0;
}

static int memo_get(struct machine *m, uint64_t index)
{
    if (index >= m->memo_count || !m->memo[index])
        return fail(m, "a memo index that was never stored");
    return push(m, m->memo[index]);
}

static int memo_line(struct machine *m, uint64_t *index)
{
    const char *text;
    size_t length;
    if (read_line(m, &text, &length) != 0)
        return -1;
    *index = 0;
    if (length == 0 || length > 10)
        return fail(m, "expected a memo index");
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return fail(m, "expected a memo index");
        *index = *index * 10 + (uint64_t)(text[i] - '0');
    }
    return 0;
}

/* ---- opcodes ---- */

static int op_memo(struct machine *m, uint8_t op)
{
    uint64_t index;
    switch (op) {
    case 0x94: return memo_put(m, m->memo_count);                          /* MEMOIZE */
    case 'q': return read_count(m, 1, &index) ? -1 : memo_put(m, index);   /* BINPUT */
    case 'r': return read_count(m, 4, &index) ? -1 : memo_put(m, index);   /* LONG_BINPUT */
    case 'p': return memo_line(m, &index) ? -1 : memo_put(m, index);       /* PUT */
    case 'h': return read_count(m, 1, &index) ? -1 : memo_get(m, index);   /* BINGET */
    case 'j': return read_count(m, 4, &index) ? -1 : memo_get(m, index);   /* LONG_BINGET */
    default: return memo_line(m, &index) ? -1 : memo_get(m, index);        /* GET */
    }
}

static int op_marked(struct machine *m, uint8_t op)
{
    size_t first = 0;
    if (above_mark(m, &first) != 0)
        return -1;
    switch (op) {
    case 'e': return append(m, first, true);    /* APPENDS */
    case 'u': return set_items(m, first, true); /* SETITEMS */
    case '1': m->depth = first - 1; return 0;   /* POP_MARK */
    default: return gather(m, first, true);     /* TUPLE, LIST */
    }
}

/* Entries from the top, without a mark. */
static int op_counted(struct machine *m, size_t n, uint8_t op)
{
    if (pop_checked(m, n) != 0)
        return -1;
    size_t first = m->depth - n;
    if (op == 'a')
        return append(m, first, false);
    if (op == 's')
        return set_items(m, first, false);
    return gather(m, first, false);
}

static int op_number(struct machine *m, uint8_t op)
{
    uint64_t value;
    switch (op) {
    case 'J': return read_count(m, 4, &value) ? -1 : push_int(m, (int32_t)(uint32_t)value); /* BININT */
    case 'K': return read_count(m, 1, &value) ? -1 : push_int(m, (int64_t)value);           /* BININT1 */
    case 'M': return read_count(m, 2, &value) ? -1 : push_int(m, (int64_t)value);           /* BININT2 */
    case 0x8a: return push_long(m, 1);                                                      /* LONG1 */
    case 0x8b: return push_long(m, 4);                                                      /* LONG4 */
    case 'G': return push_real(m);                                                          /* BINFLOAT */
    case 'F': return push_real_line(m);                                                     /* FLOAT */
    default: return push_decimal(m);                                                        /* INT, LONG */
    }
}

static int op_skip(struct machine *m, uint8_t op)
{
    uint64_t value;
    if (op == 0x95)
        return read_count(m, 8, &value); /* FRAME: its length is a hint for buffers */
    if (read_count(m, 1, &value) != 0)
        return -1;
    return value <= 5 ? 0 : fail(m, "a protocol above 5"); /* PROTO */
}

static int refuse(struct machine *m, uint8_t op)
{
    static const struct {
        uint8_t op;
        const char *name;
    } known[] = {
        {'c', "GLOBAL"},      {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},   {'b', "BUILD"},        {'i', "INST"},
        {'o', "OBJ"},         {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {'P', "PERSID"},     {'Q', "BINPERSID"},
        {0x82, "EXT1"},       {0x83, "EXT2"},         {0x84, "EXT4"},    {0x8f, "EMPTY_SET"},   {0x90, "ADDITEMS"},
        {0x91, "FROZENSET"},  {0x96, "BYTEARRAY8"},   {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].op == op)
            return err_set(m->err, ERR_INPUT, "offset %zu: refused opcode %s: only plain data is read", m->op_at, known[i].name);
    return err_set(m->err, ERR_INPUT, "offset %zu: unknown opcode 0x%02x", m->op_at, op);
}

static int run_op(struct machine *m, uint8_t op)
{
    switch (op) {
    case 0x80: case 0x95: return op_skip(m, op);
    case '(': return push_entry(m, NULL);
    case '0': return pop_checked(m, 1) ? -1 : (m->depth--, 0);
    case '2': return pop_checked(m, 1) ? -1 : push(m, m->stack[m->depth - 1]);
    case '}': return push(m, new_value(m, PICKLE_DICT));
    case ']': case ')': return push(m, new_value(m, PICKLE_LIST));
    case 'd': return build_dict(m);
    case 'e': case 'u': case '1': case 't': case 'l': return op_marked(m, op);
    case 'a': return op_counted(m, 1, op);
    case 's': return op_counted(m, 2, op);
    case 0x85: return op_counted(m, 1, op);
    case 0x86: return op_counted(m, 2, op);
    case 0x87: return op_counted(m, 3, op);
    case 0x94: case 'q': case 'r': case 'p': case 'h': case 'j': case 'g': return op_memo(m, op);
    case 'J': case 'K': case 'M': case 0x8a: case 0x8b: case 'G': case 'F': case 'I': case 'L': return op_number(m, op);
    case 0x8c: case 'U': case 'C': return push_text(m, 1);
    case 'X': case 'T': case 'B': return push_text(m, 4);
    case 0x8d: case 0x8e: return push_text(m, 8);
    case 'V': case 'S': return push_text_line(m, op == 'S');
    case 'N': return push_constant(m, PICKLE_NONE, 0);
    case 0x88: return push_constant(m, PICKLE_BOOL, 1);
    case 0x89: return push_constant(m, PICKLE_BOOL, 0);
    default: return refuse(m, op);
    }
}

static int run(struct machine *m)
{
    while (m->at < m->count) {
        m->op_at = m->at;
        uint8_t op = m->bytes[m->at++];
        if (op != '.') {
            if (run_op(m, op) != 0)
                return -1;
            continue;
        }
        if (pop_checked(m, 1) != 0)
            return -1;
        return m->depth == 1 ? 0 : fail(m, "more than one value at the end");
    }
    m->op_at = m->count;
    return fail(m, "the pickle ends without STOP");
}

int pickle_parse(const void *bytes, size_t count, struct pickle **pickle, const struct pickle_value **root, struct err *err)
{
    struct machine m = {.bytes = bytes, .count = count, .err = err};
    m.pickle = calloc(1, sizeof *m.pickle);
    if (!m.pickle)
        return err_set(err, ERR_FAILED, "out of memory");
    int status = run(&m);
    if (status == 0) {
        *root = m.stack[0];
        *pickle = m.pickle;
    } else {
        pickle_destroy(m.pickle);
    }
    free(m.stack);
    free(m.memo);
    return status;
}

bool pickle_text_is(const struct pickle_value *value, const char *text)
{
    return value && value->kind == PICKLE_TEXT && value->text.length == strlen(text) &&
           memcmp(value->text.bytes, text, value->text.length) == 0;
}

const struct pickle_value *pickle_get(const struct pickle_value *dict, const char *key)
{
    if (!dict || dict->kind != PICKLE_DICT)
        return NULL;
    for (size_t i = dict->count; i-- > 0;)
        if (pickle_text_is(dict->items[2 * i], key))
            return dict->items[2 * i + 1];
    return NULL;
}

const char *pickle_kind_name(enum pickle_kind kind)
{
    static const char *const names[] = {"None", "a bool", "an integer", "an integer beyond 64 bits", "a float", "a text", "a list", "a dict"};
    return names[kind];
}
