#include "sim/optset_change.h"

#include <string.h>

bool optset_is_pool(const char *option)
{
    return strcmp(option, "kv-cache-memory-bytes") == 0 || strcmp(option, "pool-tokens") == 0 ||
           strcmp(option, "num-gpu-blocks-override") == 0;
}

struct change {
    const struct setting *settings;
    size_t count;
    const struct kv_policy_ops *ops; /* the new policy; NULL: an unknown one, which is reported at the end */
    const char *order;               /* the new eviction order; NULL: none */
    bool pool;                       /* a setting sizes the pool */
};

static const char *setting_of(const struct change *c, const char *option)
{
    for (size_t i = c->count; i-- > 0;)
        if (strcmp(c->settings[i].option, option) == 0) return c->settings[i].value;
    return NULL;
}

/* Whether the new set takes the old one's value. A serving command has been read into its options already: it is named again
 * at the end, where nobody reads it. */
static bool is_kept(void *context, const struct option_spec *spec)
{
    const struct change *c = context;
    if (spec->section == OPT_OUTPUT || strcmp(spec->name, "command") == 0) return false;
    if (setting_of(c, spec->name) || (c->pool && optset_is_pool(spec->name))) return false;
    return !spec->policy_option || (c->ops && option_applies(spec, c->ops, c->order));
}

static int put_settings(const struct change *c, struct optset *to, struct err *err)
{
    uint32_t command = optset_command(to);
    for (size_t i = 0; i < c->count; i++) {
        const struct option_spec *spec = option_find(command, c->settings[i].option);
        bool last = setting_of(c, c->settings[i].option) == c->settings[i].value;
        if (spec && spec->kind != OPT_LIST && !last) continue;
        if (optset_put(to, c->settings[i].option, c->settings[i].value, err)) return -1;
    }
    return 0;
}

struct optset *optset_change(const struct optset *set, const struct setting *settings, size_t count, struct err *err)
{
    struct change c = {.settings = settings, .count = count};
    for (size_t i = 0; i < count; i++) c.pool = c.pool || optset_is_pool(settings[i].option);
    const char *policy = setting_of(&c, "policy");
    if (!policy) policy = optset_text(set, "policy");
    c.ops = policy ? kv_registry_find(policy) : NULL;
    const struct option_spec *evict = option_find(optset_command(set), "evict");
    c.order = setting_of(&c, "evict");
    if (!c.order && evict && c.ops && optset_applies(set, evict)) c.order = optset_text(set, "evict");
    if (!c.order) c.order = "lru";
    struct optset *to = optset_as(set, optset_command(set), is_kept, &c, err);
    if (!to) return NULL;
    int status = put_settings(&c, to, err);
    if (status == 0) status = optset_finish(to, err);
    if (status == 0 && optset_given(set, "command")) status = optset_put(to, "command", optset_text(set, "command"), err);
    if (status == 0) return to;
    optset_destroy(to);
    return NULL;
}
