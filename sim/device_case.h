/* What surrounds an operation file: config.json of a recorded case, or what the command line says instead. */
#ifndef PAGESIM_DEVICE_CASE_H
#define PAGESIM_DEVICE_CASE_H

#include <stddef.h>
#include <stdint.h>

#include "allocator/device/device_allocator.h"
#include "workloads/err.h"

struct device_variant {
    char *name;
    char *setting;
};

struct device_case {
    char *name;                 /* "" without a config */
    uint64_t cap_bytes;         /* DEV_NONE: no cap */
    uint64_t device_free_bytes; /* DEV_NONE: the whole device; else what a ballast leaves of it */
    struct dev_machine machine;
    struct device_variant *variants;
    size_t variant_count;
};

/* No name, no cap, an H200, no variants of its own. 0, or -1 with err. */
int device_case_init(struct device_case *c, struct err *err);
/* Reads config.json: `name`, `cap_bytes`, `device_free_bytes`, `variants`; besides them `device_total` and
 * `free_after_context` describe another GPU. Unknown keys are ignored: they are comments. 0, or -1 with err. */
int device_case_read(const char *path, struct device_case *c, struct err *err);
void device_case_release(struct device_case *c);

/* The setting of a variant: the case's own, or one of the names used in the recordings. NULL if there is none. */
const char *device_case_setting(const struct device_case *c, const char *variant);
/* The name of a setting, likewise; "custom" if it has none. */
const char *device_case_variant(const struct device_case *c, const char *setting);

/* The allocator's configuration under a setting. 0, or -1 with err, a usage error that says what is wrong with it. */
int device_case_config(const struct device_case *c, const char *setting, struct dev_config *config, struct err *err);

#endif
