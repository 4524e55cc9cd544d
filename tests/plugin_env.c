#include "tests/plugin_env.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/eviction.h"
#include "allocator/kv_policy.h"
#include "allocator/plugin.h"

void plugin_env_add(void)
{
    const char *paths = getenv("PAGESIM_TEST_PLUGINS");
    char path[4096];
    for (; paths && *paths; paths += strcspn(paths, ":"), paths += *paths == ':') {
        snprintf(path, sizeof path, "%.*s", (int)strcspn(paths, ":"), paths);
        void *object = dlopen(path, RTLD_NOW);
        const struct pagesim_plugin *p = object ? dlsym(object, "pagesim_plugin") : NULL;
        if (!p) {
            fprintf(stderr, "PAGESIM_TEST_PLUGINS: %s\n", dlerror());
            exit(1);
        }
        for (size_t i = 0; p->policies && p->policies[i]; i++)
            if (!kv_registry_add(p->policies[i])) exit(1);
        for (size_t i = 0; p->evictions && p->evictions[i]; i++)
            if (!kv_eviction_add(p->evictions[i])) exit(1);
    }
}
