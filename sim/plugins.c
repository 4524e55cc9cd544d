#include "sim/plugins.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/plugin.h"
#include "sim/engine_core.h"
#include "sim/options.h"

/* --- one plug-in ------------------------------------------------------------------------------- */

static int wrong_version(const char *path, const char *what, unsigned long long found, unsigned long long expected,
                         struct err *err)
{
    return err_set(err, ERR_USAGE, "--plugin: %s: found %s version %llu, expected %llu: build it against the headers of pagesim %s",
                   path, what, found, expected, PAGESIM_VERSION);
}

static int check_versions(const char *path, const struct pagesim_plugin *p, struct err *err)
{
    if (p->plugin_abi != PAGESIM_PLUGIN_ABI)
        return wrong_version(path, "plug-in ABI", p->plugin_abi, PAGESIM_PLUGIN_ABI, err);
    if (p->policy_abi != KV_ABI_VERSION) return wrong_version(path, "policy ABI", p->policy_abi, KV_ABI_VERSION, err);
    if (p->eviction_abi != KV_EVICTION_ABI_VERSION)
        return wrong_version(path, "eviction ABI", p->eviction_abi, KV_EVICTION_ABI_VERSION, err);
    if (p->schedulers && p->scheduler_abi != PAGESIM_SCHEDULER_ABI)
        return wrong_version(path, "scheduler ABI", p->scheduler_abi, PAGESIM_SCHEDULER_ABI, err);
    return 0;
}

static int bad_name(const char *path, const char *kind, const char *name, const char *why, struct err *err)
{
    return err_set(err, ERR_USAGE, "--plugin: %s: %s '%.60s' %s", path, kind, name ? name : "", why);
}

/* Names become words of lists and of files. */
static bool is_name(const char *name)
{
    return name && *name && strlen(name) < 40 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name);
}

#define NOT_A_NAME "is no name: expected up to 39 of a-z, 0-9 and -"

static const char *missing_policy_function(const struct kv_policy_ops *o)
{
    bool caches = (o->flags & KV_CACHES) != 0, contiguous = (o->flags & KV_CONTIGUOUS) != 0;
    if (!o->create || !o->destroy || !o->admit || !o->extend || !o->fork || !o->release)
        return "lacks one of create, destroy, admit, extend, fork, release";
    if (!o->facts || !o->seq_facts || !o->obtainable || !o->units_for || !o->largest_piece)
        return "lacks one of facts, seq_facts, obtainable, units_for, largest_piece";
    if (caches != (o->lookup != NULL) || caches != (o->cache_facts != NULL))
        return "must have lookup and cache_facts exactly when its flags say KV_CACHES";
    if (contiguous != (o->largest_run != NULL)) return "must have largest_run exactly when its flags say KV_CONTIGUOUS";
    return o->summary && o->source ? NULL : "lacks summary or source";
}

/* Their names become options of commands, among which they must not hide others. */
static int check_options(const char *path, const char *kind, const char *name, const struct kv_option *const *options, struct err *err)
{
    struct kv_value values[KV_OPTIONS_MAX];
    char why[200], message[300];
    if (kv_options_count(options) > KV_OPTIONS_MAX) return bad_name(path, kind, name, "has too many options", err);
    for (size_t i = 0; options && options[i]; i++) {
        const struct kv_option *o = options[i];
        if (!is_name(o->name)) return bad_name(path, "option", o->name, NOT_A_NAME, err);
        if (!o->default_text || !o->help) return bad_name(path, "option", o->name, "lacks default_text or help", err);
        if (option_is_built_in(o->name)) return bad_name(path, "option", o->name, "exists: choose another name", err);
    }
    if (kv_options_parse(options, NULL, values, why, sizeof why)) return 0;
    snprintf(message, sizeof message, "has a bad default: %s", why);
    return bad_name(path, kind, name, message, err);
}

static int check_policies(const char *path, const struct pagesim_plugin *p, struct err *err)
{
    for (size_t i = 0; p->policies && p->policies[i]; i++) {
        const struct kv_policy_ops *ops = p->policies[i];
        if (!is_name(ops->name)) return bad_name(path, "policy", ops->name, NOT_A_NAME, err);
        if (ops->abi_version != KV_ABI_VERSION)
            return wrong_version(path, "policy ABI", ops->abi_version, KV_ABI_VERSION, err);
        if (missing_policy_function(ops)) return bad_name(path, "policy", ops->name, missing_policy_function(ops), err);
        if (check_options(path, "policy", ops->name, ops->options, err) != 0) return -1;
        if (kv_registry_find(ops->name)) return bad_name(path, "policy", ops->name, "exists: choose another name", err);
    }
    return 0;
}

static int check_evictions(const char *path, const struct pagesim_plugin *p, struct err *err)
{
    for (size_t i = 0; p->evictions && p->evictions[i]; i++) {
        const struct kv_eviction_ops *ops = p->evictions[i];
        if (!is_name(ops->name)) return bad_name(path, "eviction order", ops->name, NOT_A_NAME, err);
        if (!ops->create || !ops->destroy || !ops->give || !ops->take || !ops->touch || !ops->evict || !ops->summary || !ops->source)
            return bad_name(path, "eviction order", ops->name, "lacks one of create, destroy, give, take, touch, evict, summary, source", err);
        if ((ops->clock != NULL) != (ops->next_unpin != NULL) || (ops->clock != NULL) != (ops->is_pinned != NULL))
            return bad_name(path, "eviction order", ops->name, "has some of clock, next_unpin, is_pinned, but not all", err);
        if ((ops->flags & KV_EVICTION_CLAIRVOYANT) != 0 && !ops->foresee)
            return bad_name(path, "eviction order", ops->name, "must know the future and lacks foresee", err);
        if (check_options(path, "eviction order", ops->name, ops->options, err) != 0) return -1;
        if (kv_eviction_find(ops->name)) return bad_name(path, "eviction order", ops->name, "exists: choose another name", err);
    }
    return 0;
}

static int check_schedulers(const char *path, const struct pagesim_plugin *p, struct err *err)
{
    for (size_t i = 0; p->schedulers && p->schedulers[i]; i++) {
        const struct scheduler_ops *s = p->schedulers[i];
        if (!is_name(s->name)) return bad_name(path, "scheduler", s->name, NOT_A_NAME, err);
        if (!s->pass || !s->summary || !s->source) return bad_name(path, "scheduler", s->name, "lacks one of pass, summary, source", err);
        if (s->flags & ~(uint32_t)(SCHEDULER_WHOLE_PROMPTS | SCHEDULER_WATERMARK_ALWAYS))
            return bad_name(path, "scheduler", s->name, "has unknown flags", err);
        if ((s->create != NULL) != (s->destroy != NULL))
            return bad_name(path, "scheduler", s->name, "has one of create, destroy, but not both", err);
        if (!(s->default_watermark >= 0 && s->default_watermark < 1))
            return bad_name(path, "scheduler", s->name, "has a default_watermark outside 0 <= .. < 1", err);
        if (scheduler_find(s->name)) return bad_name(path, "scheduler", s->name, "exists: choose another name", err);
    }
    return 0;
}

static int add_all(const char *path, const struct pagesim_plugin *p, struct err *err)
{
    bool room = true;
    for (size_t i = 0; room && p->policies && p->policies[i]; i++) room = kv_registry_add(p->policies[i]);
    for (size_t i = 0; room && p->evictions && p->evictions[i]; i++) room = kv_eviction_add(p->evictions[i]);
    for (size_t i = 0; room && p->schedulers && p->schedulers[i]; i++) room = scheduler_add(p->schedulers[i]);
    return room ? 0 : err_set(err, ERR_USAGE, "--plugin: %s: more policies than there is room for", path);
}

int plugin_load(const char *path, struct err *err)
{
    char here[4096];
    if (snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path) >= (int)sizeof here)
        return err_set(err, ERR_USAGE, "--plugin: longer than %zu bytes", sizeof here);
    void *object = dlopen(here, RTLD_NOW | RTLD_LOCAL);
    if (!object) return err_set(err, ERR_USAGE, "--plugin: %s", dlerror());
    const struct pagesim_plugin *p = dlsym(object, "pagesim_plugin");
    int status = p ? 0 : err_set(err, ERR_USAGE, "--plugin: %s: found no symbol `pagesim_plugin`, expected a plug-in", path);
    if (status == 0 && check_versions(path, p, err) == 0 && check_policies(path, p, err) == 0 &&
        check_evictions(path, p, err) == 0 && check_schedulers(path, p, err) == 0)
        return add_all(path, p, err);
    dlclose(object);
    return -1;
}

/* --- those of a command line ------------------------------------------------------------------- */

/* The value when the argument is this option: behind '=', or the next argument. */
static const char *value_of(int argc, char **argv, int i, const char *option)
{
    size_t bytes = strlen(option);
    if (strncmp(argv[i], option, bytes) != 0) return NULL;
    if (argv[i][bytes] == '=') return argv[i] + bytes + 1;
    return argv[i][bytes] == '\0' && i + 1 < argc ? argv[i + 1] : NULL;
}

/* "  plugin = ./x.so" -> "./x.so", cut out of the line. */
static char *value_of_line(char *line)
{
    char *at = line + strspn(line, " \t");
    if (strncmp(at, "plugin", 6) != 0) return NULL;
    at += 6;
    at += strspn(at, " \t");
    if (*at != '=') return NULL;
    at++;
    at += strspn(at, " \t");
    char *end = at + strlen(at);
    while (end > at && isspace((unsigned char)end[-1])) end--;
    *end = '\0';
    return *at ? at : NULL;
}

/* What cannot be read is reported when the configuration is read in earnest. */
static int from_config(const char *path, struct err *err)
{
    FILE *in = fopen(path, "r");
    char line[8192], *value;
    int status = 0;
    while (in && status == 0 && fgets(line, sizeof line, in))
        if ((value = value_of_line(line)) != NULL) status = plugin_load(value, err);
    if (in) fclose(in);
    return status;
}

int plugins_from_arguments(int argc, char **argv, struct err *err)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *path = value_of(argc, argv, i, "--plugin"), *config = value_of(argc, argv, i, "--config");
        if (path && plugin_load(path, err) != 0) return -1;
        if (config && from_config(config, err) != 0) return -1;
    }
    return 0;
}
