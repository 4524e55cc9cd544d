#include "sim/condition.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *text, *at;
    const struct result *result; /* NULL: only the form is checked */
    char *null_key; /* of CONDITION_KEY_BYTES, or NULL */
    condition_key_sink on_key; /* or NULL */
    void *on_key_context;
    unsigned depth; /* of parentheses */
    struct err *err;
};

static void skip_space(struct parser *p)
{
    while (isspace((unsigned char)*p->at)) p->at++;
}

static int fail(struct parser *p, const char *expected)
{
    return err_set(p->err, ERR_USAGE, "'%s': column %zu: found '%.20s', expected %s", p->text,
                   (size_t)(p->at - p->text) + 1, p->at, expected);
}

static bool accept(struct parser *p, const char *token)
{
    skip_space(p);
    size_t length = strlen(token);
    if (strncmp(p->at, token, length) != 0) return false;
    p->at += length;
    return true;
}

static int parse_operator(struct parser *p, const char **op)
{
    static const char *const operators[] = {"<=", ">=", "==", "!=", "<", ">"};
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (!accept(p, operators[i])) continue;
        *op = operators[i];
        return 0;
    }
    return fail(p, "one of < <= > >= == !=");
}

static bool compare(double a, const char *op, double b)
{
    switch (op[0]) {
    case '<': return op[1] ? a <= b : a < b;
    case '>': return op[1] ? a >= b : a > b;
    case '=': return a == b;
    default: return a != b;
    }
}

static int look_up(struct parser *p, const char *key, bool *known, double *value)
{
    *known = false;
    if (!p->result) return 0;
    const struct result_entry *entry = result_find(p->result, key);
    if (entry) {
        *known = result_number(entry, value);
        if (!*known && entry->kind == RESULT_TEXT) {
            return err_set(p->err, ERR_USAGE, "'%s': %s is a text, expected a number", p->text,
                           key);
        }
        return 0;
    }
    /* An object without a value is one null: states_saturated.free of a run that was never short. */
    for (size_t n = strlen(key); n-- > 0;) {
        char object[128];
        if (key[n] != '.' || n >= sizeof object) continue;
        memcpy(object, key, n);
        object[n] = '\0';
        if (result_find(p->result, object)) return 0;
    }
    return err_set(p->err, ERR_USAGE, "'%s': no figure is called '%s'", p->text, key);
}

static int parse_comparison(struct parser *p, bool *holds)
{
    skip_space(p);
    char key[CONDITION_KEY_BYTES] = "";
    size_t length = strspn(p->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    if (length == 0 || length >= sizeof key) return fail(p, "the name of a figure");
    memcpy(key, p->at, length);
    key[length] = '\0';
    p->at += length;

    const char *op = "<";
    if (parse_operator(p, &op)) return -1;
    skip_space(p);
    char *end;
    double limit = strtod(p->at, &end);
    if (end == p->at || limit != limit) return fail(p, "a number");
    p->at = end;

    if (p->on_key) p->on_key(p->on_key_context, key);
    bool known = false;
    double value = 0;
    if (look_up(p, key, &known, &value)) return -1;
    if (!known && p->null_key) memcpy(p->null_key, key, sizeof key);
    *holds = known && compare(value, op, limit);
    return 0;
}

static int parse_either(struct parser *p, bool *holds);

/* Deeper than anyone writes; the parser calls itself. */
#define DEPTH_MAX 32u

static int parse_one(struct parser *p, bool *holds)
{
    if (!accept(p, "(")) return parse_comparison(p, holds);
    if (p->depth == DEPTH_MAX) return fail(p, "at most 32 parentheses within each other");
    p->depth++;
    if (parse_either(p, holds)) return -1;
    p->depth--;
    return accept(p, ")") ? 0 : fail(p, "&&, || or )");
}

static int parse_either(struct parser *p, bool *holds)
{
    *holds = false;
    do {
        bool all = true;
        do {
            bool one = false;
            if (parse_one(p, &one)) return -1;
            all = all && one;
        } while (accept(p, "&&"));
        *holds = *holds || all;
    } while (accept(p, "||"));
    skip_space(p);
    return 0;
}

static int parse_condition(struct parser *p, bool *holds)
{
    if (parse_either(p, holds)) return -1;
    return *p->at ? fail(p, "&&, || or the end") : 0;
}

int condition_holds(const char *text, const struct result *result, bool *holds,
                    char null_key[CONDITION_KEY_BYTES], struct err *err)
{
    struct parser p = {.text = text, .at = text, .result = result, .null_key = null_key, .err = err};
    null_key[0] = '\0';
    return parse_condition(&p, holds);
}

int condition_check(const char *text, struct err *err)
{
    return condition_keys(text, NULL, NULL, err);
}

int condition_keys(const char *text, condition_key_sink on_key, void *context, struct err *err)
{
    struct parser p = {.text = text, .at = text, .on_key = on_key, .on_key_context = context, .err = err};
    bool holds;
    return parse_condition(&p, &holds);
}
