/* Loading plug-ins (sim/plugin.h). Before anything asks for a policy's name or the table of options. */
#ifndef PAGESIM_PLUGINS_H
#define PAGESIM_PLUGINS_H

#include "workloads/err.h"

/* Loads one and adds what it has to the registries. A name without a slash is in the current folder. -1 with err: the file, what was
 * found, what was expected (ERR_USAGE: not such a file, or no plug-in; nothing of it is registered). */
int plugin_load(const char *path, struct err *err);
/* Loads what --plugin FILE and --plugin=FILE name on a command line, and `plugin = FILE` in the file that --config names. What is
 * wrong with the other options is not looked at. */
int plugins_from_arguments(int argc, char **argv, struct err *err);

#endif
