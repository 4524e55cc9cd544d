/* The list of commands, and what happens between the shell and one of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/command.h"
#include "sim/plugins.h"

#define X(name) extern const struct command command_##name;
#include "commands.inc"
#undef X

static const struct command *const COMMANDS[] = {
#define X(name) &command_##name,
#include "commands.inc"
#undef X
};

size_t command_count(void)
{
    return sizeof COMMANDS / sizeof COMMANDS[0];
}

const struct command *command_at(size_t i)
{
    return COMMANDS[i];
}

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < command_count(); i++)
        if (strcmp(COMMANDS[i]->name, name) == 0) return COMMANDS[i];
    return NULL;
}

static const struct command *part_find(const struct command *command, const char *name)
{
    for (const struct command *const *part = command->parts; part && *part; part++)
        if (strcmp((*part)->name, name) == 0) return *part;
    return NULL;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_help(argv[i])) return true;
    return false;
}

/* Gives arguments without dashes to whom they belong. */
static int arguments_give(const struct command *command, struct optset *set, int argc, char **argv,
                          struct err *err)
{
    if (command->arguments == COMMAND_ARGS_OWN) return 0;
    if (command->arguments == COMMAND_ARGS_NONE && argc > 0)
        return err_set(err, ERR_USAGE, "found '%.100s', expected an option", argv[0]);
    for (int i = 0; i < argc; i++)
        if (optset_put_trace(set, argv[i], err) != 0) return -1;
    return 0;
}

static int command_start(const struct command *command, int argc, char **argv, struct err *err)
{
    struct optset *set = optset_create(command->options, command->many);
    if (!set) return err_set(err, ERR_FAILED, "out of memory");
    int rest = 0, status = -1;
    if (optset_args(set, argc, argv, &rest, err) == 0 &&
        arguments_give(command, set, rest, argv, err) == 0 && optset_finish(set, err) == 0)
        status = command->run(set, command->arguments == COMMAND_ARGS_OWN ? rest : 0, argv, err);
    optset_destroy(set);
    return status;
}

static int part_missing(const struct command *command, const char *found, struct err *err)
{
    char names[256] = "";
    size_t n = 0;
    for (const struct command *const *part = command->parts; *part && n < sizeof names; part++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", (*part)->name);
    if (!found) return err_set(err, ERR_USAGE, "%s: expected one of %s", command->name, names);
    return err_set(err, ERR_USAGE, "%s: found '%.60s', expected one of %s", command->name, found, names);
}

typedef void command_page(const struct command *command, const char *words);

/* argv[0] is the command's name; with a page, that is printed and nothing is run. */
static int command_dispatch(int argc, char **argv, command_page *page, struct err *err)
{
    char words[64];
    const struct command *command = command_find(argv[0]), *part = NULL;
    if (!command)
        return err_set(err, ERR_USAGE, "unknown command '%.60s'; 'pagesim help' lists them", argv[0]);
    snprintf(words, sizeof words, "%s", command->name);
    argc--, argv++;
    if (command->parts && argc > 0 && !is_help(argv[0])) {
        part = part_find(command, argv[0]);
        if (!part) return part_missing(command, argv[0], err);
        snprintf(words, sizeof words, "%s %s", command->name, part->name);
        argc--, argv++;
    }
    if (!page && asks_for_help(argc, argv)) page = command_help;
    if (page) {
        page(part ? part : command, words);
        return COMMAND_DONE;
    }
    if (command->parts && !part) return part_missing(command, NULL, err);
    return command_start(part ? part : command, argc, argv, err);
}

static int shell_completion(const char *shell, struct err *err)
{
    if (!shell || strcmp(shell, "bash") != 0)
        return err_set(err, ERR_USAGE, "--completion: found '%.60s', expected bash", shell ? shell : "");
    command_completion_bash();
    return COMMAND_DONE;
}

/* What follows `help`: nothing, a command, --man [COMMAND], --completion SHELL. */
static int help_main(int argc, char **argv, struct err *err)
{
    if (argc > 0 && strcmp(argv[0], "--completion") == 0)
        return shell_completion(argc > 1 ? argv[1] : NULL, err);
    bool man = argc > 0 && strcmp(argv[0], "--man") == 0;
    if (man) argc--, argv++;
    if (argc > 0 && !is_help(argv[0]))
        return command_dispatch(argc, argv, man ? command_man : command_help, err);
    if (man) command_man_all();
    else command_help_all();
    return COMMAND_DONE;
}

int command_main(int argc, char **argv, struct err *err)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) return err_set(err, ERR_USAGE, "no command given; 'pagesim help' lists them");
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("pagesim %s\n", PAGESIM_VERSION);
        return COMMAND_DONE;
    }
    if (is_help(word)) return help_main(0, NULL, err);
    if (strcmp(word, "help") == 0) return help_main(argc - 2, argv + 2, err);
    if (plugins_from_arguments(argc - 2, argv + 2, err) != 0) return -1;
    return command_dispatch(argc - 1, argv + 1, NULL, err);
}

int command_flush_stdout(struct err *err)
{
    errno = 0;
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) != 0) failed = true;
    int number = errno;
    if (failed && number == 0) { /* it failed earlier, and the reason is lost: it fails for the same one again */
        clearerr(stdout);
        if (fputc('\n', stdout) == EOF || fflush(stdout) != 0) number = errno;
    }
    if (fclose(stdout) != 0) {
        failed = true;
        if (number == 0) number = errno;
    }
    if (!failed) return 0;
    return err_set(err, ERR_FAILED, "standard output: %s", number ? strerror(number) : "cannot write");
}
