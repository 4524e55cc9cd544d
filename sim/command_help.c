/* Help, made from the option table. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/command.h"

#define WIDTH 80
#define HELP_COLUMN 30
#define ENTRY_COLUMN 12

/* Length of the next word; of a list of choices that no line has room for, up to its last '|' that fits. */
static int piece_bytes(const char *text, int room)
{
    int bytes = (int)strcspn(text, " ");
    if (bytes <= room) return bytes;
    for (int cut = room; cut > 0; cut--)
        if (text[cut - 1] == '|') return cut;
    return bytes;
}

void command_print_wrapped(const char *text, int column, int indent)
{
    bool line_begins = true;
    while (*text) {
        int bytes = piece_bytes(text, WIDTH - indent);
        if (!line_begins && column + 1 + bytes > WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
            line_begins = true;
        }
        if (!line_begins) column += printf(" ");
        column += printf("%.*s", bytes, text);
        line_begins = false;
        text += bytes;
        if (*text && *text != ' ') column = WIDTH; /* the rest of a cut word starts a line */
        text += strspn(text, " ");
    }
    printf("\n");
}

/* A line of a list of commands. */
static void print_entry(const char *name, const char *summary)
{
    int column = printf("  %-*s", ENTRY_COLUMN - 2, name);
    command_print_wrapped(summary, column, ENTRY_COLUMN);
}

bool command_option_takes_value(const struct option_spec *spec)
{
    return spec->kind != OPT_FLAG && spec->kind != OPT_BOOL;
}

static size_t append_owner(const struct option_spec *spec, const struct kv_option *const *options, const char *kind,
                           const char *name, size_t n, char *out, size_t out_bytes)
{
    for (size_t i = 0; options && options[i] && n < out_bytes; i++)
        if (strcmp(options[i]->name, spec->name) == 0)
            n += (size_t)snprintf(out + n, out_bytes - n, "%s%s", n ? ", " : kind, name);
    return n;
}

/* "policy static, static-paged", "order random": which policies or orders have an option. */
static void append_owners(const struct option_spec *spec, char *out, size_t out_bytes)
{
    size_t n = 0;
    for (size_t p = 0; p < kv_registry_count(); p++)
        n = append_owner(spec, kv_registry_at(p)->options, "policy ", kv_registry_at(p)->name, n, out, out_bytes);
    for (size_t p = 0; p < kv_eviction_count(); p++)
        n = append_owner(spec, kv_eviction_at(p)->options, "order ", kv_eviction_at(p)->name, n, out, out_bytes);
}

static void append(char *out, size_t out_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *out, size_t out_bytes, const char *format, ...)
{
    size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, out_bytes - used, format, args);
    va_end(args);
}

void command_option_text(const struct option_spec *spec, char *out, size_t out_bytes)
{
    out[0] = '\0';
    append(out, out_bytes, "%s", spec->help);
    if (spec->choices) append(out, out_bytes, ": %s", spec->choices);
    if (spec->default_text) append(out, out_bytes, " [%s]", spec->default_text);
    if (spec->policy_option) {
        char owners[256] = "";
        append_owners(spec, owners, sizeof owners);
        append(out, out_bytes, " (%s)", owners);
    }
}

static void print_option(const struct option_spec *spec)
{
    char text[COMMAND_OPTION_TEXT_BYTES];
    const char *no = spec->kind == OPT_BOOL ? "[no-]" : "";
    int column = printf("  --%s%s%s%s", no, spec->name, command_option_takes_value(spec) ? " " : "", spec->unit);
    if (column >= HELP_COLUMN) {
        printf("\n");
        column = 0;
    }
    printf("%*s", HELP_COLUMN - column, "");
    command_option_text(spec, text, sizeof text);
    command_print_wrapped(text, HELP_COLUMN, HELP_COLUMN);
}

static void print_section(uint32_t command, enum option_section section)
{
    bool any = false;
    for (size_t i = 0; i < option_count(); i++) {
        const struct option_spec *spec = option_at(i);
        if (!(spec->commands & command) || spec->section != section) continue;
        if (!any) printf("\n%s\n", option_section_title(section));
        any = true;
        print_option(spec);
    }
}

void command_help(const struct command *command, const char *words)
{
    printf("usage: pagesim %s %s\n\n", words, command->usage);
    command_print_wrapped(command->summary, 0, 0);
    if (command->parts) printf("\n");
    for (const struct command *const *part = command->parts; part && *part; part++)
        print_entry((*part)->name, (*part)->summary);
    if (command->parts) printf("\n'pagesim help %s PART' describes one.\n", command->name);
    for (int section = 0; section < OPT_SECTIONS; section++)
        print_section(command->options, (enum option_section)section);
    if (command->many)
        printf("\nOptions above \"Checks\" may hold lists, --block-size 1,16,128: every\n"
               "combination is one simulation.\n");
    if (command->options)
        printf("\nDefaults stand in brackets. The same names serve in a configuration file.\n");
    if (command->notes) printf("\n%s\n", command->notes);
}

void command_help_all(void)
{
    printf("usage: pagesim COMMAND [OPTION...]\n\n");
    command_print_wrapped(COMMAND_PURPOSE, 0, 0);
    printf("\n");
    for (size_t i = 0; i < command_count(); i++)
        print_entry(command_at(i)->name, command_at(i)->summary);
    printf("\n  help COMMAND   the options of a command, with defaults and units\n"
           "  --version      the version\n\n"
           "Exit status: 0 done, 1 failed, 2 usage, 3 bad input, 4 a --fail-if condition\n"
           "held.\n");
}
