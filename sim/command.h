/* A command of the program: sim/cmd_NAME.c defines `const struct command command_NAME`, and make lists
 * it (build/$(MODE)/gen/commands.inc). */
#ifndef PAGESIM_COMMAND_H
#define PAGESIM_COMMAND_H

#include "sim/optset.h"

/* Exit statuses; 1 to 3 are enum err_kind. */
#define COMMAND_DONE 0
#define COMMAND_CONDITION_HELD 4

enum command_arguments {
    COMMAND_ARGS_NONE,  /* arguments that are not options are an error */
    COMMAND_ARGS_TRACE, /* they name the trace, as --trace does */
    COMMAND_ARGS_OWN,   /* run() gets them */
};

struct command {
    const char *name;    /* as typed; in `parts` the second word: "gen" */
    const char *summary; /* one line, lower case, no full stop */
    const char *usage;   /* what follows the name in the usage line: "[OPTION...] [TRACE]" */
    const char *notes;   /* paragraphs at the end of --help, ready for 80 columns; or NULL */
    uint32_t options;    /* its bit of enum option_commands; 0 with parts */
    bool many;           /* options may hold comma lists */
    enum command_arguments arguments;
    /* Returns COMMAND_DONE, COMMAND_CONDITION_HELD, or -1 with err. Results go to stdout, which main flushes and
     * checks; all else to stderr. argv holds the arguments for COMMAND_ARGS_OWN, else argc is 0. */
    int (*run)(const struct optset *set, int argc, char **argv, struct err *err);
    /* `pagesim trace gen`: NULL-terminated, or NULL. A command with parts has no run. */
    const struct command *const *parts;
};

/* All commands, in name order. */
size_t command_count(void);
const struct command *command_at(size_t i);
/* Runs what the arguments of main() say. An exit status, or -1 with err. Changes the order of argv. */
int command_main(int argc, char **argv, struct err *err);
/* Flushes and closes stdout. -1 with err when anything written to it was lost. */
int command_flush_stdout(struct err *err);
/* Prints the help of a command to stdout, 80 columns wide. words: "run", "trace gen". */
void command_help(const struct command *command, const char *words);
/* The same pages as roff for man(1), and a script that completes command lines in bash. */
void command_man(const struct command *command, const char *words);
void command_man_all(void);
void command_completion_bash(void);
/* What the help says of an option: the text, choices, default and, for options of policies, whose they are. */
void command_option_text(const struct option_spec *spec, char *out, size_t out_bytes);
#define COMMAND_OPTION_TEXT_BYTES 1024
bool command_option_takes_value(const struct option_spec *spec);
/* What the program is for, one paragraph. */
#define COMMAND_PURPOSE                                                                            \
    "Simulates how an LLM server allocates its KV cache, and says where the memory went: which "   \
    "bytes held tokens, which were wasted and how, and why an allocation was refused while "       \
    "memory was free."
/* Prints text in lines of at most 80 columns, continued at `indent`; the cursor stands at `column`. */
void command_print_wrapped(const char *text, int column, int indent);
/* The help of the program. */
void command_help_all(void);

#endif
