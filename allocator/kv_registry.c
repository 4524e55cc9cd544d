#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "allocator/kv_policy.h"

/* One line X(file_name) for each allocator/policies/file_name.c, in file-name order. */
#define X(name) extern const struct kv_policy_ops kv_policy_##name##_ops;
#include "kv_policies.inc"
#undef X

static const struct kv_policy_ops *const registry[] = {
#define X(name) &kv_policy_##name##_ops,
#include "kv_policies.inc"
#undef X
};

#define BUILT_INS (sizeof registry / sizeof registry[0])

/* Those of plug-ins, behind the built-in ones, in the order in which they came. */
static const struct kv_policy_ops *added[KV_REGISTRY_ADDED_MAX];
static size_t added_count;

size_t kv_registry_count(void)
{
    return BUILT_INS + added_count;
}

bool kv_registry_add(const struct kv_policy_ops *ops)
{
    if (added_count == KV_REGISTRY_ADDED_MAX)
        return false;
    added[added_count++] = ops;
    return true;
}

bool kv_registry_is_added(const struct kv_policy_ops *ops)
{
    for (size_t i = 0; i < added_count; i++)
        if (added[i] == ops)
            return true;
    return false;
}

const struct kv_policy_ops *kv_registry_at(size_t i)
{
    assert(i < kv_registry_count());
    return i < BUILT_INS ? registry[i] : added[i - BUILT_INS];
}

const struct kv_policy_ops *kv_registry_find(const char *name)
{
    for (size_t i = 0; i < kv_registry_count(); i++)
        if (strcmp(kv_registry_at(i)->name, name) == 0)
            return kv_registry_at(i);
    return NULL;
}

/* The index of text among the words of "a|b|c"; false when it is none of them. */
static bool choice_index(const char *choices, const char *text, uint64_t *index)
{
    size_t text_chars = strlen(text);
    *index = 0;
    for (const char *word = choices;; (*index)++) {
        size_t chars = strcspn(word, "|");
        if (chars == text_chars && memcmp(word, text, chars) == 0)
            return true;
        if (word[chars] == '\0')
            return false;
        word += chars + 1;
    }
}

/* Decimal digits only; no sign, no blank, no overflow. */
static bool parse_count(const char *text, uint64_t *count)
{
    *count = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (*count > (UINT64_MAX - digit) / 10)
            return false;
        *count = *count * 10 + digit;
    }
    return true;
}

static bool parse_option(const struct kv_option *option, const char *text, struct kv_value *value,
                         char *why, size_t why_bytes)
{
    if (option->choices != NULL) {
        if (choice_index(option->choices, text, &value->count))
            return true;
        snprintf(why, why_bytes, "%s: found '%s', expected one of %s", option->name, text,
                 option->choices);
        return false;
    }
    if (parse_count(text, &value->count) && value->count >= option->count_min &&
        value->count <= option->count_max)
        return true;
    snprintf(why, why_bytes, "%s: found '%s', expected a count from %llu to %llu", option->name, text,
             (unsigned long long)option->count_min, (unsigned long long)option->count_max);
    return false;
}

bool kv_options_parse(const struct kv_policy_ops *ops, const char *const *texts,
                      struct kv_value *values, char *why, size_t why_bytes)
{
    for (size_t i = 0; ops->options != NULL && ops->options[i] != NULL; i++) {
        assert(i < KV_OPTIONS_MAX);
        const struct kv_option *option = ops->options[i];
        const char *text = texts != NULL && texts[i] != NULL ? texts[i] : option->default_text;
        if (!parse_option(option, text, &values[i], why, why_bytes))
            return false;
    }
    return true;
}
