/* Plug-ins among what tests go over. */
#ifndef PAGESIM_PLUGIN_ENV_H
#define PAGESIM_PLUGIN_ENV_H

/* Adds the policies and orders of the plug-ins that PAGESIM_TEST_PLUGINS names, a:b:c, to the registries. Ends the test's process
 * when one cannot be loaded. */
void plugin_env_add(void);

#endif
