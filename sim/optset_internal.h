/* What optset.c and optset_config.c share. */
#ifndef PAGESIM_OPTSET_INTERNAL_H
#define PAGESIM_OPTSET_INTERNAL_H

#include "sim/optset.h"

/* What one option was given; count 0: nothing. */
struct slot {
    char **items;
    size_t count;
    char *text;    /* items joined by commas */
    unsigned line; /* of the configuration file, 0: command line */
};

struct optset {
    uint32_t command;
    bool many;
    struct slot *slots; /* parallel to the option table */
    char *file;         /* name of the configuration file, or NULL */
};

/* Room for any field that option_parse writes. */
union option_field {
    uint64_t number;
    double ratio;
    struct opt_extent extent;
    uint32_t word;
    struct opt_declared declared;
    const char *text;
    bool truth;
    struct opt_list list;
};

/* Position in the table. */
size_t option_index(const struct option_spec *spec);
/* Gives an option. whole: no splitting at commas. line 0: from the command line. On failure err has no name of
 * the option, and the option is not given. */
int optset_add(struct optset *set, const struct option_spec *spec, const char *text, bool whole,
               unsigned line, struct err *err);

#endif
