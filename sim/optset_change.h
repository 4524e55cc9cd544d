/* A set of options like another one but for some values. */
#ifndef PAGESIM_OPTSET_CHANGE_H
#define PAGESIM_OPTSET_CHANGE_H

#include "sim/optset.h"

struct setting {
    const char *option, *value; /* as on the command line, without dashes */
};

/* A set of single values with these settings (later ones of one option, unless it is a list, win) and otherwise what the set was
 * given. A setting of the pool's size replaces whichever option sized it. Options of policies that the new policy does not have
 * are left out, as in a sweep's cell, and so is where output goes. NULL with err; the caller's to destroy. */
struct optset *optset_change(const struct optset *set, const struct setting *settings, size_t count, struct err *err);

/* Whether the option is one of the three that size the pool. */
bool optset_is_pool(const char *option);

#endif
