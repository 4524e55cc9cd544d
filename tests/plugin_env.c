#include "tests/plugin_env.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/eviction.h"
#include "allocator/kv_policy.h"
#include "sim/plugin.h"

const struct pagesim_plugin *plugin_env_next(const char **paths)
{
    char path[4096];
    if (!*paths || !**paths) return NULL;
    snprintf(path, sizeof path, "%.*s", (int)strcspn(*paths, ":"), *paths);
    *paths += strcspn(*paths, ":");
    *paths += **paths == ':';
    void *object = dlopen(path, RTLD_NOW);
    const struct pagesim_plugin *p = object ? dlsym(object, "pagesim_plugin") : NULL;
    if (p) return p;
    fprintf(stderr, "PAGESIM_TEST_PLUGINS: %s\n", dlerror());
    exit(1);
}

void plugin_env_add(void)
{
    const char *paths = getenv("PAGESIM_TEST_PLUGINS");
    for (const struct pagesim_plugin *p; (p = plugin_env_next(&paths)) != NULL;) {
        for (size_t i = 0; p->policies && p->policies[i]; i++)
            if (!kv_registry_add(p->policies[i])) exit(1);
        for (size_t i = 0; p->evictions && p->evictions[i]; i++)
            if (!kv_eviction_add(p->evictions[i])) exit(1);
    }
}
