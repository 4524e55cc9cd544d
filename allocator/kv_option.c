#include "allocator/kv_option.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

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

size_t kv_options_count(const struct kv_option *const *options)
{
    size_t count = 0;
    while (options != NULL && options[count] != NULL)
        count++;
    return count;
}

bool kv_options_parse(const struct kv_option *const *options, const char *const *texts, struct kv_value *values,
                      char *why, size_t why_bytes)
{
    size_t count = kv_options_count(options);
    assert(count <= KV_OPTIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        const char *text = texts != NULL && texts[i] != NULL ? texts[i] : options[i]->default_text;
        if (!parse_option(options[i], text, &values[i], why, why_bytes))
            return false;
    }
    return true;
}
