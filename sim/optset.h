/* Options as texts: what the command line and the configuration file said. One set belongs to one command.
 *
 * In a sweep any option but paths and lists may hold several values, 'a,b,c'. The set then stands
 * for a product of cells: each cell has one value of each. */
#ifndef PAGESIM_OPTSET_H
#define PAGESIM_OPTSET_H

#include "sim/options.h"

struct optset;

/* command: one bit of enum option_commands. many: values may be lists (sweep). NULL: out of memory. */
struct optset *optset_create(uint32_t command, bool many);
void optset_destroy(struct optset *set); /* NULL is fine */

/* Reads a command line (argv without program and command names). What is not an option is left in argv[0..n),
 * in order; *rest = n. `--` ends the options. */
int optset_args(struct optset *set, int argc, char **argv, int *rest, struct err *err);
/* Call it last: reads the file that --config names (the command line wins over it), and checks what concerns
 * several options: known policies, options of policies that are not there, two sizes for one pool. */
int optset_finish(struct optset *set, struct err *err);
/* Reads a configuration file into what is not given yet: NAME = VALUE, ';' or '#' for comments. A section named like a command
 * holds for that command only; other sections are mere headings. Errors begin with file:line. */
int optset_config(struct optset *set, const char *path, struct err *err);
/* The same from memory; `path` is what messages call it. */
int optset_config_text(struct optset *set, const char *text, size_t bytes, const char *path,
                       struct err *err);
/* Gives one option, as if on the command line. */
int optset_put(struct optset *set, const char *name, const char *text, struct err *err);
/* Adds one trace name as it stands, commas included (arguments without --trace). Several make a list
 * where the command takes lists. */
int optset_put_trace(struct optset *set, const char *name, struct err *err);

uint32_t optset_command(const struct optset *set);
/* The text in force: what was given, or else the default, or NULL when unset. Several values are joined by commas. */
const char *optset_text(const struct optset *set, const char *name);
/* Whether the user gave it. */
bool optset_given(const struct optset *set, const char *name);
/* Whether the option has a meaning in this set: an option of a policy has one when a named policy has it. */
bool optset_applies(const struct optset *set, const struct option_spec *spec);
/* The values that were given or the default; count 0 when unset. Owned by the set. */
struct opt_list optset_values(const struct optset *set, const struct option_spec *spec);
/* Puts where the option came from before an error's message: `--block-size: ` or `file:3: block-size: `. */
void optset_blame(const struct optset *set, const struct option_spec *spec, struct err *err);

/* Number of cells of the product; 1 without lists, UINT64_MAX when it exceeds 64 bits. An option of a policy multiplies only the cells of
 * policies that have it. */
uint64_t optset_cells(const struct optset *set);
/* Cell k < optset_cells(): a set of single values. Order: trace slowest, then policy, then the table's order
 * with the last option fastest. Options of other policies than the cell's are left out. NULL: out of memory. */
struct optset *optset_cell(const struct optset *set, uint64_t k);

/* A new set of a command, possibly another one, with what is given in this cell and that command takes too, and keep (NULL: all)
 * wants. More may be put; optset_finish() is the caller's. NULL with err. */
struct optset *optset_as(const struct optset *cell, uint32_t command,
                         bool (*keep)(void *context, const struct option_spec *spec), void *context, struct err *err);

/* What results echo: every option that is set and can change a figure, in table order.
 *     for (size_t i = 0; optset_echo(set, &i, &spec, text, sizeof text);) ...
 * text is canonical (option_canonical). The set must be a cell that resolved. */
bool optset_echo(const struct optset *set, size_t *i, const struct option_spec **spec, char *text,
                 size_t text_bytes);
#define OPTSET_ECHO_BYTES 4096

#endif
