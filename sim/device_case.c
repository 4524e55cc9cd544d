#include "sim/device_case.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The variants of the recordings, for cases that name none. */
static const struct {
    const char *name, *setting;
} KNOWN[] = {
    {"default", ""},
    {"expandable", "expandable_segments:True"},
    {"split128", "max_split_size_mb:128"},
    {"gc08", "garbage_collection_threshold:0.8"},
    {"pow2_4", "roundup_power2_divisions:4"},
    {"split128_gc08", "max_split_size_mb:128,garbage_collection_threshold:0.8"},
    {"exp_split128_gc08", "expandable_segments:True,max_split_size_mb:128,garbage_collection_threshold:0.8"},
};
#define KNOWN_COUNT (sizeof KNOWN / sizeof KNOWN[0])

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_FAILED, "out of memory");
}

int device_case_init(struct device_case *c, struct err *err)
{
    *c = (struct device_case){.cap_bytes = DEV_NONE, .device_free_bytes = DEV_NONE, .machine = dev_machine_h200};
    c->name = strdup("");
    return c->name ? 0 : out_of_memory(err);
}

void device_case_release(struct device_case *c)
{
    for (size_t i = 0; i < c->variant_count; i++) {
        free(c->variants[i].name);
        free(c->variants[i].setting);
    }
    free(c->variants);
    free(c->name);
    *c = (struct device_case){0};
}

/* null or an absent key leaves *value alone. */
static int read_bytes(const json_t *root, const char *key, uint64_t *value, struct err *err)
{
    const json_t *item = json_object_get(root, key);
    if (!item || json_is_null(item))
        return 0;
    if (!json_is_integer(item) || json_integer_value(item) < 0 || (uint64_t)json_integer_value(item) > DEV_BYTES_MAX)
        return err_set(err, ERR_INPUT, "%s: expected null or a size of 0 to 2^48 bytes", key);
    *value = (uint64_t)json_integer_value(item);
    return 0;
}

static int read_variants(const json_t *root, struct device_case *c, struct err *err)
{
    json_t *variants = json_object_get(root, "variants");
    const char *name;
    json_t *setting;
    if (!variants)
        return 0;
    if (!json_is_object(variants))
        return err_set(err, ERR_INPUT, "variants: expected an object of names and settings");
    c->variants = calloc(json_object_size(variants) + 1, sizeof *c->variants);
    if (!c->variants)
        return out_of_memory(err);
    json_object_foreach(variants, name, setting) {
        if (!json_is_string(setting))
            return err_set(err, ERR_INPUT, "variants: %.60s: expected a setting, a string", name);
        struct device_variant *v = &c->variants[c->variant_count++];
        v->name = strdup(name);
        v->setting = strdup(json_string_value(setting));
        if (!v->name || !v->setting)
            return out_of_memory(err);
    }
    return 0;
}

static int read_root(const json_t *root, struct device_case *c, struct err *err)
{
    if (!json_is_object(root))
        return err_set(err, ERR_INPUT, "expected an object");
    const json_t *name = json_object_get(root, "name");
    if (name && !json_is_string(name))
        return err_set(err, ERR_INPUT, "name: expected a string");
    if (name) {
        free(c->name);
        c->name = strdup(json_string_value(name));
        if (!c->name)
            return out_of_memory(err);
    }
    if (read_bytes(root, "cap_bytes", &c->cap_bytes, err) != 0 ||
        read_bytes(root, "device_free_bytes", &c->device_free_bytes, err) != 0 ||
        read_bytes(root, "device_total", &c->machine.total_bytes, err) != 0)
        return -1;
    if (c->machine.free_bytes > c->machine.total_bytes)
        c->machine.free_bytes = c->machine.total_bytes;
    if (read_bytes(root, "free_after_context", &c->machine.free_bytes, err) != 0)
        return -1;
    if (c->machine.total_bytes == 0 || c->machine.free_bytes > c->machine.total_bytes)
        return err_set(err, ERR_INPUT, "free_after_context: more than device_total");
    return read_variants(root, c, err);
}

int device_case_read(const char *path, struct device_case *c, struct err *err)
{
    json_error_t why;
    if (device_case_init(c, err) != 0)
        return -1;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    int status;
    if (!root && why.line < 0)
        status = err_set(err, ERR_INPUT, "%.300s: %s", path, why.text);
    else if (!root)
        status = err_set(err, ERR_INPUT, "%.300s:%d:%d: %s", path, why.line, why.column, why.text);
    else if ((status = read_root(root, c, err)) != 0)
        err_prefix(err, "%.300s", path);
    json_decref(root);
    if (status != 0)
        device_case_release(c);
    return status;
}

const char *device_case_setting(const struct device_case *c, const char *variant)
{
    for (size_t i = 0; i < c->variant_count; i++)
        if (strcmp(c->variants[i].name, variant) == 0)
            return c->variants[i].setting;
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (strcmp(KNOWN[i].name, variant) == 0)
            return KNOWN[i].setting;
    return NULL;
}

const char *device_case_variant(const struct device_case *c, const char *setting)
{
    for (size_t i = 0; i < c->variant_count; i++)
        if (strcmp(c->variants[i].setting, setting) == 0)
            return c->variants[i].name;
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (strcmp(KNOWN[i].setting, setting) == 0)
            return KNOWN[i].name;
    return "custom";
}

int device_case_config(const struct device_case *c, const char *setting, struct dev_config *config, struct err *err)
{
    char why[256];
    dev_config_init(config);
    if (!dev_settings_parse(&config->settings, setting, why, sizeof why))
        return err_set(err, ERR_USAGE, "setting '%.200s': %s", setting, why);
    config->machine = c->machine;
    config->cap_bytes = c->cap_bytes;
    if (c->device_free_bytes != DEV_NONE)
        config->ballast_bytes = dev_ballast_bytes(&c->machine, c->device_free_bytes);
    return 0;
}
