/* PYTORCH_CUDA_ALLOC_CONF, as PyTorch reads it. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/device/device_allocator.h"

#define MAX_SPLIT_MIB_MIN 21u /* must exceed the 20 MiB of a large segment */
#define KEY_BYTES 64

struct cursor {
    const char *at;
    char *why;
    size_t why_bytes;
};

static bool refuse(const struct cursor *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(const struct cursor *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (c->why_bytes > 0)
        vsnprintf(c->why, c->why_bytes, format, args);
    va_end(args);
    return false;
}

static void skip_blanks(struct cursor *c)
{
    c->at += strspn(c->at, " \t");
}

/* A word up to one of , : [ ] or blank. */
static bool read_word(struct cursor *c, char word[KEY_BYTES])
{
    skip_blanks(c);
    size_t length = strcspn(c->at, ",:[] \t");
    if (length == 0 || length >= KEY_BYTES)
        return refuse(c, "found '%.20s', expected a word", c->at);
    memcpy(word, c->at, length);
    word[length] = '\0';
    c->at += length;
    skip_blanks(c);
    return true;
}

static bool read_mark(struct cursor *c, char mark)
{
    skip_blanks(c);
    if (*c->at != mark)
        return refuse(c, "found '%.20s', expected '%c'", c->at, mark);
    c->at++;
    return true;
}

static bool read_count(struct cursor *c, const char *key, uint64_t *value)
{
    char word[KEY_BYTES];
    if (!read_word(c, word))
        return false;
    if (word[strspn(word, "0123456789")] != '\0' || strlen(word) > 12)
        return refuse(c, "%s: found '%s', expected a count", key, word);
    *value = strtoull(word, NULL, 10);
    return true;
}

static bool read_bool(struct cursor *c, const char *key, bool *value)
{
    char word[KEY_BYTES];
    if (!read_word(c, word))
        return false;
    *value = strcmp(word, "True") == 0;
    if (!*value && strcmp(word, "False") != 0)
        return refuse(c, "%s: found '%s', expected True or False", key, word);
    return true;
}

static bool read_max_split(struct cursor *c, struct dev_settings *settings)
{
    uint64_t mib;
    if (!read_count(c, "max_split_size_mb", &mib))
        return false;
    if (mib < MAX_SPLIT_MIB_MIN)
        return refuse(c, "max_split_size_mb: found %llu, expected more than 20", (unsigned long long)mib);
    settings->max_split_bytes = mib >= DEV_NONE / DEV_MIB ? DEV_NONE : mib * DEV_MIB;
    return true;
}

static bool read_gc(struct cursor *c, struct dev_settings *settings)
{
    char word[KEY_BYTES];
    if (!read_word(c, word))
        return false;
    char *end;
    double value = word[strspn(word, "0123456789.")] == '\0' ? strtod(word, &end) : -1.0;
    if (!(value > 0.0 && value < 1.0) || *end != '\0')
        return refuse(c, "garbage_collection_threshold: found '%s', expected a share between 0 and 1", word);
    settings->gc_threshold = value;
    return true;
}

static bool read_division(struct cursor *c, uint32_t *divisions)
{
    uint64_t value;
    if (!read_count(c, "roundup_power2_divisions", &value))
        return false;
    if (value > UINT32_MAX || (value & (value - 1)) != 0)
        return refuse(c, "roundup_power2_divisions: found %llu, expected a power of two", (unsigned long long)value);
    *divisions = (uint32_t)value;
    return true;
}

static unsigned class_of_mib(uint64_t mib)
{
    unsigned class = 0;
    while (mib >>= 1)
        class++;
    return class < DEV_ROUNDUP_CLASSES ? class : DEV_ROUNDUP_CLASSES - 1;
}

/* "4", or "[256:1,512:2,1024:4,>:8]": a size in MiB up to which the value holds. */
static bool read_roundup(struct cursor *c, struct dev_settings *settings)
{
    uint32_t *classes = settings->roundup_divisions;
    uint32_t value;
    skip_blanks(c);
    if (*c->at != '[') {
        if (!read_division(c, &value))
            return false;
        for (unsigned i = 0; i < DEV_ROUNDUP_CLASSES; i++)
            classes[i] = value;
        return true;
    }
    unsigned filled = 0; /* classes below it have a value */
    char mark = '[';
    do {
        char word[KEY_BYTES];
        if (!read_mark(c, mark) || !read_word(c, word) || !read_mark(c, ':') || !read_division(c, &value))
            return false;
        unsigned last = DEV_ROUNDUP_CLASSES - 1;
        if (strcmp(word, ">") != 0) {
            uint64_t mib = strtoull(word, NULL, 10);
            if (word[strspn(word, "0123456789")] != '\0' || mib == 0 || (mib & (mib - 1)) != 0)
                return refuse(c, "roundup_power2_divisions: found '%s', expected a power of two in MiB or >", word);
            last = class_of_mib(mib);
        }
        /* The first entry holds for all smaller sizes too, a later one for its own class, '>' for all that follow. */
        unsigned first = filled == 0 ? 0 : word[0] == '>' ? filled : last;
        for (unsigned i = first; i <= last; i++)
            classes[i] = value;
        filled = last + 1;
        mark = ',';
        skip_blanks(c);
    } while (*c->at == ',');
    return read_mark(c, ']');
}

/* Keys about host memory, locks and other back ends change nothing here, but a setting that carries them must be read. */
static bool skip_value(struct cursor *c, const char *key)
{
    static const char *const accepted[] = {
        "pinned_use_cuda_host_register", "pinned_num_register_threads", "pinned_use_background_threads",
        "release_lock_on_cudamalloc", "graph_capture_record_stream_reuse", "pinned_reserve_segment_size_mb", "backend",
    };
    char word[KEY_BYTES];
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        if (strcmp(key, accepted[i]) != 0)
            continue;
        if (!read_word(c, word))
            return false;
        if (strcmp(key, "backend") == 0 && strcmp(word, "native") != 0)
            return refuse(c, "backend: found '%s', only native is modelled", word);
        return true;
    }
    return refuse(c, "unknown key '%s', expected expandable_segments, max_split_size_mb, garbage_collection_threshold or "
                     "roundup_power2_divisions", key);
}

static bool read_entry(struct cursor *c, struct dev_settings *settings)
{
    char key[KEY_BYTES];
    if (!read_word(c, key) || !read_mark(c, ':'))
        return false;
    if (strcmp(key, "expandable_segments") == 0)
        return read_bool(c, key, &settings->expandable_segments);
    if (strcmp(key, "max_split_size_mb") == 0)
        return read_max_split(c, settings);
    if (strcmp(key, "garbage_collection_threshold") == 0)
        return read_gc(c, settings);
    if (strcmp(key, "roundup_power2_divisions") == 0)
        return read_roundup(c, settings);
    return skip_value(c, key);
}

void dev_settings_init(struct dev_settings *settings)
{
    *settings = (struct dev_settings){.max_split_bytes = DEV_NONE};
}

bool dev_settings_parse(struct dev_settings *settings, const char *text, char *why, size_t why_bytes)
{
    struct dev_settings read;
    struct cursor c = {.at = text, .why = why, .why_bytes = why_bytes};
    dev_settings_init(&read);
    skip_blanks(&c);
    while (*c.at) {
        if (!read_entry(&c, &read))
            return false;
        skip_blanks(&c);
        if (*c.at && !read_mark(&c, ','))
            return false;
        skip_blanks(&c);
    }
    *settings = read;
    return true;
}
