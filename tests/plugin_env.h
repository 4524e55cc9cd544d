/* Plug-ins among what tests go over. */
#ifndef PAGESIM_PLUGIN_ENV_H
#define PAGESIM_PLUGIN_ENV_H

struct pagesim_plugin;

/* The first of the plug-ins at *paths, a:b:c, which is moved behind it; NULL: none is left. Ends the test's process when it cannot be
 * loaded. */
const struct pagesim_plugin *plugin_env_next(const char **paths);

/* Adds the policies and orders of the plug-ins that PAGESIM_TEST_PLUGINS names, a:b:c, to the registries. Ends the test's process
 * when one cannot be loaded. */
void plugin_env_add(void);

#endif
